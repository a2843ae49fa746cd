"""Mappings of waiting jobs to machines: section 7.2 of the varcap dissertation (docs/explanation/varcap.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from batwatt.model.series import Series
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.registry import register
from batwatt.systems.varcap.queues import BucketQueue, Range, WaitingQueue

Knowledge = Literal["none", "class", "exact"]
ALL: tuple[Knowledge, ...] = ("none", "class", "exact")


@dataclass(frozen=True)
class MappingSite:
    """The site of a mapping: machines, queues in the chosen order, the capacity in machines, the options."""

    machines: int
    make_queue: Callable[[], WaitingQueue]
    capacity: Series
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
    usual_termination: ClassVar[str] = "order"
    migrates: ClassVar[bool] = False
    """True if jobs move off machines that leave."""
    queues: list[WaitingQueue]
    ranges: list[Range]
    stable = 0

    def __init__(self, site: MappingSite) -> None:
        self.queues = [site.make_queue()]
        self.ranges = [Range(0, site.machines)]

    def queue_of(self, task: ManagedJob) -> int:
        """Return the index of the queue in which a task waits."""
        return 0

    def follow(self, capacity: int) -> None:
        """Follow a capacity of `capacity` machines in service from now on."""

    def most_machines(self, queue: int, capacity: int) -> int:
        """Return the number of machines of a queue that can be in service under a capacity."""
        return min(capacity, self.ranges[queue].high)


@register("mapping", "base")
class Base(MappingPolicy):
    """One queue, from the safest machine."""

    usual_termination = "random"


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
        least = int(min(site.capacity.values) if options.low is None else options.low)
        self.stable = min(least if options.stable is None else options.stable, site.machines)
        self.queues = [site.make_queue(), site.make_queue()]
        self.ranges = [Range(0, self.stable), Range(0, site.machines, upwards=False)]

    def queue_of(self, task: ManagedJob) -> int:
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
        values, options = site.capacity.values, site.options
        low = min(values) if options.low is None else options.low
        high = max(values) if options.high is None else options.high
        self._middle = (low + high) / 2.0

    def follow(self, capacity: int) -> None:
        """See `MappingPolicy`."""
        rising = capacity <= self._middle
        self._queue.turn(forwards=rising)
        self.ranges = [Range(0, self._machines, upwards=rising)]
