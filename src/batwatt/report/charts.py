"""What charts show: means with their errors, or boxes, by the value of something, one of each per series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from batwatt.report.claims import mean_of
from batwatt.report.grid import written
from batwatt.report.table import Measure
from batwatt.results.style import HATCHES, Look, Turned

Kind = Literal["lines", "bars", "stacks", "boxes"]
LEVEL = "fixed capacity"
"""Name of the line across."""
READING = "A mark is the mean over traces and walks ({}), with one standard error up and down."
QUANTILES = {"low": 0.10, "q1": 0.25, "median": 0.50, "q3": 0.75, "high": 0.90}
"""Ends of the whiskers, ends of the box, and the line within (section 5.4 of the riskaware paper)."""
TIMES = 30.0
"""Boxes that span more than this factor have a logarithmic axis."""


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
    """A series: `points` has a row per `x` with `mean`, `error` (NaN of one run) and `count`; boxes: `QUANTILES`."""

    key: Key
    points: pd.DataFrame


@dataclass(frozen=True)
class Chart:
    """A panel. Values of x are numbers of lines, else places; `level` is that of the fixed capacity, a line across."""

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
    def alt(self) -> str:
        """What it is, for those who cannot see it."""
        what, default = ("Boxes of ", "algorithm") if self.kind == "boxes" else ("", "case")
        return f"{what}{self.measure.title} by {self.x_axis or default} ({self.title})"

    @property
    def unnamed(self) -> bool:
        """Whether there is but one value of x, without a name: the series are on the axis."""
        return self.kind == "boxes" and self.xs == ("",)

    @property
    def ticks(self) -> list[str]:
        """The values of x, or the series, as they are shown."""
        return [curve.key.name for curve in self.curves] if self.unnamed else [written(x) for x in self.xs]

    @property
    def ticks_at(self) -> list[float]:
        """Where they are: the values of x at 0, 1, ..."""
        return self.places()[0] if self.unnamed else list(range(len(self.xs)))

    @property
    def room(self) -> tuple[float, float]:
        """The share of a place that bars or boxes side by side take, and the share of that which is not between them.

        The first is 0 where they are all in the middle, each alone at its place or one upon another.
        """
        if self.kind == "boxes":
            return 0.86, 0.8
        alone = sum(len(curve.points) for curve in self.curves) == len(self.xs)
        return (0.0, 0.62) if self.kind == "stacks" or alone else (0.82, 0.9)

    def places(self) -> tuple[list[float], float]:
        """How far right of its value the middle of each curve's bar is, and the width of a bar; alone it is at it."""
        count, (room, share) = len(self.curves), self.room
        places = [(n - (count - 1) / 2.0) * (room / count) for n in range(count)]
        return places, share * room / count if room else share

    @property
    def decades(self) -> list[float]:
        """Where a logarithmic axis of boxes is marked: 1, 2, 5, 10, ..., as far as the whiskers reach.

        Empty if the axis is plain, as boxes would not hide one another there.
        """
        points = pd.concat([curve.points for curve in self.curves])
        low, high = (float(points["low"].min()), float(points["high"].max())) if self.kind == "boxes" else (0.0, 0.0)
        return decades_between(low, high)


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


def boxes(title: str, measure: Measure, x_axis: str, rows: pd.DataFrame, xs: Sequence[Any], keys: Sequence[Key],
          ) -> Chart | None:  # fmt: skip
    """A panel of `rows` with `value`, `label` and the measure: boxes by `value`, one of `xs`, a curve for every key.

    None if the measure has a meaning in no row.
    """
    known = rows[rows[measure.name].notna()]
    if known.empty:
        return None
    grouped = known.groupby(["value", "label"])[measure.name]
    stats = grouped.quantile(np.array(list(QUANTILES.values()))).unstack().set_axis(list(QUANTILES), axis=1)
    stats = stats.assign(count=grouped.size(), mean=grouped.mean()).rename_axis(index={"value": "x"}).reset_index()
    stats = stats.assign(rank=stats["x"].map(list(xs).index)).sort_values("rank", kind="stable")
    curves = tuple(Curve(key, stats[stats["label"] == key.label]) for key in keys)
    return Chart(title, measure, "boxes", x_axis, tuple(xs), curves)


def keys_of(charts: Sequence[Chart]) -> tuple[Key, ...]:
    """The series of all panels, each once."""
    return tuple({curve.key.name: curve.key for panel in charts for curve in panel.curves}.values())


def counts_of(charts: Sequence[Chart]) -> set[int]:
    """Of how many runs marks and boxes are."""
    return {int(count) for panel in charts for curve in panel.curves for count in curve.points["count"]}


def errors_of(curve: Curve) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The errors, 0 where there is none."""
    return np.nan_to_num(curve.points["error"].to_numpy(dtype=float))
