"""The figures of several runs side by side, for a terminal or a log."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from batwatt.results.metrics import Metrics

J_PER_KWH = 3.6e6
NOTHING = "-"
DIGITS = 4
"""Significant digits of the largest energy in a column; all of the column has as many decimals."""
LOTS = 1000
"""More characters than any table of figures takes."""

Rows = Sequence[tuple[str, Metrics]]


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of the table: its header (title above unit), its figure, and its decimals (None: `DIGITS` digits)."""

    title: str
    unit: str
    value: Callable[[Metrics], float | None]
    decimals: int | None = None


_FIELDS = (
    _Field("slowdown", "mean", lambda m: m.mean_slowdown, 2),
    _Field("finished", "jobs", lambda m: m.jobs_finished, 0),
    _Field("kills", "power +\nwalltime", lambda m: m.killed_power + m.killed_walltime, 0),
    _Field("violations", "steps", lambda m: m.violations, 0),
    _Field("work\ndone", "%", lambda m: _scaled(m.finished_work_fraction, 100.0), 1),
    _Field("energy", "kWh", lambda m: _scaled(m.energy_j, 1.0 / J_PER_KWH)),
    _Field("above\ncap", "kWh", lambda m: _scaled(m.energy_above_cap_j, 1.0 / J_PER_KWH)),
    _Field("unused", "kWh", lambda m: _scaled(m.unused_j, 1.0 / J_PER_KWH)),
)


def summary_table(rows: Rows) -> Table:
    """A table with one line per run (label, metrics); `-` where a figure has no meaning."""
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("run", overflow="fold", min_width=8)
    columns: list[list[str]] = []
    for field in _FIELDS:
        table.add_column(Text(f"{field.title}\n{field.unit}", justify="right"), justify="right", no_wrap=True)
        columns.append(_cells(field, [metrics for _, metrics in rows]))
    for index, (label, _) in enumerate(rows):
        table.add_row(Text(label), *(cells[index] for cells in columns))
    return table


def summary_text(rows: Rows, width: int = 120) -> str:
    """The same table as plain text, `width` characters wide or as wide as its figures, without trailing blanks."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    table = summary_table(rows)
    console.width = max(width, console.measure(table, options=console.options.update_width(LOTS)).minimum)
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n") + "\n"


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _cells(field: _Field, runs: Sequence[Metrics]) -> list[str]:
    """The column as texts; kills show both of their kinds."""
    values = [field.value(metrics) for metrics in runs]
    if field.title == "kills":
        return [f"{m.killed_power} + {m.killed_walltime}" for m in runs]
    decimals = field.decimals
    if decimals is None:
        largest = max((abs(value) for value in values if value is not None), default=0.0)
        whole = math.floor(math.log10(largest)) + 1 if largest > 0.0 else DIGITS
        decimals = min(DIGITS, max(0, DIGITS - max(1, whole)))
    return [NOTHING if value is None else f"{value:.{decimals}f}" for value in values]
