"""Characteristics of a capacity: range, structure, step, frequency (section 5.1.1 of the varcap dissertation)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from batwatt.model.series import Series
from batwatt.units import HOUR_S

Shape = Literal["constant", "on-off", "walk", "uniform"]

SAME = 1e-9
"""Values with a smaller difference are equal."""
ON_OFF_SHARE = 0.95
"""Least share of time that an on-off series spends at its two ends, within `END` of the range."""
END = 0.02
LEAST_CORRELATION = 0.2
DEVIATIONS = 3.0
MAX_SAMPLES = 5_000_000

_Floats = npt.NDArray[np.float64]


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


def characterise(signal: Series) -> Character:
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


def _period_s(signal: Series) -> float:
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
