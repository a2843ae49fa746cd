"""The quantities of statements.csv of the page on all systems, in the committed runs.

Samples are the logs of a part, as cells of one log share its jobs: a key (measure, before, after) has the mean
logarithm of the ratio after to before over the cells of a log. On the grounds of the papers samples are the instances.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from papers.cross.frames import BASE, CELL, IDEAS, OURS, SLOWDOWN, WORK, beaten, ground_rows, pivot, ratios
from papers.statements import Measured, Samples, Statement, Statistic, Verdicts, measured, verdicts

CASES = {idea: (before, after) for idea, before, after in IDEAS} | {"carbon": (BASE, "carbon")}
CARBON, UNFINISHED, FOREIGN = "carbon_g", "unfinished_percent", "beaten_by_others"
FIRST, STOPPING, STABLE, FORESIGHT = (
    "shortest first", "stopping jobs for shorter ones", "long jobs on stable machines", "six hours of foresight"
)  # fmt: skip
KEPT, PLANNED, LATER, AGAIN = (
    "checkpoint for resubmit (LWW)", "planned checkpoints for checkpoints on a kill",
    "waiting for less carbon (checkpoint)", "resubmit for lose (frugal)",
)  # fmt: skip
ANSWERS = (FORESIGHT, STABLE, KEPT, PLANNED)
"""Ideas that answer a change of power, after LWW."""


def ratio(samples: Samples, idea: str, measure: str = SLOWDOWN) -> float:
    """Return the geometric mean of a measure after to before over the logs."""
    return float(np.exp(samples(measure, *CASES[idea])))


def falls(idea: str, measure: str = SLOWDOWN) -> Statistic:
    """Return a measure before to after."""
    return lambda m: 1.0 / ratio(m, idea, measure)


def rises(idea: str, measure: str = SLOWDOWN) -> Statistic:
    """Return a measure after to before."""
    return lambda m: ratio(m, idea, measure)


def gain(idea: str, measure: str) -> Statistic:
    """Return the rise of a measure from before to after, in %."""
    return lambda m: 100.0 * (ratio(m, idea, measure) - 1.0)


def loss(idea: str, measure: str) -> Statistic:
    """Return the fall of a measure from before to after, in %."""
    return lambda m: 100.0 * (1.0 - ratio(m, idea, measure))


MEASURES: dict[int, Statistic] = {
    1: falls(STOPPING),
    2: gain(STOPPING, WORK),
    3: falls("the same, first come, first served"),
    4: falls(FIRST),
    5: gain(FIRST, WORK),
    6: lambda m: min(ratio(m, answer) for answer in ANSWERS) / ratio(m, FIRST),
    7: falls(KEPT),
    8: falls(KEPT, CARBON),
    9: falls(PLANNED),
    10: lambda m: m(UNFINISHED),
    11: falls(STABLE),
    12: loss(STABLE, WORK),
    13: rises(FORESIGHT),
    14: gain(LATER, CARBON),
    15: rises(LATER),
    16: falls("carbon", CARBON),
    17: rises("carbon"),
    18: gain(AGAIN, WORK),
    19: rises(AGAIN),
    20: lambda m: m(FOREIGN),
}
"""Number of a row -> its quantity; the rows after these are of the grounds."""


def samples_of(table: pd.DataFrame) -> Samples:
    """Return the values of each log of a part, in the order of its rows."""
    logs = list(dict.fromkeys(table["log"]))
    values = {
        (measure, *pair): np.log(ratios(table, measure, *pair)).groupby(level="log").mean()[logs].to_numpy()
        for measure in (SLOWDOWN, WORK, CARBON)
        for pair in CASES.values()
    }
    finished = (pivot(table, "jobs_finished") / pivot(table, "jobs_total"))["riskaware"]
    values[(UNFINISHED,)] = 100.0 * (1.0 - finished.groupby(level="log").mean()[logs].to_numpy())
    others = {
        place: sum("preemption" not in case for case in beaten(cell)[OURS]) for place, cell in table.groupby(CELL)
    }
    counts = pd.Series(others).groupby(level=0).mean()
    values[(FOREIGN,)] = counts[logs].to_numpy(float)
    return Samples(values)


def judged(statements: list[Statement], table: pd.DataFrame, grounds: pd.DataFrame) -> Verdicts:
    """Return the verdicts by the rows of a part; on the grounds of the papers, which have one part, by theirs."""
    return Verdicts(statements, verdicts(statements, MEASURES, samples_of(table)).measured | on_grounds(grounds))


def on_grounds(table: pd.DataFrame) -> Mapping[int, Measured]:
    """Return how much better than the best of the others `adaptive` is, in %, with the paper's objective."""
    rows = (row for row in ground_rows(table) if "for slowdown" not in row.label)
    return {
        place: measured(lambda m: m("better"), Samples({("better",): 100.0 * row.better.to_numpy()}))
        for place, row in enumerate(rows, len(MEASURES) + 1)
    }
