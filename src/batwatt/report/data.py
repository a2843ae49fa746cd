"""What each figure shows, ready to be drawn: the pictures and the page draw the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batwatt.model.series import Series
from batwatt.report.report_plan import ReportPlan, best_first, places
from batwatt.report.saved_runs import envelope_of
from batwatt.report.table import COMPARED, INSTANCE, VIOLATIONS, Measure, SavedCampaign, instance_names
from batwatt.results.power import PowerTrace, compare, power_series
from batwatt.results.style import HOUR_S

MARGIN_S = HOUR_S
"""How much before and after a violation is shown."""
CLOSE_S = 60.0
"""How much before and after its excess is shown closely."""
FAR_ABOVE = 5.0
"""A bar this many times as long as the longest of the others is cut, so that those can be read."""


def envelopes(campaign: SavedCampaign) -> list[tuple[str, Series]]:
    """Name and envelope of each that a kept run was under, by name."""
    found: dict[str, Series] = {}
    for name, key in campaign.saved[["envelope", "key"]].itertuples(index=False):
        if name and name not in found:
            series = envelope_of(campaign.prefix(key))
            if series is not None:
                found[name] = series
    return sorted(found.items())


@dataclass(frozen=True)
class Scores:
    """How near each label is to the best (1) and the worst (0) of all, by measure, and the means they stem from."""

    scores: pd.DataFrame
    means: pd.DataFrame
    measures: tuple[Measure, ...]

    def range_of(self, measure: Measure) -> tuple[float, float]:
        """The best and the worst mean."""
        values = self.means.loc[self.scores.index, measure.name]
        ends = (float(values.min()), float(values.max()))
        return ends if measure.better == "lower" else ends[::-1]


def scores(campaign: SavedCampaign, plan: ReportPlan) -> Scores:
    """The scores of all algorithms that do something about the envelope, best mean first. Figure 2."""
    frame = campaign.per_instance(plan.main)
    labels = [
        label
        for label in campaign.labels
        if label not in plan.unresponsive and label != plan.reference and (frame["label"] == label).any()
    ]
    part = frame[frame["label"].isin(labels)]
    found = 1.0 - places(part).reindex(best_first(frame, labels))
    means = part.groupby("label")[[measure.name for measure in COMPARED]].mean()
    return Scores(found, means, tuple(measure for measure in COMPARED if measure.name in found))


@dataclass(frozen=True)
class Zoom:
    """A violation looked at closely: runs of one instance over [begin_s, end_s], around one step of the envelope."""

    instance: str
    envelope: Series
    runs: tuple[tuple[str, PowerTrace], ...]
    begin_s: float
    end_s: float
    step_s: tuple[float, float]
    close_s: tuple[float, float]
    """A shorter time, in which the excess itself can be seen: it may last a few seconds."""
    label: str
    excess_w: float


def zoom(campaign: SavedCampaign, plan: ReportPlan) -> Zoom | None:
    """Return the violation with the largest excess of a kept run, compared with the companions. Figure 3.

    Of the runs of algorithms that respond to the envelope, if any has a violation, the one whose instance most of the
    companions share, of those one under the envelope of the main study, of those the one with the fewest violations.
    None without a violation.
    """
    saved = campaign.saved[campaign.saved["envelope"] != ""]
    guilty = saved[(saved[VIOLATIONS.name] > 0) & (saved["label"] != plan.reference)]
    responsive = guilty[~guilty["label"].isin(plan.unresponsive)]
    guilty = guilty if responsive.empty else responsive
    if guilty.empty:
        return None
    usual = set(campaign.study(plan.main)["envelope"].unique().tolist())
    others = [label for label in (plan.reference, *plan.companions) if label is not None]

    def merit(row: pd.Series) -> tuple[int, bool, float]:
        same = saved[(saved[list(INSTANCE)] == row[list(INSTANCE)]).all(axis=1)]
        return int(same["label"].isin(others).sum()), row["envelope"] in usual, -float(row[VIOLATIONS.name])

    chosen = max((row for _, row in guilty.iterrows()), key=merit)
    envelope = envelope_of(campaign.prefix(chosen["key"]))
    if envelope is None:
        return None
    pieces = compare(_power(campaign, chosen), envelope)
    if not pieces.over.any():
        return None
    worst = int(np.argmax(np.where(pieces.over, pieces.power_w - pieces.cap_w, -np.inf)))
    begin_s = float(pieces.step_start_s[worst])
    step = (begin_s, envelope.step_after(begin_s))
    in_step = pieces.over & (pieces.step == pieces.step[worst])
    above = pieces.start_s[in_step].min(), min(pieces.end_s[in_step].max(), step[1])
    same = saved[(saved[list(INSTANCE)] == chosen[list(INSTANCE)]).all(axis=1)].set_index("label", drop=False)
    labels = [label for label in (plan.reference, chosen["label"], *plan.companions) if label in same.index]
    return Zoom(
        instance=" ".join(filter(None, chosen[["workload", "envelope"]])),
        envelope=envelope,
        runs=tuple((label, _power(campaign, same.loc[label])) for label in dict.fromkeys(labels)),
        begin_s=max(0.0, step[0] - MARGIN_S),
        end_s=step[1] + MARGIN_S,
        step_s=step,
        close_s=(max(0.0, float(above[0]) - CLOSE_S), float(above[1]) + CLOSE_S),
        label=str(chosen["label"]),
        excess_w=float(pieces.power_w[worst] - pieces.cap_w[worst]),
    )


def _power(campaign: SavedCampaign, row: pd.Series) -> PowerTrace:
    return power_series(campaign.prefix(row["key"]), float(row["makespan_s"]))


def per_instance(
    campaign: SavedCampaign, study: str, labels: Sequence[str], measures: Sequence[Measure]
) -> pd.DataFrame:
    """Rows of `label`, `instance` and the measures, for all labels, instances in order of their names. Figures 4, 5."""
    frame = campaign.per_instance(study)
    frame = frame.assign(instance=instance_names(frame))
    frame = _ranked(frame, ["label", "instance"], labels)
    return frame[["label", "instance", *(measure.name for measure in measures)]].reset_index(drop=True)


def per_envelope(campaign: SavedCampaign, study: str, labels: Sequence[str]) -> pd.DataFrame:
    """The mean of each measure of `COMPARED`, by `label` and `envelope`. Figure 6."""
    names = [measure.name for measure in COMPARED]
    means = campaign.per_instance(study).groupby(["envelope", "label"])[names].mean()
    return _ranked(means.reset_index(), ["envelope", "label"], labels)


def _ranked(frame: pd.DataFrame, by: list[str], labels: Sequence[str]) -> pd.DataFrame:
    """The rows of some labels, sorted by columns; labels in the order given."""
    rank = {label: number for number, label in enumerate(labels)}
    frame = frame[frame["label"].isin(labels)]
    return frame.sort_values(
        by, key=lambda column: column.map(rank) if column.name == "label" else column, kind="stable"
    )


def readable_top(values: pd.DataFrame, measure: Measure, shown: Sequence[str]) -> float:
    """Where the axis of bars ends: at the longest, or, if one label outgrows all others by far, at the next."""
    longest = values[values["label"].isin(shown)].groupby("label")[measure.name].max().dropna().sort_values()
    if longest.empty or not longest.iloc[-1] > 0.0:
        return 1.0
    far = len(longest) > 2 and longest.iloc[-1] > FAR_ABOVE * longest.iloc[-2] > 0.0
    return 1.15 * float(longest.iloc[-2] if far else longest.iloc[-1])
