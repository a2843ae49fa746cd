"""The state of the hosts as the scheduler tracks it, from its decisions and from Batsim's messages.

Sets of hosts are integer masks (`batwatt.model.hostset`). A host is in exactly one of `idle`, `busy`, `asleep`,
`switching_on`, `switching_off`; `draining` hosts are busy or idle ones that will be put to sleep once a kill has taken
effect; hosts out of service (`transitions`) lie over all of these. `version` counts the changes of what is free and of
what runs. `needed_share` is the largest share of its walltime at the fastest speed that a job has needed so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.platform import Platform
from batwatt.scheduling.node_selection import Nodes, NodeSelection
from batwatt.scheduling.passes import ClusterView, Start
from batwatt.scheduling.queue import Ends, Queue, Waiting
from batwatt.scheduling.transitions import Transitions
from batwatt.units import microseconds


class Running:
    """A job that runs, with what the scheduler can know of its progress.

    `work_flops` is the estimated work per server, `done_flops` what its slowest server has executed so far.
    """

    work_flops = 0.0
    done_flops = 0.0
    speed_flops = 0.0

    def __init__(self, waiting: Waiting, mask: int, now_s: float) -> None:
        self.job = waiting.job
        self.serial = waiting.serial
        self.mask = mask
        self.hosts = waiting.hosts
        self.walltime_s = waiting.walltime_s
        self.start_s = now_s
        self.deadline_s = microseconds(now_s + waiting.walltime_s)
        self.since_s = now_s
        self.ticket: Any = None

    def done_by(self, now_s: float) -> float:
        """Flops per server done by `now_s` (Ef_j)."""
        return self.done_flops + self.speed_flops * (now_s - self.since_s)


class Cluster(ClusterView):
    """The machine as the scheduler sees it; parts read it, only the scheduler's base changes it."""

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
        self.running: dict[str, Running] = {}
        self.ends = Ends()
        self.needed_share: float | None = None
        hosts = platform.hosts if platform else ()
        self.pstate = [host.initial_pstate for host in hosts]
        self._at: dict[float, int] = {}
        """Speed in flop/s -> the hosts that have it now."""
        for index, host in enumerate(hosts):
            speed = host.pstates[host.initial_pstate].speed_flops
            self._at[speed] = self._at.get(speed, 0) | 1 << index

    @property
    def free(self) -> int:
        """Hosts on which a job can start now."""
        return self.idle & ~(self.draining | self.transitions.away)

    @property
    def locked(self) -> int:
        """Hosts whose state nobody may change now: in transition, draining or away."""
        return self.switching_on | self.switching_off | self.draining | self.transitions.away

    def select(self, waiting: Waiting, free: int) -> int:
        """The hosts for a job among free ones, by the node selection; 0 if too few suit it."""
        selection = self.selection
        if selection is None:
            return hostset.lowest(free, waiting.hosts)
        ids = np.array(hostset.ids(free), dtype=np.int64)
        ones = np.ones(len(ids), dtype=np.int64)
        states = []
        if self.platform is not None:
            states = [self.platform.hosts[i].pstates[self.pstate[i]] for i in ids.tolist()]
        watts = np.array([state.full_w for state in states] or ones * np.nan)
        speeds = np.array([state.speed_flops for state in states] or ones * np.nan)
        best = selection.preferred(Nodes(ids, ones, ones, watts, speeds), waiting.hosts)[: waiting.hosts]
        return sum(1 << i for i in ids[best].tolist()) if len(best) == waiting.hosts else 0

    def carry_out(self, starts: list[Start], bs: Any) -> list[Running]:
        """Start jobs, by `bs`."""
        runs = []
        for start in starts:
            waiting = start.waiting
            self.queue.remove(waiting)
            runs.append(self.start(waiting, start.mask))
            waiting.job.allocation = HostSet(start.mask)
            bs.execute_job(waiting.job)
        return runs

    def start(self, waiting: Waiting, mask: int) -> Running:
        """A job starts."""
        run = Running(waiting, mask, self.now_s)
        self.idle &= ~mask
        self.busy |= mask
        self.running[waiting.job.id] = run
        self.version += 1
        run.ticket = self.ends.add(run.deadline_s, run.serial, run.hosts)
        if self.platform is not None:
            run.speed_flops = self.slowest(mask)
        return run

    def end(self, job_id: str) -> Running | None:
        """A job ended, in whatever way."""
        run = self.running.pop(job_id, None)
        if run is not None:
            self.version += 1
            self.busy &= ~run.mask
            self.idle |= run.mask
            self.ends.remove(run.ticket)
        return run

    def learn(self, run: Running, fastest_flops: float) -> None:
        """A job is done: how much of what its walltime allowed at the fastest speed did it need?"""
        if 0.0 < run.walltime_s < math.inf:
            share = run.done_by(self.now_s) / (run.walltime_s * fastest_flops)
            self.needed_share = max(self.needed_share or 0.0, min(1.0, share))

    def set_pstate(self, mask: int, pstate: int) -> None:
        """DVFS at once, or the beginning of a transition (`pstate` is then where it leads)."""
        platform = self.platform
        assert platform is not None
        self.version += 1
        before = self.switching_on | self.switching_off
        for host in hostset.ids(mask):
            bit = 1 << host
            sleeps = platform.hosts[host].sleep_of
            if pstate in sleeps:
                self.idle &= ~bit
                self.switching_off |= bit
            elif self.asleep & bit:
                self.asleep &= ~bit
                self.switching_on |= bit
            self.pstate[host] = pstate
            for speed in self._at:
                self._at[speed] &= ~bit
            speed = platform.hosts[host].pstates[pstate].speed_flops
            self._at[speed] = self._at.get(speed, 0) | bit
        switching = (self.switching_on | self.switching_off) & ~before
        if switching:
            self.transitions.began(switching, pstate, self.now_s)
        for run in self.running.values():
            if run.mask & mask:
                run.done_flops = run.done_by(self.now_s)
                run.since_s = self.now_s
                run.speed_flops = self.slowest(run.mask)

    def arrived(self, mask: int) -> None:
        """Transitions ended."""
        self.version += 1
        self.idle |= mask & self.switching_on
        self.asleep |= mask & self.switching_off
        self.switching_on &= ~mask
        self.switching_off &= ~mask

    def hosts_changed(self) -> None:
        """Hosts failed, came back or went away: those that are away will not be free when their jobs end."""
        self.version += 1
        for run in self.running.values():
            self.ends.remove(run.ticket)
            present = (run.mask & ~self.transitions.away).bit_count()
            run.ticket = self.ends.add(run.deadline_s, run.serial, present)

    def slowest(self, mask: int) -> float:
        """Speed in flop/s of the slowest host of a set, which rules a parallel job."""
        return min([speed for speed, hosts in self._at.items() if hosts & mask], default=math.inf)
