"""The tables of a report: each algorithm compared with the optimum, marks for the overall result, means of all."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from batwatt.report.grid import GridColumn, Table, column_of, stems_of, table_by_label
from batwatt.report.report_plan import ReportPlan, places
from batwatt.report.table import COMPARED, DONE, FURTHER, INSTANCE, KILLS, SHOWN, SLOWDOWN, SavedCampaign, with_speeds
from batwatt.results.metrics import METRICS

QUARTERS = ("+++", "++", "+", "")
"""Mark of the best quarter of the range, of the second, the third and the worst."""
APART = 6
"""As many envelopes (platforms, workloads) have columns of their own in a table; of more there are means only."""
SUMMARY = "summary.csv"
_BOUND = "slowdown_over_lower_bound"


def table2(campaign: SavedCampaign, plan: ReportPlan) -> Table:
    """Means over the instances of the main study, and the mean distance to the optimum of the same instance.

    The distance is to the *optimum* only if all its rows are proven optimal, else to the best known schedule, and then
    the distance to the lower bound of the mean slowdown is next to it.
    """
    frame = campaign.per_instance(plan.main)
    labels = [label for label in plan.ordered(campaign.labels) if (frame["label"] == label).any()]
    columns = [GridColumn("label", "algorithm"), GridColumn("instances", "runs", decimals=0)]
    found = pd.DataFrame(index=labels)
    by_label = frame.groupby("label", sort=False)
    found["instances"] = by_label.size()
    for measure in with_speeds(SHOWN, frame):
        found[measure.name] = by_label[measure.name].mean()
        columns.append(column_of(measure, group="mean"))
    notes = [f"Means over the instances of study “{plan.main}”."]
    if plan.reference is None or not (frame["label"] == plan.reference).any():
        notes.append("There is no optimum in this campaign: absolute values only.")
    else:
        columns += _distances(campaign, plan, frame, found, notes)
    named = sum(label in plan.highlighted or label == plan.reference for label in labels)
    return table_by_label("table2", "The algorithms", columns, found, labels, notes, named)


def is_proven(campaign: SavedCampaign, study: str) -> bool:
    """Whether every row of the optimum in a study is proven to be one."""
    rows = campaign.study(study)
    proven = rows.loc[rows["label"] == campaign.reference, "proven_optimal"]
    return bool(len(proven)) and all(value is not None and pd.notna(value) and bool(value) for value in proven)


def paired(frame: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Each row (label and instance) with the reference's row of the same instance, whose columns end in `_best`."""
    best = frame[frame["label"] == reference].drop(columns="label")
    return frame.merge(best, on=list(INSTANCE), suffixes=("", "_best"), how="inner").copy()


def _distances(
    campaign: SavedCampaign, plan: ReportPlan, frame: pd.DataFrame, found: pd.DataFrame, notes: list[str]
) -> list[GridColumn]:
    """Add the distances to `found` and what they mean to `notes`; returns their columns."""
    assert plan.reference is not None
    proven = is_proven(campaign, plan.main)
    word, name = ("the optimum", "optimum") if proven else ("the best known schedule", "best_known")
    pairs = paired(frame, plan.reference)
    columns = []
    for measure in COMPARED:
        column = f"{measure.name}_over_{name}"
        pairs[column] = pairs[measure.name] - pairs[f"{measure.name}_best"]
        columns.append(GridColumn(column, measure.title, f"distance to {word}", "", measure.decimals, True))
    if not proven:
        pairs[_BOUND] = pairs[SLOWDOWN.name] - pairs["lower_bound_best"]
        meaning = "no schedule that finishes every job within the envelope is below the bound"
        columns.append(GridColumn(_BOUND, SLOWDOWN.title, "distance to the lower bound", meaning, 2, True))
    means = pairs.groupby("label", sort=False)[[column.name for column in columns]].mean()
    for name in means.columns:
        found[name] = means[name]
    notes.append(f"Distances are to {plan.reference} on the same instance, then averaged.")
    if not proven:
        notes.append(
            f"{plan.reference} is the best known schedule that finishes every job within the envelope. It is not "
            "proven optimal for every instance: the optimum lies between it and the lower bound."
        )
    short = pairs.groupby("label", sort=False).size().reindex(found.index).fillna(0) < found["instances"]
    if short.any():
        notes.append("Some instances have no optimum: they count in the means, not in the distances.")
    return columns


def marks(campaign: SavedCampaign, plan: ReportPlan, labels: Sequence[str]) -> pd.DataFrame | None:
    """Marks of the labels (index) in each measure of `COMPARED`; None if fewer than two were run.

    Per study, the mean of an algorithm has a place between the best (0) and the worst (1) of the labels. The mean of
    its places over the studies decides: +++ in the best quarter, ++ in the second, + in the third, else nothing.
    """
    found = []
    for study in dict.fromkeys(filter(None, (plan.main, plan.variants))):
        frame = campaign.per_instance(study)
        found.append(places(frame[frame["label"].isin(labels)]))
    mean = pd.concat(found).groupby(level=0).mean()
    mean = mean.reindex([label for label in labels if label in mean.index])
    if len(mean) < 2:
        return None
    return mean.map(lambda place: "" if pd.isna(place) else QUARTERS[min(3, int(4.0 * place + 1e-9))])


def table3(campaign: SavedCampaign, plan: ReportPlan) -> Table | None:
    """Return the marks of the highlighted algorithms that respond to the envelope."""
    found = marks(campaign, plan, plan.rated)
    if found is None:
        return None
    measures = [measure for measure in COMPARED if measure.name in found]
    columns = [GridColumn("label", "algorithm")]
    columns += [GridColumn(m.name, m.title, "among all of these", m.meaning) for m in measures]
    notes = [
        "In each study an algorithm has a place between the best (0) and the worst (1) mean of those compared. "
        "The mean of its places decides: +++ in the best quarter, ++ in the second, + in the third, nothing in the "
        "last. All equal: +++."
    ]
    return table_by_label("table3", "Overall", columns, found, plan.rated, notes)


def study_tables(campaign: SavedCampaign, plan: ReportPlan) -> list[Table]:
    """A table of each study that has results and is neither the main one nor the one with the variants."""
    studies = [
        study
        for study in campaign.studies
        if study not in (plan.main, plan.variants) and not campaign.study(study).empty
    ]
    return [_study_table(campaign, plan, study, f"study-{stem}") for study, stem in stems_of(studies).items()]


def _study_table(campaign: SavedCampaign, plan: ReportPlan, study: str, name: str) -> Table:
    """Means of a study: a group of columns per measure, in it one per envelope if there are 2 to `APART`, and of all.

    Columns are per platform, or per workload, where envelopes are one or too many.
    """
    frame = campaign.per_instance(study)
    labels = [label for label in plan.ordered(campaign.labels) if (frame["label"] == label).any()]
    kinds = {kind: sorted(frame[kind].unique().tolist()) for kind in ("envelope", "platform", "workload")}
    apart = next((kind for kind, values in kinds.items() if 2 <= len(values) <= APART), None)
    parts = [(f"_{value}", value or "none", frame[frame[apart] == value]) for value in kinds.get(apart or "", ())]
    parts.append(("", "all", frame))
    columns, found = [GridColumn("label", "algorithm")], {}
    for measure in with_speeds(FURTHER, frame):
        for suffix, heading, part in parts:
            column = f"{measure.name}{suffix}"
            found[column] = part.groupby("label")[measure.name].mean()
            columns.append(column_of(measure, column, heading=heading, group=measure.axis))
    instances = len(frame[list(INSTANCE)].drop_duplicates())
    counts = ", ".join(f"{len(values)} {kind}{'s' * (len(values) != 1)}" for kind, values in kinds.items())
    notes = [f"Means over the {instances} instances of study “{study}” ({counts})."]
    short = {label: n for label, n in frame.groupby("label").size().reindex(labels).items() if n < instances}
    if short:
        notes.append(f"Means over fewer: {', '.join(f'{label} ({n})' for label, n in short.items())}.")
    title = f"Study “{study}”" + (f" by {apart}" if apart else "")
    return table_by_label(name, title, columns, pd.DataFrame(found, labels), labels, notes)


def summary(campaign: SavedCampaign, plan: ReportPlan) -> pd.DataFrame:
    """Per study and algorithm: runs, failed runs, and mean and standard deviation (n - 1) of every figure."""
    names = [metric.name for metric in METRICS] + [KILLS.name]
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
