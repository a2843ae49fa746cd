"""Make the tables of docs/results/pmbs23.md from the results of pmbs23-part.yaml and pmbs23-small.yaml.

python experiments/pmbs23_tables.py results/pmbs23-part results/pmbs23-small
    reports the first campaign, keeps its tables in docs/results/pmbs23, with the rows of the second, and puts the
    tables on the page
python experiments/pmbs23_tables.py --check
    needs no results, and exits 1 if the page has other tables than docs/results/pmbs23
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import doc_pages
import pandas as pd

from batwatt.files import whole_file
from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.report.page import write_report
from batwatt.report.papers.pmbs23 import RAW
from batwatt.report.table import read_campaign

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = ("pmbs23.md",)
FOLDER = "pmbs23"
TABLES = ("means-mean", "means-period", "means-range", "means-metrics", "means-cores", "means-jobs", "claims")
"""The tables of the report that the page has; each is a file of docs/results/pmbs23, too."""
PEER = "peer"
"""The table that pmbs23_peer.py makes."""
NUMBERS = ("means.csv", "claims-numbers.csv")
"""The files with all numbers behind them."""
SMALL = "small.csv"
WHERE = ["study", "label", "workload", "capacity"]


def rows_of(results: Path) -> pd.DataFrame:
    """Where each run of a campaign stands, and its figures to 6 decimals. Raises InputError."""
    return read_campaign(results).frame[[*WHERE, *RAW]].round(6)


def make(part: Path, small: Path, docs: Path) -> int:
    """Write docs/results/pmbs23 and the tables of the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, (*TABLES, PEER))
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
    return {name: read_text(docs / FOLDER / f"{name}.md").partition("\n")[2].strip() for name in (*TABLES, PEER)}


main = doc_pages.Script(
    "pmbs23_tables", DOCS, PAGES, (*TABLES, PEER), ("pmbs23-part", "pmbs23-small"), make, tables_of
).main

if __name__ == "__main__":
    sys.exit(main())
