"""Schedulers that track a fleet: what those that kill and those that checkpoint share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from batwatt.inputs.series.capacity import checked_capacity
from batwatt.scheduling.base import Job
from batwatt.scheduling.capacity import CapacityScheduler
from batwatt.scheduling.fleet import Fleet, Places
from batwatt.scheduling.hosts import Hosts


class FleetScheduler(CapacityScheduler):
    """Knows its machines and, by the ids that they have at present, its jobs."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._by_id: dict[str, Any] = {}
        self._count = 0
        self._live = 0
        self._pending = 0
        """Kills whose ends are to come."""
        self._never: list[str] = []
        self._refused_again: set[str] = set()

    @abstractmethod
    def make_fleet(self, machines: int, cores: int) -> Fleet:
        """A fleet of `machines` machines of `cores` cores."""

    @abstractmethod
    def arrived(self, job: Job) -> None:
        """A job of the workload is submitted."""

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Take stock of the machines."""
        super().onSimulationBegins()
        described = [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]
        self.hosts = Hosts(described, self.settings.switch)
        machines = len(self.hosts)
        checked_capacity(self.capacity, machines, self.capacity.source)
        # a subclass may have the steps in rows of its own
        values = np.array([value for _, value in self._steps])
        self._most_after = np.maximum.accumulate(values[::-1])[::-1].astype(np.int64).tolist()
        self.fleet = self.make_fleet(machines, self.hosts.cores)

    def onJobSubmission(self, job: Job) -> None:
        """A job of the workload, or one of our own that is acknowledged."""
        known = self._by_id.get(job.id)
        if known is not None:
            known.job = job
            return
        if job.id in self._refused_again:
            self._refused_again.remove(job.id)  # our own, and rejected since
            return
        self._check_id(job)
        if self._stopped:
            self._give_up([job])
            return
        self.arrived(job)

    def onJobsKilled(self, jobs: list[Job]) -> None:
        """Their completion was announced before; now nobody asks for them again."""
        for job in jobs:
            if job.id not in self._by_id:
                self.bs.jobs.pop(job.id, None)

    def _ended(self, job: Job) -> Any:
        """The task of a job that has ended; what became of a kill is known now."""
        task = self._by_id.pop(job.id)
        if task.dying:
            self._pending -= 1
        else:
            # nobody asks for it again, and a long simulation has many; what was killed is told of once more
            del self.bs.jobs[job.id]
        return task

    # machines ---------------------------------------------------------------------------------------------------

    def _serve(self, machines: Places, wanted: bool) -> None:
        """Take machines into service, or out of it."""
        self.fleet.serve(machines, wanted)
        self.hosts.want(machines, wanted)

    def _most(self) -> int:
        """The most machines in service from the present step on."""
        return int(self._most_after[max(self._next_step - 1, 0)])

    def finished(self) -> bool:
        """See `CapacityScheduler`."""
        return not (self._more_jobs or self._live)
