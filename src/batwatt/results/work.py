"""What the jobs of a workload have to do: their flops, and how long that takes at full speed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from batwatt.model.workload import LENGTH, Composed, Delay, Parallel, Workload
from batwatt.results.origins import Origins
from batwatt.results.parts import Chains, Floats


def flops_of(workload: Workload, reference_flops: float) -> Floats:
    """Flops of each job, those of a delay at `reference_flops` flop/s; NaN where its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.work_flops(hosts, reference_flops))


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


def run_times_s(workload: Workload, speed_flops: float) -> Floats:
    """How long each job takes on hosts of `speed_flops` flop/s, in s; NaN where its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.run_s(hosts, speed_flops))


def _per_job(workload: Workload, of: Callable[[Delay | Parallel, int], float]) -> Floats:
    """A figure of each job on its hosts, summed over the parts of its profile; NaN if one of these is not simulated."""
    profiles = workload.profiles
    known: dict[tuple[str, int], float] = {}

    def total(name: str, hosts: int) -> float:
        profile = profiles.get(name)
        if profile is None:
            return math.nan
        if not isinstance(profile, Composed):
            return of(profile, hosts)
        key = (name, hosts)
        if key not in known:
            known[key] = profile.repeat * math.fsum(total(part, hosts) for part in profile.sequence)
        return known[key]

    return np.array([total(job.profile, job.hosts) for job in workload.jobs], dtype=np.float64)
