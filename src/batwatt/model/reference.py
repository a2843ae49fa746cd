"""Categories of jobs: the rank of a length among the jobs of a reference (riskaware paper, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

LONGEST_S = 604_800.0
"""Greatest length in s of a job of a reference, a week; longer jobs count as this long."""


@dataclass(frozen=True)
class Reference:
    """Distinct lengths in s, ascending, and the area in core-seconds of all jobs of each length."""

    lengths_s: NDArray[np.float64]
    areas_core_s: NDArray[np.float64]

    @classmethod
    def of(cls, lengths_s: ArrayLike, cores: ArrayLike) -> Reference:
        """Build the reference of some jobs; jobs longer than `LONGEST_S` count as that long."""
        capped = np.minimum(np.asarray(lengths_s, dtype=np.float64), LONGEST_S)
        distinct, place = np.unique(capped, return_inverse=True)
        areas = np.bincount(place, capped * np.asarray(cores, dtype=np.float64), len(distinct))
        return cls(distinct, areas.astype(np.float64))

    def quantiles_s(self, count: int) -> NDArray[np.float64]:
        """Return for k = 1 ... count - 1 the least length whose jobs and shorter ones have > k / count of the area."""
        below = np.cumsum(self.areas_core_s)
        shares = below[-1] * np.arange(1, count) / count
        return self.lengths_s[np.searchsorted(below, shares, side="right")]

    def share_not_shorter(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """Return C_i for each length w_i: the share of the area that is in jobs with w_k >= w_i. Section 4.3."""
        below = np.concatenate([[0.0], np.cumsum(self.areas_core_s)])
        return np.asarray(1.0 - below[np.searchsorted(self.lengths_s, lengths_s, side="left")] / below[-1])


@dataclass(frozen=True)
class Categories:
    """Category of a length by a reference: from 0 (longer than all of its jobs) to 1 (shorter than all of them).

    With `quantiles` > 0 it is 1 - k / quantiles if k of the area-weighted quantiles are no longer than the job, as in
    the authors' experiments (1000); with 0 it is C_i exactly. `longest_as_shortest`: a job as long as the last
    quantile has category 1, as in the authors' program, but not in the paper.
    """

    reference: Reference
    quantiles: int = 1000
    longest_as_shortest: bool = True

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return self.reference.quantiles_s(self.quantiles)

    def of(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """Return the categories of some lengths in s."""
        lengths = np.asarray(lengths_s, dtype=np.float64)
        if not self.quantiles:
            return self.reference.share_not_shorter(lengths)
        limits = self._limits
        passed = np.searchsorted(limits, lengths, side="right")
        if self.longest_as_shortest and len(limits):
            passed[lengths == limits[-1]] = 0
        return np.asarray(1.0 - passed / self.quantiles)
