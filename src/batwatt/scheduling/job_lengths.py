"""Lengths of jobs in s, and profiles that last a given time."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.model.workload import ESTIMATE, LENGTH, RELEASE, Delay, Parallel
from batwatt.protocol.workload4 import parse_profile
from batwatt.scheduling.lifecycle import Job
from batwatt.units import LAG_S, number_text


class JobLengths:
    """The lengths of jobs, and profiles that are registered for what is left of them.

    A delay lasts its time; flops last theirs at `speed_flops` flop/s per host if that is > 0; any other job runs for
    its walltime. Fields of jobs are in s at full speed, `full_flops`, by default the same.
    """

    def __init__(self, bs: Any, speed_flops: float = 0.0, full_flops: float = 0.0) -> None:
        self._bs = bs
        self._full_flops = full_flops or speed_flops
        self._speed_flops = speed_flops
        # by workload, profile and hosts, over which a profile may spread its flops
        self._lengths: dict[tuple[str, str, int], float | None] = {}
        self._registered: dict[tuple[str, bool, int, float], str] = {}

    def run_s(self, job: Job) -> float:
        """Return the time in s that a run takes. Raises InputError."""
        length_s = self._by_profile(job)
        if length_s is not None:
            return length_s
        if job.requested_time is not None and job.requested_time > 0:
            return float(job.requested_time)
        problem = f"job {job.id} has neither a delay nor a walltime"
        raise InputError("workload", problem, "plans need lengths: give it a walltime")

    def has_length(self, job: Job) -> bool:
        """Return whether a job's profile gives its run time, not only its walltime."""
        return self._by_profile(job) is not None

    def _by_profile(self, job: Job) -> float | None:
        key = (job.id.partition("!")[0], job.profile, job.requested_resources)
        if key not in self._lengths:
            self._lengths[key] = self._read(job)
        return self._lengths[key]

    def _read(self, job: Job) -> float | None:
        raw = self._profile_of(job)
        try:
            profile = parse_profile(raw, f"profile {job.profile}") if raw else None
        except InputError:
            return None  # one that only a real Batsim runs, such as one that communicates
        if isinstance(profile, Delay):
            return profile.duration_s
        if isinstance(profile, Parallel) and len(set(profile.flops or ())) <= 1 and self._speed_flops > 0.0:
            return profile.run_s(job.requested_resources, self._speed_flops)
        return None

    def scales(self, job: Job) -> bool:
        """Return whether a job, of known length, takes longer on slower hosts."""
        return self._speed_flops > 0.0 and self._has_flops(job)

    def _has_flops(self, job: Job) -> bool:
        return str(self._profile_of(job).get("type", "")).startswith("parallel")

    def _profile_of(self, job: Job) -> Mapping[str, Any]:
        return job.profile_dict or {}

    def unknown(self, job: Job, name: str) -> InputError:
        """Return the error for a job whose length must be known and is not."""
        if not self._speed_flops and self._has_flops(job):
            problem = f"job {name} has flops, and the speed of the hosts is not known: nothing can be saved of it"
            return InputError("option 'platform'", problem, "give the platform's file, or the victim rule resubmit")
        problem = f"job {name} is neither a delay nor flops that are alike on all hosts: nothing can be saved of it"
        return InputError("workload", problem, "leave it out, or choose the victim rule resubmit or lose")

    def described(self, job: Job) -> tuple[float, float, float]:
        """Return release, whole length and the part of it that is left, in s. Raises InputError."""
        run_s = self.run_s(job)
        raw = job.json_dict or {}
        if RELEASE not in raw and LENGTH not in raw:
            return float(job.submit_time), run_s, run_s
        release_s, length_s = raw.get(RELEASE, job.submit_time), raw.get(LENGTH, run_s)
        if LENGTH in raw and isinstance(length_s, int | float) and self.scales(job):
            length_s = length_s * (self._full_flops / self._speed_flops)
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (release_s, length_s))
        if not (numbers and 0.0 <= release_s <= job.submit_time and run_s - LAG_S <= length_s < math.inf):
            problem = f"job {job.id}: {RELEASE} {release_s!r} and {LENGTH} {length_s!r} are no release and length"
            raise InputError("workload", problem, "a release is <= subtime, a length >= what is left of it, both in s")
        return float(release_s), float(length_s), run_s

    def lasting(self, job: Job, length_s: float) -> str:
        """Return the name of a profile like the job's (a delay, or flops) of `length_s` s; register it if need be."""
        workload = job.id.partition("!")[0]
        flops, code = self.scales(job), int(self._profile_of(job).get("ret", 0))
        name = self._registered.get((workload, flops, code, length_s))
        if name is None:
            whole: dict[str, Any] = {"type": "delay", "delay": length_s}
            if flops:
                whole = {"type": "parallel_homogeneous", "cpu": length_s * self._speed_flops, "com": 0.0}
            name = f"{'f' if flops else 'd'}{number_text(length_s)}"
            whole |= {"ret": code} if code else {}
            profiles = self._bs.profiles[workload]
            while name in profiles and any(
                profiles[name].get(field, 0) != value for field, value in (*whole.items(), ("ret", code))
            ):
                name += "+"
            if name not in profiles:
                self._bs.register_profiles(workload, {name: whole})
            self._registered[workload, flops, code, length_s] = name
        # the job that comes of it does not carry its profile
        self._lengths[workload, name, job.requested_resources] = length_s
        return name


def request_s(walltime_s: float | None, raw: Mapping[str, Any] | None, job_id: str) -> float:
    """Return the run time that a user requested in s: `estimate_s`, else the walltime; infinite without either."""
    limit_s = float(walltime_s) if walltime_s is not None and walltime_s > 0 else math.inf
    return number_in(raw or {}, ESTIMATE, limit_s, job_id, zero=False)


def text_in(raw: Mapping[str, Any] | None, *names: str) -> str:
    """Return the first text among some fields of a job, such as its user; empty without one."""
    return next((str(raw[name]) for name in names if raw.get(name) not in (None, "")), "") if raw else ""


def number_in(raw: Mapping[str, Any], name: str, otherwise: float, job_id: str, *, zero: bool) -> float:
    """Return a number > 0 (or 0 with `zero`) of a job's fields, `otherwise` without one. Raises InputError."""
    value = raw.get(name)
    if value is None:
        return otherwise
    good = isinstance(value, int | float) and not isinstance(value, bool) and (value > 0.0 or (zero and value == 0))
    if not good or not value <= sys.float_info.max:
        bound = ">= 0" if zero else "> 0"
        raise InputError("workload", f"job {job_id}: {name} must be a number {bound}, got {shown(value)}", "correct it")
    return float(value)
