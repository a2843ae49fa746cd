"""Choice of the jobs that are checkpointed before the number of processors changes.

The rules: docs/explanation/checkpoint.md; open in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from batwatt.systems.checkpoint.instance import Instance, PeriodJob
from batwatt.systems.checkpoint.period_plan import checkpoint_ends, solve

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
