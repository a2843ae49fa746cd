"""A lower bound on the carbon of several jobs on one finite cluster, for any planner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pulp

from batwatt.model.timeline import Timeline
from batwatt.model.work import ShiftJob


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
