"""Box plots by the value of a parameter: the numbers of the boxes, and the pictures of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.report.papers.pmbs23 import Panel, written
from batwatt.report.table import Measure
from batwatt.results.style import GRID, INK, WIDE_IN, WIDTH_IN, Look, new_figure, plain

QUANTILES = {"low": 0.10, "q1": 0.25, "median": 0.50, "q3": 0.75, "high": 0.90}
"""Ends of the whiskers, ends of the box, and the line within (section 5.4)."""
READING = "Box: 25 to 75 %, line: median, whiskers: 10 to 90 %, star: mean."
TIMES = 30.0
"""Boxes that span more than this factor have a logarithmic axis."""
GROUP = 0.86
"""Share of the room of a value that its boxes take."""
PANEL_IN = 2.3
CHARACTER_IN = 0.085
"""Width of a character of a legend, rather more than on average."""
WRITTEN = 6, 18
"""At most this many labels, of at most this many characters, are written on the axis as well."""


@dataclass(frozen=True)
class Boxes:
    """A panel: `stats` has a row per `value` and `label` with `count`, `mean` and `QUANTILES` of the measure."""

    title: str
    measure: Measure
    values: tuple[float | str, ...]
    stats: pd.DataFrame

    def ticks(self, labels: Sequence[str]) -> tuple[list[float], list[str]]:
        """Places and texts on the axis: the values, or the labels where there is but one value without a name."""
        if self.values == ("",):
            places, _ = self.places(labels)
            return list(places.values()), list(places)
        return [float(n) for n in range(len(self.values))], [written(value) for value in self.values]

    @property
    def logarithmic(self) -> bool:
        """Whether the boxes would hide one another on a plain axis."""
        return bool(self.stats["low"].min() > 0.0 and self.stats["high"].max() > TIMES * self.stats["low"].min())

    @property
    def decades(self) -> list[float]:
        """Where a logarithmic axis is marked: 1, 2, 5, 10, ..., as far as the whiskers reach."""
        low, high = float(self.stats["low"].min()), float(self.stats["high"].max())
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        # 5e-1, read as a text, is 0.5 to the last digit
        marks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
        return [mark for mark in marks if low <= mark <= high]

    def places(self, labels: Sequence[str]) -> tuple[dict[str, float], float]:
        """How far right of its value (at 0, 1, ...) the middle of each label's box is, and the width of a box."""
        width = GROUP / len(labels)
        return {label: (n - (len(labels) - 1) / 2.0) * width for n, label in enumerate(labels)}, 0.8 * width


def boxes(panel: Panel, measure: Measure, labels: Sequence[str], title: str | None = None) -> Boxes | None:
    """The boxes of a measure by value and label, of the rows where it has a meaning; None if there are none."""
    known = panel.rows[panel.rows[measure.name].notna()]
    if known.empty:
        return None
    grouped = known.groupby(["value", "label"])[measure.name]
    stats = grouped.quantile(np.array(list(QUANTILES.values()))).unstack().set_axis(list(QUANTILES), axis=1)
    stats = stats.assign(count=grouped.size(), mean=grouped.mean())
    order = pd.MultiIndex.from_product([panel.values, labels], names=["value", "label"])
    stats = stats.loc[order[order.isin(stats.index)]].reset_index()
    return Boxes(panel.title if title is None else title, measure, tuple(panel.values), stats)


def boxes_figure(panels: Sequence[Boxes], labels: Sequence[str], looks: Mapping[str, Look], x_axis: str) -> Figure:
    """The panels in two columns, or one alone; a box per label at each value."""
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    width = WIDE_IN if across > 1 else WIDTH_IN
    columns = legend_columns(labels, width)
    top_in = 0.36 + 0.18 * math.ceil(len(labels) / columns)
    turned = any(panel.values == ("",) for panel in panels)
    bottom_in = 0.66 if turned else 0.45
    height = PANEL_IN * down + top_in + bottom_in - 0.3
    figure = new_figure(width, height)
    grid = figure.subplots(down, across, squeeze=False)
    figure.subplots_adjust(left=0.075, right=0.985, top=1.0 - top_in / height,
                           bottom=bottom_in / height, wspace=0.21, hspace=0.5 if turned else 0.36)  # fmt: skip
    for number, axes in enumerate(grid.flat):
        if number >= len(panels):
            axes.set_axis_off()
            continue
        _panel(axes, panels[number], labels, looks)
        if number + across >= len(panels):
            axes.set_xlabel(x_axis)
    handles = [
        Patch(facecolor=looks[label].colour + "60", edgecolor=looks[label].colour, hatch=looks[label].hatch[0],
              label=label) for label in labels
    ]  # fmt: skip
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.065, 1.0 - 0.02 / height), ncols=columns,
                  frameon=False, handlelength=1.8, columnspacing=1.6)  # fmt: skip
    return figure


def legend_columns(labels: Sequence[str], width_in: float) -> int:
    """As many columns, five at most, as the labels leave room for; they are filled one after the other."""
    for columns in range(min(5, len(labels)), 1, -1):
        rows = math.ceil(len(labels) / columns)
        longest = [max(map(len, labels[first : first + rows])) for first in range(0, len(labels), rows)]
        if sum(CHARACTER_IN * length + 0.5 for length in longest) <= 0.92 * width_in:
            return columns
    return 1


def _panel(axes: Axes, panel: Boxes, labels: Sequence[str], looks: Mapping[str, Look]) -> None:
    places, width = panel.places(labels)
    for label, rows in panel.stats.groupby("label", sort=False):
        look = looks[str(label)]
        at = [panel.values.index(value) + places[str(label)] for value in rows["value"]]
        drawn = [
            {"whislo": row.low, "q1": row.q1, "med": row.median, "q3": row.q3, "whishi": row.high, "mean": row.mean}
            for row in rows.drop(columns=["value", "label"]).itertuples(index=False)
        ]
        axes.bxp(
            drawn, positions=at, widths=width, patch_artist=True, showfliers=False, showmeans=True, manage_ticks=False,
            boxprops={"facecolor": look.colour + "60", "edgecolor": look.colour, "linewidth": 0.7,
                      "hatch": look.hatch[0]},
            medianprops={"color": INK, "linewidth": 1.1},
            whiskerprops={"color": look.colour, "linewidth": 0.8}, capprops={"color": look.colour, "linewidth": 0.8},
            meanprops={"marker": "*", "markersize": 5.2, "markerfacecolor": "white", "markeredgecolor": INK,
                       "markeredgewidth": 0.5},
            zorder=3,
        )  # fmt: skip
    axes.set_title(panel.title, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    axes.set_xticks(*panel.ticks(labels))
    axes.set_xlim(-0.5, len(panel.values) - 0.5)
    for edge in range(1, len(panel.values)):
        axes.axvline(edge - 0.5, color=GRID, linewidth=0.6, zorder=0)
    axes.set_ylabel(panel.measure.axis)
    if panel.logarithmic:
        axes.set_yscale("log")
        axes.set_yticks(panel.decades, [written(value) for value in panel.decades])
        axes.minorticks_off()
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    plain(axes)
    axes.grid(False, axis="x")
    if panel.values == ("",):
        most, longest = WRITTEN
        if len(labels) > most or max(map(len, labels)) > longest:
            # the legend has them
            axes.set_xticklabels([])
        axes.tick_params(axis="x", labelsize=6.8, labelrotation=20)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
