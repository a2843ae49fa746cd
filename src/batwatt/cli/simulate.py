"""The command `run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from batwatt.cli.options import (
    ENGINE,
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
    patience_of,
)
from batwatt.cli.printing import below, counting_bar, shows_progress, tabular
from batwatt.cli.results import print_summary
from batwatt.errors import InputError, printable

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
            help="embedded (in process), wire (embedded in two processes) or batsim (a real one).",
            rich_help_panel=ENGINE,
        ),
    ] = "embedded",
    batsim: Annotated[
        str, typer.Option("--batsim", help="The real Batsim's executable.", rich_help_panel=ENGINE)
    ] = "batsim",
    batsim_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--batsim-arg",
            help="Switch of Batsim for the engine, as in --batsim-arg=--enable-compute-sharing, --sched-cfg=TEXT; of a "
            "real Batsim any option; repeatable.",
            rich_help_panel=ENGINE,
        ),
    ] = None,
    timeout: Timeout = 300.0,
    delays_to_flops: DelaysToFlops = None,
    ignore_communication: IgnoreCommunication = False,
    energy: Annotated[
        bool | None,
        typer.Option(
            "--energy/--no-energy",
            help="Account for energy.",
            show_default="if the platform has watts",
            rich_help_panel=ENGINE,
        ),
    ] = None,
) -> None:
    """Run one scheduler on one workload and write Batsim's files, the metrics and the power series under a prefix.

    [bold]Example:[/]
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

    with counting_bar("jobs") as bar:
        task = bar.add_task(printable(label), total=None)
        report: dict[str, Any] = {
            "progress": lambda now_s, ended: bar.update(task, completed=ended),
            "ready": lambda jobs: bar.update(task, total=jobs),
        }
        # without a terminal a run reports nothing
        result = run(spec, **(report if shows_progress() else {}))
    print_summary(label, result.values, {"prefix": str(spec.prefix)}, result.rejections, result.currency)
    below(f"files: {printable(spec.prefix)}_*.csv, _metrics.json, _metadata.json")
