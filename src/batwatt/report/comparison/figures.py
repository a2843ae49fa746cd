"""The figures of the page: finished work against slowdown with the Pareto front, and power over time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from batwatt.report.chart import Axis, Chart, Marks, ReportFigure
from batwatt.report.comparison.data import ABOVE, ENOUGH, SLOWDOWN, WAIT, WITHIN, WORK, ComparedSystems
from batwatt.report.comparison.numbers import amount, in_suitable_unit, percent, plain
from batwatt.report.comparison.sentences import cases, finished_text
from batwatt.report.figures import MOST_BINS, front_chart, power_charts
from batwatt.report.grid import sentence, written
from batwatt.results.figures import Figure
from batwatt.results.power import Floats
from batwatt.results.power_bins import bin_edges

TIMES = 30.0
"""Values that span more than this factor have a logarithmic axis."""


def front_figure(data: ComparedSystems) -> ReportFigure:
    """Finished work against the bounded slowdown, and against the mean wait."""
    title = "Finished work against slowdown: the Pareto front"
    shown = [_front_plot(data, measure) for measure in (SLOWDOWN, WAIT)]
    charts = tuple(chart for chart in shown if chart is not None)
    if not charts:
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
    return ReportFigure("front", title, text, charts)


def _front_plot(data: ComparedSystems, measure: Figure) -> Chart | None:
    labels = [label for label in data.labels
              if np.isfinite(data.value(measure, label)) and np.isfinite(data.value(WORK, label))]  # fmt: skip
    if not labels:
        return None
    across = in_suitable_unit(measure, [data.value(measure, label) for label in labels])
    values = np.array([data.value(measure, label) for label in labels]) * across.factor
    axis, place = _axis(across.axis, values)
    front = sorted({data.costs(measure)[label] for label, others in data.dominating(measure).items() if not others})
    line = [(float(place(np.array([x * across.factor]))[0]), -y * WORK.factor) for x, y in front]
    dots = []
    for label, x in zip(labels, place(values), strict=True):
        share, y = data.above_share(label), data.value(WORK, label)
        tip = [
            f"{measure.title} {amount(measure, data.value(measure, label))}",
            f"{WORK.title} {amount(WORK, y)}",
            finished_text(data, label),
        ]
        ring, alpha = 0.0, 0.45 if label in data.within and label not in data.rated else 1.0
        if label not in data.within:
            ring = round(5.0 + 6.0 * min(1.0, share), 1)
            tip.append(f"{amount(ABOVE, data.value(ABOVE, label))} above the envelope ({percent(share)} of its energy)")
        dots.append(Marks("dots", label, [float(x)], [y * WORK.factor], data.looks[label], tips=["\n".join(tip)],
                          alpha=alpha, ring=ring))  # fmt: skip
    alt = f"{sentence(WORK.title)} over {measure.title}, a point per case"
    stem = f"plot-front-{'wait' if measure is WAIT else 'slowdown'}"
    up = Axis(WORK.axis, zero=True)
    return front_chart(stem, alt, dots, line, axis, up, f"Against the {measure.title}")


def _axis(name: str, values: Floats) -> tuple[Axis, Callable[[Floats], Floats]]:
    """The axis of values >= 0, and where they are on it: logarithmic if they span decades, with 0 left of the least."""
    known = values[values > 0.0]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    zero = low / 3.0 if len(known) < len(values) else low
    marks = _decades(zero, high) if _decades(low, high) else []
    if not marks:
        return Axis(name, zero=True), lambda places: places
    ticks = ({zero: "0"} if zero < low else {}) | {mark: written(mark) for mark in marks if mark >= low}
    return Axis(name, log=True, ticks=ticks), lambda places: np.where(places > 0.0, places, zero)


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
    first = data.chosen if data.chosen in traces else next(iter(traces))
    ordered = {label: traces[label] for label in (first, *(label for label in traces if label != first))}
    charts = power_charts("plot-power", ordered, data.envelope)
    text = (
        "Grey: what the envelope allows and the case does not draw, until its last job ends. Red: what it draws above "
        "the envelope."
    )
    end_s = max(trace.end_s for trace in traces.values())
    edges_s = bin_edges(list(traces.values()), data.envelope, MOST_BINS)
    if len(edges_s) == MOST_BINS + 1:
        width_s = end_s / MOST_BINS
        text += (
            f" Means over {plain(width_s / 60.0)} min, so that there may be red and grey at one time; the pale band is "
            "from the least to the largest power within."
        )
    if data.samples > 1:
        text += f" The first of {data.samples} {data.kind}."
    return ReportFigure("power", title, text, charts, folded=True)
