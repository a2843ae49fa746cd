"""The hosts on which the scheduler `carbon` runs jobs: machines for jobs in phases, or those of any platform.

The rules: docs/explanation/carbon-engine.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any

import numpy as np

from batwatt.errors import InputError
from batwatt.inputs.series.capacity import checked_capacity
from batwatt.inputs.workloads.phase_workload import ARRIVAL, CPUS, PHASES, reported_machines, reported_model
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.phases import ShiftJob, constant
from batwatt.model.platform import MACHINE, Platform, machine_of
from batwatt.model.series import Series, least_around
from batwatt.model.workload import NO_WALLTIME
from batwatt.scheduling.capacity import machines_fed
from batwatt.scheduling.fleet import Fleet, JobState
from batwatt.scheduling.hosts import Hosts
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.lifecycle import Job
from batwatt.units import LAG_S

Limits = tuple[Series, Series | None]
"""The capacity in cpus, and the envelope in W if there is one."""
Piece = tuple[str, float]
"""The profile and the walltime in s of what is submitted for a part of a job."""


class Cluster(ABC):
    """Hosts, of which a job takes some for each of its cpus."""

    @abstractmethod
    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """What bounds plans. Raises InputError."""

    @abstractmethod
    def suits(self, job: Job) -> bool:
        """Whether it is for such jobs: in phases, or not."""

    @abstractmethod
    def shift_job(self, job: Job) -> ShiftJob:
        """What a submitted job is to a planner. Raises InputError."""

    @abstractmethod
    def take(self, number: int, job: Job, cpus: int) -> int:
        """The mask of the hosts for some cpus of job `number`, which has them from now on; 0 if they are not free."""

    @abstractmethod
    def give_back(self, number: int, mask: int) -> None:
        """A job does not need its hosts any more."""

    @abstractmethod
    def piece(self, job: Job, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """Register the profile of a piece of a job, which will be called `name`."""

    @abstractmethod
    def earliest_s(self, now_s: float) -> float:
        """When a job that is planned now may start at the earliest."""

    @abstractmethod
    def expect(self, begin_s: float, cpus: int) -> None:
        """A job will need so many cpus at a time."""

    @abstractmethod
    def forget(self, begin_s: float, cpus: int) -> None:
        """It will not: it was planned anew."""

    @abstractmethod
    def follow(self, now_s: float) -> float:
        """Let hosts be on and off as the capacity says; returns when it changes next."""

    @abstractmethod
    def switched(self, low: int, high: int, pstate: int) -> None:
        """Hosts have arrived in a p-state."""

    @abstractmethod
    def most(self) -> int:
        """The most hosts that jobs can have from now on."""


class PhaseHosts(Cluster):
    """Machines that `batwatt carbon workload` makes: a cpu is a machine, and the phases are in the jobs."""

    def __init__(self, bs: Any, described: Sequence[Mapping[str, Any]]) -> None:
        self._bs = bs
        self.machines = reported_machines(described)
        self._free = hostset.span(0, len(described) - 1)

    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """See `Cluster`."""
        capacity = machines_fed(capacity, None, None, self.machines.machines)
        return checked_capacity(capacity, self.machines.machines, capacity.source), envelope

    def suits(self, job: Job) -> bool:
        """See `Cluster`."""
        return PHASES in (job.json_dict or {})

    def shift_job(self, job: Job) -> ShiftJob:
        """See `Cluster`."""
        raw = job.json_dict or {}
        model = reported_model(raw, f"job {job.id}")
        cpus = raw.get(CPUS)
        if model is None or not isinstance(cpus, int) or self.machines.hosts(cpus) != job.requested_resources:
            problem = f"job {job.id} has no phases, or not for these machines"
            raise InputError("workload", problem, "make it with `batwatt carbon workload`")
        return ShiftJob(job.id, float(raw.get(ARRIVAL, job.submit_time)), model, cpus)

    def take(self, number: int, job: Job, cpus: int) -> int:
        """See `Cluster`."""
        wanted = self.machines.hosts(cpus)
        if self._free.bit_count() < wanted:
            return 0
        mask = hostset.lowest(self._free, wanted)
        self._free &= ~mask
        return mask

    def give_back(self, number: int, mask: int) -> None:
        """See `Cluster`."""
        self._free |= mask

    def earliest_s(self, now_s: float) -> float:
        """At once."""
        return now_s

    def expect(self, begin_s: float, cpus: int) -> None:
        """They are on."""

    def forget(self, begin_s: float, cpus: int) -> None:
        """They stay on."""

    def follow(self, now_s: float) -> float:
        """They draw nothing when they are idle, so that none is switched."""
        return math.inf

    def switched(self, low: int, high: int, pstate: int) -> None:
        """Not by this scheduler."""

    def most(self) -> int:
        """See `Cluster`."""
        return self.machines.machines * self.machines.cores

    def piece(self, job: Job, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """See `Cluster`."""
        workload, _, short = name.partition("!")
        cpus = job.requested_resources // self.machines.cores
        # a piece and its profile have one name
        self._bs.register_profiles(workload, {short: self.machines.profile(length_s, power_w, cpus)})
        return short, NO_WALLTIME


class PlainHosts(Cluster):
    """The hosts of any platform: a cpu is a host, and a job draws the same as long as it runs.

    Hosts that no job needs are off, as far as switching pays: one is switched on in time for a planned start, and off
    if there is none within the time that it takes to go off and on. A host serves from the rise of the capacity until
    so long before its fall that it is off by then: plans have the least capacity from `on_s` before to `off_s` after a
    time, and a job that arrives starts `on_s` later at the earliest.
    """

    def __init__(
        self, bs: Any, described: Sequence[Mapping[str, Any]], platform: Platform | None, switch: bool
    ) -> None:
        names = [machine_of(host["properties"], host["name"]) for host in described]
        alone = [{**host, "properties": {**host["properties"], MACHINE: host["name"]}} for host in described]
        self._bs, self._platform = bs, platform
        self._machines = len(set(names))
        self._cores = len(described) // self._machines
        self._hosts = Hosts(alone, switch)
        self._fleet = Fleet(len(described), 1, math.inf)
        self._hosts.serve(self._fleet, np.arange(len(described)), True)
        states = {host.pstates[host.initial_pstate] for host in platform.hosts} if platform else set()
        alike = next(iter(states)) if len(states) == 1 else None
        self._lengths = JobLengths(bs, alike.speed_flops if alike else 0.0)
        self._power_w = alike.full_w if alike and alike.full_w > 0.0 else 1.0
        self._on_s, self._off_s = _switching_s(platform) if self._hosts.pstates is not None else (0.0, 0.0)
        self._steps: list[tuple[float, float, float]] = []
        """(s, hosts, the most hosts from then on), the next last."""
        self._expected: list[tuple[float, int]] = []
        """(s, hosts): when hosts for a planned start are to be on."""
        self._soon = 0
        """Hosts of starts that are due or near."""
        self._tasks: dict[int, JobState] = {}
        self._beyond_s: dict[str, float] = {}
        """How much longer than its walltime a job runs, by id."""

    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """The capacity in hosts; watts become machines, as hosts that are on draw power without a job, too."""
        capacity = machines_fed(capacity, envelope, self._platform, self._machines)
        checked_capacity(capacity, self._machines, capacity.source)
        hosts = Series(capacity.times_s, tuple(value * self._cores for value in capacity.values))
        serving = least_around(hosts, 0.0, self._off_s)
        backwards = serving.values[::-1]
        times_s = (0.0, *serving.times_s[1:])[::-1]
        self._steps = list(zip(times_s, backwards, accumulate(backwards, max), strict=True))
        self._serving = len(self._fleet)
        return least_around(hosts, self._on_s, self._off_s), None

    def suits(self, job: Job) -> bool:
        """See `Cluster`."""
        return True

    def shift_job(self, job: Job) -> ShiftJob:
        """See `Cluster`."""
        if PHASES in (job.json_dict or {}):
            problem = f"job {job.id} has phases, and its machines or the jobs before it are not for that"
            raise InputError("workload", problem, "make both with `batwatt carbon workload`")
        length_s, walltime_s = self._lengths.run_s(job), job.requested_time
        if walltime_s is not None and 0.0 < walltime_s < length_s:
            self._beyond_s[job.id] = length_s - walltime_s
            length_s = walltime_s
        model = constant(max(length_s, LAG_S), self._power_w)
        return ShiftJob(job.id, float(job.submit_time), model, job.requested_resources)

    def take(self, number: int, job: Job, cpus: int) -> int:
        """See `Cluster`."""
        task = JobState(number, job, cpus, 0.0, 0.0, 0.0)
        places = self._fleet.place(task, 0.0, 0, len(self._fleet), True)
        if places is None:
            return 0
        self._fleet.add(task, places, 0.0)
        self._tasks[number] = task
        self._soon -= cpus
        return self._hosts.take(task, self._fleet)

    def give_back(self, number: int, mask: int) -> None:
        """See `Cluster`."""
        self._fleet.remove(self._tasks.pop(number))

    def piece(self, job: Job, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """See `Cluster`."""
        if not self._lengths.known(job):
            problem = f"job {job.id} was to be suspended, and its profile does not say how long it runs"
            raise InputError("option 'policy'", problem, "choose one that does not suspend jobs, such as oracle")
        beyond_s = self._beyond_s.get(name.rpartition("#")[0], 0.0) if last else 0.0
        profile = self._lengths.lasting(job, length_s + beyond_s)
        return profile, length_s if beyond_s else NO_WALLTIME

    def earliest_s(self, now_s: float) -> float:
        """Once hosts can be on."""
        return now_s + self._on_s

    def expect(self, begin_s: float, cpus: int) -> None:
        """See `Cluster`."""
        heappush(self._expected, (begin_s - self._on_s - self._off_s, cpus))

    def forget(self, begin_s: float, cpus: int) -> None:
        """See `Cluster`."""
        entry = (begin_s - self._on_s - self._off_s, cpus)
        if entry in self._expected:
            self._expected.remove(entry)
            heapify(self._expected)
        else:
            self._soon -= cpus

    def follow(self, now_s: float) -> float:
        """See `Cluster`."""
        while self._steps and self._steps[-1][0] <= now_s + LAG_S:
            self._serving = int(self._steps.pop()[1])
        while self._expected and self._expected[0][0] <= now_s + LAG_S:
            self._soon += heappop(self._expected)[1]
        fleet, hosts = self._fleet, self._hosts
        wanted = self._serving
        if hosts.pstates is not None:
            busy = len(fleet) - int(np.count_nonzero(fleet.free))
            wanted = min(wanted, busy + self._soon)
        if fleet.serving < wanted:
            hosts.serve(fleet, np.flatnonzero(~fleet.in_service)[: wanted - fleet.serving], True)
        elif fleet.serving > wanted:
            hosts.serve(fleet, fleet.idle(True)[::-1][: fleet.serving - wanted], False)
        if hosts.pstates is not None:
            for mask, state in hosts.switches(fleet):
                self._bs.set_resource_state(HostSet(mask), state)
        step_s = self._steps[-1][0] if self._steps else math.inf
        return min(step_s, self._expected[0][0] if self._expected else math.inf)

    def switched(self, low: int, high: int, pstate: int) -> None:
        """See `Cluster`."""
        self._fleet.switched(*self._hosts.arrived(low, high, pstate))

    def most(self) -> int:
        """See `Cluster`."""
        return int(max(self._serving, self._steps[-1][2])) if self._steps else self._serving


def _switching_s(platform: Platform | None) -> tuple[float, float]:
    """How long the slowest host takes to switch on, and off, in s."""
    sleeps = [(host, sleep) for host in (platform.hosts if platform else ()) for sleep in host.sleeps]
    found = (
        max((host.pstates[getattr(sleep, name)].duration_s for host, sleep in sleeps), default=0.0)
        for name in ("switch_on", "switch_off")
    )
    # the microsecond of machines that come and go at once is no time
    on_s, off_s = (0.0 if time_s <= LAG_S else time_s for time_s in found)
    return on_s, off_s
