"""The commands `run` and `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from batwatt.cli.batsim import HostOptions, Switches
from batwatt.cli.comparison import SystemsOptions, compare_systems_of
from batwatt.cli.inputs import read_options
from batwatt.cli.options import (
    ENGINE,
    CarbonText,
    EnvelopeText,
    EventsFile,
    Jobs,
    MachineChoice,
    OptionalPlatform,
    OptionsJson,
    Plugins,
    Prefix,
    PriceText,
    SchedulerName,
    SchedulerOfSettings,
    Timeout,
    patience_of,
)
from batwatt.cli.printing import below, counting_bar, shows_progress, tabular
from batwatt.cli.results import print_summary
from batwatt.errors import InputError, printable

if TYPE_CHECKING:
    from batwatt.run.run import RunResult
    from batwatt.run.spec import RunSpec


@contextmanager
def _progress_bar(labels: Sequence[str], jobs: int) -> Iterator[Any]:
    """A bar per run on stderr. Yields `report(label) -> progress function`, None where stderr is not a terminal."""
    if not shows_progress():
        yield lambda label: None
        return
    with counting_bar("jobs") as bar:
        tasks = {label: bar.add_task(printable(label), total=jobs) for label in labels}

        def report(label: str) -> Any:
            return lambda now_s, ended: bar.update(tasks[label], completed=ended)

        yield report


@tabular
def run_command(
    *,
    workload: Jobs,
    platform: OptionalPlatform = None,
    scheduler: SchedulerName = "powercap",
    options: OptionsJson = "{}",
    plugin: Plugins = None,
    envelope: EnvelopeText = None,
    carbon: CarbonText = None,
    price: PriceText = None,
    export: Prefix = Path("out/run"),
    events: EventsFile = None,
    machines: MachineChoice,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="embedded (in process), wire (embedded in two processes) or batsim (a real one).",
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
    delays_to_flops: Annotated[
        bool | None,
        typer.Option(
            "--delays-to-flops/--no-delays-to-flops",
            help="Whether delays run as the work of their time at full speed, which slower hosts take longer for.",
            show_default="those of traces, if there are several speeds or an envelope",
        ),
    ] = None,
    switches: Switches,
) -> None:
    """Run one scheduler on one workload and write Batsim's files, the metrics and the power series under a prefix.

    [bold]Example:[/]
    batwatt run -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
      -o '{"response": "idfs"}' -e out/idfs
    batwatt run -w workloads/risk-small.txt --window 86400:259200
      --machines 152 --cores 8 --capacity power_profiles/walk-small.csv
      -s riskaware -o '{"strategy": "target-asap"}' -e out/risk
    batwatt run -w workloads/cloud/jobs.csv --length-unit hours
      --machines 15 --cores 16
      --capacity walk:range=0.6,step=0.15,period=3600,seed=1
      -s varcap -o '{"termination": "lww"}' -e out/x
    """
    from batwatt.inputs.series.signal_spec import parse_signal
    from batwatt.run.inputs import envelope_named
    from batwatt.run.spec import EngineName

    if engine not in (names := get_args(EngineName)):
        raise InputError("--engine", f"{engine!r} is not an engine", f"use {', '.join(names[:-1])} or {names[-1]}")
    spec = machines.spec(
        platform,
        workload,
        scheduler=scheduler,
        options=read_options(options),
        prefix=export,
        envelope=None if envelope is None else envelope_named(envelope),
        events=events,
        engine=engine,
        config=switches.config,
        batsim=batsim,
        batsim_args=tuple(batsim_arg or ()),
        patience_s=patience_of(timeout),
        hosts=switches.hosts.choice,
        plugins=tuple(plugin or ()),
        carbon=None if carbon is None else parse_signal("carbon", carbon),
        price=None if price is None else parse_signal("price", price),
        delays_to_flops=delays_to_flops,
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

    jobs = _jobs_of(specs[0][1]) if shows_progress() else 0
    results = []
    with _progress_bar([label for label, _ in specs], jobs) as report:
        for label, spec in specs:
            results.append((label, run(spec, report(label))))
    rows = [(label, result.metrics) for label, result in results]
    about = [{"prefix": str(result.prefix)} for _, result in results]
    print_summary(rows, about, [result.rejections for _, result in results], results[0][1].currency)
    for _, result in results:
        below(f"files: {printable(result.prefix)}_*.csv, _metrics.json, _metadata.json")
    return results


def _jobs_of(spec: RunSpec) -> int:
    """How many jobs will run, for the bar."""
    from batwatt.inputs.platforms.host_choice import platform_of
    from batwatt.inputs.workloads.batsim_files import read_workload
    from batwatt.run.inputs import cached_trace, is_trace

    if not is_trace(spec.workloads[0]):
        return sum(len(read_workload(path, simulate=False).jobs) for path in spec.workloads)
    # kept for the run
    platform = platform_of(spec.platform, spec.hosts)
    return len(cached_trace(spec.workloads[0], spec.window, len(platform), spec.length_unit, spec.log).jobs)


@tabular
def compare_command(
    *,
    workload: Jobs,
    envelope: EnvelopeText = None,
    platform: OptionalPlatform = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "-c", "--case", help="LABEL=OPTIONS (JSON), or LABEL=SCHEDULER OPTIONS: one run of it; repeatable."
        ),
    ] = None,
    scheduler: SchedulerOfSettings = None,
    plugin: Plugins = None,
    export: Prefix = Path("out/compare"),
    hosts: HostOptions,
    systems: SystemsOptions,
) -> None:
    """Run several settings of a scheduler side by side, or several systems: one table, measured alike.

    Of settings all files of each run are written, and a picture of power against the envelope. Of systems
    (--preset systems, or cases that name a scheduler) the page EXPORT.html, EXPORT_comparison.csv and EXPORT_jobs.csv.

    [bold]Example:[/]
    batwatt compare -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
      -c 'HFLD={"response": "hfld"}' -c 'no configuration={"response": "none"}'
    """
    from batwatt.inputs.platforms.host_choice import HostChoice
    from batwatt.inputs.series.series_csv import read_series
    from batwatt.results.plots import plot_power
    from batwatt.results.power import power_series
    from batwatt.results.writers import file_of
    from batwatt.run.find_scheduler import make_scheduler
    from batwatt.run.inputs import envelope_named
    from batwatt.run.spec import RunSpec

    case = case or []
    if systems.wanted(case):
        if hosts.choice != HostChoice():
            raise InputError("--mmax, --master-host", "are not for a comparison of systems", "leave them out")
        if scheduler is not None:
            hint = "leave it out, and give cases LABEL=SCHEDULER"
            raise InputError("--scheduler", "is not for a comparison of systems", hint)
        compare_systems_of(systems, platform, workload, envelope, case, export)
        return
    systems.refuse()
    if envelope is None:
        raise InputError("--envelope", "is missing", "give a file, or a text such as power:solar.csv,peak_w=50000")
    if platform is None:
        raise InputError("--platform", "is missing", "give a platform file with -p")
    if not case:
        raise InputError("--case", "is missing", "give one with -c, or --preset systems")
    scheduler = scheduler or "powercap"
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
            envelope_named(envelope),
            more_workloads=tuple(workload[1:]),
            hosts=hosts.choice,
            plugins=tuple(plugin or ()),
            log=systems.machines.log.options,
        )
        specs.append((label.strip(), spec))
    for _, spec in specs:
        # what is wrong with a later case is said before the first one runs
        make_scheduler(scheduler, spec.scheduler_options())
    results = _run_all(specs)
    written = file_of(results[0][1].prefix, "envelope")
    series = read_series(written if written.exists() else envelope)
    picture = file_of(export, "power", ".png")
    traces = [
        (label, power_series(result.prefix, end_s))
        for label, result in results
        if (end_s := result.metrics["makespan_s"])
    ]
    if traces:
        plot_power(traces, series, picture)
        below(f"picture: {printable(picture)}")
