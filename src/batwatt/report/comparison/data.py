"""What the page of a comparison of systems is about: plain data, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from batwatt.model.series import Series
from batwatt.model.site import MachinePower
from batwatt.report.front import dominates
from batwatt.report.means import Difference, mean_of
from batwatt.results.compared import COMPARED, CaseFacts, by_sample, samples_of, summary_of
from batwatt.results.figures import Figure, figures_of
from batwatt.results.groups import known_groupings, paired_of, union_of
from batwatt.results.power import PowerTrace
from batwatt.results.style import Look

WITHIN = 1e-3
"""A case keeps to the envelope if no larger share of its energy is above it."""
ENOUGH = 0.95
"""Cases are rated that finish at least this share of the jobs that the best of those within the envelope finishes."""
ROUNDING = 1e-9
"""Relative: a smaller standard error is none."""
IF_ANY = ("killed_walltime", "jobs_failed", "jobs_unfinished")
"""Counts that have a column only if some case has one."""
FINISHED, SLOWDOWN, WAIT, WORK = figures_of(
    ("jobs_finished", "mean_bounded_slowdown", "mean_wait_s", "finished_work_fraction")
)
ABOVE, ENERGY = figures_of(("energy_above_cap_j", "energy_j"))


@dataclass(frozen=True)
class ComparedSystems:
    """The cases, the first of which is the reference.

    `table` has a row for each case and seed, `jobs` for each job of each case (the first seed), `traces` the power of
    each case (the first seed); `errors` says why a case is left out; `facts` are pairs of a name and a text,
    `reading` what readers left out of the inputs or filled in, `rejections` why jobs were rejected (the first seed).
    """

    table: pd.DataFrame
    jobs: pd.DataFrame
    cases: Mapping[str, CaseFacts]
    traces: Mapping[str, PowerTrace]
    envelope: Series
    machines: MachinePower
    errors: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    reading: Sequence[str] = ()
    rejections: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    currency: str = ""

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row a case, means over seeds, with standard errors of differences to the reference."""
        return summary_of(self.table)

    @cached_property
    def labels(self) -> list[str]:
        """The cases that ran."""
        return [str(label) for label in self.summary.index]

    @property
    def reference(self) -> str:
        """The case that the others are compared with."""
        return self.labels[0]

    @cached_property
    def looks(self) -> dict[str, Look]:
        """How each case looks."""
        return {label: Look(number) for number, label in enumerate(self.labels)}

    @cached_property
    def samples(self) -> int:
        """How many windows, or seeds of one window, there are."""
        return samples_of(self.table)

    @property
    def kind(self) -> str:
        """What the samples are."""
        return "windows" if self.table["window"].nunique() > 1 else "seeds"

    @cached_property
    def total(self) -> int:
        """Jobs of the workload."""
        return int((self.jobs["case"] == self.reference).sum())

    @cached_property
    def measures(self) -> list[Figure]:
        """The measures that are known of some case, without counts of `IF_ANY` that are all 0."""
        known = figures_of((name for name in COMPARED if name in self.summary), self.currency)
        return [
            one for one in known
            if (self.summary[one.name] > 0 if one.name in IF_ANY else self.summary[one.name].notna()).any()
        ]  # fmt: skip

    @cached_property
    def groupings(self) -> list[str]:
        """What the jobs can be grouped by."""
        return known_groupings(self.jobs)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """The jobs by each of these."""
        return union_of(self.jobs, self.groupings)

    @cached_property
    def paired(self) -> pd.DataFrame:
        """Case -> mean differences of the jobs that finished in the reference, too."""
        return paired_of(self.jobs)

    def value(self, measure: Figure, label: str) -> float:
        """The mean over seeds; NaN if it is not known."""
        return float(self.summary[measure.name][label]) if measure.name in self.summary else float("nan")

    def above_share(self, label: str) -> float:
        """Share of the energy of a case that is above the envelope; 0 if energies are not known."""
        energy_j = self.value(ENERGY, label)
        return self.value(ABOVE, label) / energy_j if energy_j > 0.0 else 0.0

    @cached_property
    def within(self) -> list[str]:
        """The cases that keep to the envelope."""
        return [label for label in self.labels if self.above_share(label) <= WITHIN]

    @cached_property
    def rated(self) -> list[str]:
        """Those of them that finish enough jobs for a mean over these to say something."""
        most = max((self.value(FINISHED, label) for label in self.within), default=0.0)
        return [label for label in self.within if most > 0.0 and self.value(FINISHED, label) >= ENOUGH * most]

    def best(self, measure: Figure) -> list[str]:
        """The rated cases with the best value, several if they are equal to six digits; none if none has one."""
        sign = -1.0 if measure.better == "higher" else 1.0
        # energies of 1e-6 J are those of none
        worth = {label: float(f"{sign * round(self.value(measure, label), 3):.6g}") for label in self.rated}
        known = {label: cost for label, cost in worth.items() if cost == cost}
        return [label for label, cost in known.items() if cost == min(known.values())]

    @property
    def chosen(self) -> str | None:
        """The rated case with the lowest mean bounded slowdown, the first of equals."""
        return next(iter(self.best(SLOWDOWN)), None)

    def difference(self, measure: Figure, label: str, other: str | None = None) -> Difference:
        """By how much a case has more than another, by default the reference; paired by seed."""
        wide = by_sample(self.table, measure.name)
        found = Difference(*mean_of(wide[label].astype(float).sub(wide[other or self.reference]).dropna()))
        # rounding is no chance
        return found if found.error > ROUNDING * abs(found.mean) else replace(found, error=0.0 * found.error)

    def costs(self, second: Figure = SLOWDOWN) -> dict[str, tuple[float, float]]:
        """Of the cases within the envelope with both values: what is compared on the front, less is better."""
        found = {label: (self.value(second, label), -self.value(WORK, label)) for label in self.within}
        return {label: pair for label, pair in found.items() if pair[0] == pair[0] and pair[1] == pair[1]}

    def dominating(self, second: Figure = SLOWDOWN) -> dict[str, list[str]]:
        """Case -> those that dominate it in finished work and a second measure; none: it is on the front."""
        costs = self.costs(second)
        return {label: [other for other in costs if dominates(costs[other], costs[label])] for label in costs}
