"""The plan of a backfill pass: free hosts by time, on a grid of `bf_resolution` (Slurm's sched_config)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import final

from batwatt.model import hostset
from batwatt.units import REPORTED_S


@final
class BackfillPlan:
    """Slots of time, numbered from 0 s on, and the hosts that are free in each; the last one never ends.

    `free`: hosts that are free now; `running`: (latest end in s, hosts) of runs, in a row of slots up to the first one
    after their end; a run past its end holds its hosts for one more slot. No start is planned after the window.
    """

    def __init__(
        self, now_s: float, resolution_s: float, window_s: float, free: int, running: Iterable[tuple[float, int]]
    ) -> None:
        self._now_s, self._resolution_s = now_s, resolution_s
        self.first = math.floor((now_s + REPORTED_S) / resolution_s)
        """The slot of the present."""
        self._last = math.floor((now_s + REPORTED_S + window_s) / resolution_s)
        ends: dict[int, int] = {}
        for end_s, mask in running:
            slot = max(self._up(end_s), self.first + 1) if end_s < math.inf else math.inf
            if slot <= self._last:
                ends[int(slot)] = ends.get(int(slot), 0) | mask
        self._slots = [self.first]
        self._free = [free]
        for slot in sorted(ends):
            free |= ends[slot]
            self._slots.append(slot)
            self._free.append(free)
        self._counts: dict[int, list[int]] = {}
        """Hosts -> the number of them that are free in each slot."""
        self._earliest: dict[int, list[tuple[int, float, float]]] = {}
        """Hosts -> (width, limit in s, first slot that was possible, infinite without one) of jobs placed there."""

    def _up(self, time_s: float) -> int:
        return math.ceil((time_s - REPORTED_S) / self._resolution_s)

    def fits_now(self, hosts: int, width: int, limit_s: float) -> bool:
        """Return whether `width` of some hosts are free from now on for a time limit in s."""
        end = self._up(self._now_s + limit_s)
        for slot, free in zip(self._slots, self._free, strict=True):
            if slot >= end and slot > self.first:
                break
            hosts &= free
            if hosts.bit_count() < width:
                return False
        return True

    def place(self, hosts: int, width: int, limit_s: float) -> tuple[int, int] | None:
        """Reserve `width` of some hosts for a time limit in s, as early as they are free all along.

        Return the slot of the start and the mask of the hosts, or None if there are too few in the window. A start in
        the first slot is one now.
        """
        slots, free = self._slots, self._free
        # from now on it ends within a slot, from a later one on it begins with one
        now_end, later = self._up(self._now_s + limit_s), self._up(limit_s)
        earliest = self._earliest.setdefault(hosts, [])
        # no job starts before a narrower and shorter one could
        begin: float = max([slot for w, limit, slot in earliest if w <= width and limit <= limit_s], default=self.first)
        index = bisect_left(slots, begin) if begin < math.inf else len(slots)
        counts = self._counts.setdefault(hosts, [])
        if not counts:
            counts += [(mask & hosts).bit_count() for mask in free]
        count = len(slots)
        while index < count and (slot := slots[index]) <= self._last:
            if counts[index] < width:
                index += 1
                continue
            mask = free[index] & hosts
            end = now_end if slot == self.first else slot + later
            ahead = index + 1
            while ahead < count and slots[ahead] < end:
                if counts[ahead] < width:
                    # nor does it fit if it starts before the end of that slot
                    index = ahead
                    break
                mask &= free[ahead]
                if mask.bit_count() < width:
                    break
                ahead += 1
            else:
                mask = hostset.lowest(mask, width)
                self._remember(earliest, width, limit_s, slot)
                self._reserve(mask, slot, end)
                return slot, mask
            index += 1
        self._remember(earliest, width, limit_s, math.inf)
        return None

    @staticmethod
    def _remember(earliest: list[tuple[int, float, float]], width: int, limit_s: float, slot: float) -> None:
        """Add the first slot of a job, and remove slots that are no bound any more."""
        earliest[:] = [row for row in earliest if row[0] < width or row[1] < limit_s or row[2] > slot]
        earliest.append((width, limit_s, slot))

    def _reserve(self, mask: int, begin: int, end: int) -> None:
        """Take hosts from one slot up to another one."""
        first = self._cut(begin)
        last = self._cut(max(end, begin + 1)) if end <= self._last else len(self._slots)
        for index in range(first, last):
            self._free[index] &= ~mask
        for hosts, counts in self._counts.items():
            fewer = (hosts & mask).bit_count()
            counts[first:last] = [count - fewer for count in counts[first:last]]

    def _cut(self, slot: int) -> int:
        """Return the index of the slot, after letting one begin there."""
        index = bisect_right(self._slots, slot)
        if self._slots[index - 1] == slot:
            return index - 1
        self._slots.insert(index, slot)
        for values in (self._free, *self._counts.values()):
            values.insert(index, values[index - 1])
        return index
