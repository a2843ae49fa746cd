"""The charts of the pages: means, a ranking, a Pareto front, and power over time with its envelope."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.series import Series
from batwatt.report.chart import Axis, Chart, Kind, Marks
from batwatt.report.grid import written
from batwatt.report.means import mean_of
from batwatt.results.figures import Figure
from batwatt.results.plots import draw_power
from batwatt.results.power import PowerTrace
from batwatt.results.power_bins import bin_edges
from batwatt.results.style import HOUR_S, Look
from batwatt.units import DAY_S

FRONT = "#8c8c8c"
"""Colour of a Pareto front."""
LONG_S = 4.0 * DAY_S
"""Longer times are in days."""
MOST_BINS = 500
"""Intervals of a power over time, at most."""


def means_chart(
    name: str, rows: pd.DataFrame, measure: Figure, x_title: str, looks: Mapping[str, Look]
) -> tuple[Chart, set[int]] | None:
    """Return means with one standard error over `x`, a series per label, and the numbers of instances of the means.

    `rows` has `x`, `label` and the measure. Numbers are points of lines in order of size, names are groups of bars in
    order of appearance; without a title of x each label has a row. Rows without a value, or without `x`, are left out;
    None if all are.
    """
    rows = rows[rows[measure.name].notna() & rows["x"].notna() & rows["label"].isin(list(looks))]
    if rows.empty:
        return None
    numbers = pd.api.types.is_numeric_dtype(rows["x"])
    xs = rows["x"].unique().tolist()
    xs = sorted(xs) if numbers else xs
    place: dict[Any, float] = {x: x if numbers else float(n) for n, x in enumerate(xs)}
    kind: Kind = "line" if numbers else "bars" if x_title else "dots"
    series: list[Marks] = []
    counts: set[int] = set()
    for label, look in looks.items():
        by_x = rows[rows["label"] == label].groupby("x")[measure.name]
        means = {x: mean_of(values * measure.factor) for x, values in by_x}
        there = [x for x in xs if x in means]
        if not there:
            continue
        counts |= {means[x][2] for x in there}
        series.append(
            Marks(
                kind, label, [place[x] for x in there], [means[x][0] for x in there], look,
                error=np.nan_to_num([means[x][1] for x in there]),
                tips=[_tip(measure, x_title if numbers else "", x, *means[x]) for x in there],
            )
        )  # fmt: skip
    texts = {place[x]: written(x) for x in xs}
    axis = Axis(x_title, ticks=None if numbers and len(xs) > 8 else texts)
    alt = f"{measure.title} by {x_title or 'algorithm'}"
    up = Axis(measure.axis, zero=True)
    return Chart(name, alt, tuple(series), axis, up, measure.title, rows=not x_title), counts


def _tip(measure: Figure, x_title: str, x: float | str, mean: float, error: float, count: int) -> str:
    """Return the text of a mark."""
    head = " ".join(filter(None, (x_title, written(x))))
    errors = f" ± {error:.{measure.mean_decimals}f}" if math.isfinite(error) else ""
    text = f"mean {mean:.{measure.mean_decimals}f}{errors} {measure.shown}".strip()
    return "\n".join(filter(None, (head, text, f"{count} instance{'s' * (count != 1)}")))


def front_chart(
    name: str, alt: str, dots: Sequence[Marks], front: Sequence[tuple[float, float]], x: Axis, y: Axis, title: str = ""
) -> Chart:
    """Return a scatter of cases with a dotted line through the Pareto front, if that has two points."""
    xs, ys = [x for x, _ in front], [y for _, y in front]
    line = [Marks("line", "Pareto front", xs, ys, FRONT, dotted=True)] if len(front) > 1 else []
    return Chart(name, alt, (*line, *dots), x, y, title)


def power_charts(name: str, traces: Mapping[str, PowerTrace], envelope: Series) -> tuple[Chart, ...]:
    """Return the power of each run with its envelope, over the time of the longest.

    Powers that change more often than `MOST_BINS` times are means.
    """
    edges_s = bin_edges(list(traces.values()), envelope, MOST_BINS)
    unit_s, unit = (DAY_S, "days") if edges_s[-1] > LONG_S else (HOUR_S, "h")
    axes = Axis(f"time ({unit})"), Axis("power (kW)", zero=True)
    charts = []
    for n, (label, trace) in enumerate(traces.items()):
        draw = partial(draw_power, trace=trace, envelope=envelope, edges_s=edges_s, unit_s=unit_s)
        alt = f"Power over time of {label} with the envelope"
        charts.append(Chart(f"{name}-{n}", alt, (), *axes, label, wide=True, draw=draw))
    return tuple(charts)
