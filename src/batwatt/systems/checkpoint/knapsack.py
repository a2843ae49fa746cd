"""The knapsack of a period: jobs that hold processors in both of two phases, in the second or in none.

`table[a, b]` is the most useful work when at most `a` processors are held in the first phase and at most `b` in the
second. A job of `width` processors is worth `none`, `both` or `second`, by the phases in which it holds them; -inf is
what it cannot do. docs/explanation/checkpoint.md has the recurrence. O(jobs x rows x columns).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
NONE, BOTH, SECOND = range(3)
"""Columns of `worths`, and values of `choices`."""
ROWS = 32
"""Rows of the table that are computed together, so that they stay in the cache of the processor."""


def fill(widths: NDArray[np.int64], worths: Table, table: Table, choices: NDArray[np.uint8] | None = None) -> None:
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
