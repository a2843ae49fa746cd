"""Jobs that are checkpointed and recover, on an engine that knows neither.

The rules: docs/explanation/checkpoint.md, "The scheduler".

Each stretch of work, each checkpoint and each recovery of a job is a job of its own for Batsim: a *segment*.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, cast

import numpy as np

from batwatt.errors import InputError
from batwatt.model.hostset import HostSet
from batwatt.model.workload import (
    CHECKPOINT,
    CHECKPOINT_S,
    CHECKPOINTED,
    DEPENDS,
    NO_WALLTIME,
    RECOVERY,
    RECOVERY_S,
)
from batwatt.scheduling.base import Job
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.hosts import Hosts
from batwatt.scheduling.job_lengths import JobLengths, number_in
from batwatt.scheduling.jobs import ManagedJob, Places
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.systems.checkpoint.instance import PeriodJob, State
from batwatt.units import LAG_S

Doing = Literal["waiting", "paused", "work", "checkpoint", "recovery"]
Then = Literal["checkpoint", "leave", "lose"]
"""What comes after a kill: a checkpoint, leaving with all work saved, or leaving with what was saved before."""
_ROUNDED = 6
_LEAST_S = 10.0**-_ROUNDED
"""Batsim tells times and lengths to so many decimals."""


class CheckpointableJob(ManagedJob):
    """A job of `machines` machines that can be checkpointed; times in s.

    `work_s` is its useful work before the present segment, of which `saved_s` is not lost if it is killed. `paused` is
    one that is in memory, on its machines, and has no segment.
    """

    def __init__(
        self, number: int, job: Job, machines: int, length_s: float, costs_s: tuple[float, float], work_s: float
    ) -> None:
        super().__init__(number, job, length_s, length_s, length_s, machines=machines)
        self.checkpoint_s, self.recovery_s = costs_s
        self.work_s = work_s
        self.saved_s = 0.0
        self.doing: Doing = "waiting"
        self.then: Then = "lose"
        self.leaves = False
        """After the checkpoint that it takes or will take."""
        self.begun = False
        self.checkpoint_at_s: float | None = None
        """When its next checkpoint is to begin."""
        self.waits_as: PeriodJob | None = None
        """What plans see of it when it waits; that changes when it begins."""
        self.alone_s = 0.0
        """How long it could have worked alone, up to the last change."""

    def done_s(self, now_s: float) -> float:
        """Its useful work so far."""
        return self.work_s + (self.ran_s(now_s) if self.doing == "work" else 0.0)

    def rest_s(self, now_s: float) -> float:
        """The useful work that is left."""
        return self.length_s - self.done_s(now_s)

    def at_stake(self, now_s: float) -> float:
        """Processor s that are lost if it is killed."""
        return self.width * (self.done_s(now_s) - self.saved_s)


UNFIT = "not enough machines"
Kind = tuple[int, float, float]
"""Width, recovery time and checkpoint time in s of a job that waits."""
_number = attrgetter("number")


class Segments:
    """Carries out what jobs that work, checkpoint and recover do; a scheduler decides which job does what.

    `usual_s` are the checkpoint and the recovery time in s of jobs that do not say; `room` is set when jobs arrive, end
    or leave: some may start.
    """

    def __init__(
        self,
        lifecycle: JobLifecycle[CheckpointableJob],
        lengths: JobLengths,
        hosts: Hosts,
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
        self.waiting: dict[int, CheckpointableJob] = {}
        """What does not run, by number."""
        self.kinds: dict[Kind, list[CheckpointableJob]] = {}
        """The same jobs by kind, those of a kind in the order of submission."""

    def arrived(self, job: Job, most: int) -> None:
        """A job waits, unless it is wider than the `most` machines that there can be."""
        task = self._task(job)
        if task.width > most:
            self._lifecycle.reject([job], UNFIT)
            return
        self._lifecycle.states[job.id] = task
        self._lifecycle.live += 1
        self._wait(task)

    def _task(self, job: Job) -> CheckpointableJob:
        if not self._lengths.known(job):
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
        costs_s = (
            _cost_in(raw, CHECKPOINT_S, checkpoint_s, job.id),
            _cost_in(raw, RECOVERY_S, recovery_s, job.id),
        )
        # what ran before it was submitted is not saved
        task = CheckpointableJob(self._count, job, machines, length_s, costs_s, length_s - run_s)
        task.scales = self._lengths.scales(job)
        return task

    def ended(self, job: Job, stopped: bool) -> None:
        """A segment has ended; `stopped`: nothing follows any more."""
        task, killed = self._lifecycle.ended(job)
        now_s = self._bs.time()
        done_s, doing = task.done_s(now_s), task.doing
        if stopped or (doing == "work" and not killed):
            self.end(task)
            return
        task.doing = "paused"
        if doing == "work":
            task.work_s = min(round(done_s, _ROUNDED), task.length_s)
        elif doing == "checkpoint" and not killed:
            task.saved_s = task.work_s
        if self.fleet.stranded(task):
            # no segment can follow there
            self.leave(task)
        elif killed and task.then == "checkpoint":
            self.launch(task, "checkpoint", task.checkpoint_s)
        elif killed or task.leaves:
            if task.then == "leave" and doing == "work":
                task.saved_s = task.work_s
            self.leave(task)
        elif doing == "recovery":
            self.work(task)

    # what jobs are let do ---------------------------------------------------------------------------------------

    def begin(self, task: CheckpointableJob, places: Places) -> None:
        """A job that waits comes to machines: it recovers first, unless it has never run."""
        now_s = self._bs.time()
        self._leave_queue(task)
        self.fleet.add(task, places, now_s)
        if task.begun and task.recovery_s > 0.0:
            self.launch(task, "recovery", task.recovery_s)
        else:
            self.work(task)

    def work(self, task: CheckpointableJob) -> None:
        """Let a job that is in memory work, until it has ended if nothing happens."""
        if not task.begun:
            task.begun, task.waits_as = True, None
            self._execute(task, "work")
        else:
            self.launch(task, "work", task.rest_s(self._bs.time()))

    def launch(self, task: CheckpointableJob, doing: Doing, length_s: float) -> None:
        """A new span on the machines that the job has."""
        task.job = self._submit(task, doing, length_s)
        self._lifecycle.states[task.job.id] = task
        self._execute(task, doing)
        if doing != "work":
            self._bs.set_job_metadata(task.job.id, CHECKPOINT if doing == "checkpoint" else RECOVERY)

    def _submit(self, task: CheckpointableJob, doing: Doing, length_s: float) -> Job:
        profile = self._lengths.lasting(task.job, max(round(length_s, _ROUNDED), _LEAST_S))
        return self._lifecycle.attempt(task.job, profile, self._walltime(task, doing))

    def kill(self, task: CheckpointableJob, then: Then) -> None:
        """End a span; `then` says what comes after that."""
        task.then, task.checkpoint_at_s = then, None
        if task.doing == "work" and then != "lose":
            self._bs.set_job_metadata(task.job.id, CHECKPOINTED)
        self._lifecycle.kill([task])

    def leave(self, task: CheckpointableJob) -> None:
        """A job that has no segment leaves its machines, with what is saved, and waits."""
        task.work_s = task.saved_s
        task.leaves, task.checkpoint_at_s = False, None
        self.fleet.remove(task)
        self._wait(task)

    def refuse(self, task: CheckpointableJob) -> None:
        """Forget a job that waits and can never run again."""
        self._leave_queue(task)
        self._lifecycle.reject([self._given_up(task)], UNFIT)

    def leave_waiting(self) -> list[Job]:
        """Forget the jobs that wait."""
        waiting = list(self.waiting.values())
        self.waiting.clear()
        self.kinds.clear()
        return [self._given_up(task) for task in waiting]

    def _given_up(self, task: CheckpointableJob) -> Job:
        """What stands for a job that waits and is forgotten: itself, or what was left of it when it had to leave."""
        self._lifecycle.live -= 1
        if not task.begun:
            self._lifecycle.states.pop(task.job.id)
            return task.job
        return self._submit(task, "work", task.length_s - task.work_s)

    def tasks(self) -> Iterable[CheckpointableJob]:
        """What is on machines."""
        return cast(Iterable[CheckpointableJob], self.fleet.tasks.values())

    def _walltime(self, task: CheckpointableJob, doing: Doing) -> float:
        limited = doing == "work" and task.walltime_s < math.inf
        return max(task.walltime_s - task.work_s, LAG_S) if limited else NO_WALLTIME

    def _execute(self, task: CheckpointableJob, doing: Doing) -> None:
        task.doing, task.start_s = doing, self._bs.time()
        task.job.allocation = HostSet(self._hosts.take(task, self.fleet))
        self._bs.execute_job(task.job)

    def _wait(self, task: CheckpointableJob) -> None:
        task.doing = "waiting"
        self.waiting[task.number] = task
        insort(self.kinds.setdefault(_kind_of(task), []), task, key=_number)
        self.room = True

    def _leave_queue(self, task: CheckpointableJob) -> None:
        del self.waiting[task.number]
        kind = _kind_of(task)
        alike = self.kinds[kind]
        del alike[bisect_left(alike, task.number, key=_number)]
        if not alike:
            del self.kinds[kind]

    def end(self, task: CheckpointableJob) -> None:
        """A job is over, or given up."""
        self._lifecycle.live -= 1
        self.fleet.remove(task)
        self.room = True


def in_order(tasks: Iterable[CheckpointableJob]) -> list[CheckpointableJob]:
    """In the order of submission."""
    return sorted(tasks, key=_number)


def _kind_of(task: CheckpointableJob) -> Kind:
    return task.width, task.recovery_s if task.begun else 0.0, task.checkpoint_s


def period_job(
    task: CheckpointableJob, state: State, *, checkpoint_s: float | None = None, recovering_s: float = 0.0
) -> PeriodJob:
    """A job as a plan sees it: without an end, since others get what it leaves free before the next change."""
    return PeriodJob(
        id=task.name,
        processors=task.width,
        checkpoint_s=task.checkpoint_s if checkpoint_s is None else checkpoint_s,
        recovery_s=task.recovery_s if task.begun else 0.0,
        state=state,
        recovering_s=recovering_s,
    )


def waiting_job(task: CheckpointableJob) -> PeriodJob:
    """A job that waits as a plan sees it; there are many, and most have waited before."""
    if task.waits_as is None:
        task.waits_as = period_job(task, "stopped")
    return task.waits_as


def _cost_in(raw: Mapping[str, Any], name: str, otherwise: float, job_id: str) -> float:
    """The time of a checkpoint or recovery, of a job or by the option; InputError if Batsim's clock cannot tell it."""
    value = number_in(raw, name, otherwise, job_id, zero=True)
    if 0.0 < value < _LEAST_S:
        problem = f"job {job_id}: {name} must be 0 or at least {_LEAST_S:g} s, got {value!r}"
        raise InputError(
            "workload", problem, "Batsim's clock knows no less; correct the job, or the option of that name"
        )
    return value
