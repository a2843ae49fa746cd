"""Checkpoint planning a second time, from docs/explanation/checkpoint.md alone: every plan, in exact numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, PeriodPlan

Works = tuple[Fraction, ...]
"""W of each job."""


def choices(job: PeriodJob, end: Fraction, period: Fraction) -> Iterator[tuple[bool, bool, Fraction]]:
    """What may become of a job: if it holds its processors in [0, D[, if it does in [D, T], and its W."""
    checkpoint, recovery = Fraction(job.checkpoint_s), Fraction(job.recovery_s)
    # what it has to recover if it works from the beginning on
    rest = recovery if job.state == "stopped" else Fraction(job.recovering_s)
    if job.state == "running":
        yield True, True, period
        if end >= checkpoint:
            yield True, False, end - checkpoint
        return
    yield False, False, Fraction(0)
    for first, work in ((False, period - end - recovery), (True, period - rest)):
        if work > 0:
            yield first, True, work


def rule_dates(instance: Instance) -> set[Fraction]:
    """The paper's D: 0 and the checkpoint times."""
    return {Fraction(0)} | {Fraction(job.checkpoint_s) for job in instance.jobs if job.state == "running"}


def all_dates(instance: Instance, a_second: int) -> set[Fraction]:
    """Every D on a grid of so many steps a second."""
    return {Fraction(step, a_second) for step in range(int(instance.period_s * a_second) + 1)}


def total(instance: Instance, works: Works) -> Fraction:
    return sum((job.processors * work for job, work in zip(instance.jobs, works, strict=True)), Fraction(0))


def brute(instance: Instance, must: Collection[int] = (), times: Set[Fraction] | None = None) -> Fraction | None:
    """The most useful work in processor s of every plan in which the jobs `must` work; None if there is none.

    D is one of `times`, by default of `rule_dates`. All work must be in binary fractions.
    """
    period, jobs, there = Fraction(instance.period_s), instance.jobs, instance.processors
    totals = [-math.inf]
    for end in sorted(end for end in times or rule_dates(instance) if end <= period):
        options = [
            [
                (in_first * job.processors, in_second * job.processors, float(job.processors * work))
                for in_first, in_second, work in choices(job, end, period)
                if work > 0 or i not in must
            ]
            for i, job in enumerate(jobs)
        ]

        def together(i: int, first: int, second: int, works: float, options=options, end=end) -> None:
            if second > there or (first > there and end > 0):
                return
            if i == len(jobs):
                totals.append(works)
                return
            for in_first, in_second, work in options[i]:
                together(i + 1, first + in_first, second + in_second, works + work)

        together(0, 0, 0, 0.0)
    return Fraction(max(totals)) if max(totals) >= 0 else None


def largest_subset(processors: int, widths: Sequence[int]) -> int:
    sums = (sum(some) for count in range(len(widths) + 1) for some in combinations(widths, count))
    return max(total for total in sums if total <= processors)


def worked(plan: PeriodPlan) -> Works:
    """W of every job by the phases of a plan, which are looked at one by one; AssertionError if they cannot be."""
    instance = plan.instance
    times = sorted({time for act in plan.acts for phase in act.phases for time in (phase.begin_s, phase.end_s)})
    for begin, end in pairwise(times):
        held = sum(
            act.job.processors
            for act in plan.acts
            if any(phase.begin_s <= begin and end <= phase.end_s for phase in act.phases)
        )
        assert held <= instance.processors, f"{held} processors are held from {begin} to {end}"
    assert tuple(act.job for act in plan.acts) == instance.jobs
    return tuple(_worked(act.job, act.phases, Fraction(instance.period_s)) for act in plan.acts)


def _worked(job: PeriodJob, phases, period: Fraction) -> Fraction:
    """W of a job: it is followed through its phases."""
    checkpoint, recovery = Fraction(job.checkpoint_s), Fraction(job.recovery_s)
    at, work = Fraction(0), Fraction(0)
    recovering = Fraction(job.recovering_s)
    in_memory, unsaved = job.state != "stopped" and not recovering, job.state == "running"
    for phase in phases:
        begin, end = Fraction(phase.begin_s), Fraction(phase.end_s)
        assert at <= begin < end <= period, f"job {job.id}: {phase} is before {at} or outside the period"
        if begin > at:
            assert not unsaved or checkpoint == 0, f"job {job.id} stops at {at} and loses work"
            in_memory = unsaved = False
        if phase.kind == "recovery":
            assert not in_memory, f"job {job.id} recovers at {begin} though it is in memory"
            # at the beginning it may go on with a recovery, and the end may catch it in that
            rest = recovering if recovering and begin == 0 else recovery
            assert end - begin == rest or (rest == recovering and end == period < rest)
        elif phase.kind == "work":
            assert in_memory or recovery == 0, f"job {job.id} works at {begin} without a recovery"
            work += end - begin
            unsaved = True
        else:
            assert in_memory and end - begin == checkpoint
            unsaved = False
        in_memory, at = True, end
    assert not unsaved or at == period or checkpoint == 0, f"job {job.id} ends at {at} and loses work"
    return work


def alone(instance: Instance, i: int, past: Mapping[str, tuple[int, int]]) -> Fraction:
    """How long job i could have worked alone until the end of the period: where it fitted."""
    job = instance.jobs[i]
    before = Fraction(past.get(job.id, (0, 0))[1])
    return before + Fraction(instance.period_s) * (job.processors <= instance.processors)


def yields(instance: Instance, works: Works, past: Mapping[str, tuple[int, int]]) -> Works:
    """Progress of each job over its progress alone; `past` has both so far. 1 where alone there was none."""
    ratios = []
    for i, work in enumerate(works):
        there = alone(instance, i, past)
        ratios.append((past.get(instance.jobs[i].id, (0, 0))[0] + work) / there if there else Fraction(1))
    return tuple(ratios)


def fair(instance: Instance, past: Mapping[str, tuple[int, int]], target: Fraction) -> tuple[set[str], Fraction | None]:
    """The rule `fair`: the due jobs that must work, and the most useful work if they do.

    If they cannot all work, they are taken one by one where that can be.
    """
    jobs = instance.jobs
    idle = yields(instance, (Fraction(0),) * len(jobs), past)
    due = [i for i in range(len(jobs)) if idle[i] < target]
    taken: list[int] = []
    for i in sorted(due, key=lambda i: (idle[i], -alone(instance, i, past))):
        if sum(jobs[j].processors for j in [*taken, i]) <= instance.processors:
            taken.append(i)

    def work(must: Sequence[int]) -> Fraction | None:
        return brute(instance, must)

    must = taken
    if work(taken) is None:
        must = []
        for i in taken:
            must += [i] if work([*must, i]) is not None else []
    return {jobs[i].id for i in must}, work(must)


class Preparing:
    """Everything that may be checkpointed before a change, and what it is worth."""

    def __init__(self, running: Sequence[PeriodJob], others: Sequence[PeriodJob], period_s: float, before: int, k: int):
        self.running, self.others, self.period_s, self.before, self.k = running, others, period_s, before, k
        self.work = cache(self._work)

    def sets(self, cover: str) -> list[frozenset[str]]:
        """The sets that cover."""
        held = sum(job.processors for job in self.running)
        some = (them for count in range(len(self.running) + 1) for them in combinations(self.running, count))
        covering = []
        for them in some:
            saved = sum(job.processors for job in them)
            covered = saved >= min(self.k, held) if cover == "k" else held - saved <= max(self.before - self.k, 0)
            if covered:
                covering.append(frozenset(job.id for job in them))
        return covering

    def cost(self, ids: frozenset[str]) -> Fraction:
        return sum((job.processors * Fraction(job.checkpoint_s) for job in self.running if job.id in ids), Fraction(0))

    def possible(self, platform: int | None) -> list[int]:
        most = self.before + self.k if platform is None else min(self.before + self.k, platform)
        return [p for p in range(1, most + 1) if abs(p - self.before) <= self.k]

    def goodput(self, ids: frozenset[str], processors: int) -> Fraction:
        """G(P), charged with the checkpoints."""
        charged = self.work(ids, processors) - self.cost(ids)
        return charged / (processors * Fraction(self.period_s))

    def after(self, ids: frozenset[str]) -> list[PeriodJob]:
        """The jobs that run before the change, if these have been checkpointed."""
        return [replace(job, state="checkpointed" if job.id in ids else "running") for job in self.running]

    def _work(self, ids: frozenset[str], processors: int) -> Fraction:
        best = brute(Instance(self.period_s, processors, (*self.after(ids), *self.others)))
        assert best is not None
        return best
