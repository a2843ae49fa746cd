"""Planners of jobs on machines that come and go: arrivals and changes in, starts and kills out."""

from __future__ import annotations

import heapq
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from batwatt.model.work import Categories
from batwatt.schedulers.riskaware.target_plan import OVER, RUNNING, PlannedTask, TargetPlan, TargetSettings
from batwatt.scheduling.job import Job
from batwatt.scheduling.victims import Resubmit, Victim, VictimRule, next_run
from batwatt.units import LAG_S


@dataclass(slots=True)
class RiskawareState:
    """Notes of riskaware on a job; times in s."""

    release_s: float
    early: bool = False
    """The job had run before it was submitted."""
    recovery_s: float = 0.0
    """The first s of its run, which are no work of it."""
    lost: bool = False
    """The planner killed it, and it will not run again."""
    wanted: bool = False
    """The planner started it, and it is not on its machine yet."""
    keeps_running: bool = False
    """The job runs on a machine out of service, though the planner killed it."""


RiskawareJob: TypeAlias = Job[RiskawareState]


class MachinePlanner(ABC):
    """A planner of jobs of exactly known lengths on `machines` machines of `cores` cores.

    It reads of a `Job` its `number` (0, 1, ... in the order in which jobs are handed over), `hosts` (cores),
    `state.release_s`, `length_s`, and `left_s` of its next run. That is less than `length_s` for a job that was
    released, and has been running, before it arrived; `restart` updates it when the planner kills a job.

    Its times are nominal, in s, and never go back: a job that it starts at s ends at s + `left_s`. At one time it looks
    at the jobs that start, then at those that end, then at a change of the machines, then at arrivals. Its answer
    is a sequence in which number n stands for the start of job n on `machine_of(n)`, and -1 - n for its kill.
    """

    victim: VictimRule = Resubmit()
    """Rule for the jobs that it kills; set by the scheduler."""

    @abstractmethod
    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[RiskawareJob] = ()) -> Sequence[int]:
        """Go on to a time; `alive`: machines from then on (None: as before). Arrivals by release time."""

    @abstractmethod
    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """End a job before it was planned to, or though it was killed (then it waits for nothing any more)."""

    def dropped(self) -> Sequence[int]:
        """Return the jobs, of those that arrived in the last `advance`, that are never to start."""
        return ()

    def restart(self, job: RiskawareJob, ran_s: float) -> bool:
        """Update the next run of a job that is killed after `ran_s` s. Return False if the job is lost."""
        state = job.state
        done_s = job.length_s + state.recovery_s - job.left_s
        following = next_run(self.victim, Victim(job.length_s, done_s, state.recovery_s, ran_s))
        state.lost = following is None
        if following is None:
            return False
        job.left_s, state.recovery_s = following.run_s, following.recovery_s
        return True

    @abstractmethod
    def machine_of(self, number: int) -> int:
        """Return the machine on which a job runs or is planned, counted from 0."""

    @abstractmethod
    def end_s(self, number: int) -> float:
        """Return the time in s at which a started job is to end."""

    @abstractmethod
    def machines_alive(self) -> Collection[int]:
        """Return the machines that are to be on."""

    def remark(self) -> str:
        """Return a remark for the user when all is over, in a line; empty for none."""
        return ""

    def tie(self, name: str) -> Any:
        """Return the key that orders jobs that are released at one time; `name` is the id within the workload."""
        return name


def hand_over(
    planner: MachinePlanner,
    ended: Iterable[tuple[int, float]],
    upcoming: Iterable[tuple[float, int | None, Sequence[RiskawareJob]]],
) -> tuple[list[int], list[int], bool]:
    """Hand a message of the engine to a planner, time by time; return the answers of the planner.

    `ended`: numbers and times of the jobs that have ended; `upcoming`: times, machines alive from then on (None: as
    before) and arrivals. Returned are the decisions, the jobs that are never to start, and whether machines changed.
    """
    decisions: list[int] = []
    dropped: list[int] = []
    until_s, changed = 0.0, False
    for number, time_s in ended:
        end_s = planner.end_s(number)
        if end_s > time_s + LAG_S:
            decisions += planner.ended(number, time_s)
        else:
            until_s = max(until_s, end_s)
    if until_s > 0.0:
        decisions += planner.advance(until_s)
    for time_s, alive, batch in upcoming:
        decisions += planner.advance(max(time_s, until_s), alive, batch)
        dropped += planner.dropped()
        changed |= alive is not None
    return decisions, dropped, changed


class FirstFitStrategy(MachinePlanner):
    """First fit: a job goes to the first machine, by index, that has enough cores free; else it waits.

    When cores become free, the waiting jobs are looked at by release time, ties in the order of arrival, and each that
    fits somewhere starts there. The machines with the highest indices go first (FirstFitAware), or with `rng` random
    ones (FirstFitUnaware); the lowest that are off come back first. Jobs on a machine that goes wait again and
    start from zero.

    `as_published` does three things as the authors' program does them, not as the paper says. An arriving job that
    needs all the cores that are free on the emptiest machine does not start before the next end or change (there it
    waits for ever if nothing runs: here it starts then). A job from before the window that cannot start when it arrives
    never does. And with `rng` the order in which machines are looked at is shuffled once, while those with the highest
    indices go first.
    """

    def __init__(self, machines: int, cores: int, rng: np.random.Generator | None = None, as_published: bool = False):
        self._free = [cores] * machines
        shuffled = rng is not None and as_published
        self._rank = rng.permutation(machines).tolist() if rng is not None and shuffled else list(range(machines))
        self._rng = None if shuffled else rng
        self._published = as_published
        self._alive: list[int] = []
        self._looked_at: list[int] = []
        self._jobs: list[RiskawareJob] = []
        self._machine: list[int] = []
        self._end_s: list[float] = []
        self._running: set[int] = set()
        self._gone: set[int] = set()
        self._ends: list[tuple[float, int, int]] = []
        # by width, so that the first that fits is found without looking at those that do not
        self._waiting: dict[int, list[tuple[float, int]]] = {}
        self._queued = 0
        self._changes: list[int] = []
        self._dropped: list[int] = []

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[RiskawareJob] = ()) -> Sequence[int]:
        """See `MachinePlanner`."""
        self._changes, self._dropped = [], []
        self._happen(time_s)
        if alive is not None and alive != len(self._alive):
            self._change(alive, time_s)
            self._looked_at = sorted(self._alive, key=lambda m: self._rank[m])
            self._fill(time_s)
        self._jobs += arrivals
        self._machine += [-1] * len(arrivals)
        self._end_s += [0.0] * len(arrivals)
        for job in arrivals:
            most = self._most_free()
            before = job.left_s < job.length_s
            may_start = job.hosts < most or before or not (self._published and self._running)
            if job.hosts <= most and may_start:
                self._start(job, time_s)
            elif before and self._published:
                self._dropped.append(job.number)
            else:
                self._wait(job)
        return self._changes

    def dropped(self) -> Sequence[int]:
        """See `MachinePlanner`."""
        return self._dropped

    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """See `MachinePlanner`."""
        self._changes = []
        if number in self._running:
            self._end(number)
            self._fill(time_s)
        else:
            self._gone.add(number)
        return self._changes

    def machine_of(self, number: int) -> int:
        """See `MachinePlanner`."""
        return self._machine[number]

    def end_s(self, number: int) -> float:
        """See `MachinePlanner`."""
        return self._end_s[number]

    def machines_alive(self) -> Collection[int]:
        """See `MachinePlanner`."""
        return self._alive

    def _happen(self, time_s: float) -> None:
        while self._ends and self._ends[0][0] <= time_s:
            end_s, machine, number = heapq.heappop(self._ends)
            # a kill or an early end leaves its event behind
            if number in self._running and self._machine[number] == machine and self._end_s[number] == end_s:
                self._end(number)
                self._fill(end_s)

    def _end(self, number: int) -> None:
        self._running.discard(number)
        self._free[self._machine[number]] += self._jobs[number].hosts

    def _change(self, alive: int, time_s: float) -> None:
        if alive > len(self._alive):
            off = [m for m in range(len(self._free)) if m not in self._alive]
            self._alive = sorted(self._alive + off[: alive - len(self._alive)])
            return
        if self._rng is None:
            gone = self._alive[alive:]
        else:
            gone = self._rng.choice(self._alive, len(self._alive) - alive, replace=False).tolist()
        self._alive = [m for m in self._alive if m not in gone]
        for number in sorted(number for number in self._running if self._machine[number] in gone):
            job = self._jobs[number]
            self._end(number)
            self._changes.append(-1 - number)
            if self.restart(job, time_s - (self._end_s[number] - job.left_s)):
                self._wait(job)

    def _most_free(self) -> int:
        """Return the most cores that are free on one machine alive."""
        alive, free = self._alive, self._free
        if alive and alive[-1] == len(alive) - 1:
            return max(free[: len(alive)])  # the first ones, as a rule
        return max([free[m] for m in alive], default=0)

    def _wait(self, job: RiskawareJob) -> None:
        heapq.heappush(self._waiting.setdefault(job.hosts, []), (job.state.release_s, job.number))
        self._queued += 1

    def _fill(self, time_s: float) -> None:
        while self._queued:
            most = self._most_free()
            first = min((queue[0] for cores, queue in self._waiting.items() if cores <= most and queue), default=None)
            if first is None:
                return
            job = self._jobs[first[1]]
            heapq.heappop(self._waiting[job.hosts])
            self._queued -= 1
            if job.number not in self._gone:
                self._start(job, time_s)

    def _start(self, job: RiskawareJob, time_s: float) -> None:
        """Start a job on the first machine with room for it."""
        machine = next(m for m in self._looked_at if self._free[m] >= job.hosts)
        self._free[machine] -= job.hosts
        number = job.number
        self._machine[number] = machine
        self._end_s[number] = end_s = time_s + job.left_s
        self._running.add(number)
        heapq.heappush(self._ends, (end_s, machine, number))
        self._changes.append(number)


_NUMBER = re.compile(r"\d+")


class Targets(MachinePlanner):
    """Local queues with planned starts; docs/explanation/riskaware.md has the rules, `TargetPlan` applies them."""

    def __init__(self, machines: int, cores: int, settings: TargetSettings, categories: Categories) -> None:
        self.settings = settings
        self._categories = categories
        self._arrived = 0
        self._begun = False
        self._jobs: list[RiskawareJob] = []
        self._area = self._area_by_category = 0.0
        self._plan = TargetPlan(machines, cores, settings)

    @property
    def usable(self) -> int:
        """M_use."""
        return self._plan.usable

    @property
    def worst_stretch(self) -> float:
        """S+, the largest stretch so far: that was planned, with `paper` that a job had when it ended."""
        return self._plan.worst

    @property
    def mean_category(self) -> float:
        """Mean category of all jobs by area: 0.5 if they are like the reference."""
        return self._area_by_category / self._area if self._area else 0.5

    def planned_s(self, number: int) -> tuple[float, float]:
        """Return start and end of a job as planned now, in s."""
        task = self._plan.tasks[number]
        return task.start_s, task.end_s

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[RiskawareJob] = ()) -> Sequence[int]:
        """See `MachinePlanner`."""
        if alive is not None and not self._begun:
            self._begin(alive)
        self._arrived = len(self._jobs)
        tasks: list[PlannedTask] = []
        if arrivals:
            lengths_s = np.array([job.length_s for job in arrivals])
            categories = self._categories.of(lengths_s)
            areas = lengths_s * [job.hosts for job in arrivals]
            self._area += float(areas.sum())
            self._area_by_category += float(areas @ categories)
            tasks = [
                PlannedTask(job.state.release_s, job.length_s, job.left_s, job.hosts, category)
                for job, category in zip(arrivals, categories.tolist(), strict=True)
            ]
            self._jobs += arrivals
        change = alive if alive is not None and alive != self._plan.alive else -1
        before: list[int] = []
        if 0 <= change < self._plan.alive and type(self.victim) is not Resubmit:
            # the jobs that run at that time, and for how long, are known only then
            before = self._plan.advance(time_s, -1, [])
            self._restart(change, time_s)
        return before + self._plan.advance(time_s, change, tasks)

    def _restart(self, alive: int, time_s: float) -> None:
        """Update the next runs of the jobs on machines that go."""
        for job, task in zip(self._jobs, self._plan.tasks, strict=False):
            if task.state == RUNNING and task.machine >= alive:
                lives = self.restart(job, time_s - (task.end_s - job.left_s))
                task.rerun_s = job.left_s if lives else math.inf

    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """See `MachinePlanner`."""
        return self._plan.end_early(number, time_s)

    def dropped(self) -> Sequence[int]:
        """See `MachinePlanner`."""
        tasks = self._plan.tasks
        new = range(self._arrived, len(tasks)) if self.settings.drop else ()
        return [number for number in new if tasks[number].state == OVER and tasks[number].machine < 0]

    def machine_of(self, number: int) -> int:
        """See `MachinePlanner`."""
        return self._plan.tasks[number].machine

    def end_s(self, number: int) -> float:
        """See `MachinePlanner`."""
        return self._plan.tasks[number].end_s

    def machines_alive(self) -> Collection[int]:
        """See `MachinePlanner`: the first ones, in the order of their risk."""
        return range(self._plan.alive)

    def remark(self) -> str:
        """See `MachinePlanner`: that the reference had little to do with the jobs."""
        mean = self.mean_category
        if 0.3 <= mean <= 0.7:
            return ""
        return f"the jobs are unlike those of the reference (mean category {mean:.2f}, 0.5 if alike): set 'reference'"

    def tie(self, name: str) -> Any:
        """Return the numbers in a name before the name, as the traces number their jobs."""
        if name.isascii() and name.isdigit():
            return [int(name)], name
        return [int(digits) for digits in _NUMBER.findall(name)], name

    def _begin(self, alive: int) -> None:
        usable = self.settings.usable
        if usable is None:
            always = self.settings.always
            usable = always if self.settings.paper else (alive + always) // 2
        self._plan.begin(alive, usable)
        self._begun = True
