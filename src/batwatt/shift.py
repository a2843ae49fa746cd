"""Later starts of jobs for less carbon or cost, under schedulers that know neither carbon nor price.

The policies of the scheduler `carbon` that do not suspend jobs choose a start for each job as if it were alone; the
job is held until that time, and any scheduler runs it later as it can (GAIA does so on a cluster). The option is
`shift`: the name of a policy, or an object as {"name": "waiting", "wait_h": [6, 24]}.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from batwatt.checks import shown_json, validated
from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.work import ShiftJob, constant, run_times_s
from batwatt.model.workload import Workload
from batwatt.schedulers.carbon.forecast import SignalForecast
from batwatt.schedulers.carbon.policies import MeanLengths, PolicyInputs, by_class, policy_named
from batwatt.scheduling.base import WAIT_H, WaitHours
from batwatt.scheduling.job import request_s
from batwatt.scheduling.run_times import ExactRunTimes, RunTimes

_WHERE = "option 'shift'"


class Shift(BaseModel):
    """A policy, the hours that short and long jobs may wait, and the errors of forecasts (`SignalForecast`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str
    wait_h: WaitHours = WAIT_H
    forecast_error: float = Field(0.0, ge=0.0, le=10.0)
    forecast_seed: int = Field(0, ge=0)
    forecast_sure_h: float | None = Field(None, ge=0.0)


def shift_of(choice: Any) -> Shift:
    """Return the option as a model. Raises InputError."""

    def error_of(error: Any) -> InputError:
        problem = f"{shown_json(choice)} is not a policy"
        return InputError(_WHERE, problem, 'write "waiting", or {"name": "waiting", "wait_h": [6, 24]}')

    return validated(Shift, {"name": choice} if isinstance(choice, str) else choice, error_of)


def held_until(
    choice: Any, workload: Workload, signal: Timeline, speed_flops: float, run_times: RunTimes | None = None
) -> dict[str, float]:
    """Return job id -> time in s until which it is held; lengths of flops at `speed_flops`. Raises InputError.

    A job without a length, or with one beyond the end of the signal, is not held. The mean length of a class is that
    of its jobs submitted so far. The length of a job is its request; its run time without one, or with exact
    `run_times`. Other estimates do not hold jobs without a request.
    """
    shift = shift_of(choice)
    policy = policy_named(shift.name, _WHERE, suspending=False)
    if policy.interrupting:
        problem = f"the policy {policy.name!r} suspends jobs, which only the scheduler 'carbon' does"
        raise InputError(_WHERE, problem, "choose one that does not, such as waiting or oracle")
    lengths = [math.inf] * len(workload.jobs)
    if isinstance(run_times, ExactRunTimes | None):
        lengths = run_times_s(workload, speed_flops).tolist()
    if not isinstance(run_times, ExactRunTimes):
        requests = [request_s(job.walltime_s, job.raw, job.id) for job in workload.jobs]
        lengths = [
            length_s if math.isinf(asks_s) else asks_s for asks_s, length_s in zip(requests, lengths, strict=True)
        ]
    forecast = SignalForecast(signal, shift.forecast_error, shift.forecast_seed, shift.forecast_sure_h)
    begins_s: dict[str, float] = {}
    means = MeanLengths()
    for job, length_s in sorted(zip(workload.jobs, lengths, strict=True), key=lambda pair: pair[0].submit_time_s):
        if not 0.0 < length_s < math.inf:
            continue
        alone = ShiftJob(job.id, job.submit_time_s, constant(length_s, 1.0))
        means.add(alone)
        mean_s = means.of(alone)
        window = by_class(alone, shift.wait_h)
        if window.latest_s + max(length_s, mean_s) > signal.until_s:
            continue
        seen = forecast.at(job.submit_time_s)
        begins_s[job.id] = policy.choose(alone, window, seen, PolicyInputs(mean_s))[0][0]
    return begins_s
