"""The choices of a campaign's report: the algorithms shown when the page opens, their looks, the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from batwatt.report.table import SavedCampaign
from batwatt.results.figures import Figure
from batwatt.results.style import PALETTE, Look

UNRESPONSIVE = "none"
"""The response of algorithms that ignore the envelope."""
MOST = 8
"""Up to this many algorithms can be distinguished at a glance in one figure."""


@dataclass(frozen=True)
class ReportPlan:
    """The plan of a report."""

    title: str
    shown: tuple[str, ...]
    """The algorithms chosen when the page opens, the reference first."""
    reference: str | None
    """The optimum."""
    unresponsive: frozenset[str]
    """Algorithms that ignore the envelope; they are the baselines, the first that a study has."""

    def ordered(self, labels: Sequence[str]) -> list[str]:
        """Return the labels, those shown first, the others by name."""
        first = [label for label in self.shown if label in labels]
        return [*first, *sorted(set(labels) - set(first))]

    def looks(self, labels: Sequence[str]) -> dict[str, Look]:
        """Return the look of each label; the reference is black, and the others shown are not."""
        black = len(PALETTE) - 1
        free = (number for number in range(len(labels) + len(PALETTE)) if self.reference is None or number != black)
        numbers = {label: black if label == self.reference else next(free) for label in self.ordered(labels)}
        return {label: Look(number) for label, number in numbers.items()}


def places(frame: pd.DataFrame, measures: Sequence[Figure]) -> pd.DataFrame:
    """Return the place of each label (index) in each measure (column): 0 the best of all labels, 1 the worst.

    `frame` has a row per label and instance. Labels that are all equal are all the best; a measure without a value is
    left out.
    """
    means = frame.groupby("label", sort=False)[[measure.name for measure in measures]].mean()
    found = {}
    for measure in measures:
        values = means[measure.name] if measure.better == "lower" else -means[measure.name]
        best, worst = values.min(), values.max()
        if pd.notna(best):
            found[measure.name] = (values - best) / (worst - best) if worst > best else values * 0.0
    return pd.DataFrame(found, index=means.index)


def plan_of(campaign: SavedCampaign, points: pd.DataFrame, measures: Sequence[Figure]) -> ReportPlan:
    """Return the plan of a report: the best algorithms of the first study with results, and those of no other study.

    The best have the least mean of their places in all measures; ties are decided by name.
    """
    rows = campaign.frame.drop_duplicates("label").set_index("label")
    reference = campaign.reference
    main = points[points["study"] == points["study"].iloc[0]] if len(points) else points
    mean = places(main[main["label"] != reference], measures).mean(axis=1)
    ranked = sorted(mean.index, key=lambda label: (float(mean[label]), label))
    drawn = {*points["label"], reference} - set(ranked[MOST - (reference is not None) :])
    return ReportPlan(
        title=f"Campaign {campaign.name}",
        shown=(*filter(None, (reference,)), *(x for x in campaign.labels if x in drawn and x != reference)),
        reference=reference,
        unresponsive=frozenset(rows.index[rows["response"] == UNRESPONSIVE].tolist()),
    )
