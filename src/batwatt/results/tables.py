"""Tables of figures for a terminal or a log; columns that do not fit go into another table with the first column."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from batwatt.errors import printable
from batwatt.results.figures import Figure, Values, figures_of
from batwatt.units import HOUR_S

if TYPE_CHECKING:
    from rich.table import Table

LABEL, TEXT = 16, 24
"""Least widths in characters of a long label and a long text before they are wrapped."""
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


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; the first names the rows.

    `head` may have several lines, the unit last; `keys`, separated by blanks, are the keys of a record for its
    `cells`. A text is aligned to the left, and wrapped.
    """

    head: str
    keys: str
    cells: Sequence[str]
    is_text: bool = False

    @property
    def width(self) -> int:
        """Characters of the longest line."""
        from rich.cells import cell_len

        return max(map(cell_len, (*self.head.split("\n"), *map(printable, self.cells))))


def tables(columns: Sequence[TableColumn], width: int) -> Iterator[Table]:
    """Yield the tables of all columns, each at most `width` characters wide, one below the other.

    Labels and texts are wrapped to fit. No number is cut: a table is wider only if a number does not fit next to a
    label of `LABEL` characters, or of half of the width.
    """
    label, *others = columns
    least = min(label.width, LABEL, max(1, width // 2))
    block: list[TableColumn] = []
    room = width - 2 - least
    for column in others:
        needed = 1 + _least(column)
        if block and needed > room:
            yield _table(label, block, width)
            block, room = [], width - 2 - least
        block.append(column)
        # a text next to the label has a gap
        room -= needed + (column.is_text and len(block) == 1)
    yield _table(label, block, width)


def _least(column: TableColumn) -> int:
    return min(column.width, TEXT) if column.is_text else column.width


def _table(label: TableColumn, others: Sequence[TableColumn], width: int) -> Table:
    """Return a table in which the label, then the texts, take the width that numbers leave."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    gap = int(others[0].is_text)
    spare = width - 2 - gap - len(others) - sum(map(_least, others))
    first = min(label.width, max(spare, min(LABEL, width // 2)))
    spare -= first
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_header=any(column.head for column in (label, *others)))
    table.add_column(Text(label.head), width=first + gap, overflow="fold", style="" if table.show_header else "bold")
    for column in others:
        wide = column.width if not column.is_text else min(column.width, _least(column) + max(0, spare))
        spare -= wide - _least(column)
        side: Literal["left", "right"] = "left" if column.is_text else "right"
        table.add_column(
            Text(column.head, justify=side),
            justify=side,
            width=max(1, min(wide, width - 3 - first - gap)),
            no_wrap=not column.is_text,
            overflow="fold",
        )
    for row in zip(*(column.cells for column in (label, *others)), strict=True):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


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
