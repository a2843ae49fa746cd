"""The report of a campaign on machines that come and go: goodput and more, by what varies in each study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from batwatt.report.charts import Kind, chart, counts_of, keys_of_labels
from batwatt.report.figures import Report, ReportFigure, chart_figure
from batwatt.report.grid import GridColumn, Table, column_of, extent, stems_of, table_by_label, written
from batwatt.report.report_plan import plan_of_all
from batwatt.report.table import INSTANCE, Measure, SavedCampaign
from batwatt.report.tables import SUMMARY, summary
from batwatt.results.metrics import MEANINGS
from batwatt.results.style import Look

GOODPUT = Measure("goodput_percent", "goodput", "%", MEANINGS["goodput"], "higher", 1)
ABORTED = Measure("aborted_percent", "aborted volume", "%", MEANINGS["aborted_volume"], decimals=1)
WAIT = Measure("wait_min", "waiting time", "min", MEANINGS["mean_wait_s"], decimals=1)
MAX_STRETCH = Measure("max_full_speed_slowdown", "maximum stretch", "", MEANINGS["max_full_speed_slowdown"], decimals=1)
MEASURES = (GOODPUT, ABORTED, WAIT, MAX_STRETCH)
NUMBERS = {
    "cap_range": "range of the capacity (share of all machines)",
    "cap_period_s": "time between changes (s)",
    "cap_step": "largest change (share of all machines)",
    "cap_headroom": "most capacity (share of all machines)",
}
"""Column of what a capacity is made of -> its axis."""
NAMES = {"capacity": r"-s?\d+$", "platform": "", "workload": r"-\d+$"}
"""Part of an instance -> what is no more than a repetition in its name."""
FIXED = "constant"
"""Structure of a capacity that does not vary: its range is 0."""
READING = "A mark is the mean of a series over its instances ({}), with one standard error up and down."


def goodput_report(campaign: SavedCampaign) -> Report:
    """The report of a campaign some of whose runs have a goodput: per study a table and charts of `MEASURES`."""
    points = points_of(campaign)
    order = list(campaign.labels)
    first = campaign.frame.drop_duplicates("label").set_index("label")["scheduler"]
    plan = plan_of_all(campaign, "goodput", order.index, first.__getitem__)
    parts = {str(study): rows for study, rows in points.groupby("study", sort=False)}
    stems = stems_of(parts)
    tables = [means_table(study, stems[study], rows, plan.drawn) for study, rows in parts.items()]
    frames = {SUMMARY: summary(campaign, plan)}
    figures = _figures(parts, stems, plan.looks(plan.drawn))
    return Report(campaign, plan, tables, frames, figures, points, MEASURES)


def points_of(campaign: SavedCampaign) -> pd.DataFrame:
    """A row per study, label and instance, the mean of runs that differ in the seed only, with `MEASURES`."""
    rows = campaign.with_goodput
    by = ["study", "label", *INSTANCE, "cap_structure"]
    means = rows.groupby(by, sort=False)[
        [*NUMBERS, "goodput", "aborted_volume", "mean_wait_s", MAX_STRETCH.name]
    ].mean()
    means = means.reset_index()
    return means.assign(
        cap_range=means["cap_range"].where(means["cap_structure"] != FIXED, 0.0),
        **{GOODPUT.name: 100.0 * means["goodput"], ABORTED.name: 100.0 * means["aborted_volume"]},
        **{WAIT.name: means["mean_wait_s"] / 60.0},
    )


def varied(rows: pd.DataFrame) -> tuple[pd.Series, str]:
    """What varies in a study, and the title of its axis: the first number that does, else the first name, else nothing.

    Names of capacities and workloads that differ in their seed only are the same.
    """
    for name, title in NUMBERS.items():
        if rows.loc[rows["cap_structure"] != FIXED, name].nunique() > 1:
            return rows[name], title
    for name, seed in NAMES.items():
        names = rows[name].str.replace(seed, "", regex=True) if seed else rows[name]
        if names.nunique() > 1:
            return names, name
    return pd.Series("", index=rows.index), ""


def means_table(study: str, stem: str, rows: pd.DataFrame, labels: Sequence[str]) -> Table:
    """Means of a study: a group of columns per measure, in it one per value of what varies."""
    x, title = varied(rows)
    columns, means, counts = [GridColumn("label", "algorithm")], {}, set()
    for measure in MEASURES:
        if rows[measure.name].isna().all():
            continue
        for value, part in rows.groupby(x, sort=pd.api.types.is_numeric_dtype(x)):
            text = written(value)
            column = " ".join(filter(None, (measure.name, text)))
            by_label = part.groupby("label")[measure.name]
            means[column] = by_label.mean()
            counts |= set(by_label.size())
            columns.append(column_of(measure, column, heading=text or "all", group=measure.axis))
    notes = [f"Each mean is over {extent(counts)} instances{f', by {title}' if title else ''}."]
    return table_by_label(f"means-{stem}", f"Study “{study}”", columns, pd.DataFrame(means), labels, notes)


def _figures(
    parts: Mapping[str, pd.DataFrame], stems: Mapping[str, str], looks: Mapping[str, Look]
) -> Iterator[ReportFigure]:
    """A figure of each study, a panel per measure."""
    for study, rows in parts.items():
        x, title = varied(rows)
        kind: Kind = "lines" if pd.api.types.is_numeric_dtype(x) else "bars"
        keys = keys_of_labels([label for label in looks if label in set(rows["label"])], looks)
        drawn = (chart(measure.title, measure, kind, title, rows.assign(x=x), keys) for measure in MEASURES)
        panels = [panel for panel in drawn if panel is not None]
        meanings = "; ".join(f"{panel.measure.title}: {panel.measure.meaning}" for panel in panels)
        caption = f"{READING.format(extent(counts_of(panels)))} {meanings}."
        by = f" by {title}" if title else ""
        yield chart_figure(stems[study], f"Study “{study}”: goodput{by}", caption, panels, min(2, len(panels)))
