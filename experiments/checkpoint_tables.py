"""Make the tables of docs/results/checkpoint.md from the results of checkpoint-part.yaml and checkpoint-small.yaml.

python experiments/checkpoint_tables.py results/checkpoint-part results/checkpoint-small
    reports the first campaign, plans the sequences of experiments/periods, writes docs/results/checkpoint, with the
    rows of the second campaign, and puts the tables on the page
python experiments/checkpoint_tables.py --check
    needs no results, and exits 1 if the page has other tables than docs/results/checkpoint
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import fmean

import checkpoint_alignment
import doc_pages
import pandas as pd
from varcap_tables import GOODPUT, Means, Measure, markdown, means_of, means_table, write

from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.report.page import write_report
from batwatt.report.papers import checkpoint
from batwatt.report.papers.pmbs23 import written
from batwatt.report.table import read_campaign
from batwatt.results.style import drawing
from batwatt.systems.checkpoint.figures.charts import ParetoMark, plot_followed, plot_front
from batwatt.systems.checkpoint.files import read_sequence
from batwatt.systems.checkpoint.sequence import Followed, follow

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "results"
PAGES = ("checkpoint.md",)
FOLDER = "checkpoint"
FIGURE1, STARVING = "figure1", "starving"
FAIR = 0.2
"""The least yield that is asked for where the capacity sequence of Figure 1 is as in the paper."""
YIELDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
FRONT, ALIGNMENT = "front", "alignment"
REPORTED = ("claims", "table-break-even")
"""Tables of the report that the page has, too."""
CLAIMED = "claims-numbers.csv"
PICTURES = ("costs.png", "single.png")
SMALL = "small.csv"
WHERE = ["study", "label", "workload", "capacity"]
FIGURES = ["goodput", "aborted_volume", "checkpoint_volume", "recovery_volume", "terminations", "mean_yield"]
NONE = "–"
"""Stands for C, R, ... of a run that has none."""

PERCENT = 100.0
ABORTED = Measure("aborted_volume", "aborted, %", PERCENT)
CHECKPOINTS = Measure("checkpoint_volume", "checkpoints, %", PERCENT)
RECOVERIES = Measure("recovery_volume", "recoveries, %", PERCENT)
MIN_YIELD = Measure("min_yield", "least yield, %", PERCENT)
MEAN_YIELD = Measure("mean_yield", "mean yield, %", PERCENT)
WAIT = Measure("mean_wait_s", "wait, min", 1 / 60, 0)
KILLS = Measure("terminations", "terminations")
ALL = (GOODPUT, ABORTED, CHECKPOINTS, RECOVERIES, MEAN_YIELD, WAIT)

MEANS = (
    Means("everybody", "ranges", ("algorithm", "cap_range"), ALL),
    Means("costs", "costs", ("algorithm",), spread="C"),
    Means("recoveries", "recoveries", ("algorithm",), spread="R"),
    Means("steps", "steps", ("algorithm",), spread="cap_step"),
    Means("frequency", "frequency", ("algorithm",), spread="cap_period_h"),
    Means("warning", "warning", ("warning",), (GOODPUT, ABORTED, CHECKPOINTS, KILLS)),
    Means("prepare", "prepare", ("algorithm",), (GOODPUT, ABORTED, CHECKPOINTS, RECOVERIES)),
    Means("endless", "endless", ("algorithm",), (GOODPUT, ABORTED, MIN_YIELD, MEAN_YIELD)),
    Means("single", "single", ("jobs", "algorithm"), spread="cap_period_h"),
)
FURTHER = (Means("overhead", "costs", ("algorithm", "C"), ALL),)
"""What is not on the page, only among the numbers."""
PAIRED = {"paired-ranges": "ranges", "paired-costs": "costs", "paired-frequency": "frequency"}
"""Table -> study: how much more goodput DP has than others, with C = R."""
TABLES = (FIGURE1, FRONT, ALIGNMENT, *(table.name for table in MEANS), *PAIRED, *REPORTED)
"""The tables of the page; each is a file of docs/results/checkpoint, too."""


def rows_of(results: Path) -> pd.DataFrame:
    """The points of a campaign, with what tables are ordered by. Raises InputError."""
    declared = read_campaign(results)
    frame = checkpoint.points(checkpoint.named(declared), declared)
    values = {"C": "checkpoint_s", "R": "recovery_s", "warning": "warning_s"}
    texts = {name: [_value(value) for value in frame[column]] for name, column in values.items()}
    frame = frame.assign(
        # where C is neither in the rows nor in the columns it is a part of the name
        algorithm=frame["label"].where(frame["study"] != "single", frame["case"]),
        jobs=frame["trace"].str.removeprefix("jobs-single-"),
        cap_period_h=frame["cap_period_s"] / 3600.0,
        **texts,
    )
    return frame.sort_values("jobs", kind="stable")


def _value(value: float) -> str:
    return NONE if pd.isna(value) else written(value)


def figure1_table(results: Path) -> str:
    """What `follow` plans for the sequence of Figure 1, and what the engine makes of the same jobs, new to it."""
    frame = rows_of(results)
    rows = []
    for name in (FIGURE1, f"{FIGURE1}-new"):
        given = read_sequence(HERE / "periods" / f"{name}.json")
        for asked in (0.0, FAIR):
            found = follow(given.sequence, min_yield=asked)
            engine = frame[(frame["study"] == FIGURE1) & (frame["asked_yield"] == asked)]["goodput"]
            told = f"{engine.iloc[0]:.4%}" if len(engine) and name != FIGURE1 else NONE
            periods = (f"{period.goodput:.2%}" for period in found.periods)
            rows.append(
                (f"{name}.json", f"{asked:g}", *periods, f"{found.goodput:.4%}", told, f"{found.min_yield:.2f}")
            )
    heads = ("capacity sequence", "least yield asked for", "19", "16", "22", "goodput", "on the engine", "least yield")
    return markdown(heads, rows)


def front_table() -> str:
    """What fairness costs over all periods of the starving sequence: `batwatt checkpoint front`."""
    rows = [
        (f"{asked:g}", f"{found.goodput:.2%}", f"{found.min_yield:.3f}", f"{fmean(found.yields.values()):.3f}")
        for asked, found in _front()
    ]
    return markdown(("least yield asked for", "goodput", "least yield", "mean yield"), rows)


def _front() -> list[tuple[float, Followed]]:
    given = read_sequence(HERE / "periods" / f"{STARVING}.json")
    return [(asked, follow(given.sequence, min_yield=asked)) for asked in YIELDS]


def paired_table(claims: pd.DataFrame, study: str) -> str:
    """Points of goodput by which DP is ahead of others on the same jobs and walk, ± a standard error; bold if sure."""
    part = claims[(claims["study"] == study) & (claims["first"] == checkpoint.PLANNED) & (claims["unit"] == "% points")]
    # with C and R of their own only
    part = part[(part["measure"] == "goodput_percent") & (part["claim"] != "free")]
    texts: dict[str, dict[str, str]] = {}
    for row in part.to_dict("records"):
        error = "" if pd.isna(row["standard_error"]) else f" ± {row['standard_error']:.1f}"
        text = f"{row['number']:+.1f}{error}".replace("-", "−")
        sure = row["verdict"] in ("yes", "no")
        texts.setdefault(str(row["second"]), {})[str(row["point"])] = f"**{text}**" if sure else text
    columns = list(dict.fromkeys(point for cells in texts.values() for point in cells))
    rows = [(f"than {name}", *(cells.get(point, "") for point in columns)) for name, cells in texts.items()]
    return markdown(("DP has more", *columns), rows)


def small_rows(results: Path) -> pd.DataFrame:
    """Where each run of a campaign stands, and its figures to 6 decimals. Raises InputError."""
    return read_campaign(results).frame[WHERE + FIGURES].round(6)


def make(part: Path, small: Path, docs: Path) -> int:
    """Write docs/results/checkpoint and the tables of the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, TABLES)
    frame = rows_of(part)
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    report = write_report(part)[0].parent
    for name in (*(f"{table}.md" for table in REPORTED), *PICTURES, CLAIMED):
        if (report / name).is_file():
            shutil.copyfile(report / name, folder / name)
    claims = pd.read_csv(report / CLAIMED, keep_default_na=False, na_values=[""])
    texts = {table.name: means_table(frame, table) for table in MEANS}
    texts |= {name: paired_table(claims, study) for name, study in PAIRED.items()}
    texts |= {FIGURE1: figure1_table(part), FRONT: front_table()}
    texts[ALIGNMENT] = checkpoint_alignment.markdown(checkpoint_alignment.rows())
    for name, text in texts.items():
        write(folder / f"{name}.md", text + "\n")
    means = pd.concat([means_of(frame, table).assign(table=table.name) for table in (*MEANS, *FURTHER)])
    means = means[["table", *(name for name in means if name != "table")]].round(6)
    write(folder / "means.csv", means.to_csv(index=False, lineterminator="\n"))
    write(folder / SMALL, small_rows(small).to_csv(index=False, lineterminator="\n"))
    _draw(folder)
    doc_pages.write(pages, tables_of(docs))
    return 0


def _draw(folder: Path) -> None:
    given = read_sequence(HERE / "periods" / f"{FIGURE1}.json")
    with drawing():
        plot_followed(follow(given.sequence, min_yield=FAIR), folder / f"{FIGURE1}.png")
        marks = [ParetoMark(asked, found.min_yield, found.goodput) for asked, found in _front()]
        plot_front(marks, folder / f"{FRONT}.png")


def tables_of(docs: Path) -> dict[str, str]:
    """Every table, those of the report without their titles. Raises InputError."""
    texts = {name: read_text(docs / FOLDER / f"{name}.md") for name in TABLES}
    return {name: (text.partition("\n")[2] if text.startswith("# ") else text).strip() for name, text in texts.items()}


main = doc_pages.Script(
    "checkpoint_tables", DOCS, PAGES, TABLES, ("checkpoint-part", "checkpoint-small"), make, tables_of
).main

if __name__ == "__main__":
    sys.exit(main())
