"""Plans of several periods by goodput and yields of jobs, and the checkpoints that prepare a change.

The rules: docs/explanation/checkpoint.md; the conclusion of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from batwatt.schedulers.checkpoint.period_plan import (
    Assignment,
    Instance,
    JobPhase,
    NoPeriodPlanError,
    PeriodJob,
    PeriodPlan,
    State,
    checkpoint_ends,
    plan,
    solve,
    subset_sum,
)


@dataclass(frozen=True, slots=True)
class WorkHistory:
    """Useful work of a job so far in s, and the time in s in which it could have worked alone."""

    work_s: float = 0.0
    alone_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.work_s < math.inf or not 0.0 <= self.alone_s < math.inf:
            raise ValueError(f"work_s and alone_s must be >= 0 s and finite, got {self.work_s!r} and {self.alone_s!r}")

    def then(self, work_s: float, alone_s: float) -> WorkHistory:
        """Return the past after `work_s` s more of work, and `alone_s` s more alone."""
        return WorkHistory(self.work_s + work_s, self.alone_s + alone_s)

    @property
    def job_yield(self) -> float:
        """Progress over progress alone; 1 if there was no time for any."""
        return self.work_s / self.alone_s if self.alone_s > 0.0 else 1.0


NOTHING = WorkHistory()


def fair(
    instance: Instance,
    past: Mapping[str, WorkHistory],
    target: float,
    *,
    skip_large: bool = False,
) -> PeriodPlan:
    """Return the plan with the most goodput in which as many due jobs work as can, those with the least yield first.

    A job is due if without work its yield would be under `target`, in [0, 1], at the end of the period.
    """
    if not 0.0 <= target <= 1.0:
        raise ValueError(f"the target of yields must be from 0 to 1, got {target!r}")
    names: list[str] = []
    free = instance.processors
    for job in due(instance, past, target):
        if job.processors <= free:
            names.append(job.id)
            free -= job.processors
    try:
        return plan(instance, must=frozenset(names), skip_large=skip_large)
    except NoPeriodPlanError:
        # the period is too short for a checkpoint or a recovery that this takes
        return _one_by_one(instance, names, skip_large)


def due(instance: Instance, past: Mapping[str, WorkHistory], target: float) -> list[PeriodJob]:
    """Return the due jobs, by ascending yield without work, then those that could have worked longest, in order."""
    after = {job.id: _after(job, instance, past) for job in instance.jobs}
    waiting = [job for job in instance.jobs if after[job.id].job_yield < target]
    return sorted(waiting, key=lambda job: (after[job.id].job_yield, -after[job.id].alone_s))


def _one_by_one(instance: Instance, wanted: Collection[str], skip_large: bool) -> PeriodPlan:
    best = plan(instance, skip_large=skip_large)
    must: set[str] = set()
    for name in wanted:
        try:
            best = plan(instance, must={*must, name}, skip_large=skip_large)
            must.add(name)
        except NoPeriodPlanError:
            continue
    return best


def _after(job: PeriodJob, instance: Instance, past: Mapping[str, WorkHistory]) -> WorkHistory:
    """Return the past of a job at the end of a period in which it does not work."""
    return past.get(job.id, NOTHING).then(0.0, alone_in(job, instance))


def alone_in(job: PeriodJob, instance: Instance) -> float:
    """Return the s that a job would work alone in a period: all of it, if the job fits."""
    return instance.period_s if job.processors <= instance.processors else 0.0


Method = Literal["dp", "subset-sum"]
METHODS: tuple[Method, ...] = get_args(Method)


def plan_by(
    method: Method,
    instance: Instance,
    past: Callable[[], Mapping[str, WorkHistory]],
    min_yield: float,
    *,
    skip_large: bool = False,
) -> PeriodPlan:
    """Return the plan of a period by a method, `fair` with a target of yields. Raises ValueError, NoPeriodPlanError."""
    if method == "subset-sum":
        return subset_sum(instance)
    if min_yield > 0.0:
        return fair(instance, past(), min_yield, skip_large=skip_large)
    return plan(instance, skip_large=skip_large)


def usual_objective(method: Method) -> Objective:
    """Return the default objective by which checkpoints before a change are chosen."""
    return "all" if method == "subset-sum" else "cheapest"


@dataclass(frozen=True)
class CapacitySequence:
    """Periods of `period_s` s with `capacities` processors, which change by up to `k`. Raises ValueError.

    `jobs` are as before the first period; the stopped ones among them whose ids are in `new` have never run, and need
    no recovery until they have. `platform`: the most processors that there can be (the most of the capacity sequence).
    """

    period_s: float
    capacities: tuple[int, ...]
    k: int
    jobs: tuple[PeriodJob, ...]
    platform: int | None = None
    new: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.capacities:
            raise ValueError("capacities: at least one period is needed")
        if not 0 <= self.k <= max(self.capacities):
            raise ValueError(f"k must be from 0 to {max(self.capacities)} processors, got {self.k!r}")
        for before, after in zip(self.capacities, self.capacities[1:], strict=False):
            if abs(after - before) > self.k:
                raise ValueError(f"capacities change by {abs(after - before)} ({before} to {after}), k is {self.k}")


@dataclass(frozen=True)
class PlannedPeriod:
    """A period of a sequence: its plan, with checkpoints at its end of the jobs `prepared` for the next change.

    `begin_s` counts from the beginning of the capacity sequence, times in the plan from the beginning of the period.
    """

    begin_s: float
    plan: PeriodPlan
    prepared: frozenset[str]


@dataclass(frozen=True)
class Followed:
    """A capacity sequence, period by period."""

    sequence: CapacitySequence
    periods: tuple[PlannedPeriod, ...]
    past: Mapping[str, WorkHistory]

    @cached_property
    def goodput(self) -> float:
        """Useful work over what all processors could have done in all periods."""
        most = math.fsum(period.plan.instance.most_processor_s for period in self.periods)
        return math.fsum(period.plan.work_processor_s for period in self.periods) / most

    @cached_property
    def yields(self) -> dict[str, float]:
        """The yield of each job."""
        return {job.id: self.past[job.id].job_yield for job in self.sequence.jobs}

    @property
    def min_yield(self) -> float:
        """The least yield; 1 without jobs."""
        return min(self.yields.values(), default=1.0)


def follow(
    sequence: CapacitySequence,
    *,
    method: Method = "dp",
    objective: Objective | None = None,
    min_yield: float = 0.0,
    cover: Cover = "k",
) -> Followed:
    """Plan the periods of a capacity sequence one after another, knowing of each change only that it is at most k.

    `objective` is how checkpoints before a change are chosen: by default the cheapest, for subset sum all. `min_yield`
    is the target of `fairness.fair` (of no meaning for subset sum). Raises ValueError, NoPeriodPlanError.
    """
    objective = objective or usual_objective(method)
    states: dict[str, State] = {job.id: job.state for job in sequence.jobs}
    ran = {job.id for job in sequence.jobs} - sequence.new
    past = {job.id: NOTHING for job in sequence.jobs}
    periods = []
    for number, processors in enumerate(sequence.capacities):
        jobs = tuple(
            replace(job, state=states[job.id], recovery_s=job.recovery_s if job.id in ran else 0.0)
            for job in sequence.jobs
        )
        instance = Instance(sequence.period_s, processors, jobs)
        plan = plan_by(method, instance, past.copy, min_yield)
        prepared = frozenset[str]()
        if number + 1 < len(sequence.capacities):
            plan, prepared = _prepared(sequence, plan, objective, cover)
        periods.append(PlannedPeriod(number * sequence.period_s, plan, prepared))
        for act in plan.acts:
            name = act.job.id
            if act.phases:
                ran.add(name)
            running = act.decision in ("run", "recover", "recover-later")
            states[name] = "checkpointed" if name in prepared else "running" if running else "stopped"
            past[name] = past[name].then(act.work_s, alone_in(act.job, instance))
    return Followed(sequence, tuple(periods), past)


def _prepared(
    sequence: CapacitySequence, plan: PeriodPlan, objective: Objective, cover: Cover
) -> tuple[PeriodPlan, frozenset[str]]:
    """Return the plan with checkpoints at the end of the period, and the ids of the jobs that take one."""
    instance = plan.instance
    running = [act for act in plan.acts if act.phases and act.phases[-1].end_s >= instance.period_s]
    able = [act.job for act in running if act.phases[-1].kind == "work" and act.work_s >= act.job.checkpoint_s]
    names = {act.job.id for act in running}
    others = [act.job for act in plan.acts if act.job.id not in names]
    held = sum(act.job.processors for act in running)
    able_names = {job.id for job in able}
    unable = held - sum(job.processors for job in able)
    if unable > max(instance.processors - sequence.k, 0):
        first = next(act.job for act in running if act.job.id not in able_names)
        problem = f"job {first.id} has no time for a checkpoint of {first.checkpoint_s:g} s before the next change"
        raise ValueError(f"{problem}: the period of {instance.period_s:g} s is too short")
    # what has run once must recover next time
    recovery_s = {job.id: job.recovery_s for job in sequence.jobs}
    prepared = prepare(
        [replace(job, recovery_s=recovery_s[job.id]) for job in able],
        others,
        sequence.period_s,
        instance.processors - unable,
        min(sequence.k, instance.processors - unable),
        objective=objective,
        platform=(sequence.platform or max(sequence.capacities)) - unable,
        cover=cover,
    )
    acts = tuple(_checkpointed(act, instance.period_s) if act.job.id in prepared.ids else act for act in plan.acts)
    return replace(plan, acts=acts), prepared.ids


def _checkpointed(act: Assignment, period_s: float) -> Assignment:
    """Return an assignment whose last stretch of work ends in a checkpoint."""
    *before, work = act.phases
    begin_s = period_s - act.job.checkpoint_s
    phases = [*before, JobPhase("work", work.begin_s, begin_s), JobPhase("checkpoint", begin_s, period_s)]
    stretches = tuple(phase for phase in phases if phase.end_s > phase.begin_s)
    return replace(act, work_s=begin_s - work.begin_s, phases=stretches)


Objective = Literal["cheapest", "worst", "expected", "all"]
Cover = Literal["k", "needed"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
COVERS: tuple[Cover, ...] = get_args(Cover)
MOST_TRIED = 12
"""Most candidates of which every set is tried."""


@dataclass(frozen=True)
class Prepared:
    """The jobs `ids` to be checkpointed, which costs `cost_processor_s`.

    `outcomes` are (P, G(P)), the charged goodput if P processors come, `value` the least or mean of G that was
    maximised; both are missing (empty, None) where nothing was. `exact`: no other set is better.
    """

    ids: frozenset[str]
    objective: Objective
    cost_processor_s: float
    exact: bool
    value: float | None = None
    outcomes: tuple[tuple[int, float], ...] = ()


def prepare(
    running: Sequence[PeriodJob],
    others: Sequence[PeriodJob],
    period_s: float,
    processors: int,
    k: int,
    *,
    objective: Objective = "cheapest",
    platform: int | None = None,
    cover: Cover = "k",
    most_tried: int = MOST_TRIED,
) -> Prepared:
    """Choose among the `running` jobs those to be checkpointed before up to `k` of `processors` go or come.

    `others` are stopped. The next period has `period_s` s and up to `platform` processors, and all numbers of them that
    are possible are equally likely. Of up to `most_tried` running jobs all sets are tried. For every checkpoint there
    is taken to be time before the change. Raises ValueError.
    """
    held = sum(job.processors for job in running)
    if not 0 <= k <= processors:
        raise ValueError(f"k must be from 0 to {processors} processors, got {k!r}")
    if held > processors:
        raise ValueError(f"jobs that run hold {held} of {processors} processors")
    # the processors that checkpoints must cover
    need = min(k, held) if cover == "k" else max(0, held - max(processors - k, 0))
    cheapest = cheapest_cover(running, need)
    most = processors + k if platform is None else min(processors + k, platform)
    outcomes = tuple(range(max(1, processors - k), most + 1))
    if objective in ("cheapest", "all") or not outcomes:
        selection = cheapest if objective == "cheapest" else frozenset(job.id for job in running)
        return Prepared(selection, objective, _cost(running, selection), exact=True)

    @cache
    def goodputs(ids: frozenset[str]) -> tuple[float, ...]:
        return tuple(_goodputs(running, others, period_s, outcomes, ids))

    def judge(ids: frozenset[str]) -> float:
        values = goodputs(ids)
        return min(values) if objective == "worst" else math.fsum(1.0 / len(values) * value for value in values)

    def covers(ids: frozenset[str]) -> bool:
        return sum(job.processors for job in running if job.id in ids) >= need

    names = [job.id for job in running]
    exact = len(names) <= most_tried
    if exact:
        # smaller sets first: of equal ones they stay
        sets = (frozenset(some) for count in range(len(names) + 1) for some in combinations(names, count))
        best = max((ids for ids in sets if covers(ids)), key=judge)
    else:
        best = max(
            _improved(cheapest, names, covers, judge), _improved(frozenset(names), names, covers, judge), key=judge
        )
    return Prepared(
        best, objective, _cost(running, best), exact, judge(best), tuple(zip(outcomes, goodputs(best), strict=True))
    )


def cheapest_cover(running: Sequence[PeriodJob], need: int) -> frozenset[str]:
    """Return the jobs with the least sum of p_i C_i, then of p_i, that cover `need` processors. O(J need), exact."""
    # cost[n], width[n]: of the best set that covers n; lexicographic
    cost, width = np.full(need + 1, math.inf), np.zeros(need + 1, dtype=np.int64)
    cost[0] = 0.0
    taken = np.zeros((len(running), need + 1), dtype=np.bool_)
    before = np.maximum(np.arange(need + 1)[None, :] - np.array([[job.processors] for job in running] or [[0]]), 0)
    for number, job in enumerate(running):
        with_cost = cost[before[number]] + job.processors * job.checkpoint_s
        with_width = width[before[number]] + job.processors
        better = (with_cost < cost) | ((with_cost == cost) & (with_width < width))
        better[0] = False
        taken[number] = better
        cost, width = np.where(better, with_cost, cost), np.where(better, with_width, width)
    members, left = set(), need
    for number in reversed(range(len(running))):
        if taken[number, left]:
            members.add(running[number].id)
            left = int(before[number, left])
    return frozenset(members)


def _goodputs(
    running: Sequence[PeriodJob],
    others: Sequence[PeriodJob],
    period_s: float,
    outcomes: tuple[int, ...],
    ids: frozenset[str],
) -> Iterator[float]:
    """Yield G(P) for each P of `outcomes` if the jobs `ids` have been checkpointed."""
    jobs = [replace(job, state="checkpointed" if job.id in ids else "running") for job in running]
    jobs += [replace(job, state="stopped") for job in others]
    instance = Instance(period_s, outcomes[-1], tuple(jobs))
    knapsacks = [solve(instance, end_s) for end_s in checkpoint_ends(instance)]
    cost = _cost(running, ids)
    for processors in outcomes:
        work = max(knapsack.best(processors, instance.held) for knapsack in knapsacks)
        yield (work - cost) / (processors * period_s)


def _improved(
    ids: frozenset[str],
    names: Sequence[str],
    covers: Callable[[frozenset[str]], bool],
    judge: Callable[[frozenset[str]], float],
) -> frozenset[str]:
    """Add, drop and exchange single jobs as long as it helps."""
    while True:
        inside, outside = [name for name in names if name in ids], [name for name in names if name not in ids]
        near = [ids ^ {name} for name in names]
        near += [ids ^ {one, other} for one in inside for other in outside]
        better = max((other for other in near if covers(other)), key=judge, default=ids)
        if not judge(better) > judge(ids):
            return ids
        ids = better


def _cost(running: Iterable[PeriodJob], ids: frozenset[str]) -> float:
    return math.fsum(job.processors * job.checkpoint_s for job in running if job.id in ids)
