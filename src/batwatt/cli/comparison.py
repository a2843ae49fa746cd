"""The command `compare`: schedulers with their options on the same jobs under the same power."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from batwatt.cli.options import (
    CarbonText,
    DelaysToFlops,
    EnvelopeText,
    IgnoreCommunication,
    MachineChoice,
    OptionalPlatform,
    Plugins,
    Prefix,
    PriceText,
)
from batwatt.cli.printing import below, counting_bar, manners, note, show_table, tabular
from batwatt.cli.results import FigureKinds, parse_kinds
from batwatt.errors import BatwattError, InputError, printable
from batwatt.files import check_place

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.api.comparison_result import Comparison
    from batwatt.api.inputs import Platform, Workload
    from batwatt.model.platform import MachineSpec
    from batwatt.results.tables import TableColumn
    from batwatt.run.spec import RunSpec

SAVED_EVERY_S = 30.0
"""Least time from one page of the cases that have ended to the next."""
GROUPS = (
    "jobs", "finished_share", "mean_wait_s", "mean_full_speed_slowdown", "paired_jobs", "wait_more_s",
    "full_speed_slowdown_more",
)  # fmt: skip
"""The figures of the table of groups."""


@tabular
def compare_command(
    *,
    workload: Annotated[
        list[Path],
        typer.Option(
            "-w",
            "--workload",
            metavar="JOBS",
            help="Jobs: .json (Batsim), .swf, .sacct, .csv, .parquet or .txt, with keys as for `run`.",
        ),
    ],
    envelope: EnvelopeText = None,
    platform: OptionalPlatform = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--case",
            metavar="CASE",
            help="'as today', adaptive, 'varcap termination=lww', mine.py, or LABEL=CASE; systems: all of ours. "
            "Repeatable; the first is the reference.",
            show_default="systems",
        ),
    ] = None,
    plugin: Plugins = None,
    carbon: CarbonText = None,
    price: PriceText = None,
    export: Prefix = Path("out/compare"),
    keep: Annotated[bool, typer.Option("--keep", help="Write the files of each run, too: PREFIX-LABEL_*.")] = False,
    samples: Annotated[
        int,
        typer.Option(
            "--samples",
            min=1,
            help="Cut the workload into windows of equal length, a run each: means, and standard errors of paired "
            "differences.",
        ),
    ] = 1,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each case that draws random numbers.")] = 1,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Processes.", show_default="all cores")
    ] = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster at this address.")
    ] = None,
    delays_to_flops: DelaysToFlops = None,
    ignore_communication: IgnoreCommunication = False,
    figures: FigureKinds = "",
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            metavar="FIGURE",
            help="Recommend the case with the least wait, slowdown, energy, carbon or cost.",
        ),
    ] = "wait",
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="GROUPING",
            help="Print also a table by user, group, queue, qos, size or length; repeatable.",
        ),
    ] = None,
    machines: MachineChoice,
) -> None:
    """Compare schedulers on the same jobs; recommend one.

    Prints a table and a verdict; writes the page PREFIX.html, a row for each run (PREFIX_comparison.csv) and for each
    job (PREFIX_jobs.csv). After an interrupt the same command completes the runs, which PREFIX_cells keeps.
    Jobs of a --window run to their ends, and are measured until then.

    Example:
    batwatt compare -w workloads/site/jobs.sacct --machines 10 --cores 16
      --envelope constant:1047 -c 'as today' -c adaptive --goal energy

    batwatt compare -p platforms/grid5000.xml -w workloads/google-288-00.json
      --envelope power_profiles/profile3.csv
      -c 'HFLD=powercap response=hfld'
      -c 'always on=powercap response=none'
    """
    import shlex

    from batwatt.api.comparison import compare
    from batwatt.api.comparison_result import files_of
    from batwatt.api.inputs import Workload
    from batwatt.results.rejections import rejections_text
    from batwatt.studies.cases import PRESET, cases_of
    from batwatt.studies.executors import check_dask

    check_place(export, "--export", files_of(export))
    if len(workload) > 1:
        raise InputError("--workload", "a comparison has one workload", "give one, or declare a study")
    if dask is not None:
        check_dask(dask, jobs)
    kinds, texts = parse_kinds(figures), case or []
    cases = cases_of(texts or PRESET, "--case")
    spec = machines.spec(platform, workload)
    window = None if spec.window is None else (spec.window.begin_s, spec.window.end_s)
    about: dict[str, Any] = {"unit": spec.length_unit, "window": window, **vars(spec.log)}
    [path] = spec.workloads
    load = Workload.read(cast(Path, path), ignore_communication=ignore_communication, **about)
    groupings = list(dict.fromkeys(by or ()))
    _check_by(groupings, load)
    _check_goal(goal, {"carbon": carbon, "cost": price})
    command = shlex.join(["batwatt", *manners.words])
    so_far: Callable[[], Comparison] | None = None
    saved_s, runs = time.monotonic(), [0, 0]
    # without a thread of its own: processes are forked from this one
    with counting_bar("runs", alone=False) as bar:
        task = bar.add_task("comparison", total=None)

        def report(ended: int, total: int) -> None:
            runs[:] = ended, total
            bar.update(task, completed=ended, total=total)
            bar.refresh()

        def on_case(label: str, comparison: Callable[[], Comparison]) -> None:
            nonlocal so_far, saved_s
            so_far = comparison
            if bar.disable:
                note(f"case {printable(label)} has ended: {runs[0]} of {runs[1]} runs")
            if time.monotonic() - saved_s >= SAVED_EVERY_S:
                so_far().save(export, goal=goal, by=groupings, command=command)
                saved_s = time.monotonic()

        try:
            result = compare(
                _hosts_of(spec, load),
                load,
                envelope,
                cases,
                capacity=machines.capacity,
                window=window,
                samples=samples,
                seeds=range(seeds),
                workers=jobs,
                carbon=carbon,
                price=price,
                delays_to_flops=delays_to_flops,
                keep=export if keep else None,
                folder=export.with_name(f"{export.name}_cells"),
                dask=dask,
                progress=report,
                on_case=on_case,
            )
        except BaseException:
            if so_far is not None:
                with suppress(BatwattError):
                    so_far().save(export, goal=goal, by=groupings, command=command)
                    files = f"{printable(export)}.html, _comparison.csv, _jobs.csv"
                    note(f"the cases that have ended: {files}; the same command runs the others")
            raise
    result.save(export, goal=goal, by=groupings, figures=kinds, command=command)
    _show(result, result.groups(*groupings) if groupings else None)
    for label, counts in result.rejections.items():
        below(f"rejected in {printable(label)}: {printable(rejections_text(counts))}")
    for label, why in result.errors.items():
        note(f"not run: {printable(label)}: {why}")
    for sentence in str(result.verdict(goal)).splitlines():
        note(printable(sentence))
    wanted = {"_groups.csv": groupings, "_plot-*": kinds, "-LABEL_*": keep}
    more = [end for end, value in wanted.items() if value]
    ends = [".html", "_comparison.csv", "_jobs.csv", *more]
    below(f"files: {', '.join(f'{printable(export)}{end}' for end in ends)}")


def _hosts_of(spec: RunSpec, load: Workload) -> MachineSpec | Platform:
    """Return the hosts that run jobs, or the machines of a synthetic platform. Raises InputError."""
    from batwatt.api.inputs import Platform

    platform: Any = spec.platform
    if not isinstance(platform, Path):
        return platform
    most = load.nb_res if spec.hosts.mmax_workload else 0
    first = min(filter(None, (spec.hosts.mmax, most)), default=0)
    return Platform.read(platform, master=spec.hosts.master, mmax=first)


def _check_by(by: Sequence[str], workload: Workload) -> None:
    """Raise InputError for an unknown grouping, or one without a value in any job."""
    from batwatt.results.groups import BY, CLASSES

    groupings = [name for name in BY if name in CLASSES or any(job.raw.get(name) for job in workload.jobs)]
    for name in by:
        if name not in BY:
            raise InputError("--by", f"{name!r} is not known", f"use {', '.join(BY)}")
        if name not in groupings:
            raise InputError("--by", f"no job of the workload has a {name}", f"use {', '.join(groupings)}")


def _check_goal(goal: str, series: Mapping[str, str | None]) -> None:
    """Raise InputError for an unknown goal, or one without its series."""
    from batwatt.results.compared import GOALS
    from batwatt.run.arguments import one_of

    one_of(GOALS)("--goal", goal)
    if series.get(goal, "") is None:
        raise InputError("--goal", f"{goal} is not known", f"give --{'price' if goal == 'cost' else goal}")


def _show(result: Comparison, groups: pd.DataFrame | None) -> None:
    """Print the table of cases and, below, a table for each grouping; with --json one object of both."""
    from batwatt.results.compared import case_columns
    from batwatt.results.tables import records_of

    rows = result.summary.reset_index().to_dict("records")
    columns, cases = case_columns(rows, result.currency), records_of(rows)
    for case in cases:
        case["rejected_because"] = dict(result.rejections.get(case["case"], {}))
        if "cost" in case:
            case["currency"] = result.currency or None
    if groups is None:
        show_table(columns, cases)
        return
    parts = {str(name): part.to_dict("records") for name, part in groups.groupby("by", sort=False)}
    show_table(columns, cases, {"cases": cases, "groups": records_of(groups.to_dict("records"))})
    if manners.as_json:
        return
    for part in parts.values():
        print()
        show_table(_group_columns(part), records_of(part))


def _group_columns(rows: Sequence[Mapping[Any, Any]]) -> list[TableColumn]:
    from batwatt.results.figures import figures_of
    from batwatt.results.tables import TableColumn, columns_of, records_of

    return [
        TableColumn("case", "case", [str(row["case"]) for row in rows]),
        TableColumn(str(rows[0]["by"]), "group", [str(row["group"]) for row in rows], is_text=True),
        *columns_of(figures_of(GROUPS), records_of(rows)),
    ]
