"""The engine of backfilling: which candidates start now, in order; compiled where that is possible.

A system has two parts in it: the candidates, as its queue orders them, and a `Room` that they start in. `FreeHosts` is
the room of a cluster, seen through `ClusterView`: its starts have disjoint sets of free hosts, and change nothing yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from batwatt.scheduling.queue import Ends, Gap, Queue, Waiting
from batwatt.units import microseconds


@mypyc_attr(allow_interpreted_subclasses=True)
class Room:
    """What jobs may start in; `is_open` until nothing more fits.

    A queue may leave out jobs beyond `limits`, which only fall: the room checks each job itself.
    """

    def __init__(self) -> None:
        self.limits: Final = Gap()
        self.is_open = True

    def take(self, job: Any) -> bool:
        """Start a job; returns False if it does not fit, now or beside a reservation."""
        raise NotImplementedError

    def reserve(self, job: Any) -> bool:
        """Reserve for a job that does not fit; returns False if it gets no reservation, so that the next one may."""
        raise NotImplementedError

    def behind(self, candidates: Iterator[Any]) -> Iterator[Any]:
        """Select candidates behind the first job that does not fit: all of them, unless a room weighs whole sets."""
        return candidates


def backfill(rule: str, candidates: Iterator[Any], room: Room) -> None:
    """Start candidates in order; one that does not fit is passed over, stops those behind it, or gets a reservation.

    `rule`: pass, stop or reserve (`Backfilling.blocked`).
    """
    unreserved = rule == "reserve"
    blocked = False
    while room.is_open:
        job = next(candidates, None)
        if job is None:
            break
        if room.take(job):
            continue
        if rule == "stop":
            break
        if unreserved:
            unreserved = not room.reserve(job)
        if not blocked:
            blocked = True
            candidates = room.behind(candidates)


@final
class Start:
    """Start a waiting job on the hosts of a mask."""

    __slots__ = ("mask", "waiting")

    def __init__(self, waiting: Waiting, mask: int) -> None:
        self.waiting = waiting
        self.mask = mask


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterView:
    """What a backfilling sees: free hosts (a mask), the queue, the ends of running jobs, the time in s.

    `version` counts the changes of what is free and of what runs; `select` gives the hosts for a job among free ones,
    or 0 if it may not run there.
    """

    now_s: float
    version: int
    queue: Queue
    ends: Ends

    @property
    def free(self) -> int:
        """The free hosts."""
        raise NotImplementedError

    def select(self, waiting: Waiting, free: int) -> int:
        """The hosts for a job."""
        raise NotImplementedError


_sort_key = attrgetter("sort_key")


@final
class FreeHosts(Room):
    """The free hosts of a cluster; a reservation counts hosts, until its shadow time and beyond it."""

    def __init__(self, cluster: ClusterView) -> None:
        super().__init__()
        self.cluster = cluster
        self.version = cluster.version
        self.free = cluster.free
        self.count = self.free.bit_count()
        self.is_open = self.count > 0
        self.starts: list[Start] = []
        self.head: Waiting | None = None
        """The job that has the reservation."""
        self.shadow_s = math.inf

    def take(self, job: Any) -> bool:
        """See `Room`."""
        waiting: Waiting = job
        limits, hosts = self.limits, waiting.hosts
        if hosts > self.count:
            return False
        late = waiting.walltime_s > limits.window_s
        if late and hosts > limits.extra:
            return False
        mask = self.cluster.select(waiting, self.free)
        if not mask:
            return False
        self.starts.append(Start(waiting, mask))
        self.free &= ~mask
        self.count -= hosts
        self.is_open = self.count > 0
        if late:
            limits.extra -= hosts
        if limits.free < math.inf:
            limits.free = float(self.count)
        return True

    def reserve(self, job: Any) -> bool:
        """See `Room`: a job that never fits gets one that delays no other."""
        cluster, ends, now_s = self.cluster, self.cluster.ends, self.cluster.now_s
        if len(cluster.queue.rows) == len(self.starts) + 1:
            self.is_open = False
            return True
        rows = [start.waiting for start in self.starts]
        tickets = [ends.add(microseconds(now_s + row.walltime_s), row.serial, row.hosts) for row in rows]
        shadow_s, extra = ends.shadow(job.hosts, self.count)
        for ticket in tickets:
            ends.remove(ticket)
        self.hold(job, shadow_s, float(extra))
        return True

    def hold(self, head: Waiting, shadow_s: float, extra: float) -> None:
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

    def place(self, cluster: ClusterView, rule: str) -> list[Start]:
        """The jobs that start now, in order of the queue, by a rule of `backfill`."""
        room = FreeHosts(cluster)
        if not room.is_open or not cluster.queue.rows:
            return room.starts
        queue, last = cluster.queue, self._last
        if last is not None and last.version == room.version and queue.time_invariant and last.head is queue.rows[0]:
            # only submissions since the last pass: what was refused then is refused now, as the window shrinks
            queue.new.sort(key=_sort_key)
            room.hold(queue.rows[0], last.shadow_s, last.limits.extra)
            backfill("pass", iter(queue.new), room)
            return room.starts
        if rule == "pass":
            room.limits.free = float(room.count)
        backfill(rule, queue.fitting(cluster.now_s, room.limits), room)
        self._last = None if room.starts or room.head is None else room
        return room.starts
