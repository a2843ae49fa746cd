"""Job of the workload of each row of `jobs.csv`: a scheduler may submit a job again, under another id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.workload import ATTEMPT, Workload
from batwatt.results.run_files import Columns, numbers


@dataclass(frozen=True, slots=True)
class Origins:
    """For each row: its job of the workload, and the first submission of that job.

    `job` is an index in `workload.jobs`, -1 for a job that the scheduler registered itself; `submit_s` the first
    submission in s; `itself` distinguishes the job from its resubmissions.
    """

    job: NDArray[np.intp]
    submit_s: NDArray[np.float64]
    itself: NDArray[np.bool_]

    @property
    def in_workload(self) -> NDArray[np.bool_]:
        """Rows whose job is in the workload."""
        return self.job >= 0


def origins_of(jobs: Columns, workload: Workload, path: Path) -> Origins:
    """Return the origin of each row; `3#1` is a resubmission of `3` unless the workload has a job `3#1`.

    `jobs` are the columns of `path`. Raises InputError if no row is of the workload.
    """
    index_of = {job.id: index for index, job in enumerate(workload.jobs)}
    names = jobs.get("full_id")
    if names is None:
        names = [f"{load}!{name}" for load, name in zip(jobs["workload_name"], jobs["job_id"], strict=True)]
    job = np.array([index_of.get(name, -1) for name in names], dtype=np.intp)
    submitted = numbers(jobs, "submission_time")
    since = submitted.copy()
    itself = np.ones(len(names), dtype=np.bool_)
    roots = {row: names[row] for row in np.flatnonzero(job < 0).tolist()}
    others = [row for row, root in roots.items() if ATTEMPT.search(root)]
    while others:
        roots.update((row, ATTEMPT.sub("", roots[row])) for row in others)
        itself[others] = False
        job[others] = [index_of.get(roots[row], -1) for row in others]
        others = [row for row in others if job[row] < 0 and ATTEMPT.search(roots[row])]
    ours = job >= 0
    if len(names) and len(index_of) and not ours.any():
        problem = f"neither job {names[0]!r} nor any other is in the workload {workload.source}"
        raise InputError(path, problem, "name the workload that was run")
    foreign = np.flatnonzero(~ours & ~itself).tolist()
    if foreign:
        wanted = {roots[row] for row in foreign}
        first = {names[row]: float(submitted[row]) for row in reversed(range(len(names))) if names[row] in wanted}
        for row in foreign:
            since[row] = min(since[row], first.get(roots[row], since[row]))
    declared = np.array([row.submit_time_s for row in workload.jobs])
    since[ours] = np.minimum(declared[job[ours]], submitted[ours])
    return Origins(job, since, itself)
