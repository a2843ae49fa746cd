"""Replaying a job log: every job at its recorded start, as a Batsim scheduler (docs/howto/own-jobs.md)."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import ClassVar

from pydantic import Field

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.workload import RELEASE, START_S
from batwatt.scheduling.base import OptionValues, Scheduler, SchedulerOptions
from batwatt.scheduling.cluster import Cluster, outage
from batwatt.scheduling.job import BatsimJob, Job, number_in
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Queue
from batwatt.units import LAG_S, REPORTED_S

TO_THE_SECOND_S = 1.0
"""A job that starts less than this many s after its record has started at it: logs have whole seconds."""


class ReplayOptions(SchedulerOptions):
    """Options of the scheduler `replay` (docs/howto/own-jobs.md)."""

    strict: bool = Field(
        False, description="stop if a job finds no room at its recorded start; else it waits for room, and is counted"
    )


class Replay(Scheduler[ReplayOptions]):
    """Starts every job at its recorded start (`start_s`), to check a platform against a log, or to measure the log.

    A job without a recorded start starts at its submission, as does one that ran when the window began. A job that
    finds too few free hosts waits, and starts as soon as there are enough, the earlier recorded start first.
    """

    Options: ClassVar[type[ReplayOptions]] = ReplayOptions

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        self._coming: list[tuple[float, int, Job[float]]] = []
        """(start in s, number, job) of jobs to come; the `state` of a job is that start if it is recorded, else NaN."""
        self._waiting: list[Job[float]] = []
        self._submitted = self._unrecorded = 0
        self._late: list[tuple[float, str]] = []
        """Delay in s and id of each job that started later than recorded."""

    def onSimulationBegins(self) -> None:
        """Set all hosts idle."""
        super().onSimulationBegins()
        self.cluster = Cluster(self.bs.nb_compute_resources, Queue(FirstCome()), transitions=self.transitions)

    def onJobSubmission(self, attempt: BatsimJob) -> None:
        """Take in a job, to be started at its recorded start."""
        if attempt.requested_resources > self.cluster.count:
            self.lifecycle.reject([attempt], f"wider than the platform of {self.cluster.count} hosts")
            return
        self._submitted += 1
        now_s, raw = self.bs.time(), attempt.json_dict or {}
        recorded_s = number_in(raw, START_S, math.nan, attempt.id, zero=True) if RELEASE not in raw else math.nan
        self._unrecorded += math.isnan(recorded_s)
        start_s = recorded_s if recorded_s > now_s else now_s
        job = Job(self._submitted, attempt, state=math.nan if math.isnan(recorded_s) else start_s)
        self.lifecycle.jobs[attempt.id] = job
        heappush(self._coming, (start_s, job.number, job))

    def onJobCompletion(self, job: BatsimJob) -> None:
        """Free the hosts of a job."""
        self.cluster.end(self.lifecycle.ended(job)[0])

    def onNoMoreEvents(self) -> None:
        """Start jobs that are due and have room."""
        if not self.bs.running_simulation:
            return
        self.cluster.now_s = now_s = self.bs.time()
        while self._coming and self._coming[0][0] <= now_s + REPORTED_S:
            self._waiting.append(heappop(self._coming)[2])
        self._waiting = [job for job in self._waiting if not self._start(job, now_s)]
        if self._coming:
            self.lifecycle.wake_at(self._coming[0][0], now_s)
        elif self._waiting and not (self.lifecycle.more_jobs or self.cluster.running or self.hosts_may_return):
            # nothing runs, so that they are wider than the hosts that are left
            self.lifecycle.reject([job.attempt for job in self._waiting], outage(self.transitions.away))
            self._waiting.clear()

    def _start(self, job: Job[float], now_s: float) -> bool:
        """Start a job; return False if there is no room yet."""
        free = self.cluster.free
        # NaN without a record: that is never late
        late_s = now_s - job.state
        if self.settings.strict and late_s > LAG_S:
            # hosts that became free at the recorded start itself would have been reported then
            problem = f"job {job.name}: no room at its recorded start {job.state:.15g} s"
            raise InputError("replay", problem, "give a larger platform, or leave out the option 'strict'")
        if job.hosts > free.bit_count():
            return False
        mask = hostset.lowest(free, job.hosts)
        self.cluster.start(job, mask)
        if late_s >= TO_THE_SECOND_S:
            self._late.append((late_s, job.name))
        self.lifecycle.execute(job, mask)
        return True

    def onSimulationEnds(self) -> None:
        """Log the number of jobs that started at their recorded second."""
        super().onSimulationEnds()
        recorded = self._submitted - self._unrecorded
        text = f"{recorded - len(self._late)} of {recorded} recorded starts to the second"
        if self._late:
            delays_s = [late_s for late_s, _ in self._late]
            mean_s = math.fsum(delays_s) / len(delays_s)
            most_s, job = max(self._late)
            text += f"; {len(delays_s)} later for want of hosts, by {mean_s:.1f} s on average, {job} by {most_s:g} s"
        if self._unrecorded:
            text += f"; {self._unrecorded} without a record started at their submission"
        (self.logger.warning if self._late or self._unrecorded else self.logger.info)("replay: %s", text)
