"""Which waiting job goes to which machine: section 7.2 of the varcap dissertation (docs/varcap.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batwatt.scheduling.fleet import Task
from batwatt.scheduling.foresight import Forecast
from batwatt.systems.varcap.queues import Buckets, Line, Range
from batwatt.systems.varcap.terminations import Termination

MakeLine = Callable[[], Line]


class Scheme:
    """Lines of waiting jobs, each with its machines; those below `stable` are never terminated."""

    lines: list[Line]
    ranges: list[Range]
    stable = 0

    def line_of(self, task: Task) -> int:
        """Which line a task waits in."""
        return 0

    def follow(self, capacity: int) -> None:
        """So many machines are in service from now on."""

    def most_machines(self, line: int, capacity: int) -> int:
        """How many machines of a line can be in service under a capacity."""
        return min(capacity, self.ranges[line].high)


class Base(Scheme):
    """One line, from the safest machine."""

    def __init__(self, machines: int, make_line: MakeLine) -> None:
        self.lines = [make_line()]
        self.ranges = [Range(0, machines)]


class LongShort(Scheme):
    """Long jobs on the stable machines only, short ones from the least safe machine on."""

    def __init__(self, machines: int, make_line: MakeLine, stable: int) -> None:
        self.stable = stable
        self.lines = [make_line(), make_line()]
        self.ranges = [Range(0, stable), Range(0, machines, upwards=False)]

    def line_of(self, task: Task) -> int:
        """See `Scheme`."""
        return 0 if task.long else 1


class JobSizeOrder(Scheme):
    """The longest job first, from the safest machine."""

    def __init__(self, machines: int) -> None:
        self._line = Buckets(lambda task: -task.assumed_s)
        self.lines = [self._line]
        self.ranges = [Range(0, machines)]


class TwoMode(JobSizeOrder):
    """JobSize-Order while the capacity is low; else the shortest job first, from the least safe machine."""

    def __init__(self, machines: int, low: float, high: float) -> None:
        super().__init__(machines)
        self._machines = machines
        self._middle = (low + high) / 2.0

    def follow(self, capacity: int) -> None:
        """See `Scheme`."""
        rising = capacity <= self._middle
        self._line.turn(forwards=rising)
        self.ranges = [Range(0, self._machines, upwards=rising)]


@dataclass(frozen=True)
class Parts:
    """What a scheduler is made of: one without a forecast knows no future, one that `migrates` moves jobs first."""

    scheme: Scheme
    termination: Termination
    forecast: Forecast | None = None
    migrates: bool = False
