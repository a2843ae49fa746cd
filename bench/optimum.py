"""Measure the offline optimum of shipped workloads: mean slowdown, lower bound, gap, time. `python bench/optimum.py`.

`--small` measures proofs instead: random instances of 20 jobs, 2 + 2 servers of platforms/grid5000.xml and 48 steps, at
several loads; the time is that of planning. `--divided` plans the shipped workloads with each job of n servers as n
independent jobs of one server and of weight 1 / n.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import batwatt
from batwatt.inputs.batsim_files import read_workload
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.signal import read_series
from batwatt.model.platform import Host, Platform
from batwatt.model.timeline import Timeline
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.planned.optimum import SearchBudget, optimise
from batwatt.schedulers.planned.problem import OptimumJob, Problem, ServerMode, make_problem

ROOT = Path(__file__).resolve().parents[1]
GRID = ROOT / "platforms" / "grid5000.xml"
STEPS, STEP_S, FASTEST = 48, 300.0, 38.4e9
SMALL = tuple((*load, seed) for load in ((100.0, 850.0), (150.0, 800.0), (200.0, 750.0)) for seed in range(3))
"""Run time of the jobs in s, caps in W and seed of the small instances."""


def full(workload: int, profile: int, options: dict[str, Any]) -> None:
    """Plan an instance of the paper and replay the plan; print a line of figures."""
    jobs, caps = (
        ROOT / "workloads" / f"google-288-{workload:02d}.json",
        ROOT / "power_profiles" / f"profile{profile}.csv",
    )
    began = time.process_time()
    metrics = batwatt.optimum(GRID, jobs, caps, **options).metrics
    elapsed_s = time.process_time() - began
    kills = metrics["killed_power"] + metrics["killed_walltime"]
    print(
        f"{workload:02d} profile{profile}  {metrics['mean_slowdown']:.4f}  {metrics['lower_bound']:.4f}"
        f"  {metrics['gap']:.3f}"
        f"  violations {metrics['violations']} kills {kills}  {elapsed_s:.1f} s of a core",
        flush=True,
    )


def divided(problem: Problem) -> Problem:
    """Return a problem with n jobs of one server for each job of n servers, each on servers of one kind."""
    tasks = []
    for task in problem.tasks:
        modes = tuple(
            # Et weighs the wait, the ticks are the run time
            ServerMode(tuple(min(n, 1) for n in mode.counts), mode.states, mode.run_s * task.hosts, mode.ticks)
            for mode in task.modes
            if len(mode.parts) == 1
        )
        tasks += [OptimumJob(f"{task.id}-{i}", task.submit_s, task.submit, 1, modes) for i in range(task.hosts)]
    return replace(problem, tasks=tuple(tasks))


def compare_divided(workload: int, profile: int, limit_s: float) -> None:
    """Print the best schedule of divided jobs: no relaxation that divides jobs in this way has a higher bound."""
    jobs = read_workload(ROOT / "workloads" / f"google-288-{workload:02d}.json")
    envelope = read_series(ROOT / "power_profiles" / f"profile{profile}.csv", "power_w")
    problem = make_problem(read_platform(GRID), jobs, envelope)
    parts = divided(problem)
    plan = optimise(parts, SearchBudget(time_limit_s=limit_s))
    value, bound = (1.0 + (mean - 1.0) * len(parts.tasks) / len(problem.tasks) for mean in (plan.value, plan.bound))
    print(f"{workload:02d} profile{profile}, divided into {len(parts.tasks)}  {value:.4f}  {bound:.4f}", flush=True)


def small(seed: int, run_s: float, cap_w: float) -> Problem:
    """Return an instance of 20 jobs of about `run_s` on a fast server, on four servers, with caps around `cap_w`."""
    rng = np.random.default_rng(seed)
    hosts = [read_platform(GRID).hosts[i] for i in (0, 1, 10, 11)]
    platform = Platform(
        tuple(
            Host(i, host.name, host.pstates, host.cores, host.initial_pstate, host.sleeps, host.has_power)
            for i, host in enumerate(hosts)
        )
    )
    jobs, profiles = [], {}
    for name in range(20):
        run = float(np.round(rng.lognormal(np.log(run_s), 0.9)) + 1.0)
        width = int(rng.integers(1, 5)) if rng.random() < 0.5 else 1
        submit = float(np.round(rng.uniform(0.0, 0.7 * STEPS * STEP_S), 3))
        walltime = float(int(run * rng.uniform(2.5, 8.0)) + 1)
        jobs.append({"id": name, "subtime": submit, "res": width, "walltime": walltime, "profile": str(name)})
        profiles[str(name)] = {"type": "parallel_homogeneous", "cpu": run * FASTEST, "com": 0}
    workload = parse_workload({"nb_res": 4, "jobs": jobs, "profiles": profiles}, "w0", "bench")
    wave = cap_w + 300.0 * np.sin(np.linspace(0.0, 4.0 * np.pi, STEPS) + rng.uniform(0.0, 6.0))
    caps = np.clip(wave + rng.normal(0.0, 60.0, STEPS), 100.0, 900.0).round(1)
    caps[-1] = 900.0
    times = tuple(STEP_S * i for i in range(STEPS))
    return make_problem(platform, workload, Timeline(times, tuple(map(float, caps)), "power_w"))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--effort", type=int, default=20)
    parser.add_argument("--time-limit", type=float, help="in s, instead of the effort")
    parser.add_argument("--workloads", type=int, nargs="*", default=list(range(20)))
    parser.add_argument("--profiles", type=int, nargs="*", default=[3])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--divided", action="store_true")
    arguments = parser.parse_args()
    if arguments.small:
        for run_s, cap_w, seed in SMALL:
            problem = small(seed, run_s, cap_w)
            began = time.perf_counter()
            plan = optimise(problem, SearchBudget(time_limit_s=arguments.time_limit or 60.0, cores=2))
            print(
                f"runs {run_s:g} s, caps {cap_w:g} W, seed {seed}: {plan.value:.4f}  {plan.bound:.4f}  "
                f"{'proven' if plan.proven else 'open'}  {time.perf_counter() - began:.1f} s",
                flush=True,
            )
        return
    options = {"time_limit_s": arguments.time_limit} if arguments.time_limit else {"effort": arguments.effort}
    for profile in arguments.profiles:
        for workload in arguments.workloads:
            if arguments.divided:
                compare_divided(workload, profile, arguments.time_limit or 120.0)
            else:
                full(workload, profile, options)


if __name__ == "__main__":
    main()
