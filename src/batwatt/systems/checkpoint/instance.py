"""Inputs of plans: jobs that can be checkpointed, and a period between two changes of the number of processors.

Durations and times are in s; times count from the beginning of the period. docs/explanation/checkpoint.md has the
rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

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
