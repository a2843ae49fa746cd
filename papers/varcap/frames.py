"""Runs for the page of the varcap dissertation, and the parameters in their names and options.

workload   tng-3, mira-1500-0      the last number is the seed
           dep-0.12-3, long-0.8-0  fraction of jobs that depend on others; of core hours in long jobs
capacity   carbon-DE-2024-07-03    the grid and the day; else the columns `cap_...` describe it
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from batwatt.studies.spec import plain
from papers.pairs import Points
from papers.runs import FIXED, VARIES, WHERE, options_of, runs_of, with_capacities

MAPPINGS = {"migration": "Migration", "longshort": "LongShort", "jobsize-order": "JobSize-Order", "twomode": "TwoMode"}
TERMINATIONS = {"random": "Random", "lww": "LWW", "lfd": "LFD"}
"""Values of the options `mapping` and `termination` -> names in the text."""
CONVENTIONAL = ("Random", "Base")
"""Reference schedulers, on a fixed capacity; Base terminates as Random does."""
CASES = ("fig5-", "fig6-8", "errors", "longer-5-")
"""Beginnings of studies whose labels name cases: the options name the scheduler."""
FIGURES = ["goodput_with_running", "goodput_short", "goodput_long", "job_failure_rate", "mean_wait_s", "slowdown_rate",
           "terminations", "terminations_short", "terminations_long", "migrations", "jobs_finished",
           "useful_core_s"]  # fmt: skip
DIMENSIONS = ("study", "platform", "label", "source", "day", "range", "step", "period_s", "headroom",
              "structure", "foresight_h", "long_fraction", "dependencies", "trace", "walk")  # fmt: skip
CAPACITY = ("structure", "range", "step", "period_s", "headroom", "source", "day", "walk")
"""Dimensions without a value for a fixed capacity."""
_OPTIONS: Mapping[str, object] = {"mapping": "base", "termination": None, "foresight_h": 0.0}


def write_runs(results: Path, path: Path) -> None:
    """Write the runs of a study to a file, with the mean of runs that differ only in the scheduler's seed."""
    by = [*WHERE, "options", *VARIES]
    rows = runs_of(results, [*by, *FIGURES]).groupby(by, sort=False, dropna=False)[FIGURES].mean().reset_index()
    rows.round(6).to_csv(path, index=False, lineterminator="\n")


def read_points(path: Path) -> Points:
    """Read runs with `DIMENSIONS`, and figures in % and min."""
    frame = with_capacities(pd.read_csv(path))
    options = options_of(frame, _OPTIONS)
    terminations = options["termination"].map(lambda choice: TERMINATIONS.get(plain(choice)))
    policy = options["mapping"].map(MAPPINGS).fillna(terminations).fillna("Base")
    of_cases = frame["study"].str.startswith(CASES)
    named = frame["label"].str.replace(r"\s*\b\d+(?:\.\d+)? h\b", "", regex=True).str.strip()
    named = named.where(frame["study"].isin(["fig7-4", "longer-7-4"]), frame["label"])
    mixed = frame["workload"].str.extract(r"^(?P<kind>long|dep)-(?P<value>[\d.]+)-(?P<seed>\d+)$")
    days = frame["capacity"].str.extract(r"^(?P<signal>carbon|price)-(?P<zone>[A-Za-z]+)-(?P<day>\d{4}-\d\d-\d\d)")
    value = mixed["value"].astype(float)
    frame = frame.assign(
        label=policy.where(of_cases, named),
        policy=policy,
        foresight_h=options["foresight_h"].astype(float),
        headroom=frame["cap_headroom"],
        source=(days["signal"] + " " + days["zone"]).fillna(frame["structure"]),
        day=days["day"].fillna(""),
        long_fraction=value.where(mixed["kind"] == "long"),
        dependencies=100.0 * value.where(mixed["kind"] == "dep"),
        trace=(mixed["kind"] + "-" + mixed["seed"]).fillna(frame["workload"]),
        goodput_percent=100.0 * frame["goodput_with_running"],
        goodput_percent_short=100.0 * frame["goodput_short"],
        goodput_percent_long=100.0 * frame["goodput_long"],
        failure_percent=100.0 * frame["job_failure_rate"],
        slowed_percent=100.0 * frame["slowdown_rate"],
        migrated_percent=100.0 * frame["migrations"] / (frame["jobs_finished"] + frame["terminations"]),
        wait_min=frame["mean_wait_s"] / 60.0,
        saved_percent=100.0 * frame["cap_saved"],
        gained_percent=100.0 * frame["cap_gained"],
    )
    # the mean of a conventional scheduler on a fixed capacity, for the machines and jobs of each row
    held = (frame["structure"] == FIXED) & (frame["foresight_h"] == 0.0)
    held &= policy.isin(["Base", "Random"]) & ~options["mapping"].isin(list(MAPPINGS))
    fixed = frame[held].groupby(["platform", "workload"])["useful_core_s"].mean().rename("at_fixed")
    work = 100.0 * frame["useful_core_s"] / frame.join(fixed, on=["platform", "workload"])["at_fixed"]
    return Points(frame.assign(work_percent=work), DIMENSIONS)
