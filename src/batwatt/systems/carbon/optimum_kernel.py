"""The dynamic programme of phase-aware suspend/resume, compiled (docs/explanation/carbon-model.md, "The optimum").

A job that has worked `j` slots and `d` slots later than it could have at the earliest is in cell (d, j), at slot
d + S + j of the window, S being the slots of a start-up. Working leaves d as it is, so a column j is computed from the
one before cell by cell; suspending and starting again goes down a column. O(slack x work).
"""

from __future__ import annotations

import numpy as np

from batwatt.arrays import Integers, OctetBlock, Reals, RealTable
from batwatt.compiling import compiled

NOISE = 1e-13
"""A restart must be better by this share: sums that differ in their order alone are equal."""


@compiled
def fill(
    work_w: Reals,
    cost: Reals,
    barred: Reals,
    restarts: Reals,
    row_of: Integers,
    startup: int,
    gap: int,
    chained: bool,
    on: RealTable,
    off: RealTable,
    fresh: OctetBlock,
    better: OctetBlock,
) -> None:
    """Compute all columns; at the end `on[k, d]` is the least cost of having finished in row d.

    `work_w` float64[W], W of each work slot; `cost` float64[T], of 1 W in each slot; `barred` float64[T], 0 or inf;
    `restarts` float64[T - S + 1], cost of a restart, of `gap` >= S slots (and >= 1), after which work goes on S slots
    after a slot; `row_of` int64[W + 1], the row of the flags of a column in which the job may be suspended, else -1.
    `on` float64[K, D + 1] has the first column, of one start; `off` is room of that shape. With `chained` layer k is
    reached by a restart from layer k - 1 only, so K bounds the starts. Flags uint8[K, rows, ceil((D + 1) / 8)], a bit
    per cell: `fresh`, the job has just been started again;
    `better`, no earlier suspension in this column is as good.
    """
    layers, width = on.shape[0], on.shape[1]
    for j in range(1, len(work_w) + 1):
        watts, first, row = work_w[j - 1], startup + j - 1, row_of[j]
        for k in range(layers):
            here, resting = on[k], off[k]
            if row < 0:
                for d in range(width):
                    here[d] += watts * cost[first + d] + barred[first + d]
                continue
            source = k - 1 if chained else k
            best = np.inf
            for block in range((width + 7) // 8):
                begin = block * 8
                started, lower = 0, 0
                for bit in range(min(8, width - begin)):
                    d = begin + bit
                    value = here[d] + (watts * cost[first + d] + barred[first + d])
                    if value < best:
                        best = value
                        lower |= 1 << bit
                    resting[d] = best
                    if d >= gap and source >= 0:
                        again = off[source, d - gap] + restarts[d + j]
                        if again < value and value - again > NOISE * abs(again):
                            value = again
                            started |= 1 << bit
                    here[d] = value
                fresh[k, row, block] = started
                better[k, row, block] = lower
