"""A lower bound on what several jobs emit on one finite cluster, whoever plans them.

The rules: docs/explanation/carbon-engine.md, "A bound over several jobs".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from batwatt.errors import InputError, extra
from batwatt.model.phases import ShiftJob
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.optimum import NoPlanError, UnprovenError
from batwatt.units import PRECISION_S

with extra("optimum"):
    import pulp


def least_carbon(
    jobs: Sequence[ShiftJob],
    deadlines_s: Sequence[float],
    cpus: int,
    integral: SignalIntegral,
    *,
    idle_w: float = 0.0,
    until_s: float = 0.0,
) -> float:
    """The least in g (or money) that any schedule emits which runs each job between its arrival and its deadline.

    Jobs draw the same as long as they run, and know no start-up. The linear programme has y_jk >= 0, the cpu s of job j
    in interval k between arrivals, deadlines and edges of the signal (d_k s long, c_k in the mean):

        least  sum of (p_j - idle_w) c_k y_jk,  sum over k of y_jk = cpus_j l_j,  y_jk <= cpus_j d_k,
        sum over j of y_jk <= cpus d_k

    Every schedule gives such y: here jobs may be suspended at will and run on a part of their cpus.
    Cpus without a job draw `idle_w` (0: they are off) over [0, `until_s`[, which must contain all deadlines then.

    Raises InputError for other jobs, NoPlanError if no y exists, UnprovenError if the solver fails.
    """
    for job in jobs:
        if job.model.startup or len(job.model.work_steps.watts) != 1:
            raise InputError(f"job {job.id}", "has phases, which the bound does not know", "average its power")
    if len(deadlines_s) != len(jobs):
        raise InputError("deadlines_s", f"has {len(deadlines_s)} values for {len(jobs)} jobs", "give one for each")
    ends = [*deadlines_s, until_s]
    if idle_w and max(ends) > until_s + PRECISION_S:
        raise InputError("until_s", f"{until_s:g} s is before the last deadline", "give a later time")
    integral.covers(max(ends), "the bound")
    times = np.array([*(job.arrival_s for job in jobs), *deadlines_s, *((0.0, until_s) if not jobs else ())])
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
            terms.append(part * float((job.model.mean_w - idle_w) * costs[k]))
        problem += pulp.lpSum(parts) == job.cpus * job.length_s
    for k, parts in enumerate(used):
        problem += pulp.lpSum(parts) <= float(cpus * lengths[k])
    problem.setObjective(pulp.lpSum(terms))
    problem.solve(pulp.HiGHS(msg=False, threads=1))
    status = pulp.LpStatus[problem.status]
    if status == "Infeasible":
        raise NoPlanError(f"no schedule on {cpus} cpus meets all deadlines")
    if status != "Optimal":
        raise UnprovenError(f"the solver has no proof: {status}")
    return float(pulp.value(problem.objective)) + idle_w * cpus * float(integral.per_watt(0.0, until_s))
