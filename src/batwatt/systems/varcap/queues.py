"""Jobs that wait for machines, and which of them start when there is room (docs/explanation/varcap.md).

A *range* is the machines low .. high - 1, looked at upwards or from the end. What a pass needs from outside is how to
start a task: `start(task, places)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, final

import numpy as np
from mypy_extensions import mypyc_attr

from batwatt.scheduling.backfilling import Backfilling
from batwatt.scheduling.boxes import Boxes
from batwatt.scheduling.fleet import Fleet, JobState, Places
from batwatt.scheduling.orders import Fcfs, Order
from batwatt.scheduling.queue import Gap
from batwatt.systems.varcap.buckets import Bucket, Entry
from batwatt.units import LAG_S

Start = Callable[[JobState, Places], None]
Key = Callable[[JobState], float]
_ALONE: Final = 1e9
"""Of a task that has machines to itself the need is above that of any other by so much."""


@final
class Range:
    """The machines low .. high - 1, from the safest (upwards) or from the least safe."""

    def __init__(self, low: int, high: int, upwards: bool = True) -> None:
        self.low: Final = low
        self.high: Final = high
        self.upwards: Final = upwards


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingQueue(ABC):
    """Tasks that wait for one range of machines."""

    @abstractmethod
    def add(self, task: JobState) -> None:
        """A task waits (again)."""

    @abstractmethod
    def remove(self, task: JobState) -> None:
        """A task waits no more."""

    @abstractmethod
    def tasks(self) -> Iterator[JobState]:
        """All that wait."""

    @abstractmethod
    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """Take out the tasks that are unwanted, in the order of their arrival."""

    @abstractmethod
    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """Start what can start; `freed`: more than arrivals may have changed since the last time."""


@final
class _Cursor:
    """Where a pass is in a bucket of tasks that need `need`."""

    def __init__(self, need: int, bucket: Bucket) -> None:
        self.need = need
        self.bucket = bucket
        self.at = 0
        self.index = 0
        self.refused = False
        self.memory = 0.0
        self.assumed_s = 0.0

    def entry(self) -> Entry:
        """The entry here, or the first of the next block; None behind the last."""
        blocks = self.bucket.blocks
        if self.at < len(blocks) and self.index >= len(blocks[self.at]):
            self.at += 1
            self.index = 0
        return blocks[self.at][self.index] if self.at < len(blocks) else None

    def hopeful(self) -> Entry:
        """The same, past the entries that need no less than one that was refused."""
        entry = self.entry()
        if self.refused:
            # such as all, where neither memory nor the future restrains anybody
            if self.memory <= 0.0 and self.assumed_s < 0.0:
                return None
            while entry is not None and entry[3].memory >= self.memory and entry[3].assumed_s >= self.assumed_s:
                self.index += 1
                entry = self.entry()
        return entry


@final
class BucketQueue(WaitingQueue):
    """A fixed order, in which tasks that do not fit are passed over; sorted by what they need, so that this is cheap.

    The order is by `key`, if there is one, then by rank and arrival.
    """

    def __init__(self, key: Key | None = None) -> None:
        self._key = key
        self._sign = 1.0
        # by what `_need` says
        self._waiting: dict[int, Bucket] = {}
        self._fresh: list[JobState] = []

    def add(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        need = _need(task)
        bucket = self._waiting.get(need)
        if bucket is None:
            bucket = self._waiting[need] = Bucket([])
        bucket.add(self._entry(task))
        self._fresh.append(task)

    def remove(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        self._waiting[_need(task)].remove(self._entry(task))
        if task in self._fresh:
            self._fresh.remove(task)

    def tasks(self) -> Iterator[JobState]:
        """See `WaitingQueue`."""
        for bucket in self._waiting.values():
            for block in bucket.blocks:
                for entry in block:
                    yield entry[3]

    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """See `WaitingQueue`."""
        gone = sorted([task for task in self.tasks() if unwanted(task)], key=_number)
        out = {task.number for task in gone}
        if out:
            self._waiting = {
                need: Bucket([entry for entry in bucket.entries() if entry[2] not in out])
                for need, bucket in self._waiting.items()
            }
            self._fresh = [task for task in self._fresh if task.number not in out]
        return gone

    def turn(self, forwards: bool) -> None:
        """Wait in this order, or in that of the opposite key."""
        sign = 1.0 if forwards else -1.0
        if sign != self._sign:
            self._sign = sign
            self._waiting = {
                need: Bucket(sorted([self._entry(entry[3]) for entry in bucket.entries()]))
                for need, bucket in self._waiting.items()
            }

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `WaitingQueue`."""
        fresh = self._fresh
        if fresh:
            self._fresh = []
        if freed:
            self._pass(fleet, now_s, where, start)
            return
        # those that waited before still do: only what is new can start
        for entry in sorted([self._entry(task) for task in fresh]):
            task: JobState = entry[3]
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is not None:
                self._waiting[_need(task)].remove(entry)
                start(task, places)

    def _entry(self, task: JobState) -> Entry:
        key = self._key
        return (0.0 if key is None else self._sign * key(task), task.rank, task.number, task)

    def _pass(self, fleet: Fleet, now_s: float, where: Range, start: Start) -> None:
        """Start, again and again, the first task that fits, each bucket being gone through once."""
        low, high, upwards = where.low, where.high, where.upwards
        cores = fleet.cores
        most = fleet.most_free(low, high)
        heads: list[Any] = []
        for need, bucket in self._waiting.items():
            if bucket.blocks and most >= (need if need > 0 else cores):
                heads.append((bucket.blocks[0][0], _Cursor(need, bucket)))
        heapify(heads)
        # room only shrinks in a pass: what needs no less memory and time than one that did not fit does not fit
        blind = not fleet.foresight.ahead
        while heads:
            cursor: _Cursor = heads[0][1]
            if most < (cursor.need if cursor.need > 0 else cores):
                heappop(heads)
                continue
            task: JobState = heads[0][0][3]
            places = fleet.place(task, now_s, low, high, upwards)
            if places is not None:
                cursor.bucket.remove_at(cursor.at, cursor.index)
                start(task, places)
                most = fleet.most_free(low, high)
            else:
                cursor.refused = True
                cursor.memory = task.memory
                cursor.assumed_s = -1.0 if blind else task.assumed_s
            entry = cursor.hopeful()
            if entry is None:
                heappop(heads)
            else:
                heapreplace(heads, (entry, cursor))


def _need(task: JobState) -> int:
    """Cores on a machine that it shares, or minus the machines that it has to itself."""
    return -task.machines if task.machines else task.cpus


def _number(task: JobState) -> int:
    return task.number


@final
class SortedQueue(WaitingQueue):
    """An order that may change with time; a task that does not fit is passed over, blocks, or reserves.

    Orders see the user's estimate for the walltime and machines for hosts; ties go to the lower rank, then number. For
    `fcfs` the rank is the submission.
    """

    def __init__(self, order: Order, backfilling: Backfilling) -> None:
        self._boxes: Any = Boxes(order)
        self._by_rank = isinstance(order, Fcfs)
        self._blocked = backfilling.blocked
        self._waiting: dict[int, JobState] = {}

    def add(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        self._waiting[task.number] = task
        submit_s = task.rank if self._by_rank else task.submit_s
        need = _ALONE + task.machines if task.machines else task.cpus
        self._boxes.add(task, (submit_s, task.estimate_s, task.width, need, task.rank, task.number))

    def tasks(self) -> Iterator[JobState]:
        """See `WaitingQueue`."""
        return iter(self._waiting.values())

    def drop(self, unwanted: Callable[[JobState], bool]) -> list[JobState]:
        """See `WaitingQueue`."""
        gone = sorted([task for task in self._waiting.values() if unwanted(task)], key=_number)
        for task in gone:
            self.remove(task)
        return gone

    def remove(self, task: JobState) -> None:
        """See `WaitingQueue`."""
        del self._waiting[task.number]
        self._boxes.remove(task.number)

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """See `WaitingQueue`."""
        if not self._waiting:
            return
        reserved: Places | None = None
        shadow_s = math.inf
        room = within = _room_of(fleet, where)
        passes_over = self._blocked == "pass"
        limits = Gap(within.limit if passes_over else math.inf)
        tasks: Iterator[JobState] = self._boxes.sorted(now_s, limits)
        while within.most > 0:
            task = next(tasks, None)
            if task is None:
                break
            places: Places | None = None
            if within.may_hold(task):
                free_to = reserved is None or now_s + task.estimate_s <= shadow_s
                if free_to or room.may_hold(task):
                    hidden = None if free_to or reserved is None else (reserved, fleet.hide(reserved))
                    places = fleet.place(task, now_s, where.low, where.high, where.upwards)
                    if hidden is not None:
                        fleet.show(*hidden)
            if places is not None:
                self.remove(task)
                start(task, places)
                within = _room_of(fleet, where)
                room = within if reserved is None else _room_without(fleet, where, reserved)
            elif self._blocked == "stop":
                break
            elif self._blocked == "reserve" and reserved is None:
                found = reservation(fleet, task, now_s, where)
                if found is not None:
                    shadow_s, reserved = found
                    room = _room_without(fleet, where, reserved)
            if reserved is not None:
                limits.free, limits.extra = within.limit, room.limit
                # with some for rounding
                limits.window_s = shadow_s - now_s + LAG_S
            elif passes_over:
                limits.free = within.limit


@final
class _Room:
    """The most cores free on one machine of a range, and how many of its machines are free altogether."""

    def __init__(self, most: int, whole: int) -> None:
        self.most = most
        self.whole = whole

    @property
    def limit(self) -> float:
        """The greatest need that there may be room for."""
        return _ALONE + self.whole if self.whole else self.most

    def may_hold(self, task: JobState) -> bool:
        return task.machines <= self.whole if task.machines else task.cpus <= self.most


def _room_of(fleet: Fleet, where: Range) -> _Room:
    whole = fleet.free_machines(where.low, where.high)
    return _Room(fleet.cores if whole else fleet.most_free(where.low, where.high), whole)


def _room_without(fleet: Fleet, where: Range, hidden: Places) -> _Room:
    """Gap on a range, but for some machines."""
    before = fleet.hide(hidden)
    room = _room_of(fleet, where)
    fleet.show(hidden, before)
    return room


def reservation(fleet: Fleet, task: JobState, now_s: float, where: Range) -> tuple[float, Places] | None:
    """The shadow time of a task that does not fit, in s, and its machines then; None if it never fits.

    Running tasks end when their estimates say, or at once when they are over them.
    """
    everywhere = where.low == 0 and where.high == len(fleet)
    running: list[Any] = sorted(
        [
            (max(now_s, other.ends_s(other.estimate_s)), other.number, other)
            for other in fleet.tasks.values()
            if (everywhere or (other.places.max() >= where.low and other.places.min() < where.high))
            and not fleet.stranded(other)
        ]
    )
    whole = fleet.free_machines(where.low, where.high)
    if task.machines > whole + sum([row[2].width for row in running]):
        return None
    # on machines that jobs share: cores and memory that are free by then, besides those that are now
    more: dict[int, tuple[int, float]] = {}
    # foresight may have refused a machine that has room
    fits = not task.machines and fleet.has_room(task.cpus, task.memory, where.low, where.high)
    for index, row in enumerate(running):
        end_s: float = row[0]
        other: JobState = row[2]
        if other.machines:
            if everywhere:
                whole += other.machines
            else:
                whole += int(np.count_nonzero((other.places >= where.low) & (other.places < where.high)))
            fits = fits or not task.machines
        else:
            m: int = other.places.item(0)
            cores, memory = more.get(m, (0, 0.0))
            more[m] = cores, memory = cores + other.cpus, memory + other.memory
            free = int(fleet.free[m]) + cores
            whole += free == fleet.cores
            fits = fits or (free >= task.cpus and float(fleet.memory[m]) + memory >= task.memory - 1e-9)
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
