"""Yields of jobs, and plans that look at them, so that no job starves.

The rules: docs/explanation/checkpoint.md; the conclusion of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from batwatt.systems.checkpoint.instance import Instance, PeriodJob, PeriodPlan
from batwatt.systems.checkpoint.period_plan import NoPeriodPlanError, plan


@dataclass(frozen=True, slots=True)
class Past:
    """Useful work of a job so far in s, and the time in s in which it could have worked alone."""

    work_s: float = 0.0
    alone_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.work_s < math.inf or not 0.0 <= self.alone_s < math.inf:
            raise ValueError(f"work_s and alone_s must be >= 0 s and finite, got {self.work_s!r} and {self.alone_s!r}")

    def then(self, work_s: float, alone_s: float) -> Past:
        """Return the past after `work_s` s more of work, and `alone_s` s more alone."""
        return Past(self.work_s + work_s, self.alone_s + alone_s)

    @property
    def job_yield(self) -> float:
        """Progress over progress alone; 1 if there was no time for any."""
        return self.work_s / self.alone_s if self.alone_s > 0.0 else 1.0


NOTHING = Past()


def fair(
    instance: Instance,
    past: Mapping[str, Past],
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


def due(instance: Instance, past: Mapping[str, Past], target: float) -> list[PeriodJob]:
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


def _after(job: PeriodJob, instance: Instance, past: Mapping[str, Past]) -> Past:
    """Return the past of a job at the end of a period in which it does not work."""
    return past.get(job.id, NOTHING).then(0.0, alone_in(job, instance))


def alone_in(job: PeriodJob, instance: Instance) -> float:
    """Return the s that a job would work alone in a period: all of it, if the job fits."""
    return instance.period_s if job.processors <= instance.processors else 0.0
