"""The waiting jobs of an episode, the visible ones with their figures in arrays that are written in place."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from batwatt.results.slowdowns import BOUND_S

NEVER_S: Final = 1e15
"""Stands for an infinite time in observations."""
NO_JOB: Final = np.iinfo(np.int64).max
"""Hosts that a place without a job asks for: more than there are."""


class Waiting:
    """A job in the queue; `name` is its id in the workload, `submit_s` its first submission."""

    __slots__ = ("hosts", "job_id", "name", "profile", "submit_s", "walltime_s")

    def __init__(
        self, job_id: str, name: str, hosts: int, walltime_s: float | None, submit_s: float, profile: str
    ) -> None:
        self.job_id = job_id
        self.name = name
        self.hosts = hosts
        self.walltime_s = walltime_s
        self.submit_s = submit_s
        self.profile = profile


class Visible:
    """The waiting jobs, the first `places` of them with their figures in arrays; the others behind.

    `needs` and `hosts` are the hosts that they ask for, `walltime_s` their walltimes, `lasting_s` those or what bounds
    a slowdown, `submit_s` their first submissions, `present` is 1 where a job is. Where none is, `needs` are `NO_JOB`,
    `lasting_s` 1 s, the others 0.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.rows: list[Waiting] = []
        self.rest: deque[Waiting] = deque()
        self.needs = np.full(places, NO_JOB)
        self._figures = np.zeros((5, places))
        self.hosts, self.walltime_s, self.lasting_s, self.submit_s, self.present = self._figures
        self.lasting_s[:] = 1.0

    def __len__(self) -> int:
        return len(self.rows) + len(self.rest)

    def add(self, row: Waiting) -> None:
        """Put a job at the end."""
        if len(self.rows) < self.places:
            self._show(row)
        else:
            self.rest.append(row)

    def _show(self, row: Waiting) -> None:
        place = len(self.rows)
        self.rows.append(row)
        walltime_s = NEVER_S if row.walltime_s is None else row.walltime_s
        self.needs[place] = self.hosts[place] = row.hosts
        self.walltime_s[place] = walltime_s
        self.lasting_s[place] = max(walltime_s, BOUND_S)
        self.submit_s[place] = row.submit_s
        self.present[place] = 1.0

    def _clear(self, place: int) -> None:
        self.needs[place] = NO_JOB
        self.lasting_s[place] = 1.0
        self.hosts[place] = self.walltime_s[place] = self.submit_s[place] = self.present[place] = 0.0

    def take(self, place: int) -> Waiting:
        """Take a visible job out; those behind it move up."""
        row = self.rows.pop(place)
        left = len(self.rows)
        if place < left:
            self.needs[place:left] = self.needs[place + 1 : left + 1]
            self._figures[:, place:left] = self._figures[:, place + 1 : left + 1]
        self._clear(left)
        if self.rest:
            self._show(self.rest.popleft())
        return row

    def take_wider(self, most: int) -> list[Waiting]:
        """Take out all jobs of more than `most` hosts."""
        everyone = [*self.rows, *self.rest]
        wider = [row for row in everyone if row.hosts > most]
        if wider:
            for place in range(len(self.rows)):
                self._clear(place)
            self.rows.clear()
            self.rest.clear()
            for row in everyone:
                if row.hosts <= most:
                    self.add(row)
        return wider
