"""The lengths of the jobs of a trace, by which others are long or short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LONGEST_S = 604_800.0
"""Longer jobs of a reference count as this long: a week."""


@dataclass(frozen=True)
class Reference:
    """Distinct lengths in s, ascending, and the area in core-seconds of all jobs of each length."""

    lengths_s: NDArray[np.float64]
    areas_core_s: NDArray[np.float64]

    @classmethod
    def of(cls, lengths_s: ArrayLike, cores: ArrayLike, longest_s: float = LONGEST_S) -> Reference:
        """The reference that some jobs make; jobs longer than `longest_s` count as that long."""
        capped = np.minimum(np.asarray(lengths_s, dtype=np.float64), longest_s)
        distinct, place = np.unique(capped, return_inverse=True)
        areas = np.bincount(place, capped * np.asarray(cores, dtype=np.float64), len(distinct))
        return cls(distinct, areas.astype(np.float64))

    def quantiles_s(self, count: int) -> NDArray[np.float64]:
        """For k = 1 ... count - 1 the least length such that more than k / count of the area is in no longer jobs."""
        below = np.cumsum(self.areas_core_s)
        shares = below[-1] * np.arange(1, count) / count
        return self.lengths_s[np.searchsorted(below, shares, side="right")]

    def share_not_shorter(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """C_i for each length w_i: the share of the area that is in jobs with w_k >= w_i. Section 4.3."""
        below = np.concatenate([[0.0], np.cumsum(self.areas_core_s)])
        return np.asarray(1.0 - below[np.searchsorted(self.lengths_s, lengths_s, side="left")] / below[-1])
