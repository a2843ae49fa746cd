"""The pictures of charts: lines with error bars, groups of bars, bars upon one another, and boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from batwatt.report.charts import LEVEL, QUANTILES, Chart, Key, errors_of, keys_of
from batwatt.report.grid import written
from batwatt.results import style

CHARACTER_IN = 0.07
"""Width of a character on an axis, with what is between texts."""
IN_LEGEND_IN = 0.085
"""Width of a character of a legend, rather more than on average."""
WRITTEN = 6, 18
"""At most this many series, of at most this many characters, are written on the axis as well."""
CLOSE = 0.02
"""Share of an axis of numbers that half a character takes, with what is between texts."""


def charts_figure(panels: Sequence[Chart], across: int) -> Figure:
    """The panels, all boxes or none, in `across` columns, with one legend for all."""
    down = math.ceil(len(panels) / across)
    width = style.WIDE_IN if across > 1 else style.WIDTH_IN
    keys = keys_of(panels)
    names = [key.name for key in keys] + ([LEVEL] if any(panel.level is not None for panel in panels) else [])
    columns = legend_columns(names, width)
    # a legend that repeats the axis is of no use
    named = len(names) > 1 or any(key.label is not None for key in keys)
    if panels[0].kind == "boxes":
        angle, hanging_in = 20, 0.21 if panels[0].unnamed else 0.0
        panel_in, left, right, wspace, x, handle = 2.3, 0.075, 0.985, 0.21, 0.065, 1.8
    else:
        texts = [panel.ticks for panel in panels if panel.kind != "lines"]
        longest = max((sum(len(text) + 2 for text in ticks) for ticks in texts), default=0)
        turned = longest * CHARACTER_IN > 0.85 * width / across
        angle, hanging_in = 35, 0.035 * max(len(text) for ticks in texts for text in ticks) if turned else 0.0
        panel_in, left, right, wspace, x, handle = 2.25, 0.066, 0.988, 0.24, 0.056, 2.2
    top_in = 0.36 + (0.18 * math.ceil(len(names) / columns) if named else 0.0)
    bottom_in = 0.45 + hanging_in
    height = panel_in * down + top_in + bottom_in - 0.3 + hanging_in * (down - 1)
    figure, grid = style.panels_of(width, height, down, across, margins_in=(top_in, bottom_in), left=left, right=right,
                             wspace=wspace, hspace=0.36 + hanging_in / 1.6)  # fmt: skip
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for number, panel in enumerate(panels):
        axes = grid.flat[number]
        _panel(axes, panel)
        if hanging_in and panel.kind != "lines":
            axes.tick_params(axis="x", labelsize=6.8, labelrotation=angle)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
        if number + across >= len(panels):
            axes.set_xlabel(panel.x_axis)
    if named:
        kinds = {curve.key.name: panel.kind for panel in panels for curve in panel.curves}
        handles: list[Artist] = [_handle(key, kinds[key.name]) for key in keys]
        if len(names) > len(keys):
            handles.append(Line2D([], [], color=style.CAP, linewidth=1.0, linestyle=(0, (4, 2)), label=LEVEL))
        style.legend(figure, handles, x, columns=columns, handlelength=handle)
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
    if kind == "boxes":
        return Patch(facecolor=key.colour + "60", edgecolor=key.colour, hatch=key.hatch[0], label=key.name)
    return Patch(facecolor=key.colour, edgecolor="white", hatch=key.hatch[0] if kind == "bars" else "", label=key.name)


def _panel(axes: Axes, panel: Chart) -> None:
    if panel.kind == "lines":
        _lines(axes, panel)
    else:
        (_boxes if panel.kind == "boxes" else _bars)(axes, panel)
        count, longest = WRITTEN
        crowded = panel.unnamed and (len(panel.ticks) > count or max(map(len, panel.ticks)) > longest)
        axes.set_xticks(panel.ticks_at, [] if crowded else panel.ticks)
        axes.set_xlim(-0.5, len(panel.xs) - 0.5)
        for edge in range(1, len(panel.xs)) if panel.kind != "stacks" else ():
            axes.axvline(edge - 0.5, color=style.GRID, linewidth=0.6, zorder=0)
    if panel.level is not None:
        axes.axhline(panel.level, color=style.CAP, linewidth=1.0, linestyle=(0, (4, 2)), zorder=5)
    style.panel_title(axes, panel.title)
    axes.set_ylabel(panel.measure.axis)
    if panel.decades:
        axes.set_yscale("log")
        axes.set_yticks(panel.decades, [written(value) for value in panel.decades])
        axes.minorticks_off()
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6 if panel.kind == "boxes" else 5))
    if panel.kind != "boxes" and all((c.points["mean"] - errors_of(c)).min() >= 0.0 for c in panel.curves):
        axes.set_ylim(bottom=0.0)
    style.plain(axes)
    if panel.kind == "boxes":
        axes.grid(False, axis="x")


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
            axes.errorbar(at, curve.points["mean"], yerr=errors_of(curve), fmt="none", ecolor=style.CAP, elinewidth=0.8,
                          capsize=1.6, zorder=4)  # fmt: skip


def _boxes(axes: Axes, panel: Chart) -> None:
    places, width = panel.places()
    for curve, place in zip(panel.curves, places, strict=True):
        colour, line = curve.key.colour, {"color": curve.key.colour, "linewidth": 0.8}
        names = dict(zip(("whislo", "q1", "med", "q3", "whishi"), QUANTILES, strict=True)) | {"mean": "mean"}
        drawn = [{name: row[column] for name, column in names.items()} for row in curve.points.to_dict("records")]
        axes.bxp(
            drawn, positions=[panel.xs.index(x) + place for x in curve.points["x"]], widths=width, patch_artist=True,
            showfliers=False, showmeans=True, manage_ticks=False,
            boxprops={"facecolor": colour + "60", "edgecolor": colour, "linewidth": 0.7, "hatch": curve.key.hatch[0]},
            medianprops={"color": style.INK, "linewidth": 1.1}, whiskerprops=line, capprops=line,
            meanprops={"marker": "*", "markersize": 5.2, "markerfacecolor": "white", "markeredgecolor": style.INK,
                       "markeredgewidth": 0.5},
            zorder=3,
        )  # fmt: skip
