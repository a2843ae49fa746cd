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
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.inputs.series.capacity import checked_capacity
from batwatt.inputs.workloads.phase_workload import ARRIVAL, CPUS, PHASES, reported_machines, reported_model
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.phases import ShiftJob, constant
from batwatt.model.platform import Platform
from batwatt.model.series import Series, least_around
from batwatt.model.workload import NO_WALLTIME
from batwatt.scheduling.capacity import machines_fed
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.hosts import Hosts
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.jobs import ManagedJob, Places
from batwatt.scheduling.lifecycle import Job
from batwatt.scheduling.transitions import Transitions
from batwatt.units import LAG_S

Limits = tuple[Series, Series | None, int]
"""The capacity in machines, the envelope in W if there is one, and the cores of a machine."""
Machines = tuple[int, ...]
"""The machines of a planned start, in ascending order; empty: any will do."""
Piece = tuple[str, float]
"""The profile and the walltime in s of what is submitted for a part of a job."""


class Cluster(ABC):
    """Hosts, of which a job takes some for each of its cpus.

    Which ones follows from the plans: a job is over, and hosts are on, from the time on that was planned, in whichever
    order and in however many messages an engine reports what happens at that time. A start waits until its hosts are
    there; those out of service are given to no job.
    """

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._hosts_of: dict[int, int] = {}
        """The hosts of jobs that are due and wait for these, by number."""
        self._occupied = 0
        """The hosts of jobs whose end is not reported."""
        self._end_s: dict[int, float] = {}
        """When jobs that run are to end."""

    @abstractmethod
    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """What bounds plans. Raises InputError."""

    @abstractmethod
    def suits(self, job: Job) -> bool:
        """Whether it is for such jobs: in phases, or not."""

    @abstractmethod
    def shift_job(self, job: Job) -> ShiftJob:
        """What a submitted job is to a planner. Raises InputError."""

    def take(self, number: int, job: Job, cpus: int, machines: Machines) -> int:
        """The mask of the hosts for some cpus of job `number`, which has them from now on; 0 if they are not free.

        `machines`: those that its plan names, if it does.
        """
        mask = self._hosts_of.get(number) or self._choose(number, job, cpus, machines)
        if mask:
            self._hosts_of[number] = mask
        if not mask or mask & self._occupied or not self._on(mask):
            return 0
        del self._hosts_of[number]
        self._occupied |= mask
        return mask

    def waits(self, number: int) -> bool:
        """Whether a job waits for the hosts that were chosen for it."""
        return number in self._hosts_of

    def leave_out(self) -> npt.NDArray[np.int64]:
        """Give up hosts out of service that were chosen; returns the cores that plans lack, by row of the calendar."""
        for number in [number for number in self._hosts_of if self._lost(number)]:
            del self._hosts_of[number]
            self._free(number)
        return self._lacking()

    @abstractmethod
    def _lost(self, number: int) -> bool:
        """Whether hosts that were chosen for a job are out of service."""

    @abstractmethod
    def _lacking(self) -> npt.NDArray[np.int64]:
        """The cores that plans lack while hosts are out of service, by row of the calendar."""

    def lacks(self, machines: Machines) -> bool:
        """Whether one of these machines is out of service."""
        return False

    def runs_until(self, number: int, end_s: float) -> None:
        """A job that has its hosts needs them until then."""
        self._end_s[number] = end_s

    def settle(self, now_s: float) -> None:
        """Jobs that were to end by now are over, even if that is not reported yet."""
        for number in [number for number, end_s in self._end_s.items() if end_s <= now_s + LAG_S]:
            self.over(number)

    def over(self, number: int) -> None:
        """A job is over by its plan."""
        if self._end_s.pop(number, None) is not None:
            self._free(number)

    def give_back(self, number: int, mask: int) -> None:
        """A job does not need its hosts any more."""
        self.over(number)
        self._occupied &= ~mask

    @abstractmethod
    def _choose(self, number: int, job: Job, cpus: int, machines: Machines) -> int:
        """Let a job have hosts, by the plans; 0 if they are not free."""

    @abstractmethod
    def _free(self, number: int) -> None:
        """Let others have the hosts of a job."""

    def _on(self, mask: int) -> bool:
        """Whether hosts are on."""
        return True

    @abstractmethod
    def piece(self, job: Job, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """Register the profile of a piece of a job, which will be called `name`."""

    @abstractmethod
    def earliest_s(self, now_s: float) -> float:
        """When a job that is planned now may start at the earliest."""

    @abstractmethod
    def expect(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """A job will need so many cpus at a time, on these machines if its plan names some."""

    @abstractmethod
    def forget(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """Cancel an announced start after replanning."""

    @abstractmethod
    def follow(self, now_s: float) -> float:
        """Let hosts be on and off as the capacity says; returns when it changes next."""

    @abstractmethod
    def switched(self, low: int, high: int, pstate: int) -> None:
        """Hosts have arrived in a p-state."""

    @abstractmethod
    def may_start(self, cpus: int, machines: Machines) -> bool:
        """Whether there will be hosts for a start, now or later."""


class PhaseHosts(Cluster):
    """Machines that `batwatt carbon workload` makes: a cpu is a machine, and the phases are in the jobs."""

    def __init__(self, bs: Any, described: Sequence[Mapping[str, Any]], transitions: Transitions) -> None:
        super().__init__(transitions)
        self._bs = bs
        self.machines = reported_machines(described)
        self._idle = hostset.span(0, len(described) - 1)
        self._taken: dict[int, int] = {}

    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """See `Cluster`."""
        capacity = machines_fed(capacity, None, None, self.machines.machines)
        return checked_capacity(capacity, self.machines.machines, capacity.source), envelope, 1

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

    def _choose(self, number: int, job: Job, cpus: int, machines: Machines) -> int:
        wanted, idle = self.machines.hosts(cpus), self._idle & ~self._transitions.out
        if idle.bit_count() < wanted:
            return 0
        self._taken[number] = mask = hostset.lowest(idle, wanted)
        self._idle &= ~mask
        return mask

    def _lost(self, number: int) -> bool:
        return bool(self._taken[number] & self._transitions.out)

    def _lacking(self) -> npt.NDArray[np.int64]:
        return np.array([-(-(self._transitions.out & self._idle).bit_count() // self.machines.hosts(1))])

    def _free(self, number: int) -> None:
        self._idle |= self._taken.pop(number)

    def earliest_s(self, now_s: float) -> float:
        """At once."""
        return now_s

    def expect(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """They are on."""

    def forget(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """They stay on."""

    def follow(self, now_s: float) -> float:
        """They draw nothing when they are idle, so that none is switched."""
        return math.inf

    def switched(self, low: int, high: int, pstate: int) -> None:
        """Not by this scheduler."""

    def may_start(self, cpus: int, machines: Machines) -> bool:
        """See `Cluster`."""
        return cpus <= self.machines.machines

    def piece(self, job: Job, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """See `Cluster`."""
        workload, _, short = name.partition("!")
        cpus = job.requested_resources // self.machines.cores
        # a piece and its profile have one name
        self._bs.register_profiles(workload, {short: self.machines.profile(length_s, power_w, cpus)})
        return short, NO_WALLTIME


class PlainHosts(Cluster):
    """The hosts of any platform: a cpu is a host, and a job draws the same as long as it runs.

    Machines are those of `Hosts`. A job has its hosts on one machine, or whole machines if it needs more; of machines
    of several hosts the plan says which. The first serve longest.

    Machines that no job needs are off, as far as switching pays: one is switched on in time for a planned start, and
    off if there is none within the time that it takes to go off and on. It serves from the rise of the capacity until
    so long before its fall that it is off by then: plans have the least capacity from `on_s` before to `off_s` after a
    time, and a job that arrives starts `on_s` later at the earliest.
    """

    def __init__(
        self,
        bs: Any,
        described: Sequence[Mapping[str, Any]],
        transitions: Transitions,
        platform: Platform | None,
        switch: bool,
    ) -> None:
        super().__init__(transitions)
        self._bs, self._platform = bs, platform
        self._hosts = Hosts(described, switch)
        self._serving = len(self._hosts)
        self._fleet = Fleet(self._serving, self._hosts.cores, math.inf)
        """As planned: `free` of what is over, `ready` when hosts are to be on."""
        self._hosts.serve(self._fleet, np.arange(self._serving), True)
        states = {host.pstates[host.initial_pstate] for host in platform.hosts} if platform else set()
        alike = next(iter(states)) if len(states) == 1 else None
        self._lengths = JobLengths(bs, alike.speed_flops if alike else 0.0)
        self._power_w = alike.full_w if alike and alike.full_w > 0.0 else 1.0
        self._on_s, self._off_s = _switching_s(platform) if self._hosts.pstates is not None else (0.0, 0.0)
        self._steps: list[tuple[float, float, float]] = []
        """(s, machines, the most machines from then on), the next last."""
        self._expected: list[tuple[float, int, Machines]] = []
        """(s, cpus, machines): when hosts for a planned start are to be on."""
        self._soon = 0
        """Hosts of starts that are due or near, where any will do."""
        self._soon_on = np.zeros(self._serving, dtype=np.int64)
        """Such starts by machine, where plans name these."""
        self._going_on: list[tuple[float, tuple[int, ...]]] = []
        """(s, machines): when machines that are switched on are to be ready."""
        self._tasks: dict[int, ManagedJob] = {}
        self._near_of: dict[int, tuple[int, Machines]] = {}
        """The cpus and the machines that jobs with hosts were announced with, by number."""
        self._beyond_s: dict[str, float] = {}
        """How much longer than its walltime a job runs, by id."""

    def limits(self, capacity: Series | None, envelope: Series | None) -> Limits:
        """Watts become machines, as hosts that are on draw power without a job, too."""
        capacity = machines_fed(capacity, envelope, self._platform, len(self._hosts))
        checked_capacity(capacity, len(self._hosts), capacity.source)
        serving = least_around(capacity, 0.0, self._off_s)
        backwards = serving.values[::-1]
        times_s = (0.0, *serving.times_s[1:])[::-1]
        self._steps = list(zip(times_s, backwards, accumulate(backwards, max), strict=True))
        return least_around(capacity, self._on_s, self._off_s), None, self._hosts.cores

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

    def _choose(self, number: int, job: Job, cpus: int, machines: Machines) -> int:
        fleet, whole = self._fleet, cpus > self._hosts.cores or self._hosts.cores == 1
        task = ManagedJob(number, job, machines=math.ceil(cpus / self._hosts.cores) if whole else 0)
        places = np.array(machines, dtype=np.int64) if machines else fleet.place(task, 0.0, 0, len(fleet), True)
        if places is None or not (fleet.usable[places] & (fleet.free[places] >= min(cpus, fleet.cores))).all():
            return 0
        fleet.add(task, places, 0.0)
        self._tasks[number] = task
        self._near_of[number] = cpus, machines
        self._near(cpus, machines, -1)
        return self._hosts.take(task, fleet)

    def _free(self, number: int) -> None:
        self._fleet.remove(self._tasks.pop(number))
        del self._near_of[number]

    def leave_out(self) -> npt.NDArray[np.int64]:
        """See `Cluster`; starts whose hosts are given up are near again."""
        before = dict(self._near_of)
        self._hosts.leave_out(self._fleet, self._transitions.out)
        lacking = super().leave_out()
        for number in before.keys() - self._near_of.keys():
            self._near(*before[number], 1)
        return lacking

    def _lost(self, number: int) -> bool:
        return self._fleet.stranded(self._tasks[number])

    def _lacking(self) -> npt.NDArray[np.int64]:
        # what runs there is in the plans
        fleet = self._fleet
        if fleet.cores > 1:
            return np.where(fleet.out, fleet.free, 0)
        return np.array([max(0, self._hosts.held - int(np.count_nonzero(fleet.out & (fleet.free == 0))))])

    def lacks(self, machines: Machines) -> bool:
        """See `Cluster`."""
        return bool(self._fleet.out[list(machines)].any())

    def _on(self, mask: int) -> bool:
        return bool(self._hosts.ready[self._hosts.machines(mask)].all())

    def _near(self, cpus: int, machines: Machines, sign: int) -> None:
        """A start is near, or not any more."""
        if machines:
            self._soon_on[list(machines)] += sign
        else:
            self._soon += sign * cpus

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

    def expect(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """See `Cluster`."""
        heappush(self._expected, (begin_s - self._on_s - self._off_s, cpus, machines))

    def forget(self, begin_s: float, cpus: int, machines: Machines) -> None:
        """See `Cluster`."""
        entry = (begin_s - self._on_s - self._off_s, cpus, machines)
        if entry in self._expected:
            self._expected.remove(entry)
            heapify(self._expected)
        else:
            self._near(cpus, machines, -1)

    def settle(self, now_s: float) -> None:
        """See `Cluster`; hosts that are to be on by now are."""
        super().settle(now_s)
        while self._going_on and self._going_on[0][0] <= now_s + LAG_S:
            self._fleet.switched(np.array(heappop(self._going_on)[1]), True)

    def follow(self, now_s: float) -> float:
        """See `Cluster`."""
        while self._steps and self._steps[-1][0] <= now_s + LAG_S:
            self._serving = int(self._steps.pop()[1])
        while self._expected and self._expected[0][0] <= now_s + LAG_S:
            self._near(*heappop(self._expected)[1:], 1)
        fleet, hosts = self._fleet, self._hosts
        for machines, on in zip(self._changes(), (True, False), strict=True):
            if len(machines):
                hosts.serve(fleet, machines, on)
        if hosts.pstates is not None:
            for mask, state in hosts.switches(fleet, self._occupied):
                self._bs.set_resource_state(HostSet(mask), state)
                self._transitions.began(mask, state, now_s)
                if state == hosts.pstates[0]:
                    entry = now_s + self._on_s, tuple(np.unique(hosts.machines(mask)).tolist())
                    heappush(self._going_on, entry)
            # those that go on at once
            self.settle(now_s)
        step_s = self._steps[-1][0] if self._steps else math.inf
        return min(step_s, self._expected[0][0] if self._expected else math.inf)

    def _changes(self) -> tuple[Places, Places]:
        """The machines that come into service now, and those that leave it."""
        fleet, switched = self._fleet, self._hosts.pstates is not None
        if fleet.cores > 1:
            wanted = (np.arange(len(fleet)) < self._serving) & ~fleet.out
            if switched:
                wanted &= (self._soon_on > 0) | (fleet.free < fleet.cores)
            leaving = fleet.in_service & ~wanted & (fleet.free == fleet.cores)
            return np.flatnonzero(wanted & ~fleet.in_service), np.flatnonzero(leaving)
        count = self._serving - self._hosts.held
        if switched:
            count = min(count, len(fleet) - int(np.count_nonzero((fleet.free > 0) | fleet.out)) + self._soon)
        more = count - fleet.serving
        return fleet.unserved(more), fleet.idle(True)[::-1][: max(0, -more)]

    def switched(self, low: int, high: int, pstate: int) -> None:
        """See `Cluster`."""
        self._hosts.arrived(low, high, pstate)

    def may_start(self, cpus: int, machines: Machines) -> bool:
        """See `Cluster`."""
        most = max(self._serving, self._steps[-1][2]) if self._steps else self._serving
        return max(machines) < most if machines else cpus <= most


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
