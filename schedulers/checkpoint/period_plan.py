"""Plans of a period between two changes of the number of processors: jobs, the knapsack, and the programs.

Durations and times are in s; times count from the beginning of the period. docs/explanation/checkpoint.md has the
rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

State = Literal["checkpointed", "running", "stopped"]
"""State of a job just before the period: see the table in docs/explanation/checkpoint.md."""
Decision = Literal["run", "stop", "recover-later", "checkpoint", "wait", "recover"]
"""Decision on a job."""
Kind = Literal["recovery", "work", "checkpoint"]
"""Activity of a job in a phase."""
STATES: tuple[State, ...] = get_args(State)
MOST_PROCESSORS = 100_000
"""Tables grow with the square of it."""
ROUNDING = 1e-12
"""Part of a period in which no work counts: rounding of its other activities leaves it."""


@dataclass(frozen=True, slots=True)
class PeriodJob:
    """A job without end on `processors` processors, checkpointed in `checkpoint_s` and recovered in `recovery_s`.

    `recovering_s`: the rest of a recovery that the period catches a `checkpointed` job in; it works that much less if
    it runs. Raises ValueError.
    """

    id: str
    processors: int
    checkpoint_s: float
    recovery_s: float
    state: State
    recovering_s: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.processors, bool) or not isinstance(self.processors, int) or not self.processors >= 1:
            raise ValueError(f"job {self.id}: processors must be a whole number >= 1, got {self.processors!r}")
        for name in ("checkpoint_s", "recovery_s", "recovering_s"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"job {self.id}: {name} must be >= 0 s and finite, got {value!r}")
        if self.state not in STATES:
            raise ValueError(f"job {self.id}: state must be one of {', '.join(STATES)}, got {self.state!r}")


@dataclass(frozen=True)
class Instance:
    """A period of `period_s` s on `processors` processors, and its jobs. Raises ValueError.

    A job may be wider than `processors`: it cannot run now, and then is not `running`, unless all cannot be kept.
    """

    period_s: float
    processors: int
    jobs: tuple[PeriodJob, ...]

    def __post_init__(self) -> None:
        if not 0.0 < self.period_s < math.inf:
            raise ValueError(f"period_s must be > 0 s and finite, got {self.period_s!r}")
        whole = isinstance(self.processors, int) and not isinstance(self.processors, bool)
        if not whole or not 1 <= self.processors <= MOST_PROCESSORS:
            problem = f"processors must be a whole number from 1 to {MOST_PROCESSORS}, got {self.processors!r}"
            raise ValueError(problem)
        if len({job.id for job in self.jobs}) != len(self.jobs):
            raise ValueError("two jobs have the same id")
        if self.held > self.processors:
            problem = f"jobs that are running without a checkpoint hold {self.held} of {self.processors} processors"
            raise ValueError(f"{problem}: they can neither go on nor be stopped without loss")

    @cached_property
    def held(self) -> int:
        """U: the processors of the jobs that are running without a checkpoint."""
        return sum(job.processors for job in self.jobs if job.state == "running")

    @property
    def most_processor_s(self) -> float:
        """P T: the most work that the processors could do."""
        return self.processors * self.period_s


@dataclass(frozen=True, slots=True)
class JobPhase:
    """An activity of a job from `begin_s` to `end_s`."""

    kind: Kind
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Assignment:
    """The decision on a job in a period: `work_s` is W_i, `phases` its activities by time."""

    job: PeriodJob
    decision: Decision
    work_s: float
    phases: tuple[JobPhase, ...]


@dataclass(frozen=True)
class PeriodPlan:
    """The decisions on all jobs of an instance, in its order; checkpoints after T_n end at `checkpoints_end_s` (D)."""

    instance: Instance
    method: str
    checkpoints_end_s: float
    acts: tuple[Assignment, ...]

    @cached_property
    def work_processor_s(self) -> float:
        """sum_i p_i W_i."""
        return math.fsum(act.job.processors * act.work_s for act in self.acts)

    @property
    def goodput(self) -> float:
        """Goodput by the paper's equation."""
        return self.work_processor_s / self.instance.most_processor_s


def acts_of(instance: Instance, decisions: Sequence[Decision], end_s: float) -> tuple[Assignment, ...]:
    """Return the assignments of decisions for the jobs, in their order, if checkpoints end at `end_s`."""
    period_s = instance.period_s
    return tuple(_act(job, decision, end_s, period_s) for job, decision in zip(instance.jobs, decisions, strict=True))


def ready_s(job: PeriodJob) -> float:
    """Return the time in s at which a job begins to work that goes on, or recovers, at 0."""
    return job.recovery_s if job.state == "stopped" else job.recovering_s


def work_of(job: PeriodJob, decision: Decision, end_s: float, period_s: float) -> float:
    """Return W_i of a decision in s, <= 0 if it is not worth anything; checkpoints end at `end_s`."""
    if decision in ("stop", "wait"):
        return 0.0
    if decision in ("run", "recover"):
        work_s = period_s - ready_s(job)
    elif decision == "recover-later":
        work_s = period_s - end_s - job.recovery_s
    else:
        work_s = end_s - job.checkpoint_s - ready_s(job)
    return work_s if abs(work_s) > ROUNDING * period_s else 0.0


def _act(job: PeriodJob, decision: Decision, end_s: float, period_s: float) -> Assignment:
    if decision in ("stop", "wait"):
        return Assignment(job, decision, 0.0, ())
    work_s = max(work_of(job, decision, end_s, period_s), 0.0)
    begin_s, recovery_s = (end_s, job.recovery_s) if decision == "recover-later" else (0.0, ready_s(job))
    # a job may still recover when the period ends
    phases = [JobPhase("recovery", begin_s, min(begin_s + recovery_s, period_s))]
    begin_s += recovery_s
    if work_s > 0.0:
        phases.append(JobPhase("work", begin_s, begin_s + work_s))
    if decision == "checkpoint":
        phases.append(JobPhase("checkpoint", end_s - job.checkpoint_s, end_s))
    return Assignment(job, decision, work_s, tuple(phase for phase in phases if phase.end_s > phase.begin_s))


Table = NDArray[np.float64]
NONE, BOTH, SECOND = range(3)
"""Columns of `worths`, and values of `choices`."""
ROWS = 32
"""Rows of the table that are computed together, so that they stay in the cache of the processor."""


def fill(widths: NDArray[np.int64], worths: Table, table: Table, choices: NDArray[np.uint8] | None = None) -> None:
    """Put all jobs into `table` (float64[F + 1, P + 1]), which is 0 at first.

    `widths` int64[J], `worths` float64[J, 3]; `choices` uint8[J, F + 1, P + 1] is written if it is there. Among equals
    that choice stays which comes first: none, both, second.
    """
    rows, columns = table.shape
    best, room = np.empty((2, ROWS, columns))
    for job, (width, (none, both, second)) in enumerate(zip(widths.tolist(), worths.tolist(), strict=True)):
        holding = ((BOTH, both, width, width), (SECOND, second, 0, width))
        uses = [use for use in holding if use[1] > none]
        # from the last row on: what a row is computed from lies above it
        for end in range(rows, 0, -ROWS):
            begin = max(0, end - ROWS)
            block = np.add(table[begin:end], none, out=best[: end - begin])
            selection: Any = None if choices is None else choices[job, begin:end]
            if selection is not None:
                selection[:] = NONE
            for choice, worth, down, right in uses:
                top = max(begin, down)
                if top >= end or right >= columns:
                    continue
                before = table[top - down : end - down, : columns - right]
                value = np.add(before, worth, out=room[: end - top, : columns - right])
                here = block[top - begin :, right:]
                if selection is not None:
                    selection[top - begin :, right:][value > here] = choice
                np.maximum(here, value, out=here)
            table[begin:end] = block


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
class PeriodKnapsack:
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
    best: PeriodKnapsack | None = None
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


def solve(instance: Instance, end_s: float, must: Collection[str] = ()) -> PeriodKnapsack:
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


def _packed(end_s: float, jobs: Sequence[PeriodJob], worths: Table, processors: int, free: int) -> PeriodKnapsack:
    unit = _unit(jobs)
    rows, columns = free // unit + 1, processors // unit + 1
    parts = _parts(len(jobs), rows * columns)
    if rows * columns * (8 * (parts + 2) + -(-len(jobs) // parts)) > MOST_BYTES:
        problem = f"{len(jobs)} jobs on {rows - 1} x {columns - 1} processors take more than {MOST_BYTES >> 20} MiB"
        raise TooLargeError(f"{problem}: {_COARSER}")
    table = np.zeros((rows, columns))
    widths = np.array([job.processors // unit for job in jobs], dtype=np.int64)
    fill(widths, worths, table)
    return PeriodKnapsack(end_s, tuple(jobs), unit, widths, worths, table)


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
