"""Base of the schedulers that follow a capacity in machines.

The number of machines alive is a series that is followed step by step. Jobs that were killed for their machine
are submitted again, from zero, under another id; at a given time all that runs and waits may be given up.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, TypeVar

import numpy as np
from pydantic import Field

from batwatt.errors import InputError
from batwatt.model.hostset import HostSet
from batwatt.model.platform import MachinePower, Platform
from batwatt.model.timeline import MACHINES, Timeline, checked_capacity, least_of
from batwatt.scheduling.base import LIMIT, OptionValues, Scheduler, SchedulerOptions
from batwatt.scheduling.fleet import Fleet, MachineHosts
from batwatt.scheduling.job import BatsimJob, Job, JobLengths


class MachineOptions(SchedulerOptions):
    """Options of every scheduler of machines that come and go."""

    capacity: Timeline | None = Field(
        None, description="file of the capacity in machines: CSV with time_s,machines, or lines `count`, `time count`"
    )
    envelope: Timeline | None = Field(
        None, description="CSV file of the power envelope: of watts and machines the less counts (needs platform)"
    )
    until_s: float | None = Field(None, ge=0.0, description="time in s at which all jobs are given up")
    switch: bool = Field(True, description="switch machines off and on; else they only stand idle (needs energy)")
    transition_limit_s: float | None = Field(None, gt=0.0, description=LIMIT)


class VaryingOptions(MachineOptions):
    """Options of every scheduler that reacts to a capacity, and plans nothing."""

    machine_memory: float | None = Field(
        None, gt=0.0, description="memory of a machine, in the jobs' unit; default: no limit"
    )


Settings = TypeVar("Settings", bound=MachineOptions)


class CapacityScheduler(Scheduler[Settings]):
    """A scheduler that follows a capacity; subclasses decide at a step, and track the jobs that run or wait."""

    Options: ClassVar[type[MachineOptions]] = MachineOptions
    plans_lengths: ClassVar[bool] = False
    """True if no run may take longer than its length: then flops last as on the slowest machine, else the fastest."""
    fleet: Fleet
    """The machines; made by subclasses when the simulation begins."""

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        settings = self.settings
        if settings.capacity is None and settings.envelope is None:
            ways = "give a file: batwatt run --capacity FILE, or --envelope FILE"
            raise InputError("option 'capacity'", "the scheduler needs one", ways)
        if settings.envelope is not None and (self.needs_speeds or not settings.switch):
            problem = "the scheduler leaves machines on, which draw power then"
            raise InputError("option 'envelope'", problem, "give a capacity in machines, or let it switch them off")
        self.capacity: Timeline = machines_fed(settings.capacity, settings.envelope, self.platform, 0)
        self.begun_s = self.step_s = 0.0
        """Beginnings in s of the present and of the next step (infinite: none): the value changes there, but at 0 s."""
        self.stepped = False
        """True after the step at 0 s."""
        self.stopped = False
        """True if the window is over."""
        self._asked_s = -1.0
        self._hosts_changed = False

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True: killed jobs are submitted again."""
        return True

    @abstractmethod
    def arrived(self, job: BatsimJob) -> None:
        """Take in a job of the workload that is submitted."""

    @abstractmethod
    def process_events(self, now_s: float) -> None:
        """Act on the events of this message, and on the steps that are due."""

    @abstractmethod
    def apply(self) -> None:
        """Switch machines and start jobs, as far as possible."""

    @abstractmethod
    def stop(self) -> None:
        """End the window: kill running jobs, reject waiting ones."""

    def waiting(self) -> Iterable[Job]:
        """Return the jobs that wait, of which `give_up` may reject some; none by default."""
        return ()

    def give_up(self, jobs: list[Job], why: str) -> None:
        """Reject jobs that wait, and those that depend on them."""
        raise NotImplementedError(f"{type(self).__name__} has `waiting` and no `give_up`")

    @abstractmethod
    def unrunnable(self) -> tuple[list[BatsimJob], str]:
        """Forget and return the jobs that wait for ever if neither a step nor a job is to come, and the reason."""

    def finished(self) -> bool:
        """Return whether nothing runs, waits or is to come."""
        return self.lifecycle.finished

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Read the machines from Batsim's description, and the lengths of jobs at their speeds."""
        super().onSimulationBegins()
        self.hosts = MachineHosts(self.hosts_described, self.settings.switch, self.platform)
        checked_capacity(self.capacity, len(self.hosts), self.capacity.source)
        self.nominal_flops, self.paces = 0.0, np.ones(len(self.hosts))
        if self.platform is not None:
            speeds = self.hosts.speeds(self.platform)
            self.nominal_flops = float(speeds.min() if self.plans_lengths else speeds.max())
            self.paces = speeds / self.nominal_flops
        full_flops = 0.0 if self.platform is None else self.platform.fastest_flops
        self.lengths = JobLengths(self.bs, self.nominal_flops, full_flops)
        if self.run_times is not None:
            self.run_times.lengths = self.lengths

    def onJobSubmission(self, job: BatsimJob) -> None:
        """Take in a job of the workload, or note the acknowledgement of one of our own."""
        if self.lifecycle.acknowledged(job):
            return
        self.lifecycle.check_id(job)
        if self.stopped:
            self.lifecycle.give_up([job])
        else:
            self.arrived(job)

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that hosts arrived in a p-state; a machine has when all of its hosts have."""
        super().onHostsArrived(mask, pstate)
        self.fleet.switched(*self.hosts.arrived(mask, pstate))

    def hosts_changed(self) -> None:
        """Take machines out of service whose hosts are; `process_events` then acts on the machines that are left."""
        self.hosts.exclude(self.fleet, self.transitions.out)
        self._hosts_changed = True

    def onNoMoreEvents(self) -> None:
        """Decide on the events up to this time."""
        if not self.bs.running_simulation:
            return
        now_s = self.bs.time()
        if not self.update_hosts(now_s):
            return
        if not self.stopped:
            self.process_events(now_s)
            if self.settings.until_s is not None and now_s >= self.settings.until_s:
                self.stopped = True
                self.stop()
            else:
                self.apply()
                self.call(now_s)
                self.lifecycle.wake_for_limit(self.transitions.next_s, now_s)
        self.lifecycle.close(self.finished())

    # machines and steps -----------------------------------------------------------------------------------------

    def switch(self) -> None:
        """Switch the machines without a job that should be off or on."""
        if self.hosts.pstates is not None:
            for hosts, state in self.hosts.switches(self.fleet):
                self.bs.set_resource_state(HostSet(hosts), state)
                self.transitions.began(hosts, state, self.bs.time())

    def service_changed(self) -> int | None:
        """Return the number of machines alive, if machines left or came back since the last call; else None."""
        changed, self._hosts_changed = self._hosts_changed, False
        return self.machines_alive() if changed else None

    def machines_alive(self) -> int:
        """Return the number of machines alive in the present step, without those out of service."""
        alive = int(self.capacity.at(self.begun_s))
        return max(0, min(alive - self.hosts.held, len(self.fleet) - self.fleet.out_count))

    def step(self) -> int:
        """Go past the next step; return the number of machines alive from there on, without those out of service."""
        self.begun_s, self.stepped = self.step_s, True
        self.step_s = self.capacity.next_change(self.begun_s)
        return self.machines_alive()

    def most_machines(self) -> int:
        """Return the most machines alive from the present step on."""
        return int(self.capacity.most(self.begun_s))

    def call(self, now_s: float) -> None:
        """Request a wake-up at the next step and at the end, as long as there is something to wait for."""
        stalled, why = self.stalled(self.capacity, self.waiting())
        if stalled:
            self.give_up(stalled, why)
            self.apply()
        if (self._asked_s == self.step_s < math.inf) or self.finished():
            return
        until_s = self.settings.until_s
        away = self.transitions.away and not self.bs.no_more_external_events
        # jobs that wait for each other are in no queue
        in_vain = self.lifecycle.in_vain(self.capacity, self.transitions.switching_s)
        over = self.step_s == math.inf or (in_vain and not any(True for _ in self.waiting()))
        if over and not self.lifecycle.more_jobs and until_s is None and not away:
            waiting, why = self.unrunnable()
            if waiting:
                self.lifecycle.reject(waiting, why)
                return
        for time_s in sorted({self.step_s, math.inf if until_s is None else until_s}):
            self.lifecycle.wake_at(time_s, now_s)
        self._asked_s = self.step_s


def machines_fed(
    capacity: Timeline | None, envelope: Timeline | None, platform: Platform | None, machines: int
) -> Timeline:
    """Return the machines that a capacity and an envelope in W allow; `machines` without both. Raises InputError."""
    if envelope is None:
        return Timeline((0.0,), (float(machines),), MACHINES) if capacity is None else capacity
    if platform is None:
        problem = "needs the watts of the hosts, which Batsim does not report"
        raise InputError("option 'envelope'", problem, "give the option platform")
    fed = MachinePower.of(platform).fed_by(envelope)
    return fed if capacity is None else least_of(capacity, fed)
