"""Whose run each row of `jobs.csv` is: a scheduler may submit a job again, under another id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.workload import ATTEMPT, Workload


@dataclass(frozen=True, slots=True)
class Origins:
    """For each row: the job of the workload that it is a run of, and since when that job waits.

    `job` is an index in `workload.jobs`, -1 where the scheduler made the job up; `submit_s` the first submission in s;
    `itself` tells the job from its resubmissions.
    """

    job: NDArray[np.intp]
    submit_s: NDArray[np.float64]
    itself: NDArray[np.bool_]

    @property
    def known(self) -> NDArray[np.bool_]:
        """The rows of jobs of the workload."""
        return self.job >= 0


def origins_of(jobs: pd.DataFrame, workload: Workload, path: Path) -> Origins:
    """The origin of each row; `3#1` is a resubmission of `3` unless the workload has a job `3#1`.

    `jobs` are the rows of `path`. Raises InputError if none of them is of the workload.
    """
    known = {job.id: index for index, job in enumerate(workload.jobs)}
    names = (jobs["workload_name"] + "!" + jobs["job_id"]).tolist()
    found = [known.get(name, -1) for name in names]
    since = jobs["submission_time"].to_numpy(copy=True)
    itself = np.ones(len(names), dtype=np.bool_)
    others = [row for row, index in enumerate(found) if index < 0]
    if others:
        first = dict(zip(reversed(names), reversed(since.tolist()), strict=True))
        for row in others:
            root = names[row]
            while root not in known and ATTEMPT.search(root):
                root = ATTEMPT.sub("", root)
            itself[row] = root == names[row]
            found[row] = known.get(root, -1)
            since[row] = min(since[row], first.get(root, since[row]))
    job = np.array(found, dtype=np.intp)
    ours = job >= 0
    if names and known and not ours.any():
        problem = f"neither job {names[0]!r} nor any other is in the workload {workload.source}"
        raise InputError(path, problem, "name the workload that was run")
    declared = np.array([row.submit_time_s for row in workload.jobs])
    since[ours] = np.minimum(declared[job[ours]], jobs["submission_time"].to_numpy()[ours])
    return Origins(job, since, itself)
