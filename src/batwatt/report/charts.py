"""What charts show: means with their errors by the value of something, a series per algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from batwatt.report.grid import written
from batwatt.report.means import mean_of
from batwatt.report.table import Measure
from batwatt.results.style import Look, Turned

Kind = Literal["lines", "bars"]
TIMES = 30.0
"""Values that span more than this factor have a logarithmic axis."""


@dataclass(frozen=True)
class Key(Turned):
    """How a series looks; `label` is its algorithm, None if it is none."""

    name: str
    colour: str
    turn: int = 0
    label: str | None = None


@dataclass(frozen=True)
class Curve:
    """A series: `points` has a row per `x` with `mean`, `error` (NaN of one run) and `count`."""

    key: Key
    points: pd.DataFrame


@dataclass(frozen=True)
class Chart:
    """A panel. Values of x are numbers of lines, else places."""

    title: str
    measure: Measure
    kind: Kind
    x_axis: str
    xs: tuple[Any, ...]
    curves: tuple[Curve, ...]

    @property
    def alt(self) -> str:
        """What it is, for those who cannot see it."""
        return f"{self.measure.title} by {self.x_axis or 'algorithm'} ({self.title})"

    @property
    def ticks(self) -> list[str]:
        """The values of x as they are shown."""
        return [written(x) for x in self.xs]

    @property
    def room(self) -> tuple[float, float]:
        """The share of a place that bars side by side take, and the share of that which is not between them.

        The first is 0 where each bar is alone at its place.
        """
        alone = sum(len(curve.points) for curve in self.curves) == len(self.xs)
        return (0.0, 0.62) if alone else (0.82, 0.9)


def decades_between(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between two values; none if these are so near that a plain axis shows them well."""
    if not (low > 0.0 and high > TIMES * low):
        return []
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # 5e-1, read as a text, is 0.5 to the last digit
    marks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


def keys_of_labels(labels: Sequence[str], looks: Mapping[str, Look]) -> list[Key]:
    """The keys of algorithms."""
    return [Key(label, looks[label].colour, looks[label].turn, label) for label in labels]


def chart(
    title: str, measure: Measure, kind: Kind, x_axis: str, rows: pd.DataFrame, keys: Sequence[Key]
) -> Chart | None:
    """A panel of `rows` with `x`, `label` and the measure; None if no value is known.

    Numbers of x are in order of size, names as they come. A series without a value is left out.
    """
    rows = rows[rows[measure.name].notna() & rows["x"].notna()]
    if rows.empty:
        return None
    xs = rows["x"].unique().tolist()
    ordered = sorted(xs) if kind == "lines" else xs
    curves = []
    for key in keys:
        grouped = rows[rows["label"] == key.label].groupby("x")[measure.name]
        means = {x: mean_of(values) for x, values in grouped}
        points = [(x, *means[x]) for x in ordered if x in means]
        if points:
            curves.append(Curve(key, pd.DataFrame(points, columns=["x", "mean", "error", "count"])))
    return Chart(title, measure, kind, x_axis, tuple(ordered), tuple(curves))


def keys_of(charts: Sequence[Chart]) -> tuple[Key, ...]:
    """The series of all panels, each once."""
    return tuple({curve.key.name: curve.key for panel in charts for curve in panel.curves}.values())


def counts_of(charts: Sequence[Chart]) -> set[int]:
    """Of how many runs marks are."""
    return {int(count) for panel in charts for curve in panel.curves for count in curve.points["count"]}


def errors_of(curve: Curve) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The errors, 0 where there is none."""
    return np.nan_to_num(curve.points["error"].to_numpy(dtype=float))
