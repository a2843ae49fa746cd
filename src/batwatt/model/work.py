"""Work of the jobs of a workload: their flops, and their run times at a speed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from batwatt.model.workload import Composed, Delay, Parallel, Workload

Floats = NDArray[np.float64]


def flops_of(workload: Workload, reference_flops: float) -> Floats:
    """Return the flops of each job, a delay at `reference_flops` flop/s; NaN where its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.work_flops(hosts, reference_flops))


def run_times_s(workload: Workload, speed_flops: float) -> Floats:
    """Return the run time in s of each job on hosts of `speed_flops` flop/s; NaN if its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.run_s(hosts, speed_flops))


def _per_job(workload: Workload, of: Callable[[Delay | Parallel, int], float]) -> Floats:
    """Return a figure of each job on its hosts, summed over the parts of its profile; NaN if one is not simulated."""
    profiles = workload.profiles
    sums: dict[tuple[str, int], float] = {}

    def total(name: str, hosts: int) -> float:
        profile = profiles.get(name)
        if profile is None:
            return math.nan
        if not isinstance(profile, Composed):
            return of(profile, hosts)
        key = (name, hosts)
        if key not in sums:
            sums[key] = profile.repeat * math.fsum(total(part, hosts) for part in profile.sequence)
        return sums[key]

    return np.array([total(job.profile, job.hosts) for job in workload.jobs], dtype=np.float64)
