"""Outcome of each run in a window: useful work, length of the job, wait.

Runs may come in parts: see `parts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batwatt.errors import InputError
from batwatt.model.signal import Window
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE, REMAINDER, WINDOW_OVER, JobSpec, Workload
from batwatt.results.origins import Origins, origins_of
from batwatt.results.parts import Chains, Floats, Kinds, Mask, chains_of, kinds_of
from batwatt.results.run_files import KILLED, REJECTED, SUCCESSFUL, Columns, RunData, file_of, numbers, texts
from batwatt.units import LAG_S


@dataclass(frozen=True, slots=True)
class ClassedRows:
    """The rows of `jobs.csv` with their origins, kinds and chains.

    `waited_or_ran` and `beyond` are the masks of `unfinished`.
    """

    jobs: Columns
    origins: Origins
    kinds: Kinds
    chains: Chains
    waited_or_ran: Mask
    beyond: Mask


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Declared facts of the jobs of a workload, in its order: times and lengths in s, NaN for undeclared ones.

    `length_s` is the length of the whole job, `left_s` that of its first run, shorter for a release before the window.
    Flops have their length at full speed; profiles that are not simulated have none.
    """

    submit_s: Floats
    cores: Floats
    release_s: Floats
    length_s: Floats
    left_s: Floats


@dataclass(frozen=True)
class RunTable:
    """The rows of `jobs.csv` (and the jobs of the workload) under a window.

    `completed`, `killed` and `migrated` are the runs that ended in this way in the window. `useful` and `aborted` are
    the rows of useful and aborted work; `lasted_s` is their time in the window, `work_core_s` the product with cores.
    The work of a run longer than declared, as on slow hosts, is less in the same ratio. `partly` are the completed runs
    whose work is the declared rest of their job. Of the jobs of the workload, `due` were submitted by the end of the
    window, `out` were refused or failed by then and never completed; `completed_s` is the completion of the others, at
    any time, NaN for never.
    """

    window: Window
    origins: Origins
    kinds: Kinds
    chains: Chains
    finish_s: Floats
    completed: Mask
    killed: Mask
    migrated: Mask
    useful: Mask
    aborted: Mask
    lasted_s: Floats
    cores: Floats
    declared: JobFacts
    due: Mask
    out: Mask
    completed_s: Floats
    partly: Mask

    @cached_property
    def work_core_s(self) -> Floats:
        """Core seconds of each row in the window."""
        return self.lasted_s * self.cores * self.pace

    @cached_property
    def work_s(self) -> Floats:
        """Seconds of work of each row in the window."""
        return self.lasted_s * self.pace

    @cached_property
    def pace(self) -> Floats:
        """Work in one second of each row: 1 unless the run was slowed down or counts in part."""
        pace = self.kinds.productive.copy()
        took_s = self.chains.work_s
        longer = took_s > self.expected_s + LAG_S
        pace[longer] *= self.expected_s[longer] / took_s[longer]
        job = self.origins.job[self.partly]
        share = self.declared.left_s[job] / self.declared.length_s[job]
        pace[self.partly] *= np.where(np.isnan(share), 1.0, share)
        return pace

    @cached_property
    def wait_s(self) -> Floats:
        """Time in s from the first submission of the job to the start of the run."""
        return self.chains.start_s - self.origins.submit_s

    @cached_property
    def expected_s(self) -> Floats:
        """Declared run time at full speed, in s; NaN without a declaration."""
        origins, first = self.origins, self.chains.first
        whole, left = self._by_row(self.declared.length_s), self._by_row(self.declared.left_s)
        return np.where(origins.itself[first] & ~np.isnan(left), left, whole)

    @cached_property
    def job_length_s(self) -> Floats:
        """Length of each job of the workload in s: as declared, else of its longest run, NaN without a run."""
        lengths = self.declared.length_s.copy()
        job, ran_s = self.origins.job, self.chains.work_s
        rows = np.flatnonzero(self.origins.in_workload & ~self.kinds.overhead & ~np.isnan(ran_s))
        rows = rows[np.isnan(lengths[job[rows]])]
        np.fmax.at(lengths, job[rows], ran_s[rows])
        return lengths

    @cached_property
    def length_s(self) -> Floats:
        """Length of the job of each row in s; the run time for a job that the scheduler registered itself."""
        return np.where(self.origins.in_workload, self._by_row(self.job_length_s), self.chains.work_s)

    def _by_row(self, values: Floats) -> Floats:
        """Return the value of each row's job; NaN for a job that the scheduler registered itself."""
        return np.append(values, math.nan)[self.origins.job]


def unfinished(jobs: Columns, window: Window | None) -> tuple[Mask, Mask]:
    """Return two masks: the jobs that waited or ran at the end of the window, and all rows of later times.

    The metadata `WINDOW_OVER` of a rejected job means waiting, with or without a window. A job submitted after the
    end neither waited nor ran.
    """
    beyond = (texts(jobs, "final_state") == REJECTED) & (texts(jobs, "metadata") == WINDOW_OVER)
    if window is None:
        return beyond, beyond
    beyond = beyond | window.after(numbers(jobs, "finish_time"))
    return beyond & ~window.after(numbers(jobs, "submission_time")), beyond


def job_rows_of(data: RunData, workload: Workload, window: Window | None) -> ClassedRows:
    """Return the rows of a run. Raises InputError if its files are missing, malformed or of another workload."""
    jobs = data.jobs
    origins = origins_of(jobs, workload, file_of(data.prefix, "jobs"))
    waited_or_ran, beyond = unfinished(jobs, window)
    kinds = kinds_of(jobs, origins, beyond)
    return ClassedRows(jobs, origins, kinds, chains_of(jobs, origins, kinds), waited_or_ran, beyond)


def job_facts_of(workload: Workload, reference_flops: float) -> JobFacts:
    """Return facts of jobs at a full speed in flop/s. Raises InputError for an invalid `release_s` or `length_s`."""
    jobs, left = workload.jobs, run_times_s(workload, reference_flops)
    release, length = np.full(len(jobs), math.nan), left.copy()
    for name, values in ((RELEASE, release), (LENGTH, length)):
        for index in [index for index, job in enumerate(jobs) if name in job.raw]:
            values[index] = _field(workload, jobs[index], name)
    submit, cores = ([getattr(job, name) for job in jobs] for name in ("submit_time_s", "hosts"))
    return JobFacts(np.array(submit, dtype=np.float64), np.array(cores, dtype=np.float64), release, length, left)


def run_table_of(table: ClassedRows, workload: Workload, window: Window | None, reference_flops: float) -> RunTable:
    """Return the outcomes of rows of a workload under a window, at a full speed in flop/s.

    The default window is from 0 to the end of the last job, and every job of the workload counts as submitted by then.
    Raises InputError if a job of the workload has an invalid `release_s` or `length_s`.
    """
    jobs, origins, kinds, chains, beyond = table.jobs, table.origins, table.kinds, table.chains, table.beyond
    start, finish = numbers(jobs, "starting_time"), numbers(jobs, "finish_time")
    span = window or Window(0.0, float(np.nanmax(finish)) if np.isfinite(finish).any() else 0.0)
    inside = span.holds(finish)
    states = texts(jobs, "final_state")
    succeeded, stopped, rejected = (states == state for state in (SUCCESSFUL, KILLED, REJECTED))
    run = ~kinds.overhead
    whole = succeeded & run & ~kinds.saved
    completed, killed, saved, migrated = (inside & rows for rows in (whole, kinds.lost, kinds.saved, kinds.migrated))
    going = run & (start <= span.end_s) & span.after(finish)
    lives = (completed | beyond | kinds.saved)[chains.last]
    neither = (inside & ~completed & ~stopped & ~saved)[chains.last]
    lasted_s = np.minimum(finish, span.end_s) - np.maximum(start, span.begin_s)
    declared = job_facts_of(workload, reference_flops)
    completed_s = np.full(len(workload.jobs), math.nan)
    rows = np.flatnonzero(whole & origins.in_workload)
    np.fmax.at(completed_s, origins.job[rows], finish[rows])
    failed = run & ~beyond & np.where(rejected, origins.itself, ~succeeded & ~stopped)
    out = np.zeros(len(workload.jobs), dtype=np.bool_)
    out[origins.job[failed & origins.in_workload]] = True
    return RunTable(
        window=span,
        origins=origins,
        kinds=kinds,
        chains=chains,
        finish_s=finish,
        completed=completed,
        killed=killed,
        migrated=migrated,
        useful=completed | going | saved | (migrated & lives),
        aborted=killed | (migrated & ~lives & ~neither),
        lasted_s=lasted_s,
        cores=numbers(jobs, "requested_number_of_resources"),
        declared=declared,
        due=np.full(len(workload.jobs), True) if window is None else declared.submit_s <= span.end_s,
        out=out & np.isnan(completed_s),
        completed_s=completed_s,
        partly=completed & origins.in_workload & (texts(jobs, "metadata") == REMAINDER),
    )


def _field(workload: Workload, job: JobSpec, name: str) -> float:
    """Return the field of a job, a time in s >= 0 or a length in s > 0. Raises InputError for another value."""
    value = job.raw[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not (number and (value > 0 or (value == 0 and name == RELEASE))):
        problem = f"{name!r} must be {'>=' if name == RELEASE else '>'} 0 s, got {value!r}"
        raise InputError(f"{workload.source}: job {job.id!r}", problem, "correct it or leave it out")
    return float(value)
