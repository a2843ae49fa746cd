"""A Gantt chart of a shifted job over the signal: start-ups, work and its power (Figure 5.3 of the thesis)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
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
SIGNAL_IN, POWER_IN, HEADER_IN, FOOT_IN = 1.15, 1.75, 0.62, 0.45
NAMES = 7
"""Phases of more names than this share their colours: the rest is `other phases`."""
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


def plot_gantt(execution: Execution, integral: SignalIntegral, path: Path | str, deadline_s: float) -> Path:
    """Draw a job over the signal; returns the path, which ends in `.png`, `.svg` or `.pdf`. Raises InputError."""
    return style.draw(path, lambda: job_figure(execution, integral, deadline_s))


def job_figure(execution: Execution, integral: SignalIntegral, deadline_s: float) -> Figure:
    """One job: its power by phase above, the signal below, shaded where the job runs."""
    until_s = max(execution.end_s, deadline_s)
    figure, (above, below), axis = _panels(execution.job.arrival_s, until_s, integral)
    found = list(pieces(execution))
    names = list(dict.fromkeys(piece.name for piece in found if not piece.startup))
    colours = dict(zip(names, style.PALETTE[: NAMES - 1 if len(names) > NAMES else NAMES], strict=False))
    top_w = max(piece.watts for piece in found)
    scale, unit = (style.KW, "kW") if top_w >= 10.0 * style.KW else (1.0, "W")
    handles: list[Any] = []
    for number, (label, colour, chosen) in enumerate(_groups(found, colours)):
        hatch = "///" if label == "start-up" else ""
        corners = [axis.box(piece, 0.0, piece.watts / scale) for piece in chosen]
        look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "linewidth": 0.0, "edgecolor": "white"}
        above.add_collection(PolyCollection(corners, zorder=2.0 + 0.01 * number, **look))
        handles.append(Patch(label=label, **look))
    above.set_ylim(0.0, 1.12 * max(top_w / scale, 1e-9))
    above.set_ylabel(f"power ({unit})")
    _signal(below, integral, axis, execution)
    times: list[tuple[str, float, Any]] = [("arrival", execution.job.arrival_s, ":"), ("deadline", deadline_s, "--")]
    for word, time_s, dash in times:
        for axes in (above, below):
            axes.axvline(time_s / axis.unit_s, color=style.CAP, linewidth=1.0, linestyle=dash, zorder=4)
        handles.append(Line2D([], [], color=style.CAP, linewidth=1.0, linestyle=dash, label=word))
    _head(figure, _summary(execution, integral), handles)
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


def _panels(begin_s: float, end_s: float, integral: SignalIntegral) -> tuple[Figure, tuple[Axes, Axes], _Axis]:
    """A figure of two panels on one axis of time, the lower one for the signal."""
    margin = 0.015 * (end_s - begin_s)
    unit_s, unit = next((unit_s, unit) for least, unit_s, unit in UNITS if end_s - begin_s >= least)
    axis = _Axis(begin_s - margin, end_s + margin, unit_s)
    height = HEADER_IN + POWER_IN + SIGNAL_IN + 0.12 + FOOT_IN
    hspace = 2.0 * 0.12 / (POWER_IN + SIGNAL_IN)
    figure, [[above], [below]] = style.panels_of(
        style.WIDE_IN, height, 2, 1, margins_in=(HEADER_IN, FOOT_IN), left=0.075, right=0.985, hspace=hspace,
        sharex=True, gridspec_kw={"height_ratios": [POWER_IN, SIGNAL_IN]},
    )  # fmt: skip
    for axes in (above, below):
        style.plain(axes)
    above.tick_params(axis="x", length=0.0)
    above.set_xlim(axis.begin_s / unit_s, axis.end_s / unit_s)
    since = f", since {integral.begin}" if integral.begin else ""
    below.set_xlabel(f"time ({unit}{since})")
    below.xaxis.set_major_locator(MaxNLocator(nbins=14, steps=[1, 2, 3, 4, 6, 10]))
    return figure, (above, below), axis


def _signal(axes: Axes, integral: SignalIntegral, axis: _Axis, execution: Execution) -> None:
    """The signal as steps, over shaded stretches in which the job runs."""
    inside = np.concatenate([(axis.begin_s,), integral.edges_in(axis.begin_s, axis.end_s), (axis.end_s,)])
    edges = np.clip(inside, 0.0, integral.end_s)
    edges = np.unique(edges)
    values = integral.at(edges[:-1])
    axes.stairs(values, edges / axis.unit_s, baseline=None, color=style.INK, linewidth=1.1, zorder=3)
    for segment in execution.segments:
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


def _head(figure: Figure, title: str, handles: Sequence[Any]) -> None:
    style.headline(figure, title, 0.07)
    style.legend(figure, handles, 0.005, 0.27, columnspacing=1.4, fontsize=7.5)


def _summary(execution: Execution, integral: SignalIntegral) -> str:
    count = len(execution.segments)
    grams = execution.emitted(integral)
    return f"{execution.job.id}: {grams:.4g} g in {count} segment{'s' if count > 1 else ''}"
