"""The figures of the varcap dissertation for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from batwatt.errors import InputError
from batwatt.report.charts import LEVEL, READING, Chart, Key, chart, counts_of
from batwatt.report.claims import numbers
from batwatt.report.figures import Report, ReportFigure, chart_figure
from batwatt.report.grid import Table, extent, sentence
from batwatt.report.papers import varcap
from batwatt.report.papers.varcap_charts import ALL, CLASSES, LONG, SHORT, SYSTEMS, all_means, charts_of, parts_of
from batwatt.report.papers.varcap_claims import claims, claims_table
from batwatt.report.papers.varcap_plans import Plot, hours_apart, plans_of
from batwatt.report.papers.varcap_tables import tables as tables_of
from batwatt.report.report_plan import ReportPlan, general_plan
from batwatt.report.table import Measure, SavedCampaign
from batwatt.report.tables import SUMMARY, summary
from batwatt.results.read import table as read_table
from batwatt.results.style import Look

FAIR = "fig6-4"
"""The plan whose saved runs show which jobs are terminated (Figure 6.6)."""
FAIR_SHAPE = "walk 0.6"
SHARE = Measure("share_percent", "share of terminations", "%", "terminations of jobs of a class of run times / all of "
                "them; next to it the share of jobs", decimals=1)  # fmt: skip
DEPTHS = ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")
"""Classes of run time, the longer the darker."""

Drawn = list[tuple[Plot, list[Chart]]]


def report(declared: SavedCampaign) -> Report | None:
    """The report of a campaign on capacities that texts describe: charts of what varies in each study."""
    if not (declared.with_goodput["cap_structure"] != "").any():
        return None
    campaign = varcap.named(declared, hours_apart(declared.studies))
    plan = varcap.plan_of(campaign)
    points = varcap.points(campaign, declared)
    found = claims(points)
    tables = [*claims_table(found), *tables_of(points, plan.drawn)]
    looks = plan.looks(campaign.labels)
    drawn = drawn_of(points, {label: looks[label] for label in plan.drawn})
    return charts_report(declared, campaign, plan, points, drawn, found, tables)


def charts_report(
    declared: SavedCampaign, campaign: SavedCampaign, plan: ReportPlan, points: pd.DataFrame, drawn: Drawn,
    found: pd.DataFrame, tables: Sequence[Table], measures: Sequence[Measure] = varcap.MEASURES,
) -> Report:  # fmt: skip
    """The report of what was `drawn` and `found` of the points of a campaign; the summary has its `declared` labels."""
    frames = numbers(all_means(drawn), found) | {SUMMARY: summary(declared, general_plan(declared))}
    return Report(campaign, plan, tables, frames, chart_exhibits(drawn, points, campaign), points, measures)


def drawn_of(frame: pd.DataFrame, looks: Mapping[str, Look]) -> Drawn:
    """Every figure that there are runs for, with its panels."""
    found = [(plan, charts_of(plan, parts_of(plan, studies, frame), looks)) for plan, studies in plans_of(frame)]
    return [(plan, panels) for plan, panels in found if panels]


def chart_exhibits(drawn: Drawn, frame: pd.DataFrame, campaign: SavedCampaign) -> Iterator[ReportFigure]:
    """The figures in the order of the text, with the one of the classes of jobs after the terminations."""
    for plan, panels in drawn:
        by_measure = [measure for measure in plan.measures if any(panel.measure is measure for panel in panels)]
        # those of a measure stand side by side if there are several, else all measures
        each = len(panels) // len(by_measure)
        across = min(3, each if each > 1 else len(panels))
        meanings = "; ".join(f"{measure.title}: {measure.meaning}" for measure in by_measure)
        level = f" The dashed line is the {LEVEL}." if any(panel.level is not None for panel in panels) else ""
        counts = counts_of(panels)
        reading = READING.format(f"{extent(counts)} {'run' if counts == {1} else 'runs'}")
        caption = f"{sentence(plan.title)}. {reading}{level} {sentence(meanings)}."
        yield chart_figure(plan.id, f"{plan.figure}: {plan.title}", caption, panels, across)
        if plan.stem == FAIR:
            fair = list(_fair(plan, frame, campaign))
            if fair:
                caption = (
                    "Terminations on a walk of range 0.6 by the run time of the job, next to the jobs of all run times."
                )
                yield chart_figure("fig6-6", "Figure 6.6: which jobs are terminated", caption, fair, min(3, len(fair)))


def _fair(plan: Plot, frame: pd.DataFrame, campaign: SavedCampaign) -> Iterator[Chart]:
    """A panel per system: shares of the classes of saved runs, or else of short and long jobs."""
    for study in dict.fromkeys(study for study in frame["study"] if plan.holds(study)):
        rows = frame[(frame["study"] == study) & (frame["shape"] == FAIR_SHAPE)]
        found = (_terminated(campaign, key, label) for key, label in rows[["key", "label"]].itertuples(index=False))
        saved = [part for part in found if part is not None]
        shares, keys = _of_classes(saved) if saved else _of_halves(rows)
        end = study.removeprefix(plan.stem).strip("-")
        order = [ALL, *dict.fromkeys(rows["label"])]
        panel = chart(SYSTEMS.get(end, end), SHARE, "stacks", "", shares, keys, xs=order)
        if panel is not None:
            yield panel


def _terminated(campaign: SavedCampaign, key: str, label: str) -> pd.DataFrame | None:
    """The file of classes of a saved run, with its label; None without, or of a run without terminations."""
    try:
        return read_table(campaign.prefix(key), "classes").assign(label=label)
    except InputError:
        return None


def _of_classes(saved: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, list[Key]]:
    first = saved[0]
    names = [_class(low, high) for low, high in first[["from_h", "to_h"]].itertuples(index=False)]
    bars = [*((part["label"], part["terminations"]) for part in saved), (ALL, first["jobs"])]
    parts = [pd.DataFrame({"series": names, "x": x, "value": _percent(counts)}) for x, counts in bars]
    keys = [Key(name, DEPTHS[n % len(DEPTHS)]) for n, name in enumerate(names)]
    return pd.concat(parts, ignore_index=True), keys


def _of_halves(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[Key]]:
    counts = rows[["terminations_short", "terminations_long"]]
    shares = 100.0 * counts.div(counts.sum(axis=1).where(lambda total: total > 0.0), axis=0)
    parts = [pd.DataFrame({"series": name, "x": rows["label"], "value": shares[f"terminations{CLASSES[name][0]}"]})
             for name in (SHORT, LONG)]  # fmt: skip
    return pd.concat(parts, ignore_index=True), [Key(name, CLASSES[name][1]) for name in (SHORT, LONG)]


def _percent(counts: pd.Series) -> pd.Series:
    total = float(counts.sum())
    return 100.0 * counts / total if total > 0.0 else counts * float("nan")


def _class(low_h: float, high_h: float) -> str:
    if high_h == float("inf"):
        return f"more than {low_h:g} h"
    return f"{low_h:g} to {high_h:g} h" if low_h else f"up to {high_h:g} h"
