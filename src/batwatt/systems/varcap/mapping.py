"""Which waiting job goes to which machine: section 7.2 of the varcap dissertation (docs/varcap.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batwatt.scheduling.fleet import JobState
from batwatt.scheduling.foresight import CapacityForecast
from batwatt.systems.varcap.queues import BucketQueue, Range, WaitingQueue
from batwatt.systems.varcap.terminations import Termination

MakeQueue = Callable[[], WaitingQueue]


class MappingPolicy:
    """Queues of waiting jobs, each with its machines; those below `stable` are never terminated."""

    queues: list[WaitingQueue]
    ranges: list[Range]
    stable = 0

    def queue_of(self, task: JobState) -> int:
        """Which queue a task waits in."""
        return 0

    def follow(self, capacity: int) -> None:
        """So many machines are in service from now on."""

    def most_machines(self, queue: int, capacity: int) -> int:
        """How many machines of a queue can be in service under a capacity."""
        return min(capacity, self.ranges[queue].high)


class Base(MappingPolicy):
    """One queue, from the safest machine."""

    def __init__(self, machines: int, make_queue: MakeQueue) -> None:
        self.queues = [make_queue()]
        self.ranges = [Range(0, machines)]


class LongShort(MappingPolicy):
    """Long jobs on the stable machines only, short ones from the least safe machine on."""

    def __init__(self, machines: int, make_queue: MakeQueue, stable: int) -> None:
        self.stable = stable
        self.queues = [make_queue(), make_queue()]
        self.ranges = [Range(0, stable), Range(0, machines, upwards=False)]

    def queue_of(self, task: JobState) -> int:
        """See `MappingPolicy`."""
        return 0 if task.long else 1


class JobSizeOrder(MappingPolicy):
    """The longest job first, from the safest machine."""

    def __init__(self, machines: int) -> None:
        self._queue = BucketQueue(lambda task: -task.assumed_s)
        self.queues = [self._queue]
        self.ranges = [Range(0, machines)]


class TwoMode(JobSizeOrder):
    """JobSize-Order while the capacity is low; else the shortest job first, from the least safe machine."""

    def __init__(self, machines: int, low: float, high: float) -> None:
        super().__init__(machines)
        self._machines = machines
        self._middle = (low + high) / 2.0

    def follow(self, capacity: int) -> None:
        """See `MappingPolicy`."""
        rising = capacity <= self._middle
        self._queue.turn(forwards=rising)
        self.ranges = [Range(0, self._machines, upwards=rising)]


@dataclass(frozen=True)
class Components:
    """What a scheduler is made of: one without a forecast knows no future, one that `migrates` moves jobs first."""

    mapping: MappingPolicy
    termination: Termination
    forecast: CapacityForecast | None = None
    migrates: bool = False
