"""Pictures of plans between changes of the number of processors (Figure 1 of the checkpoint paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from batwatt.results import style
from batwatt.systems.checkpoint.figures.bands import Placed, Stay, Stretch, arrange, stays
from batwatt.systems.checkpoint.instance import JobPhase, Kind, PeriodPlan
from batwatt.systems.checkpoint.sequence import Followed

HEIGHT_IN = 4.2
SHAPES = 20_000
"""With more boxes than this those of a vector format become an image."""
NAMED = 60
"""Of more residences than this no names are written."""
IN_HOURS_S = 3.0 * style.HOUR_S
"""Longer pictures have hours on their axis, shorter ones seconds."""

LABELLED = 16
"""Of more periods than this the numbers of processors are not written."""

COLOURS: dict[Kind, str] = {"work": "#8fc3ea", "checkpoint": "#e0604c", "recovery": "#4fb286"}
_HATCHES: dict[Kind, str] = {"work": "", "checkpoint": "////", "recovery": "...."}
_IDLE, _ABSENT = "#d4d8dc", "#eef0f2"


def plot_plan(plan: PeriodPlan, path: Path | str) -> Path:
    """Draw a plan; return the path, which ends in `.png`, `.svg` or `.pdf`. Raises InputError."""
    instance = plan.instance
    stretch = Stretch(0.0, instance.period_s, instance.processors)
    all_stays = [stay for act in plan.acts for stay in stays(act.job.id, act.job.processors, act.phases)]
    idle = [act.job.id for act in plan.acts if not act.phases]
    note = shorten(f"without processors: {', '.join(idle)}", 70, placeholder=" ...") if idle else ""
    return plot_periods([stretch], all_stays, path, f"goodput {plan.goodput:.4f} ({plan.method})", note)


def plot_followed(followed: Followed, path: Path | str) -> Path:
    """Draw the periods of a capacity sequence one after another; return the path. Raises InputError."""
    title = f"goodput {followed.goodput:.4f}, least yield {followed.min_yield:.4f}"
    return plot_periods(*shown(followed), path, title)


def shown(followed: Followed) -> tuple[list[Stretch], list[Stay]]:
    """Return the periods of a capacity sequence, and the stays of its jobs on processors."""
    sequence = followed.sequence
    phases: dict[str, list[JobPhase]] = {job.id: [] for job in sequence.jobs}
    for each in followed.periods:
        for act in each.plan.acts:
            phases[act.job.id] += [
                replace(phase, begin_s=each.begin_s + phase.begin_s, end_s=each.begin_s + phase.end_s)
                for phase in act.phases
            ]
    stretches = [
        Stretch(each.begin_s, each.begin_s + sequence.period_s, each.plan.instance.processors)
        for each in followed.periods
    ]
    return stretches, [stay for job in sequence.jobs for stay in stays(job.id, job.processors, phases[job.id])]


def plot_periods(
    stretches: Sequence[Stretch], all_stays: Sequence[Stay], path: Path | str, title: str, note: str = ""
) -> Path:
    """Draw stays of jobs over stretches that follow each other; return the path. Raises InputError, ValueError."""
    return style.draw(path, lambda: periods_figure(stretches, arrange(stretches, all_stays), title, note))


def periods_figure(stretches: Sequence[Stretch], placed: Sequence[Placed], title: str, note: str = "") -> Figure:
    """Return a figure of processors stacked over time: phases of jobs, idle processors, absent processors."""
    end_s, most = stretches[-1].end_s, max(each.processors for each in stretches)
    unit_s, unit = (style.HOUR_S, "h") if end_s > IN_HOURS_S else (1.0, "s")
    figure = style.new_figure(style.WIDE_IN, HEIGHT_IN)
    axes = figure.add_axes((0.06, 0.105, 0.92, 0.725))
    axes.set_xlim(stretches[0].begin_s / unit_s, end_s / unit_s)
    axes.set_ylim(0.0, most * 1.02)
    _stretches(axes, stretches, most, unit_s)
    _boxes(axes, placed, unit_s)
    if len(placed) <= NAMED:
        _names(figure, axes, placed, unit_s)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("processors")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    style.unboxed(axes)
    figure.text(0.98, 0.02, note, ha="right", va="bottom", fontsize=7.5)
    style.headline(figure, title, 0.015 * HEIGHT_IN, size=10)
    handles = _legend(placed, any(each.processors < most for each in stretches))
    style.legend(figure, handles, 0.99, 0.035 * HEIGHT_IN, 7, columnspacing=1.4, fontsize=7.5)
    return figure


def _stretches(axes: Axes, stretches: Sequence[Stretch], most: int, unit_s: float) -> None:
    """Draw processors in grey, absent ones hatched, the capacity as a line, and T_n above."""
    for number, each in enumerate(stretches):
        left, width = each.begin_s / unit_s, (each.end_s - each.begin_s) / unit_s
        axes.add_patch(Rectangle((left, 0.0), width, each.processors, facecolor=_IDLE, linewidth=0.0, zorder=1))
        if each.processors < most:
            axes.add_patch(
                Rectangle((left, each.processors), width, most - each.processors, facecolor="white",
                          edgecolor=_ABSENT, hatch="xx", linewidth=0.0, zorder=1)
            )  # fmt: skip
        axes.axvline(left, color=style.CAP, linewidth=0.8, linestyle=(0, (4, 2)), zorder=4)
        if len(stretches) <= LABELLED:
            name = f"T{number}" if len(stretches) > 1 else "Tn"
            axes.annotate(
                f"{name}: {each.processors}", (left, 1.0), (2.0 if number else 0.0, 3.0), annotation_clip=False,
                xycoords=axes.get_xaxis_transform(), textcoords="offset points", fontsize=7.5, color=style.INK,
            )  # fmt: skip
    edges = [stretches[0].begin_s, *(each.end_s for each in stretches)]
    axes.stairs(
        [each.processors for each in stretches], [edge / unit_s for edge in edges],
        color=style.CAP, linewidth=1.4, baseline=None, zorder=5,
    )  # fmt: skip


def _boxes(axes: Axes, placed: Sequence[Placed], unit_s: float) -> None:
    """Draw a box for each phase and each group of processors, and one around the whole stay."""
    count = sum(len(each.bands) * len(each.stay.phases) for each in placed)
    pictured, thin = count > SHAPES, count > 10 * NAMED

    def add(corners: list[Any], **look: Any) -> None:
        axes.add_collection(PolyCollection(corners, rasterized=pictured, **look))

    for kind, colour in COLOURS.items():
        corners = [
            style.box_corners(phase.begin_s / unit_s, phase.end_s / unit_s, *band)
            for each in placed for band in each.bands for phase in each.stay.phases if phase.kind == kind
        ]  # fmt: skip
        hatch = {} if thin else {"hatch": _HATCHES[kind]}
        add(corners, facecolors=colour, edgecolors="white", linewidths=0.0, zorder=2, **hatch)
    around = [style.box_corners(each.stay.begin_s / unit_s, each.stay.end_s / unit_s, *band)
              for each in placed for band in each.bands]  # fmt: skip
    add(around, facecolors="none", edgecolors=style.INK, linewidths=0.2 if thin else 0.7, zorder=3)


def _names(figure: Figure, axes: Axes, placed: Sequence[Placed], unit_s: float) -> None:
    """Write the job's name in each stretch of its work (if a stay has none, in its longest phase), where it fits."""
    box = axes.get_position()
    width_pt, height_pt = (72.0 * inches for inches in figure.get_size_inches() * (box.width, box.height))
    (left, right), most = axes.get_xlim(), axes.get_ylim()[1]
    for each in placed:
        phases = [phase for phase in each.stay.phases if phase.kind == "work"]
        low, high = max(each.bands, key=lambda band: band[1] - band[0])
        for phase in phases or [max(each.stay.phases, key=lambda phase: phase.end_s - phase.begin_s)]:
            begin, end = phase.begin_s / unit_s, phase.end_s / unit_s
            wide_pt, tall_pt = (end - begin) / (right - left) * width_pt, (high - low) / most * height_pt
            size = min(9.0, 0.8 * tall_pt, (wide_pt - 2.0) / (0.65 * len(each.stay.job)))
            if size >= 4.0:
                axes.text(
                    (begin + end) / 2.0, (low + high) / 2.0, each.stay.job, ha="center", va="center_baseline",
                    fontsize=size, color=style.CAP, zorder=6,
                )  # fmt: skip


def _legend(placed: Sequence[Placed], away: bool) -> list[Any]:
    seen = {phase.kind for each in placed for phase in each.stay.phases}
    handles: list[Any] = [
        Patch(facecolor=colour, edgecolor="white", hatch=_HATCHES[kind], linewidth=0.0, label=kind)
        for kind, colour in COLOURS.items() if kind in seen
    ]  # fmt: skip
    handles.append(Patch(facecolor=_IDLE, label="on, no work"))
    if away:
        handles.append(Patch(facecolor="white", edgecolor="#c9ced3", hatch="xxx", linewidth=0.5, label="not there"))
    return [*handles, Line2D([], [], color=style.CAP, linewidth=1.4, label="processors")]
