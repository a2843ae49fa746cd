"""Make the tables of docs/pmbs23.md from the results of pmbs23-part.yaml and pmbs23-small.yaml.

python experiments/pmbs23_tables.py results/pmbs23-part results/pmbs23-small
    reports the first campaign, keeps its tables in docs/pmbs23, with the rows of the second, and puts the tables on
    the page
python experiments/pmbs23_tables.py --check
    needs no results, and exits 1 if the page has other tables than docs/pmbs23
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import doc_pages
import pandas as pd

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.inputs.batsim_json import read_text
from batwatt.report.page import write_report
from batwatt.report.table import read_campaign

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("pmbs23.md",)
FOLDER = "pmbs23"
TABLES = ("means-mean", "means-period", "means-range", "means-metrics", "means-cores", "means-jobs", "claims")
"""The tables of the report that the page has; each is a file of docs/pmbs23, too."""
NUMBERS = ("means.csv", "claims-numbers.csv")
"""The files with all numbers behind them."""
SMALL = "small.csv"
WHERE = ["study", "label", "workload", "capacity"]
FIGURES = ["goodput", "max_stretch", "mean_stretch", "aborted_volume", "mean_aborted_time_s", "completed_fraction"]


def rows_of(results: Path) -> pd.DataFrame:
    """Where each run of a campaign stands, and its figures to 6 decimals. Raises InputError."""
    return read_campaign(results).frame[WHERE + FIGURES].round(6)


def make(part: Path, small: Path, docs: Path) -> int:
    """Write docs/pmbs23 and the tables of the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, TABLES)
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    report = write_report(part)[0].parent
    for name in (*(f"{table}.md" for table in TABLES), *NUMBERS):
        shutil.copyfile(report / name, folder / name)
    with whole_file(folder / SMALL) as out:
        out.write(rows_of(small).to_csv(index=False, lineterminator="\n"))
    doc_pages.write(pages, tables_of(docs))
    return 0


def tables_of(docs: Path) -> dict[str, str]:
    """Every table, without its title. Raises InputError."""
    return {name: read_text(docs / FOLDER / f"{name}.md").partition("\n")[2].strip() for name in TABLES}


def main(words: Sequence[str] | None = None) -> int:
    """Make the tables, or check them; the exit code is 1 if the page has another table, 2 for bad input."""
    parser = argparse.ArgumentParser(description="Make the tables of docs/pmbs23.md.")
    parser.add_argument("results", type=Path, nargs="*", help="folders of results: pmbs23-part, pmbs23-small")
    parser.add_argument("--check", action="store_true", help="compare with the page instead of writing it")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    given = parser.parse_args(words)
    if len(given.results) != (0 if given.check else 2):
        parser.error("give either two folders of results or --check")
    try:
        if given.check:
            return doc_pages.check(doc_pages.read_pages(given.docs, PAGES, TABLES), tables_of(given.docs))
        return make(*given.results, given.docs)
    except InputError as error:
        print(f"pmbs23_tables: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
