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

import numpy as np
import pandas as pd

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, ShiftJob
from batwatt.schedulers.carbon.execution import carry_out
from batwatt.schedulers.carbon.optimum import plan
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, oracle
from batwatt.units import HOUR_S
from papers.carbon import tables
from papers.carbon.milp import plan_milp

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
