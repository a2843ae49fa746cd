"""Plan random periods and sequences, for the statements that no run of an engine decides.

    python -m papers.checkpoint.periods
        write data/periods.csv, sequences.csv and figure1.csv (some four minutes)

`periods.csv`: small periods of each kind by seed; the plan of each, compared with the best of every schedule on a grid
of seconds (`grid.py`). `sequences.csv`: ten jobs without an end on walks of the capacity, by the threshold of yields.
`figure1.csv`: Figure 1 with drawn times, as the paper does not give its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.checks import rng_of
from batwatt.inputs.character import Variation, vary
from batwatt.schedulers.checkpoint.files import read_sequence
from batwatt.schedulers.checkpoint.period_plan import STATES, Instance, PeriodJob, PeriodPlan, plan, solve, subset_sum
from batwatt.schedulers.checkpoint.sequence import CapacitySequence, follow
from papers.checkpoint.grid import schedules

DATA = Path(__file__).resolve().parent / "data"
FIGURE1 = DATA.parents[2] / "workloads" / "periods" / "figure1.json"
INSTANCES, SEEDS = 100, range(1, 11)
"""Instances of each kind and seed."""
PROCESSORS, JOBS, RECOVERY_S = 8, 5, 2
"""Numbers of processors and jobs, and the longest recovery in s."""
Kind = tuple[str, int, int]
"""Times of checkpoints (`none`: also no recoveries; `equal` or `different`), the period and the longest one in s."""
KINDS: tuple[Kind, ...] = (
    ("none", 10, 0),
    *(("equal", 10, 4), ("equal", 20, 4)),
    *(("different", 10, 2), ("different", 10, 4), ("different", 20, 2), ("different", 20, 4), ("different", 20, 8)),
    ("different", 40, 8),
)
WALKS, DRAWS = range(1, 21), range(1, 21)
MACHINES, HORIZON_S = 32, 172_800.0
ENDLESS = (16, 13, 11, 9, 7, 6, 5, 3, 3, 2)
"""Processors of jobs without an end, as in jobs-endless.csv."""
YIELDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0)
"""Thresholds of the yield; all jobs cannot have more than some 0.3, the mean capacity over their processors."""


def instances(kind: Kind, count: int, seed: int) -> Iterator[Instance]:
    """Draw instances: jobs of 1 to all processors in any state, at least two that run without a checkpoint."""
    costs, period_s, longest_s = kind
    rng = rng_of(seed, kind)
    drawn = 0
    while drawn < count:
        checkpoints = rng.integers(min(1, longest_s), longest_s + 1, JOBS)
        if costs == "equal":
            checkpoints[:] = checkpoints[0]
        recoveries = rng.integers(0, RECOVERY_S + 1, JOBS) * (costs != "none")
        widths = rng.integers(1, PROCESSORS + 1, JOBS)
        states = rng.integers(0, 3, JOBS)
        jobs = tuple(
            PeriodJob(str(i), int(widths[i]), float(checkpoints[i]), float(recoveries[i]), STATES[states[i]])
            for i in range(JOBS)
        )
        running = [job for job in jobs if job.state == "running"]
        if len(running) >= 2 and sum(job.processors for job in running) <= PROCESSORS:
            drawn += 1
            yield Instance(float(period_s), PROCESSORS, jobs)


def feasible(period: PeriodPlan) -> bool:
    """Return whether the processors suffice at each begin of a phase."""
    phases = [(act.job.processors, phase) for act in period.acts for phase in act.phases]
    held = (sum(p for p, one in phases if one.begin_s <= begun.begin_s < one.end_s) for _, begun in phases)
    return all(processors <= period.instance.processors for processors in held)


def compared(instance: Instance) -> dict[str, float]:
    """Return shares of instances, losses and early work in %, and points of goodput by which the plan leads."""
    period = plan(instance)
    work, most_processor_s = period.work_processor_s, instance.most_processor_s
    best = schedules(instance, lower_bound=int(work))
    subset = subset_sum(instance).work_processor_s
    # without checkpoints after T_n: there is one phase
    unsaved = solve(instance, 0.0).knapsack.solve().worth
    at_once = schedules(instance, lower_bound=int(unsaved), at_once=True)
    early = sum(act.job.processors * act.work_s for act in period.acts if act.decision == "checkpoint")
    return {
        "optimal_percent": 100.0 * (work == best),
        "subset_optimal_percent": 100.0 * (subset == best),
        "feasible_percent": 100.0 * feasible(period),
        "loss_percent": 100.0 * (1.0 - work / best) if best else 0.0,
        "over_best_points": 100.0 * (work - best) / most_processor_s,
        "over_subset_points": 100.0 * (work - subset) / most_processor_s,
        "over_at_once_points": 100.0 * (work - at_once) / most_processor_s,
        "by_later_points": 100.0 * (work - unsaved) / most_processor_s,
        "early_percent": 100.0 * early / most_processor_s,
    }


def periods(count: int = INSTANCES, kinds: tuple[Kind, ...] = KINDS, seeds: range = SEEDS) -> pd.DataFrame:
    """Return the means of each kind and seed."""
    rows = []
    for kind in kinds:
        for seed in seeds:
            values = pd.DataFrame([compared(instance) for instance in instances(kind, count, seed)])
            rows.append({**dict(zip(("costs", "period_s", "longest_s"), kind, strict=True)), "seed": seed,
                         **values.mean()})  # fmt: skip
    return pd.DataFrame(rows).round(6)


def endless(walk: int) -> CapacitySequence:
    """Return the capacities of a walk of two days, and jobs that have never run."""
    capacities = tuple(round(MACHINES * share) for share in vary(Variation(seed=walk), HORIZON_S).values)
    jobs = tuple(PeriodJob(str(i), width, 60.0, 60.0, "stopped") for i, width in enumerate(ENDLESS))
    k = int(abs(np.diff(capacities)).max())
    return CapacitySequence(3600.0, capacities, k, jobs, MACHINES, frozenset(job.id for job in jobs))


def sequences() -> pd.DataFrame:
    """Return goodput, least yield and the number of jobs that never work, by walk and threshold of yields."""
    rows = []
    for walk, min_yield in product(WALKS, YIELDS):
        followed = follow(endless(walk), min_yield=min_yield)
        never = sum(job_yield == 0.0 for job_yield in followed.yields.values())
        rows.append((walk, min_yield, 100.0 * followed.goodput, followed.min_yield, never))
    return pd.DataFrame(rows, columns=["walk", "asked_yield", "goodput_percent", "least_yield", "never"]).round(6)


def drawn(seed: int) -> CapacitySequence:
    """Return Figure 1 with periods of 10 min to 2 h, checkpoints and recoveries of 10 s to an eighth of the period."""
    sequence, rng = read_sequence(FIGURE1)[0], rng_of(seed, "figure 1")
    period_s = float(rng.integers(600, 7201))
    times = np.rint(10.0 * (period_s / 80.0) ** rng.random((len(sequence.jobs), 2)))
    jobs = [replace(job, checkpoint_s=c, recovery_s=r) for job, (c, r) in zip(sequence.jobs, times, strict=True)]
    return replace(sequence, period_s=period_s, jobs=tuple(jobs))


def examples() -> pd.DataFrame:
    """Return idle time, checkpoints after a change and recoveries after these, of Figure 1 by draw of its times."""
    rows = []
    for seed in DRAWS:
        plans = [period.plan for period in follow(drawn(seed)).periods]
        acts = [act for period in plans for act in period.acts]
        held = sum(act.job.processors * (phase.end_s - phase.begin_s) for act in acts for phase in act.phases)
        idle = sum(period.instance.most_processor_s for period in plans) - held
        decisions = [act.decision for act in acts]
        rows.append((seed, idle, decisions.count("checkpoint"), decisions.count("recover-later")))
    return pd.DataFrame(rows, columns=["draw", "idle_processor_s", "checkpoints", "recoveries"]).round(6)


def main() -> int:
    """Write the three files."""
    for name, frame in (("periods", periods()), ("sequences", sequences()), ("figure1", examples())):
        frame.to_csv(DATA / f"{name}.csv", index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
