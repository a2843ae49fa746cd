"""What systems are compared by: each measure once, with its unit and meaning; and the summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.results.metrics import METRICS
from batwatt.results.summary import columns_of
from batwatt.results.tables import Column
from batwatt.units import HOUR_S, J_PER_KWH

if TYPE_CHECKING:
    import pandas as pd

NOT_MEASURED = ("case", "scheduler", "seed")
"""Columns of the table of cases that are no measure."""
LEFT_OUT = ("jobs_failed", "jobs_unfinished", "violations", "makespan_s")
"""Measures that a narrow table has no room for."""


@dataclass(frozen=True, slots=True)
class ComparedMeasure:
    """A column of the table of cases: shown as `factor` times its value, in `unit`.

    `head` is its heading in a narrow table, the unit not included; `better` is lower, higher, or nothing.
    """

    name: str
    title: str
    head: str
    unit: str
    factor: float
    decimals: int
    better: str
    meaning: str


_MEANINGS = {metric.name: metric for metric in METRICS}
_MIN = 1.0 / 60.0


def _metric(
    name: str, title: str, head: str, unit: str = "", factor: float = 1.0, decimals: int = 0
) -> ComparedMeasure:
    """A figure of a run: its meaning is that of `metrics`."""
    metric = _MEANINGS[name]
    return ComparedMeasure(name, title, head, unit, factor, decimals, metric.better or "lower", metric.meaning)


MEASURES = (
    _metric("jobs_finished", "finished jobs", "finished", "jobs"),
    _metric("jobs_rejected", "rejected jobs", "re-\njected", "jobs"),
    _metric("killed_power", "kills for power", "kills\npower"),
    _metric("killed_walltime", "kills at the walltime", "kills\nwalltime"),
    _metric("jobs_failed", "failed jobs", "failed", "jobs"),
    _metric("jobs_unfinished", "unfinished jobs", "unfinished", "jobs"),
    _metric("mean_slowdown", "slowdown", "slow-\ndown\nmean", decimals=2),
    _metric("mean_full_speed_slowdown", "slowdown at full speed", "slow-\ndown\nat full\nspeed", decimals=2),
    _metric("mean_bounded_slowdown", "bounded slowdown", "bounded\nslow-\ndown", decimals=2),
    _metric("mean_wait_s", "mean wait", "wait\nmean", "min", _MIN, 1),
    _metric("p95_wait_s", "95th percentile of the wait", "wait\np95", "min", _MIN, 1),
    _metric("finished_work_fraction", "finished work", "work\ndone", "%", 100.0, 1),
    ComparedMeasure(
        "fed_host_use", "use of fed hosts", "use of\nfed\nhosts", "%", 100.0, 1, "higher",
        "host s of work of the finished jobs / host s that the power feeds until the last job of the case ends",
    ),
    _metric("energy_j", "energy", "energy", "kWh", 1.0 / J_PER_KWH, 1),
    _metric("violations", "violations", "viola-\ntions", "steps"),
    _metric("energy_above_cap_j", "energy above the cap", "above\ncap", "kWh", 1.0 / J_PER_KWH, 2),
    _metric("unused_j", "unused energy", "unused", "kWh", 1.0 / J_PER_KWH, 1),
    _metric("carbon_g", "carbon", "carbon", "kg", 1e-3, 2),
    _metric("cost", "cost", "cost", "money", decimals=2),
    _metric("makespan_s", "makespan", "makespan", "h", 1.0 / HOUR_S, 1),
)  # fmt: skip
"""In the order of the table; the cap is what all cases are measured against, whatever they follow."""


@dataclass(frozen=True)
class CaseFacts:
    """A case: a scheduler with its options, and what of the envelope it follows: envelope, mean or none."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"
    random: bool = False
    """Whether it draws at random, so that seeds differ."""


def measures_in(currency: str) -> list[ComparedMeasure]:
    """The measures, costs in the currency of the price, if it is known."""
    return [replace(one, unit=currency) if currency and one.name == "cost" else one for one in MEASURES]


def case_columns(rows: Sequence[Mapping[Any, Any]], currency: str) -> list[Column]:
    """The columns of a narrow table of rows by case."""
    shown = tuple(
        ("\n".join(filter(None, (measure.head, measure.unit))), measure.name, measure.factor, measure.decimals)
        for measure in measures_in(currency)
        if measure.name not in LEFT_OUT and any(measure.name in row for row in rows)
    )
    return [Column("", "case", [str(row["case"]) for row in rows]), *columns_of(shown, records_of(rows))]


def records_of(rows: Sequence[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """Rows with None for what is no number."""
    return [{str(key): None if value != value else value for key, value in row.items()} for row in rows]


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """A row a case: means over seeds; of several, the standard error of the difference to the first case, too.

    `table` has a row for each case and seed. Differences are paired: of the same seed. Their standard errors have the
    column's name with `_se`.
    """
    import pandas as pd

    numbers = [name for name in table.columns if name not in NOT_MEASURED]
    means = table.groupby("case", sort=False)[numbers].mean()
    if table["seed"].nunique() < 2:
        return means
    wide = table.pivot(index="seed", columns="case", values=numbers)
    errors = {}
    for name in numbers:
        difference = wide[name].sub(wide[name][means.index[0]], axis=0)
        errors[f"{name}_se"] = difference.std(ddof=1) / np.sqrt(difference.count())
    return means.join(pd.DataFrame(errors))
