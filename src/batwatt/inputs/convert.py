"""Jobs of any format as a workload, a CSV trace, or Batsim's files: format, 0 s, window, work of delays."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from batwatt.checks import parameters
from batwatt.errors import InputError, UnknownNameError, remark
from batwatt.files import is_file, open_text
from batwatt.inputs.batch_logs import USUAL, LogOptions, is_sacct, read_sacct
from batwatt.inputs.formats import is_job_table, is_pbs, read_job_table, read_pbs, read_riskaware, read_swf
from batwatt.inputs.jobs import (
    HOSTS,
    NEEDS,
    REQUIRED,
    SUBMISSION,
    WHOLE_LENGTH,
    Jobs,
    Numbers,
    TimeUnit,
    factor_of,
    read_jobs_csv,
    rounded,
    runnable,
    second_s,
    within,
)
from batwatt.model.signal import Window, parse_date
from batwatt.model.workload import (
    DEPENDS,
    ESTIMATE,
    JOB_FIELDS,
    LABELS,
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
from batwatt.units import HOUR_S, LATEST_S, SINCE_1970_S, YEAR_S, date_text, number_text


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
    submits_s: Numbers, origin_s: float | None, options: LogOptions, source: object, *, window: bool = False
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


def from_zero(jobs: Jobs, options: LogOptions, *, window: bool = False) -> Jobs:
    """Return the jobs with times from 0 s of `zero_of`, without jobs submitted earlier. Raises InputError.

    Jobs without a run time or a width do not decide on 0 s.
    """
    runnable = jobs.runnable()
    if not runnable.any():
        return jobs
    source = jobs.source
    zero_s, date = zero_of(jobs[SUBMISSION][runnable], jobs.origin_s, options, source, window=window)
    if options.tz != "UTC" and jobs.origin_s == 0.0:
        hours = (jobs[SUBMISSION][runnable] // HOUR_S).tolist()
        if twice := sum(second_s(hour * HOUR_S, options.zone) != 0.0 for hour in hours):
            text = (
                "%s: %d jobs are submitted in an hour that %s has twice; dates without an offset are of the first one"
            )
            remark(_log, text, source, twice, options.tz)
    if options.begin is not None:
        later = jobs[SUBMISSION] >= zero_s
        if count := int((~later).sum()):
            remark(_log, "%s: %d of %d jobs are left out, submitted before %s", source, count, len(jobs), options.begin)
        jobs = jobs.rows(later)
    columns = dict(jobs.columns)
    if zero_s != 0.0:
        columns[SUBMISSION] = rounded(jobs[SUBMISSION] - zero_s)
        for name in {START_S, RELEASE} & columns.keys():
            columns[name] = rounded(np.maximum(jobs[name] - zero_s, 0.0))
    return replace(jobs, columns=columns, origin_s=date)


def _time_text(time_s: float, origin_s: float | None) -> str:
    return f"{number_text(time_s)} s" if origin_s is None else date_text(origin_s + time_s)


MAX_S = 1e15
"""Greatest time in s at which a float roughly resolves microseconds."""


def window_workload(jobs: Jobs, window: Window | None, nb_res: int, name: str = "w0") -> Workload:
    """Return the jobs of a window [begin, end] (s; None: all jobs) as a Batsim workload.

    Jobs of the window have begin - length < release <= end. A job released earlier has run since its release: it is
    submitted at `begin` with its remaining length, length - (begin - release), and fields `release_s` and `length_s`
    of the whole job, by which it starts again if it is killed. Times are those of the trace. Profiles are delays named
    by their length, such as d300; there is no walltime: a requested time becomes `estimate_s`. The other optional
    COLUMNS are fields of the job, too (`start_s` in the time of the trace), and `depends_on` with jobs of the window:
    others have completed. A job wider than `nb_res` stays: the scheduler rejects it.

    Section 5.2 of the riskaware paper: r_i in [T_begin - w_i, T_end]. Raises InputError.
    """
    begin, end = (0.0, MAX_S) if window is None else (round(window.begin_s, 6), round(window.end_s, 6))
    if not begin < end <= MAX_S:
        problem = f"a window must satisfy begin_s < end_s <= {MAX_S:g}, got {begin!r} and {end!r}"
        raise InputError(jobs.source, problem, "correct the two times")
    _check(jobs, name)
    submits_s, left_s = jobs[SUBMISSION], jobs[LENGTH]
    early = submits_s < begin
    left_s = np.where(early, rounded(left_s - (begin - submits_s)), left_s)
    inside = np.flatnonzero((submits_s <= end) & (left_s > 0.0))
    if not len(inside):
        where = "" if window is None else f" in the window [{begin:g}, {end:g}] s"
        raise InputError(jobs.source, f"no job{where}, of {len(jobs)}", "move the window or take another trace")
    by_id = np.array(sorted(inside.tolist(), key=jobs["id"].tolist().__getitem__))
    rows = by_id[np.argsort(np.maximum(submits_s, begin)[by_id], kind="stable")]
    jobs, early = jobs.rows(rows), early[rows]
    lengths, profile_of = np.unique(left_s[rows], return_inverse=True)
    delays = {f"d{number_text(length_s)}": length_s for length_s in lengths.tolist()}
    names = list(delays)
    ids = jobs["id"].tolist()
    depends: dict[str, list[str]] = {}
    if DEPENDS in jobs:
        depends = within(dict(zip(ids, jobs[DEPENDS].tolist(), strict=True)), set(ids), jobs.source)
    together = " ".join(ids)
    usual = all(ids) and "!" not in together and name not in together
    whole = _whole_jobs(jobs, early)
    needs = [(field, column.tolist()) for field, column in jobs.columns.items() if field in _FIELDS]
    labels = [(field, jobs[field].tolist()) for field in LABELS if field in jobs]
    window_jobs = []
    submits = np.maximum(jobs[SUBMISSION], begin).tolist()
    plain = [int(time_s) if time_s.is_integer() else time_s for time_s in submits]
    columns = (jobs[HOSTS].astype(int).tolist(), profile_of.tolist())
    for row, (id, submit_s, subtime, hosts, profile) in enumerate(zip(ids, submits, plain, *columns, strict=True)):
        own = f"{name}!{id}" if usual else full_id(id, name, jobs.place(row))
        raw: dict[str, Any] = {"id": own, "subtime": subtime, "res": hosts, "profile": names[profile]}
        if row in whole:
            raw[RELEASE], raw[LENGTH] = whole[row]
        if needs:
            raw |= {field: _plain_job(value) for field, values in needs if (value := values[row]) == value}
        if labels:
            raw |= {field: text for field, texts in labels if (text := texts[row])}
        if id in depends:
            raw[DEPENDS] = depends[id]
        window_jobs.append(JobSpec(own, submit_s, hosts, names[profile], None, raw))
    return Workload(
        name=name,
        jobs=tuple(window_jobs),
        profiles={profile: Delay(length_s) for profile, length_s in delays.items()},
        raw_profiles={
            profile: {"type": "delay", "delay": _plain_job(length_s)} for profile, length_s in delays.items()
        },
        nb_res=nb_res,
        source=str(jobs.source),
        recorded=True,
        begin="" if jobs.origin_s is None else date_text(jobs.origin_s),
    )


_FIELDS = frozenset(NEEDS) - {RELEASE, WHOLE_LENGTH}
"""Columns of numbers that are fields of a job."""


def _whole_jobs(jobs: Jobs, early: npt.NDArray[np.bool_]) -> dict[int, tuple[float, float]]:
    """Return row -> release and length in s of jobs whose begin this window, or one before it, cut off."""
    unknown = np.full(len(jobs), np.nan)
    release_s, length_s = (jobs.columns.get(name, unknown) for name in (RELEASE, WHOLE_LENGTH))
    before = ~(np.isnan(release_s) | np.isnan(length_s))
    release_s = np.where(before, release_s, jobs[SUBMISSION])
    length_s = np.where(before, length_s, jobs[LENGTH])
    rows = np.flatnonzero(early | before).tolist()
    return {row: (_plain_job(float(release_s[row])), _plain_job(float(length_s[row]))) for row in rows}


def workload_json(workload: Workload) -> dict[str, Any]:
    """Return a workload as JSON data for Batsim."""
    rows = [{**job.raw, "id": job.name} for job in workload.jobs]
    return {"nb_res": workload.nb_res, "jobs": rows, "profiles": dict(workload.raw_profiles)}


def _plain_job(value: float) -> float:
    """Return a number, as an int if whole."""
    return int(value) if value.is_integer() else value


def _check(jobs: Jobs, workload: str) -> None:
    """Raise InputError for a job that cannot run, and for an id of two jobs."""
    submits_s, lengths_s, hosts = jobs[SUBMISSION], jobs[LENGTH], jobs[HOSTS]
    times = (submits_s >= 0.0) & (submits_s <= MAX_S) & (lengths_s > 0.0) & (lengths_s <= MAX_S)
    good = times & (hosts >= 1) & (hosts <= MAX_INT)
    if not good.all():
        row = int(np.argmin(good))
        problem = f"needs a release >= 0 s, a length > 0 s and cores in 1..{MAX_INT}, got "
        problem += f"{float(submits_s[row])!r}, {float(lengths_s[row])!r}, {int(hosts[row])!r}"
        raise InputError(jobs.place(row), problem, "leave jobs of unknown length or width out")
    _check_ids([id.removeprefix(f"{workload}!") for id in jobs["id"].tolist()], jobs)


def _check_ids(ids: list[str], jobs: Jobs) -> None:
    """Raise InputError for an id of two jobs."""
    if len(set(ids)) < len(ids):
        [(twice, _)] = Counter(ids).most_common(1)
        raise InputError(f"{jobs.source}: job {twice!r}", "appears twice", "ids must differ: renumber the jobs")


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
LOGS: dict[Format, Callable[[Path | str, LogOptions], Jobs]] = {
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


_WHERE = "workload of a trace"


@parameters(_WHERE)
class WorkloadOptions:
    """Options of the conversion of a trace to a Batsim workload.

    A job has ceil(cpus / `cores_per_server`) servers. Its walltime is the requested time if known, at least so long
    that it does not end the job, else run time x `walltime_factor` rounded up to the second, or none for a factor of
    None. With `reference_flops` (flop/s of one core) a job is work of run time x `reference_flops` per server, so that
    slower servers take longer, else a delay. The factor must be >= 1, and > 1 for delays, because a Batsim delay equal
    to its walltime times out. `nb_res` None is the width of the widest job. Raises InputError.
    """

    cores_per_server: Annotated[int, Field(ge=1, le=_MAX_HOSTS)] = 1
    walltime_factor: Annotated[float | None, Field(ge=1.0)] = 2.0
    reference_flops: Annotated[float | None, Field(gt=0.0)] = None
    nb_res: Annotated[int | None, Field(ge=1, le=_MAX_HOSTS)] = None

    def __post_init__(self) -> None:
        if self.reference_flops is None and self.walltime_factor == 1.0:
            problem = "walltime_factor must be > 1 for delays, got 1"
            raise InputError(_WHERE, problem, "a delay equal to its walltime times out in Batsim")

    def row(self, job: Mapping[str, Any], profiles: dict[str, dict[str, Any]], place: str) -> dict[str, Any]:
        """Return the job as a row of Batsim's JSON, and add its profile. Raises InputError."""
        servers = -(-job[HOSTS] // self.cores_per_server)
        if servers > _MAX_HOSTS:
            raise InputError(place, f"requests more than {_MAX_HOSTS} servers", "Batsim counts servers in 32 bits")
        if "!" in job["id"]:
            raise InputError(place, "an id must be a text without '!'", "Batsim splits ids there: rename the job")
        extra = {name: value for name, value in job.items() if name not in _CONVERTED}
        clash = JOB_FIELDS.intersection(extra)
        if clash:
            problem = f"the extra field {min(clash)!r} has the name of a Batsim field"
            raise InputError(place, problem, "rename that column")
        submit_s = _plain(place, "submission time", job[SUBMISSION])
        run_s = _plain(place, "run time", job[LENGTH])
        row: dict[str, Any] = {"id": job["id"], "subtime": submit_s, "res": servers}
        walltime_s = self.walltime_s(job[LENGTH], job.get(ESTIMATE))
        if walltime_s is not None:
            row["walltime"] = _plain(place, "walltime", walltime_s)
            if 0.0 < job.get(ESTIMATE, 0.0) < walltime_s:
                row[ESTIMATE] = _plain(place, ESTIMATE, job[ESTIMATE])
        row["profile"] = self.profile(run_s, profiles, place)
        if START_S in extra:
            extra[START_S] = _plain(place, START_S, extra[START_S])
        return row | extra

    def walltime_s(self, run_s: float, requested_s: float | None) -> float | None:
        """Return the walltime in s: the requested time, else a multiple of the run time in whole seconds, else None.

        It is at least the run time of work, and the next whole second after that of a delay: a delay as long as its
        walltime would time out.
        """
        least = math.floor(run_s) + 1 if self.reference_flops is None else run_s
        if requested_s:
            return max(requested_s, least) if self.outruns(run_s, requested_s) else requested_s
        if self.walltime_factor is None:
            return None
        product = run_s * self.walltime_factor
        return max(math.ceil(product), least) if math.isfinite(product) else product

    def outruns(self, run_s: float, requested_s: float | None) -> bool:
        """Return whether a walltime as long as the requested time ends a job: of delays one that is as long, too."""
        if not requested_s:
            return False
        return requested_s <= run_s if self.reference_flops is None else requested_s < run_s

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


_CONVERTED = {"id", *REQUIRED, ESTIMATE, RELEASE, WHOLE_LENGTH}
"""Columns that are no further fields of a converted job."""


def to_batsim(jobs: Jobs, **options: Any) -> Conversion:
    """Convert jobs, in their order, to a Batsim workload, in which equal jobs share a profile.

    `options` are those of `WorkloadOptions`. Further columns become fields of the Batsim job. Raises InputError.
    """
    settings = WorkloadOptions(**options)
    skipped_run_time = int((~(jobs[LENGTH] > 0.0)).sum())
    good = jobs.runnable()
    if not good.any():
        hint = "every job lacks its run time or its processors" if len(jobs) else "it is empty"
        raise InputError(jobs.source, "no job to convert", hint)
    skipped_cpus = int((~good).sum()) - skipped_run_time
    jobs = jobs.rows(good)
    _check_ids(jobs["id"].tolist(), jobs)
    profiles: dict[str, dict[str, Any]] = {}
    rows, outrun = [], 0
    for row, job in enumerate(jobs):
        rows.append(settings.row(job, profiles, jobs.place(row)))
        outrun += settings.outruns(job[LENGTH], job.get(ESTIMATE))
    widest = max(row["res"] for row in rows)
    size = settings.nb_res if settings.nb_res is not None else widest
    return Conversion(
        workload={"nb_res": size, "jobs": rows, "profiles": profiles},
        kept=len(rows),
        skipped_run_time=skipped_run_time,
        skipped_cpus=skipped_cpus,
        outrun=outrun,
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
    jobs = read_jobs(path, format or _format(path, log), unit, log, others=True)
    return to_batsim(from_zero(jobs, log), **options)


def read_trace(path: Path | str, unit: TimeUnit = "s", log: LogOptions = USUAL, *, window: bool = False) -> Jobs:
    """Read the jobs of a trace with known run time and width, without further columns.

    Other jobs are skipped, with one warning of their number. `unit` and `log` as for `convert_file`; plain times do not
    change for a `window`. Raises InputError.
    """
    jobs = runnable(read_jobs(path, _format(path, log), unit, log))
    return from_zero(jobs, log, window=window)


def read_jobs(path: Path | str, format: Format, unit: TimeUnit, log: LogOptions, *, others: bool = False) -> Jobs:
    """Read all jobs of a trace of a format; `others`: also further columns of CSV and SWF. Raises InputError."""
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
    return read_swf(path, others=others) if format == "swf" else read_jobs_csv(path, unit, log.zone, others=others)


def _format(path: Path | str, log: LogOptions) -> Format:
    """Return the format of a file: that of sacct if `log` names its fields. Raises InputError."""
    return "sacct" if log.fields else format_of(path)


def _plain(place: str, name: str, value: float) -> float:
    """Return the value rounded to Batsim's 6 decimals, as an int if whole. Raises InputError."""
    if not abs(value) < _MAX_NUMBER:
        raise InputError(place, f"{name} is {value:g}", "Batsim cannot hold such a number")
    value = round(value, 6)
    return int(value) if float(value).is_integer() else value
