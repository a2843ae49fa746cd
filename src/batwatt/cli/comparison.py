"""The systems side of `batwatt compare`: any schedulers on the same jobs under the same power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.inputs import read_options
from batwatt.cli.options import MachineChoice
from batwatt.cli.printing import below, note, show_table
from batwatt.errors import InputError, printable

if TYPE_CHECKING:
    from batwatt.api.comparison import Case

SYSTEMS = "Comparison of systems"
Cases = dict[str, "Case"]
SHOWN = (
    ("finished\njobs", "finished", 1.0, 0),
    ("killed\njobs", "killed", 1.0, 0),
    ("rejected\njobs", "rejected", 1.0, 0),
    ("kills", "kills", 1.0, 0),
    ("slowdown\nmean", "mean_slowdown", 1.0, 2),
    ("wait\nmean\nmin", "mean_wait_s", 1.0 / 60.0, 1),
    ("wait\np95\nmin", "p95_wait_s", 1.0 / 60.0, 1),
    ("goodput\n%", "goodput", 100.0, 1),
    ("energy\nkWh", "energy_j", 1.0 / 3.6e6, 1),
    ("above\ncap\nkWh", "energy_above_cap_j", 1.0 / 3.6e6, 2),
    ("unused\nkWh", "unused_j", 1.0 / 3.6e6, 1),
    ("carbon\nkg", "carbon_g", 1e-3, 2),
    ("cost", "cost", 1.0, 2),
)
"""Header (the unit last), column, by what it is multiplied, decimals."""


@dataclass(frozen=True, kw_only=True)
class SystemsOptions:
    """What a comparison of systems takes besides jobs and power."""

    preset: Annotated[
        str | None, typer.Option("--preset", help="systems: all of them and references.", rich_help_panel=SYSTEMS)
    ] = None
    carbon: Annotated[
        Path | None,
        typer.Option("--carbon", help="Carbon intensity, g/kWh (CSV), 0 s is its first row.", rich_help_panel=SYSTEMS),
    ] = None
    price: Annotated[
        Path | None, typer.Option("--price", help="Price of energy, per kWh (CSV), likewise.", rich_help_panel=SYSTEMS)
    ] = None
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Runs of each system that draws at random.", rich_help_panel=SYSTEMS)
    ] = 1
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Processes.", show_default="all cores", rich_help_panel=SYSTEMS),
    ] = None
    machines: MachineChoice

    def wanted(self, cases: Sequence[str]) -> bool:
        """Whether systems are compared, and not settings of one scheduler."""
        options = [text.partition("=")[2].strip() for text in cases]
        named = any(given and not given.startswith("{") for given in options)
        return self.preset is not None or named or self.machines.machines is not None

    def refuse(self) -> None:
        """InputError for what is only for systems."""
        for name in ("carbon", "price"):
            if getattr(self, name) is not None:
                raise InputError(f"--{name}", "is for a comparison of systems", "add --preset systems")


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
    options: SystemsOptions, platform: Path | None, workload: Sequence[Path], envelope: str, texts: Sequence[str],
    export: Path,
) -> None:  # fmt: skip
    """Run the comparison, print it, and write EXPORT_comparison.csv and EXPORT_jobs.csv. Raises InputError."""
    import os

    from batwatt.api.comparison import compare_systems
    from batwatt.api.inputs import Workload

    if len(workload) > 1:
        raise InputError("--workload", "a comparison of systems has one workload", "give one")
    cases = cases_of(texts, options.preset)
    spec = options.machines.spec(platform, workload)
    window = None if spec.window is None else (spec.window.begin_s, spec.window.end_s)
    load = Workload.read(workload[0], unit=spec.length_unit, window=window)
    found = compare_systems(
        spec.platform,
        load,
        envelope,
        cases,
        seeds=range(options.seeds),
        workers=options.jobs or len(os.sched_getaffinity(0)),
        lenient=set() if options.preset is None else cases.keys() - {text.partition("=")[0].strip() for text in texts},
        carbon=options.carbon,
        price=options.price,
    )
    found.save(export)
    _show(found.summary.reset_index().to_dict("records"))
    for label, why in found.errors.items():
        note(f"not run: {printable(label)}: {why}")
    below(f"files: {printable(export)}_comparison.csv, {printable(export)}_jobs.csv")


def _show(rows: Sequence[Mapping[Any, Any]]) -> None:
    from batwatt.results.summary import columns_of
    from batwatt.results.tables import Column

    records = [{str(key): None if value != value else value for key, value in row.items()} for row in rows]
    labels = Column("", "case", [str(record["case"]) for record in records])
    known = tuple(column for column in SHOWN if column[1] in records[0])
    show_table([labels, *columns_of(known, records)], records)
