"""The carbon of a run from Batsim's files alone: the power of each row of `jobs.csv` by time, under a signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from batwatt.errors import InputError
from batwatt.model.attempt import job_of
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, Steps
from batwatt.model.workload import Composed, JobSpec, Workload
from batwatt.protocol.job_fields import CPUS, reported_model
from batwatt.results import run_files
from batwatt.results.power import power_series
from batwatt.results.run_files import RunData, file_of, full_ids
from batwatt.results.run_table import origins_of
from batwatt.units import LAG_S

ROW_COLUMNS = ("job", "segment", "row", "arrival_s", "begin_s", "end_s", "energy_j", "carbon_g", "cost", "known")
"""Columns of `RunCarbon.rows`: the job; which of its segments, from 0; the id of the row; times in s; J, g and money;
whether the power within the row is known (else its mean was taken)."""
PRINTED = 1e-6
"""Times and energies are printed to 6 decimals (s, J)."""
Draw = tuple[float, Steps]
"""Begin of a row in s, and its power from then on."""


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
    integral: Timeline,
    workload: Workload | None = None,
    *,
    price: Timeline | None = None,
) -> RunCarbon:
    """Return the carbon of the run under `prefix` (its jobs.csv, and consumed_energy.csv if there is one).

    A row is charged its consumed energy. Its power is constant, but for a job of `workload` that carries its phases:
    then it follows these from the row's start, as long as that adds up to the row's energy, else it is their mean.
    Rows `3#1` are pieces of job 3. The energy of all hosts besides that of the jobs is idle. Raises InputError.
    """
    path = file_of(prefix, "jobs")
    jobs = run_files.jobs(prefix)
    ran = jobs[jobs["final_state"] != run_files.REJECTED].reset_index(drop=True)
    bad = np.flatnonzero(~(ran["consumed_energy"].to_numpy() >= 0.0))
    if len(bad):
        problem = f"job {ran['job_id'][bad[0]]} has no consumed energy"
        raise InputError(path, problem, "run it with energy accounting, on a platform with watts")
    names, owners = _owners(ran, workload, RunData(prefix))
    draws: list[Draw] = []
    power_known = []
    columns = [ran[name].tolist() for name in ("profile", "starting_time", "execution_time", "consumed_energy")]
    for profile, begin_s, length_s, energy_j, owner in zip(*columns, owners, strict=True):
        composed = workload is not None and isinstance(workload.profiles.get(profile), Composed)
        steps = _phases(owner, length_s, energy_j) if composed and owner and owner.profile == profile else None
        power_known.append(steps is not None or not composed)
        steps = steps or Steps(np.array((0.0, length_s)), np.ones(1))
        total_j = steps.energy_j
        scaled = Steps(steps.edges_s, steps.watts * (energy_j / total_j if total_j > 0.0 else 0.0))
        draws.append((begin_s, scaled))
    end_s = max((begin_s + steps.length_s for begin_s, steps in draws), default=0.0)
    integral.covers(end_s, f"the run {prefix}")
    rows = pd.DataFrame(
        {
            "job": names,
            "row": ran["job_id"],
            "arrival_s": ran["submission_time"],
            "begin_s": ran["starting_time"],
            "end_s": ran["finish_time"],
            "energy_j": ran["consumed_energy"],
            "carbon_g": [float(integral.of_steps(*draw)) for draw in draws],
            "cost": np.nan,
            "known": np.array(power_known, dtype=np.bool_),
        }
    )
    if price is not None:
        price.covers(end_s, f"the run {prefix}")
        rows["cost"] = [float(price.of_steps(*draw)) for draw in draws]
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


def _phases(job: JobSpec, length_s: float, energy_j: float) -> Steps | None:
    """Return the power by time of a run of a job on all of its cpus; None if length or energy contradict its phases."""
    model = reported_model(job.raw, f"job {job.id}")
    if model is None or not length_s <= model.steps.length_s + 2.0 * PRINTED:
        return None
    steps = Steps(model.steps.edges_s, model.steps.watts * float(job.raw.get(CPUS, 1)))
    if length_s < steps.length_s - PRINTED:
        steps = steps.part(0.0, length_s)
    most_j = float(np.max(steps.watts, initial=0.0)) * 2.0 * PRINTED
    return steps if abs(steps.energy_j - energy_j) <= PRINTED + most_j + 1e-9 * steps.energy_j else None


def _owners(ran: pd.DataFrame, workload: Workload | None, data: RunData) -> tuple[list[str], Sequence[JobSpec | None]]:
    """Return for each row the name of its job, and the job if the workload has it."""
    if workload is None:
        table = data.attempts
        names = [table[name].job if name in table else job_of(name) for name in full_ids(ran)]
        return [name.partition("!")[2] for name in names], [None] * len(names)
    if not len(ran):
        return [], []
    submitted_s = ran["submission_time"].to_numpy()
    job = origins_of(full_ids(ran), submitted_s, workload, file_of(data.prefix, "jobs"), data.attempts)[0]
    owners = [workload.jobs[index] if index >= 0 else None for index in job.tolist()]
    names = [name if owner is None else owner.name for name, owner in zip(ran["job_id"].tolist(), owners, strict=True)]
    return names, owners


def _segmented(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by job, in the order of their first starts, and time, with the number of each one's segment."""
    first = rows.groupby("job")["begin_s"].transform("min")
    rows = rows.assign(first=first).sort_values(["first", "job", "begin_s", "end_s"], kind="stable", ignore_index=True)
    apart = rows["begin_s"] > rows.groupby("job")["end_s"].shift() + LAG_S
    return rows.assign(segment=apart.groupby(rows["job"]).cumsum().astype(int))


def _idle(prefix: Path | str, draws: Sequence[Draw], integrals: Sequence[Timeline]) -> tuple[float, ...]:
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


def _reached(draws: Sequence[Draw], times_s: Array) -> Array:
    """Return the energy of all draws together until some times, J."""
    if not draws:
        return np.zeros(len(times_s))
    begins = np.concatenate([begin_s + steps.edges_s[:-1] for begin_s, steps in draws])
    ends = np.concatenate([begin_s + steps.edges_s[1:] for begin_s, steps in draws])
    watts = np.concatenate([steps.watts for _, steps in draws])
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    power = np.cumsum(np.concatenate([watts, -watts])[order])
    times = times[order]
    reached = np.append(0.0, np.cumsum(power[:-1] * np.diff(times)))
    return np.interp(times_s, times, reached)
