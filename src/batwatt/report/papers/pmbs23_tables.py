"""The tables of a report with goodput: means of the algorithms by the value of a parameter."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from batwatt.report.grid import GridColumn, Table, extent
from batwatt.report.papers.pmbs23 import GOODPUT, MEASURES, RANGE, RAW, USED, Panel, Sweep, written
from batwatt.report.table import Measure


def mean_tables(swept: Sequence[Sweep], labels: Sequence[str]) -> list[Table]:
    """Goodput of each algorithm by the value of each parameter; the other metrics by that of the range, or by study."""
    grids = []
    for sweep in swept:
        parameter = sweep.parameter
        # the first panel is the one of Figure 4
        metrics = [(measure.axis, measure, sweep.panels[0]) for measure in MEASURES]
        if parameter is None:
            title = "Means without a sweep" if len(swept) > 1 else "Means"
            grids.append(_means("means-studies", title, metrics, labels))
            continue
        by = f"by {parameter.meaning} ({parameter.symbol})"
        goodput = [(f"{panel.title} ({GOODPUT.unit})", GOODPUT, panel) for panel in sweep.panels]
        grids.append(_means(f"means-{sweep.name}", f"Mean goodput {by}", goodput, labels))
        if parameter is RANGE:
            grids.append(_means("means-metrics", f"Means of {sweep.panels[0].title} {by}", metrics, labels))
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
            columns.append(GridColumn(column, text or "all", heading, measure.meaning, measure.decimals))
    frame = pd.DataFrame(found)
    frame = frame.reindex([label for label in labels if label in frame.index]).rename_axis("label").reset_index()
    note = f"Each mean is over {extent(counts)} instances."
    return Table(name, title, tuple(columns), frame, len(frame), (note,))


def all_means(swept: Sequence[Sweep], labels: Sequence[str]) -> pd.DataFrame:
    """Per sweep, panel, value and label: instances, and mean and standard deviation (n - 1) of each metric."""
    names = [*RAW, USED]
    rank = {label: number for number, label in enumerate(labels)}
    parts = []
    for sweep in swept:
        for panel in sweep.panels:
            order = {value: number for number, value in enumerate(panel.values)}
            grouped = panel.rows.groupby(["value", "label"], sort=False)
            part = pd.DataFrame({"instances": grouped.size()})
            means, stds = grouped[names].mean(), grouped[names].std()
            for name in names:
                part[f"{name}_mean"], part[f"{name}_std"] = means[name], stds[name]
            part = part.reset_index()
            place = pd.DataFrame({"value": part["value"].map(order), "label": part["label"].map(rank)})
            part = part.loc[place.sort_values(["value", "label"]).index]
            part["value"] = part["value"].map(written)
            part.insert(0, "panel", panel.title)
            part.insert(0, "parameter", sweep.name)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)
