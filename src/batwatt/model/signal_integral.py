"""A signal as planners use it: a step function with its integral."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from batwatt.errors import InputError
from batwatt.model.phases import Array, Steps
from batwatt.model.series import MAX_ROWS, Series, Told, combined
from batwatt.model.signal import Signal
from batwatt.units import J_PER_KWH, REPORTED_S


@dataclass(frozen=True)
class SignalIntegral:
    """A signal: `values[i]` (g/kWh, or money/kWh) holds in [`edges_s[i]`, `edges_s[i + 1]`[; shapes [n], [n + 1].

    Edges begin at 0 s and increase strictly. At the last edge the values from index `again` on come again, for ever, if
    `repeat` is true; else there is no value beyond it. `begin`: the date of 0 s in UTC, or "". `unit` and `told` as in
    `Series`.
    """

    edges_s: Array
    values: Array
    begin: str = ""
    source: str = "<memory>"
    unit: str = ""
    repeat: bool = False
    told: Told = ""
    again: int = 0

    @classmethod
    def of(cls, signal: Signal, *, repeat: bool = False, told: Told = "") -> SignalIntegral:
        """Return the integral of a signal."""
        edges = np.array((*signal.series.times_s, signal.end_s))
        series = signal.series
        return cls(edges, np.array(series.values), signal.begin, series.source, series.unit, repeat, told)

    @classmethod
    def of_series(cls, series: Series, *, repeat: bool) -> SignalIntegral:
        """Return the integral of a series from 0 s on, which ends after its last row unless `repeat`."""
        rows = replace(series.since(0.0), begin=series.begin, told=series.told) if series.times_s[0] else series
        edges_s, values = np.array((*rows.times_s, rows.end_s)), np.array(rows.values)
        again = rows.loop % len(rows) if repeat and rows.loop is not None else 0
        return cls(edges_s, values, rows.begin, rows.source, rows.unit, repeat, rows.told, again)

    @property
    def series(self) -> Series:
        """The signal as a series; if it ends its last value holds."""
        period_s = float(self.edges_s[-1] - self.edges_s[self.again])
        return replace(self.signal.series, told=self.told, loop=self.again if self.repeat else None, period_s=period_s)

    @property
    def signal(self) -> Signal:
        """The signal without repetition."""
        edges_s, values = tuple(self.edges_s[:-1].tolist()), tuple(self.values.tolist())
        series = Series(edges_s, values, "value", self.source, self.unit, self.begin)
        return Signal(series, float(self.edges_s[-1]), self.begin)

    @property
    def currency(self) -> str:
        """The currency of a price, as in `EUR`; empty if it is not stated, or the signal is not a price."""
        money, _, energy = self.unit.partition("/")
        return money if energy == "kWh" and money not in ("g", "money") else ""

    def upto(self, end_s: float) -> SignalIntegral:
        """Return the signal without repetition, but as long as `end_s` or longer if it repeats. Raises InputError."""
        if not self.repeat:
            return self
        longer: SignalIntegral | None = self.__dict__.get("_longer")
        if longer is None or longer.end_s < end_s:
            edges_s, first_s = self.edges_s[self.again : -1], self.edges_s[self.again]
            period_s = self.edges_s[-1] - first_s
            turns = max(1, math.ceil((2.0 * end_s - first_s) / period_s))
            if not turns * len(edges_s) <= MAX_ROWS:
                problem = f"{turns} repetitions of {len(edges_s)} rows are more than {MAX_ROWS} rows"
                raise InputError(self.source, problem, "take a longer part of the file, or correct the times of jobs")
            begins_s = np.arange(turns)[:, None] * period_s
            ends = (self.edges_s[: self.again], (begins_s + edges_s).ravel(), (first_s + turns * period_s,))
            values = np.concatenate([self.values[: self.again], np.tile(self.values[self.again :], turns)])
            longer = replace(self, edges_s=np.concatenate(ends), values=values, repeat=False, again=0)
            self.__dict__["_longer"] = longer
        return longer

    @classmethod
    def regular(cls, values: Sequence[float], step_s: float = 3600.0) -> SignalIntegral:
        """Return the signal of values that hold `step_s` s each."""
        edges = np.arange(len(values) + 1, dtype=np.float64) * step_s
        return cls(edges, np.array(values, dtype=np.float64))

    @property
    def end_s(self) -> float:
        """End of the signal in s, infinite if it repeats."""
        return math.inf if self.repeat else float(self.edges_s[-1])

    @cached_property
    def _reached(self) -> Array:
        return np.concatenate([(0.0,), np.cumsum(np.diff(self.edges_s) * self.values)])

    def integral(self, time_s: Array | float) -> Array:
        """Return the integral from 0 to each time in [0, end], in the signal's unit x s."""
        times = np.asarray(time_s)
        plain = self.upto(float(times.max(initial=0.0)))
        integrals: Array = np.interp(times, plain.edges_s, plain._reached)
        return integrals

    def at(self, time_s: Array | float) -> Array:
        """Return the value at each time in s."""
        times = np.asarray(time_s)
        plain = self.upto(float(times.max(initial=0.0)))
        index = np.searchsorted(plain.edges_s, times, "right") - 1
        values: Array = plain.values[np.clip(index, 0, len(plain.values) - 1)]
        return values

    def edges_in(self, begin_s: float, end_s: float) -> Array:
        """Return the edges strictly between two times, in s."""
        plain = self.upto(end_s)
        first, last = np.searchsorted(plain.edges_s, [begin_s, end_s], "right")
        edges = plain.edges_s[first:last]
        return edges[edges < end_s]

    def per_watt(self, begin_s: Array | float, end_s: Array | float) -> Array:
        """Return the emissions in g, or the cost, of 1 W between two times."""
        return (self.integral(end_s) - self.integral(begin_s)) / J_PER_KWH

    def of_steps(self, begin_s: Array | float, steps: Steps) -> Array:
        """Return the emissions or costs of power steps on one cpu for each begin in s, in the shape of `begin_s`."""
        times = np.asarray(begin_s, dtype=np.float64)[..., None] + steps.edges_s
        return np.diff(self.integral(times), axis=-1) @ steps.watts / J_PER_KWH

    def covers(self, end_s: float, whose: object) -> None:
        """Raise InputError unless the signal reaches `end_s`."""
        # sums of times have rounding errors
        if not end_s <= self.end_s + REPORTED_S:
            problem = f"the signal ends at {self.end_s:g} s, before {end_s:g} s, which {whose} may need"
            raise InputError(self.source, problem, "take a longer signal, or let jobs wait less")

    def plus(self, other: SignalIntegral, own: float, others: float) -> SignalIntegral:
        """Return `own` x this + `others` x another signal, such as carbon and price, over the time that both cover.

        Raises InputError.
        """
        end, again_s = min(self.end_s, other.end_s), 0.0
        both = end == math.inf
        if both:
            common = combined((self.series, other.series), sum)
            end, again_s = common.end_s, common.times_s[common.loop or 0]
        edges = np.unique(np.concatenate([self.upto(end).edges_s, other.upto(end).edges_s]))
        edges = np.append(edges[edges < end], end)
        values = own * self.at(edges[:-1]) + others * other.at(edges[:-1])
        again = int(np.searchsorted(edges, again_s))
        return SignalIntegral(edges, values, self.begin, self.source, repeat=both, again=again)
