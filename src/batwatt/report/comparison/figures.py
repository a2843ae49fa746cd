"""The figures of the page: finished work against slowdown with the Pareto front, and power over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from batwatt.report.comparison.data import ABOVE, ENOUGH, SLOWDOWN, WAIT, WITHIN, WORK, ComparedSystems
from batwatt.report.comparison.numbers import amount, in_suitable_unit, percent, plain
from batwatt.report.comparison.sentences import cases, finished_text
from batwatt.report.figures import ReportFigure, Shown
from batwatt.report.grid import sentence, written
from batwatt.report.interactive import Plot, axis_of, of_label, plot_of, rounded, series_of
from batwatt.results.figures import Figure
from batwatt.results.power import Floats
from batwatt.results.power_bins import PowerBins, bin_edges, envelope_bins, power_bins
from batwatt.results.style import CAP, KW, VIOLATION
from batwatt.units import DAY_S, HOUR_S

FRONT, UNUSED = "#8c8c8c", "#8c8c8c"
"""Colours of the front, and of the energy that nobody draws."""
TIMES = 30.0
"""Values that span more than this factor have a logarithmic axis."""
LONG_S = 4.0 * DAY_S
"""Longer times are in days."""


def front_figure(data: ComparedSystems) -> ReportFigure:
    """Finished work against the bounded slowdown, and against the mean wait."""
    title = "Finished work against slowdown: the Pareto front"
    shown = [_front_plot(data, measure) for measure in (SLOWDOWN, WAIT)]
    plots = tuple(part for part in shown if part is not None)
    if not plots:
        return ReportFigure("front", title, "No case finishes a job: there is no slowdown to draw.")
    text = (
        "A point per case; the upper left corner is best. On the dotted line no other case that keeps to the envelope "
        "finishes more work with less bounded slowdown (less wait on the right)."
    )
    if len(data.within) < len(data.labels):
        text += (
            f" A red ring marks cases with more than {percent(WITHIN)} of their energy above the envelope, the wider "
            "the larger that share is; they are not on the front."
        )
    if set(data.within) != set(data.rated):
        text += f" Pale points finish less than {percent(ENOUGH)} of the jobs that the best of these cases finishes."
    lacking = [label for label in data.labels if np.isnan(data.value(SLOWDOWN, label))]
    if lacking:
        text += f" Not drawn, as they finish no job: {cases(lacking)}."
    return ReportFigure("front", title, text, plots)


def _front_plot(data: ComparedSystems, measure: Figure) -> Shown | None:
    labels = [label for label in data.labels
              if np.isfinite(data.value(measure, label)) and np.isfinite(data.value(WORK, label))]  # fmt: skip
    if not labels:
        return None
    across = in_suitable_unit(measure, [data.value(measure, label) for label in labels])
    values = np.array([data.value(measure, label) for label in labels]) * across.factor
    axis, place = _axis(across.axis, measure.meaning, values)
    series = []
    front = sorted({data.costs(measure)[label] for label, others in data.dominating(measure).items() if not others})
    if len(front) > 1:
        xs, ys = (np.array(side) for side in zip(*front, strict=True))
        series.append(series_of("line", "Pareto front", FRONT, dash="2 3", x=rounded(place(xs * across.factor)),
                                y=rounded(-ys * WORK.factor)))  # fmt: skip
    for label, x in zip(labels, place(values), strict=True):
        share, look, y = data.above_share(label), data.looks[label], data.value(WORK, label)
        tip = [
            f"{measure.title} {amount(measure, data.value(measure, label))}",
            f"{WORK.title} {amount(WORK, y)}",
            finished_text(data, label),
        ]
        ring, faint = None, True if label in data.within and label not in data.rated else None
        if label not in data.within:
            ring = round(7.0 + 8.0 * min(1.0, share), 1)
            tip.append(f"{amount(ABOVE, data.value(ABOVE, label))} above the envelope ({percent(share)} of its energy)")
        point = {"x": rounded(np.array([x])), "y": rounded(np.array([y * WORK.factor])), "tips": ["\n".join(tip)]}
        series.append(of_label("dots", label, look, marker=look.marker, ring=ring, faint=faint, **point))
    up = axis_of(WORK.axis, WORK.meaning, zero=True)
    alt = f"{sentence(WORK.title)} over {measure.title}, a point per case"
    plot = plot_of(series, axis, up, height=380, named=True)
    return Shown(f"plot-front-{'wait' if measure is WAIT else 'slowdown'}", alt, plot, f"Against the {measure.title}")


def _axis(name: str, meaning: str, values: Floats) -> tuple[dict[str, Any], Callable[[Floats], Floats]]:
    """The axis of values >= 0, and where they are on it: logarithmic if they span decades, with 0 left of the least."""
    known = values[values > 0.0]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    zero = low / 3.0 if len(known) < len(values) else low
    marks = _decades(zero, high) if _decades(low, high) else []
    if not marks:
        return axis_of(name, meaning, zero=True), lambda found: found
    ticks = [[mark, written(mark)] for mark in marks if mark >= low]
    if zero < low:
        ticks.insert(0, [zero, "0"])
    return axis_of(name, meaning, log=True, ticks=ticks), lambda found: np.where(found > 0.0, found, zero)


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... between two values; none if these are so near that a plain axis shows them well."""
    if not (low > 0.0 and high > TIMES * low):
        return []
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # 5e-1, read as a text, is 0.5 to the last digit
    marks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


def power_figure(data: ComparedSystems) -> ReportFigure:
    """The envelope and the power of the case that the reader chooses."""
    title = "Power over time"
    traces = {label: trace for label, trace in data.traces.items() if trace.end_s > 0.0 and label in data.looks}
    if not traces:
        return ReportFigure("power", title, "No case has a power over time.")
    edges = bin_edges(list(traces.values()), data.envelope)
    unit_s, unit = (DAY_S, "d") if edges[-1] > LONG_S else (HOUR_S, "h")
    first = data.chosen if data.chosen in traces else next(iter(traces))
    choices = [first, *(label for label in traces if label != first)]
    whole = envelope_bins(data.envelope, edges)
    series = [series_of("line", "envelope", CAP, **_steps(whole.edges_s, whole.power_w, unit_s))]
    bins = {label: power_bins(traces[label], data.envelope, edges) for label in choices}
    for label in choices:
        series += _power_series(data, label, bins[label], unit_s)
    axis = axis_of(f"time ({'days' if unit == 'd' else unit})")
    plot: Plot = plot_of(series, axis, axis_of("power (kW)", zero=True), height=400, reading=[2, "kW", unit],
                         choices=choices) | _ranges(float(edges[-1]), unit_s)  # fmt: skip
    text = (
        "Grey: what the envelope allows and the case does not draw, until its last job ends. Red: what it draws above "
        "the envelope."
    )
    width_s = float(np.diff(edges).max())
    if any((one.low_w < one.high_w).any() for one in bins.values()):
        text += (
            f" Means over {plain(width_s / 60.0)} min, so that there may be red and grey at one time; the pale band is "
            "from the least to the largest power within."
        )
    if data.seeds > 1:
        text += " The first seed."
    shown = Shown("plot-power", "Power over time of a case with the envelope", plot)
    return ReportFigure("power", title, text, (shown,))


def _ranges(end_s: float, unit_s: float) -> dict[str, Any]:
    """Parts of the time that can be shown."""
    lengths = [("the first day", DAY_S), ("the first week", 7.0 * DAY_S)]
    found: list[list[Any]] = [[text, [0.0, length_s / unit_s]] for text, length_s in lengths if end_s > 2.0 * length_s]
    return {"ranges": [*found, ["all", None]], "range": len(found) - 1} if found else {}


def _steps(edges_s: Floats, power_w: Floats, unit_s: float) -> dict[str, Any]:
    return {"x": _times(edges_s, unit_s), "y": _kw(power_w), "step": True}


def _power_series(data: ComparedSystems, label: str, bins: PowerBins, unit_s: float) -> list[dict[str, Any]]:
    """Areas of what is unused (upon the mean power) and above (below it), the band of powers, and the mean."""
    look = data.looks[label]
    found = [
        _area(label, UNUSED, bins, bins.power_w, bins.power_w + bins.unused_w, unit_s, label),
        _area(label, VIOLATION, bins, bins.power_w - bins.above_w, bins.power_w, unit_s, label),
        _area(label, look.colour, bins, bins.low_w, bins.high_w, unit_s, label, pale=True),
    ]
    line = of_label("line", label, look, **_steps(bins.edges_s, bins.power_w, unit_s))
    return [*(one for one in found if one is not None), line]


def _area(
    name: str, colour: str, bins: PowerBins, low_w: Floats, high_w: Floats, unit_s: float, label: str, **how: Any
) -> dict[str, Any] | None:
    """Between two powers, a shape for each uninterrupted time in which they differ."""
    there = np.flatnonzero(high_w > low_w)
    if not len(there):
        return None
    xs: list[float | None] = []
    ys: list[float | None] = []
    for one in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
        # along the upper edge, and back along the lower one
        edges = np.column_stack((bins.edges_s[one], bins.edges_s[one + 1])).ravel()
        upper, lower = np.repeat(high_w[one], 2), np.repeat(low_w[one], 2)
        xs += [*_times(np.append(edges, edges[::-1]), unit_s), None]
        ys += [*_kw(np.append(upper, lower[::-1])), None]
    return series_of("area", name, colour, label, x=xs, y=ys, **how)


def _times(times_s: Floats, unit_s: float) -> list[float]:
    return (times_s / unit_s).round(5).tolist()


def _kw(power_w: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in (power_w / KW).tolist()]
