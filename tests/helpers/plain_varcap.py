"""The scheduler varcap once more, plain and slow: an event loop of its own, without engine, tables or numpy.

Written from docs/explanation/varcap.md, to be compared with `schedulers/varcap.py`. What happens at one time happens in
the order ends, change of capacity, submissions, pass; jobs that were killed wait again after that pass, and get one of
their own, as Batsim tells of them in another message. Instances to be compared have times at which nothing else
coincides.

Where the text leaves room, this is how it is read here:

- a machine that a job has to itself counts as used with all its cores;
- migration chooses all machines that leave before it moves the first job; who waits to be moved is not running;
- in a reservation nothing is known of foresight, and in one of a group of longshort nothing of the other group;
- with `run_times: walltime` a job is long if its estimate is;
- ties of moves go to the earlier submission, ties of kills by migration to the later one.

Victims at random are left out: which ones they are depends on the generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

LONG, SHORT = "long", "short"


@dataclass(frozen=True)
class PlainJob:
    """A job; `cpus` cores, `memory` for all of it, times and times in s."""

    id: str
    submit_s: float
    length_s: float
    cpus: int
    memory: float = 0.0
    estimate_s: float | None = None
    depends_on: tuple[str, ...] = ()

    @property
    def expected_s(self) -> float:
        return self.length_s if self.estimate_s is None else self.estimate_s


@dataclass(frozen=True)
class Rules:
    """The options of the scheduler, and the machines."""

    machines: int
    cores: int
    mapping: str = "base"
    termination: str | None = None
    order: str = "fcfs"
    backfilling: str | None = None
    knowledge: str | None = None
    run_times: dict[str, object] | None = None
    foresight_h: float = 0.0
    nodes: str = "shared"
    requeue: str = "submission"
    long_s: float = 3600.0
    longest_s: float = 86400.0
    machine_memory: float | None = None
    stable: int | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Ran:
    """One run of a job, or its rejection; `how` is completed, killed, migrated or rejected."""

    id: str
    attempt: int
    start_s: float
    end_s: float
    how: str
    machines: tuple[int, ...]


@dataclass(frozen=True)
class Waits:
    """A job in the queue, since when, and as the how manieth."""

    job: PlainJob
    attempt: int
    since_s: float
    serial: int


@dataclass(frozen=True)
class Runs:
    """A run; `first_s` is the start of what was migrated here."""

    waited: Waits
    attempt: int
    first_s: float
    start_s: float
    machines: tuple[int, ...]

    @property
    def job(self) -> PlainJob:
        return self.waited.job

    @property
    def end_s(self) -> float:
        return self.first_s + self.job.length_s

    def work(self, now_s: float) -> float:
        return round(self.job.cpus * (now_s - self.first_s), 6)


class PlainVarcap:
    """Plays jobs on machines by the rules."""

    def __init__(self, jobs: Sequence[PlainJob], capacity: Sequence[tuple[float, int]], rules: Rules) -> None:
        self.rules = rules
        if rules.run_times:
            otherwise_s = rules.run_times.get("otherwise_s")
            jobs = [replace(job, estimate_s=job.estimate_s or otherwise_s) for job in jobs]
        self.to_come = sorted(jobs, key=lambda job: job.submit_s)
        self.steps = [row for i, row in enumerate(capacity) if not i or row[1] != capacity[i - 1][1]]
        self.now_s = 0.0
        self.allowed = self.steps.pop(0)[1]
        self.service = set(range(self.allowed))
        self.low = min(n for _, n in capacity) if rules.low is None else rules.low
        self.high = max(n for _, n in capacity) if rules.high is None else rules.high
        self.stable = 0
        if rules.mapping == "longshort":
            self.stable = self.low if rules.stable is None else rules.stable
        self.waiting: list[Waits] = []
        self.running: list[Runs] = []
        self.killed: list[Runs] = []
        self.state: dict[str, str] = {job.id: "to come" for job in jobs}
        self.serial = 0
        self.log: list[Ran] = []

    def play(self) -> list[Ran]:
        while True:
            times = [run.end_s for run in self.running]
            times += [job.submit_s for job in self.to_come[:1]] + [time_s for time_s, _ in self.steps[:1]]
            if not times:
                assert not self.waiting, f"{self.waiting} wait for ever"
                return self.log
            self.now_s = min(times)
            self.happen()

    def happen(self) -> None:
        """All of one time."""
        # times that differ by rounding are one
        late_s = self.now_s + 1e-7
        for run in [run for run in self.running if run.end_s <= late_s]:
            self.ends(run, "completed")
            self.state[run.job.id] = "completed"
        if self.steps and self.steps[0][0] <= late_s:
            self.allowed = self.steps.pop(0)[1]
            self.change()
        while self.to_come and self.to_come[0].submit_s <= late_s:
            job = self.to_come.pop(0)
            self.serial += 1
            self.waiting.append(Waits(job, 0, job.submit_s, self.serial))
            self.state[job.id] = "waits"
        for run in self.killed:
            again = replace(run.waited, attempt=run.attempt + 1)
            self.waiting.append(replace(again, since_s=self.now_s) if self.rules.requeue == "end" else again)
        self.killed.clear()
        self.reject()
        self.schedule()

    def ends(self, run: Runs, how: str) -> None:
        self.running.remove(run)
        self.log.append(Ran(run.job.id, run.attempt, run.start_s, self.now_s, how, tuple(sorted(run.machines))))

    # jobs -----------------------------------------------------------------------------------------------------

    def width(self, job: PlainJob) -> int:
        return 1 if job.cpus <= self.rules.cores else math.ceil(job.cpus / self.rules.cores)

    def alone(self, job: PlainJob) -> bool:
        return job.cpus > self.rules.cores or self.rules.nodes == "dedicated"

    def estimate_of(self, job: PlainJob) -> float:
        return job.expected_s if self.rules.run_times else job.length_s

    def kind(self, job: PlainJob) -> str:
        return LONG if self.estimate_of(job) > self.rules.long_s else SHORT

    def assumed_s(self, job: PlainJob) -> float:
        usual = {"longshort": "class", "jobsize-order": "exact", "twomode": "exact"}
        knowledge = self.rules.knowledge or usual.get(self.rules.mapping, "none")
        if knowledge == "class":
            return self.rules.longest_s if self.kind(job) == LONG else self.rules.long_s
        return {"none": math.inf, "exact": self.estimate_of(job)}[knowledge]

    def reject(self) -> None:
        """What can never run."""
        most = max([self.allowed, *(n for _, n in self.steps)])
        for waits in list(self.waiting):
            job, width = waits.job, self.width(waits.job)
            limit = most
            if self.rules.mapping == "longshort":
                limit = min(self.stable, most) if self.kind(job) == LONG else most
            memory = self.rules.machine_memory
            heavy = memory is not None and job.memory > memory * width
            orphan = any(self.state.get(other) == "rejected" for other in job.depends_on)
            if width > limit or heavy or orphan:
                self.waiting.remove(waits)
                self.state[job.id] = "rejected"
                self.log.append(Ran(job.id, waits.attempt, math.inf, self.now_s, "rejected", ()))
                self.reject()
                return

    # where ----------------------------------------------------------------------------------------------------

    def on(self, machine: int, running: Iterable[Runs]) -> list[Runs]:
        return [run for run in running if machine in run.machines]

    def has_room(self, job: PlainJob, machine: int, running: Sequence[Runs]) -> bool:
        there = self.on(machine, running)
        if self.alone(job):
            return not there
        if any(self.alone(run.job) for run in there):
            return False
        memory = self.rules.machine_memory
        if memory is not None and sum(run.job.memory for run in there) + job.memory > memory:
            return False
        return sum(run.job.cpus for run in there) + job.cpus <= self.rules.cores

    def place(
        self, job: PlainJob, machines: Iterable[int], running: Sequence[Runs], foresee: bool = False
    ) -> tuple[int, ...]:
        """The machines that a job would get; none if it does not fit."""
        room = [m for m in machines if m in self.service and self.has_room(job, m, running)]
        width = self.width(job)
        if width > 1:
            good = len(room) >= width and (not foresee or self.will_last(job, room[0]))
            return tuple(room[:width]) if good else ()
        return next(((m,) for m in room if not foresee or self.will_last(job, m)), ())

    def will_last(self, job: PlainJob, machine: int) -> bool:
        """Whether a start on this machine (and on others, if it is wide) is planned not to fail."""
        if self.rules.mapping == "longshort" and self.kind(job) == LONG:
            return True  # its machines never leave
        until_s = {m: math.inf if m < self.stable else self.now_s for m in self.service}
        for run in self.running:
            for m in self.service.intersection(run.machines):
                until_s[m] = max(until_s[m], run.first_s + self.assumed_s(run.job))
        horizon_s = self.now_s + 3600.0 * self.rules.foresight_h
        from_s = self.now_s if self.width(job) > 1 else until_s[machine]
        for time_s, count in self.steps:
            if time_s <= horizon_s and from_s <= time_s < self.now_s + self.assumed_s(job):
                busy = sum(end_s > time_s for end_s in until_s.values())
                if busy + self.width(job) > count:
                    return False
        return True

    # the pass -------------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        ready = [waits for waits in self.waiting if not any(map(self.unfinished, waits.job.depends_on))]
        up, down = range(self.rules.machines), range(self.rules.machines - 1, -1, -1)
        name = self.rules.mapping
        if name == "longshort":
            for kind, machines in ((LONG, range(self.stable)), (SHORT, down)):
                self.go_through([waits for waits in ready if self.kind(waits.job) == kind], machines)
        elif name == "twomode" and self.allowed > (self.low + self.high) / 2:
            self.go_through(ready, down, 1.0)
        elif name in ("jobsize-order", "twomode"):
            self.go_through(ready, up, -1.0)
        else:
            self.go_through(ready, up)

    def unfinished(self, other: str) -> bool:
        return self.state.get(other, "completed") != "completed"

    def key(self, waits: Waits, by_length: float) -> tuple[float, float, float, int]:
        first = 0.0
        if by_length:
            first = by_length * self.assumed_s(waits.job)
        elif self.rules.order == "wfp":
            waited_s = self.now_s - waits.job.submit_s
            first = -((waited_s / waits.job.expected_s) ** 3) * self.width(waits.job)
        return first, waits.since_s, waits.job.submit_s, waits.serial

    def go_through(self, queue: list[Waits], machines: Iterable[int], by_length: float = 0.0) -> None:
        machines = list(machines)
        backfill = self.rules.backfilling or ("easy" if self.rules.order == "wfp" else "first-fit")
        if by_length:
            backfill = "first-fit"
        shadow_s, reserved = math.inf, ()
        for waits in sorted(queue, key=lambda waits: self.key(waits, by_length)):
            job = waits.job
            late = self.now_s + job.expected_s > shadow_s
            places = self.place(job, [m for m in machines if not (late and m in reserved)], self.running, foresee=True)
            if places:
                self.waiting.remove(waits)
                self.state[job.id] = "runs"
                self.running.append(Runs(waits, waits.attempt, self.now_s, self.now_s, places))
            elif backfill == "none":
                return
            elif backfill == "easy" and not reserved:
                shadow_s, reserved = self.reservation(job, machines)

    def reservation(self, job: PlainJob, machines: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        def expected_s(run: Runs) -> float:
            return max(self.now_s, run.first_s + run.job.expected_s)

        own = [run for run in self.running if not set(run.machines).isdisjoint(machines)]
        for shadow_s in sorted(map(expected_s, own)):
            left = [run for run in own if expected_s(run) > shadow_s]
            places = self.place(job, machines, left)
            if places:
                return shadow_s, places
        return math.inf, ()

    # changes --------------------------------------------------------------------------------------------------

    def change(self) -> None:
        for machine in range(self.rules.machines):
            if len(self.service) < self.allowed:
                self.service.add(machine)
        if self.rules.mapping == "migration":
            self.move_away()
            return
        self.leave()
        while len(self.service) > self.allowed:
            victim = self.victim()
            for run in self.on(victim, self.running):
                self.kill(run)
            self.leave()

    def leave(self) -> None:
        """Free machines leave, the least safe first, as long as there are too many."""
        for machine in sorted(self.service, reverse=True):
            free = machine >= self.stable and not self.on(machine, self.running)
            if free and len(self.service) > self.allowed:
                self.service.remove(machine)

    def kill(self, run: Runs) -> None:
        self.ends(run, "killed")
        self.state[run.job.id] = "waits"
        self.killed.append(run)

    def victim(self) -> int:
        name = self.rules.termination or {"base": "random"}.get(self.rules.mapping, "order")
        assert name != "random", "this is plain"

        def score(machine: int) -> float:
            there = self.on(machine, self.running)
            if name == "lww":
                return sum(run.work(self.now_s) for run in there)
            if name == "lfd":
                return sum((self.now_s - run.first_s) / run.job.expected_s for run in there)
            return 0.0

        with_jobs = [m for m in self.service if m >= self.stable and self.on(m, self.running)]
        # sums differ by rounding in the order of the runs
        return min(with_jobs, key=lambda machine: (round(score(machine), 6), -machine))

    def move_away(self) -> None:
        def used(machine: int) -> int:
            there = self.on(machine, self.running)
            return sum(self.rules.cores if self.alone(run.job) else run.job.cpus for run in there)

        by_use = sorted(self.service, key=lambda machine: (used(machine), -machine))
        leaving = by_use[: max(0, len(self.service) - self.allowed)]
        self.service.difference_update(leaving)
        homeless = [run for run in self.running if set(run.machines).intersection(leaving)]
        homeless.sort(key=lambda run: (-run.work(self.now_s), run.job.submit_s, run.waited.serial))
        for run in homeless:
            while run in self.running:
                here = [other for other in self.running if other not in homeless]
                places = self.place(run.job, range(self.rules.machines), here)
                if places:
                    self.ends(run, "migrated")
                    moved = replace(run, attempt=run.attempt + 1, start_s=self.now_s, machines=places)
                    self.running.append(moved)
                else:
                    self.kill(min([*here, run], key=self.least_work))

    def least_work(self, run: Runs) -> tuple[float, float, int]:
        return run.work(self.now_s), -run.job.submit_s, -run.waited.serial


def plain_runs(jobs: Sequence[PlainJob], capacity: Sequence[tuple[float, int]], rules: Rules) -> list[Ran]:
    """The runs of these jobs, in the order of their ends; `capacity` are rows of time in s and machines."""
    return PlainVarcap(jobs, capacity, rules).play()
