"""Tables of the study of estimates: the results of each case without exact run times."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import yaml

from papers.cross.estimates import EXACT, STUDY, WITHOUT_RUN_TIMES
from papers.cross.frames import WORK, by_log
from papers.pages import markdown

BOUNDED = "mean_bounded_slowdown"
ROBUST = ("adaptive + checkpoint", "doubling")
"""Case and way that the declaration expects to be the best without exact run times."""


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return logarithms of bounded slowdowns: a row for each sample, a column for each (case, way)."""
    sample = ["log", "signal", "share"]
    return np.log(table.pivot_table(index=sample, columns=["case", "way"], values=BOUNDED, sort=False))


def ways(table: pd.DataFrame) -> str:
    """Return a row for each case: its bounded slowdown in each way, and the work finished.

    Slowdown is the geometric mean of logs, work the mean of samples in the way with the least.
    """
    names = list(yaml.safe_load(STUDY.read_text())["ways"])
    logs = wide(table)
    work = table.groupby(["case", "way"])[WORK].mean().groupby("case").min()
    rows = []
    for case in table["case"].unique():
        run = [EXACT if case in WITHOUT_RUN_TIMES else way for way in names]
        rows.append([case, *(f"{math.exp(by_log(logs[case, way])[0]):.1f}" for way in run), f"{work[case]:.1%}"])
    return markdown(["case", *names, "work finished"], rows)


def rivals(logs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the robust case in its other ways, then each further case in its best way but `EXACT`."""
    own, best = [], []
    for case in logs.columns.unique("case"):
        names = list(logs[case])
        if case == ROBUST[0]:
            own = [(case, way) for way in names if (case, way) != ROBUST]
        else:
            without = names if case in WITHOUT_RUN_TIMES else [way for way in names if way != EXACT]
            best.append((case, min(without, key=lambda way, case=case: by_log(logs[case, way])[0])))
    return own + best


def robust(table: pd.DataFrame) -> str:
    """Return the ratio of bounded slowdown of the robust case to its rivals, with the 95 % interval of logs."""
    logs = wide(table)
    rows = []
    for rival in rivals(logs):
        ratio = (logs[ROBUST] - logs[rival]).dropna()
        mean, half = by_log(ratio)
        better = (ratio.groupby(level="log").mean() < 0.0).sum()
        interval = f"{math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}"
        rows.append([*rival, f"{math.exp(mean):.2f}", interval, f"{better} of {ratio.index.unique('log').size}"])
    return markdown(["compared with", "way", "ratio", "95 % interval", "logs with less"], rows, texts=2)
