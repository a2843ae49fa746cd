"""Columns of a comparison of cases, and means over samples with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.results.figures import figures_of
from batwatt.results.tables import TableColumn, columns_of, records_of

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = ("platform", "workload", "envelope", "capacity", "window", "seed")
"""Columns of a table of cases that name a sample; cases are paired by them."""
NOT_MEASURED = ("case", "scheduler", *SAMPLE)
"""Columns of a table of cases other than figures."""
NARROW = (
    "mean_bounded_slowdown", "mean_slowdown", "mean_full_speed_slowdown", "mean_wait_s", "jobs_finished",
    "jobs_rejected", "kills", "violations", "finished_work_fraction", "energy_j", "energy_above_cap_j", "unused_j",
    "carbon_g", "cost",
)  # fmt: skip
"""The figures of a table on a terminal."""
COMPARED = (
    "jobs_finished", "jobs_rejected", "killed_power", "killed_walltime", "jobs_failed", "jobs_unfinished",
    "mean_slowdown", "mean_full_speed_slowdown", "mean_bounded_slowdown", "mean_wait_s", "p95_wait_s",
    "finished_work_fraction", "work_per_fed_host", "energy_j", "violations", "energy_above_cap_j", "unused_j",
    "carbon_g", "cost", "makespan_s",
)  # fmt: skip
"""Figures of the table of cases; the cap of all cases is the envelope, whatever part of it they follow."""
GOALS = {"wait": "mean_wait_s", "slowdown": "mean_bounded_slowdown", "energy": "energy_j", "carbon": "carbon_g",
         "cost": "cost"}  # fmt: skip
"""Goal of a verdict -> the figure of which the best case has least."""
QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
             2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)  # fmt: skip
"""Student's t, two-sided at 95 %, for 1, 2, ... degrees of freedom; for more 2.0 is used."""


@dataclass(frozen=True)
class CaseFacts:
    """A case: a scheduler, its options, and what it follows of the envelope (`follow`): envelope, mean or none."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    follow: str = "envelope"
    random: bool = False
    """Whether the scheduler draws random numbers, so that results differ between seeds."""


def case_columns(rows: Sequence[Mapping[Any, Any]], currency: str) -> list[TableColumn]:
    """Return the columns of a narrow table of rows by case, costs in `currency`."""
    figures = [
        figure for figure in figures_of(NARROW, currency)
        if all(name in row for name in figure.parts or (figure.name,) for row in rows)
    ]  # fmt: skip
    labels = TableColumn("case", "case", [str(row["case"]) for row in rows])
    return [labels, *columns_of(figures, records_of(rows))]


def sample_of(table: pd.DataFrame) -> list[str]:
    """Return the columns of a table of cases that name a sample."""
    return [name for name in SAMPLE if name in table]


def sampled(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each case and sample: windows, each with the means over its seeds, if there are several."""
    if table["window"].nunique() < 2:
        return table
    means = table.groupby(["case", "scheduler", "window"], sort=False).mean(numeric_only=True)
    return means.drop(columns="seed").reset_index()


def known_mean(values: pd.Series[Any]) -> float:
    """Return the mean over samples; NaN if one has no value, such as a slowdown where no job finished."""
    return float(values.mean(skipna=False))


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over samples, a row for each case, and with several samples the errors of differences.

    `table` has a row for each case, window and seed. Differences are to the first case, paired by sample
    (`sampled`). Their standard errors have the column's name with `_se`.
    """
    import pandas as pd

    numbers = [name for name in table.columns if name not in NOT_MEASURED]
    table = sampled(table)
    if len(table[sample_of(table)].drop_duplicates()) < 2:
        return table.set_index("case")[numbers].apply(pd.to_numeric)
    means = table.groupby("case", sort=False)[numbers].agg(known_mean)
    wide = table.pivot(index=sample_of(table), columns="case", values=numbers)
    errors: dict[str, Any] = {}
    for name in numbers:
        difference = wide[name].sub(wide[name][means.index[0]], axis=0)
        errors[f"{name}_se"] = difference.std(ddof=1) / np.sqrt(difference.count())
    return means.join(pd.DataFrame(errors)).round(6).rename_axis("case")


def mean_of(values: pd.Series[Any]) -> tuple[float, float, int]:
    """Return the mean, its standard error (NaN of one value) and the number of values."""
    count = len(values)
    error = float(values.std()) / math.sqrt(count) if count > 1 else math.nan
    return float(values.mean()), error, count


def sure(count: int) -> float:
    """Return half the width of the 95 % interval of a mean of `count` values, in standard errors."""
    return QUANTILES[count - 2] if 2 <= count < len(QUANTILES) + 2 else 2.0


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences of a measure, first - second, and its standard error, NaN of one instance."""

    mean: float
    error: float
    instances: int

    @property
    def counts(self) -> bool:
        """True if 0 lies outside the 95 % interval; False for one instance."""
        return self.instances > 1 and abs(self.mean) > sure(self.instances) * self.error
