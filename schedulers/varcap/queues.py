"""Jobs that wait for machines, and their starts when there is room (docs/explanation/varcap.md).

A *range* is the machines low .. high - 1, searched upwards or from the end. A pass starts a task by a function
`start(task, places)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, final

import numpy as np
from mypy_extensions import mypyc_attr

from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import Job, Places
from batwatt.scheduling.orders import Order
from batwatt.scheduling.queue import Ages, Boxes, Room, backfill
from batwatt.units import LAG_S

Start = Callable[[Job, Places], None]
Key = Callable[[Job], float]
_ALONE: Final = 1e9
"""Offset by which the need of a task that has machines to itself is above that of any other."""


@final
class Range:
    """The machines low .. high - 1, from the safest (upwards) or from the least safe."""

    def __init__(self, low: int, high: int, upwards: bool = True) -> None:
        self.low: Final = low
        self.high: Final = high
        self.upwards: Final = upwards


@final
class FleetRoom(Room):
    """A range of machines of a fleet; a reservation is for machines, from its shadow time on.

    A task that starts leaves its queue; `freed`: more than arrivals may have changed since the last pass.
    """

    def __init__(
        self, fleet: Fleet, now_s: float, where: Range, queue: WaitingQueue, start: Start, freed: bool
    ) -> None:
        super().__init__()
        self.fleet = fleet
        self.now_s = now_s
        self.where = where
        self.freed = freed
        self._queue = queue
        self._start = start
        self._reserved: Places | None = None
        self._shadow_s, self._free = math.inf, 0.0
        self._refused: Job | None = None
        """A task that does not fit since the last start."""
        if queue.rule == "pass":
            self.limits.free = 0.0
        self._measure()

    def start(self, job: Any) -> bool:
        """See `Room`."""
        task: Job = job
        fleet, where, now_s, reserved = self.fleet, self.where, self.now_s, self._reserved
        need = need_of(task)
        if need > self._free:
            return False
        refused = self._refused
        if (
            refused is not None
            and task.assumed_s >= refused.assumed_s
            and task.memory >= refused.memory
            and need >= need_of(refused)
        ):
            return False
        hidden: Any = None
        if reserved is not None and now_s + task.estimate_s > self._shadow_s:
            if need > self.limits.extra:
                return False
            hidden = fleet.hide(reserved)
        places = fleet.place(task, now_s, where.low, where.high, where.upwards)
        if hidden is not None and reserved is not None:
            fleet.show(reserved, hidden)
        if places is None:
            if hidden is None:
                self._refused = task
            return False
        self._refused = None
        self._queue.remove(task)
        self._start(task, places)
        self._measure()
        return True

    def reserve(self, job: Any) -> bool:
        """See `Room`: there is no reservation for a task that never fits."""
        expected = reservation(self.fleet, job, self.now_s, self.where)
        if expected is None:
            return False
        self._shadow_s, self._reserved = expected
        # with some for rounding
        self.limits.free, self.limits.window_s = 0.0, self._shadow_s - self.now_s + LAG_S
        self._measure()
        return True

    def _measure(self) -> None:
        """Update the free room, and the limits if there are any."""
        fleet, limits, reserved = self.fleet, self.limits, self._reserved
        where, queue = self.where, self._queue
        busy_s = -math.inf
        # while a reservation may come the room stays open: reservations double the estimates that are outrun
        if reserved is not None or (queue.rule == "pass" and queue.ages.limit_s == math.inf):
            busy_s = fleet.blocked_s(self.now_s, queue.least_s, 1, where.high)
        self._free = _free(fleet, where, busy_s)
        self.is_open = self._free > 0.0
        if limits.free < math.inf:
            limits.free = self._free
        if reserved is not None:
            before = fleet.hide(reserved)
            limits.extra = _free(fleet, where, busy_s)
            fleet.show(reserved, before)


def _free(fleet: Fleet, where: Range, busy_s: float) -> float:
    """Return the greatest need that the machines of a range that are busy beyond `busy_s` may have room for."""
    whole = fleet.free_machines(where.low, where.high, busy_s)
    return _ALONE + float(whole) if whole else float(fleet.most_free(where.low, where.high, busy_s))


def need_of(task: Job) -> float:
    """Return the cores of a task on a shared machine; of one that shares none more than these, plus its machines."""
    return _ALONE + float(task.machines) if task.machines else float(task.hosts)


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingQueue(ABC):
    """Tasks that wait for one range of machines; `rule`: the effect of one that does not fit on those behind it."""

    rule: str
    ages: Ages
    least_s: float
    """Least assumed run time in s of the tasks that have waited; infinite at first."""

    @abstractmethod
    def add(self, task: Job) -> None:
        """Let a task wait (again)."""

    @abstractmethod
    def remove(self, task: Job) -> None:
        """Remove a task that waits no more."""

    @abstractmethod
    def tasks(self) -> Iterator[Job]:
        """Return all tasks that wait."""

    @abstractmethod
    def drop(self, unwanted: Callable[[Job], bool]) -> list[Job]:
        """Take out the tasks that are unwanted, in the order of their arrival."""

    @abstractmethod
    def may_start(self, freed: bool) -> bool:
        """Return whether a pass could start a task; `freed`: more than arrivals may have changed since the last."""

    @abstractmethod
    def candidates(self, room: FleetRoom) -> Iterator[Job]:
        """Return the tasks that a pass tries, in order; those that start are removed meanwhile."""

    def fill(self, fleet: Fleet, now_s: float, where: Range, start: Start, freed: bool) -> None:
        """Start the tasks that can start; `freed`: more than arrivals may have changed since the last time."""
        if self.may_start(freed):
            room = FleetRoom(fleet, now_s, where, self, start, freed)
            backfill(self.rule, self.candidates(room), room, self.ages.aged(now_s))


@final
class _Cursor:
    """Position of a pass in a bucket of tasks that need `need`."""

    def __init__(self, need: float, bucket: Bucket) -> None:
        self.need = need
        self.bucket = bucket
        self.at = 0
        self.index = 0
        self.refused = False
        self.memory = 0.0
        self.assumed_s = 0.0

    def entry(self) -> Entry:
        """Return the entry here, or the first of the next block; None behind the last."""
        blocks = self.bucket.blocks
        if self.at < len(blocks) and self.index >= len(blocks[self.at]):
            self.at += 1
            self.index = 0
        return blocks[self.at][self.index] if self.at < len(blocks) else None

    def hopeful(self) -> Entry:
        """Return the entry here, or after those that need no less than one that was refused; None behind the last."""
        if not self.refused:
            return self.entry()
        # such as all, where neither memory nor the future restrains a task
        if self.memory <= 0.0 and self.assumed_s < 0.0:
            return None
        bucket = self.bucket
        while self.at < len(bucket.blocks):
            if bucket.memories[self.at] < self.memory or bucket.assumed_s[self.at] < self.assumed_s:
                block = bucket.blocks[self.at]
                while self.index < len(block):
                    entry = block[self.index]
                    task: Job = entry[3]
                    if task.memory < self.memory or task.assumed_s < self.assumed_s:
                        return entry
                    self.index += 1
                bucket.bound(self.at)
            self.at += 1
            self.index = 0
        return None


@final
class BucketQueue(WaitingQueue):
    """A fixed order, in which tasks that do not fit are passed over; sorted by their needs, so that this is cheap.

    The order is by `key`, if there is one, then by submission and arrival.
    """

    def __init__(self, key: Key | None = None) -> None:
        self.rule = "pass"
        self.ages = Ages(None)
        self.least_s = math.inf
        self._key = key
        self._sign = 1.0
        # by `need_of`, none of them empty
        self._waiting: dict[float, Bucket] = {}
        # their keys, ascending
        self._needs: list[float] = []
        self._fresh: list[Job] = []

    def add(self, task: Job) -> None:
        """See `WaitingQueue`."""
        need = need_of(task)
        bucket = self._waiting.get(need)
        if bucket is None:
            bucket = self._waiting[need] = Bucket([])
            insort(self._needs, need)
        bucket.add(self._entry(task))
        self.least_s = min(self.least_s, task.assumed_s)
        self._fresh.append(task)

    def remove(self, task: Job) -> None:
        """See `WaitingQueue`."""
        need = need_of(task)
        bucket = self._waiting[need]
        bucket.remove(self._entry(task))
        if not bucket.blocks:
            del self._waiting[need]
            del self._needs[bisect_left(self._needs, need)]
        if task in self._fresh:
            self._fresh.remove(task)

    def tasks(self) -> Iterator[Job]:
        """See `WaitingQueue`."""
        for bucket in self._waiting.values():
            for block in bucket.blocks:
                for entry in block:
                    yield entry[3]

    def drop(self, unwanted: Callable[[Job], bool]) -> list[Job]:
        """See `WaitingQueue`."""
        gone = sorted([task for task in self.tasks() if unwanted(task)], key=_number)
        out = {task.number for task in gone}
        if out:
            left = {
                need: [entry for entry in bucket.entries() if entry[2] not in out]
                for need, bucket in self._waiting.items()
            }
            self._waiting = {need: Bucket(entries) for need, entries in left.items() if entries}
            self._needs = sorted(self._waiting)
            self._fresh = [task for task in self._fresh if task.number not in out]
        return gone

    def turn(self, forwards: bool) -> None:
        """Let tasks wait in this order, or in that of the opposite key."""
        sign = 1.0 if forwards else -1.0
        if sign != self._sign:
            self._sign = sign
            self._waiting = {
                need: Bucket(sorted([self._entry(entry[3]) for entry in bucket.entries()]))
                for need, bucket in self._waiting.items()
            }

    def may_start(self, freed: bool) -> bool:
        """See `WaitingQueue`: tasks that waited before still do if nothing was freed."""
        return freed or len(self._fresh) > 0

    def candidates(self, room: FleetRoom) -> Iterator[Job]:
        """See `WaitingQueue`: each bucket is gone through once."""
        fresh, self._fresh = self._fresh, []
        if not room.freed:
            return iter([entry[3] for entry in sorted([self._entry(task) for task in fresh])])
        return self._merged(room)

    def _merged(self, room: FleetRoom) -> Iterator[Job]:
        limits = room.limits
        heads: list[Any] = []
        for need in self._needs[: bisect_right(self._needs, limits.free)]:
            bucket = self._waiting[need]
            heads.append((bucket.blocks[0][0], _Cursor(need, bucket)))
        heapify(heads)
        # room only shrinks in a pass: what needs no less memory and time than one that did not fit does not fit
        blind = not room.fleet.foresight.ahead
        while heads:
            cursor: _Cursor = heads[0][1]
            if cursor.need > limits.free:
                heappop(heads)
                continue
            first: Entry = heads[0][0]
            task: Job = first[3]
            yield task
            if cursor.entry() is first:
                cursor.refused = True
                cursor.memory = task.memory
                cursor.assumed_s = -1.0 if blind else task.assumed_s
            entry = cursor.hopeful()
            if entry is None:
                heappop(heads)
            else:
                heapreplace(heads, (entry, cursor))

    def _entry(self, task: Job) -> Entry:
        key = self._key
        return (0.0 if key is None else self._sign * key(task), task.submit_s, task.number, task)


def _number(task: Job) -> int:
    return task.number


@final
class SortedQueue(WaitingQueue):
    """An order that may change with time; a task that does not fit is passed over, blocks, or reserves.

    Orders see the user's estimate for the walltime and machines for hosts; ties go to the earlier submission.
    """

    def __init__(self, order: Order, rule: str, age_limit_s: float | None = None) -> None:
        self.ages = Ages(age_limit_s)
        self._boxes: Any = Boxes(order)
        self.rule = rule
        self.least_s = math.inf
        self._waiting: dict[int, Job] = {}

    def add(self, task: Job) -> None:
        """See `WaitingQueue`."""
        self._waiting[task.number] = task
        self.least_s = min(self.least_s, task.assumed_s)
        self.ages.add(task)
        self._boxes.add(task, (task.submit_s, task.estimate_s, task.width, need_of(task), task.number))

    def tasks(self) -> Iterator[Job]:
        """See `WaitingQueue`."""
        return iter(self._waiting.values())

    def drop(self, unwanted: Callable[[Job], bool]) -> list[Job]:
        """See `WaitingQueue`."""
        gone = sorted([task for task in self._waiting.values() if unwanted(task)], key=_number)
        for task in gone:
            self.remove(task)
        return gone

    def remove(self, task: Job) -> None:
        """See `WaitingQueue`."""
        del self._waiting[task.number]
        self.ages.remove(task)
        self._boxes.remove(task.number)

    def may_start(self, freed: bool) -> bool:
        """See `WaitingQueue`."""
        return len(self._waiting) > 0

    def candidates(self, room: FleetRoom) -> Iterator[Job]:
        """See `WaitingQueue`."""
        tasks: Iterator[Job] = self._boxes.sorted(room.now_s, room.limits)
        return tasks


def reservation(fleet: Fleet, task: Job, now_s: float, where: Range) -> tuple[float, Places] | None:
    """Return the shadow time of a task that does not fit, in s, and its machines then; None if it never fits.

    Running tasks end when they are expected to, at once when they are over their bounds.
    """
    everywhere = where.low == 0 and where.high == len(fleet)
    running: list[Any] = sorted(
        [
            (other.expected_end_s(now_s), other.number, other)
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
    fits = not task.machines and fleet.has_room(task.hosts, task.memory, where.low, where.high)
    for index, row in enumerate(running):
        end_s: float = row[0]
        other: Job = row[2]
        if other.machines:
            if everywhere:
                whole += other.machines
            else:
                whole += int(np.count_nonzero((other.places >= where.low) & (other.places < where.high)))
            fits = fits or not task.machines
        else:
            m: int = other.places.item(0)
            cores, memory = more.get(m, (0, 0.0))
            more[m] = cores, memory = cores + other.hosts, memory + other.memory
            free = int(fleet.free[m]) + cores
            whole += free == fleet.cores
            fits = fits or (free >= task.hosts and float(fleet.memory[m]) + memory >= task.memory)
        last = index + 1 == len(running) or running[index + 1][0] > end_s
        if last and (whole >= task.machines if task.machines else fits):
            return end_s, _machines_then(fleet, task, where, more, [row[2] for row in running[: index + 1]])
    return None


def _machines_then(
    fleet: Fleet, task: Job, where: Range, more: dict[int, tuple[int, float]], ended: list[Job]
) -> Places:
    """Return the machines that a task gets when some tasks have ended: the first that have room."""
    free, memory = fleet.free.copy(), fleet.memory.copy()
    for other in ended:
        if other.machines:
            free[other.places] = fleet.cores
            memory[other.places] = fleet.memory_each
    for m, (cores, freed) in more.items():
        free[m] += cores
        memory[m] += freed
    roomy = fleet.usable & (free == fleet.cores if task.machines else free >= task.hosts)
    if not task.machines:
        roomy &= memory >= task.memory
    fits = where.low + np.flatnonzero(roomy[where.low : where.high])
    return fits[: task.width] if where.upwards else fits[::-1][: task.width]


Entry = Any
"""(key, submission in s, number, task): a tuple that mypyc does not take apart."""
_BLOCK: Final = 512
"""Entries of a block at first; one of twice as many is split."""


@final
class Bucket:
    """Sorted entries, in blocks: in a list of a hundred thousand a start or an arrival moves up to all of them.

    `memories` and `assumed_s` bound the memory and the assumed run times in s of each block's tasks from below, so that
    a pass skips whole blocks. A task that leaves may leave a bound too low, until `bound` corrects it.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self.blocks = [entries[first : first + _BLOCK] for first in range(0, len(entries), _BLOCK)]
        self.memories = [0.0] * len(self.blocks)
        self.assumed_s = [0.0] * len(self.blocks)
        for at in range(len(self.blocks)):
            self.bound(at)

    def add(self, entry: Entry) -> None:
        """Put an entry in its place."""
        blocks = self.blocks
        if not blocks or blocks[-1][-1] < entry:
            # as most do
            if not blocks or len(blocks[-1]) >= _BLOCK:
                blocks.append([])
                self.memories.append(math.inf)
                self.assumed_s.append(math.inf)
            at = len(blocks) - 1
            blocks[at].append(entry)
        else:
            at = self._block_of(entry)
            insort(blocks[at], entry)
        task: Job = entry[-1]
        self.memories[at] = min(self.memories[at], task.memory)
        self.assumed_s[at] = min(self.assumed_s[at], task.assumed_s)
        block = blocks[at]
        if len(block) >= 2 * _BLOCK:
            blocks[at : at + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self.memories.insert(at, self.memories[at])
            self.assumed_s.insert(at, self.assumed_s[at])

    def bound(self, at: int) -> None:
        """Set the bounds of a block to the least values of its tasks."""
        tasks: list[Job] = [entry[-1] for entry in self.blocks[at]]
        self.memories[at] = min([task.memory for task in tasks])
        self.assumed_s[at] = min([task.assumed_s for task in tasks])

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        at = self._block_of(entry)
        self.remove_at(at, bisect_left(self.blocks[at], entry))

    def remove_at(self, at: int, index: int) -> None:
        """Take out the entry of an index in a block; no block stays empty."""
        block = self.blocks[at]
        del block[index]
        if not block:
            del self.blocks[at], self.memories[at], self.assumed_s[at]

    def entries(self) -> list[Entry]:
        """Return all entries, in order."""
        return [entry for block in self.blocks for entry in block]

    def _block_of(self, entry: Entry) -> int:
        """Return the first block that does not end before an entry."""
        blocks = self.blocks
        low, high = 0, len(blocks) - 1
        while low < high:
            middle = (low + high) // 2
            if blocks[middle][-1] < entry:
                low = middle + 1
            else:
                high = middle
        return low
