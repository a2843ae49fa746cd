"""Reasons of jobs that did not finish: causes of rejections, and the ends of all jobs if none finished."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from batwatt.model.platform import Platform
from batwatt.model.work import run_times_s
from batwatt.model.workload import Workload
from batwatt.results.figures import Values
from batwatt.results.run_table import RunTable

NO_REASON = "the scheduler gave no reason"


def causes(table: RunTable, workload: Workload, hosts: int) -> np.ndarray:
    """Return the cause of each row's rejection on a platform of `hosts` hosts; empty for other rows."""
    out = np.full(len(table.job), "", dtype=object)
    for row in np.flatnonzero(table.rejected).tolist():
        job = int(table.job[row])
        if table.cause[row]:
            out[row] = table.cause[row]
        elif job >= 0 and workload.jobs[job].hosts > hosts:
            out[row] = f"wider than the platform of {hosts} hosts"
        else:
            out[row] = NO_REASON
    return out


def rejections(table: RunTable, workload: Workload, hosts: int) -> dict[str, int]:
    """Return the number of rejected jobs by cause, the most frequent first."""
    counts = Counter(cause for cause in causes(table, workload, hosts).tolist() if cause)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rejections_text(counts: Mapping[str, int]) -> str:
    """Return the causes in a line; empty without causes."""
    return "; ".join(f"{count} {cause}" for cause, count in counts.items())


def why_none_finished(metrics: Values, workload: Workload, platform: Platform) -> str | None:
    """Return the ends of the jobs if none finished; None if one did or without jobs."""
    if metrics["jobs_finished"] or not metrics["jobs_total"]:
        return None
    ends = {
        f"reached their walltime{_need(workload, platform)}": metrics["killed_walltime"],
        "were killed by the scheduler": metrics["killed_power"],
        f"were rejected{_too_wide(workload, platform)}": metrics["jobs_rejected"],
        "failed: the return code of their profile is not 0": metrics["jobs_failed"],
        "waited or ran when the window ended": metrics["jobs_unfinished"],
    }
    parts = [f"{count} {what}" for what, count in ends.items() if count]
    return f"none of {metrics['jobs_total']} jobs finished: {'; '.join(parts) or 'none ran'}"


def _need(workload: Workload, platform: Platform) -> str:
    """Return the range of run time / walltime of the jobs on the fastest hosts."""
    needs_s = run_times_s(workload, platform.fastest_flops).tolist()
    limited = [(job.walltime_s, need_s) for job, need_s in zip(workload.jobs, needs_s, strict=True) if job.walltime_s]
    shares = [need_s / walltime_s for walltime_s, need_s in limited if not math.isnan(need_s)]
    if not shares:
        return ""
    low, high, speed = min(shares), max(shares), platform.fastest_flops / 1e9
    return f" (at the platform's full speed of {speed:g} Gflop/s jobs need {low:.3g} to {high:.3g} times theirs)"


def _too_wide(workload: Workload, platform: Platform) -> str:
    count = sum(job.hosts > len(platform) for job in workload.jobs)
    return f" ({count} ask for more than the platform's {len(platform)} hosts)" if count else ""
