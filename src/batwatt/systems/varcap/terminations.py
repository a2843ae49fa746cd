"""Choice of victims when machines leave the service (varcap dissertation, section 6.1; docs/explanation/varcap.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.lifecycle import Job
from batwatt.scheduling.registry import register

Machines = NDArray[np.int64]


class Termination(ABC):
    """An order of machines in service: the first leaves, or its tasks are terminated, first."""

    name: ClassVar[str] = ""
    idle_first = True
    """True if machines without a task leave before any other."""

    loss_s: Callable[[Job, float], float]
    """Loss in s of a job that is killed, by the s that it has run; set before the first decision."""

    def begin(self, rng: np.random.Generator, foresight: bool) -> None:  # noqa: B027  (most need neither)
        """Take, before the first decision, the generator of the scheduler's seed, and whether changes are known."""

    @abstractmethod
    def figure(self, task: ManagedJob, now_s: float) -> float:
        """Return the figure of a task: that with the least is terminated first, where single tasks are chosen."""

    @abstractmethod
    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """Return the machines (ascending numbers), first victim first; with `idle_first` all of them have tasks."""


@register("termination", "order")
class LeastSafe(Termination):
    """The least safe machine."""

    def figure(self, task: ManagedJob, now_s: float) -> float:
        """See `Termination`."""
        return -float(task.places.max())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return machines[::-1]


@register("termination", "random")
class Random(Termination):
    """Any machine in service, all equally likely, whether it has tasks or not (section 7.2).

    With foresight those without a task go first: the scheduler has seen to it that there are some.
    """

    def begin(self, rng: np.random.Generator, foresight: bool) -> None:
        """See `Termination`."""
        self._rng = rng
        self.idle_first = foresight

    def figure(self, task: ManagedJob, now_s: float) -> float:
        """See `Termination`."""
        return float(self._rng.random())

    def order(self, machines: Machines, fleet: Fleet, now_s: float) -> Machines:
        """See `Termination`."""
        return self._rng.permutation(machines)


class LeastSum(Termination):
    """The machine with the least sum of a figure of its tasks, which subclasses give; the least safe of equals."""

    @abstractmethod
    def exact_figure(self, task: ManagedJob, now_s: float) -> float:
        """Return the figure of a task, before it is rounded."""

    def figure(self, task: ManagedJob, now_s: float) -> float:
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

    def exact_figure(self, task: ManagedJob, now_s: float) -> float:
        """See `LeastSum`."""
        return task.work(now_s)


@register("termination", "least-loss")
class LeastLoss(LeastSum):
    """Least core seconds lost, as the victim rule has it: work that is not saved, checkpoint and recovery.

    LWW if nothing is saved of a job.
    """

    def exact_figure(self, task: ManagedJob, now_s: float) -> float:
        """See `LeastSum`."""
        return task.hosts * self.loss_s(task.job, task.ran_s(now_s))


@register("termination", "lfd")
class LeastFractionDone(LeastSum):
    """LFD: least time run / run time, the user's estimate of it where there is one."""

    def exact_figure(self, task: ManagedJob, now_s: float) -> float:
        """See `LeastSum`."""
        return task.done_s(now_s) / task.estimate_s
