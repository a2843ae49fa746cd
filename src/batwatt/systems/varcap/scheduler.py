"""Base of the schedulers that react to a capacity in machines, such as those of the varcap dissertation.

The rules: docs/explanation/varcap.md.

Unlike the schedulers of planners they follow messages of Batsim: ends, kills and switches are known when they are
announced, so run times may be unknown. Nothing starts while something that was killed has not ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from batwatt.scheduling.base import Job
from batwatt.scheduling.capacity import CapacityScheduler, VaryingOptions
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.foresight import CapacityForecast, Foresight
from batwatt.scheduling.jobs import ManagedJob, Places
from batwatt.scheduling.node_selection import First, NodeSelection
from batwatt.scheduling.transitions import outage
from batwatt.scheduling.victims import Resubmit, VictimRule, Victims
from batwatt.systems.varcap.flow import JobFlow
from batwatt.systems.varcap.mapping import MappingPolicy
from batwatt.systems.varcap.migration import leaving, move
from batwatt.systems.varcap.preemption import Preemption, Preemptions
from batwatt.systems.varcap.queues import Range
from batwatt.systems.varcap.terminations import Termination
from batwatt.units import LAG_S

Settings = TypeVar("Settings", bound=VaryingOptions)
Parts: TypeAlias = tuple[MappingPolicy, Termination, CapacityForecast | None, Preemption | None]


class VaryingScheduler(CapacityScheduler[Settings]):
    """A scheduler that starts, kills and moves jobs on machines that come and go; subclasses give the parts."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.victim: VictimRule = Resubmit()
        """Rule for jobs that are killed."""
        self.selection: NodeSelection = First()
        self._checked = int(self.capacity.most())

    @property
    def loses_work(self) -> bool:
        """True if the work of a job that is killed is done again."""
        return not self.victim.needs_lengths

    @abstractmethod
    def make_parts(self, machines: int) -> Parts:
        """Return the parts for `machines` machines: without a forecast the future is unknown."""

    @abstractmethod
    def know(self, length_s: float) -> tuple[float, bool]:
        """Return the run time in s that mappings assume of a job of a length, and whether it is taken for long."""

    @property
    def classes_exactly(self) -> bool:
        """True if `know` takes exact run times where orders and reservations go by requests."""
        return False

    def to_itself(self, cpus: int) -> int:
        """Return the number of machines that a job has to itself; 0: it shares one."""
        return -(-cpus // self.fleet.cores) if cpus > self.fleet.cores else 0

    def without_requests(self) -> str:
        """See `Scheduler`."""
        return "they are planned by their exact run times"

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the parts for the machines, which are known from now on."""
        super().onSimulationBegins()
        machines = len(self.hosts)
        self.mapping, self.termination, forecast, preemption = self.make_parts(machines)
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)
        self.termination.loss_s = self.victims.loss_s
        self.preemptions: Preemptions | None = None
        if preemption is not None:
            ages = self.mapping.queues[0].ages
            self.preemptions = Preemptions(preemption, self.victim.checkpoint_s, self.victims.loss_s, ages)
        memory = self.settings.machine_memory
        self.fleet = Fleet(machines, self.hosts.cores, np.inf if memory is None else memory, self.mapping.stable)
        self.fleet.paces = self.paces if (self.paces != 1.0).any() else None
        self.fleet.foresight = Foresight(forecast)
        if type(self.selection) is not First:
            self.fleet.selection = self.selection
            self.hosts.describe(self.fleet, self.platform)
        self.flow = JobFlow(
            self, self.lifecycle, self.lengths, self.victims, self.hosts, self.fleet, self.mapping, self.preemptions
        )

    def arrived(self, job: Job) -> None:
        """Let a job wait, unless it can never run."""
        self.flow.arrived(job)

    def job_state(self, job: Job) -> ManagedJob:
        """Return the managed job of a job that arrives. Raises InputError."""
        return self.flow.job_state(job)

    def onJobCompletion(self, job: Job) -> None:
        """End a run: the job is done, goes on elsewhere, or waits again."""
        self.flow.ended(job, self.stopped)

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Note that there may be room."""
        super().onMachinePStateChanged(nodeid, pstate)
        self.flow.freed = True

    def onNoMoreJobsInWorkloads(self) -> None:
        """Note that no job comes any more, so that unknown jobs that others wait for never come."""
        super().onNoMoreJobsInWorkloads()
        unknown, ready = self.flow.dependencies.no_more()
        if unknown:
            text = "%d jobs depend on jobs that are not in the workload, such as %s: taken for completed"
            self.logger.warning(text, len(unknown), unknown[0])
        for task in ready:
            self.flow.wait(task)

    # steps ------------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """See `CapacityScheduler`."""
        if self.lifecycle.pending and (self.mapping.migrates or self.flow.to_move):
            return  # what moves has left one place and not come to the other
        if self.flow.to_move:
            self._start_moved()
        alive = self.service_changed()
        while self.step_s <= now_s + LAG_S:
            alive = self.step()
        if alive is not None:
            self.change(alive, now_s)
        foresight = self.fleet.foresight
        if foresight.has_forecast and foresight.look(now_s, alive is not None, self.fleet.until_s):
            self.flow.freed = True

    def change(self, alive: int, now_s: float) -> None:
        """Apply a capacity of `alive` machines from now on."""
        fleet, mapping = self.fleet, self.mapping
        self.flow.freed = True
        if fleet.serving < alive:
            self.hosts.serve(fleet, fleet.unserved(alive - fleet.serving), True)
        elif fleet.serving > alive:
            termination = self.termination
            for lowest in (mapping.stable, 0):
                if self.mapping.migrates or termination.idle_first:
                    self._leave(fleet.idle(True, lowest)[::-1][: fleet.serving - alive])
                if fleet.serving > alive:
                    if self.mapping.migrates:
                        self._migrate(fleet.serving - alive, now_s)
                    else:
                        self._terminate(termination, lowest, alive, now_s)
        mapping.follow(alive)
        most = self.most_machines()
        if most < self._checked:
            # jobs that arrive are checked when they do
            self._checked = most
            unfit = [
                task
                for queue in mapping.queues
                for task in queue.drop(lambda task: not self.flow.can_ever_run(task, most))
            ]
            if self.preemptions is not None:
                for task in unfit:
                    self.preemptions.leave(task)
            held = [task for task in self.flow.dependencies.held() if not self.flow.can_ever_run(task, most)]
            self.flow.reject([*unfit, *held], ())

    def _terminate(self, termination: Termination, lowest: int, alive: int, now_s: float) -> None:
        """Let victims go until no more machines than `alive` are in service; their tasks are killed."""
        fleet = self.fleet
        if not termination.idle_first:
            order = termination.order(fleet.serving_from(lowest), fleet, now_s)[: fleet.serving - alive]
            for machine in order.tolist():
                self._kill_all(list(fleet.on(machine)), now_s)
            self._leave(order)
            return
        for machine in termination.order(fleet.busy(lowest), fleet, now_s).tolist():
            if fleet.serving <= alive:
                return
            victims = list(fleet.on(machine))
            if not victims:
                continue  # another one freed it before
            # whatever its tasks free may leave, the least safe first
            freed = np.unique(np.concatenate([task.places for task in victims]))[::-1]
            leaving = freed[(freed >= lowest) & fleet.in_service[freed]][: fleet.serving - alive]
            self._kill_all(victims, now_s)
            self._leave(leaving)

    def _kill_all(self, victims: list[ManagedJob], now_s: float) -> None:
        """Kill the tasks of a machine."""
        for task in victims:
            self.fleet.remove(task)
        self._decide(victims, _spans_of(victims, now_s))
        self.lifecycle.kill(victims)

    def _migrate(self, excess: int, now_s: float) -> None:
        """Let machines leave, and their jobs go elsewhere."""
        gone = leaving(self.fleet, excess)
        displaced = {task.number: task for machine in gone.tolist() for task in self.fleet.on(machine)}
        self._leave(gone)
        # before the moves: the same fall of the capacity may kill a task that it moved first
        spans = _spans_of(self.fleet.tasks.values(), now_s)
        moved, killed = move(self.fleet, displaced.values(), now_s, self.termination)
        for task in moved:
            task.moving = True
            self.flow.to_move.append(task)
            self.victims.moved(task.job, task.length_s, task.left_s, *spans[task.number])
        self._decide(killed, spans)
        self.lifecycle.kill(killed + moved)

    def _decide(self, tasks: list[ManagedJob], spans: dict[int, tuple[float, float]]) -> None:
        for task in tasks:
            if not task.dying:
                self.victims.killed(task.job, *spans[task.number])

    def _leave(self, machines: Places) -> None:
        if len(machines):
            self.hosts.serve(self.fleet, machines, False)

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch machines, go on with moved jobs, and start the jobs that can start."""
        if self.lifecycle.pending:
            return
        now_s = self.bs.time()
        self.switch()
        if self.flow.to_move:
            self._start_moved()
        preemptions = self.preemptions
        if preemptions is not None:
            self._preempt(preemptions, now_s)
        if self.lifecycle.pending:
            return
        self.flow.fill(now_s)
        if preemptions is not None:
            preemptions.announce(self.fleet, self.mapping.ranges, now_s)
            for notice in preemptions.notices:
                self.lifecycle.wake_at(notice.due_s, now_s)

    def _preempt(self, preemptions: Preemptions, now_s: float) -> None:
        """Stop tasks so that others start, which have their machines from now on."""
        fleet, mapping = self.fleet, self.mapping
        for notice in preemptions.due(now_s + LAG_S):
            task, queue, where = notice.task, mapping.queues[notice.queue], mapping.ranges[notice.queue]
            victims = [(victim, victim.places) for victim in notice.running(fleet)]
            if not victims or not preemptions.waits(notice):
                continue
            for victim, _ in victims:
                fleet.remove(victim)
            places = fleet.place(task, now_s, where.low, where.high, where.upwards)
            if places is None:  # others have gone, or machines have
                for victim, its in victims:
                    fleet.add(victim, its, victim.start_s)
                continue
            queue.remove(task)
            preemptions.leave(task)
            task.start_s, task.moving = now_s, True
            fleet.add(task, places, now_s)
            self.flow.to_move.append(task)
            self.flow.freed = True
            stopped = [victim for victim, _ in victims]
            for victim in stopped:
                victim.preempted += 1
            self._decide(stopped, _spans_of(stopped, now_s))
            self.lifecycle.kill(stopped)

    def _start_moved(self) -> None:
        """Go on with moved jobs, as all that was killed for them has ended."""
        for task in self.flow.to_move:
            task.moving = False
            if self.fleet.stranded(task):
                self.fleet.remove(task)
                self.flow.wait(task)
                self.flow.freed = True
            else:
                self.execute(task)
        self.flow.to_move.clear()

    def execute(self, task: ManagedJob) -> None:
        """Start a job on the machines that the fleet has for it."""
        self.flow.execute(task)

    # waiting and giving up --------------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        queued = [task for queue in self.mapping.queues for task in queue.drop(lambda task: True)]
        waiting = sorted([*queued, *self.flow.dependencies.leave()], key=lambda task: task.number)
        waiting += [task for task in self.flow.to_move if not task.dying]
        running = [task for task in self.fleet.tasks.values() if not task.dying and not task.moving]
        for task in self.flow.to_move:
            task.moving = False
        self.flow.to_move.clear()
        for task in waiting:
            del self.lifecycle.states[task.job.id]
            if len(task.places):
                self.fleet.remove(task)
        self.lifecycle.give_up(task.job for task in waiting)
        self.lifecycle.live -= len(waiting)
        for task in running:
            self.victims.stopped(task.job, self.bs.time() - task.start_s)
        self.lifecycle.kill(running)

    def unrunnable(self) -> tuple[list[Job], str]:
        """See `CapacityScheduler`."""
        if self.fleet.tasks or self.lifecycle.pending or self.flow.to_move:
            return [], ""
        if any(self.waiting()):
            if self.fleet.outs and not self.transitions.pending:
                self._reject_stuck(self.bs.time())
            return [], ""
        cyclic = self.flow.dependencies.leave()
        for task in cyclic:
            del self.lifecycle.states[task.job.id]
        self.lifecycle.live -= len(cyclic)
        return [task.job for task in cyclic], "waiting for each other in a circle"

    def _reject_stuck(self, now_s: float) -> None:
        """Reject the jobs that do not fit on the machines in service, on which nothing runs, and start others."""
        fleet, mapping = self.fleet, self.mapping
        stuck: list[ManagedJob] = []
        for queue, where in zip(mapping.queues, mapping.ranges, strict=True):

            def unfit(task: ManagedJob, where: Range = where) -> bool:
                return fleet.place(task, now_s, where.low, where.high, where.upwards, blind=True) is None

            stuck += queue.drop(unfit)
        if self.preemptions is not None:
            for task in stuck:
                self.preemptions.leave(task)
        self.flow.reject(stuck, (), outage(self.transitions.out))
        self.flow.freed = True
        self.flow.fill(now_s)

    def waiting(self) -> Iterable[ManagedJob]:
        """See `CapacityScheduler`."""
        return (task for queue in self.mapping.queues for task in queue.tasks())

    def give_up(self, jobs: list[ManagedJob], why: str) -> None:
        """See `CapacityScheduler`."""
        numbers = {task.number for task in jobs}
        unfit = [task for queue in self.mapping.queues for task in queue.drop(lambda task: task.number in numbers)]
        if self.preemptions is not None:
            for task in unfit:
                self.preemptions.leave(task)
        self.flow.reject(unfit, (), why)
        self.flow.freed = True


def _spans_of(tasks: Iterable[ManagedJob], now_s: float) -> dict[int, tuple[float, float]]:
    """Return by task number how long its run has lasted at a time: at nominal speed, and on its hosts, s."""
    return {task.number: (task.ran_s(now_s), now_s - task.start_s) for task in tasks}
