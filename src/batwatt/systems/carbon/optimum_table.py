"""The dynamic programme of phase-aware suspend/resume (docs/explanation/carbon-policies.md, "The optimum").

A job that has worked `j` slots and `d` slots later than it could have at the earliest is in cell (d, j), at slot
d + S + j of the window, S being the slots of a start-up. Working leaves d as it is, so a column j is computed from the
one before cell by cell; suspending and starting again goes down a column. O(slack x work).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from batwatt.model.phases import Array

NOISE = 1e-13
"""A restart must be better by this share: sums that differ in their order alone are equal."""


@np.errstate(invalid="ignore")
def fill(
    work_w: Array,
    cost: Array,
    barred: Array,
    restarts: Array,
    row_of: NDArray[np.int64],
    startup: int,
    gap: int,
    on: Array,
    fresh: NDArray[np.uint8],
    better: NDArray[np.uint8],
) -> None:
    """Compute all columns; at the end `on[d]` is the least cost of having finished in row d.

    `work_w` float64[W], W of each work slot; `cost` float64[T], of 1 W in each slot; `barred` float64[T], 0 or inf;
    `restarts` float64[T - S + 1], cost of a restart, of `gap` >= S slots (and >= 1), after which work goes on S slots
    after a slot; `row_of` int64[W + 1], the row of the flags of a column in which the job may be suspended, else -1.
    `on` float64[D + 1] has the first column. Flags uint8[rows, ceil((D + 1) / 8)], a bit per cell: `fresh`, the job has
    just been started again; `better`, no earlier suspension in this column is as good.
    """
    width = len(on)
    lower, started = np.empty(width, np.bool_), np.zeros(width, np.bool_)
    late, again_at = on[gap:], started[gap:]
    for j, (watts, row) in enumerate(zip(work_w.tolist(), row_of[1:].tolist(), strict=True), start=1):
        first = startup + j - 1
        on += watts * cost[first : first + width] + barred[first : first + width]
        if row < 0:
            continue
        resting = np.minimum.accumulate(on)
        np.less(on[1:], resting[:-1], out=lower[1:])
        lower[0] = on[0] < np.inf
        better[row] = np.packbits(lower, bitorder="little")
        again = resting[: max(0, width - gap)] + restarts[gap + j : max(gap, width) + j]
        # inf - inf is where neither may run
        np.logical_and(again < late, late - again > NOISE * np.abs(again), out=again_at)
        np.copyto(late, again, where=again_at)
        fresh[row] = np.packbits(started, bitorder="little")
