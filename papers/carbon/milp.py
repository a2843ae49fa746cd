"""Plan a job by the mixed-integer programme of section 5.3.3 of the carbon thesis: the reference of the optimum.

Listings 5.8 to 5.11 with PuLP, solved by HiGHS. `work[t]` is 1 if the job works in slot t, `begun[t]` if it begins to
work (Table 5.1), after a start-up in the slots before (Listing 5.9). The progress counts slots of work (Listing 5.10),
and two indicators for each phase and slot, switched by a big M, define the phase (Listing 5.11). A start-up is never
cut, so its carbon is a constant of each slot in which work may begin, without a progress of its own.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pulp

from batwatt.model.timeline import Timeline
from batwatt.model.work import PhaseModel
from batwatt.schedulers.carbon.optimum import ShiftPlan, TimeGrid, grid_of, plan_of


def plan_milp(
    model: PhaseModel,
    integral: Timeline,
    begin_s: float,
    deadline_s: float,
    *,
    slot_s: float | None = None,
) -> ShiftPlan:
    """Return the plan of `optimum.plan`, proven optimal by the solver.

    Jobs may be suspended anywhere. Raises as `plan` does, and RuntimeError if the solver has no proof.
    """
    grid = grid_of(model, integral, begin_s, deadline_s, slot_s)
    problem, work = _formulated(grid)
    # with the usual tolerance of 1e-6 and a big M the solver "proves" schedules that are not optimal
    exact = {"gapRel": 0.0, "gapAbs": 0.0, "mip_feasibility_tolerance": 1e-9}
    problem.solve(pulp.HiGHS(msg=False, threads=1, **exact))
    if problem.sol_status != pulp.LpSolutionOptimal:
        raise RuntimeError(f"the solver has no proof: {pulp.LpStatus[problem.status]}")
    runs = [variable.value() > 0.5 for variable in work]
    segments, worked, slot = [], 0, 0
    for on, group in groupby(runs):
        length = len(list(group))
        if on:
            segments.append(grid.segment(slot - grid.startup, worked, worked + length))
            worked += length
        slot += length
    return plan_of(grid, tuple(segments), integral)


def _formulated(grid: TimeGrid) -> tuple[pulp.LpProblem, list[Any]]:
    slots, startup, length = grid.slots, grid.startup, len(grid.work_w)
    problem = pulp.LpProblem("phase_aware", pulp.LpMinimize)

    def binaries(name: str) -> list[Any]:
        return [problem.add_variable(f"{name}_{t}", cat=pulp.LpBinary) for t in range(slots)]

    work, begun = binaries("work"), binaries("begun")
    problem += pulp.lpSum(work) == length
    for t in range(slots):
        before = work[t - 1] if t else 0
        problem += begun[t] >= work[t] - before
        problem += begun[t] <= work[t]
        problem += begun[t] <= 1 - before
        # a start-up fills the slots before work begins, without work in them
        starting = pulp.lpSum(begun[t + 1 : t + startup + 1])
        problem += work[t] + starting <= 1
    for t in range(min(startup, slots)):
        problem += begun[t] == 0
    progress = [problem.add_variable(f"progress_{t}", 0, length) for t in range(slots + 1)]
    problem += progress[0] == 0
    for t in range(slots):
        problem += progress[t + 1] == progress[t] + work[t]
    costs = [begun[t] * float(grid.starts[t - startup]) for t in range(startup, slots)]
    costs += _by_phase(problem, grid, work, progress)
    problem.setObjective(pulp.lpSum(costs))
    return problem, work


def _by_phase(problem: pulp.LpProblem, grid: TimeGrid, work: list[Any], progress: list[Any]) -> list[Any]:
    """Return the emissions of each phase in each slot if the phase is active in it (Equation 5.1)."""
    # the big M: the largest progress, as solvers prefer a small value
    most = len(grid.work_w) + 1
    costs, first = [], 0
    for number, (watts, group) in enumerate(groupby(grid.work_w.tolist())):
        last = first + len(list(group)) - 1
        for t in range(grid.slots):
            names = (f"{name}_{number}_{t}" for name in ("above", "below", "active"))
            above, below, active = (problem.add_variable(name, cat=pulp.LpBinary) for name in names)
            problem += progress[t] - first + 1 <= most * above
            problem += first - progress[t] <= most * (1 - above)
            problem += last - progress[t] + 1 <= most * below
            problem += progress[t] - last <= most * (1 - below)
            problem += active >= above + below + work[t] - 2
            for part in (above, below, work[t]):
                problem += active <= part
            costs.append(active * float(watts * grid.cost[t]))
        first = last + 1
    return costs
