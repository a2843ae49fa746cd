"""The command line: the door of the house."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt import __version__
from batwatt.cli.batsim import FirstHosts, HostOptions, Switches
from batwatt.cli.campaign import campaign
from batwatt.cli.capacity import characterise_capacity
from batwatt.cli.carbon import carbon
from batwatt.cli.checkpoint import checkpoint
from batwatt.cli.exits import Warnings, exit_code_of
from batwatt.cli.generate import generate
from batwatt.cli.inputs import convert, events, read_options
from batwatt.cli.models import options_of
from batwatt.cli.optimum import optimum
from batwatt.cli.options import (
    ENGINE,
    CapacityText,
    EnvelopeFile,
    EventsFile,
    Jobs,
    MachineChoice,
    OptionalPlatform,
    OptionsJson,
    PlatformFile,
    Plugins,
    Prefix,
    SchedulerName,
    Timeout,
    at_most,
    patience_of,
)
from batwatt.cli.results import gantt, metrics, policies, print_summary, report
from batwatt.cli.shared import counting_bar
from batwatt.errors import InputError, printable
from batwatt.files import living_file

if TYPE_CHECKING:
    from batwatt.inputs.platforms.host_choice import HostChoice
    from batwatt.model.series import Series
    from batwatt.run.run import RunResult
    from batwatt.run.spec import RunSpec

DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"
READY = "made by batwatt serve"
"""Last line of a file that says where to connect."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Schedule parallel jobs on machines whose power varies: a Batsim-compatible scheduler with its own engine.

    [bold]Example:[/]
    batwatt run -p platforms/small.xml -w workloads/small.json
      -o '{"response": "none"}' -e out/small
    """,
    epilog="Exit codes: 0 done, 1 the run failed, 2 bad input, 130 Ctrl-C, 143 SIGTERM. Every message is one line.",
)


def main(args: Sequence[str] | None = None) -> None:
    """Entry point: every error that is meant for the user becomes one line on stderr, and an exit code."""
    sys.exit(exit_code_of(lambda: app(args=args, prog_name="batwatt", standalone_mode=False)))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"batwatt {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Tell more (twice: everything).")
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = Warnings()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)


@contextmanager
def _progress_bar(labels: Sequence[str], jobs: int) -> Iterator[Any]:
    """A bar per run on stderr; silent where stderr is not a terminal. Yields `report(label) -> progress function`."""
    with counting_bar("jobs") as bar:
        tasks = {label: bar.add_task(printable(label), total=jobs) for label in labels}

        def report(label: str) -> Any:
            return lambda now_s, ended: bar.update(tasks[label], completed=ended)

        yield report


@app.command("run", rich_help_panel="Simulate")
@options_of
def run_command(
    *,
    workload: Jobs,
    platform: OptionalPlatform = None,
    scheduler: SchedulerName = "powercap",
    options: OptionsJson = "{}",
    plugin: Plugins = None,
    envelope: EnvelopeFile = None,
    export: Prefix = Path("out/run"),
    events: EventsFile = None,
    machines: MachineChoice,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="embedded (in process), wire (the same in two processes) or batsim (a real one).",
            rich_help_panel=ENGINE,
        ),
    ] = "embedded",
    batsim: Annotated[
        str, typer.Option("--batsim", help="The real Batsim's executable.", rich_help_panel=ENGINE)
    ] = "batsim",
    batsim_arg: Annotated[
        list[str] | None,
        typer.Option("--batsim-arg", help="Passed to the real Batsim; repeatable.", rich_help_panel=ENGINE),
    ] = None,
    timeout: Timeout = 300.0,
    switches: Switches,
) -> None:
    """Run one scheduler on one workload and write Batsim's files, the metrics and the power series under a prefix.

    [bold]Example:[/]
    batwatt run -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv -o '{"response": "idfs"}' -e out/idfs
    batwatt run -w workloads/risk-small.txt --window 86400:259200
      --machines 152 --cores 8 --capacity power_profiles/walk-small.csv
      -s riskaware -o '{"strategy": "target-asap"}' -e out/risk
    batwatt run -w jobs.csv --length-unit hours --machines 1000 --cores 24
      --capacity walk:range=0.6,mean=0.7,step=0.15,period=3600,seed=1
      -s varcap -o '{"termination": "lww"}' -e out/x
    """
    if engine not in ("embedded", "wire", "batsim"):
        raise InputError("--engine", f"{engine!r} is not an engine", "use embedded, wire or batsim")
    spec = machines.spec(
        platform,
        workload,
        scheduler=scheduler,
        options=read_options(options),
        prefix=export,
        envelope=envelope,
        events=events,
        engine=engine,
        config=switches.config,
        batsim=batsim,
        batsim_args=tuple(batsim_arg or ()),
        patience_s=patience_of(timeout),
        hosts=switches.hosts.choice,
        plugins=tuple(plugin or ()),
    )
    _run_all([(_label(spec), spec)])


def _label(spec: RunSpec) -> str:
    parts = [
        str(spec.options[kind])
        for kind in ("backfilling", "order", "response", "strategy", "mapping", "termination")
        if isinstance(spec.options.get(kind), str)
    ]
    return " ".join([Path(spec.scheduler).stem, *parts])


def _run_all(specs: Sequence[tuple[str, RunSpec]]) -> list[tuple[str, RunResult]]:
    """Run one after another with a bar each, then print the table."""
    from batwatt.run.run import run

    jobs = _jobs_of(specs[0][1]) if sys.stderr.isatty() else 0
    results = []
    with _progress_bar([label for label, _ in specs], jobs) as report:
        for label, spec in specs:
            results.append((label, run(spec, report(label))))
    print_summary([(label, result.metrics) for label, result in results])
    for _, result in results:
        print(f"files: {printable(result.prefix)}_*.csv, _metrics.json, _metadata.json")
    return results


def _jobs_of(spec: RunSpec) -> int:
    """How many jobs will run, for the bar."""
    from batwatt.inputs.platforms.host_choice import platform_of
    from batwatt.inputs.workloads.batsim_json import read_workload
    from batwatt.run.inputs import cached_trace, is_trace

    if not is_trace(spec.workload):
        return sum(len(read_workload(path, simulate=False).jobs) for path in spec.workloads)
    # kept for the run
    platform = platform_of(spec.platform, spec.hosts)
    return len(cached_trace(spec.workload, spec.window, len(platform), spec.length_unit).jobs)


@app.command("compare", rich_help_panel="Simulate")
@options_of
def compare_command(
    *,
    platform: PlatformFile,
    workload: Jobs,
    envelope: Annotated[Path, typer.Option("--envelope", help="Power envelope (CSV time_s,power_w).")],
    case: Annotated[
        list[str], typer.Option("-c", "--case", help="LABEL=OPTIONS (JSON): one run of the comparison; repeatable.")
    ],
    scheduler: SchedulerName = "powercap",
    plugin: Plugins = None,
    export: Prefix = Path("out/compare"),
    hosts: HostOptions,
) -> None:
    """Run several settings of a scheduler side by side: one table, and a picture of power against the envelope.

    [bold]Example:[/]
    batwatt compare -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
      -c 'HFLD={"response": "hfld"}' -c 'no configuration={"response": "none"}'
    """
    from batwatt.inputs.series.series_csv import read_series
    from batwatt.results.plots import plot_power
    from batwatt.results.power import power_series
    from batwatt.results.writers import file_of
    from batwatt.run.find_scheduler import make_scheduler
    from batwatt.run.spec import RunSpec

    specs: list[tuple[str, RunSpec]] = []
    for text in case:
        label, sign, options = text.partition("=")
        if not sign or not label.strip():
            raise InputError("--case", f"{text!r} is not LABEL=OPTIONS", 'write \'HFLD={"response": "hfld"}\'')
        name = "".join(c if c.isalnum() else "-" for c in label.strip().lower()).strip("-")
        prefix = export.with_name(f"{export.name}-{name}")
        if not name or any(spec.prefix == prefix for _, spec in specs):
            problem = f"{label.strip()!r} gives no file name of its own ({prefix}_*)"
            raise InputError("--case", problem, "choose another label")
        chosen = read_options(options, f"--case {label.strip()}")
        spec = RunSpec(
            platform,
            workload[0],
            scheduler,
            chosen,
            prefix,
            envelope,
            more_workloads=tuple(workload[1:]),
            hosts=hosts.choice,
            plugins=tuple(plugin or ()),
        )
        specs.append((label.strip(), spec))
    for _, spec in specs:
        # what is wrong with a later case is said before the first one runs
        make_scheduler(scheduler, spec.scheduler_options())
    results = _run_all(specs)
    series = read_series(envelope)
    picture = file_of(export, "power", ".png")
    traces = [
        (label, power_series(result.prefix, result.metrics.makespan_s))
        for label, result in results
        if result.metrics.makespan_s
    ]
    if traces:
        plot_power(traces, series, picture)
        print(f"picture: {printable(picture)}")


@app.command("serve", rich_help_panel="Real Batsim")
@options_of
def serve_command(
    *,
    scheduler: SchedulerName = "powercap",
    options: OptionsJson = "{}",
    plugin: Plugins = None,
    platform: Annotated[
        Path | None, typer.Option("-p", "--platform", help="The platform file that Batsim runs.")
    ] = None,
    envelope: EnvelopeFile = None,
    capacity: CapacityText = None,
    socket: Annotated[str, typer.Option("--socket", help="Where to listen for Batsim.")] = DEFAULT_ENDPOINT,
    ready_file: Annotated[
        Path | None, typer.Option("--ready-file", help="Made once Batsim can connect; must not be there.")
    ] = None,
    timeout: Timeout = 0.0,
    hosts: FirstHosts,
) -> None:
    """Listen as the decision process of a Batsim 4.x that you start yourself; ends with the simulation.

    [bold]Example:[/]
    batwatt serve -p platform.xml --envelope envelope.csv &
    batsim -p platform.xml -w workload.json -E -e out/x
    """
    from batwatt.engine.launch import listen
    from batwatt.inputs.platforms.host_choice import platform_of
    from batwatt.run.find_scheduler import blaming, make_scheduler

    chosen = read_options(options)
    if platform is not None:
        chosen.setdefault("platform", platform_of(platform, hosts.choice))
    if envelope is not None:
        chosen.setdefault("envelope", str(envelope))
    if capacity is not None:
        chosen.setdefault("capacity", _served_capacity(capacity, platform, hosts.choice))
    patience_s = patience_of(timeout)

    with nullcontext() if ready_file is None else living_file(ready_file, READY) as make:

        def ready(endpoint: str) -> None:
            print(
                f"listening on {endpoint}; waiting for Batsim to connect, {at_most(patience_s)}",
                file=sys.stderr,
                flush=True,
            )
            if make is not None:
                make(endpoint)

        made = make_scheduler(scheduler, chosen)
        with blaming(scheduler, made):
            listen(made, socket, patience_s, ready)


def _served_capacity(text: str, platform: Path | None, hosts: HostChoice) -> str | Series:
    """The capacity for a scheduler that does not know how long the workload is: a file, or what is made of a text."""
    from batwatt.inputs.platforms.host_choice import platform_of
    from batwatt.run.inputs import capacity_named, capacity_of, machines_of

    given = capacity_named(text)
    if isinstance(given, Path):
        return text
    if platform is None:
        raise InputError("--capacity", f"{text!r} is made for a number of machines", "give --platform, too, or a file")
    return capacity_of(given, len(machines_of(platform_of(platform, hosts))))


@app.command("engine", rich_help_panel="Real Batsim")
@options_of
def engine_command(
    *,
    platform: PlatformFile,
    workload: Jobs,
    socket: Annotated[
        str, typer.Option("-s", "--socket-endpoint", help="Where the scheduler listens.")
    ] = DEFAULT_ENDPOINT,
    export: Prefix = Path("out/engine"),
    events: EventsFile = None,
    timeout: Timeout = 0.0,
    switches: Switches,
) -> None:
    """Play Batsim on the wire for a scheduler in any language, without Batsim: the embedded engine behind a socket.

    [bold]Example:[/]
    batwatt serve -o '{"response": "none"}' &
    batwatt engine -p platforms/small.xml -w workloads/small.json -e out/x
    """
    from batwatt.run.run import run_engine
    from batwatt.run.spec import RunSpec

    spec = RunSpec(
        platform,
        workload[0],
        prefix=export,
        events=events,
        config=switches.config,
        patience_s=patience_of(timeout),
        more_workloads=tuple(workload[1:]),
        hosts=switches.hosts.choice,
    )
    waiting = f"asking the scheduler at {printable(socket)}; waiting for its answer {at_most(spec.patience_s)}"
    run_engine(spec, socket, lambda: print(waiting, file=sys.stderr, flush=True))


_COMMANDS: dict[str, dict[str, Callable[..., Any]]] = {
    "Make inputs": {"convert": convert, "events": events, "characterise": characterise_capacity},
    "Look up": {"policies": policies, "metrics": metrics, "gantt": gantt, "report": report},
    "Simulate": {"optimum": optimum},
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
for _group in (campaign, checkpoint, carbon):
    app.add_typer(_group, rich_help_panel="Simulate")
app.add_typer(generate, rich_help_panel="Make inputs")
