"""The system of the powercap paper (Fontana de Nardin, Stolf, Caux, IGSC 2022) as a Batsim scheduler.

A queue order, a backfilling and a response are composed; a subclass names others, and so do options. The scheduler
tracks the hosts (`Cluster`), wakes at each step of the envelope, carries out what the parts decide and never acts on
part of a message: it decides in `onNoMoreEvents`, first the response if a step begins, then the backfilling. It runs
unchanged on the embedded engine and on a real Batsim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import ClassVar, TypeVar

from batwatt.errors import InputError
from batwatt.model.hostset import HostSet
from batwatt.model.workload import Parallel
from batwatt.protocol.workload4 import parse_profile
from batwatt.schedulers.powercap.plan import Plan
from batwatt.schedulers.powercap.responses import HighestFlopsLowestDeadline, NoConfiguration, Response
from batwatt.scheduling.backfilling import Backfilling, EasyBackfilling
from batwatt.scheduling.base import EVENTS, EnvelopeOptions, OptionValues
from batwatt.scheduling.fleet import EnvelopeForecast
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.orders import Order, Slowdown
from batwatt.scheduling.power import FileInjector, Injector, PowerScheduler
from batwatt.scheduling.registry import make
from batwatt.scheduling.victims import NextRun

MAX_IDLE_STEPS = 1_000_000
"""Of 5 minutes each, 9.5 years."""


Settings = TypeVar("Settings", bound=EnvelopeOptions)


class Powercap(PowerScheduler[Settings]):
    """EASY backfilling, largest slowdown first, under a power envelope (powercap paper, section V).

    Subclasses may set `order`, `backfilling` and `response`.
    """

    order: ClassVar[Order] = Slowdown()
    backfilling: ClassVar[Backfilling] = EasyBackfilling()
    response: ClassVar[Response] = HighestFlopsLowestDeadline()
    Options: ClassVar[type[EnvelopeOptions]] = EnvelopeOptions

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        settings = self.settings
        self.the_order: Order = make("order", settings.order or type(self).order)
        self.the_backfilling: Backfilling = make("backfilling", settings.backfilling or copy(type(self).backfilling))
        self.rule = self.the_backfilling.blocked
        self.the_response: Response = make("response", settings.response or self._usual_response())
        self.injector = self._make_injector()
        self.forecast = self._make_forecast()
        usual = "walltime" if self.run_times is not None else self.the_response.work_estimate
        self._work_estimate = settings.work_estimate or usual
        self._settled = self._paused = self._steady = False
        self._idle_steps = 0
        self._placed = -1
        self._seen = (-1, -1)
        """State of the cluster and arrivals at the last response within a step."""
        self._coming_w: tuple[float, ...] = ()
        """Caps in W that were forecast when the step began."""
        self._to_sleep: dict[int, int] = {}
        self._delays = 0
        self._first_delay = ""

    def _usual_response(self) -> Response:
        """Return the response of the class, or none where there is no envelope to respond to."""
        usual = type(self).response
        if self.settings.envelope is not None or not usual.active:
            return usual
        text = "no envelope is given, so no cap holds: the response is 'none' instead of %r"
        self.logger.warning(text, usual.name)
        return NoConfiguration()

    def _make_injector(self) -> Injector | None:
        envelope = self.settings.envelope
        if not self.the_response.active:
            return None
        if envelope is None:
            hint = f"give a CSV file or {EVENTS!r}"
            raise InputError("option 'envelope'", f"the response {self.the_response.name!r} needs one", hint)
        return self.make_injector(f"the response {self.the_response.name!r}")

    def _make_forecast(self) -> EnvelopeForecast | None:
        settings = self.settings
        if not settings.forecast_steps:
            return None
        if not isinstance(self.injector, FileInjector):
            problem = "only the file of an envelope can be forecast, and only for a response"
            raise InputError("option 'forecast_steps'", problem, "give an envelope, or 0 steps")
        return EnvelopeForecast(
            self.injector.series, settings.forecast_steps, settings.forecast_error, settings.forecast_seed
        )

    @property
    def needs_energy(self) -> bool:
        """True if a response may slow servers down or put them to sleep."""
        return self.the_response.active

    @property
    def changes_speeds(self) -> bool:
        """See `Scheduler`."""
        return self.the_response.active

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def completed(self, job: Job) -> None:
        """Learn the share of its request that a job needed."""
        if self.platform is not None and job.attempt.job_state is BatsimJob.State.COMPLETED_SUCCESSFULLY:
            self.cluster.now_s = self.bs.time()
            self.cluster.learn(job, self.fastest_flops)

    def submit_again(self, job: Job, following: NextRun) -> None:
        """See `PowerScheduler`; a job that begins from zero is marked as pybatsim's `resubmit_job` marks it."""
        super().submit_again(job, following)
        if not following.recovery_s > 0.0:
            number = self.lifecycle.attempts[job.attempt.id].number
            self.bs.set_job_metadata(job.attempt.id, {"parent_job": job.name, "nb_resubmit": number})

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that hosts arrived in a p-state."""
        super().onHostsArrived(mask, pstate)
        self.cluster.arrived(mask)
        self.changed()

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run, and of those that no change of speed could touch."""
        super().onSimulationEnds()
        if self._delays and not self.delays_reported:
            text = (
                "the response %r met %d delays (first: %s): speeds do not slow them, they draw what idle servers do; "
                "give them as parallel_homogeneous flops (docs/explanation/powercap.md)"
            )
            self.logger.warning(text, self.the_response.name, self._delays, self._first_delay)

    def onNoMoreEvents(self) -> None:
        """Decide, once everything that a message says is known."""
        bs, cluster, injector = self.bs, self.cluster, self.injector
        if not bs.running_simulation:
            return
        cluster.now_s = now_s = bs.time()
        if not self.update_hosts(now_s):
            return
        if injector is None:
            if cluster.queue.rows:
                self._place()
                self._give_up_on_hosts()
        else:
            if self._paused:
                injector.catch_up(now_s)
            acted = self._sleep_drained()
            # once all work is over nothing is changed any more, however long the envelope
            stepped = injector.due(now_s) and not self.lifecycle.finished
            if stepped:
                self._coming_w = self.forecast.after(now_s) if self.forecast else ()
                acted = self._respond(self.the_response.respond) or acted
            if self.reject_stalled():
                self.changed()
                self._placed = -1
            acted = self._place() or acted
            # jobs that are being killed still hold their servers: what is left can be known only afterwards
            settled = injector.cap_w is not None and not self.lifecycle.pending and not self.lifecycle.finished
            if settled and self.the_response.between_steps:
                # a job that waits may need servers that sleep
                waits = len(cluster.queue) and not stepped and self._seen != (cluster.version, self._count)
                acted = self._respond(self.the_response.admit if waits else self.the_response.adjust) or acted
                self._seen = (cluster.version, self._count)
            self._call_next_step(now_s, stepped and not acted)
            self.lifecycle.wake_for_limit(self.transitions.next_s, now_s)
        if self.needs_dynamic_jobs or self.bs.dynamic_job_registration_enabled:
            self.lifecycle.close(self.lifecycle.finished)

    # carrying out decisions ---------------------------------------------------------------------------------------

    def _respond(self, change: Callable[[Plan, float], None]) -> bool:
        injector, cluster = self.injector, self.cluster
        assert injector is not None and injector.cap_w is not None
        plan = Plan(cluster, self._coming_w, injector.over)
        change(plan, injector.cap_w)
        doomed = 0
        for job in plan.killed:
            doomed |= job.mask
        acted = bool(plan.killed)
        for mask, pstate in plan.changes():
            acted = True
            self._set_pstate(mask, pstate, doomed)
        self.kill(plan.killed)
        self._steady = not acted and self.the_response.steady(plan, injector.cap_w)
        return acted

    def _set_pstate(self, mask: int, pstate: int, doomed: int) -> None:
        """Request a p-state; a host whose job is being killed can be put to sleep only when that has happened."""
        cluster = self.cluster
        assert cluster.platform is not None
        lowest = (mask & -mask).bit_length() - 1
        later = mask & doomed if pstate in cluster.platform.hosts[lowest].sleep_of else 0
        if later:
            self._to_sleep[pstate] = self._to_sleep.get(pstate, 0) | later
            cluster.draining |= later
        if mask & ~later:
            self._request(mask & ~later, pstate)

    def _request(self, mask: int, pstate: int) -> None:
        self.cluster.set_pstate(mask, pstate)
        self.bs.set_resource_state(HostSet(mask), pstate)

    def _sleep_drained(self) -> bool:
        """Put to sleep the hosts whose jobs are gone; one request per kind of host."""
        cluster = self.cluster
        if not self._to_sleep:
            return False
        acted = False
        for pstate, mask in list(self._to_sleep.items()):
            ready = mask & ~cluster.busy
            assert cluster.platform is not None
            cluster.draining &= ~ready
            for _, hosts in cluster.platform.parts(ready):
                self._request(hosts, pstate)
                acted = True
            if mask & ~ready:
                self._to_sleep[pstate] = mask & ~ready
            else:
                del self._to_sleep[pstate]
        return acted

    def _place(self) -> bool:
        cluster, backfilling = self.cluster, self.the_backfilling
        queue = cluster.queue
        if not queue.rows:
            queue.new.clear()
            return False
        unchanged = not queue.new and cluster.version == self._placed
        timeless = queue.time_invariant and backfilling.time_invariant and not queue.ages.aged(cluster.now_s)
        if unchanged and timeless:
            return False
        starts = backfilling.place(cluster)
        queue.new.clear()
        cluster.carry_out(starts, self.lifecycle)
        # only a response asks
        for job, _ in starts if self.injector is not None else ():
            job.work_flops = self._work_flops(job)
            if (job.attempt.profile_dict or {}).get("type") == "delay":
                self._first_delay = self._first_delay or job.attempt.id
                self._delays += 1
        self._placed = cluster.version
        return bool(starts)

    def _work_flops(self, job: Job) -> float:
        """Return Fl_j per server, as `work_estimate` has it; see docs/explanation/powercap.md."""
        assert self.platform is not None
        if self._work_estimate == "learned" and self.cluster.needed_share is not None and job.request_s < math.inf:
            return self.cluster.needed_share * job.request_s * self.fastest_flops
        hosts = [self.platform.members[kind][0] for kind, _ in self.platform.parts(job.mask)]
        if self._work_estimate == "exact":
            try:
                profile = parse_profile(job.attempt.profile_dict, f"profile {job.attempt.profile}")
            except InputError:
                profile = None  # one that only a real Batsim runs, such as one that communicates
            if isinstance(profile, Parallel):
                return profile.work_flops(job.hosts, 0.0) / job.hosts
        fastest = min(host.pstates[host.compute[0]].speed_flops for host in hosts)
        return job.estimate_s * fastest if job.estimate_s < math.inf else 0.0

    # steps --------------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Note a change: the next step may be other than the last one."""
        self._settled = False
        self._idle_steps = 0

    def _call_next_step(self, now_s: float, idle_step: bool) -> None:
        """Request a wake-up at the next step, as long as there is something to wait for."""
        injector, cluster = self.injector, self.cluster
        assert injector is not None
        changing = (cluster.switching_on | cluster.switching_off) & ~self.transitions.failed | cluster.draining
        at_rest = not cluster.running and not changing and not self.lifecycle.pending
        if injector.over and idle_step and not changing and not self.lifecycle.pending:
            # the cap holds for ever, and neither part could do anything: nor can they later, unless time alone matters
            waits = len(self.queue) and not (self.queue.time_invariant and self.the_backfilling.time_invariant)
            self._settled = at_rest or (self._steady and not waits)
            self._count_idle_step()
        if self._settled and at_rest and not self.hosts_may_return:
            self._give_up()
        if self._settled or self.lifecycle.finished:
            self._paused = not at_rest
            return
        self._paused = False
        call_s = injector.next_call_s()
        if call_s is not None:
            self.lifecycle.wake_at(call_s, now_s)

    def _count_idle_step(self) -> None:
        """Raise InputError if steps without end pass while nothing changes."""
        self._idle_steps += 1
        if self._idle_steps > MAX_IDLE_STEPS and not self._settled:
            first = min(self.cluster.running)
            problem = f"nothing has changed for {MAX_IDLE_STEPS} steps after its end, while {first} runs"
            raise InputError("the envelope", problem, "correct the length of that job, or let the last step be longer")

    def _give_up_on_hosts(self) -> bool:
        """Reject jobs that only hosts out of service could run, if nothing else is to come; return whether any are."""
        jobs, cluster = self.lifecycle, self.cluster
        coming = jobs.more_jobs or jobs.pending or cluster.running or self.hosts_may_return
        stuck = not coming and self.reject_stuck()
        if stuck:
            self._look_again()
            self._place()
        return stuck

    def _look_again(self) -> None:
        """Let the next step respond and place once more, as jobs have left the queue."""
        self.changed()
        self._placed = -1

    def _give_up(self) -> None:
        """Reject the first job and those that are as wide: nothing else runs or is to come; others may still start."""
        assert self.injector is not None
        if self.lifecycle.more_jobs or self._give_up_on_hosts() or not self.queue.rows:
            return
        first = next(self.queue.ordered(self.cluster.now_s))
        wide = [job for job in self.queue if job.hosts >= first.hosts]
        self.reject(wide, f"too wide for the last cap of {self.injector.cap_w} W")
        self._look_again()
