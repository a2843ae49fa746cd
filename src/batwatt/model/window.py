"""The measured time of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from batwatt.units import LAG_S

_Floats = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """The measured time in s, both ends included."""

    begin_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin_s < math.inf:
            raise ValueError(f"begin_s must be >= 0 s and finite, got {self.begin_s!r}")
        if not self.begin_s <= self.end_s < math.inf:
            raise ValueError(f"end_s must be >= begin_s ({self.begin_s!r} s) and finite, got {self.end_s!r}")

    def after(self, times_s: _Floats) -> _Mask:
        """Return the mask of the times after the window, without missing ones (NaN)."""
        return times_s > self.end_s + LAG_S

    def holds(self, times_s: _Floats) -> _Mask:
        """Return the mask of the times in ]begin, end], without missing ones (NaN)."""
        return (times_s > self.begin_s) & (times_s <= self.end_s + LAG_S)
