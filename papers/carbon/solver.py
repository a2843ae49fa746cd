"""Measure solver time and memory by problem size and job length: the graph of section 5.3.3 of the carbon thesis.

    python -m papers.carbon.solver
        plan each of `CASES` by the thesis's mixed-integer programme (HiGHS), by the dynamic programme and in one piece,
        in processes of their own (some three minutes), write data/solver.csv and fill the page

Times are CPU seconds; the file has only quotients of one call, as seconds depend on the machine.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pulp

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, ShiftJob
from batwatt.schedulers.carbon.execution import carry_out
from batwatt.schedulers.carbon.optimum import ShiftPlan, TimeGrid, grid_of, plan, plan_of
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, oracle
from batwatt.units import HOUR_S
from papers.carbon import tables


def plan_milp(
    model: PhaseModel, integral: Timeline, begin_s: float, deadline_s: float, *, slot_s: float | None = None
) -> ShiftPlan:
    """Return the plan of `optimum.plan`, proven optimal by the solver: the reference of the optimum.

    The programme is that of section 5.3.3, Listings 5.8 to 5.11. `work[t]` is 1 if the job works in slot t, `begun[t]`
    if it begins to work (Table 5.1), after a start-up in the slots before (Listing 5.9). The progress counts slots of
    work (Listing 5.10), and two indicators for each phase and slot, switched by a big M, define the phase (Listing
    5.11). A start-up is never cut, so its carbon is a constant of each slot in which work may begin, without a progress
    of its own. Jobs may be suspended anywhere. Raises as `plan` does, and RuntimeError if the solver has no proof.
    """
    grid = grid_of(model, integral, begin_s, deadline_s, slot_s)
    problem, work = _formulated(grid)
    # with the usual tolerance of 1e-6 and a big M the solver "proves" schedules that are not optimal
    exact = {"gapRel": 0.0, "gapAbs": 0.0, "mip_feasibility_tolerance": 1e-9}
    problem.solve(pulp.HiGHS(msg=False, threads=1, **exact))
    if problem.sol_status != pulp.LpSolutionOptimal:
        raise RuntimeError(f"the solver has no proof: {pulp.LpStatus[problem.status]}")
    runs = [variable.value() > 0.5 for variable in work]
    segments, worked, slot = [], 0, 0
    for on, group in groupby(runs):
        length = len(list(group))
        if on:
            segments.append(grid.segment(slot - grid.startup, worked, worked + length))
            worked += length
        slot += length
    return plan_of(grid, tuple(segments), integral)


def _formulated(grid: TimeGrid) -> tuple[pulp.LpProblem, list[Any]]:
    slots, startup, length = grid.slots, grid.startup, len(grid.work_w)
    problem = pulp.LpProblem("phase_aware", pulp.LpMinimize)

    def binaries(name: str) -> list[Any]:
        return [problem.add_variable(f"{name}_{t}", cat=pulp.LpBinary) for t in range(slots)]

    work, begun = binaries("work"), binaries("begun")
    problem += pulp.lpSum(work) == length
    for t in range(slots):
        before = work[t - 1] if t else 0
        problem += begun[t] >= work[t] - before
        problem += begun[t] <= work[t]
        problem += begun[t] <= 1 - before
        # a start-up fills the slots before work begins, without work in them
        starting = pulp.lpSum(begun[t + 1 : t + startup + 1])
        problem += work[t] + starting <= 1
    for t in range(min(startup, slots)):
        problem += begun[t] == 0
    progress = [problem.add_variable(f"progress_{t}", 0, length) for t in range(slots + 1)]
    problem += progress[0] == 0
    for t in range(slots):
        problem += progress[t + 1] == progress[t] + work[t]
    costs = [begun[t] * float(grid.starts[t - startup]) for t in range(startup, slots)]
    costs += _by_phase(problem, grid, work, progress)
    problem.setObjective(pulp.lpSum(costs))
    return problem, work


def _by_phase(problem: pulp.LpProblem, grid: TimeGrid, work: list[Any], progress: list[Any]) -> list[Any]:
    """Return the emissions of each phase in each slot if the phase is active in it (Equation 5.1)."""
    # the big M: the largest progress, as solvers prefer a small value
    most = len(grid.work_w) + 1
    costs, first = [], 0
    for number, (watts, group) in enumerate(groupby(grid.work_w.tolist())):
        last = first + len(list(group)) - 1
        for t in range(grid.slots):
            names = (f"{name}_{number}_{t}" for name in ("above", "below", "active"))
            above, below, active = (problem.add_variable(name, cat=pulp.LpBinary) for name in names)
            problem += progress[t] - first + 1 <= most * above
            problem += first - progress[t] <= most * (1 - above)
            problem += last - progress[t] + 1 <= most * below
            problem += progress[t] - last <= most * (1 - below)
            problem += active >= above + below + work[t] - 2
            for part in (above, below, work[t]):
                problem += active <= part
            costs.append(active * float(watts * grid.cost[t]))
        first = last + 1
    return costs


MILP, DYNAMIC, ONE_PIECE = "milp", "dynamic", "one piece"
LIMIT_S = 30
"""CPU seconds after which a plan is stopped."""
LEAST_S = 0.2
"""CPU seconds for which the others are repeated, as one plan of theirs is too short to measure."""
STARTUP, PHASES = 5, 4
SMALL = tuple((slots, work) for slots in (24, 36, 48) for work in (6, 12, 24, 36) if work + STARTUP <= slots)
CASES = (*SMALL, (250, 120), (1000, 400), (5000, 800))
"""Slots and slots of work: the last cases are the thesis's example, one between, and its example that is too large."""
SOLVED = 250
"""Largest number of slots for the solver."""
KIB_PER_MIB = 1024.0
EXACT = 1e-9


def instance_of(slots: int, work: int) -> tuple[PhaseModel, Timeline, float, float]:
    """Return alternating phases of 60 and 300 W under a signal with days and nights, a slot an hour."""
    rng = np.random.default_rng(1)
    at = np.arange(slots) * (2.0 * np.pi / 24.0)
    integral = Timeline.regular(300.0 + 120.0 * np.sin(at) + rng.uniform(0.0, 60.0, slots), HOUR_S)
    lengths = np.full(PHASES, work // PHASES) + (np.arange(PHASES) < work % PHASES)
    phases = [Phase("work", HOUR_S * float(length), 60.0 + 240.0 * (n % 2)) for n, length in enumerate(lengths)]
    return PhaseModel((Phase("start", HOUR_S * STARTUP, 100.0),), tuple(phases)), integral, 0.0, HOUR_S * slots


def in_one_piece(model: PhaseModel, integral: Timeline, begin_s: float, deadline_s: float) -> float:
    """Return the carbon in g of the uninterrupted oracle search."""
    job, window = ShiftJob("job", begin_s, model), StartWindow(begin_s, deadline_s - begin_s - model.length_s)
    return carry_out(job, oracle(job, window, integral, PolicyInputs())).emitted(integral)


PLANNERS: dict[str, Callable[..., float]] = {
    MILP: lambda *instance: plan_milp(*instance, slot_s=HOUR_S).carbon,
    DYNAMIC: lambda *instance: plan(*instance, slot_s=HOUR_S).carbon,
    ONE_PIECE: in_one_piece,
}


def child(method: str, slots: int, work: int) -> None:
    """Print the peak memory in KiB, plan, then print CPU seconds and carbon."""
    planner, instance = PLANNERS[method], instance_of(slots, work)
    # all code is loaded, or compiled, before
    planner(*instance_of(12, PHASES))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began) + LIMIT_S, resource.RLIM_INFINITY))
    count, took_s = 0, 0.0
    while not count or (method != MILP and took_s < LEAST_S):
        carbon, count = planner(*instance), count + 1
        took_s = time.process_time() - began
    print(json.dumps([took_s / count, carbon]))


def measured(method: str, slots: int, work: int) -> tuple[float, float, float]:
    """Return CPU s (NaN: stopped), added MiB and carbon of a plan in a process of its own. Raises RuntimeError."""
    command = [sys.executable, "-m", "papers.carbon.solver", method, str(slots), str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tables.HERE.parents[1]) as run:
        lines = run.stdout.read().splitlines() if run.stdout else []
        # the usage of this process alone, also if it was stopped
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if not lines or run.returncode > 0:
        raise RuntimeError(f"{' '.join(command)} failed")
    cpu_s, carbon = json.loads(lines[1]) if len(lines) > 1 else (math.nan, math.nan)
    return cpu_s, (usage.ru_maxrss - int(lines[0])) / KIB_PER_MIB, carbon


def measure_all() -> pd.DataFrame:
    """Return time (over that of the dynamic programme in the first case) and added memory, by case and planner.

    A plan that was stopped has the limit as its time. Raises RuntimeError if both planners of pieces differ in carbon.
    """
    rows = []
    for slots, work in CASES:
        planners = [DYNAMIC, ONE_PIECE, *([MILP] if slots <= SOLVED else [])]
        taken = {name: measured(name, slots, work) for name in planners}
        proven, dynamic = taken.get(MILP, taken[DYNAMIC])[2], taken[DYNAMIC][2]
        if abs(proven - dynamic) > EXACT * dynamic:
            raise RuntimeError(f"{slots} slots, {work} of work: {proven!r} g, but {dynamic!r}")
        for name, (cpu_s, added_mib, _) in taken.items():
            stopped = math.isnan(cpu_s)
            rows.append((slots, work, name, float(LIMIT_S) if stopped else cpu_s, stopped, added_mib))
    frame = pd.DataFrame(rows, columns=["slots", "work", "planner", "times", "stopped", "added_mib"])
    frame["times"] /= frame["times"].iloc[0]
    return frame.round({"times": 3, "added_mib": 0})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        tables.write("solver", measure_all())
        tables.refill()
