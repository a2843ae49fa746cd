"""A lower bound of the mean slowdown by Lagrangian relaxation, and the prices of servers that give it.

The rules: docs/explanation/optimum.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from batwatt.arrays import reals
from batwatt.systems.powercap.optimum.problem import OptimumJob, Problem
from batwatt.systems.powercap.optimum.relaxed import Relaxed

Floats = NDArray[np.float64]
BEGUN, FASTEST, SLOWEST = 0.1, 2.0, 1e-4
"""Share of the hoped-for rise of the bound for which a step is made: at first, at most and at least."""
HOPE = 0.1
"""Share of the distance from 1 to a schedule's mean slowdown by which the bound is hoped to rise."""
SHARE, LEAST_SHARE = 0.1, 0.002
"""Share of the newest runs in their mean, at first and at last."""
PATIENCE, STALE = 20, 300
"""Iterations without a better bound, with a hardly better one, after which steps or the share become smaller."""
HARDLY = 2e-4
"""A hardly better bound, as a share of the distance from 1 to a schedule's mean slowdown."""


class Relaxation:
    """The relaxed problem: in each slot as many servers in each state as runs need, on average, and watts of a step.

    A slot is one of `parts` equal parts of one of the first `priced` steps. `value` is the best bound so far, at the
    prices `best`.
    """

    def __init__(self, problem: Problem, parts: int = 1, priced: int | None = None) -> None:
        self.problem = problem
        self.parts = parts
        self.priced = min(problem.steps, priced or problem.steps)
        self.tables = Relaxed(problem, parts, self.priced, [_extremes(task) for task in problem.tasks])
        # the price of a watt is measured by the power of a server
        self.scale_w = max(self.tables.power_w)
        self.slots = self.priced * parts
        self.columns = int(self.tables.columns)
        self._mean: Floats | None = None
        self.best: Floats = np.zeros(self.slots * self.columns + self.priced)
        self.value = 1.0

    @property
    def rates(self) -> Floats:
        """The best prices by step (row): of one server for a tick, in state d of kind k in column k * S + d."""
        steps, columns = self.problem.steps, self.columns
        rates = np.zeros((steps, columns))
        prices = self.best[: self.slots * columns].reshape(self.priced, self.parts, columns)
        rates[: self.priced] = prices.sum(axis=1) / np.diff(self.problem.begins[: self.priced + 1])[:, None]
        return rates

    def evaluate(self, prices: Floats) -> tuple[float, Floats]:
        """Return the bound of the sum of wait / Et at prices >= 0, and the need beyond the supply.

        Both have all slots by column, then the steps; the price of 1 / `scale_w` watts.
        """
        tables, split = self.tables, self.slots * self.columns
        tables.price = reals(prices[:split].tolist())
        tables.watt = reals((prices[split:] / self.scale_w).tolist())
        value = tables.evaluate()
        return value, np.concatenate([np.asarray(tables.balance), np.asarray(tables.watts) / self.scale_w])

    def improve(self, upper: float, iterations: int, go_on: Callable[[], bool] = lambda: True) -> float:
        """Raise the bound; `upper` is the mean slowdown of a schedule.

        The volume algorithm (Barahona and Anbil): a step from the best prices towards a mean of what the cheapest runs
        and the servers at all prices so far were short of.
        """
        jobs = len(self.problem.tasks)
        ceiling = (upper - 1.0) * jobs
        value, short = self.evaluate(self.best)
        best = max(value, (self.value - 1.0) * jobs)
        mean = short if self._mean is None else self._mean
        pace, share, failed = BEGUN, SHARE, 0
        hope = best + HOPE * ceiling
        marks = [best]
        for _ in range(iterations):
            if ceiling - best <= 1e-9 or not go_on():
                break
            direction = np.where((self.best <= 0.0) & (mean < 0.0), 0.0, mean)
            norm = float((direction * direction).sum())
            if norm <= 1e-12:
                break
            prices = np.maximum(0.0, self.best + pace * (min(hope, ceiling) - best) / norm * direction)
            value, short = self.evaluate(prices)
            change = short - mean
            length = float((change * change).sum())
            # the mean that is the nearest to 0, within bounds
            nearest = -float((mean * change).sum()) / length if length > 0.0 else share
            weight = min(max(nearest, share / 10.0), share)
            mean = weight * short + (1.0 - weight) * mean
            if value > best:
                best, failed, self.best = value, 0, prices
                self.value = max(self.value, 1.0 + best / jobs)
                if float((short * direction).sum()) > 0.0:
                    pace = min(FASTEST, pace * 1.1)
            else:
                failed += 1
                if failed == PATIENCE:
                    pace, failed = max(SLOWEST, pace * 0.66), 0
            if best > hope - 0.2 * HOPE * ceiling:
                hope = best + HOPE * ceiling
            marks.append(best)
            if len(marks) > STALE and best - marks[-STALE] < HARDLY * ceiling:
                share, marks = share / 2.0, [best]
                if share <= LEAST_SHARE:
                    break
        self._mean = mean
        return self.value

    def open_steps(self, upper: float) -> list[list[list[int]]]:
        """Return the steps, by task and mode, of starts in a schedule better than a mean slowdown of `upper`.

        If a job starts elsewhere, the bound at the best prices, with its least cost there instead of its least cost of
        all, is above `upper`.
        """
        problem = self.problem
        value, _ = self.evaluate(self.best)
        spare = (upper - 1.0) * len(problem.tasks) - value + 1e-6
        least = list(self.tables.lowest)[: len(problem.tasks)]
        every_mode = [[(m, m) for m in range(len(task.modes))] for task in problem.tasks]
        all_modes = Relaxed(problem, self.parts, self.priced, every_mode)
        all_modes.price, all_modes.paid = self.tables.price, self.tables.paid
        steps = []
        for j, task in enumerate(problem.tasks):
            low = problem.step_of(task.submit)
            rows = range(int(all_modes.first[j]), int(all_modes.first[j + 1]))
            steps.append([list(self._open(all_modes, j, row, least[j] + spare, low)) for row in rows])
        return steps

    @staticmethod
    def _open(tables: Relaxed, job: int, row: int, below: float, low: int) -> Iterator[int]:
        tables.by_step(job, row, below, low)
        yield from (low + np.flatnonzero(np.isfinite(np.asarray(tables.lowest)))).tolist()


def _extremes(task: OptimumJob) -> list[tuple[int, int]]:
    """Return the modes that can be the cheapest, and the place among them of each one's partner.

    With two kinds the price of a run at given states is linear in how many of its servers are of the first, so only the
    fewest and the most matter: partners. Any other mode is its own.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, mode in enumerate(task.modes):
        pair = len(mode.counts) == 2 and len(mode.parts) == 2
        groups.setdefault(mode.states if pair else (-2, m), []).append(m)
    partners: list[tuple[int, int]] = []
    for some in groups.values():
        few, many = (pick(some, key=lambda m: task.modes[m].counts[0]) for pick in (min, max))
        at = len(partners)
        partners += [(few, at)] if few == many else [(few, at + 1), (many, at)]
    return partners
