"""Power of a job while it runs, in W of all of its hosts together: mean, spread, maximum, and optionally a curve.

The power includes the idle power of the hosts, as in job logs and in PM100.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobPower:
    """Mean, standard deviation over time and maximum in W; `phases` are (duration in s, W), the last one without end.

    Without phases a simulation takes the mean at all times.
    """

    mean_w: float
    std_w: float = 0.0
    max_w: float = 0.0
    phases: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("mean_w", "std_w", "max_w"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} must be >= 0 W and finite, got {value!r}")
        # the mean replaces a maximum that was not measured
        object.__setattr__(self, "max_w", max(self.max_w, self.mean_w))

    @classmethod
    def of_phases(cls, phases: Sequence[tuple[float, float]]) -> JobPower:
        """Return the power of phases (duration in s > 0, W >= 0), with mean and deviation over time, and maximum."""
        if not phases or not all(0.0 < length_s < math.inf for length_s, _ in phases):
            raise ValueError(f"phases must be at least one, of more than 0 s each, got {list(phases)!r}")
        total_s = math.fsum(length_s for length_s, _ in phases)
        mean_w = math.fsum(length_s * watts for length_s, watts in phases) / total_s
        squares = math.fsum(length_s * (watts - mean_w) ** 2 for length_s, watts in phases)
        return cls(mean_w, math.sqrt(squares / total_s), max(watts for _, watts in phases), tuple(phases))

    def until(self, ran_s: float) -> JobPower:
        """Return the power of a run that lasted `ran_s` s, possibly less than its phases."""
        if not self.phases or not ran_s > 0.0:
            return self
        return JobPower.of_phases([(end_s - begin_s, watts) for begin_s, end_s, watts in self.pieces(ran_s)])

    def pieces(self, ran_s: float) -> list[tuple[float, float, float]]:
        """Return (begin, end in s after the start, W) of each phase of a run of `ran_s` s."""
        pieces: list[tuple[float, float, float]] = []
        begin_s = 0.0
        phases = self.phases or ((math.inf, self.mean_w),)
        for index, (length_s, watts) in enumerate(phases):
            last = index == len(phases) - 1
            end_s = ran_s if last else min(ran_s, begin_s + length_s)
            if end_s > begin_s:
                pieces.append((begin_s, end_s, watts))
            begin_s = end_s
        return pieces
