"""Measure speed and memory of checkpoint plans: `make bench`.

The first lines are the largest required plans: 200 jobs on 1,000 processors, one checkpoint time, and 20 different
ones, each in a process of its own. Only a fifth of the processors is held by jobs that run without a checkpoint. The
next lines are the growth of time with jobs, processors and checkpoint times; the paper's bounds are J P^3 and J^2 P^3.
The last line is a run of the scheduler. `--quick` leaves out the growth and the scheduler.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from apart import GIB, in_child, least, peak_bytes

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.model.platform import MachineSpec
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, plan

sys.path.append(str(Path(__file__).resolve().parents[1]))

from papers.generators.varcap import VarcapLike, varcap_table

WALK = "walk:range=0.6,mean=0.7,step=0.1,period=3600,seed=1"


@dataclass(frozen=True)
class Case:
    """A plan with its targets of time and memory."""

    name: str
    jobs: int
    processors: int
    times: int
    most_s: float = float("inf")
    most_bytes: float = float("inf")


CASES = (
    Case("constant C", 200, 1000, 1, 2.0, 2 * GIB),
    Case("20 different C", 200, 1000, 20, 30.0, 2 * GIB),
)
BY_JOBS = tuple(Case("constant C", jobs, 1000, 1) for jobs in (50, 100, 200, 400))
BY_PROCESSORS = tuple(Case("constant C", 200, processors, 1) for processors in (250, 1000, 4000, 16_000))
BY_TIMES = tuple(Case("different C", 200, 1000, times) for times in (1, 5, 20))


def instance_of(case: Case) -> Instance:
    """Return an instance of a running job for each checkpoint time, all on a fifth of the processors, and stopped ones.

    The stopped jobs are wide: the best plan checkpoints the running ones for one of them.
    """
    draw = random.Random(7)
    jobs = []
    for number in range(case.jobs):
        checkpoint_s = 60.0 + 7.0 * (number % case.times)
        running = number < case.times
        least = case.processors * 4 // 5
        width = case.processors // (5 * case.times) if running else draw.randint(least + 1, case.processors)
        recovery_s = float(draw.randint(30, 300))
        jobs.append(PeriodJob(str(number), width, checkpoint_s, recovery_s, "running" if running else "stopped"))
    return Instance(3600.0, case.processors, tuple(jobs))


def child(text: str) -> None:
    """Repeat a plan for about a second; print the least time and the memory of the process."""
    case = Case(**json.loads(text))
    instance = instance_of(case)
    plan(Instance(10.0, 3, (PeriodJob("a", 2, 1.0, 1.0, "running"), PeriodJob("b", 3, 1.0, 1.0, "stopped"))))
    least_s, result = least(lambda: plan(instance), 20)
    took = {"s": least_s, "bytes": peak_bytes()}
    if not result.checkpoints_end_s > 0.0:
        raise RuntimeError("the best plan takes no checkpoint: this measures less than it should")
    print(json.dumps(took))


def line(case: Case, figures: dict[str, float]) -> str:
    """Return a line of the table."""
    size = f"J {case.jobs:4d}  P {case.processors:5d}  C {case.times:2d}"
    return f"{size}  {figures['s']:8.3f} s  {figures['bytes'] / 2**20:6.0f} MiB"


def scheduler_line(folder: Path) -> str:
    """Run the scheduler on two weeks of jobs on 96 machines; return a line of its figures."""
    trace = folder / "trace.csv"
    table = varcap_table(VarcapLike(like="mira", jobs=3000, machines=96), seed=0)
    table.to_csv(trace, index=False)
    spec = RunSpec(
        platform=MachineSpec(96, 1),
        workloads=(trace,),
        scheduler="checkpoint",
        options={"checkpoint_s": 120, "recovery_s": 120},
        capacity=WALK,
        config=EngineConfig(energy=False),
        prefix=folder / "run",
    )
    began = time.perf_counter()
    metrics = run(spec).metrics
    seconds = time.perf_counter() - began
    return (
        f"scheduler, {metrics['jobs_total']} jobs on 96 machines: {seconds:.1f} s, "
        f"{metrics['checkpoints']} checkpoints, {metrics['recoveries']} recoveries, goodput {metrics['goodput']:.4f}"
    )


def main() -> int:
    """Print the tables; return 1 if a plan misses its target of time or memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the growth and the scheduler")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return 0
    missed = False
    print("checkpoint plans")
    for case in CASES:
        figures = in_child(__file__, asdict(case))
        late = figures["s"] > case.most_s or figures["bytes"] > case.most_bytes
        missed |= late
        verdict = "MISSED" if late else "met"
        print(f"{case.name:15s} {line(case, figures)}  (to stay under {case.most_s:g} s and 2 GiB: {verdict})")
    if arguments.quick:
        return int(missed)
    for title, cases in (("jobs", BY_JOBS), ("processors", BY_PROCESSORS), ("checkpoint times", BY_TIMES)):
        print(f"growth with {title}")
        for case in cases:
            print(f"  {line(case, in_child(__file__, asdict(case)))}")
    with tempfile.TemporaryDirectory() as folder:
        print(scheduler_line(Path(folder)))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
