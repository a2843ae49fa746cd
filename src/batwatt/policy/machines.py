"""Schedulers of machines that come and go: the base that carries out what a planner of machines says.

A machine is all hosts with the same property `machine`, or a host if there is none. How many machines are alive is a
series that the scheduler follows step by step. A subclass gives the planner; the base hands it the jobs and the steps
at their nominal dates, starts and kills jobs, submits killed ones again (from zero), and switches machines off and on.
It never acts on part of a message, and runs unchanged on the embedded engine and on a real Batsim, whose dates lag
behind the nominal ones by a few microseconds: a start waits for the ends and switches that it depends on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from batwatt.errors import InputError
from batwatt.inputs.batsim_json import parse_profile
from batwatt.inputs.capacity import checked_capacity, read_capacity
from batwatt.inputs.platform_gen import number_text
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.series import Series
from batwatt.model.workload import ATTEMPT, LAG_S, LENGTH, RELEASE, WINDOW_OVER, Delay
from batwatt.policy.base import Job, Scheduler
from batwatt.policy.machine_planner import MachineJob, MachinePlanner
from batwatt.policy.machine_stock import Machine, Work, take_stock
from batwatt.policy.options import SchedulerOptions


class MachineOptions(SchedulerOptions):
    """Options of every scheduler of machines that come and go."""

    capacity: str | Path | Series | None = Field(
        None, description="file of the capacity in machines: CSV with time_s,machines, or lines `count`, `time count`"
    )
    until_s: float | None = Field(
        None, ge=0.0, allow_inf_nan=False, description="date in s at which all that runs and waits is given up"
    )
    switch: bool = Field(True, description="switch machines off and on; else they only stand idle (needs energy)")


class MachineScheduler(Scheduler):
    """Follows a capacity in machines; subclasses make the planner."""

    Options: ClassVar[type[MachineOptions]] = MachineOptions

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        given = self.settings.capacity
        if given is None:
            raise InputError("option 'capacity'", "the scheduler needs one", "give a file: batwatt run --capacity FILE")
        self.capacity: Series = given if isinstance(given, Series) else read_capacity(given, None)
        self._works: dict[str, Work] = {}
        self._by_number: list[Work] = []
        self._arrived: list[tuple[float, Any, Job, float, float, float]] = []
        self._ended: list[tuple[int, float]] = []
        self._calls: set[float] = set()
        self._steps = list(_changes(self.capacity))
        self._next_step = 0
        self._more_jobs = True
        self._live = 0
        self._due: set[int] = set()
        self._switching: set[int] = set()
        self._stopped = False
        self._registration_over = False
        self._too_wide: list[str] = []

    @abstractmethod
    def make_planner(self, machines: int, cores: int) -> MachinePlanner:
        """The planner for that many machines of that many cores."""

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Killed jobs are submitted again."""
        return True

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Take stock of the machines."""
        super().onSimulationBegins()
        if not self.bs.dynamic_job_registration_enabled:
            problem = "killed jobs are submitted again, for which Batsim needs --enable-dynamic-jobs"
            raise InputError("Batsim", problem, "start it so, with --enable-profile-reuse")
        if not self.bs.batconf.get("profile-reuse-enabled", True):
            raise InputError("Batsim", "jobs that are killed need their profiles again", "add --enable-profile-reuse")
        hosts = [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]
        self.machines, self._off_state, self._on_state = take_stock(hosts, self.settings.switch)
        self.cores = self.machines[0].hosts.bit_count()
        checked_capacity(self.capacity, len(self.machines), self.capacity.source)
        self._machine_of_host = {
            host: number for number, machine in enumerate(self.machines) for host in hostset.ids(machine.hosts)
        }
        self.planner = self.make_planner(len(self.machines), self.cores)

    def onJobSubmission(self, job: Job) -> None:
        """Take note of a job; one that is wider than a machine can never run and is rejected."""
        work = self._works.get(job.id)
        if work is not None and work.runs > 1:
            work.job = job  # one of our own, acknowledged
            return
        if ATTEMPT.search(job.id):
            problem = f"the id {job.id!r} ends like those of jobs that are submitted again"
            raise InputError("workload", problem, "let no id end in # and a number")
        if self._stopped:
            self._give_up([job])
            return
        if job.requested_resources > self.cores:
            if not self._too_wide:
                text = "job %s asks for %d cores but a machine has %d: rejected, like all that are wider"
                self.logger.warning(text, job.id, job.requested_resources, self.cores)
            self._too_wide.append(job.id)
            self.bs.reject_jobs([job])
            return
        release_s, length_s, run_s = self._described(job)
        tie = self.planner.tie(job.id.partition("!")[2])
        self._arrived.append((release_s, tie, job, length_s, run_s, float(job.submit_time)))

    def _described(self, job: Job) -> tuple[float, float, float]:
        """Release, whole length and what is left of it, in s."""
        profile = parse_profile(job.profile_dict, f"profile {job.profile}") if job.profile_dict else None
        if isinstance(profile, Delay):
            run_s = profile.duration_s
        elif job.requested_time is not None and job.requested_time > 0:
            run_s = float(job.requested_time)
        else:
            problem = f"job {job.id} has neither a delay nor a walltime"
            raise InputError("workload", problem, "plans need lengths: give it a walltime")
        raw = job.json_dict or {}
        release_s, length_s = raw.get(RELEASE, job.submit_time), raw.get(LENGTH, run_s)
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (release_s, length_s))
        if not (numbers and 0.0 <= release_s <= job.submit_time and run_s - LAG_S <= length_s < math.inf):
            problem = f"job {job.id}: {RELEASE} {release_s!r} and {LENGTH} {length_s!r} are no release and length"
            raise InputError("workload", problem, "a release is <= subtime, a length >= what is left of it, both in s")
        return float(release_s), float(length_s), run_s

    def onJobCompletion(self, job: Job) -> None:
        """Free its cores; submit it again if it was killed for its machine."""
        work = self._works.pop(job.id)
        machine = self.machines[work.machine]
        machine.free |= work.hosts
        work.hosts = 0
        killed, work.dying = work.dying and job.job_state is Job.State.COMPLETED_KILLED, False
        if killed:
            if not self._stopped:
                self._submit_again(work)
            return
        # also one that ended before it could be killed
        work.wanted = False
        self._live -= 1
        self._ended.append((work.plan.number, self.bs.time()))

    def _submit_again(self, work: Work) -> None:
        """Register the job anew, whole."""
        old, length_s = work.job, work.plan.length_s
        workload = old.id.partition("!")[0]
        profile = old.profile
        if RELEASE in (old.json_dict or {}):
            # it ran before it was submitted, so its profile was what was left of it
            profile, whole = f"d{number_text(length_s)}", {"type": "delay", "delay": length_s}
            known = self.bs.profiles[workload]
            while profile in known and (known[profile]["type"], known[profile].get("delay")) != ("delay", length_s):
                profile += "+"
            if profile not in known:
                self.bs.register_profiles(workload, {profile: whole})
        new_id = f"{work.first_name}#{work.runs}"
        work.runs += 1
        self._works[new_id] = work
        work.job = self.bs.register_job(new_id, old.requested_resources, old.requested_time, profile)

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

    def onNoMoreJobsInWorkloads(self) -> None:
        """No job comes any more."""
        self._more_jobs = False

    def onSimulationEnds(self) -> None:
        """Tell how many jobs could never run, and what the planner noticed."""
        if len(self._too_wide) > 1:
            text = "%d jobs were wider than a machine (%d cores) and rejected"
            self.logger.warning(text, len(self._too_wide), self.cores)
        remark = self.planner.remark()
        if remark:
            self.logger.warning("%s", remark)

    def onNoMoreEvents(self) -> None:
        """Let the planner go on to this date, and carry out what it says."""
        if not self.bs.running_simulation:
            return
        now_s = self.bs.time()
        if not self._stopped:
            self._go_on(now_s)
            if self.settings.until_s is not None and now_s >= self.settings.until_s:
                self._stop()
            else:
                self._carry_out()
                self._call(now_s)
        if not self._registration_over and self._over():
            self._registration_over = True
            self.bs.notify_registration_finished()

    def _over(self) -> bool:
        return not (self._more_jobs or self._live or any(work.hosts for work in self._works.values()))

    # the planner ------------------------------------------------------------------------------------------------

    def _go_on(self, now_s: float) -> None:
        """Hand over, date by date, the steps and the jobs of this message, after the ends before them."""
        told: list[int] = []
        until_s = 0.0
        for number, date_s in self._ended:
            end_s = self.planner.end_s(number)
            if end_s > date_s + LAG_S:
                told += self.planner.ended(number, date_s)
            else:
                until_s = max(until_s, end_s)
        if until_s > 0.0:
            told += self.planner.advance(until_s)
        self._ended.clear()
        arrived = sorted(self._arrived, key=lambda row: (row[5], row[0], row[1]))
        self._arrived.clear()
        position = 0
        while True:
            step_s = self._steps[self._next_step][0] if self._next_step < len(self._steps) else math.inf
            submit_s = arrived[position][5] if position < len(arrived) else math.inf
            date_s = min(step_s, submit_s)
            if date_s > now_s + LAG_S:
                break
            alive = None
            if step_s == date_s:
                alive = int(self._steps[self._next_step][1])
                self._next_step += 1
            batch: list[MachineJob] = []
            while position < len(arrived) and arrived[position][5] == date_s:
                batch.append(self._take(arrived[position]))
                position += 1
            told += self.planner.advance(max(date_s, until_s), alive, batch)
            if alive is not None:
                self._want_alive()
        self._hear(told)

    def _take(self, row: tuple[float, Any, Job, float, float, float]) -> MachineJob:
        release_s, _, job, length_s, run_s, _ = row
        plan = MachineJob(len(self._by_number), release_s, length_s, run_s, job.requested_resources)
        work = self._works[job.id] = Work(plan, job, first_name=job.id)
        self._by_number.append(work)
        self._live += 1
        return plan

    def _hear(self, told: list[int]) -> None:
        """What is told in one message, in order: a job may start, be killed and start again elsewhere."""
        kills: list[Job] = []
        works = self._by_number
        for number in told:
            if number >= 0:
                works[number].wanted = True
                continue
            work = works[-1 - number]
            work.wanted = False
            if work.hosts and not work.dying:
                work.dying = True
                kills.append(work.job)
        for number in dict.fromkeys(told):
            if number >= 0 and works[number].wanted:
                place = self.planner.machine_of(number)
                self.machines[place].queue.append(works[number])
                self._due.add(place)
        if kills:
            self.bs.kill_jobs(kills)

    def _want_alive(self) -> None:
        alive = set(self.planner.machines_alive())
        for number, machine in enumerate(self.machines):
            machine.wanted = number in alive
            if machine.wanted != machine.on:
                self._switching.add(number)

    # carrying out -----------------------------------------------------------------------------------------------

    def _carry_out(self) -> None:
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
        left: deque[Work] = deque()
        for work in machine.queue:
            if not work.wanted or self.planner.machine_of(work.plan.number) != number:
                continue  # killed, and perhaps due elsewhere
            cores = work.plan.cores
            if work.hosts or machine.free.bit_count() < cores:
                left.append(work)
                continue
            work.wanted = False
            work.machine = number
            work.hosts = hostset.lowest(machine.free, cores)
            machine.free ^= work.hosts
            work.job.allocation = HostSet(work.hosts)
            self.bs.execute_job(work.job)
        machine.queue = left

    def _call(self, now_s: float) -> None:
        """Ask to be woken at the next step and at the end, as long as there is something to wait for."""
        if self._over():
            return
        steps_left = self._next_step < len(self._steps)
        hopeless = not steps_left and not self._more_jobs and not self.planner.machines_alive()
        if hopeless and self.settings.until_s is None:
            self._give_up_all("no machine is alive any more")
            return
        dates = {self._steps[self._next_step][0]} if steps_left else set()
        if self.settings.until_s is not None:
            dates.add(self.settings.until_s)
        for date_s in dates - self._calls:
            if date_s > now_s:
                self._calls.add(date_s)
                self.bs.wake_me_up_at(date_s)

    # giving up --------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """The window is over: kill what runs, reject what waits."""
        self._stopped = True
        running = [work for work in self._works.values() if work.hosts and not work.dying]
        for work in running:
            work.dying = True
        self._give_up([work.job for work in self._works.values() if not work.hosts])
        self._works = {name: work for name, work in self._works.items() if work.hosts}
        self._live = 0
        if running:
            self.bs.kill_jobs([work.job for work in running])

    def _give_up(self, jobs: list[Job]) -> None:
        for job in jobs:
            self.bs.set_job_metadata(job.id, WINDOW_OVER)
        if jobs:
            self.bs.reject_jobs(jobs)

    def _give_up_all(self, why: str) -> None:
        waiting = [work.job for work in self._works.values() if not work.hosts]
        if waiting:
            self.logger.warning("%d jobs can never run, %s: rejected (first: %s)", len(waiting), why, waiting[0].id)
            self.bs.reject_jobs(waiting)
        self._works = {name: work for name, work in self._works.items() if work.hosts}
        self._live = len(self._works)


def _changes(series: Series) -> list[tuple[float, float]]:
    """The dates in s at which the value changes, and the first, which counts from 0."""
    rows = list(zip((0.0, *series.times_s[1:]), series.values, strict=True))
    return [row for i, row in enumerate(rows) if i == 0 or row[1] != rows[i - 1][1]]
