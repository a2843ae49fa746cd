"""Schedulers of machines that come and go: the base that carries out what a planner of machines says.

A machine is all hosts with the same property `machine`, or a host if there is none. How many machines are alive is a
series that the scheduler follows step by step. It hands the planner of the strategy the jobs and the steps at their
nominal times, starts and kills jobs, submits killed ones again (from zero), and switches machines off and on.
It never acts on part of a message, and runs unchanged on the embedded engine and on a real Batsim, whose times lag
behind the nominal ones by a few microseconds: a start waits for the ends and switches that it depends on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, ClassVar

from batwatt.inputs.series.capacity import checked_capacity
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.workload import REMAINDER
from batwatt.scheduling.base import Job
from batwatt.scheduling.capacity import CapacityScheduler
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.registry import find, make
from batwatt.scheduling.victims import VictimRule, Victims
from batwatt.systems.riskaware import strategies  # noqa: F401  (registers its parts)
from batwatt.systems.riskaware.machines import Machine, ManagedJob, build_machines
from batwatt.systems.riskaware.options import RiskawareOptions
from batwatt.systems.riskaware.strategy import MachineJob, MachinePlanner, Site
from batwatt.units import LAG_S


class MachineScheduler(CapacityScheduler[RiskawareOptions]):
    """Carries out what the planner of the chosen strategy says."""

    Options: ClassVar[type[RiskawareOptions]] = RiskawareOptions
    lifecycle: JobLifecycle[ManagedJob]

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        # a wrong name is an error before anything runs
        self._strategy = find("strategy", self.settings.strategy)
        self.victim: VictimRule = make("victim", self.settings.victim)
        self._by_number: list[ManagedJob] = []
        self._arrived: list[tuple[float, float, Any, ManagedJob]] = []
        """(submission in s, release in s, tie) of the jobs that the planner does not know yet."""
        self._ended: list[tuple[int, float]] = []
        self._due: set[int] = set()
        self._switching: set[int] = set()
        self._dropped = 0

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Build the machines."""
        super().onSimulationBegins()
        hosts = [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]
        self.machines, self._off_state, self._on_state = build_machines(hosts, self.settings.switch)
        self.cores = self.machines[0].hosts.bit_count()
        checked_capacity(self.capacity, len(self.machines), self.capacity.source)
        self._machine_of_host = {
            host: number for number, machine in enumerate(self.machines) for host in hostset.ids(machine.hosts)
        }
        site = Site(len(self.machines), self.cores, self.capacity, self.settings)
        self.planner: MachinePlanner = self._strategy.for_site(site)
        self.planner.victim = self.victim
        self.victims = Victims(self.victim, self.lifecycle, self.lengths)

    def arrived(self, job: Job) -> None:
        """Take note of a job; one that is wider than a machine can never run and is rejected."""
        if job.requested_resources > self.cores:
            self.lifecycle.reject([job], f"wider than a machine of {self.cores} cores")
            return
        release_s, length_s, run_s = self.lengths.described(job)
        tie = self.planner.tie(job.id.partition("!")[2])
        work = ManagedJob(MachineJob(-1, release_s, length_s, run_s, job.requested_resources), job)
        self._arrived.append((float(job.submit_time), release_s, tie, work))

    def onJobCompletion(self, job: Job) -> None:
        """Free its cores; submit it again if it was killed for its machine."""
        work, killed = self.lifecycle.ended(job)
        machine = self.machines[work.machine]
        machine.free |= work.hosts
        work.hosts = 0
        if killed:
            if not self.stopped:
                self._submit_again(work)
            return
        # also one that ended before it could be killed
        work.wanted = False
        self.lifecycle.live -= 1
        self._ended.append((work.plan.number, self.bs.time()))

    def _submit_again(self, work: ManagedJob) -> None:
        """Register what follows the run of a job that was killed, unless the job is lost."""
        told = self.victims.next_of(work.job)
        if told is None:
            self.lifecycle.live -= 1
            return
        work.job = self.victims.again(work.job, told)
        self.lifecycle.states[work.job.id] = work
        if work.early and self.settings.as_published and not told.saved_s:
            self.bs.set_job_metadata(work.job.id, REMAINDER)

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Hosts arrived in a p-state; a machine has when all of its hosts have."""
        low, high = nodeid
        host = low
        while host <= high:
            machine = self.machines[self._machine_of_host[host]]
            machine.arrived |= machine.hosts & hostset.span(low, high)
            if machine.arrived == machine.hosts:
                machine.changing, machine.arrived = False, 0
                machine.on = int(pstate) == self._on_state
            host = max(machine.hosts.bit_length(), host + 1)

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run, and of what the planner noticed."""
        super().onSimulationEnds()
        if self._dropped:
            text = "%d jobs from before the window found no room at its begin and were left out (as_published)"
            self.logger.warning(text, self._dropped)
        remark = self.planner.remark()
        if remark:
            self.logger.warning("%s", remark)

    def finished(self) -> bool:
        """See `CapacityScheduler`."""
        return self.lifecycle.finished and not any(work.hosts for work in self.lifecycle.states.values())

    # the planner ------------------------------------------------------------------------------------------------

    def process_events(self, now_s: float) -> None:
        """Hand over, time by time, the steps and the jobs of this message, after the ends before them."""
        decisions: list[int] = []
        dropped: list[int] = []
        until_s = 0.0
        for number, time_s in self._ended:
            end_s = self.planner.end_s(number)
            if end_s > time_s + LAG_S:
                decisions += self.planner.ended(number, time_s)
            else:
                until_s = max(until_s, end_s)
        if until_s > 0.0:
            decisions += self.planner.advance(until_s)
        self._ended.clear()
        # the next one last
        arrived = sorted(self._arrived, key=itemgetter(0, 1, 2))[::-1]
        self._arrived.clear()
        while (time_s := min(self.step_s, arrived[-1][0] if arrived else math.inf)) <= now_s + LAG_S:
            alive = self.step() if self.step_s == time_s else None
            batch: list[MachineJob] = []
            while arrived and arrived[-1][0] == time_s:
                batch.append(self._take(arrived.pop()[3]))
            decisions += self.planner.advance(max(time_s, until_s), alive, batch)
            dropped += self.planner.dropped()
            if alive is not None:
                self._update_wanted()
        self._receive(decisions)
        self._drop(dropped)

    def _drop(self, dropped: list[int]) -> None:
        """Reject what the planner will never start."""
        jobs = [self._by_number[number].job for number in dropped]
        for job in jobs:
            del self.lifecycle.states[job.id]
        self.lifecycle.live -= len(jobs)
        self._dropped += len(jobs)
        if jobs:
            self.bs.reject_jobs(jobs)

    def _take(self, work: ManagedJob) -> MachineJob:
        """Number a job for the planner."""
        plan = work.plan
        plan.number = len(self._by_number)
        work.early = plan.run_s < plan.length_s
        self.lifecycle.states[work.job.id] = work
        self._by_number.append(work)
        self.lifecycle.live += 1
        return plan

    def _receive(self, decisions: list[int]) -> None:
        """What is told in one message, in order: a job may start, be killed and start again elsewhere."""
        kills: list[ManagedJob] = []
        works = self._by_number
        for number in decisions:
            if number >= 0:
                works[number].wanted = True
                continue
            work = works[-1 - number]
            work.wanted = False
            if work.hosts and not work.dying:
                self.victims.killed(work.job, self.bs.time() - work.start_s)
                kills.append(work)
        for number in dict.fromkeys(decisions):
            if number >= 0 and works[number].wanted:
                place = self.planner.machine_of(number)
                self.machines[place].queue.append(works[number])
                self._due.add(place)
        self.lifecycle.kill(dict.fromkeys(kills))

    def _update_wanted(self) -> None:
        alive = set(self.planner.machines_alive())
        for number, machine in enumerate(self.machines):
            machine.wanted = number in alive
            if machine.wanted != machine.on:
                self._switching.add(number)

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Switch what can be switched, then start what can start."""
        self._switch()
        for number in sorted(self._due):
            machine = self.machines[number]
            if machine.on and not machine.changing:
                self._start(number, machine)
                if not machine.queue:
                    self._due.discard(number)

    def _switch(self) -> None:
        if self._off_state is None:
            return
        masks = {True: 0, False: 0}
        for number in sorted(self._switching):
            machine = self.machines[number]
            # what is late, and over by the plan when its machine goes, is still to run there
            late = any(work.wanted and self.planner.machine_of(work.plan.number) == number for work in machine.queue)
            wanted = machine.wanted or late
            if machine.on == machine.wanted and not machine.changing:
                self._switching.discard(number)
            elif machine.on != wanted and not machine.changing and machine.free == machine.hosts:
                machine.changing = True
                masks[wanted] |= machine.hosts
        for on, mask in masks.items():
            if mask:
                self.bs.set_resource_state(HostSet(mask), self._on_state if on else self._off_state)

    def _start(self, number: int, machine: Machine) -> None:
        """Start the jobs that are due on a machine, as far as they are here and their cores are free."""
        left: deque[ManagedJob] = deque()
        for work in machine.queue:
            if not work.wanted or self.planner.machine_of(work.plan.number) != number:
                continue  # killed, and perhaps due elsewhere
            cores = work.plan.cores
            if work.hosts or machine.free.bit_count() < cores:
                left.append(work)
                continue
            work.wanted = False
            work.machine, work.start_s = number, self.bs.time()
            work.hosts = hostset.lowest(machine.free, cores)
            machine.free ^= work.hosts
            work.job.allocation = HostSet(work.hosts)
            self.bs.execute_job(work.job)
        machine.queue = left

    # giving up --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `CapacityScheduler`."""
        running = [work for work in self.lifecycle.states.values() if work.hosts]
        self.lifecycle.give_up(self._leave_waiting())
        self.lifecycle.live = 0
        self.lifecycle.kill(running)

    def unrunnable(self) -> tuple[list[Job], str]:
        """See `CapacityScheduler`."""
        if self.planner.machines_alive():
            return [], ""
        waiting = self._leave_waiting()
        self.lifecycle.live = len(self.lifecycle.states)
        return waiting, "no machine is alive any more"

    def _leave_waiting(self) -> list[Job]:
        """Forget the jobs that wait."""
        states = self.lifecycle.states
        waiting = [work.job for work in states.values() if not work.hosts]
        self.lifecycle.states = {name: work for name, work in states.items() if work.hosts}
        return waiting
