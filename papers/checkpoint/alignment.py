"""Measure the cost of checkpoints that end together but take different times.

Random small periods of each kind: the plan of each, compared with the best of every schedule on a grid of seconds
(`grid.py`). A loss is the share of useful work by which the plan is below that schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from batwatt.checks import rng_of
from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, State, plan
from papers.checkpoint.grid import schedules

INSTANCES = 1000
PROCESSORS, JOBS, RECOVERY_S = 8, 5, 2
"""Numbers of processors and jobs, and the longest recovery in s."""
STATES: tuple[State, ...] = ("checkpointed", "running", "stopped")


@dataclass(frozen=True)
class Kind:
    """Instances with a period of `period_s` and checkpoints of 1 s to `longest_s`; `alike`: all of one time."""

    period_s: int
    longest_s: int
    alike: bool = False


KINDS = (Kind(10, 4, alike=True), Kind(10, 2), Kind(10, 4), Kind(20, 2), Kind(20, 4), Kind(20, 8), Kind(40, 8))


def instances(kind: Kind, count: int) -> Iterator[Instance]:
    """Draw instances: jobs of 1 to all processors in any state, at least two that run without a checkpoint."""
    rng = rng_of(1, kind)
    drawn = 0
    while drawn < count:
        checkpoints = rng.integers(1, kind.longest_s + 1, JOBS)
        if kind.alike:
            checkpoints[:] = checkpoints[0]
        widths, recoveries = rng.integers(1, PROCESSORS + 1, JOBS), rng.integers(0, RECOVERY_S + 1, JOBS)
        states = rng.integers(0, 3, JOBS)
        jobs = tuple(
            PeriodJob(str(i), int(widths[i]), float(checkpoints[i]), float(recoveries[i]), STATES[states[i]])
            for i in range(JOBS)
        )
        running = [job for job in jobs if job.state == "running"]
        if len(running) >= 2 and sum(job.processors for job in running) <= PROCESSORS:
            drawn += 1
            yield Instance(float(kind.period_s), PROCESSORS, jobs)


def loss(instance: Instance) -> float:
    """Return the share of the best schedule's useful work that the plan lacks."""
    planned = plan(instance).work_processor_s
    most = schedules(instance, lower_bound=int(planned))
    return 1.0 - planned / most if most else 0.0


def losses(count: int = INSTANCES, kinds: tuple[Kind, ...] = KINDS) -> pd.DataFrame:
    """Return a row per kind: the number of plans with a loss, mean and largest loss in %."""
    rows = []
    for kind in kinds:
        lost = pd.Series([loss(instance) for instance in instances(kind, count)])
        figures = (int((lost > 0.0).sum()), 100.0 * lost.mean(), 100.0 * lost.max())
        rows.append([kind.period_s, kind.longest_s, kind.alike, count, *figures])
    heading = ["period_s", "longest_s", "alike", "instances", "lose", "mean_percent", "largest_percent"]
    return pd.DataFrame(rows, columns=heading).round(4)
