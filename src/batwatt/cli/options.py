"""Options that several commands share, and those of `run`, for typer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.checks import finite
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.workload import LONG_S
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.inputs.batch_logs import LogOptions
    from batwatt.inputs.jobs import TimeUnit
    from batwatt.model.platform import MachineSpec
    from batwatt.model.signal import Window

ENGINE, MACHINES = "Engine", "Machines"
UNITS: dict[str, TimeUnit] = {"seconds": "s", "s": "s", "hours": "h", "h": "h"}
"""Values of `--length-unit`."""
_log = partial(typer.Option, rich_help_panel="Traces of jobs")
_machines = partial(typer.Option, rich_help_panel=MACHINES)


def input_option(field: str, *names: str, **more: Any) -> Any:
    """Return an option for a field of a run's inputs, with the help of the field."""
    return typer.Option(*(names or (f"--{field}",)), help=RunSpec.__dataclass_fields__[field].metadata["help"], **more)


PlatformFile = Annotated[Path, input_option("platform", "-p", "--platform")]
OptionalPlatform = Annotated[
    Path | None, typer.Option("-p", "--platform", help="SimGrid platform file (XML 4.1); or --machines and --cores.")
]
Jobs = Annotated[list[Path], input_option("workloads", "-w", "--workload")]
CapacityText = Annotated[str | None, input_option("capacity", rich_help_panel=MACHINES)]
EnvelopeFile = Annotated[
    Path | None,
    typer.Option(
        "--envelope", help="Power envelope: CSV with columns time_s,power_w; a value holds until the next row."
    ),
]
EnvelopeText = Annotated[str | None, input_option("envelope")]
CarbonText = Annotated[str | None, input_option("carbon")]
PriceText = Annotated[str | None, input_option("price")]
EventsFile = Annotated[Path | None, input_option("events")]


def complete_scheduler(incomplete: str) -> list[str]:
    """Return the schedulers that begin with the text, of ours and pybatsim's, else folders and .py files."""
    from batwatt.run.find_scheduler import scheduler_names

    names = [name for name in scheduler_names() if name.startswith(incomplete)]
    if names or set(incomplete) & set("*?["):
        return names
    paths = Path().glob(f"{incomplete}*") if incomplete and not incomplete.startswith(("/", "~")) else ()
    return sorted(f"{path}/" if path.is_dir() else str(path) for path in paths if path.is_dir() or path.suffix == ".py")


_SCHEDULER_HELP = "A name of `batwatt policies`, one of pybatsim's, or the path of a .py file or a folder."
SchedulerName = Annotated[
    str, typer.Option("-s", "--scheduler", help=_SCHEDULER_HELP, autocompletion=complete_scheduler)
]


def _load(paths: list[Path] | None) -> None:
    from batwatt.run.find_scheduler import load_plugins

    load_plugins(paths or ())


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        callback=_load,
        help="A .py file with parts of your own (docs/howto/parts.md); repeatable.",
    ),
]
OptionTexts = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--option",
        metavar="KEY=VALUE",
        help="Option of the scheduler; repeatable; or all as a JSON object, or @FILE with one.",
    ),
]
PREFIX_HELP = "Prefix of the output files (folders are made)."
Prefix = Annotated[Path, typer.Option("-e", "--export", help=PREFIX_HELP)]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        help="Longest time for the other process to connect, and longest silence, in s (0: no limit).",
        rich_help_panel=ENGINE,
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


@dataclass(frozen=True, kw_only=True)
class LogChoice:
    """Options of the readers of traces of jobs, and the time of 0 s."""

    fields: Annotated[
        str | None,
        _log("--fields", help="Fields of sacct without a header: JobID,User,..., or @FILE.", show_default="line 1"),
    ] = None
    width: Annotated[str, _log("--width", help="Hosts of jobs of sacct, tables, PBS: cpus or nodes.")] = "cpus"
    tz: Annotated[str, _log("--tz", help="Time zone of dates without an offset.")] = "UTC"
    begin: Annotated[
        str | None,
        _log("--begin", help="Date of 0 s, or s of the times of the trace.", show_default="the first submission"),
    ] = None

    @property
    def options(self) -> LogOptions:
        """Options for the readers. Raises InputError."""
        from batwatt.files import read_text
        from batwatt.inputs.batch_logs import LogOptions

        text = self.fields or ""
        if text.startswith("@"):
            text = next(iter(read_text(text[1:]).splitlines()), "")
        if self.fields is not None and not text.strip():
            raise InputError("--fields", f"{self.fields!r} names no fields", "write JobID,User,... or @FILE")
        names = text.replace("|", ",").strip(",")
        return LogOptions(self.width, names.split(",") if names else (), self.tz, self.begin)  # type: ignore[arg-type]  # it checks them


@dataclass(frozen=True, kw_only=True)
class MachineChoice:
    """Machines in place of a platform file, their capacity over time, and the window of a trace."""

    machines: Annotated[int | None, _machines("--machines", help="Make a platform of this many machines.")] = None
    cores: Annotated[int | None, _machines("--cores", help="Cores of a machine, each a host.", show_default="1")] = None
    capacity: CapacityText = None
    window: Annotated[str | None, input_option("window", rich_help_panel=MACHINES)] = None
    length_unit: Annotated[str, input_option("length_unit", "--length-unit", rich_help_panel=MACHINES)] = "seconds"
    log: LogChoice = LogChoice()

    def spec(self, platform: Path | None, workloads: Sequence[Path], **more: Any) -> RunSpec:
        """Return the description of a run on these machines, or on the platform file. Raises InputError."""
        capacity: Any = self.capacity
        return RunSpec(
            platform=self._platform(platform),
            workloads=tuple(workloads),
            capacity=capacity,
            window=self._window(),
            length_unit=parse_unit(self.length_unit),
            log=self.log.options,
            **more,
        )

    def _platform(self, platform: Path | None) -> Path | MachineSpec:
        """Return the platform file, or the machines of a synthetic platform. Raises InputError."""
        from batwatt.model.platform import MachineSpec

        if (platform is None) == (self.machines is None):
            problem = "both are given" if platform is not None else "neither is given"
            raise InputError("--platform, --machines", problem, "give a platform file, or machines and their cores")
        if platform is None:
            return MachineSpec(self.machines or 0, 1 if self.cores is None else self.cores)
        if self.cores is not None:
            raise InputError("--cores", "is for --machines", "leave it out: the platform file has its hosts")
        return platform

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

    long: Annotated[
        float | None, input_option("long_s", "--long", show_default=f"{LONG_S:g}", rich_help_panel=MACHINES)
    ] = None

    def spec(self, platform: Path | None, workloads: Sequence[Path], **more: Any) -> RunSpec:
        """Return the description of a run on these machines, or on the platform file. Raises InputError."""
        long_s = LONG_S if self.long is None else self.long
        if not 0.0 < long_s < math.inf:
            raise InputError("--long", f"{long_s:g} is not a number of seconds > 0", "give s, as in 3600")
        return super().spec(platform, workloads, long_s=long_s, **more)


def parse_unit(text: str) -> TimeUnit:
    """Return the unit of a trace's times: `h` for hours, `s` for seconds. Raises InputError."""
    if text not in UNITS:
        raise UnknownNameError("--length-unit", "unit of time", text, ("seconds", "hours"), "Give one of these.")
    return UNITS[text]


def patience_of(timeout_s: float) -> float | None:
    """Return the longest wait for another process in s; None: no limit. Raises InputError."""
    if not 0.0 <= timeout_s < math.inf:
        raise InputError("--timeout", f"{timeout_s:g} is not a number of seconds >= 0", "0 waits for ever")
    return timeout_s or None


def at_most(patience_s: float | None) -> str:
    """Return the longest wait for another process, in words."""
    return f"for {patience_s:g} s at most" if patience_s else "for ever (--timeout)"
