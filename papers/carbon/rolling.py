"""Plan once, and again each hour, by forecasts with errors on a finite cluster; compare with a bound.

    python -m papers.carbon.rolling DE-LU_2023_hourly.csv US-CAL-CISO_2023_hourly.csv
        write data/rolling.csv (a row for each run, some four minutes), and fill the page

README.md names the sources of both files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pulp

import batwatt as bw
from batwatt.inputs.signal import read_signal
from batwatt.inputs.source import SeriesSource
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import ShiftJob, constant
from batwatt.units import DAY_S, HOUR_S
from papers.carbon import tables


def least_carbon(jobs: Sequence[ShiftJob], deadlines_s: Sequence[float], cpus: int, integral: Timeline) -> float:
    """Return the least carbon in g of any schedule that runs each job between its arrival and its deadline.

    Jobs have constant power, and no start-up. The linear programme has y_jk >= 0, the cpu s of job j
    in interval k between arrivals, deadlines and edges of the signal (d_k s long, c_k in the mean):

        least  sum of p_j c_k y_jk,  sum over k of y_jk = cpus_j l_j,  y_jk <= cpus_j d_k,
        sum over j of y_jk <= cpus d_k

    Every schedule gives such y: jobs may be suspended at any time and run on a part of their cpus. Raises ValueError
    for a job in phases, RuntimeError if no y exists.
    """
    for job in jobs:
        if job.model.startup or len(job.model.work_steps.watts) != 1:
            raise ValueError(f"job {job.id} has phases, and the bound is for jobs of constant power")
    integral.covers(max(deadlines_s), "the bound")
    times = np.array([*(job.arrival_s for job in jobs), *deadlines_s])
    edges = np.unique(np.concatenate([times, integral.edges_in(times.min(), times.max())]))
    lengths = np.diff(edges)
    costs = integral.per_watt(edges[:-1], edges[1:]) / lengths
    problem = pulp.LpProblem("carbon", pulp.LpMinimize)
    used: list[list[pulp.LpVariable]] = [[] for _ in lengths]
    terms = []
    for number, (job, deadline_s) in enumerate(zip(jobs, deadlines_s, strict=True)):
        first, last = np.searchsorted(edges, [job.arrival_s, deadline_s]).tolist()
        parts = []
        for k in range(first, last):
            part = problem.add_variable(f"y_{number}_{k}", 0.0, float(job.cpus * lengths[k]))
            parts.append(part)
            used[k].append(part)
            terms.append(part * float(job.model.mean_w * costs[k]))
        problem += pulp.lpSum(parts) == job.cpus * job.length_s
    for k, parts in enumerate(used):
        problem += pulp.lpSum(parts) <= float(cpus * lengths[k])
    problem.setObjective(pulp.lpSum(terms))
    problem.solve(pulp.HiGHS(msg=False, threads=1))
    if problem.status != pulp.LpStatusOptimal:
        raise RuntimeError(f"no bound on {cpus} cpus: {pulp.LpStatus[problem.status]}")
    return float(pulp.value(problem.objective))


SIGNALS = ("DE-LU", "CAISO")
BEGINS = ("2023-01-10", "2023-03-24", "2023-06-05", "2023-08-17", "2023-10-29")
"""A begin for each seed: 73 days apart."""
LOADS = (0.3, 0.6, 0.8)
HOSTS, POWER_W, IDLE_W = 8, 200.0, 100.0
JOB_DAYS, DAYS = 4.0, 8.0
"""Jobs arrive in the first of these; all end within the second."""
SLOT_S = 900.0
"""Unit of arrivals and lengths, so that the slots of the calendar are exact."""
WAIT_H = 24.0
LENGTHS_H = (0.5, 1.0, 2.0, 4.0, 8.0)
CPUS = (1, 1, 1, 2, 4)
ERRORS = (0.0, 0.03, 0.06)
"""Errors of forecasts one hour ahead; 15 and 29 % one day ahead."""
REPLAN_H = 1.0
Case = tuple[str, float, bool]
"""Policy, error of forecasts, and True if jobs are planned again each hour."""
AT_ONCE: Case = ("immediate", 0.0, False)
CASES: tuple[Case, ...] = (
    AT_ONCE,
    *((policy, error, again) for policy in ("oracle", "phase-aware") for error in ERRORS for again in (False, True)),
)


def signal_of(path: Path, seed: int) -> Timeline:
    """Return the signal of a file from the begin of the seed on, g/kWh. Raises InputError."""
    begin = f"{BEGINS[seed]}T00:00Z"
    return read_signal(SeriesSource(path, begin=begin, days=DAYS, quantity="carbon", gaps="line"))


def jobs_of(load: float, seed: int) -> pd.DataFrame:
    """Draw jobs up to a load of `load` over the days of arrivals."""
    rng = np.random.default_rng((seed, round(100 * load)))
    rows, requested = [], 0.0
    while requested < load * HOSTS * JOB_DAYS * DAY_S:
        at = rng.integers(0, int(JOB_DAYS * DAY_S / SLOT_S)) * SLOT_S
        row = (float(at), float(rng.choice(LENGTHS_H)) * HOUR_S, int(rng.choice(CPUS)))
        requested += row[1] * row[2]
        rows.append(row)
    return pd.DataFrame(sorted(rows), columns=["submission_time_s", "length_s", "hosts"])


def run(jobs: pd.DataFrame, integral: Timeline, case: Case, seed: int) -> tuple[float, np.ndarray]:
    """Run the scheduler `carbon`; return g per W of a busy host above an idle one, and the ends of the jobs."""
    policy, error, again = case
    options = {"signal": integral, "policy": policy, "wait_h": [WAIT_H], "slot_s": SLOT_S, "forecast_error": error,
               "forecast_seed": seed, "replan_h": REPLAN_H if again else None}  # fmt: skip
    platform = machines_platform(MachineSpec(HOSTS, 1, core_w=POWER_W))
    rows = bw.simulate(platform, bw.Workload.from_frame(jobs), "carbon", options=options).jobs
    emitted = integral.per_watt(rows["starting_time_s"].to_numpy(), rows["finish_time_s"].to_numpy())
    place = rows["job_id"].astype(str).str.partition("#")[0].astype(int)
    ends_s = rows.groupby(place)["finish_time_s"].max().sort_index()
    return float(emitted @ rows["requested_number_of_resources"].to_numpy()), ends_s.to_numpy()


def results(signal: str, load: float, seed: int, path: Path) -> Iterator[dict[str, object]]:
    """Yield for each case the share saved relative to `AT_ONCE` and the carbon beyond the bound, in %.

    `_off`: idle hosts are off; `_on`: they stay on. The bound may delay a job as much as the latest case.
    """
    integral, jobs = signal_of(path, seed), jobs_of(load, seed)
    runs = {case: run(jobs, integral, case, seed) for case in CASES}
    due_s = (jobs["submission_time_s"] + WAIT_H * HOUR_S + jobs["length_s"]).to_numpy()
    latest_s = np.maximum(due_s, np.max([ends_s for _, ends_s in runs.values()], axis=0))
    planned = [ShiftJob(str(at), row.submission_time_s, constant(row.length_s, POWER_W), row.hosts)
               for at, row in enumerate(jobs.itertuples())]  # fmt: skip
    bound = least_carbon(planned, latest_s.tolist(), HOSTS, integral) / POWER_W
    for (policy, error, again), (per_watt_g, ends_s) in runs.items():
        row: dict[str, object] = {"signal": signal, "load": load, "seed": seed}
        row |= {"policy": policy, "error": error, "again": again}
        for name, idle_w in (("off", 0.0), ("on", IDLE_W)):
            always = idle_w * HOSTS * float(integral.per_watt(0.0, integral.end_s))
            emitted, least, at_once = (
                always + (POWER_W - idle_w) * per_watt for per_watt in (per_watt_g, bound, runs[AT_ONCE][0])
            )
            row[f"saved_{name}"] = 100.0 * (1.0 - emitted / at_once)
            row[f"above_{name}"] = 100.0 * (emitted / least - 1.0)
        row["late"] = 100.0 * float(np.mean(ends_s > due_s + 1.0))
        yield row


if __name__ == "__main__":
    files = dict(zip(SIGNALS, map(Path, sys.argv[1:]), strict=True))
    cells = product(SIGNALS, LOADS, range(len(BEGINS)))
    rows = [row for signal, load, seed in cells for row in results(signal, load, seed, files[signal])]
    tables.write("rolling", pd.DataFrame(rows).round(6))
    tables.refill()
