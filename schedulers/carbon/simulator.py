"""The outcome of a policy on jobs as if each were alone, for `batwatt carbon run`: rows of segments, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from batwatt.checks import parameters
from batwatt.errors import InputError
from batwatt.files import whole_set, write_json
from batwatt.model.timeline import Timeline
from batwatt.results.run_files import without_formulas_in
from batwatt.schedulers.carbon.execution import Execution, ShiftJob, carry_out
from batwatt.schedulers.carbon.forecast import weighed
from batwatt.schedulers.carbon.optimum import NoPlanError
from batwatt.schedulers.carbon.policies import (
    PolicyInputs,
    check_limits,
    expected_lengths,
    is_short,
    policy_named,
    start_window,
)
from batwatt.units import REPORTED_S

SEGMENT_COLUMNS: Mapping[str, str] = {
    "job": "the job",
    "segment": "which of its segments, from 0",
    "arrival_s": "when the job arrived, s from the signal's first row",
    "begin_s": "when the segment begins, s",
    "end_s": "when it ends, s",
    "cpus": "cpus of the job",
    "startup_s": "how much of the segment is start-up, s",
    "work_s": "how much of it is work, s",
    "energy_j": "energy on all cpus, J",
    "carbon_g": "carbon of that energy, g",
    "cost": "cost of that energy (empty without a price)",
    "startup_energy_j": "energy of the start-up on all cpus, J",
    "deadline_s": "when the job should have finished, s (empty: never)",
}
"""The columns of an outcome, and what they mean."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy: `segments` has the rows of each job by time."""

    policy: str
    segments: pd.DataFrame

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all jobs: sums, and means over jobs; `cost` is None without a price.

        A job waits while it has arrived, is not finished and does not run.
        """
        # gaps rather than lengths are summed, so that a job without a wait waits 0 s to the last bit
        before = self.segments.groupby("job", sort=False)["end_s"].shift().fillna(self.segments["arrival_s"])
        length_s, wait_s = self.segments["end_s"] - self.segments["begin_s"], self.segments["begin_s"] - before
        jobs = (
            self.segments.assign(length_s=length_s, wait_s=wait_s)
            .groupby("job", sort=False)
            .agg(
                arrival_s=("arrival_s", "first"),
                end_s=("end_s", "last"),
                length_s=("length_s", "sum"),
                carbon_g=("carbon_g", "sum"),
                energy_j=("energy_j", "sum"),
                cost=("cost", "sum"),
                wait_s=("wait_s", "sum"),
                segments=("segment", "size"),
                deadline_s=("deadline_s", "first"),
                startup_energy_j=("startup_energy_j", "sum"),
            )
        )
        return {
            "carbon_g": float(jobs["carbon_g"].sum()),
            "energy_j": float(jobs["energy_j"].sum()),
            "cost": None if self.segments["cost"].isna().any() else float(jobs["cost"].sum()),
            "mean_total_wait_s": float(jobs["wait_s"].mean()),
            "max_total_wait_s": float(jobs["wait_s"].max()),
            "mean_slowdown": float(((jobs["end_s"] - jobs["arrival_s"]) / jobs["length_s"]).mean()),
            "segments": int(jobs["segments"].sum()),
            "jobs": len(jobs),
            "suspended_jobs": int((jobs["segments"] > 1).sum()),
            "late_jobs": int((jobs["end_s"] > jobs["deadline_s"] + REPORTED_S).sum()),
            "startup_energy_j": float(jobs["startup_energy_j"].sum()),
        }


def rows_of(
    executions: Sequence[Execution],
    integral: Timeline,
    price: Timeline | None,
    deadlines_s: Sequence[float],
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
    return pd.DataFrame(table, columns=list(SEGMENT_COLUMNS))


def write_outcome(segments: Path, metrics: Path, outcome: Outcome, about: Mapping[str, Any]) -> None:
    """Write segments as CSV, and in the same folder figures as JSON after facts `about` them; both files or none."""
    rows = outcome.segments.replace(np.inf, np.nan)
    with whole_set(metrics.parent, last=(metrics.name,), place=metrics) as part:
        without_formulas_in(rows).to_csv(part / segments.name, index=False, lineterminator="\n")
        write_json(part / metrics.name, {"policy": outcome.policy, **about, **outcome.metrics()})


_WHERE = "options of the simulation"


@parameters(_WHERE)
class ShiftOptions:
    """Limits of the waits of jobs, and weights of carbon and price. Raises InputError.

    A job waits `wait_h` hours (short and long jobs, or one value for all), or finishes within `deadline_h` hours of its
    arrival, or by the `constraint` of Let's Wait Awhile on the local `clock`. Policies plan by `carbon_weight` x carbon
    + `price_weight` x price; carbon and cost are charged apart.
    """

    wait_h: tuple[Annotated[float, Field(ge=0.0)], ...] = (6.0, 24.0)
    deadline_h: Annotated[float | None, Field(gt=0.0)] = None
    constraint: str | None = None
    clock: str = "UTC"
    price: Timeline | None = None
    carbon_weight: Annotated[float, Field(ge=0.0)] = 1.0
    price_weight: Annotated[float, Field(ge=0.0)] = 0.0
    slot_s: Annotated[float | None, Field(gt=0.0)] = None

    def __post_init__(self) -> None:
        if len(self.wait_h) not in (1, 2):
            raise InputError(_WHERE, f"wait_h takes one or two values, got {len(self.wait_h)}", "as in 6x24")
        check_limits(self.deadline_h, self.constraint)


def simulate(jobs: Sequence[ShiftJob], integral: Timeline, policy: str, options: ShiftOptions | None = None) -> Outcome:
    """Return the outcome of a policy for jobs under a carbon signal, each on its own.

    Policies choose by their window and the signal, weighed with a price; their choice is carried out on the phases of
    the job, and charged on each signal. Raises InputError.
    """
    options = options or ShiftOptions()
    rule = policy_named(policy)
    _check(jobs, integral, options)
    limits = options.wait_h, options.deadline_h, options.constraint, options.clock
    windows = [start_window(job, integral, *limits) for job in jobs]
    signal = weighed(integral, options.price, options.carbon_weight, options.price_weight)
    means = expected_lengths(jobs).items()
    facts = {short: PolicyInputs(mean_s, options.slot_s) for short, mean_s in means}
    executions = []
    for job, window in zip(jobs, windows, strict=True):
        try:
            intervals = rule.choose(job, window, signal, facts[is_short(job)])
        except NoPlanError as error:
            raise InputError(f"job {job.id}", str(error), "let it wait longer, or take shorter slots") from None
        execution = carry_out(job, intervals, checkpoints=rule.checkpoints, apart=rule.exact)
        for charged in (integral, options.price):
            if charged is not None:
                charged.covers(execution.end_s, f"job {job.id}")
        executions.append(execution)
    deadlines_s = [window.deadline_s(job) for job, window in zip(jobs, windows, strict=True)]
    return Outcome(rule.name, rows_of(executions, integral, options.price, deadlines_s))


def _check(jobs: Sequence[ShiftJob], integral: Timeline, options: ShiftOptions) -> None:
    if not jobs:
        raise InputError("the jobs", "there are none", "give a file with jobs")
    ids = Counter(job.id for job in jobs)
    name, times = ids.most_common(1)[0]
    if times > 1:
        raise InputError("the jobs", f"{times} of them have the id {name!r}", "give each job its own")
    price = options.price
    if price is not None and None not in (price.date_s, integral.date_s) and price.date_s != integral.date_s:
        problem = f"begins at {price.begin}, the carbon signal {integral.source} at {integral.begin}"
        raise InputError(price.source, problem, "let both begin at the same date")
    for job in jobs:
        integral.covers(job.arrival_s + job.length_s, f"job {job.id}")
