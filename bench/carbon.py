"""Measure speed and memory of carbon plans: `make bench`.

The first lines are the thesis's examples (300 slots, start-up 20, work 100: "within minutes" with Gurobi; 5,000 slots,
work 800: "barely within 30 minutes" at a gap of 98 %), then a job by the second: a window of 24 h, 3 h of work, 5 min
of start-up; each in a process of its own, with its code compiled before.
`python -m papers.carbon.solver` compares with a solver.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass

import numpy as np
from apart import GIB, in_child, least, peak_bytes

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.optimum import plan

PHASES = 6


@dataclass(frozen=True)
class Case:
    """A plan of `slots` slots of 1 s, under a signal by the slot or, with `hourly`, by the hour."""

    name: str
    slots: int
    startup: int
    work: int
    most_s: float
    hourly: bool = False


CASES = (
    Case("a tiny one", 30, 3, 12, 0.005),
    Case("the thesis's small one", 300, 20, 100, 0.005),
    Case("the thesis's large one", 5000, 20, 800, 0.25),
    Case("a day by the second", 86_400, 300, 10_800, 5.0, hourly=True),
)


def instance_of(case: Case) -> tuple[PhaseModel, Timeline, float, float]:
    """Return a job of a few phases between 60 and 300 W, a signal with days and nights, and the window in s."""
    rng = np.random.default_rng(1)
    step_s = 3600.0 if case.hourly else 1.0
    count = int(case.slots / step_s)
    at = np.arange(count) * (2.0 * np.pi / (24 if case.hourly else 250))
    course = Timeline.regular(300.0 + 120.0 * np.sin(at) + rng.uniform(0.0, 60.0, count), step_s)
    cuts = np.sort(rng.choice(np.arange(1, case.work), PHASES - 1, replace=False))
    lengths = np.diff(cuts, prepend=0, append=case.work)
    work = [Phase("work", float(length), float(rng.uniform(60.0, 300.0))) for length in lengths]
    model = PhaseModel((Phase("start", float(case.startup), 100.0),), tuple(work))
    return model, course, 0.0, float(case.slots)


def child(text: str) -> None:
    """Repeat a plan for about a second; print the least time, the memory and the starts."""
    case = Case(**json.loads(text))
    instance = instance_of(case)
    plan(*instance_of(CASES[0]), slot_s=1.0)
    least_s, result = least(lambda: plan(*instance, slot_s=1.0), 50)
    if result.rounded:
        raise RuntimeError("the plan is not exact")
    print(json.dumps({"s": least_s, "bytes": peak_bytes(), "starts": len(result.segments)}))


def main() -> int:
    """Print a table; return 1 if a plan misses its target of time or memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return 0
    missed = False
    print("carbon plans")
    for case in CASES:
        figures = in_child(__file__, asdict(case))
        late = figures["s"] > case.most_s or figures["bytes"] > 2 * GIB
        missed |= late
        size = f"T {case.slots:6d}  S {case.startup:4d}  W {case.work:6d}"
        took = f"{1e3 * figures['s']:9.2f} ms  {figures['bytes'] / 2**20:5.0f} MiB  {figures['starts']} starts"
        verdict = "MISSED" if late else "met"
        print(f"{case.name:24s} {size}  {took}  (to stay under {1e3 * case.most_s:g} ms and 2 GiB: {verdict})")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
