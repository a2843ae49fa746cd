"""The quantities of statements.csv of the page on all systems, in the committed runs.

Samples are the logs of a part, as cells of one log share its jobs: a key (measure, before, after) has the mean
logarithm of the ratio after to before over the cells of a log. On the grounds of the papers samples are the instances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batwatt.results.compared import mean_of, sure
from papers.statements import (
    Measured,
    Quantity,
    Samples,
    Statement,
    Statistic,
    Verdicts,
    mean,
    measured,
    over,
    verdicts,
)

PARTS = ("tune", "held")
CELL = ["log", "signal", "share"]
SAMPLE = [*CELL, "sample"]
REFERENCES = ("no limit", "constant")
"""Cases that ignore the power."""
SLOWDOWN, WORK = "mean_full_speed_slowdown", "finished_work_fraction"
"""The measures of the front."""
BASE, OURS = "varcap LWW", "adaptive + checkpoint"
OWN = ("adaptive", "least loss", "preemption")
"""Words in the names of cases with parts of `adaptive`."""
IDEAS = (
    ("shortest first", "varcap LWW", "LWW + shortest first"),
    ("checkpoint for resubmit (LWW)", "varcap LWW", "LWW + checkpoint"),
    ("shortest first, of jobs with checkpoints", "LWW + checkpoint", "LWW + checkpoint + shortest first"),
    ("largest slowdown first, likewise", "LWW + checkpoint", "LWW + checkpoint + slowdown"),
    ("six hours of foresight", "varcap LWW", "LWW + foresight"),
    ("long jobs on stable machines", "varcap LWW", "varcap long-short"),
    ("the same, of jobs with checkpoints", "LWW + checkpoint", "long-short + checkpoint"),
    ("resubmit for lose (frugal)", "powercap frugal", "frugal + resubmit"),
    ("checkpoint for resubmit (frugal)", "frugal + resubmit", "frugal + checkpoint"),
    ("planned checkpoints for checkpoints on a kill", "LWW + checkpoint", "checkpoint"),
    ("waiting for less carbon (checkpoint)", "checkpoint", "checkpoint + shift"),
    ("waiting for less carbon (LWW)", "LWW + checkpoint", "LWW + checkpoint + shift"),
    ("least loss and Smith's rule", "LWW + checkpoint + shortest first", "least loss + checkpoint + Smith"),
    ("stopping jobs for shorter ones", "LWW + checkpoint + shortest first", "shortest first + preemption"),
    ("the same, first come, first served", "LWW + checkpoint", "LWW + checkpoint + preemption"),
    ("shortest first, of jobs that are stopped", "LWW + checkpoint + preemption", "shortest first + preemption"),
    ("least loss, likewise", "shortest first + preemption", OURS),
)
"""An idea, and the cases before and after it."""
GROUNDS = {
    "powercap": ("mean_slowdown", "lower", "Fontana de Nardin et al.: mean slowdown"),
    "riskaware-borg": ("goodput_with_running", "higher", "Perotin et al., Borg weeks: goodput"),
    "riskaware-synthetic": ("goodput_with_running", "higher", "Perotin et al., synthetic jobs: goodput"),
    "varcap-mira": ("goodput_with_running", "higher", "varcap dissertation, HPC: goodput"),
    "varcap-azure": ("goodput_with_running", "higher", "varcap dissertation, cloud: goodput"),
    "checkpoint": ("goodput_with_running", "higher", "Cendrier et al.: goodput"),
}
"""Study of adaptive.yaml -> the paper's metric, its better direction, and the title of the row."""


def pivot(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a measure: a row for each sample of a cell, a column for each case."""
    return table.pivot_table(index=SAMPLE, columns="case", values=name, sort=False)


def followed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the cases that follow the power."""
    return table[~table["case"].isin(REFERENCES)]


def by_sample(cell: pd.DataFrame) -> pd.DataFrame:
    """Return slowdown and work of each case that follows the power, a row for each sample: means over seeds."""
    return followed(cell).pivot_table(index="sample", columns="case", values=[SLOWDOWN, WORK], sort=False)


def difference(wide: pd.DataFrame, metric: str, case: str, other: str) -> tuple[float, float]:
    """Return the paired difference of another case to a case in logarithms: mean over the samples, standard error.

    Values that differ by rounding are equal; one sample has no error.
    """
    paired = np.log(wide[metric][other] / wide[metric][case]).round(8)
    return float(paired.mean()), float(paired.sem())


def beaten(cell: pd.DataFrame) -> dict[str, dict[str, bool]]:
    """Return for each case the others with at least its work and at most its slowdown, and one of the two better.

    The value of another case is True if it is better by more than two standard errors.
    """
    wide = by_sample(cell)
    cases = list(dict.fromkeys(followed(cell)["case"]))
    logs = {}
    for name in (SLOWDOWN, WORK):
        values = wide[name][cases].to_numpy()
        pairs = np.log(values[:, None, :] / values[:, :, None]).round(8)
        logs[name] = pd.DataFrame(pairs.reshape(len(values), -1))
    shape = (len(cases), len(cases))
    slower, more = (logs[name].mean().to_numpy().reshape(shape) for name in (SLOWDOWN, WORK))
    slower_error, more_error = (logs[name].sem().to_numpy().reshape(shape) for name in (SLOWDOWN, WORK))
    better = (slower <= 0.0) & (more >= 0.0) & ((slower < 0.0) | (more > 0.0))
    clear = (-slower > 2.0 * slower_error) | (more > 2.0 * more_error)
    return {case: {cases[m]: bool(clear[n, m]) for m in np.flatnonzero(better[n])} for n, case in enumerate(cases)}


def by_log(logarithms: pd.Series) -> tuple[float, float]:
    """Return the mean over logs of logarithms of ratios, and half its 95 % interval (Student's t).

    Cells of one log share its jobs, so that the mean of a log is one value.
    """
    middle, error, count = mean_of(logarithms.groupby(level="log", sort=False).mean())
    return middle, error * sure(count)


def ratios(table: pd.DataFrame, name: str, before: str, after: str) -> pd.Series:
    """Return the ratio of a measure after to before: a value for each cell, the geometric mean of its samples."""
    wide = pivot(table, name)
    # no ratio for a slowdown or a wait of 0
    some = (wide[before] > 0.0) & (wide[after] > 0.0)
    return np.exp(np.log((wide[after] / wide[before])[some]).groupby(level=CELL, sort=False).mean())


@dataclass(frozen=True)
class Ground:
    """`adaptive` on the ground of a paper: the best of the others, and how much `better` it is, a share by instance."""

    title: str
    best: str
    best_mean: float
    label: str
    mean: float
    better: pd.Series


def ground_rows(table: pd.DataFrame) -> Iterator[Ground]:
    """Yield each case of `adaptive` with the best of the others in the mean, by paper and cost of a checkpoint."""
    for study, (metric, better, title) in GROUNDS.items():
        rows = table[table["study"] == study]
        inputs = [name for name in ("workload", "envelope", "capacity") if name in rows and rows[name].notna().any()]
        wide = rows.pivot_table(index=inputs, columns="label", values=metric, sort=False)
        for cost in sorted({label.partition(" C=")[2] for label in wide}, key=lambda text: float(text or 0)):
            labels = [label for label in wide if label.partition(" C=")[2] == cost]
            means = wide[[label for label in labels if not label.startswith("adaptive")]].mean()
            best = means.idxmin() if better == "lower" else means.idxmax()
            for label in [label for label in labels if label.startswith("adaptive")]:
                relative = (wide[label] / wide[best] - 1.0).dropna()
                yield Ground(
                    title + (f", C = R = {cost} s" if cost else ""), best, means[best], label.partition(" C=")[0],
                    wide[label].mean(), relative * (-1.0 if better == "lower" else 1.0),
                )  # fmt: skip


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


def ratio(idea: str, measure: str = SLOWDOWN) -> Quantity:
    """Return the geometric mean of a measure after to before over the logs."""
    return Quantity(lambda m: np.exp(m(measure, *CASES[idea])))


MEASURES: dict[int, Statistic] = {
    1: 1.0 / ratio(STOPPING),
    2: 100.0 * (ratio(STOPPING, WORK) - 1.0),
    3: 1.0 / ratio("the same, first come, first served"),
    4: 1.0 / ratio(FIRST),
    5: 100.0 * (ratio(FIRST, WORK) - 1.0),
    6: over(min, map(ratio, ANSWERS)) / ratio(FIRST),
    7: 1.0 / ratio(KEPT),
    8: 1.0 / ratio(KEPT, CARBON),
    9: 1.0 / ratio(PLANNED),
    10: mean(UNFINISHED),
    11: 1.0 / ratio(STABLE),
    12: 100.0 * (1.0 - ratio(STABLE, WORK)),
    13: ratio(FORESIGHT),
    14: 100.0 * (ratio(LATER, CARBON) - 1.0),
    15: ratio(LATER),
    16: 1.0 / ratio("carbon", CARBON),
    17: ratio("carbon"),
    18: 100.0 * (ratio(AGAIN, WORK) - 1.0),
    19: ratio(AGAIN),
    20: mean(FOREIGN),
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
        place: measured(mean("better"), Samples({("better",): 100.0 * row.better.to_numpy()}))
        for place, row in enumerate(rows, len(MEASURES) + 1)
    }
