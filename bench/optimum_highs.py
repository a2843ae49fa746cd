"""Solve the small instances of CP-SAT as a time-indexed program with HiGHS. `python bench/optimum_highs.py`.

HiGHS is that of OR-Tools (highspy in the same process clashes with it). The program has a literal per job, mode and
slot of the start, slots of 60 s; run times and submissions are rounded up to slots, so values differ a little from
those of `bench/optimum.py --small`.
"""

from __future__ import annotations

import argparse
import itertools
import time

from optimum import SMALL, small
from ortools.linear_solver.python import model_builder

from batwatt.schedulers.planned.problem import Problem
from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.search import Search

SLOT = 60_000
PER_STEP = 300_000 // SLOT


def solve(problem: Problem, limit_s: float) -> str:
    """Return value, bound and time of HiGHS."""
    relaxation = Relaxation(problem, PER_STEP)
    relaxation.improve(1.5, 400)
    search = Search(problem, 0)
    search.set_prices(relaxation.rates)
    search.construct(sorted(range(len(problem.tasks)), key=lambda j: problem.tasks[j].modes[0].run_s))
    search.improve(8000)
    open_ = relaxation.open_steps(search.value * 1.05)
    begins = problem.begins
    steps = 2 + max(
        problem.step_of(begins[t] + problem.tasks[j].modes[m].ticks) + 1
        for j, row in enumerate(open_)
        for m, some in enumerate(row)
        for t in some
    )
    began = time.perf_counter()
    model = model_builder.Model()
    room: dict[tuple[int, int, int], list] = {}
    objective = []
    for j, task in enumerate(problem.tasks):
        starts = []
        for m, mode in enumerate(task.modes):
            length = -(-mode.ticks // SLOT)
            for slot in (t * PER_STEP + i for t in open_[j][m] for i in range(PER_STEP)):
                if slot * SLOT < task.submit or slot + length > steps * PER_STEP:
                    continue
                x = model.new_bool_var("x")
                starts.append(x)
                objective.append((slot * SLOT - task.submit) / 1000.0 / mode.run_s * x)
                for (k, d, n), at in itertools.product(mode.parts, range(slot, slot + length)):
                    room.setdefault((k, d, at), []).append(n * x)
        model.add(sum(starts) == 1)
    power: list[list] = [[] for _ in range(steps)]
    for k, kind in enumerate(problem.kinds):
        states = range(len(kind.powers_w))
        before, asleep = kind.count, 0
        for t in range(steps):
            inside = [model.new_int_var(0, kind.count, "n") for _ in states]
            waking = [model.new_int_var(0, kind.count, "u") for _ in states]
            fall, sleeps = model.new_int_var(0, kind.count, "f"), model.new_int_var(0, kind.count, "a")
            on = sum(inside)
            model.add(on == before - fall + sum(waking))
            model.add(sleeps + fall + on == kind.count)
            model.add(sum(waking) <= asleep)
            for d in states:
                model.add(waking[d] <= inside[d])
                for at in range(t * PER_STEP, (t + 1) * PER_STEP):
                    if runs := room.get((k, d, at)):
                        late = at * SLOT - begins[t] < kind.on_ticks
                        model.add(sum(runs) <= (inside[d] - waking[d] if late else inside[d]))
                power[t] += [kind.powers_w[d] * inside[d], (kind.wake_w(d) - kind.powers_w[d]) * waking[d]]
            power[t] += [kind.off_w * fall, kind.sleep_w * sleeps]
            # servers that fall asleep in this step can wake in the next
            before, asleep = on, sleeps + fall
    for t in range(steps):
        model.add(sum(power[t]) <= problem.caps_w[t])
    model.minimize(sum(objective))
    solver = model_builder.Solver("highs")
    solver.set_time_limit_in_seconds(limit_s)
    status = solver.solve(model)
    count = len(problem.tasks)
    proven = "proven" if status == model_builder.SolveStatus.OPTIMAL else "open"
    feasible = status in (model_builder.SolveStatus.OPTIMAL, model_builder.SolveStatus.FEASIBLE)
    value = f"{1 + solver.objective_value / count:.4f}" if feasible else "-"
    bound = f"{1 + solver.best_objective_bound / count:.4f}" if feasible else "-"
    return f"{value}  {bound}  {proven}  {time.perf_counter() - began:.1f} s, {model.num_variables} columns"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=60.0, help="in s")
    arguments = parser.parse_args()
    for run_s, cap_w, seed in SMALL:
        figures = solve(small(seed, run_s, cap_w), arguments.time_limit)
        print(f"runs {run_s:g} s, caps {cap_w:g} W, seed {seed}: {figures}", flush=True)


if __name__ == "__main__":
    main()
