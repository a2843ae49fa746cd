"""Capacities of a given range, structure and frequency of change (section 5.1.1 of the varcap dissertation)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from batwatt.checks import Between, Parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.series import FRACTION, MAX_STEPS, Series
from batwatt.units import HOUR_S

HIGHEST = 10.0
"""Greatest fraction; more are taken for a typing error."""

Structure = Literal["walk", "uniform", "constant"]

Fraction = Annotated[float, Between(0.0, HIGHEST)]
Seconds = Annotated[float | None, Between(0.0, ends="][", unit="s")]
_WHERE = "capacity"
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Variation(Parameters, where=_WHERE):
    """Variation of a capacity in fractions of the largest one; between changes the capacity is constant.

    `range` is the distance from the least to the largest capacity, whose middle is `mean`; a change happens every
    `period_s` s. `structure` limits a change: `uniform` to the range, `constant` to 0; that of a `walk` is
    U(-step, step) (`step` None: a quarter of the range), with the excess mirrored at the ends of the range.
    With `level` the time mean over [0, `window_s`[ (None: the whole series) is `mean`. Raises InputError.
    """

    structure: Structure = "walk"
    mean: Fraction = 0.7
    range: Fraction = 0.6
    step: Annotated[float | None, Between(0.0, HIGHEST)] = None
    period_s: Annotated[float, Between(0.0, ends="][", unit="s")] = HOUR_S
    level: bool = True
    window_s: Seconds = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low >= -1e-12:
            problem = f"the range reaches down to mean - range / 2 = {self.low:g}, got mean {self.mean!r}"
            raise InputError(_WHERE, f"{problem} and range {self.range!r}", "a capacity is not negative")
        if self.step is not None and not (0.0 < self.step <= self.range or self.range == 0.0):
            problem = f"step must be in ]0, range], got step {self.step!r} and range {self.range!r}"
            raise InputError(_WHERE, problem, "a quarter of the range is usual")
        rng_of(self.seed, _WHERE)

    @property
    def low(self) -> float:
        """The least capacity."""
        return self.mean - self._width / 2

    @property
    def high(self) -> float:
        """The largest capacity."""
        return self.mean + self._width / 2

    @property
    def step_fraction(self) -> float:
        """The largest change of a walk."""
        return self._width / 4 if self.step is None else self.step

    @property
    def _width(self) -> float:
        return 0.0 if self.structure == "constant" else self.range


def vary(variation: Variation, end_s: float) -> Series:
    """Generate a capacity over [0, `end_s`[ as fractions, one row per period; same seed, same series.

    A walk begins at the mean; without `level`, or with a `window_s`, a longer series begins like a shorter one.

    `level` shifts the finished series as a whole and cuts it off at the ends of the range, by the distance that gives
    the mean: no change becomes larger, and the range stays. The first value shifts as well.
    Section 5.1.1 of the dissertation ("maintaining the average resource capacity constant in all cases").
    Raises InputError.
    """
    source = f"{variation.structure}, seed {variation.seed}"
    Between(0.0, unit="s").check(_WHERE, "end_s", end_s)
    if variation.high == variation.low:
        return Series((0.0,), (variation.mean,), name=FRACTION, source=source, unit=FRACTION)
    if not end_s / variation.period_s <= MAX_STEPS:
        problem = f"end_s / period_s must be <= {MAX_STEPS}, got {end_s!r} / {variation.period_s!r}"
        raise InputError(_WHERE, problem, "take a longer period")
    count = max(1, math.ceil(end_s / variation.period_s))
    draws = rng_of(variation.seed, _WHERE).random(count)
    if variation.structure == "uniform":
        values = variation.low + (variation.high - variation.low) * draws
    else:
        values = np.array(_walked(variation, draws[1:]))
    times = np.arange(count) * variation.period_s
    if variation.level:
        end = min(variation.window_s or math.inf, max(end_s, variation.period_s))
        lasting = np.clip(end - times, 0.0, variation.period_s)
        values = _levelled(values, lasting, variation)
    return Series(tuple(times.tolist()), tuple(values.tolist()), name=FRACTION, source=source, unit=FRACTION)


def _walked(variation: Variation, draws: _Floats) -> list[float]:
    low, high, step = variation.low, variation.high, variation.step_fraction
    value = variation.mean
    values = [value]
    for move in ((2.0 * draws - 1.0) * step).tolist():
        value += move
        if value > high:
            value = high - (value - high)
        elif value < low:
            value = low + (low - value)
        values.append(value)
    return values


def _levelled(values: _Floats, lasting_s: _Floats, variation: Variation) -> _Floats:
    """Return the values, shifted and cut off at the bounds, with the mean over time of the variation."""
    low, high = variation.low, variation.high
    # the mean grows with the shift, from `low` to `high` over this distance: bisection
    below, above = low - high, high - low
    for _ in range(80):
        shift = (below + above) / 2
        if np.average(np.clip(values + shift, low, high), weights=lasting_s) < variation.mean:
            below = shift
        else:
            above = shift
    return np.clip(values + above, low, high)
