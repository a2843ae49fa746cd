"""The horizon of an episode, until which jobs that were never served count as waiting, and its costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from batwatt.gym.limits import Limits
from batwatt.inputs.load import RunInputs
from batwatt.model.record import NULL_RUNTIME_S
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE, merged
from batwatt.results.slowdowns import BOUND_S
from batwatt.scheduling.registry import make
from batwatt.scheduling.victims import VictimRule


class JobTimes(NamedTuple):
    """Times of a job in s: its release, its run time at full speed, and the shorter of that and its walltime."""

    release_s: float
    full_s: float
    shortest_s: float

    def bounded_slowdown(self, end_s: float) -> float:
        """Return the bounded slowdown of the job if it ends at `end_s`."""
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
    def of(cls, inputs: RunInputs, limits: Limits, last_event_s: float, options: Mapping[str, Any]) -> Horizon:
        """Return the horizon of an episode with these inputs, its last external event, and the options of its run."""
        platform, load, run = inputs.platform, inputs.measured, merged(inputs.run)
        slowest = min(
            host.pstates[host.compute[-1] if "dvfs" in options else host.initial_pstate].speed_flops
            for host in platform.hosts
        )
        rule: VictimRule = make("victim", options["victim"])
        sleepers = [(host.pstates, host.sleeps[0]) for host in platform.hosts if host.sleeps and "switch" in options]
        switches_s = [states[way.switch_off].duration_s + states[way.switch_on].duration_s for states, way in sleepers]
        slower = platform.fastest_flops / slowest
        longest_s = [
            max(run_s, job.raw.get(LENGTH, 0.0) * slower, NULL_RUNTIME_S)
            + rule.recovery_s * slower
            + max(switches_s, default=0.0)
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
