"""Checkpoint planning (Cendrier, Benoit, Vivien), as a Batsim scheduler (docs/explanation/checkpoint.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice, pairwise
from typing import ClassVar

from pydantic import Field

from batwatt.errors import InputError
from batwatt.schedulers.checkpoint.knapsack import TooLargeError
from batwatt.schedulers.checkpoint.period_plan import (
    Decision,
    Instance,
    NoPeriodPlanError,
    PeriodJob,
    PeriodPlan,
    plan,
)
from batwatt.schedulers.checkpoint.segments import (
    CheckpointJob,
    Segments,
    in_order,
    period_job,
    waiting_job,
)
from batwatt.schedulers.checkpoint.sequence import (
    Cover,
    Method,
    Objective,
    Prepared,
    WorkHistory,
    plan_by,
    prepare,
    usual_objective,
)
from batwatt.scheduling.base import OptionValues
from batwatt.scheduling.capacity import CapacityScheduler, MachineOptions
from batwatt.scheduling.cluster import outage
from batwatt.scheduling.job import BatsimJob
from batwatt.units import LAG_S


class CheckpointOptions(MachineOptions):
    """Options of the scheduler `checkpoint` (docs/explanation/checkpoint.md)."""

    method: Method = Field("dp", description="planner of a period (section 2)")
    prepare: Objective | None = Field(
        None, description="jobs to checkpoint before a change: by default the cheapest, for subset-sum all"
    )
    cover: Cover = Field("k", description="processors to cover: k, or those that may be missing")
    k: int | None = Field(
        None, ge=0, le=100_000, description="most machines of one change of the capacity; by default the true number"
    )
    warning_s: float | None = Field(
        None,
        ge=0.0,
        description="time in s by which a change is announced in advance; by default the time of the checkpoints",
    )
    checkpoint_s: float = Field(60.0, ge=0.0, description="time in s of a checkpoint of jobs without one")
    recovery_s: float = Field(60.0, ge=0.0, description="time in s of a recovery of jobs without one")
    min_yield: float = Field(
        0.0, ge=0.0, le=1.0, description="yield under which a job is due, 0 for goodput alone (not with subset-sum)"
    )


FOREVER_S = 1e9
"""Length of a period without an end."""
MOST_TRIED = 8
"""Most running jobs of which all sets are tried before a change; it takes tenths of a second."""


class Checkpoint(CapacityScheduler[CheckpointOptions]):
    """Checkpoints jobs before the number of machines changes, and plans the period after it."""

    Options: ClassVar[type[CheckpointOptions]] = CheckpointOptions
    plans_lengths: ClassVar[bool] = True
    knows_lengths: ClassVar[bool] = True

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        self.alive = 0
        """Number of machines that may be used."""
        self._announced = False
        self._counted_s = 0.0
        again = () if self.capacity.loop is None else (self.capacity.values[self.capacity.loop],)
        largest = max((int(abs(b - a)) for a, b in pairwise((*self.capacity.values, *again))), default=0)
        self.most_change = largest if self.settings.k is None else self.settings.k
        """k: the most machines by which the capacity may change at once, as far as is known."""
        self._starts: list[CheckpointJob] = []
        """Jobs to come to machines as soon as these are free, in this order."""
        self._later: list[CheckpointJob] = []
        """Jobs to come to machines from `_later_s` on."""
        self._later_s = 0.0

    def plan(self, instance: Instance, past: Callable[[], Mapping[str, WorkHistory]]) -> PeriodPlan:
        """Return the plan of a period by the chosen method; `past` gives the past of its jobs."""
        try:
            return plan_by(self.settings.method, instance, past, self.settings.min_yield, skip_large=True)
        except NoPeriodPlanError:
            # checkpoints that take longer than the period: running jobs go on
            return plan(instance, skip_large=True)

    def prepare(
        self, running: list[PeriodJob], others: Callable[[], list[PeriodJob]], period_s: float, processors: int
    ) -> Prepared:
        """Choose the running jobs to checkpoint before a change; `others` gives those that wait.

        The next period has `period_s` s.
        """
        settings = self.settings
        objective = settings.prepare or usual_objective(settings.method)
        looks_ahead = objective in ("worst", "expected")
        inputs = running, others() if looks_ahead else (), period_s, processors, min(self.most_change, processors)
        # what cannot be saved is in the way of more, too
        platform = len(self.fleet) - max(0, self.alive - processors)
        try:
            return prepare(*inputs, objective=objective, platform=platform, cover=settings.cover, most_tried=MOST_TRIED)
        except TooLargeError:
            return prepare(*inputs, objective="cheapest", cover=settings.cover)

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Set up the machines, and check options that go with others, or with them. Raises InputError."""
        super().onSimulationBegins()
        settings = self.settings
        usual_s = settings.checkpoint_s, settings.recovery_s
        self.segments = Segments(self.lifecycle, self.lengths, self.hosts, usual_s)
        self.fleet = self.segments.fleet
        self.fleet.paces = self.paces if (self.paces != 1.0).any() else None
        if settings.k is not None and settings.k > len(self.fleet):
            problem = f"must be from 0 to {len(self.fleet)}, all machines, got {settings.k}"
            raise InputError("option 'k'", problem, "leave it out: then it is the largest change of the capacity")
        if settings.min_yield > 0.0 and settings.method == "subset-sum":
            raise InputError("option 'min_yield'", "is for the method dp", "leave one of the two out")

    def arrived(self, job: BatsimJob) -> None:
        """Let a job wait, unless it can never run."""
        self.segments.arrived(job, self.most_machines())

    def onJobCompletion(self, job: BatsimJob) -> None:
        """End a segment."""
        self.segments.ended(job, self.stopped)

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that there may be room."""
        super().onHostsArrived(mask, pstate)
        self.segments.room = True

    # times ------------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """See `CapacityScheduler`."""
        step_s = self.step_s
        if self._warned_s() <= now_s + LAG_S:
            self._announce(step_s, now_s)
        self._begin_checkpoints(now_s)
        if now_s >= step_s - LAG_S and not self.lifecycle.pending and not self._nearly_saved(now_s):
            alive = self.step()
            while self.step_s <= now_s + LAG_S:
                alive = self.step()
            self._change(alive, now_s)
            self._begin_checkpoints(now_s)
        elif not self.lifecycle.pending and (left := self.service_changed()) is not None:
            self._change(left, now_s)
            self._begin_checkpoints(now_s)

    def _warned_s(self) -> float:
        """Return the time in s to announce a change: as early as the option says, or as the longest checkpoint takes.

        Infinite if that is over, or none comes.
        """
        step_s = self.step_s
        if self._announced or not self.stepped or step_s == math.inf:
            return math.inf
        longest_s = max((task.state.checkpoint_s for task in self.fleet.tasks.values()), default=0.0)
        return step_s - (longest_s if self.settings.warning_s is None else self.settings.warning_s)

    def _wake(self, time_s: float, now_s: float) -> None:
        # what is nearer is done now: Batsim's clock may be ahead of what it reports
        if not self.finished():
            self.lifecycle.wake_at(time_s, now_s + LAG_S)

    def _nearly_saved(self, now_s: float) -> bool:
        """Return whether a checkpoint is to end just now, as those before a change do."""
        saving = (task for task in self._running() if task.state.phase == "checkpoint")
        return any(task.start_s + task.state.checkpoint_s <= now_s + LAG_S for task in saving)

    def _begin_checkpoints(self, now_s: float) -> None:
        for task in self._running():
            state = task.state
            if state.checkpoint_at_s is None or state.checkpoint_at_s > now_s + LAG_S or state.phase == "recovery":
                continue
            state.checkpoint_at_s = None
            # what ends within the lag of times needs none
            if state.phase == "work" and task.rest_s(now_s) > LAG_S:
                self.segments.kill(task, "checkpoint" if state.checkpoint_s > 0.0 else "leave")

    def _running(self) -> list[CheckpointJob]:
        """Return the jobs on machines in service that are not being killed, in the order of submission."""
        stranded = self.fleet.stranded
        return in_order(task for task in self.fleet.tasks.values() if not (task.dying or stranded(task)))

    # before a change --------------------------------------------------------------------------------------------

    def _announce(self, step_s: float, now_s: float) -> None:
        """Announce a change at `step_s`: choose the jobs to checkpoint before it."""
        self._announced = True
        jobs: list[PeriodJob] = []
        able: dict[str, CheckpointJob] = {}
        leaving: list[CheckpointJob] = []
        unable = 0
        for task in in_order((*self._running(), *self._starts, *self._later)):
            if task.state.leaves:
                leaving.append(task)
                continue
            if task.state.phase == "work" and task.rest_s(now_s) <= step_s - now_s:
                continue  # gone by then
            works_s = self._works_s(task, max(now_s, self._later_s) if task in self._later else now_s)
            if works_s >= step_s:
                jobs.append(period_job(task, "running", checkpoint_s=0.0))  # it loses nothing if it stops
            elif step_s - task.state.checkpoint_s < works_s - LAG_S:
                unable += task.width
            else:
                able[task.name] = task
                jobs.append(period_job(task, "running"))

        def others() -> list[PeriodJob]:
            waiting = self._plannable(len(self.fleet), self._idle)
            return [waiting_job(task) for task in in_order((*waiting, *leaving))]

        period_s = self._length_s(self.capacity.next_change(step_s), step_s)
        # jobs that go on where hosts went out of service may hold more machines than are alive
        processors = max(self.alive - unable, sum(job.processors for job in jobs))
        for name in self.prepare(jobs, others, period_s, processors).ids & able.keys():
            task = able[name]
            if task.state.checkpoint_s > 0.0:
                task.state.checkpoint_at_s = step_s - task.state.checkpoint_s
                self._wake(task.state.checkpoint_at_s, now_s)

    # a change ---------------------------------------------------------------------------------------------------

    def _change(self, alive: int, now_s: float) -> None:
        """Apply a capacity of `alive` machines from now on."""
        if self.settings.min_yield > 0.0:
            for task in (*self.fleet.tasks.values(), *self.segments.waiting.values()):
                task.state.alone_s = self._alone_s(task, now_s)
        self._counted_s = now_s
        self._announced, self.segments.room = False, True
        self.alive = alive
        for task in (*self._starts, *self._later):
            task.state.checkpoint_at_s = None
        self._starts.clear()
        self._later.clear()
        most = self.most_machines()
        if any(width > most for width, _, _ in self.segments.kinds):
            for task in [task for task in self.segments.waiting.values() if task.width > most]:
                self.segments.refuse(task)
        # a checkpoint that is longer than the period was goes on
        free = alive - sum(task.width for task in self._running() if task.state.phase == "checkpoint")
        if self.fleet.out_count:
            # what goes on there in part holds machines in service, too
            stranded = (task.places for task in self.fleet.tasks.values() if self.fleet.stranded(task))
            free -= sum(int(self.fleet.in_service[places].sum()) for places in stranded)
        self._drop_unsaved(free, now_s)
        here = [task for task in self._running() if task.state.phase != "checkpoint"]
        here += self._plannable(free)
        tasks = {task.name: task for task in in_order(here)}
        jobs = [self._before(task, now_s) for task in tasks.values()]
        decisions: dict[str, Decision] = {job.id: "stop" for job in jobs}
        if free > 0 and jobs:
            instance = Instance(self._length_s(self.step_s, now_s), free, tuple(jobs))
            period_plan = self.plan(instance, lambda: self._past(tasks.values(), now_s))
            decisions = {act.job.id: act.decision for act in period_plan.acts}
            self._later_s = now_s + period_plan.checkpoints_end_s
        for name, decision in decisions.items():
            self._obey(tasks[name], decision, now_s)

    def _drop_unsaved(self, free: int, now_s: float) -> None:
        """Kill jobs that are not saved until the others fit; those that lose least go first."""
        unsaved = [task for task in self._running() if task.state.phase == "work" and task.state.checkpoint_s > 0.0]
        held = sum(task.width for task in unsaved)

        def loss(task: CheckpointJob) -> tuple[float, int]:
            return task.width * (task.state.rerun_s - task.left_s + task.ran_s(now_s)), task.number

        for task in sorted(unsaved, key=loss):
            if held <= free:
                return
            held -= task.width
            self.segments.kill(task, "lose")

    def _before(self, task: CheckpointJob, now_s: float) -> PeriodJob:
        if task.state.phase == "waiting":
            return waiting_job(task)
        if task.state.phase == "work" and task.state.checkpoint_s > 0.0:
            return period_job(task, "running")
        rest_s = max(0.0, task.start_s + task.state.recovery_s - now_s) if task.state.phase == "recovery" else 0.0
        return period_job(task, "checkpointed", recovering_s=rest_s)

    def _obey(self, task: CheckpointJob, decision: Decision, now_s: float) -> None:
        if decision == "run":
            if task.state.phase == "paused":
                self.segments.work(task)
        elif decision in ("stop", "recover-later"):
            if task.state.phase == "paused":
                self.segments.leave(task)
            elif task.state.phase != "waiting":
                self.segments.kill(task, "leave")
        elif decision == "checkpoint":
            task.state.leaves = True
            task.state.checkpoint_at_s = self._later_s - task.state.checkpoint_s
            self._wake(task.state.checkpoint_at_s, now_s)
        if decision == "recover":
            self._starts.append(task)
        elif decision == "recover-later":
            self._later.append(task)

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch machines, start the jobs that are to start, and use free machines."""
        if self.lifecycle.pending:
            return
        now_s = self.bs.time()
        self._follow_alive()
        self.switch()
        if self._later:
            self._wake(self._later_s, now_s)
            if now_s >= self._later_s - LAG_S and not any(task.state.leaves for task in self._running()):
                self._starts += self._later
                self._later.clear()
        # one that was to be stopped for another may have ended before
        self._starts = [task for task in self._starts if task.state.phase == "waiting" and not self._start(task)]
        if self.segments.room:
            self.segments.room = False
            self._fill(now_s)
        # for what has just been started, too
        if self._warned_s() <= now_s + LAG_S:
            self._announce(self.step_s, now_s)
            self._begin_checkpoints(now_s)
        else:
            self._wake(self._warned_s(), now_s)

    def _follow_alive(self) -> None:
        """Let machines without a job leave the service, or take some into it."""
        fleet = self.fleet
        if fleet.serving > self.alive:
            self.hosts.set_in_service(fleet, fleet.idle(True)[::-1][: fleet.serving - self.alive], False)
        elif fleet.serving < self.alive:
            self.hosts.set_in_service(fleet, fleet.idle(False)[: self.alive - fleet.serving], True)

    def _start(self, task: CheckpointJob) -> bool:
        places = self.fleet.place(task, self.bs.time(), 0, len(self.fleet), True, blind=True)
        if places is None:
            return False
        self.segments.begin(task, places)
        return True

    def _fill(self, now_s: float) -> None:
        """Give machines that are free in the middle of a period to jobs that wait.

        Jobs that cannot be saved before the next change must fit into the machines left after the deepest fall.
        """
        at_risk = sum(task.width for task in self._running() if self._at_risk(task, now_s))
        safe = max(0, self.alive - self.most_change) - at_risk
        if self.step_s == math.inf:
            safe = self.alive
        for hurried in (False, True):
            free = self._free()
            room = min(free, safe) if hurried else free
            if room > 0:
                self._begin(self._plannable(room, partial(self._idle_tasks, hurried, now_s)), room, now_s)
        if self.step_s < math.inf and self._free() > 0:
            self._recover_on(now_s)

    def _idle_tasks(self, hurried: bool, now_s: float, alike: list[CheckpointJob]) -> Iterator[CheckpointJob]:
        """Return the jobs of a kind that are not to come to machines soon: those at risk, or the others."""
        if not self._cannot_save(alike[0], now_s):
            return self._idle([] if hurried else alike)
        return (task for task in self._idle(alike) if self._at_risk(task, now_s) == hurried)

    def _idle(self, alike: list[CheckpointJob]) -> Iterator[CheckpointJob]:
        """Return the jobs of a kind that are not to come to machines soon."""
        taken = {task.number for task in (*self._starts, *self._later)}
        return (task for task in alike if task.number not in taken)

    def _plannable(
        self,
        room: int,
        of: Callable[[list[CheckpointJob]], Iterator[CheckpointJob]] = iter,
    ) -> list[CheckpointJob]:
        """Return the waiting jobs that a plan on `room` machines can use, in order; `of` gives the choice of a kind.

        Of a kind these are no more than have room side by side; a plan for yields may need each.
        """
        kinds = ((width, of(alike)) for (width, _, _), alike in self.segments.kinds.items() if width <= room)
        all_of = self.settings.min_yield > 0.0
        return in_order(task for width, tasks in kinds for task in islice(tasks, None if all_of else room // width))

    def _recover_on(self, now_s: float) -> None:
        """Let jobs recover on free machines though they will not have ended that at the next change."""

        def late(alike: list[CheckpointJob]) -> Iterator[CheckpointJob]:
            return self._idle(alike if self._works_s(alike[0], now_s) >= self.step_s else [])

        for task in self._plannable(self._free(), late):
            if task.width <= self._free():
                self._start(task)

    def _begin(self, waiting: list[CheckpointJob], room: int, now_s: float) -> None:
        """Let some jobs begin on `room` machines, as is best until the next change."""
        if not waiting:
            return
        jobs = tuple(waiting_job(task) for task in waiting)
        instance = Instance(self._length_s(self.step_s, now_s), room, jobs)
        period_plan = self.plan(instance, lambda: self._past(waiting, now_s))
        for task, act in zip(waiting, period_plan.acts, strict=True):
            if act.decision == "recover":
                self._start(task)

    def _free(self) -> int:
        """Return the number of machines that are free and not planned for."""
        free = self.fleet.free_machines(0, len(self.fleet)) - sum(task.width for task in self._starts)
        if self._later:
            leaving = sum(task.width for task in self._running() if task.state.leaves)
            free += min(0, leaving - sum(task.width for task in self._later))
        return free

    def _at_risk(self, task: CheckpointJob, now_s: float) -> bool:
        """Return whether the next change would find a job, that runs or begins now, with work that is not saved."""
        if task.state.leaves or task.state.checkpoint_at_s is not None or task.state.phase == "checkpoint":
            return False
        return self._cannot_save(task, now_s) and task.rest_s(now_s) > self.step_s - self._works_s(task, now_s)

    def _cannot_save(self, task: CheckpointJob, now_s: float) -> bool:
        """Return whether a job works before the next change and is not saved by then; alike for jobs of a kind."""
        works_s = self._works_s(task, now_s)
        if not works_s < self.step_s < math.inf:
            return False
        return self._announced or task.state.checkpoint_s > self.step_s - works_s - LAG_S

    def _works_s(self, task: CheckpointJob, now_s: float) -> float:
        """Return the time in s from which a job works that does, recovers, or begins now."""
        if task.state.phase == "recovery":
            return task.start_s + task.state.recovery_s
        return now_s + (task.state.recovery_s if task.state.phase == "waiting" and task.state.begun else 0.0)

    # facts ------------------------------------------------------------------------------------------------------

    def _length_s(self, step_s: float, now_s: float) -> float:
        """Return the s to a step; one that is due waits for the ends of kills."""
        if step_s < math.inf:
            return max(step_s - now_s, LAG_S)
        until_s = self.settings.until_s
        return FOREVER_S if until_s is None or until_s <= now_s else until_s - now_s

    def _alone_s(self, task: CheckpointJob, now_s: float) -> float:
        """Return the s that a job could have worked alone since its submission: where it fitted."""
        since_s = max(self._counted_s, task.submit_s)
        return task.state.alone_s + (max(now_s - since_s, 0.0) if task.width <= self.alive else 0.0)

    def _past(self, tasks: Iterable[CheckpointJob], now_s: float) -> dict[str, WorkHistory]:
        return {task.name: WorkHistory(max(task.done_s(now_s), 0.0), self._alone_s(task, now_s)) for task in tasks}

    # giving up --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        self.lifecycle.give_up(self.segments.leave_waiting())
        for task in in_order(task for task in self.fleet.tasks.values() if not task.dying):
            if task.state.phase == "paused":
                self.segments.end(task)
            else:
                self.segments.kill(task, "lose")

    def waiting(self) -> Iterable[CheckpointJob]:
        """See `CapacityScheduler`."""
        return self.segments.waiting.values()

    def give_up(self, jobs: list[CheckpointJob], why: str) -> None:
        """See `CapacityScheduler`."""
        numbers = {task.number for task in jobs}
        self._starts = [task for task in self._starts if task.number not in numbers]
        self._later = [task for task in self._later if task.number not in numbers]
        for task in jobs:
            self.segments.refuse(task, why)
        self.segments.room = True

    def unrunnable(self) -> tuple[list[BatsimJob], str]:
        """See `CapacityScheduler`."""
        fleet = self.fleet
        active = fleet.tasks or self.lifecycle.pending or self._starts or self._later
        if active or (fleet.in_service & ~fleet.ready).any():
            return [], ""
        why = outage(self.transitions.out) if fleet.out_count else "no machine is alive any more"
        return self.segments.leave_waiting(), why
