"""The commands about one job: `carbon plan`, the least that it can emit, and `carbon fit`, its model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.carbon_options import (
    PLANNING,
    Checkpoints,
    MaxStarts,
    SignalOptions,
    Slot,
    Watts,
    WeightOptions,
    number_of,
    watts_of,
)
from batwatt.cli.inputs import Output, write_output
from batwatt.cli.models import options_of
from batwatt.cli.shared import Picture, drawing, json_text, one_of
from batwatt.files import write_json
from batwatt.model.workload import MOST_CPUS
from batwatt.systems.carbon import CHECKPOINTS, STARTUP_UNTIL

if TYPE_CHECKING:
    import pandas as pd


@options_of
def plan_command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Its start-up and its work in phases (JSON).")],
    signal: SignalOptions,
    deadline: Annotated[
        str, typer.Option("--deadline", help="When it must have finished: s of the signal, or a date.")
    ],
    price: WeightOptions,
    start: Annotated[str, typer.Option("--start", help="When it may start: s of the signal, or a date.")] = "0",
    slot_s: Slot = None,
    max_starts: MaxStarts = None,
    checkpoints: Checkpoints = False,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="dp: dynamic programming; milp: a solver, for comparison.", rich_help_panel=PLANNING
        ),
    ] = "dp",
    cpus: Annotated[int, typer.Option("--cpus", help="Cpus of the job.", min=1, max=MOST_CPUS)] = 1,
    watts: Watts = None,
    output: Output = None,
    picture: Picture = None,
) -> None:
    """Plan when one job runs and is suspended so that it emits least, each start-up paid; prints the plan as JSON.

    [bold]Example:[/]
    batwatt carbon plan workloads/carbon/job.json
      --signal power_profiles/carbon/carbon-hourly.csv
      --start 2024-07-01T06:00 --deadline 2024-07-02T06:00
    """
    from batwatt.inputs.workloads.phase_jobs import read_model
    from batwatt.systems.carbon.figures.gantt import plot_gantt
    from batwatt.systems.carbon.files import offset_s, read_integral
    from batwatt.systems.carbon.job_plan import METHODS, JobPlanning, plan_job

    chosen = one_of("--method", "method", method, METHODS)
    weights = price.weights
    if slot_s is not None:
        number_of("--slot-s", slot_s, above=True)
    model = read_model(job, watts_of(watts))
    file = signal.file
    until = _until(deadline)
    integral = read_integral(file, until)
    start_s, deadline_s = (
        offset_s(option, text, integral, file) for option, text in (("--start", start), ("--deadline", deadline))
    )
    asked = JobPlanning(start_s, deadline_s, slot_s, max_starts, checkpoints, chosen, cpus)
    found = plan_job(job.stem, model, integral, price.integral(file, integral, until), weights, asked)
    if picture is not None:
        plot_gantt([found.execution], integral, picture, deadlines_s={job.stem: deadline_s})
    write_output(json_text(found.content), output)


def _until(deadline: str) -> float | str:
    """How far a signal matters: s from its first row, or a date."""
    try:
        return float(deadline)
    except ValueError:
        return deadline


def fit_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="SAMPLES...", help="Power samples, NAME.csv, each next to its events, NAME-events.csv; or folders."
        ),
    ],
    startup_until: Annotated[
        str, typer.Option("--startup-until", help="The event with which work begins.")
    ] = STARTUP_UNTIL,
    checkpoints: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint", help="Phases that end with all saved; * and ? match.", show_default=" ".join(CHECKPOINTS)
        ),
    ] = None,
    alike: Annotated[bool, typer.Option("--alike", help="Phases of one name are alike.")] = False,
    interrupted: Annotated[
        list[Path] | None,
        typer.Option("--interrupted", help="Runs with interruptions, to compare with the model; repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the model for `carbon plan` (JSON).")
    ] = None,
    picture: Annotated[Path | None, drawing("--picture", "Draw the model over the samples")] = None,
) -> None:
    """Fit a model in phases to measurements; prints it, and what leaving out one run in turn tells of it, as JSON.

    [bold]Example:[/]
    batwatt carbon fit power_profiles/measured/straight
      -o model.json --picture fit.png
    """
    from batwatt.systems.carbon.figures.fit import plot_fit
    from batwatt.systems.carbon.fit import CHECKPOINTS, compared, fit_runs, model_json
    from batwatt.systems.carbon.measurements import read_runs

    measured = read_runs(runs)
    fitted = fit_runs(measured, startup_until=startup_until, checkpoints=checkpoints or CHECKPOINTS, alike=alike)
    content = {
        **fitted.metrics(),
        "model": model_json(fitted.model),
        "per_phase": _rows(fitted.per_phase),
        "per_run": _rows(fitted.per_run),
    }
    if interrupted:
        content["interrupted"] = _rows(compared(fitted.model, read_runs(interrupted)))
    if picture is not None:
        plot_fit(fitted, measured, picture)
    if output is not None:
        write_json(output, model_json(fitted.model))
    write_output(json_text(content), None)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table as JSON, null where nothing is known."""
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in found]
