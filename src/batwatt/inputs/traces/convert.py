"""Conversion of job traces (SWF, CSV, the riskaware paper's text, logs of batch systems) to Batsim workloads."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError, UnknownNameError, remark
from batwatt.files import is_file, open_text
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.inputs.traces.job_tables import is_job_table, read_job_table
from batwatt.inputs.traces.jobs_csv import TimeUnit, factor_of, iter_jobs_csv, read_jobs_table
from batwatt.inputs.traces.pbs import is_pbs, read_pbs
from batwatt.inputs.traces.riskaware_text import read_riskaware
from batwatt.inputs.traces.sacct import is_sacct, read_sacct
from batwatt.inputs.traces.swf import read_swf, swf_origin_s, swf_trace_jobs
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.inputs.traces.zero import from_zero, remark_earlier, zero_of
from batwatt.model.workload import ESTIMATE, JOB_FIELDS, START_S
from batwatt.units import microseconds

__all__ = ["Conversion", "TraceJob", "convert_file", "format_of", "read_trace", "to_batsim"]

Format = Literal["swf", "csv", "txt", "sacct", "table", "pbs"]

SUFFIXES: dict[str, Format] = {
    ".swf": "swf",
    ".csv": "csv",
    ".txt": "txt",
    ".sacct": "sacct",
    ".parquet": "table",
    ".pbs": "pbs",
}
"""Suffix -> format; by its first line a `.csv` or `.txt` may be of sacct, a `.csv` a job table, a `.txt` of PBS."""
LOGS: dict[Format, Callable[[Path | str, LogOptions], TraceTable]] = {
    "sacct": read_sacct,
    "table": read_job_table,
    "pbs": read_pbs,
}
"""Formats of batch systems' logs, to which LogOptions apply, and their readers."""

_log = logging.getLogger(__name__)
_MAX_NUMBER = 1e22  # Batsim cannot echo a number of more than 30 characters
_MAX_HOSTS = 2**31 - 1


@dataclass(frozen=True)
class Conversion:
    """A converted trace: `workload` is Batsim's JSON data, other fields are numbers of jobs for the user.

    Jobs of `skipped_run_time` and `skipped_cpus` are left out: their run time or width is unknown or not positive. Jobs
    of `outrun` run for longer than they request: their walltime is longer, too, and `estimate_s` the request. A
    scheduler must reject the jobs of `too_wide`, which request more than `nb_res` servers.
    """

    workload: dict[str, Any]
    kept: int
    skipped_run_time: int = 0
    skipped_cpus: int = 0
    outrun: int = 0
    too_wide: int = 0

    @property
    def skipped(self) -> int:
        """Jobs of the trace that are not in the workload."""
        return self.skipped_run_time + self.skipped_cpus


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions(Parameters, where="workload of a trace"):
    """Options of the conversion of a trace to a Batsim workload.

    A job has ceil(cpus / `cores_per_server`) servers. Its walltime is the requested time if known, at least so long
    that it does not end the job, else run time x `walltime_factor` rounded up to the second, or none for a factor of
    None. With `reference_flops` (flop/s of one core) a job is work of run time x `reference_flops` per server, so that
    slower servers take longer, else a delay. The factor must be >= 1, and > 1 for delays, because a Batsim delay equal
    to its walltime times out. `nb_res` None is the width of the widest job. Raises InputError.
    """

    cores_per_server: Annotated[int, Between(1, _MAX_HOSTS)] = 1
    walltime_factor: Annotated[float | None, Between(1.0)] = 2.0
    reference_flops: Annotated[float | None, Between(0.0, ends="][")] = None
    nb_res: Annotated[int | None, Between(1, _MAX_HOSTS)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_flops is None and self.walltime_factor == 1.0:
            problem = "walltime_factor must be > 1 for delays, got 1"
            raise InputError(self.WHERE, problem, "a delay equal to its walltime times out in Batsim")

    def row(self, job: TraceJob, begin_s: float, profiles: dict[str, dict[str, Any]], place: str) -> dict[str, Any]:
        """Return the job as a row of Batsim's JSON, and add its profile. Raises InputError."""
        servers = -(-job.cpus // self.cores_per_server)
        if servers > _MAX_HOSTS:
            raise InputError(place, f"requests more than {_MAX_HOSTS} servers", "Batsim counts servers in 32 bits")
        if not job.id or "!" in job.id:
            raise InputError(place, "an id must be a text without '!'", "Batsim splits ids there: rename the job")
        clash = JOB_FIELDS.intersection(job.extra)
        if clash:
            problem = f"the extra field {min(clash)!r} has the name of a Batsim field"
            raise InputError(place, problem, "rename that column")
        submit_s = _plain(place, "submission time", job.submit_s - begin_s)
        run_s = _plain(place, "run time", job.run_s)
        row: dict[str, Any] = {"id": job.id, "subtime": submit_s, "res": servers}
        walltime_s = self.walltime_s(job)
        if walltime_s is not None:
            row["walltime"] = _plain(place, "walltime", walltime_s)
            if job.requested_s is not None and 0.0 < round(job.requested_s, 6) < walltime_s:
                row[ESTIMATE] = _plain(place, ESTIMATE, job.requested_s)
        row["profile"] = self.profile(run_s, profiles, place)
        extra = dict(job.extra)
        start_s = extra.get(START_S)
        if isinstance(start_s, int | float):
            extra[START_S] = _plain(place, START_S, max(start_s - begin_s, 0.0))
        return row | extra

    def walltime_s(self, job: TraceJob) -> float | None:
        """Return the walltime in s: the requested time, else a multiple of the run time in whole seconds, else None.

        It is at least the run time of work, and the next whole second after that of a delay: a delay as long as its
        walltime would time out.
        """
        run_s = round(job.run_s, 6)
        least = math.floor(run_s) + 1 if self.reference_flops is None else run_s
        if job.requested_s is not None and round(job.requested_s, 6) > 0.0:
            return max(job.requested_s, least) if self.outruns(job) else job.requested_s
        if self.walltime_factor is None:
            return None
        product = job.run_s * self.walltime_factor
        return max(math.ceil(product), least) if math.isfinite(product) else product

    def outruns(self, job: TraceJob) -> bool:
        """Return whether a walltime as long as the requested time ends a job: of delays one that is as long, too."""
        run_s, requested_s = round(job.run_s, 6), round(job.requested_s or 0.0, 6)
        return 0.0 < requested_s <= run_s if self.reference_flops is None else 0.0 < requested_s < run_s

    def profile(self, run_s: float, profiles: dict[str, dict[str, Any]], place: str) -> str:
        """Return the name of the profile of a run time, which is added if it is new. Raises InputError."""
        if self.reference_flops is None:
            name = f"delay{run_s!r}"
            profiles.setdefault(name, {"type": "delay", "delay": run_s})
        else:
            name = f"work{run_s!r}"
            flops = _plain(place, "work", run_s * self.reference_flops)
            profiles.setdefault(name, {"type": "parallel_homogeneous", "cpu": flops, "com": 0})
        return name


def to_batsim(
    jobs: Iterable[TraceJob], *, where: object = "job trace", begin_s: float | None = None, **options: Any
) -> Conversion:
    """Convert the jobs of a trace, in their order, to a Batsim workload, in which equal jobs share a profile.

    Its 0 s is `begin_s` of the trace, by default the first submission. `options` are those of `WorkloadOptions`. Extra
    fields of a trace job become fields of the Batsim job. Raises InputError, which names the trace `where`.
    """
    settings = WorkloadOptions(**options)
    convertible, skipped_run_time, skipped_cpus = [], 0, 0
    for job in jobs:
        if not round(job.run_s, 6) > 0.0:
            skipped_run_time += 1
        elif not job.cpus > 0:
            skipped_cpus += 1
        else:
            convertible.append(job)
    if not convertible:
        hint = "every job lacks its run time or its processors" if skipped_run_time + skipped_cpus else "it is empty"
        raise InputError(where, "no job to convert", hint)
    if begin_s is None:
        begin_s = min(job.submit_s for job in convertible)
    seen: set[str] = set()
    profiles: dict[str, dict[str, Any]] = {}
    rows = []
    for job in convertible:
        place = f"{where}: job {job.id!r}"
        if job.id in seen:
            raise InputError(place, "appears twice", "ids must differ: renumber the jobs")
        seen.add(job.id)
        rows.append(settings.row(job, begin_s, profiles, place))
    widest = max(row["res"] for row in rows)
    size = settings.nb_res if settings.nb_res is not None else widest
    return Conversion(
        workload={"nb_res": size, "jobs": rows, "profiles": profiles},
        kept=len(rows),
        skipped_run_time=skipped_run_time,
        skipped_cpus=skipped_cpus,
        outrun=sum(map(settings.outruns, convertible)),
        too_wide=sum(row["res"] > size for row in rows),
    )


def format_of(path: Path | str) -> Format:
    """Return the trace format by the suffix of a file, before `.gz`, or by its first line. Raises InputError."""
    name = Path(path).name.lower().removesuffix(".gz")
    suffix_format = next((format for suffix, format in SUFFIXES.items() if name.endswith(suffix)), None)
    if suffix_format is None:
        hint = f"end it in {', '.join(SUFFIXES)}, or say the format"
        raise InputError(path, "its name does not tell its format", hint)
    if suffix_format not in ("csv", "txt") or not is_file(path):
        return suffix_format
    with open_text(path) as stream:
        line = next(stream, "").rstrip("\r\n")
    if is_sacct(line):
        return "sacct"
    if suffix_format == "txt":
        return "pbs" if is_pbs(line) else suffix_format
    return "table" if is_job_table(line) else suffix_format


def convert_file(
    path: Path | str,
    *,
    format: Format | None = None,
    unit: TimeUnit = "s",
    log: LogOptions = USUAL,
    **options: Any,
) -> Conversion:
    """Convert the trace of a file to a Batsim workload; `format` None: by its name, `unit` is that of CSV times.

    `log` has the time of 0 s (`zero_of`), `options` are those of `WorkloadOptions`. Raises InputError with the file
    and the line.
    """
    format = format or _format(path, log)
    jobs = list(_jobs_of(path, format, unit, log))
    submits_s = np.array([microseconds(job.submit_s) for job in jobs if job.run_s > 0.0 and job.cpus > 0])
    if len(submits_s):
        zero_s, _ = zero_of(submits_s, _origin_of(path, format), log, path)
        options["begin_s"] = zero_s
        if log.begin is not None:
            later = [job for job in jobs if not job.submit_s < zero_s]
            remark_earlier(len(jobs) - len(later), len(jobs), log, path)
            jobs = later
    return to_batsim(jobs, where=path, **options)


def read_trace(path: Path | str, unit: TimeUnit = "s", log: LogOptions = USUAL, *, window: bool = False) -> TraceTable:
    """Read the jobs of a trace with known run time and width, with the extra fields that a run needs.

    Other jobs are skipped, with one warning of their number. `unit` and `log` as for `convert_file`; plain times do not
    change for a `window`. Raises InputError.
    """
    format = _format(path, log)
    table = read_jobs_table(path, unit) if format == "csv" and not log.of_log else None
    if table is None:
        table = TraceTable.of(_jobs_of(path, format, unit, log, fields=False), path)
    jobs = table.rows((table.run_s > 0.0) & (table.cpus >= 1))
    if len(jobs) < len(table):
        text = "%s: %d of %d jobs are skipped, their length or width is 0 or unknown"
        remark(_log, text, path, len(table) - len(jobs), len(table))
    if not len(jobs):
        return jobs
    return from_zero(replace(jobs, origin_s=_origin_of(path, format)), log, path, window=window)


def _origin_of(path: Path | str, format: Format) -> float | None:
    """Return the date of 0 s of a file's own times in s since 1970, None if its format does not state it."""
    return 0.0 if format in LOGS else swf_origin_s(path) if format == "swf" else None


def _format(path: Path | str, log: LogOptions) -> Format:
    """Return the format of a file: that of sacct if `log` names its fields. Raises InputError."""
    return "sacct" if log.fields else format_of(path)


def _jobs_of(
    path: Path | str, format: Format, unit: TimeUnit, log: LogOptions, *, fields: bool = True
) -> Iterable[TraceJob]:
    """Return all jobs of a trace; without `fields`, only the fields of SWF that a run needs. Raises InputError."""
    if format not in SUFFIXES.values():
        raise UnknownNameError(path, "trace format", format, SUFFIXES.values(), "Leave it out to go by the file name.")
    if format != "csv" and factor_of(unit, path) != 1.0:
        raise InputError(path, f"its times are in seconds, got the unit {unit!r}", "leave the unit out")
    if format in LOGS:
        return LOGS[format](path, log)
    if log.of_log:
        raise InputError(path, "width and fields are for sacct, tables and PBS", "leave them out")
    if format == "txt":
        return read_riskaware(path)
    if format == "swf":
        return swf_trace_jobs(path) if fields else read_swf(path)
    return iter_jobs_csv(path, unit)


def _plain(place: str, name: str, value: float) -> float:
    """Return the value rounded to Batsim's 6 decimals, as an int if whole. Raises InputError."""
    if not abs(value) < _MAX_NUMBER:
        raise InputError(place, f"{name} is {value:g}", "Batsim cannot hold such a number")
    value = round(value, 6)
    return int(value) if float(value).is_integer() else value
