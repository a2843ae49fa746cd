"""Plan and draw the running example of section 5.3.3 of the carbon thesis: the figures 5.2 to 5.6, and its statements.

    python -m papers.carbon.examples DE-2024-hourly.csv
        write data/examples.csv (a row for each window of 300 h of the signal) and fill the page

A deadline of 300 slots of an hour, 100 slots of work, a start-up of 20. The thesis gives neither signal nor powers:
here windows of the German series; 100 W, in phases 50 slots of 100 W, then 50 of 200 W; start-ups at 100 W.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from batwatt.inputs.series import read_on_clock
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, Phase, PhaseModel, ShiftJob, constant
from batwatt.results.drawing import INK, PALETTE, save, styled, unboxed
from batwatt.schedulers.carbon.execution import Execution, carry_out
from batwatt.schedulers.carbon.optimum import plan
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, oracle, suspend_resume
from batwatt.units import HOUR_S, J_PER_KWH

SLOTS, WORK, STARTUP, SHORT = 300, 100, 20, 150
"""Slots until the deadline, of work, of a start-up, and until a shorter deadline."""
DAY = 24
LOW_W, HIGH_W = 100.0, 200.0
START = (Phase("start-up", STARTUP * HOUR_S, LOW_W),)
FREE = constant(WORK * HOUR_S, LOW_W)
STARTED = PhaseModel(START, FREE.work)
PHASED = PhaseModel(START, tuple(Phase(f"{watts:g} W", WORK / 2 * HOUR_S, watts) for watts in (LOW_W, HIGH_W)))
RANDOM, EXACT_G = 1000, 1e-9
"""Random schedules of an example; carbon in g that rounding may change."""


def read_slots(path: Path) -> Array:
    """Return the values of a signal by the hour."""
    return np.array(read_on_clock(SeriesSource(path, quantity="carbon", gaps="line")).values)


def lowest_slots(slots: Array, deadline: int = SLOTS) -> Execution:
    """Return the job without a start-up in the slots of least carbon until a deadline (Figure 5.2)."""
    job = ShiftJob("job", 0.0, FREE)
    window = StartWindow(0.0, (deadline - WORK) * HOUR_S)
    return carry_out(job, suspend_resume(job, window, Timeline.regular(slots.tolist(), HOUR_S), PolicyInputs()))


def optimum(slots: Array, model: PhaseModel) -> Execution:
    """Return the job in the schedule of least carbon (Figures 5.3 to 5.6)."""
    integral = Timeline.regular(slots.tolist(), HOUR_S)
    return Execution(ShiftJob("job", 0.0, model), plan(model, integral, 0.0, SLOTS * HOUR_S, slot_s=HOUR_S).segments)


def slots_of(execution: Execution) -> tuple[Array, Array]:
    """Return the slots of start-ups, and those of work by progress."""
    startups: list[float] = []
    works: list[float] = []
    for segment in execution.segments:
        first, began, last = (
            round(time_s / HOUR_S) for time_s in (segment.begin_s, segment.begin_s + segment.startup_s, segment.end_s)
        )
        startups += range(first, began)
        works += range(began, last)
    return np.array(startups, dtype=int), np.array(works, dtype=int)


def figures_of(slots: Array, rng: np.random.Generator) -> dict[str, float]:
    """Return the quantities of the statements on the example under one signal, g/kWh by slot."""
    integral = Timeline.regular(slots.tolist(), HOUR_S)
    lowest, free, started, phased = lowest_slots(slots), *(optimum(slots, model) for model in (FREE, STARTED, PHASED))
    _, cheapest = slots_of(free)
    startups, works = slots_of(started)
    _, steps = slots_of(phased)
    low, high = slots[steps[: WORK // 2]], slots[steps[WORK // 2 :]]
    days = [len(np.unique(slots_of(lowest_slots(slots, deadline))[1] // DAY)) for deadline in (SLOTS, SHORT)]
    costs = slots * LOW_W * HOUR_S / J_PER_KWH
    others = [costs[rng.choice(SLOTS, WORK, replace=False)].sum() for _ in range(RANDOM)]
    blocks = np.convolve(slots, np.ones(WORK + STARTUP), "valid") / (WORK + STARTUP)
    own = slots[np.concatenate([startups, works])].mean()
    other_blocks = np.delete(blocks, startups[0])
    best = np.convolve(costs, np.ones(WORK), "valid").min()
    window = StartWindow(0.0, (SLOTS - WORK - STARTUP) * HOUR_S)
    [(begin_s, _)] = oracle(ShiftJob("job", 0.0, PHASED), window, integral, PolicyInputs())
    watts = np.concatenate([np.full(STARTUP + WORK // 2, LOW_W), np.full(WORK // 2, HIGH_W)])
    # carbon by the hour of the start, with every tenth of an hour between
    fine = np.repeat(slots, 10)
    starts = np.convolve(fine, np.repeat(watts, 10)[::-1], "valid")
    return {
        "lowest_percent": 100.0 * float((slots[cheapest] <= np.sort(slots)[WORK - 1]).mean()),
        "equal_percent": 100.0 * (abs(free.emitted(integral) - lowest.emitted(integral)) < EXACT_G),
        "resumed_g": round(free.emitted(integral) - float(costs[cheapest].sum()), 6),
        "other_g": min(*others, best) - lowest.emitted(integral),
        "lowest_blocks": len(lowest.segments),
        "more_days": days[0] - days[1],
        "shortest_percent": 100.0
        * min(segment.end_s - segment.begin_s for segment in lowest.segments)
        / (WORK * HOUR_S),
        "free_blocks": len(free.segments),
        "started_blocks": len(started.segments),
        "phased_blocks": len(phased.segments),
        "other_block": float(other_blocks.min() - own),
        "low_less_high": float(low.mean() - high.mean()),
        "low_less_all": float(low.mean() - slots[steps].mean()),
        "best_start_percent": 100.0 * (starts[round(begin_s / HOUR_S * 10)] <= starts.min() * (1.0 + 1e-12)),
    }


def examples(signal: Array) -> pd.DataFrame:
    """Return a row for each whole window of a signal."""
    rng = np.random.default_rng(1)
    begins = range(0, len(signal) - SLOTS + 1, SLOTS)
    rows = [{"window": begin // SLOTS} | figures_of(signal[begin : begin + SLOTS], rng) for begin in begins]
    return pd.DataFrame(rows).round(6)


SIGNAL = Path(__file__).resolve().parents[2] / "power_profiles" / "carbon" / "carbon-hourly.csv"
"""A shipped signal; the German one is not."""
STARTING, LOW, HIGH = PALETTE[1], PALETTE[5], PALETTE[2]
PROGRESS = "5.5: its progress"
PANELS = {
    "figure-1.svg": (("5.2: slots of least carbon first", None), ("5.3: optimum without start-ups", FREE)),
    "figure-2.svg": (("5.4: start-up of 20 slots", STARTED), (PROGRESS, STARTED)),
    "figure-3.svg": (("5.6: a phase of 100 W, then one of 200 W", PHASED),),
}
"""Figures of the thesis by file."""


def boxes(axes: Axes, execution: Execution) -> None:
    """Draw the slots in which a job runs, by the power of its phase."""
    startups, works = slots_of(execution)
    phased = len(execution.job.model.work) > 1
    half = len(works) // 2 if phased else len(works)
    for slots, colour in ((startups, STARTING), (works[:half], LOW), (works[half:], HIGH)):
        pieces = np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1)
        spans = [(piece[0], len(piece)) for piece in pieces if len(piece)]
        axes.broken_barh(spans, (0.0, 1.0), color=colour, linewidth=0.0)


def progress(axes: Axes, execution: Execution) -> None:
    """Draw the progress of the work, and that of a start-up while it lasts."""
    startups, works = slots_of(execution)
    begin, end = startups[0], startups[-1] + 1
    axes.plot([begin, end, end], [0.0, STARTUP / WORK, 0.0], color=STARTING, linewidth=1.6)
    times = [0, *works, works[-1] + 1, SLOTS]
    axes.plot(times, np.minimum([0, *range(len(works) + 1), len(works)], WORK) / WORK, color=LOW)


def schedules(slots: Array, drawn: Sequence[tuple[str, PhaseModel | None]]) -> Figure:
    """Draw schedules, each above the signal."""
    figure = Figure(figsize=(4.8, 0.6 + 1.7 * len(drawn)), layout="constrained")
    panels = figure.subplots(2 * len(drawn), 1, sharex=True, height_ratios=[1.0, 1.2] * len(drawn))
    for (title, model), upper, lower in zip(drawn, panels[::2], panels[1::2], strict=True):
        execution = lowest_slots(slots) if model is None else optimum(slots, model)
        (progress if title == PROGRESS else boxes)(upper, execution)
        upper.set(ylim=(0.0, 1.05), yticks=[])
        upper.set_title(title, fontsize=9, loc="left", pad=3)
        lower.plot(np.arange(len(slots)) + 0.5, slots, color=INK, linewidth=0.9)
        lower.set(xlim=(0, SLOTS), ylim=(0, 1.1 * slots.max()))
        lower.set_ylabel("g/kWh", fontsize=9)
        for axes in (upper, lower):
            unboxed(axes)
    panels[-1].set_xlabel("slot (h)", fontsize=9)
    kinds = (("start-up", STARTING), ("work, 100 W", LOW), ("work, 200 W", HIGH))
    handles = [Patch(color=colour, label=name) for name, colour in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def draw(folder: Path) -> None:
    """Write the figures."""
    slots = read_slots(SIGNAL)[:SLOTS]
    with styled():
        for name, drawn in PANELS.items():
            save(schedules(slots, drawn), folder / name)


if __name__ == "__main__":
    from papers.carbon import tables

    tables.write("examples", examples(read_slots(Path(sys.argv[1]))))
    tables.refill()
