"""Full-speed run times of the rows of `jobs.csv`."""

from __future__ import annotations

import math

import numpy as np

from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, Workload
from batwatt.results.origins import Origins
from batwatt.results.parts import Chains, Floats


def full_speed_s(workload: Workload, reference_flops: float, origins: Origins, chains: Chains) -> Floats:
    """How long the run of each row of `jobs.csv` takes at `reference_flops` flop/s, in s; NaN if that is not known.

    A delay takes its time at any speed. A job that had begun before its window runs what was left of it first, and all
    of it (its field `length_s`) when it is submitted again.
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
