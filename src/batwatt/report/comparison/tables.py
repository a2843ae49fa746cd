"""The tables of the page: all cases, and who suffers."""

from __future__ import annotations

import json
import math
from typing import Any

from batwatt.report.comparison.data import ComparedSystems
from batwatt.report.comparison.numbers import (
    duration,
    in_suitable_unit,
    jobs,
    number,
    percent,
    plain,
    signed,
    time_unit,
)
from batwatt.report.comparison.sentences import quoted, who
from batwatt.report.html import Cell, Heading, PageTable
from batwatt.results.figures import Figure

TITLES = {
    "size": "Hosts of a job",
    "length": "Run time at full speed",
    "user": "User",
    "group": "Group",
    "queue": "Queue",
}
"""Grouping -> its title."""


def cases_table(data: ComparedSystems) -> PageTable:
    """All cases by all measures, the best of the rated ones marked, with differences to the reference."""
    measures = [in_suitable_unit(one, data.summary[one.name].tolist()) for one in data.measures]
    best = {measure.name: data.best(measure) for measure in measures}
    rows = [
        (label, tuple(_cell(data, measure, label, label in best[measure.name]) for measure in measures))
        for label in data.labels
    ]
    headings = [
        Heading(f"{one.title} ({one.shown})" if one.shown not in ("", "jobs") else one.title, tip=one.meaning)
        for one in measures
    ]
    return PageTable("all-cases", "All cases", "case", tuple(headings), tuple(rows), reference=data.reference)


def _cell(data: ComparedSystems, measure: Figure, label: str, best: bool) -> Cell:
    value = data.value(measure, label)
    more: tuple[str, ...] = ()
    if label != data.reference and math.isfinite(value):
        difference = data.difference(measure, label)
        if difference.instances and (difference.mean or difference.error > 0.0):
            more = (signed(measure, difference),)
    alike = len(data.best(measure)) == len(data.rated)
    return Cell(
        number(measure, value),
        more,
        "" if math.isnan(value) else str(value),
        best=best and not alike,
        alert=measure.name == "energy_above_cap_j" and label not in data.within,
    )


def groups_tables(data: ComparedSystems) -> list[PageTable]:
    """For each grouping, by case and group: the added wait and slowdown, and the share that does not finish."""
    return [_groups_table(data, by) for by in data.groupings]


def _groups_table(data: ComparedSystems, by: str) -> PageTable:
    frame = data.groups[data.groups["by"] == by]
    names = frame.loc[frame["case"] == data.reference, "group"].tolist()
    counts = frame.loc[frame["case"] == data.reference, "jobs"].tolist()
    largest = float(frame["wait_more_s"].abs().max())
    unit = time_unit(largest)
    rows = []
    for label in data.labels:
        part = frame[frame["case"] == label].to_dict("records")
        rows.append((label, tuple(_group_cell(data, by, row, largest, unit) for row in part)))
    headings = tuple(Heading(name, jobs(count)) for name, count in zip(names, counts, strict=True))
    return PageTable(f"by-{by}", TITLES[by], "case", headings, tuple(rows), reference=data.reference)


def _group_cell(data: ComparedSystems, by: str, row: Any, largest: float, unit: tuple[float, str]) -> Cell:
    """Of the reference its own wait and slowdown, of the others what they add."""
    label, lost = str(row["case"]), 1.0 - row["finished_share"]
    size, name = unit
    reference = label == data.reference
    lines = []
    if reference:
        text, slowdown = duration(row["mean_wait_s"]), plain(row["mean_full_speed_slowdown"])
        key = row["mean_wait_s"]
    else:
        more = row["wait_more_s"]
        text, slowdown = (f"{plain(more / size, sign=True)} {name}" if more == more else plain(more)), plain(
            row["full_speed_slowdown_more"], sign=True)  # fmt: skip
        key = more
    if math.isfinite(key):
        lines.append(f"at full speed {slowdown}")
    if lost > 0.0:
        lines.append(f"{percent(lost)} unfinished")
    tip = [
        f"{quoted(label)}, {who(by, str(row['group']))}: {jobs(row['jobs'])}",
        f"finished: {percent(row['finished_share'])}",
        f"wait: {duration(row['mean_wait_s'])}, slowdown at full speed {plain(row['mean_full_speed_slowdown'])}",
    ]
    if not reference:
        added = (
            f"{duration(row['wait_more_s'], sign=True)}, slowdown {plain(row['full_speed_slowdown_more'], sign=True)}"
        )
        tip.append(f"added, of the {jobs(row['paired_jobs'])} that finish in {quoted(data.reference)}, too: {added}")
    shade = 0.0 if reference or not largest > 0.0 or key != key else math.copysign(math.sqrt(abs(key) / largest), key)
    return Cell(text, tuple(lines), "" if key != key else str(key), "\n".join(tip), shade=round(shade, 3))


def about_cases(data: ComparedSystems) -> list[tuple[str, str, str, str]]:
    """Label, scheduler, options and what of the envelope each case follows."""
    follows = {"envelope": "the envelope", "mean": "its mean", "none": "nothing"}
    found = []
    for label, facts in data.cases.items():
        options = json.dumps(dict(facts.options), ensure_ascii=False, default=str) if facts.options else ""
        found.append((label, facts.scheduler, options, follows.get(facts.limit, facts.limit)))
    return found
