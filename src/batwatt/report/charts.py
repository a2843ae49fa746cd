"""Means with their errors by the value of something, one curve or one group of bars per series: what charts show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from batwatt.report.claims import mean_of
from batwatt.report.grid import extent
from batwatt.report.papers.pmbs23 import written
from batwatt.report.table import Measure
from batwatt.results.style import HATCHES, Turned

Kind = Literal["lines", "bars", "stacks"]
LEVEL = "fixed capacity"
"""Name of the line across."""
READING = "A mark is the mean over traces and walks ({}), with one standard error up and down."


@dataclass(frozen=True)
class Key(Turned):
    """How a series looks; `label` is its algorithm, None if it is none."""

    name: str
    colour: str
    turn: int = 0
    label: str | None = None

    @property
    def hatch(self) -> tuple[str, str]:
        """Hatching of its bars; shades of a colour need none."""
        return super().hatch if self.label is not None else HATCHES[0]


@dataclass(frozen=True)
class Curve:
    """A series: `points` has a row per `x` with `mean`, `error` (NaN of one run) and `count`."""

    key: Key
    points: pd.DataFrame


@dataclass(frozen=True)
class Chart:
    """A panel. Of bars and stacks the values of x are texts; `level` is that of the fixed capacity, a line across."""

    title: str
    measure: Measure
    kind: Kind
    x_axis: str
    xs: tuple[Any, ...]
    curves: tuple[Curve, ...]
    level: float | None = None
    logarithmic: bool = False
    """Whether the values of x are."""

    @property
    def ticks(self) -> list[str]:
        """The values of x as they are shown."""
        return [written(x) for x in self.xs]

    def places(self) -> tuple[list[float], float]:
        """How far right of its value the middle of each curve's bar is, and the width of a bar; alone it is at it."""
        if self.kind == "stacks" or sum(len(curve.points) for curve in self.curves) == len(self.xs):
            return [0.0] * len(self.curves), 0.62
        width = 0.82 / len(self.curves)
        return [(n - (len(self.curves) - 1) / 2.0) * width for n in range(len(self.curves))], 0.9 * width


def chart(
    title: str,
    measure: Measure,
    kind: Kind,
    x_axis: str,
    rows: pd.DataFrame,
    keys: Sequence[Key],
    *,
    xs: Sequence[Any] | None = None,
    level: float | None = None,
    logarithmic: bool = False,
) -> Chart | None:
    """A panel of `rows` with `x`, `series` and `value`; None if no value is known.

    Values of x are in the order of `xs`, or by size. A series without a value is left out.
    """
    known = rows[rows["value"].notna() & rows["x"].notna()]
    if known.empty:
        return None
    there = known["x"].unique().tolist()
    ordered = sorted(there) if xs is None else [x for x in dict.fromkeys(xs) if x in there]
    curves = []
    for key in keys:
        grouped = known[known["series"] == key.name].groupby("x")["value"]
        means = {x: mean_of(values) for x, values in grouped}
        found = [(x, *means[x]) for x in ordered if x in means]
        if found:
            curves.append(Curve(key, pd.DataFrame(found, columns=["x", "mean", "error", "count"])))
    return Chart(title, measure, kind, x_axis, tuple(ordered), tuple(curves), level, logarithmic)


def keys_of(charts: Sequence[Chart]) -> tuple[Key, ...]:
    """The series of all panels, each once."""
    return tuple({curve.key.name: curve.key for panel in charts for curve in panel.curves}.values())


def counts_of(charts: Sequence[Chart]) -> str:
    """Of how many runs a mark is, as in `3 to 5 runs`."""
    counts = {int(count) for panel in charts for curve in panel.curves for count in curve.points["count"]}
    return f"{extent(counts)} {'run' if counts == {1} else 'runs'}"


def errors_of(curve: Curve) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The errors, 0 where there is none."""
    return np.nan_to_num(curve.points["error"].to_numpy(dtype=float))
