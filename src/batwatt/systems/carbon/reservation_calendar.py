"""What of a cluster is still free, slot by slot, when jobs are planned one after another.

The rules: docs/explanation/carbon-engine.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from batwatt.model.phases import Array
from batwatt.model.series import Series
from batwatt.systems.carbon.execution import Execution
from batwatt.systems.carbon.starts import check_slots
from batwatt.units import PRECISION_S


@dataclass(frozen=True)
class Need:
    """What an execution holds: in slot `first + i` `cpus[i]` machines and at most `watts[i]` W."""

    first: int
    cpus: npt.NDArray[np.int64]
    watts: Array

    def __len__(self) -> int:
        return len(self.cpus)

    def later(self, slots: int) -> Need:
        """The same some slots later."""
        return replace(self, first=self.first + slots)


class ReservationCalendar:
    """The free machines and watts of each slot of `slot_s` s from 0 on.

    A slot has the least of the capacity and of the envelope within it, and who runs in a part of it holds all of it:
    what fits here fits at every moment. After the last row of a series its last value holds for ever.
    """

    def __init__(self, slot_s: float, machines: Series, watts: Series | None = None) -> None:
        self.slot_s = slot_s
        self._machines, self._watts = machines, watts
        ends = [series.times_s[-1] for series in (machines, watts) if series is not None]
        check_slots(max(ends), slot_s)
        self._settled = math.ceil(max(ends) / slot_s) + 1
        """From this slot on nothing changes and nothing is held."""
        self.free = np.zeros(0)
        self.room_w = np.zeros(0)
        self._reach(self._settled)

    def need(self, execution: Execution) -> Need:
        """What an execution holds."""
        spans = list(self._spans(execution))
        first, last = spans[0][0], max(end for _, end, _ in spans)
        cpus = np.zeros(last - first, dtype=np.int64)
        watts = np.zeros(last - first)
        for begin, end, power_w in spans:
            part = slice(begin - first, end - first)
            cpus[part] = execution.job.cpus
            np.maximum(watts[part], power_w, out=watts[part])
        return Need(first, cpus, watts)

    def fits(self, need: Need) -> bool:
        """Whether all of it is free."""
        self._reach(need.first + len(need))
        part = slice(need.first, need.first + len(need))
        return bool((self.free[part] >= need.cpus).all() and (self.room_w[part] >= need.watts).all())

    def fitting(self, need: Need, most: int) -> npt.NDArray[np.bool_]:
        """For each delay of 0 to `most` slots, whether it fits then; shape [most + 1]."""
        self._reach(need.first + most + len(need))
        good = np.ones(most + 1, dtype=np.bool_)
        changes = (np.diff(need.cpus) != 0) | (np.diff(need.watts) != 0.0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(need)]
        for begin, end in pairwise(edges):
            cpus, watts = int(need.cpus[begin]), float(need.watts[begin])
            if cpus:
                # full slots among those from each delay on, as many as need the same
                full = self.full(need.first + begin, most + end - begin, cpus, watts)
                before = np.concatenate([(0,), np.cumsum(full)])
                good &= before[end - begin :] == before[: most + 1]
        return good

    def delay(self, need: Need) -> int | None:
        """The least number of slots after which it fits; None if it never does."""
        most = max(0, self._settled - need.first)
        good = self.fitting(need, most)
        return int(np.argmax(good)) if good.any() else None

    def full(self, first: int, count: int, cpus: int, power_w: float) -> npt.NDArray[np.bool_]:
        """The slots, from `first` on, without room for so many machines and watts."""
        self._reach(first + count)
        part = slice(first, first + count)
        return np.asarray((self.free[part] < cpus) | (self.room_w[part] < power_w))

    def take(self, need: Need) -> None:
        """Hold it."""
        self._reach(need.first + len(need))
        part = slice(need.first, need.first + len(need))
        self.free[part] -= need.cpus
        self.room_w[part] -= need.watts
        self._settled = max(self._settled, need.first + len(need))

    def give_back(self, need: Need) -> None:
        """Hold it no longer."""
        part = slice(need.first, need.first + len(need))
        self.free[part] += need.cpus
        self.room_w[part] += need.watts

    def _spans(self, execution: Execution) -> Iterator[tuple[int, int, float]]:
        """(first slot, slot after the last, W) of each step of power."""
        for segment in execution.segments:
            steps = segment.steps(execution.job.model)
            check_slots(segment.begin_s + float(steps.edges_s[-1]), self.slot_s)
            slots = (segment.begin_s + steps.edges_s) / self.slot_s
            begins = np.floor(slots[:-1] + PRECISION_S).astype(int)
            ends = np.maximum(np.ceil(slots[1:] - PRECISION_S).astype(int), begins + 1)
            for begin, end, watts in zip(begins.tolist(), ends.tolist(), steps.watts.tolist(), strict=True):
                yield begin, end, watts * execution.job.cpus

    def _reach(self, slots: int) -> None:
        """Know at least so many slots."""
        known = len(self.free)
        if slots <= known:
            return
        check_slots(slots * self.slot_s, self.slot_s)
        slots = max(slots, 2 * known)
        self.free = np.concatenate([self.free, self._least(self._machines, known, slots)])
        more = np.full(slots - known, np.inf) if self._watts is None else self._least(self._watts, known, slots)
        self.room_w = np.concatenate([self.room_w, more])

    def _least(self, series: Series, first: int, last: int) -> Array:
        """The least value within each of some slots."""
        times, values = np.array(series.times_s), np.array(series.values)
        begins: Array = np.arange(first, last, dtype=np.float64) * self.slot_s
        found: Array = values[np.maximum(np.searchsorted(times, begins, "right") - 1, 0)]
        within = np.floor(times / self.slot_s).astype(int) - first
        kept = (within >= 0) & (within < last - first)
        np.minimum.at(found, within[kept], values[kept])
        return found
