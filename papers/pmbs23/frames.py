"""Runs for the page of the riskaware paper, and the parameters in their names.

study      mavg-borg: the varied parameter, and the type of the jobs
platform   152x24             machine slots, cores of a machine
workload   uniform-20000-0    type, jobs, seed; or a slice of the Borg trace, 14D_518400
capacity   walk-24-8-1200-3   machines on average, range, period in s, seed
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from papers.pairs import Points
from papers.runs import runs_of

STRATEGIES = {
    "first-fit-aware": "FirstFitAware",
    "first-fit-unaware": "FirstFitUnaware",
    "target-stretch": "TargetStretch",
    "target-asap": "TargetASAP",
    "packed-target-asap": "PackedTargetASAP",
}
"""Option `strategy` -> name in the paper, in the order of its figures."""
SWEEPS = {"mavg": "mean", "period": "period_s", "range": "range", "cores": "cores", "jobs": "jobs"}
"""Beginning of the names of studies -> the varied column."""
WHERE = ["study", "strategy", "platform", "workload", "capacity"]
FIGURES = ["goodput_with_running", "max_full_speed_slowdown", "mean_full_speed_slowdown", "aborted_volume",
           "mean_aborted_time_s", "completed_fraction"]  # fmt: skip
DIMENSIONS = ("study", "type", "mean", "period_s", "range", "cores", "jobs", "label", "trace", "walk")
BORG = "borg"
MEASURES = {"goodput_percent": "goodput (%)", "max_full_speed_slowdown": "maximum stretch",
            "aborted_percent": "aborted volume (%)", "aborted_h": "mean aborted time (h)"}  # fmt: skip
"""Figures of `means_of` -> their headings."""


def points_of(results: Path) -> Points:
    """Read the runs of a study with their parameters, and figures in the paper's units."""
    frame = runs_of(results, [*WHERE, *FIGURES])
    walks = frame["capacity"].str.extract(r"walk-(?P<mean>\d+)-(?P<range>\d+)-(?P<period_s>\d+)-(?P<walk>\d+)")
    jobs = frame["workload"].str.extract(r"(?P<type>[a-z\d-]+?)-(?P<jobs>\d+)-(?P<trace>\d+)")
    frame = frame.join(walks.astype(float)).join(jobs).assign(
        label=frame["strategy"].map(STRATEGIES),
        cores=frame["platform"].str.extract(r"x(\d+)")[0].astype(float),
        jobs=jobs["jobs"].astype(float),
        type=jobs["type"].fillna(BORG),
        trace=jobs["trace"].fillna(frame["workload"]),
        goodput_percent=100.0 * frame["goodput_with_running"],
        aborted_percent=100.0 * frame["aborted_volume"],
        aborted_h=frame["mean_aborted_time_s"] / 3600.0,
        used_percent=100.0 * (frame["goodput_with_running"] + frame["aborted_volume"]),
    )  # fmt: skip
    return Points(frame, DIMENSIONS)


def means_of(points: Points) -> pd.DataFrame:
    """Return mean and standard error of `MEASURES` by study, value of the varied column, and strategy."""
    frame = points.frame
    values = sum((frame[column].where(frame["study"].str.startswith(f"{sweep}-"), 0.0) for sweep, column in
                  SWEEPS.items()), start=pd.Series(0.0, frame.index))  # fmt: skip
    grouped = frame.assign(value=values).groupby(["study", "value", "label"], sort=False)[list(MEASURES)]
    means = grouped.mean().join(grouped.sem().add_suffix("_error"))
    return means.assign(instances=grouped.size()).round(6).reset_index()
