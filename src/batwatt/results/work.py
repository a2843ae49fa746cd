"""Full-speed run times of the rows of `jobs.csv`."""

from __future__ import annotations

import math

import numpy as np

from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, Workload
from batwatt.results.origins import Origins
from batwatt.results.parts import Chains, Floats


def full_speed_s(workload: Workload, reference_flops: float, origins: Origins, chains: Chains) -> Floats:
    """Return the run time of each row of `jobs.csv` at `reference_flops` flop/s, in s; NaN for an unknown one.

    A delay has the same run time at any speed. The first run of a job that had begun before its window is the rest of
    the job, a run after a resubmission is the whole job (its field `length_s`).
    """
    left_s = run_times_s(workload, reference_flops)
    again = ~origins.itself[chains.first]
    run_s = np.append(left_s, math.nan)[origins.job]
    if again.any():
        jobs = workload.jobs
        whole_s = left_s.copy()
        for index in [index for index, job in enumerate(jobs) if LENGTH in job.raw]:
            length_s = jobs[index].raw[LENGTH]
            if isinstance(length_s, int | float):
                whole_s[index] = length_s
        run_s[again] = np.append(whole_s, math.nan)[origins.job[again]]
    return run_s
