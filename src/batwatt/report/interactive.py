"""The figures of the page as plain objects, which `plots.js` draws; the series of an algorithm names it in `label`.

A plot has axes `x` and `y`, of values, and `series`; with `rows` each series has a row of its own, and `y` lies below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.series import Series
from batwatt.report.grid import written
from batwatt.report.means import mean_of
from batwatt.results.figures import Figure
from batwatt.results.power import Floats, PowerTrace, compare
from batwatt.results.style import CAP, HOUR_S, INK, KW, VIOLATION, Look

Plot = dict[str, Any]


def plot_of(series: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], **settings: Any) -> Plot:
    """A figure."""
    return {"series": series, "x": x, "y": y, "height": 320} | settings


def axis_of(title: str, meaning: str = "", **settings: Any) -> dict[str, Any]:
    """An axis; `ticks` are pairs of a value and its text, `zero` says that it reaches 0."""
    return {"title": title, "meaning": meaning} | settings


def axis_of_measure(measure: Figure, **settings: Any) -> dict[str, Any]:
    """The axis of a measure."""
    return axis_of(measure.axis, measure.meaning, **settings)


def series_of(draw: str, name: str, colour: str, label: str | None = None, **data: Any) -> dict[str, Any]:
    """A series, drawn as `line`, `area`, `dots` or `bars`; what has no value is left out."""
    ours = {"draw": draw, "name": name, "label": label, "colour": on_page(colour)}
    return ours | {key: value for key, value in data.items() if value not in (None, "")}


def on_page(colour: str) -> str:
    """A colour as the page has it: what is as dark as text is light in dark mode."""
    return "var(--ink)" if colour in ("#000000", CAP, INK) else colour


def of_label(draw: str, label: str, look: Look, **data: Any) -> dict[str, Any]:
    """The series of an algorithm."""
    return series_of(draw, label, look.colour, label, **data)


def rounded(values: Floats | pd.Series) -> list[float | None]:
    """Numbers with as many digits as can be seen, None for NaN."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def steps(edges_s: Floats, power_w: Floats) -> dict[str, Any]:
    """A power that holds between consecutive edges, in kW over h."""
    return {"x": rounded(edges_s / HOUR_S), "y": rounded(power_w / KW), "step": True}


def envelope_steps(series: Series) -> dict[str, Any]:
    """An envelope over its rows."""
    return steps(np.append(series.times_s, series.times_s[-1] + series.last_step_s), np.asarray(series.values))


def power_plot(series: list[dict[str, Any]], title: str, end_s: float | None = None, **settings: Any) -> Plot:
    """Powers over time, until `end_s` if that is given, which are read off at the pointer."""
    axis = axis_of("time (h)") if end_s is None else axis_of("time (h)", range=[0, end_s / HOUR_S])
    return plot_of(series, axis, axis_of(title, zero=True), reading=[2, "kW"], **settings)


def power_series_of(runs: Sequence[tuple[str, PowerTrace]], envelope: Series, looks: Mapping[str, Look],
                    ) -> list[dict[str, Any]]:  # fmt: skip
    """The envelope, and the power of each run with what is above it in red."""
    found = [series_of("line", "envelope", CAP, **envelope_steps(envelope))]
    for label, trace in runs:
        power = steps(np.append(trace.times_s, trace.end_s), trace.power_w)
        found += _excess(label, trace, envelope)
        found.append(of_label("line", label, looks[label], dash=looks[label].dash, **power))
    return found


def _excess(label: str, trace: PowerTrace, envelope: Series) -> list[dict[str, Any]]:
    """What is above the cap as one filled shape per uninterrupted time, in one series."""
    pieces = compare(trace, envelope)
    start, end, cap, drawn = (values[pieces.over] for values in (
        pieces.start_s, pieces.end_s, pieces.cap_w, pieces.power_w))  # fmt: skip
    if not len(start):
        return []
    hours: list[float | None] = []
    power: list[float | None] = []
    for one in np.split(np.arange(len(start)), np.flatnonzero(start[1:] != end[:-1]) + 1):
        # along the power, and back along the cap
        there = np.column_stack((start[one], end[one])).ravel()
        above, below = np.repeat(drawn[one], 2), np.repeat(cap[one], 2)
        hours += [*(np.append(there, there[::-1]) / HOUR_S).round(7).tolist(), None]
        power += [*rounded(np.append(above, below[::-1]) / KW), None]
    return [series_of("area", label, VIOLATION, label, x=hours, y=power)]


def _places(names: Sequence[str], title: str = "") -> dict[str, Any]:
    return axis_of(title, range=[-0.5, len(names) - 0.5], ticks=[[n, name] for n, name in enumerate(names)])


def means_plot(
    rows: pd.DataFrame, measure: Figure, x_title: str, looks: Mapping[str, Look]
) -> tuple[Plot, set[int]] | None:
    """Return means with one standard error over `x`, a series per label, and the numbers of instances of the means.

    `rows` has `x`, `label` and the measure. Numbers are points of lines in order of size, names are groups of bars in
    order of appearance. Rows without a value, or without `x`, are left out; None if all are.
    """
    rows = rows[rows[measure.name].notna() & rows["x"].notna()]
    shown = rows[measure.name] * measure.factor
    if rows.empty:
        return None
    lines = pd.api.types.is_numeric_dtype(rows["x"])
    xs = rows["x"].unique().tolist()
    xs = sorted(xs) if lines else xs
    series: list[dict[str, Any]] = []
    counts: set[int] = set()
    for label, look in looks.items():
        groups = shown[rows["label"] == label].groupby(rows["x"])
        means = {x: mean_of(values) for x, values in groups}
        points = [(x, *means[x]) for x in xs if x in means]
        if not points:
            continue
        counts |= {count for *_, count in points}
        values: dict[str, Any] = {
            "x": rounded(np.array([x for x, *_ in points])) if lines else [xs.index(x) for x, *_ in points],
            "y": rounded(np.array([mean for _, mean, *_ in points])),
            "tips": [_tip(measure, x_title if lines else "", *point) for point in points],
            "error": rounded(np.nan_to_num([error for *_, error, _ in points])),
        }
        if lines:
            series.append(of_label("line", label, look, **values, dash=look.dash, marker=look.marker))
        else:
            series.append(of_label("bars", label, look, **values, hatch=look.hatch))
    y_axis, texts = axis_of_measure(measure, zero=True), [written(x) for x in xs]
    if not lines:
        # a bar that is alone at its place is in its middle
        alone = sum(len(one["x"]) for one in series) == len(xs)
        room = [0.0, 0.62] if alone else [0.82, 0.9]
        return plot_of(series, _places(texts, x_title), y_axis, dividers=len(xs), room=room), counts
    x_axis = axis_of(x_title)
    if len(xs) <= 8:
        x_axis["ticks"] = list(map(list, zip(xs, texts, strict=True)))
    return plot_of(series, x_axis, y_axis), counts


def _tip(measure: Figure, x_title: str, x: float | str, mean: float, error: float, count: int) -> str:
    """Return the text shown at a mark."""
    head = " ".join(filter(None, (x_title, written(x))))
    errors = f" ± {error:.{measure.mean_decimals}f}" if math.isfinite(error) else ""
    text = f"mean {mean:.{measure.mean_decimals}f}{errors} {measure.shown}".strip()
    return "\n".join(filter(None, (head, text, f"{count} instance{'s' * (count != 1)}")))
