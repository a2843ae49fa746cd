"""The five strategies of the riskaware paper (Perotin et al., PMBS 2023) as a Batsim scheduler."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from batwatt.model.attempt import REMAINDER
from batwatt.model.timeline import Timeline
from batwatt.model.work import Categories, Reference
from batwatt.schedulers.riskaware.planners import (
    FirstFitStrategy,
    MachinePlanner,
    RiskawareJob,
    RiskawareState,
    hand_over,
)
from batwatt.scheduling.base import VICTIM, OptionValues, PartChoice
from batwatt.scheduling.capacity import CapacityScheduler, MachineOptions
from batwatt.scheduling.cluster import outage
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.registry import find, make, register
from batwatt.scheduling.victims import VictimRule, Victims
from batwatt.units import LAG_S, REPORTED_S

MANY = 1_000_000
"""More machines than this are a typing error."""


class RiskawareOptions(MachineOptions):
    """Options of the scheduler `riskaware`; where the text leaves a value open, that of the authors' experiments.

    The rules: docs/explanation/riskaware.md.
    """

    strategy: str = Field(
        "packed-target-asap", description="mapping of jobs to machines, and order in which machines are switched off"
    )
    victim: PartChoice = Field("resubmit", description=VICTIM)
    seed: int = Field(0, ge=0, description="seed of first-fit-unaware's choice of machines, a whole number >= 0")
    always: int | None = Field(
        None,
        ge=0,
        le=MANY,
        description="machines that are always alive (M-); by default the least of the range that the capacity's text "
        "states, as walk: does, else of its values",
    )
    distance: int | None = Field(
        None, ge=0, le=MANY, description="D+ in machines; by default 7 % of all machines, rounded up"
    )
    low: float = Field(0.80, ge=0.0, le=1.0, description="utilisation below which M_use shrinks")
    high: float = Field(0.95, ge=0.0, le=1.0, description="utilisation above which M_use grows")
    usable: int | None = Field(
        None,
        ge=1,
        le=MANY,
        description="M_use at first; by default always (M-), or half way from it to those alive if as_published",
    )
    pack: int = Field(5, ge=1, le=MANY, description="machines of a pack of packed-target-asap")
    reference: Reference | None = Field(
        None, description="jobs (riskaware text) or CSV length_s,area_core_s for the categories; by default a Borg week"
    )
    quantiles: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="area-weighted quantiles of the reference, 0 for none; by default 0, or 1000 if as_published",
    )
    as_published: bool = Field(False, description="follow the authors' program, not the paper, where they differ")
    longest_as_shortest: bool | None = Field(
        None, description="jobs as long as the last quantile count as shortest; by default as as_published"
    )


BORG_WEEK = Path(__file__).with_name("borg_week.csv")
"""Lengths in a week of the Google Borg trace (CC-BY)."""
DISTANCE = 0.07
"""D+ by default, as a share of the machines."""


@register("strategy", "first-fit-aware")
def first_fit_aware(machines: int, cores: int, capacity: Timeline, options: RiskawareOptions) -> MachinePlanner:
    """First fit; the machines with the highest indices go first (section 4.1)."""
    return FirstFitStrategy(machines, cores, None, options.as_published)


@register("strategy", "first-fit-unaware")
def first_fit_unaware(machines: int, cores: int, capacity: Timeline, options: RiskawareOptions) -> MachinePlanner:
    """First fit that knows nothing of risk: random machines go (section 4.2)."""
    return FirstFitStrategy(machines, cores, np.random.default_rng(options.seed), options.as_published)


@register("strategy", "target-stretch")
def target_stretch(machines: int, cores: int, capacity: Timeline, options: RiskawareOptions) -> MachinePlanner:
    """TargetStretch: the target, or a machine near it, within the greatest stretch so far (section 4.3)."""
    return _targets(machines, cores, capacity, options, limit=0.0)


@register("strategy", "target-asap")
def target_asap(machines: int, cores: int, capacity: Timeline, options: RiskawareOptions) -> MachinePlanner:
    """TargetASAP: a machine near the target on which the job starts at once (section 4.4)."""
    return _targets(machines, cores, capacity, options)


@register("strategy", "packed-target-asap")
def packed_target_asap(machines: int, cores: int, capacity: Timeline, options: RiskawareOptions) -> MachinePlanner:
    """PackedTargetASAP: as target-asap, with packs of machines for targets (section 4.5)."""
    return _targets(machines, cores, capacity, options, pack=options.pack)


@cache
def borg_week() -> Reference:
    """Return the reference of the authors' experiments with Borg traces."""
    return Reference(*np.loadtxt(BORG_WEEK, delimiter=",", skiprows=1, unpack=True))


def _targets(
    machines: int, cores: int, capacity: Timeline, options: RiskawareOptions, limit: float = 1.0, pack: int = 1
) -> MachinePlanner:
    """Return the planner of a target strategy."""
    # compiled code takes a moment to load, and first fit does without it
    from batwatt.schedulers.riskaware.planners import Targets, TargetSettings

    least = int(capacity.least() if options.as_published else capacity.known_range[0])
    distance = math.ceil(round(DISTANCE * machines, 9)) if options.distance is None else options.distance
    settings = TargetSettings(
        always=least if options.always is None else options.always,
        distance=min(distance, machines),
        limit=limit,
        pack=pack,
        **{name: getattr(options, name) for name in ("low", "high", "usable")},
        drop=options.as_published,
        paper=not options.as_published,
    )
    third = options.as_published if options.longest_as_shortest is None else options.longest_as_shortest
    quantiles = (1000 if options.as_published else 0) if options.quantiles is None else options.quantiles
    return Targets(machines, cores, settings, Categories(options.reference or borg_week(), quantiles, third))


NO_MACHINE = "no machine is alive any more"
"""Reason why jobs can never run."""
DROPPED = "never started by the strategy"
"""Reason why the planner rejects jobs."""
LOST = "lost with their machine before they began"
"""Reason for jobs that the plan has started and killed, and that have not run: at one time, or on a slow machine."""


class Riskaware(CapacityScheduler[RiskawareOptions]):
    """A scheduler that carries out the decisions of the planner of the chosen strategy."""

    Options: ClassVar[type[RiskawareOptions]] = RiskawareOptions
    plans_lengths: ClassVar[bool] = True
    needs_exact_times: ClassVar[bool] = True

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        # a wrong name is an error before anything runs
        self._strategy = find("strategy", self.settings.strategy)
        self.victim: VictimRule = make("victim", self.settings.victim)
        self._by_number: list[RiskawareJob] = []
        self._arrived: list[tuple[float, float, Any, RiskawareJob]] = []
        """(submission in s, release in s, tie) of the jobs that the planner does not know yet."""
        self._ended: list[tuple[int, float]] = []
        self._due: set[int] = set()
        self._settled = True
        self.dropped = 0
        """Jobs from before the window that were left out."""

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Build the machines."""
        super().onSimulationBegins()
        count, self.cores = len(self.hosts), self.hosts.cores
        self.fleet = Fleet(count, self.cores, np.inf)
        self.fleet.paces = self.paces
        self._queues: list[deque[RiskawareJob]] = [deque() for _ in range(count)]
        self._alive = np.ones(count, dtype=np.bool_)
        self._machine_of = list(range(count))
        """The machine that stands for each of the planner's, whose capacity is lowered by machines out of service."""
        self._replaced: set[int] = set()
        """The planner's machines for which another one stands, or stood."""
        self.planner: MachinePlanner = self._strategy(count, self.cores, self.capacity, self.settings)
        self.planner.victim = self.victim
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)

    def arrived(self, job: BatsimJob) -> None:
        """Take note of a job; one that is wider than a machine can never run and is rejected."""
        if job.requested_resources > self.cores:
            self.lifecycle.reject([job], f"wider than a machine of {self.cores} cores")
            return
        release_s, length_s, run_s = self.lengths.described(job)
        loses = not self.victim.needs_lengths and not (self.paces != 1.0).any()
        why = self.lifecycle.too_long(self.capacity, 1, "machines", run_s) if loses else ""
        if why:
            self.lifecycle.reject([job], why)
            return
        tie = self.planner.tie(job.id.partition("!")[2])
        work = Job(-1, job, length_s, run_s, state=RiskawareState(release_s, early=run_s < length_s))
        work.scales = self.lengths.scales(job)
        self._arrived.append((float(job.submit_time), release_s, tie, work))

    def onJobCompletion(self, job: BatsimJob) -> None:
        """Free the cores of a job; submit it again if it was killed for its machine."""
        late = self.lifecycle.jobs[job.id].dying
        work, killed = self.lifecycle.ended(job)
        self.fleet.remove(work)
        work.mask = 0
        if self.stopped:
            return
        if killed:
            self._submit_again(work)
            return
        # also one that ended before it could be killed
        work.state.wanted = False
        self.lifecycle.live -= 1
        number, now_s = work.number, self.bs.time()
        # what was killed by the plan only ends early for it
        early_s = self.planner.end_s(number) - 2.0 * LAG_S if work.state.keeps_running or late else now_s
        self._ended.append((number, min(now_s, early_s)))

    def _submit_again(self, work: RiskawareJob) -> None:
        """Register the next run of a job that was killed, unless the job is lost."""
        following = self.victims.next_of(work.attempt)
        if following is None:
            self.lifecycle.live -= 1
            return
        work.attempt = self.victims.register_next(work.attempt, following)
        self.lifecycle.jobs[work.attempt.id] = work
        if work.state.early and self.settings.as_published and not following.saved_s:
            self.lifecycle.describe(work.attempt, REMAINDER)

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run, and of what the planner noticed."""
        super().onSimulationEnds()
        if self.dropped:
            text = "%d jobs from before the window found no room at its begin and were left out (as_published)"
            self.logger.warning(text, self.dropped)
        remark = self.planner.remark()
        if remark:
            self.logger.warning("%s", remark)

    def finished(self) -> bool:
        """See `CapacityScheduler`."""
        return self.lifecycle.finished and not any(work.mask for work in self.lifecycle.jobs.values())

    # the planner ------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """Hand over, time by time, the steps and the jobs of this message, after the ends before them."""
        decisions, dropped, changed = hand_over(self.planner, self._ended, self._upcoming(now_s))
        self._ended.clear()
        if changed:
            self._update_wanted()
        self._receive(decisions)
        self._drop(dropped)

    def _upcoming(self, now_s: float) -> Iterator[tuple[float, int | None, list[RiskawareJob]]]:
        # the next one last
        arrived = sorted(self._arrived, key=itemgetter(0, 1, 2))[::-1]
        self._arrived.clear()
        left, last_s = self.service_changed(), now_s
        while (time_s := min(self.step_s, arrived[-1][0] if arrived else math.inf)) <= now_s + LAG_S:
            alive = self.step() if self.step_s == time_s else None
            batch: list[RiskawareJob] = []
            while arrived and arrived[-1][0] == time_s:
                batch.append(self._admit(arrived.pop()[3]))
            last_s = max(last_s, time_s)
            yield time_s, alive, batch
        if left is not None:
            yield last_s, left, []

    def _drop(self, dropped: list[int]) -> None:
        """Reject jobs that the planner never starts."""
        jobs = [self._by_number[number].attempt for number in dropped]
        for job in jobs:
            del self.lifecycle.jobs[job.id]
        self.lifecycle.live -= len(jobs)
        self.dropped += len(jobs)
        if jobs:
            self.lifecycle.refuse(jobs, DROPPED)

    def _admit(self, work: RiskawareJob) -> RiskawareJob:
        work.number = len(self._by_number)
        self.lifecycle.jobs[work.attempt.id] = work
        self._by_number.append(work)
        self.lifecycle.live += 1
        return work

    def _receive(self, decisions: list[int]) -> None:
        """Follow the decisions of one message, in order: a job may start, be killed and start again elsewhere."""
        kills: list[RiskawareJob] = []
        lost: list[RiskawareJob] = []
        works = self._by_number
        for number in decisions:
            if number >= 0:
                # the message may report the end of a job that the plan starts by the end of another one
                works[number].state.wanted = works[number].attempt.id in self.lifecycle.jobs
                continue
            work = works[-1 - number]
            work.state.wanted = False
            if self.fleet.stranded(work):
                work.state.keeps_running = True
                continue
            if work.mask and not work.dying:
                now_s = self.bs.time()
                self.victims.killed(work.attempt, work.ran_s(now_s), now_s - work.start_s)
                kills.append(work)
            elif not work.mask and work.state.lost:
                lost.append(work)
        for number in dict.fromkeys(decisions):
            if number >= 0 and works[number].state.wanted:
                place = self.planner.machine_of(number)
                self._queues[place].append(works[number])
                self._due.add(place)
        self.lifecycle.kill(dict.fromkeys(kills))
        self.lifecycle.live -= len(lost)
        self.lifecycle.reject(self._leave(lost), LOST)

    def _update_wanted(self) -> None:
        if self.fleet.out_count:
            self._replace_machines()
        self._alive[:] = False
        self._alive[[self._machine_of[place] for place in self.planner.machines_alive()]] = True
        self.hosts.want(self._alive)
        self._settled = False

    def _replace_machines(self) -> None:
        """Let machines in service stand for those of the planner that it needs, and that are out of service."""
        machine_of, out = self._machine_of, self.fleet.out
        needed = {*self.planner.machines_alive(), *self._due}
        spare = [place for place in range(len(machine_of)) if place not in needed and not out[machine_of[place]]]
        for place, other in zip([place for place in sorted(needed) if out[machine_of[place]]], spare, strict=False):
            machine_of[place], machine_of[other] = machine_of[other], machine_of[place]
            self._replaced |= {place, other}

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch the machines that can be switched, then start the jobs that can start."""
        if not self._settled:
            self._switch()
        for number in sorted(self._due):
            for machine in self._machines_for(number):
                if self.fleet.ready[machine] and self._queues[number]:
                    self._start(number, machine)
            if not self._queues[number]:
                self._due.discard(number)

    def _machines_for(self, place: int) -> list[int]:
        """Return the machine of a planned one; all in service if its own is not and no other stands for it."""
        machine, out = self._machine_of[place], self.fleet.out
        return np.flatnonzero(self._alive & ~out).tolist() if out[machine] else [machine]

    def _switch(self) -> None:
        # what is late, and over by the plan when its machine goes, is still to run there
        wanted = self._alive.copy()
        own = np.flatnonzero(self.hosts.on & ~wanted).tolist()
        for place in {*own, *self._replaced}:
            late = (work.number for work in self._queues[place] if work.state.wanted)
            wanted[self._machine_of[place]] |= any(self.planner.machine_of(number) == place for number in late)
        self.hosts.want(wanted)
        self.switch()
        self.hosts.want(self._alive)
        self._settled = self.hosts.settled

    def _start(self, place: int, number: int) -> None:
        """Start the jobs due on a planned machine on a real one, as far as they are here and its cores are free."""
        now_s = self.bs.time()
        ends_s = [self.planner.end_s(other.number) for other in self.fleet.on(number)]
        if any(now_s - LAG_S <= end_s <= now_s + REPORTED_S for end_s in ends_s):
            return  # ends of this very time come in another message, and cores are taken in the order of their ids
        left: deque[RiskawareJob] = deque()
        for work in self._queues[place]:
            if not work.state.wanted or self.planner.machine_of(work.number) != place:
                continue  # killed, and perhaps due elsewhere
            if work.mask or self.fleet.free[number] < work.hosts:
                left.append(work)
                continue
            work.state.wanted, work.start_s = False, now_s
            self.fleet.add(work, np.array([number]), now_s)
            self.lifecycle.execute(work, self.hosts.assign(work, self.fleet))
        self._queues[place] = left

    # giving up --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        running = [work for work in self.lifecycle.jobs.values() if work.mask]
        self.lifecycle.give_up(self._leave([work for work in self.lifecycle.jobs.values() if not work.mask]))
        self.lifecycle.live = 0
        for work in running:
            self.victims.stopped(work.attempt, self.bs.time() - work.start_s)
        self.lifecycle.kill(running)

    def waiting(self) -> Iterable[RiskawareJob]:
        """See `CapacityScheduler`."""
        return (work for work in self.lifecycle.jobs.values() if not (work.mask or work.state.wanted))

    def give_up(self, jobs: list[RiskawareJob], why: str) -> None:
        """See `CapacityScheduler`."""
        decisions = [decision for work in jobs for decision in self.planner.ended(work.number, self.bs.time())]
        self.lifecycle.live -= len(jobs)
        self.lifecycle.reject(self._leave(jobs), why)
        self._receive(decisions)

    def unrunnable(self) -> tuple[list[BatsimJob], str]:
        """See `CapacityScheduler`."""
        if self.planner.machines_alive():
            return [], ""
        fleet = self.fleet
        # what is late and was to start before is still to run, on a machine that is left
        lost = {place for place in self._due if fleet.out[self._machine_of[place]]}
        works = [
            work
            for work in self.lifecycle.jobs.values()
            if not (work.mask or (work.state.wanted and self.planner.machine_of(work.number) not in lost))
        ]
        if fleet.out_count:
            # machines may come back
            for work in works:
                self.planner.ended(work.number, self.bs.time())
        waiting = self._leave(works)
        self.lifecycle.live = len(self.lifecycle.jobs)
        return waiting, outage(self.transitions.out) if fleet.out_count else NO_MACHINE

    def _leave(self, works: list[RiskawareJob]) -> list[BatsimJob]:
        for work in works:
            del self.lifecycle.jobs[work.attempt.id]
            work.state.wanted = False
        return [work.attempt for work in works]
