"""What the schedulers of a queue on hosts under a power envelope share, however they decide what starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from batwatt.errors import InputError
from batwatt.inputs.series.series_csv import read_series
from batwatt.model.series import Series
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.node_selection import First, NodeSelection
from batwatt.scheduling.options import PowerOptions
from batwatt.scheduling.orders import Order
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.registry import make
from batwatt.scheduling.transitions import outage
from batwatt.scheduling.victims import Lose, NextRun, VictimRule, Victims
from batwatt.systems.powercap.cluster import Cluster, Running
from batwatt.systems.powercap.envelope import EVENTS, EventInjector, FileInjector, Injector

Settings = TypeVar("Settings", bound=PowerOptions)


class PowerScheduler(Scheduler[Settings]):
    """Tracks the queue, the hosts, the envelope and killed jobs; subclasses decide in `onNoMoreEvents`."""

    Options: ClassVar[type[PowerOptions]] = PowerOptions
    the_order: Order
    """Of the queue; set by subclasses."""
    injector: Injector | None = None
    """Set by subclasses that follow an envelope."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        selection: NodeSelection = make("node_selection", self.settings.node_selection)
        # the lowest ids need no weights
        self.selection = None if type(selection) is First else selection
        self.victim: VictimRule = make("victim", self.settings.victim)
        self.fastest_flops = self.platform.fastest_flops if self.platform is not None else 0.0
        self.killing: set[str] = set()
        """Ids of the jobs that are being killed, which still hold their hosts."""

    def make_injector(self, what: str) -> Injector:
        """The injector of the envelope that is given; `what` needs it. Raises InputError without watts."""
        given, platform = self.settings.envelope, self.platform
        if platform is None:
            raise InputError("option 'platform'", f"{what} needs it for the watts of its hosts", "give the XML file")
        if not platform.has_power:
            problem = f"{what} needs the watts of every host; {platform.power_problem}"
            raise InputError(platform.source, problem, "correct it")
        assert given is not None
        if given == EVENTS:
            return EventInjector()
        return FileInjector(given if isinstance(given, Series) else read_series(given))

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Whether killed jobs are submitted again."""
        return not isinstance(self.victim, Lose)

    def changed(self) -> None:
        """Hosts went away or came back."""

    def hosts_changed(self) -> None:
        """See `Scheduler`."""
        self.cluster.hosts_changed()
        self.changed()

    def done(self) -> bool:
        """Whether all work is over: nothing waits, runs, is being killed, or is still to come."""
        jobs = self.lifecycle
        return not (jobs.more_jobs or len(self.queue) or self.cluster.running or self.killing or jobs.awaits)

    def reject_stuck(self) -> bool:
        """Reject the waiting jobs wider than the hosts in service; whether there are any."""
        out = self.transitions.out
        left = self.cluster.count - out.bit_count()
        wide = [row for row in self.queue if row.hosts > left] if out else []
        for row in wide:
            self.queue.remove(row)
        self.lifecycle.reject([row.job for row in wide], outage(out))
        return bool(wide)

    def ran_s(self, run: Running) -> float:
        """How long a run has lasted, in s at the fastest speed if it has flops."""
        now_s = self.cluster.now_s
        delay = (run.job.profile_dict or {}).get("type") == "delay"
        return now_s - run.start_s if delay or not self.fastest_flops else run.done_by(now_s) / self.fastest_flops

    def kill_victim(self, run: Running) -> None:
        """Decide what becomes of a run that is killed now."""
        self.victims.killed(run.job, self.ran_s(run), self.cluster.now_s - run.start_s)

    def submit_again(self, job: Job, following: NextRun) -> Job:
        """Submit and queue the next run of a job that was killed."""
        again = self.victims.again(job, following)
        if not self.lifecycle.awaits:
            self.queue.add(again)
        return again

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the queue and the cluster."""
        super().onSimulationBegins()
        self.victims = Victims(self.victim, self.lifecycle, JobLengths(self.bs, self.fastest_flops))
        self.queue = Queue(self.the_order)
        self.cluster = Cluster(
            self.bs.nb_compute_resources, self.queue, self.platform, self.selection, self.transitions
        )

    def onNoMoreExternalEvents(self) -> None:
        """The last value of the envelope holds from now on."""
        if isinstance(self.injector, EventInjector):
            self.injector.no_more()

    def onNotifyGenericEvent(self, event_data: Mapping[str, Any]) -> None:
        """A step of the envelope, if it comes as events."""
        if isinstance(self.injector, EventInjector):
            self.injector.take(event_data, self.bs.time())
