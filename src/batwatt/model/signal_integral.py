"""A signal as planners use it: a step function with its integral."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batwatt.errors import InputError
from batwatt.model.phases import Array, Steps
from batwatt.model.series import Series, Told
from batwatt.model.signal import Signal
from batwatt.units import J_PER_KWH, REPORTED_S


@dataclass(frozen=True)
class SignalIntegral:
    """A signal: `values[i]` (g/kWh, or money/kWh) holds in [`edges_s[i]`, `edges_s[i + 1]`[; shapes [n], [n + 1].

    Edges begin at 0 s and increase strictly; there is no value beyond the last. `begin`: the date of 0 s in UTC, or "".
    `unit` and `told` as in `Series`. A run repeats the signal if `repeat` is true.
    """

    edges_s: Array
    values: Array
    begin: str = ""
    source: str = "<memory>"
    unit: str = ""
    repeat: bool = False
    told: Told = ""

    @classmethod
    def of(cls, signal: Signal, *, repeat: bool = False, told: Told = "") -> SignalIntegral:
        """Return the integral of a signal."""
        edges = np.array((*signal.series.times_s, signal.end_s))
        series = signal.series
        return cls(edges, np.array(series.values), signal.begin, series.source, series.unit, repeat, told)

    @property
    def series(self) -> Series:
        """The signal as a series, whose last value holds for ever."""
        edges_s, values = tuple(self.edges_s[:-1].tolist()), tuple(self.values.tolist())
        repeat_s = self.end_s if self.repeat else 0.0
        return Series(edges_s, values, "value", self.source, self.unit, self.begin, self.told, repeat_s)

    @property
    def currency(self) -> str:
        """The currency of a price, as in `EUR`; empty if it is not stated, or the signal is not a price."""
        money, _, energy = self.unit.partition("/")
        return money if energy == "kWh" and money not in ("g", "money") else ""

    def until(self, end_s: float) -> SignalIntegral:
        """Return the signal, repeated until `end_s` if `repeat` is true. Raises InputError."""
        if not self.repeat:
            return self
        return SignalIntegral.of(Signal(self.series, self.end_s, self.begin).repeated(end_s))

    @classmethod
    def regular(cls, values: Sequence[float], step_s: float = 3600.0) -> SignalIntegral:
        """Return the signal of values that hold `step_s` s each."""
        edges = np.arange(len(values) + 1, dtype=np.float64) * step_s
        return cls(edges, np.array(values, dtype=np.float64))

    @property
    def end_s(self) -> float:
        """End of the signal in s."""
        return float(self.edges_s[-1])

    @cached_property
    def _reached(self) -> Array:
        return np.concatenate([(0.0,), np.cumsum(np.diff(self.edges_s) * self.values)])

    def integral(self, time_s: Array | float) -> Array:
        """Return the integral from 0 to each time in [0, end], in the signal's unit x s."""
        integrals: Array = np.interp(np.asarray(time_s), self.edges_s, self._reached)
        return integrals

    def at(self, time_s: Array | float) -> Array:
        """Return the value at each time in s."""
        index = np.searchsorted(self.edges_s, time_s, "right") - 1
        values: Array = self.values[np.clip(index, 0, len(self.values) - 1)]
        return values

    def edges_in(self, begin_s: float, end_s: float) -> Array:
        """Return the edges strictly between two times, in s."""
        first, last = np.searchsorted(self.edges_s, [begin_s, end_s], "right")
        edges = self.edges_s[first:last]
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
        """Return `own` x this + `others` x another signal, such as carbon and price, over the time that both cover."""
        end = min(self.end_s, other.end_s)
        edges = np.unique(np.concatenate([self.edges_s, other.edges_s]))
        edges = np.append(edges[edges < end], end)
        values = own * self.at(edges[:-1]) + others * other.at(edges[:-1])
        return SignalIntegral(edges, values, self.begin, self.source)
