"""Plan random periods and sequences, for the statements that no run of an engine decides.

    python -m papers.checkpoint.periods
        write data/periods.csv, sequences.csv and figure1.csv (some four minutes)

`periods.csv`: small periods of each kind by seed; the plan of each, compared with the best of every schedule on a grid
of seconds (`schedules`). `sequences.csv`: ten jobs without an end on walks of the capacity, by the threshold of yields.
`figure1.csv`: Figure 1 with drawn times, as the paper does not give its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from papers.pages import write

JobState = tuple[str, int]
"""State of a job between two steps, and its remaining steps; off and clean are saved, dirty is not."""
Step = tuple[int, int, JobState]
"""Processors of a job in a step, those with useful work, and its state after the step."""
OFF, CLEAN, DIRTY = ("off", 0), ("clean", 0), ("dirty", 0)


def schedules(instance: Instance, lower_bound: int = 0, at_once: bool = False) -> int:
    """Return the largest useful work in processor s of all schedules in whole seconds; independent of the planner.

    Any job may begin a checkpoint, stop or recover at any step, any number of times, but no work is ever lost (rules:
    docs/explanation/checkpoint.md). Jobs have no end and keep their work at the end of the period; all times are in
    whole s. The search drops schedules that cannot reach `lower_bound`, in processor s; with `at_once` also those in
    which a checkpoint begins after the first second. Raises ValueError if no schedule is left.
    """
    moves = [_moves(job) for job in instance.jobs]
    most = _fill([job.processors for job in instance.jobs], instance.processors)
    begins = {"running": DIRTY, "stopped": OFF}
    best = {tuple(begins.get(job.state, _after("recovering", _whole(job.recovering_s))) for job in instance.jobs): 0}
    for left in reversed(range(_whole(instance.period_s))):
        least = lower_bound - left * most
        following: dict[tuple[JobState, ...], int] = {}
        for states, work in best.items():
            options = [move[state] for move, state in zip(moves, states, strict=True)]
            for after, gain in _together(options, instance.processors):
                if following.get(after, least - 1) < work + gain:
                    following[after] = work + gain
        best = following
        if at_once:
            moves = [{**move, DIRTY: [step for step in move[DIRTY] if step[2] == DIRTY]} for move in moves]
    if not best:
        raise ValueError(f"no schedule keeps all work{f' and does {lower_bound} processor s' if lower_bound else ''}")
    return max(best.values())


def _fill(widths: Iterable[int], processors: int) -> int:
    """Return the largest number of processors that jobs can hold at once."""
    sums = {0}
    for width in widths:
        sums |= {some + width for some in sums}
    return max(some for some in sums if some <= processors)


def _together(options: list[list[Step]], free: int) -> Iterator[tuple[tuple[JobState, ...], int]]:
    """Yield the transitions of all jobs in one step: their states after it, and the processors that work."""
    if not options:
        yield (), 0
        return
    for held, working, state in options[0]:
        if held <= free:
            for states, gain in _together(options[1:], free - held):
                yield (state, *states), working + gain


def _moves(job: PeriodJob) -> dict[JobState, list[Step]]:
    """Return the transitions of a job in a step, by its state."""
    p = job.processors
    checkpoint, recovery = _whole(job.checkpoint_s), _whole(job.recovery_s)
    # work, or hold the processors in the same state, or release them
    clean = [(p, p, DIRTY), (p, 0, CLEAN), (0, 0, OFF)]
    off = [(0, 0, OFF), (p, 0, _after("recovering", recovery - 1))] if recovery else clean
    dirty = [(p, p, DIRTY), (p, 0, DIRTY)]
    dirty += [(p, 0, _after("checkpointing", checkpoint - 1))] if checkpoint else clean
    moves = {OFF: off, CLEAN: sorted({*clean, *off}), DIRTY: sorted(set(dirty))}
    for left in range(1, max(recovery, _whole(job.recovering_s)) + 1):
        moves["recovering", left] = [(p, 0, _after("recovering", left - 1)), (0, 0, OFF)]
    for left in range(1, checkpoint):
        moves["checkpointing", left] = [(p, 0, _after("checkpointing", left - 1))]
    return moves


def _after(name: str, left: int) -> JobState:
    return (name, left) if left else CLEAN


def _whole(time_s: float) -> int:
    if time_s != int(time_s):
        raise ValueError(f"times must be whole seconds on the grid, got {time_s!r}")
    return int(time_s)


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


if __name__ == "__main__":
    for name, frame in (("periods", periods()), ("sequences", sequences()), ("figure1", examples())):
        write(DATA / f"{name}.csv", frame)
