"""The options that several commands share, and those of `run`, as typer sees them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.traces.jobs_csv import TimeUnit
from batwatt.model.workload import LONG_S
from batwatt.run.find_scheduler import load_plugins

ENGINE = "Engine"
UNITS: dict[str, TimeUnit] = {"seconds": "s", "s": "s", "hours": "h", "h": "h"}
"""What `--length-unit` may be."""
PlatformFile = Annotated[Path, typer.Option("-p", "--platform", help="SimGrid platform file (XML 4.1).")]
Jobs = Annotated[
    list[Path],
    typer.Option(
        "-w",
        "--workload",
        help="Batsim workload (.json), repeatable: w0, w1, ...; or a trace: .swf, .csv, or lines "
        "`id release length cores` (.txt).",
    ),
]
OptionalPlatform = Annotated[
    Path | None, typer.Option("-p", "--platform", help="SimGrid platform file (XML 4.1); or --machines and --cores.")
]
MachineCount = Annotated[
    int | None, typer.Option("--machines", help="Make a platform of this many machines.", rich_help_panel="Machines")
]
CoreCount = Annotated[
    int | None,
    typer.Option("--cores", help="Cores of each, a host each.", show_default="1", rich_help_panel="Machines"),
]
CapacityText = Annotated[
    str | None,
    typer.Option(
        "--capacity",
        help="Machines alive: CSV with columns time_s,machines, or lines `count`, `time count`; or made, as in "
        "walk:range=0.6,mean=0.7,seed=1, uniform:..., constant:..., carbon:FILE,budget=..., price:FILE,... "
        "(docs/capacity.md).",
        rich_help_panel="Machines",
    ),
]
LengthUnit = Annotated[
    str,
    typer.Option("--length-unit", help="Times of a CSV trace are in seconds or hours.", rich_help_panel="Machines"),
]
LongS = Annotated[
    float | None,
    typer.Option(
        "--long",
        help="Jobs of more s are long, for the scheduler and the figures by class.",
        show_default=f"{LONG_S:g}",
        rich_help_panel="Machines",
    ),
]
WindowText = Annotated[
    str | None,
    typer.Option(
        "--window",
        help="BEGIN:END in s: run the jobs of this window of a trace, and measure there.",
        rich_help_panel="Machines",
    ),
]
EnvelopeFile = Annotated[
    Path | None,
    typer.Option(
        "--envelope", help="Power envelope: CSV with columns time_s,power_w; a value holds until the next row."
    ),
]
EventsFile = Annotated[Path | None, typer.Option("--events", help="Batsim external events, one JSON object per line.")]
SchedulerName = Annotated[
    str,
    typer.Option(
        "-s", "--scheduler", help="A name of `batwatt policies`, one of pybatsim's, or the path of a .py file."
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        callback=lambda given: load_plugins(given or ()),
        help="A .py file with parts of your own (docs/parts.md); repeatable.",
    ),
]
OptionsJson = Annotated[
    str,
    typer.Option(
        "-o", "--options", help='The scheduler\'s options: JSON, or @FILE. Example: \'{"response": "hfld"}\'.'
    ),
]
PREFIX_HELP = "Prefix of the output files (folders are made)."
Prefix = Annotated[Path, typer.Option("-e", "--export", help=PREFIX_HELP)]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        help="How long the other process may take to connect, and be silent, in s (0: for ever).",
        rich_help_panel=ENGINE,
    ),
]


def unit_of(text: str) -> TimeUnit:
    """The unit of a trace's times: `h` for hours, `s` for seconds."""
    if text not in UNITS:
        raise UnknownNameError("--length-unit", "unit of time", text, ("seconds", "hours"), "Give one of these.")
    return UNITS[text]


def patience_of(timeout_s: float) -> float | None:
    """How long somebody is waited for, in s; None for ever. Raises InputError."""
    if not 0.0 <= timeout_s < math.inf:
        raise InputError("--timeout", f"{timeout_s:g} is not a number of seconds >= 0", "0 waits for ever")
    return timeout_s or None


def at_most(patience_s: float | None) -> str:
    """How long somebody is waited for, in words."""
    return f"for {patience_s:g} s at most" if patience_s else "for ever (--timeout)"
