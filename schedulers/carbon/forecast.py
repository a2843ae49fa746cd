"""Signals that plans see: carbon and price by their weights, and forecasts that prove wrong."""

from __future__ import annotations

import math

import numpy as np

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, Steps
from batwatt.units import DAY_S, HOUR_S, J_PER_KWH

SMOOTH_S = 6 * HOUR_S
"""Errors of times closer than this go together, as those of a forecast of weather do."""
AHEAD_S = 60 * DAY_S
"""Least length in s of the forecast of a signal that repeats."""
MOST_STEPS = 336
"""Steps of the signal over which the error grows (two weeks by the hour), and no further."""


def weighed(carbon: Timeline, price: Timeline | None, carbon_weight: float, price_weight: float) -> Timeline:
    """Return carbon, or `carbon_weight` x carbon + `price_weight` x price if the price counts. Raises InputError."""
    names = "carbon_weight, price_weight"
    if not carbon_weight + price_weight > 0.0:
        raise InputError(names, "are both 0", "let one of them be > 0")
    if price_weight == 0.0:
        return carbon
    if price is None:
        raise InputError(names, "give money a weight without a price", "give a price, too")
    return carbon.plus(price, carbon_weight, price_weight)


class SignalForecast:
    """A signal with a new forecast at the beginning of each of its steps.

    In step n the forecast of step i > n is c_i x max(0, 1 + error x sum of sqrt(d_r) z_r(i) over r in n + 1 ... i):
    d_r is the length of step r in h, z_r(i) is standard normal and what is learnt of step i when step r begins. So each
    forecast corrects the one before, that of the present step is right, and the relative error k h ahead has the
    standard deviation `error` x sqrt(k). z_r is independent of other r, and the mean over `SMOOTH_S` of independent
    draws for i. The draws depend on `seed` and r only. An `error` of 0 is an exact forecast.

    c_i is the truth for `sure_h` hours from the issue on, and beyond that the value of the same time of the last day
    that is over or sure: 0 h is persistence, 24 h what a day-ahead market says. Before there is such a day it is the
    present value; None: the truth always.

    `scheduling.foresight.EnvelopeForecast` grows alike, but draws each forecast independently of the one before: a
    caller that asks often and takes the best answer is then wrong more often than one that asks once.
    """

    def __init__(self, truth: Timeline, error: float = 0.0, seed: int = 0, sure_h: float | None = None) -> None:
        self._truth, self._error, self._seed, self._sure_h = truth, error, seed, sure_h
        lengths_h = np.diff(truth.edges_s) / HOUR_S
        self._width = max(1, round(SMOOTH_S / HOUR_S / float(np.median(lengths_h))))
        self._learnt: dict[int, Array] = {}
        self._last: tuple[int, Timeline] | None = None

    def at(self, now_s: float) -> Timeline:
        """Return the signal as it is forecast at the beginning of the step of `now_s`; its past is as it was."""
        if not self._error and self._sure_h is None:
            return self._truth
        truth = self._truth.unrolled(now_s + AHEAD_S)
        step = int(np.searchsorted(truth.edges_s, now_s, "right")) - 1
        if self._last is None or self._last[0] != step:
            self._last = step, self._issued(truth, step)
        return self._last[1]

    def _issued(self, truth: Timeline, step: int) -> Timeline:
        roots = np.sqrt(np.diff(truth.edges_s) / HOUR_S)
        if self._sure_h is not None:
            truth = truth.of(self._repeated(truth, step, self._sure_h), truth.unit)
        if not self._error:
            return truth
        ahead = len(truth.values) - step - 1
        count = min(ahead, MOST_STEPS)
        wrong = np.zeros(max(ahead, 0))
        for at in range(count):
            wrong[at:count] += roots[step + 1 + at] * self._revision(step + 1 + at)[: count - at]
        if count > 0:
            wrong[count:] = wrong[count - 1]
        self._learnt = {r: draws for r, draws in self._learnt.items() if r > step}
        factors = np.maximum(1.0 + self._error * wrong, 0.0)
        values = np.concatenate([truth.array[: step + 1], truth.array[step + 1 :] * factors])
        return truth.of(values, truth.unit)

    @staticmethod
    def _repeated(truth: Timeline, step: int, sure_h: float) -> Array:
        """Return the values with those beyond the hours that are sure replaced by those of the last day before."""
        begins_s, values = truth.edges_s[:-1], truth.array.copy()
        sure_s = max(float(begins_s[step]) + sure_h * HOUR_S, float(truth.edges_s[step + 1]))
        beyond = begins_s >= sure_s
        days = np.floor((begins_s[beyond] - sure_s) / DAY_S) + 1.0
        before_s = begins_s[beyond] - days * DAY_S
        at = np.searchsorted(begins_s, before_s, "right") - 1
        values[beyond] = np.where(at >= 0, truth.array[at], truth.array[step])
        return values

    def _revision(self, step: int) -> Array:
        """Return z_r(r), z_r(r + 1), ...: the revision of each step when step r begins."""
        if step not in self._learnt:
            draws = np.random.default_rng((self._seed, step)).standard_normal(MOST_STEPS + self._width - 1)
            self._learnt[step] = np.convolve(draws, np.full(self._width, 1.0 / math.sqrt(self._width)), "valid")
        return self._learnt[step]


NOISE = 1e-12
"""Values that differ by this share of the largest are equal: their sums differ in their order alone."""
MOST_SLOTS = 20_000_000
"""More slots are not looked at: some numbers are kept of each."""
_MOST_VALUES = 4_000_000
"""Numbers that are computed at once."""


def ahead(integral: Timeline, begin_s: float, end_s: float, job: str = "?") -> Timeline:
    """Return a signal from `begin_s` to `end_s`, with `begin_s` as its 0 s; where it holds the same value, one step.

    A sum over a short part of a long signal is then as exact as the part. Raises InputError if the signal ends before.
    """
    integral.covers(end_s, f"job {job}")
    edges = np.concatenate([(begin_s,), integral.edges_in(begin_s, end_s), (end_s,)])
    values = integral.values_at(edges[:-1])
    changes = np.concatenate([(True,), np.diff(values) != 0.0])
    return Timeline.of_edges(
        np.append(edges[:-1][changes], end_s) - begin_s, values[changes], source=integral.source, unit=integral.unit
    )


def check_slots(length_s: float, slot_s: float) -> None:
    """Raise InputError unless a time of `length_s` has at most MOST_SLOTS slots of `slot_s`."""
    if not length_s / slot_s <= MOST_SLOTS:
        problem = f"slots of {slot_s:g} s are more than {MOST_SLOTS} in {length_s:g} s"
        raise InputError("option 'slot_s'", problem, "take longer slots, or correct the times of jobs and series")


def candidates(steps: Steps, integral: Timeline, wait_s: float) -> Array:
    """Return starts in [0, `wait_s`] in s, ascending: both ends, and those where edges of power and signal meet.

    Between neighbours, the emission of the job is linear in its start.
    """
    edges = integral.edges_s[1:-1]
    meetings = (edges[:, None] - steps.edges_s[None, :]).ravel()
    inside = meetings[(meetings > 0.0) & (meetings < wait_s)]
    return np.unique(np.concatenate([(0.0,), inside, (wait_s,)]))


def emitted(starts_s: Array, steps: Steps, integral: Timeline) -> Array:
    """Return the emission (g) or cost of a step function of power on one cpu, for each start; the signal must last."""
    width = min(len(steps.watts), len(integral.values)) + 1
    parts = np.array_split(starts_s, 1 + len(starts_s) * width // _MOST_VALUES)
    return np.concatenate([_emitted(part, steps, integral) for part in parts])


def _emitted(starts_s: Array, steps: Steps, integral: Timeline) -> Array:
    if len(steps.watts) <= len(integral.values):
        return integral.of_steps(starts_s, steps)
    # the same sum over the steps of the signal: the energy that falls into each
    reached = steps.energy_until(integral.edges_s - starts_s[:, None])
    sums: Array = np.diff(reached, axis=-1) @ integral.array / J_PER_KWH
    return sums


def first_least(values: Array) -> int:
    """Return the position of the least of some values, the first of those equal to it but for rounding."""
    slack = NOISE * float(np.abs(values).max())
    return int(np.argmax(values <= values.min() + slack))


def quantile_in_time(integral: Timeline, begin_s: float, end_s: float, share: float) -> float:
    """Return the least v such that the signal is <= v for at least `share` of the time from `begin_s` to `end_s`."""
    part = ahead(integral, begin_s, end_s)
    order = np.argsort(part.array, kind="stable")
    lasting = np.cumsum(np.diff(part.edges_s)[order])
    enough = int(np.argmax(lasting >= share * lasting[-1] * (1.0 - NOISE)))
    return float(part.array[order][enough])
