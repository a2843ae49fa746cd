"""One period after another: plan, prepare the next change, carry every job over to the next period.

The rules: docs/explanation/checkpoint.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from batwatt.systems.checkpoint.fairness import NOTHING, Past, alone_in, fair
from batwatt.systems.checkpoint.instance import Assignment, Instance, JobPhase, PeriodJob, PeriodPlan, State
from batwatt.systems.checkpoint.period_plan import plan, subset_sum
from batwatt.systems.checkpoint.prepare import Cover, Objective, prepare

Method = Literal["dp", "subset-sum"]
METHODS: tuple[Method, ...] = get_args(Method)


def plan_by(
    method: Method,
    instance: Instance,
    past: Callable[[], Mapping[str, Past]],
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
class Period:
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
    periods: tuple[Period, ...]
    past: Mapping[str, Past]

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
        periods.append(Period(number * sequence.period_s, plan, prepared))
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
