"""The commands that show: policies, metrics, gantt, report."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from batwatt.checks import finite
from batwatt.cli.batsim import HOSTS, Switches, batsim_options
from batwatt.cli.options import (
    CapacityText,
    CoreCount,
    EnvelopeFile,
    Jobs,
    LengthUnit,
    LongS,
    MachineCount,
    OptionalPlatform,
    Plugins,
    WindowText,
)
from batwatt.errors import InputError, UnknownNameError, printable
from batwatt.inputs.platforms.host_choice import platform_of
from batwatt.inputs.platforms.machines import MachineSpec
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.traces.jobs_csv import TimeUnit
from batwatt.model.workload import LONG_S
from batwatt.results.gantt import plot_gantt
from batwatt.results.goodput import Window
from batwatt.results.metrics import Metrics
from batwatt.results.summary import summary_table, summary_text
from batwatt.run.find_scheduler import describe_file, describe_options, describe_schedulers, is_file_name
from batwatt.run.inputs import capacity_named, load_inputs
from batwatt.run.run import write_results
from batwatt.run.spec import RunSpec
from batwatt.scheduling.registry import describe

UNITS: dict[str, TimeUnit] = {"seconds": "s", "s": "s", "hours": "h", "h": "h"}
"""What `--length-unit` may be."""
PLURALS = {"strategy": "strategies (riskaware)", "policy": "policies (carbon)", "termination": "terminations (varcap)"}
"""Headings of lists of parts."""


def print_summary(rows: Sequence[tuple[str, Metrics]]) -> None:
    """The table of runs (label, metrics), coloured where the output is a terminal."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(summary_table(rows))
    else:
        print(summary_text(rows))


def window_of(text: str | None) -> Window | None:
    """The window that `BEGIN:END` stands for."""
    if text is None:
        return None
    begin, _, end = text.partition(":")
    try:
        return Window(finite(begin), finite(end))
    except ValueError:
        raise InputError("--window", f"{text!r} is no window", "write BEGIN:END in s, as in 864000:1468800") from None


def platform_of_words(platform: Path | None, machines: int | None, cores: int | None) -> Path | MachineSpec:
    """The platform's file, or the machines to be made."""
    if (platform is None) == (machines is None):
        problem = "both are given" if platform is not None else "neither is given"
        raise InputError("--platform, --machines", problem, "give a platform file, or machines and their cores")
    if platform is not None and cores is not None:
        raise InputError("--cores", "is for machines that are made", "leave it out: the platform file has its hosts")
    return platform if platform is not None else MachineSpec(machines or 0, 1 if cores is None else cores)


def capacity_of_words(text: str | None) -> Path | CapacitySpec | None:
    """The file of a capacity, or how to make it."""
    return None if text is None else capacity_named(text)


def unit_of(text: str) -> TimeUnit:
    """The unit of a trace's times: `h` for hours, `s` for seconds."""
    if text not in UNITS:
        raise UnknownNameError("--length-unit", "unit of time", text, ("seconds", "hours"), "Give one of these.")
    return UNITS[text]


def long_of(seconds: float | None) -> float:
    """The length in s above which a job is long."""
    if seconds is None:
        return LONG_S
    if not 0.0 < seconds < math.inf:
        raise InputError("--long", f"{seconds:g} is not a number of seconds > 0", "give s, as in 3600")
    return seconds


def policies(
    scheduler: Annotated[
        str | None,
        typer.Argument(help="One of our schedulers: list its options instead; or a .py file: what it defines."),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List every scheduler and part, the options of a scheduler, or the parts of a file.

    [bold]Example:[/] batwatt policies riskaware
    """
    console = Console(highlight=False)
    width = console.width if console.is_terminal else sys.maxsize
    if scheduler is not None and is_file_name(scheduler):
        _print_sections(console, width, describe_file(Path(scheduler)))
        return
    if scheduler is not None:
        _print_sections(console, width, {"option": list(describe_options(scheduler))})
        return
    sections: dict[str, list[tuple[str, str]]] = {"scheduler": list(describe_schedulers())}
    for kind, name, aliases, line in describe():
        sections.setdefault(kind, []).append((name, f"{line} Also: {aliases}." if aliases else line))
    _print_sections(console, width, sections)
    console.print("choose with", style="bold")
    print("""  -s NAME -o '{"order": "fcfs", "placement": "easy", "response": "hfld"}'""")
    print("  -s easyBackfill (or another of pybatsim's), -s path/to/your.py")


def _print_sections(console: Console, width: int, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    longest = max(len(name) for rows in sections.values() for name, _ in rows)
    for kind, rows in sections.items():
        console.print(PLURALS.get(kind, f"{kind}s"), style="bold")
        for name, line in rows:
            margin = " " * (longest + 4)
            begin = f"  {name:<{longest}}  "
            print(textwrap.fill(printable(line), width, initial_indent=begin, subsequent_indent=margin))


@batsim_options(*HOSTS)
def metrics(
    switches: Switches,
    prefix: Annotated[Path, typer.Argument(help="Prefix of the files that a run left.")],
    workload: Jobs,
    platform: OptionalPlatform = None,
    envelope: EnvelopeFile = None,
    machines: MachineCount = None,
    cores: CoreCount = None,
    capacity: CapacityText = None,
    window: WindowText = None,
    length_unit: LengthUnit = "seconds",
    long: LongS = None,
    slowed: Annotated[
        bool,
        typer.Option(
            "--slowed",
            help="A run of oversubscribed: what its jobs were slowed down by is no work.",
            rich_help_panel="Machines",
        ),
    ] = False,
) -> None:
    """Work out the figures of files that a real Batsim wrote (a run of ours has them already), or with other classes.

    [bold]Example:[/]
    batwatt metrics out/x -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
    """
    spec = RunSpec(
        platform_of_words(platform, machines, cores),
        workload[0],
        # a real Batsim runs profiles that ours does not
        engine="batsim",
        capacity=capacity_of_words(capacity),
        window=window_of(window),
        length_unit=unit_of(length_unit),
        long_s=long_of(long),
        delays_to_flops=slowed,
        more_workloads=tuple(workload[1:]),
        hosts=switches.hosts,
    )
    found = write_results(prefix, load_inputs(spec, envelope))
    print_summary([(prefix.name, found)])


@batsim_options("master", "mmax")
def gantt(
    switches: Switches,
    prefix: Annotated[Path, typer.Argument(help="Prefix of the files that a run left, ours or a real Batsim's.")],
    platform: Annotated[Path, typer.Option("-p", "--platform", help="The platform of that run.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf.")],
    envelope: Annotated[Path | None, typer.Option("--envelope", help="The power envelope of that run.")] = None,
    title: Annotated[str, typer.Option("--title", help="What is written above it.", show_default="PREFIX")] = "",
) -> None:
    """Draw which server ran which job in which p-state, over the power drawn.

    [bold]Example:[/]
    batwatt gantt out/x -p platforms/grid5000.xml --envelope power_profiles/profile3.csv -o out/x.svg
    """
    series = read_series(envelope) if envelope is not None else None
    chosen = platform_of(platform, switches.hosts)
    print(printable(plot_gantt(prefix, chosen, series, output, title)))


def report(
    results: Annotated[Path, typer.Argument(help="Folder of a campaign's results: results/NAME.")],
) -> None:
    """Write tables, figures and one page about a campaign into results/NAME/report.

    [bold]Example:[/] batwatt report results/igsc22
    """
    # plotly takes as long to import as all the rest
    from batwatt.report.page import write_report

    page, *others = write_report(results)
    print(f"{printable(page)} and {len(others)} files next to it")


def results_commands(app: typer.Typer) -> None:
    """Add the commands of this module to the application."""
    for command in (policies, metrics, gantt, report):
        app.command(rich_help_panel="Look up")(command)
