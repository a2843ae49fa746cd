"""The panels of each figure of the varcap dissertation, from the points of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from batwatt.report.charts import Chart, Key, chart, keys_of_labels
from batwatt.report.grid import written
from batwatt.report.papers.pmbs23 import GOODPUT
from batwatt.report.papers.varcap import FIXED, FIXED_NAME
from batwatt.report.papers.varcap_plans import CASE, Plot
from batwatt.report.table import Measure
from batwatt.results.style import INK, PALETTE, Look

SYSTEMS = {"mira": "Mira", "azure": "Azure", "borg": "Borg", "tng": "TNG"}
"""End of a study's name -> title of its panels."""
BLUES = ("#9ecae1", "#4292c6", "#08519c", "#041f4a")
OCHRES = ("#fdbe85", "#e6860d", "#a03c04", "#521d00")
SHADES: Mapping[str, Sequence[str]] = {"walk": BLUES, "uniform": OCHRES}
"""Structure -> its colour for one range, and for wider ones."""
SHORT, LONG, ALL = "short jobs", "long jobs", "all jobs"
CLASSES = {SHORT: ("_short", "#8fc4e8"), LONG: ("_long", "#0b4f86"), ALL: ("", INK)}
"""Series -> end of its columns, and its colour."""
Series = tuple[pd.DataFrame, list[Key]]
"""Rows with their `series`, and how the series look."""


def parts_of(plan: Plot, studies: Sequence[str], frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each study with what it adds to the stem of the plan, unless it is the only one."""
    ends = [study.removeprefix(plan.stem).strip("-") for study in studies]
    names = [SYSTEMS.get(end, end) if len(studies) > 1 else "" for end in ends]
    return [(name, frame[frame["study"] == study]) for name, study in zip(names, studies, strict=True)]


def charts_of(plan: Plot, parts: Sequence[tuple[str, pd.DataFrame]], looks: Mapping[str, Look]) -> list[Chart]:
    """The panels of a figure: a row of panels per measure, and in it one per part, with its name."""
    found = (
        _panel(plan, f"{name}: {measure.title}" if name else measure.title, measure, rows, looks)
        for measure in plan.measures
        for name, rows in parts
    )
    return [panel for panel in found if panel is not None]


def _panel(plan: Plot, title: str, measure: Measure, rows: pd.DataFrame, looks: Mapping[str, Look]) -> Chart | None:
    fixed = rows["structure"] == FIXED
    level = None
    if plan.fixed == "level":
        values = rows.loc[fixed, measure.name]
        level = float(values.mean()) if values.notna().any() else None
        rows = rows[~fixed]
    kind = plan.kind
    if plan.by == "classes":
        named, keys = _classes(rows, measure)
        kind = "stacks" if measure is GOODPUT else "lines"
    else:
        named, keys = _SERIES.get(plan.by, _labels)(rows, looks)
        named = named.assign(value=named[measure.name])
    if plan.fixed == "zero" and plan.by != "classes":
        # the fixed capacity is the range 0 of every series that is not of an algorithm
        held = named["series"] == FIXED_NAME
        named = pd.concat([named[~held], *(named[held].assign(series=key.name) for key in keys)], ignore_index=True)
    x = named[plan.x.column]
    if plan.fixed == "first":
        x = x.map(written).where(named["structure"] != FIXED, FIXED_NAME)
        order: list[object] | None = [FIXED_NAME, *map(written, sorted(named[plan.x.column].unique()))]
    elif kind == "lines":
        order = None
    elif pd.api.types.is_numeric_dtype(x):
        order = list(map(written, sorted(x.dropna().unique())))
        x = x.map(written)
    else:
        # a fixed capacity first, then as they come
        order = sorted(x.unique().tolist(), key=lambda text: plan.x is not CASE and text != FIXED_NAME)
    return chart(title, measure, kind, plan.x.title, named.assign(x=x), keys, xs=order, level=level,
                 logarithmic=plan.x.logarithmic)  # fmt: skip


def _labels(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    there = set(rows["label"])
    return rows.assign(series=rows["label"]), keys_of_labels([label for label in looks if label in there], looks)


def _steps(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    """Walks by their largest change; a quarter of the range is one of them, and may be equal to another."""
    quarter = np.isclose(rows["step"], rows["range"] / 4.0)
    steps = sorted(rows.loc[~quarter, "step"].dropna().unique())
    parts = {"a quarter of the range": rows[quarter]}
    parts |= {f"at most {written(step)}": rows[rows["step"] == step] for step in steps}
    names = sorted(parts, key=lambda name: (name.startswith("at most"), name))
    keys = [Key(name, BLUES[n % 4] if n else PALETTE[1], n) for n, name in enumerate(names)]
    named = [part.assign(series=name) for name, part in parts.items()]
    fixed = rows[rows["structure"] == FIXED].assign(series=FIXED_NAME)
    return pd.concat([fixed, *named], ignore_index=True), keys


def _structures(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    names = [name for name in dict.fromkeys(rows["structure"]) if name != FIXED]
    keys = [Key(name, SHADES[name][1] if name in SHADES else PALETTE[2], n) for n, name in enumerate(names)]
    return rows.assign(series=rows["structure"].where(rows["structure"] != FIXED, FIXED_NAME)), keys


def _shapes(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    """Structure and range: a colour for the structure, the darker the wider."""
    first = rows.drop_duplicates("shape").sort_values(["structure", "range"])
    keys = [Key(FIXED_NAME, INK)] if (first["structure"] == FIXED).any() else []
    for structure, part in first[first["structure"] != FIXED].groupby("structure", sort=False):
        shades = SHADES.get(str(structure), (PALETTE[2], PALETTE[3], PALETTE[4], PALETTE[5]))
        for n, shape in enumerate(part["shape"]):
            # a single range has the middle one
            at = 1 if len(part) == 1 else n
            keys.append(Key(shape, shades[at % 4], len(keys)))
    return rows.assign(series=rows["shape"]), keys


def _dependence(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    texts = [f"{written(round(value, 6))} % depend on others" if value >= 0.0 else "as they are"
             for value in rows["dependencies"]]  # fmt: skip
    named = rows.assign(series=texts)
    names = named.sort_values("dependencies")["series"].unique().tolist()
    return named, [Key(name, PALETTE[(6, 3, 1)[n % 3]], n) for n, name in enumerate(names)]


def _sources(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    known = {FIXED_NAME: Key(FIXED_NAME, INK), "walk": Key("walk", BLUES[1], 1)}
    names = dict.fromkeys(rows["source"])
    free = iter(range(1, len(names) + 1))
    keys = [known[name] if name in known else Key(name, PALETTE[(2, 4, 3, 1)[(n := next(free)) % 4]], n + 1)
            for name in names]  # fmt: skip
    return rows.assign(series=rows["source"]), keys


def _errors(rows: pd.DataFrame, looks: Mapping[str, Look]) -> Series:
    names = list(dict.fromkeys(rows["error"]))
    numbers = {"exact": 2, "no foresight": 7, "bias": 0, "noise": 1, "false alarms": 4, "missed falls": 3}
    return rows.assign(series=rows["error"]), [Key(name, PALETTE[numbers[name]]) for name in names]


def _classes(rows: pd.DataFrame, measure: Measure) -> Series:
    """Short and long jobs apart; of goodput these make up the whole, of others it is a series of its own."""
    names = SPLIT_NAMES if measure is GOODPUT else (*SPLIT_NAMES, ALL)
    parts = [rows.assign(series=name, value=rows[measure.name + CLASSES[name][0]]) for name in names]
    return pd.concat(parts, ignore_index=True), [Key(name, CLASSES[name][1], n) for n, name in enumerate(names)]


SPLIT_NAMES = (SHORT, LONG)
_SERIES: Mapping[str, Callable[[pd.DataFrame, Mapping[str, Look]], Series]] = {
    "steps": _steps,
    "structure": _structures,
    "shape": _shapes,
    "dependence": _dependence,
    "source": _sources,
    "error": _errors,
}


def all_means(drawn: Sequence[tuple[Plot, Sequence[Chart]]]) -> pd.DataFrame:
    """Every mark of every figure: figure, panel, measure, series, x, mean, standard error and runs."""
    return pd.DataFrame(_marks(drawn), columns=["figure", "panel", "measure", "series", "x", "mean", "standard_error",
                                                "runs"])  # fmt: skip


def _marks(drawn: Sequence[tuple[Plot, Sequence[Chart]]]) -> Iterator[tuple[object, ...]]:
    for plan, panels in drawn:
        for panel in panels:
            for curve in panel.curves:
                for x, mean, error, count in curve.points.itertuples(index=False):
                    where = (plan.id, panel.title, panel.measure.name, curve.key.name, written(x))
                    yield (*where, mean, error, int(count))
            if panel.level is not None:
                yield (plan.id, panel.title, panel.measure.name, FIXED_NAME, "", panel.level, np.nan, "")
