"""Speed of the five strategies of the riskaware paper on a week of the Borg trace: `make bench`.

17,105 jobs, 152 machine slots of 24 cores of which 24 are alive on average, one change every 20 minutes: the trace and
walk of ../shared/data (skipped where they are not). The first figure counts what the authors' program does, too:
reading the trace, cutting the window, the simulation; the second is a whole run, files written and measured. Best of 5,
after one that compiles. `--peer PROGRAM` runs that program (see experiments/pmbs23_peer.py), too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from batwatt.schedulers.riskaware import Riskaware

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import seldom_collected, simulate
from batwatt.inputs.platforms.machines import MachineSpec, machines_platform
from batwatt.model.window import Window
from batwatt.run.inputs import windowed
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

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


def measure(strategy: str, folder: Path, repetitions: int = 5) -> tuple[float, float, int]:
    """Least time in s of trace and simulation, and of a whole run; number of jobs."""
    options = {"strategy": strategy}
    machines = MachineSpec(152, 24)
    spec = RunSpec(machines, TRACE, "riskaware", options, folder / "x", capacity=WALK, window=WINDOW)
    run(spec)
    alone = whole = float("inf")
    jobs = 0
    for _ in range(repetitions):
        began = time.perf_counter()
        with seldom_collected():
            # not `gather`, which keeps what it has read
            workload = windowed(TRACE, WINDOW, machines.machines * machines.cores)
            config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True)
            engine = Engine(machines_platform(machines), [workload], config)
            simulate(engine, Riskaware(spec.scheduler_options()))
            alone = min(alone, time.perf_counter() - began)
        jobs = len(workload.jobs)
        del engine
        began = time.perf_counter()
        run(spec)
        whole = min(whole, time.perf_counter() - began)
    return alone, whole, jobs


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", metavar="PROGRAM", help="the authors' program")
    program = parser.parse_args().peer
    if not TRACE.is_file():
        print(f"skipped: {TRACE} is not there")
        return 0
    met = True
    print(f"{'strategy':>20} {'s':>6} {'jobs/s':>8} {'target':>8} {'whole s':>8} {'jobs/s':>8}")
    with tempfile.TemporaryDirectory() as name:
        for strategy, theirs in PEER_JOBS_PER_S.items():
            alone, whole, jobs = measure(strategy, Path(name))
            text = (
                f"{strategy:>20} {alone:>6.2f} {jobs / alone:>8.0f} {2 * theirs:>8} {whole:>8.2f} {jobs / whole:>8.0f}"
            )
            if program:
                began = time.perf_counter()
                peer(Path(program), strategy, TRACE, WALK, Path(name))
                theirs_s = time.perf_counter() - began
                text += f"   authors' program {theirs_s:.2f} s, {theirs_s / alone:.1f} x and {theirs_s / whole:.1f} x"
            print(text, flush=True)
            met &= jobs / alone >= 2 * theirs
    print(f"{'met   ' if met else 'MISSED'} twice the speed of the authors' program: 5,600 and 11,200 jobs/s")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
