"""Why CP-SAT: the same small instances as a time-indexed program for HiGHS. `python bench/optimum_highs.py`.

Needs highspy, which the project does not. A literal per job, mode and slot of the start, slots of 60 s; run times and
submissions are rounded up to slots, so values differ a little from those of `bench/optimum.py --small`.
"""

from __future__ import annotations

import itertools
import time

import highspy
import numpy as np
from optimum import small

from batwatt.planner.bound import Relaxation, open_steps
from batwatt.planner.insertion import Inserter
from batwatt.planner.prices import mode_tables
from batwatt.planner.problem import Problem
from batwatt.planner.search import Search

SLOT = 60_000


def solve(problem: Problem, limit_s: float) -> str:
    """Value, bound and time of HiGHS."""
    relaxation = Relaxation(problem)
    prices = relaxation.improve(1.5, 100).prices
    search = Search(Inserter(problem, mode_tables(problem)), prices, np.random.default_rng(0))
    search.construct(sorted(range(len(problem.tasks)), key=lambda j: problem.tasks[j].modes[0].run_s))
    search.improve(800)
    open_ = open_steps(problem, search.value * 1.05, prices)
    begins, per_step = problem.begins, 300_000 // SLOT
    steps = 2 + max(problem.step_of(begins[t] + problem.tasks[j].modes[m].ticks) + 1
                    for j, row in enumerate(open_) for m, some in enumerate(row) for t in some)  # fmt: skip
    began = time.perf_counter()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", limit_s)
    highs.setOptionValue("mip_rel_gap", 1e-6)
    room: dict[tuple[int, int, int], list] = {}
    objective = []
    for j, task in enumerate(problem.tasks):
        chosen = []
        for m, mode in enumerate(task.modes):
            length = -(-mode.ticks // SLOT)
            for slot in (t * per_step + i for t in open_[j][m] for i in range(per_step)):
                if slot * SLOT < task.submit or slot + length > steps * per_step:
                    continue
                x = highs.addBinary()
                chosen.append(x)
                objective.append((slot * SLOT - task.submit) / 1000.0 / mode.run_s * x)
                for (k, d, n), at in itertools.product(mode.parts, range(slot, slot + length)):
                    room.setdefault((k, d, at), []).append(n * x)
        highs.addConstr(highspy.Highs.qsum(chosen) == 1)
    power: list[list] = [[] for _ in range(steps)]
    for k, kind in enumerate(problem.kinds):
        def integer(most: int = kind.count):
            return highs.addIntegral(lb=0, ub=most)

        states = range(len(kind.powers_w))
        before, asleep = None, None
        for t in range(steps):
            inside, waking = [integer() for _ in states], [integer() for _ in states]
            fall, sleeps = integer(), integer()
            on = highspy.Highs.qsum(inside)
            woken = highspy.Highs.qsum(waking)
            highs.addConstr(on == (before if before is not None else kind.count + 0 * fall) - fall + woken)
            highs.addConstr(sleeps + fall + on == kind.count)
            highs.addConstr(woken <= (asleep if asleep is not None else 0 * fall))
            for d in states:
                highs.addConstr(waking[d] <= inside[d])
                for at in range(t * per_step, (t + 1) * per_step):
                    if runs := room.get((k, d, at)):
                        late = at * SLOT - begins[t] < kind.on_ticks
                        used = highspy.Highs.qsum(runs)
                        highs.addConstr(used <= (inside[d] - waking[d] if late else inside[d] + 0 * fall))
                power[t] += [kind.powers_w[d] * inside[d], (kind.wake_w(d) - kind.powers_w[d]) * waking[d]]
            power[t] += [kind.off_w * fall, kind.sleep_w * sleeps]
            # what fell asleep in this step can wake in the next
            before, asleep = on, sleeps + fall
    for t in range(steps):
        highs.addConstr(highspy.Highs.qsum(power[t]) <= problem.caps_w[t])
    highs.minimize(highspy.Highs.qsum(objective))
    info = highs.getInfo()
    count = len(problem.tasks)
    proven = "proven" if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal else "open"
    return (
        f"{1 + info.objective_function_value / count:.4f}  {1 + info.mip_dual_bound / count:.4f}  {proven}  "
        f"{time.perf_counter() - began:.1f} s, {highs.getNumCol()} columns"
    )


if __name__ == "__main__":
    for run_s, cap_w in ((150.0, 800.0), (200.0, 750.0), (330.0, 650.0)):
        for seed in range(3):
            print(f"runs {run_s:g} s, caps {cap_w:g} W, seed {seed}: {solve(small(seed, run_s, cap_w), 60.0)}", flush=True)
