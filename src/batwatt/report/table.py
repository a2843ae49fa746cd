"""The table of a campaign, as the report reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.errors import InputError, extra
from batwatt.results.figures import FIGURES, METRICS, figures_of
from batwatt.results.writers import file_of

TABLE = "table.parquet"
DONE = "done"
OPTIMUM_SCHEDULER = "optimum"
"""The scheduler of the rows that the others are measured against."""
INSTANCE = ("platform", "workload", "envelope", "capacity")
"""What makes two runs comparable: they had the same task."""
VARIES = ("cap_range", "cap_step", "cap_period_s", "cap_mean", "cap_headroom", "cap_seed", "cap_saved", "cap_gained")
"""What a capacity is made of; the last two: shares by which it costs less and is larger than a fixed one."""
LATER_METRICS = ("job_failure_rate", "mean_wait_s", "terminations", "migrations", "slowdown_rate", *(
    f"{name}_{length}{unit}" for name, unit in (
        ("goodput", ""), ("job_failure_rate", ""), ("mean_wait", "_s"), ("terminations", ""))
    for length in ("short", "long")
), "checkpoint_volume", "recovery_volume", "checkpoints", "recoveries", "min_yield", "mean_yield",
    "mean_run_time_stretch", "mean_full_speed_slowdown", "mean_bounded_slowdown", "p95_wait_s")  # fmt: skip
LATER = ("capacity", "strategy", "cap_structure", *VARIES, *LATER_METRICS)
"""Columns that tables of older versions lack: empty there."""
TEXTS = ("study", "label", *INSTANCE, "scheduler", "options", "engine", "backfilling", "order", "response", "strategy",
         "cap_structure", "status", "error", "key")  # fmt: skip
SAVED = (*(figure.name for figure in METRICS), *VARIES, "lower_bound", "gap")
NUMBERS = (*SAVED, "kills")
"""Columns of numbers: those of the table, and the sums of such."""
COLUMNS = (*TEXTS, "seed", *SAVED, "proven_optimal")
"""What the report needs of the table; other columns are ignored."""


POWERS = tuple(figures_of(("mean_slowdown", "kills", "violations", "finished_work_fraction")))
"""Figures of a report where no run has a goodput; the conclusion has the first with values."""
GOODPUTS = tuple(figures_of(("goodput", "aborted_volume", "mean_wait_s", "max_full_speed_slowdown")))
"""Figures of a report with runs on machines that come and go."""


@dataclass(frozen=True)
class SavedCampaign:
    """A folder of results and its table, with the columns that are sums of others.

    An instance without an envelope or a capacity has the empty text there.
    """

    folder: Path
    frame: pd.DataFrame

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.resolve().name

    @cached_property
    def done(self) -> pd.DataFrame:
        """The rows of runs that ended well."""
        return self.frame[self.frame["status"] == DONE]

    @cached_property
    def failed(self) -> pd.DataFrame:
        """The rows of all others."""
        return self.frame[self.frame["status"] != DONE]

    @cached_property
    def with_goodput(self) -> pd.DataFrame:
        """The rows of runs that ended well on machines that come and go: without core seconds there is no goodput."""
        return self.done[self.done["capacity_core_s"] > 0.0]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Every algorithm, in the order of the table."""
        return tuple(self.frame["label"].unique().tolist())

    @cached_property
    def studies(self) -> tuple[str, ...]:
        """Every study, in the order of the table."""
        return tuple(self.frame["study"].unique().tolist())

    @cached_property
    def reference(self) -> str | None:
        """The label of the optimum; None if there is none in this campaign."""
        labels = self.frame.loc[self.frame["scheduler"] == OPTIMUM_SCHEDULER, "label"]
        return None if labels.empty else str(labels.iloc[0])

    def study(self, name: str) -> pd.DataFrame:
        """The rows of a study that ended well."""
        return self.done[self.done["study"] == name]

    def per_instance(self, study: str) -> pd.DataFrame:
        """A row per label and instance of a study: the mean over the runs that differ in something else (the seed)."""
        return self.study(study).groupby(["label", *INSTANCE], sort=False)[[*NUMBERS]].mean().reset_index()

    def prefix(self, key: str) -> Path:
        """The prefix of the files of a run, if they were kept."""
        return self.folder / "runs" / key / "run"

    @cached_property
    def saved(self) -> pd.DataFrame:
        """The rows of the runs whose files are there, with their energy; one per label and instance."""
        there = [
            all(file_of(self.prefix(key), stem).is_file() for stem in ("jobs", "power", "consumed_energy"))
            for key in self.done["key"].tolist()
        ]
        return self.done[np.array(there, dtype=bool)].drop_duplicates(["label", *INSTANCE])


def read_campaign(folder: Path | str) -> SavedCampaign:
    """The campaign whose results are in a folder. Raises InputError if it is none, not run yet, or of another form."""
    with extra("campaign"):
        import pyarrow
    folder = Path(folder)
    path = folder / TABLE
    if not path.is_file():
        run_it = "run: batwatt campaign run NAME.yaml"
        if not folder.is_dir():
            raise InputError(folder, "no such folder", f"give the folder of a campaign's results, or {run_it}")
        if not any((folder / name).exists() for name in ("campaign.yaml", "cells")):
            raise InputError(folder, "is not a folder of results", f"give results/NAME, or {run_it}")
        raise InputError(folder, f"no {TABLE} yet", run_it)
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(path, f"cannot be read ({error})", "run the campaign again") from None
    missing = [name for name in COLUMNS if name not in frame.columns and name not in LATER]
    if missing:
        problem = f"no column {missing[0]!r}: it was written by another version of batwatt"
        raise InputError(path, problem, "run the campaign again")
    if frame.empty:
        raise InputError(path, "has no row", "declare at least one run")
    return SavedCampaign(folder, _tidy(frame.reindex(columns=list(COLUMNS)), path))


def _tidy(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Texts as texts (empty where null), figures as floats (NaN where null), and the figures that follow."""
    frame = frame.reset_index(drop=True)
    for name in TEXTS:
        column = frame[name].astype(object)
        frame[name] = column.where(column.notna(), "").astype(str)
    try:
        for name in SAVED:
            frame[name] = pd.to_numeric(frame[name]).astype("float64")
    except (TypeError, ValueError) as error:
        raise InputError(path, f"column {name!r} holds something that is no number ({error})",
                         "run the campaign again") from None  # fmt: skip
    frame["kills"] = sum(frame[part] for part in FIGURES["kills"].parts)
    return frame
