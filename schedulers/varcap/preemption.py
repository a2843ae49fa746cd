"""Preemptions: running jobs are stopped so that a waiting one starts (docs/explanation/adaptive.md).

A preemption is announced as long before as a checkpoint takes, as a kill for a machine is known. All times in s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from typing import ClassVar

from batwatt.schedulers.varcap.queues import Bucket, Range, reservation
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.queue import Ages
from batwatt.scheduling.registry import register

LEAST_NOTICE_S = 1.0
"""Least s from an announcement to its preemption: nothing is killed in the message that starts it."""
Costs = dict[int, float]
"""Cost of stopping a task, by its number; tasks that are left out may not be stopped."""
Shape = tuple[int, int, float, int]
"""Machines, cores, memory and queue of a waiting task."""


class Preemption(ABC):
    """A rule that weighs the gain of a job that starts sooner against the losses of its victims, in one unit.

    Of two waiting jobs the longer one gains no more by the same time, and costs its victims no less.
    """

    name: ClassVar[str] = ""

    @abstractmethod
    def gain(self, task: Job, sooner_s: float) -> float:
        """Return the gain of a waiting job that starts `sooner_s` s sooner."""

    @abstractmethod
    def cost(self, task: Job, victim: Job, lost_s: float) -> float:
        """Return the cost of stopping a job for another, with `lost_s` s to do again; infinite: it may not be stopped.

        More to do again costs no less.
        """


@register("preemption", "slowdown")
class ForSlowdown(Preemption):
    """Slowdowns saved must be over `factor` times those added, both summed; a job is stopped `most` times at most.

    No circles: at least one victim would have run until the shadow time: w <= p_v + R for it, so gain > cost gives
    p < p_v: the job that starts is shorter than the longest victim.
    """

    def __init__(self, factor: float = 2.0, most: int = 30) -> None:
        if not 1.0 <= factor <= 1e9:
            raise ValueError(f"factor must be from 1 to 1e9, got {factor!r}")
        if not isinstance(most, int) or most < 0:
            raise ValueError(f"most must be a whole number >= 0, got {most!r}")
        self._factor, self._most = float(factor), most

    def gain(self, task: Job, sooner_s: float) -> float:
        """Return the time / run time."""
        return sooner_s / task.estimate_s

    def cost(self, task: Job, victim: Job, lost_s: float) -> float:
        """Return factor x (run time of the other + time lost) / run time."""
        if victim.preempted >= self._most:
            return math.inf
        return self._factor * (task.estimate_s + lost_s) / victim.estimate_s


@dataclass(frozen=True, slots=True)
class Notice:
    """A preemption to come: the task that starts at `due_s`, its queue, its victims with the starts of their runs."""

    task: Job
    queue: int
    due_s: float
    victims: tuple[tuple[Job, float], ...]

    def running(self, fleet: Fleet) -> list[Job]:
        """Return the victims whose run has not ended meanwhile."""
        return [task for task, start_s in self.victims if task.number in fleet.tasks and task.start_s == start_s]


class Preemptions:
    """Announced preemptions, `notice_s` before they come; `loss_s` is the loss of a killed job by the s of its run.

    Jobs that are aged by `ages` are stopped for no other.
    """

    def __init__(
        self, rule: Preemption, notice_s: float, loss_s: Callable[[BatsimJob, float], float], ages: Ages
    ) -> None:
        self._rule = rule
        self._ages = ages
        self._notice_s = max(notice_s, LEAST_NOTICE_S)
        self._loss_s = loss_s
        self._waiting: dict[int, Shape] = {}
        self._lengths: dict[Shape, Bucket] = {}
        """(estimate, number, task) of the waiting tasks of each shape."""
        self._fresh: dict[int, Job] = {}
        """Tasks that have begun to wait since the last announcement."""
        self._fleet_then: object = None
        self.notices: list[Notice] = []

    def wait(self, task: Job, queue: int) -> None:
        """Add a task that waits in a queue."""
        shape = (task.machines, task.hosts, task.memory, queue)
        self._waiting[task.number] = shape
        if shape not in self._lengths:
            self._lengths[shape] = Bucket([])
        self._lengths[shape].add((task.estimate_s, task.number, task))
        self._fresh[task.number] = task

    def leave(self, task: Job) -> None:
        """Remove a task that waits no more."""
        shape = self._waiting.pop(task.number)
        bucket = self._lengths[shape]
        bucket.remove((task.estimate_s, task.number, task))
        if not bucket.blocks:
            del self._lengths[shape]
        self._fresh.pop(task.number, None)

    def waits(self, notice: Notice) -> bool:
        """Return whether the task of a notice still waits in its queue."""
        shape = self._waiting.get(notice.task.number)
        return shape is not None and shape[-1] == notice.queue

    def due(self, now_s: float) -> list[Notice]:
        """Return the notices that are due, and forget them."""
        due = [notice for notice in self.notices if notice.due_s <= now_s]
        self.notices = [notice for notice in self.notices if notice.due_s > now_s]
        return due

    def announce(self, fleet: Fleet, ranges: Sequence[Range], now_s: float) -> None:
        """Announce preemptions that pay, for the shortest task first; `ranges` are the machines of each queue."""
        # of jobs of one shape it does not pay for the longer if it does not for the shorter
        refused: set[Shape] = set()
        rows = self._to_weigh(fleet, refused)
        first = next(rows, None)
        if first is None:
            return
        rule, stop_s = self._rule, now_s + self._notice_s
        promised = {task.number: task for notice in self.notices for task in notice.running(fleet)}
        running = [
            task
            for task in fleet.tasks.values()
            if task.number not in promised
            and task.expected_end_s(now_s) > stop_s
            and not (fleet.stranded(task) or self._ages.is_aged(task, now_s))
        ]
        longest_s = max((task.expected_end_s(now_s) for task in running), default=stop_s) - stop_s
        lost_s: dict[int, float] = {}
        machines = Occupied(fleet)
        # cores that are promised to a waiting job, and that it does not need
        spare = sum(_cores(fleet, task) for task in promised.values())
        spare -= sum(_cores(fleet, notice.task) for notice in self.notices)
        for task, shape in chain((first,), rows):
            queue = shape[-1]
            where = ranges[queue]
            most = rule.gain(task, longest_s)
            # a loss adds to a cost, and takes time to work out
            if most <= min((rule.cost(task, other, 0.0) for other in running), default=math.inf):
                return  # nor is it for a longer one
            lost_s = lost_s or {
                other.number: self._loss_s(other.attempt, min(other.ran_s(stop_s), other.left_s)) for other in running
            }
            costs = {other.number: rule.cost(task, other, lost_s[other.number]) for other in running}
            if most <= min(costs.values()):
                return
            if _cores(fleet, task) <= spare:
                spare -= _cores(fleet, task)
                continue
            costs = {number: cost for number, cost in costs.items() if cost < math.inf}
            victims = machines.cheapest(task, where, costs)
            expected = reservation(fleet, task, now_s, where) if victims else None
            if expected is None or rule.gain(task, expected[0] - stop_s) <= sum(costs[one.number] for one in victims):
                refused.add(shape)
            else:
                self.notices.append(Notice(task, queue, stop_s, tuple((one, one.start_s) for one in victims)))
                stopped = {victim.number for victim in victims}
                running = [other for other in running if other.number not in stopped]
                spare += sum(_cores(fleet, victim) for victim in victims) - _cores(fleet, task)

    def _to_weigh(self, fleet: Fleet, refused: set[Shape]) -> Iterator[tuple[Job, Shape]]:
        """Return the waiting tasks for which it may pay now, of shapes that are not refused, the shortest first.

        While nothing starts or ends a wait only gets shorter and no loss gets less: none pays that did not before.
        """
        fleet_now = (fleet.serving, [(task.number, task.start_s) for task in fleet.tasks.values()])
        announced = {notice.task.number for notice in self.notices}
        if fleet_now == self._fleet_then:
            walks = [
                self._walk(self._waiting[number], [[(task.estimate_s, number, task)]], refused)
                for number, task in self._fresh.items()
            ]
        else:
            walks = [self._walk(shape, bucket.blocks, refused) for shape, bucket in self._lengths.items()]
        self._fleet_then = fleet_now
        self._fresh.clear()
        return (
            (task, shape)
            for _, number, task, shape in merge(*walks)
            if number not in announced and shape not in refused
        )

    @staticmethod
    def _walk(
        shape: Shape, blocks: list[list[tuple[float, int, Job]]], refused: set[Shape]
    ) -> Iterator[tuple[float, int, Job, Shape]]:
        """Yield the tasks of a shape, the shortest first, until it is refused."""
        for block in blocks:
            for entry in block:
                if shape in refused:
                    return
                yield (*entry, shape)


def _cores(fleet: Fleet, task: Job) -> int:
    return fleet.cores * task.machines or task.hosts


class Occupied:
    """Tasks on the machines of a fleet, as long as nothing starts or ends."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._groups: dict[tuple[int, int], tuple[int, dict[tuple[int, ...], int]]] = {}

    def cheapest(self, task: Job, where: Range, costs: Costs) -> list[Job]:
        """Return running tasks whose stop makes room for another at little cost; none if none do, or it has room."""
        fleet = self._fleet
        if not task.machines:
            candidates = [self._on_one(task, m, costs) for m in range(where.low, where.high) if fleet.usable[m]]
            return min(candidates, default=(math.inf, 0, []))[2]
        whole, groups = self._groups_of(where)
        rows = [
            (sum([costs[number] for number in on]), size, on) for on, size in groups.items() if costs.keys() >= set(on)
        ]
        return [fleet.tasks[number] for number in _picked(rows, task.machines - whole)]

    def _groups_of(self, where: Range) -> tuple[int, dict[tuple[int, ...], int]]:
        """Return the number of empty machines of a range, and the numbers of those with the same tasks, by these."""
        fleet, key = self._fleet, (where.low, where.high)
        if key not in self._groups:
            serving = [m for m in range(where.low, where.high) if fleet.usable[m]]
            groups: dict[tuple[int, ...], int] = {}
            for m in serving:
                if on := tuple([other.number for other in fleet.on(m)]):
                    groups[on] = groups.get(on, 0) + 1
            self._groups[key] = int(fleet.whole[serving].sum()), groups
        return self._groups[key]

    def _on_one(self, task: Job, machine: int, costs: Costs) -> tuple[float, int, list[Job]]:
        """Return (cost, machine, tasks) of those that make room there: few, or all if it takes all their memory."""
        fleet = self._fleet
        on = fleet.on(machine)
        rows = [(costs[other.number], _held(fleet, other), (other.number,)) for other in on if other.number in costs]
        free = int(fleet.free[machine])
        for numbers in (_picked(rows, task.hosts - free), [number for row in rows for number in row[2]]):
            stay = [other for other in on if other.number not in numbers]
            used = sum([_held(fleet, other) for other in stay])
            memory = sum([other.memory for other in stay])
            if used + task.hosts <= fleet.cores and memory + task.memory <= fleet.memory_each:
                return sum([costs[number] for number in numbers]), machine, [fleet.tasks[number] for number in numbers]
        return math.inf, machine, []


def _held(fleet: Fleet, task: Job) -> int:
    """Return the cores that a task has on each of its machines."""
    return fleet.cores if task.machines else task.hosts


def _picked(rows: Sequence[tuple[float, int, tuple[int, ...]]], missing: int) -> list[int]:
    """Return tasks of rows (cost, size, tasks) with the size that is missing: the least cost for useful size first.

    Those that are not needed in the end are left out, the most expensive first.
    """
    if missing <= 0:
        return []
    picked: list[tuple[float, int, tuple[int, ...]]] = []
    left = missing
    for row in sorted(rows, key=lambda row: (row[0] / min(row[1], missing), row[2])):
        if left <= 0:
            break
        picked.append(row)
        left -= row[1]
    if left > 0:
        return []
    for row in sorted(picked, key=lambda row: -row[0]):
        if left + row[1] <= 0:
            picked.remove(row)
            left += row[1]
    return [number for row in picked for number in row[2]]
