"""The knapsack with two capacities that a plan of a period solves: a table of all capacities, and a search for one.

The model: docs/explanation/checkpoint.md. U is the sum of p_i of the `running` jobs, which hold theirs in [0, D[ in any
case; F = P_n - U. V_j(a, b) is the most useful work of the first j jobs if `checkpointed` and `stopped` jobs hold at
most a processors in [0, D[, and all jobs at most b in [D, T]:

    running        V_j(a, b) = max( V_{j-1}(a, b - p) + p T,  V_{j-1}(a, b) + p (D - C)  if C <= D )
    checkpointed   V_j(a, b) = max( V_{j-1}(a - p, b - p) + p T,  V_{j-1}(a, b - p) + p (T - D - R),  V_{j-1}(a, b) )
    stopped        the same with p (T - R) in the first term

The plan is V_J(F, P_n) at the best D; with D = 0 there is one phase: a = b. Only V_J(F, P) is wanted, and most cells
cannot be part of it. With a price for each processor of the two phases, the sum of what each job is worth at its best
choice less the prices of what it holds is at least V_J (the bound of Lagrange; at the best prices it is the linear
relaxation). The search goes from V_J(F, P) down to V_{J-1}, V_{J-2}, ... and leaves out cells that cannot come within
10^-6 of the bound; if no plan does, within ten times as much, and so on. So it chooses what tables choose, of equal
plans, too. One phase (D = 0), and fewer than `SMALL_CELLS` cells, take tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Counts = NDArray[np.int64]
NONE, BOTH, SECOND = range(3)
"""Choices for a job: it holds nothing, its width in both capacities, or in the second: columns of `worths`."""
ROWS = 32
"""Rows of a table that are computed together, so that they stay in the cache of the processor."""
MOST_BYTES = 3 * 2**29
"""Room for a table and its choices."""
SMALL_CELLS = 2**14
"""Cells of a table up to which it is faster than a search."""
MOST_CELLS = 2**22
"""Most cells that a round of a search looks at; they take some 400 MiB and a second."""
_LEAST_SLACK, _WIDER = 1e-6, 10.0
_NOISE = 1e-10
"""Part of the bound that rounding may add to a sum of worths."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_NARROWINGS = 40
_COARSER = "let processors have a common divisor (nodes instead of cores)"


class TooLargeError(ValueError):
    """A table would take more memory than there is room for, or a search look at too many cells."""


def fill(widths: Counts, worths: Table, table: Table, choices: NDArray[np.uint8] | None = None) -> None:
    """Put all jobs into `table` (float64[F + 1, P + 1]), which is 0 at first.

    `widths` int64[J], `worths` float64[J, 3]; `choices` uint8[J, F + 1, P + 1] is written if it is there. Among equals
    that choice stays which comes first: none, both, second.
    """
    rows, columns = table.shape
    best, room = np.empty((2, ROWS, columns))
    for job, (width, (none, both, second)) in enumerate(zip(widths.tolist(), worths.tolist(), strict=True)):
        holding = ((BOTH, both, width, width), (SECOND, second, 0, width))
        uses = [use for use in holding if use[1] > none]
        # from the last row on: what a row is computed from lies above it
        for end in range(rows, 0, -ROWS):
            begin = max(0, end - ROWS)
            block = np.add(table[begin:end], none, out=best[: end - begin])
            selection: Any = None if choices is None else choices[job, begin:end]
            if selection is not None:
                selection[:] = NONE
            for choice, worth, down, right in uses:
                top = max(begin, down)
                if top >= end or right >= columns:
                    continue
                before = table[top - down : end - down, : columns - right]
                value = np.add(before, worth, out=room[: end - top, : columns - right])
                here = block[top - begin :, right:]
                if selection is not None:
                    selection[top - begin :, right:][value > here] = choice
                np.maximum(here, value, out=here)
            table[begin:end] = block


class Packing(NamedTuple):
    """The most worth of a knapsack and the choice for each job; -inf and no choices if it cannot be, or is too low."""

    worth: float
    choices: list[int]


NO_PACKING = Packing(-math.inf, [])


@dataclass(frozen=True)
class Knapsack:
    """Jobs of `widths` (int64[J]) and `worths` (float64[J, 3], -inf if it cannot be), and two capacities."""

    widths: Counts
    worths: Table
    first: int
    second: int

    @cached_property
    def table(self) -> Table:
        """V_J(a, b) at [a, b], for all a up to `first` and b up to `second`. Raises TooLargeError."""
        table = self._empty(2)
        fill(self.widths, self.worths, table)
        return table

    def solve(self, least: float = -math.inf) -> Packing:
        """Return the best choices, or none if they are not worth more than `least`. Raises TooLargeError."""
        free = self._free
        if free.worth <= least:
            return NO_PACKING
        if free.first[-1] <= self.first and free.second[-1] <= self.second:
            return Packing(free.worth, free.choices)
        if self.first == 0 or (self.first + 1) * (self.second + 1) <= SMALL_CELLS:
            packing = self._by_table()
        else:
            packing = _Search(self, free).run(least)
        return packing if packing.worth > least else NO_PACKING

    def _empty(self, tables: int, choices: int = 0) -> Table:
        """Return an empty table, if there is room for as many, and for choices of as many jobs."""
        shape = self.first + 1, self.second + 1
        if shape[0] * shape[1] * (8 * tables + choices) > MOST_BYTES:
            problem = f"{len(self.widths)} jobs on {self.first} x {self.second} processors"
            raise TooLargeError(f"{problem} take more than {MOST_BYTES >> 20} MiB: {_COARSER}")
        return np.zeros(shape)

    def _by_table(self) -> Packing:
        count = len(self.widths)
        table = self._empty(1, count)
        grids = np.empty((count, *table.shape), np.uint8)
        fill(self.widths, self.worths, table, grids)
        a, b = self.first, self.second
        choices = [NONE] * count
        for job in reversed(range(count)):
            choice, width = int(grids[job, a, b]), int(self.widths[job])
            choices[job] = choice
            a -= width if choice == BOTH else 0
            b -= width if choice != NONE else 0
        return Packing(float(table[-1, -1]), choices)

    @cached_property
    def _free(self) -> _Free:
        """The choices if there were room for all."""
        worth = 0.0
        free = _Free([0.0], [], [0], [0])
        for width, worths in zip(self.widths.tolist(), self.worths.tolist(), strict=True):
            # sums are compared, as in a table: rounding may make different worths equal
            sums = [worth + more for more in worths]
            choice = max((NONE, BOTH, SECOND), key=sums.__getitem__)
            worth = sums[choice]
            free.worths.append(worth)
            free.choices.append(choice)
            free.first.append(free.first[-1] + (width if choice == BOTH else 0))
            free.second.append(free.second[-1] + (width if choice != NONE else 0))
        return free


class _Free(NamedTuple):
    """Choices without capacities: `worths`, `first` and `second` are sums over the first j jobs, j from 0 to J."""

    worths: list[float]
    choices: list[int]
    first: list[int]
    second: list[int]

    @property
    def worth(self) -> float:
        return self.worths[-1]


class _Level(NamedTuple):
    """Cells (a, b) of V_j: the worth of those where all of the first j jobs fit, and what `open` ones go on with.

    `links` are (choice, its worth, positions in `open`, positions of the cells at the level below).
    """

    jobs: int
    worth: Table
    open: Counts
    links: list[tuple[int, float, Counts, Counts]]


class _Search:
    """V_J at one pair of capacities, of cells that can be part of the best choices.

    What is left of the capacities has a price, and each job its best choice at these prices: their sum, the bound of
    Lagrange, is the most that a cell can add. Cells that stay too far below the bound of all are left out. How far that
    may be is tried in rounds: the packing is the best one if it is within.
    """

    def __init__(self, knapsack: Knapsack, free: _Free) -> None:
        self._free = free
        self._start = knapsack.first, knapsack.second
        self._widths = knapsack.widths
        worths = knapsack.worths.copy()
        worths[knapsack.widths > knapsack.first, BOTH] = -math.inf
        worths[knapsack.widths > knapsack.second, SECOND] = -math.inf
        uses = worths[:, BOTH:]
        # no best plan holds what is not worth it
        uses[uses <= worths[:, :BOTH]] = -math.inf
        self._worths = worths
        self._prices = _prices(self._widths, worths, *self._start)
        first_price, both_price = self._prices[0], sum(self._prices)
        none, both, second = worths.T
        net = np.maximum(both - both_price * self._widths, second - self._prices[1] * self._widths)
        self._most = np.concatenate([[0.0], np.cumsum(np.maximum(none, net))])
        must = none == -math.inf
        self._must_second = np.concatenate([[0], np.cumsum(np.where(must, self._widths, 0))])
        self._must_first = np.concatenate([[0], np.cumsum(np.where(must & (second == -math.inf), self._widths, 0))])
        self._bound = float(first_price * self._start[0] + self._prices[1] * self._start[1] + self._most[-1])
        self._scale = abs(self._bound) + float(np.abs(worths[np.isfinite(worths)]).max(initial=0.0))

    def run(self, least: float) -> Packing:
        """Return the best choices, or none or others if they are not worth more than `least`. Raises TooLargeError."""
        noise = _NOISE * self._scale
        slack = _LEAST_SLACK
        while True:
            goal = max(self._bound - slack * self._scale, least) if slack <= 1.0 else least
            if self._bound + noise < goal:
                return NO_PACKING
            packing = self._packing(self._levels(goal - noise))
            if packing.worth >= goal or goal <= least:
                return packing
            # what is not the best is a goal to be met
            least = max(least, packing.worth)
            slack *= _WIDER

    def _levels(self, goal: float) -> list[_Level]:
        """Return the cells of V_J, V_{J-1}, ... that may be part of choices worth `goal`."""
        free = self._free
        first_price, second_price = self._prices
        columns = self._start[1] + 1
        a, b, above = np.array([self._start[0]]), np.array([self._start[1]]), np.zeros(1)
        levels: list[_Level] = []
        count = 0
        for jobs in range(len(self._widths), -1, -1):
            able = above + first_price * a + second_price * b + self._most[jobs] >= goal
            able &= (a >= self._must_first[jobs]) & (b >= self._must_second[jobs])
            roomy = (a >= free.first[jobs]) & (b >= free.second[jobs])
            rest = np.flatnonzero(able & ~roomy)
            count += len(rest)
            if count > MOST_CELLS:
                problem = f"{len(self._widths)} jobs on {self._start[0]} x {columns - 1} processors"
                raise TooLargeError(f"{problem} have more than {MOST_CELLS} cells near the best: {_COARSER}")
            level = _Level(jobs, np.where(able & roomy, free.worths[jobs], -math.inf), rest, [])
            levels.append(level)
            if not len(rest):
                break
            a, b, above = self._below(level, a[rest], b[rest], above[rest], columns)
        return levels

    def _below(self, level: _Level, a: Counts, b: Counts, above: Table, columns: int) -> tuple[Counts, Counts, Table]:
        """Return the cells one job further, with the most worth of the jobs above; set the links to them."""
        width = int(self._widths[level.jobs - 1])
        worths = self._worths[level.jobs - 1].tolist()
        keys, sums, parts = [], [], []
        for choice, down, right in ((NONE, 0, 0), (BOTH, width, width), (SECOND, 0, width)):
            worth = worths[choice]
            if worth == -math.inf:
                continue
            fits = np.flatnonzero((a >= down) & (b >= right))
            keys.append((a[fits] - down) * columns + b[fits] - right)
            sums.append(above[fits] + worth)
            parts.append((choice, worth, fits))
        if not parts:
            return a[:0], b[:0], above[:0]
        cells, positions = np.unique(np.concatenate(keys), return_inverse=True)
        most = np.full(len(cells), -math.inf)
        np.maximum.at(most, positions, np.concatenate(sums))
        begin = 0
        for choice, worth, fits in parts:
            level.links.append((choice, worth, fits, positions[begin : begin + len(fits)]))
            begin += len(fits)
        return cells // columns, cells % columns, most

    def _packing(self, levels: list[_Level]) -> Packing:
        """Return the best choices from the first cell down; of equal ones that which a table has."""
        below = levels[-1].worth
        steps = []
        for level in reversed(levels[:-1]):
            best = np.full(len(level.open), -math.inf)
            choices, into = np.zeros((2, len(level.open)), np.int64)
            for choice, worth, fits, cells in level.links:
                value = below[cells] + worth
                better = value > best[fits]
                where = fits[better]
                best[where], choices[where], into[where] = value[better], choice, cells[better]
            level.worth[level.open] = best
            below = level.worth
            steps.append((choices, into))
        if below[0] == -math.inf:
            return NO_PACKING
        choices_of = self._free.choices.copy()
        cell = 0
        for level, (choices, into) in zip(levels, reversed(steps), strict=False):
            at = int(np.searchsorted(level.open, cell))
            if at == len(level.open) or level.open[at] != cell:
                break
            choices_of[level.jobs - 1], cell = int(choices[at]), int(into[at])
        return Packing(float(below[0]), choices_of)


def _prices(widths: Counts, worths: Table, first: int, second: int) -> tuple[float, float]:
    """Return the prices of the two capacities at which the bound of Lagrange is least: that is a linear relaxation."""
    none, both, alone = worths.T

    def second_price(first_price: float) -> float:
        """Return the worth per width of the job with which the second capacity is full, if the best come first."""
        with np.errstate(invalid="ignore"):
            density = (np.maximum(both - first_price * widths, alone) - none) / widths
        density[np.isnan(density)] = -math.inf
        order = np.argsort(-density)
        full = int(np.searchsorted(np.cumsum(widths[order]), second, side="right"))
        price = float(density[order[full]]) if full < len(order) else 0.0
        return price if 0.0 < price < math.inf else 0.0

    def bound(first_price: float) -> float:
        price = second_price(first_price)
        net = np.maximum(both - (first_price + price) * widths, alone - price * widths)
        return first_price * first + price * second + float(np.maximum(net, none).sum())

    with np.errstate(invalid="ignore"):
        differences = np.concatenate([(both - none) / widths, (both - alone) / widths])
    low, high = 0.0, float(differences[np.isfinite(differences)].max(initial=0.0))
    # the bound is convex in the first price: golden section
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    bounds = [bound(price) for price in inner]
    for _ in range(_NARROWINGS):
        if bounds[0] <= bounds[1]:
            high, inner[1], bounds[1] = inner[1], inner[0], bounds[0]
            inner[0] = high - _GOLDEN * (high - low)
            bounds[0] = bound(inner[0])
        else:
            low, inner[0], bounds[0] = inner[0], inner[1], bounds[1]
            inner[1] = low + _GOLDEN * (high - low)
            bounds[1] = bound(inner[1])
    price = min((0.0, low, high), key=bound)
    return price, second_price(price)
