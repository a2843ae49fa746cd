"""Readers of the inputs of a run: workloads of Batsim or of a trace, and series on the clock of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from batwatt.errors import InputError, argument
from batwatt.files import sha256_of
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.batsim_files import read_workload
from batwatt.inputs.convert import SUFFIXES, read_trace, window_workload
from batwatt.inputs.jobs import TimeUnit
from batwatt.inputs.platform_files import HostChoice
from batwatt.inputs.series import on_clock
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import Platform, machine_of
from batwatt.model.signal import Clock, Window
from batwatt.model.timeline import Timeline, checked_capacity
from batwatt.model.work import run_times_s
from batwatt.model.workload import Workload
from batwatt.units import DAY_S, YEAR_S

BEYOND_S = 30 * DAY_S
"""Time in s between twice the last submission and the end of what varies at random, or has a battery."""
LATEST_END_S = 1e10
"""Latest end of a job in s, 300 years, under an envelope or a capacity; later ones are taken for errors."""


def is_trace(workload: Path | Workload) -> bool:
    """Return whether a file is, by its name, a trace of jobs, not a Batsim workload; or a workload was a trace."""
    if isinstance(workload, Workload):
        return workload.recorded
    return workload.name.lower().removesuffix(".gz").endswith(tuple(SUFFIXES))


def last_end_s(load: Workload, speed_flops: float) -> float:
    """Return the last end in s of a job if all started when they are submitted."""
    if not load.jobs:
        return 0.0
    submits_s = np.array([job.submit_time_s for job in load.jobs])
    return float(np.nanmax(submits_s + np.nan_to_num(run_times_s(load, speed_flops))))


def check_ends(load: Workload, speed_flops: float) -> None:
    """Raise InputError if a job ends later than `LATEST_END_S`, too late for the steps of an envelope or a capacity."""
    limits_s = np.array([math.inf if job.walltime_s is None else job.walltime_s for job in load.jobs])
    submits_s = np.array([job.submit_time_s for job in load.jobs])
    ends_s = submits_s + np.fmin(run_times_s(load, speed_flops), limits_s)
    late = np.flatnonzero(ends_s > LATEST_END_S)
    if len(late):
        job, end_s = load.jobs[late[0]], float(ends_s[late[0]])
        problem = f"ends at {end_s:.6g} s at the earliest, {end_s / YEAR_S:.6g} years on"
        raise InputError(f"{load.source}: job {job.name!r}", problem, "correct its times or its profile")


def json_workloads(
    files: Sequence[Path | Workload], hosts: HostChoice, ignore_communication: bool, shared: bool, simulate: bool
) -> list[Workload]:
    """Return the workloads w0, w1, ... of Batsim's files, or one that is read; none if the only file is a trace.

    `shared`: the scheduler does not change the workload; `simulate`: profiles are those of the embedded engine. Raises
    InputError.
    """
    first = files[0]
    if isinstance(first, Workload):
        return [first if shared else unshared(first)]
    paths = [path for path in files if isinstance(path, Path)]
    traces = [path for path in paths if is_trace(path)]
    if traces and len(paths) > 1:
        problem = "is a trace: several workloads must be Batsim's JSON"
        raise InputError(traces[0], problem, "convert it with `batwatt convert`, or give it alone")
    if traces and hosts.mmax_workload:
        raise InputError(argument("mmax_workload"), f"the trace {traces[0]} has no 'nb_res'", f"use {argument('mmax')}")
    if ignore_communication and not simulate:
        raise InputError(argument("ignore_communication"), "a real Batsim simulates communication", "leave it out")
    read = partial(read_workload, simulate=simulate, shared=shared)
    numbered = [] if traces else enumerate(paths)
    return [read(path, f"w{i}", ignore_communication=ignore_communication) for i, path in numbered]


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
    """Return `windowed`, with a cache by path and content: a study runs one trace many times in a row."""
    return _windowed(trace, sha256_of(trace), window, hosts, unit, log)


@lru_cache(maxsize=2)
def _windowed(trace: Path, sha256: str, window: Window | None, hosts: int, unit: TimeUnit, log: LogOptions) -> Workload:
    return windowed(trace, window, hosts, unit, log)
