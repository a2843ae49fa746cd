"""The figures of a page: the Pareto front, power over time, and means by the varied part of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from batwatt.report.cases import ABOVE, ENOUGH, FINISHED, WITHIN, WORK, ComparedCases, plural
from batwatt.report.chart import Axis, Chart, Kind, Marks
from batwatt.report.html import Section
from batwatt.report.texts import (
    amount,
    assumed,
    cases,
    count_of,
    extent,
    in_suitable_unit,
    listed,
    percent,
    plain,
    sentence,
    written,
)
from batwatt.results.compared import mean_of
from batwatt.results.drawing import HOUR_S, KW, Look, bin_edges, draw_power, envelope_bins
from batwatt.results.figures import Figure
from batwatt.results.power import Floats
from batwatt.units import DAY_S

FRONT = Look(6)
"""Look of a Pareto front: grey."""
ALL = 0.995
"""Share of the work above which a case has finished it."""
DECADES = 30.0
"""Values that span more than this factor have a logarithmic axis."""
LONG_S = 4.0 * DAY_S
"""Time in s above which an axis is in days."""
MOST_BINS = 300
"""Intervals of a power over time, at most."""
MOST = 8
"""Most cases of a chart of means."""


def front_figure(data: ComparedCases) -> Section:
    """Return the Pareto fronts: finished work, or goodput, and energy, against a figure of which less is better."""
    title = f"What less waiting costs{f' in {data.about}' if data.about else ''}"
    # where all finish, their work says nothing
    survive = data.up == WORK and all(not data.value(WORK, label) < ALL for label in data.rated)
    pairs = {n: data.fronts[n] for n in ((1,) if survive else (1, 0))}
    charts = {n: chart for n in pairs if (chart := front_chart(data, n))}
    if not charts:
        return Section("front", title, caption="No case finishes a job: there is nothing to draw.")
    drawn = [pairs[n][1] for n in charts]
    ends = [f"{'upper' if up.better == 'higher' else 'lower'} left" for up in drawn]
    corners = listed([f"{end} ({up.title})" for end, up in zip(ends, drawn, strict=True)] if len(ends) > 1 else ends)
    text = (
        f"A point per case; best is {corners}. No case{' that keeps to the envelope' if data.capped else ''} is "
        "better in both figures than one on the dotted line, the Pareto front."
    )
    if data.above:
        text += f" Red ring: more than {percent(WITHIN)} of the energy is above the envelope, the wider the more."
    if data.within != data.rated:
        text += f" Pale: less than {percent(ENOUGH)} of the finished jobs, or of the work, of the best."
    if data.assumed_w is not None:
        text += f" Energy {assumed(data.assumed_w)}."
    first = pairs[next(iter(charts))][0]
    lacking = [label for label in data.labels if np.isnan(data.value(first, label))]
    if lacking:
        text += f" Not drawn, as they have no {first.title}: {cases(lacking)}."
    return Section("front", title, charts=list(charts.values()), caption=text)


def front_chart(data: ComparedCases, n: int) -> Chart | None:
    """Return the chart of one of `ComparedCases.fronts`; None if no case has both figures."""
    measure, up = data.fronts[n]
    labels = [label for label in data.labels
              if np.isfinite(data.value(measure, label)) and np.isfinite(data.value(up, label))]  # fmt: skip
    if not labels:
        return None
    across = in_suitable_unit(measure, [data.value(measure, label) for label in labels])
    upward = in_suitable_unit(up, [data.value(up, label) for label in labels]) if up.better == "lower" else up
    values = np.array([data.value(measure, label) for label in labels]) * across.factor
    axis, place = _axis(across.axis, values)
    costs = data.costs(measure, up)
    front = sorted({costs[label] for label, others in data.dominating(measure, up).items() if not others})
    series = []
    if len(front) > 1:
        xs, ys = np.array(front).T
        line = place(xs * across.factor), up.sign * ys * upward.factor
        series.append(Marks("line", "Pareto front", *line, FRONT, dotted=True))
    for label, x in zip(labels, place(values), strict=True):
        share, y = data.above_share(label), data.value(up, label)
        tip = [
            f"{measure.title} {amount(measure, data.value(measure, label))}",
            f"{up.title} {amount(up, y)}",
            f"{count_of(data.value(FINISHED, label), data.total)} finished",
        ]
        ring, alpha = 0.0, 0.45 if label in data.within and label not in data.rated else 1.0
        if label in data.above:
            ring = round(5.0 + 6.0 * min(1.0, share), 1)
            tip.append(f"{amount(ABOVE, data.value(ABOVE, label))} above the envelope ({percent(share)} of its energy)")
        series.append(Marks("dots", label, [float(x)], [y * upward.factor], data.looks[label], tips=["\n".join(tip)],
                            alpha=alpha, ring=ring))  # fmt: skip
    alt = f"{sentence(up.title)} over {measure.title}, a point per case"
    title = f"{sentence(up.title)} against {measure.title}"
    return Chart(f"plot-front-{n}", alt, tuple(series), axis, Axis(upward.axis, near=True), title, named=True)


def _axis(name: str, values: Floats) -> tuple[Axis, Callable[[Floats], Floats]]:
    """Return the axis of values >= 0, and their places: logarithmic if they span decades, with 0 left of the least."""
    positive = values[values > 0.0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)
    zero = low / 3.0 if len(positive) < len(values) else low
    marks = _decades(zero, high) if _decades(low, high) else []
    if not marks:
        return Axis(name, near=True), lambda places: places
    ticks = ({zero: "0"} if zero < low else {}) | {mark: written(mark) for mark in marks if mark >= low}
    return Axis(name, log=True, ticks=ticks), lambda places: np.where(places > 0.0, places, zero)


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... between two values; none for a span of less than `DECADES`."""
    if not (low > 0.0 and high > DECADES * low):
        return []
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # 5e-1, read as a text, is 0.5 to the last digit
    marks = [float(f"{digit}e{power}") for power in powers for digit in ((1, 2, 5) if len(powers) <= 4 else (1,))]
    return [mark for mark in marks if low <= mark <= high]


def power_figure(data: ComparedCases, *begin: str | None) -> Section:
    """Return charts of power over time with the envelope, all on the same axes; those of the cases of `begin` first.

    The first two are open: what the winner draws, and the reference.
    """
    title = "Power over time"
    traces = {label: trace for label, trace in data.traces.items() if trace.end_s > 0.0 and label in data.looks}
    if not traces:
        return Section("power", title, caption="No case has a power over time.")
    labels = list(dict.fromkeys([*(label for label in begin if label in traces), *traces]))
    edges_s = bin_edges(list(traces.values()), data.envelope, MOST_BINS)
    unit_s, unit = (DAY_S, "days") if edges_s[-1] > LONG_S else (HOUR_S, "h")
    powers_w = [traces[label].power_w for label in labels]
    if data.envelope is not None:
        powers_w.append(envelope_bins(data.envelope, edges_s).power_w)
    high_w = max(float(power_w.max()) for power_w in powers_w)
    axes = Axis(f"time ({unit})"), Axis("power (kW)", zero=True, high=high_w / KW)
    charts = []
    for n, label in enumerate(labels):
        draw = partial(draw_power, trace=traces[label], envelope=data.envelope, edges_s=edges_s, unit_s=unit_s)
        alt = f"Power over time of {label}{' with the envelope' if data.envelope else ''}"
        charts.append(Chart(f"plot-power-{n}", alt, (), *axes, label, draw=draw))
    text = (
        ""
        if data.envelope is None
        else ("Grey: power of the envelope that the case does not draw, until its last job ends. Red: power above it.")
    )
    widths_s = np.diff(edges_s)
    if len(widths_s) == MOST_BINS and np.allclose(widths_s, widths_s[0]):
        text += (
            f" Means over {plain(widths_s[0] / 60.0)} min, so that there may be red and grey at one time; pale: from "
            "the least to the largest power within."
        )
    where = data.where or (f"The first {data.unit}" if data.samples > 1 else "")
    text += f" {where}." if where else ""
    return Section("power", title, charts=charts, caption=text, unfolded=2)


def means_figure(name: str, data: ComparedCases, by: pd.Series, title: str) -> Section:
    """Return a panel per measure with means by the varied part of a study, of up to `MOST` cases.

    `by` has a value for each row, `title` names them; "" if nothing varies. The cases are the reference, the bound and
    the best by the first figure.
    """
    heading = sentence(data.about) + (f" by {title}" if title else "")
    means = data.means.get(data.first.name, pd.Series(dtype=float))
    ranked = means.sort_values(ascending=data.first.better == "lower", kind="stable").index
    drawn = list(dict.fromkeys([data.reference, *filter(None, [data.bound]), *ranked]))[:MOST]
    labels = [label for label in data.labels if label in drawn]
    panels = [
        (measure, *panel) for n, measure in enumerate(data.measures)
        if (panel := _means_chart(f"plot-{name}-{n}", data, labels, measure, by, title)) is not None
    ]  # fmt: skip
    if not panels:
        return Section(name, heading, caption="No run has one of the measures.")
    meanings = "; ".join(f"{measure.title}: {measure.meaning}" for measure, *_ in panels)
    counts = {count for *_, counts in panels for count in counts}
    unit = data.unit if counts == {1} else plural(data.unit)
    text = f"A mark is the mean over {extent(counts)} {unit}, with one standard error up and down. {meanings}."
    if len(labels) < len(data.labels):
        text += f" The reference and the best of {len(data.labels)} cases by {data.first.title}."
    return Section(name, heading, charts=[chart for _, chart, _ in panels], caption=text)


def _means_chart(
    name: str, data: ComparedCases, labels: Sequence[str], measure: Figure, by: pd.Series, title: str
) -> tuple[Chart, set[int]] | None:
    """Return means with one standard error by the varied part, a series per case, and the numbers of their samples.

    Numbers are points of lines in order of size, names are groups of bars in order of appearance; without a title each
    case has a row. Rows without a value, or without `by`, are left out; None if all are.
    """
    rows = pd.DataFrame({"case": data.table["case"], "x": by, "y": data.table.get(measure.name)}).dropna()
    rows = rows[rows["case"].isin(labels)]
    if rows.empty:
        return None
    numbers = pd.api.types.is_numeric_dtype(rows["x"])
    xs = rows["x"].unique().tolist()
    xs = sorted(xs) if numbers else xs
    place: dict[Any, float] = {x: x if numbers else float(n) for n, x in enumerate(xs)}
    kind: Kind = "line" if numbers else "bars" if title else "dots"
    series: list[Marks] = []
    counts: set[int] = set()
    for label in labels:
        by_x = rows[rows["case"] == label].groupby("x")["y"]
        means = {x: mean_of(values * measure.factor) for x, values in by_x}
        there = [x for x in xs if x in means]
        if not there:
            continue
        counts |= {means[x][2] for x in there}
        tips = []
        for x in there:
            mean, error, count = means[x]
            errors = f" ± {plain(error)}" if math.isfinite(error) else ""
            head = " ".join(filter(None, (title if numbers else "", written(x))))
            text = f"mean {plain(mean)}{errors} {measure.display}".strip()
            tips.append("\n".join(filter(None, (head, text, f"{count} of {data.samples} {data.units}"))))
        series.append(Marks(kind, label, [place[x] for x in there], [means[x][0] for x in there], data.looks[label],
                            error=np.nan_to_num([means[x][1] for x in there]), tips=tips))  # fmt: skip
    axis = Axis(title, ticks=None if numbers and len(xs) > 8 else {place[x]: written(x) for x in xs})
    alt = f"{measure.title} by {title or 'case'}"
    up = Axis(measure.axis, zero=True)
    return Chart(name, alt, tuple(series), axis, up, measure.title, rows=not title), counts
