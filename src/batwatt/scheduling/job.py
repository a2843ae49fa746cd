"""A job that a scheduler manages, from its submission to its end, and the lengths and requests of jobs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeAlias, final

import numpy as np
from batsim.batsim import Job as BatsimJob
from numpy.typing import NDArray
from typing_extensions import TypeVar

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.model.workload import ESTIMATE, LENGTH, RELEASE, Delay, Parallel
from batwatt.protocol.workload4 import parse_profile
from batwatt.units import LAG_S, microseconds, number_text

Places: TypeAlias = NDArray[np.int64]
"""Machines of a job, in the order in which they were taken."""
NOWHERE: Final[Places] = np.empty(0, dtype=np.int64)


State = TypeVar("State", default=Any)
"""State of a job in one policy."""


@final
class Job(Generic[State]):
    """A job of the workload in a scheduler, through all its attempts; times in s.

    Identity: `number` counts arrivals, `name` is the id in the workload, `attempt` the present attempt as pybatsim has
    it; `submit_s` is the submission by which it queues, `release_s` the first one.
    Requests: `hosts`, `request_s`, the run time that its user requested for the present attempt, and `walltime_s`, at
    which Batsim kills it (both infinite without one), `memory` on its machine. `machines` is how many machines it has
    to itself; 0: it shares one, with the cores `bits` of it.

    Lengths are in s at the nominal speed: `length_s` of the whole job, `left_s` of the present run when it began, or
    its present part if it was moved, at `start_s`. A run does `pace` of a length in a second: not 1 only for a job
    that `scales` on slower machines, and 0 while it works at nothing. `estimate_s` is the length by which it is ordered
    and expected to end, `bound_s` what that may grow to when it is outrun, by default both the request;
    `assumed_s` is the length that mappings take, `long` its class.

    Work on hosts that change their speeds: `work_flops` is the estimate per host, `done_flops` what its slowest host
    had executed of the present run at `since_s`, `speed_flops` its speed since then, in flop/s. `whole_request_s` is
    the request for all attempts, `whole_estimate` the estimate (`run_times`).

    Run: `mask` are the hosts of its last run (0: none, or given back), `places` its machines; `dying` while a kill
    is under way, `moving` between two places, `refused` when it will never run; `missing` is the number of jobs that it
    waits for, `preempted` how often it was stopped for another job. `sort_key` belongs to its queue.

    `state` is what one policy alone notes of a job: an object of a class of that policy.
    """

    __slots__ = (
        "assumed_s", "attempt", "bits", "bound_s", "done_flops", "dying", "estimate_s", "hosts", "left_s", "length_s",
        "long", "machines", "mask", "memory", "missing", "moving", "name", "number", "pace", "places", "preempted",
        "refused", "release_s", "request_s", "scales", "since_s", "sort_key", "speed_flops", "start_s", "state",
        "submit_s", "walltime_s", "whole_estimate", "whole_request_s", "work_flops",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        attempt: Any,
        length_s: float = math.inf,
        left_s: float = math.inf,
        estimate_s: float | None = None,
        assumed_s: float = math.inf,
        long: bool = False,
        machines: int = 0,
        memory: float = 0.0,
        state: Any = None,
    ) -> None:
        self.number = number
        self.attempt: Any = attempt
        self.name: str = attempt.id
        self.submit_s = self.release_s = float(attempt.submit_time)
        self.hosts: int = attempt.requested_resources
        self.walltime_s = self.request_s = math.inf
        self.renew()
        self.length_s = length_s
        self.left_s = left_s
        self.estimate_s = self.bound_s = self.walltime_s if estimate_s is None else estimate_s
        self.assumed_s = assumed_s
        self.long = long
        self.machines = machines
        self.memory = memory
        self.work_flops = self.done_flops = self.since_s = self.speed_flops = 0.0
        self.whole_request_s = math.inf
        self.whole_estimate: Any = None
        self.sort_key: tuple[float, float, int] = (0.0, 0.0, number)
        self.missing = 0
        self.start_s = 0.0
        self.mask = 0
        self.places: Places = NOWHERE
        self.bits = 0
        self.dying = False
        self.moving = False
        self.preempted = 0
        self.refused = False
        self.pace = 1.0
        self.scales = False
        self.state: State = state

    def renew(self) -> None:
        """Take the walltime of the present attempt, which may differ from that of the one before, as its request."""
        walltime: Any = self.attempt.requested_time
        self.walltime_s = float(walltime) if walltime is not None and walltime > 0 else math.inf
        self.request_s = self.walltime_s

    @property
    def width(self) -> int:
        """The number of machines on which it runs."""
        return self.machines or 1

    @property
    def deadline_s(self) -> float:
        """Time in s at which its run has lasted as long as its user requested."""
        return microseconds(self.start_s + self.request_s)

    def ran_s(self, now_s: float) -> float:
        """Return the length in s that its run has done at a time, recovery included."""
        return (now_s - self.start_s) * self.pace

    def done_s(self, now_s: float) -> float:
        """Return the length in s that it has done at a time, all runs together."""
        return self.ran_s(now_s) + self.length_s - self.left_s

    def rest_s(self, now_s: float) -> float:
        """Return the length in s that is left at a time."""
        return self.left_s - self.ran_s(now_s)

    def ends_s(self, length_s: float) -> float:
        """Return the time in s at which its run ends if the whole job is this long."""
        return self.start_s + (length_s - (self.length_s - self.left_s)) / self.pace

    def expected_end_s(self, now_s: float) -> float:
        """Return the expected end of its run, as a time in s, not before now; an estimate that is outrun doubles."""
        self.double_estimate(self.done_s(now_s))
        return max(now_s, self.ends_s(self.estimate_s))

    def double_estimate(self, done_s: float) -> None:
        """Double the estimate until it is not below the length done, in s, or reaches the bound."""
        while self.estimate_s < done_s and self.estimate_s < self.bound_s:
            self.estimate_s = min(2.0 * self.estimate_s, self.bound_s)

    def work(self, now_s: float) -> float:
        """Return the core seconds that are lost if it is killed."""
        return self.hosts * self.done_s(now_s)

    def executed_flops(self, now_s: float) -> float:
        """Return the flops per host that its run has executed by `now_s` (Ef_j)."""
        return self.done_flops + self.speed_flops * (now_s - self.since_s)

    def set_speed(self, now_s: float, speed_flops: float) -> None:
        """Let its run go on at another speed."""
        self.done_flops = self.executed_flops(now_s)
        self.since_s = now_s
        self.speed_flops = speed_flops

    def begin_run(self, now_s: float, speed_flops: float) -> None:
        """Begin a run, of which nothing is done, at a speed."""
        self.done_flops = 0.0
        self.since_s = now_s
        self.speed_flops = speed_flops


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

    def run_s(self, job: BatsimJob) -> float:
        """Return the time in s that a run takes. Raises InputError."""
        length_s = self._by_profile(job)
        if length_s is not None:
            return length_s
        if job.requested_time is not None and job.requested_time > 0:
            return float(job.requested_time)
        problem = f"job {job.id} has neither a delay nor a walltime"
        raise InputError("workload", problem, "plans need lengths: give it a walltime")

    def has_length(self, job: BatsimJob) -> bool:
        """Return whether a job's profile gives its run time, not only its walltime."""
        return self._by_profile(job) is not None

    def _by_profile(self, job: BatsimJob) -> float | None:
        key = (job.id.partition("!")[0], job.profile, job.requested_resources)
        if key not in self._lengths:
            self._lengths[key] = self._read(job)
        return self._lengths[key]

    def _read(self, job: BatsimJob) -> float | None:
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

    def scales(self, job: BatsimJob) -> bool:
        """Return whether a job, of known length, takes longer on slower hosts."""
        return self._speed_flops > 0.0 and self._has_flops(job)

    def _has_flops(self, job: BatsimJob) -> bool:
        return str(self._profile_of(job).get("type", "")).startswith("parallel")

    def _profile_of(self, job: BatsimJob) -> Mapping[str, Any]:
        return job.profile_dict or {}

    def unknown(self, job: BatsimJob, name: str) -> InputError:
        """Return the error for a job whose length must be known and is not."""
        if not self._speed_flops and self._has_flops(job):
            problem = f"job {name} has flops, and the speed of the hosts is not known: nothing can be saved of it"
            return InputError("option 'platform'", problem, "give the platform's file, or the victim rule resubmit")
        problem = f"job {name} is neither a delay nor flops that are alike on all hosts: nothing can be saved of it"
        return InputError("workload", problem, "leave it out, or choose the victim rule resubmit or lose")

    def described(self, job: BatsimJob) -> tuple[float, float, float]:
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

    def lasting(self, job: BatsimJob, length_s: float) -> str:
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
