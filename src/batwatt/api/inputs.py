"""Platforms, workloads and series as objects: read, generated, or built of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from batwatt.api.arguments import path_or, plain, real, whole, window_of
from batwatt.api.shown import Shown
from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import HostChoice, platform_of
from batwatt.inputs.platforms.machines import MachineSpec
from batwatt.inputs.platforms.platform_xml import MASTER_HOST
from batwatt.inputs.series.series_csv import read_series as read_series_csv
from batwatt.inputs.traces.job_log import LogOptions
from batwatt.inputs.traces.jobs_csv import SECONDS, TimeUnit
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import NEEDS
from batwatt.inputs.traces.window import window_workload
from batwatt.inputs.workloads.batsim_json import parse_workload, read_workload
from batwatt.model import platform as platforms
from batwatt.model import series as model_series
from batwatt.model import workload as workloads
from batwatt.model.workload import DEPENDS, ESTIMATE, LABELS, POWER_W, START_S
from batwatt.remarks import collected_remarks
from batwatt.run.inputs import is_trace, windowed
from batwatt.units import REFERENCE_SPEED, number_text

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.model.signal_integral import SignalIntegral

PathLike = str | Path
WindowLike = tuple[float, float]
"""Begin and end in s."""
_NOT_PLAIN = re.compile('[,"\r\n\0]')
JOB_COLUMNS = ("submission_time_s", "length_s", "hosts")
"""Columns that `Workload.from_frame` needs."""


def _of(kind: type[Any], found: Any) -> Any:
    """A model's object as one of the API's."""
    return kind(**{field.name: getattr(found, field.name) for field in fields(found)})


@dataclass(frozen=True, repr=False)
class Platform(Shown, platforms.Platform):
    """The hosts that run jobs, in Batsim's order. Attributes as in `batwatt.model.platform.Platform`."""

    spec: MachineSpec | None = None
    """What machines it was built of, if it was."""

    @classmethod
    def read(cls, path: PathLike, *, master: str = MASTER_HOST, mmax: int = 0) -> Self:
        """Read a SimGrid platform file (XML); `mmax` > 0: the first hosts only. Raises InputError."""
        choice = HostChoice(master, whole("mmax", mmax, 0))
        found: Self = _of(cls, platform_of(path_or("path", path), choice))
        return found

    @classmethod
    def machines(
        cls, count: int, cores: int = 1, watts: float | None = None, *, speed: float | str = REFERENCE_SPEED
    ) -> Self:
        """`count` like machines of `cores` cores, each core a host, which draw `watts` W each whenever they are on.

        Off they draw nothing; switching takes 1 µs (docs: `MachineSpec`). Default of `watts`: 10 W a core. `speed` of a
        core: flop/s, or as SimGrid writes it. Raises InputError.
        """
        count, cores = whole("count", count, 1), whole("cores", cores, 1)
        own = {} if watts is None else {"core_w": real("watts", watts) / cores}
        if not isinstance(speed, str):
            speed = real("speed", speed, above=True)
        spec = MachineSpec(count, cores, core_flops=speed, **own)
        found = platform_of(spec, HostChoice())
        return cls(found.hosts, found.source, found.not_simulated, spec)

    def facts(self) -> Mapping[str, object]:
        """See `Shown`."""
        idle_w = sum(host.pstates[host.initial_pstate].idle_w for host in self.hosts)
        power = {"idle": f"{idle_w:g} W", "full": f"{self.full_w:g} W"} if self.has_power else {"power": "not known"}
        return {"source": self.source, "hosts": len(self), "kinds of host": len(set(self.kinds)), **power}


@dataclass(frozen=True, repr=False)
class Workload(Shown, workloads.Workload):
    """Jobs and their profiles. Attributes as in `batwatt.model.workload.Workload`."""

    @classmethod
    def read(
        cls,
        path: PathLike,
        *,
        unit: TimeUnit = "s",
        window: WindowLike | None = None,
        hosts: int | None = None,
        **log: Any,
    ) -> Self:
        """Read a Batsim workload (.json), or a trace (.swf, .sacct, .csv, .txt, .parquet; .gz, too), by its name.

        Of a trace: the `unit` of its times, the part of it submitted in `window` (s), and how many `hosts` there are
        (default: as many as its widest job needs). Of sacct, PM100 and F-DATA also width, fields, tz, begin, as in
        `batwatt.inputs.traces.job_log.LogOptions`. Raises InputError.
        """
        file: Path = path_or("path", path)
        if unit not in SECONDS:
            raise InputError("unit", f"{unit!r} is not known", f"use {', '.join(SECONDS)}")
        known = [field.name for field in fields(LogOptions)]
        for name in log:
            if name not in known:
                raise InputError("Workload.read", f"no option {name!r}", f"known: {', '.join(known)}")
        hosts = None if hosts is None else whole("hosts", hosts, 1)
        if is_trace(file):
            with collected_remarks() as remarks:
                found = windowed(file, window_of(window), hosts or 1, unit, LogOptions(**log))
            widest = max(job.hosts for job in found.jobs)
            found = replace(found, nb_res=hosts or widest, remarks=tuple(remarks))
        elif window is not None or SECONDS[unit] != 1.0 or log:
            raise InputError(file, "is a Batsim workload, in s", f"leave out {', '.join(['window', 'unit', *log])}")
        else:
            found = read_workload(file)
        read: Self = _of(cls, found)
        return read

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, window: WindowLike | None = None, hosts: int | None = None, source: str = "a table"
    ) -> Self:
        """Build a workload of a pandas DataFrame, a row a job.

        Columns: `submission_time_s`, `length_s` (run time at full speed), `hosts`; if there are any `id`, `estimate_s`
        (what its user asked for), `memory`, `use`, `checkpoint_s`, `recovery_s`, `depends_on` (a list of ids), and of
        a job log `user`, `group`, `queue` (texts), `power_w` (mean while it ran), `start_s` (recorded); others are left
        out. Missing values are NaN. `window` and `hosts` as for `read`. Raises InputError with the row.
        """
        if not hasattr(frame, "columns"):
            raise InputError(source, f"is no DataFrame, got {type(frame).__name__}", "give a table of pandas")
        if not frame.columns.is_unique:
            raise InputError(source, "has two columns of one name", "rename one")
        missing = [name for name in JOB_COLUMNS if name not in frame.columns]
        if missing:
            raise InputError(source, f"no column {missing[0]!r}", f"the columns are {', '.join(JOB_COLUMNS)}")
        if not len(frame):
            raise InputError(source, "has no rows", "give a row for each job")
        cut = window_of(window)
        begin_s, end_s = (None, None) if cut is None else (cut.begin_s, cut.end_s)
        hosts = None if hosts is None else whole("hosts", hosts, 1)
        rows = list(_rows_of(frame, source))
        widest = max(job.cpus for job in rows)
        found: Self = _of(cls, window_workload(rows, begin_s, end_s, hosts or widest, source=source))
        return found

    @classmethod
    def synthetic(cls, *, seed: int = 0, **parameters: Any) -> Self:
        """A Google-like workload as of the powercap paper: 12 jobs an hour for a day, on up to 8 of 20 servers.

        `parameters`: jobs_per_hour, hours, mean_runtime_s, sigma, max_servers, nb_res and the others of
        `batwatt.inputs.workloads.google_like.GoogleLike`. Same seed, same jobs. Raises InputError.
        """
        from batwatt.inputs.workloads.google_like import GoogleLike, google_like

        known = [field.name for field in fields(GoogleLike)]
        for name in parameters:
            if name not in known:
                raise InputError("Workload.synthetic", f"no parameter {name!r}", f"known: {', '.join(known)}")
        given = {name: plain(value) for name, value in parameters.items()}
        data = google_like(GoogleLike(**given), whole("seed", seed, 0))
        found: Self = _of(cls, parse_workload(data, "w0", f"synthetic workload, seed {seed}"))
        return found

    def frame(self) -> pd.DataFrame:
        """The jobs as a table: id, submission_time_s, hosts, walltime_s (NaN without), profile.

        And user, group, queue ("" without), power_w, start_s (NaN without) if any job has them.
        """
        import pandas as pd

        columns = {
            "id": [job.name for job in self.jobs],
            "submission_time_s": [job.submit_time_s for job in self.jobs],
            "hosts": [job.hosts for job in self.jobs],
            "walltime_s": [float("nan") if job.walltime_s is None else job.walltime_s for job in self.jobs],
            "profile": [job.profile for job in self.jobs],
        }
        unknown = {**dict.fromkeys(LABELS, ""), POWER_W: float("nan"), START_S: float("nan")}
        for name, value in unknown.items():
            if any(name in job.raw for job in self.jobs):
                columns[name] = [job.raw.get(name, value) for job in self.jobs]
        return pd.DataFrame(columns)

    def facts(self) -> Mapping[str, object]:
        """See `Shown`."""
        widest = max((job.hosts for job in self.jobs), default=0)
        return {
            "source": self.source,
            "jobs": len(self.jobs),
            "last submission": f"{self.last_submission_s:g} s",
            "widest": f"{widest} hosts",
            "profiles": len(self.profiles),
        }


def _rows_of(frame: pd.DataFrame, source: str) -> Iterator[TraceJob]:
    ids = frame["id"] if "id" in frame.columns else range(1, len(frame) + 1)
    needs = [name for name in NEEDS if name in frame.columns and name != ESTIMATE]
    for row, (name, values) in enumerate(zip(ids, frame.to_dict("records"), strict=True), 1):
        where = f"{source}: row {row}"
        submit_s, length_s, hosts = (_number(where, column, values[column]) for column in JOB_COLUMNS)
        if not hosts.is_integer():
            raise InputError(where, f"hosts must be a whole number, got {hosts:g}", "correct it")
        extra: dict[str, object] = {
            need: value for need in needs if (value := _number(where, need, values[need], may_lack=True)) is not None
        }
        for field in LABELS:
            label = values.get(field)
            # a missing text is NaN or None; numbers become floats where one is missing
            if label is not None and label == label:
                extra[field] = number_text(label) if isinstance(label, float) else str(label)
        depends = values.get(DEPENDS)
        if isinstance(depends, list | tuple):
            extra[DEPENDS] = [str(one) for one in depends]
        elif not (depends is None or depends != depends):
            raise InputError(where, f"{DEPENDS} must be a list of ids, got {depends!r}", 'write for instance ["17"]')
        if name is None or name != name or _NOT_PLAIN.search(str(name)):
            raise InputError(where, f"id must be a text without quotes, commas and lines, got {name!r}", "rename it")
        estimate_s = _number(where, ESTIMATE, values.get(ESTIMATE), may_lack=True)
        yield TraceJob(str(plain(name)), round(submit_s, 6), round(length_s, 6), int(hosts), estimate_s, extra)


def _number(where: str, column: str, value: Any, *, may_lack: bool = False) -> Any:
    """A finite number of a cell; None for one that may be missing and is."""
    try:
        number = float("nan") if value is None else float(value)
    except (TypeError, ValueError):
        raise InputError(where, f"{column} must be a number, got {value!r}", "correct it") from None
    if number == number and abs(number) != float("inf"):
        return number
    if may_lack and number != number:
        return None
    raise InputError(where, f"{column} must be a finite number, got {number:g}", "correct it, or leave the row out")


@dataclass(frozen=True, repr=False)
class Series(Shown, model_series.Series):
    """Values that hold from their time (s) until the next: `Series((0, 3600), (500, 200))` is an envelope in W.

    Times and values are any sequences of numbers. Raises InputError.
    """

    def __post_init__(self) -> None:
        try:
            for name in ("times_s", "values"):
                object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
            super().__post_init__()
        except (TypeError, ValueError) as error:
            raise InputError("Series", str(error), "give times in s and as many values") from None

    def facts(self) -> Mapping[str, object]:
        """See `Shown`."""
        mean = sum(self.values) / len(self)
        return {
            "name": self.name,
            "source": self.source,
            "rows": len(self),
            "time": f"{self.times_s[0]:g} to {self.times_s[-1]:g} s",
            "values": f"{min(self.values):g} to {max(self.values):g}, mean {mean:g}",
        }


def read_series(path: PathLike) -> Series:
    """Read an envelope or a capacity: CSV with `time_s` and one more column. Raises InputError with the line."""
    found: Series = _of(Series, read_series_csv(path_or("path", path)))
    return found


def read_signal(path: PathLike, **options: Any) -> SignalIntegral:
    """Read a carbon or price signal: CSV with dates or `time_s`; the first row is 0 s.

    `options`: column, time_column, kind, zone, tz, begin, end, days, period_s, gaps, max_gap_s, wanted, as in
    `batwatt.inputs.series.signal_file.SignalFile`. Raises InputError.
    """
    from batwatt.inputs.series.signal_csv import read_signal as read
    from batwatt.inputs.series.signal_file import SignalFile
    from batwatt.model.signal_integral import SignalIntegral

    known = [field.name for field in fields(SignalFile) if field.name != "path"]
    for name in options:
        if name not in known:
            raise InputError("read_signal", f"no option {name!r}", f"known: {', '.join(known)}")
    return SignalIntegral.of(read(SignalFile(path_or("path", path), **options)))
