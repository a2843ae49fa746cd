"""Print the tables of the study of estimates: what is left of each case without knowledge of run times.

    python -m papers.cross.knowledge out/estimates

The first has the bounded slowdown of each case in each way, the second the ratio of `ROBUST` to others, of the logs of
a part that were run.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from papers.cross.estimates import STUDY
from papers.cross.frames import by_log
from papers.pages import markdown

BOUNDED = "mean_bounded_slowdown"
ROBUST = ("adaptive + checkpoint", "doubling")
RIVALS = (
    ("adaptive + checkpoint", "exact"),
    ("adaptive + checkpoint", "walltimes"),
    ("adaptive + checkpoint", "predictions"),
    ("adaptive + checkpoint", "regression"),
    ("adaptive", "walltimes"),
    ("LWW + checkpoint + shortest first", "walltimes"),
    ("LWW + checkpoint + shortest first", "predictions"),
    ("LWW + checkpoint + shortest first", "regression"),
    ("long-short + checkpoint", "walltimes"),
    ("long-short + checkpoint", "predictions"),
    ("long-short + checkpoint", "exact"),
    ("frugal + resubmit, smallest first", "walltimes"),
    ("frugal + resubmit, smallest first", "predictions"),
    ("checkpoint", "exact"),
)
"""Cases and ways that the robust one is compared with."""


def collected(folder: Path) -> pd.DataFrame:
    """Return the rows of the files of `papers.cross.estimates` in a folder."""
    return pd.concat([pd.read_csv(path) for path in sorted(folder.glob("*.csv"))], ignore_index=True)


def wide(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return logarithms of a measure: a row for each sample, a column for each (case, way)."""
    pivot = table.pivot_table(index=["log", "signal", "share"], columns=["case", "way"], values=name, sort=False)
    return np.log(pivot)


def ways(table: pd.DataFrame) -> str:
    """Return a row for each case: bounded slowdown in each way, geometric mean of logs."""
    names = list(yaml.safe_load(STUDY.read_text())["ways"])
    logs = wide(table, BOUNDED)
    rows = []
    for case in table["case"].unique():
        texts = [f"{math.exp(by_log(logs[case, way])[0]):.1f}" if (case, way) in logs else "–" for way in names]
        rows.append([case, *texts])
    return markdown(["case", *names], rows)


def robust(table: pd.DataFrame) -> str:
    """Return the ratio of bounded slowdown of the robust case to others, with the 95 % interval of logs."""
    logs = wide(table, BOUNDED)
    rows = []
    for case, way in RIVALS:
        ratio = (logs[ROBUST] - logs[case, way]).dropna()
        mean, half = by_log(ratio)
        better = (ratio.groupby(level="log").mean() < 0.0).sum()
        count = f"{better} of {ratio.index.unique('log').size}"
        rows.append([case, way, f"{math.exp(mean):.2f} ×/÷ {math.exp(half):.2f}", count])
    return markdown(["compared with", "way", "ratio", "logs with a lower one"], rows, texts=2)


if __name__ == "__main__":
    table = collected(Path(sys.argv[1]))
    for part, rows in table.groupby("part", sort=False):
        ways_run = rows.groupby("log")["way"].nunique()
        whole = rows[rows["log"].isin(ways_run.index[ways_run == ways_run.max()])]
        print(part, *whole["log"].unique(), "", ways(whole), robust(whole), sep="\n")
