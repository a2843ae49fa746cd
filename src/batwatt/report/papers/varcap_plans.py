"""Which figures of the varcap dissertation there are, of which studies, and what varies in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, kw_only=True)
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


PLANS = (
    Plot(stem="fig5-2", figure="Figure 5.2", title="range and largest change of a walk", x=RANGE, by="steps",
         measures=(GOODPUT, FAILURES)),
    Plot(stem="fig5-3", figure="Figure 5.3", title="range and structure", x=RANGE, by="structure",
         measures=(GOODPUT, FAILURES)),
    Plot(stem="fig5-4", figure="Figure 5.4", title="range and structure with oversubscription", x=RANGE,
         by="structure", measures=(GOODPUT, SLOWED)),
    Plot(stem="fig5-6", figure="Figures 5.5 and 5.6", title="how often the capacity changes", x=FREQUENCY, by="shape",
         measures=(GOODPUT, FAILURES), fixed="level"),
    Plot(stem="fig5-7", figure="Figure 5.7", title="how often the capacity changes, with oversubscription",
         x=FREQUENCY, by="shape", measures=(GOODPUT, SLOWED), fixed="level"),
    Plot(stem="fig5-8", figure="Figure 5.8", title="cells of TNG", x=TRACE, by="shape", kind="bars", fixed="own"),
    Plot(stem="fig5-9", figure="Figure 5.9", title="the whole range, short and long jobs apart", x=RANGE,
         by="classes"),
    Plot(stem="fig5-10", figure="Figure 5.10", title="jobs that depend on others", x=SHAPE, by="dependence",
         kind="bars", fixed="own"),
    Plot(stem="fig5-11", figure="Figure 5.11", title="the share of long jobs", x=LONG, by="shape", fixed="own"),
    Plot(stem="fig5-16", figure="Figure 5.16", title="real variation and walks", x=SHAPE, by="source", kind="bars",
         fixed="own", measures=(GOODPUT, FAILURES)),
    Plot(stem="fig6-3", figure="Figure 6.3", title="terminations on a wide walk of small steps", x=ALGORITHM,
         by="label", kind="bars", fixed="own", measures=(GOODPUT, FAILURES)),
    Plot(stem="fig6-4", figure="Figures 6.2, 6.4 and 6.5", title="terminations by range and structure", x=SHAPE,
         by="label", kind="bars", fixed="own", measures=(GOODPUT, FAILURES)),
    Plot(stem="fig6-8", figure="Figures 6.7 to 6.9", title="foresight with exact run times", x=FORESIGHT, by="shape",
         fixed="level", measures=(GOODPUT, FAILURES)),
    Plot(stem="german", figure="Figure 6.11", title="a German data centre, day by day", x=DAY, by="label",
         kind="bars", fixed="level", measures=(WORK, FAILURES)),
    Plot(stem="german-headroom", figure="Figure 6.12", title="work and carbon by headroom", x=HEADROOM, by="label",
         fixed="own", measures=(WORK, SAVED, GAINED)),
    Plot(stem="fig7-4", figure="Figures 7.3 and 7.4", title="schedulers and foresight", x=FORESIGHT, by="label",
         kind="bars", fixed="first"),
    Plot(stem="fig7-5", figure="Figure 7.5", title="schedulers over the whole range", x=RANGE, by="label"),
    Plot(stem="longer-5-10", figure="Figure 5.10, longer jobs", title="dependencies, as if jobs ran longer", x=SHAPE,
         by="dependence", kind="bars", fixed="own"),
    Plot(stem="longer-5-11", figure="Figure 5.11, longer jobs", title="long jobs, as if all ran longer", x=LONG,
         by="shape", fixed="own"),
    Plot(stem="longer-7-4", figure="Figure 7.4, longer jobs", title="schedulers, as if jobs ran longer", x=FORESIGHT,
         by="label", kind="bars", fixed="first"),
    Plot(stem="longer-7-5", figure="Figure 7.5, longer jobs", title="the whole range, as if jobs ran longer", x=RANGE,
         by="label"),
    Plot(stem="errors", figure="Errors of foresight", title="six hours of it, wrong in several ways", x=CASE,
         by="error", kind="bars", fixed="level", measures=(GOODPUT, FAILURES)),
    Plot(stem="mustang", figure="Mustang", title="real jobs on a real capacity", x=SUPPLY, by="label", kind="bars",
         fixed="own"),
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
        return Plot(stem=study, figure=figure, title="algorithms by range", x=RANGE, by="label")
    if rows["foresight_h"].nunique() > 1 and not rows["label"].str.contains(r"\d h").any():
        return Plot(stem=study, figure=figure, title="algorithms by foresight", x=FORESIGHT, by="label", kind="bars",
                    fixed="first")  # fmt: skip
    return Plot(stem=study, figure=figure, title="algorithms by capacity", x=SHAPE, by="label", kind="bars",
                fixed="own")  # fmt: skip


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
