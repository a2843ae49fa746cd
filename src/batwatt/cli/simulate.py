"""The commands `run`, of one scheduler, and `benchmark`, of a policy on frozen cells."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from batwatt.cli.options import (
    CarbonText,
    DelaysToFlops,
    EnvelopeText,
    EventsFile,
    IgnoreCommunication,
    Jobs,
    OptionalPlatform,
    OptionTexts,
    Plugins,
    Prefix,
    PriceText,
    RunMachines,
    SchedulerName,
    Timeout,
    complete_scheduler,
    patience_of,
)
from batwatt.cli.printing import below, counting_bar, note, show_table, shows_progress, tabular
from batwatt.cli.results import print_summary
from batwatt.errors import InputError, printable
from batwatt.files import check_place

if TYPE_CHECKING:
    from batwatt.run.spec import RunSpec


@tabular
def run_command(
    *,
    workload: Jobs,
    platform: OptionalPlatform = None,
    scheduler: SchedulerName = "powercap",
    options: OptionTexts = None,
    plugin: Plugins = None,
    envelope: EnvelopeText = None,
    carbon: CarbonText = None,
    price: PriceText = None,
    export: Prefix = Path("out/run"),
    events: EventsFile = None,
    machines: RunMachines,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="embedded, wire (embedded, in two processes) or batsim (a real one).",
        ),
    ] = "embedded",
    batsim: Annotated[str, typer.Option("--batsim", help="Executable of the real Batsim.")] = "batsim",
    batsim_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--batsim-arg",
            metavar="SWITCH",
            help="Switch of Batsim for the engine, as in --batsim-arg=--enable-compute-sharing; of a real Batsim any "
            "option; repeatable.",
        ),
    ] = None,
    timeout: Timeout = 300.0,
    delays_to_flops: DelaysToFlops = None,
    ignore_communication: IgnoreCommunication = False,
    energy: Annotated[
        bool | None,
        typer.Option(
            "--energy/--no-energy",
            help="Compute energy.",
            show_default="if the platform has watts",
        ),
    ] = None,
) -> None:
    """Simulate one scheduler on your jobs.

    Prints the figures; writes jobs, machines and power over time (Batsim's files) and the figures under a prefix.
    Forms of jobs and series: docs/reference/workloads.md, signals.md. Options of a scheduler: `batwatt policies NAME`.

    Example:
    batwatt run -w workloads/site/jobs.sacct --machines 10 --cores 16
      --envelope constant:1047 -s powercap -o response=frugal -e out/frugal

    batwatt run -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
      -o response=idfs -e out/idfs

    batwatt run -w workloads/risk-small.txt --window 86400:259200
      --machines 152 --cores 8 --capacity power_profiles/walk-small.csv
      -s riskaware -o strategy=target-asap -e out/risk

    batwatt run -w workloads/cloud/jobs.csv,unit=h
      --machines 15 --cores 16
      --capacity walk:range=0.6,step=0.15,period=3600,seed=1
      -s varcap -o termination=lww -e out/x
    """
    from batwatt.batsim.batsim4 import BATSIM_FLAGS, EngineConfig
    from batwatt.run.arguments import options_from
    from batwatt.run.spec import EngineName

    if engine not in (names := get_args(EngineName)):
        raise InputError("--engine", f"{engine!r} is not an engine", f"use {', '.join(names[:-1])} or {names[-1]}")
    config, others = EngineConfig.of_args(batsim_arg or (), energy)
    if others and engine != "batsim":
        hint = f"use {', '.join(BATSIM_FLAGS)} or --sched-cfg=TEXT; or --engine batsim"
        raise InputError("--batsim-arg", f"{others[0]!r} is no switch of the embedded engine", hint)
    spec = machines.spec(
        platform,
        workload,
        scheduler=scheduler,
        options=options_from(options or (), "--option"),
        envelope=envelope,
        carbon=carbon,
        price=price,
        events=events,
        delays_to_flops=delays_to_flops,
        ignore_communication=ignore_communication,
        engine=engine,
        config=config,
        batsim=batsim,
        batsim_args=tuple(others),
        patience_s=patience_of(timeout),
        plugins=tuple(plugin or ()),
        prefix=export,
    )
    _carry_out(_label(spec), spec)


def _label(spec: RunSpec) -> str:
    parts = [
        str(spec.options[kind])
        for kind in ("backfilling", "order", "response", "strategy", "mapping", "termination")
        if isinstance(spec.options.get(kind), str)
    ]
    return " ".join([Path(spec.scheduler).stem, *parts])


def _carry_out(label: str, spec: RunSpec) -> None:
    """Run under a bar, and print the figures of the run."""
    from batwatt.run.run import run

    if shows_progress():
        with counting_bar("jobs") as bar:
            task = bar.add_task(printable(label), total=None)
            result = run(
                spec,
                progress=lambda now_s, ended: bar.update(task, completed=ended),
                ready=lambda jobs: bar.update(task, total=jobs),
            )
    else:
        # a bar that is not drawn takes as long to load as hundreds of jobs to run
        result = run(spec)
    print_summary(label, result.values, {"prefix": str(spec.prefix)}, result.rejections, result.currency)
    below(f"files: {printable(spec.prefix)}_*.csv, _metrics.json, _metadata.json")


# benchmark ------------------------------------------------------------------------------------------------------------


@tabular
def benchmark_command(
    *,
    policy: Annotated[
        Path | None, typer.Argument(help="File of a scheduler (.py); with -s, of parts of one.", metavar="FILE")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "-s", "--scheduler", metavar="NAME", help="Name of a scheduler.", autocompletion=complete_scheduler
        ),
    ] = None,
    options: OptionTexts = None,
    cells: Annotated[
        str,
        typer.Option("--cells", metavar="NAMES", help="Cells or logs, as in google/sun-50,site.", show_default="all"),
    ] = "",
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes.")] = 1,
    export: Prefix = Path("out/benchmark"),
    check: Annotated[Path | None, typer.Option("--check", help="Run this entry again: no figure may differ.")] = None,
) -> None:
    """Score a scheduler on the frozen cells of the benchmark.

    A cell is a log of jobs under an envelope; the score is relative to EASY without an envelope.
    Writes the entry PREFIX_NAME.json. Without FILE and -s the references run. Rules: docs/reference/benchmark.md.

    Example:
    batwatt benchmark my_policy.py --cells google/sun-50
    """
    from batwatt.api.benchmark import COUNTS, MEANS, Entry, cells_of, entry_of, references, run_entries
    from batwatt.results.figures import figures_of
    from batwatt.results.tables import TableColumn, columns_of, records_of
    from batwatt.run.arguments import options_from

    check_place(export, "--export")
    if check is not None and (scheduler or cells or options):
        raise InputError("--check", "runs the entry's own scheduler, options and cells", "leave out -s, -o and --cells")
    names = cells_of([name.strip() for name in cells.split(",") if name.strip()])
    old = None if check is None else Entry.read(check)
    settings = options_from(options or (), "--option")
    entries = [entry_of(policy, scheduler, settings, old)] if policy or scheduler or old else references()
    # without a thread of its own: processes are forked from this one
    with counting_bar("cells", alone=False) as bar:
        task = bar.add_task("benchmark", total=None)
        results = run_entries(
            entries, names if old is None else list(old.cells), jobs, partial(bar.update, task, refresh=True)
        )
    rows: list[dict[str, Any]] = []
    key = "cell" if len(results) == 1 else "entry"
    for result in results:
        records = records_of(result.records())
        rows += records if key == "cell" else [{"entry": result.label, **records[-1]}]
        if not result.ranked:
            share, cell = result.most_above
            problem = f"{share:.1%} of its energy in {cell} is above the limit"
            hint = "let it follow the limit, as with the option response"
            note(f"not ranked: {printable(result.label)}: {problem}; {hint}")
    figures = figures_of(("score", "score_se", *COUNTS, *MEANS))
    show_table([TableColumn(key, key, [row[key] for row in rows]), *columns_of(figures, rows)], rows)
    if old is not None:
        old.refuse_difference(results[0])
        note(f"{printable(check)}: reproduced")
        return
    paths = []
    for result in results:
        words = "".join(letter if letter.isalnum() else "-" for letter in result.label.lower())
        paths.append(export.with_name(f"{export.name}_{words}.json"))
        result.write(paths[-1])
    below(f"files: {', '.join(printable(path) for path in paths)}")
