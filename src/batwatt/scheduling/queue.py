"""The waiting jobs, kept in the order of an `Order`.

The columns are typed arrays, walked in Python while the queue is short and seen as numpy vectors when it is long, so
that a pass over ten thousand waiting jobs costs tens of microseconds.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.orders import Columns, Order

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

SEVERAL: Final = 48
"""Rows that are sorted at first."""
LONG: Final = SEVERAL if __file__.endswith(".py") else 2000
"""From this many waiting jobs on, vectors beat a loop, which is another one when it is compiled."""


class Waiting:
    """A job in the queue; what an order sees when it is asked for one job."""

    __slots__ = ("hosts", "job", "serial", "sort_key", "submit_s", "walltime_s")

    def __init__(self, job: Any, serial: int) -> None:
        self.job = job
        self.serial = serial
        self.hosts: int = job.requested_resources
        self.submit_s: float = job.submit_time
        walltime = job.requested_time
        self.walltime_s: float = walltime if walltime is not None and walltime > 0 else math.inf
        self.sort_key: tuple[float, float, int] = (0.0, 0.0, serial)


class Queue:
    """Waiting jobs; ties of the order's key go to the earlier submission, then to the earlier arrival.

    With a static order (its key does not depend on the time) the rows are kept sorted; otherwise they are in order of
    arrival and sorted when asked for. `rows` are all jobs, `new` those added since whoever decides last cleared it;
    `time_invariant` tells whether the order of two jobs never changes.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self.time_invariant = order.time_invariant
        self._serial = 0
        self.new: list[Waiting] = []
        self._keys: list[tuple[float, float, int]] = []
        self.rows: list[Waiting] = []
        self._hosts = array("q")
        self._walltime = array("d")
        self._submit = array("d")
        self._known: tuple[float, Floats, Floats] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(list(self.rows))

    def add(self, job: Any) -> None:
        """Put a pybatsim job in the queue."""
        self._known = None
        self._serial += 1
        row = Waiting(job, self._serial)
        if self.time_invariant:
            row.sort_key = (float(self._order.key(row, 0.0)), row.submit_s, row.serial)
        keys, key = self._keys, row.sort_key
        if not keys or key > keys[-1]:
            keys.append(key)
            self.rows.append(row)
            self._hosts.append(row.hosts)
            self._walltime.append(row.walltime_s)
            self._submit.append(row.submit_s)
        else:
            index = bisect_left(keys, key)
            keys.insert(index, key)
            self.rows.insert(index, row)
            self._hosts.insert(index, row.hosts)
            self._walltime.insert(index, row.walltime_s)
            self._submit.insert(index, row.submit_s)
        self.new.append(row)

    def remove(self, row: Waiting) -> None:
        """Take a row out."""
        self._known = None
        index = 0 if self.rows[0] is row else bisect_left(self._keys, row.sort_key)
        del self._keys[index], self.rows[index]
        del self._hosts[index], self._walltime[index], self._submit[index]

    def _now(self, now_s: float) -> tuple[Floats, Floats]:
        """The keys and the submissions of all rows; kept until the queue or the time changes."""
        if self._known is None or self._known[0] != now_s:
            # copies: the arrays cannot grow while a view of them exists
            vectors = Columns(np.array(self._submit), np.array(self._walltime), np.array(self._hosts, dtype=np.int64))
            keys = np.asarray(self._order.key(vectors, now_s), dtype=np.float64) + np.zeros(len(self.rows))
            self._known = now_s, keys, vectors.submit_s
        return self._known[1:]

    def ordered(self, now_s: float) -> Iterator[Waiting]:
        """All jobs in order, as far as they are asked for; the queue may not change meanwhile."""
        if self.time_invariant or len(self.rows) < 2:
            return iter(self.rows)
        return self._sorted(now_s, np.arange(len(self.rows)))

    def fitting(self, now_s: float, free: int, window_s: float = math.inf, extra: int = 0) -> Iterator[Waiting]:
        """In order, the jobs of at most `free` hosts that end within `window_s` or need at most `extra` hosts.

        As far as they are asked for; the queue may not change meanwhile.
        """
        count = len(self.rows)
        if count < LONG and self.time_invariant:
            return self._scan(free, window_s, extra)
        if count == 0:
            return iter(())
        hosts = np.frombuffer(self._hosts, dtype=np.int64)
        fits = hosts <= free
        if window_s < math.inf:
            fits &= (np.frombuffer(self._walltime, dtype=np.float64) <= window_s) | (hosts <= extra)
        # the arrays cannot grow while a view of them exists
        del hosts
        indices = np.flatnonzero(fits)
        return self._rows_at(indices) if self.time_invariant else self._sorted(now_s, indices)

    # generators, as mypyc makes lists of expressions of them, to the last row

    def _rows_at(self, indices: Indices) -> Iterator[Waiting]:
        for i in indices:
            yield self.rows[i]

    def _scan(self, free: int, window_s: float, extra: int) -> Iterator[Waiting]:
        for row in self.rows:
            if row.hosts <= free and (row.hosts <= extra or row.walltime_s <= window_s):
                yield row

    def _sorted(self, now_s: float, indices: Indices) -> Iterator[Waiting]:
        """The rows of rising indices in order, sorted a few at a time: seldom are more than the first ones wanted."""
        columns = tuple(column[indices] for column in self._now(now_s))
        done, wanted = 0, SEVERAL
        while done < len(indices):
            first = _smallest(columns, wanted)
            for i in indices[first[done:]]:
                yield self.rows[i]
            done, wanted = len(first), 8 * wanted


def _smallest(columns: Sequence[Floats], count: int) -> Indices:
    """The first `count` positions by the columns, then by position, in this order."""
    kept: list[Indices] = []
    left = np.arange(len(columns[0]))
    for column in columns:
        wanted = count - sum(map(len, kept))
        if not 0 < wanted < len(left):
            break
        values = column[left]
        last = np.partition(values, wanted - 1)[wanted - 1]
        kept.append(left[values < last])
        left = left[values == last]
    first = np.concatenate([*kept, left[: max(0, count - sum(map(len, kept)))]])
    first.sort()
    # lexsort is stable
    return first[np.lexsort([column[first] for column in reversed(columns)])]


class Ends:
    """When running jobs are expected to end at the latest, soonest first."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, int]] = []

    def add(self, end_s: float, serial: int, hosts: int) -> tuple[float, int, int]:
        """Remember a run; returns the ticket for `remove`."""
        row = (end_s, serial, hosts)
        insort(self.rows, row)
        return row

    def remove(self, ticket: tuple[float, int, int]) -> None:
        """Forget a run."""
        del self.rows[bisect_left(self.rows, ticket)]

    def shadow(self, needed: int, free: int) -> tuple[float, int]:
        """(shadow time in s, hosts to spare then) for a job of `needed` hosts when `free` are free now.

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
