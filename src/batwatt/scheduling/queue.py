"""The waiting jobs, kept in the order of an `Order`.

The columns are typed arrays, walked in Python while the queue is short and seen as numpy vectors when it is long, so
that a pass over ten thousand waiting jobs costs tens of microseconds.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, TypeAlias, final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.scheduling.job import Job
from batwatt.scheduling.orders import Columns, Order

VECTOR_MIN: Final = 48 if __file__.endswith(".py") else 2000
"""From this many waiting jobs on, vectors beat a loop, which is another one when it is compiled."""


@final
class Gap:
    """Limits for jobs: a need of at most `free`, and an estimate of at most `window_s` or a need of at most `extra`.

    The reader of a queue may lower them between two jobs.
    """

    __slots__ = ("extra", "free", "window_s")

    def __init__(self, free: float = math.inf, window_s: float = math.inf, extra: float = 0.0) -> None:
        self.free = free
        self.window_s = window_s
        self.extra = extra

    def fits(self, need: Any, estimate_s: Any) -> Any:
        """Return whether jobs are within the limits: numbers, or vectors."""
        return (need <= self.free) & ((estimate_s <= self.window_s) | (need <= self.extra))


@final
class Ages:
    """Waiting jobs by their release, of which those older than `limit_s` go first (infinite: none)."""

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s: Final = math.inf if limit_s is None else limit_s
        self._rows: list[Any] = []
        """(release in s, number, job)"""

    def add(self, job: Job) -> None:
        """Add a job that waits."""
        if self.limit_s < math.inf:
            insort(self._rows, (job.release_s, job.number, job))

    def remove(self, job: Job) -> None:
        """Remove a job that waits no more."""
        if self.limit_s < math.inf:
            del self._rows[bisect_left(self._rows, (job.release_s, job.number))]

    def is_aged(self, job: Job, now_s: float) -> bool:
        """Return whether a job is older than the limit."""
        return now_s - job.release_s >= self.limit_s

    def aged(self, now_s: float) -> list[Job]:
        """Return the waiting jobs older than the limit, the oldest first."""
        aged: list[Job] = []
        for row in self._rows:
            job: Job = row[2]
            if not self.is_aged(job, now_s):
                break
            aged.append(job)
        return aged


class Queue:
    """Waiting jobs; ties of the order's key go to the earlier submission, then to the lower number.

    With a static order (its key does not depend on the time) the rows are kept sorted; otherwise they are in order of
    arrival and sorted on request. `rows` are all jobs, `new` those added since the scheduler last cleared it;
    `time_invariant` tells whether the order of two jobs never changes.
    """

    def __init__(self, order: Order, age_limit_s: float | None = None) -> None:
        self._order = order
        self.ages: Final = Ages(age_limit_s)
        self.time_invariant = order.time_invariant
        self.new: list[Job] = []
        self._keys: list[tuple[float, float, int]] = []
        self.rows: list[Job] = []
        self._hosts = array("q")
        self._estimate = array("d")
        self._boxes = Boxes(order)
        """All jobs, unless their order never changes."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self.rows))

    def add(self, row: Job, key: float | None = None) -> None:
        """Put a job in the queue; `key` replaces that of a static order, to which the estimate is the walltime."""
        if self.time_invariant:
            if key is None:
                key = float(self._order.key(Columns(row.submit_s, row.estimate_s, row.hosts), 0.0))
                if key != key:
                    raise no_number(self._order, row)
            row.sort_key = (key, row.submit_s, row.number)
        else:
            row.sort_key = (0.0, 0.0, row.number)
            self._boxes.add(row, (row.submit_s, row.estimate_s, row.hosts, row.hosts, row.number))
        keys, place = self._keys, row.sort_key
        if not keys or place > keys[-1]:
            keys.append(place)
            self.rows.append(row)
            self._hosts.append(row.hosts)
            self._estimate.append(row.estimate_s)
        else:
            index = bisect_left(keys, place)
            keys.insert(index, place)
            self.rows.insert(index, row)
            self._hosts.insert(index, row.hosts)
            self._estimate.insert(index, row.estimate_s)
        self.new.append(row)
        self.ages.add(row)

    def remove(self, row: Job) -> None:
        """Take a row out."""
        self.ages.remove(row)
        index = 0 if self.rows[0] is row else bisect_left(self._keys, row.sort_key)
        del self._keys[index], self.rows[index]
        del self._hosts[index], self._estimate[index]
        if not self.time_invariant:
            self._boxes.remove(row.number)

    def ordered(self, now_s: float) -> Iterator[Job]:
        """Iterate over all jobs in order; the queue may not change meanwhile."""
        return iter(self.rows) if self.time_invariant else self._boxes.sorted(now_s, Gap())

    def fitting(self, now_s: float, gap: Gap) -> Iterator[Job]:
        """Iterate over the jobs within the limits, in order; the queue may not change meanwhile.

        Limits may fall meanwhile; jobs beyond those that fell last may still come.
        """
        return self._scan(gap) if self.time_invariant else self._boxes.sorted(now_s, gap)

    def _scan(self, gap: Gap) -> Iterator[Job]:
        # a generator, as mypyc makes lists of expressions of them, to the last row
        rows = self.rows
        at, count = 0, len(rows)
        while at < count and (count - at < VECTOR_MIN or gap.free == math.inf):
            row = rows[at]
            at += 1
            if row.hosts <= gap.free and (row.hosts <= gap.extra or row.estimate_s <= gap.window_s):
                yield row
        if at < count:
            # the arrays cannot grow while a view of them exists, so none is kept
            for i in self._within(gap)[at:].nonzero()[0]:
                yield rows[at + i]

    def _within(self, gap: Gap) -> Any:
        return gap.fits(np.frombuffer(self._hosts, dtype=np.int64), np.frombuffer(self._estimate, dtype=np.float64))


class Ends:
    """Latest expected ends of running jobs, soonest first."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, int]] = []

    def add(self, end_s: float, serial: int, hosts: int) -> tuple[float, int, int]:
        """Add a run; return the ticket for `remove`."""
        row = (end_s, serial, hosts)
        insort(self.rows, row)
        return row

    def remove(self, ticket: tuple[float, int, int]) -> None:
        """Remove a run."""
        del self.rows[bisect_left(self.rows, ticket)]

    def shadow(self, needed: int, free: int) -> tuple[float, int]:
        """Return (shadow time in s, hosts to spare then) for a job of `needed` hosts when `free` are free now.

        The shadow time is when enough hosts are expected to be free; infinite (and no host to spare) if never.
        """
        rows = self.rows
        for index, (end_s, _, hosts) in enumerate(rows):
            free += hosts
            if free >= needed:
                # runs that end at that very time release their hosts, too
                for later_s, _, more in rows[index + 1 :]:
                    if later_s > end_s:
                        break
                    free += more
                return end_s, free - needed
        return math.inf, 0


Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.intp]

BOX = 256
"""Jobs in a box."""
REBUILD_MIN = 512
"""Boxes are built again when more jobs are loose, or a sixteenth of all."""
SORT_ALL_MAX = 8 * BOX
"""Greatest number of jobs that are sorted without boxes."""
FIRST_SORTED = 48
"""Jobs that are sorted at first: seldom are more requested."""
_SUBMIT, _WALLTIME, _HOSTS, _NEED, _SERIAL = range(5)
_MARGIN = 1e-9
"""Bounds are lower than the keys of corners by this share: powers are not rounded correctly."""


def no_number(order: Order, job: Any) -> InputError:
    """Return the error for a job without a place, as its key is NaN."""
    name, shape = order.name or type(order).__name__, f"{job.hosts} hosts, walltime {job.estimate_s:g} s"
    problem = f"{name}: the key of job {job.name} ({shape}) is not a number (NaN)"
    return InputError("option 'order'", problem, "return a number or an infinity from key()")


class Boxes:
    """Waiting jobs by the key of an order; ties go to the earlier submission, then to the smaller serial number."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._columns = np.empty((5, REBUILD_MIN))
        self._items: list[Any] = []
        self._slots: dict[int, int] = {}
        self._boxed = 0
        """Slots from this one on are loose."""
        self._left = np.empty(0, dtype=np.int64)
        """Jobs left in each box."""
        self._low = np.empty((5, 0))
        """Least value of each column in each box."""
        self._corners: Columns
        """Of each box the jobs with the least or the greatest submission, walltime and hosts."""
        self._bounds: tuple[float, Floats] = math.nan, np.empty(0)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, item: Any, row: tuple[float, ...]) -> None:
        """Add a job; `row`: submission and walltime in s, hosts, need, serial number."""
        slot = len(self._items)
        if slot == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
        self._columns[:, slot] = row
        self._slots[int(row[_SERIAL])] = slot
        self._items.append(item)

    def remove(self, serial: int) -> None:
        """Remove the job of a serial number."""
        slot = self._slots.pop(serial)
        self._items[slot] = None
        # within no limit
        self._columns[_NEED, slot] = math.nan
        if slot < self._boxed:
            self._left[slot // BOX] -= 1

    def sorted(self, now_s: float, gap: Gap) -> Iterator[Any]:
        """Yield the jobs within the limits, in order.

        Meanwhile limits may fall and jobs may be removed; none may be added.
        """
        loose = len(self._items) - self._boxed
        if loose > max(REBUILD_MIN, len(self) // 16) or len(self._items) > 2 * len(self) + BOX:
            self._build(now_s)
        submits, walltimes, _, needs, serials = self._columns[:, : len(self._items)]
        boxes: Slots = np.arange(0)
        bounds: Floats = np.empty(0)
        # without limits nearly all fit
        unlimited = gap.free == math.inf and len(self) > SORT_ALL_MAX
        opened = boxes if unlimited else np.flatnonzero(gap.fits(needs, walltimes))
        if self._boxed and (unlimited or len(opened) > SORT_ALL_MAX):
            opened = np.arange(self._boxed, len(self._items))
            bounds = self._bounds_at(now_s)
            within = np.flatnonzero(gap.fits(self._low[_NEED], self._low[_WALLTIME]) & (self._left > 0))
            boxes = within[bounds[within].argsort()]
            bounds = bounds[boxes]
        slots, keys = opened[:0], np.empty(0)
        at, count, several = 0, 1, FIRST_SORTED
        selected = gap.free, gap.window_s, gap.extra
        while True:
            if at < len(boxes) and selected != (gap.free, gap.window_s, gap.extra):
                selected = gap.free, gap.window_s, gap.extra
                boxes, bounds, at = boxes[at:], bounds[at:], 0
                within = gap.fits(self._low[_NEED, boxes], self._low[_WALLTIME, boxes])
                boxes, bounds = boxes[within], bounds[within]
            if at < len(boxes):
                to = max(at + count, int(np.searchsorted(bounds, keys.min(), "right")) if len(keys) else 0)
                inside = (boxes[at:to, None] * BOX + np.arange(BOX)).ravel()
                opened = np.concatenate([opened, inside])
                at, count = to, 2 * count
            opened = opened[gap.fits(needs[opened], walltimes[opened])]
            slots, keys = np.concatenate([slots, opened]), np.concatenate([keys, self._keys(opened, now_s)])
            opened = opened[:0]
            while len(slots) and (at >= len(boxes) or keys.min() < bounds[at]):
                first = _smallest((keys, submits[slots], serials[slots]), several)
                if at < len(boxes):
                    first = first[: np.searchsorted(keys[first], bounds[at])]
                nearest = slots[first]
                left = np.ones(len(slots), dtype=np.bool_)
                left[first] = False
                slots, keys, several = slots[left], keys[left], 8 * several
                while len(nearest):
                    limits = gap.free, gap.window_s, gap.extra
                    passed = 0
                    for slot in nearest:
                        passed += 1
                        yield self._items[slot]
                        if limits != (gap.free, gap.window_s, gap.extra):
                            break
                    nearest = nearest[passed:]
                    if limits != (gap.free, gap.window_s, gap.extra):
                        nearest = nearest[gap.fits(needs[nearest], walltimes[nearest])]
                        fits = gap.fits(needs[slots], walltimes[slots])
                        slots, keys = slots[fits], keys[fits]
            if at >= len(boxes) and not len(slots):
                return

    def _keys(self, slots: Slots, now_s: float) -> Floats:
        submits, walltimes, hosts = self._columns[: _HOSTS + 1]
        jobs = Columns(submits[slots], walltimes[slots], hosts[slots].astype(np.int64))
        keys: Floats = np.asarray(self._order.key(jobs, now_s), dtype=np.float64) + np.zeros(len(slots))
        least: float = keys.min(initial=math.inf)
        if least != least:
            raise no_number(self._order, self._items[slots[np.isnan(keys)][0]])
        return keys

    def _build(self, now_s: float) -> None:
        """Put all jobs into boxes, but for a few that fill none."""
        present = np.array(list(self._slots.values()), dtype=np.intp)
        static = self._order.time_invariant
        dimensions = [self._keys(present, now_s) if static else self._columns[_SUBMIT, present]]
        dimensions += [self._columns[_WALLTIME, present], self._columns[_NEED, present]]
        ranks = np.array([np.unique(values, return_inverse=True)[1] for values in dimensions], dtype=np.float64)
        ranks /= np.maximum(ranks.max(axis=1, initial=0.0, keepdims=True), 1.0)
        order = np.concatenate([np.arange(0), *_leaves(ranks, np.arange(len(present)))])
        boxed_first = present[order]
        count = len(boxed_first) // BOX
        self._boxed = count * BOX
        moved = self._columns[:, boxed_first]
        self._columns[:, : len(boxed_first)] = moved
        self._items = [self._items[slot] for slot in boxed_first.tolist()]
        self._slots = {int(serial): slot for slot, serial in enumerate(moved[_SERIAL].tolist())}
        boxed = moved[:, : self._boxed].reshape(5, count, BOX)
        self._low, high = boxed.min(axis=2), boxed.max(axis=2)
        sides = [(self._low[column], high[column]) for column in (_SUBMIT, _WALLTIME, _HOSTS)]
        submits, walltimes, hosts = (np.concatenate(some) for some in zip(*product(*sides), strict=True))
        self._corners = Columns(submits, walltimes, hosts.astype(np.int64))
        self._left = np.full(count, BOX)
        self._bounds = math.nan, np.empty(0)
        if static:
            self._bounds = now_s, self._keys(np.arange(self._boxed), now_s).reshape(count, BOX).min(axis=1)

    def _bounds_at(self, now_s: float) -> Floats:
        """Return the bound of each box at a time: its least key if keys are constant, else the least of its corners."""
        order, count = self._order, len(self._left)
        if order.time_invariant or self._bounds[0] == now_s:
            return self._bounds[1]
        bounds = np.full(count, -math.inf)
        if order.monotone and count:
            keys = order.key(self._corners, now_s)
            least = np.reshape(keys, (8, count)).min(axis=0)
            bounds = least - _MARGIN * np.abs(least)
        self._bounds = now_s, bounds
        return bounds


def _leaves(ranks: Floats, rows: Slots) -> Iterator[Slots]:
    """Halve rows where their ranks differ most, again and again, into leaves of `BOX`, the last of fewer."""
    if len(rows) <= BOX:
        yield rows
        return
    widest = int(np.argmax(np.ptp(ranks[:, rows], axis=1)))
    half = (len(rows) // BOX + 1) // 2 * BOX
    rows = rows[np.argpartition(ranks[widest, rows], half - 1)]
    yield from _leaves(ranks, rows[:half])
    yield from _leaves(ranks, rows[half:])


def _smallest(columns: tuple[Floats, ...], count: int) -> Slots:
    """Return the first `count` positions by the columns, then by position, in this order."""
    parts: list[Slots] = []
    left = np.arange(len(columns[0]))
    for column in columns:
        missing = count - sum(map(len, parts))
        if not 0 < missing < len(left):
            break
        values = column[left]
        last = np.partition(values, missing - 1)[missing - 1]
        parts.append(left[values < last])
        left = left[values == last]
    first = np.concatenate([*parts, left[: max(0, count - sum(map(len, parts)))]])
    first.sort()
    # lexsort is stable; the last key counts first
    keys = [column[first] for column in columns]
    return first[np.lexsort(keys[::-1])]


@mypyc_attr(allow_interpreted_subclasses=True)
class Room:
    """Resources in which jobs may start; `is_open` until nothing more fits.

    A queue may leave out jobs beyond `limits`, which only fall: the room checks each job itself.
    """

    def __init__(self) -> None:
        self.limits: Final = Gap()
        self.is_open = True

    def start(self, job: Any) -> bool:
        """Start a job; return False if it does not fit, now or beside a reservation."""
        raise NotImplementedError

    def reserve(self, job: Any) -> bool:
        """Reserve for a job that does not fit; return False if it gets no reservation, so that the next one may."""
        raise NotImplementedError

    def behind(self, candidates: Iterator[Any]) -> Iterator[Any]:
        """Select candidates behind the first job that does not fit: all of them, unless a room weighs whole sets."""
        return candidates


def backfill(rule: str, candidates: Iterator[Any], room: Room, aged: Sequence[Any] = ()) -> None:
    """Start candidates in order; one that does not fit is passed over, stops those behind it, or gets a reservation.

    `rule`: pass, stop or reserve (`Backfilling.blocked`). `aged` jobs come before all others, and the first of them
    that does not fit gets the reservation, whatever the rule.
    """
    first: set[int] = set()
    held = False
    for job in aged:
        if not room.is_open:
            return
        first.add(job.number)
        if not (room.start(job) or held):
            held = room.reserve(job)
    if held and rule == "stop":
        return
    unreserved = rule == "reserve" and not held
    blocked = held
    if held:
        candidates = room.behind(candidates)
    while room.is_open:
        job = next(candidates, None)
        if job is None:
            break
        if first and job.number in first:
            continue
        if room.start(job):
            continue
        if rule == "stop":
            break
        if unreserved:
            unreserved = not room.reserve(job)
        if not blocked:
            blocked = True
            candidates = room.behind(candidates)
