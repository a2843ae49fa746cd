"""Inputs at the command line: a folder to begin with, and files converted, generated and characterised."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import LOG_KEYS, WATTS_HELP, Begin, JobFiles, one_of, refuse, watts_of, without_none
from batwatt.cli.printing import Output, note, show_table, tabular, tell, write_output
from batwatt.errors import InputError, printable
from batwatt.files import is_file, whole_file, write_json
from batwatt.model.platform import MachineSpec
from batwatt.units import DAY_S

if TYPE_CHECKING:
    from batwatt.inputs.character import Bill, Character
    from batwatt.inputs.jobs import TimeUnit
    from batwatt.model.timeline import Timeline

TABLES = ("azure", "borg")
"""Formats of traces that become CSV traces."""
TARGETS = ("batsim4", "batsim5", "events")
"""Values of `convert --to`."""
_end = partial(typer.Option, "--end", min=1.0)
END_S = 30 * DAY_S
"""Default length in s of a series without an end of its own."""
KEYS = ("name", "value")
"""Columns of the character of a series."""


def init(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder, or an empty one.")]) -> None:
    """Write a folder of examples to begin with.

    Platforms, workloads, series, a study, a scheduler of your own, and a README with commands.

    Example: batwatt init first
    """
    from batwatt.cli.start import SOURCES, write_start
    from batwatt.files import PART, whole_set

    try:
        # a killed process leaves its hidden folder
        others = [path for path in folder.iterdir() if not path.name.startswith(PART)]
    except OSError:
        others = []  # missing or not readable, which `whole_set` reports
    if others:
        raise InputError(folder, f"is not empty: {others[0].name} is there", "give a new or an empty folder")
    with whole_set(folder, last=["README.md"], place=folder) as part:
        write_start(part)
    tell(f"{len(SOURCES)} files in {printable(folder)}; {printable(folder / 'README.md')} has commands to begin with")


# convert --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of `convert_file`, which turns a trace into a workload. Raises InputError."""

    cores_per_server: Annotated[int, typer.Option(help="Cores of a job that share a host.")] = 1
    walltime_factor: Annotated[float, typer.Option(help="Walltime / length of jobs without a walltime (0: none).")] = (
        2.0
    )
    reference_flops: Annotated[
        float | None, typer.Option(help="Turn lengths into work at this speed, flop/s.", show_default="delays")
    ] = None
    nb_res: Annotated[int | None, typer.Option(help="Hosts of the platform.", show_default="the widest job")] = None


@options_of
def convert(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Jobs: .swf, .sacct, .csv, .parquet, .pbs or .txt, also .gz, with keys as for -w of `run`; with "
            "--format, tables of Azure or Borg. Of Batsim: jobs (.json) or events (JSON lines). With --to events: an "
            "envelope (.csv).",
        ),
    ],
    output: Output = None,
    to: Annotated[
        str, typer.Option("--to", help="Reader of the file: batsim4 or batsim5; or events.", metavar="TARGET")
    ] = "batsim4",
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="swf, csv, txt, sacct, table, pbs, azure or borg.",
            show_default="by suffix",
        ),
    ] = None,
    workload: ConvertOptions,
    begin: Begin = None,
    collections: Annotated[
        Path | None, typer.Option(help="Of Borg: collection_events, for dependencies of jobs.", show_default="none")
    ] = None,
    platform: Annotated[
        Path | None,
        typer.Option(
            "-p", "--platform", help="Write a platform, too, on which each phase of the jobs draws its power."
        ),
    ] = None,
    machines: Annotated[
        int | None, typer.Option("--machines", help="Machines of that platform, one for each core of a job.", min=1)
    ] = None,
    watts: Annotated[float | None, typer.Option("--watts", metavar="W", help=WATTS_HELP, show_default="1")] = None,
) -> None:
    """Convert jobs, events or an envelope to a format of Batsim.

    Jobs become a workload, files of Batsim 4 those of Batsim 5 and back, an envelope external events. Tables of Azure
    and Borg become a CSV workload; jobs in phases (columns name, args) with -p a workload and a platform.

    Example:
    batwatt convert workloads/cloud/jobs.csv,unit=h -o workload.json
      --cores-per-server 4 --reference-flops 18.4e9
    batwatt convert workload.json --to batsim5 -o workload5.json
    batwatt convert power_profiles/small.csv --to events -o events.txt
    batwatt convert events.txt --to batsim5 -o events5.txt
    batwatt convert workloads/carbon/jobs.csv --watts 60 --machines 20
      -p platform.xml -o workload.json
    """
    from batwatt.inputs.convert import SUFFIXES, convert_file
    from batwatt.inputs.google_like import to_text
    from batwatt.protocol.conversion import to_batsim5

    one_of("--to", "target", to, TARGETS)
    read = JobFiles.of([source], begin, "INPUT", LOG_KEYS if platform is None else ("unit",))
    [path] = read.paths
    plain = workload == ConvertOptions() and (path == source or platform is not None) and begin is None
    if platform is not None:
        if not plain or to != "batsim4" or format is not None or collections is not None:
            problem = "jobs in phases become a workload of Batsim 4 and its platform"
            raise InputError("--platform", problem, "leave options but --machines, --watts and -o out")
        _convert_phases(path, read.unit, watts_of(watts), machines, platform, output)
        return
    refuse({"machines": machines, "watts": watts}, "is for jobs in phases", "give --platform, too, or leave it out")
    if to == "events" or (format is None and _is_of_batsim(path)):
        if not plain or format is not None or collections is not None:
            problem = "a workload, events and an envelope become another file as they are"
            raise InputError("--to", problem, "leave the other options out")
        write_output(_batsim_text(path, to), output)
        return
    formats = (*SUFFIXES.values(), *TABLES)
    if format is not None and format not in formats:
        raise InputError("--format", f"{format!r} is not a format", f"use {', '.join(formats[:-1])} or {formats[-1]}")
    if collections is not None and format != "borg":
        raise InputError("--collections", "is for --format borg", "leave it out")
    if format in TABLES:
        if not plain or to != "batsim4":
            problem = f"{format} becomes a CSV trace, not a workload: it has no servers, walltimes, profiles or units"
            raise InputError("--format", problem, "convert that CSV in a second step")
        _convert_table(path, format, output, collections)
        return
    options: dict[str, Any] = vars(workload) | {
        "walltime_factor": workload.walltime_factor or None,
        "unit": read.unit,
    }
    conversion = convert_file(path, format=format, log=read.log, **options)  # type: ignore[arg-type]  # checked above
    write_output(to_text(conversion.workload if to == "batsim4" else to_batsim5(conversion.workload, path)), output)
    notes = [f"{conversion.kept} jobs"]
    for count, what in (
        (conversion.skipped_run_time, "skipped: without a run time"),
        (conversion.skipped_cpus, "skipped: without a width"),
        (conversion.outrun, "ran at least their requested time: estimate_s has it, and their walltime is longer"),
        (conversion.too_wide, "wider than the platform and will be rejected"),
    ):
        if count:
            notes.append(f"{count} {what}")
    note("; ".join(notes))


def _is_of_batsim(path: Path) -> bool:
    """Return whether a file is of Batsim: a workload by its suffix, events by their first character."""
    if path.suffix == ".json" or not is_file(path):
        return path.suffix == ".json"
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False  # not readable, which the reader of jobs reports


def _batsim_text(path: Path, to: str) -> str:
    """Return an envelope as events, or a workload or events of one Batsim as those of the other. Raises InputError."""
    from batwatt.files import read_text
    from batwatt.inputs.batsim_files import converted_file
    from batwatt.inputs.google_like import to_text
    from batwatt.inputs.signal import read_series
    from batwatt.protocol.events import batsim4_events, batsim5_events, envelope_events, parse_events

    if to == "events":
        if _is_of_batsim(path):
            raise InputError(path, "is a file of Batsim, no envelope", "give a CSV file with time_s,power_w")
        lines = envelope_events(read_series(path))
    elif path.suffix == ".json":
        return to_text(converted_file(path, to))
    else:
        lines = (batsim5_events if to == "batsim5" else batsim4_events)(parse_events(read_text(path), path))
    return "".join(f"{line}\n" for line in lines)


def _convert_phases(
    path: Path, unit: TimeUnit, watts: float, machines: int | None, platform: Path, output: Path | None
) -> None:
    """Write a workload of jobs in phases and its platform, and print the number of jobs. Raises InputError."""
    from batwatt.inputs.batsim_files import phase_workload, read_phase_jobs
    from batwatt.inputs.servers import machines_xml

    if machines is None or output is None:
        raise InputError("--platform", "is for the workload in --output on --machines", "give both, too")
    jobs = read_phase_jobs(path, unit, watts)
    spec, content = phase_workload(jobs, machines)
    with whole_file(platform) as out:
        out.write(machines_xml(spec, "batwatt convert"))
        # if this fails, the platform does not appear either
        write_json(output, content)
    note(f"{len(jobs)} jobs; {machines} machines of {spec.cores} hosts of {spec.core_w:g} W")


def _convert_table(path: Path, format: str, output: Path | None, collections: Path | None) -> None:
    """Write a table of Azure or Borg as a CSV trace, and print its number of jobs."""
    from batwatt.inputs.cloud import azure_jobs, borg_jobs, write_chunks

    notes: Counter[str] = Counter()
    parts = azure_jobs(path, notes) if format == "azure" else borg_jobs(path, collections, notes)
    with nullcontext(sys.stdout) if output is None else whole_file(output) as out:
        count = write_chunks(parts, out)
    remarks = [f"{number} {what}" for what, number in notes.items() if number]
    note("; ".join([f"{count} jobs", *remarks]))


# generate -------------------------------------------------------------------------------------------------------------

generate = typer.Typer(
    name="generate",
    no_args_is_help=True,
    help="""Generate a platform, jobs, an envelope or a capacity.

    Example: batwatt generate jobs google seed=7 -o workload.json
    """,
    rich_markup_mode=None,
)


@generate.command("platform")
def generate_platform(
    servers: Annotated[
        Path | None,
        typer.Argument(help="Types of machines (TOML), as in platforms/grid5000.toml.", metavar="FILE.toml"),
    ] = None,
    machines: Annotated[
        int | None, typer.Option("--machines", help="In place of a file: number of equal machines.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option("--cores", help="Cores of a machine; each is a host.", show_default="1")
    ] = None,
    core_watts: Annotated[
        float | None,
        typer.Option(
            "--core-watts",
            metavar="W",
            help="Power of a core that is on, busy or idle, W.",
            show_default=f"{MachineSpec.core_w:g}",
        ),
    ] = None,
    core_speed: Annotated[
        str | None,
        typer.Option(
            "--core-speed", metavar="SPEED", help="Speed of a core.", show_default=str(MachineSpec.core_flops)
        ),
    ] = None,
    speeds: Annotated[
        bool, typer.Option("--speeds", help="Add slower and faster p-states, for the scheduler oversubscribed.")
    ] = False,
    output: Output = None,
) -> None:
    """Generate a platform of SimGrid.

    Of your own types of machines (speeds, watts, sleep states), or of equal machines.

    Example:
    batwatt generate platform platforms/grid5000.toml -o my.xml
    batwatt generate platform --machines 152 --cores 24 -o machines.xml
    """
    from batwatt.inputs.servers import machines_xml, read_platform_xml
    from batwatt.model.platform import SpeedMachineSpec

    if (servers is None) == (machines is None):
        problem = "neither is given" if machines is None else "both are given"
        raise InputError("FILE.toml, --machines", problem, "give a file of types, or machines and cores")
    cores_of = {"cores": cores, "core_watts": core_watts, "core_speed": core_speed, "speeds": speeds}
    if servers is not None:
        refuse(cores_of, "is for --machines", "leave it out: the file has its servers")
        write_output(read_platform_xml(servers), output)
        return
    more = without_none({"core_w": core_watts, "core_flops": core_speed})
    spec = (SpeedMachineSpec if speeds else MachineSpec)(machines or 0, 1 if cores is None else cores, **more)
    write_output(machines_xml(spec), output)


@generate.command("jobs")
def generate_jobs(
    kind: Annotated[str, typer.Argument(help="google: a day of a cluster as that of Google.", metavar="KIND")],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            help="seed (same seed, same bytes), jobs_per_hour, hours, mean_runtime_s, sigma, max_servers, nb_res.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Generate a workload.

    Of google 288 jobs by default: 12 submissions an hour for a day.

    Example:
    batwatt generate jobs google seed=7 -o workloads/google-288-07.json
    batwatt generate jobs google hours=2 max_servers=4 sigma=0.5
    """
    from dataclasses import fields

    from batwatt.inputs.google_like import GoogleLike, google_like, to_text
    from batwatt.inputs.source import check_keys, values_of
    from batwatt.run.arguments import value_of

    one_of("KIND", "kind of jobs", kind, ("google",))
    texts = values_of(values or (), kind)
    check_keys(texts, ["seed", *(field.name for field in fields(GoogleLike))], kind, "Correct it.")
    keys = {key: value_of(text) for key, text in texts.items()}
    seed = keys.pop("seed", 0)
    write_output(to_text(google_like(GoogleLike(**keys), seed)), output)


@generate.command("series")
def generate_series(
    terms: Annotated[
        list[str],
        typer.Argument(
            help="Terms of a sum: power:FILE, constant:W, carbon:FILE, walk:, ...; battery:", metavar="TERM"
        ),
    ],
    machines: Annotated[
        int | None,
        typer.Option("--machines", help="Write a capacity for this number of machines.", min=1),
    ] = None,
    full_w: Annotated[
        float | None,
        typer.Option("--full-w", metavar="W", help="Write an envelope; fraction 1 is this power, W.", min=0.0),
    ] = None,
    end: Annotated[
        float | None,
        _end(
            metavar="S",
            help="End of an envelope, or of a capacity without an end, s.",
            show_default="the longest file, or 30 days",
        ),
    ] = None,
    charge: Annotated[
        Path | None, typer.Option("--state-of-charge", help="Write the state of charge of the battery, too (CSV).")
    ] = None,
    output: Output = None,
) -> None:
    """Generate an envelope or a capacity from a text (CSV).

    Files of power and constants add up to an envelope in W, with a battery behind them. Fractions (walk:, carbon:, ...)
    become machines with --machines, or W with --full-w.

    Example:
    batwatt generate series "power:power_profiles/small.csv + constant:200"
      -o envelope.csv
    batwatt generate series walk:range=0.6,seed=1 --machines 1000 -o walk.csv
    """
    from batwatt.inputs.signal import to_csv
    from batwatt.inputs.spec import parse_series, quantity_in

    text = " + ".join(terms)
    if machines is not None and full_w is not None:
        problem = "a series is a capacity in machines or an envelope in W"
        raise InputError("--machines, --full-w", problem, "give one of them")
    quantity = quantity_in(text)
    if machines is not None or full_w is not None:
        quantity = "machines" if full_w is None else "power"
    elif quantity == "any":
        rows = parse_series("any", text).timeline()
        quantity = "power" if rows.unit == "W" else "machines" if rows.name == "machines" else "fraction"
    spec = parse_series(quantity, text)
    if charge is not None and spec.battery is None:
        raise InputError("--state-of-charge", "there is no battery", "add for instance battery:capacity_kwh=40")
    if quantity != "power":
        end_s = end or END_S
        series = spec.timeline(None, end_s, machines)
        write_output(to_csv(series.upto(end_s) if series.repeats else series), output)
        return
    end_s = end or spec.length_s(full_w) or END_S
    write_output(to_csv(spec.timeline(None, end_s, full_w).upto(end_s)), output)
    if charge is not None:
        write_output(to_csv(spec.dispatch(None, end_s, full_w).state_of_charge(text)), charge)


# characterise ---------------------------------------------------------------------------------------------------------


@tabular
def characterise_series(
    series: Annotated[
        str,
        typer.Argument(
            metavar="SERIES",
            help="As --capacity or --envelope of `run`: a file with its keys, constant:, walk:, power:, carbon:, ...",
        ),
    ],
    fixed: Annotated[float, typer.Option(help="Constant fraction with which costs are compared.", min=0.0)] = 0.7,
    end: Annotated[float, _end(metavar="S", help="End of a series without an end, s.", show_default="30 days")] = END_S,
) -> None:
    """Describe a series: range, step, period, cost.

    Of a capacity by a budget (carbon:FILE,budget=...) its cost or emissions, too.

    Example:
    batwatt characterise carbon:power_profiles/carbon/carbon-hourly.csv,budget=0.7
    """
    from batwatt.inputs.character import bill, characterise
    from batwatt.inputs.spec import parse_series, quantity_in
    from batwatt.results.tables import TableColumn

    spec = parse_series(quantity_in(series), series)
    signal = spec.timeline(end_s=end).lasting(False)
    if spec.length_s() is None:
        # constants have no end
        signal = replace(signal, period_s=max(signal.period_s, end - signal.times_s[-1]))
    character = characterise(signal)
    rows, content = _rows(character, signal), _content(character, signal)
    paid = spec.paid()
    if paid is not None:
        cost = bill(signal, paid, fixed)
        rows += _bill_rows(cost, paid.name)
        content |= {"signal": paid.name, "saved": cost.saved, "gained": cost.gained} | asdict(cost)
    columns = [TableColumn("", key, [row[key] for row in rows], key == "value") for key in KEYS]
    show_table(columns, rows, content)


def _content(character: Character, signal: Timeline) -> dict[str, Any]:
    """Return the character of a signal as JSON."""
    more = {"range": character.range, "frequency_per_h": character.frequency_per_h, "synthetic": character.spec}
    return {"unit": signal.name, "begin": signal.begin, "end_s": signal.end_s} | asdict(character) | more


def _rows(character: Character, signal: Timeline) -> list[dict[str, str]]:
    unit = signal.name
    rows = [
        ("values", f"{unit}, {len(signal)} rows over {signal.end_s / DAY_S:.4g} days"),
        ("begins", signal.begin or "0 s"),
        ("structure", f"{character.structure} (lag-1 correlation {character.correlation:.2f})"),
        ("range", f"{character.range:.4g} ({character.low:.4g} to {character.high:.4g})"),
        ("mean", f"{character.mean:.4g}"),
        ("step", f"{character.step_max:.4g} at most, {character.step_mean:.4g} in the mean"),
        ("period", f"{character.period_s:.10g} s"),
        ("frequency", f"{character.frequency_per_h:.4g} an hour possible, {character.changes_per_h:.4g} happened"),
    ]
    if unit == "fraction" and character.spec is not None:
        rows.append(("synthetic", character.spec))
    return [dict(zip(KEYS, row, strict=True)) for row in rows]


def _bill_rows(cost: Bill, name: str) -> list[dict[str, str]]:
    rows = [(f"sum of {name} x h", f"{cost.amount:.6g} for a full data centre of 1; fixed: {cost.amount_fixed:.6g}")]
    for label, share in (("saved", cost.saved), ("more capacity", cost.gained)):
        if share is not None:
            rows.append((label, f"{share:.1%} relative to a fixed {cost.mean_fixed:g}"))
    return [dict(zip(KEYS, row, strict=True)) for row in rows]
