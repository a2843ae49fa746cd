"""Speed of the five strategies of the riskaware paper on a week of the Borg trace: `make bench`.

17,105 jobs, 152 machine slots of 24 cores of which 24 are alive on average, one change every 20 minutes: the trace and
walk of ../shared/data (skipped where they are not), on the embedded engine and without one (`--engine nominal`). The
first figure counts what the authors' program does, too: reading the trace, cutting the window, the simulation; the
second is a whole run, files written and measured. CPU seconds of one process, best of 5 (`--repetitions`), after one
that compiles. `--peer PROGRAM` runs that program (see experiments/pmbs23_peer.py), too, and takes its CPU seconds for
the targets instead of what it did on a machine like ours.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import seldom_collected, simulate
from batwatt.inputs.platforms.machines import MachineSpec, machines_platform
from batwatt.model.window import Window
from batwatt.run.inputs import windowed
from batwatt.run.run import run
from batwatt.run.spec import EngineName, RunSpec
from batwatt.schedulers.riskaware import Riskaware
from batwatt.systems.riskaware.nominal import simulate_nominal

sys.path.append(str(Path(__file__).resolve().parents[1] / "experiments"))
from pmbs23_peer import peer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TRACE = DATA / "borg" / "7D_864000.txt"
WALK = DATA / "capacity" / "walk-24-8-1200-0.txt"
WINDOW = Window(864_000.0, 1_468_800.0)
PEER_JOBS_PER_S = {
    "first-fit-aware": 2_800,
    "first-fit-unaware": 2_800,
    "target-stretch": 5_600,
    "target-asap": 5_600,
    "packed-target-asap": 5_600,
}
"""What the authors' program does on a core of a machine like ours."""
TIMES: dict[EngineName, float] = {"embedded": 2.0, "nominal": 10.0}
"""How many times as fast as the authors' program each engine is to be."""


def measure(strategy: str, engine: EngineName, folder: Path, repetitions: int) -> tuple[float, float, int]:
    """Least CPU time in s of trace and simulation, and of a whole run; number of jobs."""
    options = {"strategy": strategy}
    machines = MachineSpec(152, 24)
    spec = RunSpec(machines, TRACE, "riskaware", options, folder / "x", engine=engine, capacity=WALK, window=WINDOW)
    run(spec)
    alone = whole = float("inf")
    jobs = 0
    for _ in range(repetitions):
        began = time.process_time()
        with seldom_collected():
            # not `gather`, which keeps what it has read
            workload = windowed(TRACE, WINDOW, machines.machines * machines.cores)
            config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True)
            platform, scheduler = machines_platform(machines), Riskaware(spec.scheduler_options())
            if engine == "nominal":
                simulate_nominal(platform, workload, scheduler, config)
            else:
                simulate(Engine(platform, [workload], config), scheduler)
            alone = min(alone, time.process_time() - began)
        jobs = len(workload.jobs)
        began = time.process_time()
        run(spec)
        whole = min(whole, time.process_time() - began)
    return alone, whole, jobs


def theirs(program: str, strategy: str, folder: Path) -> float:
    """CPU time in s of the authors' program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    peer(Path(program), strategy, TRACE, WALK, folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", metavar="PROGRAM", help="the authors' program")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--engine", choices=TIMES, help="one engine only")
    given = parser.parse_args()
    if not TRACE.is_file():
        print(f"skipped: {TRACE} is not there")
        return 0
    chosen = {engine: times for engine, times in TIMES.items() if given.engine in (None, engine)}
    met = dict.fromkeys(chosen, True)
    print(f"{'strategy':>20} {'engine':>9} {'s':>6} {'jobs/s':>8} {'target':>8} {'x':>5} {'whole s':>8} {'jobs/s':>8}")
    with tempfile.TemporaryDirectory() as name:
        for strategy, recorded in PEER_JOBS_PER_S.items():
            rounds = range(given.repetitions if given.peer else 0)
            least_s = min((theirs(given.peer, strategy, Path(name)) for _ in rounds), default=None)
            for engine, times in chosen.items():
                alone, whole, jobs = measure(strategy, engine, Path(name), given.repetitions)
                peer_jobs_per_s = jobs / least_s if least_s else recorded
                text = f"{strategy:>20} {engine:>9} {alone:>6.2f} {jobs / alone:>8.0f} {times * peer_jobs_per_s:>8.0f}"
                text += f" {jobs / alone / peer_jobs_per_s:>5.1f} {whole:>8.2f} {jobs / whole:>8.0f}"
                print(text + (f"   authors' program {least_s:.2f} s" if least_s else ""), flush=True)
                met[engine] &= jobs / alone >= times * peer_jobs_per_s
    for engine, times in chosen.items():
        print(f"{'met   ' if met[engine] else 'MISSED'} {engine}: {times:g} times the speed of the authors' program")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
