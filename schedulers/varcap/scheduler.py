"""The schedulers of the varcap dissertation, chapters 5 to 7, as a Batsim scheduler (docs/explanation/varcap.md).

The rules: docs/explanation/varcap.md.

Unlike the schedulers of planners they follow messages of Batsim: ends, kills and switches are known when they are
announced, so run times may be unknown. Nothing starts while something that was killed has not ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from pydantic import Field

from batwatt.errors import InputError, remark
from batwatt.model.workload import LONG_S
from batwatt.schedulers.varcap.flow import Assumptions, JobFlow
from batwatt.schedulers.varcap.machines import Knowledge, MappingPolicy, MappingSite, Termination, leaving, move
from batwatt.schedulers.varcap.preemption import Preemption, Preemptions
from batwatt.schedulers.varcap.queues import BucketQueue, Range, SortedQueue, WaitingQueue
from batwatt.scheduling.backfilling import rule_of
from batwatt.scheduling.base import AGE, NODES, VICTIM, OptionValues, PartChoice
from batwatt.scheduling.capacity import CapacityScheduler, VaryingOptions
from batwatt.scheduling.cluster import outage
from batwatt.scheduling.fleet import CapacityForecast, Fleet, Foresight
from batwatt.scheduling.job import BatsimJob, Job, Places
from batwatt.scheduling.orders import First, FirstCome, NodeSelection, Order, Wfp
from batwatt.scheduling.registry import make, named
from batwatt.scheduling.victims import Lose, Resubmit, VictimRule, Victims
from batwatt.units import HOUR_S, LAG_S

Settings = TypeVar("Settings", bound=VaryingOptions)
Parts: TypeAlias = tuple[MappingPolicy, Termination, CapacityForecast | None, Preemption | None]


class VaryingScheduler(CapacityScheduler[Settings]):
    """A scheduler that starts, kills and moves jobs on machines that come and go; subclasses give the parts."""

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        self.victim: VictimRule = Resubmit()
        """Rule for jobs that are killed."""
        self.selection: NodeSelection = First()
        self._checked = int(self.capacity.most())

    @property
    def loses_work(self) -> bool:
        """True if the work of a job that is killed is done again."""
        return not self.victim.needs_lengths

    @abstractmethod
    def make_parts(self, machines: int) -> Parts:
        """Return the parts for `machines` machines: without a forecast the future is unknown."""

    @property
    @abstractmethod
    def assumptions(self) -> Assumptions:
        """Assumptions of the mapping about jobs."""

    def without_requests(self) -> str:
        """See `Scheduler`."""
        return "they are planned by their exact run times"

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the parts for the machines, which are known from now on."""
        super().onSimulationBegins()
        machines = len(self.hosts)
        self.mapping, self.termination, forecast, preemption = self.make_parts(machines)
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)
        self.termination.loss_s = self.victims.loss_s
        self.preemptions: Preemptions | None = None
        if preemption is not None:
            ages = self.mapping.queues[0].ages
            self.preemptions = Preemptions(preemption, self.victim.checkpoint_s, self.victims.loss_s, ages)
        memory = self.settings.machine_memory
        self.fleet = Fleet(machines, self.hosts.cores, np.inf if memory is None else memory, self.mapping.stable)
        self.fleet.paces = self.paces if (self.paces != 1.0).any() else None
        self.fleet.foresight = Foresight(forecast)
        if type(self.selection) is not First:
            self.fleet.selection = self.selection
            self.hosts.describe(self.fleet, self.platform)
        self.flow = JobFlow(
            self.lifecycle,
            self.lengths,
            self.victims,
            self.hosts,
            self.fleet,
            self.mapping,
            self.preemptions,
            self.assumptions,
            self.run_times,
            self.capacity if self.loses_work else None,
        )
        self.flow.most = self.most_machines()

    def arrived(self, job: BatsimJob) -> None:
        """Let a job wait, unless it can never run."""
        self.flow.arrive(self.flow.read(job))

    def onJobCompletion(self, job: BatsimJob) -> None:
        """End a run: the job is done, goes on elsewhere, or waits again."""
        self.flow.ended(job, self.stopped)

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that there may be room."""
        super().onHostsArrived(mask, pstate)
        self.flow.freed = True

    def onNoMoreJobsInWorkloads(self) -> None:
        """Note that no job comes any more, so that unknown jobs that others wait for never come."""
        super().onNoMoreJobsInWorkloads()
        unknown, ready = self.flow.dependencies.no_more()
        if unknown:
            text = "%d jobs depend on jobs that are not in the workload, such as %s: taken for completed"
            self.logger.warning(text, len(unknown), unknown[0])
        for task in ready:
            self.flow.wait(task)

    # steps ------------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """See `CapacityScheduler`."""
        if self.lifecycle.pending and (self.mapping.migrates or self.flow.to_move):
            return  # what moves has left one place and not come to the other
        if self.flow.to_move:
            self._start_moved()
        alive = self.service_changed()
        while self.step_s <= now_s + LAG_S:
            alive = self.step()
            self.flow.most = self.most_machines()
        if alive is not None:
            self.change(alive, now_s)
        foresight = self.fleet.foresight
        if foresight.has_forecast and foresight.look(now_s, alive is not None, self.fleet.until_s):
            self.flow.freed = True

    def change(self, alive: int, now_s: float) -> None:
        """Apply a capacity of `alive` machines from now on."""
        fleet, mapping = self.fleet, self.mapping
        self.flow.freed = True
        if fleet.serving < alive:
            self.hosts.set_in_service(fleet, fleet.unserved(alive - fleet.serving), True)
        elif fleet.serving > alive:
            termination = self.termination
            for lowest in (mapping.stable, 0):
                if self.mapping.migrates or termination.idle_first:
                    self._leave(fleet.idle(True, lowest)[::-1][: fleet.serving - alive])
                if fleet.serving > alive:
                    if self.mapping.migrates:
                        self._migrate(fleet.serving - alive, now_s)
                    else:
                        self._terminate(termination, lowest, alive, now_s)
        mapping.follow(alive)
        most = self.flow.most
        if most < self._checked:
            # jobs that arrive are checked when they do
            self._checked = most
            unfit = [
                task
                for queue in mapping.queues
                for task in queue.drop(lambda task: not self.flow.can_ever_run(task, most))
            ]
            if self.preemptions is not None:
                for task in unfit:
                    self.preemptions.leave(task)
            held = [task for task in self.flow.dependencies.held() if not self.flow.can_ever_run(task, most)]
            self.flow.reject([*unfit, *held], ())

    def _terminate(self, termination: Termination, lowest: int, alive: int, now_s: float) -> None:
        """Let victims go until no more machines than `alive` are in service; their tasks are killed."""
        fleet = self.fleet
        if not termination.idle_first:
            order = termination.order(fleet.serving_from(lowest), fleet, now_s)[: fleet.serving - alive]
            for machine in order.tolist():
                self._kill_all(list(fleet.on(machine)), now_s)
            self._leave(order)
            return
        for machine in termination.order(fleet.busy(lowest), fleet, now_s).tolist():
            if fleet.serving <= alive:
                return
            victims = list(fleet.on(machine))
            if not victims:
                continue  # another one freed it before
            # whatever its tasks free may leave, the least safe first
            freed = np.unique(np.concatenate([task.places for task in victims]))[::-1]
            leaving = freed[(freed >= lowest) & fleet.in_service[freed]][: fleet.serving - alive]
            self._kill_all(victims, now_s)
            self._leave(leaving)

    def _kill_all(self, victims: list[Job], now_s: float) -> None:
        """Kill the tasks of a machine."""
        for task in victims:
            self.fleet.remove(task)
        self._decide(victims, _spans_of(victims, now_s))
        self.lifecycle.kill(victims)

    def _migrate(self, excess: int, now_s: float) -> None:
        """Let machines leave, and their jobs go elsewhere."""
        gone = leaving(self.fleet, excess)
        displaced = {task.number: task for machine in gone.tolist() for task in self.fleet.on(machine)}
        self._leave(gone)
        # before the moves: the same fall of the capacity may kill a task that it moved first
        spans = _spans_of(self.fleet.tasks.values(), now_s)
        moved, killed = move(self.fleet, displaced.values(), now_s, self.termination)
        for task in moved:
            task.moving = True
            self.flow.to_move.append(task)
            self.victims.moved(task.attempt, task.length_s, task.left_s, *spans[task.number])
        self._decide(killed, spans)
        self.lifecycle.kill(killed + moved)

    def _decide(self, tasks: list[Job], spans: dict[int, tuple[float, float]]) -> None:
        for task in tasks:
            if not task.dying:
                self.victims.killed(task.attempt, *spans[task.number])

    def _leave(self, machines: Places) -> None:
        if len(machines):
            self.hosts.set_in_service(self.fleet, machines, False)

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch machines, go on with moved jobs, and start the jobs that can start."""
        if self.lifecycle.pending:
            return
        now_s = self.bs.time()
        self.switch()
        if self.flow.to_move:
            self._start_moved()
        preemptions = self.preemptions
        if preemptions is not None:
            self._preempt(preemptions, now_s)
        if self.lifecycle.pending:
            return
        self.flow.fill(now_s)
        if preemptions is not None:
            preemptions.announce(self.fleet, self.mapping.ranges, now_s)
            for notice in preemptions.notices:
                self.lifecycle.wake_at(notice.due_s, now_s)

    def _preempt(self, preemptions: Preemptions, now_s: float) -> None:
        """Stop tasks so that others start, which have their machines from now on."""
        fleet, mapping = self.fleet, self.mapping
        for notice in preemptions.due(now_s + LAG_S):
            task, queue, where = notice.task, mapping.queues[notice.queue], mapping.ranges[notice.queue]
            victims = [(victim, victim.places) for victim in notice.running(fleet)]
            if not victims or not preemptions.waits(notice):
                continue
            for victim, _ in victims:
                fleet.remove(victim)
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is None:  # others have gone, or machines have
                for victim, its in victims:
                    fleet.add(victim, its, victim.start_s)
                continue
            queue.remove(task)
            preemptions.leave(task)
            task.start_s, task.moving = now_s, True
            fleet.add(task, places, now_s)
            self.flow.to_move.append(task)
            self.flow.freed = True
            stopped = [victim for victim, _ in victims]
            for victim in stopped:
                victim.preempted += 1
            self._decide(stopped, _spans_of(stopped, now_s))
            self.lifecycle.kill(stopped)

    def _start_moved(self) -> None:
        """Go on with moved jobs, as all that was killed for them has ended."""
        for task in self.flow.to_move:
            task.moving = False
            if self.fleet.stranded(task):
                self.fleet.remove(task)
                self.flow.wait(task)
                self.flow.freed = True
            else:
                self.flow.execute(task)
        self.flow.to_move.clear()

    # waiting and giving up --------------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        queued = [task for queue in self.mapping.queues for task in queue.drop(lambda task: True)]
        waiting = sorted([*queued, *self.flow.dependencies.leave()], key=lambda task: task.number)
        waiting += [task for task in self.flow.to_move if not task.dying]
        running = [task for task in self.fleet.tasks.values() if not task.dying and not task.moving]
        for task in self.flow.to_move:
            task.moving = False
        self.flow.to_move.clear()
        for task in waiting:
            del self.lifecycle.jobs[task.attempt.id]
            if len(task.places):
                self.fleet.remove(task)
        self.lifecycle.give_up(task.attempt for task in waiting)
        self.lifecycle.live -= len(waiting)
        for task in running:
            self.victims.stopped(task.attempt, self.bs.time() - task.start_s)
        self.lifecycle.kill(running)

    def unrunnable(self) -> tuple[list[BatsimJob], str]:
        """See `CapacityScheduler`."""
        if self.fleet.tasks or self.lifecycle.pending or self.flow.to_move:
            return [], ""
        if any(self.waiting()):
            if self.fleet.out_count and not self.transitions.pending:
                self._reject_stuck(self.bs.time())
            return [], ""
        cyclic = self.flow.dependencies.leave()
        for task in cyclic:
            del self.lifecycle.jobs[task.attempt.id]
        self.lifecycle.live -= len(cyclic)
        return [task.attempt for task in cyclic], "waiting for each other in a circle"

    def _reject_stuck(self, now_s: float) -> None:
        """Reject the jobs that do not fit on the machines in service, on which nothing runs, and start others."""
        fleet, mapping = self.fleet, self.mapping
        stuck: list[Job] = []
        for queue, where in zip(mapping.queues, mapping.ranges, strict=True):

            def unfit(task: Job, where: Range = where) -> bool:
                return fleet.place(task, now_s, where.low, where.high, where.upwards, blind=True) is None

            stuck += queue.drop(unfit)
        if self.preemptions is not None:
            for task in stuck:
                self.preemptions.leave(task)
        self.flow.reject(stuck, (), outage(self.transitions.out))
        self.flow.freed = True
        self.flow.fill(now_s)

    def waiting(self) -> Iterable[Job]:
        """See `CapacityScheduler`."""
        return (task for queue in self.mapping.queues for task in queue.tasks())

    def give_up(self, jobs: list[Job], why: str) -> None:
        """See `CapacityScheduler`."""
        numbers = {task.number for task in jobs}
        unfit = [task for queue in self.mapping.queues for task in queue.drop(lambda task: task.number in numbers)]
        if self.preemptions is not None:
            for task in unfit:
                self.preemptions.leave(task)
        self.flow.reject(unfit, (), why)
        self.flow.freed = True


def _spans_of(tasks: Iterable[Job], now_s: float) -> dict[int, tuple[float, float]]:
    """Return by task number how long its run has lasted at a time: at nominal speed, and on its hosts, s."""
    return {task.number: (task.ran_s(now_s), now_s - task.start_s) for task in tasks}


class VarcapOptions(VaryingOptions):
    """Options of the scheduler `varcap` (docs/explanation/varcap.md)."""

    mapping: PartChoice = Field("base", description="mapping of jobs to machines (section 7.2)")
    termination: PartChoice | None = Field(
        None,
        description="jobs to terminate: by default `random` without `idle_first` for base, `lww` for migration, "
        "else `order`",
    )
    order: PartChoice | None = Field(None, description="queue order of base, longshort and migration; default fcfs")
    backfilling: PartChoice | None = Field(
        None, description="rule for jobs behind one that does not fit; by default first-fit, for wfp easy"
    )
    node_selection: PartChoice = Field("first", description=NODES)
    nodes: Literal["shared", "dedicated"] = Field("shared", description="sharing of machines by jobs")
    victim: PartChoice = Field("resubmit", description=VICTIM)
    preemption: PartChoice | None = Field(
        None, description="rule for running jobs to stop so that a waiting one starts; by default none"
    )
    age_limit_s: float | None = Field(None, gt=0.0, description=AGE)
    knowledge: Knowledge | None = Field(
        None,
        description="knowledge of exact run times, or of `run_times` if set, in mapping and foresight; by default what "
        "the mapping needs, of the requests of jobs",
    )
    long_s: float = Field(LONG_S, ge=0.0, description="run time in s above which a job is long")
    longest_s: float = Field(86_400.0, gt=0.0, description="run time in s of a long job under knowledge of the class")
    foresight_h: float = Field(0.0, ge=0.0, le=8760.0, description="hours of capacity that are known in advance")
    foresight_bias: float = Field(0.0, ge=-1.0, le=10.0, description="relative bias of foresight")
    foresight_noise: float = Field(
        0.0, ge=0.0, le=10.0, description="noise of foresight an hour ahead, as a share of all machines"
    )
    foresight_false_alarms: float = Field(
        0.0, ge=0.0, le=1.0, description="chance that a change is forecast as the deepest fall"
    )
    foresight_missed: float = Field(0.0, ge=0.0, le=1.0, description="chance that a fall is forecast as no change")
    stable: int | None = Field(
        None, ge=0, le=10_000_000, description="machines of longshort's stable group; by default the least capacity"
    )
    low: float | None = Field(
        None, ge=0.0, description="least capacity for longshort and twomode, in machines; by default by `bounds`"
    )
    high: float | None = Field(None, ge=0.0, description="greatest capacity for twomode; by default by `bounds`")
    bounds: Literal["known", "values"] = Field(
        "known",
        description="range of the capacity: what its text states, as walk: does, else that of its values; or always "
        "that of its values",
    )
    seed: int = Field(0, ge=0, description="seed of the random termination and of errors of foresight")


class Varcap(VaryingScheduler[VarcapOptions]):
    """Jobs on machines whose number varies: termination, foresight, preparation (varcap dissertation)."""

    Options: ClassVar[type[VarcapOptions]] = VarcapOptions

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        # a wrong name is an error before anything runs
        settings = self.settings
        self._map: type[MappingPolicy] | partial[MappingPolicy] = named("mapping", settings.mapping)
        self._mapping: type[MappingPolicy] = getattr(self._map, "func", self._map)
        self._order: Order = make("order", settings.order or "fcfs")
        usual = "easy" if isinstance(self._order, Wfp) else "first-fit"
        self._rule = rule_of(settings.backfilling or usual)
        self._termination: Termination = make("termination", settings.termination or self._mapping.usual_termination)
        self._preemption = None if settings.preemption is None else make("preemption", settings.preemption)
        self.selection = make("node_selection", settings.node_selection)
        self.victim = make("victim", settings.victim)

    def make_parts(self, machines: int) -> Parts:
        """Return the parts that the options choose."""
        settings = self.settings
        self._check()
        self._termination.begin(np.random.default_rng(settings.seed), settings.foresight_h > 0.0)
        forecast = None
        if settings.foresight_h > 0.0:
            names = ("bias", "noise", "false_alarms", "missed")
            errors = {name: getattr(settings, f"foresight_{name}") for name in names}
            horizon_s = settings.foresight_h * HOUR_S
            forecast = CapacityForecast(self.capacity, machines, horizon_s, **errors, seed=settings.seed)
        mapping = self._map(MappingSite(machines, self._queue, self._bounds(), settings))
        return mapping, self._termination, forecast, self._preemption

    def _bounds(self) -> tuple[float, float]:
        """Return the least and the greatest capacity, in machines: of options, of its text, else of its values."""
        settings, capacity = self.settings, self.capacity
        by_text = settings.bounds == "known"
        least, most = capacity.known_range if by_text else (capacity.least(), capacity.most())
        if by_text and capacity.bounds is None and least < most and self._mapping.needs_range(settings):
            text = "%s states no range: %s takes that of its values for known, %g to %g machines (options low, high)"
            remark(self.logger, text, capacity.source, self._mapping.name, least, most)
        return (least if settings.low is None else settings.low, most if settings.high is None else settings.high)

    def _check(self) -> None:
        """Check options that contradict each other. Raises InputError."""
        settings, mapping = self.settings, self._mapping
        if settings.low is not None and settings.high is not None and not settings.low <= settings.high:
            problem = f"must be <= 'high' ({settings.high:g}), got {settings.low:g}"
            raise InputError("option 'low'", problem, "exchange them")
        if self.knowledge == "class" and not settings.longest_s >= settings.long_s:
            problem = f"must be >= 'long_s' ({settings.long_s:g}), got {settings.longest_s:g}"
            raise InputError("option 'longest_s'", problem, "a long job is not shorter than a short one")
        if self._preemption is not None and (mapping.migrates or isinstance(self.victim, Lose)):
            problem = "jobs that are stopped for others wait to go on, but are lost or move"
            raise InputError("option 'preemption'", problem, "choose another victim rule, or another mapping")
        if self.knowledge not in mapping.knows:
            raise _clash("knowledge", self.knowledge, f"{mapping.name} must know more of run times")
        if not mapping.in_order:
            if settings.order is not None:
                raise _clash("order", settings.order, f"{mapping.name} has an order of its own")
            if settings.age_limit_s is not None:
                raise _clash("age_limit_s", settings.age_limit_s, f"{mapping.name} has an order of its own")
            if settings.backfilling is not None and self._rule != "pass":
                raise _clash("backfilling", settings.backfilling, f"{mapping.name} has an order of its own")

    def _queue(self) -> WaitingQueue:
        age_limit_s = self.settings.age_limit_s
        if isinstance(self._order, FirstCome) and self._rule == "pass" and age_limit_s is None:
            return BucketQueue()
        return SortedQueue(self._order, self._rule, age_limit_s)

    @property
    def knowledge(self) -> Knowledge:
        """Knowledge of run times."""
        return self.settings.knowledge or self._mapping.knows[0]

    @property
    def assumptions(self) -> Assumptions:
        """See `VaryingScheduler`; classes go by exact run times if the option `knowledge` says so."""
        settings = self.settings
        exactly = settings.knowledge is not None and self.run_times is None
        dedicated = settings.nodes == "dedicated"
        return Assumptions(self.knowledge, settings.long_s, settings.longest_s, exactly, dedicated)


def _clash(name: str, value: object, why: str) -> InputError:
    return InputError(f"option {name!r}", f'"{value}" does not go with the mapping: {why}', "leave it out")
