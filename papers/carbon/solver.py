"""Measure solver time and memory by problem size and job length: the graph of section 5.3.3 of the carbon thesis.

    python -m papers.carbon.solver
        plan each of `CASES` by the thesis's mixed-integer programme (HiGHS) and by the dynamic programme, in processes
        of their own (some three minutes), write data/solver.csv and fill the page

Times are CPU seconds; tables have only quotients of one call, as seconds depend on the machine.
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
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.optimum import plan
from batwatt.units import HOUR_S
from papers.carbon import tables
from papers.carbon.milp import plan_milp

MILP, DYNAMIC = "milp", "dynamic"
PLANNERS: dict[str, Callable[..., Any]] = {MILP: plan_milp, DYNAMIC: plan}
LIMIT_S = 30
"""CPU seconds after which a plan is stopped."""
LEAST_S = 0.2
"""CPU seconds for which the dynamic programme is repeated, as one plan is too short to measure."""
STARTUP, PHASES = 5, 4
SMALL = tuple((slots, work) for slots in (24, 36, 48) for work in (6, 12, 24, 36) if work + STARTUP <= slots)
CASES = (*SMALL, (250, 120), (1000, 400), (5000, 800))
"""Slots and slots of work: the last cases are the thesis's example, one between, and its example that is too large."""
SOLVED = 250
"""Largest number of slots for the solver."""
KIB_PER_MIB = 1024.0
EXACT = 1e-9


@dataclass(frozen=True)
class Taken:
    """CPU seconds of a plan (NaN: stopped), MiB at the peak of its process and before, and its carbon."""

    cpu_s: float
    peak_mib: float
    before_mib: float
    carbon: float


def instance_of(slots: int, work: int) -> tuple[PhaseModel, Timeline, float, float]:
    """Return alternating phases of 60 and 300 W under a signal with days and nights, a slot an hour."""
    rng = np.random.default_rng(1)
    at = np.arange(slots) * (2.0 * np.pi / 24.0)
    integral = Timeline.regular(300.0 + 120.0 * np.sin(at) + rng.uniform(0.0, 60.0, slots), HOUR_S)
    lengths = np.full(PHASES, work // PHASES) + (np.arange(PHASES) < work % PHASES)
    phases = [Phase("work", HOUR_S * float(length), 60.0 + 240.0 * (n % 2)) for n, length in enumerate(lengths)]
    return PhaseModel((Phase("start", HOUR_S * STARTUP, 100.0),), tuple(phases)), integral, 0.0, HOUR_S * slots


def child(method: str, slots: int, work: int) -> None:
    """Print the peak memory in KiB, plan, then print CPU seconds and carbon."""
    planner, instance = PLANNERS[method], instance_of(slots, work)
    # all code is loaded, or compiled, before
    planner(*instance_of(12, PHASES), slot_s=HOUR_S)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began) + LIMIT_S, resource.RLIM_INFINITY))
    count, took_s = 0, 0.0
    while not count or (method == DYNAMIC and took_s < LEAST_S):
        carbon, count = planner(*instance, slot_s=HOUR_S).carbon, count + 1
        took_s = time.process_time() - began
    print(json.dumps([took_s / count, carbon]))


def measured(method: str, slots: int, work: int) -> Taken:
    """Measure a plan in a process of its own. Raises RuntimeError if it fails."""
    command = [sys.executable, "-m", "papers.carbon.solver", method, str(slots), str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tables.HERE.parents[1]) as run:
        lines = run.stdout.read().splitlines() if run.stdout else []
        # the usage of this process alone, also if it was stopped
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if not lines or run.returncode > 0:
        raise RuntimeError(f"{' '.join(command)} failed")
    cpu_s, carbon = json.loads(lines[1]) if len(lines) > 1 else (math.nan, math.nan)
    return Taken(cpu_s, usage.ru_maxrss / KIB_PER_MIB, int(lines[0]) / KIB_PER_MIB, carbon)


Rows = dict[tuple[int, int], tuple[Taken | None, Taken]]
"""Slots and work -> measurements of the solver (None: not tried) and of the dynamic programme."""


def measure_all() -> Rows:
    """Measure all cases. Raises RuntimeError if both planners give plans of different carbon."""
    rows: Rows = {}
    for slots, work in CASES:
        dynamic = measured(DYNAMIC, slots, work)
        proven = measured(MILP, slots, work) if slots <= SOLVED else None
        if proven is not None and abs(proven.carbon - dynamic.carbon) > EXACT * dynamic.carbon:
            raise RuntimeError(f"{slots} slots, {work} of work: {proven.carbon!r} g, but {dynamic.carbon!r}")
        rows[slots, work] = proven, dynamic
    return rows


def solver_table(rows: Rows) -> pd.DataFrame:
    """Return times relative to the first case and between planners; memory of each process and of its plan."""
    first = rows[CASES[0]]
    lines = []
    for (slots, work), (proven, dynamic) in rows.items():
        cells = ["", "", "", ""]
        if proven is not None and first[0] is not None:
            times = _times(proven.cpu_s, first[0].cpu_s), _times(proven.cpu_s, dynamic.cpu_s)
            cells = [*times, *_memory(proven)]
        lines.append([f"{slots:,}", f"{work}", *cells, _times(dynamic.cpu_s, first[1].cpu_s), *_memory(dynamic)])
    memory = ("peak, MiB", "added, MiB")
    heads = ["MILP: time", "over dynamic programme", *(f"MILP: {head}" for head in memory)]
    heads += [f"dynamic programme: {head}" for head in ("time", *memory)]
    return pd.DataFrame(lines, columns=["slots", "work", *heads])


def _times(took_s: float, other_s: float) -> str:
    """Return a quotient to two digits; its lower limit for a stopped plan."""
    quotient = (LIMIT_S if math.isnan(took_s) else took_s) / other_s
    digits = 1 - math.floor(math.log10(quotient))
    return f"{'> ' if math.isnan(took_s) else ''}{round(quotient, digits):,.{max(0, min(1, digits))}f}"


def _memory(taken: Taken) -> list[str]:
    return [f"{taken.peak_mib:.0f}", f"{taken.peak_mib - taken.before_mib:.0f}"]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        tables.write("solver", solver_table(measure_all()))
        tables.refill()
