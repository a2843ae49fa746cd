"""Plan synthetic jobs in phases at many arrivals, by every planner.

    python -m papers.carbon.study papers/carbon/small.yaml power_profiles/carbon/carbon-hourly.csv results/carbon-small
        write table.parquet (a row for each job and arrival) and summary.csv (means over the arrivals)

The studies are all combinations of the lists of the YAML file. `length_h` is the length of the work without the
start-up, but the deadline includes it. Jobs finish within `deadline_h` of their arrival, or wait `wait_h` at most.
The twin of a job has its length and energy at constant power, without a start-up: the input of GAIA and Let's Wait
Awhile. A plan for the twin is carried out on the job.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from batwatt.inputs.series import read_on_clock
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.execution import Execution, ShiftJob, carry_out
from batwatt.schedulers.carbon.optimum import plan
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, immediate, oracle, suspend_resume
from batwatt.units import HOUR_S, PRECISION_S

TABLE, SUMMARY = "table.parquet", "summary.csv"
JOB_COLUMNS = ["study", "pattern", "length_h", "startup_s", "startup_w", "wait_h", "deadline_h"]
"""Columns that distinguish the jobs."""
MINUTE_S = 60.0


@dataclass(frozen=True)
class Case:
    """A synthetic job: the work of a pattern, a start-up (0 s at 0 W: none), the longest wait, and its arrivals."""

    study: str
    pattern: str
    length_h: float
    startup_s: float
    startup_w: float
    wait_s: float
    model: PhaseModel
    arrivals_s: tuple[float, ...]

    @property
    def deadline_s(self) -> float:
        """Time from the arrival to the deadline."""
        return self.wait_s + self.model.length_s


def phases(pattern: Mapping[str, float], length_s: float) -> Iterator[Phase]:
    """Yield phases of high and low power in turn that last `length_s` together; the last is cut there."""
    begin_s, name = 0.0, "high"
    while begin_s < length_s:
        end_s = min(begin_s + MINUTE_S * pattern[f"{name}_min"], length_s)
        yield Phase(name, end_s - begin_s, float(pattern[f"{name}_w"]))
        begin_s, name = end_s, "low" if name == "high" else "high"


def cases_of(declared: Mapping[str, Any]) -> Iterator[Case]:
    """Yield all jobs of all studies. Raises ValueError for a deadline that a job cannot meet."""
    times = declared["arrivals"]
    arrivals_s = tuple((np.arange(0.0, times["days"] * 24.0, times["every_h"]) * HOUR_S).tolist())
    for study, part in declared["studies"].items():
        starts = [(float(s), float(w)) for s, w in product(part["startup_s"], part["startup_w"]) if s > 0]
        starts = [(0.0, 0.0)] * (0 in part["startup_s"]) + starts
        for (name, pattern), length_h, (startup_s, startup_w) in product(
            part["patterns"].items(), part["length_h"], starts
        ):
            startup = (Phase("start-up", startup_s, startup_w),) if startup_s else ()
            model = PhaseModel(startup, tuple(phases(pattern, length_h * HOUR_S)))
            waits_s = [hours * HOUR_S - model.length_s for hours in part.get("deadline_h", ())]
            for wait_s in [*waits_s, *(hours * HOUR_S for hours in part.get("wait_h", ()))]:
                if wait_s < 0.0:
                    raise ValueError(f"{study}: a job of {model.length_s / HOUR_S:g} h cannot meet its deadline")
                yield Case(study, name, float(length_h), startup_s, startup_w, wait_s, model, arrivals_s)


def plans(case: Case, arrival_s: float, integral: Timeline) -> dict[str, float]:
    """Return the carbon in g, and the number of starts, of every planner for a job that arrives at `arrival_s`.

    `_twin_g` is the planned carbon of the twin. Raises InputError if the signal ends too early.
    """
    model = case.model
    job = ShiftJob("job", arrival_s, model)
    twin = replace(job, model=model.averaged())
    window, inputs = StartWindow(arrival_s, case.wait_s), PolicyInputs()
    deadline_s = window.deadline_s(job)

    def optimum(of: PhaseModel) -> Execution:
        planned = plan(of, integral, arrival_s, deadline_s)
        return Execution(job, planned.segments) if of is model else carry_out(job, planned.intervals, apart=True)

    at_once = immediate(job, window, integral, inputs)
    guessed = oracle(twin, window, integral, inputs)
    pieces = suspend_resume(twin, window, integral, inputs)
    # the work at its mean power; then the start-up as a part of the work, which is not repeated
    steady = PhaseModel(model.startup, (Phase("mean", model.work_s, model.work_steps.energy_j / model.work_s),))
    free = PhaseModel((), (*model.startup, *model.work))
    best, aware = optimum(model), optimum(steady)
    truly = carry_out(job, pieces)
    late_s = truly.end_s - deadline_s
    integral.covers(truly.end_s, "a job that resumes more often than its plan")
    return {
        "arrival_s": arrival_s,
        "immediate_g": carry_out(job, at_once).emitted(integral),
        "immediate_twin_g": carry_out(twin, at_once).emitted(integral),
        "oracle_g": carry_out(job, oracle(job, window, integral, inputs)).emitted(integral),
        "oracle_averaged_g": carry_out(job, guessed).emitted(integral),
        "oracle_twin_g": carry_out(twin, guessed).emitted(integral),
        "optimum_g": best.emitted(integral),
        "optimum_starts": len(best.segments),
        "startup_aware_g": aware.emitted(integral),
        "startup_aware_starts": len(aware.segments),
        "free_g": plan(free, integral, arrival_s, deadline_s).carbon,
        "suspend_g": truly.emitted(integral),
        "suspend_twin_g": carry_out(twin, pieces).emitted(integral),
        "suspend_starts": len(truly.segments),
        "suspend_late_s": late_s if late_s > PRECISION_S * max(1, len(truly.segments)) else 0.0,
    }


def rows_of(case: Case, integral: Timeline) -> pd.DataFrame:
    """Return a row for each arrival."""
    rows = pd.DataFrame([plans(case, arrival_s, integral) for arrival_s in case.arrivals_s])
    values = (case.study, case.pattern, case.length_h, case.startup_s, case.startup_w)
    labels = dict(zip(JOB_COLUMNS, (*values, case.wait_s / HOUR_S, case.deadline_s / HOUR_S), strict=True))
    return pd.concat([pd.DataFrame(labels, index=rows.index), rows], axis=1)


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each job: means over its arrivals, their number, and the share that is late."""
    grouped = table.groupby(JOB_COLUMNS, sort=False)
    means = grouped[[name for name in table.columns if name not in (*JOB_COLUMNS, "arrival_s")]].mean().round(6)
    means.insert(0, "arrivals", grouped.size())
    means["suspend_late_share"] = grouped["suspend_late_s"].agg(lambda late_s: (late_s > 0.0).mean()).round(6)
    return means.reset_index()


def run(studies: Path, signal: Path) -> pd.DataFrame:
    """Return the table of all jobs and arrivals."""
    cases = list(cases_of(yaml.safe_load(studies.read_text(encoding="utf-8"))))
    integral = read_on_clock(SeriesSource(signal, quantity="carbon", gaps="line"))
    with ProcessPoolExecutor() as pool:
        return pd.concat(pool.map(partial(rows_of, integral=integral), cases, chunksize=4), ignore_index=True)


if __name__ == "__main__":
    studies, signal, results = map(Path, sys.argv[1:])
    frame = run(studies, signal)
    results.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(results / TABLE, index=False)
    summary_of(frame).to_csv(results / SUMMARY, index=False, lineterminator="\n")
