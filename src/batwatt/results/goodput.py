"""What machines that come and go were good for: the figures of the riskaware paper (Perotin et al., PMBS 2023).

A capacity M(t) machines of `cores` cores each is alive; the window is [begin, end]. All work is clipped to it: a run of
c cores from s to e does (min(e, end) - max(s, begin)) c core seconds there.

    goodput             useful_core_s / capacity_core_s                       section 3.4
    useful_core_s       work of the runs that completed in the window, and of those that are still going at its end
    capacity_core_s     cores x integral of M(t) over the window
    aborted_volume      aborted_core_s / capacity_core_s                      section 5.4
    aborted_core_s      work of the runs that the scheduler killed in the window
    mean_aborted_time_s mean of e - max(s, begin) over these kills            section 5.4
    stretch             (e - release) / length of a job that completed        section 5.4

The paper's own sums begin at 0; here they begin where the window does, so that a warm-up counts in neither of them. A
run counts as useful at the end whatever becomes of it later, as in the paper's set of started jobs. A run that failed
or reached its walltime is neither useful nor aborted: no machine was taken from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.model.workload import LAG_S, LENGTH, RELEASE, WINDOW_OVER, Delay, Job, Workload
from batwatt.results.columns import KILLED, SUCCESSFUL
from batwatt.results.origins import Origins
from batwatt.results.read import REJECTED

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is looked at, in s, both ends included."""

    begin_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin_s < math.inf:
            raise ValueError(f"begin_s must be >= 0 s and finite, got {self.begin_s!r}")
        if not self.begin_s <= self.end_s < math.inf:
            raise ValueError(f"end_s must be >= begin_s ({self.begin_s!r} s) and finite, got {self.end_s!r}")

    def after(self, times_s: Floats) -> Mask:
        """Which dates are after the window; not those that are missing (NaN)."""
        return times_s > self.end_s + LAG_S

    def holds(self, times_s: Floats) -> Mask:
        """Which dates are in ]begin, end]; not those that are missing (NaN)."""
        return (times_s > self.begin_s) & (times_s <= self.end_s + LAG_S)


def unfinished(jobs: pd.DataFrame, window: Window | None) -> tuple[Mask, Mask]:
    """Two sets of rows: the jobs that waited or ran when the window ended, and all rows that tell of later than that.

    Waiting is told by the metadata `WINDOW_OVER` of a rejected job, with or without a window. What was submitted after
    the end neither waited nor ran then.
    """
    beyond = ((jobs["final_state"] == REJECTED) & (jobs["metadata"] == WINDOW_OVER)).to_numpy(dtype=np.bool_)
    if window is None:
        return beyond, beyond
    beyond = beyond | window.after(jobs["finish_time"].to_numpy())
    return beyond & ~window.after(jobs["submission_time"].to_numpy()), beyond


def goodput_figures(
    jobs: pd.DataFrame, origins: Origins, workload: Workload, capacity: Series, cores: int, window: Window | None
) -> dict[str, float | None]:
    """The figures of a run under a capacity, by the names of `metrics.METRICS`; None where one has no meaning.

    `jobs` are the rows of `jobs.csv` and `origins` theirs, `capacity` the machines alive, `cores` the cores of one.
    Without a window it is from 0 to the end of the last job, and every job of the workload counts as submitted by then.
    Raises InputError if a job of the workload has a `release_s` or a `length_s` that is none.
    """
    if not cores >= 1:
        raise ValueError(f"cores must be >= 1, got {cores!r}")
    start, finish = jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()
    span = window or Window(0.0, float(np.nanmax(finish)) if np.isfinite(finish).any() else 0.0)
    begin_s, end_s = span.begin_s, span.end_s
    inside = span.holds(finish)
    state = jobs["final_state"]
    completed = inside & (state == SUCCESSFUL).to_numpy(dtype=np.bool_)
    killed = inside & (state == KILLED).to_numpy(dtype=np.bool_)
    going = (start <= end_s) & span.after(finish)
    lasted_s = np.minimum(finish, end_s) - np.maximum(start, begin_s)
    work = lasted_s * jobs["requested_number_of_resources"].to_numpy()
    alive = capacity_core_s(capacity, cores, span)
    useful, aborted = _total(work[completed | going]), _total(work[killed])
    stretch = _stretches(jobs, origins, workload, completed, end_s)
    ended = len(np.unique(origins.job[completed & origins.known]))
    due = len(workload.jobs) if window is None else sum(job.submit_time_s <= end_s for job in workload.jobs)
    return {
        "goodput": _ratio(useful, alive),
        "max_stretch": float(stretch.max()) if len(stretch) else None,
        "mean_stretch": _ratio(_total(stretch), len(stretch)),
        "aborted_volume": _ratio(aborted, alive),
        "mean_aborted_time_s": _ratio(_total(lasted_s[killed]), int(killed.sum())),
        "completed_fraction": _ratio(ended, due),
        "capacity_core_s": alive,
        "useful_core_s": useful,
        "aborted_core_s": aborted,
    }


def capacity_core_s(capacity: Series, cores: int, window: Window) -> float:
    """Core seconds of the machines alive in the window: cores x the integral of the capacity."""
    times = np.asarray(capacity.times_s)
    inner = times[(times > window.begin_s) & (times < window.end_s)]
    edges = np.concatenate(([window.begin_s], inner, [window.end_s]))
    row = np.searchsorted(times, edges[:-1], side="right") - 1
    return cores * _total(np.asarray(capacity.values)[np.maximum(row, 0)] * np.diff(edges))


def _stretches(jobs: pd.DataFrame, origins: Origins, workload: Workload, completed: Mask, end_s: float) -> Floats:
    """(end - release) / length of the completed runs, in the order of the rows; a run of length 0 has none.

    Release and length are the job's `release_s` and `length_s`, or else its first submission and the delay of its
    profile; the length of another profile is how long the run took.
    """
    rows = np.flatnonzero(completed)
    release, length = origins.submit_s[rows], jobs["execution_time"].to_numpy()[rows]
    ours = origins.known[rows]
    declared = _declared(workload, np.unique(origins.job[rows][ours]))
    for values, told in zip((release, length), declared, strict=True):
        known = told[origins.job[rows][ours]]
        values[ours] = np.where(np.isnan(known), values[ours], known)
    lasting = length > 0.0
    return (np.minimum(jobs["finish_time"].to_numpy()[rows], end_s) - release)[lasting] / length[lasting]


def _declared(workload: Workload, indices: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Release and length in s of the jobs with these indices as the workload declares them; NaN where it does not."""
    release, length = np.full((2, len(workload.jobs)), math.nan)
    durations = {name: p.duration_s for name, p in workload.profiles.items() if isinstance(p, Delay)}
    for index in indices.tolist():
        job = workload.jobs[index]
        raw = job.raw
        if RELEASE in raw:
            release[index] = _field(workload, job, RELEASE)
        length[index] = _field(workload, job, LENGTH) if LENGTH in raw else durations.get(job.profile, math.nan)
    return release, length


def _field(workload: Workload, job: Job, name: str) -> float:
    """The field of a job, a date in s >= 0 or a length in s > 0; InputError otherwise."""
    value = job.raw[name]
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not (number and (value > 0 or (value == 0 and name == RELEASE))):
        problem = f"{name!r} must be {'>=' if name == RELEASE else '>'} 0 s, got {value!r}"
        raise InputError(f"{workload.source}: job {job.id!r}", problem, "correct it or leave it out")
    return float(value)


def _total(values: Floats) -> float:
    """The exact sum, rounded once: whatever the order of rows, the same bytes."""
    return math.fsum(values.tolist())


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
