"""The figures of the powercap paper as pictures: envelopes, scores, a violation; by instance and by envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, takewhile
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import FixedLocator, MaxNLocator

from batwatt.model.series import Series
from batwatt.report.data import Scores, Zoom, readable_top
from batwatt.report.report_plan import ReportPlan
from batwatt.report.table import Measure, SavedCampaign
from batwatt.results import style
from batwatt.results.plots import envelope_stairs, power_axis, power_legend, power_panel

NAMED = 32
"""More instances than this are not named."""
HUB = 0.25
"""Radius of the worst score: with 0 there, bad scores would hide one another in the centre."""
ACROSS = 3
ROW_IN = 0.2
Style = tuple[str, Any, str]
"""Colour, dashes and marker."""


def envelopes_figure(envelopes: Sequence[tuple[str, Series]]) -> Figure:
    """Each envelope over its rows, one below the other on the same axes: power in kW, time in h. Figure 1."""
    count = len(envelopes)
    height = 1.35 * count + 0.6
    figure, grid = style.panels_of(style.WIDTH_IN, height, count, 1, margins_in=(0.25, 0.42), left=0.075, right=0.985,
                                   hspace=0.3, sharex=True, sharey=True)  # fmt: skip
    panels: list[Axes] = list(grid[:, 0])
    for number, (axes, (name, series)) in enumerate(zip(panels, envelopes, strict=True)):
        hours, power = envelope_stairs(series)
        axes.fill_between(hours, power, color=style.Look(number).colour, alpha=0.2, linewidth=0.0, zorder=2)
        axes.plot(hours, power, color=style.Look(number).colour, linewidth=1.0, zorder=3)
        style.panel_title(axes, name, 3.0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        style.plain(axes)
    panels[0].set_xlim(0.0, max(envelope_stairs(series)[0][-1] for _, series in envelopes))
    panels[0].set_ylim(0.0, None)
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=12, steps=[1, 2, 3, 4, 6, 10]))
    panels[-1].set_xlabel("time (h)")
    figure.text(0.012, 0.5, "power available (kW)", rotation=90, va="center", ha="left", color=style.INK)
    return figure


def zoom_figure(zoom: Zoom) -> Figure:
    """The power of each run around the violation, over hours and closely; the step concerned is shaded. Figure 3."""
    count = len(zoom.runs)
    height = 1.5 * count + 1.0
    figure, grid = style.panels_of(style.WIDE_IN, height, count, 2, margins_in=(0.58, 0.45), left=0.06, right=0.985,
                                   wspace=0.09, hspace=0.32, sharex="col", sharey=True,
                                   width_ratios=(2.2, 1.0))  # fmt: skip
    top_w = 0.0
    for row, (label, trace) in zip(grid, zoom.runs, strict=True):
        for axes, begin_s, end_s in ((row[0], zoom.begin_s, zoom.end_s), (row[1], *zoom.close_s)):
            top_w = max(top_w, power_panel(axes, label, trace, zoom.envelope, end_s, begin_s))
            axes.axvspan(*(edge / style.HOUR_S for edge in zoom.step_s), color="#fbe6e7", linewidth=0.0, zorder=1)
            axes.set_xlim(begin_s / style.HOUR_S, end_s / style.HOUR_S)
            axes.set_title("", loc="right")
        row[1].set_title("", loc="left")
    wide, close = grid[-1]
    power_axis(wide, top_w)
    wide.set_xlabel("time (h)")
    since_h = zoom.step_s[0] / style.HOUR_S
    close.xaxis.set_major_locator(FixedLocator([since_h + second / style.HOUR_S for second in range(-60, 3600, 30)]))
    close.xaxis.set_major_formatter(lambda hour, _: f"{(hour - since_h) * style.HOUR_S:.0f}".replace("-", "−"))
    close.set_xlabel("s since the step began")
    figure.text(0.012, 0.5, "power (kW)", rotation=90, va="center", ha="left", color=style.INK)
    style.legend(figure, power_legend(True), 0.99)
    return figure


def member_styles(labels: Sequence[str], campaign: SavedCampaign) -> dict[str, Style]:
    """Label -> colour, dashes and marker: the colour and marker stand for the order, the dashes for the backfilling."""
    rows = campaign.frame.drop_duplicates("label").set_index("label")
    known = (rows["backfilling"] != "") & (rows["order"] != "")
    orders = sorted(set(rows.loc[known, "order"]))
    backfillings = sorted(set(rows.loc[known, "backfilling"]))
    free = cycle(range(len(style.PALETTE)))
    styles: dict[str, Style] = {}
    for label in labels:
        if known[label]:
            number, dash = orders.index(rows.loc[label, "order"]), backfillings.index(rows.loc[label, "backfilling"])
        else:
            number, dash = next(free), 0
        styles[label] = (
            style.PALETTE[number % len(style.PALETTE)],
            style.DASHES[dash % len(style.DASHES)][0],
            style.MARKERS[number % 8][0],
        )
    return styles


def radar_figure(scores: Scores, plan: ReportPlan, campaign: SavedCampaign) -> Figure:
    """A small radar for each family of algorithms: further out is better, 1 is the best of all. Figure 2."""
    groups: dict[str, list[str]] = {}
    for label in campaign.labels:
        if label in scores.scores.index:
            groups.setdefault(plan.groups[label], []).append(label)
    styles = member_styles(scores.scores.index.tolist(), campaign)
    rows = -(-len(groups) // ACROSS)
    height = 2.25 * rows + 1.0
    figure = style.new_figure(style.WIDTH_IN, height)
    angles = np.linspace(0.0, 2.0 * np.pi, len(scores.measures), endpoint=False)
    for number, (name, labels) in enumerate(groups.items()):
        axes = cast(PolarAxes, figure.add_subplot(rows, ACROSS, number + 1, projection="polar"))
        _radar(axes, scores, labels, styles, angles)
        axes.set_title(name, fontsize=9.5, fontweight="bold", pad=26.0)
    figure.subplots_adjust(left=0.04, right=0.96, top=1.0 - 0.7 / height, bottom=0.6 / height, wspace=0.5, hspace=0.5)
    handles = {}
    for label in scores.scores.index:
        colour, dash, marker = styles[label]
        handles[plan.members[label]] = Line2D(
            [], [], color=colour, linestyle=dash, marker=marker, markersize=4, label=plan.members[label]
        )
    named = [handles[name] for name in sorted(handles)]
    figure.legend(handles=named[:16], loc="lower center", ncols=min(8, max(4, -(-len(named) // 2))), frameon=False,
                  handlelength=2.6, columnspacing=1.4)  # fmt: skip
    return figure


def _radar(
    axes: PolarAxes, scores: Scores, labels: Sequence[str], styles: Mapping[str, Style],
    angles: np.ndarray,
) -> None:  # fmt: skip
    names = [measure.name for measure in scores.measures]
    around = np.append(angles, angles[0])
    axes.set_theta_offset(np.pi / 2.0)
    axes.set_theta_direction(-1)
    axes.set_ylim(0.0, 1.0 + HUB)
    for radius in (HUB, HUB + 0.5, HUB + 1.0):
        axes.plot(
            around,
            np.full(len(around), radius),
            color=style.FRAME if radius > 1.0 else style.GRID,
            linewidth=0.7,
            zorder=1,
        )
    for angle in angles:
        axes.plot([angle, angle], [0.0, 1.0 + HUB], color=style.GRID, linewidth=0.7, zorder=1)
    area = scores.scores.sum(axis=1)
    best = max(labels, key=lambda label: float(area[label]))
    for label in labels:
        colour, dash, marker = styles[label]
        values = scores.scores.loc[label, names].to_numpy(dtype=float) + HUB
        thick = label == best
        values = np.append(values, values[0])
        axes.plot(around, values, color=colour,
                  linestyle=dash, marker=marker, markersize=3.5, linewidth=1.8 if thick else 0.8,
                  alpha=1.0 if thick else 0.8, zorder=4 if thick else 3, clip_on=False)  # fmt: skip
        if thick:
            axes.fill(around, values, color=colour, alpha=0.12, zorder=2)
    axes.set_axis_off()
    for angle, measure in zip(angles, scores.measures, strict=True):
        low, high = scores.range_of(measure)
        text = f"{measure.title}\n{high:.{measure.decimals}f} → {low:.{measure.decimals}f}"
        side = np.sin(angle)
        axes.text(
            angle, 1.0 + HUB + (0.12 if abs(side) < 0.1 else 0.2), text, fontsize=6.8, linespacing=1.1,
            ha="center", va="bottom" if abs(side) < 0.1 and np.cos(angle) > 0 else "top",
        )  # fmt: skip


def scores_figure(scores: Scores, plan: ReportPlan) -> Figure:
    """The means of all algorithms as a table whose cells are the bluer the better, best first. Figure 2."""
    labels = scores.scores.index.tolist()
    height = ROW_IN * len(labels) + 1.15
    left = min(0.5, 0.06 + 0.0155 * max(map(len, labels)))
    figure, [[axes]] = style.panels_of(5.2, height, 1, 1, margins_in=(0.45, 0.6), left=left, right=0.98)
    values = scores.scores.to_numpy(dtype=float)
    image = axes.imshow(
        values,
        cmap=LinearSegmentedColormap.from_list("score", (style.WORST, style.BEST)),
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
    )
    for row, label in enumerate(labels):
        for column, measure in enumerate(scores.measures):
            value, score = scores.means.loc[label, measure.name], values[row, column]
            if np.isfinite(score):
                axes.text(column, row, f"{value:.{measure.decimals}f}", ha="center", va="center", fontsize=7.0,
                          color=style.CAP)  # fmt: skip
    style.cell_grid(axes, *values.shape, style.GRID, 0.8)
    axes.set_xticks(range(len(scores.measures)), [measure.axis for measure in scores.measures])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(labels)), labels, fontsize=7.0)
    for tick, label in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_fontweight("bold" if label in plan.highlighted else "normal")
    bar = figure.add_axes((0.5, 0.34 / height, 0.4, 0.09 / height))
    figure.colorbar(image, cax=bar, orientation="horizontal", ticks=[0.0, 1.0])
    bar.set_xticklabels(["worst of all", "best of all"], fontsize=7.0)
    bar.tick_params(length=0.0)
    return figure


def instances_figure(frame: pd.DataFrame, measures: Sequence[Measure], looks: Mapping[str, style.Look]) -> Figure:
    """Each measure by instance (left) and its spread over them by algorithm (right). Figures 4 and 5."""
    labels = list(dict.fromkeys(frame["label"].tolist()))
    instances = sorted(set(frame["instance"].tolist()))
    names, prefix = _short(instances)
    margins_in = (0.62, 1.05 if len(measures) > 1 else 0.95)
    figure, grid = style.panels_of(style.WIDE_IN, 2.35 * len(measures) + 1.35, len(measures), 2, margins_in=margins_in,
                                   left=0.06, right=0.99, wspace=0.03, hspace=0.12, sharex="col", sharey="row",
                                   width_ratios=(2.4, 1.0))  # fmt: skip
    rank = {name: number for number, name in enumerate(instances)}
    for (left, right), measure in zip(grid, measures, strict=True):
        for number, label in enumerate(labels):
            rows = frame[frame["label"] == label]
            values = rows[measure.name].to_numpy(dtype=float)
            look = looks[label]
            # side by side within an instance, so that equal values do not hide one another
            offset = 0.7 * ((number + 0.5) / len(labels) - 0.5)
            _dots(left, rows["instance"].map(rank).to_numpy(dtype=float) + offset, values, look, 3.6, 0.3)
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
    first, last = instances[0], instances[-1] if len(instances) > 1 else ""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
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
    _dots(axes, position + spread, values, look, 2.6, 0.2)


def _dots(axes: Axes, at: np.ndarray, values: np.ndarray, look: style.Look, size: float, edge: float) -> None:
    axes.plot(at, values, color=look.colour, marker=look.marker[0], linestyle="", markersize=size,
              markeredgewidth=edge, markeredgecolor="white", zorder=3)  # fmt: skip


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
