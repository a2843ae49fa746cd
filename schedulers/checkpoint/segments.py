"""Jobs that are checkpointed and recover, on an engine that knows neither.

The rules: docs/explanation/checkpoint.md, "The scheduler".

Each stretch of work, each checkpoint and each recovery of a job is a job of its own for Batsim: a *segment*.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from batwatt.errors import InputError
from batwatt.model.attempt import CHECKPOINT, CHECKPOINTED, RECOVERY
from batwatt.model.workload import CHECKPOINT_S, DEPENDS, NO_WALLTIME, RECOVERY_S
from batwatt.schedulers.checkpoint.period_plan import PeriodJob, State
from batwatt.scheduling.fleet import Fleet, MachineHosts
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, Places, number_in
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.units import LAG_S

Phase = Literal["waiting", "paused", "work", "checkpoint", "recovery"]
AfterKill = Literal["checkpoint", "leave", "lose"]
"""Next step after a kill: a checkpoint, leaving with all work saved, or leaving with the work saved before."""
_ROUNDED = 6
_LEAST_S = 10.0**-_ROUNDED
"""Least time and length in Batsim in s, by its decimals."""


@dataclass(slots=True, eq=False)
class CheckpointState:
    """Checkpoints and recovery of a job; times in s.

    A job does work at its `pace` while its `phase` is "work", else its pace is 0. A `paused` job is in memory, on its
    machines, and has no segment.
    """

    checkpoint_s: float
    recovery_s: float
    rerun_s: float
    """Rest of the job after a kill: its work since the last checkpoint is lost."""
    phase: Phase = "waiting"
    after_kill: AfterKill = "lose"
    leaves: bool = False
    """True if it leaves after the checkpoint that it takes or will take."""
    begun: bool = False
    checkpoint_at_s: float | None = None
    """Begin of its next checkpoint."""
    waits_as: PeriodJob | None = None
    """The waiting job as plans see it; that changes when it begins."""
    alone_s: float = 0.0
    """Time in which it could have worked alone, up to the last change."""


CheckpointJob: TypeAlias = Job[CheckpointState]
UNFIT = "not enough machines"
Kind = tuple[int, float, float]
"""Width, recovery time and checkpoint time in s of a job that waits."""
_number = attrgetter("number")


class Segments:
    """Work, checkpoints and recoveries of jobs, as segments; a scheduler decides on the activity of each job.

    `usual_s` are the checkpoint and the recovery time in s of jobs that do not say; `room` is set when jobs arrive, end
    or leave: some may start.
    """

    def __init__(
        self,
        lifecycle: JobLifecycle,
        lengths: JobLengths,
        hosts: MachineHosts,
        usual_s: tuple[float, float],
    ) -> None:
        self._bs = lifecycle.bs
        self._lifecycle = lifecycle
        self._lengths = lengths
        self._hosts = hosts
        self._usual_s = usual_s
        self.room = False
        self._count = 0
        self.fleet = Fleet(len(hosts), hosts.cores, np.inf)
        self.waiting: dict[int, CheckpointJob] = {}
        """Jobs that do not run, by number."""
        self.kinds: dict[Kind, list[CheckpointJob]] = {}
        """Jobs that do not run, by kind, those of a kind in the order of submission."""

    def arrived(self, job: BatsimJob, most: int) -> None:
        """Let a job wait, unless it is wider than the `most` machines that there can be."""
        task = self._task(job)
        if task.width > most:
            self._lifecycle.reject([job], UNFIT)
            return
        self._lifecycle.jobs[job.id] = task
        self._lifecycle.live += 1
        self._wait(task)

    def _task(self, job: BatsimJob) -> CheckpointJob:
        if not self._lengths.has_length(job):
            problem = (
                f"job {job.id} is no delay, nor flops alike on all hosts: what a checkpoint leaves of it is unknown"
            )
            raise InputError("workload", problem, "use jobs that last a given time")
        raw = job.json_dict or {}
        if raw.get(DEPENDS):
            problem = f"job {job.id} depends on others, which this scheduler does not know"
            raise InputError("workload", problem, f"take another scheduler, or leave {DEPENDS} out")
        _, length_s, run_s = self._lengths.described(job)
        checkpoint_s, recovery_s = self._usual_s
        self._count += 1
        machines = -(-job.requested_resources // self.fleet.cores)
        # what ran before it was submitted is not saved
        state = CheckpointState(
            _cost_in(raw, CHECKPOINT_S, checkpoint_s, job.id), _cost_in(raw, RECOVERY_S, recovery_s, job.id), length_s
        )
        task = Job(self._count, job, length_s, run_s, length_s, machines=machines, state=state)
        task.scales = self._lengths.scales(job)
        return task

    def ended(self, job: BatsimJob, stopped: bool) -> None:
        """End a segment; `stopped`: nothing follows any more."""
        task, killed = self._lifecycle.ended(job)
        state = task.state
        phase = state.phase
        if stopped or (phase == "work" and not killed):
            self.end(task)
            return
        if phase == "work":
            done_s = round(task.done_s(self._bs.time()), _ROUNDED)
            task.left_s = task.length_s - min(done_s, task.length_s)
        elif phase == "checkpoint" and not killed:
            if task.left_s < state.rerun_s:
                self._lifecycle.progress()
            state.rerun_s = task.left_s
        state.phase, task.pace = "paused", 0.0
        if self.fleet.stranded(task):
            # no segment can follow there
            self.leave(task)
        elif killed and state.after_kill == "checkpoint":
            self.launch(task, "checkpoint", state.checkpoint_s)
        elif killed or state.leaves:
            if state.after_kill == "leave" and phase == "work":
                state.rerun_s = task.left_s
            self.leave(task)
        elif phase == "recovery":
            self.work(task)

    # segments of jobs -------------------------------------------------------------------------------------------

    def begin(self, task: CheckpointJob, places: Places) -> None:
        """Bring a job that waits to machines: it recovers first, unless it has never run."""
        now_s = self._bs.time()
        self._leave_queue(task)
        self.fleet.add(task, places, now_s)
        if task.state.begun and task.state.recovery_s > 0.0:
            self.launch(task, "recovery", task.state.recovery_s)
        else:
            self.work(task)

    def work(self, task: CheckpointJob) -> None:
        """Let a job that is in memory work, until it has ended if nothing happens."""
        if not task.state.begun:
            task.state.begun, task.state.waits_as = True, None
            self._execute(task, "work")
        else:
            self.launch(task, "work", task.left_s)

    def launch(self, task: CheckpointJob, phase: Phase, length_s: float) -> None:
        """Start a new span on the machines that the job has."""
        task.attempt = self._submit(task, phase, length_s)
        self._lifecycle.jobs[task.attempt.id] = task
        self._execute(task, phase)
        if phase != "work":
            self._lifecycle.describe(task.attempt, CHECKPOINT if phase == "checkpoint" else RECOVERY)

    def _submit(self, task: CheckpointJob, phase: Phase, length_s: float) -> BatsimJob:
        profile = self._lengths.lasting(task.attempt, max(round(length_s, _ROUNDED), _LEAST_S))
        return self._lifecycle.attempt(task.attempt, profile, self._walltime(task, phase))

    def kill(self, task: CheckpointJob, after_kill: AfterKill) -> None:
        """End a span; `after_kill` is the next step."""
        task.state.after_kill, task.state.checkpoint_at_s = after_kill, None
        if task.state.phase == "work" and after_kill != "lose":
            self._lifecycle.describe(task.attempt, CHECKPOINTED)
        self._lifecycle.kill([task])

    def leave(self, task: CheckpointJob) -> None:
        """Take a job that has no segment from its machines, with the work that is saved, and let it wait."""
        task.left_s = task.state.rerun_s
        task.state.leaves, task.state.checkpoint_at_s = False, None
        self.fleet.remove(task)
        self._wait(task)

    def refuse(self, task: CheckpointJob, why: str = UNFIT) -> None:
        """Forget a job that waits and can never run again."""
        self._leave_queue(task)
        self._lifecycle.reject([self._given_up(task)], why)

    def leave_waiting(self) -> list[BatsimJob]:
        """Forget the jobs that wait."""
        waiting = list(self.waiting.values())
        self.waiting.clear()
        self.kinds.clear()
        return [self._given_up(task) for task in waiting]

    def _given_up(self, task: CheckpointJob) -> BatsimJob:
        """Return the job to reject for a waiting one: itself, or a job of the work left when it had to leave."""
        self._lifecycle.live -= 1
        if not task.state.begun:
            self._lifecycle.jobs.pop(task.attempt.id)
            return task.attempt
        return self._submit(task, "work", task.left_s)

    def _walltime(self, task: CheckpointJob, phase: Phase) -> float:
        limited = phase == "work" and task.walltime_s < math.inf
        done_s = round(task.length_s - task.left_s, _ROUNDED)
        return max(task.walltime_s - done_s, LAG_S) if limited else NO_WALLTIME

    def _execute(self, task: CheckpointJob, phase: Phase) -> None:
        task.state.phase, task.start_s = phase, self._bs.time()
        task.pace = self.fleet.pace(task) if phase == "work" else 0.0
        self._lifecycle.execute(task, self._hosts.assign(task, self.fleet))

    def _wait(self, task: CheckpointJob) -> None:
        task.state.phase, task.pace = "waiting", 0.0
        self.waiting[task.number] = task
        insort(self.kinds.setdefault(_kind_of(task), []), task, key=_number)
        self.room = True

    def _leave_queue(self, task: CheckpointJob) -> None:
        del self.waiting[task.number]
        kind = _kind_of(task)
        alike = self.kinds[kind]
        del alike[bisect_left(alike, task.number, key=_number)]
        if not alike:
            del self.kinds[kind]

    def end(self, task: CheckpointJob) -> None:
        """End a job that is over, or given up."""
        self._lifecycle.live -= 1
        self.fleet.remove(task)
        self.room = True


def in_order(tasks: Iterable[CheckpointJob]) -> list[CheckpointJob]:
    """Return jobs in the order of submission."""
    return sorted(tasks, key=_number)


def _kind_of(task: CheckpointJob) -> Kind:
    return task.width, task.state.recovery_s if task.state.begun else 0.0, task.state.checkpoint_s


def period_job(
    task: CheckpointJob, state: State, *, checkpoint_s: float | None = None, recovering_s: float = 0.0
) -> PeriodJob:
    """Return a job as a plan sees it: without an end, since others get what it leaves free before the next change."""
    return PeriodJob(
        id=task.name,
        processors=task.width,
        checkpoint_s=task.state.checkpoint_s if checkpoint_s is None else checkpoint_s,
        recovery_s=task.state.recovery_s if task.state.begun or state == "running" else 0.0,
        state=state,
        recovering_s=recovering_s,
    )


def waiting_job(task: CheckpointJob) -> PeriodJob:
    """Return a job that waits as a plan sees it; there are many, and most have waited before."""
    if task.state.waits_as is None:
        task.state.waits_as = period_job(task, "stopped")
    return task.state.waits_as


def _cost_in(raw: Mapping[str, Any], name: str, otherwise: float, job_id: str) -> float:
    """Return the s of a checkpoint or recovery, of a job or the option; InputError if too short for Batsim's clock."""
    value = number_in(raw, name, otherwise, job_id, zero=True)
    if 0.0 < value < _LEAST_S:
        problem = f"job {job_id}: {name} must be 0 or at least {_LEAST_S:g} s, got {value!r}"
        raise InputError(
            "workload", problem, "Batsim's clock knows no less; correct the job, or the option of that name"
        )
    return value
