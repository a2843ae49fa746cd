"""Measure the growth of CPU time with the length of the queue: `make bench`.

All jobs of a case are submitted at 0 s, on 128 machines of one core. A run is measured in a process of its own, after a
small run that compiles and imports. The target: the last doubling of the number of jobs takes at most 2.3 times as much
CPU time. `--only TEXT` measures the cases whose name has the text, `--profile JOBS` profiles them.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apart import form, in_child

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.model.platform import MachineSpec
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

SIZES = (1_000, 2_000, 4_000, 8_000)
MOST = 2.3
"""Target: ratio of CPU times of the last two sizes."""
MACHINES = 128
WALK = "walk:range=0.6,mean=0.7,step=0.1,period=3600,seed=1"
CHECKPOINTS = {"checkpoint_s": 60.0, "recovery_s": 60.0}
ON_KILL = {"name": "checkpoint", **CHECKPOINTS}


@dataclass(frozen=True)
class Case:
    """A scheduler, its options and the capacity that it follows."""

    name: str
    scheduler: str
    options: dict[str, Any]
    capacity: str | None = None


CASES = (
    Case("adaptive, checkpoints", "adaptive", CHECKPOINTS),
    Case("adaptive, checkpoints, walk", "adaptive", CHECKPOINTS, WALK),
    Case("varcap, preemption", "varcap", {"preemption": "slowdown", "victim": ON_KILL}, WALK),
    Case("checkpoint", "checkpoint", CHECKPOINTS, WALK),
    Case("powercap, wfp", "powercap", {"order": "wfp", "response": "none"}),
    Case("powercap, slowdown", "powercap", {"order": "slowdown", "response": "none"}),
)


def write_burst(path: Path, count: int) -> None:
    """Write a workload of `count` jobs at 0 s: narrow and short ones are frequent, as in logs of clusters."""
    draw = random.Random(count)
    jobs, profiles = [], {}
    for number in range(count):
        length_s = round(min(86_400.0, 60.0 + draw.lognormvariate(7.0, 1.2)))
        hosts = 2 ** draw.choices(range(7), (32, 16, 16, 12, 12, 8, 4))[0]
        walltime_s = round(length_s * draw.uniform(1.1, 3.0))
        profiles[f"d{length_s}"] = {"type": "delay", "delay": length_s}
        jobs.append({"id": str(number), "subtime": 0, "res": hosts, "walltime": walltime_s, "profile": f"d{length_s}"})
    path.write_text(json.dumps({"nb_res": MACHINES, "jobs": jobs, "profiles": profiles}), encoding="utf-8")


def run_case(case: Case, count: int, folder: Path, prefix: Path) -> float:
    """Run a case; return its CPU time in s."""
    workload = folder / f"{count}.json"
    write_burst(workload, count)
    spec = RunSpec(
        platform=MachineSpec(MACHINES, 1),
        workloads=(workload,),
        scheduler=case.scheduler,
        options=case.options,
        capacity=case.capacity,
        config=EngineConfig(energy=False),
        prefix=prefix,
    )
    began = time.process_time()
    metrics = run(spec).metrics
    cpu_s = time.process_time() - began
    if metrics["jobs_finished"] + metrics["jobs_rejected"] != count:
        raise RuntimeError(f"{case.name}: {metrics}")
    return cpu_s


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="measure the cases whose name has the text")
    parser.add_argument("--profile", metavar="JOBS", type=int, help="profile the cases at this size")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.child:
            label, count, prefix = json.loads(arguments.child)
            case = next(case for case in CASES if case.name == label)
            run_case(case, 20, folder, folder / "warm")
            print(json.dumps({"cpu_s": run_case(case, count, folder, Path(prefix))}))
            return 0
        if arguments.profile:
            for case in cases:
                run_case(case, 20, folder, folder / "warm")
                with cProfile.Profile() as profile:
                    run_case(case, arguments.profile, folder, folder / "out")
                print(case.name)
                pstats.Stats(profile).sort_stats("tottime").print_stats(20)
            return 0
        print(form())
        print(f"{'CPU s of a burst of':>28}" + "".join(f"{count:>8,}" for count in SIZES) + "  last doubling")
        missed = False
        for case in cases:
            print(f"{case.name:>28}", end="", flush=True)
            times_s = []
            for count in SIZES:
                times_s.append(in_child(__file__, (case.name, count, str(folder / "out")))["cpu_s"])
                print(f"{times_s[-1]:>8.1f}", end="", flush=True)
            ratio = times_s[-1] / times_s[-2]
            print(f"  x{ratio:.2f} {'met' if ratio <= MOST else 'MISSED'}", flush=True)
            missed |= ratio > MOST
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
