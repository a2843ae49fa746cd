"""Fill the table of papers/README.md with the counts of verdicts of the pages, or compare it with them.

python -m papers [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from papers.pages import PLACE, main, markdown
from papers.statements import VERDICTS

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
PAGES = {
    "igsc22": "Powercap paper",
    "pmbs23": "Riskaware paper",
    "varcap": "Varcap dissertation",
    "checkpoint": "Checkpoint paper",
    "carbon": "Carbon thesis",
    "cross": "All systems, cross-compared",
    "jobpower": "Power per job",
}
"""Folders with statements, and their titles."""


def tables() -> dict[str, str]:
    """Return the rows of the table `summary` of each page, a row for each set of runs."""
    rows = []
    for folder, title in PAGES.items():
        text = (HERE / folder / PAGE.name).read_text(encoding="utf-8")
        [table] = [table for name, table in PLACE.findall(text) if name == "summary"]
        for n, line in enumerate(table.strip().splitlines()[2:]):
            *names, statements, measured, yes, direction, no, still = (cell.strip() for cell in line.split("|")[1:-1])
            words = f"[{title}]({folder}/README.md)" if n == 0 else title
            rows.append([", ".join((words, *filter(None, names))), statements, measured, yes, direction, no, still])
    return {"papers": markdown(["source", "statements", "measured", *VERDICTS], rows)}


def make() -> None:
    """Fill the table of papers/README.md with the counts of verdicts of the pages."""


if __name__ == "__main__":
    sys.exit(main(PAGE, tables, make))
