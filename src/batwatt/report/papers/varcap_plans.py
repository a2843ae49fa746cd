"""Which figures of the varcap dissertation there are, of which studies, and what varies in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import pandas as pd

from batwatt.report.charts import Kind
from batwatt.report.grid import slug
from batwatt.report.papers.pmbs23 import GOODPUT
from batwatt.report.papers.varcap import FAILURES, FIXED, GAINED, MEASURES, SAVED, SLOWED, WORK
from batwatt.report.table import Measure

Fixed = Literal["zero", "first", "level", "own"]


@dataclass(frozen=True)
class Axis:
    """What a figure is drawn against: a column of the points, or `fixed` first and then that."""

    column: str
    title: str
    logarithmic: bool = False


RANGE = Axis("range", "range of the capacity (share of all machines)")
FREQUENCY = Axis("changes_per_h", "changes per hour", True)
FORESIGHT = Axis("foresight_h", "foresight (h)")
HEADROOM = Axis("headroom", "most capacity (share of all machines)")
LONG = Axis("long_fraction", "share of core hours in long jobs")
TRACE = Axis("trace", "cell")
SHAPE = Axis("shape", "capacity: structure and range")
SUPPLY = Axis("source", "capacity")
DAY = Axis("day", "day")
ALGORITHM = Axis("label", "")
CASE = Axis("case", "")


@dataclass(frozen=True)
class Plot:
    """A figure: of the study `stem` and of those that begin like `stem-`, a panel for each and each measure.

    `by` is the column of the series: `steps` are the largest changes of walks, `classes` short and long jobs. What
    becomes of the fixed capacity: `zero`, it is the range 0 of every series; `first`, it is the first value of x;
    `level`, a line across; `own`, nothing special.
    """

    stem: str
    figure: str
    title: str
    x: Axis
    by: str
    _: KW_ONLY
    measures: tuple[Measure, ...] = MEASURES
    kind: Kind = "lines"
    fixed: Fixed = "zero"
    name: str = ""
    """Name of a figure that is none of the text's."""

    @property
    def id(self) -> str:
        """A part of file names."""
        return self.name or self.stem

    def holds(self, study: str) -> bool:
        """Whether it is of this study."""
        return study == self.stem or study.startswith(f"{self.stem}-")


FAILED = (GOODPUT, FAILURES)
PLANS = (
    Plot("fig5-2", "Figure 5.2", "range and largest change of a walk", RANGE, "steps", measures=FAILED),
    Plot("fig5-3", "Figure 5.3", "range and structure", RANGE, "structure", measures=FAILED),
    Plot("fig5-4", "Figure 5.4", "range and structure with oversubscription", RANGE, "structure",
         measures=(GOODPUT, SLOWED)),
    Plot("fig5-6", "Figures 5.5 and 5.6", "how often the capacity changes", FREQUENCY, "shape", measures=FAILED,
         fixed="level"),
    Plot("fig5-7", "Figure 5.7", "how often the capacity changes, with oversubscription", FREQUENCY, "shape",
         measures=(GOODPUT, SLOWED), fixed="level"),
    Plot("fig5-8", "Figure 5.8", "cells of TNG", TRACE, "shape", kind="bars", fixed="own"),
    Plot("fig5-9", "Figure 5.9", "the whole range, short and long jobs apart", RANGE, "classes"),
    Plot("fig5-10", "Figure 5.10", "jobs that depend on others", SHAPE, "dependence", kind="bars", fixed="own"),
    Plot("fig5-11", "Figure 5.11", "the share of long jobs", LONG, "shape", fixed="own"),
    Plot("fig5-16", "Figure 5.16", "real variation and walks", SHAPE, "source", kind="bars", fixed="own",
         measures=FAILED),
    Plot("fig6-3", "Figure 6.3", "terminations on a wide walk of small steps", ALGORITHM, "label", kind="bars",
         fixed="own", measures=FAILED),
    Plot("fig6-4", "Figures 6.2, 6.4 and 6.5", "terminations by range and structure", SHAPE, "label", kind="bars",
         fixed="own", measures=FAILED),
    Plot("fig6-8", "Figures 6.7 to 6.9", "foresight with exact run times", FORESIGHT, "shape", fixed="level",
         measures=FAILED),
    Plot("german", "Figure 6.11", "a German data centre, day by day", DAY, "label", kind="bars", fixed="level",
         measures=(WORK, FAILURES)),
    Plot("german-headroom", "Figure 6.12", "work and carbon by headroom", HEADROOM, "label", fixed="own",
         measures=(WORK, SAVED, GAINED)),
    Plot("fig7-4", "Figures 7.3 and 7.4", "schedulers and foresight", FORESIGHT, "label", kind="bars", fixed="first"),
    Plot("fig7-5", "Figure 7.5", "schedulers over the whole range", RANGE, "label"),
    Plot("longer-5-10", "Figure 5.10, longer jobs", "dependencies, as if jobs ran longer", SHAPE, "dependence",
         kind="bars", fixed="own"),
    Plot("longer-5-11", "Figure 5.11, longer jobs", "long jobs, as if all ran longer", LONG, "shape", fixed="own"),
    Plot("longer-7-4", "Figure 7.4, longer jobs", "schedulers, as if jobs ran longer", FORESIGHT, "label", kind="bars",
         fixed="first"),
    Plot("longer-7-5", "Figure 7.5, longer jobs", "the whole range, as if jobs ran longer", RANGE, "label"),
    Plot("errors", "Errors of foresight", "six hours of it, wrong in several ways", CASE, "error", kind="bars",
         fixed="level", measures=FAILED),
    Plot("mustang", "Mustang", "real jobs on a real capacity", SUPPLY, "label", kind="bars", fixed="own"),
)  # fmt: skip
"""In the order of the text; of several that hold a study the one with the longest stem counts."""


def plan_of(study: str) -> Plot | None:
    """The plan of a study; None of one that is not of the dissertation's."""
    found = [plan for plan in PLANS if plan.holds(study)]
    return max(found, key=lambda plan: len(plan.stem)) if found else None


def hours_apart(studies: Sequence[str]) -> dict[str, bool]:
    """For `varcap.named`: of which studies labels hold hours of foresight, or name no algorithm."""
    plans = ((study, plan_of(study)) for study in studies)
    return {study: plan.by == "label" for study, plan in plans
            if plan is not None and (plan.by != "label" or plan.x is FORESIGHT)}  # fmt: skip


def general_plan(study: str, rows: pd.DataFrame) -> Plot:
    """The plan of any other study: by the range, the foresight or else the capacity, one series per algorithm."""
    figure = f"Study “{study}”"
    varied = rows[rows["structure"] != FIXED]
    sizes = varied["range"].dropna()
    if sizes.nunique() > 1 and varied["structure"].nunique() == 1:
        return Plot(study, figure, "algorithms by range", RANGE, "label")
    if rows["foresight_h"].nunique() > 1 and not rows["label"].str.contains(r"\d h").any():
        return Plot(study, figure, "algorithms by foresight", FORESIGHT, "label", kind="bars", fixed="first")
    return Plot(study, figure, "algorithms by capacity", SHAPE, "label", kind="bars", fixed="own")


def plans_of(frame: pd.DataFrame) -> list[tuple[Plot, list[str]]]:
    """The figures of a table of points with their studies: those of the text in its order, then the others."""
    studies = frame["study"].unique().tolist()
    known: Mapping[str, Plot | None] = {study: plan_of(study) for study in studies}
    found = [(plan, [study for study in studies if known[study] == plan]) for plan in PLANS]
    others = []
    for number, study in enumerate(study for study in studies if known[study] is None):
        plan = general_plan(study, frame[frame["study"] == study])
        # names of studies may differ in what no file name holds
        others.append((replace(plan, name=f"study-{number + 1}-{slug(study)}"), [study]))
    return [(plan, its) for plan, its in (*found, *others) if its]
