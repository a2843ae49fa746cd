"""Backfilling by hosts and predicted power: a job starts if its hosts are free and the check holds with it.

A reservation counts both: it begins when the ends, by walltime, of running jobs leave enough hosts and enough power
under the present cap; later caps are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import TypeAlias

from batwatt.scheduling.cluster import Cluster, Start
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.passes import Room
from batwatt.systems.powercap.job_power.power_checks import Candidate, Headroom, Load, PowerCheck
from batwatt.units import microseconds

Held: TypeAlias = tuple[float, int, Load]
"""Expected end in s, hosts and load of a running job."""


class PowerRoom(Room):
    """The free hosts of a cluster under a dynamic power of `cap_w` W, of which running jobs have their loads.

    `load_of` predicts the load of a waiting job. `starts` are the jobs to start.
    """

    def __init__(
        self,
        cluster: Cluster,
        check: PowerCheck,
        load_of: Callable[[ManagedJob], Load],
        held: list[Held],
        cap_w: float,
    ) -> None:
        super().__init__()
        self.starts: list[Start] = []
        self._cluster, self._check, self._load_of, self._held = cluster, check, load_of, held
        self._free, self._begin_s = cluster.free, math.inf
        self._left = Headroom(self._free.bit_count(), Load.of(load for _, _, load in held), 0, Load(), cap_w)

    def _end_s(self, job: ManagedJob) -> float:
        return microseconds(self._cluster.now_s + job.estimate_s)

    def _candidate(self, job: ManagedJob) -> Candidate:
        return Candidate(job.hosts, self._load_of(job), self._end_s(job) > self._begin_s)

    def take(self, job: ManagedJob) -> bool:
        """See `Room`."""
        if job.hosts > self._left.hosts:
            return False
        candidate = self._candidate(job)
        left = self._check.after(candidate, self._left)
        if left is None:
            return False
        mask = self._cluster.select(job, self._free)
        self.starts.append(Start(job, mask))
        self._held.append((self._end_s(job), job.hosts, candidate.load))
        self._free &= ~mask
        self._left, self.is_open = left, left.hosts > 0
        return True

    def reserve(self, job: ManagedJob) -> bool:
        """See `Room`: a job that never fits gets a reservation that delays no other."""
        own, free, spare, later = self._load_of(job), self._left.hosts, 0, Load()
        ends = sorted(self._held, key=itemgetter(0))
        while ends and ends[0][0] < math.inf:
            end_s = ends[0][0]
            free += sum(hosts for at_s, hosts, _ in ends if at_s <= end_s)
            ends = [row for row in ends if row[0] > end_s]
            load = Load.of([own, *(load for _, _, load in ends)])
            if job.hosts <= free and self._check.fits(load, self._left.cap_w):
                self._begin_s, spare, later = end_s, free - job.hosts, load
                break
        self._left = replace(self._left, late_hosts=spare, late_load=later)
        return True

    def behind(self, candidates: Iterator[ManagedJob]) -> Iterator[ManagedJob]:
        """See `Room`: a check may pick a set."""
        jobs = [job for job in candidates if job.hosts <= self._left.hosts]
        return iter([jobs[index] for index in self._check.pick([self._candidate(job) for job in jobs], self._left)])
