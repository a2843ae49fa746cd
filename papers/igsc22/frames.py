"""The two files of numbers for the powercap paper's page, as data frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

SLOWDOWN, KILLS, VIOLATIONS, WORK = "mean_slowdown", "kills", "violations", "finished_work_percent"
FINISHED, WAIT, WALLTIME_KILLS = "jobs_finished", "mean_wait_s", "killed_walltime"
OPTIMUM = "Optimum"
ALL = "all"
"""Value in place of an envelope for the mean over all envelopes."""
TIE = 2.0
"""Least mean of differences, in standard errors, that is not a tie."""


def with_sums(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with their kills, and their finished work in %."""
    kills, work = runs["killed_power"] + runs["killed_walltime"], 100.0 * runs["finished_work_fraction"].astype(float)
    return runs.assign(**{KILLS: kills, WORK: work})


@dataclass(frozen=True)
class Numbers:
    """Means by study, algorithm and envelope (`summary`), and single runs of some algorithms (`instances`)."""

    summary: pd.DataFrame
    instances: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Numbers:
        """Read the files of a folder."""
        runs = pd.read_csv(folder / "instances.csv")
        return cls(pd.read_csv(folder / "summary.csv"), with_sums(runs))

    def means(self, study: str, envelope: str = ALL) -> pd.DataFrame:
        """Return the means of a study under an envelope, by label."""
        rows = self.summary[(self.summary["study"] == study) & (self.summary["envelope"] == envelope)]
        return rows.set_index("label")

    def mean(self, label: str, column: str, study: str = "workloads", envelope: str = ALL) -> float:
        """Return a mean of one algorithm."""
        return float(self.means(study, envelope).loc[label, column])

    def runs(self, study: str) -> pd.DataFrame:
        """Return the single runs of a study."""
        return self.instances[self.instances["study"] == study]

    def paired(self, study: str, envelope: str, one: str, other: str) -> pd.DataFrame:
        """Return the differences of two algorithms on the same workloads, by column."""
        runs = self.runs(study)
        here = runs[runs["envelope"] == envelope].set_index("workload")
        columns = [SLOWDOWN, KILLS, VIOLATIONS, WORK]
        first, second = (here.loc[here["label"] == label, columns] for label in (one, other))
        return (first - second).dropna()


def is_tie(differences: pd.Series) -> bool:
    """Return True if the mean of paired differences is 0 or less than `TIE` standard errors from it."""
    mean = differences.mean()
    return bool(mean == 0.0 or abs(mean) < TIE * differences.sem())
