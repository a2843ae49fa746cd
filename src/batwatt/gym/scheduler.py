"""The scheduler of an episode: hosts by kind, limits, the queue that an agent sees, and the tally of rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.platform import NOISE_W, Host, Platform
from batwatt.model.record import NULL_RUNTIME_S, JobRows
from batwatt.model.timeline import Timeline, combined
from batwatt.results.figures import BOUND_S
from batwatt.scheduling.base import Scheduler, SchedulerOptions
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, request_s
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.victims import Resubmit, Victims
from batwatt.units import REPORTED_S, microseconds

OFF: Final = "off"
ON: Final = "on"


def host_actions(platform: Platform) -> list[tuple[str, int]]:
    """List the actions on hosts as (verb, kind of hosts), for kinds that can sleep.

    Raises InputError if no kind can, or a host begins in a p-state in which no job runs.
    """
    able = [kind for kind, (host, _) in enumerate(platform.members) if host.sleeps]
    if not (able and all(host.initial_pstate in host.compute for host in platform.hosts)):
        problem = "no host has p-states for off and on, or one begins in a p-state without jobs"
        raise InputError(platform.source, problem, "correct it, or leave out 'switch'")
    return [(verb, kind) for verb in (OFF, ON) for kind in able]


class HostControl:
    """Switching of hosts; sets of hosts are masks, vectors have an entry for each kind (K,).

    `actions` are pairs of a verb and a kind. `idle_since_s` says since when each host is on without a job.
    """

    def __init__(self, cluster: Cluster, actions: list[tuple[str, int]], bs: Any) -> None:
        platform = cluster.platform
        assert platform is not None
        self.cluster, self.actions, self._bs = cluster, actions, bs
        self._kinds = [host for host, _ in platform.members]
        self.members = [hosts for _, hosts in platform.members]
        self.idle_since_s = np.zeros(len(platform))
        self._group()

    @property
    def off(self) -> int:
        """The hosts that are asleep or switching."""
        return self.cluster.asleep | self.cluster.switching_on | self.cluster.switching_off

    # power ----------------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Group the hosts by their power in W without and with a job."""
        cluster = self.cluster
        conditions = (cluster.switching_off, cluster.switching_on, cluster.asleep, cluster.everyone & ~self.off)
        groups: dict[tuple[float, float], int] = {}
        for (kind, state), hosts in cluster.modes.items():
            for part in (hosts & condition for condition in conditions if hosts & condition):
                watts = self._watts(self._kinds[kind], state, part)
                groups[watts] = groups.get(watts, 0) | part
        self._idle_w = math.fsum(idle_w * hosts.bit_count() for (idle_w, _), hosts in groups.items())
        """Power in W of all hosts without a job."""
        # sums of floats depend on the order, which is that of the lowest hosts
        ordered = sorted(groups.items(), key=lambda group: group[1] & -group[1])
        self._groups = [(full_w - idle_w, hosts) for (idle_w, full_w), hosts in ordered]
        self._extra_w = np.zeros(cluster.count)
        """Power in W by which each host rises with a job."""
        for extra_w, hosts in self._groups:
            self._extra_w[hostset.ids(hosts)] = extra_w

    def _watts(self, host: Host, state: int, hosts: int) -> tuple[float, float]:
        """Return the power in W of each of `hosts`, of one kind and condition, without and with a job; see Eq. 2."""
        idle_w = host.pstates[state].idle_w
        if self.cluster.switching_off & hosts:
            idle_w = max(idle_w, host.pstates[host.sleep_of[state].switch_off].full_w)
        elif self.cluster.switching_on & hosts:
            idle_w = max(idle_w, host.pstates[host.sleeps[0].switch_on].full_w)
        return (idle_w, idle_w) if self.off & hosts else (idle_w, max(idle_w, host.pstates[state].full_w))

    def power_w(self, busy: int) -> float:
        """Return the power in W with jobs on the hosts of a mask, as the envelope bounds it."""
        watts = self._idle_w
        for extra_w, hosts in self._groups:
            watts += extra_w * (hosts & busy).bit_count()
        return watts

    def fitting(self, free: int, slack_w: float) -> int:
        """Return the number of hosts of a mask, lowest ids first, whose power with jobs rises by up to `slack_w` W."""
        return int(np.searchsorted(np.cumsum(self._extra_w[hostset.ids(free)]), slack_w, side="right"))

    def _boot_w(self, kind: int) -> float:
        """Return the most W by which the power of all hosts rises once a host of a kind switches on."""
        host = self._kinds[kind]
        sleep, on = host.sleeps[0], host.pstates[host.initial_pstate]
        return max(host.pstates[sleep.switch_on].full_w, on.idle_w) - host.pstates[sleep.sleep].idle_w

    # actions --------------------------------------------------------------------------------------------------------

    def possible(self, slack_w: float, to_come: bool, must_act: bool) -> list[bool]:
        """Return a flag for each action, True if it is possible.

        `slack_w` is what the envelope leaves in W. Without anything `to_come` no host is switched off; where the agent
        `must_act` the envelope does not count.
        """
        flags = []
        for verb, kind in self.actions:
            if verb == OFF:
                flags.append(to_come and bool(self.cluster.free & self.members[kind]))
            else:
                allowed = must_act or self._boot_w(kind) <= slack_w + NOISE_W
                flags.append(allowed and bool(self.cluster.asleep & self.members[kind]))
        return flags

    def carry_out(self, verb: str, kind: int) -> None:
        """Carry out an action: `off` takes the host of the kind that is idle longest, `on` the lowest id asleep."""
        host, members = self._kinds[kind], self.members[kind]
        if verb == ON:
            mask, state = hostset.lowest(self.cluster.asleep & members, 1), host.initial_pstate
        else:
            idle = hostset.ids(self.cluster.free & members)
            mask, state = 1 << min(idle, key=lambda each: (self.idle_since_s[each], -each)), host.sleeps[0].sleep
        self.cluster.now_s = self._bs.time()
        self.cluster.set_pstate(mask, state)
        self._bs.set_resource_state(HostSet(mask), state)
        self._group()

    def arrived(self, mask: int, state: int) -> int:
        """Note hosts that arrive in a p-state, and return them; others were sent to another p-state since then."""
        mask &= self.cluster.in_pstate(state)
        self.idle(mask & self.cluster.switching_on)
        self.cluster.arrived(mask)
        self._group()
        return mask

    def idle(self, mask: int) -> None:
        """Note that hosts are on without a job from now."""
        if self.actions:
            self.idle_since_s[hostset.ids(mask)] = self._bs.time()

    # observations of an agent ---------------------------------------------------------------------------------------

    def counts(self, mask: int) -> NDArray[np.float64]:
        """Count the hosts of a mask by kind, (K,)."""
        return np.array([float((mask & members).bit_count()) for members in self.members])

    def longest_idle_s(self) -> NDArray[np.float64]:
        """Return the s for which the host of each kind that is idle longest has been so; 0 without one; (K,)."""
        now_s = self._bs.time()
        idle = [self.idle_since_s[hostset.ids(self.cluster.free & members)] for members in self.members]
        return np.array([now_s - float(since.min()) if len(since) else 0.0 for since in idle])


class Limits:
    """The limits of a run, followed in time: `cap_w` and `capacity` hold now, infinite without such a limit.

    `next_s` is the time in s of the next change (infinite: none), `next_cap_w` and `next_capacity` hold from then on.
    `most` is how many hosts can have jobs at a time after the last change; under limits that change for ever, now and
    then. `idle_w` is the power of all hosts without a job, `most_w` with one each.
    """

    def __init__(self, platform: Platform, envelope: Timeline | None, capacity: Timeline | None) -> None:
        states = [host.pstates[host.initial_pstate] for host in platform.hosts]
        self.idle_w = sum(state.idle_w for state in states)
        extra_w = [max(0.0, state.full_w - state.idle_w) for state in states]
        self.most_w = self.idle_w + sum(extra_w)
        self.active = envelope is not None or capacity is not None
        self._envelope, self._capacity = envelope, capacity
        series = [one for one in (envelope, capacity) if one is not None]
        numbers: dict[tuple[float, ...], int] = {}
        self.both: Timeline | None = None
        """The limits as one series of numbers of their values, which repeats if one of them does."""
        last_s: Sequence[float] = (0.0,)
        if series:
            self.both = combined(series, lambda values: numbers.setdefault(tuple(values), len(numbers)))
            last_s = self.both.times_s[-1 if self.both.loop is None else self.both.loop :]
        sums_w = np.cumsum(extra_w)
        self.most = max(self._hosts(sums_w, time_s) for time_s in last_s)
        self.begin()

    def _hosts(self, sums_w: npt.NDArray[np.float64], time_s: float) -> int:
        slack_w = _value(self._envelope, time_s) - self.idle_w + NOISE_W
        fed = int(np.searchsorted(sums_w, slack_w, side="right"))
        return int(min(fed, _value(self._capacity, time_s)))

    def begin(self) -> None:
        """Go back to 0 s."""
        self._update(0.0)

    def _update(self, now_s: float) -> None:
        self.cap_w, self.capacity = _value(self._envelope, now_s), _value(self._capacity, now_s)
        series = (one for one in (self._envelope, self._capacity) if one is not None)
        self.next_s = min((one.next_change(now_s) for one in series), default=math.inf)
        next_s = now_s if self.next_s == math.inf else self.next_s
        self.next_cap_w, self.next_capacity = _value(self._envelope, next_s), _value(self._capacity, next_s)

    def step(self) -> None:
        """Go on to the next change."""
        self._update(self.next_s)


def _value(series: Timeline | None, time_s: float) -> float:
    """Return the limit of a series at a time, infinite without a series."""
    return math.inf if series is None else series.at(time_s)


NEVER_S: Final = 1e15
"""Time in s in place of an infinite one in observations."""
_NO_JOB: Final = np.array((math.inf, 0.0, 0.0, 1.0, 0.0, 0.0))
"""The figures of a place without a job."""


class Visible:
    """The waiting jobs `rows`, the first `places` of them with their figures in arrays.

    `needs` and `hosts` are the hosts that they ask for, `walltime_s` their requests, `lasting_s` those or what bounds
    a slowdown, `submit_s` their first submissions, `present` is 1 where a job is. Where none is, `needs` are infinite,
    `lasting_s` 1 s, the others 0.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.rows: list[Job] = []
        self._figures = np.repeat(_NO_JOB[:, None], places, axis=1)
        self.needs, self.hosts, self.walltime_s, self.lasting_s, self.submit_s, self.present = self._figures

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, job: Job) -> None:
        """Put a job at the end."""
        self.rows.append(job)
        if len(self.rows) <= self.places:
            self._show(len(self.rows) - 1)

    def pop(self, place: int) -> Job:
        """Take a visible job out; those behind it move up."""
        last = min(len(self.rows), self.places) - 1
        job = self.rows.pop(place)
        if place < last:
            self._figures[:, place:last] = self._figures[:, place + 1 : last + 1]
        self._show(last)
        return job

    def _show(self, place: int) -> None:
        """Write the figures of a place."""
        if place >= len(self.rows):
            self._figures[:, place] = _NO_JOB
            return
        job = self.rows[place]
        walltime_s = min(job.request_s, NEVER_S)
        self._figures[:, place] = (job.hosts, job.hosts, walltime_s, max(walltime_s, BOUND_S), job.submit_s, 1.0)


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

    def queued(self, job: Job) -> None:
        """Count a job as waiting."""
        self.waiting += 1
        self.waiting_since_s += job.submit_s

    def started(self, job: Job) -> None:
        """Count the wait of a job that starts out of the queue."""
        self.waiting -= 1
        self.waiting_since_s -= job.submit_s
        self.waited_s += job.start_s - job.submit_s

    def killed(self, job: Job) -> None:
        """Take back the wait of a job that the scheduler killed."""
        self.waited_s -= job.start_s - job.submit_s

    def ended(self, job: Job, end_s: float, completed: bool) -> None:
        """Add a job that ended by itself, with its times as the files have them (`JobRows.times`)."""
        rows = self._rows
        self._row = row = rows.ids.index(job.attempt.id, self._row)
        ran_s = rows.ended[row] - rows.started[row]
        if ran_s <= 0.0:
            ran_s, end_s = NULL_RUNTIME_S, microseconds(end_s + NULL_RUNTIME_S)
        ran_s = microseconds(ran_s)
        self.slowdowns += (job.start_s - job.submit_s + ran_s) / ran_s
        self.bounded_slowdowns += self._jobs[job.name].bounded_slowdown(end_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if completed:
            self.useful_core_s += (end_s - job.start_s) * job.hosts


_GOOD: Final[Any] = BatsimJob.State.COMPLETED_SUCCESSFULLY


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
    def running(self) -> Mapping[str, Job]:
        """The running jobs by the id of the attempt, in the order in which they started."""
        return self.lifecycle.jobs

    @property
    def to_come(self) -> bool:
        """True if an end or a submission of a job, or a change of the limit is to come."""
        return bool(self.lifecycle.jobs) or self._unseen > 0 or self.limits.next_s < math.inf

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
        job = self.queue.pop(place)
        self.cluster.now_s = self.bs.time()
        self.waiting_hosts -= job.hosts
        self.lifecycle.jobs[job.attempt.id] = job
        job.estimate_s = job.request_s
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
        self.cluster = Cluster(self.room, Queue(FirstCome()), platform, transitions=self.transitions)
        self.control = HostControl(self.cluster, self._actions, self.bs)
        self.limits.begin()
        self.lifecycle.wake_at(self.limits.next_s, self.bs.time())
        self.lifecycle.wake_at(self._next_tick_s, self.bs.time())

    def onJobSubmission(self, attempt: BatsimJob) -> None:
        """Let a job of the workload wait; reject it if the limits are too low for it in the end."""
        if self.lifecycle.acknowledged(attempt):
            return
        self._unseen -= 1
        self._changed = True
        hosts = self.bs.nb_compute_resources
        if attempt.requested_resources <= self.limits.most:
            self.lifecycle.live += 1
            job = Job(self._jobs - self._unseen, attempt)
            job.request_s = request_s(attempt.requested_time, attempt.json_dict, attempt.id)
            self._wait(job)
        else:
            wide = f"wider than the platform of {hosts} hosts"
            why = wide if attempt.requested_resources > hosts else "too wide for the limits"
            self.lifecycle.refuse([attempt], why)

    def onJobCompletion(self, job: BatsimJob) -> None:
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
        managed.attempt = self._victims.register_next(job, following)
        managed.renew()
        # it begins from zero
        managed.request_s = requested_s
        self._wait(managed)

    def onSimulationEnds(self) -> None:
        """Report nothing: the figures of the episode tell how many jobs were rejected."""

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note hosts that arrived in a p-state: those that came on are free."""
        self.lifecycle.has_events = self._changed = True
        arrived = self.control.arrived(mask, pstate)
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
            self.queue.pop(self.queue.rows.index(job))
            self.waiting_hosts -= job.hosts
        self.lifecycle.live -= len(stalled)
        if stalled:
            self.lifecycle.refuse([job.attempt for job in stalled], why)
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
        excess: list[Job] = []
        for job in reversed(self.lifecycle.jobs.values()):
            if not self._exceeded(busy):
                break
            busy ^= job.mask
            excess.insert(0, job)
        for job in excess:
            if not job.dying:
                self._victims.killed(job.attempt, now_s - job.start_s, now_s - job.start_s)
        self.lifecycle.kill(excess)
        self.lifecycle.wake_at(limits.next_s, now_s)

    def _wait(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        self._changed = True
        self.queue.add(job)
        self.waiting_hosts += job.hosts
        self.tally.queued(job)
