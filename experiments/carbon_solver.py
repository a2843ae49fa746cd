"""The graph that section 5.3.3 of the carbon thesis asks for: solver time and memory by problem size and job length.

python experiments/carbon_solver.py
    plans each of `CASES` by the thesis's mixed-integer programme (HiGHS) and by the dynamic programme, in processes of
    their own, writes docs/results/carbon/solver.md and .png, and puts all tables of docs/results/carbon on the page
    (`carbon_tables.py --check` checks them)
Times are CPU seconds, and only quotients of those of one call are shown: seconds say little of other machines.
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
from pathlib import Path
from typing import Any

import doc_pages
import numpy as np
from carbon_tables import ALL, DOCS, FOLDER, PAGES, SOLVER, tables_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from varcap_tables import markdown, write

from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results import style
from batwatt.systems.carbon.milp import plan_milp
from batwatt.systems.carbon.optimum import plan
from batwatt.units import HOUR_S

MILP, DYNAMIC = "milp", "dynamic"
PLANNERS: dict[str, Callable[..., Any]] = {MILP: plan_milp, DYNAMIC: plan}
LIMIT_S = 30
"""CPU seconds after which a plan is stopped."""
LEAST_S = 0.2
"""The dynamic programme is repeated for so many CPU seconds: one plan takes too little to be seen."""
STARTUP, PHASES = 5, 4
SMALL = tuple((slots, work) for slots in (24, 36, 48) for work in (6, 12, 24, 36) if work + STARTUP <= slots)
CASES = (*SMALL, (250, 120), (1000, 400), (5000, 800))
"""Slots and those of work: the last ones are the thesis's example, one between, and what it found to be too large."""
SOLVED = 250
"""The solver is not tried with more slots."""
KIB_PER_MIB = 1024.0
EXACT = 1e-9
PICTURE = "solver.png"
HEIGHT_IN = 2.9


@dataclass(frozen=True)
class Taken:
    """What a plan took: CPU seconds (NaN: stopped), MiB at the peak of its process and before, and its carbon."""

    cpu_s: float
    peak_mib: float
    before_mib: float
    carbon: float


def instance_of(slots: int, work: int) -> tuple[PhaseModel, SignalIntegral, float, float]:
    """Phases of 60 and 300 W in turn under a signal with days and nights, a slot an hour."""
    rng = np.random.default_rng(1)
    at = np.arange(slots) * (2.0 * np.pi / 24.0)
    integral = SignalIntegral.regular(300.0 + 120.0 * np.sin(at) + rng.uniform(0.0, 60.0, slots), HOUR_S)
    lengths = np.full(PHASES, work // PHASES) + (np.arange(PHASES) < work % PHASES)
    phases = [Phase("work", HOUR_S * float(length), 60.0 + 240.0 * (n % 2)) for n, length in enumerate(lengths)]
    return PhaseModel((Phase("start", HOUR_S * STARTUP, 100.0),), tuple(phases)), integral, 0.0, HOUR_S * slots


def child(method: str, slots: int, work: int) -> None:
    """Print the peak of this process in KiB before the plan; after it, if it is not stopped, CPU seconds and carbon."""
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
    """A plan in a process of its own."""
    command = [sys.executable, __file__, "--child", method, str(slots), str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        lines = run.stdout.read().splitlines() if run.stdout else []
        # which tells of this process alone, also if it was stopped
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if not lines or run.returncode > 0:
        raise RuntimeError(f"{' '.join(command)} failed")
    cpu_s, carbon = json.loads(lines[1]) if len(lines) > 1 else (math.nan, math.nan)
    return Taken(cpu_s, usage.ru_maxrss / KIB_PER_MIB, int(lines[0]) / KIB_PER_MIB, carbon)


Rows = dict[tuple[int, int], tuple[Taken | None, Taken]]
"""Slots and work -> what the solver (None: not tried) and the dynamic programme took."""


def measure_all() -> Rows:
    """All cases. Raises RuntimeError if both found plans of different carbon."""
    rows: Rows = {}
    for slots, work in CASES:
        found = measured(DYNAMIC, slots, work)
        proven = measured(MILP, slots, work) if slots <= SOLVED else None
        print(f"{slots} slots, {work} of work: {proven}, {found}", file=sys.stderr)
        if proven is not None and abs(proven.carbon - found.carbon) > EXACT * found.carbon:
            raise RuntimeError(f"{slots} slots, {work} of work: {proven.carbon!r} g, but {found.carbon!r}")
        rows[slots, work] = proven, found
    return rows


def solver_table(rows: Rows) -> str:
    """Times relative to the first case's, and to each other; memory of each process and what its plan added."""
    first = rows[CASES[0]]
    lines = []
    for (slots, work), (proven, found) in rows.items():
        cells = ["", "", "", ""]
        if proven is not None and first[0] is not None:
            times = _times(proven.cpu_s, first[0].cpu_s), _times(proven.cpu_s, found.cpu_s)
            cells = [*times, *_memory(proven)]
        lines.append([f"{slots:,}", f"{work}", *cells, _times(found.cpu_s, first[1].cpu_s), *_memory(found)])
    heads = ["slots", "work", "MILP: time", "over dynamic programme", "peak, MiB", "added, MiB"]
    heads += ["dynamic programme: time", "peak, MiB", "added, MiB"]
    return markdown(heads, lines)


def _times(took_s: float, other_s: float) -> str:
    """A quotient to two digits; of a plan that was stopped, what it is more than."""
    quotient = (LIMIT_S if math.isnan(took_s) else took_s) / other_s
    digits = 1 - math.floor(math.log10(quotient))
    return f"{'> ' if math.isnan(took_s) else ''}{round(quotient, digits):,.{max(0, min(1, digits))}f}"


def _memory(taken: Taken) -> list[str]:
    return [f"{taken.peak_mib:.0f}", f"{taken.peak_mib - taken.before_mib:.0f}"]


def solver_figure(rows: Rows) -> Figure:
    """Time and memory of the solver by slots, a line for each length of the job, of what it was not stopped at."""
    figure, [[left, right]] = style.panels_of(
        style.WIDE_IN, HEIGHT_IN, 1, 2, margins_in=(0.42, 0.48), left=0.075, right=0.985, wspace=0.22
    )
    solved = [
        (slots, work, taken) for (slots, work), (taken, _) in rows.items() if taken and not math.isnan(taken.cpu_s)
    ]
    for number, length in enumerate(sorted({work for _, work, _ in solved})):
        points = [(slots, taken) for slots, work, taken in solved if work == length]
        _line(left, number, length, [(slots, taken.cpu_s / solved[0][2].cpu_s) for slots, taken in points])
        _line(right, number, length, [(slots, taken.peak_mib - taken.before_mib) for slots, taken in points])
    left.set_yscale("log")
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.set_ylabel("CPU time / that of the first case")
    right.set_ylabel("memory that the plan added (MiB)")
    for axes in (left, right):
        style.plain(axes)
        axes.set_xlabel("slots of the window")
        axes.set_xticks(sorted({slots for slots, _, _ in solved}))
    left.legend(fontsize=7.0, frameon=False)
    style.headline(
        figure, "HiGHS on the thesis's programme: time and memory by problem size and length of the job", 0.05
    )
    return figure


def _line(axes: Axes, number: int, length: int, points: list[tuple[int, float]]) -> None:
    colour, marker = style.PALETTE[number], style.MARKERS[number][0]
    label = f"{length} slots of work"
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.0, marker=marker, markersize=4.5, label=label)


def make(docs: Path) -> int:
    """Write the table and the picture, and all tables of docs/results/carbon to the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, ALL)
    rows = measure_all()
    write(docs / FOLDER / f"{SOLVER}.md", solver_table(rows) + "\n")
    style.draw(docs / FOLDER / PICTURE, lambda: solver_figure(rows))
    doc_pages.write(pages, tables_of(docs))
    return 0


main = doc_pages.Script("carbon_solver", DOCS, PAGES, ALL, (), make, tables_of).main

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        sys.exit(main())
