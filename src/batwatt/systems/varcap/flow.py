"""Jobs between their arrival and their end: their queues, their starts, and the effects of their ends."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from batwatt.model.workload import DEPENDS, MEMORY
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.hosts import Hosts
from batwatt.scheduling.job_lengths import JobLengths, number_in, request_s
from batwatt.scheduling.jobs import ManagedJob, Places
from batwatt.scheduling.lifecycle import Job, JobLifecycle
from batwatt.scheduling.victims import Victims
from batwatt.systems.varcap.dependencies import Dependencies
from batwatt.systems.varcap.mapping import MappingPolicy
from batwatt.systems.varcap.preemption import Preemptions
from batwatt.systems.varcap.queues import Start

if TYPE_CHECKING:
    from batwatt.systems.varcap.scheduler import VaryingScheduler

UNFIT: Final = "not enough machines or memory"
ORPHANS: Final = "dependent on jobs that did not complete"
_GOOD: Final[Any] = Job.State.COMPLETED_SUCCESSFULLY


@final
class JobFlow:
    """Events of the jobs of a varying scheduler, which is called for the steps that its subclasses may change.

    `mapping` has the queues; `to_move` are the jobs that were killed to go on elsewhere; `freed`: more than arrivals
    may have changed since queues were looked at.
    """

    def __init__(
        self,
        scheduler: VaryingScheduler[Any],
        lifecycle: JobLifecycle,
        lengths: JobLengths,
        victims: Victims,
        hosts: Hosts,
        fleet: Fleet,
        mapping: MappingPolicy,
        preemptions: Preemptions | None,
    ) -> None:
        self._scheduler = scheduler
        self._bs = scheduler.bs
        self._lifecycle = lifecycle
        self.lengths = lengths
        self._victims = victims
        self._hosts = hosts
        self._fleet = fleet
        self._mapping = mapping
        self._preemptions = preemptions
        self.dependencies = Dependencies()
        self.to_move: list[ManagedJob] = []
        self.freed = True
        self._count = 0
        self._now_s = 0.0
        # methods are bound once
        self._starts: Start = self._start
        self._execute: Callable[[ManagedJob], None] = scheduler.execute

    # arrivals ---------------------------------------------------------------------------------------------------

    def arrived(self, job: Job) -> None:
        """Let a job wait, unless it can never run."""
        task = self._scheduler.job_state(job)
        lifecycle = self._lifecycle
        lifecycle.states[job.id] = task
        lifecycle.live += 1
        run_s = min(task.left_s, task.walltime_s)
        loses, capacity = self._scheduler.loses_work, self._scheduler.capacity
        why = lifecycle.too_long(capacity, task.width, "machines", run_s) if loses else ""
        if why:
            self.reject([task], (), why)
        elif self.can_ever_run(task, self._scheduler.most_machines()):
            raw: Any = job.json_dict
            if not self.dependencies.submitted(task, (raw.get(DEPENDS) or ()) if raw else ()):
                self.reject([], [task])
            elif not task.missing:
                self.wait(task)
        else:
            self.reject([task], ())

    def job_state(self, job: Job) -> ManagedJob:
        """Return the managed job of a job that arrives. Raises InputError."""
        raw: Any = job.json_dict or {}
        scheduler = self._scheduler
        release_s, length_s, run_s = self.lengths.described(job)
        memory = 0.0
        if scheduler.run_times is None:
            requested_s = request_s(job.requested_time, raw, job.id)
            estimate_s = bound_s = requested_s if requested_s < math.inf else length_s
        else:
            estimate_s, bound_s = scheduler.run_times.estimate(job)
        assumed_s, long = scheduler.know(length_s if scheduler.classes_exactly else estimate_s)
        if MEMORY in raw and self._fleet.memory_each < math.inf:
            memory = number_in(raw, MEMORY, 0.0, job.id, zero=True)
        self._count += 1
        machines = scheduler.to_itself(job.requested_resources)
        task = ManagedJob(self._count, job, length_s, run_s, estimate_s, assumed_s, long, machines, memory)
        task.release_s, task.bound_s = release_s, bound_s
        task.scales = self.lengths.scales(job)
        return task

    def can_ever_run(self, task: ManagedJob, most: int) -> bool:
        """Return whether a job can run on the machines of its queue when `most` are in service."""
        mapping, width = self._mapping, task.width
        enough = width <= mapping.most_machines(mapping.queue_of(task), most)
        return enough and task.memory / width <= self._fleet.memory_each

    def wait(self, task: ManagedJob) -> None:
        """Let a job wait in its queue."""
        index = self._mapping.queue_of(task)
        self._mapping.queues[index].add(task)
        if self._preemptions is not None:
            self._preemptions.wait(task, index)

    # ends -------------------------------------------------------------------------------------------------------

    def ended(self, job: Job, stopped: bool) -> None:
        """End a run: the job is done, goes on elsewhere, or waits again."""
        task, killed = self._lifecycle.ended(job)
        if killed and not stopped:
            self._again(task)
            return
        if len(task.places):
            self._fleet.remove(task)
        if task.moving:
            task.moving = False
            self.to_move.remove(task)
        self.freed = True
        self._done(task, job.job_state is _GOOD)

    def _again(self, task: ManagedJob) -> None:
        """Submit a job whose run was killed again, with the rest of it, or let it be lost."""
        victims = self._victims
        following = victims.next_of(task.job)
        if following is None:
            self._done(task, False)
            return
        task.job = victims.again(task.job, following)
        self._lifecycle.states[task.job.id] = task
        if task.moving:
            return
        task.left_s = following.run_s if following.saved_s > 0.0 else task.length_s
        if self.can_ever_run(task, self._scheduler.most_machines()):
            self.wait(task)
        else:
            self.reject([task], ())

    def _done(self, task: ManagedJob, success: bool) -> None:
        self._lifecycle.live -= 1
        if success and self._scheduler.run_times is not None:
            self._scheduler.run_times.learn(task.name)
        others = self.dependencies.ended(task, success)
        if success:
            for other in others:
                self.wait(other)
        elif others:
            self.reject([], others)

    def reject(self, unfit: list[ManagedJob], orphans: Sequence[ManagedJob], why: str = UNFIT) -> None:
        """Refuse jobs that can never run, and those that wait for them or for others that did not complete."""
        never = {task.number for task in unfit}
        todo = deque([*unfit, *orphans])
        refused: list[ManagedJob] = []
        while todo:
            task = todo.popleft()
            if task.refused:
                continue
            task.refused = True
            refused.append(task)
            del self._lifecycle.states[task.job.id]
            todo.extend(self.dependencies.ended(task, False))
        self._lifecycle.live -= len(refused)
        for task in refused:
            self._lifecycle.reject([task.job], why if task.number in never else ORPHANS)

    # starts -----------------------------------------------------------------------------------------------------

    def fill(self, now_s: float) -> None:
        """Start the jobs that can start."""
        self._now_s = now_s
        mapping = self._mapping
        for queue, where in zip(mapping.queues, mapping.ranges, strict=True):
            queue.fill(self._fleet, now_s, where, self._starts, self.freed)
        self.freed = False

    def _start(self, task: ManagedJob, places: Places) -> None:
        if self._preemptions is not None:
            self._preemptions.leave(task)
        task.start_s = self._now_s
        self._fleet.add(task, places, self._now_s)
        self._execute(task)

    def execute(self, task: ManagedJob) -> None:
        """Start a job on the machines that the fleet has for it."""
        self._lifecycle.execute(task, self._hosts.take(task, self._fleet))
