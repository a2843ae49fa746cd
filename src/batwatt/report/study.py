"""The results of a study: its table, and the cases of each comparison."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.errors import InputError, extra
from batwatt.model.timeline import Timeline
from batwatt.report.cases import ComparedCases
from batwatt.report.verdict import verdict_of
from batwatt.results.compared import CaseFacts
from batwatt.results.drawing import Look
from batwatt.results.figures import FIGURES, METRICS, figures_of
from batwatt.results.power import power_series
from batwatt.results.run_files import check_files, file_of, table

TABLE = "table.parquet"
DONE = "done"
OPTIMUM = "optimum"
"""The scheduler whose cases are a bound."""
INSTANCE = ("platform", "workload", "envelope", "capacity")
"""Columns of the task of a run; runs with the same task are comparable."""
BY_NUMBER = ("cap_range", "cap_period_s", "cap_step", "cap_headroom")
"""Properties of capacities that figures are drawn over."""
TEXTS = ("comparison", "case", *INSTANCE, "scheduler", "options", "follow", "engine", "backfilling", "order",
         "response", "strategy", "cap_structure", "status", "error", "rejected_because", "key")  # fmt: skip
SAVED = (*(figure.name for figure in METRICS), *BY_NUMBER, "lower_bound", "gap")
NUMBERS = (*SAVED, "kills")
"""Columns of numbers: those of the table, and the sums of such."""
COLUMNS = (*TEXTS, "seed", *SAVED, "proven_optimal")
"""Columns of the table that the report reads; others are ignored, and those that an older version lacks are empty."""
REQUIRED = ("comparison", "case", "scheduler", "status")
"""Columns of every version."""

POWERS = tuple(figures_of(("mean_slowdown", "kills", "violations", "finished_work_fraction", "mean_wait_s")))
"""Figures of a page where no run has a goodput; cases are rated by the first."""
GOODPUTS = tuple(figures_of(("goodput", "aborted_volume", "mean_wait_s", "max_full_speed_slowdown")))
"""Figures of a page with runs on machines that come and go."""
BY_NAME = {"envelope": "", "capacity": r"-s?\d+$", "platform": "", "workload": r"-\d+$"}
"""Part of an instance -> the end of its name that only numbers repetitions."""
APART = 6
"""Up to this many names of a part have columns of their own; of more there are means only."""
FIXED = "constant"
"""Structure of a capacity that does not vary: its range is 0."""
MOST_TRACES = 8
"""Cases whose power over time is drawn, at most."""
UNRECORDED = "of a cause that was not recorded"
"""Cause of the rejections of a run whose table has none."""


@dataclass(frozen=True)
class SavedStudy:
    """A folder of results and its table, with the columns that are sums of others.

    `table` is the file as it is. In `frame` an instance without an envelope or a capacity has the empty text there.
    """

    folder: Path
    table: pd.DataFrame
    frame: pd.DataFrame

    @cached_property
    def done(self) -> pd.DataFrame:
        """Rows of runs that have not failed."""
        return self.frame[self.frame["status"] == DONE]

    @cached_property
    def failed(self) -> pd.DataFrame:
        """Rows of runs that have failed."""
        return self.frame[self.frame["status"] != DONE]

    @cached_property
    def with_goodput(self) -> pd.DataFrame:
        """Rows of runs on machines that come and go that have not failed; without core seconds there is no goodput."""
        return self.done[self.done["capacity_core_s"] > 0.0]

    @property
    def measured(self) -> pd.DataFrame:
        """Rows of the page: those with a goodput, if there are any."""
        return self.with_goodput if len(self.with_goodput) else self.done

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each case, the same in all comparisons."""
        return {str(label): Look(number) for number, label in enumerate(self.frame["case"].unique())}

    @cached_property
    def comparisons(self) -> dict[str, ComparedCases]:
        """Name of each comparison with results -> its cases: of goodput if some run has one, else of slowdown."""
        return {
            str(name): self._cases(str(name), part) for name, part in self.measured.groupby("comparison", sort=False)
        }

    @cached_property
    def main(self) -> ComparedCases | None:
        """Comparison with several cases on the most instances, without the cases that lack some of them."""
        candidates = {comparison: data.comparable() for comparison, data in self.comparisons.items()}
        if not candidates:
            return None
        comparison, data = max(candidates.items(), key=lambda item: (len(item[1].labels) > 1, item[1].samples))
        pairs = data.table[["case", *INSTANCE]]
        rows = self.measured[self.measured["comparison"] == comparison].merge(pairs, on=["case", *INSTANCE])
        return self._with_power(replace(self._cases(comparison, rows), left_out=data.left_out))

    def _cases(self, comparison: str, rows: pd.DataFrame) -> ComparedCases:
        """Return the cases of a comparison; runs that differ in the seed of the algorithm only are one."""
        by = ["case", *INSTANCE, "cap_structure"]
        table = rows.groupby(by, sort=False)[[*NUMBERS]].mean().reset_index()
        table["cap_range"] = table["cap_range"].where(table["cap_structure"] != FIXED, 0.0)
        cases = cases_of(rows)
        bound = next((label for label, case in cases.items() if case.scheduler == OPTIMUM), None)
        free = [label for label, case in cases.items() if case.follow == "none"]
        measures = GOODPUTS if len(self.with_goodput) else POWERS
        return ComparedCases(
            table=table,
            cases=cases,
            measures=[one for one in measures if table[one.name].notna().any()],
            first=measures[0],
            reference=next(iter([*free, *(label for label in cases if label != bound), *cases])),
            bound=bound,
            about=f"comparison “{comparison}”",
            looks=self.looks,
            rejections=rejections_of(rows),
        )

    def prefix(self, key: str) -> Path:
        """Return the prefix of the files of a run, if they were kept."""
        return self.folder / "runs" / Path(key).name / "run"

    @cached_property
    def saved(self) -> pd.DataFrame:
        """Rows of the runs with kept files, with their energy; one per label and instance."""
        there = [
            all(file_of(self.prefix(key), stem).is_file() for stem in ("jobs", "power", "consumed_energy"))
            for key in self.done["key"].tolist()
        ]
        return self.done[np.array(there, dtype=bool)].drop_duplicates(["case", *INSTANCE])

    def _with_power(self, data: ComparedCases) -> ComparedCases:
        """Return the cases with their power on one instance under an envelope, if possible one of the best case.

        These cases are the best one, the reference and others, up to `MOST_TRACES`.
        """
        rows = self.saved[(self.saved["envelope"] != "") & self.saved["case"].isin(data.labels)]
        if rows.empty:
            return data
        winner = verdict_of(data).winner
        groups = [part.set_index("case") for _, part in rows.groupby(list(INSTANCE), sort=False)]
        envelopes = set(data.table["envelope"])
        part = max(
            groups,
            key=lambda part: (
                winner in part.index,
                data.reference in part.index,
                part["envelope"].iloc[0] in envelopes,
            ),
        )
        first = [label for label in (winner, data.reference) if label in part.index]
        labels = list(dict.fromkeys([*first, *part.index]))[:MOST_TRACES]
        rows = part.loc[labels].reset_index()
        # the file of a run has the envelope until its end
        envelope = envelope_of(self.prefix(rows.sort_values("makespan_s")["key"].iloc[-1]))
        if envelope is None:
            return data
        traces = {
            str(row["case"]): power_series(self.prefix(row["key"]), float(row["makespan_s"]))
            for row in rows.to_dict("records")
        }
        where = f"On {' '.join(filter(None, part[['workload', 'envelope']].iloc[0]))}"
        return replace(data, traces=traces, envelope=envelope, where=where)


def cases_of(rows: pd.DataFrame) -> dict[str, CaseFacts]:
    """Return the facts of each case of some rows; a case that ignores the envelope follows none."""
    cases = {}
    for row in rows.drop_duplicates("case").to_dict("records"):
        follow = "none" if "none" in (row["follow"], row["response"]) else row["follow"]
        follow = follow if row["envelope"] or row["capacity"] or follow == "none" else ""
        cases[str(row["case"])] = CaseFacts(row["scheduler"], json.loads(row["options"] or "{}"), follow)
    return cases


def rejections_of(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return label -> cause -> mean number of rejected jobs of a run, the most frequent cause first."""
    return {str(label): _rejections(part) for label, part in rows.groupby("case", sort=False)}


def _rejections(rows: pd.DataFrame) -> dict[str, float]:
    """Return the mean number of rejected jobs of some runs by cause, the most frequent first."""
    counts: Counter[str] = Counter()
    for text, rejected in zip(rows["rejected_because"], rows["jobs_rejected"], strict=True):
        counts.update(json.loads(text) if text else {UNRECORDED: int(rejected)} if rejected > 0 else {})
    return {cause: count / len(rows) for cause, count in counts.most_common()}


def envelope_of(prefix: Path) -> Timeline | None:
    """Return the envelope in W of a saved run until its end, of `PREFIX_power.csv`; None for a run without one."""
    check_files(prefix)
    rows = table(prefix, "power")
    rows = rows[rows["cap_w"].notna()]
    if rows.empty:
        return None
    changes = np.append(True, np.diff(rows["cap_w"].to_numpy()) != 0.0)[: len(rows)]
    return Timeline(tuple(rows["time_s"][changes].tolist()), tuple(rows["cap_w"][changes].tolist()), "power_w")


def varied(data: ComparedCases) -> tuple[pd.Series, str]:
    """Return the values of the part that varies in a comparison, and the title of its axis; "" if nothing varies.

    The first number that varies counts, else the first name. Names of capacities and workloads that differ only in a
    number at the end are equal.
    """
    rows = data.table
    for name in BY_NUMBER:
        if rows.loc[rows["cap_structure"] != FIXED, name].nunique() > 1:
            return rows[name], FIGURES[name].axis
    for name, seed in BY_NAME.items():
        names = rows[name].str.replace(seed, "", regex=True) if seed else rows[name]
        if 1 < names.nunique() <= APART:
            return names.where(names != "", "none"), name
    return pd.Series("", index=rows.index), ""


def summary(study: SavedStudy) -> pd.DataFrame:
    """Return per comparison and case: runs, failed runs, and mean and standard deviation (n - 1) of every metric."""
    names = [*(figure.name for figure in METRICS), "kills"]
    keys = ["comparison", "case"]
    frame = study.done.groupby([*keys, *INSTANCE], sort=False)[names].mean().groupby(keys, sort=False)
    runs = study.frame.groupby(keys, sort=False)["status"]
    parts = {"runs": runs.size(), "failed": runs.agg(lambda status: int((status != DONE).sum()))}
    means, deviations = frame.mean(), frame.std()
    for name in names:
        parts |= {f"{name}_mean": means[name], f"{name}_std": deviations[name]}
    return pd.DataFrame(parts, index=runs.size().index).reset_index()


def read_study(folder: Path | str) -> SavedStudy:
    """Return the study whose results are in a folder. Raises InputError if the folder has none, or no table yet."""
    with extra("study"):
        import pyarrow
    folder = Path(folder)
    path = folder / TABLE
    if not path.is_file():
        run_it = "run: batwatt study NAME.yaml"
        if not folder.is_dir():
            raise InputError(folder, "no such folder", f"give the folder of a study's results, or {run_it}")
        if not any((folder / name).exists() for name in ("study.yaml", "cells")):
            raise InputError(folder, "is not a folder of results", f"give results/NAME, or {run_it}")
        raise InputError(folder, f"no {TABLE} yet", run_it)
    try:
        # pyarrow does not open all paths
        frame = pd.read_parquet(io.BytesIO(path.read_bytes()))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(path, f"cannot be read ({error})", "run the study again") from None
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        problem = f"no column {missing[0]!r}: it was written by another version of batwatt"
        raise InputError(path, problem, "run the study again")
    if frame.empty:
        raise InputError(path, "has no row", "declare at least one run")
    return SavedStudy(folder, frame, _tidy(frame.reindex(columns=list(COLUMNS)), path))


def _tidy(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return texts as texts (empty where null), figures as floats (NaN where null), and sums of figures."""
    frame = frame.reset_index(drop=True)
    for name in TEXTS:
        column = frame[name].astype(object)
        frame[name] = column.where(column.notna(), "").astype(str)
    try:
        for name in SAVED:
            frame[name] = pd.to_numeric(frame[name]).astype("float64")
    except (TypeError, ValueError) as error:
        raise InputError(path, f"column {name!r} holds a value that is not a number ({error})",
                         "run the study again") from None  # fmt: skip
    frame["kills"] = sum(frame[part] for part in FIGURES["kills"].parts)
    return frame
