"""Jobs of `varcap` between arrival and end: what they depend on, their queues, starts, and the effects of ends."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, final

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.workload import DEPENDS, LONG_S, MEMORY
from batwatt.schedulers.varcap.machines import MappingPolicy
from batwatt.schedulers.varcap.preemption import Preemptions
from batwatt.schedulers.varcap.queues import Start
from batwatt.scheduling.fleet import Fleet, MachineHosts
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, Places, number_in, request_s
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.run_times import RunTimes
from batwatt.scheduling.victims import Victims


class Dependencies:
    """Jobs that wait for others. Names are full ids of the workload, such as `w0!17`."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._done: set[str] = set()
        self._lost: set[str] = set()
        self._held: dict[str, list[Job]] = {}
        self._more = True

    def submitted(self, task: Job, depends: object) -> bool:
        """Add a job that names the ids `depends`; return False if one of them was lost.

        `task.missing` counts the jobs that it waits for. Raises InputError if `depends` is no list of ids.
        """
        self._open.add(task.name)
        if not depends:
            return True
        if not isinstance(depends, list | tuple) or not all(isinstance(name, str | int) for name in depends):
            problem = f"job {task.name}: depends_on must be a list of ids, got {depends!r}"
            raise InputError("workload", problem, 'write it as in ["3", "17"]')
        workload = task.name.partition("!")[0]
        for name in dict.fromkeys(f"{workload}!{name}" for name in depends):
            if name in self._lost:
                return False
            if name not in self._done:
                task.missing += 1
                self._held.setdefault(name, []).append(task)
        return True

    def ended(self, task: Job, success: bool) -> list[Job]:
        """End a job; return those that waited for it, to go on (if they miss nothing more), or to be refused."""
        if self._more:
            self._open.discard(task.name)
            (self._done if success else self._lost).add(task.name)
        held = self._held.pop(task.name, None) if self._held else None
        if held is None:
            return []
        waited = [other for other in held if not other.refused]
        for other in waited:
            other.missing -= 1
        return [other for other in waited if not (success and other.missing)]

    def no_more(self) -> tuple[list[str], list[Job]]:
        """Note that no job comes any more; return the names that never came, and the jobs that miss only those."""
        unknown = [name for name in self._held if name not in self._open]
        ready = []
        for name in unknown:
            for task in self._held.pop(name):
                task.missing -= 1
                if not (task.missing or task.refused):
                    ready.append(task)
        # no job names another any more
        self._more = False
        self._open, self._done, self._lost = set(), set(), set()
        return unknown, ready

    def leave(self) -> list[Job]:
        """Remove and return all jobs that wait for others, in the order of their arrival."""
        held = self.held()
        self._held.clear()
        return held

    def held(self) -> list[Job]:
        """Return all jobs that wait for others, in the order of their arrival."""
        held = {task.number: task for tasks in self._held.values() for task in tasks if not task.refused}
        return [held[number] for number in sorted(held)]


UNFIT: Final = "not enough machines or memory"
ORPHANS: Final = "dependent on jobs that did not complete"
_GOOD: Final[Any] = BatsimJob.State.COMPLETED_SUCCESSFULLY


class Assumptions(NamedTuple):
    """Assumptions of mappings about jobs; `kind`: none of run times, the class (`long_s`, `longest_s`), or all of them.

    `exactly`: classes go by exact run times where orders and reservations go by requests. `dedicated`: no job shares a
    machine; else only those share none that need more cores than one has.
    """

    kind: str
    long_s: float = LONG_S
    longest_s: float = math.inf
    exactly: bool = False
    dedicated: bool = False

    def of(self, length_s: float) -> tuple[float, bool]:
        """Return the run time in s that is assumed of a job of a length in s, and whether it is taken for long."""
        long = length_s > self.long_s
        if self.kind == "none":
            return math.inf, long
        if self.kind == "class":
            return self.longest_s if long else self.long_s, long
        return length_s, long


@final
class JobFlow:
    """Events of the jobs of a varying scheduler.

    `mapping` has the queues; `to_move` are the jobs that were killed to go on elsewhere; `freed`: more than arrivals
    may have changed since queues were looked at; `most`: the most machines from the present step on. `lasting` is the
    capacity under which jobs that lose their work must be able to end, if they do; `execute` starts a placed job.
    """

    def __init__(
        self,
        lifecycle: JobLifecycle,
        lengths: JobLengths,
        victims: Victims,
        hosts: MachineHosts,
        fleet: Fleet,
        mapping: MappingPolicy,
        preemptions: Preemptions | None,
        assumptions: Assumptions,
        run_times: RunTimes | None,
        lasting: Timeline | None,
    ) -> None:
        self._assumptions = assumptions
        self._run_times = run_times
        self._lasting = lasting
        self._lifecycle = lifecycle
        self.lengths = lengths
        self._victims = victims
        self._hosts = hosts
        self._fleet = fleet
        self._mapping = mapping
        self._preemptions = preemptions
        self.dependencies = Dependencies()
        self.to_move: list[Job] = []
        self.freed = True
        self._count = 0
        self._now_s = 0.0
        self.most = 0
        # methods are bound once
        self._starts: Start = self._start
        self.execute: Callable[[Job], None] = self._execute

    # arrivals ---------------------------------------------------------------------------------------------------

    def arrive(self, task: Job) -> None:
        """Let a job wait, unless it can never run."""
        lifecycle = self._lifecycle
        lifecycle.jobs[task.attempt.id] = task
        lifecycle.live += 1
        run_s = min(task.left_s, task.walltime_s)
        lasting = self._lasting
        why = "" if lasting is None else lifecycle.too_long(lasting, task.width, "machines", run_s)
        if why:
            self.reject([task], (), why)
        elif self.can_ever_run(task, self.most):
            raw: Any = task.attempt.json_dict
            if not self.dependencies.submitted(task, (raw.get(DEPENDS) or ()) if raw else ()):
                self.reject([], [task])
            elif not task.missing:
                self.wait(task)
        else:
            self.reject([task], ())

    def read(self, job: BatsimJob) -> Job:
        """Return the managed job of a job that arrives. Raises InputError."""
        raw: Any = job.json_dict or {}
        assumptions, run_times = self._assumptions, self._run_times
        release_s, length_s, run_s = self.lengths.described(job)
        memory = 0.0
        if run_times is None:
            requested_s = request_s(job.requested_time, raw, job.id)
            estimate_s = bound_s = requested_s if requested_s < math.inf else length_s
        else:
            estimate_s, bound_s = run_times.estimate(job)
        assumed_s, long = assumptions.of(length_s if assumptions.exactly else estimate_s)
        if MEMORY in raw and self._fleet.memory_each < math.inf:
            memory = number_in(raw, MEMORY, 0.0, job.id, zero=True)
        self._count += 1
        cpus, cores = job.requested_resources, self._fleet.cores
        # the number of machines that a job has to itself; 0: it shares one
        machines = -(-cpus // cores) if assumptions.dedicated or cpus > cores else 0
        task = Job(self._count, job, length_s, run_s, estimate_s, assumed_s, long, machines, memory)
        task.release_s, task.bound_s = release_s, bound_s
        task.scales = self.lengths.scales(job)
        return task

    def can_ever_run(self, task: Job, most: int) -> bool:
        """Return whether a job can run on the machines of its queue when `most` are in service."""
        mapping, width = self._mapping, task.width
        enough = width <= mapping.most_machines(mapping.queue_of(task), most)
        return enough and task.memory / width <= self._fleet.memory_each

    def wait(self, task: Job) -> None:
        """Let a job wait in its queue."""
        index = self._mapping.queue_of(task)
        self._mapping.queues[index].add(task)
        if self._preemptions is not None:
            self._preemptions.wait(task, index)

    # ends -------------------------------------------------------------------------------------------------------

    def ended(self, job: BatsimJob, stopped: bool) -> None:
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

    def _again(self, task: Job) -> None:
        """Submit a job whose run was killed again, with the rest of it, or let it be lost."""
        victims = self._victims
        following = victims.next_of(task.attempt)
        if following is None:
            self._done(task, False)
            return
        task.attempt = victims.register_next(task.attempt, following)
        self._lifecycle.jobs[task.attempt.id] = task
        if task.moving:
            return
        task.left_s = following.run_s if following.saved_s > 0.0 else task.length_s
        if self.can_ever_run(task, self.most):
            self.wait(task)
        else:
            self.reject([task], ())

    def _done(self, task: Job, success: bool) -> None:
        self._lifecycle.live -= 1
        if success and self._run_times is not None:
            self._run_times.learn(task.name)
        others = self.dependencies.ended(task, success)
        if success:
            for other in others:
                self.wait(other)
        elif others:
            self.reject([], others)

    def reject(self, unfit: list[Job], orphans: Sequence[Job], why: str = UNFIT) -> None:
        """Refuse jobs that can never run, and those that wait for them or for others that did not complete."""
        never = {task.number for task in unfit}
        todo = deque([*unfit, *orphans])
        refused: list[Job] = []
        while todo:
            task = todo.popleft()
            if task.refused:
                continue
            task.refused = True
            refused.append(task)
            del self._lifecycle.jobs[task.attempt.id]
            todo.extend(self.dependencies.ended(task, False))
        self._lifecycle.live -= len(refused)
        for task in refused:
            self._lifecycle.reject([task.attempt], why if task.number in never else ORPHANS)

    # starts -----------------------------------------------------------------------------------------------------

    def fill(self, now_s: float) -> None:
        """Start the jobs that can start."""
        self._now_s = now_s
        mapping = self._mapping
        for queue, where in zip(mapping.queues, mapping.ranges, strict=True):
            queue.fill(self._fleet, now_s, where, self._starts, self.freed)
        self.freed = False

    def _start(self, task: Job, places: Places) -> None:
        if self._preemptions is not None:
            self._preemptions.leave(task)
        task.start_s = self._now_s
        self._fleet.add(task, places, self._now_s)
        self.execute(task)

    def _execute(self, task: Job) -> None:
        """Start a job on the machines that the fleet has for it."""
        self._lifecycle.execute(task, self._hosts.assign(task, self._fleet))
