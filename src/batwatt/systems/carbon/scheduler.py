"""Carrying out carbon plans on an engine: jobs start, are suspended and resumed at the times that were planned.

A job that runs in one piece runs as it was submitted. One that is suspended is killed when its first segment ends, and
what follows is submitted piece by piece, one for each step of its power, as ID#1, ID#2, ...: Batsim 4.2 cannot run a
composed profile that a scheduler registers. docs/explanation/carbon-engine.md has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, ClassVar

from batwatt.errors import InputError
from batwatt.inputs.series.capacity import checked_capacity, read_capacity
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.workloads.phase_workload import ARRIVAL, CPUS, machines_told, model_told
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.workload import NO_WALLTIME, PIECE, SUSPENDED
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.systems.carbon.execution import Execution, Segment, ShiftJob
from batwatt.systems.carbon.options import CarbonOptions
from batwatt.systems.carbon.policies import Known, policy_named
from batwatt.systems.carbon.reservation_calendar import ReservationCalendar
from batwatt.systems.carbon.shared import SharedCluster
from batwatt.systems.carbon.windows import is_short, start_window
from batwatt.units import LAG_S


@dataclass(slots=True, eq=False)
class SuspendableJob:
    """A job that was planned: what runs for it at present, on which hosts, and which pieces come next."""

    number: int
    job: Job
    execution: Execution
    segment: int = 0
    hosts: int = 0
    pieces: list[tuple[float, float]] = field(default_factory=list)
    """(s, W) of what is left of the segment, the next last."""
    dying: bool = False

    @property
    def next_segment(self) -> Segment:
        """The one that comes, or runs."""
        return self.execution.segments[self.segment]

    @property
    def ends(self) -> bool:
        """Whether this segment is the last."""
        return self.segment == len(self.execution.segments) - 1


class ShiftingScheduler(Scheduler[CarbonOptions]):
    """Plans each job when it arrives, by a policy and around those before it, and carries the plans out."""

    Options: ClassVar[type[CarbonOptions]] = CarbonOptions
    lifecycle: JobLifecycle[SuspendableJob]

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.executions: dict[str, Execution] = {}
        """What was planned, by the job's id."""
        self._starts: list[tuple[float, int, SuspendableJob]] = []
        self._stops: list[tuple[float, int, SuspendableJob]] = []
        self._free = 0
        self._count = 0
        self._lengths: dict[bool, list[float]] = {True: [], False: []}

    @property
    def needs_dynamic_jobs(self) -> bool:
        """What follows a suspension is submitted anew."""
        return True

    # planning ---------------------------------------------------------------------------------------------------

    def _make_cluster(self, machines: int) -> SharedCluster:
        """The signals, and what machines and power there are. Raises InputError."""
        chosen = self.settings
        carbon = self._integral("signal", chosen.signal, chosen.begin)
        if not chosen.carbon_weight + chosen.price_weight > 0.0:
            raise InputError("options", "carbon_weight and price_weight are both 0", "give one of them")
        if chosen.deadline_h is not None and chosen.constraint is not None:
            raise InputError("options", "have both deadline_h and constraint", "give one of them")
        if chosen.price is not None:
            price = self._integral("price", chosen.price, carbon.begin or chosen.begin)
            carbon = carbon.plus(price, chosen.carbon_weight, chosen.price_weight)
        elif chosen.price_weight > 0.0:
            raise InputError("option 'price_weight'", "there is no price", "give the option price")
        capacity, watts = chosen.capacity, chosen.envelope
        if capacity is None:
            capacity = Series((0.0,), (float(machines),))
        elif not isinstance(capacity, Series):
            capacity = read_capacity(capacity, None)
        checked_capacity(capacity, machines, capacity.source)
        if not (watts is None or isinstance(watts, Series)):
            watts = read_series(watts)
        return SharedCluster(carbon, ReservationCalendar(chosen.slot_s, capacity, watts), policy_named(chosen.policy))

    def _integral(self, name: str, given: str | Path | SignalIntegral | None, begin: str | None) -> SignalIntegral:
        if given is None or given == "":
            raise InputError(f"option {name!r}", "the scheduler needs it", "give a CSV file")
        if isinstance(given, SignalIntegral):
            return given
        return SignalIntegral.of(read_signal(SignalFile(Path(given), begin=begin, days=self.settings.days)))

    def _plan(self, job: ShiftJob) -> Execution | None:
        """When a job runs, None if it never can; e is the mean length of its class so far. Raises InputError."""
        chosen, lengths = self.settings, self._lengths[is_short(job)]
        lengths.append(job.length_s)
        window = start_window(job, self.cluster.integral, chosen.wait_h, chosen.deadline_h, chosen.constraint)
        return self.cluster.place(job, window, Known(sum(lengths) / len(lengths), max_starts=chosen.max_starts))

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Build the machines."""
        super().onSimulationBegins()
        described = [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]
        self.machines = machines_told(described)
        self._free = hostset.span(0, len(described) - 1)
        self.cluster = self._make_cluster(self.machines.machines)

    def onJobSubmission(self, job: Job) -> None:
        """Plan a job of the workload; a piece of our own that is acknowledged was started already."""
        if self.lifecycle.acknowledged(job):
            return
        execution = self._plan(self._told(job))
        if execution is None:
            self.lifecycle.reject([job], "for want of machines or watts")
            return
        self.executions[job.id] = execution
        self._count += 1
        self.lifecycle.live += 1
        shifted = SuspendableJob(self._count, job, execution)
        heappush(self._starts, (execution.begin_s, shifted.number, shifted))

    def _told(self, job: Job) -> ShiftJob:
        raw = job.json_dict or {}
        model = model_told(raw, f"job {job.id}")
        cpus = raw.get(CPUS)
        if model is None or not isinstance(cpus, int) or self.machines.hosts(cpus) != job.requested_resources:
            problem = f"job {job.id} does not tell its phases, or not for these machines"
            raise InputError("workload", problem, "make it with `batwatt carbon workload`")
        return ShiftJob(job.id, float(raw.get(ARRIVAL, job.submit_time)), model, cpus)

    def onJobCompletion(self, job: Job) -> None:
        """A piece has ended: the next one of its segment follows at once."""
        shifted, suspended = self.lifecycle.ended(job)
        if shifted.pieces:
            self._run_piece(shifted)
            return
        self._free |= shifted.hosts
        # one that ends at the time of its suspension has not been suspended
        if shifted.ends or (shifted.segment == 0 and not suspended):
            self.lifecycle.live -= 1
            return
        shifted.segment += 1
        heappush(self._starts, (shifted.next_segment.begin_s, shifted.number, shifted))

    def onNoMoreEvents(self) -> None:
        """Suspend and start what is due, and ask to be woken when something is."""
        if not self.bs.running_simulation:
            return
        now_s = self.bs.time()
        while self._stops and self._stops[0][0] <= now_s + _SOON_S:
            shifted = heappop(self._stops)[2]
            self.bs.set_job_metadata(shifted.job.id, SUSPENDED)
            self.lifecycle.kill([shifted])
        self._start_due(now_s)
        for due in (self._stops, self._starts):
            if due:
                self.lifecycle.wake_at(due[0][0], now_s + _SOON_S)
        self.lifecycle.close(self.lifecycle.finished)

    # carrying out -----------------------------------------------------------------------------------------------

    def _start_due(self, now_s: float) -> None:
        """Start what is due, in the order of the plans, as far as machines are free at this very moment."""
        late: list[tuple[float, int, SuspendableJob]] = []
        while self._starts and self._starts[0][0] <= now_s + _SOON_S:
            entry = heappop(self._starts)
            shifted = entry[2]
            wanted = self.machines.hosts(shifted.execution.job.cpus)
            if self._free.bit_count() < wanted:
                late.append(entry)
                continue
            shifted.hosts = hostset.lowest(self._free, wanted)
            self._free &= ~shifted.hosts
            self._run_segment(shifted, now_s)
        self._starts += late
        heapify(self._starts)

    def _run_segment(self, shifted: SuspendableJob, now_s: float) -> None:
        segment = shifted.next_segment
        if shifted.segment == 0:
            self._execute(shifted, shifted.job)
            if not shifted.ends:
                # it runs as long as was planned, should it begin late
                heappush(self._stops, (now_s + (segment.end_s - segment.begin_s), shifted.number, shifted))
            return
        steps = segment.steps(shifted.execution.job.model)
        lengths = (steps.edges_s[1:] - steps.edges_s[:-1]).tolist()
        shifted.pieces = list(zip(lengths, steps.watts.tolist(), strict=True))[::-1]
        self._run_piece(shifted)

    def _run_piece(self, shifted: SuspendableJob) -> None:
        length_s, power_w = shifted.pieces.pop()
        workload, _, name = self.lifecycle.next_id(shifted.job).partition("!")
        cpus = shifted.execution.job.cpus
        # a piece and its profile have one name
        self.bs.register_profiles(workload, {name: self.machines.profile(length_s, power_w, cpus)})
        job = self.lifecycle.attempt(shifted.job, name, NO_WALLTIME)
        self._execute(shifted, job)
        if shifted.pieces or not shifted.ends:
            self.bs.set_job_metadata(job.id, PIECE)

    def _execute(self, shifted: SuspendableJob, job: Job) -> None:
        shifted.job = job
        self.lifecycle.states[job.id] = shifted
        job.allocation = HostSet(shifted.hosts)
        self.bs.execute_job(job)


_SOON_S = LAG_S / 1e3
"""Times are reported to the microsecond."""
