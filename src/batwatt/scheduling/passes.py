"""The passes of backfillings over a queue, which are made at each end of a job: compiled where that is possible.

A cluster is seen through `ClusterView`; a pass returns starts with disjoint sets of free hosts, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import final

from mypy_extensions import mypyc_attr

from batwatt.scheduling.queue import Ends, Gap, Queue, Waiting
from batwatt.units import microseconds


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


def _start(cluster: ClusterView, starts: list[Start], waiting: Waiting, free: int) -> int:
    """Start a job on the hosts that it gets of the free ones; returns what stays free, all if none of them will do."""
    mask = cluster.select(waiting, free)
    if mask:
        starts.append(Start(waiting, mask))
    return free & ~mask


def walk(cluster: ClusterView, passes_over: bool) -> list[Start]:
    """Start waiting jobs in order; one that does not fit is passed over, or stops those behind it."""
    starts: list[Start] = []
    free = cluster.free
    if not free:
        return starts
    queue, now_s, gap = cluster.queue, cluster.now_s, Gap(free.bit_count())
    for waiting in queue.fitting(now_s, gap) if passes_over else queue.ordered(now_s):
        left = _start(cluster, starts, waiting, free) if waiting.hosts <= gap.free else free
        if left == free:
            if passes_over:
                continue
            break
        free = left
        gap.free -= waiting.hosts
        if not gap.free:
            break
    return starts


def _without(serials: set[int], candidates: Iterator[Waiting]) -> Iterator[Waiting]:
    for waiting in candidates:
        if waiting.serial not in serials:
            yield waiting


@final
class EasyPass:
    """The passes of EASY backfilling; one that started nothing is not made again for the same jobs."""

    def __init__(self) -> None:
        # (epoch, head, shadow time, spare hosts) of a pass that started nothing
        self._last: tuple[int, Waiting, float, int] | None = None

    def place(self, cluster: ClusterView) -> list[Start]:
        """Heads that fit, then backfilled jobs, in order of the queue."""
        starts: list[Start] = []
        queue, now_s, free = cluster.queue, cluster.now_s, cluster.free
        in_order = queue.ordered(now_s) if free else iter(())
        head = next(in_order, None)
        if head is None:
            return starts
        count = free.bit_count()
        last = self._last
        if last is not None and last[0] == cluster.version and last[1] is head and queue.time_invariant:
            # only submissions since the last pass: who was refused then is refused now, as the window shrinks
            if queue.new:
                queue.new.sort(key=_sort_key)
                self._backfill(cluster, starts, queue.new, free, Gap(count, microseconds(last[2] - now_s), last[3]))
            return starts
        if head.hosts <= count:
            for waiting in chain((head,), in_order):
                left = _start(cluster, starts, waiting, free) if waiting.hosts <= count else free
                if left == free:
                    head = waiting
                    break
                free = left
                count -= waiting.hosts
            else:
                return starts
        if not count or len(queue.rows) == len(starts) + 1:
            return starts
        shadow_s, extra = (
            self._shadow(cluster, head.hosts, count, starts) if starts else cluster.ends.shadow(head.hosts, count)
        )
        gap = Gap(count, microseconds(shadow_s - now_s), extra)
        # the head is too wide to be among them, or may run nowhere
        candidates = queue.fitting(now_s, gap)
        if starts:
            chosen = {start.waiting.serial for start in starts}
            candidates = _without(chosen, candidates)
        self._backfill(cluster, starts, candidates, free, gap)
        self._last = None if starts else (cluster.version, head, shadow_s, extra)
        return starts

    def _backfill(
        self, cluster: ClusterView, starts: list[Start], candidates: Iterable[Waiting], free: int, gap: Gap
    ) -> None:
        """Add the candidates that fit without delaying the head, in order."""
        for waiting in candidates:
            late = waiting.walltime_s > gap.window_s
            if waiting.hosts > gap.free or (late and waiting.hosts > gap.extra):
                continue
            left = _start(cluster, starts, waiting, free)
            if left == free:
                continue
            if late:
                gap.extra -= waiting.hosts
            free = left
            gap.free -= waiting.hosts
            if not gap.free:
                break

    def _shadow(self, cluster: ClusterView, needed: int, free: int, starts: list[Start]) -> tuple[float, int]:
        """Shadow time and spare hosts, counting the jobs that are about to start."""
        ends, now_s = cluster.ends, cluster.now_s
        rows = [start.waiting for start in starts]
        tickets = [ends.add(microseconds(now_s + row.walltime_s), row.serial, row.hosts) for row in rows]
        try:
            return ends.shadow(needed, free)
        finally:
            for ticket in tickets:
                ends.remove(ticket)
