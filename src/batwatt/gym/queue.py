"""The waiting jobs of an episode, the visible ones with their figures in arrays that are written in place."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from batwatt.results.slowdowns import BOUND_S
from batwatt.scheduling.jobs import ManagedJob

NEVER_S: Final = 1e15
"""Time in s in place of an infinite one in observations."""
_NO_JOB: Final = np.array((math.inf, 0.0, 0.0, 1.0, 0.0, 0.0))
"""The figures of a place without a job."""


class Visible:
    """The waiting jobs `rows`, the first `places` of them with their figures in arrays.

    `needs` and `hosts` are the hosts that they ask for, `walltime_s` their requests, `lasting_s` those or what bounds
    a slowdown, `submit_s` their first submissions, `present` is 1 where a job is. Where none is, `needs` are infinite,
    `lasting_s` 1 s, the others 0.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.rows: list[ManagedJob] = []
        self._figures = np.repeat(_NO_JOB[:, None], places, axis=1)
        self.needs, self.hosts, self.walltime_s, self.lasting_s, self.submit_s, self.present = self._figures

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, job: ManagedJob) -> None:
        """Put a job at the end."""
        self.rows.append(job)
        if len(self.rows) <= self.places:
            self._show(len(self.rows) - 1)

    def take(self, place: int) -> ManagedJob:
        """Take a visible job out; those behind it move up."""
        last = min(len(self.rows), self.places) - 1
        job = self.rows.pop(place)
        if place < last:
            self._figures[:, place:last] = self._figures[:, place + 1 : last + 1]
        self._show(last)
        return job

    def _show(self, place: int) -> None:
        """Write the figures of a place."""
        if place >= len(self.rows):
            self._figures[:, place] = _NO_JOB
            return
        job = self.rows[place]
        walltime_s = min(job.request_s, NEVER_S)
        self._figures[:, place] = (job.hosts, job.hosts, walltime_s, max(walltime_s, BOUND_S), job.submit_s, 1.0)
