"""The pictures of charts: lines and groups of bars, with error bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.report.charts import Chart, Key, errors_of, keys_of
from batwatt.results import style

CHARACTER_IN = 0.07
"""Width of a character on an axis, with what is between texts."""
IN_LEGEND_IN = 0.085
"""Width of a character of a legend, rather more than on average."""
CLOSE = 0.02
"""Share of an axis of numbers that half a character takes, with what is between texts."""


def charts_figure(panels: Sequence[Chart], across: int) -> Figure:
    """The panels in `across` columns, with one legend for all."""
    down = math.ceil(len(panels) / across)
    width = style.WIDE_IN if across > 1 else style.WIDTH_IN
    keys = keys_of(panels)
    columns = legend_columns([key.name for key in keys], width)
    texts = [panel.ticks for panel in panels if panel.kind == "bars"]
    longest = max((sum(len(text) + 2 for text in ticks) for ticks in texts), default=0)
    turned = longest * CHARACTER_IN > 0.85 * width / across
    hanging_in = 0.035 * max(len(text) for ticks in texts for text in ticks) if turned else 0.0
    top_in, bottom_in = 0.36 + 0.18 * math.ceil(len(keys) / columns), 0.45 + hanging_in
    height = 2.25 * down + top_in + bottom_in - 0.3 + hanging_in * (down - 1)
    figure, grid = style.panels_of(width, height, down, across, margins_in=(top_in, bottom_in), left=0.066, right=0.988,
                             wspace=0.24, hspace=0.36 + hanging_in / 1.6)  # fmt: skip
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for number, panel in enumerate(panels):
        axes = grid.flat[number]
        _panel(axes, panel)
        if hanging_in and panel.kind == "bars":
            axes.tick_params(axis="x", labelsize=6.8, labelrotation=35)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
        if number + across >= len(panels):
            axes.set_xlabel(panel.x_axis)
    kinds = {curve.key.name: panel.kind for panel in panels for curve in panel.curves}
    style.legend(figure, [_handle(key, kinds[key.name]) for key in keys], 0.056, columns=columns, handlelength=2.2)
    return figure


def legend_columns(labels: Sequence[str], width_in: float) -> int:
    """As many columns, five at most, as the labels leave room for; they are filled one after the other."""
    for columns in range(min(5, len(labels)), 1, -1):
        rows = math.ceil(len(labels) / columns)
        longest = [max(map(len, labels[first : first + rows])) for first in range(0, len(labels), rows)]
        if sum(IN_LEGEND_IN * length + 0.5 for length in longest) <= 0.92 * width_in:
            return columns
    return 1


def _handle(key: Key, kind: str) -> Artist:
    if kind == "lines":
        return Line2D([], [], color=key.colour, linestyle=key.dash[0], marker=key.marker[0], markersize=4,
                      linewidth=1.3, label=key.name)  # fmt: skip
    return Patch(facecolor=key.colour, edgecolor="white", hatch=key.hatch[0], label=key.name)


def _panel(axes: Axes, panel: Chart) -> None:
    if panel.kind == "lines":
        _lines(axes, panel)
    else:
        _bars(axes, panel)
        axes.set_xticks(range(len(panel.xs)), panel.ticks)
        axes.set_xlim(-0.5, len(panel.xs) - 0.5)
        for edge in range(1, len(panel.xs)):
            axes.axvline(edge - 0.5, color=style.GRID, linewidth=0.6, zorder=0)
    style.panel_title(axes, panel.title)
    axes.set_ylabel(panel.measure.axis)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    if all((c.points["mean"] - errors_of(c)).min() >= 0.0 for c in panel.curves):
        axes.set_ylim(bottom=0.0)
    style.plain(axes)


def _lines(axes: Axes, panel: Chart) -> None:
    for curve in panel.curves:
        key, points = curve.key, curve.points
        axes.errorbar(points["x"], points["mean"], yerr=errors_of(curve), color=key.colour, linestyle=key.dash[0],
                      marker=key.marker[0], markersize=3.6, linewidth=1.3, elinewidth=0.8, capsize=1.8,
                      zorder=3)  # fmt: skip
    if len(panel.xs) <= 8 and not _crowded(panel):
        axes.set_xticks(list(panel.xs), panel.ticks)


def _crowded(panel: Chart) -> bool:
    """Whether values of x are too close to each other to be written side by side."""
    span = panel.xs[-1] - panel.xs[0]
    texts = panel.ticks
    return any(panel.xs[n + 1] - x < CLOSE * span * len(texts[n] + texts[n + 1]) for n, x in enumerate(panel.xs[:-1]))


def _bars(axes: Axes, panel: Chart) -> None:
    places, width = panel.places()
    for curve, place in zip(panel.curves, places, strict=True):
        at = [panel.xs.index(x) + place for x in curve.points["x"]]
        axes.bar(at, curve.points["mean"], width, color=curve.key.colour, edgecolor="white", linewidth=0.4,
                 hatch=curve.key.hatch[0], zorder=3)  # fmt: skip
        axes.errorbar(at, curve.points["mean"], yerr=errors_of(curve), fmt="none", ecolor=style.CAP, elinewidth=0.8,
                      capsize=1.6, zorder=4)  # fmt: skip
