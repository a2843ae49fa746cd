"""Platforms, workloads and series as objects: read, generated, or built of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from batwatt.errors import InputError, collected_remarks
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.batsim_files import read_workload
from batwatt.inputs.convert import from_zero, window_workload
from batwatt.inputs.jobs import HOSTS, SECONDS, WHOLE_LENGTH, TimeUnit, jobs_of_frame
from batwatt.inputs.load import is_trace, windowed
from batwatt.inputs.platform_files import MASTER_HOST, HostChoice, platform_of
from batwatt.inputs.signal import read_series as read_series_csv
from batwatt.model import platform as platforms
from batwatt.model import timeline as timelines
from batwatt.model import workload as workloads
from batwatt.model.described import Described
from batwatt.model.platform import MachineSpec
from batwatt.model.signal import Window, parse_date_s
from batwatt.model.timeline import MAX_ROWS
from batwatt.model.workload import JOB_FIELDS, LABELS, LENGTH, Delay, Profile
from batwatt.protocol.workload4 import parse_workload
from batwatt.run.arguments import (
    checked,
    count_or_0,
    flag,
    hosts_of,
    one_of,
    optional,
    options_for,
    path_or,
    positive,
    real,
    real_of,
    seed_of,
    several,
    text,
    whole,
    window_of,
    wrong,
)
from batwatt.units import REFERENCE_SPEED, date_text

if TYPE_CHECKING:
    import pandas as pd


PathLike = str | Path
WindowLike = tuple[float, float]
"""Begin and end in s."""
UNNAMED = "a table"


def _speed(name: str, value: Any) -> float | str:
    return value if isinstance(value, str) else positive(name, value)


def _of(kind: type[Any], model: Any) -> Any:
    """Return an object of the model, which its reader has checked, as one of the API."""
    copy = object.__new__(kind)
    copy.__dict__.update(vars(model))
    return copy


@dataclass(frozen=True, repr=False)
class Platform(Described, platforms.Platform):
    """The hosts that run jobs, in Batsim's order. Attributes as in `batwatt.model.platform.Platform`."""

    _makers: ClassVar[str] = "Platform.read(path) or Platform.machines(count)"
    spec: MachineSpec | None = None
    """Machines of which the platform was built; None for a file."""

    @classmethod
    @checked(path=path_or, master=text, mmax=count_or_0)
    def read(cls, path: PathLike, *, master: str = MASTER_HOST, mmax: int = 0) -> Self:
        """Read a SimGrid platform file (XML).

        Args:
            path: The file.
            master: Name of the host that runs no jobs.
            mmax: Number of hosts to take, the first ones; 0: all.

        Returns:
            The platform.

        Raises:
            batwatt.errors.InputError: A file that is no platform; it names the line or the host.
        """
        platform: Self = _of(cls, platform_of(Path(path), HostChoice(master, mmax)))
        return platform

    @classmethod
    @checked(count=hosts_of, cores=hosts_of, watts=optional(real), speed=_speed)
    def machines(
        cls, count: int, cores: int = 1, watts: float | None = None, *, speed: float | str = REFERENCE_SPEED
    ) -> Self:
        """Build `count` like machines of `cores` cores, each core a host, which draw `watts` W each while they are on.

        Off they draw 0 W; switching takes 1 µs (docs: `MachineSpec`).

        Args:
            count: Number of machines.
            cores: Cores of a machine.
            watts: Power of a machine that is on, W. Default: 10 W a core.
            speed: Speed of a core, flop/s, or as SimGrid writes it.

        Returns:
            The platform, of `count` x `cores` hosts.

        Raises:
            batwatt.errors.InputError: A number that is not positive, or a speed of no unit of SimGrid.
        """
        own = {} if watts is None else {"core_w": watts / cores}
        spec = MachineSpec(count, cores, core_flops=speed, **own)
        model = platform_of(spec, HostChoice())
        return cls(model.hosts, model.source, model.not_simulated, spec)

    def facts(self) -> Mapping[str, object]:
        """Return the facts of `Described`."""
        idle_w = sum(host.pstates[host.initial_pstate].idle_w for host in self.hosts)
        power = {"idle": f"{idle_w:g} W", "full": f"{self.full_w:g} W"} if self.has_power else {"power": "not known"}
        return {"source": self.source, "hosts": len(self), "kinds of host": len(set(self.kinds)), **power}


@dataclass(frozen=True, repr=False)
class Workload(Described, workloads.Workload):
    """Jobs and their profiles. Attributes as in `batwatt.model.workload.Workload`."""

    _makers: ClassVar[str] = "Workload.read(path) or Workload.from_frame(frame)"

    @classmethod
    @checked(
        path=path_or,
        unit=one_of(SECONDS),
        window=window_of,
        hosts=optional(hosts_of),
        ignore_communication=flag,
        log=options_for("Workload.read", LogOptions),
    )
    def read(
        cls,
        path: PathLike,
        *,
        unit: TimeUnit = "s",
        window: WindowLike | None = None,
        hosts: int | None = None,
        ignore_communication: bool = False,
        **log: Any,
    ) -> Self:
        """Read a Batsim workload (.json), or a trace (.swf, .sacct, .csv, .txt, .parquet, .pbs), by its name.

        Args:
            path: The file; what follows is for traces, but for `ignore_communication`.
            unit: Unit of the times of the trace.
            window: Part of the trace to take, by times of submission in s.
            hosts: Number of hosts. Default: as many as the widest job needs.
            ignore_communication: Take profiles of a .json workload that communicate as if their `com` were 0.
            **log: `begin`, the date of 0 s (of a trace without dates also a number of s of its times; default: the
                first submission), in the time zone `tz` if it has no offset; of sacct, tables and PBS also
                width and fields, as in `batwatt.inputs.batch_logs.LogOptions`.

        Returns:
            The workload.

        Raises:
            batwatt.errors.InputError: Bad input; it names the line or the job.
        """
        file, options = Path(path), LogOptions(**log)
        if is_trace(file):
            with collected_remarks() as remarks:
                workload = windowed(file, cast(Any, window), hosts or 1, unit, options)
            widest = max(job.hosts for job in workload.jobs)
            workload = replace(workload, nb_res=hosts or widest, remarks=tuple(remarks))
        elif window is not None or SECONDS[unit] != 1.0 or options.of_log:
            raise InputError(file, "is a Batsim workload, in s", "leave out window, unit, width, fields")
        else:
            with collected_remarks() as remarks:
                workload = read_workload(file, ignore_communication=ignore_communication)
            workload = replace(workload, remarks=tuple(remarks))
            date_s = options.date(file)
            workload = workload if date_s is None else replace(workload, begin=date_text(date_s))
        result: Self = _of(cls, workload)
        return result

    @classmethod
    @checked(
        window=window_of,
        hosts=optional(hosts_of),
        source=optional(text),
        log=options_for("Workload.from_frame", LogOptions),
    )
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        window: WindowLike | None = None,
        hosts: int | None = None,
        source: str | None = None,
        **log: Any,
    ) -> Self:
        """Build a workload of a pandas DataFrame, a row a job, with the columns of a CSV trace.

        Columns (docs: workloads): `submission_time_s`, `length_s` (run time at full speed), `hosts`, or their other
        names `arrival_time`, `length`, `cpus`, also in s; if there are any `id`, `estimate_s` (request of the user),
        `memory`, `use`, `checkpoint_s`, `recovery_s`, `depends_on` (ids), `user`, `group`, `queue`, `qos`, `power_w`
        (mean of the run), `start_s`. Submissions and starts may be dates: 0 s is the first submission then. Others are
        left out. Missing values are NaN. The table of a trace by `frame` makes the same trace.

        Args:
            frame: The table.
            window: Part of the table to take, by times of submission in s.
            hosts: Number of hosts. Default: as many as the widest job needs.
            source: Name of the table in messages.
            **log: `begin`, the date of 0 s, and `tz`, the time zone of dates without an offset, as for `read`.

        Returns:
            The workload.

        Raises:
            batwatt.errors.InputError: Bad input; it names the row.
        """
        with collected_remarks() as remarks:
            workload = _workload_of(frame, cast(Any, window), hosts, source, LogOptions(**log))
        result: Self = _of(cls, replace(workload, remarks=tuple(remarks)))
        return result

    @classmethod
    @checked(seed=seed_of)
    def synthetic(cls, *, seed: int = 0, **parameters: Any) -> Self:
        """Generate a Google-like workload as of the powercap paper: 12 jobs an hour, a day, on up to 8 of 20 servers.

        Args:
            seed: Seed of the generator; the same seed gives the same jobs.
            **parameters: As in `batwatt.inputs.google_like.GoogleLike`: jobs_per_hour, hours,
                mean_runtime_s, sigma, max_servers, nb_res.

        Returns:
            The workload.

        Raises:
            batwatt.errors.InputError: A parameter out of its range.
        """
        from batwatt.inputs.google_like import GoogleLike, google_like

        data = google_like(GoogleLike(**options_for("Workload.synthetic", GoogleLike)("", parameters)), seed)
        workload: Self = _of(cls, parse_workload(data, "w0", f"synthetic workload, seed {seed}"))
        return workload

    def frame(self) -> pd.DataFrame:
        """Return the jobs as a table: id, submission_time_s, hosts, walltime_s (NaN without), profile.

        Of a trace length_s (run time at full speed). All further fields of any job are columns, too (NaN where a job
        has none; labels "").
        """
        return _frame_of(self)

    def facts(self) -> Mapping[str, object]:
        """Return the facts of `Described`."""
        widest = max((job.hosts for job in self.jobs), default=0)
        return {
            "source": self.source,
            "jobs": len(self.jobs),
            **({"0 s": self.begin} if self.begin else {}),
            "last submission": f"{self.last_submission_s:g} s",
            "widest": f"{widest} hosts",
            "profiles": len(self.profiles),
        }


def _frame_of(workload: workloads.Workload) -> pd.DataFrame:
    """Return the jobs as a table; `_workload_of` rebuilds a trace from its table."""
    # only tables need pandas
    import pandas as pd

    nan = float("nan")
    jobs = workload.jobs
    columns: dict[str, list[Any]] = {
        "id": [job.name for job in jobs],
        "submission_time_s": [job.submit_time_s for job in jobs],
        "hosts": [job.hosts for job in jobs],
        "walltime_s": [nan if job.walltime_s is None else job.walltime_s for job in jobs],
        "profile": [job.profile for job in jobs],
    }
    if workload.recorded:
        columns["length_s"] = [_length_s(workload.profiles[job.profile]) for job in jobs]
    for name in dict.fromkeys(key for job in jobs for key in job.raw if key not in JOB_FIELDS):
        column = WHOLE_LENGTH if name == LENGTH and workload.recorded else name
        columns[column] = [job.raw.get(name, "" if name in LABELS else nan) for job in jobs]
    frame = pd.DataFrame(columns)
    frame.attrs = {"nb_res": workload.nb_res, "source": workload.source, "begin": workload.begin}
    return frame


def _length_s(profile: Profile) -> float:
    """Return the length in s of a job of a trace, which is a delay."""
    assert isinstance(profile, Delay)
    return profile.duration_s


def _workload_of(
    frame: Any, window: Window | None, hosts: int | None, source: str | None, options: LogOptions
) -> workloads.Workload:
    """Return the workload of a table; see `batwatt.Workload.from_frame`. Raises InputError with the row."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise wrong("frame", "a DataFrame of pandas", frame)
    source = source or str(frame.attrs.get("source", UNNAMED))
    if options.of_log:
        raise InputError(source, "width and fields are for job logs", "leave them out")
    jobs = jobs_of_frame(frame, source, options.zone)
    if jobs.origin_s is None and (begin := frame.attrs.get("begin")):
        jobs = replace(jobs, origin_s=parse_date_s(begin))
    # plain times are those of the table
    jobs = from_zero(jobs, options, window=True)
    nb_res = hosts or max(_whole_or(frame.attrs.get("nb_res"), 1), int(jobs[HOSTS].max()))
    return window_workload(jobs, window, nb_res)


def _whole_or(value: Any, usual: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else usual


@dataclass(frozen=True, repr=False)
class Series(Described, timelines.Timeline):
    """Values that hold from their time (s) until the next: `Series((0, 3600), (500, 200))` is an envelope in W.

    Times and values are any sequences of numbers. `loop=0, period_s=86400` repeats them every day, for ever; by default
    the last value holds. `bounds` is the range that is known of the values, for policies that use it.
    Raises InputError.
    """

    _makers: ClassVar[str] = "read_series(path) or read_signal(path)"

    def __post_init__(self) -> None:
        for name in ("name", "source", "unit"):
            text(name, getattr(self, name))
        if self.date_s is not None:
            date: Any = self.date_s
            date_s = parse_date_s(date, "date_s") if isinstance(date, str) else real("date_s", date, -math.inf)
            object.__setattr__(self, "date_s", date_s)
        flag("pinned", self.pinned)
        if self.loop is not None:
            whole("loop", self.loop, -1)
        real("period_s", self.period_s)
        if self.bounds is not None:
            bounds = tuple(several("bounds", self.bounds, real_of, "(least, greatest)", 2))
            if len(bounds) != 2 or bounds[0] > bounds[1]:
                raise InputError("bounds", f"is not (least, greatest), got {bounds!r}", "give two numbers in order")
            object.__setattr__(self, "bounds", bounds)
        try:
            for name in ("times_s", "values"):
                numbers = several(name, getattr(self, name), real_of, "a list of numbers", MAX_ROWS)
                object.__setattr__(self, name, tuple(numbers))
            super().__post_init__()
        except ValueError as error:
            raise InputError("Series", str(error), "give times in s and as many values") from None

    def facts(self) -> Mapping[str, object]:
        """Return the facts of `Described`."""
        mean = sum(self.values) / len(self)
        return {
            "name": self.name,
            "source": self.source,
            "unit": self.unit or "that of the argument",
            "rows": len(self),
            "time": f"{self.times_s[0]:g} to {self.times_s[-1]:g} s",
            "values": f"{min(self.values):g} to {max(self.values):g}, mean {mean:g}",
        }


@checked(path=path_or)
def read_series(path: PathLike) -> Series:
    """Read an envelope or a capacity.

    Args:
        path: A CSV file with the column `time_s` and one more.

    Returns:
        The series, of times in s.

    Raises:
        batwatt.errors.InputError: Bad input; it names the line.
    """
    series: Series = _of(Series, read_series_csv(path))
    return series


@checked(path=path_or, quantity=optional(one_of(("carbon", "price", "power"))))
def read_signal(path: PathLike, quantity: str | None = None) -> Series:
    """Read a signal (carbon, price, power) from a text or a file, as of `--carbon`, `--price` and `--envelope`.

    Values become g/kWh, money per kWh or W by the unit that the file states, or the key `unit`, and the signal has that
    `unit` (`?` if none is stated). 0 s is the first row, or the key `from`. A run takes it as its text (docs:
    workloads).

    Args:
        path: A file (CSV, JSON; docs: signals), with keys after it as in `nl.csv,from=2024-07-01,days=30`; or
            an envelope as in `power:solar.csv,peak_w=5e4 + constant:2000`, as long as its longest file.
        quantity: carbon, price or power, where a file has several kinds of columns. Default: any.

    Returns:
        The signal, of times in s, with its integral over them.

    Raises:
        batwatt.errors.InputError: Bad input.
    """
    from batwatt.inputs.spec import has_kinds, parse_series

    described = str(path)
    if not has_kinds(described):
        return cast(Series, _of(Series, parse_series(cast(Any, quantity or "any"), described).timeline()))
    if quantity not in (None, "power"):
        raise InputError("quantity", f"is for files, not for {described!r}", "leave it out")
    envelope = parse_series("power", described)
    if envelope.is_open and not envelope.sources:
        raise InputError(described, "has no end", "say end=, in s, or add a file")
    return cast(Series, _of(Series, envelope.timeline(end_s=envelope.length_s() or 0.0)))
