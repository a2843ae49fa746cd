"""Plan the running example of section 5.3.3 of the carbon thesis: the figures 5.2 to 5.6, and the statements on them.

    python -m papers.carbon.examples DE-2024-hourly.csv
        write data/examples.csv (a row for each window of 300 h of the signal) and fill the page

A deadline of 300 slots of an hour, 100 slots of work, a start-up of 20. The thesis gives neither signal nor powers:
here windows of the German series; 100 W, in phases 50 slots of 100 W, then 50 of 200 W; start-ups at 100 W.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.inputs.series import read_on_clock
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, Phase, PhaseModel, ShiftJob, constant
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


if __name__ == "__main__":
    from papers.carbon import tables

    tables.write("examples", examples(read_slots(Path(sys.argv[1]))))
    tables.refill()
