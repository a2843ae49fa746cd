"""Make the numbers, the figures and the tables of the checkpoint paper's page.

    python -m papers.checkpoint.tables results/checkpoint
        write data/runs.csv from the results of study.yaml, then the figures and the tables
    python -m papers.checkpoint.tables --check
        compare the tables with data/

`runs.csv` has the figures of each run, without the repeated times in the labels of study.yaml; `periods.py` writes
periods.csv, sequences.csv and figure1.csv.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from papers import batsim, pages
from papers.checkpoint import figures
from papers.checkpoint.measures import DATA, HERE, LEAST, LOST, judged
from papers.pages import NOTHING, markdown, number, with_error
from papers.runs import FIXED, VARIES, WHERE, options_of, runs_of, with_capacities
from papers.statements import counts_table, statements_table

PAGE, RUNS = HERE / "README.md", DATA / "runs.csv"
VOLUMES = {
    "goodput_with_running": "goodput_percent",
    "aborted_volume": LOST,
    "checkpoint_volume": "checkpoints_percent",
    "recovery_volume": "recoveries_percent",
    "min_yield": LEAST,
}
"""Shares of runs, and their columns in %."""
COLUMNS = ["study", "label", "platform", "workload", "structure", "range", "period_s", "walk", "checkpoint_s",
           *VOLUMES.values(), "wait_min", "terminations"]  # fmt: skip
HEADS = {"goodput_percent": "goodput (%)", LOST: "lost work (%)", LEAST: "least yield (%)", "wait_min": "wait (min)"}


def numbers_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the columns of runs.csv."""
    frame = with_capacities(runs)
    times = options_of(frame, {"checkpoint_s": 60.0}).where(frame["scheduler"] == "checkpoint")
    labels = frame["label"].str.replace(r" [A-Z]=\S+| fair 0$", "", regex=True)
    shares = {percent: 100.0 * frame[share] for share, percent in VOLUMES.items()}
    frame = frame.assign(label=labels, wait_min=frame["mean_wait_s"] / 60.0, **times, **shares)
    return frame[COLUMNS].round(6)


def means(runs: pd.DataFrame, study: str, *names: str) -> str:
    """Return mean ± standard error of some figures of each algorithm of a study, over capacities that vary."""
    rows = runs[(runs["study"] == study) & (runs["structure"] != FIXED)]
    lines = [[str(label), *(with_error(part[name].mean(), part[name].sem(), 1) for name in names)]
             for label, part in rows.groupby("label", sort=False)]  # fmt: skip
    return markdown(["algorithm", *(HEADS[name] for name in names)], lines)


def yields(sequences: pd.DataFrame) -> str:
    """Return what a threshold of the yield costs and gains, compared with goodput alone on the same walk."""
    by_walk = sequences.set_index("walk")
    none = by_walk[by_walk["asked_yield"] == 0.0]
    lines = []
    for threshold, part in by_walk.groupby("asked_yield"):
        lost = (none["goodput_percent"] - part["goodput_percent"]).mean()
        gained = (part["least_yield"] - none["least_yield"]).mean()
        costs = NOTHING if threshold == 0.0 else number(0.1 * lost / gained, 1)
        shares = (
            with_error(part[name].mean(), part[name].sem(), places)
            for name, places in (("goodput_percent", 1), ("least_yield", 3))
        )
        lines.append(
            [f"{threshold:g}", *shares, number(part["never"].mean(), 1), number(lost, 1), number(gained, 3), costs]
        )
    heading = ["threshold", "goodput (%)", "least yield", "jobs that never run", "goodput lost (points)",
               "least yield gained", "points for 0.1"]  # fmt: skip
    return markdown(heading, lines)


def tables(folder: Path = DATA) -> Mapping[str, str]:
    """Return every table, from the files of a folder."""
    runs, verdicts = pd.read_csv(folder / RUNS.name), judged(folder)
    return {
        "summary": counts_table({"": verdicts}),
        "yields": yields(pd.read_csv(folder / "sequences.csv")),
        "endless": means(runs, "endless", "goodput_percent", LEAST),
        "ranges": means(runs, "ranges", "goodput_percent", LOST, "wait_min"),
        "prepare": means(runs, "prepare", "goodput_percent"),
        "warning": means(runs, "warning", "goodput_percent", LOST),
        "batsim": batsim.table(HERE),
        "statements": statements_table({"here": verdicts}),
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the checkpoint paper's page from the results of study.yaml."""
    columns = [*WHERE, "scheduler", "options", *VARIES[:5], "cap_seed", *VOLUMES, "mean_wait_s", "terminations"]
    numbers_of(runs_of(results, columns)).to_csv(RUNS, index=False, lineterminator="\n")
    figures.draw(pd.read_csv(RUNS), HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("checkpoint",)))
