"""The waiting jobs, kept in the order of an `Order`.

The columns are typed arrays, walked in Python while the queue is short and seen as numpy vectors when it is long, so
that a pass over ten thousand waiting jobs costs tens of microseconds.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Final, final

import numpy as np

from batwatt.scheduling.boxes import Boxes
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.orders import Columns, Order

LONG: Final = 48 if __file__.endswith(".py") else 2000
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

    def add(self, job: ManagedJob) -> None:
        """Add a job that waits."""
        if self.limit_s < math.inf:
            insort(self._rows, (job.release_s, job.number, job))

    def remove(self, job: ManagedJob) -> None:
        """Remove a job that waits no more."""
        if self.limit_s < math.inf:
            del self._rows[bisect_left(self._rows, (job.release_s, job.number))]

    def is_aged(self, job: ManagedJob, now_s: float) -> bool:
        """Return whether a job is older than the limit."""
        return now_s - job.release_s >= self.limit_s

    def aged(self, now_s: float) -> list[ManagedJob]:
        """Return the waiting jobs older than the limit, the oldest first."""
        aged: list[ManagedJob] = []
        for row in self._rows:
            job: ManagedJob = row[2]
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
        self.new: list[ManagedJob] = []
        self._keys: list[tuple[float, float, int]] = []
        self.rows: list[ManagedJob] = []
        self._hosts = array("q")
        self._estimate = array("d")
        self._boxes = Boxes(order)
        """All jobs, unless their order never changes."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ManagedJob]:
        return iter(list(self.rows))

    def add(self, row: ManagedJob, key: float | None = None) -> None:
        """Put a job in the queue; `key` replaces that of a static order, to which the estimate is the walltime."""
        if self.time_invariant:
            if key is None:
                key = float(self._order.key(Columns(row.submit_s, row.estimate_s, row.hosts), 0.0))
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

    def remove(self, row: ManagedJob) -> None:
        """Take a row out."""
        self.ages.remove(row)
        index = 0 if self.rows[0] is row else bisect_left(self._keys, row.sort_key)
        del self._keys[index], self.rows[index]
        del self._hosts[index], self._estimate[index]
        if not self.time_invariant:
            self._boxes.remove(row.number)

    def ordered(self, now_s: float) -> Iterator[ManagedJob]:
        """Iterate over all jobs in order; the queue may not change meanwhile."""
        return iter(self.rows) if self.time_invariant else self._boxes.sorted(now_s, Gap())

    def fitting(self, now_s: float, gap: Gap) -> Iterator[ManagedJob]:
        """Iterate over the jobs within the limits, in order; the queue may not change meanwhile.

        Limits may fall meanwhile; jobs beyond those that fell last may still come.
        """
        return self._scan(gap) if self.time_invariant else self._boxes.sorted(now_s, gap)

    def _scan(self, gap: Gap) -> Iterator[ManagedJob]:
        # a generator, as mypyc makes lists of expressions of them, to the last row
        rows = self.rows
        at, count = 0, len(rows)
        while at < count and (count - at < LONG or gap.free == math.inf):
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
