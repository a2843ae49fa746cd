"""Vectors of librt: arrays of numbers of one type that compiled code reads and writes without objects.

A matrix lies in a vector row by row. `numpy.asarray` reads a vector in place; it cannot write to one.
"""

from __future__ import annotations

from collections.abc import Iterable

from librt.vecs import vec
from mypy_extensions import i64


def reals(values: Iterable[float]) -> vec[float]:
    """Return a vector of floats."""
    return vec[float]([float(value) for value in values])


def integers(values: Iterable[int]) -> vec[i64]:
    """Return a vector of integers of 64 bits."""
    return vec[i64]([int(value) for value in values])
