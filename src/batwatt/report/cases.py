"""Cases on the same samples with their figures, of a comparison, alone or in a study: means, ratings, fronts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from batwatt.model.platform import MachinePower
from batwatt.model.timeline import Timeline
from batwatt.results.compared import COMPARED, CaseFacts, Difference, known_mean, mean_of, sample_of
from batwatt.results.drawing import Look
from batwatt.results.figures import FIGURES, Figure, figures_of
from batwatt.results.groups import known_groupings, union_of
from batwatt.results.power import PowerTrace

WITHIN = 1e-3
"""A case keeps to the envelope if no larger share of its energy is above it."""
ENOUGH = 0.95
"""Cases are rated that finish at least this share of the jobs, and of the work, that the best of those within does."""
ROUNDING = 1e-9
"""Relative standard error below which it counts as 0."""
TOTAL, FINISHED, REJECTED = figures_of(("jobs_total", "jobs_finished", "jobs_rejected"))
SLOWDOWN, WAIT, WORK = figures_of(("mean_bounded_slowdown", "mean_wait_s", "finished_work_fraction"))
ABOVE, ENERGY, END = figures_of(("energy_above_cap_j", "energy_j", "makespan_s"))
LOST = replace(
    FIGURES["jobs_lost"], title="lost jobs", display="jobs",
    meaning="jobs that never finish: killed for good, rejected, failed or unfinished",
)  # fmt: skip
KILLS = FIGURES["kills"]
IF_ANY = ("killed_walltime", "jobs_failed", "jobs_unfinished")
"""Counts that have a column only if some case has one."""


@dataclass(frozen=True)
class ComparedCases:
    """Cases, one of which is the reference: by default the first.

    `table` has a row for each case and sample: columns `case`, those of `SAMPLE`, and figures. Charts show the
    figure `first`, and what less waiting costs in `power`: energy, carbon or cost; `bound` is a case that no scheduler
    can surpass, and is not rated. `about` names the study. Optional are `jobs` of each case on the first sample
    (without them the table has `jobs_total`), `traces` of power on one sample, which `where` names if it is not the
    first, and `rejections`, the number of jobs by case and cause. `left_out` has the reason for each case without a
    row, and `assumed_w` the power of a core in W if machines have no watts.
    """

    table: pd.DataFrame
    cases: Mapping[str, CaseFacts]
    measures: Sequence[Figure]
    first: Figure = SLOWDOWN
    power: Figure = ENERGY
    reference: str = ""
    bound: str | None = None
    about: str = ""
    looks: Mapping[str, Look] = field(default_factory=dict)
    jobs: pd.DataFrame | None = None
    traces: Mapping[str, PowerTrace] = field(default_factory=dict)
    envelope: Timeline | None = None
    where: str = ""
    machines: MachinePower | None = None
    assumed_w: float | None = None
    rejections: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.reference:
            object.__setattr__(self, "reference", self.labels[0])
        if not self.looks:
            object.__setattr__(self, "looks", {label: Look(number) for number, label in enumerate(self.labels)})

    @cached_property
    def means(self) -> pd.DataFrame:
        """Mean of each figure over the samples, a row for each case; NaN if a sample has no value."""
        numbers = self.table.select_dtypes("number").columns.difference(sample_of(self.table), sort=False)
        return self.table.groupby("case", sort=False)[list(numbers)].agg(known_mean)

    @cached_property
    def labels(self) -> list[str]:
        """Labels of the cases with results."""
        return [str(label) for label in self.means.index]

    @cached_property
    def total(self) -> float:
        """Mean number of jobs of a sample."""
        if self.jobs is None:
            return self.value(TOTAL, self.reference)
        jobs = self.jobs[self.jobs["case"] == self.reference]
        return len(jobs) / (jobs["window"].nunique() if "window" in jobs else 1)

    @cached_property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.table[sample_of(self.table)].drop_duplicates())

    @cached_property
    def unit(self) -> str:
        """Column that distinguishes the samples, or "instance" if several do."""
        names = sample_of(self.table)
        varying = [name for name in names if self.table[name].nunique() > 1]
        if not varying and "seed" in names:
            return "seed"
        return varying[0] if len(varying) == 1 else "instance"

    @property
    def units(self) -> str:
        """Plural of `unit`, singular for one sample."""
        return self.unit if self.samples == 1 else plural(self.unit)

    @cached_property
    def groupings(self) -> list[str]:
        """Groupings of the jobs."""
        return [] if self.jobs is None else known_groupings(self.jobs)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """Jobs by each of the `groupings`."""
        return pd.DataFrame() if self.jobs is None else union_of(self.jobs, self.groupings)

    @cached_property
    def _by_sample(self) -> pd.DataFrame:
        """Table with a row per sample and its columns by case."""
        return self.table.pivot(index=sample_of(self.table), columns="case")

    @property
    def up(self) -> Figure:
        """Figure of the front of which more is better."""
        return self.first if self.first.better == "higher" else WORK

    @property
    def fronts(self) -> tuple[tuple[Figure, Figure], tuple[Figure, Figure]]:
        """Pairs (across, up) of the fronts: finished work, or goodput, and what less waiting costs."""
        return (self.first if self.first.better == "lower" else WAIT, self.up), (WAIT, self.power)

    def value(self, measure: Figure, label: str) -> float:
        """Return the mean over the samples; NaN if a sample has no value."""
        there = measure.name in self.means and label in self.means.index
        return float(self.means[measure.name][label]) if there else math.nan

    def counted(self) -> ComparedCases:
        """Return the cases with their lost jobs and their kills as figures."""
        table = self.table.assign(**{LOST.name: self.total - self.table[FINISHED.name]})
        measures = [*self.measures, *([LOST] if math.isfinite(self.total) else [])]
        if KILLS.name not in table and all(part in table for part in KILLS.parts):
            table[KILLS.name] = table[list(KILLS.parts)].sum(axis=1)
            measures.append(KILLS)
        return replace(self, table=table, measures=measures)

    def ordered(self, measure: Figure, begin: Sequence[str] = ()) -> list[str]:
        """Return all cases: those of `begin`, the other rated ones and the others, each by a figure."""
        costs = {label: measure.sign * self.value(measure, label) for label in self.labels if label not in begin}
        places = {label: (label not in self.rated, math.inf if math.isnan(cost) else cost)
                  for label, cost in costs.items()}  # fmt: skip
        return [*begin, *sorted(places, key=places.__getitem__)]

    def above_share(self, label: str) -> float:
        """Return the share of the energy of a case that is above the envelope; 0 without energies."""
        energy_j, above_j = self.value(ENERGY, label), self.value(ABOVE, label)
        return above_j / energy_j if energy_j > 0.0 and above_j > 0.0 else 0.0

    @property
    def capped(self) -> bool:
        """True if there is an envelope."""
        return ABOVE.name in self.means and bool(self.means[ABOVE.name].notna().any())

    @cached_property
    def above(self) -> list[str]:
        """Cases that do not keep to the envelope."""
        return [label for label in self.labels if self.above_share(label) > WITHIN]

    @cached_property
    def within(self) -> list[str]:
        """Cases that keep to the envelope and have results on every sample of the reference."""
        ran = self._ran()
        return [label for label in self.labels
                if label not in self.above and label != self.bound and ran[label].notna().all()]  # fmt: skip

    def _ran(self) -> pd.DataFrame:
        """Return the samples of the reference, or all if it has none; a column per case, 1 with a result, else NaN."""
        ran = self.table.assign(ran=1).pivot(index=sample_of(self.table), columns="case", values="ran")
        return ran[ran[self.reference].notna()] if self.reference in ran else ran

    @cached_property
    def rated(self) -> list[str]:
        """Cases of `within` that finish enough jobs, and enough work, for a meaningful mean over finished jobs."""
        rated = self.within
        for measure in (FINISHED, WORK):
            least = ENOUGH * max((v for label in self.within if (v := self.value(measure, label)) == v), default=0.0)
            rated = [label for label in rated if not self.value(measure, label) < least]
        return [label for label in rated if self.value(FINISHED, label) != 0.0]

    def best(self, measure: Figure) -> list[str]:
        """Return the rated cases with the best value, several if they are equal to six digits."""
        # an energy of 1e-6 J counts as 0
        decimals = 3 if measure.unit == "J" else 9
        costs = {
            label: float(f"{measure.sign * round(self.value(measure, label), decimals):.6g}") for label in self.rated
        }
        costs = {label: cost for label, cost in costs.items() if cost == cost}
        return [label for label, cost in costs.items() if cost == min(costs.values())]

    def difference(self, measure: Figure, label: str, other: str | None = None) -> Difference:
        """Return the difference of a case to another, by default the reference, paired by sample."""
        wide = pd.DataFrame(self._by_sample[measure.name])
        wide = wide.reindex(columns=[label, other or self.reference]).astype(float)
        difference = Difference(*mean_of((wide.iloc[:, 0] - wide.iloc[:, 1]).dropna()))
        # rounding is not chance
        small = not difference.error > ROUNDING * abs(difference.mean)
        return replace(difference, error=0.0 * difference.error) if small else difference

    def costs(self, across: Figure, up: Figure) -> dict[str, tuple[float, float]]:
        """Return the pair of values that a front compares, of each case within the envelope; less is better."""
        pairs = {label: (self.value(across, label), up.sign * self.value(up, label)) for label in self.within}
        return {label: pair for label, pair in pairs.items() if pair[0] == pair[0] and pair[1] == pair[1]}

    def dominating(self, across: Figure, up: Figure) -> dict[str, list[str]]:
        """Return the cases that dominate each case in two figures; none for a case on the front."""
        costs = self.costs(across, up)
        return {label: [other for other in costs if dominates(costs[other], costs[label])] for label in costs}

    def comparable(self) -> ComparedCases:
        """Return the samples of the reference, with the cases that have results on all of them.

        Without another such case, return the samples that all cases have, unless there is none.
        """
        ran = self._ran()
        complete, common = ran.dropna(axis=1), ran.dropna()
        ran = complete if {*complete} - {self.reference, self.bound} or common.empty else common
        why = f"has no result on some of the {plural(self.unit)} of the reference"
        lacking = {label: why for label in self.labels if label not in ran}
        samples = self.table.set_index(sample_of(self.table)).index
        rows = self.table[self.table["case"].isin(ran.columns) & samples.isin(ran.index)]
        return replace(self, table=rows, left_out=lacking | dict(self.left_out))


def lost_jobs(data: ComparedCases, label: str) -> float:
    """Return the mean number of jobs that never finish: killed for good, rejected, failed or unfinished."""
    return max(0.0, data.total - data.value(FINISHED, label))


def plural(unit: str) -> str:
    """Return the plural of a column that names samples."""
    return "capacities" if unit == "capacity" else f"{unit}s"


def measures_of(table: pd.DataFrame, currency: str = "") -> list[Figure]:
    """Return the compared figures with a value for some case, without counts of `IF_ANY` that are all 0."""
    measures = figures_of((name for name in COMPARED if name in table), currency)
    return [
        one for one in measures
        if (table[one.name] > 0 if one.name in IF_ANY else table[one.name].notna()).any()
    ]  # fmt: skip


def dominates(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    """Return whether the first costs no more than the second in any value, and less in one."""
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))
