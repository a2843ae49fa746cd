"""Columns of a comparison of cases, and its summary over samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.results.figures import figures_of
from batwatt.results.summary import columns_of, records_of
from batwatt.results.tables import TableColumn

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
"""Figures of the table of cases; the cap of all cases is the envelope, whatever limit they follow."""


@dataclass(frozen=True)
class CaseFacts:
    """A case: a scheduler, its options, and the `limit` that it follows: envelope, mean or none."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"
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
