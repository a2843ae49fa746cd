"""Drawing of a run by matplotlib: style of all charts, power against an envelope, and the Gantt chart.

A Gantt chart has jobs and p-states by server and time above the power drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.results.host_timeline import STATES, DrawnRun, HostTimeline, StateSegment, read_timeline
from batwatt.results.power import CappedTrace, Floats, PowerTrace, compare, power_series
from batwatt.results.run_files import file_of
from batwatt.units import HOUR_S

KW = 1e3

POWER = "#4a7fb5"
CAP = "#22303c"
VIOLATION = "#d1242f"
INK = "#3d4852"
FRAME = "#9aa5b1"
GRID = "#e3e7eb"
UNUSED = "#8c8c8c"

WIDTH_IN, ALONE_IN = 7.2, 2.4
"""Size of a chart of the power alone."""
DPI = 200

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#000000")
"""Colours distinct for the colour-blind: M. Okabe and K. Ito, Color Universal Design, 2008; grey in place of yellow,
which is too pale on white."""
MARKERS = "os^DvPX*"
"""Shapes of points."""
DASHES: tuple[Any, ...] = ("-", (0, (6, 4)), (0, (2, 3)), (0, (6, 3, 2, 3)), (0, (11, 4)))
"""Dashes of lines."""
HATCHES = ("", "//", "\\\\", "xx", "||", "--", "++", "/")
"""Hatching of areas."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.edgecolor": FRAME,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "xtick.color": FRAME,
    "ytick.color": FRAME,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "batwatt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Formats by suffix, with the metadata to leave out so that equal runs give equal bytes."""
MOST_BINS = 2000
"""Largest number of intervals, about the pixels of the width of a figure."""
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
_KILLED = Line2D([], [], marker="x", linestyle="", color=VIOLATION, markersize=5, markeredgewidth=1.4, label="killed")


@dataclass(frozen=True)
class Look:
    """Style of one of several series in a chart; series differ in more than their colour."""

    number: int

    @property
    def colour(self) -> str:
        """A colour of `PALETTE`."""
        return PALETTE[self.number % len(PALETTE)]

    @property
    def marker(self) -> str:
        """Shape of the points."""
        return MARKERS[self._turn % len(MARKERS)]

    @property
    def dash(self) -> Any:
        """Dashes of the lines."""
        return DASHES[self._turn % len(DASHES)]

    @property
    def hatch(self) -> str:
        """Hatching of the areas."""
        return HATCHES[self._turn % len(HATCHES)]

    @property
    def _turn(self) -> int:
        # one further each time that the colours repeat, so that no two series share both
        return self.number % len(PALETTE) + self.number // len(PALETTE)


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style to charts made or written within this context."""
    with rc_context(_STYLE):
        yield


def kind_of(path: Path) -> str:
    """Return the format of a chart by the suffix of its path. Raises InputError."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(path, "is not a kind of figure", f"end its name with one of {', '.join(_METADATA)}")
    return kind


def draw(path: Path | str, figure: Callable[[], Picture]) -> Path:
    """Write the chart that a function makes, in the format of the suffix; return the path. Raises InputError.

    The suffix is checked before anything is drawn.
    """
    kind_of(Path(path))
    with styled():
        return save(figure(), Path(path))


def new_figure(width_in: float, height_in: float) -> Picture:
    """Return an empty chart of a size in inches."""
    figure = Picture(figsize=(width_in, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panels_of(
    width_in: float, height_in: float, down: int, across: int, *, margins_in: tuple[float, float], left: float,
    right: float, wspace: float | None = None, hspace: float | None = None, **settings: Any,
) -> tuple[Picture, Any]:  # fmt: skip
    """Return a chart with a grid of panels; `margins_in` are above and below them, `left` and `right` shares."""
    figure = new_figure(width_in, height_in)
    grid = figure.subplots(down, across, squeeze=False, **settings)
    above, below = (margin_in / height_in for margin_in in margins_in)
    figure.subplots_adjust(left=left, right=right, top=1.0 - above, bottom=below, wspace=wspace, hspace=hspace)
    return figure, grid


def headline(figure: Picture, text: str, below_in: float, x: float = 0.012, size: float = 9.5) -> None:
    """Write the title of a chart, `below_in` inches below its upper edge."""
    y = 1.0 - below_in / figure.get_size_inches()[1]
    figure.suptitle(text, x=x, y=y, ha="left", va="top", fontsize=size, fontweight="bold")


def legend(
    figure: Picture, handles: Sequence[Artist], x: float, below_in: float = 0.02, columns: int = 0, **look: Any
) -> None:
    """Draw a legend `below_in` inches below the upper edge, that ends at `x` > 0.5 or else begins at `x`."""
    look = {"frameon": False, "handlelength": 1.6, "columnspacing": 1.6, "ncols": columns or len(handles)} | look
    place = (x, 1.0 - below_in / figure.get_size_inches()[1])
    figure.legend(handles=handles, loc="upper right" if x > 0.5 else "upper left", bbox_to_anchor=place, **look)


def panel_title(axes: Axes, text: str, pad: float = 4.0) -> None:
    """Write the title of a panel."""
    axes.set_title(text, loc="left", fontsize=8.5, fontweight="bold", pad=pad)


def box_corners(left: float, right: float, low: float, high: float) -> list[tuple[float, float]]:
    """Return the corners of a box."""
    return [(left, low), (right, low), (right, high), (left, high)]


def plain(axes: Axes) -> None:
    """Draw a grid behind the data, and no box around it."""
    axes.grid(color=GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    unboxed(axes)


def unboxed(axes: Axes) -> None:
    """Remove the box around the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2.5, width=0.6)


def save(figure: Picture, path: Path) -> Path:
    """Write a chart atomically, in the format of the suffix; return the path. Raises InputError."""
    kind = kind_of(path)
    with whole_file(path, "wb") as out:
        write(figure, out, kind)
    return path


def write(figure: Picture, out: Any, kind: str, **settings: Any) -> None:
    """Write a chart to an open file; equal charts give equal bytes."""
    figure.savefig(out, format=kind, dpi=DPI, metadata=_METADATA[kind], **settings)


@dataclass(frozen=True)
class PowerBins:
    """Powers in W, a value for each interval between consecutive `edges_s`.

    Means of the power, of the envelope, and of the power above and unused below the envelope: `power_w` is
    `cap_w` + `above_w` - `unused_w`. `low_w` and `high_w` are the least and the largest power.
    """

    edges_s: Floats
    power_w: Floats
    low_w: Floats
    high_w: Floats
    cap_w: Floats
    above_w: Floats
    unused_w: Floats


def bin_edges(traces: Collection[PowerTrace], envelope: Timeline | None, most: int = MOST_BINS) -> Floats:
    """Return edges in s for several traces: all changes of a power or of the envelope, or `most` equal intervals."""
    end_s = max((trace.end_s for trace in traces), default=0.0)
    changes = [np.array([0.0, end_s])]
    for trace in traces:
        pieces = _pieces(trace, envelope)
        new = (np.diff(pieces.power_w) != 0.0) | (np.diff(pieces.cap_w) != 0.0)
        changes += [pieces.start_s[1:][new], np.array([trace.end_s])]
    exact = np.unique(np.concatenate(changes))
    return exact if len(exact) <= most + 1 else np.linspace(0.0, end_s, most + 1)


def power_bins(trace: PowerTrace, envelope: Timeline | None, edges_s: Floats) -> PowerBins:
    """Return a trace in the intervals between edges from 0 s on; the last interval ends with the trace.

    Without an envelope all power is above the cap of 0 W.
    """
    edges = np.append(edges_s[edges_s < trace.end_s], trace.end_s)
    if not trace.end_s > 0.0:
        none = np.empty(0)
        return PowerBins(edges[:1], none, none, none, none, none, none)
    pieces = _pieces(trace, envelope)
    starts = np.union1d(pieces.start_s, edges[:-1])
    of = np.searchsorted(pieces.start_s, starts, side="right") - 1
    power, cap = pieces.power_w[of], pieces.cap_w[of]
    durations = np.diff(np.append(starts, trace.end_s))
    first = np.searchsorted(starts, edges[:-1])

    def mean(values: Floats) -> Floats:
        return np.add.reduceat(values * durations, first) / np.diff(edges)

    return PowerBins(
        edges_s=edges,
        power_w=mean(power),
        low_w=np.minimum.reduceat(power, first),
        high_w=np.maximum.reduceat(power, first),
        cap_w=mean(cap),
        above_w=mean(np.maximum(power - cap, 0.0)),
        unused_w=mean(np.maximum(cap - power, 0.0)),
    )


def envelope_bins(envelope: Timeline, edges_s: Floats) -> PowerBins:
    """Return the envelope as a power, between edges from 0 s on."""
    steps = list(envelope.steps(0.0, float(edges_s[-1])))
    times, values = (np.array([step[part] for step in steps]) for part in (0, 2))
    return power_bins(PowerTrace(times, values, float(edges_s[-1])), envelope, edges_s)


def _pieces(trace: PowerTrace, envelope: Timeline | None) -> CappedTrace:
    return compare(trace, Timeline((0.0,), (0.0,)) if envelope is None else envelope)


def new_axes(width_in: float, height_in: float) -> Axes:
    """Return the axes of a new figure of pyplot, which a notebook shows, of a size in inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width_in, height_in), layout="constrained")[1]


def power_axes(axes: Axes | None, label: str, trace: PowerTrace, envelope: Timeline | None) -> Axes:
    """Draw the power of a run until its end, on axes or on those of a new figure of pyplot, which a notebook shows."""
    with styled():
        axes = axes or new_axes(WIDTH_IN, ALONE_IN)
        draw_power(axes, trace, envelope, bin_edges([trace], envelope))
        axes.set_title(label, loc="left")
        axes.set(xlabel="time (h)", ylabel="power (kW)")
        axes.legend(loc="upper right", frameon=False, fontsize=7.5, ncols=4)
    return axes


def draw_power(
    axes: Axes, trace: PowerTrace, envelope: Timeline | None, edges_s: Floats, unit_s: float = HOUR_S
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
    plain(axes)
    if trace.end_s > 0.0:
        bins = power_bins(trace, envelope, edges_s)
        above_w = 0.0 * bins.above_w if envelope is None else bins.above_w
        edges = bins.edges_s / unit_s
        within_w = bins.power_w - above_w
        axes.stairs(within_w / KW, edges, fill=True, color=POWER, alpha=0.3, linewidth=0.0, zorder=2)
        areas = [
            ("least to largest", POWER, bins.low_w, bins.high_w, 0.25),
            ("above the envelope", VIOLATION, within_w, bins.power_w, 0.6),
            ("unused", UNUSED, bins.power_w, bins.power_w + bins.unused_w, 0.35),
        ]
        for label, colour, low_w, high_w, alpha in areas:
            if (high_w > low_w).any():
                high = np.where(high_w > low_w, high_w, np.nan)
                axes.stairs(high / KW, edges, baseline=low_w / KW, fill=True, color=colour, alpha=alpha,
                            linewidth=0.0, label=label, zorder=2)  # fmt: skip
        axes.stairs(bins.power_w / KW, edges, baseline=None, color=POWER, linewidth=0.9, label="power", zorder=3)
    if envelope is not None:
        cap = envelope_bins(envelope, edges_s)
        axes.stairs(cap.power_w / KW, cap.edges_s / unit_s, baseline=None, color=CAP, linewidth=0.9,
                    label="envelope", zorder=3)  # fmt: skip
        _violations(axes, compare(trace, envelope), unit_s)


def _violations(axes: Axes, pieces: CappedTrace, unit_s: float) -> None:
    """Mark the steps in violation at the top of a panel, and count them."""
    _, first = np.unique(pieces.step[pieces.over], return_index=True)
    begins, ends = (edges[pieces.over][first] / unit_s for edges in (pieces.step_start_s, pieces.step_end_s))
    marks = list(zip(begins.tolist(), (ends - begins).tolist(), strict=True))
    if marks:
        axes.broken_barh(
            marks, (0.97, 0.03), transform=axes.get_xaxis_transform(), color=VIOLATION, linewidth=0.8, zorder=6
        )
    text = f"{pieces.violations} of {pieces.steps} steps in violation"
    axes.set_title(text, loc="right", fontsize=7.5, pad=4.0, color=VIOLATION if marks else INK)


def plot_gantt(prefix: Path | str, platform: Platform, envelope: Timeline | None, path: Path | str) -> Path:
    """Draw the run whose Batsim files are under `prefix`; return the path, which ends in `.png`, `.svg` or `.pdf`.

    The panel of the power and of the envelope in W needs `PREFIX_consumed_energy.csv`. Raises InputError.
    """
    return draw(path, lambda: run_figure(prefix, platform, envelope, Path(prefix).name))


def run_figure(prefix: Path | str, platform: Platform, envelope: Timeline | None, title: str) -> Picture:
    """Return the figure of the run whose Batsim files are under `prefix`. Raises InputError."""
    timeline = read_timeline(prefix, platform)
    if not timeline.runs or not timeline.end_s > 0.0:
        raise InputError(file_of(prefix, "jobs"), "no job ran, so there is nothing to draw", "choose another run")
    power = power_series(prefix, timeline.end_s) if file_of(prefix, "consumed_energy").exists() else None
    with styled():
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
    figure, grid = panels_of(GANTT_WIDTH_IN, height, len(ratios), 1, margins_in=(HEADER_IN, 0.45),
                             left=min(0.3, 0.035 + 0.0055 * longest), right=0.99, hspace=hspace, sharex=True,
                             gridspec_kw={"height_ratios": ratios})  # fmt: skip
    panels: list[Axes] = list(grid[:, 0])
    # p-state of computation -> 0 for the fastest, 1 for the next, ..., of each server
    ranks = [{pstate: rank for rank, pstate in enumerate(host.compute)} for host in platform.hosts]
    colours = _colours(max(max(rank.values(), default=0) for rank in ranks) + 1)
    _servers(panels[0], timeline, platform, ranks, colours)
    panels[0].set_xlim(0.0, timeline.end_s / HOUR_S)
    handles: list[Any] = _legend(colours, timeline)
    if power is not None:
        draw_power(panels[1], power, envelope, bin_edges([power], envelope))
        panels[1].set_ylabel("power (kW)")
        handles += panels[1].get_legend_handles_labels()[0]
    panels[-1].set_xlabel("time (h)")
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=14, steps=[1, 2, 3, 6, 10]))
    headline(figure, title, 0.06, 0.01, 10)
    columns = -(-len(handles) // 2)
    # matplotlib fills a legend by column; this order reads by row
    by_rows = [handle for column in range(columns) for handle in handles[column::columns]]
    legend(figure, by_rows, 0.995, 0.28, columns, columnspacing=1.4, fontsize=7.5)
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
        PolyCollection(boxes, facecolors="none", edgecolors=INK, linewidths=width, zorder=3, rasterized=pictured)
    )
    _mark_killed(axes, timeline.runs, count)
    axes.set_ylim(count - 0.5, -0.5)
    unboxed(axes)
    if count <= NAMED:
        axes.set_yticks(range(count), [host.name for host in platform.hosts], fontsize=7)
    else:
        axes.set_ylabel("server")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))


def _corners(low: float, high: float, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Return the corners of the box around the rows low..high, in h."""
    return box_corners(start_s / HOUR_S, end_s / HOUR_S, low - 0.5, high + 0.5)


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
        [run.end_s / HOUR_S for run in killed],
        [(run.low + run.high) / 2.0 for run in killed],
        marker="x", linestyle="", color=VIOLATION, markersize=4.5 if count <= NAMED else 2.5,
        markeredgewidth=1.3 if count <= NAMED else 0.7, zorder=4, clip_on=False,
    )  # fmt: skip


def _legend(colours: list[str], timeline: HostTimeline) -> list[Any]:
    """Return the legend of colours and shades; of many p-states the fastest, the middle one and the slowest."""
    named = range(len(colours)) if len(colours) <= 7 else sorted({0, len(colours) // 2, len(colours) - 1})
    note = {0: " (fastest)", len(colours) - 1: " (slowest)"} if len(colours) > 1 else {}
    handles: list[Any] = [
        Patch(facecolor=colours[rank], edgecolor=INK, linewidth=0.5, label=f"P{rank}{note.get(rank, '')}")
        for rank in named
    ]
    handles.append(Patch(facecolor=colours[0], alpha=IDLE_ALPHA, label="pale: on, no job"))
    seen = {span.state for span in timeline.spans}
    handles += [Patch(facecolor=shade, label=state) for state, shade in _SHADES.items() if state in seen]
    return [*handles, _KILLED] if any(run.killed for run in timeline.runs) else handles
