"""Write the tables of docs/reference/benchmark.md: cells of the declaration, and the stored entries.

python docs/benchmark.py [--check]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from batwatt.api.benchmark import Entry
from batwatt.studies.benchmark import benchmark
from batwatt.units import J_PER_KWH

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from papers import pages  # noqa: E402 (papers/ is not installed)
from papers.pages import markdown  # noqa: E402 (papers/ is not installed)

PAGE = ROOT / "docs" / "reference" / "benchmark.md"
ENTRIES = PAGE.with_suffix("")


def logs() -> str:
    """Return the table of logs."""
    rows = []
    for name, log in benchmark().logs.items():
        limits = ", ".join(cell.partition("/")[2] for cell in benchmark().cells if benchmark().log_of(cell) is log)
        rows.append((name, log.source, log.licence, limits, f"{log.hosts}", f"{log.days:g}", f"{log.horizon_days:g}"))
    return markdown(("log", "jobs", "licence", "limits", "hosts", "days", "horizon, days"), rows, texts=4)


def entries() -> str:
    """Return the table of entries: ranked ones first, by score, then the bound."""
    stored = [Entry.read(path) for path in sorted(ENTRIES.glob("*.json"))]
    rows = []
    for entry in sorted(stored, key=lambda entry: (not entry.ranked, entry.records()[-1]["score"])):
        if entry.cells.keys() != benchmark().cells.keys():
            sys.exit(f"entry {entry.label!r} has not all cells: run it without --cells")
        total = entry.records()[-1]
        above = total["energy_above_cap_j"] / total["energy_j"]
        rows.append((
            entry.label, f"{total['score']:.3f}", f"{total['low']:.2f} to {total['high']:.2f}", f"{total['jobs_lost']}",
            f"{total['finished_work_fraction']:.1%}", f"{total['energy_j'] / J_PER_KWH:.0f}", f"{above:.1%}",
            "yes" if entry.ranked else "no",
        ))  # fmt: skip
    # bound: the slowdown of each job is at least 1
    least = {cell: [{**row, "slowdown": 1.0} for row in own] for cell, own in stored[0].cells.items()}
    bound = replace(stored[0], cells=least).records()[-1]["score"]
    rows.append(("*no job waits: a bound*", f"{bound:.3f}", *[""] * 6))
    return markdown(("entry", "score", "95 %", "jobs lost", "work done", "kWh", "above the limit", "ranked"), rows)


def tables() -> dict[str, str]:
    """Return the tables."""
    return {"logs": logs(), "entries": entries()}


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, lambda: None))
