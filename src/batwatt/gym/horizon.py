"""The horizon of an episode, until which jobs that were never served count as waiting, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from batwatt.gym.limits import Limits
from batwatt.inputs.load import RunInputs
from batwatt.model.platform import Host
from batwatt.model.record import NULL_RUNTIME_S
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE, merged
from batwatt.results.slowdowns import BOUND_S


class JobTimes(NamedTuple):
    """Of a job in s: its release, its run time at full speed, and the shorter of that and its walltime."""

    release_s: float
    full_s: float
    shortest_s: float

    def bounded_slowdown(self, end_s: float) -> float:
        """The bounded slowdown of the job if it ends at `end_s`."""
        return max(1.0, (end_s - self.release_s) / max(BOUND_S, self.full_s))


@dataclass(frozen=True)
class Horizon:
    """`end_s`: last submission, change of a limit or external event + run times of all jobs on the slowest host.

    To a run time belongs the recovery of the victim rule, and with `switch` that hosts switch off and on for each job;
    with `dvfs` the slowest p-state counts. A policy that starts the first waiting job whenever it can
    start has served all jobs by then that can run at all: after that last change some job runs at any time. `energy_j`
    is that of all hosts at full power until then, `core_s` their core seconds.
    """

    end_s: float
    energy_j: float
    core_s: float
    jobs: Mapping[str, JobTimes]

    @classmethod
    def of(
        cls,
        inputs: RunInputs,
        limits: Limits,
        last_event_s: float,
        recovery_s: float,
        switch: bool = False,
        dvfs: bool = False,
    ) -> Horizon:
        """The horizon of an episode with these inputs, its last external event, and the recovery of its victim rule."""
        platform, load, run = inputs.platform, inputs.measured, merged(inputs.run)
        states = [host.compute[-1] if dvfs else host.initial_pstate for host in platform.hosts]
        slowest = min(host.pstates[state].speed_flops for host, state in zip(platform.hosts, states, strict=True))
        switch_s = max([_switch_s(host) for host in platform.hosts]) if switch else 0.0
        slower = platform.fastest_flops / slowest
        longest_s = [
            max(run_s, job.raw.get(LENGTH, 0.0) * slower, NULL_RUNTIME_S) + recovery_s * slower + switch_s
            for job, run_s in zip(run.jobs, np.nan_to_num(run_times_s(run, slowest)).tolist(), strict=True)
        ]
        last_s = max([load.last_submission_s, last_event_s, *limits.changes[-1:]])
        end_s = last_s + math.fsum(longest_s)
        jobs = {}
        for job, run_s in zip(load.jobs, run_times_s(load, platform.fastest_flops).tolist(), strict=True):
            release_s, length_s = job.raw.get(RELEASE, job.submit_time_s), job.raw.get(LENGTH, run_s)
            shortest_s = min(run_s, math.inf if job.walltime_s is None else job.walltime_s)
            jobs[job.id] = JobTimes(release_s, length_s, max(shortest_s, NULL_RUNTIME_S))
        return cls(end_s, limits.most_w * end_s, len(platform) * end_s, jobs)


def _switch_s(host: Host) -> float:
    """Return how long a host takes to switch off and on, s; 0 if it cannot sleep."""
    return sum(
        host.pstates[state].duration_s for sleep in host.sleeps[:1] for state in (sleep.switch_off, sleep.switch_on)
    )
