"""The scheduler of an agent: it starts the jobs that the agent chooses, and obeys the limits by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batwatt.gym.hosts import HostControl, host_actions
from batwatt.gym.limits import Limits
from batwatt.gym.queue import NEVER_S, Visible
from batwatt.gym.tally import Tally
from batwatt.model import hostset
from batwatt.model.platform import NOISE_W, Platform
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.cluster import Cluster, Progress
from batwatt.scheduling.job_lengths import JobLengths, request_s
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.options import SchedulerOptions
from batwatt.scheduling.orders import Fcfs
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.victims import Resubmit, Victims
from batwatt.units import REPORTED_S

_GOOD: Final[Any] = Job.State.COMPLETED_SUCCESSFULLY


class AgentScheduler(Scheduler[SchedulerOptions]):
    """A scheduler by the decisions of an agent, under limits; killed jobs wait again, from zero.

    The agent decides between a message and its answer if `undecided`, by calls of `start`, `switch` and `wait`. Sets
    of hosts are masks. `room` is how many hosts can be given to jobs; `fits` which visible jobs can start; `finished`
    if all jobs of the workload are over. `control` carries out the actions on hosts, as (verb, kind), and knows the
    power. A moment begins every `every_s` s, too.
    """

    tally: Tally
    """Sums for rewards; set before the simulation begins."""

    cluster: Cluster
    control: HostControl

    def __init__(self, platform: Platform, jobs: int, limits: Limits, settings: Mapping[str, Any]) -> None:
        super().__init__({"platform": platform})
        self._jobs = self._unseen = jobs
        self._actions = host_actions(platform) if "switch" in settings else []
        self._every_s: float = settings.get("every_s", math.inf)
        self._next_tick_s = self._every_s
        places: int = settings["queue"]
        self.limits = limits
        self.queue = Visible(places)
        self.undecided = self.finished = False
        self.waiting_hosts = self.room = 0
        self._mask = np.zeros(places + 1 + len(self._actions), dtype=np.int8)
        self.fits = self._mask[:places].view(np.bool_)
        self._any_fits = self._changed = False

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True if killed jobs are submitted again."""
        return self.limits.active

    # observations and actions ---------------------------------------------------------------------------------------

    @property
    def running(self) -> Mapping[str, ManagedJob]:
        """The running jobs by the id of the attempt, in the order in which they started."""
        return self.lifecycle.states

    @property
    def to_come(self) -> bool:
        """True if an end or a submission of a job, or a change of the limit is to come."""
        return bool(self.lifecycle.states) or self._unseen > 0 or self.limits.next_s < math.inf

    @property
    def can_wait(self) -> bool:
        """True if anything is to come."""
        return self.to_come or self.hosts_may_return

    def mask(self) -> NDArray[np.int8]:
        """Return flags of the possible actions, 1 or 0, (places + 1 + actions on hosts,)."""
        mask = self._mask.copy()
        mask[self.queue.places] = self.finished or self.can_wait
        return mask

    def _exceeded(self, busy: int) -> bool:
        """Return whether jobs on the hosts of a mask exceed the present limits."""
        return busy.bit_count() > self.limits.capacity or self.control.power_w(busy) > self.limits.cap_w + NOISE_W

    def start(self, place: int) -> None:
        """Start a visible job on the free hosts of lowest ids; `undecided` if there is more to decide now."""
        job = self.queue.take(place)
        self.cluster.now_s = self.bs.time()
        self.waiting_hosts -= job.hosts
        self.lifecycle.states[job.job.id] = job
        job.estimate_s, job.plan = job.request_s, Progress()
        self.cluster.start(job, hostset.lowest(self.cluster.free, job.hosts))
        self.tally.started(job)
        self.lifecycle.execute(job, job.mask)
        if self._every_s < math.inf:
            self.lifecycle.wake_at(self._next_tick_s, job.start_s)
        self._look()

    def switch(self, number: int) -> None:
        """Carry out an action on hosts, by its number; `undecided` if there is more to decide now."""
        self.control.carry_out(*self._actions[number])
        self._look()

    def wait(self) -> None:
        """Decide nothing more now."""
        self.undecided = False

    def head_shadow_s(self) -> float:
        """Return the s after which the first waiting job can start if all running jobs last their whole walltimes."""
        rows, free = self.queue.rows, self.cluster.free.bit_count()
        if not rows or rows[0].hosts <= free:
            return 0.0
        return max(0.0, min(NEVER_S, self.cluster.ends.shadow(rows[0].hosts, free)[0] - self.bs.time()))

    def _look(self) -> None:
        """Update the visible jobs that can start, and the possible actions on hosts."""
        self.room = self._room()
        if self.room and self.queue.rows:
            np.less_equal(self.queue.needs, float(self.room), out=self.fits)
            # faster than `any`
            self._any_fits = b"\1" in self.fits.tobytes()
        elif self._any_fits:
            self.fits[:] = self._any_fits = False
        self.undecided = self._any_fits
        if self._actions:
            must_act = not (self._any_fits or self.can_wait)
            slack_w = self.limits.cap_w - self.control.power_w(self.cluster.busy)
            flags = self.control.possible(slack_w, self.to_come, must_act)
            self._mask[self.queue.places + 1 :] = flags
            self.undecided = self.undecided or any(flags)

    def _room(self) -> int:
        """Return the number of free hosts, the lowest ids first, that jobs can have now."""
        limits, free, busy = self.limits, self.cluster.free, self.cluster.busy
        if not limits.active:
            return free.bit_count()
        room = int(max(0, min(free.bit_count(), limits.capacity - busy.bit_count())))
        if limits.cap_w == math.inf:
            return room
        return min(room, self.control.fitting(free, limits.cap_w - self.control.power_w(busy) + NOISE_W))

    # what pybatsim calls --------------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Set up the hosts, and request a wake-up at the first change of a limit."""
        super().onSimulationBegins()
        platform = self.platform
        assert platform is not None
        self.room = self.bs.nb_compute_resources
        lengths = JobLengths(self.bs, platform.fastest_flops)
        self._victims = Victims(Resubmit(), self.lifecycle, lengths)
        self.cluster = Cluster(self.room, Queue(Fcfs()), platform, transitions=self.transitions)
        self.control = HostControl(self.cluster, self._actions, self.bs)
        self.limits.begin()
        self.lifecycle.wake_at(self.limits.next_s, self.bs.time())
        self.lifecycle.wake_at(self._next_tick_s, self.bs.time())

    def onJobSubmission(self, job: Job) -> None:
        """Let a job of the workload wait; reject it if the limits are too low for it in the end."""
        if self.lifecycle.acknowledged(job):
            return
        self._unseen -= 1
        self._changed = True
        hosts = self.bs.nb_compute_resources
        if job.requested_resources <= self.limits.most:
            self.lifecycle.live += 1
            state = ManagedJob(self._jobs - self._unseen, job)
            state.request_s = request_s(job.requested_time, job.json_dict, job.id)
            self._wait(state)
        else:
            wide = f"wider than the platform of {hosts} hosts"
            why = wide if job.requested_resources > hosts else "too wide for the limits"
            self.lifecycle.refuse([job], why)

    def onJobCompletion(self, job: Job) -> None:
        """End an attempt: the job is over, or waits again."""
        managed, killed = self.lifecycle.ended(job)
        self.control.idle(managed.mask)
        self.cluster.end(managed)
        self._changed = True
        if not killed:
            self.lifecycle.live -= 1
            self.tally.ended(managed, job.finish_time, job.job_state is _GOOD)
            return
        self.tally.killed(managed)
        following = self._victims.next_of(job)
        if following is None:
            self.lifecycle.live -= 1
            return
        requested_s = managed.request_s
        managed.job = self._victims.again(job, following)
        managed.renew()
        # it begins from zero
        managed.request_s = requested_s
        self._wait(managed)

    def onSimulationEnds(self) -> None:
        """Report nothing: the figures of the episode tell how many jobs were rejected."""

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Note hosts that arrived in a p-state: those that came on are free."""
        self.lifecycle.news = self._changed = True
        arrived = self.control.arrived(hostset.span(*nodeid), int(pstate))
        self.transitions.arrived(arrived)

    def _tick(self, now_s: float) -> bool:
        """Request the next moment of `every_s` while something is to come; return whether one begins now."""
        ticked = self._next_tick_s <= now_s + REPORTED_S
        if ticked:
            self._next_tick_s = (math.floor((now_s + REPORTED_S) / self._every_s) + 1) * self._every_s
        if self.to_come:
            self.lifecycle.wake_at(self._next_tick_s, now_s)
        return ticked

    def onNoMoreEvents(self) -> None:
        """Obey a new limit, and determine whether there is something to decide."""
        changed, self._changed, self.undecided = self._changed, False, False
        if self.finished:
            return
        if self.limits.active and self.limits.next_s <= self.bs.time() + REPORTED_S:
            self._follow(self.bs.time())
            changed = True
        stalled, why = self.stalled(self.limits.both, self.queue.rows)
        for job in stalled:
            self.queue.take(self.queue.rows.index(job))
            self.waiting_hosts -= job.hosts
        self.lifecycle.live -= len(stalled)
        if stalled:
            self.lifecycle.refuse([job.job for job in stalled], why)
        self.finished = not (self._unseen or self.lifecycle.live)
        if self._every_s < math.inf and not self.finished:
            changed = self._tick(self.bs.time()) or changed
        if self.finished:
            self._mask[:] = False
            if self.needs_dynamic_jobs:
                self.lifecycle.close(True)
        elif changed and not self.lifecycle.pending:
            self._look()

    # jobs above a new limit ------------------------------------------------------------------------------------------

    def _follow(self, now_s: float) -> None:
        """Obey the new limit: kill the jobs that started last, until the others are not above it."""
        limits = self.limits
        while limits.next_s <= now_s + REPORTED_S:
            limits.step()
        busy = self.cluster.busy
        excess: list[ManagedJob] = []
        for job in reversed(self.lifecycle.states.values()):
            if not self._exceeded(busy):
                break
            busy ^= job.mask
            excess.insert(0, job)
        for job in excess:
            if not job.dying:
                self._victims.killed(job.job, now_s - job.start_s, now_s - job.start_s)
        self.lifecycle.kill(excess)
        self.lifecycle.wake_at(limits.next_s, now_s)

    def _wait(self, job: ManagedJob) -> None:
        """Put a job at the end of the queue."""
        self._changed = True
        self.queue.add(job)
        self.waiting_hosts += job.hosts
        self.tally.queued(job)
