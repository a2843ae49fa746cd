"""Hosts of a scheduler of whole hosts, and the hosts out of service by limits of transitions or by events."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, Final, final

import numpy as np

from batwatt.model import hostset
from batwatt.model.platform import Host, Platform, PState
from batwatt.scheduling.job import Job
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.orders import Nodes, NodeSelection
from batwatt.scheduling.queue import Ends, Queue, Room, backfill
from batwatt.units import REPORTED_S, microseconds

LEAST_LIMIT_S: Final = 300.0
"""Least default limit of a transition, in s."""
DURATIONS: Final = 3.0
"""Default limit of a transition, in expected durations."""


@final
class Transitions:
    """Track hosts that switch on or off, and the hosts out of service; sets of hosts are masks.

    `limit_s` limits every transition; None: three times the duration that the platform gives, at least 300 s, and no
    limit without a platform. `failed` are the hosts past their limit, until they are reported in a p-state; `away`
    those that events took away.
    """

    def __init__(self, platform: Platform | None = None, limit_s: float | None = None) -> None:
        self.failed = 0
        self.away = 0
        self._limit_s = limit_s
        self._until: dict[float, int] = {}
        """Limit, as a time in s -> the hosts that switch until then at the latest."""
        self._kinds: tuple[tuple[Host, int], ...] = platform.members if platform else ()

    @property
    def out(self) -> int:
        """The hosts out of service."""
        return self.failed | self.away

    @property
    def pending(self) -> bool:
        """True if hosts switch within their limits."""
        return bool(self._until)

    @property
    def switching_s(self) -> float:
        """The longest time in s in which a host of the platform switches off and on again."""
        pairs = [(sleep.switch_off, sleep.switch_on, host) for host, _ in self._kinds for sleep in host.sleeps]
        return max((sum(_expected_s(host, way) for way in ways) for *ways, host in pairs), default=0.0)

    @property
    def next_s(self) -> float:
        """The next limit, as a time in s; infinite without one."""
        return min(self._until, default=math.inf)

    def began(self, mask: int, pstate: int, now_s: float) -> None:
        """Note hosts that begin to switch to a p-state, of sleep or of work."""
        if self._limit_s is not None or not self._kinds:
            self._add(mask, now_s + (math.inf if self._limit_s is None else self._limit_s))
            return
        for host, members in self._kinds:
            if members & mask:
                self._add(members & mask, now_s + _limit_of(host, pstate))

    def _add(self, mask: int, until_s: float) -> None:
        self._until[until_s] = self._until.get(until_s, 0) | mask

    def arrived(self, mask: int) -> bool:
        """Note hosts that are reported in a p-state; return whether some of them had failed."""
        for until_s, hosts in list(self._until.items()):
            left = hosts & ~mask
            if left != hosts:
                self._until[until_s] = left
                if not left:
                    del self._until[until_s]
        returned = bool(self.failed & mask)
        self.failed &= ~mask
        return returned

    def expire(self, now_s: float) -> int:
        """Take the hosts out of service whose limit has passed; return them."""
        failed = 0
        for until_s in [until_s for until_s in self._until if until_s <= now_s + REPORTED_S]:
            failed |= self._until.pop(until_s)
        self.failed |= failed
        return failed

    def set_away(self, mask: int, away: bool) -> None:
        """Take hosts away by an event, or bring them back."""
        self.away = self.away | mask if away else self.away & ~mask


def _limit_of(host: Host, pstate: int) -> float:
    """Return the default limit in s of a host's transition to a p-state."""
    sleep = host.sleep_of.get(pstate)
    virtual = [each.switch_on for each in host.sleeps] if sleep is None else [sleep.switch_off]
    return max(LEAST_LIMIT_S, *[DURATIONS * _expected_s(host, state) for state in virtual])


def _expected_s(host: Host, virtual: int) -> float:
    """Return the duration in s of a transition; 0 for one that never ends, whose host fails at its limit."""
    duration_s = host.pstates[virtual].duration_s
    return duration_s if duration_s < math.inf else 0.0


def outage(mask: int) -> str:
    """Return the reason why jobs can never run: these hosts are out of service."""
    return f"as {named(mask)} out of service"


def named(mask: int) -> str:
    """Return `host 3 is` or `hosts 1-3 are`."""
    text = hostset.to_text(mask)
    return f"host {text} is" if mask.bit_count() == 1 else f"hosts {text} are"


class Cluster:
    """The hosts of a platform; parts read them, only the base of a scheduler changes them."""

    def __init__(
        self,
        count: int,
        queue: Queue,
        platform: Platform | None = None,
        selection: NodeSelection | None = None,
        transitions: Transitions | None = None,
    ) -> None:
        self.count = count
        self.everyone = hostset.span(0, count - 1)
        self.queue = queue
        self.platform = platform
        self.selection = selection
        self.transitions = transitions or Transitions(platform)
        self.now_s = 0.0
        self.idle = self.everyone
        self.busy = self.asleep = self.switching_on = self.switching_off = 0
        self.draining = 0
        self.version = 0
        self.running: dict[str, Job] = {}
        """Running jobs by the id of the present attempt."""
        self.ends = Ends()
        self._tickets: dict[int, tuple[float, int, int]] = {}
        """Entry in `ends` of each job that runs, by number."""
        self.needed_share: float | None = None
        hosts = platform.hosts if platform else ()
        members: dict[tuple[int, int], list[int]] = {}
        for kind, host in zip(platform.kinds if platform else (), hosts, strict=True):
            members.setdefault((kind, host.initial_pstate), []).append(host.id)
        self.modes: dict[tuple[int, int], int] = {mode: hostset.of_ids(ids) for mode, ids in members.items()}
        """Kind of hosts and p-state -> the hosts in it or on the way to it; no empty set."""

    @property
    def free(self) -> int:
        """Hosts on which a job can start now."""
        return self.idle & ~(self.draining | self.transitions.away)

    @property
    def locked(self) -> int:
        """Hosts whose state must not change now: in transition, draining or away."""
        return self.switching_on | self.switching_off | self.draining | self.transitions.away

    def select(self, job: Job, free: int) -> int:
        """Return the hosts for a job among free ones, by the node selection."""
        selection = self.selection
        if selection is None:
            return hostset.lowest(free, job.hosts)
        ids = np.array(hostset.ids(free), dtype=np.int64)
        ones = np.ones(len(ids), dtype=np.int64)
        watts, speeds = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        for mode, hosts in self.modes.items():
            places = np.searchsorted(ids, np.array(hostset.ids(hosts & free), dtype=np.int64))
            state = self._state(mode)
            watts[places], speeds[places] = state.full_w, state.speed_flops
        best = selection.preferred(Nodes(ids, ones, ones, watts, speeds), job.hosts)[: job.hosts]
        return hostset.of_ids(sorted(ids[best].tolist()))

    def carry_out(self, starts: list[tuple[Job, int]], lifecycle: JobLifecycle) -> None:
        """Start jobs of the queue, each on the hosts of a mask."""
        for job, mask in starts:
            self.queue.remove(job)
            self.start(job, mask)
            lifecycle.execute(job, mask)

    def start(self, job: Job, mask: int) -> None:
        """Give a job its hosts from now on."""
        job.mask, job.start_s = mask, self.now_s
        self.idle &= ~mask
        self.busy |= mask
        self.running[job.attempt.id] = job
        self.version += 1
        end_s = microseconds(self.now_s + job.estimate_s)
        self._tickets[job.number] = self.ends.add(end_s, job.number, job.hosts)
        if self.platform is not None:
            job.begin_run(self.now_s, self.slowest(mask))

    def end(self, job: Job) -> None:
        """Free the hosts of a job whose run has ended; `job.attempt` is that run."""
        del self.running[job.attempt.id]
        self.version += 1
        self.busy &= ~job.mask
        self.idle |= job.mask
        job.mask = 0
        self.ends.remove(self._tickets.pop(job.number))

    def learn(self, job: Job, fastest_flops: float) -> None:
        """Update `needed_share` by a job that has succeeded."""
        if 0.0 < job.request_s < math.inf:
            share = job.executed_flops(self.now_s) / (job.request_s * fastest_flops)
            self.needed_share = max(self.needed_share or 0.0, min(1.0, share))

    def set_pstate(self, mask: int, pstate: int) -> None:
        """Set a p-state by DVFS at once, or begin the transition that leads to it."""
        platform = self.platform
        assert platform is not None
        self.version += 1
        before = self.switching_on | self.switching_off
        left = {mode: hosts & ~mask for mode, hosts in self.modes.items()}
        self.modes = {mode: hosts for mode, hosts in left.items() if hosts}
        for kind, part in platform.parts(mask):
            self.modes[kind, pstate] = self.modes.get((kind, pstate), 0) | part
            if pstate in platform.members[kind][0].sleep_of:
                self.idle &= ~part
                self.switching_off |= part
            else:
                self.switching_on |= self.asleep & part
                self.asleep &= ~part
        switching = (self.switching_on | self.switching_off) & ~before
        if switching:
            self.transitions.began(switching, pstate, self.now_s)
        for job in self.running.values():
            if job.mask & mask:
                job.set_speed(self.now_s, self.slowest(job.mask))

    def arrived(self, mask: int) -> None:
        """End the transitions of hosts."""
        self.version += 1
        self.idle |= mask & self.switching_on
        self.asleep |= mask & self.switching_off
        self.switching_on &= ~mask
        self.switching_off &= ~mask

    def hosts_changed(self) -> None:
        """Follow hosts that failed, came back or went away: those away will not be free when their jobs end."""
        self.version += 1
        for job in self.running.values():
            present = (job.mask & ~self.transitions.away).bit_count()
            self._expect(job, self._tickets[job.number][0], present)

    def _expect(self, job: Job, end_s: float, hosts: int) -> None:
        """Expect a job that runs to end at another time, with other hosts."""
        self.ends.remove(self._tickets[job.number])
        self._tickets[job.number] = self.ends.add(end_s, job.number, hosts)

    def end_s(self, job: Job) -> float:
        """Return the time in s at which a job that runs is expected to end."""
        return self._tickets[job.number][0]

    def correct_ends(self) -> None:
        """Double the estimates that are outrun, up to their bounds; no job is expected to end before now."""
        if not self.ends.rows or self.ends.rows[0][0] >= self.now_s:
            return
        for job in self.running.values():
            end_s, _, hosts = self._tickets[job.number]
            if end_s < self.now_s:
                job.double_estimate(self.now_s - job.start_s)
                self._expect(job, max(self.now_s, microseconds(job.start_s + job.estimate_s)), hosts)

    def slowest(self, mask: int) -> float:
        """Return the speed in flop/s of the slowest host of a set, which rules a parallel job."""
        speeds = [self._state(mode).speed_flops for mode, hosts in self.modes.items() if hosts & mask]
        return min(speeds, default=math.inf)

    def in_pstate(self, pstate: int) -> int:
        """Return the hosts in a p-state or on the way to it."""
        mask = 0
        for (_, state), hosts in self.modes.items():
            if state == pstate:
                mask |= hosts
        return mask

    def _state(self, mode: tuple[int, int]) -> PState:
        """Return the p-state of the hosts of a mode."""
        platform = self.platform
        assert platform is not None
        kind, state = mode
        return platform.members[kind][0].pstates[state]


_sort_key = attrgetter("sort_key")


@final
class FreeHosts(Room):
    """The free hosts of a cluster; a reservation counts hosts, until its shadow time and beyond it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.version = cluster.version
        self.free = cluster.free
        self.count = self.free.bit_count()
        self.is_open = self.count > 0
        self.starts: list[tuple[Job, int]] = []
        self.head: Job | None = None
        """The job that has the reservation."""
        self.shadow_s = math.inf

    def start(self, job: Any) -> bool:
        """See `Room`."""
        waiting: Job = job
        limits, hosts = self.limits, waiting.hosts
        if hosts > self.count:
            return False
        late = waiting.estimate_s > limits.window_s
        if late and hosts > limits.extra:
            return False
        mask = self.cluster.select(waiting, self.free)
        self.starts.append((waiting, mask))
        self.free &= ~mask
        self.count -= hosts
        self.is_open = self.count > 0
        if late:
            limits.extra -= hosts
        if limits.free < math.inf:
            limits.free = float(self.count)
        return True

    def reserve(self, job: Any) -> bool:
        """Reserve for a job (`Room.reserve`); one that never fits gets a reservation that delays no other."""
        cluster, ends, now_s = self.cluster, self.cluster.ends, self.cluster.now_s
        if len(cluster.queue.rows) == len(self.starts) + 1:
            self.is_open = False
            return True
        cluster.correct_ends()
        rows = [row for row, _ in self.starts]
        tickets = [ends.add(microseconds(now_s + row.estimate_s), row.number, row.hosts) for row in rows]
        shadow_s, extra = ends.shadow(job.hosts, self.count)
        for ticket in tickets:
            ends.remove(ticket)
        self.hold(job, shadow_s, float(extra))
        return True

    def hold(self, head: Job, shadow_s: float, extra: float) -> None:
        """Reserve for a job from a time in s on, at which `extra` hosts are to spare."""
        self.head, self.shadow_s = head, shadow_s
        limits = self.limits
        limits.free = float(self.count)
        limits.window_s, limits.extra = microseconds(shadow_s - self.cluster.now_s), extra


@final
class HostsPass:
    """The passes over a cluster; one that reserved and started nothing is not made again for the same jobs."""

    def __init__(self) -> None:
        self._last: FreeHosts | None = None

    def place(self, cluster: Cluster, rule: str) -> list[tuple[Job, int]]:
        """Return the jobs that start now, in order of the queue, by a rule of `backfill`."""
        room = FreeHosts(cluster)
        if not room.is_open or not cluster.queue.rows:
            return room.starts
        queue, last = cluster.queue, self._last
        aged = queue.ages.aged(cluster.now_s)
        if aged:
            last = None
        same = last is not None and last.version == room.version and last.shadow_s >= cluster.now_s
        if last is not None and same and queue.time_invariant and last.head is queue.rows[0]:
            # only submissions since the last pass: jobs refused then are refused now, as the window shrinks
            queue.new.sort(key=_sort_key)
            room.hold(queue.rows[0], last.shadow_s, last.limits.extra)
            backfill("pass", iter(queue.new), room)
            return room.starts
        if rule == "pass":
            room.limits.free = float(room.count)
        backfill(rule, queue.fitting(cluster.now_s, room.limits), room, aged)
        self._last = None if aged or room.starts or room.head is None else room
        return room.starts
