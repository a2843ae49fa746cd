"""The numbers behind the tables of docs/results/igsc22.md and docs/results/frugal.md: from results of igsc22.yaml or
from two files.

`summary.csv` has the means of each algorithm by study and envelope, and over `all` envelopes; `instances.csv` has each
run of the optimum, of the algorithms that the report highlights, and of those that `PAIRS` compares. Units are in the
names of the columns: kills in jobs, violations in steps of the envelope.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from batwatt.campaign.execute import BOUNDS
from batwatt.errors import InputError
from batwatt.report.grid import write_csv
from batwatt.report.papers import igsc22
from batwatt.report.table import KILLS, SLOWDOWN, VIOLATIONS, WORK, Measure, SavedCampaign
from batwatt.units import J_PER_KWH

SUMMARY, INSTANCES = "summary.csv", "instances.csv"
ALL = "all"
"""In place of an envelope: the mean over all of them."""
OPTIMUM = "Optimum"
"""The label of the optimum in igsc22.yaml."""
ENERGY = Measure("energy_kwh", "energy", "kWh", "energy of the servers", decimals=1)
MEANS = (SLOWDOWN.name, "killed_power", "killed_walltime", KILLS.name, VIOLATIONS.name, WORK.name, ENERGY.name)
COUNTS = ("killed_power", "killed_walltime", "violations")
RUN = ("mean_slowdown", *COUNTS, "finished_work_fraction", "energy_j")
WHERE = ("study", "label", "workload", "envelope")
PAIRS = (
    ("readings", "EBF Slow HFLD", "EBF Slow IDFS"),
    ("readings", "EBF Slow HFLD", "EBF Slow IDSB"),
    ("readings", "EBF Slow HFLD in turns", "EBF Slow IDSB"),
    ("readings", "EBF Slow HFLD in turns", "EBF Slow HFLD"),
    ("readings", "FF Slow HFLD", "EBF Slow HFLD"),
    ("readings", "FF Slow HFLD in turns", "EBF Slow HFLD in turns"),
    ("resubmitted", "EBF Slow IDFS resubmitted", "EBF Slow HFLD resubmitted"),
    ("resubmitted", "EBF Slow IDSB resubmitted", "EBF Slow HFLD resubmitted"),
    ("resubmitted", "EBF Slow IDSB resubmitted", "EBF Slow HFLD in turns resubmitted"),
    ("own", "EBF Slow Frugal", "EBF Slow HFLD"),
    ("own", "EBF Slow Frugal forecast", "EBF Slow HFLD"),
    ("other-seeds", "EBF Slow Frugal", "EBF Slow HFLD"),
    ("other-seeds", "EBF Slow Frugal forecast", "EBF Slow HFLD"),
)
"""Study and two algorithms of it that are compared workload by workload."""
AGAIN = "make it again: python experiments/igsc22_tables.py results/igsc22"


@dataclass(frozen=True)
class Numbers:
    """The two files: means by study, algorithm and envelope, and the runs of the algorithms that stand out."""

    summary: pd.DataFrame
    instances: pd.DataFrame

    def means(self, study: str, envelope: str = ALL) -> pd.DataFrame:
        """The means of a study under an envelope, by label, in the order of the file."""
        rows = self.summary[(self.summary["study"] == study) & (self.summary["envelope"] == envelope)]
        return rows.set_index("label")

    def envelopes(self, study: str) -> list[str]:
        """The envelopes of a study, then `ALL` if they are several."""
        found = self.summary.loc[self.summary["study"] == study, "envelope"].unique().tolist()
        names = [name for name in found if name != ALL]
        return [*names, ALL] if len(names) > 1 else names

    def runs(self, study: str) -> pd.DataFrame:
        """The runs of a study, with their kills and finished work in %."""
        rows = self.instances[self.instances["study"] == study]
        kills = rows["killed_power"] + rows["killed_walltime"]
        return rows.assign(**{KILLS.name: kills, WORK.name: 100.0 * rows["finished_work_fraction"]})

    def optimum(self, study: str) -> pd.DataFrame:
        """The runs of the optimum in a study, by workload and envelope."""
        rows = self.runs(study)
        return rows[rows["label"] == OPTIMUM].set_index(["workload", "envelope"])


def numbers_of(campaign: SavedCampaign) -> Numbers:
    """The numbers of the paper's campaign. Raises InputError if it is another, or has several runs of an instance."""
    plan = igsc22.plan_of(campaign)
    if plan is None:
        hint = "run: batwatt campaign run experiments/igsc22.yaml"
        raise InputError(campaign.folder, "is not the campaign igsc22", hint)
    done = campaign.done.assign(**{ENERGY.name: campaign.done["energy_j"] / J_PER_KWH})
    twice = done[done.duplicated(list(WHERE))]
    if not twice.empty:
        where = " ".join(twice.iloc[0][list(WHERE)])
        raise InputError(campaign.folder, f"has several runs of {where}", "declare one of each in igsc22.yaml")
    order = plan.ordered(campaign.labels)
    for column, values in (("study", campaign.studies), ("label", order)):
        done[column] = pd.Categorical(done[column], values, ordered=True)
    parts = []
    for frame in (done, done.assign(envelope=ALL)):
        group = frame.groupby(["study", "label", "envelope"], observed=True)
        parts.append(group[list(MEANS)].mean().assign(runs=group.size()).reset_index())
    summary = pd.concat(parts).sort_values(["study", "label"], kind="stable")
    chosen = [label for label in order if label in (plan.reference, *plan.highlighted)]
    compared = {(study, label) for study, *labels in PAIRS for label in labels}
    there = [
        label in chosen or (study, label) in compared for study, label in zip(done["study"], done["label"], strict=True)
    ]
    instances = done[there].sort_values(list(WHERE))[[*WHERE, *RUN, *BOUNDS]]
    for name in COUNTS:
        instances[name] = instances[name].astype("Int64")
    return Numbers(summary[["study", "label", "envelope", "runs", *MEANS]], instances)


def read_numbers(folder: Path) -> Numbers:
    """The numbers from the two files in a folder. Raises InputError if one is not there or has other columns."""
    wanted = {SUMMARY: ("study", "label", "envelope", "runs", *MEANS), INSTANCES: (*WHERE, *RUN, *BOUNDS)}
    frames = []
    for name, columns in wanted.items():
        try:
            frame = pd.read_csv(folder / name, dtype={"study": str, "label": str, "workload": str, "envelope": str})
        except (OSError, ValueError) as error:
            raise InputError(folder / name, f"cannot be read ({error})", AGAIN) from None
        missing = [column for column in columns if column not in frame]
        if missing:
            raise InputError(folder / name, f"no column {missing[0]!r}", AGAIN)
        frames.append(frame)
    summary, instances = frames
    # True, False, or empty where there is no optimum
    return Numbers(summary, instances.assign(proven_optimal=instances["proven_optimal"].astype(str) == "True"))


def write_numbers(numbers: Numbers, folder: Path) -> list[Path]:
    """Write the two files, numbers with 6 decimals, counts of single runs whole; returns their paths."""
    return [write_csv(numbers.summary, folder / SUMMARY), write_csv(numbers.instances, folder / INSTANCES)]
