"""Signals: carbon, prices and other series of finite length."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.model.clock import date_s_of, date_text
from batwatt.model.series import LARGEST, MAX_STEPS, Series


@dataclass(frozen=True)
class Signal:
    """A step function over [0, `end_s`[; `begin` is the date of 0 s in UTC, or empty."""

    series: Series
    end_s: float
    begin: str = ""

    def __post_init__(self) -> None:
        if not (self.series.times_s[0] == 0.0 and self.series.times_s[-1] < self.end_s < math.inf):
            raise ValueError(f"a signal begins at 0 s and ends after its last row, got end_s {self.end_s!r}")
        largest = max(self.end_s, -min(self.series.values), max(self.series.values))
        if not largest <= LARGEST:
            problem = f"{largest:g} is larger than {LARGEST:g}, the bound of times in s and of values"
            raise InputError(self.series.source or "signal", problem, "correct it")

    @cached_property
    def lasting_s(self) -> npt.NDArray[np.float64]:
        """Duration of each value in s."""
        return np.diff(self.series.times_s, append=self.end_s)

    @cached_property
    def mean(self) -> float:
        """The mean over time."""
        return float(np.average(self.series.values, weights=self.lasting_s))

    def averaged(self, period_s: float) -> Signal:
        """Return the signal with one row per period, its mean over the period. Raises InputError."""
        if not self.end_s / period_s <= MAX_STEPS:
            problem = f"the signal's length / period must be <= {MAX_STEPS}, got {self.end_s:g} / {period_s!r} s"
            raise InputError(self.series.source, problem, "take a longer period")
        times = np.arange(max(1, math.ceil(self.end_s / period_s))) * period_s
        edges = np.append(times, self.end_s)
        # the integral is linear between the rows
        reached = np.concatenate([(0.0,), np.cumsum(self.lasting_s * np.asarray(self.series.values))])
        integral = np.interp(edges, (*self.series.times_s, self.end_s), reached)
        values = np.diff(integral) / np.diff(edges)
        series = replace(self.series, times_s=tuple(times.tolist()), values=tuple(values.tolist()))
        return replace(self, series=series)

    def since(self, time_s: float) -> Signal:
        """Return the signal from `time_s` < `end_s` on, which becomes 0 s; before its first row that one holds."""
        if time_s == 0.0:
            return self
        series = self._of(self.lasting(False).since(time_s))
        begin = date_text(date_s_of(self.begin) + time_s) if self.begin else ""
        return replace(self, series=series, end_s=round(self.end_s - time_s, 6), begin=begin)

    def turned(self, time_s: float) -> Signal:
        """Return the signal as one period of a periodic one, rotated so that `time_s` becomes 0 s."""
        at_s = time_s % self.end_s
        if at_s == 0.0:
            return self
        begin = date_text(date_s_of(self.begin) + time_s) if self.begin else ""
        return replace(self, series=self._of(self.lasting(True).since(at_s)), begin=begin)

    def _of(self, rows: Series) -> Series:
        """Return the series of the signal with other rows."""
        return replace(self.series, times_s=rows.times_s, values=rows.values)

    def lasting(self, repeat: bool) -> Series:
        """Return the signal as a series that begins again at its end, for ever, or ends there."""
        return replace(self.series, loop=0 if repeat else None, period_s=self.end_s)


def held(series: Series, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values of a series at some times in s."""
    at = np.searchsorted(series.times_s, times_s, side="right") - 1
    return np.asarray(series.values, dtype=np.float64)[np.maximum(at, 0)]
