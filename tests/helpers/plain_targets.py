"""The target strategies once more, plain and slow: no profiles and no heap, every time is looked for among all jobs.

Written from docs/explanation/riskaware.md, to be compared with `batwatt.systems.riskaware.targets`. Where the text
leaves room, this is how it is read here:

- what happens at one time is in the order of machines, then of jobs; M_use is updated after each start and each end;
- the cores in use on a machine are looked at when a job starts or ends there, as they are planned from that time on: a
  job that ends at that very time does not count;
- after a change of the number of machines all that runs counts as planned, and is told to start once more: these
  starts and those of jobs that start now go by machine, then by job, with an update of M_use after each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from batwatt.scheduling.jobs import ManagedJob
from batwatt.systems.riskaware.targets import TargetSettings

START, END = 0, 1
WAITS, RUNS, OVER = "waits", "runs", "over"


@dataclass
class Known:
    """A job and its plan; `again`: it runs, and is to start once more after a change."""

    number: int
    release_s: float
    length_s: float
    run_s: float
    cores: int
    category: float
    state: str = WAITS
    machine: int = -1
    start_s: float = math.inf
    end_s: float = math.inf
    again: float | None = None

    @property
    def planned(self) -> bool:
        return self.state == WAITS or self.again is not None


class PlainTargets:
    """Like `Targets`: `advance` and `ended` return what they tell."""

    def __init__(self, machines: int, cores: int, settings: TargetSettings, category: Callable[[float], float]) -> None:
        self.cores = cores
        self.rules = settings
        self.category = category
        self.jobs: list[Known] = []
        self.in_use = [0] * machines
        self.alive = self.usable = 0
        self.begun = False
        self.worst_stretch = 1.0
        self.decisions: list[int] = []
        self.ghost = False  # a job that was dropped waits on machine 0 until the machine is cleared

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[ManagedJob] = ()) -> list[int]:
        self.decisions = []
        if alive is not None and not self.begun:
            between = self.rules.always if self.rules.paper else (alive + self.rules.always) // 2
            first = between if self.rules.usable is None else self.rules.usable
            self.begun, self.alive, self.usable = True, alive, min(max(1, first), alive)
        self.happen(time_s)
        if alive is not None and alive != self.alive:
            self.change(time_s, alive)
        for job in arrivals:
            known = Known(
                job.number, job.plan.release_s, job.length_s, job.left_s, job.hosts, self.category(job.length_s)
            )
            self.jobs.append(known)
            if known.run_s < known.length_s:
                self.map(known, 0, self.alive, time_s, drop=self.rules.drop)
            else:
                self.map(known, self.target(known), self.rules.distance, time_s)
            self.happen(time_s)
        return self.decisions

    def ended(self, number: int, time_s: float) -> list[int]:
        self.decisions = []
        job = self.jobs[number]
        job.state = OVER
        self.ghost = self.ghost and job.machine != 0
        self.stretch(job, time_s)
        waiting = [other for other in self.on(job.machine) if other.state == WAITS]
        for other in waiting:
            other.state = "is planned anew"
        for other in sorted(waiting, key=lambda other: (other.start_s, other.number)):
            self.plan(other, other.machine, self.earliest(other, other.machine, time_s))
        self.look(job.machine, time_s)
        self.happen(time_s)
        return self.decisions

    # the local queues -----------------------------------------------------------------------------------------

    def on(self, machine: int) -> list[Known]:
        """What runs or is planned on a machine."""
        return [job for job in self.jobs if job.machine == machine and job.state in (WAITS, RUNS)]

    def cores_at(self, machine: int, time_s: float) -> int:
        return sum(job.cores for job in self.on(machine) if job.start_s <= time_s < job.end_s)

    def earliest(self, job: Known, machine: int, now_s: float) -> float:
        others = self.on(machine)
        for start_s in sorted({now_s} | {other.end_s for other in others if other.end_s > now_s}):
            times = {start_s} | {other.start_s for other in others if start_s < other.start_s < start_s + job.run_s}
            if all(self.cores_at(machine, time_s) + job.cores <= self.cores for time_s in times):
                return start_s
        raise AssertionError("after all others have ended there is room")

    def plan(self, job: Known, machine: int, start_s: float) -> None:
        job.state, job.machine, job.start_s, job.end_s = WAITS, machine, start_s, start_s + job.run_s
        if not self.rules.paper:
            self.stretch(job, job.end_s)

    def stretch(self, job: Known, end_s: float) -> None:
        self.worst_stretch = max(self.worst_stretch, (end_s - job.release_s) / job.length_s)

    # mapping --------------------------------------------------------------------------------------------------

    def target(self, job: Known) -> int:
        if self.rules.paper:
            machine = self.usable - 1 if job.category == 1.0 else math.floor(job.category * self.usable)
            packs = range(0, max(1, self.usable), self.rules.pack)
            return min(packs, key=lambda first: (abs(first - machine), -first))
        choices = max(1, self.usable // self.rules.pack)
        choice = choices - 1 if job.category == 1.0 else math.floor(job.category * choices)
        return choice * self.rules.pack

    def map(self, job: Known, target: int, distance: int, now_s: float, drop: bool = False) -> None:
        job.state, job.machine, job.start_s, job.end_s = WAITS, -1, math.inf, math.inf
        if not self.usable:
            job.state = OVER if drop else WAITS
            return
        order = [target] + [target + sign * away for away in range(1, distance + 1) for sign in (1, -1)]
        limit = (self.rules.limit or self.worst_stretch) * (1.0 + 1e-9)
        seen: list[tuple[float, bool, int]] = []
        for machine in order:
            if not 0 <= machine < self.usable:
                continue
            start_s = self.earliest(job, machine, now_s)
            stretch = (start_s + job.run_s - job.release_s) / job.length_s
            if self.rules.paper:
                good = start_s == now_s or (machine == target and stretch <= limit)
            else:
                good = stretch <= limit or not self.on(machine)
            if good:
                self.plan(job, machine, start_s)
                return
            seen.append((start_s, machine != target, machine))
        if drop:
            job.state = OVER
            self.ghost = True
            return
        own_s = self.earliest(job, target, now_s)
        if self.rules.paper and (own_s + job.run_s - job.release_s) / job.length_s <= self.worst_stretch * (1 + 1e-9):
            self.plan(job, target, own_s)
            return
        start_s, _, machine = min(seen)
        self.plan(job, machine, start_s)

    # M_use ----------------------------------------------------------------------------------------------------

    def utilisation(self, usable: int) -> float:
        total = 0
        for machine in range(usable):
            waits = any(job.planned for job in self.on(machine)) or (self.ghost and machine == 0)
            total += self.cores if waits else self.in_use[machine]
        return total / (usable * self.cores)

    def update(self) -> None:
        if not self.usable:
            return
        before = self.usable
        while self.utilisation(self.usable) < self.rules.low and self.usable > max(1, self.rules.always):
            self.usable -= 1
        if self.usable == before:
            while self.utilisation(self.usable) > self.rules.high and self.usable < self.alive:
                self.usable += 1

    def look(self, machine: int, time_s: float) -> None:
        """Note the cores in use there, then update M_use."""
        self.in_use[machine] = self.cores_at(machine, time_s)
        self.update()

    # what happens ---------------------------------------------------------------------------------------------

    def events(self) -> list[tuple[float, int, int, int]]:
        """(time, kind, machine, job) of all that is to come."""
        events = []
        for job in self.jobs:
            if job.again is not None:
                events.append((job.again, START, job.machine, job.number))
            elif job.state == WAITS and job.machine >= 0:
                events.append((job.start_s, START, job.machine, job.number))
            elif job.state == RUNS:
                events.append((job.end_s, END, job.machine, job.number))
        return events

    def happen(self, until_s: float) -> None:
        while due := [event for event in self.events() if event[0] <= until_s]:
            time_s, kind, machine, number = min(due)
            job = self.jobs[number]
            if kind == END:
                job.state = OVER
                self.stretch(job, time_s)
            elif job.again is not None:
                job.again = None
            else:
                job.state = RUNS
                self.decisions.append(number)
            self.look(machine, time_s)

    def change(self, now_s: float, alive: int) -> None:
        before, grows, self.alive = self.alive, alive > self.alive, alive
        full = self.usable == before and before and self.utilisation(self.usable) > self.rules.high
        if grows and before and self.rules.paper and not full:
            return
        if grows:
            self.update()
        self.usable = min(max(self.usable, 1), alive)
        self.ghost = False
        waiting = []
        for job in self.jobs:
            if job.state == RUNS and job.machine < alive:
                job.again = now_s
                continue
            if job.state == RUNS:
                self.decisions.append(-1 - job.number)
                job.run_s = job.length_s
            if job.state != OVER:
                job.state = "is mapped anew"
                waiting.append(job)
        for job in sorted(waiting, key=lambda job: (job.release_s, job.number)):
            self.map(job, self.target(job), self.rules.distance, now_s)
        self.in_use = [0] * len(self.in_use)
        self.update()
        self.happen(now_s)
