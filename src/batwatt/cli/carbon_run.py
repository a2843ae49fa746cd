"""The commands about many jobs: `carbon run`, `carbon compare` and `carbon policies`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from batwatt.cli.carbon_modes import ShiftRequest, mode_of, names_of
from batwatt.cli.carbon_options import (
    Averaged,
    Begin,
    CarbonPolicy,
    CarbonWeight,
    Checkpoints,
    Clock,
    ColumnName,
    Compat,
    Constraint,
    DeadlineH,
    ErrorSeed,
    ForecastError,
    JobsPath,
    JobsUnit,
    KindName,
    MachinePrices,
    MaxStarts,
    PriceColumn,
    PricePath,
    PriceWeight,
    Repetitions,
    Reserved,
    SavingsPicture,
    SignalPath,
    Slot,
    Wait,
    Watts,
    Zone,
)
from batwatt.cli.inputs import write_output
from batwatt.cli.options import Plugins, Prefix
from batwatt.cli.shared import drawable, show_table
from batwatt.errors import InputError, printable
from batwatt.results.writers import file_of
from batwatt.systems.carbon.figures.charts import plot_saved_cdf
from batwatt.systems.carbon.figures.gantt import plot_gantt
from batwatt.systems.carbon.files import executions_of, write_outcome
from batwatt.systems.carbon.outcome import Outcome, saved
from batwatt.units import HOUR_S, J_PER_KWH

BASE = "immediate"
"""The policy that savings are measured against."""
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw who runs when: .png, .svg or .pdf.")]


def run_command(
    jobs: JobsPath,
    signal: SignalPath,
    policy: Annotated[str, typer.Option("--policy", help="A name of `batwatt carbon policies`.")],
    export: Prefix = Path("out/carbon"),
    length_unit: JobsUnit = "seconds",
    watts: Watts = None,
    plugin: Plugins = None,
    compat: Compat = None,
    carbon_policy: CarbonPolicy = None,
    wait: Wait = None,
    deadline: DeadlineH = None,
    constraint: Constraint = None,
    begin: Begin = None,
    zone: Zone = None,
    column: ColumnName = None,
    tz: Clock = "UTC",
    kind: KindName = "lifecycle",
    forecast_error: ForecastError = None,
    repetitions: Repetitions = None,
    seed: ErrorSeed = None,
    price: PricePath = None,
    price_column: PriceColumn = None,
    carbon_weight: CarbonWeight = None,
    price_weight: PriceWeight = None,
    reserved: Reserved = None,
    machine_prices: MachinePrices = None,
    averaged: Averaged = False,
    slot_s: Slot = None,
    max_starts: MaxStarts = None,
    checkpoints: Checkpoints = False,
    picture: Picture = None,
    savings: SavingsPicture = None,
) -> None:
    """Run a policy on all jobs, each on its own; writes its figures (JSON) and a row for each segment of a job (CSV).

    [bold]Example:[/]
    batwatt carbon run --jobs workloads/carbon/jobs.csv
      --signal power_profiles/carbon/carbon-hourly.csv
      --policy phase-aware --deadline 24 -e out/x --picture out/x.png
    batwatt carbon run --jobs pai_1k.csv --signal DE-2024-hourly.csv
      --policy suspend-resume --compat gaia --wait 6x24 -e out/gaia
    """
    asked = ShiftRequest.of(locals())
    for path in (picture, savings):
        drawable(path)
    mode = mode_of(asked)
    found = mode.run(policy)
    base = found
    if found.policy != BASE:
        base = mode.run(BASE)
    table = _table([base] if found is base else [base, found], base)
    segments, metrics = file_of(export, "segments"), file_of(export, "metrics", ".json")
    if picture is not None:
        executions = executions_of(found, mode.jobs, mode.checkpoints)
        plot_gantt(executions, mode.integral, picture, deadlines_s=_deadlines(found))
    if savings is not None:
        plot_saved_cdf(saved(found, base), savings)
    about = {
        "compat": compat,
        "immediate_carbon_g": float(table["carbon_g"].iloc[0]),
        "saved_share": float(table["saved_share"].iloc[-1]),
        "inputs": asked.about,
    }
    write_outcome(segments, metrics, found, about)
    _show(table)
    print(printable(f"files: {metrics}, {segments}"))


def compare_command(
    jobs: JobsPath,
    signal: SignalPath,
    policies: Annotated[str, typer.Option("--policies", help="Names of `batwatt carbon policies`, with commas.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write all figures as CSV, too.")] = None,
    length_unit: JobsUnit = "seconds",
    watts: Watts = None,
    plugin: Plugins = None,
    compat: Compat = None,
    carbon_policy: CarbonPolicy = None,
    wait: Wait = None,
    deadline: DeadlineH = None,
    constraint: Constraint = None,
    begin: Begin = None,
    zone: Zone = None,
    column: ColumnName = None,
    tz: Clock = "UTC",
    kind: KindName = "lifecycle",
    forecast_error: ForecastError = None,
    repetitions: Repetitions = None,
    seed: ErrorSeed = None,
    price: PricePath = None,
    price_column: PriceColumn = None,
    carbon_weight: CarbonWeight = None,
    price_weight: PriceWeight = None,
    reserved: Reserved = None,
    machine_prices: MachinePrices = None,
    averaged: Averaged = False,
    slot_s: Slot = None,
    max_starts: MaxStarts = None,
    checkpoints: Checkpoints = False,
) -> None:
    """Run several policies on the same jobs and show them side by side; with -o all figures as CSV.

    [bold]Example:[/]
    batwatt carbon compare --jobs workloads/carbon/jobs.csv
      --signal power_profiles/carbon/carbon-hourly.csv
      --policies oracle,suspend-resume,phase-aware --deadline 24
    """
    asked = ShiftRequest.of(locals())
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise InputError("--policies", "names none", "write for instance oracle,phase-aware")
    mode = mode_of(asked)
    base = mode.run(BASE)
    found = [base, *(mode.run(name) for name in names if name != BASE)]
    table = _table(found, base)
    if output is not None:
        write_output(table.to_csv(index=False, lineterminator="\n"), output)
    _show(table)


def _table(outcomes: list[Outcome], base: Outcome) -> pd.DataFrame:
    """The figures of outcomes, a row each, and which share of the base's carbon each saves."""
    rows: list[dict[str, Any]] = [{"policy": outcome.policy, **outcome.metrics()} for outcome in outcomes]
    table = pd.DataFrame(rows)
    before = float(base.metrics()["carbon_g"])
    table.insert(2, "saved_share", 1.0 - table["carbon_g"] / before if before > 0.0 else 0.0)
    return table


def _show(table: pd.DataFrame) -> None:
    head = ("policy", "carbon g", "saved", "energy kWh", "cost", "mean wait h", "segments", "late jobs")
    rows = [
        (
            row["policy"],
            f"{row['carbon_g']:.6f}",
            f"{row['saved_share']:.2%}",
            f"{row['energy_j'] / J_PER_KWH:.4f}",
            f"{row['cost']:.4f}",
            f"{row['mean_wait_s'] / HOUR_S:.3f}",
            f"{row['segments']:g}",
            f"{row['late_jobs']:g}",
        )
        for row in table.to_dict("records")
    ]
    show_table(head, rows)


def _deadlines(outcome: Outcome) -> dict[str, float]:
    """When jobs should have finished, of those that have a deadline."""
    jobs = outcome.per_job()
    known = jobs[jobs["deadline_s"] < float("inf")]
    return dict(zip(known["job"], known["deadline_s"], strict=True))


def policies_command(compat: Compat = None, plugin: Plugins = None) -> None:
    """List the policies.

    [bold]Example:[/] batwatt carbon policies --compat gaia
    """
    show_table(("name", "what it does"), list(names_of(compat)))
