"""The knapsack of a period, compiled: jobs that hold processors in one of two phases, in both or in none.

`table[a, b]` is the most useful work when at most `a` processors are held in the first phase and at most `b` in the
second. A job of `width` processors is worth `none`, `both`, `first` or `second`, by the phases in which it holds them;
-inf is what it cannot do. docs/explanation/checkpoint.md has the recurrence. O(jobs x rows x columns).
"""

from __future__ import annotations

from batwatt.arrays import Integers, OctetBlock, Octets, Reals, RealTable
from batwatt.compiling import compiled, inlined

NONE, BOTH, FIRST, SECOND = range(4)
"""Columns of `worths`, and what `choices` says."""


@compiled
def fill(widths: Integers, worths: RealTable, table: RealTable, row: Reals, choices: OctetBlock, keep: bool) -> None:
    """Put all jobs into `table` (float64[F + 1, P + 1]), which is 0 at first; `row` is room for one row of it.

    `widths` int64[J], `worths` float64[J, 4]; `choices` uint8[J, F + 1, P + 1] is written if `keep`. Among equals
    that choice stays which comes first: none, both, first, second.
    """
    rows, columns = table.shape[0], table.shape[1]
    for job in range(len(widths)):
        width = widths[job]
        none, both, first, second = worths[job, NONE], worths[job, BOTH], worths[job, FIRST], worths[job, SECOND]
        for a in range(rows - 1, -1, -1):
            here = table[a]
            for b in range(columns):
                row[b] = here[b] + none
            if keep:
                for b in range(columns):
                    choices[job, a, b] = NONE
            if a >= width and both > none:
                _better(row, table[a - width], width, both, choices[job, a], BOTH, keep)
            if a >= width and first > none:
                _better(row, table[a - width], 0, first, choices[job, a], FIRST, keep)
            if second > none:
                _better(row, here, width, second, choices[job, a], SECOND, keep)
            for b in range(columns):
                here[b] = row[b]


@inlined
def _better(row: Reals, before: Reals, width: int, worth: float, choices: Octets, choice: int, keep: bool) -> None:
    """Take a choice where it gives more: `row[b]` from `before[b - width]`."""
    if keep:
        for b in range(width, len(row)):
            value = before[b - width] + worth
            if value > row[b]:
                row[b] = value
                choices[b] = choice
    else:
        for b in range(width, len(row)):
            value = before[b - width] + worth
            row[b] = value if value > row[b] else row[b]
