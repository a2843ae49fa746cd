"""Jobs of any format as a workload, a CSV trace, or Batsim's files: format, 0 s, window, work of delays."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from batwatt.checks import Between, Parameters, finite
from batwatt.errors import InputError, UnknownNameError, remark
from batwatt.files import is_file, open_text
from batwatt.inputs.batch_logs import USUAL, LogOptions, is_sacct, read_sacct
from batwatt.inputs.formats import (
    is_job_table,
    is_pbs,
    read_job_table,
    read_pbs,
    read_riskaware,
    read_swf,
    swf_origin_s,
    swf_trace_jobs,
)
from batwatt.inputs.jobs import (
    Column,
    TimeUnit,
    TraceJob,
    TraceTable,
    factor_of,
    iter_jobs_csv,
    read_jobs_table,
    within,
)
from batwatt.model.signal import parse_date
from batwatt.model.workload import (
    DEPENDS,
    ESTIMATE,
    JOB_FIELDS,
    LENGTH,
    RELEASE,
    START_S,
    Composed,
    Delay,
    JobSpec,
    Parallel,
    Profile,
    Workload,
)
from batwatt.protocol.numbers import MAX_INT
from batwatt.protocol.workload4 import full_id
from batwatt.units import LATEST_S, SINCE_1970_S, YEAR_S, date_text, microseconds, number_text


def workload_with_flops(workload: Workload, speed_flops: float) -> Workload:
    """Convert the delays of a workload to flops that last as long on cores of `speed_flops` flop/s."""
    profiles = {
        name: Parallel(per_host_flops=_work(profile.duration_s, speed_flops), return_code=profile.return_code)
        if isinstance(profile, Delay)
        else profile
        for name, profile in workload.profiles.items()
    }
    raw_profiles = {name: _delays_to_flops(raw, speed_flops) for name, raw in workload.raw_profiles.items()}
    return replace(workload, profiles=profiles, raw_profiles=raw_profiles)


def _delays_to_flops(raw: Mapping[str, Any], speed_flops: float) -> Mapping[str, Any]:
    if raw.get("type") != "delay":
        return raw
    others = {name: value for name, value in raw.items() if name not in ("type", "delay")}
    return {"type": "parallel_homogeneous", "cpu": _work(raw["delay"], speed_flops), "com": 0, **others}


def has_delay(profile: Profile, profiles: Mapping[str, Profile]) -> bool:
    """Return whether a profile is a delay, or a part of it is; a composed one has no circle."""
    if isinstance(profile, Composed):
        return any(name in profiles and has_delay(profiles[name], profiles) for name in set(profile.sequence))
    return isinstance(profile, Delay)


def _work(duration_s: float, speed_flops: float) -> float:
    """Return the flops rounded as in Batsim's JSON, so that the sent flops are those of the run."""
    return round(duration_s * speed_flops, 6)


_log = logging.getLogger(__name__)
_HINT = "correct or leave out such jobs, or say another begin"


def zero_of(
    submits_s: Column, origin_s: float | None, options: LogOptions, source: object, *, window: bool = False
) -> tuple[float, float | None]:
    """Return the time of a trace that becomes 0 s of a run, and its date in s since 1970, None if it is not known.

    `origin_s` is the date of the trace's own 0 s, or None: 0 s where its times are dates. Plain times of a trace with a
    `window` do not change. One line in the log states 0 s. Raises InputError.
    """
    first_s, last_s = float(submits_s.min()), float(submits_s.max())
    if last_s > LATEST_S:
        problem = f"a job is submitted at {last_s:.15g} s, {last_s / YEAR_S:.0f} years on"
        raise InputError(source, problem, "divide all its times by 1000 if they are milliseconds since 1970")
    begin = options.begin
    plain = origin_s != 0.0
    if plain and first_s >= SINCE_1970_S:
        origin_s, plain = 0.0, False
    own_zero = window and plain
    why = "as begin says"
    if begin is None:
        zero_s, why = (0.0, "as in the file") if own_zero else (first_s, "the first submission")
    elif plain and math.isnan(parse_date(begin, options.zone)):
        zero_s = float(begin)
    else:
        date = options.date(source) or 0.0
        zero_s = 0.0 if own_zero else first_s
        if origin_s is None:
            origin_s = date - zero_s
        else:
            zero_s = date - origin_s
    last = _time_text(last_s, origin_s)
    if last_s < zero_s:
        raise InputError(source, f"no job is submitted at {begin} or later", f"the last one is submitted at {last}")
    if not last_s - zero_s < SINCE_1970_S:
        years = (last_s - zero_s) / YEAR_S
        problem = f"a job is submitted at {last}, {years:.0f} years after 0 s ({_time_text(zero_s, origin_s)})"
        raise InputError(source, f"{problem}: times of two clocks", _HINT)
    if zero_s != 0.0 or origin_s is not None:
        names = [] if origin_s is None else [date_text(origin_s + zero_s)]
        names += [f"{number_text(zero_s)} s of its times"] if plain and (zero_s != 0.0 or not names) else []
        remark(_log, "%s", f"{source}: 0 s is {', '.join([*names, why])}")
    return zero_s, None if origin_s is None else origin_s + zero_s


def from_zero(table: TraceTable, options: LogOptions, source: object, *, window: bool = False) -> TraceTable:
    """Return the jobs with times from 0 s of `zero_of`, without jobs submitted earlier. Raises InputError."""
    zero_s, date = zero_of(table.submit_s, table.origin_s, options, source, window=window)
    later = table.submit_s >= zero_s
    if options.begin is not None:
        remark_earlier(int((~later).sum()), len(table), options, source)
        table = table.rows(later)
    if zero_s != 0.0:
        needs = dict(table.needs)
        if START_S in needs:
            start_s: Column = np.maximum(needs[START_S] - zero_s, 0.0)
            needs[START_S] = np.round(start_s, 6)
        table = replace(table, submit_s=np.round(table.submit_s - zero_s, 6), needs=needs)
    return replace(table, origin_s=date)


def remark_earlier(count: int, total: int, options: LogOptions, source: object) -> None:
    """Warn of jobs that are left out because they are submitted before `begin`, if any."""
    if count:
        remark(_log, "%s: %d of %d jobs are left out, submitted before %s", source, count, total, options.begin)


def _time_text(time_s: float, origin_s: float | None) -> str:
    return f"{number_text(time_s)} s" if origin_s is None else date_text(origin_s + time_s)


MAX_S = 1e15
"""Greatest time in s at which a float roughly resolves microseconds."""


def window_workload(
    jobs: Iterable[TraceJob],
    begin_s: float | None,
    end_s: float | None,
    nb_res: int,
    name: str = "w0",
    source: object = "<memory>",
) -> Workload:
    """Return the jobs of a window [begin_s, end_s] (s; both None: all jobs) as a Batsim workload.

    Jobs of the window have begin - length < release <= end. A job released earlier has run since its release: it is
    submitted at `begin_s` with its remaining length, length - (begin - release), and fields `release_s` and `length_s`
    of the whole job, by which it starts again if it is killed. Times are those of the trace. Profiles are delays named
    by their length, such as d300; there is no walltime: a requested time becomes `estimate_s`. The extra fields
    `memory`, `use`, `checkpoint_s`, `recovery_s`, `power_w`, `start_s` (in the time of the trace), `user`, `group`,
    `queue`, `qos` stay, and `depends_on` with jobs of the window: others have completed. A job wider than `nb_res`
    stays: the scheduler rejects it.

    Section 5.2 of the riskaware paper: r_i in [T_begin - w_i, T_end]. Raises InputError, which names `source`.
    """
    begin, end = _bounds(begin_s, end_s, source)
    table = TraceTable.of(jobs, source)
    _check(table, name, source)
    early = table.submit_s < begin
    left_s = table.run_s.copy()
    # one by one, as `round` and numpy differ in the last digit
    left_s[early] = [round(value, 6) for value in (table.run_s - (begin - table.submit_s))[early].tolist()]
    submits_s = np.maximum(table.submit_s, begin)
    inside = np.flatnonzero((table.submit_s <= end) & (left_s > 0.0))
    if not len(inside):
        where = "" if begin_s is None else f" in the window [{begin:g}, {end:g}] s"
        raise InputError(source, f"no job{where}, of {len(table)}", "move the window or take another trace")
    by_id = np.array(sorted(inside.tolist(), key=table.ids.tolist().__getitem__))
    rows = by_id[np.argsort(submits_s[by_id], kind="stable")]
    table, early = table.rows(rows), early[rows]
    lengths, profile_of = np.unique(left_s[rows], return_inverse=True)
    delays = {f"d{number_text(length_s)}": length_s for length_s in lengths.tolist()}
    names = list(delays)
    ids = table.ids.tolist()
    depends = within(table.depends, set(ids), source) if table.depends else {}
    together = " ".join(ids)
    usual = all(ids) and "!" not in together and name not in together
    needs = [(field, column.tolist()) for field, column in table.needs.items()]
    labels = [(field, column.tolist()) for field, column in table.labels.items()]
    window_jobs = []
    submits = submits_s[rows].tolist()
    plain = [int(time_s) if time_s.is_integer() else time_s for time_s in submits]
    columns = (table.cpus.astype(int).tolist(), profile_of.tolist(), early.tolist())
    for row, (id, submit_s, subtime, cpus, profile, before) in enumerate(
        zip(ids, submits, plain, *columns, strict=True)
    ):
        own = f"{name}!{id}" if usual else full_id(id, name, f"{source}: job {id!r}")
        raw: dict[str, Any] = {"id": own, "subtime": subtime, "res": cpus, "profile": names[profile]}
        if before:
            raw[RELEASE], raw[LENGTH] = _plain_job(float(table.submit_s[row])), _plain_job(float(table.run_s[row]))
        if needs:
            raw |= {field: _plain_job(value) for field, values in needs if (value := values[row]) == value}
        if labels:
            raw |= {field: text for field, texts in labels if (text := texts[row])}
        if id in depends:
            raw[DEPENDS] = depends[id]
        window_jobs.append(JobSpec(own, submit_s, cpus, names[profile], None, raw))
    return Workload(
        name=name,
        jobs=tuple(window_jobs),
        profiles={profile: Delay(length_s) for profile, length_s in delays.items()},
        raw_profiles={
            profile: {"type": "delay", "delay": _plain_job(length_s)} for profile, length_s in delays.items()
        },
        nb_res=nb_res,
        source=str(source),
        recorded=True,
        begin="" if table.origin_s is None else date_text(table.origin_s),
    )


def workload_json(workload: Workload) -> dict[str, Any]:
    """Return a workload as JSON data for Batsim."""
    rows = [{**job.raw, "id": job.name} for job in workload.jobs]
    return {"nb_res": workload.nb_res, "jobs": rows, "profiles": dict(workload.raw_profiles)}


def _plain_job(value: float) -> float:
    """Return a number, as an int if whole."""
    return int(value) if value.is_integer() else value


def _bounds(begin_s: float | None, end_s: float | None, source: object) -> tuple[float, float]:
    if begin_s is None and end_s is None:
        return 0.0, MAX_S
    try:
        begin, end = round(finite(begin_s), 6), round(finite(end_s), 6)
    except ValueError:
        problem = f"a window needs two finite times, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "give begin_s and end_s in s, or neither for the whole trace") from None
    if not 0.0 <= begin < end <= MAX_S:
        problem = f"a window must satisfy 0 <= begin_s < end_s, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "correct the two times")
    return begin, end


def _check(table: TraceTable, workload: str, source: object) -> None:
    """Raise InputError for a job that cannot run, and for an id of two jobs."""
    times = (table.submit_s >= 0.0) & (table.submit_s <= MAX_S) & (table.run_s > 0.0) & (table.run_s <= MAX_S)
    good = times & (table.cpus >= 1) & (table.cpus <= MAX_INT)
    if not good.all():
        job = table[int(np.argmin(good))]
        problem = f"needs a release >= 0 s, a length > 0 s and cores in 1..{MAX_INT}, got "
        problem += f"{job.submit_s!r}, {job.run_s!r}, {job.cpus!r}"
        raise InputError(f"{source}: job {job.id!r}", problem, "leave jobs of unknown length or width out")
    names = [id.removeprefix(f"{workload}!") for id in table.ids.tolist()]
    if len(set(names)) < len(names):
        [(twice, _)] = Counter(names).most_common(1)
        raise InputError(f"{source}: job {twice!r}", "appears twice", "ids must differ: renumber the jobs")


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
