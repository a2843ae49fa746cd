"""The tables of the varcap dissertation: acceptable variation, the German data centre, real jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from batwatt.report.grid import GridColumn, Table, column_of, table_by_label
from batwatt.report.papers.pmbs23 import GOODPUT
from batwatt.report.papers.varcap import CONVENTIONAL, FAILURES, FIXED, FIXED_NAME, GAINED, SAVED, WAIT, WORK
from batwatt.report.table import Measure
from batwatt.results.metrics import MEANINGS

RANGES, LONGER = "fig7-5", "longer-7-5"
"""The studies of Table 7.3: the text's, and as if jobs ran longer."""
LIMITS = (5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)
"""Tolerable losses of goodput of Table 7.3, in %."""
PRINTED = {
    "Base": (0, 0, 0, 3, 6, 6, 9),
    "LongShort": (1, 49, 60, 63, 69, 74, 83),
    "TwoMode 24 h": (1, 51, 60, 66, 74, 83, 91),
}
"""Table 7.3: acceptable variation in %, for each of `LIMITS`."""
TEXT = "the dissertation"
FINISHED = Measure("jobs_finished", "jobs finished", "", MEANINGS["jobs_finished"], "higher", 0)
KILLED = Measure("terminations", "terminations", "", MEANINGS["terminations"], decimals=0)


def tables(frame: pd.DataFrame, labels: Sequence[str]) -> list[Table]:
    """Every table that there are runs for."""
    ranges = (_acceptable_table(frame, study) for study in (RANGES, LONGER))
    found = (*ranges, _german(frame, labels), _headroom(frame), _real(frame, labels))
    return [grid for grid in found if grid is not None]


def crossing(xs: Sequence[float], gains: Sequence[float]) -> tuple[float, bool]:
    """The x up to which gains are > 0, between two x on a straight line, and whether more is not known.

    NaN if nothing is gained even at the least x.
    """
    before: tuple[float, float] | None = None
    for x, gain in sorted(zip(xs, gains, strict=True)):
        if not gain > 0.0:
            if before is None:
                return math.nan, False
            return before[0] + (x - before[0]) * before[1] / (before[1] - gain), False
        before = x, gain
    return (before[0], True) if before else (math.nan, False)


def acceptable(frame: pd.DataFrame, study: str = RANGES) -> pd.DataFrame:
    """Per limit and algorithm: the acceptable `variation` in % of the mean capacity, `open` if it is the last known.

    Losses are against the conventional scheduler on the fixed capacity. Table 7.3.
    """
    rows = frame[frame["study"] == study]
    fixed = rows.loc[(rows["structure"] == FIXED) & rows["label"].isin(CONVENTIONAL), GOODPUT.name].mean()
    found = []
    for label, part in rows.groupby("label", sort=False) if not math.isnan(fixed) else ():
        curve = part.groupby("range")[GOODPUT.name].mean()
        lost, mean = 100.0 * (1.0 - curve / fixed), float(part["cap_mean"].mean())
        for limit in LIMITS:
            size, last = crossing(curve.index.tolist(), (limit - lost).tolist())
            found.append((limit, label, 0.0 if math.isnan(size) else 100.0 * size / mean, last))
    return pd.DataFrame(found, columns=["limit", "label", "variation", "open"])


def _acceptable_table(frame: pd.DataFrame, study: str) -> Table | None:
    found = acceptable(frame, study)
    if found.empty:
        return None
    labels = found["label"].unique().tolist()
    columns = [GridColumn("label", "tolerable loss of goodput")]
    cells: dict[str, list[object]] = {"label": [f"{limit:g} %" for limit in LIMITS]}
    for label in labels:
        rows = found[found["label"] == label]
        cells[label] = [f"{'≥ ' if last else ''}{value:.0f} %" for value, last in
                        zip(rows["variation"], rows["open"], strict=True)]  # fmt: skip
        columns.append(GridColumn(label, label, "acceptable variation"))
    for label in (label for label in labels if label in PRINTED):
        cells[f"{label} printed"] = [f"{value} %" for value in PRINTED[label]]
        columns.append(GridColumn(f"{label} printed", label, TEXT))
    notes = (
        "Variation is the range in % of the mean capacity. A loss is against the conventional scheduler on the fixed "
        "capacity; between the ranges that were run goodput is taken to be a straight line. ≥: no more was run.",
    )
    name, title = "table7-3", "Table 7.3: acceptable variation"
    if study == LONGER:
        name, title = f"{name}-longer", f"{title}, as if jobs ran longer"
    return Table(name, title, tuple(columns), pd.DataFrame(cells), len(LIMITS), notes, by_label=False)


def _german(frame: pd.DataFrame, labels: Sequence[str]) -> Table | None:
    """Means over the days of each algorithm, and the worst and the best day."""
    rows = frame[(frame["study"] == "german") & (frame["structure"] != FIXED)]
    days = rows.groupby(["label", "day"])[[WORK.name, FAILURES.name, WAIT.name]].mean()
    if rows[WORK.name].isna().all():
        return None
    by_label = days.groupby(level="label")
    found = by_label.mean().assign(worst=by_label[WORK.name].min(), best=by_label[WORK.name].max(),
                                   above=(days[WORK.name] >= 100.0).groupby(level="label").sum())  # fmt: skip
    columns = (
        GridColumn("label", "algorithm"),
        column_of(WORK, group=WORK.axis, heading="mean"),
        *(GridColumn(name, f"{name} day", WORK.axis, "", 1) for name in ("worst", "best")),
        GridColumn("above", "days at 100 or more", WORK.axis, "", 0),
        *map(column_of, (FAILURES, WAIT)),
    )
    count = rows["day"].nunique()
    notes = [f"Means over {count} days."]
    if rows[SAVED.name].notna().any():
        bills = rows.drop_duplicates("day")[[SAVED.name, GAINED.name]].mean()
        notes.append(f"On these days the capacity is {bills[GAINED.name]:.1f} % larger than the fixed one on average, "
                     f"and emits {bills[SAVED.name]:.1f} % less.")  # fmt: skip
    return table_by_label("table-german", "A German data centre on exemplar days", columns, found, labels, notes)


def _headroom(frame: pd.DataFrame) -> Table | None:
    rows = frame[frame["study"] == "german-headroom"]
    if rows.empty or rows[WORK.name].isna().all():
        return None
    measures = (WORK, SAVED, GAINED, FAILURES)
    grouped = rows.groupby("headroom")
    found = grouped[[measure.name for measure in measures]].mean().sort_index(ascending=False)
    found = found.assign(label=[f"{value:g}" for value in found.index], runs=grouped.size())
    columns = (GridColumn("label", "most capacity"), *map(column_of, measures),
               GridColumn("runs", "runs", "", "", 0))  # fmt: skip
    notes = (f"Savings relative to the fixed capacity, and the work done, by {', '.join(rows['label'].unique())}.",)
    return Table("table-headroom", "Work and carbon by headroom", columns, found.reset_index(drop=True), len(found),
                notes, by_label=False)  # fmt: skip


def _real(frame: pd.DataFrame, labels: Sequence[str]) -> Table | None:
    rows = frame[frame["study"] == "mustang"]
    if rows.empty:
        return None
    measures = (GOODPUT, FAILURES, WAIT, FINISHED, KILLED)
    columns = [GridColumn("label", "algorithm")]
    parts = {}
    for source in sorted(rows["source"].unique(), key=lambda name: (name != FIXED_NAME, name)):
        means = rows[rows["source"] == source].groupby("label")
        for measure in measures:
            name = f"{measure.name} {source}"
            parts[name] = means[measure.name].mean()
            columns.append(column_of(measure, name, group=source))
    return table_by_label("table-mustang", "Real jobs on a real capacity", columns, pd.DataFrame(parts), labels)
