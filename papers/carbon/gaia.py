"""Reproduce GAIA (Hanafy et al., ASPLOS 2024): the runs of jobs by its policies, to the tick, without reserved cpus.

Time is in ticks of 5 s; H = 720 ticks are an hour. A job arrives at n, takes l ticks (both cut), may wait W ticks and
draws its mean power (GAIA: 1 W per cpu). c(t) is the carbon of 1 W in tick t; C_k is the sum of c over [n + k,
n + k + l) x cpus, rounded as in GAIA (numpy's pairwise sum over the ticks), so that near-ties break as in GAIA.
Differences to the policies of batwatt, which are exact in continuous time:

- Starts are tried at n, n + H, n + 2H, ...: hours count from the arrival, not from the change of the signal.
- The first minimum wins, to the last bit of a rounded sum.
- A job is short if its cut length is below 2 h. The expected length e is the mean over its class, in which 2 h count as
  short and as long; with a single wait for all jobs GAIA expects 2 ticks.
- The threshold is the 0.3-quantile of the ticks of the next 24 h, and a tick must be strictly below it.
- GAIA admits jobs in the order of the file: none before the jobs above it.
- Rows of the signal count as hours, whatever their dates; 720 of them. A job that may run until their end stops GAIA.

Reserved and spot machines of GAIA and their costs are left out. tests/papers/golden has the results of GAIA's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from batwatt.model.work import Array
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.units import HOUR_S
from papers.carbon.simulator import SEGMENT_COLUMNS, Outcome

TICK_S = 5.0
HOUR = 720
"""Ticks in an hour."""
HOURS = 720
"""Rows of a signal that GAIA reads."""
SHORT = 2 * HOUR
DAY = 24 * HOUR
PERCENTILE = 30.0
SINGLE_WAIT_EXPECTED = 2
Pieces = list[tuple[int, int]]
"""Begin and length of each run of a job, in ticks."""


@dataclass(frozen=True)
class Task:
    """A job in ticks: its admission by GAIA, its length, the longest wait, and the expected length of its class."""

    submit: int
    length: int
    cpus: int
    wait: int
    expected: int


def immediate(task: Task, ticks: Array) -> Pieces:
    """Start at n."""
    return [(task.submit, task.length)]


def lowest(task: Task, ticks: Array) -> Pieces:
    """Start at the first argmin of c over the ticks of [n, n + W]."""
    offset = int(np.argmin(ticks[task.submit : task.submit + task.wait + 1]))
    return [(task.submit + offset, task.length)]


def oracle(task: Task, ticks: Array) -> Pieces:
    """Start after the first argmin of C_k over k in {0, H, 2H, ...} up to W."""
    return _at_hour(task, np.argmin(_sums(task, ticks, task.length)))


def waiting(task: Task, ticks: Array) -> Pieces:
    """Start as oracle does, with e for l in C_k."""
    return _at_hour(task, np.argmin(_sums(task, ticks, task.expected)))


def cst_oracle(task: Task, ticks: Array) -> Pieces:
    """Start after the first argmax of (C_0 - C_k) / (k + l) over the k of oracle."""
    return _at_hour(task, _most_per_time(task, ticks, task.length))


def cst_average(task: Task, ticks: Array) -> Pieces:
    """Start as cst_oracle does, with e for l."""
    return _at_hour(task, _most_per_time(task, ticks, task.expected))


def suspend_resume(task: Task, ticks: Array) -> Pieces:
    """Run in the l cheapest ticks of [n, n + l + W), the earliest of equals."""
    order = np.argsort(_window(task, ticks), kind="stable")
    return _joined(task, np.sort(order[: task.length]))


def suspend_resume_threshold(task: Task, ticks: Array) -> Pieces:
    """Run in the ticks below the threshold, and in all once W ticks have been waited."""
    cheap = _window(task, ticks) < np.percentile(ticks[task.submit : task.submit + DAY], PERCENTILE)
    runs = cheap | (np.cumsum(~cheap) > task.wait)
    return _joined(task, np.flatnonzero(runs)[: task.length])


POLICIES: Mapping[str, Callable[[Task, Array], Pieces]] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (immediate, lowest, oracle, waiting, cst_oracle, cst_average, suspend_resume, suspend_resume_threshold)
}


def simulate(
    jobs: Sequence[ShiftJob], hourly: Sequence[float], policy: str, wait_h: tuple[float, ...] = (6.0, 24.0)
) -> Outcome:
    """Run jobs by a policy of GAIA under a signal by the hour, g/kWh.

    `wait_h`: hours that short and long jobs may wait, or one value for all. Raises ValueError where GAIA stops.
    """
    ticks = np.repeat(np.asarray(hourly, dtype=np.float64)[:HOURS] / 1000 / HOUR, HOUR)
    rows, submit = [], 0
    for job, task in zip(jobs, _tasks(jobs, wait_h), strict=True):
        # none before the jobs above it in the file
        submit = max(submit, task.submit)
        try:
            pieces = POLICIES[policy](replace(task, submit=submit), ticks)
        except ValueError as error:
            raise ValueError(f"job {job.id}: {error}") from None
        if sum(pieces[-1]) >= len(ticks):
            raise ValueError(f"job {job.id}: it runs until the end of the signal")
        for number, (begin, length) in enumerate(pieces):
            begin_s, length_s = begin * TICK_S, length * TICK_S
            grams = _grams(ticks, begin, length, job.cpus) * job.model.mean_w
            times = (task.submit * TICK_S, begin_s, begin_s + length_s)
            energy_j = job.cpus * job.model.mean_w * length_s
            rows.append((job.id, number, *times, job.cpus, 0.0, length_s, energy_j, grams, np.nan, 0.0, np.inf))
    return Outcome(policy, pd.DataFrame(rows, columns=SEGMENT_COLUMNS))


def _tasks(jobs: Sequence[ShiftJob], wait_h: tuple[float, ...]) -> list[Task]:
    """Convert jobs to ticks; `submit` is still their arrival."""
    lengths = np.array([job.length_s for job in jobs]) / TICK_S
    classes = (lengths[lengths <= SHORT], lengths[lengths >= SHORT])
    expected = [int(some.mean()) if len(some) else 0 for some in classes]
    waits = [int(hours * HOUR_S / TICK_S) for hours in wait_h]
    if len(waits) == 1:
        waits, expected = 2 * waits, 2 * [SINGLE_WAIT_EXPECTED]
    tasks = []
    for job, length in zip(jobs, lengths.astype(int).tolist(), strict=True):
        which = 0 if length < SHORT else 1
        tasks.append(Task(int(job.arrival_s / TICK_S), length, job.cpus, waits[which], expected[which]))
    return tasks


def _grams(ticks: Array, begin: int, length: int, cpus: int) -> float:
    """Return the carbon of a run at 1 W per cpu."""
    return float(np.add.reduce(ticks[begin : begin + length])) * cpus


def _at_hour(task: Task, hour: int | np.intp) -> Pieces:
    return [(task.submit + HOUR * int(hour), task.length)]


def _sums(task: Task, ticks: Array, length: int) -> Array:
    """Return C_k of all candidates that end before the signal does."""
    room = len(ticks) - task.submit - length
    if room < 0:
        raise ValueError("it ends after the signal")
    begins = range(task.submit, task.submit + min(task.wait, room) + 1, HOUR)
    return np.array([_grams(ticks, begin, length, task.cpus) for begin in begins])


def _most_per_time(task: Task, ticks: Array, length: int) -> np.intp:
    sums = _sums(task, ticks, length)
    return np.argmax((sums[0] - sums) / (HOUR * np.arange(len(sums)) + length))


def _window(task: Task, ticks: Array) -> Array:
    """Return c over [n, n + l + W)."""
    end = task.submit + task.length + task.wait
    if end > len(ticks):
        raise ValueError("its deadline is after the signal")
    return ticks[task.submit : end]


def _joined(task: Task, offsets: Array) -> Pieces:
    """Return the runs of successive ticks."""
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    runs = np.split(offsets + task.submit, breaks)
    return [(int(run[0]), len(run)) for run in runs]
