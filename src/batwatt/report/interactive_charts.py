"""Charts as plain objects that plotly.js draws."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from batwatt.report.charts import LEVEL, QUANTILES, Chart, Curve, errors_of
from batwatt.report.grid import written
from batwatt.report.interactive import Plot, axis_of, marked, plot_of, rounded
from batwatt.results.style import CAP, GRID, INK


def chart_plot(panel: Chart) -> Plot:
    """A panel; its legend is that of the page."""
    places, width = panel.places()
    draw = {"lines": _lines, "boxes": _boxes}.get(panel.kind, _bars)
    traces = [trace for curve, place in zip(panel.curves, places, strict=True)
              for trace in draw(panel, curve, place, width)]  # fmt: skip
    ends: list[Any] = [-0.5, len(panel.xs) - 0.5]
    x_axis: dict[str, Any] = {"tickvals": panel.ticks_at, "ticktext": [escape(text) for text in panel.ticks],
                              "range": ends, "showgrid": False}  # fmt: skip
    y_axis: dict[str, Any] = {"rangemode": "tozero", "fixedrange": True}
    settings: dict[str, Any] = {"barmode": "stack" if panel.kind == "stacks" else "overlay"}
    height_px = 320
    if panel.kind == "boxes":
        x_axis |= {"tickvals": [float(at) for at in panel.ticks_at], "fixedrange": True}
        settings, height_px = {"boxmode": "overlay"}, 330
        y_axis = {"fixedrange": True, "type": "linear"}
        if panel.decades:
            y_axis |= {"type": "log", "tickvals": panel.decades, "ticktext": list(map(written, panel.decades))}
    elif panel.kind != "lines":
        x_axis = {"fixedrange": True} | x_axis
    else:
        ends, x_axis = [panel.xs[0], panel.xs[-1]], {"fixedrange": True}
        if panel.logarithmic:
            x_axis["type"] = "log"
        if panel.logarithmic or len(panel.xs) <= 8:
            x_axis |= {"tickvals": list(panel.xs), "ticktext": panel.ticks}
    dividers = [] if panel.kind == "lines" else [
        {"type": "line", "xref": "x", "yref": "paper", "x0": n + 0.5, "x1": n + 0.5, "y0": 0, "y1": 1, "layer": "below",
         "line": {"color": GRID, "width": 1}} for n in range(len(panel.xs) - 1)
    ]  # fmt: skip
    if panel.level is not None:
        # a line of its own, so that the axis reaches it
        traces.append({"type": "scatter", "mode": "lines", "name": LEVEL, "x": rounded(np.array(ends)),
                       "y": [panel.level] * 2, "line": {"color": CAP, "width": 1.4, "dash": "dash"},
                       "hovertemplate": f"%{{y:.{panel.measure.decimals}f}}"})  # fmt: skip
    title = {"text": escape(panel.title), "font": {"size": 14}, "x": 0.01, "y": 0.98}
    return plot_of(traces, height_px, title=title, **settings, hovermode="closest", hoverdistance=40, showlegend=False,
                   shapes=dividers,
                   xaxis=axis_of(panel.x_axis, **x_axis), yaxis=axis_of(panel.measure.axis, **y_axis))  # fmt: skip


def _whose(curve: Curve) -> dict[str, Any]:
    """What marks a trace: an algorithm's follows the choice of algorithms, others are always there."""
    key = curve.key
    return marked(key.label) if key.label is not None else {"name": escape(key.name)}


def _shared(panel: Chart, curve: Curve) -> dict[str, Any]:
    unit = f" {panel.measure.unit}" if panel.measure.unit else ""
    numbers = f"%{{y:.{panel.measure.decimals}f}}{unit}"
    error = {} if panel.kind == "stacks" else {"error_y": {
        "type": "data", "array": rounded(errors_of(curve)), "thickness": 1.2, "width": 3, "color": CAP}}  # fmt: skip
    return {
        **_whose(curve), **error, "y": rounded(curve.points["mean"]),
        "text": [escape(written(x)) for x in curve.points["x"]], "textposition": "none",
        "customdata": [int(count) for count in curve.points["count"]],
        "hovertemplate": f"%{{text}}<br>{numbers}, mean of %{{customdata}}",
    }  # fmt: skip


def _lines(panel: Chart, curve: Curve, place: float, width: float) -> list[dict[str, Any]]:
    key = curve.key
    shared = _shared(panel, curve)
    # only bars have texts next to them
    del shared["textposition"]
    shared["error_y"]["color"] = key.colour
    return [{"type": "scatter", "mode": "lines+markers", **shared, "x": rounded(curve.points["x"]),
             "line": {"color": key.colour, "width": 2, "dash": key.dash[1]},
             "marker": {"symbol": key.marker[1], "size": 7}}]  # fmt: skip


def _bars(panel: Chart, curve: Curve, place: float, width: float) -> list[dict[str, Any]]:
    key = curve.key
    pattern = {"shape": "" if panel.kind == "stacks" else key.hatch[1], "fillmode": "overlay", "fgcolor": "white",
               "fgopacity": 0.7, "size": 7}  # fmt: skip
    return [{"type": "bar", **_shared(panel, curve), "x": [panel.xs.index(x) + place for x in curve.points["x"]],
             "width": width, "marker": {"color": key.colour, "pattern": pattern}}]  # fmt: skip


def _boxes(panel: Chart, curve: Curve, place: float, width: float) -> list[dict[str, Any]]:
    """Boxes whose quantiles are given, and a star at each mean."""
    key, points = curve.key, curve.points
    if points.empty:
        return []
    at = rounded(np.array([panel.xs.index(x) + place for x in points["x"]]))
    low, q1, median, q3, high, mean = (rounded(points[name]) for name in (*QUANTILES, "mean"))
    whose = _whose(curve)
    return [
        {"type": "box", **whose, "x": at, "lowerfence": low, "q1": q1, "median": median, "q3": q3, "upperfence": high,
         "width": width, "whiskerwidth": 0.6, "line": {"color": key.colour, "width": 1.4},
         "fillcolor": key.colour + "40", "hoverinfo": "skip", "showlegend": False},
        {"type": "scatter", "mode": "markers", **whose, "x": at, "y": mean,
         "marker": {"symbol": "star", "size": 8, "color": "white", "line": {"color": INK, "width": 1}},
         "text": [escape(written(x)) for x in points["x"]],
         "customdata": list(map(list, zip(low, q1, median, q3, high, points["count"].tolist(), strict=True))),
         "hovertemplate": "%{text}<br>mean %{y}, median %{customdata[2]}<br>25 to 75 %: %{customdata[1]} to "
                          "%{customdata[3]}<br>10 to 90 %: %{customdata[0]} to %{customdata[4]}<br>"
                          "%{customdata[5]} instances"},
    ]  # fmt: skip
