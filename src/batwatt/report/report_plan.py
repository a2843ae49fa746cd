"""The choices of a campaign's report: the main study, the algorithms that stand out, their looks."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from batwatt.report.table import COMPARED, INSTANCE, Measure, SavedCampaign
from batwatt.results.style import PALETTE, Look

UNRESPONSIVE = "none"
"""The response of algorithms that do nothing about the envelope."""
DRAWN = 8
"""So many algorithms can be distinguished at a glance in one picture."""


@dataclass(frozen=True)
class ReportPlan:
    """The plan of a report."""

    title: str
    main: str
    """The study of the tables and of most figures."""
    highlighted: tuple[str, ...]
    """The algorithms that stand out, without the reference; the tables name them first."""
    drawn: tuple[str, ...]
    """Those of them that are drawn, and chosen when the page opens."""
    reference: str | None = None
    variants: str | None = None
    """The study with several envelopes."""
    unresponsive: frozenset[str] = frozenset()
    """Algorithms that do nothing about the envelope: no ranges are stretched to hold them."""
    baselines: tuple[str, ...] = ()
    """What the others are compared with: the first of these that a study has, else its first algorithm."""
    companions: tuple[str, ...] = ()
    """Algorithms next to the one whose violation is looked at closely."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Label -> name of the family it belongs to."""
    members: Mapping[str, str] = field(default_factory=dict)
    """Label -> what distinguishes it from the others of its family."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Label -> number of its look, where it has the same in every report; the others take what is left."""

    @property
    def rated(self) -> tuple[str, ...]:
        """The highlighted algorithms that do something about the envelope."""
        return tuple(label for label in self.highlighted if label not in self.unresponsive)

    @property
    def shown(self) -> tuple[str, ...]:
        """The reference and the drawn algorithms."""
        return (*((self.reference,) if self.reference else ()), *self.drawn)

    def ordered(self, labels: Sequence[str]) -> list[str]:
        """The labels with the reference first, then the highlighted ones, then the others by name."""
        first = [label for label in (self.reference, *self.highlighted) if label in labels]
        return [*(str(label) for label in first), *sorted(set(labels) - set(first))]

    def looks(self, labels: Sequence[str]) -> dict[str, Look]:
        """How each label looks; the reference has the last colour, black, to itself among the drawn ones."""
        black = len(PALETTE) - 1
        numbers = {label: number for label, number in self.fixed.items() if label in labels}
        numbers |= {self.reference: black} if self.reference else {}
        taken = set(numbers.values())
        free = (number for number in range(len(labels) + len(PALETTE)) if number not in taken)
        others = [label for label in (*self.drawn, *self.ordered(labels)) if label not in numbers]
        numbers = dict(zip(dict.fromkeys(others), free, strict=False)) | numbers
        return {label: Look(number) for label, number in numbers.items()}


def places(frame: pd.DataFrame, measures: Sequence[Measure] = COMPARED) -> pd.DataFrame:
    """Where each label (index) stands in each measure (column): 0 the best of all labels, 1 the worst.

    `frame` has a row per label and instance. Labels that are all equal are all the best; a measure that has no meaning
    for any of them is left out.
    """
    means = frame.groupby("label", sort=False)[[measure.name for measure in measures]].mean()
    found = {}
    for measure in measures:
        values = means[measure.name] if measure.better == "lower" else -means[measure.name]
        best, worst = values.min(), values.max()
        if pd.notna(best):
            found[measure.name] = (values - best) / (worst - best) if worst > best else values * 0.0
    return pd.DataFrame(found, index=means.index)


def best_first(frame: pd.DataFrame, labels: Sequence[str]) -> list[str]:
    """The labels by the mean of their places, the best first; ties by name."""
    mean = places(frame[frame["label"].isin(labels)]).mean(axis=1)
    return sorted(labels, key=lambda label: (float(mean.get(label, 1.0)), label))


def widest(campaign: SavedCampaign) -> str:
    """The study with the most instances; of equals, the first."""
    return max(campaign.studies, key=lambda study: len(campaign.study(study)[list(INSTANCE)].drop_duplicates()))


def families(campaign: SavedCampaign) -> tuple[dict[str, str], dict[str, str]]:
    """Label -> its response, or the scheduler if it has none; label -> its backfilling and order, or itself."""
    rows = campaign.frame.drop_duplicates("label").set_index("label")
    groups = rows["response"].where(rows["response"] != "", rows["scheduler"])
    members = (rows["backfilling"] + " " + rows["order"]).str.strip()
    members = members.where(members != "", rows.index.to_series())
    return {str(label): name for label, name in groups.items()}, {str(label): name for label, name in members.items()}


def plan_of_all(
    campaign: SavedCampaign, title: str, rank: Callable[[str], int], groups: Callable[[str], str],
    fixed: Mapping[str, int] = types.MappingProxyType({}), baselines: Sequence[str] = (),
) -> ReportPlan:  # fmt: skip
    """The plan of a report in which all algorithms are drawn, in the order of a rank."""
    labels = tuple(sorted(campaign.labels, key=rank))
    return ReportPlan(
        title=f"Campaign {campaign.name}: {title}",
        main=widest(campaign),
        highlighted=labels,
        drawn=labels,
        groups={label: groups(label) for label in labels},
        fixed=fixed,
        baselines=tuple(baselines),
    )


def general_plan(campaign: SavedCampaign) -> ReportPlan:
    """Return the plan of a campaign: its first study with results is the main one; the best algorithms if many."""
    main = next((study for study in campaign.studies if len(campaign.study(study))), campaign.studies[0])
    frame = campaign.per_instance(main)
    labels = [label for label in campaign.labels if label != campaign.reference and (frame["label"] == label).any()]
    best = best_first(frame, labels)[: DRAWN - (campaign.reference is not None)]
    drawn = tuple(label for label in labels if label in best)
    several = [name for name in campaign.studies if campaign.study(name)["envelope"].nunique() > 1]
    groups, members = families(campaign)
    rows = campaign.frame
    unresponsive = rows.loc[rows["response"] == UNRESPONSIVE, "label"].unique().tolist()
    return ReportPlan(
        title=f"Campaign {campaign.name}",
        baselines=tuple(unresponsive),
        unresponsive=frozenset(unresponsive),
        main=main,
        highlighted=drawn,
        drawn=drawn,
        reference=campaign.reference,
        variants=several[0] if several else None,
        companions=tuple(label for label in drawn if label not in unresponsive)[:2],
        groups=groups,
        members=members,
    )
