"""The figures of a report as pictures: measures by instance, and by envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.report.data import readable_top
from batwatt.report.table import Measure
from batwatt.results import style

NAMED = 32
"""More instances than this are not named."""


def instances_figure(frame: pd.DataFrame, measures: Sequence[Measure], looks: Mapping[str, style.Look]) -> Figure:
    """Each measure by instance (left) and its spread over them by algorithm (right). Figures 4 and 5."""
    labels = list(dict.fromkeys(frame["label"].tolist()))
    instances = sorted(set(frame["instance"].tolist()))
    names, prefix = _short(instances)
    figure, grid = style.panels_of(style.WIDE_IN, 2.35 * len(measures) + 1.35, len(measures), 2,
                             margins_in=(0.62, 1.05 if len(measures) > 1 else 0.95), left=0.06, right=0.99, wspace=0.03,
                             hspace=0.12, sharex="col", sharey="row", width_ratios=(2.4, 1.0))  # fmt: skip
    rank = {name: number for number, name in enumerate(instances)}
    for (left, right), measure in zip(grid, measures, strict=True):
        for number, label in enumerate(labels):
            rows = frame[frame["label"] == label]
            values = rows[measure.name].to_numpy(dtype=float)
            look = looks[label]
            # side by side within an instance, so that equal values do not hide one another
            offset = 0.7 * ((number + 0.5) / len(labels) - 0.5)
            left.plot(rows["instance"].map(rank).to_numpy(dtype=float) + offset, values, color=look.colour,
                      marker=look.marker[0], linestyle="", markersize=3.6, markeredgewidth=0.3,
                      markeredgecolor="white", zorder=3)  # fmt: skip
            _box(right, number, values[np.isfinite(values)], look)
        left.set_ylabel(measure.axis)
        for axes in (left, right):
            style.plain(axes)
            axes.grid(False, axis="x")
        for edge in range(1, len(instances)):
            left.axvline(edge - 0.5, color="#eef1f4", linewidth=0.6, zorder=0)
        if measure.better == "lower":
            # a little below 0, so that what is 0 can be seen
            left.set_ylim(-0.03 * left.get_ylim()[1], None)
    left, right = grid[-1]
    left.set_xlim(-0.5, len(instances) - 0.5)
    if len(instances) <= NAMED:
        left.set_xticks(range(len(instances)), names, rotation=90 if max(map(len, names)) > 3 else 0)
    else:
        left.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    left.set_xlabel(f"instance ({prefix}…)" if prefix else "instance")
    right.set_xticks(range(len(labels)), labels, rotation=35, ha="right", rotation_mode="anchor", fontsize=6.8)
    right.set_xlim(-0.6, len(labels) - 0.4)
    handles = [
        Line2D([], [], color=looks[label].colour, marker=looks[label].marker[0], linestyle="", markersize=5,
               label=label) for label in labels
    ]  # fmt: skip
    style.legend(figure, handles, 0.05, columns=4, handlelength=None, handletextpad=0.3)
    return figure


def _short(instances: Sequence[str]) -> tuple[list[str], str]:
    """Names without what all of them begin with, and that beginning, up to a whole word."""
    first, last = instances[0], instances[-1]
    same = 0
    while len(instances) > 1 and same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    same = max(first.rfind(mark, 0, same) for mark in "-_ ") + 1
    return [name[same:] for name in instances], first[:same]


def _box(axes: Axes, position: int, values: np.ndarray, look: style.Look) -> None:
    """A box with its points: median, quartiles, whiskers up to 1.5 times the box."""
    if not len(values):
        return
    axes.boxplot(
        values, positions=[position], widths=0.62, patch_artist=True, showfliers=False, manage_ticks=False,
        boxprops={"facecolor": look.colour + "40", "edgecolor": look.colour, "linewidth": 0.9,
                  "hatch": look.hatch[0]},
        medianprops={"color": style.INK, "linewidth": 1.4},
        whiskerprops={"color": look.colour, "linewidth": 0.9}, capprops={"color": look.colour, "linewidth": 0.9},
        zorder=2,
    )  # fmt: skip
    spread = 0.36 * (np.arange(len(values)) % 7 - 3.0) / 3.0 * 0.6
    axes.plot(position + spread, values, color=look.colour, marker=look.marker[0], linestyle="", markersize=2.6,
              markeredgewidth=0.2, markeredgecolor="white", zorder=3)  # fmt: skip


def envelopes_bars_figure(frame: pd.DataFrame, measures: Sequence[Measure], looks: Mapping[str, style.Look]) -> Figure:
    """The mean of each measure by envelope, a bar per algorithm; a bar far longer than the others is cut. Figure 6."""
    labels = list(dict.fromkeys(frame["label"].tolist()))
    envelopes = sorted(set(frame["envelope"].tolist()))
    width = style.WIDTH_IN if len(labels) * len(envelopes) <= 24 else style.WIDE_IN
    figure, grid = style.panels_of(width, 1.75 * len(measures) + 0.85, len(measures), 1, margins_in=(0.62, 0.3),
                                   left=0.085, right=0.99, hspace=0.16, sharex=True)  # fmt: skip
    panels: list[Axes] = list(grid[:, 0])
    width = 0.84 / len(labels)
    for axes, measure in zip(panels, measures, strict=True):
        top = readable_top(frame, measure, labels)
        for number, label in enumerate(labels):
            look = looks[label]
            values = frame[frame["label"] == label].set_index("envelope")[measure.name].reindex(envelopes)
            for place, value in enumerate(values.tolist()):
                if not np.isfinite(value):
                    continue
                middle = place + (number - (len(labels) - 1) / 2.0) * width
                axes.bar(middle, min(value, top), width * 0.92, facecolor=look.colour + "b0", edgecolor=look.colour,
                         hatch=look.hatch[0], linewidth=0.7, zorder=2)  # fmt: skip
                cut = value > top
                digits = measure.decimals if measure.decimals > 1 else 0
                text = f"{value:.{digits}f}" + (" ↑" if cut else "")
                axes.annotate(text, (middle, min(value, top)), (0, -1 if cut else 1.5), textcoords="offset points",
                              ha="center", va="top" if cut else "bottom", fontsize=5.8, rotation=90 if cut else 0,
                              color="white" if cut else style.INK, zorder=4,
                              fontweight="bold" if cut else "normal")  # fmt: skip
        axes.set_ylim(0.0, top)
        axes.set_ylabel(measure.axis)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=measure.unit != ""))
        style.plain(axes)
        axes.grid(False, axis="x")
    panels[-1].set_xticks(range(len(envelopes)), envelopes, fontweight="bold")
    panels[-1].set_xlim(-0.5, len(envelopes) - 0.5)
    handles = [
        Patch(facecolor=looks[label].colour + "b0", edgecolor=looks[label].colour, hatch=looks[label].hatch[0],
              label=label) for label in labels
    ]  # fmt: skip
    style.legend(figure, handles, 0.07, columns=4, handlelength=1.8)
    return figure
