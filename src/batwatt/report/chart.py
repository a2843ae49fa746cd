"""Charts as plain data, and their drawing by matplotlib: as SVG within a page, and as PNG, SVG or PDF files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from batwatt.results import drawing
from batwatt.results.drawing import Look, Picture
from batwatt.results.power import Floats

Kind = Literal["line", "dots", "bars"]
PANEL_IN = 3.6
"""Width of a chart, such that its texts can be read on a phone."""
HEIGHT_IN, ROW_IN = 2.4, 0.24
"""Height of a chart, and of each row of a chart by rows."""
LETTER_IN = 0.068
"""Width of a letter of a legend."""
MARGIN = 0.05
"""Share of the range of the data between these and the ends of an axis."""
DOT_PT, NAME_PT, BESIDE_PT = 3.5, 7.0, 1.5
"""Radius of a dot, size of a name next to it, and distance between them."""
LONGEST = 34
"""Longer names are cut on axes and in legends."""


@dataclass(frozen=True)
class Axis:
    """An axis; `ticks` maps places to texts.

    With `near` it has the data with `MARGIN` around; `zero` extends it to 0, and `high` to a value.
    """

    title: str = ""
    zero: bool = False
    near: bool = False
    high: float = 0.0
    log: bool = False
    ticks: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Marks:
    """A series: a `line`, `dots` or `bars`.

    `tips` are the texts of the marks, and `ring` is the radius in points of a circle around the dots.
    """

    kind: Kind
    name: str
    x: Sequence[float] | Floats
    y: Sequence[float] | Floats
    look: Look
    error: Sequence[float] | Floats = ()
    tips: Sequence[str] = ()
    alpha: float = 1.0
    ring: float = 0.0
    dotted: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart with a text description; with `rows` each series has a row of its own.

    With `named` the names of dots are next to them where there is room. A chart with a `draw` has no series: that
    function draws it.
    """

    id: str
    alt: str
    series: tuple[Marks, ...]
    x: Axis
    y: Axis
    title: str = ""
    rows: bool = False
    named: bool = False
    draw: Callable[[Axes], None] | None = None

    def svg(self) -> str:
        """Return the chart as an element of a page: texts stay texts, and each mark has its tip as <title>."""
        out = io.StringIO()
        with drawing.styled(), rc_context({"svg.fonttype": "none", "svg.hashsalt": self.id}):
            drawing.write(figure_of(self), out, "svg", transparent=True)
        text = out.getvalue()
        text = re.sub(
            r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S
        )
        text = re.sub(r'<g id="tip:([^"]*)">', r'<g class="mark"><title>\1</title>', text)
        text = re.sub(r'<g id="[^"]*"', "<g", text)
        text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', text, count=1)
        text = re.sub(r' (d|x|y|transform|points)="[^"]*"', _tenths, text)
        return re.sub(r"\s*\n\s*", "\n", text)

    def write(self, path: Path) -> Path:
        """Write the chart in the format of the suffix; return the path. Raises InputError."""
        return drawing.draw(path, lambda: figure_of(self))


def _tenths(attribute: re.Match[str]) -> str:
    """Round the numbers of an attribute to a tenth of a point, which is as fine as a screen shows."""
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), attribute[0])


def shortened(name: str) -> str:
    """Return a name that fits an axis."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def figure_of(chart: Chart) -> Picture:
    """Draw a chart, with a legend below it."""
    figure = drawing.new_figure(PANEL_IN, HEIGHT_IN)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    draw_on(axes, chart)
    if chart.rows:
        figure.set_figheight(0.8 + ROW_IN * len(chart.series))
    handles = {str(handle.get_label()): handle for handle in axes.get_legend_handles_labels()[0]}
    if chart.named:
        unnamed = _name_dots(axes, [marks for marks in chart.series if marks.kind == "dots"])
        handles = {name: handle for name, handle in handles.items() if name in unnamed}
    if len(handles) > (not chart.named) and not chart.rows:
        names = [shortened(name) for name in handles]
        columns = max(1, int(figure.get_figwidth() / (0.5 + LETTER_IN * max(map(len, names)))))
        figure.set_figheight(HEIGHT_IN + 0.17 * -(-len(names) // columns))
        figure.legend(handles.values(), names, loc="outside lower left", ncols=columns, frameon=False, fontsize=7.5)
    return figure


def axes_of(chart: Chart, axes: Axes | None) -> Axes:
    """Draw a chart with a legend on axes, or on those of a new figure of pyplot, which a notebook shows."""
    with drawing.styled():
        axes = axes or drawing.new_axes(1.5 * PANEL_IN, 1.5 * HEIGHT_IN)
        draw_on(axes, chart)
        axes.set_title(chart.title, loc="left")
        axes.legend(frameon=False, fontsize=7.5)
    return axes


def draw_on(axes: Axes, chart: Chart) -> None:
    """Draw a chart on axes, without a legend."""
    if chart.rows:
        _draw_rows(axes, chart)
    else:
        _draw_series(axes, chart)
    drawing.plain(axes)


def _draw_rows(axes: Axes, chart: Chart) -> None:
    """Draw dots along the y axis of the chart, which lies below; a row per series."""
    for row, marks in enumerate(chart.series):
        _dots(axes, marks, marks.y, [float(row)] * len(marks.y), across=True)
    axes.set_yticks(range(len(chart.series)), [shortened(marks.name) for marks in chart.series])
    axes.set_ylim(len(chart.series) - 0.5, -0.5)
    _finish(axes, "x", chart.y)


def _draw_series(axes: Axes, chart: Chart) -> None:
    if chart.draw is not None:
        chart.draw(axes)
    bars = [marks for marks in chart.series if marks.kind == "bars"]
    for marks in chart.series:
        if marks.kind == "dots":
            _dots(axes, marks, marks.x, marks.y)
        elif marks.kind == "bars":
            _bars(axes, marks, bars)
        else:
            _line(axes, marks)
    _finish(axes, "x", chart.x)
    _finish(axes, "y", chart.y)


def _line(axes: Axes, marks: Marks) -> None:
    look, dotted = marks.look, marks.dotted
    axes.plot(marks.x, marks.y, color=look.colour, linestyle=(0, (1, 2)) if dotted else look.dash, linewidth=1.2,
              marker="" if dotted else look.marker, markersize=5, label=marks.name, zorder=3)  # fmt: skip
    if not dotted:
        _dots(axes, marks, marks.x, marks.y)


def _dots(axes: Axes, marks: Marks, xs: Sequence[float] | Floats, ys: Sequence[float] | Floats,
          across: bool = False) -> None:  # fmt: skip
    """Draw a dot with its error and its tip at each place; the errors lie along x if `across`."""
    for n, (x, y) in enumerate(zip(xs, ys, strict=True)):
        error = marks.error[n] if len(marks.error) else 0.0
        if error > 0.0:
            ends = ([x - error, x + error], [y, y]) if across else ([x, x], [y - error, y + error])
            axes.plot(*ends, color=drawing.INK, linewidth=0.9, zorder=4)
        label = marks.name if marks.kind == "dots" and n == 0 else None
        (dot,) = axes.plot([x], [y], color=marks.look.colour, marker=marks.look.marker, markersize=6, linestyle="",
                           markeredgecolor="white", markeredgewidth=0.5, alpha=marks.alpha, label=label,
                           clip_on=False, zorder=5)  # fmt: skip
        _tip(dot, marks, n)
        if marks.ring:
            axes.plot([x], [y], marker="o", markersize=2.0 * marks.ring, markerfacecolor="none",
                      markeredgecolor=drawing.VIOLATION, markeredgewidth=1.2, clip_on=False, zorder=4)  # fmt: skip


def _name_dots(axes: Axes, series: Sequence[Marks]) -> list[str]:
    """Write the name of each series next to its dot, where it covers nothing; return the names without room."""
    picture: Any = axes.get_figure()
    picture.draw_without_rendering()
    renderer, room, point = picture.canvas.get_renderer(), axes.get_window_extent(), picture.dpi / 72.0
    taken, unnamed = [], []
    for marks in series:
        radius = point * max(DOT_PT, marks.ring)
        x, y = axes.transData.transform((marks.x[0], marks.y[0]))
        taken.append(Bbox.from_extents(x - radius, y - radius, x + radius, y + radius))
    for marks in series:
        for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            away = max(DOT_PT, marks.ring) + BESIDE_PT
            text = axes.annotate(
                shortened(marks.name), (marks.x[0], marks.y[0]), (right * away, up * away), textcoords="offset points",
                ha=("center", "left", "right")[right], va=("center", "bottom", "top")[up], fontsize=NAME_PT, zorder=6,
            )  # fmt: skip
            box = text.get_window_extent(renderer)
            inside = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:
            unnamed.append(marks.name)
    return unnamed


def _bars(axes: Axes, marks: Marks, all_bars: Sequence[Marks]) -> None:
    """Draw the bars of a series next to those of other series at the same place, with errors and tips."""
    there = {x: [other for other in all_bars if x in other.x] for other in all_bars for x in other.x}
    width = 0.84 / max(map(len, there.values()))
    for n, (x, y) in enumerate(zip(marks.x, marks.y, strict=True)):
        middle = x + (there[x].index(marks) - (len(there[x]) - 1) / 2.0) * width
        label = marks.name if n == 0 else None
        (bar,) = axes.bar([middle], [y], 0.92 * width, color=marks.look.colour, edgecolor="white", linewidth=0.4,
                          hatch=marks.look.hatch, label=label, zorder=3)  # fmt: skip
        _tip(bar, marks, n)
        if len(marks.error) and marks.error[n] > 0.0:
            ends = [y - marks.error[n], y + marks.error[n]]
            axes.plot([middle, middle], ends, color=drawing.INK, linewidth=0.9, zorder=4)


def _tip(artist: Any, marks: Marks, n: int) -> None:
    """Give a mark its text, as the id that `Chart.svg` turns into its <title>."""
    text = "\n".join(filter(None, (marks.name, marks.tips[n] if len(marks.tips) else "")))
    artist.set_gid(f"tip:{text}")


def _finish(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Set the title, the scale and the ticks of an axis."""
    one = axes.xaxis if which == "x" else axes.yaxis
    one.set_label_text(axis.title)
    if axis.log:
        axes.set(**{f"{which}scale": "log"})
    elif axis.zero:
        low, high = axes.dataLim.intervalx if which == "x" else axes.dataLim.intervaly
        high = max(high, axis.high)
        margin = MARGIN * (max(high, 0.0) - min(low, 0.0)) or 1.0
        axes.set(**{f"{which}lim": (low - margin if low < 0.0 else 0.0, high + margin if high > 0.0 else margin)})
    elif axis.near:
        low, high = axes.dataLim.intervalx if which == "x" else axes.dataLim.intervaly
        margin = MARGIN * (high - low or abs(high) or 1.0)
        axes.set(**{f"{which}lim": (low - margin, high + margin)})
    if axis.ticks is None:
        one.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        return
    one.set_major_locator(FixedLocator(list(axis.ticks)))
    one.set_minor_locator(NullLocator())
    one.set_ticklabels([shortened(text) for text in axis.ticks.values()])
    if which == "x" and sum(map(len, axis.ticks.values())) > 60:
        for label in one.get_ticklabels():
            label.set(rotation=20, ha="right", rotation_mode="anchor")
