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
from typing import Literal, get_args

import numpy as np

from batwatt.schedulers.checkpoint.knapsack import BOTH, NONE, SECOND, Knapsack, Table, TooLargeError

State = Literal["checkpointed", "running", "stopped"]
"""State of a job just before the period: see the table in docs/explanation/checkpoint.md."""
Decision = Literal["run", "stop", "recover-later", "checkpoint", "wait", "recover"]
"""Decision on a job."""
Kind = Literal["recovery", "work", "checkpoint"]
"""Activity of a job in a phase."""
STATES: tuple[State, ...] = get_args(State)
MOST_PROCESSORS = 100_000
"""Tables of all capacities grow with the square of it."""
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
_MUST_BE_WORTH_IT = ("recover", "recover-later")


class NoPeriodPlanError(ValueError):
    """No plan lets every required job work, or ends all checkpoints within the period."""


@dataclass(frozen=True)
class PeriodKnapsack:
    """The knapsack of one time D at which checkpoints end.

    `jobs` are those that are looked at, in the order in which they are; `unit` processors count as one. The worth of a
    choice is useful work in processor s. The first capacity is what is free for others than running jobs in [0, D[, the
    second what is there in [D, T].
    """

    end_s: float
    jobs: tuple[PeriodJob, ...]
    unit: int
    knapsack: Knapsack

    def best(self, processors: int, held: int) -> float:
        """Return V: the most useful work on `processors` processors; -inf if it cannot be. Raises TooLargeError."""
        table = self.knapsack.table
        rows, columns = table.shape
        b = min(processors // self.unit, columns - 1)
        return float(table[min((processors - held) // self.unit, rows - 1), b])

    def decisions(self, choices: Sequence[int]) -> dict[str, Decision]:
        """Return the decisions on the jobs, by id."""
        meaning = _meanings(self.end_s)
        return {job.id: meaning[job.state][choice] for job, choice in zip(self.jobs, choices, strict=True)}


def plan(
    instance: Instance,
    *,
    must: Collection[str] = (),
    skip_large: bool = False,
) -> PeriodPlan:
    """Return the plan with the most useful work, checkpoints after T_n ending together. Section 2 of the paper.

    `must`: ids of jobs that have to work. Raises NoPeriodPlanError if they cannot all work; TooLargeError if a
    knapsack is too large, unless `skip_large`: then its time D > 0 is left out, and the plan may not be the best.
    """
    best: dict[str, Decision] = {}
    ends_s, most = math.inf, -math.inf
    for end_s in checkpoint_ends(instance):
        period = solve(instance, end_s, must)
        try:
            packing = period.knapsack.solve(most)
        except TooLargeError:
            if end_s > 0.0 and skip_large:
                continue
            raise
        if packing.worth > most:
            best, ends_s, most = period.decisions(packing.choices), end_s, packing.worth
    if most == -math.inf:
        raise NoPeriodPlanError("no plan lets every job work that must")
    # what was left out could not be of use
    decisions = [best.get(job.id, "wait") for job in instance.jobs]
    return PeriodPlan(instance, "dp", ends_s, acts_of(instance, decisions, ends_s))


def subset_sum(instance: Instance) -> PeriodPlan:
    """Return the plan that fills the most processors, at any cost. Section 2 of the paper.

    Raises NoPeriodPlanError if the checkpoints that it takes do not end within the period.
    """
    jobs = [job for job in _in_order(instance.jobs) if job.processors <= instance.processors]
    worths = np.full((len(jobs), 3), -math.inf)
    worths[:, NONE] = 0.0
    worths[:, SECOND] = [job.processors * (_IN_MEMORY_FIRST + (job.state != "stopped")) for job in jobs]
    packed = _packed(0.0, jobs, worths, instance.processors, 0)
    decided = packed.decisions(packed.knapsack.solve().choices)
    names = {name for name, what in decided.items() if what in ("run", "recover")}
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
    """Return the knapsack for checkpoints that end at `end_s`."""
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
    # processors are counted in the greatest common divisor of all widths
    unit = math.gcd(*(job.processors for job in jobs)) or 1
    widths = np.array([job.processors // unit for job in jobs], dtype=np.int64)
    return PeriodKnapsack(end_s, tuple(jobs), unit, Knapsack(widths, worths, free // unit, processors // unit))


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
