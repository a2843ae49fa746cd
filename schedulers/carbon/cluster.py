"""The hosts on which the scheduler `carbon` runs jobs: those of any platform, or machines for jobs in phases.

The rules: docs/explanation/carbon.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.model.hostset import HostSet
from batwatt.model.platform import Platform
from batwatt.model.timeline import MACHINES, Timeline, checked_capacity, least_around
from batwatt.model.work import ShiftJob, constant
from batwatt.model.workload import NO_WALLTIME
from batwatt.protocol.job_fields import ARRIVAL, CPUS, PHASES, reported_machines, reported_model
from batwatt.schedulers.carbon.execution import Execution, Segment
from batwatt.schedulers.carbon.policies import StartWindow
from batwatt.schedulers.carbon.reservations import Preference
from batwatt.scheduling.capacity import machines_fed
from batwatt.scheduling.cluster import Transitions
from batwatt.scheduling.fleet import Fleet, MachineHosts
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, Places
from batwatt.scheduling.orders import First, NodeSelection
from batwatt.units import LAG_S

Limits = tuple[Timeline, Timeline | None, int]
"""The capacity in machines, the envelope in W if there is one, and the cores of a machine."""
Piece = tuple[str, float]
"""The profile and the walltime in s of what is submitted for a part of a job."""


@dataclass(slots=True, eq=False)
class CarbonState:
    """The plan of a job, and how far it is carried out."""

    execution: Execution
    window: StartWindow
    segment: int = 0
    """The number of the segment that runs, or comes next."""
    pieces: list[tuple[float, float]] = field(default_factory=list)
    """(s, W) of what is left of the segment that runs, the next last."""
    until_s: float = math.inf
    """Planned end in s of the segment that runs (later if it began more than LAG_S late); else infinite."""

    def continues_at(self, now_s: float) -> bool:
        """Return whether the segment that runs ends now, up to the delays of messages, and another one follows."""
        return not self.ends and abs(self.until_s - now_s) < LAG_S / 2

    @property
    def next_segment(self) -> Segment:
        """The segment that runs, or comes next."""
        return self.execution.segments[self.segment]

    @property
    def ends(self) -> bool:
        """True if this segment is the last."""
        return self.segment == len(self.execution.segments) - 1

    @property
    def left(self) -> Execution:
        """The rest of a job that does not run, as an execution of its own."""
        whole, done_s = self.execution.job, self.next_segment.from_s
        segments = (
            replace(segment, from_s=segment.from_s - done_s, to_s=segment.to_s - done_s)
            for segment in self.execution.segments[self.segment :]
        )
        return Execution(replace(whole, model=whole.model.rest(done_s)), tuple(segments))

    def go_on(self, left: Execution) -> None:
        """Replace the rest of the execution."""
        whole, done_s = self.execution.job, self.next_segment.from_s
        segments = (
            replace(segment, from_s=segment.from_s + done_s, to_s=segment.to_s + done_s) for segment in left.segments
        )
        self.execution = Execution(whole, (*self.execution.segments[: self.segment], *segments))


CarbonJob: TypeAlias = Job[CarbonState]


class CarbonCluster:
    """The hosts of any platform: a cpu is a host, and a job draws the same power as long as it runs.

    Machines are those of `Hosts`. A job has its hosts on one machine, or whole machines if it needs more; of machines
    of several hosts the plan says which. The first serve longest.

    The plans decide which hosts a job gets: a job is over, and hosts are on, from the planned time on, whatever the
    order and the number of messages in which an engine reports that time. A start waits until its hosts are there.
    Hosts out of service are given to no job.

    Machines that no job needs are off, as far as switching pays: a machine is switched on in time for a planned start,
    and off if there is none within the time that it takes to go off and on. It serves from the rise of the capacity
    until so long before its fall that it is off by then: plans have the least capacity from `on_s` before to `off_s`
    after a time, and a job that arrives starts `on_s` later at the earliest.
    """

    cpu_hosts = 1
    """The hosts of a cpu."""

    def __init__(
        self,
        bs: Any,
        described: Sequence[Mapping[str, Any]],
        transitions: Transitions,
        selection: NodeSelection,
        platform: Platform | None = None,
        switch: bool = False,
    ) -> None:
        self._bs, self._platform, self._transitions = bs, platform, transitions
        self._hosts = MachineHosts(described, switch)
        self._serving = len(self._hosts)
        self._fleet = Fleet(self._serving, self._hosts.cores, math.inf)
        """Machines as planned: `free` of jobs that are over, `ready` when hosts are to be on."""
        self._hosts.set_in_service(self._fleet, np.arange(self._serving), True)
        self.prefer: Preference | None = None
        """The node selection for machines that plans name."""
        if type(selection) is not First:
            self._select_by(selection)
        states = {host.pstates[host.initial_pstate] for host in platform.hosts} if platform else set()
        alike = next(iter(states)) if len(states) == 1 else None
        self._lengths = JobLengths(bs, alike.speed_flops if alike else 0.0)
        self._power_w = alike.full_w if alike and alike.full_w > 0.0 else 1.0
        self._on_s, self._off_s = _switching_s(platform) if self._hosts.pstates is not None else (0.0, 0.0)
        self._capacity = Timeline((0.0,), (float(self._serving),), MACHINES)
        """Machines that serve over time."""
        self._step_s = math.inf
        """Time in s of the next change of that."""
        self._going_on: deque[tuple[float, Places]] = deque()
        """(s, machines): when machines that are switched on are to be ready."""
        self._occupied = 0
        """The hosts of jobs whose end is not reported."""

    def _select_by(self, selection: NodeSelection) -> None:
        """Let a node selection choose machines."""
        fleet = self._fleet
        self._hosts.describe(fleet, self._platform)
        fleet.selection, self.prefer = selection, fleet.preferred

    # inputs of plans --------------------------------------------------------------------------------------------

    def limits(self, capacity: Timeline | None, envelope: Timeline | None) -> Limits:
        """Return the bounds of plans. Raises InputError.

        Watts become machines, as hosts that are on draw power without a job, too.
        """
        capacity = machines_fed(capacity, envelope, self._platform, len(self._hosts))
        checked_capacity(capacity, len(self._hosts), capacity.source)
        self._capacity, self._step_s = least_around(capacity, 0.0, self._off_s), 0.0
        return least_around(capacity, self._on_s, self._off_s), None, self._hosts.cores

    def accepts(self, job: BatsimJob) -> bool:
        """Return whether the cluster runs a job: some run only those in phases."""
        return True

    def shift_job(self, job: CarbonJob) -> ShiftJob:
        """Return a submitted job as a planner sees it. Raises InputError."""
        if PHASES in (job.attempt.json_dict or {}):
            problem = f"job {job.name} has phases, and its machines or the jobs before it are not for that"
            raise InputError("workload", problem, "make both with `batwatt convert -p`")
        job.length_s = self._lengths.run_s(job.attempt)
        model = constant(max(min(job.length_s, job.walltime_s), LAG_S), self._power_w)
        return ShiftJob(job.name, job.submit_s, model, job.hosts)

    def piece(self, job: CarbonJob, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """Register the profile of a piece of a job, which will be called `name`."""
        if not self._lengths.has_length(job.attempt):
            problem = f"job {job.attempt.id} was to be suspended, and its profile does not say how long it runs"
            raise InputError("option 'policy'", problem, "choose one that does not suspend jobs, such as oracle")
        beyond_s = max(0.0, job.length_s - job.walltime_s) if last else 0.0
        profile = self._lengths.lasting(job.attempt, length_s + beyond_s)
        return profile, length_s if beyond_s else NO_WALLTIME

    def earliest_s(self, now_s: float) -> float:
        """Return the earliest start in s of a job that is planned now: once hosts can be on."""
        return now_s + self._on_s

    # hosts of jobs ----------------------------------------------------------------------------------------------

    def hold(self, job: CarbonJob, machines: Sequence[int]) -> bool:
        """Let a job have hosts, on these machines if its plan names some; return False while they are not there.

        Hosts that were chosen are its `mask` from then on, for as long as it waits for them, too.
        """
        if not job.mask:
            job.mask = self._choose(job, machines)
        mask = job.mask
        if not mask or mask & self._occupied or not self._hosts.ready[self._hosts.machines(mask)].all():
            return False
        self._occupied |= mask
        return True

    def _choose(self, job: CarbonJob, machines: Sequence[int]) -> int:
        """Let a job have hosts, by the plans; return 0 if they are not free."""
        fleet = self._fleet
        whole = job.hosts > fleet.cores or fleet.cores == 1
        job.machines = math.ceil(job.hosts / fleet.cores) if whole else 0
        places = np.array(machines, dtype=np.int64) if machines else fleet.place(job, 0.0, 0, len(fleet), True)
        if places is None or not (fleet.usable[places] & (fleet.free[places] >= min(job.hosts, fleet.cores))).all():
            return 0
        fleet.add(job, places, 0.0)
        return self._hosts.assign(job, fleet)

    def settle(self, now_s: float) -> None:
        """End jobs that were to end by now, and count hosts as on that were to be, even if that is not reported yet."""
        for job in [job for job in self._fleet.tasks.values() if job.state.until_s <= now_s + LAG_S]:
            self.over(job)
        while self._going_on and self._going_on[0][0] <= now_s + LAG_S:
            self._fleet.switched(self._going_on.popleft()[1], True)

    def over(self, job: CarbonJob) -> None:
        """End a job by its plan: others may have its hosts, once its end is reported."""
        if job.number in self._fleet.tasks:
            self._fleet.remove(job)

    def give_back(self, job: CarbonJob) -> None:
        """Take back the hosts of a job whose end is reported."""
        self.over(job)
        self._occupied &= ~job.mask
        job.mask = 0
        job.state.until_s = math.inf

    def may_start(self, job: CarbonJob, machines: Sequence[int]) -> bool:
        """Return whether there will be hosts for a start, now or later."""
        coming = int(self._capacity.most(self._step_s)) if self._step_s < math.inf else 0
        max_machines = max(self._serving, coming)
        return (max(machines) < max_machines) if machines else job.hosts <= max_machines

    # service ----------------------------------------------------------------------------------------------------

    def exclude(self) -> npt.NDArray[np.int64]:
        """Give up hosts out of service that were chosen; return the cpus that plans lack, by row of the calendar."""
        fleet = self._fleet
        self._hosts.exclude(fleet, self._transitions.out)
        for job in [job for job in fleet.tasks.values() if job.state.until_s == math.inf and fleet.stranded(job)]:
            fleet.remove(job)
            job.mask = 0
        # what runs there is in the plans
        if fleet.cores > 1:
            return np.where(fleet.out, fleet.free, 0)
        idle = self._hosts.held - int(np.count_nonzero(fleet.out & (fleet.free == 0)))
        return np.array([max(0, math.ceil(idle / self.cpu_hosts))])

    def lacks(self, machines: Sequence[int]) -> bool:
        """Return whether one of these machines is out of service."""
        return bool(self._fleet.out[list(machines)].any())

    def follow(self, now_s: float, starts: Sequence[CarbonJob]) -> float:
        """Let hosts be on and off for the capacity and the planned starts, in order; return when that changes next."""
        while self._step_s <= now_s + LAG_S:
            self._serving = int(self._capacity.at(self._step_s))
            self._step_s = self._capacity.next_change(self._step_s)
        near = list(takewhile(lambda job: self._needed_s(job) <= now_s + LAG_S, starts))
        fleet, hosts = self._fleet, self._hosts
        for machines, on in zip(self._changes([job for job in near if not job.mask]), (True, False), strict=True):
            if len(machines):
                hosts.set_in_service(fleet, machines, on)
        if hosts.pstates is not None:
            for mask, state in hosts.switches(fleet, self._occupied):
                self._bs.set_resource_state(HostSet(mask), state)
                self._transitions.began(mask, state, now_s)
                if state == hosts.pstates[0]:
                    self._going_on.append((now_s + self._on_s, np.unique(hosts.machines(mask))))
            # those that go on at once
            self.settle(now_s)
        return min(self._step_s, self._needed_s(starts[len(near)]) if len(near) < len(starts) else math.inf)

    def _needed_s(self, job: CarbonJob) -> float:
        """Return the time from which on hosts for a planned start are not switched off, or are switched on."""
        begin_s: float = job.state.next_segment.begin_s
        return begin_s - self._on_s - self._off_s

    def _changes(self, near: Sequence[CarbonJob]) -> tuple[Places, Places]:
        """Return the machines that come into service now, for the starts that are near, and those that leave it."""
        fleet, switched = self._fleet, self._hosts.pstates is not None
        if fleet.cores > 1:
            wanted = (np.arange(len(fleet)) < self._serving) & ~fleet.out
            if switched:
                needed = fleet.free < fleet.cores
                needed[[machine for job in near for machine in job.state.next_segment.machines]] = True
                wanted &= needed
            leaving = fleet.in_service & ~wanted & (fleet.free == fleet.cores)
            return np.flatnonzero(wanted & ~fleet.in_service), np.flatnonzero(leaving)
        count = self._serving - self._hosts.held
        if switched:
            busy = len(fleet) - int(np.count_nonzero((fleet.free > 0) | fleet.out))
            count = min(count, busy + sum(job.hosts for job in near))
        more = count - fleet.serving
        machines = fleet.preferred(np.arange(len(fleet)), fleet.free, 1)
        coming = machines[~(fleet.in_service | fleet.out)[machines]]
        idle = machines[(fleet.in_service & ~fleet.out & (fleet.free == fleet.cores))[machines]]
        return coming[: max(0, more)], idle[::-1][: max(0, -more)]

    def switched(self, mask: int, pstate: int) -> None:
        """Note that hosts have arrived in a p-state."""
        self._hosts.arrived(mask, pstate)


class PhaseCluster(CarbonCluster):
    """Machines that `batwatt convert -p` makes: a cpu is a machine, and the phases are in the jobs.

    All hosts are alike, so that a job gets the first free ones, of whichever machines. They draw nothing when they are
    idle, so that none is switched.
    """

    def __init__(
        self, bs: Any, described: Sequence[Mapping[str, Any]], transitions: Transitions, selection: NodeSelection
    ) -> None:
        self.machines = reported_machines(described)
        self.cpu_hosts = self.machines.cores
        # each host for itself, without a sleep state
        super().__init__(bs, [{"name": host["name"], "properties": {}} for host in described], transitions, selection)

    def limits(self, capacity: Timeline | None, envelope: Timeline | None) -> Limits:
        """See `CarbonCluster`; watts stay watts."""
        capacity = machines_fed(capacity, None, None, self.machines.machines)
        return checked_capacity(capacity, self.machines.machines, capacity.source), envelope, 1

    def accepts(self, job: BatsimJob) -> bool:
        """See `CarbonCluster`."""
        return PHASES in (job.json_dict or {})

    def shift_job(self, job: CarbonJob) -> ShiftJob:
        """See `CarbonCluster`."""
        if self._fleet.selection is not None:
            raise InputError("option 'node_selection'", "machines for jobs in phases are all alike", "leave it out")
        raw = job.attempt.json_dict or {}
        model = reported_model(raw, f"job {job.name}")
        cpus = raw.get(CPUS)
        if model is None or not isinstance(cpus, int) or self.machines.hosts(cpus) != job.hosts:
            problem = f"job {job.name} has no phases, or not for these machines"
            raise InputError("workload", problem, "make it with `batwatt convert -p`")
        return ShiftJob(job.name, float(raw.get(ARRIVAL, job.submit_s)), model, cpus)

    def piece(self, job: CarbonJob, name: str, length_s: float, power_w: float, *, last: bool) -> Piece:
        """See `CarbonCluster`."""
        workload, _, short = name.partition("!")
        # a piece and its profile have one name
        profile = self.machines.profile(length_s, power_w, job.hosts // self.cpu_hosts)
        self._bs.register_profiles(workload, {short: profile})
        return short, NO_WALLTIME


def _switching_s(platform: Platform | None) -> tuple[float, float]:
    """Return the s that the slowest host takes to switch on, and off."""
    sleeps = [(host, sleep) for host in (platform.hosts if platform else ()) for sleep in host.sleeps]
    durations_s = (
        max((host.pstates[getattr(sleep, name)].duration_s for host, sleep in sleeps), default=0.0)
        for name in ("switch_on", "switch_off")
    )
    # the microsecond of machines that come and go at once is no time
    on_s, off_s = (0.0 if time_s <= LAG_S else time_s for time_s in durations_s)
    return on_s, off_s
