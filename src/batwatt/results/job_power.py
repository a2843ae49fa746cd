"""Power of a platform whose jobs draw different power, computed after a run from starts and ends.

A host has one power for each p-state, so engines, and `PREFIX_consumed_energy.csv`, ignore the power of a job.
Here each host draws its idle power, and each run adds the power of its job above the idle power of its hosts.
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.protocol.job_fields import parse_power
from batwatt.results.figures import Values
from batwatt.results.power import PowerTrace, compare
from batwatt.results.run_files import KILLED, RunData, file_of, numbers, texts
from batwatt.results.run_table import Floats, Rows, origins_of

JOB_POWER = ("share_above", "above_j", "mean_w", "max_w", "mean_turnaround_s", "completed", "killed_power")
"""Figures in the table of a run whose jobs draw different power."""


def job_power_trace(data: RunData, workload: Workload, platform: Platform) -> PowerTrace:
    """Return the power of all hosts from 0 until the last end: idle watts of all, and those of runs above idle.

    Each run follows the power of its job from the begin. Where hosts differ each counts with their mean idle watts.
    Raises InputError for a platform without watts, or a job without a declared power.
    """
    if not platform.has_power:
        raise InputError(platform.source, f"has no watts; {platform.power_problem}", "give wattage_per_state")
    owners = _rows_of(data, workload)[0]
    idle_all_w = math.fsum(host.pstates[host.initial_pstate].idle_w for host in platform.hosts)
    idle_w = idle_all_w / len(platform.hosts)
    start_s, finish_s = numbers(data.jobs, "starting_time"), numbers(data.jobs, "finish_time")
    times: list[float] = [0.0]
    steps: list[float] = [0.0]
    for row in np.flatnonzero((owners >= 0) & (finish_s > start_s)).tolist():
        job = workload.jobs[int(owners[row])]
        power = parse_power(job.raw, job.id)
        if power is None:
            problem = f"job {job.name} does not say what it draws"
            raise InputError(workload.source, problem, "give power_w, in W of all hosts of the job")
        begin_s = float(start_s[row])
        for low_s, high_s, watts in power.pieces(float(finish_s[row]) - begin_s):
            times += (begin_s + low_s, begin_s + high_s)
            steps += (watts - job.hosts * idle_w, job.hosts * idle_w - watts)
    edges, where = np.unique(np.round(times, 6), return_inverse=True)
    power_w = idle_all_w + np.cumsum(np.bincount(where, weights=steps))
    if len(edges) < 2:
        return PowerTrace(np.empty(0), np.empty(0), 0.0)
    # sums of steps carry rounding errors
    return PowerTrace(edges[:-1], np.round(power_w[:-1], 6), float(edges[-1]))


def job_power_figures(data: RunData, workload: Workload, platform: Platform, envelope: Timeline) -> Values:
    """Return `JOB_POWER` and the makespan of a run under an envelope in W. Raises InputError as `job_power_trace`."""
    trace = job_power_trace(data, workload, platform)
    pieces = compare(trace, envelope)
    (owners, submit_s), states = _rows_of(data, workload), texts(data.jobs, "final_state")
    completed = (owners >= 0) & (states == "COMPLETED_SUCCESSFULLY")
    turnaround_s = numbers(data.jobs, "finish_time")[completed] - submit_s[completed]
    count, end_s = int(completed.sum()), trace.end_s
    return {
        "share_above": float((pieces.end_s - pieces.start_s)[pieces.over].sum()) / end_s if end_s else 0.0,
        "above_j": pieces.above_j,
        "mean_w": trace.energy_j / end_s if end_s else 0.0,
        "max_w": float(trace.power_w.max()) if end_s else 0.0,
        "mean_turnaround_s": math.fsum(turnaround_s.tolist()) / count if count else math.nan,
        "completed": count,
        "killed_power": int((states == KILLED).sum()),
        "makespan_s": end_s,
    }


def _rows_of(data: RunData, workload: Workload) -> tuple[Rows, Floats]:
    """Return the index of each row's job in the workload, -1 for others, and the first submission of the job in s."""
    names, submitted_s = data.jobs["full_id"], numbers(data.jobs, "submission_time")
    return origins_of(names, submitted_s, workload, file_of(data.prefix, "jobs"), data.attempts)[:2]
