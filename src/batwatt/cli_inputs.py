"""Inputs at the command line: a scheduler's options, and the commands generate, convert and events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.inputs.batsim_json import load_json, read_text
from batwatt.inputs.convert import convert_file
from batwatt.inputs.events import envelope_events
from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.platform_gen import platform_xml_of
from batwatt.inputs.series_csv import read_series

generate = typer.Typer(
    no_args_is_help=True,
    help="""Make a platform or a workload.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workload.json
    """,
    rich_markup_mode="rich",
)
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Where to write it.", show_default="standard output")
]


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
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same bytes.", min=0)] = 0,
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


def convert(
    jobs: Annotated[Path, typer.Argument(help="SWF (.swf, .swf.gz) or CSV with arrival_time,length,cpus.")],
    output: Output = None,
    format: Annotated[str | None, typer.Option("--format", help="swf or csv.", show_default="by suffix")] = None,
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
    if format not in (None, "swf", "csv"):
        raise InputError("--format", f"{format!r} is not a format", "use swf or csv")
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
