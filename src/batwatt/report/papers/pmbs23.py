"""The evaluation of the riskaware paper: its strategies and parameters, and which runs make which of its figures.

L. Perotin, C. Zhang, R. Wijayawardana, A. Benoit, Y. Robert, A. A. Chien, Risk-Aware Scheduling Algorithms for Variable
Capacity Resources, PMBS 2023, sections 5.4 and 6. The parameters of a run follow from the names of its inputs:

    capacity   walk-24-8-1200-3   machines on average, range, period in s, seed
    platform   152x24             machine slots, cores of a machine
    workload   uniform-20000-0    type, jobs, seed; or a slice of the Borg trace, 14D_518400
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from batwatt.inputs.workloads.pmbs_synthetic import KINDS
from batwatt.report.grid import written
from batwatt.report.report_plan import ReportPlan, plan_of_all
from batwatt.report.table import INSTANCE, Measure, SavedCampaign, read_options
from batwatt.results.metrics import MEANINGS

SOURCE = "the riskaware paper (Perotin et al., PMBS 2023)"
STRATEGIES = {
    "first-fit-aware": "FirstFitAware",
    "first-fit-unaware": "FirstFitUnaware",
    "target-stretch": "TargetStretch",
    "target-asap": "TargetASAP",
    "packed-target-asap": "PackedTargetASAP",
}
"""Value of the option `strategy` -> name in the paper, in the order of its figures."""
BORG, OTHER = "borg", "other jobs"
TYPES = (BORG, *KINDS, OTHER)
"""Types of workloads in the order of the panels."""

_WALK = r"\Awalk-(?P<mean>\d+)-(?P<range>\d+)-(?P<period_s>\d+(?:\.\d+)?)-.+\Z"
_MACHINES = r"\A\d+x(?P<cores>\d+)\Z"
_SYNTHETIC = rf"\A(?P<type>{'|'.join(map(re.escape, KINDS))})-(?P<jobs>\d+)-.+\Z"
_SLICE = re.compile(r"\d+D_\d+")

GOODPUT = Measure("goodput_percent", "goodput", "%", MEANINGS["goodput"], "higher", 1)
MAX_STRETCH = Measure("max_full_speed_slowdown", "maximum stretch", "", MEANINGS["max_full_speed_slowdown"], decimals=1)
ABORTED = Measure("aborted_percent", "aborted volume", "%", MEANINGS["aborted_volume"], decimals=1)
ABORTED_TIME = Measure("aborted_time_h", "mean aborted time", "h", MEANINGS["mean_aborted_time_s"])
MEASURES = (GOODPUT, MAX_STRETCH, ABORTED, ABORTED_TIME)
"""The four of Figure 4."""
RAW = (
    "goodput",
    "max_full_speed_slowdown",
    "mean_full_speed_slowdown",
    "aborted_volume",
    "mean_aborted_time_s",
    "completed_fraction",
)
USED = "used_fraction"
"""Goodput + aborted volume: 1 if no core is ever idle (section 6)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an instance, and the figure in which it varies; `name` is its column."""

    name: str
    symbol: str
    unit: str
    meaning: str
    figure: str

    @property
    def axis(self) -> str:
        """Label of an axis."""
        return f"{self.meaning}, {self.symbol}{f' ({self.unit})' if self.unit else ''}"


MEAN = Parameter("mean", "M_avg", "", "average number of machines", "figure1")
PERIOD = Parameter("period_s", "φ", "s", "period of the changes", "figure2")
RANGE = Parameter("range", "M_ra", "", "range of the number of machines", "figure3")
CORES = Parameter("cores", "n_c", "", "cores of a machine", "figure5")
JOBS = Parameter("jobs", "n", "", "number of jobs", "figure6")
PARAMETERS = (MEAN, PERIOD, RANGE, CORES, JOBS)
NAMES = [parameter.name for parameter in PARAMETERS]
TIED = ("mean", "range")
"""May follow the cores of a machine, so that the cores of all machines stay the same in number."""


@dataclass(frozen=True)
class Panel:
    """Runs of one type of workload that differ in one parameter: `rows` with `label`, `value` and the measures."""

    title: str
    rows: pd.DataFrame

    @property
    def type(self) -> str:
        """The type of the first workload."""
        return str(self.rows["type"].iloc[0])

    @property
    def values(self) -> list[Any]:
        """The values: numbers by size, names in the order of the rows."""
        values = self.rows["value"].unique().tolist()
        return sorted(values) if pd.api.types.is_numeric_dtype(self.rows["value"]) else values


@dataclass(frozen=True)
class Sweep:
    """What varies, in each panel; without a parameter nothing does, and `value` names what the runs are of."""

    parameter: Parameter | None
    panels: tuple[Panel, ...]

    @property
    def name(self) -> str:
        """A part of file names."""
        return self.parameter.name.removesuffix("_s") if self.parameter else "studies"


def named(campaign: SavedCampaign) -> SavedCampaign:
    """The campaign with `strategy` filled in from the option, and strategies within labels as the paper writes them.

    A label that stands for several strategies is split by them.
    """
    frame = campaign.frame
    rows = frame[["strategy", "options"]].itertuples(index=False)
    given = (name or read_options(options).get("strategy") for name, options in rows)
    found = [name if isinstance(name, str) else "" for name in given]
    frame = frame.assign(strategy=found)
    several = frame.groupby("label")["strategy"].transform("nunique") > 1
    names = frame["label"].where(~several, frame["label"] + " " + frame["strategy"])
    labels = [_in_words(name, strategy) for name, strategy in zip(names, found, strict=True)]
    return replace(campaign, frame=frame.assign(label=labels))


def _in_words(label: str, strategy: str) -> str:
    """The label with the paper's name of its strategy in place of the option's value."""
    if strategy not in STRATEGIES:
        return label
    return re.sub(rf"(?<![\w-]){re.escape(strategy)}(?![\w-])", STRATEGIES[strategy], label)


def plan_of(campaign: SavedCampaign) -> ReportPlan:
    """The plan of the report of a `named` campaign: all algorithms are drawn, those of the paper first."""
    first = campaign.frame.drop_duplicates("label").set_index("label")["strategy"]
    order = list(STRATEGIES)
    title = f"the evaluation of {SOURCE}" if set(first) >= set(STRATEGIES) else "goodput"
    return plan_of_all(
        campaign,
        title,
        lambda label: order.index(first[label]) if first[label] in order else len(order),
        lambda label: "strategies" if first[label] else "others",
    )


def points(campaign: SavedCampaign) -> pd.DataFrame:
    """A row per study, label and instance with a goodput: its type, its parameters (NaN where unknown), its figures.

    Runs that differ in something else (the seed of the algorithm, the engine) are averaged.
    """
    rows = campaign.with_goodput
    by = ["study", "label", *INSTANCE]
    grouped = rows.groupby(by, sort=False)
    frame = grouped[list(RAW)].mean().assign(key=grouped["key"].min()).reset_index()
    for column, pattern in (("capacity", _WALK), ("platform", _MACHINES), ("workload", _SYNTHETIC)):
        frame = frame.join(frame[column].str.extract(pattern))
    frame = frame.astype(dict.fromkeys(NAMES, "float64"))
    borg = frame["workload"].map(lambda name: BORG if _SLICE.fullmatch(name) else OTHER)
    return frame.assign(
        type=frame["type"].where(frame["type"].notna(), borg),
        goodput_percent=100.0 * frame["goodput"],
        aborted_percent=100.0 * frame["aborted_volume"],
        aborted_time_h=frame["mean_aborted_time_s"] / 3600.0,
        used_fraction=frame["goodput"] + frame["aborted_volume"],
    )


def sweeps(frame: pd.DataFrame) -> tuple[Sweep, ...]:
    """What varies in `points`, in the order of the figures; at last the studies in which nothing does.

    A sweep is found by the values within each study and type of workload, whatever the studies are called. Panels of
    several studies stand side by side; a run that several studies share counts once.
    """
    parts = [part for _, part in frame.groupby(["study", "type"], sort=False)]
    used = [False] * len(parts)
    found = []
    for parameter in PARAMETERS:
        lines = [_line(part, parameter) for part in parts]
        used = [before or not line.empty for before, line in zip(used, lines, strict=True)]
        rows = pd.concat(lines)
        if not rows.empty:
            found.append(Sweep(parameter, tuple(_panels(rows.drop_duplicates(["label", "key"])))))
    left = [part for part, swept in zip(parts, used, strict=True) if not swept]
    if left:
        rows = pd.concat(left).drop_duplicates(["label", "key"])
        names = [name for name in ("study", "type") if rows[name].nunique() > 1]
        if len(rows[["study", "type"]].drop_duplicates()) == rows["type"].nunique():
            names = [name for name in names if name != "study"]
        value = [" ".join(texts) for texts in rows[names].itertuples(index=False)] if names else ""
        rank = rows["type"].map(TYPES.index)
        ordered = rows.assign(value=value, rank=rank).sort_values("rank", kind="stable").drop(columns="rank")
        found.append(Sweep(None, (Panel("", ordered.reset_index(drop=True)),)))
    return tuple(found)


def _line(rows: pd.DataFrame, parameter: Parameter) -> pd.DataFrame:
    """Those of the rows among which the parameter varies while the others do not, with its `value` and what is `fixed`.

    Where the cores vary the machines may vary with them, if each number of cores has but one of each of these.
    """
    others = [name for name in NAMES if name != parameter.name]
    found = _varying(rows, parameter.name, others)
    if found.empty and parameter is CORES:
        others = [name for name in others if name not in TIED]
        kinds = rows.groupby([*others, CORES.name], dropna=False)[list(TIED)].nunique()
        if not (kinds > 1).to_numpy().any():
            found = _varying(rows, CORES.name, others)
    fixed = [_fixed(others, values) for values in found[others].itertuples(index=False)]
    return found.assign(value=found[parameter.name], fixed=fixed)


def _varying(rows: pd.DataFrame, name: str, others: Sequence[str]) -> pd.DataFrame:
    """Those that share the others with rows of further values; of several such lines the longest ones."""
    rows = rows[rows[name].notna()]
    count = rows.groupby(list(others), dropna=False)[name].transform("nunique")
    return rows[(count > 1) & (count == count.max())]


def _fixed(names: Sequence[str], values: Sequence[float]) -> str:
    symbols = {parameter.name: parameter.symbol for parameter in PARAMETERS}
    known = ((name, value) for name, value in zip(names, values, strict=True) if not math.isnan(value))
    return ", ".join(f"{symbols[name]} = {written(value)}" for name, value in known)


def _panels(rows: pd.DataFrame) -> Iterator[Panel]:
    """A panel per type; if the other parameters have several values, one for each of these."""
    for kind in TYPES:
        of_type = rows[rows["type"] == kind]
        lines = of_type["fixed"].unique().tolist()
        for line in lines:
            part = of_type[of_type["fixed"] == line].reset_index(drop=True)
            yield Panel(f"{kind}, {line}" if len(lines) > 1 else kind, part)


def views(swept: Sequence[Sweep]) -> Iterator[tuple[Sweep, str, list[tuple[Measure, Panel]]]]:
    """What figures and tables show of each sweep: `goodput` of each panel, and of one panel all four `metrics`.

    These are of the range (Figure 4), or of the `studies` in which nothing varies.
    """
    for sweep in swept:
        metrics = [(measure, sweep.panels[0]) for measure in MEASURES]
        if sweep.parameter is None:
            yield sweep, "studies", metrics
            continue
        yield sweep, "goodput", [(GOODPUT, panel) for panel in sweep.panels]
        if sweep.parameter is RANGE:
            yield sweep, "metrics", metrics
