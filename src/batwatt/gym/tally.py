"""Sums over jobs for rewards, as the figures of the run have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from batwatt.gym.horizon import Horizon
from batwatt.model.record import NULL_RUNTIME_S, JobRows
from batwatt.model.workload import CHECKPOINTED, MIGRATED, OVERHEAD
from batwatt.scheduling.jobs import ManagedJob
from batwatt.units import microseconds

_SAVED: Final = (CHECKPOINTED, MIGRATED)
"""Metadata of the attempts whose work is saved."""


@dataclass(slots=True)
class _Parts:
    """The start and the run time, in s, of the parts of a job whose work was saved.

    `migrated_core_s` are the core seconds of work that count as useful once the job completes.
    """

    start_s: float
    ran_s: float = 0.0
    migrated_core_s: float = 0.0


class Tally:
    """Sums over the `total` jobs of a workload, from the rows of the record and the decisions of the scheduler.

    A job whose work is saved by a victim rule runs in parts: it waits until the first of them, and its run time is that
    of all parts (`batwatt.results.parts`). With `dvfs` a job that reaches its walltime, but would not
    at full speed, counts as one that was lost.
    """

    def __init__(self, rows: JobRows, horizon: Horizon, flops: Mapping[str, float]) -> None:
        self.dvfs = False
        self._rows = rows
        self._row = 0
        self._horizon = horizon
        self._flops = flops
        self._parts: dict[str, _Parts] = {}
        self._lost_s: dict[str, float] = {}
        """Overhead in s of the lost attempts of a job, by its name."""
        self.total = len(horizon.jobs)
        self.all_flops = math.fsum(flops.values())
        self.waiting = 0
        """Jobs that wait for their first part."""
        self.waiting_since_s = 0.0
        """Sum of the first submissions in s of the jobs that wait for their first part."""
        self.waited_s = 0.0
        """Sum over the jobs that have started, and those that never will, of their waits."""
        self.unserved = 0
        """Jobs that were rejected or lost."""
        self.ended_wait_s = self.slowdowns = self.bounded_slowdowns = 0.0
        """Sums over the jobs that have ended, or never will run."""
        self.last_end_s = self.useful_core_s = self.done_flops = 0.0

    def queued(self, job: ManagedJob) -> None:
        """Count a job as waiting."""
        if job.name not in self._parts:
            self.waiting += 1
            self.waiting_since_s += job.submit_s

    def left_queue(self, job: ManagedJob) -> None:
        """Count a job as waiting no more."""
        if job.name not in self._parts:
            self.waiting -= 1
            self.waiting_since_s -= job.submit_s

    def started(self, job: ManagedJob) -> None:
        """Count the wait of a job that starts out of the queue."""
        self.left_queue(job)
        if job.name not in self._parts:
            self.waited_s += job.start_s - job.submit_s

    def unserved_job(self, job: ManagedJob) -> None:
        """Count a job that was rejected or lost as waiting until the horizon."""
        parts = self._parts.pop(job.name, None)
        if parts is not None:
            self.waited_s -= parts.start_s - job.submit_s
        self.unserved += 1
        times, end_s = self._horizon.jobs[job.name], self._horizon.end_s
        wait_s = end_s - job.submit_s
        self.waited_s += wait_s
        self.ended_wait_s += wait_s
        self.slowdowns += (wait_s + times.shortest_s) / times.shortest_s
        self.bounded_slowdowns += times.bounded_slowdown(end_s + times.full_s)

    def _last_row(self, job: ManagedJob) -> tuple[float, float, str]:
        """Return the run time, the overhead in it, both in s, and the metadata of the attempt that has just ended."""
        rows = self._rows
        self._row = row = rows.ids.index(job.job.id, self._row)
        ran_s, metadata = rows.ended[row] - rows.started[row], rows.metadata[row]
        overhead = OVERHEAD.search(metadata) if metadata else None
        if overhead is None:
            return ran_s, 0.0, metadata
        return ran_s, min(ran_s, float(overhead[1])), metadata[: overhead.start()].strip()

    def killed(self, job: ManagedJob, end_s: float) -> None:
        """Count an attempt that the scheduler killed: a part of its job if its work is saved, else lost."""
        ran_s, overhead_s, metadata = self._last_row(job)
        parts = self._parts.get(job.name)
        if metadata not in _SAVED:
            if parts is None:
                self.waited_s -= job.start_s - job.submit_s
            if overhead_s > 0.0:
                self._lost_s[job.name] = self._lost_s.get(job.name, 0.0) + overhead_s
            return
        if parts is None:
            parts = self._parts[job.name] = _Parts(job.start_s)
        parts.ran_s += microseconds(ran_s)
        core_s = _useful_core_s(job, end_s, ran_s, overhead_s)
        if metadata == MIGRATED:
            parts.migrated_core_s += core_s
        else:
            self.useful_core_s += core_s

    def ended(self, job: ManagedJob, end_s: float, completed: bool) -> None:
        """Add a job that ended by itself, with its times as the files have them (`JobRows.times`)."""
        if self.dvfs and not completed and self._horizon.jobs[job.name].full_s <= job.walltime_s:
            if job.name not in self._parts:
                self.waited_s -= job.start_s - job.submit_s
            self.last_end_s = max(self.last_end_s, end_s)
            self.unserved_job(job)
            return
        ran_s, overhead_s, _ = self._last_row(job)
        parts = self._parts.pop(job.name, None)
        if ran_s <= 0.0:
            ran_s, end_s = NULL_RUNTIME_S, microseconds(end_s + NULL_RUNTIME_S)
        ran_s = microseconds(ran_s)
        if parts is None:
            wait_s = job.start_s - job.submit_s
            self.slowdowns += (wait_s + ran_s) / ran_s
        else:
            wait_s = parts.start_s - job.submit_s
            self.slowdowns += (end_s - job.submit_s) / (parts.ran_s + self._lost_s.get(job.name, 0.0) + ran_s)
        self.ended_wait_s += wait_s
        self.bounded_slowdowns += self._horizon.jobs[job.name].bounded_slowdown(end_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if completed:
            self.useful_core_s += _useful_core_s(job, end_s, ran_s, overhead_s)
            self.useful_core_s += 0.0 if parts is None else parts.migrated_core_s
            self.done_flops += self._flops.get(job.name, 0.0)


def _useful_core_s(job: ManagedJob, end_s: float, ran_s: float, overhead_s: float) -> float:
    """Return the core seconds of work of the present attempt, without its overhead."""
    lasted_s = end_s - job.start_s
    return lasted_s * job.hosts * (1.0 - overhead_s / ran_s if overhead_s > 0.0 else 1.0)
