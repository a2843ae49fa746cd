"""What watts and servers cost when they are scarce: prices per step, and what a run costs at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batwatt.systems.powercap.optimum.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ModeTable:
    """The modes of a job as arrays, a row each: servers by kind, power above sleep in W, run time in s and in ticks."""

    counts: Ints
    power_w: Floats
    run_s: Floats
    ticks: Ints
    index: Ints

    def only(self, rows: list[int]) -> ModeTable:
        """The table of these rows."""
        return ModeTable(self.counts[rows], self.power_w[rows], self.run_s[rows], self.ticks[rows], self.index[rows])

    def priced(self, rates: Floats) -> Floats:
        """What each mode (row) pays at rates of watts and of servers of each kind (rows), in every column.

        No matrix product: the last digit of that depends on the machine.
        """
        cost = self.power_w[:, None] * rates[0]
        for k, rate in enumerate(rates[1:]):
            cost = cost + self.counts[:, k, None] * rate
        return cost


def mode_tables(problem: Problem, all_modes: bool = True) -> list[ModeTable]:
    """The table of every task; without `all_modes` those that mix kinds only where no single kind is large enough."""
    tables = []
    for task in problem.tasks:
        chosen = [m for m, mode in enumerate(task.modes) if len(mode.parts) == 1]
        if all_modes or not chosen:
            chosen = list(range(len(task.modes)))
        modes = [task.modes[m] for m in chosen]
        watts = [
            sum(n * (problem.kinds[k].powers_w[d] - problem.kinds[k].rest_w) for k, d, n in mode.parts)
            for mode in modes
        ]
        tables.append(
            ModeTable(
                np.array([mode.counts for mode in modes], dtype=np.int64),
                np.array(watts),
                np.array([mode.run_s for mode in modes]),
                np.array([mode.ticks for mode in modes], dtype=np.int64),
                np.array(chosen, dtype=np.int64),
            )
        )
    return tables


class PowerPrices:
    """Prices per J above sleep and per server-second of each kind, in every step; integrals of them over time.

    Both are per tick: `watts[t]` of one W for a tick, `servers[k, t]` of one server for a tick.
    """

    def __init__(self, begins: Ints, watts: Floats, servers: Floats) -> None:
        self.rates = np.vstack([watts[None, :], servers])
        lengths = np.diff(begins).astype(np.float64)
        total = np.cumsum(self.rates * lengths, axis=1)
        self.sums = np.hstack([np.zeros((len(self.rates), 1)), total])
        # a time at the very end of the last step has a rate, too
        self.rates = np.hstack([self.rates, np.zeros((len(self.rates), 1))])
        self.begins = begins

    def scaled(self, factor: float) -> PowerPrices:
        """The same prices times a factor."""
        other = object.__new__(PowerPrices)
        other.rates, other.sums, other.begins = self.rates * factor, self.sums * factor, self.begins
        return other

    def until(self, row: int, ticks: Any, steps: Any) -> Any:
        """Integral of a row (0: watts, 1 + k: servers of kind k) from 0 to some times that lie in `steps`."""
        return self.sums[row][steps] + self.rates[row][steps] * (ticks - self.begins[steps])
