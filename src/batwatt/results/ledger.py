"""What became of each run of a window: what it was good for, how long its job is, how long that waited.

A *migrated* run was killed to go on elsewhere, as a run of the same job with what was left (metadata `MIGRATED`). It
and the runs that follow it, up to one that was not migrated, are a *chain*: one run, in parts. All parts share the fate
of the last one; a chain whose rest waits at the end of the window goes on, one whose rest never came is aborted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.workload import LAG_S, LENGTH, MIGRATED, RELEASE, WINDOW_OVER, Delay, Job, Workload
from batwatt.results.columns import KILLED, SUCCESSFUL
from batwatt.results.origins import Origins
from batwatt.results.read import REJECTED

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is looked at, in s, both ends included."""

    begin_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin_s < math.inf:
            raise ValueError(f"begin_s must be >= 0 s and finite, got {self.begin_s!r}")
        if not self.begin_s <= self.end_s < math.inf:
            raise ValueError(f"end_s must be >= begin_s ({self.begin_s!r} s) and finite, got {self.end_s!r}")

    def after(self, times_s: Floats) -> Mask:
        """Which dates are after the window; not those that are missing (NaN)."""
        return times_s > self.end_s + LAG_S

    def holds(self, times_s: Floats) -> Mask:
        """Which dates are in ]begin, end]; not those that are missing (NaN)."""
        return (times_s > self.begin_s) & (times_s <= self.end_s + LAG_S)


@dataclass(frozen=True, slots=True)
class Declared:
    """What the workload says of its jobs, in its order: dates and lengths in s, NaN where it is silent.

    `length_s` is that of the whole job, `left_s` that of its first run, shorter if it was released before the window.
    """

    submit_s: Floats
    cores: Floats
    release_s: Floats
    length_s: Floats
    left_s: Floats


@dataclass(frozen=True, slots=True)
class Chains:
    """For each row its chain: the first and last row of it, when it started and how long its parts took, in s."""

    first: Rows
    last: Rows
    start_s: Floats
    execution_s: Floats


@dataclass(frozen=True)
class Ledger:
    """The rows of `jobs.csv` (and the jobs of the workload) under a window.

    `completed`, `killed` and `migrated` are the runs that ended so in the window, `going` those that went on at its
    end. `useful` and `aborted` are the rows whose work is; `lasted_s` is their time in the window, `work_core_s` that
    times cores. If runs may be `slowed` down, that is no work: of one that took longer than the workload says, it is
    less in the same ratio. `due` are the jobs submitted by the end of the window.
    """

    window: Window
    origins: Origins
    chains: Chains
    finish_s: Floats
    completed: Mask
    killed: Mask
    migrated: Mask
    going: Mask
    useful: Mask
    aborted: Mask
    lasted_s: Floats
    cores: Floats
    declared: Declared
    due: Mask
    slowed: bool = False

    @cached_property
    def work_core_s(self) -> Floats:
        """Core seconds of each row in the window."""
        work = self.lasted_s * self.cores
        if self.slowed:
            took_s = self.finish_s - self.chains.start_s
            longer = took_s > self.told_s + LAG_S
            work[longer] *= self.told_s[longer] / took_s[longer]
        return work

    @cached_property
    def wait_s(self) -> Floats:
        """From the first submission of the job to the start of the run."""
        return self.chains.start_s - self.origins.submit_s

    @cached_property
    def told_s(self) -> Floats:
        """How long the run is to take, as far as the workload says; NaN where it does not."""
        origins, first = self.origins, self.chains.first
        whole, left = self._by_row(self.declared.length_s), self._by_row(self.declared.left_s)
        return np.where(origins.itself[first] & ~np.isnan(left), left, whole)

    @cached_property
    def job_length_s(self) -> Floats:
        """Length of each job of the workload: as declared, else of its longest run, NaN if it never ran."""
        lengths = self.declared.length_s.copy()
        job, ran_s = self.origins.job, self.chains.execution_s
        rows = np.flatnonzero(self.origins.known & ~np.isnan(ran_s))
        rows = rows[np.isnan(lengths[job[rows]])]
        np.fmax.at(lengths, job[rows], ran_s[rows])
        return lengths

    @cached_property
    def length_s(self) -> Floats:
        """Length of the job of each row; of one that the scheduler made up, how long the run took."""
        return np.where(self.origins.known, self._by_row(self.job_length_s), self.chains.execution_s)

    def _by_row(self, values: Floats) -> Floats:
        """The values of jobs of the workload, for each row; NaN for what the scheduler made up."""
        return np.append(values, math.nan)[self.origins.job]


def migrated_rows(jobs: pd.DataFrame) -> Mask:
    """The runs that were killed to go on elsewhere."""
    return ((jobs["final_state"] == KILLED) & (jobs["metadata"] == MIGRATED)).to_numpy(dtype=np.bool_)


def unfinished(jobs: pd.DataFrame, window: Window | None) -> tuple[Mask, Mask]:
    """Two sets of rows: the jobs that waited or ran when the window ended, and all rows that tell of later than that.

    Waiting is told by the metadata `WINDOW_OVER` of a rejected job, with or without a window. What was submitted after
    the end neither waited nor ran then.
    """
    beyond = ((jobs["final_state"] == REJECTED) & (jobs["metadata"] == WINDOW_OVER)).to_numpy(dtype=np.bool_)
    if window is None:
        return beyond, beyond
    beyond = beyond | window.after(jobs["finish_time"].to_numpy())
    return beyond & ~window.after(jobs["submission_time"].to_numpy()), beyond


def declared_of(workload: Workload) -> Declared:
    """What the workload says. Raises InputError if a job has a `release_s` or a `length_s` that is none."""
    jobs = workload.jobs
    durations = {name: p.duration_s for name, p in workload.profiles.items() if isinstance(p, Delay)}
    left = np.array([durations.get(job.profile, math.nan) for job in jobs], dtype=np.float64)
    release, length = np.full(len(jobs), math.nan), left.copy()
    for name, values in ((RELEASE, release), (LENGTH, length)):
        for index in [index for index, job in enumerate(jobs) if name in job.raw]:
            values[index] = _field(workload, jobs[index], name)
    submit, cores = ([getattr(job, name) for job in jobs] for name in ("submit_time_s", "hosts"))
    return Declared(np.array(submit, dtype=np.float64), np.array(cores, dtype=np.float64), release, length, left)


def chains_of(jobs: pd.DataFrame, origins: Origins) -> Chains:
    """The chain of each row; without migrated runs each row is one of its own."""
    start, finish = jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()
    execution = jobs["execution_time"].to_numpy()
    rows = np.arange(len(jobs))
    moved = migrated_rows(jobs) & origins.known
    if not moved.any():
        return Chains(rows, rows, start, execution)
    # what the scheduler made up has no chains; what waits comes after all that ran
    key = np.where(origins.known, origins.job, origins.job.max() + 1 + rows)
    order = np.lexsort((rows, *(np.nan_to_num(dates, nan=math.inf) for dates in (finish, start)), key))
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (np.diff(key[order]) != 0) | ~moved[order[:-1]]
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(rows)) - 1
    chain = np.empty(len(rows), dtype=np.intp)
    chain[order] = np.cumsum(begins) - 1
    parts_s = np.add.reduceat(np.nan_to_num(execution[order]), firsts)
    whole_s = np.where(firsts == lasts, execution[order[firsts]], parts_s)
    first = order[firsts][chain]
    return Chains(first, order[lasts][chain], start[first], whole_s[chain])


def ledger_of(
    jobs: pd.DataFrame,
    origins: Origins,
    chains: Chains,
    workload: Workload,
    window: Window | None,
    slowed: bool = False,
) -> Ledger:
    """What became of the rows of `jobs.csv`, whose origins and chains are given; `slowed`: see `Ledger`.

    Without a window it is from 0 to the end of the last job, and every job of the workload counts as submitted by then.
    Raises InputError if a job of the workload has a `release_s` or a `length_s` that is none.
    """
    start, finish = jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()
    span = window or Window(0.0, float(np.nanmax(finish)) if np.isfinite(finish).any() else 0.0)
    inside = span.holds(finish)
    completed, stopped = (
        inside & (jobs["final_state"] == state).to_numpy(dtype=np.bool_) for state in (SUCCESSFUL, KILLED)
    )
    migrated = inside & migrated_rows(jobs)
    killed = stopped & ~migrated
    going = (start <= span.end_s) & span.after(finish)
    _, beyond = unfinished(jobs, window)
    lives = (completed | beyond)[chains.last]
    neither = (inside & ~completed & ~stopped)[chains.last]
    lasted_s = np.minimum(finish, span.end_s) - np.maximum(start, span.begin_s)
    declared = declared_of(workload)
    return Ledger(
        window=span,
        origins=origins,
        chains=chains,
        finish_s=finish,
        completed=completed,
        killed=killed,
        migrated=migrated,
        going=going,
        useful=completed | going | (migrated & lives),
        aborted=killed | (migrated & ~lives & ~neither),
        lasted_s=lasted_s,
        cores=jobs["requested_number_of_resources"].to_numpy(dtype=np.float64),
        declared=declared,
        due=np.full(len(workload.jobs), True) if window is None else declared.submit_s <= span.end_s,
        slowed=slowed,
    )


def _field(workload: Workload, job: Job, name: str) -> float:
    """The field of a job, a date in s >= 0 or a length in s > 0; InputError otherwise."""
    value = job.raw[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not (number and (value > 0 or (value == 0 and name == RELEASE))):
        problem = f"{name!r} must be {'>=' if name == RELEASE else '>'} 0 s, got {value!r}"
        raise InputError(f"{workload.source}: job {job.id!r}", problem, "correct it or leave it out")
    return float(value)
