"""Rules for a job that is killed for power or for its machine: parts of the kind `victim`.

The rules: docs/explanation/victims.md.

A run that is killed has lasted `ran_s` s, the first `recovery_s` of them to recover what was saved before. A rule says
how much useful work is saved by then; the next run recovers for R s if anything is, and does the rest:

    next run = R + length - saved       with saved > 0
    next run = length                   without

The walltime of the next run is longer or shorter than the first one's by as much as the run itself.

The cost C of writing a checkpoint is paid at the end of the run that is killed, so the scheduler is taken to know of a
kill C s before it comes (as the grace time of a preemption in Slurm, or the notice before a spot machine goes): these
s do no useful work. Neither do the R s. All lengths are in s at a job's nominal speed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from batwatt.errors import InputError
from batwatt.model.attempt import CHECKPOINTED, MIGRATED
from batwatt.scheduling.job import BatsimJob, JobLengths
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.registry import register
from batwatt.units import LAG_S, REPORTED_S


@dataclass(frozen=True, slots=True)
class Victim:
    """A run that is killed; all in s.

    `length_s` is the useful work of the whole job, `done_s` what it had done when this run began, of which
    `recovery_s` were spent on recovering it; the run has lasted `ran_s` altogether.
    """

    length_s: float
    done_s: float
    recovery_s: float
    ran_s: float

    @property
    def progress_s(self) -> float:
        """Useful work so far, s."""
        return min(self.length_s, self.done_s + max(0.0, self.ran_s - self.recovery_s))


class VictimRule(ABC):
    """A rule for the share of a victim's work that is saved, and its cost."""

    name: ClassVar[str] = ""
    needs_lengths: ClassVar[bool] = True
    """True if the rule uses lengths; else jobs of unknown length will do."""
    tag: ClassVar[str] = CHECKPOINTED
    """Kind of a run whose work is saved."""
    checkpoint_s: float = 0.0
    """C: the last s of a killed run, in which it wrote what is saved."""
    recovery_s: float = 0.0
    """R: the first s of a run that goes on with what was saved."""

    @abstractmethod
    def saved_s(self, victim: Victim) -> float | None:
        """Return the useful work in s that is not to be done again; None if the job is not submitted again.

        Else a value from `victim.done_s`, the work saved before (0: none, it begins from zero), to `victim.progress_s`,
        all work that it has done.
        """


@dataclass(frozen=True, slots=True)
class NextRun:
    """The next run of a victim: how long it takes, what is saved, its recovery, in s.

    `run_s` is infinite for a job of unknown length that begins from zero. `kind` and `overhead_s` are those of the
    killed run.
    """

    run_s: float
    saved_s: float = 0.0
    recovery_s: float = 0.0
    kind: str = ""
    overhead_s: float = 0.0


def next_run(rule: VictimRule, victim: Victim) -> NextRun | None:
    """Return the next run of a victim under a rule, or None. Raises InputError if it saves the impossible."""
    saved_s = rule.saved_s(victim)
    if saved_s is None:
        return None
    # what was saved before has been counted, unless nothing ever is
    if saved_s == 0.0 and (victim.done_s == 0.0 or not rule.needs_lengths):
        return NextRun(victim.length_s)
    # Batsim reports times to the microsecond, and a rule may round the run's lag away
    saved_s = min(round(saved_s, 6), victim.length_s) if math.isfinite(saved_s) else saved_s
    if victim.progress_s + REPORTED_S < saved_s <= victim.progress_s + LAG_S:
        saved_s = round(victim.progress_s, 6)
    if not victim.done_s - REPORTED_S <= saved_s <= victim.progress_s + REPORTED_S:
        part = f"option 'victim': {rule.name or type(rule).__name__}"
        problem = f"saved_s is {saved_s!r} s, of {victim.progress_s:g} s done, {victim.done_s:g} s of them saved before"
        raise InputError(part, problem, "return None, or what lies between")
    # what did not come of the run: recovery, checkpoint, and work after what was saved
    lost_s = victim.ran_s - (saved_s - victim.done_s)
    if saved_s > victim.done_s or rule.tag == MIGRATED:
        kind, overhead_s = rule.tag, max(lost_s, 0.0)
    else:
        kind, overhead_s = "", victim.ran_s if victim.ran_s < victim.recovery_s else 0.0
    run_s = max(round(rule.recovery_s + victim.length_s - saved_s, 6), REPORTED_S)
    return NextRun(run_s, saved_s, rule.recovery_s, kind, overhead_s)


def _on_hosts(following: NextRun, ran_s: float, took_s: float) -> NextRun:
    """Return a next run whose killed one has its overhead in s on its hosts, where `ran_s` s took `took_s` s."""
    if not took_s > ran_s > 0.0:
        return following
    return replace(following, overhead_s=round(following.overhead_s, 6) * took_s / ran_s)


MOST_KILLS: Final = 100
"""Kills of a job while no other job ends, arrives or saves work, after which it is not submitted again."""


class Victims:
    """Next runs of the victims of a scheduler: decided when a run is killed, registered when it has ended."""

    def __init__(self, rule: VictimRule, lifecycle: JobLifecycle, lengths: JobLengths) -> None:
        self._rule = rule
        self._lifecycle = lifecycle
        self._lengths = lengths
        self._first: dict[str, BatsimJob] = {}
        self._runs: dict[str, NextRun | None] = {}

    def loss_s(self, job: BatsimJob, ran_s: float) -> float:
        """Return the s that a job would lose if it were killed when its run has lasted `ran_s` s. Raises InputError."""
        victim, following = self._following(job, ran_s)
        if following is None:
            return victim.progress_s
        return victim.ran_s - (following.saved_s - victim.done_s) + following.recovery_s

    def killed(self, job: BatsimJob, ran_s: float, took_s: float) -> None:
        """Decide on the next run of a job whose run is killed after `took_s` s.

        On slow hosts it has lasted `ran_s` s at nominal speed. Raises InputError.
        """
        following = self._following(job, ran_s)[1]
        self.decide(job, None if following is None else _on_hosts(following, ran_s, took_s))

    def moved(self, job: BatsimJob, length_s: float, left_s: float, ran_s: float, took_s: float) -> None:
        """Decide on the next run, of `left_s` s, of a job of `length_s` s that moves at no cost.

        A recovery goes on after the move. The times of its run are as in `killed`.
        """
        before = self._runs.get(self._lifecycle.name_of(job))
        recovery_s = 0.0 if before is None else before.recovery_s
        rest_s = max(0.0, recovery_s - ran_s)
        following = NextRun(left_s, length_s - left_s + rest_s, rest_s, MIGRATED, recovery_s - rest_s)
        self.decide(job, _on_hosts(following, ran_s, took_s))

    def stopped(self, job: BatsimJob, took_s: float) -> None:
        """Note the overhead of a run that has not recovered yet when the window ends, after `took_s` s."""
        following = self._runs.get(self._lifecycle.name_of(job))
        if following is not None and following.recovery_s > took_s:
            self._lifecycle.describe(job, overhead_s=took_s)

    def _following(self, job: BatsimJob, ran_s: float) -> tuple[Victim, NextRun | None]:
        """Return a run that is killed, and the next one if there is one."""
        name = self._lifecycle.name_of(job)
        first = self._first.setdefault(name, job)
        if self._lengths.has_length(first):
            _, length_s, run_s = self._lengths.described(first)
        elif self._rule.needs_lengths:
            raise self._lengths.unknown(first, name)
        else:
            length_s = run_s = math.inf
        before = self._runs.get(name) or NextRun(run_s, length_s - run_s if run_s < length_s else 0.0)
        victim = Victim(length_s, before.saved_s, before.recovery_s, ran_s)
        return victim, next_run(self._rule, victim)

    def decide(self, job: BatsimJob, following: NextRun | None) -> None:
        """Set the next run of a job that is killed; None: there is none."""
        name = self._lifecycle.name_of(job)
        self._first.setdefault(name, job)
        before = self._runs.get(name)
        if following is not None and following.saved_s > (0.0 if before is None else before.saved_s):
            self._lifecycle.progress()
        elif following is not None and self._lifecycle.kills[name] >= MOST_KILLS:
            # under a limit that repeats it would go on for ever
            self._lifecycle.note_unrunnable([name], f"killed {MOST_KILLS} times while no job ended or saved work")
            following = None
        self._runs[name] = following
        if following is not None and (following.kind or following.overhead_s > 0.0):
            self._lifecycle.describe(job, following.kind, following.overhead_s)

    def next_of(self, job: BatsimJob) -> NextRun | None:
        """Return the next run that was decided when the job was killed last."""
        return self._runs[self._lifecycle.name_of(job)]

    def extra_s(self, name: str) -> float:
        """Return the s by which the present run of a job is longer than the whole job: recovery less saved work."""
        present = self._runs.get(name)
        return 0.0 if present is None else present.recovery_s - present.saved_s

    def register_next(self, job: BatsimJob, following: NextRun) -> BatsimJob:
        """Register the next run of a job that was killed and has ended."""
        first = self._first[self._lifecycle.name_of(job)]
        keeps_profile = following.run_s == math.inf or following.run_s == self._lengths.run_s(job)
        profile, walltime_s = job.profile, None
        if not keeps_profile:
            profile = self._lengths.lasting(first, following.run_s)
            if first.requested_time is not None and first.requested_time > 0.0:
                extra_s = following.run_s - self._lengths.run_s(first)
                walltime_s = max(round(first.requested_time + extra_s, 6), REPORTED_S)
        again = self._lifecycle.attempt(job, profile, walltime_s)
        if following.recovery_s > 0.0:
            self._lifecycle.describe(again, overhead_s=following.recovery_s)
        return again


@register("victim", "lose")
class Lose(VictimRule):
    """The job is lost: it is not submitted again."""

    needs_lengths = False

    def saved_s(self, victim: Victim) -> float | None:
        """Return None."""
        return None


@register("victim", "resubmit")
class Resubmit(VictimRule):
    """The job is submitted again, and begins from zero."""

    needs_lengths = False

    def saved_s(self, victim: Victim) -> float | None:
        """Return 0."""
        return 0.0


@register("victim", "checkpoint")
class CheckpointOnKill(VictimRule):
    """The job writes a checkpoint in its last C s, is submitted again, and recovers for R s."""

    def __init__(self, checkpoint_s: float = 60.0, recovery_s: float = 60.0) -> None:
        for name, value in (("checkpoint_s", checkpoint_s), ("recovery_s", recovery_s)):
            if not 0.0 <= value <= 1e9:
                raise ValueError(f"{name} must be from 0 to 1e9 s, got {value!r}")
        self.checkpoint_s, self.recovery_s = float(checkpoint_s), float(recovery_s)

    def saved_s(self, victim: Victim) -> float | None:
        """Return all but the last C s; of a run too short to write another checkpoint, the work that it began with."""
        ran_s = victim.ran_s - victim.recovery_s
        return victim.done_s if ran_s < self.checkpoint_s else victim.progress_s - self.checkpoint_s


@register("victim", "migrate")
class Migrate(VictimRule):
    """The job keeps all that it has done, and goes on elsewhere after `cost_s` s, as soon as there is room."""

    tag = MIGRATED

    def __init__(self, cost_s: float = 0.0) -> None:
        if not 0.0 <= cost_s <= 1e9:
            raise ValueError(f"cost_s must be from 0 to 1e9 s, got {cost_s!r}")
        self.recovery_s = float(cost_s)

    def saved_s(self, victim: Victim) -> float | None:
        """Return all work done."""
        return victim.progress_s
