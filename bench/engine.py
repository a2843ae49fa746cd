"""Measure speed and memory of the embedded engine with EASY backfilling: `make bench`.

128 hosts, half of the jobs delays and half parallel tasks, widths log-uniform from 1 to 64, Poisson arrivals at a
load. Each measure has a process of its own, for its peak memory; times are of the simulation, from the first message to
the record, without reading the workload or writing files, the best of 7 repetitions (2 for 100,000 jobs).
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from apart import in_child, peak_bytes, verdict

from batwatt.batsim.adapters import simulate
from batwatt.engine.core import Engine
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.easy import Easy

HOSTS = 128
SPEED = 1e9


def workload(jobs: int, load: float, seed: int = 0) -> Workload:
    """Return `jobs` jobs at a mean load of `load`."""
    rng = np.random.default_rng(seed)
    width = np.exp2(rng.uniform(0, 6.999, jobs)).astype(int).clip(1, 64)
    run = rng.lognormal(6.0, 1.2, jobs).clip(5, 50_000)
    gap = (width * run).sum() / (HOSTS * load) / jobs
    submit = np.cumsum(rng.exponential(gap, jobs))
    factor = rng.uniform(1.1, 4.0, jobs)
    data: dict = {"nb_res": HOSTS, "jobs": [], "profiles": {}}
    for i in range(jobs):
        seconds = round(float(run[i]), 3)
        data["jobs"].append(
            {
                "id": i,
                "subtime": round(float(submit[i]), 3),
                "res": int(width[i]),
                "walltime": round(seconds * float(factor[i]), 3),
                "profile": f"p{i}",
            }
        )
        data["profiles"][f"p{i}"] = (
            {"type": "delay", "delay": seconds}
            if i % 2
            else {"type": "parallel_homogeneous", "cpu": seconds * SPEED, "com": 0}
        )
    return parse_workload(data, "w0", "bench")


def machine() -> Platform:
    """Return a platform of equal hosts with watts."""
    state = PState(SPEED, 30.0, 30.0, 100.0)
    return Platform(tuple(Host(i, f"h{i:03d}", (state,), has_power=True) for i in range(HOSTS)))


def measure(jobs: int, load: float, order: str) -> dict[str, float]:
    """Measure jobs per second and peak memory of this process."""
    platform, work = machine(), workload(jobs, load)
    best = float("inf")
    for _ in range(7 if jobs <= 10_000 else 2):
        scheduler = Easy({"order": order, "backfilling": "easy"})
        engine = Engine(platform, [work])
        began = time.perf_counter()
        record = simulate(engine, scheduler)
        best = min(best, time.perf_counter() - began)
        assert len(record.jobs) == jobs
    return {"seconds": best, "jobs_per_s": jobs / best, "peak_mib": peak_bytes() / 2**20}


def shares() -> None:
    """Print the share of time of each module under cProfile, which overrates calls."""
    platform, work = machine(), workload(10_000, 0.75)
    scheduler = Easy({"order": "fcfs", "backfilling": "easy"})
    engine = Engine(platform, [work])
    profile = cProfile.Profile(builtins=False)
    profile.runcall(simulate, engine, scheduler)
    modules: dict[str, float] = {}
    for (file, _, _), (_, _, own_s, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        name = "/".join(Path(file).parts[-2:])
        modules[name] = modules.get(name, 0.0) + own_s
    total = sum(modules.values())
    for name, own_s in sorted(modules.items(), key=lambda item: -item[1])[:12]:
        print(f"{own_s / total:>5.0%} {name}")


def in_turn(python: str, pairs: int = 5) -> dict[float, float]:
    """Return the speed of the compiled form over that of Python, by load: the median of alternating pairs."""
    ratios = {}
    print(f"{'load':>5} {'Python jobs/s':>14} {'compiled':>9} {'times':>6}")
    for load in (0.75, 1.15):
        case = (10_000, load, "fcfs")
        both = [
            tuple(in_child(__file__, case, form)["jobs_per_s"] for form in (sys.executable, python))
            for _ in range(pairs)
        ]
        ratios[load] = statistics.median(fast / slow for slow, fast in both)
        slow, fast = (max(form) for form in zip(*both, strict=True))
        print(f"{load:>5} {slow:>14.0f} {fast:>9.0f} {ratios[load]:>6.2f}", flush=True)
    return ratios


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help="print the share of time of each module")
    parser.add_argument("--compiled", metavar="PYTHON", help="Python with batwatt compiled, to compare with")
    arguments = parser.parse_args()
    if arguments.profile:
        shares()
        return 0
    if arguments.child:
        print(json.dumps(measure(*json.loads(arguments.child))))
        return 0
    # do not resolve the link of a virtual environment
    compiled = in_turn(str(Path(arguments.compiled).absolute())) if arguments.compiled else {}
    measures: dict[tuple[int, float, str], dict[str, float]] = {}
    print(f"{'jobs':>8} {'load':>5} {'order':>9} {'s':>8} {'jobs/s':>8} {'MiB':>6}")
    for load, order in ((0.75, "fcfs"), (1.15, "fcfs"), (0.75, "slowdown"), (1.15, "slowdown")):
        for jobs in (10_000, 100_000):
            measures[jobs, load, order] = one = in_child(__file__, (jobs, load, order))
            figures = f"{one['seconds']:>8.3f} {one['jobs_per_s']:>8.0f} {one['peak_mib']:>6.0f}"
            print(f"{jobs:>8} {load:>5} {order:>9} {figures}", flush=True)
    small, large = measures[10_000, 0.75, "fcfs"], measures[100_000, 0.75, "fcfs"]
    targets = {
        "jobs/s at 10,000 jobs >= 30,000": small["jobs_per_s"] >= 30_000,
        "time(100k) / time(10k) <= 11": large["seconds"] / small["seconds"] <= 11,
        "memory at 100k < 1 GiB": large["peak_mib"] < 1024,
        **{f"load {load}: compiled >= 2.7 times as fast": ratio >= 2.7 for load, ratio in compiled.items()},
        **{
            f"overloaded, {order}: time(100k) / time(10k) <= 15": measures[100_000, 1.15, order]["seconds"]
            <= 15 * measures[10_000, 1.15, order]["seconds"]
            for order in ("fcfs", "slowdown")
        },
    }
    return verdict(targets)


if __name__ == "__main__":
    sys.exit(main())
