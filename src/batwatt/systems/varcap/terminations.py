"""Who is terminated when machines must leave the service (varcap dissertation, section 6.1; docs/varcap.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.fleet import Fleet, JobState

Machines = NDArray[np.int64]


class Termination(ABC):
    """Orders machines in service: the first leaves, or its tasks are terminated, first."""

    idle_first = True
    """Whether machines without a task leave before any other."""

    @abstractmethod
    def figure(self, task: JobState, now_s: float) -> float:
        """The task with the least is terminated first, where single tasks are chosen."""

    @abstractmethod
    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """The machines (ascending numbers), first victim first; all of them have tasks if it `idle_first`."""


class LeastSafe(Termination):
    """The least safe machine."""

    def figure(self, task: JobState, now_s: float) -> float:
        """See `Termination`."""
        return -float(task.places.max())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return machines[::-1]


class Random(Termination):
    """Any machine in service, all equally likely, whether it has tasks or not (section 7.2).

    With `foresight` those without a task go first: the scheduler has seen to it that there are some.
    """

    def __init__(self, rng: np.random.Generator, foresight: bool) -> None:
        self._rng = rng
        self.idle_first = foresight

    def figure(self, task: JobState, now_s: float) -> float:
        """See `Termination`."""
        return float(self._rng.random())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return self._rng.permutation(machines)


class _LeastSum(Termination):
    """The machine with the least sum of a figure of its tasks; the least safe of equals."""

    def __init__(self, figure: Callable[[JobState, float], float]) -> None:
        self._figure = figure

    def figure(self, task: JobState, now_s: float) -> float:
        """See `Termination`."""
        # times differ by rounding
        return round(self._figure(task, now_s), 6)

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        figure = self._figure
        sums = np.zeros(len(fleet))
        for task in fleet.tasks.values():
            sums[task.places] += figure(task, now_s)
        # sums differ by rounding in the order of the tasks
        return machines[np.lexsort((-machines, np.round(sums[machines], 6)))]


def least_wasted_work() -> Termination:
    """LWW: least cores x time run (in core seconds)."""
    return _LeastSum(lambda task, now_s: task.work(now_s))


def least_fraction_done() -> Termination:
    """LFD: least time run / run time, the user's estimate of it where there is one."""
    return _LeastSum(lambda task, now_s: task.done_s(now_s) / task.estimate_s)


TERMINATIONS: dict[str, Callable[[np.random.Generator, bool], Termination]] = {
    "random": Random,
    "lww": lambda rng, foresight: least_wasted_work(),
    "lfd": lambda rng, foresight: least_fraction_done(),
    "order": lambda rng, foresight: LeastSafe(),
}
"""By name, each made with the generator that the scheduler's seed gives, and whether there is foresight."""
