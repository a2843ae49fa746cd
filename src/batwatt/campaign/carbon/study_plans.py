"""One synthetic job under every planner and at every arrival: what each says that it emits, and what it truly emits.

The twin of a job has its length and energy at constant power, without a start-up: all that GAIA and Let's Wait Awhile
know of it. What is planned for the twin is carried out on the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from batwatt.campaign.carbon.study_spec import Permutation
from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import Execution, ShiftJob, carry_out
from batwatt.systems.carbon.optimum import plan
from batwatt.systems.carbon.policies import Known, immediate, oracle, suspend_resume
from batwatt.systems.carbon.windows import StartWindow
from batwatt.units import HOUR_S, PRECISION_S

FIGURES: Mapping[str, str] = {
    "arrival_s": "when the job arrived, s from the signal's first row",
    "immediate_g": "at once: what it emits, g",
    "immediate_twin_g": "its twin at once, g",
    "oracle_g": "in one piece, planned on the true power, g",
    "oracle_averaged_g": "in one piece, planned on the twin, carried out on the job, g",
    "oracle_twin_g": "the same as the twin says, g",
    "optimum_g": "in pieces: the exact optimum with phases and start-ups, g",
    "optimum_starts": "how often it starts then",
    "startup_aware_g": "in pieces: the optimum of a job with this start-up and constant power after it, carried out, g",
    "startup_aware_starts": "how often it starts then",
    "free_g": "in pieces: the optimum if to resume were free; nothing emits less, g",
    "suspend_g": "in pieces: the cheapest hours as Let's Wait Awhile and GAIA plan for the twin, carried out, g",
    "suspend_twin_g": "the same as the twin says, g",
    "suspend_starts": "how often it starts then",
    "suspend_late_s": "by how much it is late then, s",
}
"""What is worked out for each job and arrival, and its meaning."""


@dataclass(frozen=True)
class PlanTask:
    """A permutation with all arrivals, as a worker gets it."""

    key: str
    permutation: Permutation
    arrivals_s: tuple[float, ...]
    integral: SignalIntegral


def plans_of(task: PlanTask) -> dict[str, list[Any]]:
    """The FIGURES at each arrival, a list for each. Raises InputError if the signal ends too early."""
    rows = [_row(task.permutation, arrival_s, task.integral) for arrival_s in task.arrivals_s]
    return {name: [row[name] for row in rows] for name in FIGURES}


def _row(permutation: Permutation, arrival_s: float, integral: SignalIntegral) -> dict[str, Any]:
    model = permutation.model
    job = ShiftJob("made", arrival_s, model)
    twin = replace(job, model=model.averaged())
    window, known = StartWindow(arrival_s, permutation.wait_s), Known()
    deadline_s = window.deadline_s(job)

    def optimum(of: PhaseModel) -> Execution:
        planned = plan(of, integral, arrival_s, deadline_s)
        return planned.execution(job) if of is model else carry_out(job, planned.intervals, apart=True)

    at_once = immediate(job, window, integral, known)
    guessed = oracle(twin, window, integral, known)
    pieces = suspend_resume(twin, window, integral, known)
    # the work at its mean power; then a start-up that is work like any other: done once, and kept
    steady = PhaseModel(model.startup, (Phase("mean", model.work_s, model.work_steps.energy_j / model.work_s),))
    free = PhaseModel((), (*model.startup, *model.work))
    best, aware = optimum(model), optimum(steady)
    truly = carry_out(job, pieces)
    late_s = truly.end_s - deadline_s
    integral.covers(truly.end_s, "a job that resumes more often than it knows")
    return {
        "arrival_s": arrival_s,
        "immediate_g": carry_out(job, at_once).emitted(integral),
        "immediate_twin_g": carry_out(twin, at_once).emitted(integral),
        "oracle_g": carry_out(job, oracle(job, window, integral, known)).emitted(integral),
        "oracle_averaged_g": carry_out(job, guessed).emitted(integral),
        "oracle_twin_g": carry_out(twin, guessed).emitted(integral),
        "optimum_g": best.emitted(integral),
        "optimum_starts": len(best.segments),
        "startup_aware_g": aware.emitted(integral),
        "startup_aware_starts": len(aware.segments),
        "free_g": plan(free, integral, arrival_s, deadline_s).carbon,
        "suspend_g": truly.emitted(integral),
        "suspend_twin_g": carry_out(twin, pieces).emitted(integral),
        "suspend_starts": len(truly.segments),
        "suspend_late_s": late_s if late_s > PRECISION_S * max(1, len(truly.segments)) else 0.0,
    }


def table_of(permutation: Permutation, figures: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A row for each arrival: whose figures they are, then the figures."""
    model = permutation.model
    return pd.DataFrame(
        {
            "study": permutation.study,
            "pattern": permutation.pattern,
            "length_h": permutation.length_h,
            "startup_s": permutation.startup_s,
            "startup_w": permutation.startup_w,
            "wait_h": permutation.wait_s / HOUR_S,
            "deadline_h": permutation.deadline_h,
            "length_s": model.length_s,
            "energy_j": model.energy_j,
            **figures,
        }
    )
