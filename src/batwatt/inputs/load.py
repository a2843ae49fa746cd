"""Reader of the inputs of a run: platform, workloads, events and series, from files or generated."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from batwatt.errors import InputError, remark
from batwatt.files import SMALL, read_bytes, read_text
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.batsim_files import read_events, read_workload
from batwatt.inputs.clock import clock_of, tell
from batwatt.inputs.convert import SUFFIXES, read_trace, window_workload, workload_with_flops
from batwatt.inputs.description import Inputs
from batwatt.inputs.jobs import SECONDS, TimeUnit
from batwatt.inputs.platform_files import all_hosts
from batwatt.inputs.series import on_clock
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import MachineSpec, Platform, SpeedMachineSpec, machine_of
from batwatt.model.signal import Clock, Window
from batwatt.model.timeline import Timeline, checked_capacity
from batwatt.model.work import run_times_s
from batwatt.model.workload import LONG_S, Workload, merged
from batwatt.protocol.events import TimedEvent
from batwatt.protocol.workload4 import parsed_workload
from batwatt.units import DAY_S, YEAR_S

_log = logging.getLogger(__name__)
BEYOND_S = 30 * DAY_S
"""Time in s between twice the last submission and the end of what varies at random, or has a battery."""
LATEST_END_S = 1e10
"""Latest end of a job in s, 300 years, under an envelope or a capacity; later ones are taken for errors."""


@dataclass(frozen=True)
class Needs:
    """Requirements of a scheduler and an engine on the inputs; the defaults are those of figures without a scheduler.

    `speeds`: jobs and machines can be slowed down; `power`: the jobs of a trace are work. `capacity`, `envelope` and
    `long_s` are options of the scheduler. `machines`: the scheduler follows a capacity; `alike_hosts`: it knows the
    length of work only on hosts that are alike. `shared`: the scheduler does not change the workload. `simulate`:
    profiles are those of the embedded engine.
    """

    speeds: bool = False
    power: bool = False
    machines: bool = False
    alike_hosts: bool = False
    envelope: SeriesSpec | Timeline | None = None
    capacity: SeriesSpec | None = None
    long_s: float | None = None
    shared: bool = True
    simulate: bool = True
    unknown_events: bool = False

    def applied(self, inputs: Inputs) -> Inputs:
        """Return the inputs with the options of the scheduler."""
        if self.long_s is not None and inputs.long_s == LONG_S:
            inputs = replace(inputs, long_s=self.long_s)
        if self.envelope is not None and inputs.envelope is None:
            inputs = replace(inputs, envelope=self.envelope)
        if self.capacity is not None:
            inputs = replace(inputs, capacity=self.capacity)
        if not self.speeds:
            return inputs
        platform = inputs.platform
        if isinstance(platform, MachineSpec) and not isinstance(platform, SpeedMachineSpec):
            platform = SpeedMachineSpec(**{entry.name: getattr(platform, entry.name) for entry in fields(platform)})
        return replace(inputs, platform=platform, delays_to_flops="nominal")

    def keeps_delays(self, platform: Platform) -> bool:
        """Return whether jobs of a trace stay delays: flops would last as long, or have an unknown length."""
        states = {host.pstates[host.initial_pstate] for host in platform.hosts}
        if self.machines and platform.one_speed and all(state.idle_w == state.full_w for state in states):
            return True
        return len(states) > 1 and self.alike_hosts

    def work_flops(self, inputs: Inputs, platform: Platform) -> float | None:
        """Return the speed in flop/s that turns delays into work, None if they stay; see `Inputs.delays_to_flops`."""
        if inputs.delays_to_flops == "nominal":
            host = platform.hosts[0]
            return host.pstates[host.initial_pstate].speed_flops
        usual = is_trace(inputs.workloads[0]) and (self.power or not platform.one_speed)
        return platform.fastest_flops if inputs.delays_to_flops or (inputs.delays_to_flops is None and usual) else None


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run after reading; `described` are the inputs before it, with the options of the scheduler.

    `work_flops` is the speed in flop/s that turned delays into work, or None: then `simulated` are the workloads of the
    run, `workloads` those of its figures. `cores` is the number of cores of a machine.
    """

    described: Inputs
    platform: Platform
    workloads: tuple[Workload, ...]
    envelope: Timeline | None
    capacity: Timeline | None
    cores: int
    work_flops: float | None = None
    simulated: tuple[Workload, ...] = ()
    carbon: Timeline | None = None
    price: Timeline | None = None
    events: tuple[TimedEvent, ...] = ()
    clock: Clock | None = None
    """The clock with the date of 0 s; None if no input states it."""
    ends: Mapping[str, float] = field(default_factory=dict)
    """Ends in s of the parts of the envelope and of the capacity that end, by their sources."""

    @property
    def signals(self) -> dict[str, Timeline]:
        """The signals by the figures that use them."""
        signals = {"carbon_g": self.carbon, "cost": self.price}
        return {name: signal for name, signal in signals.items() if signal is not None}

    @property
    def full_flops(self) -> float:
        """Full speed of a core in flop/s: the one that turned delays into work, else that of the fastest host."""
        return self.work_flops or self.platform.fastest_flops

    @property
    def run(self) -> list[Workload]:
        """The workloads that the engine runs."""
        return list(self.simulated or self.workloads)

    @property
    def measured(self) -> Workload:
        """All jobs, for the figures of the run."""
        return merged(list(self.workloads))


def is_trace(workload: Path | Workload) -> bool:
    """Return whether a file is, by its name, a trace of jobs, not a Batsim workload; or a workload was a trace."""
    if isinstance(workload, Workload):
        return workload.recorded
    return workload.name.lower().removesuffix(".gz").endswith(tuple(SUFFIXES))


def load(inputs: Inputs, needs: Needs) -> RunInputs:
    """Read all inputs of a run. Raises InputError."""
    inputs = needs.applied(inputs)
    everything = all_hosts(inputs.platform, inputs.hosts.master)
    loads = _json_workloads(inputs, needs)
    platform = inputs.hosts.of(everything, max((load.nb_res for load in loads), default=None))
    for ignored in platform.not_simulated if needs.simulate else ():
        _log.warning("%s: the embedded engine ignores %s", platform.source, ignored)
    machines = machines_of(platform)
    begin_s = None
    first = inputs.workloads[0]
    if not needs.speeds and inputs.delays_to_flops is None and is_trace(first) and needs.keeps_delays(platform):
        inputs = replace(inputs, delays_to_flops=False)
    if isinstance(first, Path) and is_trace(first):
        read = cached_trace if needs.shared else windowed
        loads = [read(first, inputs.window, len(platform), inputs.length_unit, inputs.log)]
    elif SECONDS[inputs.length_unit] != 1.0:
        raise InputError("--length-unit", "is for traces of jobs: Batsim's JSON is in s", "leave it out")
    elif inputs.log.of_log:
        raise InputError("--fields, --width", "are for job logs, not for Batsim's JSON", "leave them out")
    else:
        begin_s = inputs.log.date(loads[0].source)
    last_s = max(load.last_submission_s for load in loads)
    clock = clock_of(loads, begin_s, (inputs.envelope, inputs.capacity, inputs.carbon, inputs.price))
    if inputs.envelope is not None or inputs.capacity is not None:
        for load in loads:
            _check_ends(load, platform.fastest_flops)
    capacity = None if inputs.capacity is None else capacity_of(inputs.capacity, len(machines), last_s, clock)
    envelope = None if inputs.envelope is None else envelope_of(inputs.envelope, platform, last_s, clock)
    work_flops = needs.work_flops(inputs, platform)
    simulated = () if work_flops is None else tuple(workload_with_flops(load, work_flops) for load in loads)
    carbon, price = (signal_of(signal, last_s, clock) for signal in (inputs.carbon, inputs.price))
    tell(clock)
    parts = [one for one in (capacity, envelope) if one is not None]
    if isinstance(inputs.envelope, SeriesSpec) and not (inputs.envelope.battery or inputs.envelope.is_in_seconds):
        full_w = platform.full_w if platform.has_power else None
        parts[-1:] = inputs.envelope.parts(clock, 2.0 * last_s + BEYOND_S, full_w)
    ends = {part.source: part.end_s for part in parts if part.loop is None}
    if ends:
        _tell_ends(ends, max(_last_end_s(load, platform.fastest_flops) for load in loads))
    events = read_events(inputs.events, needs.unknown_events, len(platform)) if inputs.events is not None else ()
    return RunInputs(
        inputs,
        platform,
        tuple(loads),
        envelope,
        capacity,
        max(machines.values()),
        work_flops,
        simulated,
        carbon,
        price,
        events,
        clock,
        ends,
    )


def _last_end_s(load: Workload, speed_flops: float) -> float:
    """Return the last end in s of a job if all started when they are submitted."""
    if not load.jobs:
        return 0.0
    submits_s = np.array([job.submit_time_s for job in load.jobs])
    return float(np.nanmax(submits_s + np.nan_to_num(run_times_s(load, speed_flops))))


def _tell_ends(ends: Mapping[str, float], last_s: float) -> None:
    """Log the ends of series that jobs may outlast."""
    for source, end_s in ends.items():
        if last_s > end_s:
            text = (
                "%s: ends at %.15g s, jobs may run until %.15g s: its last value holds; repeat=yes or loop=0 repeats it"
            )
            remark(_log, text, source, end_s, last_s)


def _check_ends(load: Workload, speed_flops: float) -> None:
    """Raise InputError if a job ends later than `LATEST_END_S`, too late for the steps of an envelope or a capacity."""
    limits_s = np.array([math.inf if job.walltime_s is None else job.walltime_s for job in load.jobs])
    submits_s = np.array([job.submit_time_s for job in load.jobs])
    ends_s = submits_s + np.fmin(run_times_s(load, speed_flops), limits_s)
    late = np.flatnonzero(ends_s > LATEST_END_S)
    if len(late):
        job, end_s = load.jobs[late[0]], float(ends_s[late[0]])
        problem = f"ends at {end_s:.6g} s at the earliest, {end_s / YEAR_S:.6g} years on"
        raise InputError(f"{load.source}: job {job.name!r}", problem, "correct its times or its profile")


def _json_workloads(inputs: Inputs, needs: Needs) -> list[Workload]:
    """Return the workloads w0, w1, ... of Batsim's files; none if the only file is a trace. Raises InputError."""
    first = inputs.workloads[0]
    if isinstance(first, Workload):
        return [first if needs.shared else unshared(first)]
    paths = [path for path in inputs.workloads if isinstance(path, Path)]
    traces = [path for path in paths if is_trace(path)]
    if traces and len(paths) > 1:
        problem = "is a trace: several workloads must be Batsim's JSON"
        raise InputError(traces[0], problem, "convert it with `batwatt convert`, or give it alone")
    if traces and inputs.hosts.mmax_workload:
        raise InputError("--mmax-workload", f"the trace {traces[0]} has no 'nb_res'", "use --mmax")
    ignore = inputs.ignore_communication
    if ignore and not needs.simulate:
        raise InputError("--ignore-communication", "a real Batsim simulates communication", "leave it out")
    read = partial(cached_workload if needs.shared else read_workload, simulate=needs.simulate)
    return [] if traces else [read(path, f"w{i}", ignore_communication=ignore) for i, path in enumerate(paths)]


def unshared(workload: Workload) -> Workload:
    """Copy a workload with its dictionaries, which a foreign scheduler may change."""
    return replace(
        workload,
        jobs=tuple(job._replace(raw=deepcopy(dict(job.raw))) for job in workload.jobs),
        raw_profiles=deepcopy(dict(workload.raw_profiles)),
    )


def capacity_of(
    capacity: SeriesSpec | Timeline, machines: int, last_submission_s: float = 0.0, clock: Clock | None = None
) -> Timeline:
    """Read or generate the machines alive out of `machines`. Raises InputError."""
    if isinstance(capacity, Timeline):
        return checked_capacity(on_clock(capacity, clock), machines, "capacity")
    return capacity.timeline(clock, 2.0 * last_submission_s + BEYOND_S, machines)


def envelope_of(
    envelope: SeriesSpec | Timeline, platform: Platform, last_submission_s: float = 0.0, clock: Clock | None = None
) -> Timeline:
    """Read or generate the power cap in W. Raises InputError."""
    if isinstance(envelope, Timeline):
        return on_clock(envelope, clock)
    full_w = platform.full_w if platform.has_power else None
    return envelope.timeline(clock, 2.0 * last_submission_s + BEYOND_S, full_w)


def signal_of(
    signal: SeriesSpec | Timeline | None, last_submission_s: float, clock: Clock | None = None
) -> Timeline | None:
    """Read a carbon or price signal. Raises InputError if it ends before the last submission."""
    rows = signal.timeline(clock) if isinstance(signal, SeriesSpec) else signal and on_clock(signal, clock)
    if rows is not None and not rows.until_s > last_submission_s:
        problem = f"the signal ends at {rows.end_s:g} s, the last job is submitted at {last_submission_s:g} s"
        raise InputError(rows.source, problem, "take a longer one, or repeat it: FILE,repeat=yes or loop=0")
    return rows


def machines_of(platform: Platform) -> dict[str, int]:
    """Return the machines of a platform with their numbers of hosts."""
    machines: dict[str, int] = {}
    for host in platform.hosts:
        name = machine_of(host.properties, host.name)
        machines[name] = machines.get(name, 0) + 1
    return machines


def windowed(trace: Path, window: Window | None, hosts: int, unit: TimeUnit = "s", log: LogOptions = USUAL) -> Workload:
    """Return the workload of a trace with times in `unit` for `hosts` hosts, cut to a window. Raises InputError."""
    jobs = read_trace(trace, unit, log, window=window is not None)
    return window_workload(jobs, window, hosts)


def cached_trace(
    trace: Path, window: Window | None, hosts: int, unit: TimeUnit = "s", log: LogOptions = USUAL
) -> Workload:
    """Return `windowed`, with a cache by path and content: a campaign runs one trace many times in a row."""
    return _windowed(trace, hashlib.sha256(read_bytes(trace)).hexdigest(), window, hosts, unit, log)


@lru_cache(maxsize=2)
def _windowed(trace: Path, sha256: str, window: Window | None, hosts: int, unit: TimeUnit, log: LogOptions) -> Workload:
    return windowed(trace, window, hosts, unit, log)


def cached_workload(
    path: Path, name: str = "w0", *, simulate: bool = True, ignore_communication: bool = False
) -> Workload:
    """Return `read_workload`, with a cache of small files by path and content for the runs of a campaign."""
    text = read_text(path)
    return (_small if len(text) <= SMALL else parsed_workload)(text, name, path, simulate, ignore_communication)


@lru_cache(maxsize=32)
def _small(text: str, name: str, path: Path, simulate: bool, ignore_communication: bool) -> Workload:
    return parsed_workload(text, name, path, simulate, ignore_communication)
