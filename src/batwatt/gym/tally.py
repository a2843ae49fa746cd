"""Sums over jobs for rewards, as the figures of the run have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from batwatt.model.record import NULL_RUNTIME_S, JobRows
from batwatt.results.slowdowns import BOUND_S
from batwatt.scheduling.jobs import ManagedJob
from batwatt.units import microseconds


class JobTimes(NamedTuple):
    """Times of a job in s: its release and its run time at full speed."""

    release_s: float
    full_s: float

    def bounded_slowdown(self, end_s: float) -> float:
        """Return the bounded slowdown of the job if it ends at `end_s`."""
        return max(1.0, (end_s - self.release_s) / max(BOUND_S, self.full_s))


class Tally:
    """Sums over the jobs of a workload that can run, from the rows of the record and the decisions of the scheduler.

    `jobs` are their times by id, `total` is their number. A job that is killed waits again since its submission.
    """

    def __init__(self, rows: JobRows, jobs: Mapping[str, JobTimes]) -> None:
        self._rows = rows
        self._row = 0
        self._jobs = jobs
        self.total = len(jobs)
        self.waiting = 0
        """Jobs that wait."""
        self.waiting_since_s = 0.0
        """Sum of the submissions in s of the jobs that wait."""
        self.waited_s = 0.0
        """Sum of the waits, in s, of jobs that run or have ended."""
        self.slowdowns = self.bounded_slowdowns = 0.0
        """Sums over the jobs that have ended."""
        self.last_end_s = self.useful_core_s = 0.0

    def queued(self, job: ManagedJob) -> None:
        """Count a job as waiting."""
        self.waiting += 1
        self.waiting_since_s += job.submit_s

    def started(self, job: ManagedJob) -> None:
        """Count the wait of a job that starts out of the queue."""
        self.waiting -= 1
        self.waiting_since_s -= job.submit_s
        self.waited_s += job.start_s - job.submit_s

    def killed(self, job: ManagedJob) -> None:
        """Take back the wait of a job that the scheduler killed."""
        self.waited_s -= job.start_s - job.submit_s

    def ended(self, job: ManagedJob, end_s: float, completed: bool) -> None:
        """Add a job that ended by itself, with its times as the files have them (`JobRows.times`)."""
        rows = self._rows
        self._row = row = rows.ids.index(job.job.id, self._row)
        ran_s = rows.ended[row] - rows.started[row]
        if ran_s <= 0.0:
            ran_s, end_s = NULL_RUNTIME_S, microseconds(end_s + NULL_RUNTIME_S)
        ran_s = microseconds(ran_s)
        self.slowdowns += (job.start_s - job.submit_s + ran_s) / ran_s
        self.bounded_slowdowns += self._jobs[job.name].bounded_slowdown(end_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if completed:
            self.useful_core_s += (end_s - job.start_s) * job.hosts
