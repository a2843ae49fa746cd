"""Gantt chart of one run: jobs and p-states by server and time, above the power drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.results import style
from batwatt.results.host_timeline import STATES, DrawnRun, HostTimeline, StateSegment, read_timeline
from batwatt.results.plots import draw_power
from batwatt.results.power import PowerTrace, power_series
from batwatt.results.power_bins import bin_edges
from batwatt.results.run_files import file_of
from batwatt.results.style import Picture

GANTT_WIDTH_IN = 10.0
POWER_IN = 1.5
HEADER_IN = 0.78
ROW_IN = 0.17
LEAST_IN, MOST_IN = 1.2, 8.5
"""Least and largest height of the panel of servers."""
NAMED = 40
"""Largest number of servers with names on the axis; more have numbers."""
SHAPES = 20_000
"""Largest number of shapes drawn as vectors; viewers cannot open more, so the boxes become an image."""
IDLE_ALPHA = 0.3

_SHADES = dict(zip(STATES, ("#e6e8eb", "#e69f00", "#d55e00"), strict=True))
_KILLED = Line2D(
    [], [], marker="x", linestyle="", color=style.VIOLATION, markersize=5, markeredgewidth=1.4, label="killed"
)


def plot_gantt(prefix: Path | str, platform: Platform, envelope: Timeline | None, path: Path | str) -> Path:
    """Draw the run whose Batsim files are under `prefix`; return the path, which ends in `.png`, `.svg` or `.pdf`.

    The panel of the power and of the envelope in W needs `PREFIX_consumed_energy.csv`. Raises InputError.
    """
    return style.draw(path, lambda: run_figure(prefix, platform, envelope, Path(prefix).name))


def run_figure(prefix: Path | str, platform: Platform, envelope: Timeline | None, title: str) -> Picture:
    """Return the figure of the run whose Batsim files are under `prefix`. Raises InputError."""
    timeline = read_timeline(prefix, platform)
    if not timeline.runs or not timeline.end_s > 0.0:
        raise InputError(file_of(prefix, "jobs"), "no job ran, so there is nothing to draw", "choose another run")
    power = power_series(prefix, timeline.end_s) if file_of(prefix, "consumed_energy").exists() else None
    with style.drawing():
        return gantt_figure(timeline, platform, power, envelope, title)


def gantt_figure(
    timeline: HostTimeline, platform: Platform, power: PowerTrace | None, envelope: Timeline | None, title: str
) -> Picture:
    """Return a figure of the servers above the power, on one axis of time."""
    servers_in = min(MOST_IN, max(LEAST_IN, ROW_IN * len(platform)))
    below_in = 0.0 if power is None else POWER_IN + 0.3
    height = HEADER_IN + servers_in + below_in + 0.45
    ratios = [servers_in] if power is None else [servers_in, POWER_IN]
    longest = max(len(host.name) for host in platform.hosts) if len(platform) <= NAMED else 4
    hspace = 0.0 if power is None else 2.0 * 0.3 / (servers_in + POWER_IN)
    figure, grid = style.panels_of(GANTT_WIDTH_IN, height, len(ratios), 1, margins_in=(HEADER_IN, 0.45),
                             left=min(0.3, 0.035 + 0.0055 * longest), right=0.99, hspace=hspace, sharex=True,
                             gridspec_kw={"height_ratios": ratios})  # fmt: skip
    panels: list[Axes] = list(grid[:, 0])
    # p-state of computation -> 0 for the fastest, 1 for the next, ..., of each server
    ranks = [{pstate: rank for rank, pstate in enumerate(host.compute)} for host in platform.hosts]
    colours = _colours(max(max(rank.values(), default=0) for rank in ranks) + 1)
    _servers(panels[0], timeline, platform, ranks, colours)
    panels[0].set_xlim(0.0, timeline.end_s / style.HOUR_S)
    handles: list[Any] = _legend(colours, timeline)
    if power is not None:
        draw_power(panels[1], power, envelope, bin_edges([power], envelope))
        panels[1].set_ylabel("power (kW)")
        handles += panels[1].get_legend_handles_labels()[0]
    panels[-1].set_xlabel("time (h)")
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=14, steps=[1, 2, 3, 6, 10]))
    style.headline(figure, title, 0.06, 0.01, 10)
    columns = -(-len(handles) // 2)
    # matplotlib fills a legend by column; this order reads by row
    by_rows = [handle for column in range(columns) for handle in handles[column::columns]]
    style.legend(figure, by_rows, 0.995, 0.28, columns, columnspacing=1.4, fontsize=7.5)
    return figure


def _colours(count: int) -> list[str]:
    """Return a colour for each rank, from light (fast) to dark (slow)."""
    scale = colormaps["YlGnBu"]
    return [to_hex(scale(0.3 + 0.65 * rank / max(1, count - 1))) for rank in range(count)]


def _servers(
    axes: Axes, timeline: HostTimeline, platform: Platform, ranks: list[dict[int, int]], colours: list[str]
) -> None:
    """Draw states as rows of colour, and runs of jobs as boxes around them; server 0 is at the top."""
    count = len(platform)
    computing = list(timeline.computing())
    pictured = len(timeline.spans) + len(computing) > SHAPES

    def colour(span: StateSegment) -> str:
        return _SHADES[span.state] if isinstance(span.state, str) else colours[ranks[span.host].get(span.state, 0)]

    off = [span for span in timeline.spans if isinstance(span.state, str)]
    idle = [span for span in timeline.spans if not isinstance(span.state, str)]
    for spans, alpha, order in ((off, 1.0, 1), (idle, IDLE_ALPHA, 1), (computing, 1.0, 2)):
        _fill(axes, ((_corners(s.host, s.host, s.start_s, s.end_s), colour(s)) for s in spans), alpha, order, pictured)
    gap = 0.08 if count <= NAMED else 0.0
    boxes = [_corners(run.low + gap, run.high - gap, run.start_s, run.end_s) for run in timeline.runs]
    width = 0.6 if count <= NAMED else 0.3
    axes.add_collection(
        PolyCollection(boxes, facecolors="none", edgecolors=style.INK, linewidths=width, zorder=3, rasterized=pictured)
    )
    _mark_killed(axes, timeline.runs, count)
    axes.set_ylim(count - 0.5, -0.5)
    style.unboxed(axes)
    if count <= NAMED:
        axes.set_yticks(range(count), [host.name for host in platform.hosts], fontsize=7)
    else:
        axes.set_ylabel("server")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))


def _corners(low: float, high: float, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Return the corners of the box around the rows low..high, in h."""
    return style.box_corners(start_s / style.HOUR_S, end_s / style.HOUR_S, low - 0.5, high + 0.5)


def _fill(
    axes: Axes, boxes: Iterable[tuple[list[tuple[float, float]], str]], alpha: float, order: int, pictured: bool
) -> None:
    shapes = list(boxes)
    if shapes:
        corners, colours = zip(*shapes, strict=True)
        axes.add_collection(
            PolyCollection(corners, facecolors=colours, edgecolors="none", linewidths=0.0, alpha=alpha, zorder=order,
                           antialiaseds=False, rasterized=pictured)
        )  # fmt: skip


def _mark_killed(axes: Axes, runs: Sequence[DrawnRun], count: int) -> None:
    killed = [run for run in runs if run.killed]
    axes.plot(
        [run.end_s / style.HOUR_S for run in killed],
        [(run.low + run.high) / 2.0 for run in killed],
        marker="x", linestyle="", color=style.VIOLATION, markersize=4.5 if count <= NAMED else 2.5,
        markeredgewidth=1.3 if count <= NAMED else 0.7, zorder=4, clip_on=False,
    )  # fmt: skip


def _legend(colours: list[str], timeline: HostTimeline) -> list[Any]:
    """Return the legend of colours and shades; of many p-states the fastest, the middle one and the slowest."""
    named = range(len(colours)) if len(colours) <= 7 else sorted({0, len(colours) // 2, len(colours) - 1})
    note = {0: " (fastest)", len(colours) - 1: " (slowest)"} if len(colours) > 1 else {}
    handles: list[Any] = [
        Patch(facecolor=colours[rank], edgecolor=style.INK, linewidth=0.5, label=f"P{rank}{note.get(rank, '')}")
        for rank in named
    ]
    handles.append(Patch(facecolor=colours[0], alpha=IDLE_ALPHA, label="pale: on, no job"))
    seen = {span.state for span in timeline.spans}
    handles += [Patch(facecolor=shade, label=state) for state, shade in _SHADES.items() if state in seen]
    return [*handles, _KILLED] if any(run.killed for run in timeline.runs) else handles
