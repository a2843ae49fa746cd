"""A lower bound of the mean slowdown by Lagrangian relaxation, and prices of watts and servers.

The rules: docs/explanation/optimum.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum.prices import Floats, Ints, ModeTable, PowerPrices, mode_tables
from batwatt.systems.powercap.optimum.problem import TICKS_PER_S, OptimumJob, Problem

WINDOW = 24
"""Steps after the submission that are looked at first; four times as many each time that the least may lie beyond."""
PATIENCE = 6
"""Iterations without a better bound after which the subgradient method makes smaller steps."""
FIRST_HOPE = 0.1
"""By how much of what is between 1 and a schedule's mean slowdown the bound is hoped to rise at first."""
MOMENTUM = 0.3
"""Share of the direction before in the direction of a step."""


@dataclass(frozen=True)
class Bound:
    """The best bound of the mean slowdown so far, and the prices that gave it (by slots)."""

    value: float
    prices: PowerPrices


@dataclass(frozen=True)
class Runs:
    """Runs of a task that start before the step `high`, between which the cost is linear: one entry each.

    `row` is the row of the mode table, `slots` the slots of start and end, `waits` wait_j / Et_j, `amounts` what the
    run takes: watts above sleep, then servers of each kind.
    """

    high: int
    row: Ints
    starts: Ints
    ends: Ints
    slots: tuple[Ints, Ints]
    waits: Floats
    amounts: Floats


class Relaxation:
    """The relaxed problem: watts and servers of each slot as amounts, runs that pay for what they use.

    A slot is one of `parts` equal parts of a step. Left out are runs that the caps forbid even if nothing else runs.
    """

    def __init__(self, problem: Problem, parts: int = 1) -> None:
        self.problem = problem
        self.parts = parts
        self._extremes = [_extremes(table, len(problem.kinds)) for table in mode_tables(problem)]
        self.steps: Ints = np.asarray(problem.begins, dtype=np.int64)
        cuts = [a + (b - a) * i // parts for a, b in itertools.pairwise(problem.begins) for i in range(parts)]
        self.begins: Ints = np.array([*cuts, problem.begins[-1]], dtype=np.int64)
        lengths = np.diff(self.begins).astype(np.float64)
        rest_w = sum(kind.count * kind.rest_w for kind in problem.kinds)
        self.spare_w = np.maximum(np.asarray(problem.caps_w) - rest_w, 0.0)
        watts = np.repeat(self.spare_w, parts)
        counts = np.array([[float(kind.count)] for kind in problem.kinds])
        self.capacity = np.vstack([watts[None, :], np.repeat(counts, len(watts), axis=1)]) * lengths
        # what a price is worth is measured by the capacity, but not by a tiny one
        self.scale = np.maximum(self.capacity, 0.2 * self.capacity.mean(axis=1, keepdims=True))
        self.price = np.zeros_like(self.capacity)
        self.best = Bound(1.0, PowerPrices(self.begins, self.price[0], self.price[1:]))
        self._runs = [
            self.runs(task, *extremes, problem.step_of(task.submit) + WINDOW)
            for task, extremes in zip(problem.tasks, self._extremes, strict=True)
        ]

    def by_step(self, prices: PowerPrices) -> PowerPrices:
        """Prices of slots as prices of steps: their means."""
        rates = prices.rates[:, :-1].reshape(len(self.capacity), -1, self.parts).mean(axis=2)
        return PowerPrices(self.steps, rates[0], rates[1:])

    def improve(self, upper: float, iterations: int, go_on: Callable[[], bool] = lambda: True) -> Bound:
        """Raise the bound by a subgradient method; `upper` is the mean slowdown of a schedule."""
        count = len(self.problem.tasks)
        ceiling = (upper - 1.0) * count
        price, direction = self.price, np.zeros_like(self.capacity)
        best, best_price, stale = (self.best.value - 1.0) * count, self.price, 0
        hope = FIRST_HOPE * ceiling
        for _ in range(iterations):
            if not go_on() or ceiling - best <= 1e-9:
                break
            prices = PowerPrices(self.begins, price[0], price[1:])
            value, used = self.evaluate(prices)
            stale = 0 if value > best + 0.1 * hope else stale + 1
            if value > best:
                best, best_price = value, price
                self.best = Bound(1.0 + best / count, prices)
            if stale >= PATIENCE:
                # the bound does not rise by what was hoped for: hope for less, from the best prices
                stale, hope, price = 0, hope * 0.5, best_price
                direction[:] = 0.0
                continue
            slack = (used - self.capacity) / self.scale
            slack[(price <= 0.0) & (slack < 0.0)] = 0.0
            direction = slack + MOMENTUM * direction
            norm = float((direction * direction).sum())
            if norm <= 0.0:
                break
            step = min(best + hope, ceiling) - value
            price = np.maximum(0.0, price + step / norm * direction / self.scale)
        self.price = best_price
        return self.best

    def evaluate(self, prices: PowerPrices) -> tuple[float, Floats]:
        """The bound on the sum of wait / Et at some prices, and what the cheapest runs use of every slot."""
        used = np.zeros_like(self.capacity)
        total = 0.0
        for j in range(len(self._runs)):
            cost, index = self.least(j, prices)
            total += cost
            self._use(used, self._runs[j], index)
        paid = sum(
            float((rate[:-1] * capacity).sum()) for rate, capacity in zip(prices.rates, self.capacity, strict=True)
        )
        return total - paid, used

    def least(self, j: int, prices: PowerPrices) -> tuple[float, int]:
        """Cost of a task's cheapest run, and which of its runs that is."""
        task, (table, partners) = self.problem.tasks[j], self._extremes[j]
        longest_s = float(table.run_s.max())
        while True:
            runs = self._runs[j]
            costs = cost_of(runs, prices)
            index = int(np.argmin(costs)) if len(costs) else -1
            least = float(costs[index]) if len(costs) else np.inf
            waited_s = (int(self.steps[runs.high]) - task.submit) / TICKS_PER_S
            if runs.high == self.problem.steps or waited_s / longest_s >= least:
                return least, index
            low = self.problem.step_of(task.submit)
            self._runs[j] = self.runs(task, table, partners, low + 4 * (runs.high - low))

    def runs(self, task: OptimumJob, table: ModeTable, partners: Ints, high: int) -> Runs:
        """The runs that start before a step, or at its beginning, and that the caps allow if nothing else runs.

        Cost and permission change where a run begins or ends at the edge of a slot, begins at the submission, or begins
        when a server that wakes in the step is awake. Between these times the cost is linear, and where a run is
        allowed between two of them it is at both.
        """
        problem = self.problem
        high = min(high, problem.steps)
        low = problem.step_of(task.submit)
        end = int(self.steps[high])
        most = int(table.ticks.max())
        first, last = np.searchsorted(self.begins, [task.submit, end], side="right")
        awake = [
            self.steps[low:high] + kind.on_ticks for kind in problem.kinds if kind.sleep is not None and kind.on_ticks
        ]
        same = np.concatenate([[task.submit], self.begins[first:last], *awake])
        later = self.begins[first : np.searchsorted(self.begins, end + most, side="right")]
        some = np.hstack([np.broadcast_to(same, (len(table.ticks), len(same))), later[None, :] - table.ticks[:, None]])
        starts = np.sort(np.clip(some, task.submit, end), axis=1)
        fresh = np.ones(starts.shape, dtype=bool)
        fresh[:, 1:] = starts[:, 1:] > starts[:, :-1]
        row, column = np.nonzero(fresh)
        begin = starts[row, column]
        allowed = self._allowed(table, partners, low, row, begin)
        row, begin = row[allowed], begin[allowed]
        finish = begin + table.ticks[row]
        slots = tuple(np.searchsorted(self.begins, at, side="right") - 1 for at in (begin, finish))
        amounts = np.vstack([table.power_w[row][None, :], table.counts[row].T.astype(np.float64)])
        waits = (begin - task.submit) / TICKS_PER_S / table.run_s[row]
        return Runs(high, row, begin, finish, (slots[0], slots[1]), waits, amounts)

    def _allowed(self, table: ModeTable, partners: Ints, low: int, row: Ints, start: Ints) -> NDArray[np.bool_]:
        """Which runs, or their partners, the caps allow even alone; `low` is a step that none starts before.

        A run needs the power of its mode in every step that it touches (Eq. 1 and 2). If it starts in a step before a
        server that wakes in it would be awake, its servers are on in the step before.
        """
        problem, steps = self.problem, self.steps
        end = start + table.ticks[row]
        first = np.searchsorted(steps, start, side="right") - 1
        final = np.minimum(np.searchsorted(steps, end, side="left") - 1, problem.steps - 1)
        top = int(final.max(initial=low)) + 1
        power_w = np.minimum(table.power_w, table.power_w[partners])
        bad = np.zeros((len(table.ticks), top - low + 1), dtype=np.int64)
        np.cumsum(power_w[:, None] > self.spare_w[low:top] + NOISE_W, axis=1, out=bad[:, 1:])
        allowed = (end <= int(steps[-1])) & (first < problem.steps)
        allowed &= bad[row, final - low + 1] == bad[row, np.minimum(first, final) - low]
        needed_w = []
        for rows in (row, partners[row]):
            watts = np.zeros(len(start))
            for k, kind in enumerate(problem.kinds):
                if kind.sleep is not None:
                    soon = start < steps[first] + kind.on_ticks
                    watts += soon * table.counts[rows, k] * (kind.powers_w[kind.idle] - kind.rest_w)
            needed_w.append(watts)
        return allowed & ((first == 0) | (np.minimum(*needed_w) <= self.spare_w[first - 1] + NOISE_W))

    def _use(self, used: Floats, runs: Runs, index: int) -> None:
        begins = self.begins
        start, end = int(runs.starts[index]), int(runs.ends[index])
        first, final = int(runs.slots[0][index]), int(np.searchsorted(begins, end, side="left"))
        spans = np.minimum(begins[first + 1 : final + 1], end) - np.maximum(begins[first:final], start)
        used[:, first:final] += runs.amounts[:, index, None] * spans

    def open_steps(self, upper: float) -> list[list[list[int]]]:
        """For each task and mode the steps in which it can start in a schedule better than a mean slowdown of `upper`.

        If a job starts elsewhere, the bound at the best prices, with its least cost there instead of its least cost of
        all, is above `upper`.
        """
        problem, prices = self.problem, self.best.prices
        value, _ = self.evaluate(prices)
        spare = (upper - 1.0) * len(problem.tasks) - value + 1e-6
        found = []
        for j, (task, table) in enumerate(zip(problem.tasks, mode_tables(problem), strict=True)):
            least, _ = self.least(j, prices)
            # beyond, the wait alone costs too much
            limit = task.submit + int((least + spare) * float(table.run_s.max()) * TICKS_PER_S) + 1
            high = min(problem.steps, problem.step_of(min(limit, problem.begins[-1] - 1)) + 1)
            runs = self.runs(task, table, np.arange(len(table.ticks)), high)
            low = problem.step_of(task.submit)
            cheapest = np.full((len(table.ticks), high - low + 1), np.inf)
            costs, step = cost_of(runs, prices), runs.slots[0] // self.parts
            np.minimum.at(cheapest, (runs.row, step - low), costs)
            # a step's end belongs to it, too
            at_edge = runs.starts == self.steps[step]
            np.minimum.at(cheapest, (runs.row, np.maximum(step - low - at_edge, 0)), costs)
            found.append([(low + np.flatnonzero(row[: high - low] <= least + spare)).tolist() for row in cheapest])
        return found


def cost_of(runs: Runs, prices: PowerPrices) -> Floats:
    """wait_j / Et_j and the price of each run."""
    cost = runs.waits
    for row, amount in enumerate(runs.amounts):
        held = prices.until(row, runs.ends, runs.slots[1]) - prices.until(row, runs.starts, runs.slots[0])
        cost = cost + amount * held
    return cost


def _extremes(table: ModeTable, kinds: int) -> tuple[ModeTable, Ints]:
    """A table without the modes that can never be the cheapest, and each row's partner.

    Of modes of the same run time and servers only that of the least power matters (a delay has the same in all states).
    With two kinds the price of a run is linear in how many of its servers are of the first, at given states, so only
    the fewest and the most matter: partners. Any other row is its own.
    """
    order = np.lexsort((table.power_w, *table.counts.T, table.run_s))
    same = np.ones(len(order), dtype=bool)
    same[1:] = (np.diff(table.run_s[order]) != 0.0) | (np.diff(table.counts[order], axis=0) != 0).any(axis=1)
    rows = order[same]
    if kinds == 2:
        mixed = rows[(table.counts[rows] > 0).all(axis=1)]
        kept = set(rows.tolist()) - set(mixed.tolist())
        pairs = {row: row for row in kept}
        for run_s in np.unique(table.run_s[mixed]):
            some = mixed[table.run_s[mixed] == run_s]
            few, many = (int(some[at]) for at in (np.argmin(table.counts[some, 0]), np.argmax(table.counts[some, 0])))
            pairs |= {few: many, many: few}
    else:
        pairs = {row: row for row in rows.tolist()}
    found = sorted(pairs)
    place = {row: at for at, row in enumerate(found)}
    partners = np.array([place[pairs[row]] for row in found], dtype=np.int64)
    return table.only(found), partners
