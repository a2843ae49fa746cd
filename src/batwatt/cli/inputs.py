"""Inputs at the command line: a scheduler's options, and the commands convert and events."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import Begin, JobFiles
from batwatt.cli.printing import note
from batwatt.errors import InputError, printable
from batwatt.files import whole_file, write_text

TABLES = ("azure", "borg")
"""Formats of traces that become CSV traces."""
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Output file.", show_default="standard output")]
ToBatsim = Annotated[str, typer.Option("--to", help="batsim4 or batsim5: the reader of the file.", metavar="BATSIM")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same bytes.", min=0)]


def write_output(text: str, output: Path | None) -> None:
    """Write a text to a file, whole or not at all, or to standard output."""
    if output is None:
        if sys.stdout.isatty():
            # a terminal would obey control characters
            text = re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text)
        sys.stdout.write(text)
        return
    write_text(output, text)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of `convert_file`, which turns a trace into a workload. Raises InputError."""

    cores_per_server: Annotated[int, typer.Option(help="CPUs of a job that share a server.")] = 1
    walltime_factor: Annotated[
        float, typer.Option(help="Walltime / run time where the trace has no request (0: none).")
    ] = 2.0
    reference_flops: Annotated[
        float | None, typer.Option(help="Turn run times into work at this speed, flop/s.", show_default="delays")
    ] = None
    nb_res: Annotated[int | None, typer.Option(help="Servers of the platform.", show_default="the widest job")] = None


@options_of
def convert(
    *,
    jobs: Annotated[
        Path,
        typer.Argument(
            help="SWF (.swf), sacct -P (.sacct), CSV with arrival_time,length,cpus, tables (.parquet, .csv), "
            "PBS (.pbs), or lines `id release length cores` (.txt); also .gz; keys as for -w of `run`; "
            "with --format, vmtable.csv of Azure or instance_events of Borg; with --to, a Batsim workload (.json)."
        ),
    ],
    output: Output = None,
    to: ToBatsim = "batsim4",
    format: Annotated[
        str | None,
        typer.Option("--format", help="swf, csv, txt, sacct, table, pbs, azure or borg.", show_default="by suffix"),
    ] = None,
    workload: ConvertOptions,
    begin: Begin = None,
    collections: Annotated[
        Path | None, typer.Option(help="Of Borg: collection_events, for dependencies.", show_default="none")
    ] = None,
) -> None:
    """Turn a job trace into a Batsim workload; Azure's and Borg's into a CSV trace; a workload into the other Batsim's.

    [bold]Example:[/]
    batwatt convert workloads/cloud/jobs.csv,unit=h -o workload.json
      --cores-per-server 4 --reference-flops 18.4e9
    batwatt convert workload.json --to batsim5 -o workload5.json
    """
    from batwatt.inputs.convert import SUFFIXES, convert_file
    from batwatt.inputs.google_like import to_text
    from batwatt.protocol.conversion import to_batsim5

    _check_batsim(to)
    whole = jobs
    read = JobFiles.of([jobs], begin, "JOBS")
    [jobs] = read.paths
    plain = workload == ConvertOptions() and jobs == whole and begin is None
    if jobs.suffix == ".json" and format is None:
        if not plain or collections is not None:
            raise InputError("--to", "a workload becomes another one as it is", "leave the other options out")
        from batwatt.inputs.batsim_files import converted_file

        write_output(to_text(converted_file(jobs, to)), output)
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
        _convert_table(jobs, format, output, collections)
        return
    options: dict[str, Any] = vars(workload) | {
        "walltime_factor": workload.walltime_factor or None,
        "unit": read.unit,
    }
    conversion = convert_file(jobs, format=format, log=read.log, **options)  # type: ignore[arg-type]  # checked above
    write_output(to_text(conversion.workload if to == "batsim4" else to_batsim5(conversion.workload, jobs)), output)
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


def _convert_table(path: Path, format: str, output: Path | None, collections: Path | None) -> None:
    """Write a table of Azure or Borg as a CSV trace, and print its number of jobs."""
    from batwatt.inputs.cloud import azure_jobs, borg_jobs, write_chunks

    notes: Counter[str] = Counter()
    parts = azure_jobs(path, notes) if format == "azure" else borg_jobs(path, collections, notes)
    with nullcontext(sys.stdout) if output is None else whole_file(output) as out:
        count = write_chunks(parts, out)
    remarks = [f"{number} {what}" for what, number in notes.items() if number]
    note("; ".join([f"{count} jobs", *remarks]))


def events(
    source: Annotated[
        Path,
        typer.Argument(help="CSV with columns time_s,power_w; or a file of events, of either Batsim."),
    ],
    output: Output = None,
    to: ToBatsim = "batsim4",
) -> None:
    """Write an envelope as external events (--events, --forward-unknown-events), or events for the other Batsim.

    [bold]Example:[/]
    batwatt events power_profiles/profile3.csv -o events.txt
    batwatt events events.txt --to batsim5 -o events5.txt
    """
    from batwatt.files import read_text
    from batwatt.inputs.signal import read_series
    from batwatt.protocol.events import batsim4_events, batsim5_events, envelope_events, parse_events

    _check_batsim(to)
    if read_text(source).lstrip().startswith("{"):
        turn = batsim5_events if to == "batsim5" else batsim4_events
        lines = turn(parse_events(read_text(source), source))
    else:
        lines = envelope_events(read_series(source))
        if to == "batsim5":
            lines = batsim5_events(parse_events("\n".join(lines), source))
    write_output("".join(f"{line}\n" for line in lines), output)


def _check_batsim(to: str) -> None:
    if to not in ("batsim4", "batsim5"):
        raise InputError("--to", f"{to!r} is not known", "use batsim4 or batsim5")
