"""Campaigns with the scheduler `checkpoint`: what of their runs figures and claims are about.

A case such as `DP fair 0.5 C=60` is the algorithm `DP fair 0.5` with C = 60 s: what stands after `=` is in the
options, and is no part of the algorithm's name.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd

from batwatt.report.grid import written
from batwatt.report.papers import varcap
from batwatt.report.papers.pmbs23 import ABORTED, GOODPUT
from batwatt.report.report_plan import ReportPlan, plan_of_all
from batwatt.report.table import Measure, SavedCampaign, read_options
from batwatt.results.metrics import MEANINGS

SCHEDULER = "checkpoint"
PLANNED, SUBSET = "DP", "subset sum"
KILLING = ("Random", "LWW", "LFD", "FirstFitAware", "TargetASAP", "PackedTargetASAP")
"""Algorithms that know neither checkpoints nor the future."""
LOOKS = {PLANNED: 5, "DP fair 0.2": 13, "DP fair 0.5": 21, SUBSET: 4, "Random": 0, "LFD": 1, "LWW": 2,
         "foresight 6 h": 6, "FirstFitAware": 3, "TargetASAP": 7, "PackedTargetASAP": 15}  # fmt: skip
"""Algorithm -> number of its look, the same in every figure, and in those of varcap."""
COSTS = ("checkpoint_s", "recovery_s", "warning_s", "asked_yield")
"""Options of the scheduler that runs differ in; others have none of them."""
DIMENSIONS = (*varcap.DIMENSIONS, *COSTS)
"""Two points are of the same instance if they agree in all of these but what is compared."""

MIN_YIELD = Measure("min_yield_percent", "least yield", "%", MEANINGS["min_yield"], "higher", 1)
MEAN_YIELD = Measure(
    "mean_yield_percent",
    "mean yield",
    "%",
    f"mean over the jobs of {MEANINGS['min_yield'].removeprefix('least ')}",
    "higher",
    1,
)
OVERHEAD = Measure("overhead_percent", "checkpoints and recoveries", "%",
                   "core seconds of checkpoints and recoveries / available ones of the window")  # fmt: skip
MEASURES = (GOODPUT, ABORTED, OVERHEAD, MIN_YIELD, MEAN_YIELD)

_VALUE = re.compile(r"\s*\b[A-Za-z]\w*=\S+")
_FAIR = re.compile(r"\s*\bfair\b.*")


def named(campaign: SavedCampaign) -> SavedCampaign:
    """The campaign with algorithms as labels: without values, and `DP` whatever is asked for if that is no yield."""
    frame = campaign.frame
    names = []
    for label, options in frame[["label", "options"]].itertuples(index=False):
        name = _VALUE.sub("", label).strip() or label
        asked = read_options(options).get("min_yield")
        names.append(name if asked is None else _FAIR.sub("", name) + (f" fair {written(asked)}" if asked else ""))
    return replace(campaign, frame=frame.assign(label=names))


def plan_of(campaign: SavedCampaign) -> ReportPlan:
    """The plan of the report of a `named` campaign."""
    order = list(LOOKS)
    return plan_of_all(
        campaign,
        "checkpoints before the capacity changes",
        lambda label: order.index(label) if label in LOOKS else len(order),
        lambda label: "killing" if label in (*KILLING, "foresight 6 h") else "checkpoints",
        LOOKS,
        KILLING,
    )


def points(campaign: SavedCampaign, declared: SavedCampaign) -> pd.DataFrame:
    """The points of `varcap` for a `named` campaign, with `COSTS` (NaN of other schedulers) and yields and volumes."""
    frame = varcap.points(campaign, declared)
    ours = frame["scheduler"] == SCHEDULER
    given = [read_options(text) for text in frame["options"]]
    usual = {"checkpoint_s": 60.0, "recovery_s": 60.0, "warning_s": float("nan"), "asked_yield": 0.0}
    values = {
        name: pd.Series([options.get(name.replace("asked", "min"), default) for options in given], frame.index)
        for name, default in usual.items()
    }
    return frame.assign(
        **{name: column.astype(float).where(ours) for name, column in values.items()},
        aborted_percent=100.0 * frame["aborted_volume"],
        overhead_percent=100.0 * (frame["checkpoint_volume"] + frame["recovery_volume"]),
        min_yield_percent=100.0 * frame["min_yield"],
        mean_yield_percent=100.0 * frame["mean_yield"],
    )
