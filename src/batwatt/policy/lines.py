"""Jobs that wait for machines, and which of them start when there is room (docs/varcap.md).

A *range* is the machines low .. high - 1, looked at upwards or from the end. What a pass needs from outside is how to
start a task: `start(task, places)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from batwatt.policy.fleet import Fleet, Places, Task

Start = Callable[[Task, Places], None]
Key = Callable[[Task], float]
Backfill = Literal["greedy", "none", "easy"]


@dataclass(frozen=True)
class Range:
    """The machines low .. high - 1, from the safest (upwards) or from the least safe."""

    low: int
    high: int
    upwards: bool = True


class Line(ABC):
    """Tasks that wait for one range of machines."""

    @abstractmethod
    def add(self, task: Task) -> None:
        """A task waits (again)."""

    @abstractmethod
    def tasks(self) -> Iterator[Task]:
        """All that wait."""

    @abstractmethod
    def drop(self, unwanted: Callable[[Task], bool]) -> list[Task]:
        """Take out the tasks that are unwanted, in the order of their arrival."""

    @abstractmethod
    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """Start what can start; `freed`: more than arrivals may have changed since the last time."""


class Buckets(Line):
    """A fixed order, in which tasks that do not fit are passed over; sorted by what they need, so that this is cheap.

    The order is by `key`, then by rank and arrival.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._sign = 1.0
        # by (cores, machines): entries (key, rank, number, task), sorted
        self._waiting: dict[tuple[int, int], list[tuple[float, float, int, Task]]] = {}
        self._fresh: list[Task] = []

    def add(self, task: Task) -> None:
        """See `Line`."""
        need = (task.cpus, 0) if not task.machines else (0, task.machines)
        insort(self._waiting.setdefault(need, []), self._entry(task))
        self._fresh.append(task)

    def tasks(self) -> Iterator[Task]:
        """See `Line`."""
        return (entry[3] for line in self._waiting.values() for entry in line)

    def drop(self, unwanted: Callable[[Task], bool]) -> list[Task]:
        """See `Line`."""
        gone = sorted((task for task in self.tasks() if unwanted(task)), key=lambda task: task.number)
        out = {task.number for task in gone}
        if out:
            self._waiting = {
                need: [entry for entry in line if entry[2] not in out] for need, line in self._waiting.items()
            }
            self._fresh = [task for task in self._fresh if task.number not in out]
        return gone

    def turn(self, forwards: bool) -> None:
        """Wait in this order, or in that of the opposite key."""
        sign = 1.0 if forwards else -1.0
        if sign != self._sign:
            self._sign = sign
            self._waiting = {
                need: sorted(self._entry(entry[3]) for entry in line) for need, line in self._waiting.items()
            }

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `Line`."""
        fresh, self._fresh = self._fresh, []
        if freed:
            self._pass(fleet, now_s, where, start)
            return
        # those that waited before still do: only what is new can start
        for entry in sorted(self._entry(task) for task in fresh):
            task = entry[3]
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places:
                self._waiting[(task.cpus, 0) if not task.machines else (0, task.machines)].remove(entry)
                start(task, places)

    def _entry(self, task: Task) -> tuple[float, float, int, Task]:
        return (self._sign * self._key(task), task.rank, task.number, task)

    def _pass(self, fleet: Fleet, now_s: float, where: Range, start: Start) -> None:
        """Start, again and again, the first task that fits, each bucket being gone through once."""
        at = {need: 0 for need, line in self._waiting.items() if line}
        # room only shrinks in a pass: what needs no less memory and time than one that did not fit does not fit
        blind = not len(fleet.outlook.dates_s)
        refused: dict[tuple[int, int], tuple[float, float]] = {}
        most = fleet.most_free(where.low, where.high)
        while at:
            best, chosen = None, (0, 0)
            for need in list(at):
                if need[0] > most or (need[1] and most < fleet.cores):
                    del at[need]
                    continue
                entry = self._waiting[need][at[need]]
                if best is None or entry < best:
                    best, chosen = entry, need
            if best is None:
                return
            task, line, index = best[3], self._waiting[chosen], at[chosen]
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places:
                del line[index]
                start(task, places)
                most = fleet.most_free(where.low, where.high)
            else:
                refused[chosen] = (task.memory, -1.0 if blind else task.assumed_s)
            if chosen in refused:
                memory, assumed_s = refused[chosen]
                while index < len(line) and line[index][3].memory >= memory and line[index][3].assumed_s >= assumed_s:
                    index += 1
                at[chosen] = index
            if index >= len(line):
                del at[chosen]


class Ordered(Line):
    """An order that is worked out at each pass; a task that does not fit is passed over, blocks, or reserves."""

    def __init__(self, order: Callable[[list[Task], float], list[Task]], backfill: Backfill) -> None:
        self._order = order
        self._backfill = backfill
        self._waiting: list[Task] = []

    def add(self, task: Task) -> None:
        """See `Line`."""
        self._waiting.append(task)

    def tasks(self) -> Iterator[Task]:
        """See `Line`."""
        return iter(self._waiting)

    def drop(self, unwanted: Callable[[Task], bool]) -> list[Task]:
        """See `Line`."""
        gone = sorted((task for task in self._waiting if unwanted(task)), key=lambda task: task.number)
        self._waiting = [task for task in self._waiting if not unwanted(task)] if gone else self._waiting
        return gone

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `Line`."""
        if not self._waiting:
            return
        started: set[int] = set()
        reserved: np.ndarray | None = None
        shadow_s = np.inf
        most = fleet.most_free(where.low, where.high)
        for task in self._order(self._waiting, now_s):
            if most <= 0:
                break
            places: Places = ()
            if task.cpus <= most if not task.machines else most == fleet.cores:
                within = reserved is None or now_s + task.estimate_s <= shadow_s
                hidden = reserved if not within else None
                places = _place_beside(fleet, task, now_s, where, hidden)
            if places:
                started.add(task.number)
                start(task, places)
                most = fleet.most_free(where.low, where.high)
            elif self._backfill == "none":
                break
            elif self._backfill == "easy" and reserved is None:
                found = reservation(fleet, task, now_s, where)
                if found is not None:
                    shadow_s, reserved = found
        if started:
            self._waiting = [task for task in self._waiting if task.number not in started]


def _place_beside(fleet: Fleet, task: Task, now_s: float, where: Range, hidden: np.ndarray | None) -> Places:
    """The machines on which a task may start, but for some."""
    if hidden is None:
        return fleet.place(task, now_s, where.low, where.high, where.upwards)
    before = fleet.usable[hidden]
    fleet.usable[hidden] = False
    places = fleet.place(task, now_s, where.low, where.high, where.upwards)
    fleet.usable[hidden] = before
    return places


def reservation(fleet: Fleet, task: Task, now_s: float, where: Range) -> tuple[float, np.ndarray] | None:
    """The shadow time of a task that does not fit, in s, and its machines then; None if it never fits.

    Running tasks end when their estimates say, or at once when they are over them.
    """
    free, memory = fleet.free.copy(), fleet.memory.copy()
    inside = np.zeros(len(fleet), dtype=np.bool_)
    inside[where.low : where.high] = fleet.usable[where.low : where.high]
    running = sorted(
        (max(now_s, other.part_s + other.estimate_s - (other.length_s - other.left_s)), other.number, other)
        for other in fleet.tasks.values()
    )
    for index, (end_s, _, other) in enumerate(running):
        which = np.array(other.places)
        free[which] += other.cpus if not other.machines else fleet.cores
        memory[which] += other.memory if not other.machines else fleet.memory_each
        if index + 1 < len(running) and running[index + 1][0] == end_s:
            continue
        roomy = inside & (free >= (fleet.cores if task.machines else task.cpus))
        if not task.machines:
            roomy &= memory >= task.memory - 1e-9
        fits = np.flatnonzero(roomy)
        if len(fits) >= task.width:
            return end_s, fits[: task.width] if where.upwards else fits[::-1][: task.width]
    return None


def first_come(tasks: list[Task], now_s: float) -> list[Task]:
    """First come, first served."""
    return sorted(tasks, key=lambda task: (task.rank, task.number))


def wfp(tasks: list[Task], now_s: float) -> list[Task]:
    """Greatest (waited / estimate)^3 x machines first: the utility WFP of Cobalt (Tang et al., IEEE Cluster 2009)."""
    count = len(tasks)
    waited = now_s - np.fromiter((task.submit_s for task in tasks), np.float64, count)
    estimate = np.fromiter((task.estimate_s for task in tasks), np.float64, count)
    width = np.fromiter((task.width for task in tasks), np.float64, count)
    rank = np.fromiter((task.rank for task in tasks), np.float64, count)
    number = np.fromiter((task.number for task in tasks), np.int64, count)
    score = (waited / estimate) ** 3 * width
    return [tasks[i] for i in np.lexsort((number, rank, -score))]
