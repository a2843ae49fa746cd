"""The content of a campaign's report: per study a table of means and charts, by the part that varies in the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from batwatt.report.chart import ReportFigure
from batwatt.report.figures import means_chart
from batwatt.report.grid import GridColumn, Table, column_of, extent, stems_of, table_by_label, written
from batwatt.report.report_plan import ReportPlan, plan_of
from batwatt.report.table import DONE, GOODPUTS, INSTANCE, POWERS, VARIES, SavedCampaign
from batwatt.results.figures import FIGURES, METRICS, Figure
from batwatt.results.style import Look

NUMBERS = ("cap_range", "cap_period_s", "cap_step", "cap_headroom")
"""Properties of capacities that figures are drawn over."""
NAMES = {"envelope": "", "capacity": r"-s?\d+$", "platform": "", "workload": r"-\d+$"}
"""Part of an instance -> the end of its name that only numbers repetitions."""
APART = 6
"""Up to this many names of a part have columns of their own; of more there are means only."""
FIXED = "constant"
"""Structure of a capacity that does not vary: its range is 0."""
READING = "A mark is the mean of a series over its instances ({}), with one standard error up and down."


@dataclass(frozen=True)
class Report:
    """Tables, figures and the summary of a campaign.

    The conclusion is about `points`, rows with `study`, `label`, the instance and `measures`, the first most of all.
    """

    campaign: SavedCampaign
    plan: ReportPlan
    tables: Sequence[Table]
    summary: pd.DataFrame
    figures: Sequence[ReportFigure]
    points: pd.DataFrame
    measures: Sequence[Figure]


def report_of(campaign: SavedCampaign) -> Report:
    """Return the report of a campaign: of goodput where capacities vary, else of slowdown, kills and violations."""
    measures = GOODPUTS if len(campaign.with_goodput) else POWERS
    points = points_of(campaign, measures)
    plan = plan_of(campaign, points, measures)
    parts = {str(study): rows for study, rows in points.groupby("study", sort=False)}
    stems = stems_of(parts)
    labels = plan.ordered(campaign.labels)
    tables = [means_table(study, stems[study], rows, labels, measures) for study, rows in parts.items()]
    looks = {label: look for label, look in plan.looks(labels).items() if label in plan.shown}
    figures = _figures(parts, stems, looks, measures)
    return Report(campaign, plan, tables, summary(campaign, plan), figures, points, measures)


def points_of(campaign: SavedCampaign, measures: Sequence[Figure]) -> pd.DataFrame:
    """Return a row per study, label and instance: the mean of runs that differ in the seed only."""
    rows = campaign.with_goodput if measures is GOODPUTS else campaign.done
    by = ["study", "label", *INSTANCE, "cap_structure"]
    means = rows.groupby(by, sort=False)[[*VARIES, *(measure.name for measure in measures)]].mean().reset_index()
    return means.assign(cap_range=means["cap_range"].where(means["cap_structure"] != FIXED, 0.0))


def varied(rows: pd.DataFrame) -> tuple[pd.Series, str]:
    """Return the values of the part that varies in a study, and the title of its axis; "" if nothing varies.

    The first number that varies counts, else the first name. Names of capacities and workloads that differ only in a
    number at the end are equal.
    """
    for name in NUMBERS:
        if rows.loc[rows["cap_structure"] != FIXED, name].nunique() > 1:
            return rows[name], FIGURES[name].axis
    for name, seed in NAMES.items():
        names = rows[name].str.replace(seed, "", regex=True) if seed else rows[name]
        if 1 < names.nunique() <= APART:
            return names.where(names != "", "none"), name
    return pd.Series("", index=rows.index), ""


def means_table(study: str, stem: str, rows: pd.DataFrame, labels: Sequence[str], measures: Sequence[Figure]) -> Table:
    """Return the means of a study: a group of columns per measure, with a column per value of the part that varies."""
    x, title = varied(rows)
    columns, means, counts = [GridColumn("label", "algorithm")], {}, set()
    for measure in measures:
        if rows[measure.name].isna().all():
            continue
        # a fixed capacity has no time between changes: it is the last column
        for value, part in rows.groupby(x, sort=pd.api.types.is_numeric_dtype(x), dropna=False):
            text: str = "none" if pd.isna(value) else written(value)
            column = " ".join(filter(None, (measure.name, text)))
            by_label = part.groupby("label")[measure.name]
            means[column] = by_label.mean()
            counts |= set(by_label.size())
            columns.append(column_of(measure, column, text or "all"))
    instances = "instance" if counts == {1} else "instances"
    by = f", by {title}" if title else ""
    notes = [f"Each mean is over {extent(counts)} {instances}{by}."] if counts else []
    return table_by_label(f"means-{stem}", f"Study “{study}”", columns, pd.DataFrame(means), labels, notes)


def _figures(
    parts: Mapping[str, pd.DataFrame], stems: Mapping[str, str], looks: Mapping[str, Look], measures: Sequence[Figure]
) -> list[ReportFigure]:
    """Return a figure of each study, a panel per measure."""
    figures = []
    for study, rows in parts.items():
        x, title = varied(rows)
        name, heading = stems[study], f"Study “{study}”" + (f" by {title}" if title else "")
        drawn = [
            (measure, means_chart(f"plot-{name}-{n}", rows.assign(x=x), measure, title, looks))
            for n, measure in enumerate(measures)
        ]
        panels = [(measure, *panel) for measure, panel in drawn if panel is not None]
        if not panels:
            figures.append(ReportFigure(name, heading, "No run has one of the measures."))
            continue
        meanings = "; ".join(f"{measure.title}: {measure.meaning}" for measure, *_ in panels)
        counts = {count for *_, counts in panels for count in counts}
        caption = f"{READING.format(extent(counts))} {meanings}."
        figures.append(ReportFigure(name, heading, caption, tuple(chart for _, chart, _ in panels)))
    return figures


def summary(campaign: SavedCampaign, plan: ReportPlan) -> pd.DataFrame:
    """Return per study and algorithm: runs, failed runs, and mean and standard deviation (n - 1) of every metric."""
    names = [*(figure.name for figure in METRICS), "kills"]
    parts = []
    for study in campaign.studies:
        frame = campaign.per_instance(study)
        rows = campaign.frame[campaign.frame["study"] == study].groupby("label", sort=False)["status"]
        labels = plan.ordered(rows.size().index.tolist())
        part = pd.DataFrame({"study": study, "label": labels})
        part["runs"] = part["label"].map(rows.size())
        part["failed"] = part["label"].map(rows.agg(lambda status: int((status != DONE).sum())))
        by_label = frame.groupby("label", sort=False)[names]
        for suffix, values in (("mean", by_label.mean()), ("std", by_label.std())):
            part = part.join(values.add_suffix(f"_{suffix}"), on="label")
        ordered = [f"{name}_{suffix}" for name in names for suffix in ("mean", "std")]
        parts.append(part[["study", "label", "runs", "failed", *ordered]])
    return pd.concat(parts, ignore_index=True)
