"""The figures of several runs side by side, for a terminal or a log."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from batwatt.results.job_power import JobPowerFigures
from batwatt.results.metrics import Metrics
from batwatt.results.tables import Column, tables
from batwatt.units import HOUR_S, J_PER_KWH

NOTHING = "-"
DIGITS = 4
"""Significant digits of the largest energy in a column; all of the column has as many decimals."""

Rows = Sequence[tuple[str, Metrics]]
Columns = tuple[tuple[str, str, float, int], ...]
"""Header (the unit last), metric, by what it is multiplied, and decimals; -1 for `DIGITS`."""

BOUNDED = ("bounded\nslow-\ndown", "mean_bounded_slowdown", 1.0, 2)
FULL_SPEED = ("slow-\ndown\nat full\nspeed", "mean_full_speed_slowdown", 1.0, 2)
_UNDER_POWER: Columns = (
    ("slow-\ndown\nmean", "mean_slowdown", 1.0, 2),
    BOUNDED,
    ("finished\njobs", "jobs_finished", 1.0, 0),
    ("re-\njected\njobs", "jobs_rejected", 1.0, 0),
    ("kills\npower +\nwalltime", "killed_power killed_walltime", 1.0, 0),
    ("viola-\ntions\nsteps", "violations", 1.0, 0),
    ("work\ndone\n%", "finished_work_fraction", 100.0, 1),
    ("energy\nkWh", "energy_j", 1.0 / J_PER_KWH, -1),
    ("above\ncap\nkWh", "energy_above_cap_j", 1.0 / J_PER_KWH, -1),
    ("unused\nkWh", "unused_j", 1.0 / J_PER_KWH, -1),
)
_AT_OTHER_SPEEDS: Columns = (
    ("stretch\nof run\ntime", "mean_run_time_stretch", 1.0, 2),
    FULL_SPEED,
)
"""What is shown next to the slowdown if jobs of a run did not run at full speed."""
_UNDER_CAPACITY: Columns = (
    ("goodput\n%", "goodput", 100.0, 2),
    ("failed\nruns\n%", "job_failure_rate", 100.0, 2),
    ("killed\nruns", "terminations", 1.0, 0),
    ("finished\njobs", "jobs_finished", 1.0, 0),
    ("wait\nmean\nh", "mean_wait_s", 1.0 / HOUR_S, 2),
    BOUNDED,
    FULL_SPEED,
    ("max\nslow-\ndown\nat full\nspeed", "max_full_speed_slowdown", 1.0, 2),
    ("aborted\n%", "aborted_volume", 100.0, 2),
    ("completed\n%", "completed_fraction", 100.0, 1),
)
"""What is shown if a run had a capacity in machines."""
_OF_SIGNALS: Columns = (("carbon\nkg", "carbon_g", 1e-3, -1), ("cost\nmoney", "cost", 1.0, -1))
"""What is shown too if a run had a carbon signal, or a price."""
_OF_CHECKPOINTS: Columns = (
    ("saving\n%", "checkpoint_volume", 100.0, 2),
    ("recovery\n%", "recovery_volume", 100.0, 2),
    ("yield\nmin", "min_yield", 1.0, 2),
)
"""What is shown too if one of them took checkpoints."""


def columns_of(shown: Columns, rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Columns of numbers of rows by name; those of several metrics are joined by `+`."""
    return [Column(head, names, _cells(rows, names, factor, decimals)) for head, names, factor, decimals in shown]


def _cells(rows: Sequence[Mapping[str, Any]], names: str, factor: float, decimals: int) -> list[str]:
    parts = []
    for name in names.split():
        values = [None if row[name] is None else row[name] * factor for row in rows]
        largest = max((value for value in values if value is not None), default=0.0)
        whole = math.floor(math.log10(largest)) + 1 if largest > 0.0 else DIGITS
        places = max(0, DIGITS - max(1, whole)) if decimals < 0 else decimals
        parts.append([NOTHING if value is None else f"{value:.{places}f}" for value in values])
    return [" + ".join(texts) for texts in zip(*parts, strict=True)]


def runs_at_other_speeds(stretch: float | None) -> bool:
    """Whether a `mean_run_time_stretch` is another than 1 as it is shown, with 2 decimals; None is not."""
    return stretch is not None and abs(stretch - 1.0) >= 0.005


def summary(rows: Rows, currency: str = "") -> list[Column]:
    """The columns of a table with one line per run (label, metrics); `-` where a figure has no meaning.

    If jobs did not run at full speed, how much longer they took stands next to the slowdown. If a run had a capacity in
    machines, goodput, failures and slowdowns stand in place of what is about power; what checkpoints cost is shown if
    there were any, carbon and cost with a signal, in the `currency` of the price if it is known.
    """
    shown = _UNDER_CAPACITY if any(metrics.capacity_core_s is not None for _, metrics in rows) else _UNDER_POWER
    if shown is _UNDER_POWER and any(runs_at_other_speeds(metrics.mean_run_time_stretch) for _, metrics in rows):
        shown = (shown[0], *_AT_OTHER_SPEEDS, *shown[1:])
    if any(metrics.checkpoints or metrics.recoveries for _, metrics in rows):
        shown += _OF_CHECKPOINTS
    for head, name, factor, decimals in _OF_SIGNALS:
        if any(getattr(metrics, name) is not None for _, metrics in rows):
            shown += ((head.replace("money", currency or "money"), name, factor, decimals),)
    labels = Column("run", "run", [label for label, _ in rows])
    return [labels, *columns_of(shown, [asdict(metrics) for _, metrics in rows])]


def summary_text(rows: Rows, width: int = 120) -> str:
    """The same table as plain text, at most `width` characters wide, without trailing blanks."""
    return table_text(summary(rows), width)


def table_text(columns: Sequence[Column], width: int = 120) -> str:
    """A table as plain text, at most `width` characters wide, without trailing blanks."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(*tables(columns, width), sep="")
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n") + "\n"


def job_power_columns(label: str, found: JobPowerFigures) -> list[Column]:
    """The figures of a run whose jobs draw different power."""
    shown = (
        ("above\ncap\n% of time", "share_above", 100.0 * found.share_above, 2),
        ("above\ncap\nkWh", "above_j", found.above_j / J_PER_KWH, 2),
        ("power\nmean\nkW", "mean_w", found.mean_w / 1e3, 2),
        ("power\nmax\nkW", "max_w", found.max_w / 1e3, 2),
        ("turn-\naround\nmean h", "mean_turnaround_s", found.mean_turnaround_s / HOUR_S, 3),
        ("finished\njobs", "completed", found.completed, 0),
        ("kills\npower", "killed_power", found.killed_power, 0),
    )
    texts = (NOTHING if math.isnan(value) else f"{value:.{decimals}f}" for _, _, value, decimals in shown)
    columns = [Column(head, key, [text]) for (head, key, _, _), text in zip(shown, texts, strict=True)]
    return [Column("run", "prefix", [label]), *columns]
