"""Make two weeks of a cluster's accounting, as `sacct -P` dumps it; `--check` exits with 1 if a byte differs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parent / "jobs.sacct"
BEGIN = datetime(2024, 7, 1)
DAYS = 14
CORES = 160
JOBS = 400
SEED = 3
HEADER = "JobID|User|Account|Partition|State|Submit|Start|ElapsedRaw|AllocCPUS|Timelimit"
HOUR_S = 3600
ACCOUNTS = {
    # account: its users, share of the jobs, median and sigma of the run time (h), cores and how often
    "genomics": (("amara", "bo", "chen", "dina"), 0.40, (1.0, 1.1), {1: 4, 2: 3, 4: 3, 8: 1}),
    "climate": (("emre", "fay", "goran"), 0.22, (6.0, 0.9), {16: 4, 32: 2, 48: 1}),
    "chemistry": (("hana", "ivo", "jun", "kofi"), 0.23, (3.5, 1.3), {4: 2, 8: 4, 16: 3}),
    "students": (("lea", "max", "nia", "otto"), 0.15, (0.6, 1.0), {1: 4, 2: 2, 4: 1}),
}
LIMITS_H = {"debug": 0.5, "batch": 24.0, "long": 72.0}


@dataclass
class Line:
    """A job: its request, and its run time without a limit; times in s."""

    user: str
    account: str
    cores: int
    submit_s: int
    run_s: int
    limit_s: int
    state: str = "COMPLETED"

    @property
    def partition(self) -> str:
        """The smallest partition that allows the time limit."""
        return next(name for name, limit_h in LIMITS_H.items() if self.limit_s <= limit_h * HOUR_S)


def drawn() -> list[Line]:
    """Return random jobs by submission: more by day than at night, and fewer at the weekend."""
    rng = np.random.default_rng(SEED)
    hours = np.arange(DAYS * 24)
    busy = (0.15 + np.exp(-(((hours % 24) - 12.5) ** 2) / 20.0)) * np.where(hours // 24 % 7 < 5, 1.0, 0.35)
    at_h = np.sort(rng.choice(hours, JOBS, p=busy / busy.sum()) + rng.random(JOBS))
    names = list(ACCOUNTS)
    jobs = []
    for submit_h in at_h.tolist():
        account = names[rng.choice(len(names), p=[ACCOUNTS[name][1] for name in names])]
        users, _, (median_h, sigma), widths = ACCOUNTS[account]
        weights = np.array(list(widths.values()), dtype=float)
        # the first user of an account has most of its jobs
        share = 0.5 ** np.arange(len(users))
        user = users[rng.choice(len(users), p=share / share.sum())]
        run_s = int(HOUR_S * np.clip(median_h * np.exp(sigma * rng.normal()), 0.02, 30.0))
        request_s = run_s * rng.uniform(1.1, 4.0)
        limit_s = min(int(-(-request_s // 1800) * 1800), int(LIMITS_H["long"] * HOUR_S))
        cores = int(list(widths)[rng.choice(len(weights), p=weights / weights.sum())])
        line = Line(user, account, cores, int(HOUR_S * submit_h), run_s, limit_s)
        chance = rng.random()
        if chance < 0.06:
            line.state, line.run_s = "FAILED", max(5, int(run_s * rng.random()))
        elif chance < 0.09:
            line.state, line.run_s = "TIMEOUT", limit_s
        elif chance < 0.12:
            line.state, line.run_s = "CANCELLED by 1001", int(run_s * rng.random())
        elif chance < 0.14:
            line.state, line.run_s = "CANCELLED by 1001", 0
        elif chance < 0.145:
            line.state = "OUT_OF_MEMORY"
        jobs.append(line)
    return jobs


def started(jobs: list[Line]) -> list[int | None]:
    """Return the start in s of each job, first come first served; None for a job that never starts."""
    ends: list[tuple[int, int]] = []
    free, now_s = CORES, 0
    starts_s: list[int | None] = []
    for job in jobs:
        if not job.run_s:
            starts_s.append(None)
            continue
        now_s = max(now_s, job.submit_s)
        while ends and (ends[0][0] <= now_s or free < job.cores):
            end_s, cores = heappop(ends)
            now_s, free = max(now_s, end_s), free + cores
        free -= job.cores
        heappush(ends, (now_s + job.run_s, job.cores))
        starts_s.append(now_s)
    return starts_s


def text() -> str:
    """Return the dump at the end of the two weeks."""
    jobs = drawn()
    over_s = DAYS * 24 * HOUR_S
    lines = [HEADER]
    for number, (job, start_s) in enumerate(zip(jobs, started(jobs), strict=True)):
        state, run_s = job.state, job.run_s
        if start_s is not None and start_s >= over_s:
            state, start_s, run_s = "PENDING", None, 0
        elif start_s is not None and start_s + run_s > over_s:
            state, run_s = "RUNNING", over_s - start_s
        submit, start = (
            "None" if at_s is None else f"{BEGIN + timedelta(seconds=at_s):%Y-%m-%dT%H:%M:%S}"
            for at_s in (job.submit_s, start_s)
        )
        hours, rest = divmod(job.limit_s, HOUR_S)
        days, hours = divmod(hours, 24)
        limit = f"{f'{days}-' if days else ''}{hours:02d}:{rest // 60:02d}:00"
        id = 48_210 + 3 * number
        cells = (id, job.user, job.account, job.partition, state, submit, start, run_s, job.cores, limit)
        lines.append("|".join(map(str, cells)))
        if start_s is not None:
            lines.append(f"{id}.batch||{job.account}||{state.split()[0]}|{start}|{start}|{run_s}|{job.cores}|")
    # the last line is cut off, as by a copy
    lines.append(lines[-1][:40])
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        TARGET.write_text(text(), encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text():
        sys.exit(f"{TARGET.name} differs from what this script makes")
