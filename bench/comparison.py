"""Measure the time of a comparison of systems: 10,000 jobs, 14 cases, two processes, tables and page. `make bench`.

The cases are those of the preset and two more. Times of cases are of the processor; the share of a case is of the time
of both cores, `x` is its time over that of the first case. `--machines 13000 --jobs 11000` is a site of 13,000 hosts,
where each case of the preset has to end in 60 s and all in 6 min. `--profile CASE` prints a profile of a case instead.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import batwatt as bw
from batwatt.api import comparison
from batwatt.model.timeline import Timeline
from batwatt.studies import executors
from batwatt.studies.cells import CellOutcome, CellTask
from batwatt.units import DAY_S, HOUR_S

JOBS = 10_000
MACHINES = 256
DAYS = 30
WORKERS = 2
MOST_S = 60.0
MANY = 10_000
"""Machines from which on a case may take `MOST_S`, and all of them `MOST_SITE_S`."""
MOST_SITE_S = 360.0
OWN = {
    "varcap LFD": bw.Case("varcap", {"termination": "lfd", "backfilling": "easy"}),
    "LWW, held": bw.Case(
        "varcap",
        {"termination": "lww", "backfilling": "easy", "shift": {"name": "oracle", "wait_h": [6.0, 24.0]}},
    ),
}
CASES = {**comparison.SYSTEMS, **OWN}


def load(count: int, machines: int) -> bw.Workload:
    """Return jobs of a month at a load of 0.5: lengths lognormal, widths log-uniform to an eighth of the machines."""
    rng = np.random.default_rng(1)
    submit_s = np.sort(rng.uniform(0.0, DAYS * DAY_S, count))
    widths = np.exp(rng.uniform(0.0, np.log(machines / 8), count)).astype(np.int64)
    lengths = np.minimum(rng.lognormal(0.0, 1.2, count), 24.0)
    lengths *= 0.5 * machines * DAYS * DAY_S / float(widths @ lengths)
    users = [f"u{int(number)}" for number in np.minimum(rng.geometric(0.15, count), 30)]
    times = {"submission_time_s": np.round(submit_s), "length_s": np.round(lengths, 3)}
    return bw.Workload.from_frame(pd.DataFrame({**times, "hosts": widths, "user": users}))


def power(machines: int) -> bw.Series:
    """Return a solar power by quarter hours with cloudy days, and a grid connection, longer than any case."""
    rng = np.random.default_rng(2)
    hours = np.arange(4 * 24 * 4 * DAYS) / 4.0
    clear = np.repeat(rng.uniform(0.3, 1.0, 4 * DAYS), 24 * 4)
    sun = np.maximum(0.0, np.sin((hours % 24.0 - 6.0) / 12.0 * np.pi)) * clear * rng.uniform(0.8, 1.0, len(hours))
    watts = 10.0 * machines * np.minimum(1.0, 0.35 + sun)
    return bw.Series(tuple((HOUR_S * hours).tolist()), tuple(watts.tolist()), "power_w")


def signal() -> Timeline:
    """Return a carbon intensity by the hour, g/kWh."""
    hour = np.arange(12 * DAYS * 24)
    noise = np.random.default_rng(3).uniform(0.0, 60.0, len(hour))
    return Timeline.regular(300.0 + 120.0 * np.cos(hour % 24 / 12.0 * np.pi) + noise, HOUR_S)


def compared(count: int, machines: int, labels: list[str], workers: int, prefix: Path) -> dict[str, float]:
    """Run the cases and write their files; return the CPU time of each in s, which processes append to PREFIX.times."""
    times = prefix.with_suffix(".times")
    by_name = {f"case {label!r}": label for label in labels}
    before = executors.execute, executors.execute_silently

    def timed(task: CellTask) -> CellOutcome:
        began_s = time.process_time()
        outcome = before[0](task)
        with times.open("a", encoding="utf-8") as out:
            out.write(f"{time.process_time() - began_s}\t{by_name[task.name]}\n")
        return outcome

    executors.execute = executors.execute_silently = timed
    cases = {label: CASES[label] for label in labels}
    inputs = (bw.Platform.machines(machines, 1), load(count, machines), power(machines), cases)
    results = bw.compare(*inputs, carbon=signal(), workers=workers)
    results.save(prefix, by=("user", "size"))
    executors.execute, executors.execute_silently = before
    rows = (line.split("\t") for line in times.read_text(encoding="utf-8").splitlines())
    return {label: float(took_s) for took_s, label in rows}


def main() -> int:
    """Print a line for each case; return 1 if the comparison misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--profile", choices=list(CASES), help="one case, in this process")
    parser.add_argument("--keep", type=Path, help="write tables and page under this prefix")
    arguments = parser.parse_args()
    size = arguments.jobs, arguments.machines
    many = arguments.machines >= MANY
    labels = list(comparison.SYSTEMS if many else CASES)
    most_s = MOST_SITE_S if many else MOST_S
    with tempfile.TemporaryDirectory() as folder:
        prefix = arguments.keep or Path(folder) / "x"
        if arguments.profile:
            profile = cProfile.Profile()
            profile.runcall(compared, *size, [arguments.profile], 1, prefix)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return 0
        prefix.parent.mkdir(parents=True, exist_ok=True)
        prefix.with_suffix(".times").unlink(missing_ok=True)
        began = time.perf_counter()
        took = compared(*size, labels, WORKERS, prefix)
        wall_s = time.perf_counter() - began
    first_s = next(took[label] for label in labels)
    print(f"{arguments.jobs} jobs on {arguments.machines} machines, {len(labels)} cases, {WORKERS} processes")
    for label in labels:
        share = took[label] / (WORKERS * wall_s)
        print(f"{label:20s} {took[label]:6.2f} s {share:5.0%} of the cores {took[label] / first_s:5.1f} x")
    slow = [label for label in labels if many and took[label] >= MOST_S]
    if slow:
        print(f"MISSED {MOST_S:g} s a case:", ", ".join(slow))
    verdict = "met" if wall_s < most_s else "MISSED"
    print(f"in all {wall_s:.1f} s with reading, tables and page (target {most_s:g} s: {verdict})")
    return 1 if slow or wall_s >= most_s else 0


if __name__ == "__main__":
    sys.exit(main())
