"""The pictures of charts: lines with error bars, groups of bars, and bars upon one another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from batwatt.report.charts import LEVEL, Chart, Key, errors_of, keys_of
from batwatt.report.pictures_boxes import legend_columns
from batwatt.results.style import CAP, GRID, WIDE_IN, WIDTH_IN, new_figure, plain

PANEL_IN = 2.25
CHARACTER_IN = 0.07
"""Width of a character on an axis, with what is between texts."""
TURNED = 35
"""Angle of texts that do not fit side by side."""
CLOSE = 0.02
"""Share of an axis of numbers that half a character takes, with what is between texts."""


def charts_figure(panels: Sequence[Chart], across: int) -> Figure:
    """The panels in `across` columns, with one legend for all."""
    down = math.ceil(len(panels) / across)
    width = WIDE_IN if across > 1 else WIDTH_IN
    keys = keys_of(panels)
    names = [key.name for key in keys] + ([LEVEL] if any(panel.level is not None for panel in panels) else [])
    columns = legend_columns(names, width)
    # a legend that repeats the axis is of no use
    legend = len(names) > 1 or any(key.label is not None for key in keys)
    turned = max(map(_length, panels)) * CHARACTER_IN > 0.85 * width / across
    longest = max((len(text) for panel in panels if panel.kind != "lines" for text in panel.ticks), default=0)
    hanging_in = 0.035 * longest if turned else 0.0
    top_in = 0.36 + (0.18 * math.ceil(len(names) / columns) if legend else 0.0)
    bottom_in = 0.45 + hanging_in
    height = PANEL_IN * down + top_in + bottom_in - 0.3 + hanging_in * (down - 1)
    figure = new_figure(width, height)
    grid = figure.subplots(down, across, squeeze=False)
    figure.subplots_adjust(left=0.066, right=0.988, top=1.0 - top_in / height, bottom=bottom_in / height,
                           wspace=0.24, hspace=0.36 + hanging_in / 1.6)  # fmt: skip
    for number, axes in enumerate(grid.flat):
        if number >= len(panels):
            axes.set_axis_off()
            continue
        panel = panels[number]
        _panel(axes, panel)
        if turned and panel.kind != "lines":
            axes.tick_params(axis="x", labelsize=6.8, labelrotation=TURNED)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
        if number + across >= len(panels):
            axes.set_xlabel(panel.x_axis)
    if legend:
        kinds = {curve.key.name: panel.kind for panel in panels for curve in panel.curves}
        handles: list[Artist] = [_handle(key, kinds[key.name]) for key in keys]
        if len(names) > len(keys):
            handles.append(Line2D([], [], color=CAP, linewidth=1.0, linestyle=(0, (4, 2)), label=LEVEL))
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.056, 1.0 - 0.02 / height), ncols=columns,
                      frameon=False, handlelength=2.2, columnspacing=1.6)  # fmt: skip
    return figure


def _length(panel: Chart) -> int:
    """Characters on the axis, with some room between."""
    return 0 if panel.kind == "lines" else sum(len(text) + 2 for text in panel.ticks)


def _handle(key: Key, kind: str) -> Artist:
    if kind == "lines":
        return Line2D([], [], color=key.colour, linestyle=key.dash[0], marker=key.marker[0], markersize=4,
                      linewidth=1.3, label=key.name)  # fmt: skip
    return Patch(facecolor=key.colour, edgecolor="white", hatch=key.hatch[0] if kind == "bars" else "", label=key.name)


def _panel(axes: Axes, panel: Chart) -> None:
    if panel.kind == "lines":
        _lines(axes, panel)
    else:
        _bars(axes, panel)
    if panel.level is not None:
        axes.axhline(panel.level, color=CAP, linewidth=1.0, linestyle=(0, (4, 2)), zorder=5)
    axes.set_title(panel.title, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    axes.set_ylabel(panel.measure.axis)
    if min((curve.points["mean"] - errors_of(curve)).min() for curve in panel.curves) >= 0.0:
        axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    plain(axes)


def _lines(axes: Axes, panel: Chart) -> None:
    for curve in panel.curves:
        key, points = curve.key, curve.points
        axes.errorbar(points["x"], points["mean"], yerr=errors_of(curve), color=key.colour, linestyle=key.dash[0],
                      marker=key.marker[0], markersize=3.6, linewidth=1.3, elinewidth=0.8, capsize=1.8,
                      zorder=3)  # fmt: skip
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(list(panel.xs), panel.ticks)
        axes.xaxis.set_minor_locator(NullLocator())
    elif len(panel.xs) <= 8 and not _crowded(panel):
        axes.set_xticks(list(panel.xs), panel.ticks)


def _crowded(panel: Chart) -> bool:
    """Whether values of x are too close to each other to be written side by side."""
    span = panel.xs[-1] - panel.xs[0]
    texts = panel.ticks
    return any(panel.xs[n + 1] - x < CLOSE * span * len(texts[n] + texts[n + 1]) for n, x in enumerate(panel.xs[:-1]))


def _bars(axes: Axes, panel: Chart) -> None:
    places, width = panel.places()
    base = dict.fromkeys(panel.xs, 0.0)
    for curve, place in zip(panel.curves, places, strict=True):
        key, stacked = curve.key, panel.kind == "stacks"
        at = [panel.xs.index(x) + place for x in curve.points["x"]]
        bottom = [base[x] for x in curve.points["x"]]
        axes.bar(at, curve.points["mean"], width, bottom=bottom, color=key.colour, edgecolor="white", linewidth=0.4,
                 hatch="" if stacked else key.hatch[0], zorder=3)  # fmt: skip
        if stacked:
            base |= {x: base[x] + mean for x, mean in zip(curve.points["x"], curve.points["mean"], strict=True)}
        else:
            axes.errorbar(at, curve.points["mean"], yerr=errors_of(curve), fmt="none", ecolor=CAP, elinewidth=0.8,
                          capsize=1.6, zorder=4)  # fmt: skip
    axes.set_xticks(range(len(panel.xs)), panel.ticks)
    axes.set_xlim(-0.5, len(panel.xs) - 0.5)
    for edge in range(1, len(panel.xs)) if panel.kind == "bars" else ():
        axes.axvline(edge - 0.5, color=GRID, linewidth=0.6, zorder=0)
    axes.grid(False, axis="x")
