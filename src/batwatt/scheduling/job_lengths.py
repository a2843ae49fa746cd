"""How long jobs run, and profiles that last a given time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from batsim.batsim import Job

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_gen import number_text
from batwatt.inputs.workloads.batsim_json import parse_profile, shown
from batwatt.model.workload import LENGTH, RELEASE, Delay
from batwatt.units import LAG_S


def delay_of(job: Job) -> float | None:
    """How long its profile lasts, in s; None if that is no delay. Raises InputError."""
    profile = parse_profile(job.profile_dict, f"profile {job.profile}") if job.profile_dict else None
    return profile.duration_s if isinstance(profile, Delay) else None


class JobLengths:
    """The lengths of jobs, and delays that are registered for what is left of them.

    `length_of` says how long a profile lasts, in s; where it gives None a job runs for its walltime.
    """

    def __init__(self, bs: Any, length_of: Callable[[Job], float | None] = delay_of) -> None:
        self._bs = bs
        self._length_of = length_of
        self._lengths: dict[tuple[str, str], float] = {}
        self._delays: dict[tuple[str, float], str] = {}

    def run_s(self, job: Job) -> float:
        """How long a run takes, in s. Raises InputError."""
        key = (job.id.partition("!")[0], job.profile)
        known = self._lengths.get(key)
        if known is None:
            known = self._length_of(job)
            if known is not None:
                self._lengths[key] = known
            elif job.requested_time is not None and job.requested_time > 0:
                known = float(job.requested_time)
            else:
                problem = f"job {job.id} has neither a delay nor a walltime"
                raise InputError("workload", problem, "plans need lengths: give it a walltime")
        return known

    def described(self, job: Job) -> tuple[float, float, float]:
        """Release, whole length and what is left of it, in s. Raises InputError."""
        run_s = self.run_s(job)
        raw = job.json_dict or {}
        if RELEASE not in raw and LENGTH not in raw:
            return float(job.submit_time), run_s, run_s
        release_s, length_s = raw.get(RELEASE, job.submit_time), raw.get(LENGTH, run_s)
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (release_s, length_s))
        if not (numbers and 0.0 <= release_s <= job.submit_time and run_s - LAG_S <= length_s < math.inf):
            problem = f"job {job.id}: {RELEASE} {release_s!r} and {LENGTH} {length_s!r} are no release and length"
            raise InputError("workload", problem, "a release is <= subtime, a length >= what is left of it, both in s")
        return float(release_s), float(length_s), run_s

    def delay(self, job: Job, length_s: float) -> str:
        """The name of a profile of the job's workload that lasts so long, registered if need be."""
        workload = job.id.partition("!")[0]
        name = self._delays.get((workload, length_s))
        if name is None:
            name, whole = f"d{number_text(length_s)}", {"type": "delay", "delay": length_s}
            known = self._bs.profiles[workload]
            while name in known and (known[name]["type"], known[name].get("delay")) != ("delay", length_s):
                name += "+"
            if name not in known:
                self._bs.register_profiles(workload, {name: whole})
            self._lengths[workload, name] = length_s
            self._delays[workload, length_s] = name
        return name


def number_in(raw: Mapping[str, Any], name: str, otherwise: float, job_id: str, *, zero: bool) -> float:
    """A number > 0, or `zero`, among the fields of a job; InputError otherwise."""
    value = raw.get(name)
    if value is None:
        return otherwise
    good = isinstance(value, int | float) and not isinstance(value, bool) and (value > 0.0 or (zero and value == 0))
    if not good or not value <= sys.float_info.max:
        bound = ">= 0" if zero else "> 0"
        raise InputError("workload", f"job {job_id}: {name} must be a number {bound}, got {shown(value)}", "correct it")
    return float(value)
