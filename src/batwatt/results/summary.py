"""Table of the figures of several runs, for a terminal or a log."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from batwatt.results.figures import Figure, Values, figures_of
from batwatt.results.tables import TableColumn, tables
from batwatt.units import HOUR_S

NOTHING = "-"
DIGITS = 4
"""Significant digits of the largest energy in a column; all its values have the same decimals."""

BY_SIZE = ("energy_j", "energy_above_cap_j", "unused_j", "carbon_g", "cost")
"""Figures with `DIGITS` in the table of runs."""
_UNDER_POWER = (
    "mean_slowdown", "mean_bounded_slowdown", "jobs_finished", "jobs_rejected", "kills", "violations",
    "finished_work_fraction", "energy_j", "energy_above_cap_j", "unused_j",
)  # fmt: skip
_AT_OTHER_SPEEDS = ("mean_run_time_stretch", "mean_full_speed_slowdown")
"""Figures next to the slowdown if jobs of a run did not run at full speed."""
_UNDER_CAPACITY = (
    "goodput", "job_failure_rate", "terminations", "jobs_finished", "mean_wait_s", "mean_bounded_slowdown",
    "mean_full_speed_slowdown", "max_full_speed_slowdown", "aborted_volume", "completed_fraction",
)  # fmt: skip
"""Figures of a run with a capacity in machines."""
_OF_SIGNALS = ("carbon_g", "cost")
"""More figures of a run with a carbon signal or a price."""
_OF_CHECKPOINTS = ("checkpoint_volume", "recovery_volume", "min_yield")
"""More figures of runs with checkpoints."""


def columns_of(
    figures: Iterable[Figure], rows: Sequence[Mapping[str, Any]], by_size: Sequence[str] = ()
) -> list[TableColumn]:
    """Return columns of figures; the terms of a sum are joined by `+`, figures in `by_size` have `DIGITS`."""
    columns = []
    for figure in figures:
        names = figure.parts or (figure.name,)
        cells = [_cells([row[name] for row in rows], figure, figure.name in by_size) for name in names]
        columns.append(
            TableColumn(figure.label, " ".join(names), [" + ".join(texts) for texts in zip(*cells, strict=True)])
        )
    return columns


def _cells(values: Sequence[float | None], figure: Figure, by_size: bool) -> list[str]:
    scaled = [None if value is None else value * figure.factor for value in values]
    largest = max((value for value in scaled if value is not None), default=0.0)
    whole = math.floor(math.log10(largest)) + 1 if largest > 0.0 else DIGITS
    places = max(0, DIGITS - max(1, whole)) if by_size else figure.decimals
    return [NOTHING if value is None else f"{value:.{places}f}" for value in scaled]


def records_of(rows: Sequence[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """Return rows with None in place of values that are not numbers."""
    return [{str(key): None if value != value else value for key, value in row.items()} for row in rows]


def runs_at_other_speeds(stretch: float | None) -> bool:
    """Return True if a `mean_run_time_stretch`, rounded to 2 decimals, is not 1; False for None."""
    return stretch is not None and abs(stretch - 1.0) >= 0.005


def summary(label: str, metrics: Values, currency: str = "") -> list[TableColumn]:
    """Return the columns of the table of a run; `-` for an undefined figure.

    If jobs did not run at full speed, the stretch of run times follows the slowdown. If the run had a capacity in
    machines, goodput, failures and slowdowns replace the figures of power. Costs of checkpoints are there with
    checkpoints, carbon and cost with a signal, in the `currency` of the price unless it is empty.
    """
    under_capacity = metrics["capacity_core_s"] is not None
    figures = figures_of(_UNDER_CAPACITY if under_capacity else _UNDER_POWER)
    if under_capacity:
        # waits for machines to come back are long
        figures = [
            replace(one, display="h", factor=1.0 / HOUR_S, decimals=2) if one.name == "mean_wait_s" else one
            for one in figures
        ]
    elif runs_at_other_speeds(metrics["mean_run_time_stretch"]):
        figures[1:1] = figures_of(_AT_OTHER_SPEEDS)
    if metrics["checkpoints"] or metrics["recoveries"]:
        figures += figures_of(_OF_CHECKPOINTS)
    figures += figures_of([name for name in _OF_SIGNALS if metrics[name] is not None], currency)
    return [TableColumn("run", "run", [label]), *columns_of(figures, [metrics], BY_SIZE)]


def table_text(columns: Sequence[TableColumn], width: int = 120) -> str:
    """Return a table as plain text, at most `width` characters wide, without trailing blanks."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, force_terminal=False, force_jupyter=False, legacy_windows=False
    )
    console.print(*tables(columns, width), sep="")
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n") + "\n"
