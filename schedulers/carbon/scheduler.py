"""Carbon-aware shifting of jobs in phases (GAIA, Let's Wait Awhile, the carbon thesis), as a Batsim scheduler."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Mapping
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, ClassVar

from pydantic import Field

from batwatt.errors import InputError, argument
from batwatt.model.attempt import PIECE, SUSPENDED
from batwatt.model.signal import factor_to
from batwatt.model.timeline import Timeline
from batwatt.protocol.job_fields import NotForPhasesError
from batwatt.schedulers.carbon.cluster import CarbonCluster, CarbonJob, CarbonState, PhaseCluster
from batwatt.schedulers.carbon.execution import Execution, ShiftJob
from batwatt.schedulers.carbon.forecast import SignalForecast, weighed
from batwatt.schedulers.carbon.policies import (
    MeanLengths,
    PolicyInputs,
    StartWindow,
    check_limits,
    policy_named,
    start_window,
)
from batwatt.schedulers.carbon.reservations import Placement, ReservationCalendar, SharedCluster
from batwatt.scheduling.base import (
    LIMIT,
    NODES,
    WAIT_H,
    OptionValues,
    PartChoice,
    Scheduler,
    SchedulerOptions,
    WaitHours,
)
from batwatt.scheduling.cluster import outage
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.orders import NodeSelection
from batwatt.scheduling.registry import make
from batwatt.units import HOUR_S, LAG_S


class CarbonOptions(SchedulerOptions):
    """Options of the scheduler `carbon` (docs/explanation/carbon.md)."""

    signal: Timeline | None = Field(None, description="CSV file of the carbon intensity in g/kWh")
    price: Timeline | None = Field(None, description="CSV file of the price of a kWh")
    carbon_weight: float = Field(1.0, ge=0.0, description="weight of a g in plans")
    price_weight: float = Field(0.0, ge=0.0, description="weight of a unit of money in plans")
    policy: str = Field("phase-aware", description="a policy of `batwatt policies`")
    node_selection: PartChoice = Field("first", description=NODES)
    wait_h: WaitHours = Field(WAIT_H, description="hours >= 0 that short and long jobs may wait, or one for all")
    deadline_h: float | None = Field(None, gt=0.0, description="hours from arrival to completion, in place of wait_h")
    constraint: str | None = Field(None, description="next-workday or semi-weekly, in place of wait_h")
    clock: str = Field("UTC", description="time zone of the hours and days of the constraint")
    replan_h: float | None = Field(
        None, ge=0.01, description="period in hours in which waiting jobs are replanned; by default never"
    )
    forecast_error: float = Field(
        0.0, ge=0.0, le=10.0, description="relative error of forecasts 1 h ahead, grows with the root of the time"
    )
    forecast_seed: int = Field(0, ge=0, description="seed of the errors of forecasts")
    forecast_sure_h: float | None = Field(
        None, ge=0.0, description="hours for which forecasts are sure; then the last day repeats; by default all"
    )
    step_s: float | None = Field(
        None, ge=0.1, description="steps in s by which the policy plans a job alone; by default its own"
    )
    slot_s: float = Field(60.0, ge=0.1, description="length in s of the slots of shared plans")
    capacity: Timeline | None = Field(None, description="file of the number of machines over time")
    envelope: Timeline | None = Field(None, description="CSV file of the power envelope")
    switch: bool = Field(True, description="switch machines beyond the capacity off; not those for jobs in phases")
    transition_limit_s: float | None = Field(None, gt=0.0, description=LIMIT)


UNFIT = "not enough machines or watts"
"""Reason why a job is rejected."""


class Carbon(Scheduler[CarbonOptions]):
    """Shifts, suspends and resumes jobs in phases under a carbon or price signal, on as many machines as there are.

    A job is planned when it arrives, by a policy and around those before.
    """

    Options: ClassVar[type[CarbonOptions]] = CarbonOptions
    needs_exact_times: ClassVar[bool] = True

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        check_limits(self.settings.deadline_h, self.settings.constraint, self.settings.clock)
        self.executions: dict[str, Execution] = {}
        """Planned executions by the job's id."""
        self._selection: NodeSelection = make("node_selection", self.settings.node_selection)
        self._arrived: list[BatsimJob] = []
        self._starts: list[CarbonJob] = []
        """Jobs whose next segment is to start, sorted by its begin."""
        self._stops: list[tuple[float, int, CarbonJob]] = []
        self._stalled: list[CarbonJob] = []
        """Jobs whose next piece waits for other hosts, as theirs went out of service."""
        self._count = 0
        """Number of jobs that have arrived."""
        self._hosts_changed = False
        self._every_s = HOUR_S * (self.settings.replan_h or math.inf)
        """The time between two plannings."""
        self._turn = 0
        """Number of times at which replanning was due."""
        self._lengths = MeanLengths()

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """See `Scheduler`."""
        return True

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True: the rest of a suspended job is submitted again."""
        return True

    # planning ---------------------------------------------------------------------------------------------------

    def _use(self, cluster: CarbonCluster) -> None:
        """Plan and run on these hosts. Raises InputError."""
        settings = self.settings
        self.cluster = cluster
        machines, watts, cores = cluster.limits(settings.capacity, settings.envelope)
        calendar = ReservationCalendar(settings.slot_s, machines, watts, cores, cluster.prefer)
        self.shared = SharedCluster(self.forecast.at(0.0), calendar, policy_named(settings.policy))
        self._hosts_changed = bool(self.transitions.out)

    def _signal(self) -> Timeline:
        """Return the signal of plans: carbon, price, or both by their weights. Raises InputError."""
        settings = self.settings
        if settings.shift is not None:
            raise InputError("option 'shift'", "is for schedulers that do not shift jobs themselves", "give policy")
        price = None if settings.price is None else self._converted("price", settings.price)
        if settings.signal is None and price is not None:
            return price
        carbon = self._converted("signal", settings.signal)
        return weighed(carbon, price, settings.carbon_weight, settings.price_weight)

    def _converted(self, name: str, signal: Timeline | None) -> Timeline:
        if signal is None:
            hint = f"give a signal: {argument('carbon')} or {argument('price')}"
            raise InputError(f"option {name!r}", "the scheduler needs it", hint)
        wanted = "price" if name == "price" else "carbon"
        factor, unit = factor_to(wanted, signal.unit, max(signal.values), f"option {name!r}")
        return signal if factor == 1.0 else signal.of(signal.array * factor, unit)

    def forecasts(self) -> SignalForecast:
        """Return the forecasts of the signal for plans. Raises InputError."""
        settings = self.settings
        error, seed, sure_h = settings.forecast_error, settings.forecast_seed, settings.forecast_sure_h
        return SignalForecast(self._signal(), error, seed, sure_h)

    def _plan(self, job: ShiftJob) -> tuple[Execution | None, StartWindow]:
        """Return the execution of a job, None if it can never run, and its window. Raises InputError."""
        settings = self.settings
        self._lengths.add(job)
        self.shared.integral = self.forecast.at(job.arrival_s)
        limits = settings.wait_h, settings.deadline_h, settings.constraint, settings.clock
        window = start_window(job, self.shared.integral, *limits)
        allowed = window.after(self.cluster.earliest_s(job.arrival_s))
        inputs = self._inputs_of(job)
        execution = self.shared.place(job, allowed, inputs)
        if execution is None and self.transitions.out:
            # it waits until the hosts that it needs are back
            lacking = self.cluster.exclude()
            self.shared.calendar.lack(0 * lacking, job.arrival_s)
            execution = self.shared.place(job, allowed, inputs)
            self.shared.calendar.lack(lacking, job.arrival_s)
        return execution, window

    def _inputs_of(self, job: ShiftJob) -> PolicyInputs:
        """Return the inputs of policies: the mean length of the job's class so far, and the steps."""
        return PolicyInputs(self._lengths.of(job), self.settings.step_s)

    def _plan_anew(self, now_s: float) -> None:
        """Plan waiting jobs again; a job that must have started by now keeps its plan."""
        self.shared.integral = self.forecast.at(now_s)
        waiting = [
            (job, *self._placement(job, now_s))
            for job in sorted(self._starts, key=attrgetter("number"))
            if not job.mask
        ]
        in_time = [(job, placement) for job, placement, late in waiting if not late]
        anew = self.shared.place_anew([placement for _, placement in in_time])
        for (job, placement), execution in zip(in_time, anew, strict=True):
            if execution is not placement.execution:
                self._go_on(job, execution)
        self._sort_starts()

    def _placement(self, job: CarbonJob, now_s: float) -> tuple[Placement, bool]:
        """Return the placement of the rest of a job, and whether it is too late to place it again."""
        state = job.state
        whole, left = state.execution.job, state.left
        begin_s = self.cluster.earliest_s(max(now_s, whole.arrival_s))
        wait_s = state.window.deadline_s(whole) - left.job.length_s - begin_s
        return Placement(left, StartWindow(begin_s, max(0.0, wait_s)), self._inputs_of(whole)), wait_s < 0.0

    def _go_on(self, job: CarbonJob, left: Execution) -> None:
        """Replace the rest of a job."""
        job.state.go_on(left)
        self.executions[job.name] = job.state.execution

    def _sort_starts(self) -> None:
        for job in self._starts:
            job.sort_key = job.state.next_segment.begin_s, 0.0, job.number
        self._starts.sort(key=_sort_key)

    def hosts_changed(self) -> None:
        """See `Scheduler`; starts are placed elsewhere once the message has been read."""
        self._hosts_changed = True

    def _follow_hosts(self, now_s: float) -> None:
        """Plan around the hosts out of service: starts on their machines are placed elsewhere, where there is room."""
        calendar = self.shared.calendar
        if self._hosts_changed or self.transitions.out:
            calendar.lack(self.cluster.exclude(), now_s)
        if not self._hosts_changed:
            return
        self._hosts_changed = False
        self.shared.integral = self.forecast.at(now_s)
        for job in sorted(self._starts, key=attrgetter("number")):
            if any(self.cluster.lacks(segment.machines) for segment in job.state.left.segments):
                execution = self.shared.place_elsewhere(self._placement(job, now_s)[0])
                if execution is not None:
                    self._go_on(job, execution)
        self._sort_starts()

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Set up the machines: those for jobs in phases, or others."""
        super().onSimulationBegins()
        self.forecast = self.forecasts()
        hosts = self.bs, self.hosts_described, self.transitions, self._selection
        self._plain = partial(CarbonCluster, *hosts, self.platform, self.settings.switch)
        try:
            self._use(PhaseCluster(*hosts))
        except NotForPhasesError:
            self._use(self._plain())

    def onJobSubmission(self, job: BatsimJob) -> None:
        """Take in a job of the workload; a piece of our own that is acknowledged was started already."""
        if not self.lifecycle.acknowledged(job):
            self._arrived.append(job)

    def _arrive(self, job: CarbonJob) -> None:
        """Plan a job."""
        if not self.executions and not self.cluster.accepts(job.attempt):
            # machines that draw nothing when idle are not only for phases
            self._use(self._plain())
        execution, window = self._plan(self.cluster.shift_job(job))
        if execution is None:
            self.lifecycle.reject([job.attempt], UNFIT)
            return
        job.state = CarbonState(execution, window)
        self.executions[job.name] = execution
        self.lifecycle.live += 1
        self._await(job)

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that hosts arrived in a p-state."""
        super().onHostsArrived(mask, pstate)
        self.cluster.switched(mask, pstate)

    def onJobCompletion(self, job: BatsimJob) -> None:
        """End a piece: the next one of its segment follows at once."""
        managed, suspended = self.lifecycle.ended(job)
        state = managed.state
        if state.pieces:
            if managed.mask & self.transitions.out:
                self.cluster.give_back(managed)
                self._stalled.append(managed)
            else:
                self._run_piece(managed)
            return
        self.cluster.give_back(managed)
        # one that ends at the time of its suspension has not been suspended
        if state.ends or (state.segment == 0 and not suspended):
            self.lifecycle.live -= 1
            return
        state.segment += 1
        self._await(managed)

    def onNoMoreEvents(self) -> None:
        """Suspend and start jobs that are due, and request the next wake-ups."""
        if not self.bs.running_simulation:
            return
        now_s = self.bs.time()
        if not self.update_hosts(now_s):
            return
        arrived = sorted(self._arrived, key=attrgetter("submit_time", "id"))
        self._arrived.clear()
        for number, attempt in enumerate(arrived, self._count):
            self._arrive(Job(number, attempt))
        self._count += len(arrived)
        self._follow_hosts(now_s)
        while self._stops and self._stops[0][0] <= now_s + _SOON_S:
            stopped = heappop(self._stops)[2]
            if stopped.attempt.id not in self.lifecycle.jobs:
                continue  # it took less than its walltime, by which it was planned
            self.lifecycle.describe(stopped.attempt, SUSPENDED)
            self.lifecycle.kill([stopped])
            self.cluster.over(stopped)
        self.cluster.settle(now_s)
        self.shared.calendar.forget(now_s)
        turn = math.floor((now_s + _SOON_S) / self._every_s)
        # messages may be late; at other times no job waited when it was time
        if turn > self._turn and now_s - turn * self._every_s <= LAG_S:
            if any(running.state.continues_at(now_s) for running in self.lifecycle.jobs.values()):
                # the rest of it is planned again, too, once its end is reported
                if self._stops:
                    self.lifecycle.wake_at(self._stops[0][0], now_s + _SOON_S)
                return
            self._turn = turn
            self._plan_anew(turn * self._every_s)
        changes_s = self.cluster.follow(now_s, self._starts)
        self._start_due(now_s)
        if self._stops:
            self.lifecycle.wake_at(self._stops[0][0], now_s + _SOON_S)
        if self._starts:
            self.lifecycle.wake_at(self._starts[0].sort_key[0], now_s + _SOON_S)
            self.lifecycle.wake_at((turn + 1) * self._every_s, now_s + _SOON_S)
        if not self.lifecycle.finished:
            self.lifecycle.wake_at(changes_s, now_s + _SOON_S)
            self.lifecycle.wake_for_limit(self.transitions.next_s, now_s)
            if self.transitions.out:
                self._wait_for_hosts(now_s, changes_s)
        self.lifecycle.close(self.lifecycle.finished)

    def _await(self, job: CarbonJob) -> None:
        job.sort_key = job.state.next_segment.begin_s, 0.0, job.number
        insort(self._starts, job, key=_sort_key)

    # carrying out -----------------------------------------------------------------------------------------------

    def _start_due(self, now_s: float) -> None:
        """Start what is due, in the order of the plans, as far as machines are free at this very moment."""
        self._stalled = [job for job in self._stalled if not self._resume(job, now_s)]
        due = bisect_right(self._starts, (now_s + _SOON_S, math.inf, 0), key=_sort_key)
        late = [job for job in self._starts[:due] if not self._start(job, now_s)]
        self._starts[:due] = late

    def _start(self, job: CarbonJob, now_s: float) -> bool:
        """Start the next segment of a job, or reject what never can; return False if it waits for its hosts."""
        segment = job.state.next_segment
        if self.cluster.hold(job, segment.machines):
            late_s = now_s - segment.begin_s
            job.state.until_s = segment.end_s + (late_s if late_s > LAG_S else 0.0)
            self._run_segment(job, now_s)
        elif job.mask or self.cluster.may_start(job, segment.machines):
            return False
        else:
            self._miss(job)
        return True

    def _resume(self, job: CarbonJob, now_s: float) -> bool:
        """Run the next piece of a job on other hosts; return False while there are none."""
        if not self.cluster.hold(job, ()):
            return False
        job.state.until_s = now_s + sum(length_s for length_s, _ in job.state.pieces)
        self._run_piece(job)
        return True

    def _miss(self, job: CarbonJob, why: str = UNFIT) -> None:
        """Reject a job that is so late that it never gets its hosts any more, on an engine that switches late."""
        self.lifecycle.live -= 1
        if job.state.segment:
            self.lifecycle.note_unrunnable([job.name], why)
        else:
            self.lifecycle.reject([job.attempt], why)

    def _wait_for_hosts(self, now_s: float, changes_s: float) -> None:
        """Wake at the next start to come; without one, and if nothing else is to come, reject what waits for hosts."""
        begins_s = (job.sort_key[0] for job in self._starts)
        later_s = next((begin_s for begin_s in begins_s if begin_s > now_s + _SOON_S), math.inf)
        self.lifecycle.wake_at(later_s, now_s)
        coming = self.lifecycle.more_jobs or self.lifecycle.jobs or self.hosts_may_return
        if coming or min(later_s, changes_s) < math.inf:
            return
        stuck = [*self._stalled, *self._starts]
        self._stalled, self._starts = [], []
        for job in sorted(stuck, key=attrgetter("number")):
            self._miss(job, outage(self.transitions.out))

    def _run_segment(self, job: CarbonJob, now_s: float) -> None:
        state = job.state
        segment = state.next_segment
        if state.segment == 0:
            self._execute(job)
            if not state.ends:
                # it runs as long as was planned, should it begin late
                heappush(self._stops, (now_s + (segment.end_s - segment.begin_s), job.number, job))
            return
        steps = segment.steps(state.execution.job.model)
        lengths = (steps.edges_s[1:] - steps.edges_s[:-1]).tolist()
        state.pieces = list(zip(lengths, steps.watts.tolist(), strict=True))[::-1]
        self._run_piece(job)

    def _run_piece(self, job: CarbonJob) -> None:
        state = job.state
        length_s, power_w = state.pieces.pop()
        last = state.ends and not state.pieces
        piece = self.cluster.piece(job, self.lifecycle.next_id(job.attempt), length_s, power_w, last=last)
        job.attempt = self.lifecycle.attempt(job.attempt, *piece)
        self._execute(job)
        if not last:
            self.lifecycle.describe(job.attempt, PIECE)

    def _execute(self, job: CarbonJob) -> None:
        self.lifecycle.jobs[job.attempt.id] = job
        self.lifecycle.execute(job, job.mask)


_sort_key = attrgetter("sort_key")
_SOON_S = LAG_S / 1e3
"""Times are reported to the microsecond."""
