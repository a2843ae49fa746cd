"""Machines of `varcap`: mappings of jobs to them, terminations, migration (dissertation, chapters 5 to 7)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from batwatt.schedulers.varcap.queues import BucketQueue, Range, WaitingQueue
from batwatt.scheduling.base import PartChoice
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.job import BatsimJob, Job, Places
from batwatt.scheduling.registry import register

Knowledge = Literal["none", "class", "exact"]
ALL: tuple[Knowledge, ...] = ("none", "class", "exact")


@dataclass(frozen=True)
class MappingSite:
    """The site of a mapping: machines, queues in the chosen order, the known range of the capacity, the options."""

    machines: int
    make_queue: Callable[[], WaitingQueue]
    bounds: tuple[float, float]
    options: Any


class MappingPolicy:
    """Queues of waiting jobs, each with its machines; those below `stable` are never terminated.

    By default there is one queue, of all machines, from the safest.
    """

    name: ClassVar[str] = ""
    knows: ClassVar[tuple[Knowledge, ...]] = ALL
    """Possible knowledge of run times, the usual first (Table 7.2)."""
    in_order: ClassVar[bool] = True
    """True if its queues have the chosen order and backfilling; else they have one of their own."""
    usual_termination: ClassVar[PartChoice] = "order"
    migrates: ClassVar[bool] = False
    """True if jobs move off machines that leave."""
    queues: list[WaitingQueue]
    ranges: list[Range]
    stable = 0

    def __init__(self, site: MappingSite) -> None:
        self.queues = [site.make_queue()]
        self.ranges = [Range(0, site.machines)]

    @classmethod
    def needs_range(cls, options: Any) -> bool:
        """Return whether it goes by the range of the capacity, which these options do not give; by default not."""
        return False

    def queue_of(self, task: Job) -> int:
        """Return the index of the queue in which a task waits."""
        return 0

    def follow(self, capacity: int) -> None:
        """Follow a capacity of `capacity` machines in service from now on."""

    def most_machines(self, queue: int, capacity: int) -> int:
        """Return the number of machines of a queue that can be in service under a capacity."""
        return min(capacity, self.ranges[queue].high)


@register("mapping", "base")
class Base(MappingPolicy):
    """One queue, from the safest machine.

    It is the Baseline of section 7.2, which "randomly selects a machine" until those available are as many as the
    capacity: they count whether they have tasks or not, unlike the "resources in use" of section 6.1.
    """

    usual_termination: ClassVar[PartChoice] = {"name": "random", "idle_first": False}


@register("mapping", "migration")
class Migration(Base):
    """As base; jobs on machines that leave move to others at no cost, and where there is no room some are killed."""

    usual_termination = "lww"
    migrates = True


@register("mapping", "longshort")
class LongShort(MappingPolicy):
    """Long jobs on the stable machines only, short ones from the least safe machine on."""

    knows = ("class", "exact")

    def __init__(self, site: MappingSite) -> None:
        options = site.options
        self.stable = min(int(site.bounds[0]) if options.stable is None else options.stable, site.machines)
        self.queues = [site.make_queue(), site.make_queue()]
        self.ranges = [Range(0, self.stable), Range(0, site.machines, upwards=False)]

    @classmethod
    def needs_range(cls, options: Any) -> bool:
        """See `MappingPolicy`."""
        return options.low is None and options.stable is None

    def queue_of(self, task: Job) -> int:
        """See `MappingPolicy`."""
        return 0 if task.long else 1


@register("mapping", "jobsize-order")
class JobSizeOrder(MappingPolicy):
    """The longest job first, from the safest machine."""

    knows = ("exact",)
    in_order = False

    def __init__(self, site: MappingSite) -> None:
        self._queue = BucketQueue(lambda task: -task.assumed_s)
        self.queues = [self._queue]
        self.ranges = [Range(0, site.machines)]


@register("mapping", "twomode")
class TwoMode(JobSizeOrder):
    """JobSize-Order while the capacity is low; else the shortest job first, from the least safe machine."""

    def __init__(self, site: MappingSite) -> None:
        super().__init__(site)
        self._machines = site.machines
        self._middle = sum(site.bounds) / 2.0

    @classmethod
    def needs_range(cls, options: Any) -> bool:
        """See `MappingPolicy`."""
        return options.low is None or options.high is None

    def follow(self, capacity: int) -> None:
        """See `MappingPolicy`."""
        rising = capacity <= self._middle
        self._queue.turn(forwards=rising)
        self.ranges = [Range(0, self._machines, upwards=rising)]


Machines = NDArray[np.int64]


class Termination(ABC):
    """An order of machines in service: the first leaves, or its tasks are terminated, first."""

    name: ClassVar[str] = ""
    idle_first = True
    """True if machines without a task leave before any other."""

    loss_s: Callable[[BatsimJob, float], float]
    """Loss in s of a job that is killed, by the s that it has run; set before the first decision."""

    def begin(self, rng: np.random.Generator, foresight: bool) -> None:  # noqa: B027  (most need neither)
        """Take, before the first decision, the generator of the scheduler's seed, and whether changes are known."""

    @abstractmethod
    def figure(self, task: Job, now_s: float) -> float:
        """Return the figure of a task: that with the least is terminated first, where single tasks are chosen."""

    @abstractmethod
    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """Return the machines (ascending numbers), first victim first; with `idle_first` all of them have tasks."""


@register("termination", "order")
class LeastSafe(Termination):
    """The least safe machine."""

    def figure(self, task: Job, now_s: float) -> float:
        """See `Termination`."""
        return -float(task.places.max())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return machines[::-1]


@register("termination", "random")
class Random(Termination):
    """Any machine with tasks, all equally likely (section 6.1); without `idle_first` any in service (section 7.2).

    With foresight those without a task go first in any case: the scheduler has seen to it that there are some.
    """

    def __init__(self, idle_first: bool = True) -> None:
        if not isinstance(idle_first, bool):
            raise ValueError(f"idle_first must be true or false, got {idle_first!r}")
        self.idle_first = idle_first

    def begin(self, rng: np.random.Generator, foresight: bool) -> None:
        """See `Termination`."""
        self._rng = rng
        self.idle_first = self.idle_first or foresight

    def figure(self, task: Job, now_s: float) -> float:
        """See `Termination`."""
        return float(self._rng.random())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return self._rng.permutation(machines)


class LeastSum(Termination):
    """The machine with the least sum of a figure of its tasks, which subclasses give; the least safe of equals."""

    @abstractmethod
    def exact_figure(self, task: Job, now_s: float) -> float:
        """Return the figure of a task, before it is rounded."""

    def figure(self, task: Job, now_s: float) -> float:
        """See `Termination`."""
        # times differ by rounding
        return round(self.exact_figure(task, now_s), 6)

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        figure = self.figure
        sums = np.zeros(len(fleet))
        for task in fleet.tasks.values():
            sums[task.places] += figure(task, now_s)
        # sums differ by rounding in the order of the tasks
        return machines[np.lexsort((-machines, np.round(sums[machines], 6)))]


@register("termination", "lww")
class LeastWastedWork(LeastSum):
    """LWW: least cores x time run (in core seconds)."""

    def exact_figure(self, task: Job, now_s: float) -> float:
        """See `LeastSum`."""
        return task.work(now_s)


@register("termination", "least-loss")
class LeastLoss(LeastSum):
    """Least core seconds lost, as the victim rule has it: work that is not saved, checkpoint and recovery.

    LWW if nothing is saved of a job.
    """

    def exact_figure(self, task: Job, now_s: float) -> float:
        """See `LeastSum`."""
        return task.hosts * self.loss_s(task.attempt, task.ran_s(now_s))


@register("termination", "lfd")
class LeastFractionDone(LeastSum):
    """LFD: least time run / run time, the user's estimate of it where there is one."""

    def exact_figure(self, task: Job, now_s: float) -> float:
        """See `LeastSum`."""
        return task.done_s(now_s) / task.estimate_s


def leaving(fleet: Fleet, count: int) -> Places:
    """Return the machines in service with the fewest used cores, the least safe of equals."""
    serving = np.flatnonzero(fleet.in_service)
    order = np.lexsort((-serving, -fleet.free[serving]))
    return serving[order][:count]


def move(fleet: Fleet, displaced: Iterable[Job], now_s: float, termination: Termination) -> tuple[list[Job], list[Job]]:
    """Move the tasks whose machines have left the service; return those moved, from now on, and those killed.

    The tasks with the most work done come first. Where there is no room, the running task that the termination puts
    first (least wasted work in the text) is killed, again and again.
    """
    moved: list[Job] = []
    killed: list[Job] = []
    # times differ by rounding
    queue = sorted(displaced, key=lambda task: (-round(task.work(now_s), 6), task.number))
    tasks = sorted(fleet.tasks.values(), key=lambda task: task.number)
    figure = {task.number: termination.figure(task, now_s) for task in tasks}
    for task in queue:
        fleet.remove(task)
    for task in queue:
        while (places := fleet.place(task, now_s, 0, len(fleet), True, blind=True)) is None:
            least = min((*fleet.tasks.values(), task), key=lambda other: (figure[other.number], -other.number))
            killed.append(least)
            if least is task:
                break
            fleet.remove(least)
            if least in moved:
                moved.remove(least)
        if places is not None:
            task.left_s = round(task.length_s - task.done_s(now_s), 6)
            task.start_s = now_s
            fleet.add(task, places, now_s)
            moved.append(task)
    return moved, killed
