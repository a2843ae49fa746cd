"""Placements: which waiting jobs start now, and where (powercap paper, section V-B).

A placement sees the cluster and its queue and returns starts; it changes nothing. Hosts are taken in the order of
their ids. Asleep, switching, draining and unavailable hosts are not available.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from batwatt.model import hostset
from batwatt.scheduling.registry import register
from batwatt.systems.powercap.cluster import Cluster
from batwatt.systems.powercap.queue import Waiting
from batwatt.units import microseconds


class Start(NamedTuple):
    """Start a waiting job on the hosts of a mask."""

    waiting: Waiting
    mask: int


class Placement(ABC):
    """Base of placements; `time_invariant` if the passing of time alone never makes it start a job."""

    name = ""
    time_invariant = False

    @abstractmethod
    def place(self, cluster: Cluster) -> list[Start]:
        """The jobs to start now, with disjoint sets of free hosts."""


_sort_key = attrgetter("sort_key")


def _take(starts: list[Start], waiting: Waiting, free: int) -> int:
    """Start a job on the lowest free hosts; returns what stays free."""
    mask = hostset.lowest(free, waiting.hosts)
    starts.append(Start(waiting, mask))
    return free & ~mask


@register("placement", "first-fit", "ff", "firstfit")
class FirstFit(Placement):
    """First-Fit: walk the queue in order and start every job that fits the free servers."""

    time_invariant = True

    def place(self, cluster: Cluster) -> list[Start]:
        """Jobs that fit, in order; none is reserved for, so wide jobs can wait long."""
        starts: list[Start] = []
        free = cluster.free
        if not free or not len(cluster.queue):
            return starts
        count = free.bit_count()
        for waiting in cluster.queue.fitting(cluster.now_s, count):
            if waiting.hosts <= count:
                free = _take(starts, waiting, free)
                count -= waiting.hosts
                if not count:
                    break
        return starts


@register("placement", "easy", "ebf", "easy-backfilling", "easy_bf")
class EasyBackfilling(Placement):
    """EASY backfilling: a reservation for the head of the queue; others start if they do not delay it.

    The head's shadow time is when the walltimes of the running jobs free enough hosts (those asleep or switching do
    not count). A job behind it starts now if it ends by then, or uses only hosts that the head will not need.
    """

    time_invariant = True

    def __init__(self) -> None:
        # (epoch, head, shadow time, spare hosts) of a pass that started nothing
        self._last: tuple[int, Waiting, float, int] | None = None

    def place(self, cluster: Cluster) -> list[Start]:
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
                self._backfill(starts, queue.new, free, microseconds(last[2] - now_s), last[3])
            return starts
        if head.hosts <= count:
            for waiting in chain((head,), in_order):
                if waiting.hosts > count:
                    head = waiting
                    break
                free = _take(starts, waiting, free)
                count -= waiting.hosts
            else:
                return starts
        if not count or len(queue.rows) == len(starts) + 1:
            return starts
        shadow_s, extra = (
            self._shadow(cluster, head.hosts, count, starts) if starts else cluster.ends.shadow(head.hosts, count)
        )
        window_s = microseconds(shadow_s - now_s)
        # the head is too wide to be among them
        candidates = queue.fitting(now_s, count, window_s, extra)
        if starts:
            chosen = {start.waiting.serial for start in starts}
            candidates = (waiting for waiting in candidates if waiting.serial not in chosen)
        self._backfill(starts, candidates, free, window_s, extra)
        self._last = None if starts else (cluster.version, head, shadow_s, extra)
        return starts

    @staticmethod
    def _backfill(starts: list[Start], candidates: Iterable[Waiting], free: int, window_s: float, extra: int) -> None:
        """Add the candidates that fit without delaying the head, in order."""
        count = free.bit_count()
        for waiting in candidates:
            if waiting.hosts > count:
                continue
            if waiting.walltime_s > window_s:
                if waiting.hosts > extra:
                    continue
                extra -= waiting.hosts
            free = _take(starts, waiting, free)
            count -= waiting.hosts
            if not count:
                break

    @staticmethod
    def _shadow(cluster: Cluster, needed: int, free: int, starts: list[Start]) -> tuple[float, int]:
        """Shadow time and spare hosts, counting the jobs that are about to start."""
        ends, now_s = cluster.ends, cluster.now_s
        rows = [start.waiting for start in starts]
        tickets = [ends.add(microseconds(now_s + row.walltime_s), row.serial, row.hosts) for row in rows]
        try:
            return ends.shadow(needed, free)
        finally:
            for ticket in tickets:
                ends.remove(ticket)
