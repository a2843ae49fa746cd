"""A signal as planners use it: a step function whose integral is known everywhere."""

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
    """`values[i]` (g/kWh, or money per kWh) holds in [`edges_s[i]`, `edges_s[i + 1]`[; shapes [n + 1], [n].

    Edges begin at 0 s and increase strictly; beyond the last nothing is known. `begin`: the date of 0 s in UTC, or "".
    `unit` and `told` as in `Series`. A run begins the signal again and again if it is to `repeat`.
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
        """The integral of a signal."""
        edges = np.array((*signal.series.times_s, signal.end_s))
        series = signal.series
        return cls(edges, np.array(series.values), signal.begin, series.source, series.unit, repeat, told)

    @property
    def series(self) -> Series:
        """The values as a series, whose last value holds for ever."""
        edges_s, values = tuple(self.edges_s[:-1].tolist()), tuple(self.values.tolist())
        repeat_s = self.end_s if self.repeat else 0.0
        return Series(edges_s, values, "value", self.source, self.unit, self.begin, self.told, repeat_s)

    @property
    def currency(self) -> str:
        """The currency of a price, as in `EUR`; empty if it is not known, or this is no price."""
        money, _, energy = self.unit.partition("/")
        return money if energy == "kWh" and money not in ("g", "money") else ""

    def until(self, end_s: float) -> SignalIntegral:
        """The signal, again and again until a time if it is to repeat. Raises InputError."""
        if not self.repeat:
            return self
        return SignalIntegral.of(Signal(self.series, self.end_s, self.begin).repeated(end_s))

    @classmethod
    def regular(cls, values: Sequence[float], step_s: float = 3600.0) -> SignalIntegral:
        """Values that hold `step_s` each."""
        edges = np.arange(len(values) + 1, dtype=np.float64) * step_s
        return cls(edges, np.array(values, dtype=np.float64))

    @property
    def end_s(self) -> float:
        """Where it ends."""
        return float(self.edges_s[-1])

    @cached_property
    def _reached(self) -> Array:
        return np.concatenate([(0.0,), np.cumsum(np.diff(self.edges_s) * self.values)])

    def integral(self, time_s: Array | float) -> Array:
        """The integral from 0 to some times in [0, end], in the signal's unit x s."""
        found: Array = np.interp(np.asarray(time_s), self.edges_s, self._reached)
        return found

    def at(self, time_s: Array | float) -> Array:
        """The values that hold at some times."""
        index = np.searchsorted(self.edges_s, time_s, "right") - 1
        found: Array = self.values[np.clip(index, 0, len(self.values) - 1)]
        return found

    def edges_in(self, begin_s: float, end_s: float) -> Array:
        """Its edges strictly between two times."""
        first, last = np.searchsorted(self.edges_s, [begin_s, end_s], "right")
        found = self.edges_s[first:last]
        return found[found < end_s]

    def per_watt(self, begin_s: Array | float, end_s: Array | float) -> Array:
        """What 1 W between two times emits (g) or costs."""
        return (self.integral(end_s) - self.integral(begin_s)) / J_PER_KWH

    def of_steps(self, begin_s: Array | float, steps: Steps) -> Array:
        """What a step function of power emits or costs, on one cpu, that begins at some times; same shape as these."""
        times = np.asarray(begin_s, dtype=np.float64)[..., None] + steps.edges_s
        return np.diff(self.integral(times), axis=-1) @ steps.watts / J_PER_KWH

    def covers(self, end_s: float, whose: object) -> None:
        """Raise InputError unless the signal is known until `end_s`."""
        # sums of times differ in their last digits
        if not end_s <= self.end_s + REPORTED_S:
            problem = f"the signal ends at {self.end_s:g} s, before {end_s:g} s, which {whose} may need"
            raise InputError(self.source, problem, "take a longer signal, or let jobs wait less")

    def plus(self, other: SignalIntegral, own: float, others: float) -> SignalIntegral:
        """`own` x this + `others` x another signal, over the time that both cover: carbon and price at once."""
        end = min(self.end_s, other.end_s)
        edges = np.unique(np.concatenate([self.edges_s, other.edges_s]))
        edges = np.append(edges[edges < end], end)
        values = own * self.at(edges[:-1]) + others * other.at(edges[:-1])
        return SignalIntegral(edges, values, self.begin, self.source)
