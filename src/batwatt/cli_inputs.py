"""Inputs at the command line: a scheduler's options, and the commands generate, convert and events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.inputs.batsim_json import load_json, read_text
from batwatt.inputs.capacity import to_csv
from batwatt.inputs.capacity_walk import Walk, random_walk
from batwatt.inputs.convert import convert_file
from batwatt.inputs.events import envelope_events
from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.machines import Machines, machines_xml
from batwatt.inputs.platform_gen import platform_xml_of
from batwatt.inputs.pmbs_synthetic import KINDS, Synthetic, synthetic
from batwatt.inputs.riskaware_text import to_riskaware
from batwatt.inputs.series_csv import read_series

generate = typer.Typer(
    no_args_is_help=True,
    help="""Make a platform, a workload, a job trace or a capacity.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workload.json
    """,
    rich_markup_mode="rich",
)
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Where to write it.", show_default="standard output")
]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same bytes.", min=0)]


def read_options(text: str, where: str = "--options") -> dict[str, Any]:
    """A JSON object from the command line, or from a file if it begins with @."""
    if text.startswith("@"):
        where = text[1:]
        text = read_text(where)
    try:
        options = load_json(text, where)
    except InputError as error:
        if where.startswith("-"):
            problem = str(error).removeprefix(f"{where}: ").rpartition(";")[0]
            hint = 'write an object such as \'{"response": "hfld"}\', or @FILE'
            raise InputError(where, f"{text[:60]!r} {problem}", hint) from None
        raise
    if not isinstance(options, dict):
        hint = 'write an object such as \'{"response": "hfld"}\''
        raise InputError(where, f"must be a JSON object, got {text.strip()[:60]!r}", hint)
    return options


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    with whole_file(output) as out:
        out.write(text)


@generate.command("platform")
def generate_platform(
    servers: Annotated[Path, typer.Argument(help="TOML file of server types; platforms/grid5000.toml is an example.")],
    output: Output = None,
) -> None:
    """Write a SimGrid platform for your own servers: speeds, watts, sleep states.

    [bold]Example:[/] batwatt generate platform platforms/grid5000.toml -o my.xml
    """
    _deliver(platform_xml_of(servers), output)


@generate.command("workload")
def generate_workload(
    seed: Seed = 0,
    jobs_per_hour: Annotated[int, typer.Option(help="Arrivals an hour.")] = GoogleLike.jobs_per_hour,
    hours: Annotated[int, typer.Option(help="Hours of arrivals.")] = GoogleLike.hours,
    mean_runtime: Annotated[
        float, typer.Option(help="Mean run time on the reference server, s.")
    ] = GoogleLike.mean_runtime_s,
    sigma: Annotated[float, typer.Option(help="Shape of the lognormal run times.")] = GoogleLike.sigma,
    max_servers: Annotated[int, typer.Option(help="Widest job.")] = GoogleLike.max_servers,
    servers: Annotated[int, typer.Option(help="Servers of the platform (nb_res).")] = GoogleLike.nb_res,
    output: Output = None,
) -> None:
    """Write a Google-like workload: by default 288 jobs, 12 arrivals an hour for a day.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workloads/google-288-07.json
    """
    params = GoogleLike(
        jobs_per_hour=jobs_per_hour,
        hours=hours,
        mean_runtime_s=mean_runtime,
        sigma=sigma,
        max_servers=max_servers,
        nb_res=servers,
    )
    _deliver(to_text(google_like(params, seed)), output)


@generate.command("machines")
def generate_machines(
    machines: Annotated[int, typer.Option(help="Machine slots.")],
    cores: Annotated[int, typer.Option(help="Cores of a machine; each is a host.")],
    core_watts: Annotated[float, typer.Option(help="Power of a core that is on, busy or not, W.")] = Machines.core_w,
    core_speed: Annotated[str, typer.Option(help="Speed of a core.")] = str(Machines.core_flops),
    output: Output = None,
) -> None:
    """Write a SimGrid platform of like machines, each core a host with the property machine.

    [bold]Example:[/] batwatt generate machines --machines 152 --cores 24 -o machines.xml
    """
    _deliver(machines_xml(Machines(machines, cores, core_w=core_watts, core_flops=core_speed)), output)


@generate.command("walk")
def generate_walk(
    seed: Seed = 0,
    mean: Annotated[int, typer.Option(help="Machines at 0 s, the middle of the range.")] = Walk.mean,
    range_: Annotated[int, typer.Option("--range", help="Machines between the middle and each bound.")] = Walk.range,
    period: Annotated[float, typer.Option(help="Time from one step to the next, s.")] = Walk.period_s,
    step: Annotated[
        int | None, typer.Option(help="Machines by which a step changes.", show_default="a quarter of the range")
    ] = None,
    stay: Annotated[bool, typer.Option(help="Whether the number may also stay as it is.")] = Walk.stay,
    end: Annotated[float, typer.Option(help="Date of the last step, s.")] = Walk.end_s,
    output: Output = None,
) -> None:
    """Write a capacity that walks at random: the number of machines alive over time, as CSV.

    [bold]Example:[/] batwatt generate walk --mean 24 --range 8 --seed 7 -o walk.csv
    """
    walk = Walk(mean=mean, range=range_, period_s=period, step=step, stay=stay, end_s=end)
    _deliver(to_csv(random_walk(walk, seed)), output)


@generate.command("trace")
def generate_trace(
    seed: Seed = 0,
    kind: Annotated[str, typer.Option(help=f"How long jobs are: {', '.join(KINDS)}.")] = Synthetic.kind,
    jobs: Annotated[int, typer.Option(help="Number of jobs.")] = Synthetic.jobs,
    end: Annotated[float, typer.Option(help="Time over which they are released, s.")] = Synthetic.end_s,
    machines: Annotated[float, typer.Option(help="Machines that the jobs keep busy.")] = Synthetic.machines,
    cores: Annotated[int, typer.Option(help="Cores of such a machine.")] = Synthetic.cores,
    output: Output = None,
) -> None:
    """Write a synthetic job trace as lines of id, release, length (s) and cores.

    [bold]Example:[/] batwatt generate trace --kind log-scale --seed 7 -o jobs.txt
    """
    params = Synthetic(kind=kind, jobs=jobs, end_s=end, machines=machines, cores=cores)  # type: ignore[arg-type]
    _deliver(to_riskaware(synthetic(params, seed)), output)


def convert(
    jobs: Annotated[
        Path,
        typer.Argument(
            help="SWF (.swf), CSV with arrival_time,length,cpus, or lines `id release length cores` (.txt); also .gz."
        ),
    ],
    output: Output = None,
    format: Annotated[str | None, typer.Option("--format", help="swf, csv or txt.", show_default="by suffix")] = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit of a CSV's times: s or h.")] = "s",
    cores_per_server: Annotated[int, typer.Option(help="CPUs of a job that share a server.")] = 1,
    walltime_factor: Annotated[
        float, typer.Option(help="Walltime / run time where the trace has no request (0: none).")
    ] = 2.0,
    kind: Annotated[str, typer.Option("--profile", help="delay, or flops of a reference server.")] = "delay",
    reference_flops: Annotated[float | None, typer.Option(help="Speed of the reference server, flop/s.")] = None,
    nb_res: Annotated[int | None, typer.Option(help="Servers of the platform.", show_default="the widest job")] = None,
) -> None:
    """Turn a job trace into a Batsim workload.

    [bold]Example:[/]
    batwatt convert jobs.csv --cores-per-server 4 --profile flops
      --reference-flops 18.4e9 -o workload.json
    """
    if kind not in ("delay", "flops"):
        raise InputError("--profile", f"{kind!r} is not a kind of profile", "use delay or flops")
    if unit not in ("s", "h"):
        raise InputError("--unit", f"{unit!r} is not a unit", "use s or h")
    if format not in (None, "swf", "csv", "txt"):
        raise InputError("--format", f"{format!r} is not a format", "use swf, csv or txt")
    done = convert_file(
        jobs,
        format=format,  # type: ignore[arg-type]
        unit=unit,  # type: ignore[arg-type]
        cores_per_server=cores_per_server,
        walltime_factor=walltime_factor or None,
        kind=kind,  # type: ignore[arg-type]
        reference_flops=reference_flops,
        nb_res=nb_res,
    )
    _deliver(to_text(done.workload), output)
    notes = [f"{done.kept} jobs"]
    for count, what in (
        (done.skipped_run_time, "skipped for want of a run time"),
        (done.skipped_cpus, "skipped for want of a width"),
        (done.cut_off, "ran at least as long as they asked for and will be cut off"),
        (done.too_wide, "wider than the platform and will be rejected"),
    ):
        if count:
            notes.append(f"{count} {what}")
    print("; ".join(notes), file=sys.stderr)


def events(
    envelope: Annotated[Path, typer.Argument(help="CSV with columns time_s,power_w.")],
    output: Output = None,
) -> None:
    """Write an envelope as Batsim external events, for --events with --forward-unknown-events.

    [bold]Example:[/] batwatt events power_profiles/profile3.csv -o events.txt
    """
    _deliver("".join(f"{line}\n" for line in envelope_events(read_series(envelope))), output)


def inputs_commands(app: typer.Typer) -> None:
    """Add `convert` and `events` to the application."""
    for command in (convert, events):
        app.command(rich_help_panel="Make inputs")(command)
