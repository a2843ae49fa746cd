"""The carbon of a run from Batsim's files alone: the power of each row of `jobs.csv` by time, under a signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from batwatt.errors import InputError
from batwatt.model.phases import Array, Steps
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.workload import ATTEMPT, Composed, Job, Workload
from batwatt.protocol.phases import CPUS, reported_model
from batwatt.results import read
from batwatt.results.origins import origins_of
from batwatt.results.power import power_series
from batwatt.results.writers import file_of
from batwatt.units import LAG_S

ROW_COLUMNS = (
    *("job", "segment", "row", "arrival_s", "begin_s", "end_s", "energy_j", "carbon_g", "cost"),
    *("hosts", "known", "state"),
)
"""Columns of `RunCarbon.rows`: the job; which of its segments, from 0; the id of the row; times in s; J, g and money;
hosts; whether the power within the row is known (else its mean was taken); how the row ended."""
PRINTED = 1e-6
"""Times and energies are printed to 6 decimals (s, J)."""


@dataclass(frozen=True)
class RunCarbon:
    """Carbon, energy and cost of the jobs of a run, and of its hosts while no job was on them.

    `rows` has a row for each of `jobs.csv` that ran, by job and time. `averaged` counts those whose power is taken to
    be constant though they went through phases. `cost` and `idle_cost` are None without a price.
    """

    carbon_g: float
    energy_j: float
    cost: float | None
    idle_carbon_g: float
    idle_energy_j: float
    idle_cost: float | None
    averaged: int
    rows: pd.DataFrame

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all jobs; a job waits while it has arrived, is not finished and does not run."""
        jobs = self.per_job()
        waits_s = jobs["end_s"] - jobs["arrival_s"] - jobs["runs_s"]
        sums = ("carbon_g", "energy_j", "cost", "idle_carbon_g", "idle_energy_j", "idle_cost")
        return {
            **{name: getattr(self, name) for name in sums},
            "mean_total_wait_s": float(waits_s.mean()) if len(jobs) else None,
            "segments": int(jobs["segments"].sum()),
            "jobs": len(jobs),
            "averaged_rows": self.averaged,
        }

    def per_segment(self) -> pd.DataFrame:
        """Return one row for each segment: rows of one job that follow each other at once, as its pieces do."""
        return self._summed(["job", "segment"])

    def per_job(self) -> pd.DataFrame:
        """Return one row for each job; `segments` counts its own."""
        jobs = self._summed(["job"])
        jobs["segments"] = self.rows.groupby("job", sort=False)["segment"].nunique().to_numpy()
        return jobs

    def _summed(self, by: list[str]) -> pd.DataFrame:
        sums = {name: (name, "sum") for name in ("runs_s", "energy_j", "carbon_g", "cost")}
        times = {"arrival_s": ("arrival_s", "min"), "begin_s": ("begin_s", "min"), "end_s": ("end_s", "max")}
        rows = self.rows.assign(runs_s=self.rows["end_s"] - self.rows["begin_s"])
        table = rows.groupby(by, sort=False).agg(**times, **sums).reset_index()
        if self.cost is None:
            table["cost"] = np.nan
        return table


def account(
    prefix: Path | str,
    integral: SignalIntegral,
    workload: Workload | None = None,
    *,
    price: SignalIntegral | None = None,
) -> RunCarbon:
    """Return the carbon of the run under `prefix` (its jobs.csv, and consumed_energy.csv if there is one).

    A row is charged its consumed energy. Its power is constant, but for a job of `workload` that carries its phases:
    then it follows these from the row's start, as long as that adds up to the row's energy, else it is their mean.
    Rows `3#1` are pieces of job 3. The energy of all hosts besides that of the jobs is idle. Raises InputError.
    """
    path = file_of(prefix, "jobs")
    jobs = read.jobs(prefix)
    ran = jobs[jobs["final_state"] != read.REJECTED].reset_index(drop=True)
    bad = np.flatnonzero(~(ran["consumed_energy"].to_numpy() >= 0.0))
    if len(bad):
        problem = f"job {ran['job_id'][bad[0]]} has no consumed energy"
        raise InputError(path, problem, "run it with energy accounting, on a platform with watts")
    names, owners = _owners(ran, workload, path)
    models = _Models(workload)
    draws, power_known = [], []
    columns = [ran[name].tolist() for name in ("profile", "starting_time", "execution_time", "consumed_energy")]
    for profile, begin_s, length_s, energy_j, owner in zip(*columns, owners, strict=True):
        steps, sure = models.steps(profile, owner, length_s, energy_j)
        draws.append(_Draw(begin_s, steps, energy_j))
        power_known.append(sure)
    end_s = max((draw.end_s for draw in draws), default=0.0)
    integral.covers(end_s, f"the run {prefix}")
    rows = pd.DataFrame(
        {
            "job": names,
            "row": ran["job_id"],
            "arrival_s": ran["submission_time"],
            "begin_s": ran["starting_time"],
            "end_s": ran["finish_time"],
            "energy_j": ran["consumed_energy"],
            "carbon_g": [draw.under(integral) for draw in draws],
            "cost": np.nan,
            "hosts": ran["requested_number_of_resources"],
            "known": np.array(power_known, dtype=np.bool_),
            "state": ran["final_state"],
        }
    )
    if price is not None:
        price.covers(end_s, f"the run {prefix}")
        rows["cost"] = [draw.under(price) for draw in draws]
    idle = _idle(prefix, draws, [integral] if price is None else [integral, price])
    return RunCarbon(
        carbon_g=float(rows["carbon_g"].sum()),
        energy_j=float(rows["energy_j"].sum()),
        cost=None if price is None else float(rows["cost"].sum()),
        idle_carbon_g=idle[1],
        idle_energy_j=idle[0],
        idle_cost=None if price is None else idle[2],
        averaged=int((~rows["known"]).sum()),
        rows=_segmented(rows)[list(ROW_COLUMNS)],
    )


@dataclass(frozen=True)
class _Draw:
    """A row's power: steps from `begin_s`, scaled so that they take the row's energy."""

    begin_s: float
    steps: Steps
    energy_j: float

    @property
    def end_s(self) -> float:
        return self.begin_s + self.steps.length_s

    @property
    def watts(self) -> Array:
        """The power of each step, W."""
        known_j = self.steps.energy_j
        return self.steps.watts * (self.energy_j / known_j if known_j > 0.0 else 0.0)

    def under(self, integral: SignalIntegral) -> float:
        """Return the carbon in g, or the cost, of the row."""
        return float(integral.of_steps(self.begin_s, Steps(self.steps.edges_s, self.watts)))


class _Models:
    """The power of rows, from the models that the jobs of a workload carry."""

    def __init__(self, workload: Workload | None) -> None:
        self._workload = workload
        self._steps: dict[str, Steps | None] = {}

    def steps(self, profile: str, owner: Job | None, length_s: float, energy_j: float) -> tuple[Steps, bool]:
        """Return the power of a row by time, but for a factor, and whether it is known."""
        mean = Steps(np.array((0.0, length_s)), np.ones(1))
        if self._workload is None or not isinstance(self._workload.profiles.get(profile), Composed):
            return mean, True
        whole = self._of(owner) if owner is not None and owner.profile == profile else None
        if whole is None or not length_s <= whole.length_s + 2.0 * PRINTED:
            return mean, False
        steps = whole if length_s >= whole.length_s - PRINTED else whole.part(0.0, length_s)
        most_j = float(np.max(steps.watts, initial=0.0)) * 2.0 * PRINTED
        if not abs(steps.energy_j - energy_j) <= PRINTED + most_j + 1e-9 * steps.energy_j:
            return mean, False
        return steps, True

    def _of(self, job: Job) -> Steps | None:
        """Return the power of all of a job's run, on all of its cpus."""
        if job.id not in self._steps:
            model = reported_model(job.raw, f"job {job.id}")
            cpus = float(job.raw.get(CPUS, 1))
            steps = None if model is None else Steps(model.steps.edges_s, model.steps.watts * cpus)
            self._steps[job.id] = steps
        return self._steps[job.id]


def _owners(ran: pd.DataFrame, workload: Workload | None, path: Path) -> tuple[list[str], Sequence[Job | None]]:
    """Return for each row the name of its job, and the job if the workload has it."""
    if workload is None:
        names = ran["job_id"].tolist()
        return [_root(name) for name in names], [None] * len(names)
    if not len(ran):
        return [], []
    origins = origins_of({str(name): column for name, column in ran.items()}, workload, path)
    owners = [workload.jobs[index] if index >= 0 else None for index in origins.job.tolist()]
    names = [name if owner is None else owner.name for name, owner in zip(ran["job_id"].tolist(), owners, strict=True)]
    return names, owners


def _root(name: str) -> str:
    """Return the job of a row, by its id: `3#1` and `3#2` are of `3`."""
    while ATTEMPT.search(name):
        name = ATTEMPT.sub("", name)
    return name


def _segmented(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by job, in the order of their first starts, and time, with the number of each one's segment."""
    first = rows.groupby("job")["begin_s"].transform("min")
    rows = rows.assign(first=first).sort_values(["first", "job", "begin_s", "end_s"], kind="stable", ignore_index=True)
    apart = rows["begin_s"] > rows.groupby("job")["end_s"].shift() + LAG_S
    return rows.assign(segment=apart.groupby(rows["job"]).cumsum().astype(int))


def _idle(prefix: Path | str, draws: Sequence[_Draw], integrals: Sequence[SignalIntegral]) -> tuple[float, ...]:
    """Return the energy of all hosts beyond that of jobs in J, and its emissions or cost; zeros without a file."""
    nothing = (0.0,) * (1 + len(integrals))
    if not file_of(prefix, "consumed_energy").exists():
        return nothing
    trace = power_series(prefix)
    if not len(trace.times_s):
        return nothing
    edges = np.append(trace.times_s, trace.end_s)
    idle_j = np.diff(np.append(0.0, np.cumsum(trace.power_w * trace.durations_s)) - _reached(draws, edges))
    # times and energies of both files are rounded
    noise_j = PRINTED * (len(draws) + len(edges)) * (1.0 + float(trace.power_w.max())) + 1e-9 * trace.energy_j
    if float(np.abs(idle_j).sum()) <= noise_j:
        return nothing
    for integral in integrals:
        integral.covers(trace.end_s, f"the run {prefix}")
    watts = idle_j / trace.durations_s
    return (
        float(idle_j.sum()),
        *(float(watts @ integral.per_watt(edges[:-1], edges[1:])) for integral in integrals),
    )


def _reached(draws: Sequence[_Draw], times_s: Array) -> Array:
    """Return the energy of all draws together until some times, J."""
    if not draws:
        return np.zeros(len(times_s))
    begins = np.concatenate([draw.begin_s + draw.steps.edges_s[:-1] for draw in draws])
    ends = np.concatenate([draw.begin_s + draw.steps.edges_s[1:] for draw in draws])
    watts = np.concatenate([draw.watts for draw in draws])
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    power = np.cumsum(np.concatenate([watts, -watts])[order])
    times = times[order]
    reached = np.append(0.0, np.cumsum(power[:-1] * np.diff(times)))
    return np.interp(times_s, times, reached)
