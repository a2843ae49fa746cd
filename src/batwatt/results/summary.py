"""The figures of several runs side by side, for a terminal or a log."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from batwatt.errors import printable
from batwatt.results.classes import S_PER_H
from batwatt.results.metrics import Metrics
from batwatt.units import J_PER_KWH

NOTHING = "-"
DIGITS = 4
"""Significant digits of the largest energy in a column; all of the column has as many decimals."""
LOTS = 1000
"""More characters than any table of figures takes."""

Rows = Sequence[tuple[str, Metrics]]


def _numbers(value: Callable[[Metrics], float | None], decimals: int = 0) -> Callable[[Sequence[Metrics]], list[str]]:
    """What prints a column of numbers."""
    return lambda runs: [_text(value(metrics), decimals) for metrics in runs]


def _energies(value: Callable[[Metrics], float | None]) -> Callable[[Sequence[Metrics]], list[str]]:
    """What prints a column of energies, given in J, in kWh."""

    def cells(runs: Sequence[Metrics]) -> list[str]:
        kwh = [_scaled(value(metrics), 1.0 / J_PER_KWH) for metrics in runs]
        largest = max((number for number in kwh if number is not None), default=0.0)
        whole = math.floor(math.log10(largest)) + 1 if largest > 0.0 else DIGITS
        return [_text(number, max(0, DIGITS - max(1, whole))) for number in kwh]

    return cells


def _kills(runs: Sequence[Metrics]) -> list[str]:
    return [f"{metrics.killed_power} + {metrics.killed_walltime}" for metrics in runs]


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _text(value: float | None, decimals: int) -> str:
    return NOTHING if value is None else f"{value:.{decimals}f}"


_Columns = tuple[tuple[str, Callable[[Sequence[Metrics]], list[str]]], ...]
"""Header (the unit last) and what prints the cells."""

_UNDER_POWER: _Columns = (
    ("slowdown\nmean", _numbers(lambda m: m.mean_slowdown, 2)),
    ("finished\njobs", _numbers(lambda m: m.jobs_finished)),
    ("re-\njected\njobs", _numbers(lambda m: m.jobs_rejected)),
    ("kills\npower +\nwalltime", _kills),
    ("violations\nsteps", _numbers(lambda m: m.violations)),
    ("work\ndone\n%", _numbers(lambda m: _scaled(m.finished_work_fraction, 100.0), 1)),
    ("energy\nkWh", _energies(lambda m: m.energy_j)),
    ("above\ncap\nkWh", _energies(lambda m: m.energy_above_cap_j)),
    ("unused\nkWh", _energies(lambda m: m.unused_j)),
)
_AT_OTHER_SPEEDS: _Columns = (
    ("stretch\nof run\ntime", _numbers(lambda m: m.mean_run_time_stretch, 2)),
    ("slowdown\n/ full\nspeed", _numbers(lambda m: m.mean_slowdown_full_speed, 2)),
)
"""What is shown next to the slowdown if jobs of a run did not run at full speed."""
_UNDER_CAPACITY: _Columns = (
    ("goodput\n%", _numbers(lambda m: _scaled(m.goodput, 100.0), 2)),
    ("failed\nruns\n%", _numbers(lambda m: _scaled(m.job_failure_rate, 100.0), 2)),
    ("killed\nruns", _numbers(lambda m: m.terminations)),
    ("finished\njobs", _numbers(lambda m: m.jobs_finished)),
    ("wait\nmean\nh", _numbers(lambda m: _scaled(m.mean_wait_s, 1.0 / S_PER_H), 2)),
    ("stretch\nmax", _numbers(lambda m: m.max_stretch, 2)),
    ("stretch\nmean", _numbers(lambda m: m.mean_stretch, 2)),
    ("aborted\n%", _numbers(lambda m: _scaled(m.aborted_volume, 100.0), 2)),
    ("completed\n%", _numbers(lambda m: _scaled(m.completed_fraction, 100.0), 1)),
)
"""What is shown if a run had a capacity in machines."""
_OF_CHECKPOINTS: _Columns = (
    ("saving\n%", _numbers(lambda m: _scaled(m.checkpoint_volume, 100.0), 2)),
    ("recovery\n%", _numbers(lambda m: _scaled(m.recovery_volume, 100.0), 2)),
    ("yield\nmin", _numbers(lambda m: m.min_yield, 2)),
)
"""What is shown too if one of them took checkpoints."""


def runs_at_other_speeds(stretch: float | None) -> bool:
    """Whether a `mean_run_time_stretch` is another than 1 as it is shown, with 2 decimals; None is not."""
    return stretch is not None and abs(stretch - 1.0) >= 0.005


def summary_table(rows: Rows) -> Table:
    """A table with one line per run (label, metrics); `-` where a figure has no meaning.

    If jobs did not run at full speed, how much longer they took stands next to the slowdown. If a run had a capacity in
    machines, goodput, failures and stretches stand in place of what is about power; what checkpoints cost is shown if
    there were any.
    """
    shown = _UNDER_CAPACITY if any(metrics.capacity_core_s is not None for _, metrics in rows) else _UNDER_POWER
    if shown is _UNDER_POWER and any(runs_at_other_speeds(metrics.mean_run_time_stretch) for _, metrics in rows):
        shown = (shown[0], *_AT_OTHER_SPEEDS, *shown[1:])
    if any(metrics.checkpoints or metrics.recoveries for _, metrics in rows):
        shown += _OF_CHECKPOINTS
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("run", overflow="fold", min_width=8)
    columns: list[list[str]] = []
    for header, cells in shown:
        table.add_column(Text(header, justify="right"), justify="right", no_wrap=True)
        columns.append(cells([metrics for _, metrics in rows]))
    for index, (label, _) in enumerate(rows):
        table.add_row(Text(printable(label)), *(column[index] for column in columns))
    return table


def summary_text(rows: Rows, width: int = 120) -> str:
    """The same table as plain text, `width` characters wide or as wide as its figures, without trailing blanks."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    table = summary_table(rows)
    console.width = max(width, console.measure(table, options=console.options.update_width(LOTS)).minimum)
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n") + "\n"
