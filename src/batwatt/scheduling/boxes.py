"""Waiting jobs in the order of an `Order`, without a sort of all of them at each event.

Jobs of similar submission, walltime and need share a *box*: a leaf of a k-d tree over the ranks of these numbers. The
bound of a box is a number that no key in it is below. Boxes are opened by ascending bound, those in which nothing fits
not at all; a job comes next when its key is below the bounds of all boxes that are not open. Jobs that were added after
the last building of the boxes are *loose*: their keys are worked out each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.orders import Columns, Order

if TYPE_CHECKING:
    from batwatt.scheduling.queue import Gap

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.intp]

BOX = 256
"""Jobs in a box."""
LOOSE = 512
"""Boxes are built again when more jobs are loose, or a sixteenth of all."""
FEW = 8 * BOX
"""Greatest number of jobs that are sorted without boxes."""
SEVERAL = 48
"""Jobs that are sorted at first: seldom are more requested."""
_SUBMIT, _WALLTIME, _HOSTS, _NEED, _SERIAL = range(5)
_MARGIN = 1e-9
"""Bounds are lower than the keys of corners by this share: powers are not rounded correctly."""


class Boxes:
    """Waiting jobs by the key of an order; ties go to the earlier submission, then to the smaller serial number."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._columns = np.empty((5, LOOSE))
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
        if loose > max(LOOSE, len(self) // 16) or len(self._items) > 2 * len(self) + BOX:
            self._build(now_s)
        submits, walltimes, _, needs, serials = self._columns[:, : len(self._items)]
        boxes: Slots = np.arange(0)
        bounds: Floats = np.empty(0)
        # without limits nearly all fit
        unlimited = gap.free == math.inf and len(self) > FEW
        opened = boxes if unlimited else np.flatnonzero(gap.fits(needs, walltimes))
        if self._boxed and (unlimited or len(opened) > FEW):
            opened = np.arange(self._boxed, len(self._items))
            bounds = self._bounds_at(now_s)
            within = np.flatnonzero(gap.fits(self._low[_NEED], self._low[_WALLTIME]) & (self._left > 0))
            boxes = within[bounds[within].argsort()]
            bounds = bounds[boxes]
        slots, keys = opened[:0], np.empty(0)
        at, count, several = 0, 1, SEVERAL
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
        return np.asarray(self._order.key(jobs, now_s), dtype=np.float64) + np.zeros(len(slots))

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
    # lexsort is stable
    return first[np.lexsort(tuple(column[first] for column in reversed(columns)))]
