"""What all our schedulers share: checked options, and pybatsim's callbacks that most of them have no use for."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from batsim.batsim import BatsimScheduler

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.model.platform import Platform
from batwatt.scheduling.lifecycle import Job, JobLifecycle
from batwatt.scheduling.options import SchedulerOptions, parse_options

__all__ = ["Job", "Scheduler"]

Settings = TypeVar("Settings", bound=SchedulerOptions)


class Scheduler(BatsimScheduler, Generic[Settings]):
    """A pybatsim scheduler with checked options; `Options` says which. Its dealings about jobs are in `lifecycle`."""

    Options: ClassVar[type[SchedulerOptions]] = SchedulerOptions
    bs: Any
    """What it talks to Batsim by."""
    needs_speeds: ClassVar[bool] = False
    """Whether it changes how fast jobs run: then delays become flops, and cores have several speeds."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(dict(options or {}))
        self.logger = logging.getLogger(f"batwatt.{type(self).__name__.lower()}")
        self.settings: Settings = parse_options(self.Options, self.options)  # type: ignore[assignment]
        given = self.settings.platform
        self.platform = given if given is None or isinstance(given, Platform) else read_platform(given)
        self.lifecycle: JobLifecycle[Any] = JobLifecycle()
        self.told_delays = False
        """Whether delays that do not slow down were told before the run."""

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Whether Batsim must be started with dynamic jobs and profile reuse."""
        return False

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """Whether it knows the length of flops only on hosts that are alike."""
        return False

    @property
    def changes_speeds(self) -> bool:
        """Whether it changes the p-states of hosts with jobs, so that work slows down, and delays do not."""
        return self.needs_speeds

    @property
    def needs_energy(self) -> bool:
        """Whether it changes p-states of hosts, which Batsim does with energy accounting only."""
        return self.needs_speeds

    def onSimulationBegins(self) -> None:
        """Check that Batsim runs the platform that the options name, and can do what is needed."""
        self.lifecycle.begin(self.bs, self.needs_dynamic_jobs)
        self.check_platform([host["name"] for host in self.hosts_described])

    @property
    def hosts_described(self) -> list[Mapping[str, Any]]:
        """Batsim's descriptions of the hosts, by id."""
        return [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]

    def check_platform(self, theirs: Sequence[str]) -> None:
        """InputError if the hosts that Batsim runs, by name, are not those of the platform that the options name."""
        platform = self.platform
        if platform is not None and [host.name for host in platform.hosts] != theirs:
            problem = f"is not the platform that Batsim runs ({len(theirs)} hosts, the first is {theirs[0]!r})"
            raise InputError(platform.source, problem, "give both the same file")

    def onNoMoreJobsInWorkloads(self) -> None:
        """No job comes any more."""
        self.lifecycle.more_jobs = False

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run."""
        self.lifecycle.report(self.logger)

    def onJobsKilled(self, jobs: list[Job]) -> None:
        """Their completion was reported before."""
        self.lifecycle.killed(jobs)

    def onRequestedCall(self) -> None:
        """A step may begin; `onNoMoreEvents` looks at the time."""

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:
        """Raise InputError: jobs would be planned on hosts that are away."""
        hint = "--capacity says which machines are there; powercap, jobpower and replay follow such events"
        raise InputError("--events", "a machine becomes unavailable", hint)

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:
        """Ignore it: all hosts are available from the beginning."""

    def onNotifyGenericEvent(self, event_data: Any) -> None:
        """Ignore it: it is for another scheduler."""

    def onReportEnergyConsumed(self, consumed_energy: float) -> None:
        """Not asked for."""
