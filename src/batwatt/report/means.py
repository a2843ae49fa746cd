"""Means with their standard errors, and the 95 % interval of Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
             2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)  # fmt: skip
"""Student's t, two-sided at 95 %, for 1, 2, ... degrees of freedom; for more 2.0 is used."""


def mean_of(values: pd.Series) -> tuple[float, float, int]:
    """Return the mean, its standard error (NaN of one value) and the number of values."""
    count = len(values)
    error = float(values.std()) / math.sqrt(count) if count > 1 else math.nan
    return float(values.mean()), error, count


def sure(count: int) -> float:
    """Return half the width of the 95 % interval of a mean of `count` values, in standard errors."""
    return QUANTILES[count - 2] if 2 <= count < len(QUANTILES) + 2 else 2.0


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences of a measure, first - second, and its standard error, NaN of one instance."""

    mean: float
    error: float
    instances: int

    @property
    def counts(self) -> bool:
        """True if 0 lies outside the 95 % interval; False for one instance."""
        return self.instances > 1 and abs(self.mean) > sure(self.instances) * self.error
