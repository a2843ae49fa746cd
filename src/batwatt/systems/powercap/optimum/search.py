"""Large neighbourhood search: schedules that get better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from batwatt.arrays import RealTable
from batwatt.systems.powercap.optimum import search_kernel as kernel
from batwatt.systems.powercap.optimum.problem import Problem
from batwatt.systems.powercap.optimum.timeline import PowerTimeline

FACTORS = (0.02, 1.0, 4.0, 10.0)
"""The prices are multiplied by one of these, drawn anew each time: real ones count joules, a run holds whole steps."""
HEAT = 0.02
"""By what share a schedule may be worse than the best one at first and still be gone on from."""
SKIPPED = 0.6
"""The share of modes that a repair passes over where all are tried: else whoever need not wait runs at its fastest."""
CHUNK = 500
"""Rounds between two looks at the clock."""


class Search:
    """A complete schedule that gets better, within a timeline."""

    def __init__(self, problem: Problem, seed: int, all_modes: bool = True) -> None:
        self.problem = problem
        self.timeline = PowerTimeline(problem)
        use, jobs = self.timeline.use, len(problem.tasks)
        if not all_modes:
            use.tried[:] = tried(problem)
        columns = use.peaks.shape[1]
        self.stand = kernel.Stand(
            reals=np.array([np.inf, np.inf, 0.0, SKIPPED if all_modes else 0.0]),
            counts=np.array([1 + seed % (kernel.MODULUS - 1), 0, 0, 0], dtype=np.int64),
            factors=np.array(FACTORS),
            price=np.zeros((problem.steps + 1, columns)),
            paid=np.zeros((problem.steps + 1, columns)),
            cost=np.zeros(jobs),
            best_row=np.full(jobs, -1, dtype=np.int64),
            best_start=np.zeros(jobs, dtype=np.int64),
            picked=np.zeros(jobs + 1, dtype=np.int64),
            near=np.zeros(jobs, dtype=np.int64),
            key=np.zeros(jobs + 1),
            old_row=np.zeros(jobs, dtype=np.int64),
            old_start=np.zeros(jobs, dtype=np.int64),
        )

    @property
    def value(self) -> float:
        """Mean slowdown of the best schedule."""
        return 1.0 + float(self.stand.reals[kernel.BEST]) / len(self.problem.tasks)

    @property
    def best(self) -> dict[int, tuple[int, int]]:
        """Start and mode of each job in the best schedule; empty before one is known."""
        use, stand = self.timeline.use, self.stand
        if stand.best_row[0] < 0:
            return {}
        modes = (stand.best_row - use.first[:-1]).tolist()
        return dict(enumerate(zip(stand.best_start.tolist(), modes, strict=True)))

    def set_prices(self, rates: RealTable) -> None:
        """The prices from now on, by step: of a server for a tick in state d of kind k, in column k * S + d."""
        self.stand.price[:-1] = rates
        lengths = np.diff(self.timeline.use.begins).astype(np.float64)
        np.cumsum(rates * lengths[:, None], axis=0, out=self.stand.paid[1:])

    def insert(self, job: int, factor: float = FACTORS[-1]) -> bool:
        """Put a job in where it is cheapest at the prices times a factor; False if it fits nowhere."""
        return bool(kernel.insert_one(self.timeline.use, self.stand, job, factor))

    def construct(self, order: Iterable[int]) -> bool:
        """Put all jobs in anew in an order; False if one fits nowhere."""
        self._clear()
        return all(self.insert(job) for job in order) and bool(kernel.note(self.timeline.use, self.stand))

    def load(self, starts: Mapping[int, tuple[int, int]]) -> None:
        """Go on from a schedule."""
        self._clear()
        for job, (start, mode) in starts.items():
            self.timeline.restore(job, start, mode)
        kernel.note(self.timeline.use, self.stand)

    def _clear(self) -> None:
        for job in self.timeline.runs:
            self.timeline.take(job)

    def improve(
        self,
        rounds: int,
        go_on: Callable[[], bool] = lambda: True,
        done: Callable[[], float] | None = None,
    ) -> None:
        """Destroy and repair up to `rounds` times.

        Also taken is a schedule that is worse than the best by a share `HEAT`, which falls to 0 with the share of the
        rounds, or of whatever `done` tells, that is over.
        """
        for turn in range(0, rounds, CHUNK):
            if not go_on():
                return
            over = done() if done is not None else turn / rounds
            self.stand.reals[kernel.HEAT] = HEAT * max(0.0, 1.0 - over)
            kernel.improve(self.timeline.use, self.stand, min(CHUNK, rounds - turn))


def tried(problem: Problem) -> list[bool]:
    """Which modes are tried where there are many: those of one kind of servers, all where no kind is large enough."""
    found = []
    for task in problem.tasks:
        alone = [len(mode.parts) == 1 for mode in task.modes]
        found += alone if any(alone) else [True] * len(alone)
    return found
