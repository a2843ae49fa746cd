"""Charts as plain objects that plotly.js draws."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from batwatt.report.charts import LEVEL, Chart, Curve, errors_of
from batwatt.report.interactive import Plot, axis_of, dividers, marked, plot_of, rounded, title_of
from batwatt.report.papers.pmbs23 import written
from batwatt.results.style import CAP

HEIGHT_PX = 320


def chart_plot(panel: Chart) -> Plot:
    """A panel; its legend is that of the page."""
    places, width = panel.places()
    traces = [
        _line(panel, curve) if panel.kind == "lines" else _bars(panel, curve, place, width)
        for curve, place in zip(panel.curves, places, strict=True)
    ]
    x_axis: dict[str, Any] = {"fixedrange": True}
    if panel.kind == "lines":
        if panel.logarithmic:
            x_axis["type"] = "log"
        if panel.logarithmic or len(panel.xs) <= 8:
            x_axis |= {"tickvals": list(panel.xs), "ticktext": panel.ticks}
    else:
        x_axis |= {"tickvals": list(range(len(panel.xs))), "ticktext": [escape(text) for text in panel.ticks],
                   "range": [-0.5, len(panel.xs) - 0.5], "showgrid": False}  # fmt: skip
    if panel.level is not None and panel.xs:
        # a line of its own, so that the axis reaches it
        ends = [panel.xs[0], panel.xs[-1]] if panel.kind == "lines" else [-0.5, len(panel.xs) - 0.5]
        traces.append({"type": "scatter", "mode": "lines", "name": LEVEL, "x": rounded(np.array(ends)),
                       "y": [panel.level] * 2, "line": {"color": CAP, "width": 1.4, "dash": "dash"},
                       "hovertemplate": f"%{{y:.{panel.measure.decimals}f}}"})  # fmt: skip
    shapes = [] if panel.kind == "lines" else dividers(len(panel.xs))
    return plot_of(traces, HEIGHT_PX, title=title_of(panel.title),
                   barmode="stack" if panel.kind == "stacks" else "overlay", hovermode="closest", hoverdistance=40,
                   showlegend=False, shapes=shapes, xaxis=axis_of(panel.x_axis, **x_axis),
                   yaxis=axis_of(panel.measure.axis, rangemode="tozero", fixedrange=True))  # fmt: skip


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


def _line(panel: Chart, curve: Curve) -> dict[str, Any]:
    key = curve.key
    shared = _shared(panel, curve)
    # only bars have texts next to them
    del shared["textposition"]
    shared["error_y"]["color"] = key.colour
    return {"type": "scatter", "mode": "lines+markers", **shared, "x": rounded(curve.points["x"]),
            "line": {"color": key.colour, "width": 2, "dash": key.dash[1]},
            "marker": {"symbol": key.marker[1], "size": 7}}  # fmt: skip


def _bars(panel: Chart, curve: Curve, place: float, width: float) -> dict[str, Any]:
    key = curve.key
    pattern = {"shape": "" if panel.kind == "stacks" else key.hatch[1], "fillmode": "overlay", "fgcolor": "white",
               "fgopacity": 0.7, "size": 7}  # fmt: skip
    return {"type": "bar", **_shared(panel, curve), "x": [panel.xs.index(x) + place for x in curve.points["x"]],
            "width": width, "marker": {"color": key.colour, "pattern": pattern}}  # fmt: skip
