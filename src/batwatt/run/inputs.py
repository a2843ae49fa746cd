"""What a run is made of, read: platform, workload, envelope and capacity, from files or generated."""

from __future__ import annotations

import hashlib
import logging
import math
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.files import SMALL, read_bytes, read_text, write_text
from batwatt.inputs.platforms.host_choice import all_hosts, platform_of
from batwatt.inputs.platforms.platform_text import machines_xml
from batwatt.inputs.series.capacity import read_capacity, to_csv
from batwatt.inputs.series.capacity_spec import CapacitySpec, parse_capacity
from batwatt.inputs.series.envelope_spec import EnvelopeSpec, parse_envelope
from batwatt.inputs.series.on_clock import on_clock, series_on_clock
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.series.signal_spec import SignalSpec
from batwatt.inputs.traces.convert import SUFFIXES, read_trace
from batwatt.inputs.traces.delays_to_flops import json_with_flops, workload_with_flops
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.inputs.traces.jobs_csv import SECONDS, TimeUnit
from batwatt.inputs.traces.window import window_json, window_workload
from batwatt.inputs.workloads.batsim_files import read_workload
from batwatt.inputs.workloads.google_like import to_text
from batwatt.model.clock import Clock
from batwatt.model.machines import MachineSpec
from batwatt.model.platform import Platform, machine_of
from batwatt.model.series import Series, checked_capacity
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.window import Window
from batwatt.model.workload import LONG_S, Workload, merged
from batwatt.protocol.workload4 import parsed_workload
from batwatt.results.work import run_times_s
from batwatt.results.writers import file_of
from batwatt.run.clock import clock_of, tell
from batwatt.run.find_scheduler import is_ours
from batwatt.run.spec import RunSpec
from batwatt.units import DAY_S, YEAR_S

_log = logging.getLogger(__name__)
BEYOND_S = 30 * DAY_S
"""How long after twice the last submission a generated capacity ends, in s; its last value holds from there on."""


LATEST_END_S = 1e10
"""Jobs that end after that many s, 300 years, are taken for errors where an envelope or a capacity has steps."""


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run; `cores` are those of a machine, jobs of more than `long_s` s are long.

    `simulated` are the workloads as they run, if they are other ones than what the run is measured by: delays in flops.
    """

    platform: Platform
    workload: Workload
    envelope: Series | None
    capacity: Series | None
    cores: int
    window: Window | None
    long_s: float = LONG_S
    simulated: tuple[Workload, ...] = ()
    others: tuple[Workload, ...] = ()
    carbon: SignalIntegral | None = None
    price: SignalIntegral | None = None
    clock: Clock | None = None
    """The date of 0 s, if anything says it."""

    @property
    def signals(self) -> dict[str, SignalIntegral]:
        """The signals by the figures that are worked out with them."""
        known = {"carbon_g": self.carbon, "cost": self.price}
        return {name: signal for name, signal in known.items() if signal is not None}

    @property
    def run(self) -> list[Workload]:
        """What the engine runs."""
        return list(self.simulated or (self.workload, *self.others))

    @property
    def measured(self) -> Workload:
        """All jobs, to measure the run by."""
        return merged([self.workload, *self.others])


def is_trace(workload: Path | Workload) -> bool:
    """Whether a file is a trace of jobs, by its name, and no Batsim workload; or a workload was one."""
    if isinstance(workload, Workload):
        return workload.recorded
    return workload.name.lower().removesuffix(".gz").endswith(tuple(SUFFIXES))


def capacity_named(text: str | Path) -> Path | CapacitySpec:
    """What a text such as `walk:range=0.6,seed=1` describes, or the file that it names. Raises InputError."""
    if not str(text).strip():
        raise InputError("capacity", f"{text!r} is no capacity", "give a file, or a text such as walk:range=0.6")
    return parse_capacity(str(text)) or Path(text)


def load_inputs(spec: RunSpec, envelope: str | Path | Series | EnvelopeSpec | None) -> RunInputs:
    """Read everything that a run needs. Raises InputError."""
    everything = all_hosts(spec.platform, spec.hosts.master)
    # what is handed to somebody else's scheduler may come back changed
    ours = is_ours(spec.scheduler)
    loads = _json_workloads(spec, ours)
    platform = spec.hosts.of(everything, max((load.nb_res for load in loads), default=None))
    for ignored in platform.not_simulated if spec.engine != "batsim" else ():
        _log.warning("%s: the embedded engine ignores %s", platform.source, ignored)
    machines = machines_of(platform)
    cores = max(machines.values())
    begin_s = None
    if isinstance(spec.workload, Path) and is_trace(spec.workload):
        read = cached_trace if ours else windowed
        loads = [read(spec.workload, spec.window, len(platform), spec.length_unit, spec.log)]
    elif SECONDS[spec.length_unit] != 1.0:
        raise InputError("--length-unit", "is for traces of jobs: Batsim's JSON is in s", "leave it out")
    elif spec.log.of_log:
        raise InputError("--fields, --width", "are for job logs, not for Batsim's JSON", "leave them out")
    else:
        begin_s = spec.log.date(loads[0].source)
    workload, *others = loads
    last_s = max(load.last_submission_s for load in loads)
    power = Path(envelope) if isinstance(envelope, str) else envelope
    clock = clock_of(loads, begin_s, (power, spec.capacity, spec.carbon, spec.price))
    if envelope is not None or spec.capacity is not None:
        for load in loads:
            _check_ends(load, platform.fastest_flops)
    capacity = None if spec.capacity is None else capacity_of(spec.capacity, len(machines), last_s, clock)
    series = None if power is None else envelope_of(power, platform, last_s, clock)
    speed_flops = reference_flops(spec, platform)
    simulated = () if speed_flops is None else tuple(workload_with_flops(load, speed_flops) for load in loads)
    carbon, price = (signal_of(given, last_s, clock) for given in (spec.carbon, spec.price))
    tell(clock)
    figures = (cores, spec.window, spec.long_s, simulated, tuple(others), carbon, price, clock)
    return RunInputs(platform, workload, series, capacity, *figures)


def _check_ends(load: Workload, speed_flops: float) -> None:
    """InputError for a job that ends so late that no run passes the steps of an envelope or a capacity until then."""
    limits_s = np.array([math.inf if job.walltime_s is None else job.walltime_s for job in load.jobs])
    submits_s = np.array([job.submit_time_s for job in load.jobs])
    ends_s = submits_s + np.fmin(run_times_s(load, speed_flops), limits_s)
    late = np.flatnonzero(ends_s > LATEST_END_S)
    if len(late):
        job, end_s = load.jobs[late[0]], float(ends_s[late[0]])
        problem = f"ends at {end_s:.6g} s at the earliest, {end_s / YEAR_S:.6g} years on"
        raise InputError(f"{load.source}: job {job.name!r}", problem, "correct its times or its profile")


def _json_workloads(spec: RunSpec, kept: bool) -> list[Workload]:
    """The workloads w0, w1, ... of Batsim's files; none if there is one file and that is a trace.

    They may be those of an earlier run if they are to be `kept`. Raises InputError.
    """
    if isinstance(spec.workload, Workload):
        return [spec.workload if kept else unshared(spec.workload)]
    paths = spec.workloads
    traces = [path for path in paths if is_trace(path)]
    if traces and len(paths) > 1:
        problem = "is a trace: several workloads must be Batsim's JSON"
        raise InputError(traces[0], problem, "convert it with `batwatt convert`, or give it alone")
    if traces and spec.hosts.mmax_workload:
        raise InputError("--mmax-workload", f"the trace {traces[0]} has no 'nb_res'", "use --mmax")
    simulate = spec.engine != "batsim"
    read = cached_workload if kept else read_workload
    return [] if traces else [read(path, f"w{i}", simulate=simulate) for i, path in enumerate(paths)]


def unshared(workload: Workload) -> Workload:
    """The same with dictionaries of its own."""
    return replace(
        workload,
        jobs=tuple(job._replace(raw=deepcopy(dict(job.raw))) for job in workload.jobs),
        raw_profiles=deepcopy(dict(workload.raw_profiles)),
    )


def capacity_of(
    given: Path | CapacitySpec | Series, machines: int, last_submission_s: float = 0.0, clock: Clock | None = None
) -> Series:
    """The machines alive out of `machines`, given, read or generated until long after the jobs. Raises InputError."""
    if isinstance(given, Series):
        end_s = 2.0 * last_submission_s + BEYOND_S
        return checked_capacity(series_on_clock(given, clock, end_s), machines, "capacity")
    if isinstance(given, CapacitySpec):
        return given.on(clock).series(machines, 2.0 * last_submission_s + BEYOND_S)
    return read_capacity(given, machines)


def envelope_named(text: str | Path) -> Path | EnvelopeSpec:
    """What a text such as `power:solar.csv,peak_w=5e4` describes, or the file that it names. Raises InputError."""
    if not str(text).strip():
        raise InputError("envelope", f"{text!r} is no envelope", "give a file, or a text such as constant:20000")
    return (parse_envelope(text) if isinstance(text, str) else None) or Path(text)


def envelope_of(
    given: Path | EnvelopeSpec | Series,
    platform: Platform,
    last_submission_s: float = 0.0,
    clock: Clock | None = None,
) -> Series:
    """The power cap in W, given, read or generated until long after the jobs. Raises InputError."""
    if isinstance(given, Series):
        return series_on_clock(given, clock, 2.0 * last_submission_s + BEYOND_S)
    if isinstance(given, EnvelopeSpec):
        return given.on(clock).series(
            2.0 * last_submission_s + BEYOND_S, platform.full_w if platform.has_power else None
        )
    return read_series(given)


def signal_of(
    given: SignalSpec | SignalIntegral | None, last_submission_s: float, clock: Clock | None = None
) -> SignalIntegral | None:
    """A carbon or price signal, given or read, that is known at the last submission. Raises InputError."""
    end_s = 2.0 * last_submission_s + BEYOND_S
    if isinstance(given, SignalSpec):
        found: SignalIntegral | None = given.on(clock).integral(end_s)
    else:
        found = given and on_clock(given, clock).until(end_s)
    if found is not None and not found.end_s > last_submission_s:
        problem = f"the signal ends at {found.end_s:g} s, the last job is submitted at {last_submission_s:g} s"
        raise InputError(found.source, problem, "take a longer one, or begin it again and again: FILE,repeat=yes")
    return found


def write_envelope(prefix: Path, series: Series) -> Path:
    """Write the envelope that a run generated as `PREFIX_envelope.csv`; returns its path. Raises InputError."""
    return write_text(file_of(prefix, "envelope"), to_csv(series))


def write_capacity(prefix: Path, series: Series) -> Path:
    """Write the capacity that a run generated as `PREFIX_capacity.csv`; returns its path. Raises InputError."""
    return write_text(file_of(prefix, "capacity"), to_csv(series))


def with_files(spec: RunSpec, hosts: int, prefix: Path) -> RunSpec:
    """The same run, on `hosts` hosts, with generated inputs written under a prefix for another process.

    A generated capacity is there already, by `write_capacity`: only the scheduler needs it.
    """
    platform = spec.platform
    if isinstance(platform, Platform):
        raise InputError(f"engine {spec.engine!r}", "reads files, the platform is none", "use 'embedded'")
    workloads = list(spec.workloads)
    if isinstance(platform, MachineSpec):
        platform = write_text(file_of(prefix, "platform", ".xml"), machines_xml(platform))
    speed_flops = reference_flops(spec, platform_of(spec.platform, spec.hosts))
    for number, path in enumerate(spec.workloads):
        if is_trace(path):
            jobs = read_trace(path, spec.length_unit, spec.log, window=spec.window is not None)
            data = window_json(jobs, *_bounds(spec.window), hosts, path)
        elif speed_flops is not None:
            data = load_json(read_text(path), path)
        else:
            continue
        if speed_flops is not None:
            data = json_with_flops(data, speed_flops)
        workloads[number] = write_text(file_of(prefix, f"workload{number or ''}", ".json"), to_text(data))
    workload, *others = workloads
    return replace(spec, platform=platform, workload=workload, more_workloads=tuple(others), length_unit="s", log=USUAL)


def reference_flops(spec: RunSpec, platform: Platform) -> float | None:
    """The speed in flop/s at which delays become work, None if they stay delays; see `RunSpec.delays_to_flops`."""
    if spec.delays_to_flops == "nominal":
        host = platform.hosts[0]
        return host.pstates[host.initial_pstate].speed_flops
    under_power = spec.envelope or spec.options.get("envelope") or spec.under_power
    usual = is_trace(spec.workload) and bool(under_power or not platform.one_speed)
    return platform.fastest_flops if spec.delays_to_flops or (spec.delays_to_flops is None and usual) else None


def machines_of(platform: Platform) -> dict[str, int]:
    """The machines of a platform with their numbers of hosts."""
    machines: dict[str, int] = {}
    for host in platform.hosts:
        name = machine_of(host.properties, host.name)
        machines[name] = machines.get(name, 0) + 1
    return machines


def windowed(trace: Path, window: Window | None, hosts: int, unit: TimeUnit = "s", log: LogOptions = USUAL) -> Workload:
    """The workload that a trace with times in `unit`, cut to a window, is for so many hosts. Raises InputError."""
    jobs = read_trace(trace, unit, log, window=window is not None)
    return window_workload(jobs, *_bounds(window), hosts, source=trace)


def cached_trace(
    trace: Path, window: Window | None, hosts: int, unit: TimeUnit = "s", log: LogOptions = USUAL
) -> Workload:
    """The same; the last ones are kept by path and content, as a campaign has many runs of a trace in a row."""
    return _kept(trace, hashlib.sha256(read_bytes(trace)).hexdigest(), window, hosts, unit, log)


@lru_cache(maxsize=2)
def _kept(trace: Path, sha256: str, window: Window | None, hosts: int, unit: TimeUnit, log: LogOptions) -> Workload:
    return windowed(trace, window, hosts, unit, log)


def cached_workload(path: Path, name: str = "w0", *, simulate: bool = True) -> Workload:
    """`read_workload`; the last small ones are kept by path and content: many runs of a campaign have the same."""
    text = read_text(path)
    return (_small if len(text) <= SMALL else parsed_workload)(text, name, path, simulate)


@lru_cache(maxsize=32)
def _small(text: str, name: str, path: Path, simulate: bool) -> Workload:
    return parsed_workload(text, name, path, simulate)


def _bounds(window: Window | None) -> tuple[float | None, float | None]:
    return (None, None) if window is None else (window.begin_s, window.end_s)
