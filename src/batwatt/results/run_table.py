"""What became of each run of a window: whether its work counts, how long its job is, how long that waited.

Runs may come in parts: see `parts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batwatt.errors import InputError
from batwatt.model.window import Window
from batwatt.model.workload import LENGTH, RELEASE, REMAINDER, WINDOW_OVER, Delay, Job, Workload
from batwatt.results.columns import KILLED, REJECTED, SUCCESSFUL
from batwatt.results.origins import Origins, origins_of
from batwatt.results.parts import Chains, Floats, Kinds, Mask, chains_of, kinds_of
from batwatt.results.run_data import Columns, RunData, numbers, texts
from batwatt.results.writers import file_of
from batwatt.units import LAG_S


@dataclass(frozen=True, slots=True)
class JobRows:
    """The rows of `jobs.csv`: whose runs they are, of what kind, and which belong together.

    `waited_or_ran` and `beyond` are the sets of `unfinished`.
    """

    jobs: Columns
    origins: Origins
    kinds: Kinds
    chains: Chains
    waited_or_ran: Mask
    beyond: Mask


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the workload says of its jobs, in its order: times and lengths in s, NaN where it is silent.

    `length_s` is that of the whole job, `left_s` that of its first run, shorter if it was released before the window.
    """

    submit_s: Floats
    cores: Floats
    release_s: Floats
    length_s: Floats
    left_s: Floats


@dataclass(frozen=True)
class RunTable:
    """The rows of `jobs.csv` (and the jobs of the workload) under a window.

    `completed`, `killed` and `migrated` are the runs that ended so in the window. `useful` and `aborted` are the rows
    whose work is; `lasted_s` is their time in the window, `work_core_s` that times cores. If runs may be `slowed` down,
    that is no work: of one that took longer than the workload says, it is less in the same ratio. `partly` are the
    completed runs that count with what their job had left at first only. Of the jobs of the workload, `due` were
    submitted by the end of the window, `out` were refused or failed by then and never completed; `completed_s` is when
    the others did, whenever, NaN for never.
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
    slowed: bool = False

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
        """Work in one second of each row, 1 unless it was slowed down or counts in part."""
        pace = self.kinds.productive.copy()
        if self.slowed:
            # a job may have stood still between its parts
            took_s = np.where(self.chains.several, self.chains.work_s, self.finish_s - self.chains.start_s)
            longer = took_s > self.expected_s + LAG_S
            pace[longer] *= self.expected_s[longer] / took_s[longer]
        job = self.origins.job[self.partly]
        share = self.declared.left_s[job] / self.declared.length_s[job]
        pace[self.partly] *= np.where(np.isnan(share), 1.0, share)
        return pace

    @cached_property
    def wait_s(self) -> Floats:
        """From the first submission of the job to the start of the run."""
        return self.chains.start_s - self.origins.submit_s

    @cached_property
    def expected_s(self) -> Floats:
        """How long the run is to take at full speed by the workload; NaN where that does not say."""
        origins, first = self.origins, self.chains.first
        whole, left = self._by_row(self.declared.length_s), self._by_row(self.declared.left_s)
        return np.where(origins.itself[first] & ~np.isnan(left), left, whole)

    @cached_property
    def job_length_s(self) -> Floats:
        """Length of each job of the workload: as declared, else of its longest run, NaN if it never ran."""
        lengths = self.declared.length_s.copy()
        job, ran_s = self.origins.job, self.chains.work_s
        rows = np.flatnonzero(self.origins.known & ~self.kinds.overhead & ~np.isnan(ran_s))
        rows = rows[np.isnan(lengths[job[rows]])]
        np.fmax.at(lengths, job[rows], ran_s[rows])
        return lengths

    @cached_property
    def length_s(self) -> Floats:
        """Length of the job of each row; of one that the scheduler made up, how long the run took."""
        return np.where(self.origins.known, self._by_row(self.job_length_s), self.chains.work_s)

    def _by_row(self, values: Floats) -> Floats:
        """The values of jobs of the workload, for each row; NaN for what the scheduler made up."""
        return np.append(values, math.nan)[self.origins.job]


def unfinished(jobs: Columns, window: Window | None) -> tuple[Mask, Mask]:
    """Two sets of rows: the jobs that waited or ran when the window ended, and all rows of later times.

    The metadata `WINDOW_OVER` of a rejected job means waiting, with or without a window. What was submitted after the
    end neither waited nor ran then.
    """
    beyond = (texts(jobs, "final_state") == REJECTED) & (texts(jobs, "metadata") == WINDOW_OVER)
    if window is None:
        return beyond, beyond
    beyond = beyond | window.after(numbers(jobs, "finish_time"))
    return beyond & ~window.after(numbers(jobs, "submission_time")), beyond


def job_rows_of(data: RunData, workload: Workload, window: Window | None) -> JobRows:
    """The rows of a run. Raises InputError if its files are missing, malformed or of another workload."""
    jobs = data.jobs
    origins = origins_of(jobs, workload, file_of(data.prefix, "jobs"))
    waited_or_ran, beyond = unfinished(jobs, window)
    kinds = kinds_of(jobs, origins, beyond)
    return JobRows(jobs, origins, kinds, chains_of(jobs, origins, kinds), waited_or_ran, beyond)


def job_facts_of(workload: Workload) -> JobFacts:
    """What the workload says. Raises InputError if a job has a `release_s` or a `length_s` that is none."""
    jobs = workload.jobs
    durations = {name: p.duration_s for name, p in workload.profiles.items() if isinstance(p, Delay)}
    left = np.array([durations.get(job.profile, math.nan) for job in jobs], dtype=np.float64)
    release, length = np.full(len(jobs), math.nan), left.copy()
    for name, values in ((RELEASE, release), (LENGTH, length)):
        for index in [index for index, job in enumerate(jobs) if name in job.raw]:
            values[index] = _field(workload, jobs[index], name)
    submit, cores = ([getattr(job, name) for job in jobs] for name in ("submit_time_s", "hosts"))
    return JobFacts(np.array(submit, dtype=np.float64), np.array(cores, dtype=np.float64), release, length, left)


def run_table_of(found: JobRows, workload: Workload, window: Window | None, slowed: bool = False) -> RunTable:
    """What became of the rows that were `found` of this workload under this window; `slowed`: see `RunTable`.

    Without a window it is from 0 to the end of the last job, and every job of the workload counts as submitted by then.
    Raises InputError if a job of the workload has a `release_s` or a `length_s` that is none.
    """
    jobs, origins, kinds, chains, beyond = found.jobs, found.origins, found.kinds, found.chains, found.beyond
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
    declared = job_facts_of(workload)
    completed_s = np.full(len(workload.jobs), math.nan)
    rows = np.flatnonzero(whole & origins.known)
    np.fmax.at(completed_s, origins.job[rows], finish[rows])
    failed = run & ~beyond & np.where(rejected, origins.itself, ~succeeded & ~stopped)
    out = np.zeros(len(workload.jobs), dtype=np.bool_)
    out[origins.job[failed & origins.known]] = True
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
        partly=completed & origins.known & (texts(jobs, "metadata") == REMAINDER),
        slowed=slowed,
    )


def _field(workload: Workload, job: Job, name: str) -> float:
    """The field of a job, a time in s >= 0 or a length in s > 0; InputError otherwise."""
    value = job.raw[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not (number and (value > 0 or (value == 0 and name == RELEASE))):
        problem = f"{name!r} must be {'>=' if name == RELEASE else '>'} 0 s, got {value!r}"
        raise InputError(f"{workload.source}: job {job.id!r}", problem, "correct it or leave it out")
    return float(value)
