"""Base of the schedulers of a queue on hosts under a power envelope, and the injectors of its caps.

The envelope comes from a file (a `Timeline`; the injector asks to be woken at each step) or as external events of type
`power_envelope` that the engine forwards. Either way a scheduler learns a value only when it begins to hold. A step
begins where the value changes, and every `DEFAULT_STEP_S` from 0 s on, however the rows are cut: servers put to sleep
can be woken again. `cap_w` is the current cap (None before any is known); `over` once the last value holds for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.workload import LENGTH
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE
from batwatt.scheduling.base import OptionValues, PowerOptions, Scheduler
from batwatt.scheduling.cluster import Cluster, outage
from batwatt.scheduling.fleet import next_step_s
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, request_s
from batwatt.scheduling.orders import First, NodeSelection, Order
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.registry import make
from batwatt.scheduling.victims import Lose, NextRun, VictimRule, Victims
from batwatt.units import REPORTED_S


class FileInjector:
    """An injector of a series."""

    cap_w: float | None = None
    over = False

    def __init__(self, series: Timeline) -> None:
        self.series = series
        self._next_s = 0.0

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now; then `cap_w` is its cap. The first is at 0."""
        if now_s < self._next_s - REPORTED_S:
            return False
        begin_s = max(now_s, self._next_s)
        slept_through = self.over and now_s > self._next_s + REPORTED_S
        self.cap_w = self.series.at(begin_s)
        self._next_s = next_step_s(self.series, begin_s)
        self.over = begin_s >= self.series.settled_s
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """Skip the steps that began before now, in which there was nothing to do."""
        self._next_s = max(self._next_s, next_step_s(self.series, now_s - REPORTED_S))

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step."""
        return self._next_s


class EventInjector:
    """An injector of external events, by `receive`."""

    cap_w: float | None = None
    over = False

    def __init__(self) -> None:
        self._due = False
        self._next_s = 0.0

    def receive(self, event: Mapping[str, Any], now_s: float) -> None:
        """Take a forwarded event; those of other types are ignored, a malformed one is an InputError."""
        if event.get("type") != EVENT_TYPE:
            return
        value = event.get(EVENT_VALUE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0.0:
            raise InputError(f"event {EVENT_TYPE} at {now_s:g} s", f"{EVENT_VALUE} is {value!r}", "give watts >= 0")
        self._due |= float(value) != self.cap_w
        self.cap_w = float(value)

    def no_more(self) -> None:
        """Note that no event will follow."""
        self.over = True

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now: after an event that changes the cap, or as `FileInjector`."""
        due, self._due = self._due, False
        if self.cap_w is None or (not due and now_s < self._next_s - REPORTED_S):
            return False
        slept_through = not due and self.over and now_s > self._next_s + REPORTED_S
        self._next_s = next_step_s(None, max(now_s, self._next_s) if not due else now_s)
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """Skip steps as `FileInjector`."""
        self._next_s = max(self._next_s, next_step_s(None, now_s - REPORTED_S))

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step; None before the first event."""
        return None if self.cap_w is None else self._next_s


Injector = FileInjector | EventInjector


Settings = TypeVar("Settings", bound=PowerOptions)


class PowerScheduler(Scheduler[Settings]):
    """A scheduler that tracks queue, hosts, envelope and killed jobs; subclasses decide in `onNoMoreEvents`."""

    Options: ClassVar[type[PowerOptions]] = PowerOptions
    the_order: Order
    """Order of the queue; set by subclasses."""
    injector: Injector | None = None
    """Set by subclasses that follow an envelope."""
    rule: str | None
    """Rule for jobs behind one that does not fit (`Backfilling.blocked`); set by subclasses."""

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        selection: NodeSelection = make("node_selection", self.settings.node_selection)
        # the lowest ids need no weights
        self.selection = None if type(selection) is First else selection
        self.victim: VictimRule = make("victim", self.settings.victim)
        self.fastest_flops = self.platform.fastest_flops if self.platform is not None else 0.0
        self._count = 0

    def make_injector(self, what: str) -> Injector:
        """Return the injector of the envelope; `what` needs it. Raises InputError without watts."""
        envelope, platform = self.settings.envelope, self.platform
        if platform is None:
            raise InputError("option 'platform'", f"{what} needs it for the watts of its hosts", "give the XML file")
        if not platform.has_power:
            problem = f"{what} needs the watts of every host; {platform.power_problem}"
            raise InputError(platform.source, problem, "correct it")
        assert envelope is not None
        if isinstance(envelope, str):
            return EventInjector()
        return FileInjector(envelope)

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True if killed jobs are submitted again."""
        return not isinstance(self.victim, Lose)

    def without_requests(self) -> str:
        """See `Scheduler`: jobs without a request count as endless."""
        effects = [f"the order {self.the_order.name!r} takes them as endless"] if self.the_order.of_walltimes else []
        if self.rule not in ("pass", "stop"):
            effects.append("nothing is reserved behind those that run, and none is backfilled before a reservation")
        return ", ".join(effects)

    def changed(self) -> None:
        """Note a change of the hosts or of the jobs."""

    def hosts_changed(self) -> None:
        """See `Scheduler`."""
        self.cluster.hosts_changed()
        self.changed()

    def state_of(self, attempt: BatsimJob) -> Any:
        """Return the `state` of a job that arrives; None by default."""
        return None

    def _too_long(self, attempt: BatsimJob) -> str:
        """Return why an envelope never lasts as long as a job at the least power of its hosts; empty if it may."""
        limit = self.settings.envelope
        if not (isinstance(limit, Timeline) and self._least_w and self.lengths.has_length(attempt)):
            return ""
        limit_s = attempt.requested_time if (attempt.requested_time or 0.0) > 0.0 else math.inf
        run_s = min(self.lengths.described(attempt)[2], limit_s)
        return self.lifecycle.too_long(limit, self._least_w[attempt.requested_resources], "W", run_s)

    def _least_powers(self) -> list[float]:
        """Return the least power in W with 0, 1, ... hosts on; nothing where no cap kills a job for ever."""
        limit, hosts = self.settings.envelope, self.platform.hosts if self.platform is not None else ()
        kills = isinstance(self.injector, FileInjector) and self.needs_energy and all(host.sleeps for host in hosts)
        if not (kills and isinstance(limit, Timeline) and limit.repeats) or self.victim.needs_lengths:
            return []
        asleep_w = [min(host.pstates[sleep.sleep].full_w for sleep in host.sleeps) for host in hosts]
        least_w = [min(host.pstates[state].full_w for state in host.compute) for host in hosts]
        more_w = sorted(max(0.0, least - asleep) for least, asleep in zip(least_w, asleep_w, strict=True))
        return list(accumulate(more_w, initial=sum(asleep_w)))

    def wait(self, job: Job) -> None:
        """Queue an attempt of a job; the queue takes it as one that is submitted now."""
        self._count += 1
        job.number, job.submit_s = self._count, float(job.attempt.submit_time)
        job.renew()
        self._estimate(job)
        self.queue.add(job)
        self.changed()

    def _estimate(self, job: Job) -> None:
        """Estimate the run time of an attempt: less what was done before, and with its recovery."""
        extra_s = self.victims.extra_s(job.name)
        if job.attempt.id == job.name:
            raw = job.attempt.json_dict or {}
            job.whole_request_s = request_s(job.walltime_s, raw, job.name)
            job.whole_estimate = (
                (job.whole_request_s,) * 2 if self.run_times is None else self.run_times.estimate(job.attempt)
            )
            if LENGTH in raw:
                _, length_s, left_s = self.lengths.described(job.attempt)
                extra_s = left_s - length_s
        job.estimate_s, job.bound_s, job.request_s = (
            max(round(whole_s + extra_s, 6), REPORTED_S) for whole_s in (*job.whole_estimate, job.whole_request_s)
        )

    def reject(self, jobs: Iterable[Job], why: str) -> None:
        """Reject jobs of the queue that can never run."""
        jobs = list(jobs)
        for job in jobs:
            self.queue.remove(job)
            del self.lifecycle.jobs[job.attempt.id]
        self.lifecycle.live -= len(jobs)
        self.lifecycle.reject([job.attempt for job in jobs], why)

    def reject_stalled(self) -> bool:
        """Reject the jobs that a repeating envelope never lets run; return whether there are any."""
        limit = self.settings.envelope
        jobs, why = self.stalled(limit if isinstance(limit, Timeline) else None, self.queue)
        self.reject(jobs, why)
        return bool(jobs)

    def reject_stuck(self) -> bool:
        """Reject the waiting jobs wider than the hosts in service; return whether there are any."""
        out = self.transitions.out
        left = self.cluster.count - out.bit_count()
        wide = [job for job in self.queue if job.hosts > left] if out else []
        self.reject(wide, outage(out))
        return bool(wide)

    def ran_s(self, job: Job) -> float:
        """Return the time that a run has lasted, in s at the fastest speed if it has flops."""
        now_s = self.cluster.now_s
        delay = (job.attempt.profile_dict or {}).get("type") == "delay"
        return (
            now_s - job.start_s if delay or not self.fastest_flops else job.executed_flops(now_s) / self.fastest_flops
        )

    def kill(self, jobs: Iterable[Job]) -> None:
        """Kill jobs that run, and decide on their next runs."""
        jobs = list(jobs)
        for job in jobs:
            self.victims.killed(job.attempt, self.ran_s(job), self.cluster.now_s - job.start_s)
        self.lifecycle.kill(jobs)

    def submit_again(self, job: Job, following: NextRun) -> None:
        """Submit and queue the next attempt of a job that was killed."""
        job.attempt = again = self.victims.register_next(job.attempt, following)
        self.lifecycle.jobs[again.id] = job
        self.wait(job)

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the queue and the cluster."""
        super().onSimulationBegins()
        self.lengths = JobLengths(self.bs, self.fastest_flops)
        if self.run_times is not None:
            self.run_times.lengths = self.lengths
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)
        self._least_w = self._least_powers()
        self.queue = Queue(self.the_order, self.settings.age_limit_s)
        self.cluster = Cluster(
            self.bs.nb_compute_resources, self.queue, self.platform, self.selection, self.transitions
        )

    def onJobSubmission(self, attempt: BatsimJob) -> None:
        """Queue a job; one wider than the platform can never run and is rejected."""
        if self.lifecycle.acknowledged(attempt):
            return
        if attempt.requested_resources > self.cluster.count:
            self.lifecycle.reject([attempt], f"wider than the platform of {self.cluster.count} hosts")
            return
        if self.needs_dynamic_jobs:
            self.lifecycle.check_id(attempt)
        if why := self._too_long(attempt):
            self.lifecycle.reject([attempt], why)
            return
        self.lifecycle.jobs[attempt.id] = job = Job(0, attempt, state=self.state_of(attempt))
        self.lifecycle.live += 1
        self.wait(job)

    def onJobCompletion(self, attempt: BatsimJob) -> None:
        """Free the hosts of a job; submit it again if it was killed and its victim rule says so."""
        job, killed = self.lifecycle.ended(attempt)
        self.cluster.end(job)
        self.changed()
        if not killed:
            if self.run_times is not None:
                self.run_times.learn(job.name)
            self.completed(job)
        following = self.victims.next_of(attempt) if killed else None
        if following is None:
            self.lifecycle.live -= 1
        else:
            self.submit_again(job, following)

    def completed(self, job: Job) -> None:
        """Learn from a run that ended by itself."""

    def onNoMoreExternalEvents(self) -> None:
        """Let the last value of the envelope hold from now on."""
        super().onNoMoreExternalEvents()
        if isinstance(self.injector, EventInjector):
            self.injector.no_more()

    def onNotifyGenericEvent(self, event_data: Mapping[str, Any]) -> None:
        """Take a step of the envelope, if it comes as events."""
        super().onNotifyGenericEvent(event_data)
        if isinstance(self.injector, EventInjector):
            self.injector.receive(event_data, self.bs.time())
