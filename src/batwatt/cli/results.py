"""The commands that print or draw results: policies, metrics, gantt, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batwatt.cli.models import options_of
from batwatt.cli.options import (
    EnvelopeText,
    Jobs,
    OptionalPlatform,
    Plugins,
    RunMachines,
    complete_scheduler,
    hosts_of,
    one_of,
)
from batwatt.cli.printing import below, manners, note, show_described, show_table, tabular, tell
from batwatt.errors import InputError, printable

if TYPE_CHECKING:
    from batwatt.results.figures import Values
    from batwatt.run.prepared import PreparedRun

PLURALS = {
    "node_selection": "node selections (option node_selection)",
    "victim": "victim rules (option victim of jobpower, powercap, riskaware and varcap)",
    "mapping": "mappings (varcap)",
    "strategy": "strategies (riskaware)",
    "policy": "policies (carbon)",
    "termination": "terminations (varcap)",
    "preemption": "preemptions (varcap)",
    "power_check": "power checks (jobpower)",
    "predictor": "predictors (jobpower)",
}
"""Headings of lists of parts."""


def print_summary(
    label: str,
    metrics: Values,
    about: Mapping[str, object],
    rejections: Mapping[str, int] | None = None,
    currency: str = "",
) -> None:
    """Print the table of a run and the causes of rejections; for programs also `about` and all metrics."""
    from dataclasses import replace

    from batwatt.results.figures import rounded
    from batwatt.results.rejections import rejections_text
    from batwatt.results.tables import summary

    record: dict[str, object] = {"run": label, **about, **rounded(metrics)}
    if rejections is not None:
        record["rejected_because"] = dict(rejections)
    if currency:
        record["currency"] = currency
    first, *figures = summary(label, metrics, currency)
    show_table([replace(first, keys=" ".join(["run", *about])), *figures], [record])
    if rejections:
        below(f"rejected: {printable(rejections_text(rejections))}")


@tabular
def policies(
    scheduler: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of a scheduler, for its options; or a .py file or a folder, for its definitions.",
            autocompletion=complete_scheduler,
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List schedulers, their parts and their options.

    Example: batwatt policies riskaware
    """
    from batwatt.run.find_scheduler import describe_file, describe_options, describe_schedulers, is_file_name
    from batwatt.scheduling.registry import describe

    if scheduler is not None and is_file_name(scheduler):
        _show_sections(describe_file(Path(scheduler)))
        return
    if scheduler is not None:
        _show_sections({"option": list(describe_options(scheduler))})
        return
    sections: dict[str, list[tuple[str, str]]] = {"scheduler": list(describe_schedulers())}
    for kind, name, line in describe():
        sections.setdefault(kind, []).append((name, line))
    _show_sections(sections)
    below("""choose with: -s NAME -o order=fcfs -o backfilling=easy -o response=hfld""")
    below("""  -s varcap -o '{"victim": {"name": "checkpoint", "recovery_s": 30}}' (a part with parameters)""")
    below("  -s easyBackfill (or another of pybatsim's), -s path/to/your.py")


def _show_sections(sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Print the names of each kind, with their descriptions."""
    records = [
        {"kind": kind, "name": name, "description": line} for kind, rows in sections.items() for name, line in rows
    ]
    show_described(records, {kind: PLURALS.get(kind, f"{kind}s") for kind in sections})


def _list_figures(wanted: bool) -> None:
    """Print every figure with its unit and meaning, and exit."""
    if not wanted:
        return
    from batwatt.results.figures import METRICS

    records = [
        {"name": one.name, "description": one.meaning, "unit": one.unit, "better": one.better} for one in METRICS
    ]
    for record in records:
        unit, better = record["unit"], record["better"]
        record["description"] += "".join([f" [{unit}]" if unit else "", f"; {better} is better" if better else ""])
    # --json may follow --list, and is not read yet
    manners.as_json = "--json" in manners.words
    show_described(records)
    raise typer.Exit()


@tabular
def metrics(
    *,
    prefix: Annotated[Path, typer.Argument(metavar="PREFIX", help="Prefix of the files of a run.")],
    listed: Annotated[
        bool, typer.Option("--list", callback=_list_figures, is_eager=True, help="List all figures with units.")
    ] = False,
    workload: Jobs,
    platform: OptionalPlatform = None,
    envelope: EnvelopeText = None,
    job_power: Annotated[
        bool,
        typer.Option(
            "--job-power",
            help="Compute the power of jobs that state it (power_w); write PREFIX_job_power.csv.",
        ),
    ] = False,
    machines: RunMachines,
    slowed: Annotated[
        bool,
        typer.Option(
            "--slowed",
            help="For `oversubscribed`: take lengths at the speed of p-state 0, not of the fastest.",
        ),
    ] = False,
) -> None:
    """Compute the figures of the files of a run.

    Of a real Batsim, or of `run` with another --long. Figures that need other inputs stay as the run wrote them.

    Example:
    batwatt run -p platforms/small.xml -w workloads/small.json -e out/x
    batwatt metrics out/x -p platforms/small.xml -w workloads/small.json
      --envelope power_profiles/small.csv

    batwatt run -s jobpower -p platforms/marconi100-48.xml
      -w workloads/pm100-like.json --envelope constant:30000 -e out/x
    batwatt metrics out/x --job-power -p platforms/marconi100-48.xml
      -w workloads/pm100-like.json --envelope constant:30000
    """
    from batwatt.run.prepared import PreparedRun
    from batwatt.run.result import Result

    slow = "nominal" if slowed else None
    how = {"envelope": envelope, "delays_to_flops": slow}
    # without a scheduler: a real Batsim runs profiles that the embedded engine does not
    run = PreparedRun.read(machines.spec(platform, workload, scheduler=None, **how))
    if job_power:
        _show_job_power(prefix, run)
        return
    result = Result.of_files(prefix, run)
    print_summary(prefix.name, result.values, {"prefix": str(prefix)}, result.rejections)
    if result.unchanged:
        names = ", ".join(result.unchanged[:8]) + (", ..." if len(result.unchanged) > 8 else "")
        note(f"as the run left them, as its other inputs are not given: {names}")


def _show_job_power(prefix: Path, run: PreparedRun) -> None:
    """Print the figures of the power of jobs, and write it over time. Raises InputError."""
    from batwatt.results.figures import figures_of
    from batwatt.results.job_power import JOB_POWER, job_power_figures, job_power_trace
    from batwatt.results.power import power_columns
    from batwatt.results.run_files import FILES, RunData, file_of, write_columns
    from batwatt.results.tables import TableColumn, columns_of, records_of

    series, data = run.envelope, RunData(prefix)
    if series is None:
        raise InputError("--job-power", "needs the envelope of that run", "give --envelope")
    figures = job_power_figures(data, run.measured, run.platform, series)
    trace = job_power_trace(data, run.measured, run.platform)
    write_columns(file_of(prefix, "job_power"), FILES["power"], dict(power_columns(trace, series)))
    columns = columns_of(figures_of(JOB_POWER), records_of([figures]))
    show_table([TableColumn("run", "prefix", [prefix.name]), *columns], [{"prefix": str(prefix), **figures}])


@options_of
def gantt(
    *,
    prefix: Annotated[
        Path, typer.Argument(metavar="PREFIX", help="Prefix of the files of a run, of a real Batsim, too.")
    ],
    platform: Annotated[Path, typer.Option("-p", "--platform", help="Platform of that run, with its keys.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Picture: .png, .svg or .pdf.")],
    envelope: Annotated[Path | None, typer.Option("--envelope", help="Envelope of that run (CSV).")] = None,
) -> None:
    """Draw jobs and p-states of each host over time.

    Above the power of all hosts, and the envelope.

    Example:
    batwatt run -p platforms/small.xml -w workloads/small.json -e out/x
    batwatt gantt out/x -p platforms/small.xml -o out/x.svg
    """
    from batwatt.inputs.platform_files import platform_of
    from batwatt.inputs.signal import read_series
    from batwatt.results.drawing import plot_gantt

    series = read_series(envelope) if envelope is not None else None
    servers = platform_of(*hosts_of(platform))
    tell(printable(plot_gantt(prefix, servers, series, output)))


FigureKinds = Annotated[
    str,
    typer.Option("--figures", metavar="FORMATS", help="Write each chart as a file, too: png, svg, pdf, or png,pdf."),
]


FORMATS = ("png", "svg", "pdf")
"""Formats of charts as files."""


def parse_kinds(text: str) -> list[str]:
    """Return the formats of a list such as png,pdf. Raises InputError."""
    kinds = [kind.strip() for kind in text.split(",") if kind.strip()]
    return [one_of("--figures", "format", kind, FORMATS) for kind in kinds]
