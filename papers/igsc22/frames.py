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

    def runs(self, study: str) -> pd.DataFrame:
        """Return the single runs of a study."""
        return self.instances[self.instances["study"] == study]
