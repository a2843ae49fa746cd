"""CPU time of `batwatt run` under responses to a change of power, by the number of hosts.

    python bench/responses.py [--hosts 1000,2000,4000,8000,16000] [--responses none,hfld,idsb,frugal]

1,000 jobs at a load of 0.75, widths log-uniform up to half of the hosts, under a random walk of power; user and system
time of the whole command in s. A target is missed if a response takes more than `RATIO` times a run without one at
10,000 hosts or more, or if its time more than `GROWTH`s from one number of hosts to twice as many.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from apart import cpu_s_of

JOBS, LOAD = 1000, 0.75
LONGEST_S = 86400.0
RATIO, GROWTH = 2.5, 2.2
MANY = 10_000
"""Number of hosts from which on the ratio counts."""


def write_jobs(path: Path, hosts: int) -> None:
    """Write jobs as CSV; lengths lognormal in s, widths log-uniform in hosts, arrivals uniform."""
    draw = random.Random(1)
    jobs = [
        (min(LONGEST_S, 60.0 + draw.lognormvariate(7.0, 1.2)), max(1, int(hosts * 2.0 ** draw.uniform(-9.0, -1.0))))
        for _ in range(JOBS)
    ]
    end_s = sum(length_s * width for length_s, width in jobs) / (LOAD * hosts)
    times = sorted(draw.uniform(0.0, end_s) for _ in jobs)
    rows = (f"{at:.0f},{length_s:.0f},{width}\n" for at, (length_s, width) in zip(times, jobs, strict=True))
    path.write_text("arrival_time,length,cpus\n" + "".join(rows))


def cpu_s(folder: Path, hosts: int, response: str) -> float:
    """Return the CPU time of a run in s."""
    path = folder / f"{hosts}.csv"
    if not path.exists():
        write_jobs(path, hosts)
    command = [sys.executable, "-m", "batwatt", "run", "-w", path, "--machines", str(hosts), "--cores", "1", "-q"]
    envelope = ["--envelope", "walk:mean=0.6,range=0.5,period=1800,seed=1"]
    options = ["-s", "powercap", "-o", f"response={response}", "-o", "backfilling=easy", "-e", folder / "x"]
    return cpu_s_of([*command, *envelope, *options])


def main() -> int:
    """Print a row for each response; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="1000,2000,4000,8000,16000", help="numbers of hosts, rising")
    parser.add_argument(
        "--responses", default="none,hfld,idsb,frugal", help="the first is what others are compared with"
    )
    arguments = parser.parse_args()
    sizes = [int(word) for word in arguments.hosts.split(",")]
    print(f"{'hosts':>10}", *(f"{hosts:>8,}" for hosts in sizes))
    missed = []
    usual: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for response in arguments.responses.split(","):
            times = [cpu_s(Path(folder), hosts, response) for hosts in sizes]
            print(f"{response:>10}", *(f"{time_s:>8.2f}" for time_s in times), flush=True)
            usual = usual or times
            for hosts, time_s, least_s in zip(sizes, times, usual, strict=True):
                if hosts >= MANY and time_s > RATIO * least_s:
                    missed.append(f"{response} on {hosts} hosts takes {time_s / least_s:.1f} times a run without one")
            for (hosts, first_s), (more, second_s) in pairwise(zip(sizes, times, strict=True)):
                if more <= 2 * hosts and second_s > GROWTH * first_s:
                    missed.append(
                        f"{response} takes {second_s / first_s:.1f} times as long on {more} hosts as on {hosts}"
                    )
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
