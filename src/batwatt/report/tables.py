"""The tables of a page: all cases by all measures, added waits of groups of jobs, and the options of the cases."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from batwatt.report.cases import ABOVE, REJECTED, ComparedCases, plural
from batwatt.report.html import Heading, PageCell, PageTable, text_table
from batwatt.report.texts import (
    digits,
    duration,
    extent,
    in_suitable_unit,
    jobs,
    number,
    percent,
    plain,
    quoted,
    signed,
    time_unit,
    written,
)
from batwatt.results.figures import Figure
from batwatt.results.groups import CLASSES

TITLES = {
    "size": "Hosts of a job",
    "length": "Run time at full speed",
    "user": "User",
    "group": "Group",
    "queue": "Queue",
    "qos": "QOS",
}
"""Grouping -> its title."""
FOLLOWS = {"envelope": "the envelope", "mean": "its mean", "none": "nothing"}
"""Part of the envelope that a case follows -> its name."""


def parts_of(data: ComparedCases, by: pd.Series | None) -> Mapping[str, ComparedCases]:
    """Return the rows of each value of `by`, which has a value for each row: numbers by size; without it, all rows."""
    if by is None:
        return {"": data}
    values = data.table.groupby(by, sort=pd.api.types.is_numeric_dtype(by), dropna=False)
    return {"none" if pd.isna(value) else written(value): replace(data, table=rows) for value, rows in values}


def cases_table(name: str, title: str, data: ComparedCases, by: pd.Series | None = None, of: str = "") -> PageTable:
    """Return all cases by all measures, the best of the rated ones marked, with differences to the reference.

    With `by`, which is named `of`, each measure has a column for each of its values.
    """
    parts = parts_of(data, by)
    headings, columns = [], []
    for measure in data.measures:
        means = [part.means.get(measure.name, pd.Series(dtype=float)) for part in parts.values()]
        suited = in_suitable_unit(measure, pd.concat(means))
        text = f"{suited.title} ({suited.display})" if suited.display not in ("", "jobs") else suited.title
        for value, part in parts.items():
            headings.append(Heading(value or text, tip=measure.meaning, group=text if value else ""))
            best = part.best(measure)
            best = best if len(best) < len(part.rated) else []
            columns.append([_cell(part, suited, label, label in best) for label in data.labels])
    rows = tuple((label, tuple(column[n] for column in columns)) for n, label in enumerate(data.labels))
    counts = {int(count) for part in parts.values() for count in part.table.groupby("case").size()}
    unit = data.unit if counts == {1} else plural(data.unit)
    notes = [f"Each mean is over {extent(counts)} {unit}{f', by {of}' if of else ''}."] if data.about else []
    return PageTable(name, title, "case", tuple(headings), rows, reference=data.reference, notes=notes)


def _cell(data: ComparedCases, measure: Figure, label: str, best: bool) -> PageCell:
    value = data.value(measure, label)
    more: tuple[str, ...] = ()
    if label != data.reference and math.isfinite(value):
        difference = data.difference(measure, label)
        if difference.instances and (difference.mean or difference.error > 0.0):
            chance = difference.instances > 1 and not difference.counts
            more = (f"{'~' * chance}{signed(measure, difference)}",)
    alert = measure.name == ABOVE.name and label in data.above
    causes = data.rejections.get(label) if measure.name == REJECTED.name else None
    tip = "; ".join(f"{plain(n, digits(n, True))} {cause}" for cause, n in causes.items()) if causes else ""
    return PageCell(number(measure, value), more, "" if math.isnan(value) else str(value), tip, best, alert)


def groups_tables(data: ComparedCases) -> list[PageTable]:
    """Return a table for each grouping: by case and group the added wait and slowdown, and the unfinished share."""
    return [_groups_table(data, by) for by in data.groupings]


def _groups_table(data: ComparedCases, by: str) -> PageTable:
    frame = data.groups[data.groups["by"] == by]
    reference = frame[frame["case"] == data.reference]
    largest = float(frame["wait_more_s"].abs().max())
    rows = []
    for label in data.labels:
        part = frame[frame["case"] == label].to_dict("records")
        rows.append((label, tuple(_group_cell(data, by, row, largest) for row in part)))
    counts = zip(reference["group"].tolist(), reference["jobs"].tolist(), strict=True)
    headings = tuple(Heading(name, jobs(count)) for name, count in counts)
    return PageTable(f"by-{by}", TITLES[by], "case", headings, tuple(rows), reference=data.reference)


def _group_cell(data: ComparedCases, by: str, row: Any, largest_s: float) -> PageCell:
    """Return the cell of a group: wait and slowdown of the reference, for other cases the added ones."""
    label, lost = str(row["case"]), 1.0 - row["finished_share"]
    wait, slowdown = duration(row["mean_wait_s"]), plain(row["mean_full_speed_slowdown"])
    tip = [
        f"{quoted(label)}, {jobs_of(by, str(row['group']))}: {jobs(row['jobs'])}",
        f"finished: {percent(row['finished_share'])}",
        f"wait: {wait}, slowdown at full speed {slowdown}",
    ]
    text, key, shade = wait, row["mean_wait_s"], 0.0
    if label != data.reference:
        key, slowdown = row["wait_more_s"], plain(row["full_speed_slowdown_more"], sign=True)
        size_s, unit = time_unit(largest_s)
        text = f"{plain(key / size_s, sign=True)} {unit}" if key == key else plain(key)
        added = f"{duration(key, sign=True)}, slowdown {slowdown}"
        tip.append(f"added, of the {jobs(row['paired_jobs'])} that finish in {quoted(data.reference)}, too: {added}")
        shade = math.copysign(math.sqrt(abs(key) / largest_s), key) if largest_s > 0.0 and key == key else 0.0
    lines = [f"at full speed {slowdown}"] if math.isfinite(key) else []
    lines += [f"{percent(lost)} unfinished"] if lost > 0.0 else []
    return PageCell(text, tuple(lines), "" if key != key else str(key), "\n".join(tip), shade=round(shade, 3))


def jobs_of(by: str, group: str) -> str:
    """Return a name for the jobs of a group."""
    return f"jobs of {group}" if by in CLASSES else f"jobs of {by} {group}"


def about_cases(data: ComparedCases) -> list[PageTable]:
    """Return the scheduler, the options of each case and what it follows, and the reasons of cases without results."""
    # a study has an envelope, or none, for each instance
    free = data.machines is not None and data.envelope is None
    rows = [
        (label, facts.scheduler, json.dumps(dict(facts.options), ensure_ascii=False, default=str) if facts.options
         else "", FOLLOWS["none"] if free else FOLLOWS.get(facts.follow, facts.follow))
        for label, facts in data.cases.items()
    ]  # fmt: skip
    tables = [text_table("abouts", "The cases", ("case", "scheduler", "options", "follows"), rows)]
    if data.left_out:
        tables.append(text_table("left-out", "Cases left out", ("case", "reason"), list(data.left_out.items())))
    return tables
