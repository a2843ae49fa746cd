"""Forecasts of an envelope and of a capacity, exact or with errors, and the machines busy beyond forecast changes."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.model.series import DEFAULT_STEP_S, Series
from batwatt.units import HOUR_S

Floats: TypeAlias = NDArray[np.float64]
_NOTHING = np.empty(0)


def next_step_s(series: Series | None, time_s: float) -> float:
    """Return the begin in s of the first step after a time: a change of a value, or a multiple of the usual step."""
    usual_s = (math.floor(time_s / DEFAULT_STEP_S) + 1) * DEFAULT_STEP_S
    return usual_s if series is None else min(series.next_change(time_s), usual_s)


@dataclass(frozen=True)
class EnvelopeForecast:
    """The caps of the next `steps` steps of a series, each with a random relative error.

    The forecast k steps ahead is P x (1 + error x sqrt(k) x z), at least 0 W, with z standard normal: the error is the
    standard deviation of the next step's, and grows as that of a random walk. The draws depend on `seed` and on the
    time only, so that equal questions get equal answers; 0 is an exact forecast.
    """

    series: Series
    steps: int
    error: float = 0.0
    seed: int = 0

    def after(self, now_s: float) -> tuple[float, ...]:
        """Return the caps in W of the next steps that begin after `now_s`, as they are forecast then."""
        issued_s = now_s
        caps_w: list[float] = []
        for _ in range(self.steps):
            now_s = next_step_s(self.series, now_s)
            caps_w.append(self.series.at(now_s))
        if not self.error:
            return tuple(caps_w)
        normal = np.random.default_rng((self.seed, round(issued_s * 1e6))).standard_normal(self.steps)
        spread = self.error * np.sqrt(np.arange(1, self.steps + 1))
        return tuple(np.maximum(np.asarray(caps_w) * (1.0 + spread * normal), 0.0).tolist())


class CapacityForecast:
    """The changes of a capacity of `machines` machines as they are forecast for `horizon_s` s ahead.

    Errors (section 8.2.1 of the varcap dissertation): `bias` is relative, `noise` the standard deviation an hour ahead
    as a share of all machines, growing with the root of the time ahead. `false_alarms` is the chance that a change is
    forecast as a fall to the least capacity, `missed` that a fall is forecast as no change.
    """

    def __init__(
        self,
        capacity: Series,
        machines: int,
        horizon_s: float,
        bias: float,
        noise: float,
        false_alarms: float,
        missed: float,
        seed: int,
    ) -> None:
        self._capacity = capacity
        self._times, self._values = [0.0], [capacity.at(0.0)]
        self._machines = machines
        self._horizon_s = horizon_s
        self._bias, self._noise, self._false_alarms, self._missed = bias, noise, false_alarms, missed
        self._seed = seed

    def at(self, now_s: float) -> tuple[Floats, Floats, float]:
        """Return times of change in ]now, now + horizon], the forecast capacities, and the time of the next look."""
        while (last_s := self._times[-1]) <= now_s + self._horizon_s:
            if (change_s := self._capacity.next_change(last_s)) == math.inf:
                break
            self._times.append(change_s)
            self._values.append(self._capacity.at(change_s))
        first, beyond = (bisect_right(self._times, time_s) for time_s in (now_s, now_s + self._horizon_s))
        next_s = self._times[beyond] - self._horizon_s if beyond < len(self._times) else math.inf
        times, values = np.array(self._times[first:beyond]), np.array(self._values[first:beyond])
        if len(times) and (self._bias or self._noise or self._false_alarms or self._missed):
            values = self._forecast(values, times, max(first - 1, 0))
        return times, values, float(next_s)

    def _forecast(self, values: Floats, times: Floats, issue: int) -> Floats:
        """Return the forecast issued at step number `issue` for the steps after it."""
        normal = np.random.default_rng([self._seed, issue, 0]).standard_normal(len(values))
        chance = np.random.default_rng([self._seed, issue, 1]).random((len(values), 2))
        hours = (times - self._times[issue]) / HOUR_S
        values = values * (1.0 + self._bias) + self._noise * self._machines * np.sqrt(hours) * normal
        values = np.floor(np.clip(values, 0.0, self._machines) + 1e-9)
        before = self._values[issue]
        for k in range(len(values)):
            if values[k] < before and chance[k, 0] < self._missed:
                values[k] = before
            if chance[k, 1] < self._false_alarms:
                values[k] = self._capacity.least()
            before = values[k]
        return values


class Foresight:
    """Forecast changes of the capacity and, for each, the number of machines assumed to be busy after it.

    Without a forecast there are no changes, and no job is restrained.
    """

    def __init__(self, forecast: CapacityForecast | None = None) -> None:
        self._forecast = forecast
        self._next_s = math.inf if forecast is None else -math.inf
        self.times_s: Floats = _NOTHING
        self.limits: Floats = _NOTHING
        self.counts: Floats = _NOTHING
        self.has_forecast = forecast is not None
        """True if there is a forecast."""
        self.ahead = False
        """True if a change is known now."""

    def look(self, now_s: float, stepped: bool, until_s: Floats) -> bool:
        """Look ahead from now if more can be known, or after a step; `until_s` are the assumed ends of all machines.

        Return whether anything may have changed.
        """
        if self._forecast is None or not (stepped or now_s >= self._next_s):
            return False
        self.times_s, self.limits, self._next_s = self._forecast.at(now_s)
        self.ahead = len(self.times_s) > 0
        ends = np.sort(until_s)
        self.counts = (len(ends) - np.searchsorted(ends, self.times_s, side="right")).astype(np.float64)
        return True

    def blocked_s(self, now_s: float, end_s: float, more: int) -> float:
        """Return the last known change in [now, end[ beyond which `more` further machines cannot be busy, or -inf."""
        coming = (self.times_s >= now_s) & (self.times_s < end_s)
        blocked = self.times_s[coming & (self.counts + more > self.limits)]
        return float(blocked[-1]) if len(blocked) else -math.inf

    def count(self, from_s: float, to_s: float, machines: int) -> None:
        """Count `machines` more machines as busy in [from, to[."""
        if self.ahead:
            self.counts[(self.times_s >= from_s) & (self.times_s < to_s)] += machines
