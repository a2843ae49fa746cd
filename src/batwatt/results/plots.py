"""Charts of power over time against an envelope, for pages and pictures."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from batwatt.model.timeline import Timeline
from batwatt.results import style
from batwatt.results.power import CappedTrace, Floats, PowerTrace, compare
from batwatt.results.power_bins import bin_edges, envelope_bins, power_bins
from batwatt.results.style import KW, Picture

HEIGHT_IN = 2.4


def power_figure(label: str, trace: PowerTrace, envelope: Timeline | None) -> Picture:
    """Return the power of a run, until its end."""
    figure, grid = style.panels_of(style.WIDTH_IN, HEIGHT_IN, 1, 1, margins_in=(0.55, 0.45), left=0.075, right=0.985)
    axes: Axes = grid[0, 0]
    draw_power(axes, trace, envelope, bin_edges([trace], envelope))
    style.panel_title(axes, label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 3, 6, 10]))
    axes.set_xlabel("time (h)")
    middle = (figure.subplotpars.top + figure.subplotpars.bottom) / 2.0
    figure.text(0.012, middle, "power (kW)", rotation=90, va="center", ha="left", color=style.INK)
    style.legend(figure, axes.get_legend_handles_labels()[0], 0.99)
    return figure


def draw_power(
    axes: Axes, trace: PowerTrace, envelope: Timeline | None, edges_s: Floats, unit_s: float = style.HOUR_S
) -> None:
    """Draw the power of a run in kW and its envelope, in the intervals between edges, on an axis of time from 0 on.

    Red is power above the envelope, grey unused power below it. Where the power changes within an interval the line is
    its mean, with a pale band from the least to the largest. A red mark at the top is a step of the envelope in
    violation.
    """
    # matplotlib warns of an axis without length, where no job ran
    axes.set_xlim(0.0, edges_s[-1] / unit_s or 1.0)
    axes.margins(y=0.12)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    style.plain(axes)
    if trace.end_s > 0.0:
        bins = power_bins(trace, envelope, edges_s)
        above_w = 0.0 * bins.above_w if envelope is None else bins.above_w
        edges = bins.edges_s / unit_s
        within_w = bins.power_w - above_w
        axes.stairs(within_w / KW, edges, fill=True, color=style.POWER, alpha=0.3, linewidth=0.0, zorder=2)
        areas = [
            ("least to largest power", style.POWER, bins.low_w, bins.high_w, 0.25),
            ("above the envelope", style.VIOLATION, within_w, bins.power_w, 0.6),
            ("unused", style.UNUSED, bins.power_w, bins.power_w + bins.unused_w, 0.35),
        ]
        for label, colour, low_w, high_w, alpha in areas:
            if (high_w > low_w).any():
                high = np.where(high_w > low_w, high_w, np.nan)
                axes.stairs(high / KW, edges, baseline=low_w / KW, fill=True, color=colour, alpha=alpha,
                            linewidth=0.0, label=label, zorder=2)  # fmt: skip
        axes.stairs(bins.power_w / KW, edges, baseline=None, color=style.POWER, linewidth=0.9, label="power", zorder=3)
    if envelope is not None:
        cap = envelope_bins(envelope, edges_s)
        axes.stairs(cap.power_w / KW, cap.edges_s / unit_s, baseline=None, color=style.CAP, linewidth=0.9,
                    label="envelope", zorder=3)  # fmt: skip
        _violations(axes, compare(trace, envelope), unit_s)


def _violations(axes: Axes, pieces: CappedTrace, unit_s: float) -> None:
    """Mark the steps in violation at the top of a panel, and count them."""
    _, first = np.unique(pieces.step[pieces.over], return_index=True)
    begins, ends = (edges[pieces.over][first] / unit_s for edges in (pieces.step_start_s, pieces.step_end_s))
    marks = list(zip(begins.tolist(), (ends - begins).tolist(), strict=True))
    if marks:
        axes.broken_barh(
            marks, (0.97, 0.03), transform=axes.get_xaxis_transform(), color=style.VIOLATION, linewidth=0.8, zorder=6
        )
    text = f"{pieces.violations} of {pieces.steps} steps in violation"
    axes.set_title(text, loc="right", fontsize=7.5, pad=4.0, color=style.VIOLATION if marks else style.INK)
