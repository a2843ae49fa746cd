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
from batwatt.report.charts import Chart, Curve, Key, errors_of
from batwatt.report.grid import written
from batwatt.report.table import Measure
from batwatt.results.power import Floats, PowerTrace, compare
from batwatt.results.style import CAP, HOUR_S, INK, KW, VIOLATION, Look, Turned

Plot = dict[str, Any]


def plot_of(series: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], **settings: Any) -> Plot:
    """A figure."""
    return {"series": series, "x": x, "y": y, "height": 320} | settings


def axis_of(title: str, meaning: str = "", **settings: Any) -> dict[str, Any]:
    """An axis; `ticks` are pairs of a value and its text, `zero` says that it reaches 0."""
    return {"title": title, "meaning": meaning} | settings


def axis_of_measure(measure: Measure, **settings: Any) -> dict[str, Any]:
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


def lined(look: Turned) -> dict[str, Any]:
    """Dashes and shape of the points of a series."""
    return {"dash": look.dash[1], "marker": look.marker[1]}


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
        found.append(of_label("line", label, looks[label], dash=looks[label].dash[1], **power))
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


def chart_plot(panel: Chart) -> Plot:
    """A panel of a chart."""
    series = [_curve(panel, curve) for curve in panel.curves]
    y_axis = axis_of_measure(panel.measure, zero=True)
    if panel.kind == "bars":
        return plot_of(
            series, _places(panel.ticks, panel.x_axis), y_axis, dividers=len(panel.xs), room=list(panel.room)
        )
    x_axis = axis_of(panel.x_axis)
    if len(panel.xs) <= 8:
        x_axis["ticks"] = list(map(list, zip(panel.xs, panel.ticks, strict=True)))
    return plot_of(series, x_axis, y_axis)


def _curve(panel: Chart, curve: Curve) -> dict[str, Any]:
    """A curve: marks with their errors."""
    points = curve.points
    lines = panel.kind == "lines"
    values: dict[str, Any] = {
        "x": rounded(points["x"]) if lines else [panel.xs.index(x) for x in points["x"]],
        "y": rounded(points["mean"]),
        "tips": [_tip(panel, row) for _, row in points.iterrows()],
        "error": rounded(errors_of(curve)),
    }
    if lines:
        return _of_key("line", curve.key, **values, **lined(curve.key))
    return _of_key("bars", curve.key, **values, hatch=curve.key.hatch[1])


def _of_key(draw: str, key: Key, **data: Any) -> dict[str, Any]:
    """A series whose algorithm, if it is one's, may be left out by the reader."""
    return series_of(draw, key.name, key.colour, key.label, **data)


def _tip(panel: Chart, row: pd.Series) -> str:
    """What is shown at a mark."""
    measure, where = panel.measure, written(row["x"])
    head = " ".join(filter(None, (panel.x_axis, where))) if panel.kind == "lines" else where
    error = f" ± {row['error']:.{measure.decimals}f}" if math.isfinite(row["error"]) else ""
    mean = f"mean {row['mean']:.{measure.decimals}f}{error} {measure.unit}".strip()
    count = int(row["count"])
    return "\n".join(filter(None, (head, mean, f"{count} instance{'s' * (count != 1)}")))
