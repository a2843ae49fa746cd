"""The command `carbon study`: all permutations of made jobs under every planner, as a YAML file declares them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.campaign import Jobs, Only, ResultsOptions, progress
from batwatt.cli.models import options_of
from batwatt.cli.shared import show_table
from batwatt.errors import printable

PLANNERS = {"oracle_g": "one piece", "optimum_g": "pieces", "suspend_g": "blind to start-ups"}
"""What is shown of the summary, by column."""


@options_of
def study_command(
    declared: Annotated[
        Path, typer.Argument(metavar="YAML", help="The declared studies; docs/reference/campaigns.md.")
    ],
    results: ResultsOptions,
    jobs: Jobs = None,
    only: Only = None,
) -> None:
    """Plan made jobs in phases at many arrivals, by every planner; goes on where it was interrupted.

    [bold]Example:[/] batwatt carbon study experiments/carbon-small.yaml
    """
    from batwatt.campaign.carbon.study import SUMMARY, carry_out_studies, studies_in
    from batwatt.campaign.store import TABLE

    declaration = studies_in(declared, results.results, results.name)
    with progress("study", "jobs") as report:
        summaries = carry_out_studies(declaration, jobs, only or (), report)
    rows = []
    for study, found in summaries.items():
        weighted = {column: float((found[column] * found["arrivals"]).sum()) for column in ("immediate_g", *PLANNERS)}
        shares = (f"{1.0 - weighted[column] / weighted['immediate_g']:.2%}" for column in PLANNERS)
        rows.append((study, f"{len(found)}", f"{found['arrivals'].sum()}", *shares))
    show_table(("study", "jobs", "plans", *(f"saved, {told}" for told in PLANNERS.values())), rows)
    folder = declaration.store.folder
    print(printable(f"files: {folder / TABLE}, {folder / SUMMARY}"))
