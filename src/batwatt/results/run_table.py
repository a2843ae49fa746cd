"""Table of a run: the rows of `jobs.csv` in a window, with the job, the kind, the chain and the outcome of each.

A run may come in parts, and take longer than its work. `batwatt.model.attempt` has the kinds of runs.

A *migrated* run was killed to go on elsewhere, as another run of the job with the rest (`MIGRATED`). A
*chain* is this run and those that follow it, up to one that was not migrated: one run, in parts. All parts end like
the last one; a chain whose rest waits at the end of the window goes on, a chain without the rest is aborted.

A *saved* run was killed to be checkpointed (`CHECKPOINTED`); its work counts, whatever the end of the job. If
the checkpoint, the next row of its job, was killed or failed, the run counts as killed, not as saved. After a
checkpoint, a kill without a checkpoint costs only the run since the checkpoint: the other runs are one chain, from the
first saved one to the one that completes, and each killed run is a chain of its own. Checkpoints and recoveries are
*overhead* (`CHECKPOINT`, `RECOVERY`): their rows are no run of the job, whatever their state. A *suspended*
run (`SUSPENDED`) was saved without a checkpoint, and so was each completed piece but the last (`PIECE`).

A run of any kind may have an overhead: seconds without work, in which the job wrote a checkpoint or recovered. The
work of the run is less in that ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.attempt import (
    CHECKPOINT,
    CHECKPOINTED,
    MIGRATED,
    PIECE,
    RECOVERY,
    REMAINDER,
    SUSPENDED,
    WINDOW_OVER,
    Attempt,
    job_of,
)
from batwatt.model.signal import Window
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE, JobSpec, Workload
from batwatt.results.run_files import KILLED, REJECTED, SUCCESSFUL, RunData, file_of, numbers, texts
from batwatt.units import LAG_S

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Chains:
    """For each row its chain: first and last row, and the start in s.

    `execution_s` is the time in which the job had its hosts, `work_s` is that time without the overhead. The execution
    of a saved job includes the overhead of its lost runs: it waits while it has no hosts, and during lost work.
    """

    first: Rows
    last: Rows
    start_s: Floats
    execution_s: Floats
    work_s: Floats

    @property
    def several(self) -> Mask:
        """Mask of the chains of several rows, between which the job may have waited."""
        return self.first != self.last


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


class RunTable:
    """The rows of `jobs.csv` (and the jobs of the workload) under a window: a column for each attribute.

    A row is of at most one of the kinds `migrated`, `saved`, `checkpoint` and `recovery`, most rows are of none.

    `job` is the index of the row's job in the workload, -1 for a job that the scheduler registered itself (not
    `in_workload`); `submit_s` the first submission of the job in s; `itself` distinguishes the job from its
    resubmissions. `beyond` are the rows of times after the window, `waited_or_ran` the jobs among them that waited or
    ran at its end. `lost` are the runs that the scheduler killed whose work was lost, `productive` is the share of work
    in each row's time.

    `completed` and `killed` are the runs that ended in this way in the window. `useful` and `aborted` are the rows of
    useful and aborted work, `rewarded` the useful ones of jobs that completed in the window; `lasted_s` is the time
    of rows in the window, `work_core_s` the product with cores. The work of a run longer than declared, as on slow
    hosts, is less in the same ratio. `partly` are the completed runs whose work is the declared rest of their job. Of
    the jobs of the workload, `due` were submitted by the end of the window, `out` were refused or failed by then and
    never completed; `completed_s` is the completion of the others, at any time, NaN for never.
    """

    def __init__(self, data: RunData, workload: Workload, window: Window | None, reference_flops: float) -> None:
        """Read the rows of a run of a workload under a window, at a full speed in flop/s.

        The default window is from 0 to the end of the last job, and every job of the workload counts as submitted by
        then. Raises InputError if files are missing, malformed or of another workload, or if a job of the workload has
        an invalid `release_s` or `length_s`.
        """
        jobs = data.jobs
        path = file_of(data.prefix, "jobs")
        submitted_s = numbers(jobs, "submission_time")
        self.job, self.submit_s, self.itself = origins_of(jobs["full_id"], submitted_s, workload, path, data.attempts)
        self.in_workload = self.job >= 0
        self.state, self.kind, self.cause = (texts(jobs, name) for name in ("final_state", "kind", "cause"))
        self.cores = numbers(jobs, "requested_number_of_resources")
        self.start_s, self.finish_s = numbers(jobs, "starting_time"), numbers(jobs, "finish_time")
        self._ran_s, self._overhead_s = numbers(jobs, "execution_time"), numbers(jobs, "overhead_s")
        # waiting at the end of the window, with or without a window; a later submission neither waits nor runs
        self.beyond = (self.state == REJECTED) & (self.cause == WINDOW_OVER)
        self.waited_or_ran = self.beyond
        if window is not None:
            self.beyond = self.beyond | window.after(self.finish_s)
            self.waited_or_ran = self.beyond & ~window.after(submitted_s)
        ends = np.isfinite(self.finish_s).any()
        self.window = window or Window(0.0, float(np.nanmax(self.finish_s)) if ends else 0.0)
        self._find_kinds()
        self.chains = self._chains()
        self.declared = job_facts_of(workload, reference_flops)
        whole_window = window is None
        self.due = np.full(len(workload.jobs), True) if whole_window else self.declared.submit_s <= self.window.end_s
        self._find_outcomes()

    def _find_kinds(self) -> None:
        """Set the columns of the kinds of rows."""
        self.productive = np.ones(len(self.kind))
        rows = np.flatnonzero((self._overhead_s > 0.0) & (self._ran_s > 0.0))
        self.productive[rows] = np.maximum(0.0, 1.0 - self._overhead_s[rows] / self._ran_s[rows])
        self.checkpoint, self.recovery = self.kind == CHECKPOINT, self.kind == RECOVERY
        self.overhead = self.checkpoint | self.recovery
        killed = self.state == KILLED
        self.migrated, self.saved = (self.kind == MIGRATED) & killed, (self.kind == CHECKPOINTED) & killed
        if self.saved.any():
            broken = self.checkpoint & ~self.beyond & (self.state != SUCCESSFUL)
            order, fresh = self._by_job(self.in_workload)
            self.saved[order[:-1]] &= ~(broken[order[1:]] & ~fresh[1:])
        self.saved |= ((self.kind == SUSPENDED) & killed) | ((self.kind == PIECE) & (self.state == SUCCESSFUL))
        self.lost = killed & ~(self.beyond | self.migrated | self.saved | self.overhead)

    def _find_outcomes(self) -> None:
        """Set the columns of the outcomes of rows and jobs."""
        window, job = self.window, self.job
        inside, run = window.holds(self.finish_s), ~self.overhead
        succeeded, stopped = self.state == SUCCESSFUL, self.state == KILLED
        whole = succeeded & run & ~self.saved
        self.completed, self.killed, saved = (inside & rows for rows in (whole, self.lost, self.saved))
        migrated = inside & self.migrated
        going = run & (self.start_s <= window.end_s) & window.after(self.finish_s)
        lives = (self.completed | self.beyond | self.saved)[self.chains.last]
        neither = (inside & ~self.completed & ~stopped & ~saved)[self.chains.last]
        self.useful = self.completed | going | saved | (migrated & lives)
        self.aborted = self.killed | (migrated & ~lives & ~neither)
        self.lasted_s = np.minimum(self.finish_s, window.end_s) - np.maximum(self.start_s, window.begin_s)
        self.partly = self.completed & self.in_workload & (self.kind == REMAINDER)
        count = len(self.declared.submit_s)
        self.completed_s = np.full(count, math.nan)
        rows = np.flatnonzero(whole & self.in_workload)
        np.fmax.at(self.completed_s, job[rows], self.finish_s[rows])
        # the last is for the index -1, of jobs that the scheduler made
        ended = np.append(window.holds(self.completed_s), False)
        self.rewarded = self.useful & np.where(self.in_workload, ended[job], self.completed[self.chains.last])
        failed = run & ~self.beyond & np.where(self.state == REJECTED, self.itself, ~succeeded & ~stopped)
        out = np.zeros(count, dtype=np.bool_)
        out[job[failed & self.in_workload]] = True
        self.out = out & np.isnan(self.completed_s)

    def _chains(self) -> Chains:
        """Return the chain of each row; without migrated and saved runs each row is a chain of its own."""
        start, execution = self.start_s, self._ran_s
        rows = np.arange(len(start))
        if not ((self.migrated | self.saved) & self.in_workload).any():
            return Chains(rows, rows, start, execution, execution * self.productive)
        order, fresh = self._by_job(self.in_workload & ~self.overhead)
        # first runs: rows up to one that was not migrated
        # then chains of runs, up to one that was neither saved nor lost
        begins = fresh.copy()
        begins[1:] |= ~self.migrated[order[:-1]]
        firsts = np.flatnonzero(begins)
        ends = order[np.append(firsts[1:], len(rows)) - 1]
        goes_on = self.saved[ends] | self.lost[ends]
        opens = fresh[firsts]
        opens[1:] |= ~goes_on[:-1]
        chain_of_run = np.where(self.lost[ends], len(rows) + np.arange(len(ends)), np.cumsum(opens))
        chain = chain_of_run[np.cumsum(begins) - 1]
        together = np.argsort(chain, kind="stable")
        order, chain = order[together], chain[together]
        firsts = np.flatnonzero(np.diff(chain, prepend=-1))
        lasts = np.append(firsts[1:], len(rows)) - 1
        lasted_s = np.nan_to_num(execution)
        single = firsts == lasts
        whole_s, work_s = (
            np.where(single, values[order[firsts]], np.add.reduceat(np.nan_to_num(values)[order], firsts))
            for values in (execution, execution * self.productive)
        )
        # overhead within lost runs, and rows of overhead
        apart = self.in_workload & (self.overhead | self.lost)
        each_s = (lasted_s * np.where(self.overhead, 1.0, 1.0 - self.productive))[apart]
        extra_s = np.bincount(self.job[apart], weights=each_s, minlength=int(self.job.max()) + 1)
        of_chain = order[firsts]
        whole_s += np.where(single, 0.0, extra_s[self.job[of_chain]])
        number = np.empty(len(rows), dtype=np.intp)
        number[order] = np.repeat(np.arange(len(firsts)), lasts - firsts + 1)
        first = order[firsts][number]
        return Chains(first, order[lasts][number], start[first], whole_s[number], work_s[number])

    def _by_job(self, counted: Mask) -> tuple[Rows, Mask]:
        """Return all rows sorted by job and time, waiting rows last, and a mask of the first row of each job.

        A row that is not `counted` is a group of its own, as jobs that the scheduler registered itself have no parts.
        """
        rows = np.arange(len(self.job))
        key = np.where(counted, self.job, self.job.max() + 1 + rows)
        times = (np.nan_to_num(values, nan=np.inf) for values in (self.finish_s, self.start_s))
        order = np.lexsort((rows, *times, key))
        fresh = np.ones(len(order), dtype=np.bool_)
        fresh[1:] = np.diff(key[order]) != 0
        return order, fresh

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
        pace = self.productive.copy()
        took_s = self.chains.work_s
        longer = took_s > self.expected_s + LAG_S
        pace[longer] *= self.expected_s[longer] / took_s[longer]
        job = self.job[self.partly]
        share = self.declared.left_s[job] / self.declared.length_s[job]
        pace[self.partly] *= np.where(np.isnan(share), 1.0, share)
        return pace

    @property
    def rejected(self) -> Mask:
        """Mask of rejected jobs, without those that waited at the end of the window."""
        return (self.state == REJECTED) & ~(self.beyond | self.overhead)

    @cached_property
    def wait_s(self) -> Floats:
        """Time in s from the first submission of the job to the start of the run."""
        return self.chains.start_s - self.submit_s

    @cached_property
    def expected_s(self) -> Floats:
        """Declared run time at full speed, in s; NaN without a declaration."""
        first = self.chains.first
        whole, left = self._by_row(self.declared.length_s), self._by_row(self.declared.left_s)
        return np.where(self.itself[first] & ~np.isnan(left), left, whole)

    @cached_property
    def job_length_s(self) -> Floats:
        """Length of each job of the workload in s: as declared, else of its longest run, NaN without a run."""
        lengths = self.declared.length_s.copy()
        job, ran_s = self.job, self.chains.work_s
        rows = np.flatnonzero(self.in_workload & ~self.overhead & ~np.isnan(ran_s))
        rows = rows[np.isnan(lengths[job[rows]])]
        np.fmax.at(lengths, job[rows], ran_s[rows])
        return lengths

    @cached_property
    def length_s(self) -> Floats:
        """Length of the job of each row in s; the run time for a job that the scheduler registered itself."""
        return np.where(self.in_workload, self._by_row(self.job_length_s), self.chains.work_s)

    def _by_row(self, values: Floats) -> Floats:
        """Return the value of each row's job; NaN for a job that the scheduler registered itself."""
        return np.append(values, math.nan)[self.job]


def origins_of(
    names: Sequence[str],
    submitted_s: Floats,
    workload: Workload,
    path: Path,
    attempts: Mapping[str, Attempt],
) -> tuple[Rows, Floats, Mask]:
    """Return the columns `job`, `submit_s` and `itself` of rows of `path` with full ids and submissions in s.

    Outside of the table of attempts, `3#1` is a resubmission of `3` unless the workload has a job `3#1`.
    Raises InputError if no row is of the workload.
    """
    index_of = {job.id: index for index, job in enumerate(workload.jobs)}
    job = np.array([index_of.get(name, -1) for name in names], dtype=np.intp)
    since_s = submitted_s.copy()
    itself = np.ones(len(names), dtype=np.bool_)
    roots: dict[int, str] = {}
    for row in np.flatnonzero(job < 0).tolist():
        name = names[row]
        roots[row] = attempts[name].job if name in attempts else job_of(name, index_of)
        job[row] = index_of.get(roots[row], -1)
        itself[row] = roots[row] == name
    ours = job >= 0
    if len(names) and len(index_of) and not ours.any():
        problem = f"neither job {names[0]!r} nor any other is in the workload {workload.source}"
        raise InputError(path, problem, "name the workload that was run")
    foreign = np.flatnonzero(~ours & ~itself).tolist()
    if foreign:
        wanted = {roots[row] for row in foreign}
        first = {names[row]: float(submitted_s[row]) for row in reversed(range(len(names))) if names[row] in wanted}
        for row in foreign:
            since_s[row] = min(since_s[row], first.get(roots[row], since_s[row]))
    declared_s = np.array([job.submit_time_s for job in workload.jobs])
    since_s[ours] = np.minimum(declared_s[job[ours]], submitted_s[ours])
    return job, since_s, itself


def job_facts_of(workload: Workload, reference_flops: float) -> JobFacts:
    """Return facts of jobs at a full speed in flop/s. Raises InputError for an invalid `release_s` or `length_s`."""
    jobs, left = workload.jobs, run_times_s(workload, reference_flops)
    release, length = np.full(len(jobs), math.nan), left.copy()
    for name, values in ((RELEASE, release), (LENGTH, length)):
        for index in [index for index, job in enumerate(jobs) if name in job.raw]:
            values[index] = _field(workload, jobs[index], name)
    submit, cores = ([getattr(job, name) for job in jobs] for name in ("submit_time_s", "hosts"))
    return JobFacts(np.array(submit, dtype=np.float64), np.array(cores, dtype=np.float64), release, length, left)


def _field(workload: Workload, job: JobSpec, name: str) -> float:
    """Return the field of a job, a time in s >= 0 or a length in s > 0. Raises InputError for another value."""
    value = job.raw[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not (number and (value > 0 or (value == 0 and name == RELEASE))):
        problem = f"{name!r} must be {'>=' if name == RELEASE else '>'} 0 s, got {value!r}"
        raise InputError(f"{workload.source}: job {job.id!r}", problem, "correct it or leave it out")
    return float(value)
