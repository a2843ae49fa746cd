"""Measure the speed of the five strategies of the riskaware paper on a week of the Borg trace: `make bench`.

17,105 jobs, 152 machine slots of 24 cores of which 24 are alive on average, one change every 20 minutes: the trace and
walk of ../shared/data (skipped without them). The measure is of the whole command `batwatt run`: start-up, trace,
simulation, files, metrics; CPU seconds of its process, least of 5 (`--repetitions`). `--peer PROGRAM` also runs the
authors' program (see papers/pmbs23/peer.py), whose CPU seconds then replace the recorded ones in the target.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import tempfile
from pathlib import Path

from apart import cpu_s_of

sys.path.append(str(Path(__file__).resolve().parents[1]))
from papers.pmbs23 import peer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TRACE = DATA / "borg" / "7D_864000.txt"
WALK = DATA / "capacity" / "walk-24-8-1200-0.txt"
JOBS = 17_105
PEER_JOBS_PER_S = {
    "first-fit-aware": 2_800,
    "first-fit-unaware": 2_800,
    "target-stretch": 5_600,
    "target-asap": 5_600,
    "packed-target-asap": 5_600,
}
"""Recorded speed of the authors' program on one core, in jobs/s."""
TIMES = 5.0
"""Target: CPU time of the authors' program, relative to that of the whole command."""
COMMAND = ["run", "--machines", "152", "--cores", "24", "-w", str(TRACE), "--capacity", str(WALK), "-s", "riskaware"]


def ours(strategy: str, folder: Path) -> float:
    """Return the CPU time in s of the whole command."""
    options = json.dumps({"strategy": strategy, "as_published": True})
    words = ["--window", "864000:1468800", "-o", options, "-e", str(folder / "x")]
    return cpu_s_of([sys.executable, "-m", "batwatt", *COMMAND, *words])


def theirs(program: str, strategy: str, folder: Path) -> float:
    """Return the CPU time in s of the authors' program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    peer.theirs(Path(program), strategy, TRACE, WALK, folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", metavar="PROGRAM", help="the authors' program")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    if not TRACE.is_file():
        print(f"skipped: {TRACE} is not there")
        return 0
    met = True
    print(f"{'strategy':>20} {'cpu s':>6} {'jobs/s':>8} {'theirs s':>8} {'x':>5}  target {TIMES:g}")
    with tempfile.TemporaryDirectory() as name:
        ours("first-fit-aware", Path(name))
        for strategy, peer_jobs_per_s in PEER_JOBS_PER_S.items():
            pairs = [
                (
                    ours(strategy, Path(name)),
                    theirs(arguments.peer, strategy, Path(name)) if arguments.peer else math.inf,
                )
                for _ in range(arguments.repetitions)
            ]
            least_s, peer_s = (min(column) for column in zip(*pairs, strict=True))
            peer_s = peer_s if arguments.peer else JOBS / peer_jobs_per_s
            reached = peer_s / least_s >= TIMES
            met &= reached
            figures = f"{strategy:>20} {least_s:>6.2f} {JOBS / least_s:>8.0f} {peer_s:>8.2f} {peer_s / least_s:>5.1f}"
            print(f"{figures}  {'met' if reached else 'MISSED'}", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
