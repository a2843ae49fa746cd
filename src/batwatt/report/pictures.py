"""The figures of a report as pictures: envelopes, scores, a violation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import FixedLocator, MaxNLocator

from batwatt.model.series import Series
from batwatt.report.data import Scores, Zoom
from batwatt.report.report_plan import ReportPlan
from batwatt.report.table import SavedCampaign
from batwatt.results import style
from batwatt.results.plots import envelope_stairs, power_axis, power_legend, power_panel

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


def member_styles(members: Mapping[str, str], campaign: SavedCampaign) -> dict[str, Style]:
    """Label -> colour, dashes and marker: the colour and marker stand for the order, the dashes for the backfilling."""
    rows = campaign.frame.drop_duplicates("label").set_index("label")
    known = (rows["backfilling"] != "") & (rows["order"] != "")
    orders = sorted(set(rows.loc[known, "order"]))
    backfillings = sorted(set(rows.loc[known, "backfilling"]))
    free = cycle(range(len(style.PALETTE)))
    styles: dict[str, Style] = {}
    for label in members:
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
    styles = member_styles({label: plan.members[label] for label in scores.scores.index}, campaign)
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
