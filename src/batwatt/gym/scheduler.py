"""The scheduler that an agent is: it starts the jobs that the agent chooses, and obeys the limits by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from batwatt.gym.limits import Limits
from batwatt.gym.queue import NEVER_S, Visible
from batwatt.gym.tally import Tally
from batwatt.model import hostset
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.options import VICTIM, PartChoice, SchedulerOptions
from batwatt.scheduling.queue import Ends
from batwatt.scheduling.registry import make
from batwatt.scheduling.transitions import outage
from batwatt.scheduling.victims import Lose, VictimRule, Victims
from batwatt.units import REPORTED_S

_GOOD: Final[Any] = Job.State.COMPLETED_SUCCESSFULLY


class AgentOptions(SchedulerOptions):
    """Options of the scheduler that an agent is."""

    victim: PartChoice = Field("resubmit", description=VICTIM)


class AgentScheduler(Scheduler[AgentOptions]):
    """Schedules as an agent decides, under limits.

    The agent decides between a message and its answer if `undecided`, by calls of `start` and `wait`. Sets of hosts are
    masks: `busy` hosts have jobs, `free` ones are in service and have none. `room` is how many hosts can be given to
    jobs; `fits` which visible jobs can start; `finished` if all jobs of the workload are over.
    """

    Options: ClassVar[type[AgentOptions]] = AgentOptions
    tally: Tally
    """Set before the simulation begins."""

    def __init__(self, options: Mapping[str, Any], limits: Limits, places: int, every_event: bool) -> None:
        super().__init__(options)
        self.rule: VictimRule = make("victim", self.settings.victim)
        self.limits = limits
        self.queue = Visible(places)
        self.ends = Ends()
        self.undecided = self.finished = False
        self.waiting_hosts = self.busy = self.free = self.room = 0
        self._every_event = every_event
        self._mask = np.zeros(places + 1, dtype=np.int8)
        self.fits = self._mask[:-1].view(np.bool_)
        self._any_fits = self._changed = False

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Whether killed jobs are submitted again."""
        return self.limits.active and not isinstance(self.rule, Lose)

    # what an agent sees and does ------------------------------------------------------------------------------------

    @property
    def running(self) -> Mapping[str, ManagedJob]:
        """The running jobs by the id of the attempt, in the order in which they started."""
        return self.lifecycle.states

    @property
    def can_wait(self) -> bool:
        """Whether anything is to come."""
        jobs_to_come = bool(self.lifecycle.states) or self._unseen > 0
        return jobs_to_come or self.limits.next_s < math.inf or self.hosts_may_return

    def mask(self) -> NDArray[np.int8]:
        """Which actions are possible, 1 or 0, (places + 1,)."""
        mask = self._mask.copy()
        mask[-1] = self.finished or self.can_wait
        return mask

    def start(self, place: int) -> None:
        """Start a visible job on the free hosts of lowest ids; `undecided` if another one can start now."""
        job = self.queue.take(place)
        job.start_s = self.bs.time()
        job.mask = hostset.lowest(self.free, job.hosts)
        self.busy |= job.mask
        self.free ^= job.mask
        self.waiting_hosts -= job.hosts
        self.lifecycle.states[job.job.id] = job
        self._expect_end(job)
        self.tally.started(job)
        self.lifecycle.execute(job, job.mask)
        self._look()

    def wait(self) -> None:
        """Decide nothing more now."""
        self.undecided = False

    def head_shadow_s(self) -> float:
        """In how many s the first waiting job can start if all that runs lasts as long as its walltime."""
        rows, free = self.queue.rows, self.free.bit_count()
        if not rows or rows[0].hosts <= free:
            return 0.0
        return max(0.0, min(NEVER_S, self.ends.shadow(rows[0].hosts, free)[0] - self.bs.time()))

    def _expect_end(self, job: ManagedJob) -> None:
        """Note when the hosts in service of a running job become free at the latest."""
        hosts = (job.mask & self._in_service).bit_count()
        job.plan = self.ends.add(job.start_s + job.walltime_s, job.number, hosts)

    def _look(self) -> None:
        """Find out which visible jobs can start."""
        self.room = self.limits.room(self.free, self.busy) if self.limits.active else self.free.bit_count()
        if self.room and self.queue.rows:
            np.less_equal(self.queue.needs, float(self.room), out=self.fits)
            # faster than `any`
            self._any_fits = b"\1" in self.fits.tobytes()
        elif self._any_fits:
            self.fits[:] = self._any_fits = False
        self.undecided = self._any_fits or self._every_event

    # what pybatsim calls --------------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """The hosts are known, and the first change of a limit is asked for."""
        super().onSimulationBegins()
        platform = self.platform
        assert platform is not None
        self._unseen = self.tally.total
        self.room = self.bs.nb_compute_resources
        self.free = self._in_service = hostset.span(0, self.room - 1)
        self._paces = [
            host.pstates[host.initial_pstate].speed_flops / platform.fastest_flops for host in platform.hosts
        ]
        self._lengths = JobLengths(self.bs, platform.fastest_flops)
        self._victims = Victims(self.rule, self.lifecycle, self._lengths)
        self.limits.begin()
        self.lifecycle.wake_at(self.limits.next_s, self.bs.time())

    def onJobSubmission(self, job: Job) -> None:
        """A job of the workload waits, unless it can never run."""
        if not self.lifecycle.acknowledged(job):
            self._unseen -= 1
            self.lifecycle.live += 1
            self._wait(ManagedJob(self.tally.total - self._unseen, job))

    def onJobCompletion(self, job: Job) -> None:
        """An attempt has ended: the job is over, or waits again."""
        managed, killed = self.lifecycle.ended(job)
        self.busy ^= managed.mask
        self.free |= managed.mask & self._in_service
        self.ends.remove(managed.plan)
        self._changed = True
        if not killed:
            self.lifecycle.live -= 1
            self.tally.ended(managed, job.finish_time, job.job_state is _GOOD)
            return
        self.tally.killed(managed, job.finish_time)
        following = self._victims.next_of(job)
        managed.mask = 0
        if following is None:
            self._never_served(managed)
            return
        managed.job = self._victims.again(job, following)
        managed.renew()
        self._wait(managed)

    def onNoMoreExternalEvents(self) -> None:
        """Hosts that are away stay away: jobs that need them can never run."""
        super().onNoMoreExternalEvents()
        if self.transitions.away:
            self.limits.serve(self._in_service)
            self._reject_wider()
            self._changed = True

    def onSimulationEnds(self) -> None:
        """The figures of the episode tell how many jobs were rejected."""

    def hosts_changed(self) -> None:
        """Expect ends of jobs to free only the hosts in service."""
        self._changed = True
        self._in_service = hostset.span(0, self.bs.nb_compute_resources - 1) & ~self.transitions.out
        self.free = self._in_service & ~self.busy
        self.ends = Ends()
        for job in self.lifecycle.states.values():
            self._expect_end(job)

    def onNoMoreEvents(self) -> None:
        """Obey a new limit, and find out whether there is something to decide."""
        changed, self._changed, self.undecided = self._changed, False, False
        if self.finished:
            return
        if self.limits.active and self.limits.next_s <= self.bs.time() + REPORTED_S:
            self._follow(self.bs.time())
            changed = True
        self.finished = not (self._unseen or self.lifecycle.live)
        if self.finished:
            self.fits[:] = False
            if self.needs_dynamic_jobs:
                self.lifecycle.close(True)
        elif changed and not self.lifecycle.pending:
            self._look()

    # jobs that cannot run on ----------------------------------------------------------------------------------------

    def _follow(self, now_s: float) -> None:
        """Obey the new limit: reject what can never run any more, kill what runs above it."""
        limits = self.limits
        while limits.next_s <= now_s + REPORTED_S:
            limits.step()
        self._reject_wider()
        busy = self.busy
        excess: list[ManagedJob] = []
        for job in reversed(self.lifecycle.states.values()):
            if not limits.exceeded(busy):
                break
            busy ^= job.mask
            excess.insert(0, job)
        for job in excess:
            if not job.dying:
                took_s = now_s - job.start_s
                self._victims.killed(job.job, took_s * self._pace(job), took_s)
        self.lifecycle.kill(excess)
        self.lifecycle.wake_at(limits.next_s, now_s)

    def _pace(self, job: ManagedJob) -> float:
        """How many s of work at the fastest speed a running job does in a second."""
        return min(self._paces[host] for host in hostset.ids(job.mask)) if self._lengths.scales(job.job) else 1.0

    def _wait(self, job: ManagedJob) -> None:
        """Put a job at the end of the queue, or reject it if it can never run."""
        self._changed = True
        if job.hosts > self.limits.most:
            self._reject(job)
            return
        self.queue.add(job)
        self.waiting_hosts += job.hosts
        self.tally.queued(job)

    def _reject_wider(self) -> None:
        """Reject the waiting jobs that can never run any more."""
        for job in self.queue.take_wider(self.limits.most):
            self.waiting_hosts -= job.hosts
            self.tally.left_queue(job)
            self._reject(job)

    def _reject(self, job: ManagedJob) -> None:
        hosts = self.bs.nb_compute_resources
        if job.hosts > hosts:
            why = f"wider than the platform of {hosts} hosts"
        elif job.hosts <= self.limits.most_of_all:
            why = outage(self.transitions.away)
        else:
            why = "too wide for the limits to come"
        self.lifecycle.refuse([job.job], why)
        self._never_served(job)

    def _never_served(self, job: ManagedJob) -> None:
        self.lifecycle.live -= 1
        self.tally.unserved_job(job)
