"""Equality of numbers that were computed: floats of equal quantities can differ in their last digits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

SAME = 1e-9
"""Derived quantities (gains of speed, work, shares, flop per joule) are equal if they differ by this share or less."""


def at_least(value: float, bound: float) -> bool:
    """Return whether a number is above a bound, or equal to it."""
    return value >= bound - SAME * abs(bound)


def merged(values: Sequence[float], noise: float = 0.0) -> list[float]:
    """Return the numbers, those that are equal replaced by the smallest of them, so that ties can be seen.

    `noise` is a difference within which they are equal, too.
    """
    result = list(values)
    for low, high in pairwise(sorted(range(len(values)), key=values.__getitem__)):
        if values[high] - values[low] <= noise + SAME * min(abs(values[low]), abs(values[high])):
            result[high] = result[low]
    return result
