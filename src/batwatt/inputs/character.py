"""Variation of capacities: made at random, by a budget or by stranded power, and characterised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from batwatt.checks import checked_number, parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.timeline import FRACTION, MAX_STEPS, Timeline
from batwatt.units import HOUR_S

HIGHEST = 10.0
"""Greatest fraction; more are taken for a typing error."""

Structure = Literal["walk", "uniform", "constant"]

Fraction = Annotated[float, Field(ge=0.0, le=HIGHEST)]
Seconds = Annotated[float | None, Field(gt=0.0)]
_WHERE = "capacity"
_Floats = npt.NDArray[np.float64]


@parameters(_WHERE)
class Variation:
    """Variation of a capacity in fractions of the largest one; between changes the capacity is constant.

    `range` is the distance from the least to the largest capacity, whose middle is `mean`; a change happens every
    `period_s` s. `structure` limits a change: `uniform` to the range, `constant` to 0; that of a `walk` is
    U(-step, step) (`step` None: a quarter of the range), with the excess mirrored at the ends of the range.
    With `level` the time mean over [0, `window_s`[ (None: the whole series) is `mean`. Raises InputError.
    """

    structure: Structure = "walk"
    mean: Fraction = 0.7
    range: Fraction = 0.6
    step: Annotated[float | None, Field(ge=0.0, le=HIGHEST)] = None
    period_s: Annotated[float, Field(gt=0.0)] = HOUR_S
    level: bool = True
    window_s: Seconds = None
    seed: int = 0

    def __post_init__(self) -> None:
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


def vary(variation: Variation, end_s: float) -> Timeline:
    """Generate a capacity over [0, `end_s`[ as fractions, one row per period; same seed, same series.

    A walk begins at the mean; without `level`, or with a `window_s`, a longer series begins like a shorter one.

    `level` shifts the finished series as a whole and cuts it off at the ends of the range, by the distance that gives
    the mean: no change becomes larger, and the range stays. The first value shifts as well.
    Section 5.1.1 of the dissertation ("maintaining the average resource capacity constant in all cases").
    Raises InputError.
    """
    source = f"{variation.structure}, seed {variation.seed}"
    checked_number(_WHERE, "end_s", end_s, 0.0)
    bounds = variation.low, variation.high
    if variation.high == variation.low:
        return Timeline((0.0,), (variation.mean,), name=FRACTION, source=source, unit=FRACTION, bounds=bounds)
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
    rows = tuple(times.tolist()), tuple(values.tolist())
    return Timeline(*rows, name=FRACTION, source=source, unit=FRACTION, bounds=bounds)


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


@parameters(_WHERE)
class EnergyBudget:
    """A capacity by a constant budget of money or carbon per time.

    The budget buys the fraction `budget` at the mean of the signal, so that its total is that of a fixed capacity of
    this fraction. `reference`, in the signal's unit, replaces the mean if it is not None. The capacity is at most
    `headroom` (the existing machines and power) and at least `floor`, as fractions.
    Raises InputError.
    """

    budget: Fraction = 0.7
    headroom: Fraction = 1.0
    floor: Fraction = 0.0
    reference: Annotated[float | None, Field(gt=0.0)] = None

    def __post_init__(self) -> None:
        if not self.floor <= self.headroom:
            problem = f"floor must be <= headroom, got {self.floor!r} and {self.headroom!r}"
            raise InputError(_WHERE, problem, "correct one of them")

    def capacity(self, signal: Timeline) -> Timeline:
        """Return budget x mean(x) / x_t within [floor, headroom], as fractions; x_t <= 0 gives the headroom.

        Budget that the headroom leaves is not spent later. Sections 5.4.1 (price) and 5.4.2 (carbon) of the
        dissertation: Budget_total = sum of x_t x budget, Budget_t = Budget_total / T.

        Raises InputError.
        """
        values = np.asarray(signal.values)
        mean = signal.mean if self.reference is None else self.reference
        if not mean > 0.0:
            problem = f"the mean of {signal.name!r} must be > 0 to reckon a budget, got {mean:g}"
            raise InputError(signal.source, problem, "give the value to reckon with, as in reference=50")
        fractions = np.full(values.shape, self.headroom)
        paid = values > 0.0
        # a price near 0 buys the headroom, also where the quotient overflows
        with np.errstate(over="ignore"):
            fractions[paid] = np.clip(self.budget * mean / values[paid], self.floor, self.headroom)
        return replace(signal, values=tuple(fractions.tolist()), name=FRACTION, unit=FRACTION)


@parameters(_WHERE)
class Stranded:
    """A capacity of stranded power: `high` while the signal is at most `threshold`, else `low`, as fractions."""

    threshold: Annotated[float, Field(ge=-1e12, le=1e12)]
    low: Fraction = 0.0
    high: Fraction = 1.0

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(_WHERE, f"low must be <= high, got {self.low!r} and {self.high!r}", "correct one of them")

    def capacity(self, signal: Timeline) -> Timeline:
        """Return the capacity, on and off with the signal, as fractions. Section 5.4.3 of the dissertation."""
        free = np.asarray(signal.values) <= self.threshold
        return replace(signal, values=tuple(np.where(free, self.high, self.low).tolist()), name=FRACTION, unit=FRACTION)


@dataclass(frozen=True)
class Bill:
    """Costs or emissions of a series of fractions relative to those of a fixed one.

    Amounts are in the signal's unit x h for a full data centre of 1: with g/kWh, g for each kW of its full power.
    """

    amount: float
    amount_fixed: float
    mean: float
    mean_fixed: float

    @property
    def saved(self) -> float | None:
        """Share of the fixed amount that is saved; None where the fixed amount is not positive."""
        return 1.0 - self.amount / self.amount_fixed if self.amount_fixed > 0.0 else None

    @property
    def gained(self) -> float | None:
        """Share by which the mean capacity is larger than the fixed one."""
        return self.mean / self.mean_fixed - 1.0 if self.mean_fixed > 0.0 else None


def bill(fractions: Timeline, signal: Timeline, fixed: float = 0.7) -> Bill:
    """Return the bill of `fractions` and of a constant `fixed`, over [0, signal.end_s[ (section 6.3)."""
    hours, shares, prices = _together(fractions, signal)
    return Bill(
        amount=float(np.sum(hours * shares * prices)),
        amount_fixed=float(np.sum(hours * fixed * prices)),
        mean=float(np.average(shares, weights=hours)),
        mean_fixed=fixed,
    )


def _together(fractions: Timeline, signal: Timeline) -> tuple[npt.NDArray[np.float64], ...]:
    """Return hours, fraction and signal of each step in which neither changes."""
    edges = np.unique(np.concatenate([(0.0,), fractions.times_s, signal.times_s]))
    edges = np.append(edges[(edges >= 0.0) & (edges < signal.end_s)], signal.end_s)
    return np.diff(edges) / HOUR_S, fractions.values_at(edges[:-1]), signal.values_at(edges[:-1])


Shape = Literal["constant", "on-off", "walk", "uniform"]

SAME = 1e-9
"""Values with a smaller difference are equal."""
ON_OFF_SHARE = 0.95
"""Least share of time that an on-off series spends at its two ends, within `END` of the range."""
END = 0.02
LEAST_CORRELATION = 0.2
DEVIATIONS = 3.0
MAX_SAMPLES = 5_000_000


@dataclass(frozen=True)
class Character:
    """Characteristics of a series in the terms of the dissertation; values in the unit of the series.

    `period_s` is the time between possible changes, `changes_per_h` the number of actual changes per hour,
    `correlation` that of a value with the next one (lag 1; 0 for a constant), `samples` the number of periods.
    """

    low: float
    high: float
    mean: float
    structure: Shape
    step_max: float
    step_mean: float
    period_s: float
    changes_per_h: float
    correlation: float
    samples: int

    @property
    def range(self) -> float:
        """Distance from the least to the largest value."""
        return self.high - self.low

    @property
    def frequency_per_h(self) -> float:
        """Possible changes per hour."""
        return HOUR_S / self.period_s

    @property
    def spec(self) -> str | None:
        """A synthetic capacity of equal range, mean, step and period, if values are fractions; None for on-off.

        The mean is the centre of the range, raised where the range would reach below 0.
        """
        if self.structure == "on-off":
            return None
        if self.structure == "constant":
            return f"constant:mean={self.mean:.4g}"
        mean = max(float(f"{self.mean:.4g}"), float(f"{self.range:.4g}") / 2)
        text = f"{self.structure}:range={self.range:.4g},mean={mean:.4g},period={self.period_s:.10g}"
        return f"{text},step={min(self.step_max, self.range):.4g}" if self.structure == "walk" else text


def characterise(signal: Timeline) -> Character:
    """Return the characteristics of a series, sampled once per period.

    The period is the greatest common divisor of the distances between rows, in whole ms; below a twentieth of the
    shortest distance the rows are irregular, and the period is the shortest distance.

    The structure is the first that applies. *Constant*: the range is at most 1e-9. *On-off*: at least 95 % of the
    periods are within 2 % of the range of its two ends, and both ends occur. *Walk*: the lag-1 correlation is larger
    than 0.2 and than 3/sqrt(n); that of independent draws is about 0 +- 1/sqrt(n). Else *uniform*: independence is not
    refuted. A series of a few values is a walk only if very smooth.
    """
    period = _period_s(signal)
    count = max(1, math.ceil(signal.end_s / period - SAME))
    values = signal.values_at(np.arange(count, dtype=np.float64) * period)
    low, high = min(signal.values), max(signal.values)
    steps = np.abs(np.diff(signal.values))
    moved = steps > SAME
    correlation = _correlation(values) if high - low > SAME else 0.0
    return Character(
        low=low,
        high=high,
        mean=signal.mean,
        structure=_structure(values, low, high, correlation),
        step_max=float(steps.max(initial=0.0)),
        step_mean=float(steps.sum() / max(1, count - 1)),
        period_s=period,
        changes_per_h=float(moved.sum() / (signal.end_s / HOUR_S)),
        correlation=correlation,
        samples=count,
    )


def _period_s(signal: Timeline) -> float:
    distances = np.round(np.diff(signal.times_s) * 1000.0).astype(np.int64)
    if not len(distances):
        return signal.end_s
    common, shortest = int(np.gcd.reduce(distances)), max(1, int(distances.min()))
    period = common if common * 20 >= shortest else shortest
    return max(period / 1000.0, signal.end_s / MAX_SAMPLES)


def _structure(values: _Floats, low: float, high: float, correlation: float) -> Shape:
    width = high - low
    if width <= SAME:
        return "constant"
    down, up = values <= low + END * width, values >= high - END * width
    if down.any() and up.any() and float(np.mean(down | up)) >= ON_OFF_SHARE:
        return "on-off"
    return "walk" if correlation > max(LEAST_CORRELATION, DEVIATIONS / math.sqrt(len(values))) else "uniform"


def _correlation(values: _Floats) -> float:
    """Return the lag-1 autocorrelation; 0 for equal samples, such as those of rows that differ between samples."""
    around = values - values.mean()
    square = float(np.dot(around, around))
    return float(np.dot(around[:-1], around[1:])) / square if square > 0.0 else 0.0
