"""Jobs that wait for machines, and which of them start when there is room (docs/varcap.md).

A *range* is the machines low .. high - 1, looked at upwards or from the end. What a pass needs from outside is how to
start a task: `start(task, places)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.backfilling import Backfilling
from batwatt.scheduling.fleet import Fleet, JobState, Places
from batwatt.scheduling.orders import Columns, Fcfs, Order

Start = Callable[[JobState, Places], None]
Key = Callable[[JobState], float]


@dataclass(frozen=True)
class Range:
    """The machines low .. high - 1, from the safest (upwards) or from the least safe."""

    low: int
    high: int
    upwards: bool = True


class WaitingQueue(ABC):
    """Tasks that wait for one range of machines."""

    @abstractmethod
    def add(self, task: JobState) -> None:
        """A task waits (again)."""

    @abstractmethod
    def tasks(self) -> Iterator[JobState]:
        """All that wait."""

    @abstractmethod
    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """Take out the tasks that are unwanted, in the order of their arrival."""

    @abstractmethod
    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """Start what can start; `freed`: more than arrivals may have changed since the last time."""


class BucketQueue(WaitingQueue):
    """A fixed order, in which tasks that do not fit are passed over; sorted by what they need, so that this is cheap.

    The order is by `key`, then by rank and arrival.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._sign = 1.0
        # by (cores, machines): entries (key, rank, number, task), sorted
        self._waiting: dict[tuple[int, int], list[tuple[float, float, int, JobState]]] = {}
        self._fresh: list[JobState] = []

    def add(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        insort(self._waiting.setdefault(_need(task), []), self._entry(task))
        self._fresh.append(task)

    def tasks(self) -> Iterator[JobState]:
        """See `WaitingQueue`."""
        return (entry[3] for queue in self._waiting.values() for entry in queue)

    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """See `WaitingQueue`."""
        gone = sorted((task for task in self.tasks() if unwanted(task)), key=lambda task: task.number)
        out = {task.number for task in gone}
        if out:
            self._waiting = {
                need: [entry for entry in queue if entry[2] not in out] for need, queue in self._waiting.items()
            }
            self._fresh = [task for task in self._fresh if task.number not in out]
        return gone

    def turn(self, forwards: bool) -> None:
        """Wait in this order, or in that of the opposite key."""
        sign = 1.0 if forwards else -1.0
        if sign != self._sign:
            self._sign = sign
            self._waiting = {
                need: sorted(self._entry(entry[3]) for entry in queue) for need, queue in self._waiting.items()
            }

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `WaitingQueue`."""
        fresh, self._fresh = self._fresh, []
        if freed:
            self._pass(fleet, now_s, where, start)
            return
        # those that waited before still do: only what is new can start
        for entry in sorted(self._entry(task) for task in fresh):
            task = entry[3]
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is not None:
                queue = self._waiting[_need(task)]
                del queue[bisect_left(queue, entry)]
                start(task, places)

    def _entry(self, task: JobState) -> tuple[float, float, int, JobState]:
        return (self._sign * self._key(task), task.rank, task.number, task)

    def _pass(self, fleet: Fleet, now_s: float, where: Range, start: Start) -> None:
        """Start, again and again, the first task that fits, each bucket being gone through once."""
        at = {need: 0 for need, queue in self._waiting.items() if queue}
        # room only shrinks in a pass: what needs no less memory and time than one that did not fit does not fit
        blind = not len(fleet.foresight.times_s)
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
            task, queue, index = best[3], self._waiting[chosen], at[chosen]
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is not None:
                del queue[index]
                start(task, places)
                most = fleet.most_free(where.low, where.high)
            else:
                refused[chosen] = (task.memory, -1.0 if blind else task.assumed_s)
            if chosen in refused:
                memory, assumed_s = refused[chosen]
                while (
                    index < len(queue) and queue[index][3].memory >= memory and queue[index][3].assumed_s >= assumed_s
                ):
                    index += 1
                at[chosen] = index
            if index >= len(queue):
                del at[chosen]


def _need(task: JobState) -> tuple[int, int]:
    """Cores on a machine that it shares, and machines that it has to itself."""
    return (0, task.machines) if task.machines else (task.cpus, 0)


class SortedQueue(WaitingQueue):
    """An order that is worked out at each pass; a task that does not fit is passed over, blocks, or reserves."""

    def __init__(self, order: Order, backfilling: Backfilling) -> None:
        self._order = order
        self._blocked = backfilling.blocked
        self._waiting: list[JobState] = []

    def add(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        self._waiting.append(task)

    def tasks(self) -> Iterator[JobState]:
        """See `WaitingQueue`."""
        return iter(self._waiting)

    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """See `WaitingQueue`."""
        gone = sorted((task for task in self._waiting if unwanted(task)), key=lambda task: task.number)
        self._waiting = [task for task in self._waiting if not unwanted(task)] if gone else self._waiting
        return gone

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `WaitingQueue`."""
        if not self._waiting:
            return
        started: set[int] = set()
        reserved: Places | None = None
        shadow_s = np.inf
        room = within = _Room.of(fleet, where)
        for task in ordered(self._order, self._waiting, now_s):
            if within.most <= 0:
                break
            places: Places | None = None
            if within.may_hold(task):
                free_to = reserved is None or now_s + task.estimate_s <= shadow_s
                if free_to or room.may_hold(task):
                    with nullcontext() if free_to or reserved is None else fleet.hidden(reserved):
                        places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is not None:
                started.add(task.number)
                start(task, places)
                within = _Room.of(fleet, where)
                room = within if reserved is None else _Room.without(fleet, where, reserved)
            elif self._blocked == "stop":
                break
            elif self._blocked == "reserve" and reserved is None:
                found = reservation(fleet, task, now_s, where)
                if found is not None:
                    shadow_s, reserved = found
                    room = _Room.without(fleet, where, reserved)
        if started:
            self._waiting = [task for task in self._waiting if task.number not in started]


class _Room(NamedTuple):
    """The most cores free on one machine of a range, and how many of its machines are free altogether."""

    most: int
    whole: int

    @classmethod
    def of(cls, fleet: Fleet, where: Range) -> _Room:
        whole = fleet.free_machines(where.low, where.high)
        return cls(fleet.cores if whole else fleet.most_free(where.low, where.high), whole)

    @classmethod
    def without(cls, fleet: Fleet, where: Range, hidden: Places) -> _Room:
        """Room on a range, but for some machines."""
        with fleet.hidden(hidden):
            return cls.of(fleet, where)

    def may_hold(self, task: JobState) -> bool:
        return task.machines <= self.whole if task.machines else task.cpus <= self.most


def reservation(fleet: Fleet, task: JobState, now_s: float, where: Range) -> tuple[float, Places] | None:
    """The shadow time of a task that does not fit, in s, and its machines then; None if it never fits.

    Running tasks end when their estimates say, or at once when they are over them.
    """
    everywhere = where.low == 0 and where.high == len(fleet)
    running = sorted(
        (max(now_s, other.part_s + other.estimate_s - (other.length_s - other.left_s)), other.number, other)
        for other in fleet.tasks.values()
        if everywhere or (other.places.max() >= where.low and other.places.min() < where.high)
    )
    whole = fleet.free_machines(where.low, where.high)
    if task.machines > whole + sum(other.width for _, _, other in running):
        return None
    # on machines that jobs share: cores and memory that are free by then, besides those that are now
    more: dict[int, tuple[int, float]] = {}
    # foresight may have refused a machine that has room
    fits = not task.machines and fleet.has_room(task.cpus, task.memory, where.low, where.high)
    for index, (end_s, _, other) in enumerate(running):
        if other.machines:
            inside = everywhere or (other.places >= where.low) & (other.places < where.high)
            whole += other.machines if everywhere else int(np.count_nonzero(inside))
            fits = fits or not task.machines
        else:
            m = int(other.places[0])
            cores, memory = more.get(m, (0, 0.0))
            more[m] = cores, memory = cores + other.cpus, memory + other.memory
            whole += fleet.free[m] + cores == fleet.cores
            fits = fits or (fleet.free[m] + cores >= task.cpus and fleet.memory[m] + memory >= task.memory - 1e-9)
        last = index + 1 == len(running) or running[index + 1][0] > end_s
        if last and (whole >= task.machines if task.machines else fits):
            return end_s, _machines_then(fleet, task, where, more, [row[2] for row in running[: index + 1]])
    return None


def _machines_then(
    fleet: Fleet, task: JobState, where: Range, more: dict[int, tuple[int, float]], ended: list[JobState]
) -> Places:
    """The machines that a task gets when some have ended: the first that have room."""
    free, memory = fleet.free.copy(), fleet.memory.copy()
    for other in ended:
        if other.machines:
            free[other.places] = fleet.cores
            memory[other.places] = fleet.memory_each
    for m, (cores, freed) in more.items():
        free[m] += cores
        memory[m] += freed
    roomy = fleet.usable & (free == fleet.cores if task.machines else free >= task.cpus)
    if not task.machines:
        roomy &= memory >= task.memory - 1e-9
    fits = where.low + np.flatnonzero(roomy[where.low : where.high])
    return fits[: task.width] if where.upwards else fits[::-1][: task.width]


def ordered(order: Order, tasks: list[JobState], now_s: float) -> list[JobState]:
    """Tasks by the key of an order, with the user's estimate for the walltime and machines for hosts; ties by rank.

    The rank says who came first, which is all that `fcfs` asks for.
    """
    count = len(tasks)

    def column(name: str) -> NDArray[np.float64]:
        return np.fromiter((getattr(task, name) for task in tasks), np.float64, count)

    if isinstance(order, Fcfs):
        return sorted(tasks, key=lambda task: (task.rank, task.number))
    key = order.key(Columns(column("submit_s"), column("estimate_s"), column("width")), now_s)
    return [tasks[i] for i in np.lexsort((column("number"), column("rank"), key))]
