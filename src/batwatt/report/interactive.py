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
from batwatt.report.data import Scores, Zoom, readable_top
from batwatt.report.grid import written
from batwatt.report.table import Measure
from batwatt.results.power import Floats, PowerTrace, compare
from batwatt.results.style import CAP, HOUR_S, INK, KW, VIOLATION, Look, Turned

Plot = dict[str, Any]
SPREAD = (0.0, -0.2, 0.2, -0.1, 0.1, -0.3, 0.3)
"""How far the points of a row lie apart, so that they do not hide one another."""


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
    """A series, drawn as `line`, `area`, `dots`, `bars`, `boxes` or `cells`; what has no value is left out."""
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


def envelopes_plot(envelopes: Sequence[tuple[str, Series]]) -> Plot:
    """Figure 1."""
    series = [
        series_of("line", name, Look(number).colour, dash=Look(number).dash[1], **envelope_steps(envelope))
        for number, (name, envelope) in enumerate(envelopes)
    ]
    return power_plot(series, "power available (kW)")


def power_series_of(runs: Sequence[tuple[str, PowerTrace]], envelope: Series, looks: Mapping[str, Look],
                    ) -> list[dict[str, Any]]:  # fmt: skip
    """The envelope, and the power of each run with what is above it in red."""
    found = [series_of("line", "envelope", CAP, **envelope_steps(envelope))]
    for label, trace in runs:
        power = steps(np.append(trace.times_s, trace.end_s), trace.power_w)
        found += _excess(label, trace, envelope)
        found.append(of_label("line", label, looks[label], dash=looks[label].dash[1], **power))
    return found


def zoom_plot(zoom: Zoom, looks: Mapping[str, Look]) -> Plot:
    """Figure 3: the powers over one another; what is above the envelope is red."""
    spans = {"the excess": zoom.close_s, "around it": (zoom.begin_s, zoom.end_s), "the whole run": None}
    ranges = [[text, span and [time / HOUR_S for time in span]] for text, span in spans.items()]
    shade = [time / HOUR_S for time in zoom.step_s]
    series = power_series_of(zoom.runs, zoom.envelope, looks)
    return power_plot(series, "power (kW)", height=400, ranges=ranges, range=1, shade=shade)


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


def radar_plot(scores: Scores, looks: Mapping[str, Look]) -> Plot:
    """Figure 2: a triangle per algorithm; further out is better."""
    count = len(scores.measures)
    around = [(math.sin(2.0 * math.pi * n / count), math.cos(2.0 * math.pi * n / count)) for n in range(count)]

    def ring(radii: Sequence[float]) -> list[list[float]]:
        # a score of 0 is not in the middle, where all would be one point
        corners = [[round((0.15 + 0.85 * radius) * part, 4) for part in way]
                   for radius, way in zip(radii, around, strict=True)]  # fmt: skip
        return [*corners, corners[0]]

    ends = [(measure, *scores.range_of(measure)) for measure in scores.measures]
    notes = [[1.2 * x, 1.2 * y, f"{m.title} {worst:.{m.decimals}f} → {best:.{m.decimals}f}"]
             for (x, y), (m, best, worst) in zip(around, ends, strict=True)]  # fmt: skip
    series = []
    for label in scores.scores.index:
        values = scores.scores.loc[label].tolist()
        xs, ys = zip(*ring(values), strict=True)
        tips = [f"{m.title} {scores.means.loc[label, m.name]:.{m.decimals}f} {m.unit}".strip() + f" (score {value:.2f})"
                for m, value in zip(scores.measures, values, strict=True)]  # fmt: skip
        series.append(of_label("line", label, looks[label], **lined(looks[label]), fill=True, x=xs, y=ys,
                               tips=[*tips, tips[0]]))  # fmt: skip
    grid = [ring([radius] * count) for radius in (0.0, 0.5, 1.0)] + [[[0, 0], list(way)] for way in around]
    return plot_of(series, axis_of("", range=[-1.4, 1.4]), axis_of("", range=[-0.75, 1.3]), bare=True, grid=grid,
                   notes=notes)  # fmt: skip


def heat_plot(scores: Scores) -> Plot:
    """Figure 2 as a table of colours."""
    series = []
    for label in scores.scores.index:
        texts = [f"{scores.means.loc[label, m.name]:.{m.decimals}f}" for m in scores.measures]
        values = rounded(scores.scores.loc[label])
        tips = [f"{m.axis}: {text}\nscore {value}" for m, text, value in zip(scores.measures, texts, values,
                                                                              strict=True)]  # fmt: skip
        series.append(series_of("cells", label, CAP, label, y=values, texts=texts, tips=tips))
    axis = axis_of("", range=[-0.5, len(scores.measures) - 0.5],
                   ticks=[[n, measure.title] for n, measure in enumerate(scores.measures)])  # fmt: skip
    return plot_of(series, axis_of(""), axis, rows=24)


def box_plot(frame: pd.DataFrame, measure: Measure, looks: Mapping[str, Look]) -> Plot:
    """Figures 4 and 5: a box and its points per algorithm, each point an instance."""
    series = []
    for label in dict.fromkeys(frame["label"].tolist()):
        rows = frame[(frame["label"] == label) & frame[measure.name].notna()]
        values = rows[measure.name].to_numpy(dtype=float)
        if not len(values):
            continue
        q1, median, q3 = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
        within = values[(values >= q1 - 1.5 * (q3 - q1)) & (values <= q3 + 1.5 * (q3 - q1))]
        ends = [within.min(), q1, median, q3, within.max()]
        quantiles = [[value] for value in rounded(np.array(ends))]
        series.append(of_label("boxes", label, looks[label], x=[0], quantiles=quantiles))
        spread = [SPREAD[n % len(SPREAD)] for n in range(len(rows))]
        tips = [f"{name}: {value:.{measure.decimals}f} {measure.unit}".strip()
                for name, value in zip(rows["instance"], values, strict=True)]  # fmt: skip
        series.append(of_label("dots", label, looks[label], marker=looks[label].marker[1], small=True, x=spread,
                               y=rounded(values), tips=tips))  # fmt: skip
    return plot_of(series, axis_of(""), axis_of_measure(measure, zero=measure.better == "lower"), rows=34)


def bars_plot(frame: pd.DataFrame, measure: Measure, looks: Mapping[str, Look], shown: Sequence[str]) -> Plot:
    """A panel of Figure 6: a group of bars per envelope; the axis ends where the `shown` can be read."""
    envelopes = sorted(set(frame["envelope"].tolist()))
    end = readable_top(frame, measure, shown)
    series = []
    for label in dict.fromkeys(frame["label"].tolist()):
        values = frame[frame["label"] == label].set_index("envelope")[measure.name].reindex(envelopes)
        numbers = [f"{value:.{measure.decimals}f} {measure.unit}".strip() for value in values]
        texts = [f"{number} ↑" if value > end else "" for number, value in zip(numbers, values, strict=True)]
        tips = [f"{envelope}: {number}" for envelope, number in zip(envelopes, numbers, strict=True)]
        series.append(of_label("bars", label, looks[label], hatch=looks[label].hatch[1], x=list(range(len(envelopes))),
                               y=rounded(values), texts=texts if any(texts) else None, tips=tips))  # fmt: skip
    return plot_of(series, _places(envelopes), axis_of_measure(measure, range=[0, end]), dividers=len(envelopes),
                   room=[0.84, 0.92])  # fmt: skip


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
