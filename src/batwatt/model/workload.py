"""Workloads: jobs, and the profiles that describe the work of a job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

NO_WALLTIME: Final = -1.0
"""Walltime in Batsim's files of a job without one."""
RELEASE, LENGTH = "release_s", "length_s"
"""Fields of a job that was released before its submission: the release time, and the length of the whole job, in s."""
JOB_FIELDS: Final = frozenset({"id", "subtime", "res", "walltime", "profile"})
"""Fields of a job that Batsim defines."""
MEMORY, ESTIMATE, DEPENDS, USE = "memory", "estimate_s", "depends_on", "use"
"""Fields of a job: its memory in total, in the unit of the memory of machines; the user's estimate of the run time in
s; the ids of jobs of its workload that must complete first; the mean share of its cores that it uses, in ]0, 1]."""
CHECKPOINT_S, RECOVERY_S = "checkpoint_s", "recovery_s"
"""Fields of a job: the time of a checkpoint, and of a recovery from one, in s >= 0."""
LABELS: Final = ("user", "group", "queue", "qos")
"""Fields of a job, texts of a job log: its user and group, its queue or partition, its quality of service."""
POWER_W, START_S = "power_w", "start_s"
"""Fields of a job, numbers of a job log: the mean power in W of all of its hosts while it ran; its start in s, on the
clock of its submission."""
POWER_STD_W, POWER_MAX_W, POWER_PHASES = "power_std_w", "power_max_w", "power_phases"
"""Fields of a job: standard deviation over time and maximum of its power in W; or its phases, a list of [s, W]."""
MOST_CPUS: Final = 1_000_000_000
"""Greatest number of cpus of a job; more are taken for an error."""
LONG_S: Final = 3600.0
"""A job is long if its run time in s exceeds this value, a usual period between changes of a capacity."""


class Delay(NamedTuple):
    """A profile that lasts `duration_s` at any speed of its hosts."""

    duration_s: float
    return_code: int = 0

    def work_flops(self, hosts: int, reference_flops: float) -> float:
        """Return the flops that occupy `hosts` hosts of `reference_flops` flop/s for `duration_s`."""
        return self.duration_s * hosts * reference_flops

    def run_s(self, hosts: int, speed_flops: float) -> float:
        """Return the run time in s, which does not depend on the speed."""
        return self.duration_s


class Parallel(NamedTuple):
    """A parallel task without communication: flops per executor (`per_host_flops` when alike, else `flops`).

    `total_flops`: a total spread evenly over any number of hosts (`parallel_homogeneous_total`).
    Exactly one of the three is not None.
    """

    per_host_flops: float | None = None
    total_flops: float | None = None
    flops: tuple[float, ...] | None = None
    return_code: int = 0

    def each_flops(self, executors: int) -> float | None:
        """Return the flops of each executor when all are alike, else None."""
        if self.per_host_flops is not None:
            return self.per_host_flops
        return self.total_flops / executors if self.total_flops is not None else None

    def work_flops(self, hosts: int, reference_flops: float) -> float:
        """Return the total flops over all executors."""
        if self.flops is not None:
            return sum(self.flops)
        each = self.each_flops(hosts)
        return 0.0 if each is None else each * hosts

    def run_s(self, hosts: int, speed_flops: float) -> float:
        """Return the run time in s on `hosts` hosts of `speed_flops` flop/s."""
        each = max(self.flops) if self.flops else self.each_flops(hosts)
        return (each or 0.0) / speed_flops


@dataclass(frozen=True, slots=True)
class Composed:
    """A sequence of named profiles that runs `repeat` times."""

    sequence: tuple[str, ...]
    repeat: int = 1
    return_code: int = 0


Profile = Delay | Parallel | Composed


class JobSpec(NamedTuple):
    """A job of a workload; `id` is full (`w0!3`), `raw` its JSON with that id and floats as Batsim sends them."""

    id: str
    submit_time_s: float
    hosts: int
    profile: str
    walltime_s: float | None = None
    raw: Mapping[str, Any] = MappingProxyType({})

    @property
    def workload(self) -> str:
        """Name of the workload of the job."""
        return self.id.split("!", 1)[0]

    @property
    def name(self) -> str:
        """The id within its workload."""
        return self.id.split("!", 1)[1]


@dataclass(frozen=True)
class Workload:
    """Jobs in submission order (time, then full id); `raw_profiles` are the profiles as Batsim would send them.

    The delays of a `recorded` workload are the lengths of jobs of a trace at full speed.
    """

    name: str
    jobs: tuple[JobSpec, ...]
    profiles: Mapping[str, Profile]
    raw_profiles: Mapping[str, Mapping[str, Any]]
    nb_res: int
    source: str = "<memory>"
    recorded: bool = field(default=False, compare=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)
    """Remarks of the reader on data that it left out."""
    begin: str = field(default="", compare=False)
    """The date of 0 s in UTC, or empty."""

    @cached_property
    def last_submission_s(self) -> float:
        """Submission time in s of the last job; 0 without jobs."""
        return max((job.submit_time_s for job in self.jobs), default=0.0)


def merged(workloads: Sequence[Workload]) -> Workload:
    """Merge several workloads into one; profiles are called `w1!NAME`, so that equal names do not collide."""
    if len(workloads) == 1:
        return workloads[0]
    jobs = [job._replace(profile=f"{job.workload}!{job.profile}") for load in workloads for job in load.jobs]
    profiles: dict[str, Profile] = {}
    for load in workloads:
        for name, profile in load.profiles.items():
            if isinstance(profile, Composed):
                profile = replace(profile, sequence=tuple(f"{load.name}!{part}" for part in profile.sequence))
            profiles[f"{load.name}!{name}"] = profile
    return Workload(
        name=",".join(load.name for load in workloads),
        jobs=tuple(sorted(jobs, key=lambda job: (job.submit_time_s, job.id))),
        profiles=profiles,
        raw_profiles={f"{load.name}!{name}": raw for load in workloads for name, raw in load.raw_profiles.items()},
        nb_res=max(load.nb_res for load in workloads),
        source=", ".join(load.source for load in workloads),
        begin=workloads[0].begin,
    )


@dataclass(frozen=True, slots=True)
class JobPower:
    """Mean, standard deviation over time and maximum in W; `phases` are (duration in s, W), the last one without end.

    Without phases a simulation takes the mean at all times.
    """

    mean_w: float
    std_w: float = 0.0
    max_w: float = 0.0
    phases: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("mean_w", "std_w", "max_w"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} must be >= 0 W and finite, got {value!r}")
        # the mean replaces a maximum that was not measured
        object.__setattr__(self, "max_w", max(self.max_w, self.mean_w))

    @classmethod
    def of_phases(cls, phases: Sequence[tuple[float, float]]) -> JobPower:
        """Return the power of phases (duration in s > 0, W >= 0), with mean and deviation over time, and maximum."""
        if not phases or not all(0.0 < length_s < math.inf for length_s, _ in phases):
            raise ValueError(f"phases must be at least one, of more than 0 s each, got {list(phases)!r}")
        total_s = math.fsum(length_s for length_s, _ in phases)
        mean_w = math.fsum(length_s * watts for length_s, watts in phases) / total_s
        squares = math.fsum(length_s * (watts - mean_w) ** 2 for length_s, watts in phases)
        return cls(mean_w, math.sqrt(squares / total_s), max(watts for _, watts in phases), tuple(phases))

    def until(self, ran_s: float) -> JobPower:
        """Return the power of a run that lasted `ran_s` s, possibly less than its phases."""
        if not self.phases or not ran_s > 0.0:
            return self
        return JobPower.of_phases([(end_s - begin_s, watts) for begin_s, end_s, watts in self.pieces(ran_s)])

    def pieces(self, ran_s: float) -> list[tuple[float, float, float]]:
        """Return (begin, end in s after the start, W) of each phase of a run of `ran_s` s."""
        pieces: list[tuple[float, float, float]] = []
        begin_s = 0.0
        phases = self.phases or ((math.inf, self.mean_w),)
        for index, (length_s, watts) in enumerate(phases):
            last = index == len(phases) - 1
            end_s = ran_s if last else min(ran_s, begin_s + length_s)
            if end_s > begin_s:
                pieces.append((begin_s, end_s, watts))
            begin_s = end_s
        return pieces
