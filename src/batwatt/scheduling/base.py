"""Base of all our schedulers: checked options, and defaults for callbacks of pybatsim that most of them ignore."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from batsim.batsim import BatsimScheduler

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.series import Series
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.lifecycle import Job, JobLifecycle
from batwatt.scheduling.options import SchedulerOptions, parse_options, read_options
from batwatt.scheduling.registry import make
from batwatt.scheduling.run_times import ExactRunTimes, RunTimes
from batwatt.scheduling.transitions import Transitions, named

__all__ = ["Job", "Scheduler"]

Settings = TypeVar("Settings", bound=SchedulerOptions)


class Scheduler(BatsimScheduler, Generic[Settings]):
    """A pybatsim scheduler with checked options, those of `Options`; `lifecycle` tracks its jobs."""

    Options: ClassVar[type[SchedulerOptions]] = SchedulerOptions
    bs: Any
    """Interface to Batsim."""
    needs_exact_times: ClassVar[bool] = False
    """True if plans fail where a job takes longer, or less, than planned."""
    knows_lengths: ClassVar[bool] = False
    """True if plans go by exact run times, whatever estimates orders and reservations go by."""
    fills_requests: ClassVar[bool] = True
    """True if exact run times replace the missing requests of jobs of a trace."""
    needs_speeds: ClassVar[bool] = False
    """True if the scheduler changes speeds of jobs: then delays become flops, and cores have several speeds."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(dict(options or {}))
        self.logger = logging.getLogger(f"batwatt.{type(self).__name__.lower()}")
        self.settings: Settings = parse_options(self.Options, read_options(self.Options, options))  # type: ignore[assignment]
        self.platform = self.settings.platform
        choice = self.settings.run_times
        self.run_times: RunTimes | None = None if choice is None else make("run_times", choice)
        if self.needs_exact_times and not isinstance(self.run_times, ExactRunTimes | None):
            problem = f"{self.run_times.name!r} estimates run times, which plans of this scheduler must know"
            raise InputError("option 'run_times'", problem, "choose exact, or another scheduler")
        self.lifecycle: JobLifecycle = JobLifecycle()
        self.told_delays = False
        """True if delays that do not slow down were reported before the run."""
        self.transitions = Transitions(self.platform, getattr(self.settings, "transition_limit_s", None))
        self._told = 0
        """Mask of the hosts whose failure was logged."""

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True if Batsim must be started with dynamic jobs and profile reuse."""
        return False

    def without_requests(self) -> str:
        """Return what jobs without a request mean for the decisions, for a remark; empty: nothing."""
        return ""

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """Return whether the scheduler knows the length of flops only on hosts that are alike."""
        return False

    @property
    def changes_speeds(self) -> bool:
        """True if the scheduler changes the p-states of hosts with jobs, so that work slows down, and delays do not."""
        return self.needs_speeds

    @property
    def needs_energy(self) -> bool:
        """True if the scheduler changes p-states of hosts, which Batsim does with energy accounting only."""
        return self.needs_speeds

    def onSimulationBegins(self) -> None:
        """Check that Batsim runs the platform that the options name, and supports the needs of the scheduler."""
        self.lifecycle.begin(self.bs, self.needs_dynamic_jobs)
        platform, theirs = self.platform, [host["name"] for host in self.hosts_described]
        if platform is not None and [host.name for host in platform.hosts] != theirs:
            problem = f"is not the platform that Batsim runs ({len(theirs)} hosts, the first is {theirs[0]!r})"
            raise InputError(platform.source, problem, "give both the same file")

    @property
    def hosts_described(self) -> list[Mapping[str, Any]]:
        """Batsim's descriptions of the hosts, by id."""
        return [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]

    # hosts out of service -----------------------------------------------------------------------------------------

    def update_hosts(self, now_s: float) -> bool:
        """Take hosts out of service past the limit of their transition; return whether there is something to decide.

        There is nothing if the message only has calls for limits, and no host is past its own.
        """
        failed = self.transitions.expire(now_s)
        if failed:
            self.lifecycle.progress()
            self.hosts_changed()
        if failed & ~self._told:
            text = "%s out of service: not switched within the limit, at %g s"
            self.logger.warning(text, named(failed & ~self._told), now_s)
            self._told |= failed
        if not self.lifecycle.only_limits(now_s) or failed:
            return True
        self.lifecycle.wake_for_limit(self.transitions.next_s, now_s)
        return False

    @property
    def hosts_may_return(self) -> bool:
        """True if hosts switch within their limits, or events may bring hosts back."""
        away = self.transitions.away and not self.bs.no_more_external_events
        return bool(self.transitions.pending or away)

    def stalled(self, limit: Series | None, waiting: Iterable[ManagedJob]) -> tuple[list[ManagedJob], str]:
        """Return the waiting jobs to reject after a whole period of a limit in vain, and the reason."""
        if limit is None or not self.lifecycle.in_vain(limit, 0.0):
            return [], ""
        if self.transitions.away and not self.bs.no_more_external_events:
            return [], ""
        jobs = self.lifecycle.stalled(limit, waiting, self.transitions.switching_s)
        return jobs, f"as no job ended or saved work in a whole period of {limit.period_s:.15g} s"

    def hosts_changed(self) -> None:
        """Follow a change of the hosts out of service."""

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Note that hosts arrived in a p-state."""
        self.lifecycle.news = True
        if self.transitions.arrived(hostset.span(*nodeid)):
            self.hosts_changed()

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:
        """Take hosts away: nothing starts there, and jobs that run there go on."""
        self._set_away(machines, True)

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:
        """Bring hosts back."""
        self._set_away(machines, False)

    def _set_away(self, machines: Any, away: bool) -> None:
        self.lifecycle.news = True
        self.lifecycle.progress()
        self.transitions.set_away(HostSet.of(machines).mask, away)
        self.hosts_changed()

    # the rest of pybatsim's callbacks -----------------------------------------------------------------------------

    def onNoMoreJobsInWorkloads(self) -> None:
        """Note that no job comes any more."""
        self.lifecycle.news = True
        self.lifecycle.more_jobs = False

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run, and count those whose requests are missing or not used."""
        self.lifecycle.report(self.logger)
        if self.run_times is not None:
            return
        exact, effect = self.needs_exact_times or self.knows_lengths, self.without_requests()
        if not exact and not effect:
            return
        requests, jobs = self.lifecycle.requests, self.lifecycle.ran
        if exact and requests:
            text = "plans are by exact run times, which no site has: the requests of %d of %d jobs are not used"
            self.logger.warning(text, requests, jobs)
        elif not exact and requests < jobs:
            text = "%d of %d jobs request no run time: %s (docs/explanation/run-times.md)"
            self.logger.warning(text, jobs - requests, jobs, effect)

    def onJobsKilled(self, jobs: list[Job]) -> None:
        """Forget killed jobs, whose completion was reported before."""
        self.lifecycle.killed(jobs)

    def onRequestedCall(self) -> None:
        """Count a call, by which a step may begin; `onNoMoreEvents` looks at the time."""
        self.lifecycle.called += 1

    def onNoMoreExternalEvents(self) -> None:
        """Note that hosts that are away stay away."""
        self.lifecycle.news = True

    def onNotifyGenericEvent(self, event_data: Any) -> None:
        """Ignore a generic event, which is for another scheduler."""
        self.lifecycle.news = True

    def onReportEnergyConsumed(self, consumed_energy: float) -> None:
        """Ignore a report of energy, which is not requested."""
