"""The figures of the page, as plain objects that plotly.js draws; the trace of an algorithm names it in `meta`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.series import Series
from batwatt.report.data import Scores, Zoom, readable_top
from batwatt.report.table import Measure
from batwatt.results.plots import envelope_stairs, stairs
from batwatt.results.power import Floats, PowerTrace, compare
from batwatt.results.style import BEST, CAP, FRAME, GRID, HOUR_S, INK, KW, VIOLATION, WORST, Look

Plot = dict[str, Any]
ROW_PX = 34
"""Height of an algorithm's row; the page multiplies it by the number of those that are chosen."""
HEAT_PX = 22
_AXIS: dict[str, Any] = {
    "gridcolor": GRID, "linecolor": FRAME, "zeroline": False, "automargin": True, "ticks": "outside", "ticklen": 3,
    "tickcolor": FRAME,
}  # fmt: skip


def plot_of(traces: list[dict[str, Any]], height: int, meta: dict[str, Any] | None = None, **layout: Any) -> Plot:
    """A figure; `meta` says to the page's script how the height follows the choice of algorithms."""
    base: dict[str, Any] = {
        "height": height,
        "autosize": True,
        "margin": {"l": 8, "r": 8, "t": 30, "b": 8, "pad": 2},
        "font": {"family": "system-ui, sans-serif", "size": 12.5, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hoverlabel": {"font": {"size": 12.5}, "namelength": -1},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "xanchor": "left", "x": 0.0},
        "dragmode": False,
        "meta": meta or {},
    }
    return {"data": traces, "layout": base | layout}


def axis_of(title: str, **settings: Any) -> dict[str, Any]:
    """An axis like all others."""
    return {**_AXIS, "title": {"text": escape(title), "standoff": 6}, **settings}


def marked(label: str) -> dict[str, Any]:
    """What marks a trace as an algorithm's."""
    return {"name": escape(label), "meta": {"label": label}}


def rounded(values: Floats | pd.Series) -> list[float | None]:
    """Numbers with as many digits as can be seen, None for NaN."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def envelopes_plot(envelopes: Sequence[tuple[str, Series]]) -> Plot:
    """Figure 1."""
    traces = []
    for number, (name, series) in enumerate(envelopes):
        hours, power = map(rounded, envelope_stairs(series))
        look = Look(number)
        traces.append(
            {"type": "scatter", "mode": "lines", "x": hours, "y": power, "name": escape(name),
             "line": {"color": look.colour, "width": 1.6, "dash": look.dash[1]},
             "hovertemplate": "%{y:.2f} kW"}
        )  # fmt: skip
    return plot_of(traces, 380, xaxis=axis_of("time (h)"), yaxis=axis_of("power available (kW)", rangemode="tozero"),
                 hovermode="x unified")  # fmt: skip


def radar_plot(scores: Scores, looks: Mapping[str, Look]) -> Plot:
    """Figure 2: a triangle per algorithm; further out is better."""
    angles = []
    for measure in scores.measures:
        best, worst = scores.range_of(measure)
        angles.append(f"{measure.title}<br>{worst:.{measure.decimals}f} → {best:.{measure.decimals}f}")
    traces = []
    for label in scores.scores.index:
        values = rounded(scores.scores.loc[label])
        means = [f"{scores.means.loc[label, m.name]:.{m.decimals}f} {m.unit}".strip() for m in scores.measures]
        look = looks[label]
        traces.append(
            {"type": "scatterpolar", "mode": "lines+markers", **marked(label), "theta": [*angles, angles[0]],
             "r": [*values, values[0]], "text": [*means, means[0]],
             "line": {"color": look.colour, "width": 1.8, "dash": look.dash[1]},
             "marker": {"symbol": look.marker[1], "size": 8}, "fill": "toself",
             "fillcolor": look.colour + "12",
             "hovertemplate": "%{fullData.name}<br>%{text} (score %{r:.2f})<extra></extra>"}
        )  # fmt: skip
    radial = {"range": [-0.15, 1.02], "tickvals": [0, 0.5, 1], "showticklabels": False, "ticks": "", "gridcolor": GRID,
              "linecolor": GRID, "angle": 90}  # fmt: skip
    polar = {"gridshape": "linear", "radialaxis": radial, "bgcolor": "white",
             "angularaxis": {"rotation": 90, "direction": "clockwise", "gridcolor": GRID,
                             "linecolor": FRAME}}  # fmt: skip
    return plot_of(traces, 460, polar=polar, margin={"l": 70, "r": 70, "t": 50, "b": 20},
                 legend={"orientation": "h", "yanchor": "top", "y": -0.05, "xanchor": "center", "x": 0.5})  # fmt: skip


def heat_plot(scores: Scores) -> Plot:
    """Figure 2 as a table of colours; the page's script leaves the rows of those that are chosen."""
    labels = scores.scores.index.tolist()
    texts = [
        [f"{scores.means.loc[label, m.name]:.{m.decimals}f}" for m in scores.measures] for label in labels
    ]  # fmt: skip
    trace = {
        "type": "heatmap", "x": [escape(m.title) for m in scores.measures], "y": [escape(label) for label in labels],
        "z": [rounded(scores.scores.loc[label]) for label in labels], "text": texts, "texttemplate": "%{text}",
        "meta": {"rows": labels}, "zmin": 0, "zmax": 1, "colorscale": [[0, WORST], [1, BEST]],
        "textfont": {"color": CAP}, "showscale": False,
        "xgap": 1, "ygap": 1, "hovertemplate": "%{y}<br>%{x}: %{text}<br>score %{z:.2f}<extra></extra>",
    }  # fmt: skip
    return plot_of([trace], 60 + HEAT_PX * len(labels), {"row_px": HEAT_PX, "fixed_px": 60},
                 xaxis={**_AXIS, "side": "top", "ticks": "", "tickangle": 0, "fixedrange": True},
                 yaxis={**_AXIS, "autorange": "reversed", "ticks": "", "fixedrange": True})  # fmt: skip


def zoom_plot(zoom: Zoom, looks: Mapping[str, Look]) -> Plot:
    """Figure 3: the powers over one another; what is above the envelope is red."""
    hours, caps = map(rounded, envelope_stairs(zoom.envelope))
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "x": hours, "y": caps, "name": "envelope",
         "line": {"color": CAP, "width": 2.2}, "hovertemplate": "%{y:.2f} kW"}
    ]  # fmt: skip
    for label, trace in zoom.runs:
        traces += _excess(label, trace, zoom.envelope)
        hours_, power = stairs(np.append(trace.times_s, trace.end_s), trace.power_w)
        look = looks[label]
        traces.append(
            {"type": "scatter", "mode": "lines", **marked(label), "x": rounded(hours_), "y": rounded(power),
             "line": {"color": look.colour, "width": 1.6, "dash": look.dash[1]}, "hovertemplate": "%{y:.2f} kW"}
        )  # fmt: skip
    shade = {"type": "rect", "xref": "x", "yref": "paper", "x0": zoom.step_s[0] / HOUR_S, "x1": zoom.step_s[1] / HOUR_S,
             "y0": 0, "y1": 1, "fillcolor": VIOLATION, "opacity": 0.08, "line": {"width": 0}}  # fmt: skip
    spans = [zoom.close_s, (zoom.begin_s, zoom.end_s)]
    buttons = [
        {"label": text, "method": "relayout", "args": [{"xaxis.range": [begin / HOUR_S, end / HOUR_S]}]}
        for text, (begin, end) in zip(("the excess", "around it"), spans, strict=True)
    ]
    buttons.append({"label": "the whole run", "method": "relayout", "args": [{"xaxis.autorange": True}]})
    menu = {"type": "buttons", "direction": "right", "buttons": buttons, "active": 1, "x": 0, "xanchor": "left",
            "y": 1.02, "yanchor": "bottom", "pad": {"t": 0, "b": 0}, "font": {"size": 11.5}}  # fmt: skip
    return plot_of(traces, 460, xaxis=axis_of("time (h)", range=[zoom.begin_s / HOUR_S, zoom.end_s / HOUR_S]),
                 yaxis=axis_of("power (kW)", rangemode="tozero", fixedrange=True), hovermode="x unified",
                 shapes=[shade], updatemenus=[menu], dragmode="zoom", margin={"l": 8, "r": 8, "t": 48, "b": 8},
                 legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0})  # fmt: skip


def _excess(label: str, trace: PowerTrace, envelope: Series) -> list[dict[str, Any]]:
    """What is above the cap as one filled shape per piece, in one trace."""
    pieces = compare(trace, envelope)
    hours: list[float | None] = []
    power: list[float | None] = []
    for start, end, cap, drawn in zip(*(values[pieces.over].tolist() for values in (
            pieces.start_s, pieces.end_s, pieces.cap_w, pieces.power_w)), strict=True):  # fmt: skip
        hours += [round(time / HOUR_S, 7) for time in (start, start, end, end, start)] + [None]
        power += [round(value / KW, 6) for value in (cap, drawn, drawn, cap, cap)] + [None]
    if not hours:
        return []
    return [
        {"type": "scatter", "mode": "lines", "x": hours, "y": power, "fill": "toself", "fillcolor": VIOLATION,
         "line": {"color": VIOLATION, "width": 1}, "hoverinfo": "skip", "showlegend": False, **marked(label)}
    ]  # fmt: skip


def box_plot(frame: pd.DataFrame, measure: Measure, looks: Mapping[str, Look]) -> Plot:
    """Figures 4 and 5: a box and its points per algorithm, each point an instance."""
    traces = []
    labels = list(dict.fromkeys(frame["label"].tolist()))
    for label in labels:
        rows = frame[frame["label"] == label]
        look = looks[label]
        traces.append(
            {"type": "box", "orientation": "h", **marked(label), "x": rounded(rows[measure.name]),
             "y": [escape(label)] * len(rows), "text": [escape(name) for name in rows["instance"]],
             "boxpoints": "all", "jitter": 0.6, "pointpos": 0, "marker": {"color": look.colour, "size": 5,
             "symbol": look.marker[1]}, "line": {"color": look.colour, "width": 1.4},
             "fillcolor": look.colour + "30", "hovertemplate": "%{text}: %{x}<extra>%{y}</extra>"}
        )  # fmt: skip
    return plot_of(traces, 70 + ROW_PX * len(labels), {"row_px": ROW_PX, "fixed_px": 70}, showlegend=False,
                 xaxis=axis_of(measure.axis, rangemode="tozero" if measure.better == "lower" else "normal"),
                 yaxis={**_AXIS, "autorange": "reversed", "fixedrange": True}, boxgap=0.25,
                 margin={"l": 8, "r": 8, "t": 8, "b": 8})  # fmt: skip


def bars_plot(
    frame: pd.DataFrame, measures: Sequence[Measure], looks: Mapping[str, Look], shown: Sequence[str]
) -> Plot:
    """Figure 6: a panel per measure, a group of bars per envelope; axes end where the `shown` can be read."""
    envelopes = sorted(set(frame["envelope"].tolist()))
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    step = 1.0 / len(measures)
    for number, measure in enumerate(measures):
        suffix = "" if number == 0 else str(number + 1)
        top = 1.0 - number * step
        layout[f"xaxis{suffix}"] = {**_AXIS, "anchor": f"y{suffix}", "fixedrange": True}
        end = 1.13 * readable_top(frame, measure, shown)  # room for what is written above the bars
        domain = [top - step + 0.06, top]
        layout[f"yaxis{suffix}"] = axis_of(measure.axis, domain=domain, range=[0, end], fixedrange=True)
        for label in dict.fromkeys(frame["label"].tolist()):
            values = frame[frame["label"] == label].set_index("envelope")[measure.name].reindex(envelopes)
            look = looks[label]
            cut = values > end
            traces.append(
                {"type": "bar", **marked(label), "legendgroup": label, "showlegend": number == 0,
                 "offsetgroup": label, "alignmentgroup": str(number),
                 "x": [escape(name) for name in envelopes],
                 "y": rounded(values.clip(upper=end)), "customdata": rounded(values),
                 "xaxis": f"x{suffix}",
                 "yaxis": f"y{suffix}", "texttemplate": "%{customdata:.3~g}", "textangle": -90,
                 "textposition": ["inside" if inside else "outside" for inside in cut], "cliponaxis": False,
                 "insidetextfont": {"color": "white", "size": 11}, "outsidetextfont": {"color": INK, "size": 10.5},
                 "insidetextanchor": "end", "constraintext": "none",
                 "marker": {"color": look.colour, "line": {"color": look.colour, "width": 1},
                            "pattern": {"shape": look.hatch[1], "fillmode": "overlay", "fgcolor": "white",
                                        "fgopacity": 0.6, "size": 7}},
                 "hovertemplate": f"%{{customdata:.{measure.decimals}f}} {measure.unit}"}
            )  # fmt: skip
    return plot_of(traces, 250 * len(measures) + 60, barmode="group", hovermode="x unified", bargap=0.16, **layout)
