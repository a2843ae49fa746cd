"""What systems are compared by, and the summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.results.figures import figures_of
from batwatt.results.summary import columns_of, records_of
from batwatt.results.tables import Column

if TYPE_CHECKING:
    import pandas as pd

NOT_MEASURED = ("case", "scheduler", "window", "seed")
"""Columns of the table of cases that are no figure."""
NARROW = (
    "mean_bounded_slowdown", "mean_slowdown", "mean_full_speed_slowdown", "mean_wait_s", "jobs_finished",
    "jobs_rejected", "kills", "violations", "finished_work_fraction", "energy_j", "energy_above_cap_j", "unused_j",
    "carbon_g", "cost",
)  # fmt: skip
"""The figures of a table on a terminal."""
COMPARED = (
    "jobs_finished", "jobs_rejected", "killed_power", "killed_walltime", "jobs_failed", "jobs_unfinished",
    "mean_slowdown", "mean_full_speed_slowdown", "mean_bounded_slowdown", "mean_wait_s", "p95_wait_s",
    "finished_work_fraction", "fed_host_use", "energy_j", "violations", "energy_above_cap_j", "unused_j", "carbon_g",
    "cost", "makespan_s",
)  # fmt: skip
"""The figures of the table of cases; the cap is what all cases are measured against, whatever they follow."""


@dataclass(frozen=True)
class CaseFacts:
    """A case: a scheduler with its options, and what of the envelope it follows: envelope, mean or none."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"
    random: bool = False
    """Whether it draws at random, so that seeds differ."""


def case_columns(rows: Sequence[Mapping[Any, Any]], currency: str) -> list[Column]:
    """The columns of a narrow table of rows by case."""
    figures = [
        figure for figure in figures_of(NARROW, currency)
        if all(name in row for name in figure.parts or (figure.name,) for row in rows)
    ]  # fmt: skip
    labels = Column("case", "case", [str(row["case"]) for row in rows])
    return [labels, *columns_of(figures, records_of(rows))]


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """A row a case: means over windows and seeds; of several, the standard error of the difference to the first case.

    `table` has a row for each case, window and seed. Differences are paired: of the same window if there are several,
    each a mean over seeds, else of the same seed. Their standard errors have the column's name with `_se`.
    """
    import pandas as pd

    numbers = [name for name in table.columns if name not in NOT_MEASURED]
    if samples_of(table) < 2:
        return table.set_index("case")[numbers].apply(pd.to_numeric)
    wide = {name: by_sample(table, name) for name in numbers}
    means = pd.DataFrame({name: values.mean() for name, values in wide.items()}).reindex(table["case"].unique())
    errors: dict[str, Any] = {}
    for name, values in wide.items():
        difference = values.sub(values[means.index[0]], axis=0)
        errors[f"{name}_se"] = difference.std(ddof=1) / np.sqrt(difference.count())
    return means.join(pd.DataFrame(errors)).round(6).rename_axis("case")


def by_sample(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A figure by sample and case: a sample is a window if there are several, each a mean over seeds, else a seed."""
    pair = "window" if table["window"].nunique() > 1 else "seed"
    return table.pivot_table(index=pair, columns="case", values=name, aggfunc="mean", sort=False, dropna=False)


def samples_of(table: pd.DataFrame) -> int:
    """How many samples the table has of each case."""
    windows = int(table["window"].nunique())
    return windows if windows > 1 else int(table["seed"].nunique())
