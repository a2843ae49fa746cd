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

NOT_MEASURED = ("case", "scheduler", "seed")
"""Columns of the table of cases that are no figure."""
LEFT_OUT = ("jobs_failed", "jobs_unfinished", "violations", "makespan_s")
"""Figures that a narrow table has no room for."""


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
    names = [name for name in COMPARED if name not in LEFT_OUT and any(name in row for row in rows)]
    labels = Column("", "case", [str(row["case"]) for row in rows])
    return [labels, *columns_of(figures_of(names, currency), records_of(rows))]


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
