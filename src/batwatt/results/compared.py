"""What systems are compared by: each measure once, with its unit and meaning; and the summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.units import HOUR_S, J_PER_KWH

if TYPE_CHECKING:
    import pandas as pd

NOT_MEASURED = ("case", "scheduler", "seed")
"""Columns of the table of cases that are no measure."""


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


MEASURES = (
    ComparedMeasure("finished", "finished jobs", "finished", "jobs", 1.0, 0, "higher", "jobs that completed"),
    ComparedMeasure(
        "killed", "killed jobs", "killed", "jobs", 1.0, 0, "lower", "jobs that were killed and never completed"
    ),
    ComparedMeasure("rejected", "rejected jobs", "rejected", "jobs", 1.0, 0, "lower", "jobs that were rejected"),
    ComparedMeasure(
        "unfinished", "unfinished jobs", "unfinished", "jobs", 1.0, 0, "lower",
        "jobs that neither completed nor were killed or rejected",
    ),
    ComparedMeasure(
        "kills", "kills", "kills", "", 1.0, 0, "lower", "runs that the scheduler killed and whose work was lost"
    ),
    ComparedMeasure(
        "mean_slowdown", "mean slowdown", "slowdown\nmean", "", 1.0, 2, "lower",
        "mean of (end - submission) / run time at full speed, over the finished jobs",
    ),
    ComparedMeasure(
        "mean_wait_s", "mean wait", "wait\nmean", "min", 1.0 / 60.0, 1, "lower",
        "mean time from the submission to the start of the run that completed, over the finished jobs",
    ),
    ComparedMeasure(
        "p95_wait_s", "95th percentile of the wait", "wait\np95", "min", 1.0 / 60.0, 1, "lower",
        "95 % of the finished jobs wait no longer",
    ),
    ComparedMeasure(
        "goodput", "goodput", "goodput", "%", 100.0, 1, "higher",
        "host seconds of work of the finished jobs / host seconds that the power feeds until the last end of any case",
    ),
    ComparedMeasure(
        "energy_j", "energy", "energy", "kWh", 1.0 / J_PER_KWH, 1, "lower",
        "energy of all hosts until the last job of the case ends",
    ),
    ComparedMeasure(
        "violations", "violations", "violations", "steps", 1.0, 0, "lower",
        "steps of the envelope in which the power is above it at some time",
    ),
    ComparedMeasure(
        "energy_above_cap_j", "energy above the envelope", "above\ncap", "kWh", 1.0 / J_PER_KWH, 2, "lower",
        "energy drawn above the envelope, which another source must deliver",
    ),
    ComparedMeasure(
        "unused_j", "unused energy", "unused", "kWh", 1.0 / J_PER_KWH, 1, "lower",
        "energy that the envelope allows and no host draws, until the last job of the case ends",
    ),
    ComparedMeasure(
        "carbon_g", "carbon", "carbon", "kg", 1e-3, 2, "lower", "emissions of that energy at the carbon signal"
    ),
    ComparedMeasure("cost", "cost", "cost", "", 1.0, 2, "lower", "price of that energy"),
    ComparedMeasure("makespan_s", "makespan", "makespan", "h", 1.0 / HOUR_S, 1, "lower", "end of the last job"),
)  # fmt: skip
"""In the order of the table."""


@dataclass(frozen=True)
class CaseFacts:
    """A case: a scheduler with its options, and what of the envelope it follows: envelope, mean or none."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"
    random: bool = False
    """Whether it draws at random, so that seeds differ."""


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
