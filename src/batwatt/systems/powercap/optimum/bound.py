"""A lower bound of the mean slowdown by Lagrangian relaxation, and the prices of servers that give it.

The rules: docs/explanation/optimum.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from batwatt.arrays import RealTable
from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum import bound_kernel as kernel
from batwatt.systems.powercap.optimum.problem import OptimumJob, Problem, ServerMode

Floats = NDArray[np.float64]
BEGUN, FASTEST, SLOWEST = 0.1, 2.0, 1e-4
"""The share of what is hoped for that a step is made for: at first, at most and at least."""
HOPE = 0.1
"""By how much of what is between 1 and a schedule's mean slowdown the bound is hoped to rise."""
SHARE, LEAST_SHARE = 0.1, 0.002
"""How much of the newest runs goes into their mean, at first and at last."""
PATIENCE, STALE = 20, 300
"""Iterations without a better bound, with a hardly better one, after which steps or the share become smaller."""
HARDLY = 2e-4
"""A hardly better bound, as a share of what is between 1 and a schedule's mean slowdown."""


class Relaxation:
    """The relaxed problem: in each slot as many servers in each state as runs need, on average, and watts of a step.

    A slot is one of `parts` equal parts of one of the first `priced` steps. `value` is the best bound so far, at the
    prices `best`.
    """

    def __init__(self, problem: Problem, parts: int = 1, priced: int | None = None) -> None:
        self.problem = problem
        self.parts = parts
        self.priced = min(problem.steps, priced or problem.steps)
        chosen = [_extremes(task) for task in problem.tasks]
        self.tables = self._tables(chosen)
        # a price of a watt is measured by what a server draws
        self.scale_w = float(self.tables.power_w.max())
        self.slots = self.priced * parts
        columns = self.tables.price.shape[1]
        self._mean: Floats | None = None
        self.best: Floats = np.zeros(self.slots * columns + self.priced)
        self.value = 1.0

    def _tables(self, chosen: list[list[tuple[int, int]]]) -> kernel.Relaxed:
        problem, parts, kinds = self.problem, self.parts, self.problem.kinds
        states = max(len(kind.powers_w) for kind in kinds)
        steps = list(itertools.pairwise(problem.begins))
        cuts = [a + (b - a) * i // parts for a, b in steps[: self.priced] for i in range(parts)]
        edges = np.array([*cuts, problem.begins[self.priced]], dtype=np.int64)
        opens = np.repeat(np.asarray(problem.begins[: self.priced], dtype=np.int64), parts)
        early = [np.clip((opens + kind.on_ticks - edges[:-1]) / np.diff(edges), 0.0, 1.0) for kind in kinds]
        caps = np.array(problem.caps_w) + NOISE_W
        # a state that a kind does not have earns nothing
        power_w = np.array([[*kind.powers_w, *[kind.powers_w[-1]] * (states - len(kind.powers_w))] for kind in kinds])
        rows = [
            (task.modes[m], at - i)
            for task, some in zip(problem.tasks, chosen, strict=True)
            for i, (m, at) in enumerate(some)
        ]
        modes = [mode for mode, _ in rows]
        return kernel.Relaxed(
            sizes=_whole([len(steps), self.priced, parts, len(kinds), states, _uniform(steps)]),
            begins=_whole(problem.begins),
            edges=edges,
            caps_w=caps,
            spare_w=caps - sum(kind.count * kind.rest_w for kind in kinds),
            servers_of=_whole([kind.count for kind in kinds]),
            sleeps=_whole([kind.sleep is not None for kind in kinds]),
            on_ticks=_whole([kind.on_ticks for kind in kinds]),
            sleep_w=np.array([kind.sleep_w for kind in kinds]),
            off_w=np.array([kind.off_w for kind in kinds]),
            awake_w=np.array([kind.powers_w[kind.idle] - kind.rest_w for kind in kinds]),
            power_w=power_w,
            wake_w=np.maximum(power_w, np.array([[kind.on_w] for kind in kinds])),
            early=np.ascontiguousarray(np.array(early).T),
            submit=_whole([task.submit for task in problem.tasks]),
            first=_whole([0, *itertools.accumulate(map(len, chosen))]),
            partner=np.arange(len(rows)) + _whole([offset for _, offset in rows]),
            ticks=_whole([mode.ticks for mode in modes]),
            run_s=np.array([mode.run_s for mode in modes]),
            above_w=np.array([self._above(mode) for mode in modes]),
            servers=_whole([mode.counts for mode in modes]),
            state=_whole([mode.states for mode in modes]),
            price=np.zeros((self.priced * parts, len(kinds) * states)),
            watt=np.zeros(self.priced),
            paid=np.zeros((self.priced * parts + 1, len(kinds) * states)),
            balance=np.zeros((self.priced * parts, len(kinds) * states)),
            watts=np.zeros(self.priced),
            choice=np.zeros((self.priced, 4), dtype=np.int64),
            found=np.zeros(1, dtype=np.int64),
            lowest=np.zeros(max(len(steps) + 1, len(problem.tasks))),
        )

    def _above(self, mode: ServerMode) -> float:
        return sum(n * (self.problem.kinds[k].powers_w[d] - self.problem.kinds[k].rest_w) for k, d, n in mode.parts)

    @property
    def rates(self) -> RealTable:
        """The best prices by step (row): of one server for a tick, in state d of kind k in column k * S + d."""
        steps, columns = self.problem.steps, self.tables.price.shape[1]
        rates = np.zeros((steps, columns))
        prices = self.best[: self.slots * columns].reshape(self.priced, self.parts, columns)
        rates[: self.priced] = prices.sum(axis=1) / np.diff(self.problem.begins[: self.priced + 1])[:, None]
        return rates

    def evaluate(self, prices: Floats) -> tuple[float, Floats]:
        """The bound of the sum of wait / Et at prices >= 0, and how much more is needed than is there.

        Both have all slots by column, then the steps; the price of 1 / `scale_w` watts.
        """
        tables, split = self.tables, self.slots * self.tables.price.shape[1]
        tables.price[:] = prices[:split].reshape(tables.price.shape)
        tables.watt[:] = prices[split:] / self.scale_w
        value = float(kernel.evaluate(tables))
        return value, np.concatenate([tables.balance.ravel(), tables.watts / self.scale_w])

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
        """For each task and mode the steps in which it can start in a schedule better than a mean slowdown of `upper`.

        If a job starts elsewhere, the bound at the best prices, with its least cost there instead of its least cost of
        all, is above `upper`.
        """
        problem = self.problem
        value, _ = self.evaluate(self.best)
        spare = (upper - 1.0) * len(problem.tasks) - value + 1e-6
        least = self.tables.lowest[: len(problem.tasks)].copy()
        all_modes = self._tables([[(m, m) for m in range(len(task.modes))] for task in problem.tasks])
        all_modes.price[:], all_modes.paid[:] = self.tables.price, self.tables.paid
        found = []
        for j, task in enumerate(problem.tasks):
            low = problem.step_of(task.submit)
            rows = range(int(all_modes.first[j]), int(all_modes.first[j + 1]))
            found.append([list(self._open(all_modes, j, row, float(least[j]) + spare, low)) for row in rows])
        return found

    @staticmethod
    def _open(tables: kernel.Relaxed, job: int, row: int, below: float, low: int) -> Iterator[int]:
        kernel.by_step(tables, job, row, below, low)
        yield from (low + np.flatnonzero(np.isfinite(tables.lowest))).tolist()


def _whole(values: Iterable[object]) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


def _uniform(steps: list[tuple[int, int]]) -> int:
    lengths = {b - a for a, b in steps}
    return lengths.pop() if len(lengths) == 1 else 0


def _extremes(task: OptimumJob) -> list[tuple[int, int]]:
    """The modes that can be the cheapest, and the place among them of each one's partner.

    With two kinds the price of a run at given states is linear in how many of its servers are of the first, so only the
    fewest and the most matter: partners. Any other mode is its own.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, mode in enumerate(task.modes):
        pair = len(mode.counts) == 2 and len(mode.parts) == 2
        groups.setdefault(mode.states if pair else (-2, m), []).append(m)
    found: list[tuple[int, int]] = []
    for some in groups.values():
        few, many = (pick(some, key=lambda m: task.modes[m].counts[0]) for pick in (min, max))
        at = len(found)
        found += [(few, at)] if few == many else [(few, at + 1), (many, at)]
    return found
