"""Oversubscription (varcap dissertation, section 5.1.4) as a Batsim scheduler.

The rules: docs/explanation/oversubscription.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from batwatt.errors import InputError
from batwatt.model.hostset import HostSet, span
from batwatt.model.workload import USE, Parallel
from batwatt.options.files import read_options
from batwatt.protocol.workload4 import parse_profile
from batwatt.scheduling.base import Job
from batwatt.scheduling.capacity import VaryingOptions
from batwatt.scheduling.jobs import ManagedJob
from batwatt.systems.varcap.mapping import Base, MappingSite
from batwatt.systems.varcap.oversubscription import Shares, speeds_of
from batwatt.systems.varcap.queues import BucketQueue
from batwatt.systems.varcap.scheduler import Parts, VaryingScheduler
from batwatt.systems.varcap.terminations import LeastSafe
from batwatt.units import EVEN_S


class OversubscribedOptions(VaryingOptions):
    """Options of the scheduler `oversubscribed` (docs/explanation/oversubscription.md)."""

    oversubscription: float = Field(1.25, ge=1.0, le=1000.0, description="ratio of offered to real cores of a machine")
    use: float = Field(1.0, gt=0.0, le=1.0, description="share of its cores that a job without `use` uses")
    interval_s: float = Field(300.0, ge=1.0, le=1e9, description="period in s in which unused cores are shared out")
    switch: bool = Field(False, description="false: machines stay on")


class Oversubscribed(VaryingScheduler[OversubscribedOptions]):
    """Jobs that slow down when there are too few cores, and catch up later (varcap dissertation, section 5.1.4)."""

    Options: ClassVar[type[OversubscribedOptions]] = OversubscribedOptions
    needs_speeds: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
        if self.settings.switch:
            raise InputError("option 'switch'", "machines whose cores are shared stay on", "leave it out")
        self._at: dict[int, int] = {}
        self._starting: list[ManagedJob] = []
        self._due = False
        self._next_s = math.inf

    # parts and knowledge ----------------------------------------------------------------------------------------

    def make_parts(self, machines: int) -> Parts:
        """Return the parts: first come, first served, on the first machine with room."""
        site = MappingSite(machines, BucketQueue, self.capacity, self.settings)
        return Base(site), LeastSafe(), None, None

    def know(self, length_s: float) -> tuple[float, bool]:
        """Return an infinite run time: nothing is known of run times."""
        return math.inf, False

    def most_machines(self) -> int:
        """Return all machines, which are always in service."""
        return len(self.fleet)

    @property
    def loses_work(self) -> bool:
        """False: jobs are slowed down, and none is killed."""
        return False

    def machines_alive(self) -> int:
        """Return the capacity: cores that are shared do not depend on which machines take jobs."""
        return int(self.capacity.at(self.begun_s))

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Build the machines, all of which are in service, and find their speeds."""
        platform = self.platform
        if platform is None:
            problem = "the scheduler needs one, for the speeds of its hosts"
            raise InputError("option 'platform'", problem, "give a file: batwatt serve --platform FILE")
        speeds, self._states = speeds_of(platform)
        super().onSimulationBegins()
        ends = not self.capacity.repeats and not self.capacity.at(self.capacity.settled_s)
        if ends and self.settings.until_s is None:
            problem = "ends with 0 machines, under which nothing that runs ever ends"
            raise InputError(self.capacity.source, problem, "let it end with more, or give --window")
        self.shares = Shares(speeds)
        self._everyone = span(0, self.bs.nb_compute_resources - 1)
        self._at[self.shares.nominal] = self._everyone
        self.hosts.serve(self.fleet, np.arange(len(self.fleet)), True)

    def onJobCompletion(self, job: Job) -> None:
        """End a job: its cores are shared out with the next interval."""
        number = self.lifecycle.states[job.id].number
        super().onJobCompletion(job)
        self.shares.remove(number)
        self._look_again()

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Ignore p-states: speeds change at once."""

    # steps ------------------------------------------------------------------------------------------------------

    def job_state(self, job: Job) -> ManagedJob:
        """See `VaryingScheduler`; the `plan` of a job is its use of its cores."""
        use = (job.json_dict or {}).get(USE, self.settings.use)
        if isinstance(use, bool) or not isinstance(use, int | float) or not 0.0 < use <= 1.0:
            raise InputError("workload", f"job {job.id}: {USE} must be in ]0, 1], got {use!r}", "correct it")
        profile = parse_profile(job.profile_dict, f"profile {job.profile}")
        if not (isinstance(profile, Parallel) and profile.per_host_flops is not None):
            problem = f"job {job.id}: no speed changes how long {job.profile_dict.get('type')!r} takes as it should"
            raise InputError("workload", problem, "give it a delay, or parallel_homogeneous flops")
        task = super().job_state(job)
        task.plan = float(use)
        return task

    def change(self, alive: int, now_s: float) -> None:
        """Apply a capacity: as many cores as `alive` machines really have; all but those out of service take jobs."""
        back = self.fleet.unserved(len(self.fleet))
        if len(back):
            self.hosts.serve(self.fleet, back, True)
            self.flow.freed = True
        self.shares.capacity = alive * self.fleet.cores / self.settings.oversubscription
        self._due = True

    def _look_again(self) -> None:
        """Share out with the next interval, if a job could have more."""
        if self._next_s == math.inf and self.shares.improvable:
            interval_s = self.settings.interval_s
            self._next_s = (math.floor((self.bs.time() + EVEN_S) / interval_s) + 1) * interval_s

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Start the jobs that can start, and set the speeds."""
        super().apply()
        now_s, shares = self.bs.time(), self.shares
        if shares.ease(now_s):
            self._look_again()
            self._set_speeds()
        if self._due or now_s + EVEN_S >= self._next_s or shares.exceeded:
            self._due, self._next_s = False, math.inf
            shares.share(now_s)
            self._set_speeds()
        elif self._starting:
            self._set_speed(shares.common, sum(task.mask for task in self._starting))
        for task in self._starting:
            self.lifecycle.execute(task, task.mask)
        self._starting.clear()

    def execute(self, task: ManagedJob) -> None:
        """Start a job once the speed of its cores is set."""
        task.mask, use = self.hosts.take(task, self.fleet), task.plan
        self.shares.add(task.number, task.hosts * use, 1.0 / use, self.bs.time())
        self._starting.append(task)

    def _set_speeds(self) -> None:
        """Let all cores go as fast as their jobs should, idle ones as fast as a job that starts would."""
        wanted: dict[int, int] = {}
        rest = self._everyone
        for number, level in self.shares.others():
            mask = self.fleet.tasks[number].mask
            wanted[level] = wanted.get(level, 0) | mask
            rest ^= mask
        self._set_speed(self.shares.common, rest)
        for level, mask in sorted(wanted.items()):
            self._set_speed(level, mask)

    def _set_speed(self, level: int, mask: int) -> None:
        """Let these cores go at a speed, if they do not."""
        need = mask & ~self._at.get(level, 0)
        if not need:
            return
        self._at = {other: left for other, at in self._at.items() if (left := at & ~need)}
        self._at[level] = self._at.get(level, 0) | need
        self.bs.set_resource_state(HostSet(need), self._states[level])

    def call(self, now_s: float) -> None:
        """See `CapacityScheduler`; request a wake-up at the next interval, too."""
        super().call(now_s)
        if not self.finished():
            self.lifecycle.wake_at(max(min(self._next_s, self.shares.even_s), now_s + EVEN_S), now_s)
