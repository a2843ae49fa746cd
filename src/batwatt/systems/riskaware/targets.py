"""TargetStretch, TargetASAP and PackedTargetASAP: long jobs to safe machines (riskaware paper, sections 4.3 to 4.5)."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from batwatt.model.reference import Categories
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.victims import Resubmit
from batwatt.systems.riskaware.strategy import MachinePlanner
from batwatt.systems.riskaware.target_plan import OVER, RUNNING, TargetPlan, TargetSettings, Task

_NUMBER = re.compile(r"\d+")


class Targets(MachinePlanner):
    """Local queues with planned starts; docs/explanation/riskaware.md has the rules, `TargetPlan` applies them."""

    def __init__(self, machines: int, cores: int, settings: TargetSettings, categories: Categories) -> None:
        self.settings = settings
        self._categories = categories
        self._arrived = 0
        self._begun = False
        self._jobs: list[ManagedJob] = []
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

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[ManagedJob] = ()) -> Sequence[int]:
        """See `MachinePlanner`."""
        if alive is not None and not self._begun:
            self._begin(alive)
        self._arrived = len(self._jobs)
        tasks: list[Task] = []
        if arrivals:
            lengths_s = np.array([job.length_s for job in arrivals])
            categories = self._categories.of(lengths_s)
            areas = lengths_s * [job.hosts for job in arrivals]
            self._area += float(areas.sum())
            self._area_by_category += float(areas @ categories)
            tasks = [
                Task(job.plan.release_s, job.length_s, job.left_s, job.hosts, category)
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
                task.again_s = job.left_s if lives else math.inf

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
