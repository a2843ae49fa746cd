"""The systems side of `batwatt compare`: any schedulers on the same jobs under the same power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.inputs import read_options
from batwatt.cli.options import CarbonText, MachineChoice, PriceText
from batwatt.cli.printing import below, counting_bar, manners, note, show_table
from batwatt.errors import InputError, printable, to_install

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.api.comparison import Case, Comparison
    from batwatt.api.inputs import Workload
    from batwatt.results.tables import Column

SYSTEMS = "Comparison of systems"
Cases = dict[str, "Case"]
GROUPS = (
    "jobs", "finished_share", "mean_wait_s", "mean_full_speed_slowdown", "paired_jobs", "wait_more_s",
    "full_speed_slowdown_more",
)  # fmt: skip
"""The figures of the table of groups."""


def _complete_preset(incomplete: str) -> list[str]:
    from batwatt.api.comparison import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class SystemsOptions:
    """What a comparison of systems takes besides jobs and power."""

    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="systems: all of them and references.",
            rich_help_panel=SYSTEMS,
            autocompletion=_complete_preset,
        ),
    ] = None
    carbon: CarbonText = None
    price: PriceText = None
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Runs of each system that draws at random.", rich_help_panel=SYSTEMS)
    ] = 1
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Processes.", show_default="all cores", rich_help_panel=SYSTEMS),
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="GROUPING",
            help="Jobs by user, group, queue, size or length, in a second table; repeatable.",
            rich_help_panel=SYSTEMS,
        ),
    ] = None
    machines: MachineChoice

    def wanted(self, cases: Sequence[str]) -> bool:
        """Whether systems are compared, and not settings of one scheduler."""
        options = [text.partition("=")[2].strip() for text in cases]
        named = any(given and not given.startswith("{") for given in options)
        return self.preset is not None or named or self.machines.machines is not None

    def refuse(self) -> None:
        """InputError for what is only for systems."""
        machines = self.machines
        given: dict[str, object] = {
            "carbon": self.carbon,
            "price": self.price,
            "by": self.by,
            "jobs": self.jobs,
            "seeds": self.seeds > 1,
            "capacity": machines.capacity,
            "cores": machines.cores,
            "window": machines.window,
            "long": machines.long,
            "length-unit": machines.length_unit != "seconds",
        }
        for name, value in given.items():
            if value:
                hint = "add --preset systems, or cases that name a scheduler"
                raise InputError(f"--{name}", "is for a comparison of systems", hint)


def cases_of(texts: Sequence[str], preset: str | None) -> Cases:
    """The cases of a preset, and of `LABEL=SCHEDULER {"option": ...}`. Raises InputError."""
    from batwatt.api.comparison import PRESETS, Case

    if preset is not None and preset not in PRESETS:
        raise InputError("--preset", f"{preset!r} is not known", f"use {', '.join(PRESETS)}")
    found: Cases = {} if preset is None else dict(PRESETS[preset])
    for text in texts:
        label, sign, rest = (part.strip() for part in text.partition("="))
        scheduler, _, options = rest.partition("{")
        if not (sign and label and scheduler.strip()):
            hint = 'write \'LWW=varcap {"termination": "lww"}\''
            raise InputError("--case", f"{text!r} is not LABEL=SCHEDULER OPTIONS", hint)
        if label in found:
            raise InputError("--case", f"there are two cases {label!r}", "choose another label")
        chosen = read_options("{" + options, f"--case {label}") if options else {}
        found[label] = Case(scheduler.strip(), chosen)
    return found


def compare_systems_of(
    options: SystemsOptions,
    platform: Path | None,
    workload: Sequence[Path],
    envelope: str | None,
    texts: Sequence[str],
    export: Path,
) -> None:
    """Run the comparison, print it, and write EXPORT.html and CSV files. Raises InputError."""
    import os
    import shlex

    from batwatt.api.comparison import compare_systems
    from batwatt.api.inputs import Workload
    from batwatt.inputs.traces.job_log import USUAL
    from batwatt.results.rejections import rejections_text

    if options.machines.long is not None:
        raise InputError("--long", "is for the figures of one run", "leave it out, or give long_s to a case")
    if len(workload) > 1:
        raise InputError("--workload", "a comparison of systems has one workload", "give one")
    cases = cases_of(texts, options.preset)
    spec = options.machines.spec(platform, workload)
    window = None if spec.window is None else (spec.window.begin_s, spec.window.end_s)
    log = {name: value for name, value in vars(spec.log).items() if value != getattr(USUAL, name)}
    load = Workload.read(workload[0], unit=spec.length_unit, window=window, **log)
    by = list(dict.fromkeys(options.by or ()))
    _check_by(by, load)
    lenient = set() if options.preset is None else cases.keys() - {text.partition("=")[0].strip() for text in texts}
    with counting_bar("runs") as bar:
        task = bar.add_task("comparison", total=None)
        found = compare_systems(
            spec.platform,
            load,
            envelope,
            cases,
            capacity=options.machines.capacity,
            seeds=range(options.seeds),
            workers=options.jobs or len(os.sched_getaffinity(0)),
            lenient=lenient,
            carbon=options.carbon,
            price=options.price,
            progress=lambda ended, total: bar.update(task, completed=ended, total=total),
        )
    found.save(export, by=by, command=shlex.join(["batwatt", *manners.words]))
    groups = found.groups(*by) if by else None
    _show(found, groups)
    for label, counts in found.rejections.items():
        below(f"rejected in {printable(label)}: {printable(rejections_text(counts))}")
    for label, why in found.errors.items():
        note(f"not run: {printable(label)}: {why}")
    page = export.with_name(f"{export.name}.html")
    if not page.exists():
        note(f"no page {printable(page)}, which needs more libraries: {to_install('report')}")
    ends = (*((".html",) if page.exists() else ()), "_comparison.csv", "_jobs.csv", *(("_groups.csv",) if by else ()))
    below(f"files: {', '.join(f'{printable(export)}{end}' for end in ends)}")


def _check_by(by: Sequence[str], workload: Workload) -> None:
    """InputError for a grouping that is not known, or of which no job says anything."""
    from batwatt.results.groups import BY, CLASSES

    known = [name for name in BY if name in CLASSES or any(job.raw.get(name) for job in workload.jobs)]
    for name in by:
        if name not in BY:
            raise InputError("--by", f"{name!r} is not known", f"use {', '.join(BY)}")
        if name not in known:
            raise InputError("--by", f"no job of the workload has a {name}", f"use {', '.join(known)}")


def _show(found: Comparison, groups: pd.DataFrame | None) -> None:
    """The table of cases and, below, a table for each grouping; --json gives one object of both."""
    from batwatt.results.compared import case_columns
    from batwatt.results.summary import records_of

    rows = found.summary.reset_index().to_dict("records")
    columns, cases = case_columns(rows, found.currency), records_of(rows)
    for case in cases:
        case["rejected_because"] = dict(found.rejections.get(case["case"], {}))
        if "cost" in case:
            case["currency"] = found.currency or None
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


def _group_columns(rows: Sequence[Mapping[Any, Any]]) -> list[Column]:
    from batwatt.results.figures import figures_of
    from batwatt.results.summary import columns_of, records_of
    from batwatt.results.tables import Column

    return [
        Column("", "case", [str(row["case"]) for row in rows]),
        Column(str(rows[0]["by"]), "group", [str(row["group"]) for row in rows], is_text=True),
        *columns_of(figures_of(GROUPS), records_of(rows)),
    ]
