"""Gantt charts of shifted jobs over the signal: start-ups, work and its power (Figures 5.3 to 5.6 of the thesis)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.model.phases import Phase
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results import style
from batwatt.systems.carbon.execution import Execution
from batwatt.units import DAY_S

SIGNAL = "carbon intensity\n(g/kWh)"
ROW_IN, LEAST_IN, MOST_IN = 0.17, 0.9, 7.5
SIGNAL_IN, POWER_IN, HEADER_IN, FOOT_IN = 1.15, 1.75, 0.62, 0.45
NAMED = 45
"""Of more jobs than this no names are written."""
NAMES = 7
"""Phases of more names than this share their colours: the rest is `other phases`."""
SHAPES = 20_000
"""With more boxes than this those of a vector format become an image."""
STARTUP_COLOUR, OTHER_COLOUR, RUNS_COLOUR = "#8c8c8c", "#c9ced3", "#e3eef7"
UNITS = ((10 * DAY_S, DAY_S, "d"), (2 * style.HOUR_S, style.HOUR_S, "h"), (300.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From which length on which unit of time is on the axis: least length in s, unit in s, its name."""

Corners = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Piece:
    """What a job draws from `begin_s` to `end_s`: `watts` on all cpus, in a phase of start-up or work."""

    begin_s: float
    end_s: float
    name: str
    watts: float
    startup: bool


def pieces(execution: Execution) -> Iterator[Piece]:
    """The phases that a job goes through in its segments, cut where a segment cuts them."""
    model, cpus = execution.job.model, execution.job.cpus
    for segment in execution.segments:
        work_s = segment.begin_s + segment.startup_s
        parts = ((model.startup, segment.begin_s, 0.0, segment.startup_s, True),
                 (model.work, work_s, segment.from_s, segment.to_s, False))  # fmt: skip
        for phases, begin_s, low_s, high_s, startup in parts:
            for phase, first_s, last_s in _between(phases, low_s, high_s):
                shift_s = begin_s - low_s
                yield Piece(shift_s + first_s, shift_s + last_s, phase.name, cpus * phase.power_w, startup)


def plot_gantt(
    executions: Sequence[Execution], integral: SignalIntegral, path: Path | str, *,
    deadlines_s: Mapping[str, float] | None = None,
) -> Path:  # fmt: skip
    """Draw jobs over the signal; returns the path, which ends in `.png`, `.svg` or `.pdf`. Raises InputError.

    A single job is drawn as its power by phase, several as a row each. `deadlines_s` by job id are marked.
    """
    style.check_shown(path, executions, "job", "choose at least one job")
    deadlines = deadlines_s or {}
    if len(executions) == 1:
        alone = executions[0]
        return style.draw(path, lambda: job_figure(alone, integral, deadlines.get(alone.job.id)))
    return style.draw(path, lambda: jobs_figure(executions, integral, deadlines))


def job_figure(execution: Execution, integral: SignalIntegral, deadline_s: float | None) -> Figure:
    """One job: its power by phase above, the signal below, shaded where the job runs."""
    until_s = execution.end_s if deadline_s is None else max(execution.end_s, deadline_s)
    figure, (above, below), axis = _panels(POWER_IN, execution.job.arrival_s, until_s, integral)
    found = list(pieces(execution))
    names = list(dict.fromkeys(piece.name for piece in found if not piece.startup))
    colours = dict(zip(names, style.PALETTE[: NAMES - 1 if len(names) > NAMES else NAMES], strict=False))
    top_w = max(piece.watts for piece in found)
    scale, unit = (style.KW, "kW") if top_w >= 10.0 * style.KW else (1.0, "W")
    handles: list[Any] = []
    for number, (label, colour, chosen) in enumerate(_groups(found, colours)):
        hatch = style.HATCHES[1][0] if label == "start-up" else ""
        corners = [axis.box(piece, 0.0, piece.watts / scale) for piece in chosen]
        look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "linewidth": 0.0, "edgecolor": "white"}
        above.add_collection(PolyCollection(corners, zorder=2.0 + 0.01 * number, **look))
        handles.append(Patch(label=label, **look))
    above.set_ylim(0.0, 1.12 * max(top_w / scale, 1e-9))
    above.set_ylabel(f"power ({unit})")
    _signal(below, integral, axis, execution)
    times: list[tuple[str, float, Any]] = [("arrival", execution.job.arrival_s, ":")]
    times += [] if deadline_s is None else [("deadline", deadline_s, "--")]
    for word, time_s, dash in times:
        for axes in (above, below):
            axes.axvline(time_s / axis.unit_s, color=style.CAP, linewidth=1.0, linestyle=dash, zorder=4)
        handles.append(Line2D([], [], color=style.CAP, linewidth=1.0, linestyle=dash, label=word))
    _head(figure, _summary(execution, integral), handles)
    return figure


def jobs_figure(executions: Sequence[Execution], integral: SignalIntegral, deadlines_s: Mapping[str, float]) -> Figure:
    """A row for each job, the first at the top: segments by power, start-ups apart, a hairline where it waits."""
    rows_in = min(MOST_IN, max(LEAST_IN, ROW_IN * len(executions)))
    from_s = min(execution.job.arrival_s for execution in executions)
    until_s = max(max(execution.end_s, deadlines_s.get(execution.job.id, 0.0)) for execution in executions)
    figure, (above, below), axis = _panels(rows_in, from_s, until_s, integral, left=_left(executions))
    drawn = [list(pieces(execution)) for execution in executions]
    top_w = max(piece.watts for row in drawn for piece in row)
    shades = ScalarMappable(Normalize(0.0, max(top_w, 1e-9)), colormaps["YlGnBu"].resampled(256))
    thick = 0.76 if len(executions) <= 4 * NAMED else 1.0
    boxes: dict[bool, tuple[list[Corners], list[float]]] = {True: ([], []), False: ([], [])}
    for number, row in enumerate(drawn):
        for piece in row:
            corners, watts = boxes[piece.startup]
            corners.append(axis.box(piece, number - thick / 2, number + thick / 2))
            watts.append(piece.watts)
    many = sum(map(len, drawn)) > SHAPES
    for startup, (corners, watts) in boxes.items():
        colours = style.PALETTE[1] if startup else shades.to_rgba(np.array(watts))
        above.add_collection(
            PolyCollection(corners, facecolors=colours, linewidths=0.0, zorder=3.0 if startup else 2.5, rasterized=many)
        )
    begins, ends = ([f(e) / axis.unit_s for e in executions] for f in (lambda e: e.job.arrival_s, lambda e: e.end_s))
    above.hlines(range(len(executions)), begins, ends, color=style.FRAME, linewidth=0.5, zorder=2, rasterized=many)
    due = [(deadlines_s[e.job.id] / axis.unit_s, row) for row, e in enumerate(executions) if e.job.id in deadlines_s]
    handles: list[Any] = [Patch(facecolor=style.PALETTE[1], label="start-up")] if boxes[True][0] else []
    handles.append(Line2D([], [], color=style.FRAME, linewidth=0.8, label="arrived, waits"))
    if due and len(executions) <= NAMED:
        above.plot(*zip(*due, strict=True), linestyle="", marker="|", color=style.CAP, markersize=6.0, zorder=3)
        handles.append(Line2D([], [], linestyle="", marker="|", color=style.CAP, markersize=6.0, label="deadline"))
    _rows(above, executions)
    _signal(below, integral, axis)
    _power_bar(figure, above, shades)
    _head(figure, f"{len(executions)} jobs", handles)
    return figure


@dataclass(frozen=True, slots=True)
class _Axis:
    """The part of time that is shown, and its unit."""

    begin_s: float
    end_s: float
    unit_s: float

    def box(self, piece: Piece, low: float, high: float) -> Corners:
        """The box of a piece."""
        return style.box_corners(piece.begin_s / self.unit_s, piece.end_s / self.unit_s, low, high)


def _panels(
    above_in: float, begin_s: float, end_s: float, integral: SignalIntegral, *, left: float = 0.075
) -> tuple[Figure, tuple[Axes, Axes], _Axis]:
    """A figure of two panels on one axis of time, the lower one for the signal."""
    margin = 0.015 * (end_s - begin_s)
    unit_s, unit = next((unit_s, unit) for least, unit_s, unit in UNITS if end_s - begin_s >= least)
    axis = _Axis(begin_s - margin, end_s + margin, unit_s)
    height = HEADER_IN + above_in + SIGNAL_IN + 0.12 + FOOT_IN
    hspace = 2.0 * 0.12 / (above_in + SIGNAL_IN)
    figure, [[above], [below]] = style.panels_of(
        style.WIDE_IN, height, 2, 1, margins_in=(HEADER_IN, FOOT_IN), left=left, right=0.985, hspace=hspace,
        sharex=True, gridspec_kw={"height_ratios": [above_in, SIGNAL_IN]},
    )  # fmt: skip
    for axes in (above, below):
        style.plain(axes)
    above.tick_params(axis="x", length=0.0)
    above.set_xlim(axis.begin_s / unit_s, axis.end_s / unit_s)
    since = f", since {integral.begin}" if integral.begin else ""
    below.set_xlabel(f"time ({unit}{since})")
    below.xaxis.set_major_locator(MaxNLocator(nbins=14, steps=[1, 2, 3, 4, 6, 10]))
    return figure, (above, below), axis


def _signal(axes: Axes, integral: SignalIntegral, axis: _Axis, execution: Execution | None = None) -> None:
    """The signal as steps, over shaded stretches in which the job runs."""
    inside = np.concatenate([(axis.begin_s,), integral.edges_in(axis.begin_s, axis.end_s), (axis.end_s,)])
    edges = np.clip(inside, 0.0, integral.end_s)
    edges = np.unique(edges)
    values = integral.at(edges[:-1])
    axes.stairs(values, edges / axis.unit_s, baseline=None, color=style.INK, linewidth=1.1, zorder=3)
    for segment in execution.segments if execution else ():
        axes.axvspan(segment.begin_s / axis.unit_s, segment.end_s / axis.unit_s, color=RUNS_COLOUR, zorder=0.5)
    low, high = min(0.0, float(values.min())), float(values.max())
    axes.set_ylim(low * 1.1, 1.12 * high if high > 0.0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_ylabel(SIGNAL)


def _groups(found: Sequence[Piece], colours: Mapping[str, str]) -> Iterator[tuple[str, str, list[Piece]]]:
    """Label, colour and pieces of each kind of phase that there is: start-up, work by name, the rest."""
    startup = [piece for piece in found if piece.startup]
    if startup:
        yield "start-up", STARTUP_COLOUR, startup
    work = [piece for piece in found if not piece.startup]
    for name, colour in colours.items():
        yield name, colour, [piece for piece in work if piece.name == name]
    rest = [piece for piece in work if piece.name not in colours]
    if rest:
        yield "other phases", OTHER_COLOUR, rest


def _between(phases: Sequence[Phase], low_s: float, high_s: float) -> Iterator[tuple[Phase, float, float]]:
    """The phases that reach into [low, high[, each with the part of it that does."""
    for phase, end_s in zip(phases, accumulate(phase.duration_s for phase in phases), strict=True):
        first_s, last_s = max(low_s, end_s - phase.duration_s), min(high_s, end_s)
        if last_s > first_s:
            yield phase, first_s, last_s


def _rows(axes: Axes, executions: Sequence[Execution]) -> None:
    axes.set_ylim(len(executions) - 0.4, -0.6)
    if len(executions) <= NAMED:
        axes.set_yticks(range(len(executions)), [execution.job.id for execution in executions], fontsize=6.5)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.set_ylabel("job")
    axes.grid(visible=False, axis="y")


def _left(executions: Sequence[Execution]) -> float:
    """Room for the names of the jobs, as a share of the width."""
    longest = max(len(execution.job.id) for execution in executions) if len(executions) <= NAMED else 4
    return min(0.25, max(0.075, 0.025 + 0.0062 * longest))


def _power_bar(figure: Figure, above: Axes, shades: ScalarMappable) -> None:
    """What the shades mean, at the right of the header."""
    height = figure.get_size_inches()[1]
    axes = figure.add_axes((above.get_position().x1 - 0.2, 1.0 - 0.36 / height, 0.2, 0.08 / height))
    bar = figure.colorbar(shades, cax=axes, orientation="horizontal")
    bar.outline.set_linewidth(0.4)
    bar.ax.tick_params(length=2.0, width=0.4, pad=1.0, labelsize=6.5)
    bar.locator = MaxNLocator(nbins=4)
    bar.update_ticks()
    axes.text(-0.03, 0.5, "power (W)", transform=axes.transAxes, ha="right", va="center", fontsize=7.5)


def _head(figure: Figure, title: str, handles: Sequence[Any]) -> None:
    style.headline(figure, title, 0.07)
    style.legend(figure, handles, 0.005, 0.27, columnspacing=1.4, fontsize=7.5)


def _summary(execution: Execution, integral: SignalIntegral) -> str:
    count = len(execution.segments)
    grams = execution.emitted(integral)
    return f"{execution.job.id}: {grams:.4g} g in {count} segment{'s' if count > 1 else ''}"
