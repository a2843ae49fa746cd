"""Draw the figures 5.2 to 5.6 of the carbon thesis: the schedule above the signal, of the example of section 5.3.3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from batwatt.model.work import Array, PhaseModel
from batwatt.results.drawing import INK, PALETTE, save, styled, unboxed
from batwatt.schedulers.carbon.execution import Execution
from papers.carbon import examples

SIGNAL = Path(__file__).resolve().parents[2] / "power_profiles" / "carbon" / "carbon-hourly.csv"
"""A shipped signal; the German one is not."""
STARTUP, LOW, HIGH = PALETTE[1], PALETTE[5], PALETTE[2]
PROGRESS = "5.5: its progress"
PANELS = {
    "figure-1.svg": (("5.2: slots of least carbon first", None), ("5.3: optimum without start-ups", examples.FREE)),
    "figure-2.svg": (("5.4: start-up of 20 slots", examples.STARTED), (PROGRESS, examples.STARTED)),
    "figure-3.svg": (("5.6: a phase of 100 W, then one of 200 W", examples.PHASED),),
}
"""Figures of the thesis by file."""


def boxes(axes: Axes, execution: Execution) -> None:
    """Draw the slots in which a job runs, by the power of its phase."""
    startups, works = examples.slots_of(execution)
    phased = len(execution.job.model.work) > 1
    half = len(works) // 2 if phased else len(works)
    for slots, colour in ((startups, STARTUP), (works[:half], LOW), (works[half:], HIGH)):
        pieces = np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1)
        spans = [(piece[0], len(piece)) for piece in pieces if len(piece)]
        axes.broken_barh(spans, (0.0, 1.0), color=colour, linewidth=0.0)


def progress(axes: Axes, execution: Execution) -> None:
    """Draw the progress of the work, and that of a start-up while it lasts."""
    startups, works = examples.slots_of(execution)
    begin, end = startups[0], startups[-1] + 1
    axes.plot([begin, end, end], [0.0, examples.STARTUP / examples.WORK, 0.0], color=STARTUP, linewidth=1.6)
    times = [0, *works, works[-1] + 1, examples.SLOTS]
    axes.plot(times, np.minimum([0, *range(len(works) + 1), len(works)], examples.WORK) / examples.WORK, color=LOW)


def schedules(slots: Array, drawn: Sequence[tuple[str, PhaseModel | None]]) -> Figure:
    """Draw schedules, each above the signal."""
    figure = Figure(figsize=(4.8, 0.6 + 1.7 * len(drawn)), layout="constrained")
    panels = figure.subplots(2 * len(drawn), 1, sharex=True, height_ratios=[1.0, 1.2] * len(drawn))
    for (title, model), upper, lower in zip(drawn, panels[::2], panels[1::2], strict=True):
        execution = examples.lowest_slots(slots) if model is None else examples.optimum(slots, model)
        (progress if title == PROGRESS else boxes)(upper, execution)
        upper.set(ylim=(0.0, 1.05), yticks=[])
        upper.set_title(title, fontsize=9, loc="left", pad=3)
        lower.plot(np.arange(len(slots)) + 0.5, slots, color=INK, linewidth=0.9)
        lower.set(xlim=(0, examples.SLOTS), ylim=(0, 1.1 * slots.max()))
        lower.set_ylabel("g/kWh", fontsize=9)
        for axes in (upper, lower):
            unboxed(axes)
    panels[-1].set_xlabel("slot (h)", fontsize=9)
    kinds = (("start-up", STARTUP), ("work, 100 W", LOW), ("work, 200 W", HIGH))
    handles = [Patch(color=colour, label=name) for name, colour in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def draw(folder: Path) -> None:
    """Write the figures."""
    slots = examples.read_slots(SIGNAL)[: examples.SLOTS]
    with styled():
        for name, drawn in PANELS.items():
            save(schedules(slots, drawn), folder / name)
