"""Options that several commands share, and those of `run`, for typer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from batwatt.checks import finite
from batwatt.errors import InputError, UnknownNameError, argument
from batwatt.inputs.platform_files import MASTER_HOST, HostChoice
from batwatt.model.workload import LONG_S
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.inputs.batch_logs import LogOptions
    from batwatt.inputs.jobs import TimeUnit
    from batwatt.model.platform import MachineSpec
    from batwatt.model.signal import Window
    from batwatt.model.timeline import Timeline

UNITS: dict[str, TimeUnit] = {"seconds": "s", "s": "s", "minutes": "min", "min": "min", "hours": "h", "h": "h"}
"""Values of the key `unit`."""
_Name = TypeVar("_Name", bound=str)


def input_option(field: str, *names: str, **more: Any) -> Any:
    """Return an option for a field of a run's inputs, with the help of the field."""
    return typer.Option(*(names or (f"--{field}",)), help=RunSpec.__dataclass_fields__[field].metadata["help"], **more)


PlatformFile = Annotated[Path, input_option("platform", "-p", "--platform", metavar="PLATFORM")]
OptionalPlatform = Annotated[
    Path | None,
    typer.Option(
        "-p",
        "--platform",
        metavar="PLATFORM",
        help="Platform of SimGrid (.xml), with keys as in p.xml,mmax=9; or --machines.",
    ),
]
Jobs = Annotated[list[Path], input_option("workloads", "-w", "--workload", metavar="JOBS")]
CapacityText = Annotated[str | None, input_option("capacity", metavar="SERIES")]
EnvelopeFile = Annotated[
    Path | None,
    typer.Option(
        "--envelope", help="Limit of power over time: CSV with time_s,power_w; a value holds until the next row."
    ),
]
EnvelopeText = Annotated[str | None, input_option("envelope", metavar="SERIES")]
CarbonText = Annotated[str | None, input_option("carbon", metavar="SERIES")]
PriceText = Annotated[str | None, input_option("price", metavar="SERIES")]
WATTS_HELP = "Power of a core, W, of jobs in phases that state none."
EventsFile = Annotated[Path | None, input_option("events")]


def complete_scheduler(incomplete: str) -> list[str]:
    """Return the schedulers that begin with the text, of ours and pybatsim's, else folders and .py files."""
    from batwatt.run.find_scheduler import scheduler_names

    names = [name for name in scheduler_names() if name.startswith(incomplete)]
    if names or set(incomplete) & set("*?["):
        return names
    paths = Path().glob(f"{incomplete}*") if incomplete and not incomplete.startswith(("/", "~")) else ()
    return sorted(f"{path}/" if path.is_dir() else str(path) for path in paths if path.is_dir() or path.suffix == ".py")


_SCHEDULER_HELP = "Name (see `batwatt policies`), or a .py file or a folder."
SchedulerName = Annotated[
    str,
    typer.Option("-s", "--scheduler", metavar="NAME", help=_SCHEDULER_HELP, autocompletion=complete_scheduler),
]


def _load(paths: list[Path] | None) -> None:
    from batwatt.run.find_scheduler import load_plugins

    load_plugins(paths or ())


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        callback=_load,
        help="File (.py) with parts of your own (docs/howto/parts.md); repeatable.",
    ),
]
OptionTexts = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--option",
        metavar="KEY=VALUE",
        help="Option of the scheduler; repeatable; or a JSON object, or @FILE with one.",
    ),
]
PREFIX_HELP = "Prefix of the output files; folders are made."
Prefix = Annotated[Path, typer.Option("-e", "--export", metavar="PREFIX", help=PREFIX_HELP)]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="S",
        help="Longest wait for the other process, to connect or to answer, s (0: no limit).",
    ),
]


DelaysToFlops = Annotated[
    bool | None,
    input_option(
        "delays_to_flops",
        "--delays-to-flops/--no-delays-to-flops",
        show_default="those of traces, if there are several speeds or an envelope",
    ),
]


IgnoreCommunication = Annotated[bool, input_option("ignore_communication", "--ignore-communication")]


Begin = Annotated[
    str | None,
    typer.Option(
        "--begin",
        metavar="DATE",
        help="Date of 0 s, or s of the times of the workload.",
        show_default="the first submission",
    ),
]
LOG_KEYS = ("width", "tz", "fields", "unit")
"""Keys behind the file of a trace: hosts are cpus or nodes, time zone of dates, fields of sacct, s or h."""
HOST_KEYS = ("master", "mmax", "mmax_workload")
"""Keys behind a platform file: Batsim's choice of hosts."""


def keys_of(text: object, names: Sequence[str], option: str) -> tuple[Path, dict[str, str]]:
    """Return the file of a text FILE,KEY=VALUE,... and the values of its keys. Raises InputError."""
    # pydantic loads slowly
    from batwatt.inputs.source import check_keys, values_of, words_of

    where = f"{option} {str(text)!r}"
    path, *pairs = words_of(str(text)) or [""]
    values = values_of(pairs, where)
    check_keys(values, names, where, "Correct it.")
    return Path(path), values


@dataclass(frozen=True)
class JobFiles:
    """Files of jobs, with the options of their reader and the unit of their times."""

    paths: tuple[Path, ...]
    log: LogOptions
    unit: TimeUnit

    @classmethod
    def of(
        cls,
        texts: Sequence[object],
        begin: str | None = None,
        option: str = "--workload",
        keys: Sequence[str] = LOG_KEYS,
    ) -> JobFiles:
        """Return the files of texts FILE,KEY=VALUE,... with some of `LOG_KEYS` as keys. Raises InputError."""
        from batwatt.files import read_text
        from batwatt.inputs.batch_logs import LogOptions

        paths, values = [], dict[str, str]()
        for text in texts:
            path, own = keys_of(text, keys, option)
            paths.append(path)
            values |= own
        unit = values.pop("unit", "s")
        if unit not in UNITS:
            raise UnknownNameError("unit", "unit of time", unit, ("s", "min", "h"), "Give one of these.")
        if (fields := values.get("fields")) is not None:
            fields = next(iter(read_text(fields[1:]).splitlines()), "") if fields.startswith("@") else fields
            if not fields.strip():
                raise InputError("fields", f"{values['fields']!r} names no fields", "write JobID,User,... or @FILE")
            values["fields"] = fields.replace("|", ",").strip(",")
        more: dict[str, Any] = values
        return cls(tuple(paths), LogOptions(begin=begin, **more), UNITS[unit])


def hosts_of(text: object) -> tuple[Path, HostChoice]:
    """Return the platform file of a text FILE,KEY=VALUE,... (`HOST_KEYS`) and its hosts. Raises InputError."""
    path, values = keys_of(text, HOST_KEYS, "--platform")
    mmax, workload = values.get("mmax", "0"), values.get("mmax_workload", "no")
    if not mmax.isdecimal():
        raise InputError("mmax", f"{mmax!r} is not a number of hosts", "give 1 or more, or 0 for all")
    if workload not in ("yes", "no"):
        raise InputError("mmax_workload", f"{workload!r} is neither yes nor no", "write mmax_workload=yes")
    return path, HostChoice(values.get("master", MASTER_HOST), int(mmax), workload == "yes")


@dataclass(frozen=True, kw_only=True)
class MachineChoice:
    """Machines in place of a platform file, their capacity over time, and the window of a trace."""

    machines: Annotated[
        int | None, typer.Option("--machines", help="In place of a platform: number of equal machines.")
    ] = None
    cores: Annotated[int | None, typer.Option("--cores", help="Cores of a machine, each a host.", show_default="1")] = (
        None
    )
    capacity: CapacityText = None
    window: Annotated[str | None, input_option("window", metavar="BEGIN:END")] = None
    begin: Begin = None

    def spec(self, platform: Path | None, workloads: Sequence[Path], **more: Any) -> RunSpec:
        """Return the description of a run on these machines, or on the platform file. Raises InputError."""
        capacity: Any = self.capacity
        hosts, choice = self._platform(platform)
        jobs = JobFiles.of(workloads, self.begin)
        return RunSpec(
            platform=hosts,
            hosts=choice,
            workloads=jobs.paths,
            capacity=capacity,
            window=self._window(),
            length_unit=jobs.unit,
            log=jobs.log,
            **more,
        )

    def _platform(self, platform: Path | None) -> tuple[Path | MachineSpec, HostChoice]:
        """Return the platform file with its hosts, or the machines of a synthetic platform. Raises InputError."""
        from batwatt.model.platform import MachineSpec

        if (platform is None) == (self.machines is None):
            problem = "both are given" if platform is not None else "neither is given"
            raise InputError("--platform, --machines", problem, "give a platform file, or machines and their cores")
        if platform is None:
            return MachineSpec(self.machines or 0, 1 if self.cores is None else self.cores), HostChoice()
        if self.cores is not None:
            raise InputError("--cores", "is for --machines", "leave it out: the platform file has its hosts")
        return hosts_of(platform)

    def _window(self) -> Window | None:
        """Return the window of a text `BEGIN:END`. Raises InputError."""
        from batwatt.model.signal import Window

        if self.window is None:
            return None
        begin, _, end = self.window.partition(":")
        try:
            return Window(finite(begin), finite(end))
        except ValueError:
            problem = f"invalid window {self.window!r}"
            raise InputError("--window", problem, "write BEGIN:END in s, as in 864000:1468800") from None


@dataclass(frozen=True, kw_only=True)
class RunMachines(MachineChoice):
    """Machines of one run, with the limit between classes of length of jobs."""

    long: Annotated[float | None, input_option("long_s", "--long", metavar="S", show_default=f"{LONG_S:g}")] = None

    def spec(self, platform: Path | None, workloads: Sequence[Path], **more: Any) -> RunSpec:
        """Return the description of a run on these machines, or on the platform file. Raises InputError."""
        long_s = LONG_S if self.long is None else self.long
        if not 0.0 < long_s < math.inf:
            raise InputError("--long", f"{long_s:g} is not a number of seconds > 0", "give s, as in 3600")
        return super().spec(platform, workloads, long_s=long_s, **more)


TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="File with a secret of both sides of the socket.",
        show_default="none",
    ),
]


def token_of(path: Path | None) -> str | None:
    """Return the secret in a file; None without a file. Raises InputError if others may read it, or it is short."""
    if path is None:
        return None
    try:
        text, mode = path.read_text(encoding="utf-8").strip(), path.stat().st_mode
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read ({error})", "write a secret into it") from None
    if mode & 0o077 or len(text) < 16:
        problem = "may be read by others" if mode & 0o077 else "has fewer than 16 characters"
        raise InputError(path, problem, "make one with (umask 77; head -c 32 /dev/urandom | base64 > FILE)")
    return text


def patience_of(timeout_s: float) -> float | None:
    """Return the longest wait for another process in s; None: no limit. Raises InputError."""
    if not 0.0 <= timeout_s < math.inf:
        raise InputError("--timeout", f"{timeout_s:g} is not a number of seconds >= 0", "0 waits for ever")
    return timeout_s or None


def at_most(patience_s: float | None) -> str:
    """Return the longest wait for another process, in words."""
    return f"for {patience_s:g} s at most" if patience_s else "for ever (--timeout)"


def one_of(option: str, kind: str, text: str, names: Sequence[_Name]) -> _Name:
    """Return the one of the names that an option has as its value. Raises InputError."""
    for name in names:
        if name == text:
            return name
    raise UnknownNameError(option, kind, text, names, "Give one of these.")


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def refuse(options: Mapping[str, object], problem: str, hint: str = "leave it out") -> None:
    """Raise InputError for the first option with a value other than None and False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(argument(name), problem, hint)


def watts_of(watts: float | None) -> float:
    """Return the power in W of a cpu of jobs without one. Raises InputError."""
    from batwatt.protocol.job_fields import MOST_W

    power_w = 1.0 if watts is None else number_of("--watts", watts)
    if not power_w <= MOST_W:
        raise InputError("--watts", f"must be <= {MOST_W:g} W, got {power_w:g}", "correct it")
    return power_w


def number_of(option: str, value: object, *, above: bool = False) -> float:
    """Return the value of an option, a finite number >= 0 (or > 0). Raises InputError."""
    try:
        number = finite(value)
    except ValueError as error:
        raise InputError(option, str(error), "give a number") from None
    if not (number > 0.0 if above else number >= 0.0):
        raise InputError(option, f"must be {'>' if above else '>='} 0, got {number:g}", "correct it")
    return number


def price_of(text: str | None, carbon: Timeline) -> Timeline | None:
    """Return the price from 0 s of the carbon signal on. Raises InputError."""
    from batwatt.inputs.spec import parse_series
    from batwatt.model.signal import Clock

    clock = None if carbon.date_s is None else Clock(carbon.date_s)
    return None if text is None else parse_series("price", text).timeline(clock)
