"""The outcome of a policy on jobs as if each were alone: a second implementation of runs of the scheduler `carbon`.

It has no engine, hosts or messages. tests/papers/test_carbon_simulator.py compares both, job by job. GAIA (gaia.py)
returns the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.timeline import Timeline
from batwatt.schedulers.carbon.execution import Execution, ShiftJob, carry_out
from batwatt.schedulers.carbon.forecast import weighed
from batwatt.schedulers.carbon.optimum import NoPlanError
from batwatt.schedulers.carbon.policies import MeanLengths, PolicyInputs, immediate, policy_named, start_window
from batwatt.units import REPORTED_S

SEGMENT_COLUMNS = (
    *("job", "segment", "arrival_s", "begin_s", "end_s", "cpus", "startup_s", "work_s"),
    *("energy_j", "carbon_g", "cost", "startup_energy_j", "deadline_s"),
)
"""Columns of an outcome: a row for each segment, times from the first row of the signal, and all cpus; no price: no
cost."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy: `segments` has the rows of each job by time."""

    policy: str
    segments: pd.DataFrame

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all jobs: sums, and means over jobs; `cost` is None without a price.

        A job waits while it has arrived, is not finished and does not run: its end - its arrival - its runs, as in
        `batwatt.results.carbon`.
        """
        rows = self.segments.assign(length_s=self.segments["end_s"] - self.segments["begin_s"])
        sums = dict.fromkeys(("length_s", "carbon_g", "energy_j", "cost", "startup_energy_j"), "sum")
        times = {"arrival_s": "first", "end_s": "last", "deadline_s": "first"}
        jobs = rows.groupby("job", sort=False).agg(times | sums)
        jobs["wait_s"] = jobs["end_s"] - jobs["arrival_s"] - jobs["length_s"]
        return {
            "carbon_g": float(jobs["carbon_g"].sum()),
            "energy_j": float(jobs["energy_j"].sum()),
            "cost": None if self.segments["cost"].isna().any() else float(jobs["cost"].sum()),
            "mean_total_wait_s": float(jobs["wait_s"].mean()),
            "segments": len(rows),
            "late_jobs": int((jobs["end_s"] > jobs["deadline_s"] + REPORTED_S).sum()),
            "startup_energy_j": float(jobs["startup_energy_j"].sum()),
        }


def rows_of(
    executions: Sequence[Execution], integral: Timeline, price: Timeline | None, deadlines_s: Sequence[float]
) -> pd.DataFrame:
    """Return a row for each segment, with SEGMENT_COLUMNS; `deadlines_s` are those of the executions."""
    table: list[tuple[Any, ...]] = []
    for execution, deadline_s in zip(executions, deadlines_s, strict=True):
        job = execution.job
        grams = execution.emissions(integral)
        money = execution.emissions(price) if price is not None else repeat(np.nan)
        for number, (segment, energy_j, carbon_g, cost) in enumerate(
            zip(execution.segments, execution.energies(), grams, money, strict=False)
        ):
            work_s = segment.to_s - segment.from_s
            started_j = job.cpus * job.model.startup_steps.part(0.0, segment.startup_s).energy_j
            times = (job.arrival_s, segment.begin_s, segment.end_s)
            sums = (energy_j, carbon_g, cost, started_j, deadline_s)
            table.append((job.id, number, *times, job.cpus, segment.startup_s, work_s, *sums))
    return pd.DataFrame(table, columns=SEGMENT_COLUMNS)


@dataclass(frozen=True)
class ShiftOptions:
    """Limits of the waits of jobs, and weights of carbon and price, as the options of the scheduler `carbon`.

    `foreseen`: the mean length of a class is over all of its jobs, as in GAIA's simulator, not over those that have
    arrived. `step_s`: steps of policies that plan by steps (None: their own).
    """

    wait_h: tuple[float, ...] = (6.0, 24.0)
    deadline_h: float | None = None
    constraint: str | None = None
    clock: str = "UTC"
    price: Timeline | None = None
    carbon_weight: float = 1.0
    price_weight: float = 0.0
    step_s: float | None = None
    foreseen: bool = False


def simulate(jobs: Sequence[ShiftJob], integral: Timeline, policy: str, options: ShiftOptions | None = None) -> Outcome:
    """Return the outcome of a policy for jobs under a carbon signal, each on its own.

    Policies choose by their window and the signal, weighed with a price; their choice is carried out on the phases of
    the job, and charged on each signal. A job that cannot meet its deadline in the steps of the policy starts at once.
    Raises InputError if a signal ends too early.
    """
    options = options or ShiftOptions()
    rule = policy_named(policy)
    limits = options.wait_h, options.deadline_h, options.constraint, options.clock
    windows = [start_window(job, integral, *limits) for job in jobs]
    signal = weighed(integral, options.price, options.carbon_weight, options.price_weight)
    means_s = _means(jobs, options.foreseen)
    executions = []
    for job, window in zip(jobs, windows, strict=True):
        inputs = PolicyInputs(means_s[job.id], options.step_s)
        try:
            intervals = rule.choose(job, window, signal, inputs)
        except NoPlanError:
            intervals = immediate(job, window, signal, inputs)
        execution = carry_out(job, intervals, checkpoints=rule.checkpoints, apart=rule.exact)
        for charged in (integral, options.price):
            if charged is not None:
                charged.covers(execution.end_s, f"job {job.id}")
        executions.append(execution)
    deadlines_s = [window.deadline_s(job) for job, window in zip(jobs, windows, strict=True)]
    return Outcome(rule.name, rows_of(executions, integral, options.price, deadlines_s))


def _means(jobs: Sequence[ShiftJob], foreseen: bool) -> dict[str, float]:
    """Return the mean length in s of the class of each job, by id, when it arrives; or at the end."""
    lengths, means_s = MeanLengths(), {}
    for job in sorted(jobs, key=lambda job: (job.arrival_s, job.id)):
        lengths.add(job)
        means_s[job.id] = lengths.of(job)
    return {job.id: lengths.of(job) for job in jobs} if foreseen else means_s
