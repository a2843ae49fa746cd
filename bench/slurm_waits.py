"""Waits of recorded jobs under the scheduler `multifactor`, EASY and FCFS, compared with their recorded waits.

python bench/slurm_waits.py LOG --machines N [--cores C] [--days A:B] [--warm-up D] [--options JSON]

LOG is a job log with recorded starts (.swf, .sacct); --days takes the jobs submitted in that part of it, of which the
first D days only fill the machines. Prints a table: waits in s, Spearman's correlation of the waits of the same jobs,
and the Kolmogorov-Smirnov distance of the two distributions of waits (0: equal, 1: apart).
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import batwatt as bw
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload

DAY_S = 86_400.0
QUEUE = {"response": "none", "order": "fcfs"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "slurm": ("multifactor", {}),
    "EASY": ("powercap", {**QUEUE, "backfilling": "easy"}),
    "FCFS": ("powercap", {**QUEUE, "backfilling": "none"}),
}


def with_limits(log: bw.Workload, per_host: int) -> Workload:
    """Return the jobs of a log with the requested times as walltimes, each `per_host` processors on one host.

    The walltime of a run that was recorded as longer than requested is the recorded time.
    """
    jobs, profiles = [], {}
    for job in log.jobs:
        run_s = float(log.profiles[job.profile].duration_s)
        limit_s = float(job.raw.get("estimate_s", math.nan))
        profiles[f"{run_s!r} s"] = {"type": "delay", "delay": run_s}
        jobs.append({
            "id": job.name, "subtime": job.submit_time_s, "res": -(-job.hosts // per_host), "profile": f"{run_s!r} s",
            **({"walltime": max(limit_s, run_s + 1.0)} if limit_s > 0.0 else {}),
            **{name: job.raw[name] for name in ("start_s", "user", "group", "queue") if job.raw.get(name) is not None},
        })  # fmt: skip
    return parse_workload({"nb_res": log.nb_res, "jobs": jobs, "profiles": profiles}, "w0", str(log.source))


def recorded_waits(workload: bw.Workload, warm_up_s: float) -> pd.Series:
    """Return the recorded wait in s of each job that is submitted after the warm-up, by id."""
    rows = {
        job.name: job.raw["start_s"] - job.submit_time_s
        for job in workload.jobs
        if job.raw.get("start_s") is not None and job.submit_time_s >= warm_up_s
    }
    return pd.Series(rows, dtype=float)


def distance(one: pd.Series, other: pd.Series) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, 0 to 1."""
    times = np.union1d(one, other)
    shares = [np.searchsorted(np.sort(sample), times, "right") / len(sample) for sample in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def row_of(name: str, waits_s: pd.Series, recorded_s: pd.Series, took_s: float) -> str:
    """Return a row of the table: a case, its waits, and their comparison with the recorded waits."""
    mean_s, median_s, p90_s = waits_s.mean(), waits_s.median(), waits_s.quantile(0.9)
    same = waits_s.rank().corr(recorded_s.rank())
    cells = (f"{same:.2f}", f"{distance(waits_s, recorded_s):.2f}", f"{took_s:.1f}") if took_s else ("", "", "")
    return f"| {name} | {len(waits_s)} | {median_s:.0f} | {mean_s:.0f} | {p90_s:.0f} | {' | '.join(cells)} |"


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, metavar="LOG")
    parser.add_argument("--machines", type=int, required=True)
    parser.add_argument("--cores", type=int, default=1, help="of a machine")
    parser.add_argument("--per-host", type=int, default=1, help="processors of the log that are one host")
    parser.add_argument("--days", default="0:36500", metavar="A:B")
    parser.add_argument("--warm-up", type=float, default=1.0, metavar="D", help="days without measures")
    parser.add_argument("--options", type=json.loads, default={}, metavar="JSON", help="of the scheduler multifactor")
    parser.add_argument("--log-options", type=json.loads, default={}, metavar="JSON", help="of Workload.read")
    arguments = parser.parse_args()
    logging.getLogger("batwatt").setLevel(logging.ERROR)

    begin_s, end_s = (float(day) * DAY_S for day in arguments.days.split(":"))
    platform = bw.Platform.machines(arguments.machines, arguments.cores)
    log = bw.Workload.read(arguments.log, window=(begin_s, end_s), **arguments.log_options)
    workload = with_limits(log, arguments.per_host)
    recorded_s = recorded_waits(workload, arguments.warm_up * DAY_S)
    print("| case | jobs | median wait | mean wait | p90 | Spearman | KS | took s |\n|---|--:|--:|--:|--:|--:|--:|--:|")
    print(row_of("recorded", recorded_s, recorded_s, 0.0))
    for name, (scheduler, options) in CASES.items():
        began_s = time.perf_counter()
        own = arguments.options if scheduler == "multifactor" else {}
        jobs = bw.simulate(platform, workload, scheduler, options={**options, **own}).jobs
        took_s = time.perf_counter() - began_s
        waits_s = jobs.set_index(jobs["job_id"].astype(str))["waiting_time_s"].dropna()
        ids = recorded_s.index.intersection(waits_s.index)
        print(row_of(name, waits_s[ids], recorded_s[ids], took_s))


if __name__ == "__main__":
    main()
