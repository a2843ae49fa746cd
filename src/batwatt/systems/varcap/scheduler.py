"""Schedulers that react to a capacity in machines: what the varcap dissertation's have in common (docs/varcap.md).

Unlike the schedulers of planners they go by what Batsim tells: ends, kills and switches are known when they are
announced, so run times may be unknown. Nothing starts while something that was killed has not ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from batwatt.model.hostset import HostSet
from batwatt.model.workload import DEPENDS, ESTIMATE, MEMORY, MIGRATED
from batwatt.scheduling.base import Job
from batwatt.scheduling.capacity import CapacityScheduler, VaryingOptions
from batwatt.scheduling.fleet import Fleet, JobState, Places
from batwatt.scheduling.foresight import Foresight
from batwatt.scheduling.job_lengths import number_in
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.node_selection import First, NodeSelection
from batwatt.scheduling.victims import NextRun, Resubmit, VictimRule, Victims
from batwatt.systems.varcap.dependencies import Dependencies
from batwatt.systems.varcap.mapping import Components
from batwatt.systems.varcap.migration import leaving, move
from batwatt.systems.varcap.terminations import Termination
from batwatt.units import LAG_S

Settings = TypeVar("Settings", bound=VaryingOptions)
UNFIT = "for want of machines or memory"
ORPHANS = "as they depend on jobs that did not complete"


class VaryingScheduler(CapacityScheduler[Settings]):
    """Starts, kills and moves jobs on machines that come and go; subclasses give the parts and what is known."""

    lifecycle: JobLifecycle[JobState]

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._count = 0
        self.victim: VictimRule = Resubmit()
        """What becomes of what is killed."""
        self.selection: NodeSelection = First()
        self._to_move: list[JobState] = []
        self._freed = True
        self._waiting_for = Dependencies()
        self._checked = int(max(value for _, value in self.steps))

    @abstractmethod
    def make_parts(self, machines: int) -> Components:
        """The parts for that many machines."""

    @abstractmethod
    def know(self, length_s: float, estimate_s: float) -> tuple[float, bool]:
        """The run time in s that is assumed of a job, and whether it is taken for long."""

    def to_itself(self, cpus: int) -> int:
        """How many machines a job has to itself; 0: it shares one."""
        return -(-cpus // self.fleet.cores) if cpus > self.fleet.cores else 0

    def rank(self, submit_s: float, now_s: float, again: bool) -> float:
        """Where a job stands in a queue of first come, first served."""
        return submit_s

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """The machines are known, and the parts are made for them."""
        super().onSimulationBegins()
        machines = len(self.hosts)
        self.parts = self.make_parts(machines)
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)
        memory = self.settings.machine_memory
        self.fleet = Fleet(machines, self.hosts.cores, np.inf if memory is None else memory, self.parts.mapping.stable)
        self.fleet.foresight = Foresight(self.parts.forecast)
        if type(self.selection) is not First:
            self.fleet.selection = self.selection
            self.hosts.describe(self.fleet, self.platform)

    def arrived(self, job: Job) -> None:
        """A job waits, unless it can never run."""
        task = self.job_state(job)
        self.lifecycle.states[job.id] = task
        self.lifecycle.live += 1
        if self._can_ever_run(task, self.most_machines()):
            depends = (job.json_dict or {}).get(DEPENDS) or ()
            if not self._waiting_for.submitted(task, depends):
                self._reject([], [task])
            elif not task.missing:
                self._wait(task)
        else:
            self._reject([task])

    def job_state(self, job: Job) -> JobState:
        """What is tracked of a job that arrives. Raises InputError."""
        raw = job.json_dict or {}
        _, length_s, run_s = self.lengths.described(job)
        estimate_s = number_in(raw, ESTIMATE, length_s, job.id, zero=False)
        memory = number_in(raw, MEMORY, 0.0, job.id, zero=True) if self.fleet.memory_each < np.inf else 0.0
        assumed_s, long = self.know(length_s, estimate_s)
        self._count += 1
        machines = self.to_itself(job.requested_resources)
        task = JobState(self._count, job, machines, length_s, run_s, estimate_s, assumed_s, long, memory)
        task.rank = self.rank(task.submit_s, task.submit_s, again=False)
        return task

    def onJobCompletion(self, job: Job) -> None:
        """A run has ended: the job is done, goes on elsewhere, or waits again."""
        task, killed = self.lifecycle.ended(job)
        if killed and not self.stopped:
            self._again(task)
            return
        if len(task.places):
            self.fleet.remove(task)
        if task.moving:
            task.moving = False
            self._to_move.remove(task)
        self._freed = True
        self._done(task, success=job.job_state is Job.State.COMPLETED_SUCCESSFULLY)

    def _again(self, task: JobState) -> None:
        """A run was killed: submit the job again, with what is left of it, or let it be lost."""
        told = self.victims.next_of(task.job)
        if told is None:
            self._done(task, success=False)
            return
        task.job = self.victims.again(task.job, told)
        self.lifecycle.states[task.job.id] = task
        if task.moving:
            return
        task.left_s = told.run_s if told.saved_s > 0.0 else task.length_s
        task.rank = self.rank(task.submit_s, self.bs.time(), again=True)
        if self._can_ever_run(task, self.most_machines()):
            self._wait(task)
        else:
            self._reject([task])

    def _done(self, task: JobState, success: bool) -> None:
        self.lifecycle.live -= 1
        others = self._waiting_for.ended(task, success)
        if success:
            for other in others:
                self._wait(other)
        else:
            self._reject([], others)

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """There may be room."""
        super().onMachinePStateChanged(nodeid, pstate)
        self._freed = True

    def onNoMoreJobsInWorkloads(self) -> None:
        """No job comes any more, so what is waited for and unknown never comes."""
        super().onNoMoreJobsInWorkloads()
        unknown, ready = self._waiting_for.no_more()
        if unknown:
            text = "%d jobs depend on jobs that are not in the workload, such as %s: taken for completed"
            self.logger.warning(text, len(unknown), unknown[0])
        for task in ready:
            self._wait(task)

    # steps ------------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """See `CapacityScheduler`."""
        if self.lifecycle.pending and self.parts.mapping.migrates:
            return  # what moves has left one place and not come to the other
        self._start_moved()
        alive = None
        while self.step_s <= now_s + LAG_S:
            alive = self.step()
        if alive is not None:
            self.change(alive, now_s)
        if self.fleet.foresight.look(now_s, alive is not None, self.fleet.until_s):
            self._freed = True

    def change(self, alive: int, now_s: float) -> None:
        """So many machines may be in service from now on."""
        fleet, mapping = self.fleet, self.parts.mapping
        self._freed = True
        if fleet.serving < alive:
            back = np.flatnonzero(~fleet.in_service)[: alive - fleet.serving]
            self.hosts.serve(fleet, back, True)
        elif fleet.serving > alive:
            termination = self.parts.termination
            for lowest in (mapping.stable, 0):
                if self.parts.mapping.migrates or termination.idle_first:
                    self._leave(fleet.idle(True, lowest)[::-1][: fleet.serving - alive])
                if fleet.serving > alive:
                    if self.parts.mapping.migrates:
                        self._migrate(fleet.serving - alive, now_s)
                    else:
                        self._terminate(termination, lowest, alive, now_s)
        mapping.follow(alive)
        most = self.most_machines()
        if most < self._checked:
            # what arrives is checked when it does
            self._checked = most
            unfit = (queue.drop(lambda task: not self._can_ever_run(task, most)) for queue in mapping.queues)
            held = [task for task in self._waiting_for.held() if not self._can_ever_run(task, most)]
            self._reject([*(task for tasks in unfit for task in tasks), *held])

    def _terminate(self, termination: Termination, lowest: int, alive: int, now_s: float) -> None:
        """Let victims go until no more machines than `alive` are in service; their tasks are killed."""
        fleet = self.fleet
        candidates = fleet.busy(lowest) if termination.idle_first else fleet.serving_from(lowest)
        for machine in termination.order(candidates, fleet, now_s).tolist():
            if fleet.serving <= alive:
                return
            victims = list(fleet.on(machine))
            leaving = np.array([machine])
            if termination.idle_first:
                if not victims:
                    continue  # another one freed it before
                # whatever its tasks free may leave, the least safe first
                leaving = np.unique(np.concatenate([task.places for task in victims]))[::-1]
                leaving = leaving[leaving >= lowest][: fleet.serving - alive]
            for task in victims:
                fleet.remove(task)
            self._decide(victims, now_s)
            self.lifecycle.kill(victims)
            self._leave(leaving)

    def _migrate(self, excess: int, now_s: float) -> None:
        """Let machines leave, and their jobs go elsewhere."""
        gone = leaving(self.fleet, excess)
        displaced = {task.number: task for machine in gone.tolist() for task in self.fleet.on(machine)}
        self._leave(gone)
        moved, killed = move(self.fleet, displaced.values(), now_s, self.parts.termination)
        for task in moved:
            task.moving = True
            self._to_move.append(task)
            self.victims.decide(task.job, NextRun(task.left_s, task.length_s - task.left_s, killed=MIGRATED))
        self._decide(killed, now_s)
        self.lifecycle.kill(killed + moved)

    def _decide(self, tasks: list[JobState], now_s: float) -> None:
        for task in tasks:
            if not task.dying:
                self.victims.killed(task.job, now_s - task.part_s)

    def _leave(self, machines: Places) -> None:
        if len(machines):
            self.hosts.serve(self.fleet, machines, False)

    def _can_ever_run(self, task: JobState, most: int) -> bool:
        mapping, each = self.parts.mapping, self.fleet.memory_each
        memory = task.memory / task.width
        return memory <= each and task.width <= mapping.most_machines(mapping.queue_of(task), most)

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch, go on with what was moved, and start what can start."""
        if self.lifecycle.pending:
            return
        now_s = self.bs.time()
        self.switch()
        self._start_moved()
        mapping = self.parts.mapping

        def start(task: JobState, places: Places) -> None:
            task.part_s = now_s
            self.fleet.add(task, places, now_s)
            self.execute(task)

        for queue, where in zip(mapping.queues, mapping.ranges, strict=True):
            queue.fill(self.fleet, now_s, where, start, self._freed)
        self._freed = False

    def _start_moved(self) -> None:
        """Go on with what was moved, once all that was killed for it has ended."""
        if self.lifecycle.pending:
            return
        for task in self._to_move:
            task.moving = False
            self.execute(task)
        self._to_move.clear()

    def execute(self, task: JobState) -> None:
        """Start a job on the machines that the fleet has for it."""
        task.job.allocation = HostSet(self.hosts.take(task, self.fleet))
        self.bs.execute_job(task.job)

    # waiting and giving up --------------------------------------------------------------------------------------

    def _wait(self, task: JobState) -> None:
        self.parts.mapping.queues[self.parts.mapping.queue_of(task)].add(task)

    def _reject(self, unfit: list[JobState], orphans: Sequence[JobState] = ()) -> None:
        """Refuse jobs that can never run, and those that wait for them or for others that did not complete."""
        never = {task.number for task in unfit}
        todo = deque([*unfit, *orphans])
        refused: list[JobState] = []
        while todo:
            task = todo.popleft()
            if task.refused:
                continue
            task.refused = True
            refused.append(task)
            del self.lifecycle.states[task.job.id]
            todo.extend(self._waiting_for.ended(task, success=False))
        self.lifecycle.live -= len(refused)
        for task in refused:
            self.lifecycle.reject([task.job], UNFIT if task.number in never else ORPHANS)

    def _all_waiting(self) -> list[JobState]:
        queues = [task for queue in self.parts.mapping.queues for task in queue.drop(lambda task: True)]
        return sorted([*queues, *self._waiting_for.leave()], key=lambda task: task.number)

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        waiting = [*self._all_waiting(), *(task for task in self._to_move if not task.dying)]
        running = [task for task in self.fleet.tasks.values() if not task.dying and not task.moving]
        for task in self._to_move:
            task.moving = False
        self._to_move.clear()
        for task in waiting:
            del self.lifecycle.states[task.job.id]
            if len(task.places):
                self.fleet.remove(task)
        self.lifecycle.give_up(task.job for task in waiting)
        self.lifecycle.live -= len(waiting)
        self.lifecycle.kill(running)

    def unrunnable(self) -> tuple[list[Job], str]:
        """See `CapacityScheduler`."""
        if self.fleet.tasks or self.lifecycle.pending or self._to_move or any(self._waiting()):
            return [], ""
        cyclic = self._waiting_for.leave()
        for task in cyclic:
            del self.lifecycle.states[task.job.id]
        self.lifecycle.live -= len(cyclic)
        return [task.job for task in cyclic], "they wait for each other in a circle"

    def _waiting(self) -> Iterable[JobState]:
        return (task for queue in self.parts.mapping.queues for task in queue.tasks())
