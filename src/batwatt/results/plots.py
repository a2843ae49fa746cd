"""Figures of runs: the power drawn against the envelope, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.results import style
from batwatt.results.power import Comparison, Floats, PowerTrace, compare, step_bounds

PANEL_IN = 1.45
MARGIN_IN = 0.95
"""Height of the legend, the axis label and the title of the first panel together."""


def plot_power(runs: Sequence[tuple[str, PowerTrace]], envelope: Series | None, path: Path | str) -> Path:
    """Draw one panel per run (label, power) up to the end of the longest; returns the path.

    The envelope in W is the line, red is power above it, and a red mark at the top of a panel is a step in violation.
    The suffix of `path` is `.png`, `.svg` or `.pdf`. Raises InputError.
    """
    style.kind_of(Path(path))
    if not runs:
        raise InputError(path, "has no run to show", "name at least one run")
    end_s = max(trace.end_s for _, trace in runs)
    if not end_s > 0.0:
        raise InputError(path, "would show no time: no job ended", "choose runs with jobs")
    return style.draw(path, lambda: power_figure(runs, envelope, end_s))


def power_figure(runs: Sequence[tuple[str, PowerTrace]], envelope: Series | None, end_s: float) -> Figure:
    """One panel per run (label, power), one below the other, over [0, end_s]."""
    height = PANEL_IN * len(runs) + MARGIN_IN
    figure, grid = style.panels_of(style.WIDTH_IN, height, len(runs), 1, margins_in=(0.55, 0.45), left=0.075,
                                   right=0.985, hspace=0.34 * len(runs) / (height - 1.0), sharex=True,
                                   sharey=True)  # fmt: skip
    panels: list[Axes] = list(grid[:, 0])
    top_w = 0.0
    for axes, (label, trace) in zip(panels, runs, strict=True):
        top_w = max(top_w, power_panel(axes, label, trace, envelope, end_s))
    panels[0].set_xlim(0.0, end_s / style.HOUR_S)
    power_axis(panels[0], top_w)
    panels[0].xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 3, 6, 10]))
    panels[-1].set_xlabel("time (h)")
    # one label for all panels, in the middle of them
    middle = (figure.subplotpars.top + figure.subplotpars.bottom) / 2.0
    figure.text(0.012, middle, "power (kW)", rotation=90, va="center", ha="left", color=style.INK)
    style.legend(figure, power_legend(envelope is not None), 0.99)
    return figure


def power_axis(axes: Axes, top_w: float) -> None:
    """An axis of power in kW from 0 to a little above the highest."""
    axes.set_ylim(0.0, 1.12 * top_w / style.KW if top_w > 0.0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))


def power_legend(capped: bool) -> list[Patch | Line2D]:
    """What the colours of a panel mean."""
    handles: list[Patch | Line2D] = [
        Patch(facecolor=style.POWER, alpha=0.55, edgecolor=style.POWER, label="power drawn")
    ]
    if capped:
        handles.append(Line2D([], [], color=style.CAP, linewidth=1.1, label="envelope"))
        handles.append(Patch(facecolor=style.VIOLATION, label="above the envelope"))
    return handles


def power_panel(axes: Axes, label: str, trace: PowerTrace, envelope: Series | None, end_s: float) -> float:
    """Draw one run over [0, end_s]; returns the highest power or cap shown, in W."""
    edges = np.append(trace.times_s, trace.end_s)
    hours, power = stairs(edges, trace.power_w)
    axes.fill_between(hours, power, color=style.POWER, alpha=0.45, linewidth=0.0, zorder=2)
    axes.plot(hours, power, color=style.POWER, linewidth=0.7, solid_joinstyle="miter", zorder=3)
    top_w = float(trace.power_w[trace.times_s < end_s].max(initial=0.0))
    if envelope is not None:
        starts, _, _ = step_bounds(envelope, end_s)
        caps = np.array([envelope.at(start) for start in starts.tolist()])
        hours, cap = stairs(np.append(starts, end_s), caps)
        axes.plot(hours, cap, color=style.CAP, linewidth=1.0, solid_joinstyle="miter", zorder=5)
        top_w = max(top_w, float(caps.max()))
        _violations(axes, compare(trace, envelope))
    style.panel_title(axes, label)
    style.plain(axes)
    return top_w


def _violations(axes: Axes, pieces: Comparison) -> None:
    """Fill what is above the cap, mark the steps concerned at the top and count them."""
    bounds = np.column_stack((pieces.start_s, pieces.end_s)).ravel() / style.HOUR_S
    axes.fill_between(bounds, np.repeat(pieces.cap_w, 2) / style.KW, np.repeat(pieces.power_w, 2) / style.KW,
                      where=np.repeat(pieces.over, 2), facecolor=style.VIOLATION, edgecolor=style.VIOLATION,
                      linewidth=0.8, zorder=4)  # fmt: skip
    count = pieces.violations
    if pieces.steps:
        _, first = np.unique(pieces.step[pieces.over], return_index=True)
        begins, ends = (edges[pieces.over][first] / style.HOUR_S for edges in (pieces.step_start_s, pieces.step_end_s))
        marks = list(zip(begins.tolist(), (ends - begins).tolist(), strict=True))
        axes.broken_barh(
            marks, (0.97, 0.03), transform=axes.get_xaxis_transform(), color=style.VIOLATION, linewidth=0.8, zorder=6
        )
    text = f"{count} of {pieces.steps} steps in violation"
    axes.set_title(text, loc="right", fontsize=7.5, pad=4.0, color=style.VIOLATION if count else style.INK)


def stairs(edges_s: Floats, values_w: Floats) -> tuple[Floats, Floats]:
    """The corners, in h and kW, of the stairs whose values hold between consecutive edges."""
    return np.repeat(edges_s, 2)[1:-1] / style.HOUR_S, np.repeat(values_w, 2) / style.KW
