"""How long a job is among those of a reference: its category (riskaware paper, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from batwatt.model.reference import Reference

BORG_WEEK = Path(__file__).with_name("borg_week.csv")
"""Lengths in a week of the Google Borg trace (CC-BY)."""


@dataclass(frozen=True)
class Categories:
    """Category of a length by a reference: from 0 for what is longer than all of it to 1 for what is shorter.

    With `quantiles` > 0 it is 1 - k / quantiles if k of the area-weighted quantiles are no longer than the job, as in
    the authors' experiments (1000); with 0 it is C_i exactly. `longest_as_shortest`: a job as long as the last
    quantile has category 1; the authors' program has it so, the paper does not.
    """

    reference: Reference
    quantiles: int = 1000
    longest_as_shortest: bool = True

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return self.reference.quantiles_s(self.quantiles)

    def of(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """The categories of some lengths in s."""
        lengths = np.asarray(lengths_s, dtype=np.float64)
        if not self.quantiles:
            return self.reference.share_not_shorter(lengths)
        limits = self._limits
        passed = np.searchsorted(limits, lengths, side="right")
        if self.longest_as_shortest and len(limits):
            passed[lengths == limits[-1]] = 0
        return np.asarray(1.0 - passed / self.quantiles)


@cache
def borg_week() -> Reference:
    """The reference of the authors' experiments with Borg traces."""
    return Reference(*np.loadtxt(BORG_WEEK, delimiter=",", skiprows=1, unpack=True))
