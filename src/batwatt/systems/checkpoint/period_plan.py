"""Plans of a period: the dynamic programme of the checkpoint paper, and its subset sum.

The rules: docs/explanation/checkpoint.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batwatt.systems.checkpoint.instance import (
    Decision,
    Instance,
    PeriodJob,
    PeriodPlan,
    State,
    acts_of,
    work_of,
)
from batwatt.systems.checkpoint.knapsack import BOTH, NONE, SECOND, Table, fill

MOST_BYTES = 3 * 2**29
"""Room for the tables and choices of a plan."""
AT_ONCE_BYTES = 2**28
"""Choices of all jobs are kept where they take no more."""
MOST_STEPS = 2e12
"""The most cells that are worked out for one plan: some ten minutes."""
_LITTLE = 1e-12
_IN_MEMORY_FIRST = 2**20

_ONE_PHASE: dict[State, dict[int, Decision]] = {
    "checkpointed": {NONE: "stop", SECOND: "run"},
    "running": {NONE: "checkpoint", SECOND: "run"},
    "stopped": {NONE: "wait", SECOND: "recover"},
}
"""Decisions by choice of the knapsack if nothing is checkpointed, or in no time: there is only the second phase."""
_TWO_PHASES: dict[State, dict[int, Decision]] = {
    "checkpointed": {NONE: "stop", BOTH: "run", SECOND: "recover-later"},
    "running": {NONE: "checkpoint", SECOND: "run"},
    "stopped": {NONE: "wait", BOTH: "recover", SECOND: "recover-later"},
}
_COARSER = "let processors have a common divisor (nodes instead of cores)"
_MUST_BE_WORTH_IT = ("recover", "recover-later")


class NoPeriodPlanError(ValueError):
    """No plan lets every required job work, or ends all checkpoints within the period."""


class TooLargeError(ValueError):
    """A table would take more memory than there is room for, or all of them too much time."""


@dataclass(frozen=True)
class Knapsack:
    """The knapsack of one time D at which checkpoints end; its solution is `table`.

    `jobs` are those that are looked at, in the order in which they are; `unit` processors count as one. `table[a, b]`
    is the useful work in processor s when a units are free for others than running jobs in [0, D[, and b units are
    there in [D, T].
    """

    end_s: float
    jobs: tuple[PeriodJob, ...]
    unit: int
    widths: NDArray[np.int64]
    worths: Table
    table: Table

    def best(self, processors: int, held: int) -> float:
        """Return V: the most useful work on `processors` processors; -inf if it cannot be."""
        rows, columns = self.table.shape
        b = min(processors // self.unit, columns - 1)
        return float(self.table[min((processors - held) // self.unit, rows - 1), b])

    def decisions(self, meaning: Mapping[State, Mapping[int, Decision]]) -> dict[str, Decision]:
        """Return the decisions on the jobs in the best plan on all processors of the table."""
        rows, columns = self.table.shape
        at_once = -(-len(self.jobs) // _parts(len(self.jobs), rows * columns)) or 1
        begins = range(0, len(self.jobs), at_once)
        tables = [np.zeros_like(self.table)]
        for begin in begins[:-1]:
            tables.append(tables[-1].copy())
            part = slice(begin, begin + at_once)
            fill(self.widths[part], self.worths[part], tables[-1])
        decisions: dict[str, Decision] = {}
        a, b = rows - 1, columns - 1
        for begin in reversed(begins):
            part = slice(begin, begin + at_once)
            choices = np.empty((len(self.jobs[part]), rows, columns), np.uint8)
            fill(self.widths[part], self.worths[part], tables.pop(), choices)
            for job, width, grid in zip(self.jobs[part][::-1], self.widths[part][::-1], choices[::-1], strict=True):
                choice = int(grid[a, b])
                decisions[job.id] = meaning[job.state][choice]
                a -= int(width) if choice == BOTH else 0
                b -= int(width) if choice in (BOTH, SECOND) else 0
        return decisions


def plan(
    instance: Instance,
    *,
    must: Collection[str] = (),
    skip_large: bool = False,
) -> PeriodPlan:
    """Return the plan with the most useful work, checkpoints after T_n ending together. Section 2 of the paper.

    `must`: ids of jobs that have to work. O(J P^2) for each of the times of `checkpoint_ends`. Raises
    NoPeriodPlanError if they cannot all work; TooLargeError if tables would be too large, or too many, unless
    `skip_large`: then what takes too much memory is left out, and the plan may not be the best.
    """
    if not skip_large:
        _check_time(instance, must)
    best: Knapsack | None = None
    most = -math.inf
    for end_s in checkpoint_ends(instance):
        try:
            knapsack = solve(instance, end_s, must)
        except TooLargeError:
            if end_s > 0.0 and skip_large:
                continue
            raise
        value = knapsack.best(instance.processors, instance.held)
        if value > most:
            best, most = knapsack, value
    if best is None:
        raise NoPeriodPlanError("no plan lets every job work that must")
    by_id = best.decisions(_meanings(best.end_s))
    # what was left out could not be of use
    decisions = [by_id.get(job.id, "wait") for job in instance.jobs]
    return PeriodPlan(instance, "dp", best.end_s, acts_of(instance, decisions, best.end_s))


def _check_time(instance: Instance, must: Collection[str]) -> None:
    """Raise TooLargeError if a plan would take far too long."""
    jobs = list(_of_use(instance, must))
    times = checkpoint_ends(instance)
    unit = _unit(jobs)
    cells = ((instance.processors - instance.held) // unit + 1) * (instance.processors // unit + 1)
    # where checkpoints end at once, tables have one row
    steps = len(jobs) * ((len(times) - 1) * cells + instance.processors // unit + 1)
    if steps > MOST_STEPS:
        problem = f"a plan with {len(times)} times, of {len(jobs)} jobs and tables of {cells} cells"
        raise TooLargeError(f"{problem}, takes more than {MOST_STEPS:g} steps: {_COARSER}")


def subset_sum(instance: Instance) -> PeriodPlan:
    """Return the plan that fills the most processors, at any cost. Section 2 of the paper.

    Raises NoPeriodPlanError if the checkpoints that it takes do not end within the period.
    """
    jobs = [job for job in _in_order(instance.jobs) if job.processors <= instance.processors]
    worths = np.full((len(jobs), 3), -math.inf)
    worths[:, NONE] = 0.0
    worths[:, SECOND] = [job.processors * (_IN_MEMORY_FIRST + (job.state != "stopped")) for job in jobs]
    knapsack = _packed(0.0, jobs, worths, instance.processors, 0)
    names = {name for name, what in knapsack.decisions(_ONE_PHASE).items() if what in ("run", "recover")}
    leaving = [job for job in instance.jobs if job.state == "running" and job.id not in names]
    end_s = max((job.checkpoint_s for job in leaving), default=0.0)
    if end_s > instance.period_s:
        problem = f"checkpoints of jobs that are to stop take {end_s:g} s, the period has {instance.period_s:g} s"
        raise NoPeriodPlanError(problem)
    free = instance.processors - instance.held
    if end_s == 0.0:
        free += sum(job.processors for job in leaving)
    decisions: dict[str, Decision] = {}
    for job in sorted(instance.jobs, key=lambda job: (job.state == "stopped", -job.processors)):
        later: Decision = "recover-later"
        at_once = _ONE_PHASE[job.state][SECOND]
        decisions[job.id] = _ONE_PHASE[job.state][NONE]
        if job.id not in names:
            continue
        if job.state == "running":
            decisions[job.id] = at_once
            continue
        wanted = at_once if job.processors <= free else later
        if work_of(job, wanted, end_s, instance.period_s) > 0.0:
            decisions[job.id] = wanted
            free -= job.processors if wanted == at_once else 0
    return PeriodPlan(
        instance, "subset-sum", end_s, acts_of(instance, [decisions[job.id] for job in instance.jobs], end_s)
    )


def checkpoint_ends(instance: Instance) -> list[float]:
    """Return the times D to be looked at, ascending: 0, and the checkpoint times of running jobs within the period."""
    times = {job.checkpoint_s for job in instance.jobs if job.state == "running"}
    return sorted(time for time in {0.0, *times} if time <= instance.period_s)


def _meanings(end_s: float) -> Mapping[State, Mapping[int, Decision]]:
    """Return the decisions by choice of the knapsack, for each state, if checkpoints end at `end_s`."""
    return _ONE_PHASE if end_s == 0.0 else _TWO_PHASES


def solve(instance: Instance, end_s: float, must: Collection[str] = ()) -> Knapsack:
    """Return the knapsack for checkpoints that end at `end_s`. Raises TooLargeError."""
    processors = instance.processors
    meaning = _meanings(end_s)
    jobs, rows = [], []
    for job in _of_use(instance, must):
        worths = [-math.inf] * 3
        for choice, decision in meaning[job.state].items():
            worths[choice] = _worth(job, decision, end_s, instance.period_s, job.id in must)
        jobs.append(job)
        rows.append(worths)
    free = processors - instance.held if end_s > 0.0 else 0
    return _packed(end_s, jobs, np.array(rows).reshape(-1, 3), processors, free)


def _packed(end_s: float, jobs: Sequence[PeriodJob], worths: Table, processors: int, free: int) -> Knapsack:
    unit = _unit(jobs)
    rows, columns = free // unit + 1, processors // unit + 1
    parts = _parts(len(jobs), rows * columns)
    if rows * columns * (8 * (parts + 2) + -(-len(jobs) // parts)) > MOST_BYTES:
        problem = f"{len(jobs)} jobs on {rows - 1} x {columns - 1} processors take more than {MOST_BYTES >> 20} MiB"
        raise TooLargeError(f"{problem}: {_COARSER}")
    table = np.zeros((rows, columns))
    widths = np.array([job.processors // unit for job in jobs], dtype=np.int64)
    fill(widths, worths, table)
    return Knapsack(end_s, tuple(jobs), unit, widths, worths, table)


def _unit(jobs: Sequence[PeriodJob]) -> int:
    """Return the unit in which processors are counted: the greatest common divisor of all widths."""
    return math.gcd(*(job.processors for job in jobs)) or 1


def _parts(jobs: int, cells: int) -> int:
    """Return the number of parts in which choices are computed: each with a table, the choices of one at a time."""
    return 1 if jobs * cells <= AT_ONCE_BYTES else max(1, math.isqrt(jobs // 8))


def _worth(job: PeriodJob, decision: Decision, end_s: float, period_s: float, must: bool) -> float:
    """Return the useful processor s of a decision, -inf if it cannot be taken."""
    work_s = work_of(job, decision, end_s, period_s)
    if decision == "run" and work_s <= 0.0 < job.recovering_s and not must:
        # it still recovers when the period ends; going on with that is better than stopping
        return job.processors * period_s * _LITTLE
    if work_s < 0.0 or (work_s == 0.0 and (must or decision in _MUST_BE_WORTH_IT)):
        return -math.inf
    return job.processors * work_s


def _in_order(jobs: Sequence[PeriodJob]) -> list[PeriodJob]:
    """Return jobs in the order of the search: of equal plans the one with the earlier jobs is found."""
    rank: dict[State, int] = {"running": 0, "checkpointed": 1, "stopped": 2}
    return sorted(jobs, key=lambda job: (rank[job.state], -job.processors))


def _of_use(instance: Instance, must: Collection[str]) -> Iterator[PeriodJob]:
    """Yield the jobs without those stopped ones of which more are alike than can run."""
    alike: Counter[tuple[float, ...]] = Counter()
    for job in _in_order(instance.jobs):
        if job.state == "stopped" and job.id not in must:
            key = (job.processors, job.recovery_s, job.checkpoint_s)
            alike[key] += 1
            if alike[key] > instance.processors // job.processors:
                continue
        yield job
