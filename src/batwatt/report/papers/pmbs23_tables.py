"""The tables and figures of a report with goodput: means and boxes of the algorithms by the value of a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from batwatt.report.charts import Key, boxes, counts_of, keys_of_labels
from batwatt.report.claims import numbers
from batwatt.report.figures import Report, ReportFigure, chart_figure
from batwatt.report.grid import GridColumn, Table, column_of, extent, sentence, table_by_label, written
from batwatt.report.papers import pmbs23
from batwatt.report.papers.pmbs23 import RAW, USED, Panel, Sweep, views
from batwatt.report.papers.pmbs23_claims import claims, claims_table
from batwatt.report.table import Measure, SavedCampaign
from batwatt.report.tables import SUMMARY, summary

READING = "Box: 25 to 75 %, line: median, whiskers: 10 to 90 %, star: mean."


def report(declared: SavedCampaign) -> Report | None:
    """The report of a campaign on machines that come and go: boxes by the value of a parameter."""
    if declared.with_goodput.empty:
        return None
    campaign = pmbs23.named(declared)
    plan = pmbs23.plan_of(campaign)
    points = pmbs23.points(campaign)
    swept = pmbs23.sweeps(points)
    found = claims(swept)
    tables = [*mean_tables(swept, plan.drawn), *claims_table(found)]
    frames = numbers(all_means(swept, plan.drawn), found) | {SUMMARY: summary(campaign, plan)}
    drawn = box_figures(swept, keys_of_labels(plan.drawn, plan.looks(plan.drawn)))
    return Report(campaign, plan, tables, frames, drawn, points, pmbs23.MEASURES)


def box_figures(swept: Sequence[Sweep], keys: Sequence[Key]) -> Iterator[ReportFigure]:
    """The figures of the riskaware paper, as far as anything varies: goodput by type of workload, and other metrics."""
    for sweep, view, parts in views(swept):
        parameter = sweep.parameter
        if parameter is None:
            name, axis = "studies", ""
            title = what = "Studies in which no parameter varies" if len(swept) > 1 else "Goodput and other metrics"
        else:
            first, varies = parts[0][1].title, f"{parameter.meaning}, {parameter.symbol}"
            name, axis = parameter.figure if view == "goodput" else "figure4", parameter.axis
            what = f"goodput by {varies}" if view == "goodput" else f"four metrics by {varies}: {first}"
            title = f"Figure {name[-1]}: {what}"
        drawn = (
            boxes(panel.title if view == "goodput" else ": ".join(filter(None, (panel.title, measure.title))), measure,
                  axis, panel.rows, panel.values, keys)
            for measure, panel in parts
        )  # fmt: skip
        panels = [panel for panel in drawn if panel is not None]
        meanings = "; ".join(dict.fromkeys(f"{panel.measure.title}: {panel.measure.meaning}" for panel in panels))
        counts = extent(counts_of(panels))
        caption = f"{sentence(what)}. A box per algorithm, of {counts} instances each. {READING} {sentence(meanings)}."
        yield chart_figure(name, title, caption, panels, min(2, len(panels)))


def mean_tables(swept: Sequence[Sweep], labels: Sequence[str]) -> list[Table]:
    """Goodput of each algorithm by the value of each parameter; the other metrics by that of the range, or by study."""
    grids = []
    for sweep, view, parts in views(swept):
        by = f"by {sweep.parameter.meaning} ({sweep.parameter.symbol})" if sweep.parameter else ""
        name, title = {
            "studies": ("studies", "Means without a sweep" if len(swept) > 1 else "Means"),
            "goodput": (sweep.name, f"Mean goodput {by}"),
            "metrics": ("metrics", f"Means of {parts[0][1].title} {by}"),
        }[view]
        headed = [(f"{panel.title} ({measure.unit})" if view == "goodput" else measure.axis, measure, panel)
                  for measure, panel in parts]  # fmt: skip
        grids.append(_means(f"means-{name}", title, headed, labels))
    return grids


def _means(name: str, title: str, parts: Sequence[tuple[str, Measure, Panel]], labels: Sequence[str]) -> Table:
    """A row per label; for each heading with its measure and panel a column per value."""
    columns, found, counts = [GridColumn("label", "algorithm")], {}, set()
    for heading, measure, panel in parts:
        for value in panel.values:
            rows = panel.rows[panel.rows["value"] == value]
            grouped = rows.groupby("label")[measure.name]
            text = written(value)
            column = " ".join(filter(None, (measure.name, panel.title, text)))
            found[column] = grouped.mean()
            counts |= set(grouped.size().tolist())
            columns.append(column_of(measure, column, heading=text or "all", group=heading))
    note = f"Each mean is over {extent(counts)} instances."
    return table_by_label(name, title, columns, pd.DataFrame(found), labels, [note])


def all_means(swept: Sequence[Sweep], labels: Sequence[str]) -> pd.DataFrame:
    """Per sweep, panel, value and label: instances, and mean and standard deviation (n - 1) of each metric."""
    names = [*RAW, USED]
    parts = []
    for sweep in swept:
        for panel in sweep.panels:
            grouped = panel.rows.groupby(["value", "label"], sort=False)
            part = grouped[names].agg(["mean", "std"])
            part.columns = part.columns.map("_".join)
            part.insert(0, "instances", grouped.size())
            order = pd.MultiIndex.from_product([panel.values, labels], names=part.index.names)
            part = part.reindex(order[order.isin(part.index)]).reset_index()
            part["value"] = part["value"].map(written)
            part.insert(0, "panel", panel.title)
            part.insert(0, "parameter", sweep.name)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)
