"""The command `carbon study`: all permutations of synthetic jobs under every planner, as a YAML file declares them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from batwatt.cli.campaign import Jobs, Only, ResultsOptions, progress
from batwatt.cli.printing import below, show_table, tabular
from batwatt.errors import printable

PLANNERS = {"oracle_g": "one piece", "optimum_g": "pieces", "suspend_g": "blind to start-ups"}
"""What is shown of the summary, by column."""


@tabular
def study_command(
    declared: Annotated[
        Path, typer.Argument(metavar="YAML", help="The declared studies; docs/reference/campaigns.md.")
    ],
    results: ResultsOptions,
    jobs: Jobs = None,
    only: Only = None,
) -> None:
    """Plan synthetic jobs in phases at many arrivals, by every planner; goes on where it was interrupted.

    [bold]Example:[/] batwatt carbon study experiments/carbon-small.yaml
    """
    from batwatt.campaign.carbon.study import SUMMARY, carry_out_studies, studies_in
    from batwatt.campaign.store import TABLE
    from batwatt.results.tables import Column

    declaration = studies_in(declared, results.results, results.name)
    with progress("study", "jobs") as report:
        summaries = carry_out_studies(declaration, jobs, only or (), report)
    records: list[dict[str, Any]] = []
    for study, found in summaries.items():
        weighted = {column: float((found[column] * found["arrivals"]).sum()) for column in ("immediate_g", *PLANNERS)}
        shares = {_saved(column): 1.0 - weighted[column] / weighted["immediate_g"] for column in PLANNERS}
        records.append({"study": study, "jobs": len(found), "plans": int(found["arrivals"].sum())} | shares)
    counts = [Column(key, key, [str(record[key]) for record in records]) for key in ("study", "jobs", "plans")]
    shown = [(f"saved,\n{what}", _saved(column)) for column, what in PLANNERS.items()]
    saved = [Column(head, key, [f"{record[key]:.2%}" for record in records]) for head, key in shown]
    show_table([*counts, *saved], records)
    folder = declaration.store.folder
    below(printable(f"files: {folder / TABLE}, {folder / SUMMARY}"))


def _saved(column: str) -> str:
    """The key of the share that a planner saves."""
    return f"saved_share_{column.removesuffix('_g')}"
