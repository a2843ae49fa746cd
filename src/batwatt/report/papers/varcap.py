"""The evaluation of the varcap dissertation: what of its runs figures and claims are about.

Chapters 5 to 7. A run's capacity is given by the columns `cap_...` of the table, its scheduler by its options, and what
varies in a workload by its name:

    workload   tng-3, mira-1500-0      the last number is the seed
               dep-0.12-3, long-0.8-0  fraction of jobs that depend on others; of core hours in long jobs
    capacity   carbon-DE-2024-07-03    the grid and the day
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from batwatt.report.grid import written
from batwatt.report.papers.pmbs23 import GOODPUT
from batwatt.report.report_plan import ReportPlan, plan_of_all
from batwatt.report.table import Measure, SavedCampaign, read_options
from batwatt.results.metrics import MEANINGS

SOURCE = "the varcap dissertation"
FIXED = "constant"
"""Structure of a capacity that does not vary."""
FIXED_NAME = "fixed"
SCHEDULERS = {
    "base": "Base",
    "migration": "Migration",
    "longshort": "LongShort",
    "jobsize-order": "JobSize-Order",
    "twomode": "TwoMode",
}
TERMINATIONS = {"random": "Random", "lww": "LWW", "lfd": "LFD"}
"""Values of the options `mapping` and `termination` -> names in the text."""
LOOKS = {"Random": 0, "Base": 0, "LWW": 2, "LFD": 1, "Migration": 3, "LongShort": 5, "JobSize-Order": 4, "TwoMode": 7,
         "foresight": 6}  # fmt: skip
"""The first word of a label -> number of its colour, the same in every figure; Base terminates as Random does."""
CONVENTIONAL = ("Random", "Base")
"""The algorithms that on a fixed capacity are what others are held against."""
ERRORS = {
    "foresight_bias": "bias",
    "foresight_noise": "noise",
    "foresight_false_alarms": "false alarms",
    "foresight_missed": "missed falls",
}

_HOURS = re.compile(r"\s*(?:foresight )?\d+(?:\.\d+)? h\b")
_MIXED = re.compile(r"(?P<kind>long|dep)-(?P<value>\d+(?:\.\d+)?)-(?P<seed>\d+)")
_SEED = re.compile(r"-s\d+$")
_DAY = re.compile(r"(?P<signal>carbon|price)-(?P<zone>[A-Za-z]+)-(?P<day>\d{4}-\d\d-\d\d).*")

FAILURES = Measure("failure_percent", "job failure rate", "%", MEANINGS["job_failure_rate"])
WAIT = Measure("wait_min", "waiting time", "min", MEANINGS["mean_wait_s"], decimals=1)
SLOWED = Measure("slowed_percent", "slowdown rate", "%", MEANINGS["slowdown_rate"])
WORK = Measure("work_percent", "useful work relative to fixed", "%", "useful core seconds / those of the conventional "
               "scheduler on the same jobs at the fixed capacity", "higher", 1)  # fmt: skip
SAVED = Measure("saved_percent", "carbon or money saved", "%", "share of what the fixed capacity emits or costs",
                "higher", 1)  # fmt: skip
GAINED = Measure("gained_percent", "more capacity", "%", "share by which the mean capacity is larger than the fixed",
                 "higher", 1)  # fmt: skip
MEASURES = (GOODPUT, FAILURES, WAIT)
"""The three of section 5.1.6."""
SPLIT = ("_short", "_long")
"""Classes of run time: columns of a measure that end so are of jobs of that class."""
DIMENSIONS = ("study", "platform", "label", "case", "source", "day", "range", "step", "period_s", "headroom",
              "structure", "foresight_h", "long_fraction", "dependencies", "trace", "walk")  # fmt: skip
"""Two points are of the same instance if they agree in all of these but what is compared."""
CAPACITY = ("structure", "range", "step", "period_s", "headroom", "source", "day", "walk")
"""Those that say nothing of a fixed capacity."""
NONE = -1.0
"""Stands for what a run does not have."""
_SAME = ["study", "label", "platform", "workload", "capacity", "options", "case"]


def policy(options: Mapping[str, Any]) -> str:
    """What the text calls the scheduler with these options: by its termination if that is all there is to it."""
    name = str(options.get("mapping", "base"))
    termination = str(options.get("termination", ""))
    if name == "base" and termination in TERMINATIONS:
        return TERMINATIONS[termination]
    return SCHEDULERS.get(name, name)


def named(campaign: SavedCampaign, hours_apart: Mapping[str, bool]) -> SavedCampaign:
    """The campaign with algorithms as labels, where `hours_apart` knows the study.

    True: the hours of foresight are no part of the name; False: the label is that of a case, not of an algorithm, and
    the options name it. Labels of other studies stay.
    """
    names = []
    for study, label, options in campaign.frame[["study", "label", "options"]].itertuples(index=False):
        rest = _HOURS.sub("", label).strip() if hours_apart.get(study) else ""
        names.append((rest or policy(read_options(options))) if study in hours_apart else label)
    return replace(campaign, frame=campaign.frame.assign(label=names))


def plan_of(campaign: SavedCampaign) -> ReportPlan:
    """The plan of the report of a `named` campaign; each algorithm has its colour in all reports."""

    def rank(label: str) -> int:
        word = label.split(" ")[0]
        return list(LOOKS).index(word) if word in LOOKS else len(LOOKS)

    title = f"jobs on a capacity that varies, after {SOURCE}"
    return plan_of_all(campaign, title, rank, lambda _: "schedulers and terminations", numbers_of(campaign.labels),
                       CONVENTIONAL)  # fmt: skip


def numbers_of(labels: tuple[str, ...]) -> dict[str, int]:
    """The numbers of the looks of the labels that begin like one of `LOOKS`: same colour, other marks."""
    found: dict[str, int] = {}
    turns: dict[str, int] = {}
    for label in sorted(labels):
        word = label.split(" ")[0]
        if word in LOOKS:
            found[label] = LOOKS[word] + 8 * turns.get(word, 0)
            turns[word] = turns.get(word, 0) + 1
    return found


def points(campaign: SavedCampaign, declared: SavedCampaign) -> pd.DataFrame:
    """A row per run of a `named` campaign with a goodput: `DIMENSIONS`, and its figures in % and min.

    `case` is the label that it has in the `declared` campaign. Runs that differ in nothing but the seed of the
    algorithm are one.
    """
    rows = campaign.with_goodput.assign(case=declared.with_goodput["label"])
    columns = rows.select_dtypes("number").columns.difference(["seed"]).tolist()
    frame = rows.groupby(_SAME, sort=False).agg(
        {
            **dict.fromkeys(columns, "mean"),
            "cap_structure": "first",
            "scheduler": "first",
            "envelope": "first",
            "key": "min",
        }
    )
    frame = frame.reset_index()
    given = [read_options(text) for text in frame["options"]]
    frame = frame.assign(
        structure=frame["cap_structure"].where(frame["cap_structure"] != "", "file"),
        range=frame["cap_range"].where(frame["cap_structure"] != FIXED, 0.0).round(6),
        step=frame["cap_step"].round(6),
        period_s=frame["cap_period_s"],
        headroom=frame["cap_headroom"],
        walk=frame["cap_seed"].fillna(NONE),
        foresight_h=[float(options.get("foresight_h", 0.0)) for options in given],
        policy=[policy(options) for options in given],
        error=[_error(options) for options in given],
        changes_per_h=3600.0 / frame["cap_period_s"],
        slowed_percent=100.0 * frame["slowdown_rate"],
        saved_percent=100.0 * frame["cap_saved"],
        gained_percent=100.0 * frame["cap_gained"],
    )
    for end in ("", *SPLIT):
        frame[f"goodput_percent{end}"] = 100.0 * frame[f"goodput{end}"]
        frame[f"failure_percent{end}"] = 100.0 * frame[f"job_failure_rate{end}"]
        frame[f"wait_min{end}"] = frame[f"mean_wait{end}_s"] / 60.0
    of_workloads, of_capacities = ["long_fraction", "dependencies", "trace"], ["source", "day", "shape"]
    capacities = (frame[name] for name in ("capacity", "cap_structure", "range"))
    frame = frame.assign(
        **dict(zip(of_workloads, zip(*map(_of_workload, frame["workload"]), strict=True), strict=True)),
        **dict(zip(of_capacities, zip(*map(_of_capacity, *capacities), strict=True), strict=True)),
    )
    # of each row's machines and jobs the mean with a conventional scheduler on a fixed capacity
    there = (frame["structure"] == FIXED) & (frame["foresight_h"] == 0.0) & frame["policy"].isin(CONVENTIONAL)
    means = frame[there].groupby(["platform", "workload"])["useful_core_s"].mean().rename("at_fixed")
    at_fixed = frame.join(means, on=["platform", "workload"])["at_fixed"]
    return frame.assign(work_percent=100.0 * frame["useful_core_s"] / at_fixed)


def _error(options: Mapping[str, Any]) -> str:
    """What is wrong with the foresight; `exact`, or `no foresight`."""
    found = next((name for option, name in ERRORS.items() if options.get(option)), None)
    return found or ("exact" if options.get("foresight_h") else "no foresight")


def _of_workload(name: str) -> tuple[float, float, str]:
    """What the name of a workload says: the fraction of long jobs, % of dependent ones (`NONE` without), the trace."""
    match = _MIXED.fullmatch(name)
    if match is None:
        return NONE, NONE, name
    value, trace = float(match["value"]), f"{match['kind']}-{match['seed']}"
    return (value, NONE, trace) if match["kind"] == "long" else (NONE, 100.0 * value, trace)


def _of_capacity(name: str, structure: str, size: float) -> tuple[str, str, str]:
    """Where a capacity comes from, as `walk` or `carbon DE`; its day, if it has one; and a short name.

    That is `fixed`, `walk 0.6`, `DE 2024-07-03`, or the name that it has.
    """
    if structure == FIXED:
        return FIXED_NAME, "", FIXED_NAME
    match, plain = _DAY.fullmatch(name), _SEED.sub("", name)
    source, day = (f"{match['signal']} {match['zone']}", match["day"]) if match else (structure or plain, "")
    if not np.isnan(size):
        return source, day, f"{structure or 'file'} {written(size)}"
    return source, day, f"{source.split(' ')[-1]} {day}" if day else plain
