"""Inputs at the command line: a scheduler's options, and the commands generate, convert and events."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.models import options_of
from batwatt.cli.shared import given_of
from batwatt.errors import InputError, printable
from batwatt.files import whole_file
from batwatt.inputs.platforms.machines import MachineSpec, SpeedMachineSpec, machines_xml
from batwatt.inputs.platforms.platform_gen import platform_xml_of
from batwatt.inputs.series.capacity import to_csv
from batwatt.inputs.series.capacity_walk import Walk, random_walk
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.traces.azure import azure_jobs
from batwatt.inputs.traces.borg import GCU_PER_CORE, borg_jobs
from batwatt.inputs.traces.chunked_csv import write_chunks
from batwatt.inputs.traces.convert import SUFFIXES, convert_file, read_trace
from batwatt.inputs.traces.jobs_csv import SECONDS
from batwatt.inputs.traces.riskaware_text import to_riskaware
from batwatt.inputs.traces.slices import DAY_S, slice_of
from batwatt.inputs.workloads.batsim_json import load_json, read_text
from batwatt.inputs.workloads.events import envelope_events
from batwatt.inputs.workloads.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.workloads.pmbs_synthetic import KINDS, Synthetic, synthetic
from batwatt.inputs.workloads.varcap_synthetic import SYSTEMS, TNG_LONG, VarcapLike, varcap_table

generate = typer.Typer(
    name="generate",
    no_args_is_help=True,
    help="""Make a platform, a workload, a job trace or a capacity.

    [bold]Example:[/] batwatt generate workload --seed 7 -o workload.json
    """,
    rich_markup_mode="rich",
)
TABLES = ("azure", "borg")
"""Formats of traces that become CSV traces."""
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


def write_output(text: str, output: Path | None) -> None:
    """Write a text to a file, whole or not at all, or to standard output."""
    if output is None:
        if sys.stdout.isatty():
            # a file takes it as it is, a terminal might obey it
            text = re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text)
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
    write_output(platform_xml_of(servers), output)


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
    write_output(to_text(google_like(params, seed)), output)


@generate.command("machines")
def generate_machines(
    machines: Annotated[int, typer.Option(help="Machine slots.")],
    cores: Annotated[int, typer.Option(help="Cores of a machine; each is a host.")],
    core_watts: Annotated[float, typer.Option(help="Power of a core that is on, busy or not, W.")] = MachineSpec.core_w,
    core_speed: Annotated[str, typer.Option(help="Speed of a core.")] = str(MachineSpec.core_flops),
    speeds: Annotated[
        bool, typer.Option("--speeds", help="Cores can be slower and faster, as the scheduler oversubscribed needs.")
    ] = False,
    output: Output = None,
) -> None:
    """Write a SimGrid platform of like machines, each core a host with the property machine.

    [bold]Example:[/] batwatt generate machines --machines 152 --cores 24 -o machines.xml
    """
    kind = SpeedMachineSpec if speeds else MachineSpec
    write_output(machines_xml(kind(machines, cores, core_w=core_watts, core_flops=core_speed)), output)


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
    end: Annotated[float, typer.Option(help="Time of the last step, s.")] = Walk.end_s,
    output: Output = None,
) -> None:
    """Write a capacity that walks at random: the number of machines alive over time, as CSV.

    [bold]Example:[/] batwatt generate walk --mean 24 --range 8 --seed 7 -o walk.csv
    """
    walk = Walk(mean=mean, range=range_, period_s=period, step=step, stay=stay, end_s=end)
    write_output(to_csv(random_walk(walk, seed)), output)


@generate.command("trace")
def generate_trace(
    seed: Seed = 0,
    like: Annotated[
        str | None,
        typer.Option(
            help=f"Like a trace of the varcap dissertation: {', '.join(SYSTEMS)}; written as CSV.", show_default="none"
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help=f"Else, how long jobs are: {', '.join(KINDS)}.", show_default=Synthetic.kind),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of jobs.", show_default=f"{Synthetic.jobs}, or that of --like")
    ] = None,
    end: Annotated[
        float | None, typer.Option(help="Time over which they are released, s.", show_default=f"{Synthetic.end_s:.0f}")
    ] = None,
    machines: Annotated[
        float | None,
        typer.Option(
            help="Machines that the jobs keep busy, or are for.", show_default=f"{Synthetic.machines:g}, or --like's"
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(help="Cores of such a machine.", show_default=str(Synthetic.cores))
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="With --like: days of releases.", show_default="what gives the load")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(help="With --like: load of 0.7 of the machines.", show_default="0.9 for tng, else the trace's"),
    ] = None,
    long_fraction: Annotated[
        float | None,
        typer.Option(help="With --like tng: share of the core-hours in long jobs.", show_default=str(TNG_LONG)),
    ] = None,
    long: Annotated[
        float | None, typer.Option(help="With --like: jobs of more s are long.", show_default=f"{VarcapLike.long_s:g}")
    ] = None,
    dependencies: Annotated[
        float | None, typer.Option(help="With --like: share of jobs that await another.", show_default="0")
    ] = None,
    cycle: Annotated[
        float | None,
        typer.Option(help="With --like: daily cycle of the releases, 0 to 1.", show_default=str(VarcapLike.cycle)),
    ] = None,
    output: Output = None,
) -> None:
    """Write a synthetic job trace: lines of id, release, length (s) and cores; with --like, CSV.

    [bold]Example:[/] batwatt generate trace --kind log-scale --seed 7 -o jobs.txt

    batwatt generate trace --like tng --jobs 30000 --machines 48 -o jobs.csv
    """
    classic = {"kind": kind, "end_s": end, "cores": cores}
    ours = {
        "days": days,
        "load": load,
        "long_fraction": long_fraction,
        "long_s": long,
        "dependencies": dependencies,
        "cycle": cycle,
    }
    shared = {"jobs": jobs, "machines": machines}
    for name, value in (classic if like is not None else ours).items():
        if value is not None:
            option = f"--{name.removesuffix('_s').replace('_', '-')}"
            raise InputError(option, f"is not for traces {'with' if like else 'without'} --like", "leave it out")
    if like is None:
        write_output(to_riskaware(synthetic(Synthetic(**given_of(classic | shared)), seed)), output)
        return
    if machines is not None and machines.is_integer():
        shared["machines"] = int(machines)
    table = varcap_table(VarcapLike(like, **given_of(ours | shared)), seed)
    write_output(table.to_csv(index=False, lineterminator="\n"), output)


@generate.command("slice")
def generate_slice(
    trace: Annotated[Path, typer.Argument(help="The jobs: SWF, CSV or lines `id release length cores`.")],
    begin: Annotated[float, typer.Option(help="Begin of the slice, s; jobs that run then are in it.")],
    end: Annotated[float, typer.Option(help="End of the slice, s.")],
    machines: Annotated[float, typer.Option(help="Prune to what so many machines can do.")] = math.inf,
    cores: Annotated[int, typer.Option(help="Cores of such a machine.", min=1)] = Synthetic.cores,
    shorter: Annotated[float, typer.Option(help="Keep the jobs shorter than this, s.")] = DAY_S,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Write a slice of a job trace, pruned at random: lines of id, release, length (s) and cores.

    [bold]Example:[/] batwatt generate slice borg.csv --begin 864000 --end 2073600 --machines 26 -o 14D_864000.txt
    """
    if not machines > 0.0:
        raise InputError("--machines", f"must be > 0, got {machines:g}", "leave it out to prune nothing")
    most = machines * cores * (end - begin)
    jobs = slice_of(read_trace(trace), begin, end, core_s=most, shorter_s=shorter, seed=seed, source=trace)
    write_output(to_riskaware(jobs), output)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """How a trace becomes a workload, as `convert_file` has it. Raises InputError."""

    unit: Annotated[str, typer.Option("--unit", help="Unit of a CSV's times: s (seconds) or h (hours).")] = "s"
    cores_per_server: Annotated[int, typer.Option(help="CPUs of a job that share a server.")] = 1
    walltime_factor: Annotated[
        float, typer.Option(help="Walltime / run time where the trace has no request (0: none).")
    ] = 2.0
    kind: Annotated[str, typer.Option("--profile", help="delay, or flops of a reference server.")] = "delay"
    reference_flops: Annotated[float | None, typer.Option(help="Speed of the reference server, flop/s.")] = None
    nb_res: Annotated[int | None, typer.Option(help="Servers of the platform.", show_default="the widest job")] = None

    def __post_init__(self) -> None:
        if self.kind not in ("delay", "flops"):
            raise InputError("--profile", f"{self.kind!r} is not a kind of profile", "use delay or flops")
        if self.unit not in SECONDS:
            raise InputError("--unit", f"{self.unit!r} is not a unit", "use s or h")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What is taken of a table of Azure or Borg."""

    collections: Annotated[
        Path | None, typer.Option(help="Of Borg: collection_events, for dependencies.", show_default="none")
    ] = None
    censored: Annotated[
        str, typer.Option(help="Of Azure and Borg: keep or drop jobs of which the trace shows a part.")
    ] = "keep"
    gcu_per_core: Annotated[float, typer.Option(help="Of Borg: normalised CPU that is a core.")] = GCU_PER_CORE


@options_of
def convert(
    *,
    jobs: Annotated[
        Path,
        typer.Argument(
            help="SWF (.swf), CSV with arrival_time,length,cpus, or lines `id release length cores` (.txt); also .gz; "
            "with --format, vmtable.csv of Azure or instance_events of Borg."
        ),
    ],
    output: Output = None,
    format: Annotated[
        str | None, typer.Option("--format", help="swf, csv, txt, azure or borg.", show_default="by suffix")
    ] = None,
    workload: ConvertOptions,
    table: TableOptions,
) -> None:
    """Turn a job trace into a Batsim workload; Azure's and Borg's into a CSV trace.

    [bold]Example:[/]
    batwatt convert jobs.csv --cores-per-server 4 --profile flops
      --reference-flops 18.4e9 -o workload.json
    """
    known = (*SUFFIXES.values(), *TABLES)
    if format is not None and format not in known:
        raise InputError("--format", f"{format!r} is not a format", f"use {', '.join(known[:-1])} or {known[-1]}")
    if format in TABLES:
        if workload != ConvertOptions():
            problem = f"{format} becomes a CSV trace, not a workload: it has no servers, walltimes, profiles or units"
            raise InputError("--format", problem, "convert that CSV in a second step")
        _convert_table(jobs, format, output, table)
        return
    if table != TableOptions():
        problem = "--collections, --censored and --gcu-per-core are for --format azure or borg"
        raise InputError("--format", problem, "leave them out")
    chosen: dict[str, Any] = vars(workload) | {"walltime_factor": workload.walltime_factor or None}
    done = convert_file(jobs, format=format, **chosen)  # type: ignore[arg-type]  # checked above
    write_output(to_text(done.workload), output)
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


def _convert_table(path: Path, format: str, output: Path | None, table: TableOptions) -> None:
    """Write a table of Azure or Borg as a CSV trace, and tell how many jobs it has."""
    if table.censored not in ("keep", "drop"):
        raise InputError("--censored", f"{table.censored!r} is not known", "use keep or drop")
    if format == "azure" and replace(table, censored="keep") != TableOptions():
        raise InputError("--format", "--collections and --gcu-per-core are for borg", "leave them out")
    notes: Counter[str] = Counter()
    shared: dict[str, Any] = {"censored": table.censored, "notes": notes}
    parts = (
        azure_jobs(path, **shared)
        if format == "azure"
        else borg_jobs(path, table.collections, gcu_per_core=table.gcu_per_core, **shared)
    )
    with nullcontext(sys.stdout) if output is None else whole_file(output) as out:
        count = write_chunks(parts, out)
    told = [f"{number} {what}" for what, number in notes.items() if number]
    print("; ".join([f"{count} jobs", *told]), file=sys.stderr)


def events(
    envelope: Annotated[Path, typer.Argument(help="CSV with columns time_s,power_w.")],
    output: Output = None,
) -> None:
    """Write an envelope as Batsim external events, for --events with --forward-unknown-events.

    [bold]Example:[/] batwatt events power_profiles/profile3.csv -o events.txt
    """
    write_output("".join(f"{line}\n" for line in envelope_events(read_series(envelope))), output)
