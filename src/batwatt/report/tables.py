"""The tables of a page: the five rows of the verdict, all cases by all measures, groups of jobs, and the options."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from batwatt.report.cases import ABOVE, END, KILLS, LOST, REJECTED, WORK, ComparedCases, lost_jobs, plural
from batwatt.report.html import Heading, PageCell, PageTable, text_table
from batwatt.report.texts import (
    NOTHING,
    ZERO,
    amount,
    assumed,
    digits,
    duration,
    extent,
    in_suitable_unit,
    jobs,
    listed,
    number,
    own_unit,
    percent,
    plain,
    quoted,
    signed,
    written,
)
from batwatt.report.verdict import OF_POWER, Verdict, same
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
OPEN = ("size", "user")
"""Groupings whose tables are open."""
EQUAL = 0.02
"""Added waits within this share of the largest are equal."""
FOLLOWS = {"envelope": "the envelope", "mean": "its mean", "none": "nothing"}
"""Part of the envelope that a case follows -> its name."""
NARROW = ("mean_wait_s", "energy_j", "finished_work_fraction", "jobs_lost")
MAIN = (
    "mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "energy_j", "carbon_g", "cost", "energy_above_cap_j",
    "finished_work_fraction", "jobs_lost", "kills", "makespan_s",
)  # fmt: skip
"""Columns of a comparison on a narrow screen, and on others; the rest are behind "more columns"."""


def verdict_table(data: ComparedCases, verdict: Verdict) -> PageTable | None:
    """Return five rows: the winner, the rival and the reference by power kept, wait, energy, work and lost jobs.

    Ratios to the winner are in parentheses. Carbon or cost is in place of the energy if it is the goal, and the bounded
    slowdown in place of the wait. None if no case finishes a job.
    """
    nearest = "nearest" if verdict.winner is None else "reference"
    roles = {verdict.winner: "winner", verdict.rival: "rival", verdict.reference: nearest,
             verdict.recorded: "as recorded"}  # fmt: skip
    labels = {label: role for label, role in roles.items() if label is not None}
    if not labels:
        return None
    first, power = verdict.first, verdict.other
    first, power = (power, first) if first.name in OF_POWER else (first, power)
    rows: list[tuple[str, tuple[PageCell, ...]]] = []
    if verdict.capped:
        rows.append(("power kept", tuple(_kept_cell(data, label) for label in labels)))
    for figure in (first, power, WORK):
        if figure.name in data.means:
            rows.append((figure.title, tuple(_ratio_cell(data, verdict, figure, label) for label in labels)))
    rows.append(("lost jobs", tuple(_lost_cell(data, label) for label in labels)))
    below = {"power kept": "energy above the envelope", WORK.title: "and last end", "lost jobs": "and kills"}
    if data.assumed_w is not None:
        below[power.title] = assumed(data.assumed_w)
    headings = tuple(Heading(label, role) for label, role in labels.items())
    return PageTable("five-rows", "The verdict in numbers", "", headings, tuple(rows), across=True, below=below)


def _kept_cell(data: ComparedCases, label: str) -> PageCell:
    """Return whether a case keeps to the envelope, and its energy above it."""
    above, energy_j = label in data.above, data.value(ABOVE, label)
    share = f", {percent(data.above_share(label), 2)}" if above else ""
    return PageCell("no" if above else "yes", (f"{amount(ABOVE, energy_j)}{share}",), alert=above)


def _ratio_cell(data: ComparedCases, verdict: Verdict, figure: Figure, label: str) -> PageCell:
    """Return a value with its unit and, in parentheses, its ratio to the winner; of the work also the last end."""
    ratio = verdict.ratios.get(label, {}).get(figure.name, math.nan)
    more = []
    if math.isfinite(ratio):
        mark = "~" if figure.name in verdict.chance[label] else ""
        more.append("(the same)" if same(figure, ratio) else f"({mark}{plain(ratio)} times)")
    if figure == WORK and math.isfinite(end_s := data.value(END, label)):
        more.append(f"by {duration(end_s)}")
    return PageCell(amount(figure, data.value(figure, label)), tuple(more))


def _lost_cell(data: ComparedCases, label: str) -> PageCell:
    """Return the jobs of a case that never finish, and the runs that it killed."""
    kills = sum(value for part in KILLS.parts if not math.isnan(value := data.value(replace(KILLS, name=part), label)))
    text = f"{plain(kills, digits(kills, True))} kill{'s' * (kills != 1)}"
    return PageCell(jobs(lost_jobs(data, label)), (text,))


def parts_of(data: ComparedCases, by: pd.Series | None) -> Mapping[str, ComparedCases]:
    """Return the rows of each value of `by`, which has a value for each row: numbers by size; without it, all rows."""
    if by is None:
        return {"": data}
    values = data.table.groupby(by, sort=pd.api.types.is_numeric_dtype(by), dropna=False)
    return {"none" if pd.isna(value) else written(value): replace(data, table=rows) for value, rows in values}


@dataclass(frozen=True)
class _Columns:
    """Columns of one measure: a heading and the cells of each case, by value of the part that varies."""

    measure: Figure
    headings: Sequence[Heading]
    cells: Sequence[Sequence[PageCell]]

    @property
    def printed(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Texts of the cells."""
        return tuple(tuple((cell.text, *cell.more) for cell in column) for column in self.cells)


def cases_table(
    name: str,
    title: str,
    data: ComparedCases,
    by: pd.Series | None = None,
    of: str = "",
    goal: Figure | None = None,
    begin: Sequence[str] = (),
) -> PageTable:
    """Return all cases by all measures, the best of the rated ones marked, with differences to the reference.

    With `by`, which is named `of`, each measure has a column for each of its values. Rows are in the order of the goal,
    after those of `begin`. Measures whose cells are all equal, or equal to those of an earlier one, are left out.
    """
    data = data if data.about else data.counted()
    goal = goal or data.first
    labels, parts = data.ordered(goal, begin), parts_of(data, by)
    by_name = {measure.name: measure for measure in data.measures}
    names = list(by_name) if data.about else [*(name for name in MAIN if name in by_name), *by_name]
    columns: list[_Columns] = []
    equal: list[Figure] = []
    for measure in [by_name[name] for name in dict.fromkeys(names)]:
        column = _columns_of(measure, parts, labels, _hidden(data, measure, goal))
        if len(labels) > 1 and all(len(set(texts)) == 1 for texts in column.printed):
            equal.append(measure)
        elif len(labels) == 1 or column.printed not in [other.printed for other in columns]:
            columns.append(column)
    if not columns:
        columns = [_columns_of(equal.pop(0), parts, labels, "")]
    cells = list(zip(*(column for one in columns for column in one.cells), strict=True))
    rows = tuple(zip(labels, cells, strict=True))
    counts = {int(count) for part in parts.values() for count in part.table.groupby("case").size()}
    unit = data.unit if counts == {1} else plural(data.unit)
    notes = [f"Each mean is over {extent(counts)} {unit}{f', by {of}' if of else ''}."] if data.about else []
    same_in_all = [
        f"{measure.title} {value}" if by is None else measure.title
        for measure in equal if (value := amount(measure, data.value(measure, labels[0]))) != NOTHING
    ]  # fmt: skip
    notes += [f"Equal in all cases: {listed(same_in_all)}."] if same_in_all else []
    if data.assumed_w is not None:
        notes.append(f"Energy {assumed(data.assumed_w)}.")
    headings = tuple(heading for one in columns for heading in one.headings)
    return PageTable(name, title, "case", headings, rows, reference=data.reference, notes=notes)


def _hidden(data: ComparedCases, measure: Figure, goal: Figure) -> Any:
    """Return where a column is behind "more columns": nowhere, on a narrow screen, or always."""
    names = {goal.name, *([one.name for one in data.measures[: len(NARROW)]] if data.about else NARROW)}
    return "" if measure.name in names else "narrow" if data.about or measure.name in MAIN else "always"


def _columns_of(measure: Figure, parts: Mapping[str, ComparedCases], labels: Sequence[str], hide: Any) -> _Columns:
    means = [part.means.get(measure.name, pd.Series(dtype=float)) for part in parts.values()]
    suited = in_suitable_unit(measure, pd.concat(means))
    text = f"{suited.title} ({suited.display})" if suited.display not in ("", "jobs") else suited.title
    headings, columns = [], []
    for value, part in parts.items():
        headings.append(Heading(value or text, tip=measure.meaning, group=text if value else "", hide=hide))
        best = part.best(measure)
        best = best if len(best) < len(part.rated) else []
        columns.append([_cell(part, suited, label, label in best) for label in labels])
    return _Columns(measure, headings, columns)


def _cell(data: ComparedCases, measure: Figure, label: str, best: bool) -> PageCell:
    value = data.value(measure, label)
    more: tuple[str, ...] = ()
    if label != data.reference and math.isfinite(value):
        difference = data.difference(measure, label)
        if difference.instances and (difference.mean or difference.error > 0.0):
            chance = difference.instances > 1 and not difference.counts
            own = own_unit(measure, difference.mean)
            unit = f" {own.display}" if own.display != measure.display else ""
            text = f"{'~' * chance}{signed(own, difference)}{unit}"
            more = (text,) if text != ZERO else ()
    alert = measure.name == ABOVE.name and label in data.above
    causes = data.rejections.get(label) if measure.name in (REJECTED.name, LOST.name) else None
    tip = "; ".join(f"{plain(n, digits(n, True))} {cause}" for cause, n in causes.items()) if causes else ""
    tip = f"rejected: {tip}" if tip and measure.name == LOST.name else tip
    text = number(measure, value) if own_unit(measure, value) == measure else duration(value)
    return PageCell(text, more, "" if math.isnan(value) else str(value), tip, best, alert)


def groups_tables(data: ComparedCases, labels: Sequence[str] = ()) -> list[PageTable]:
    """Return a table for each grouping that tells cases or groups apart: the added wait, and the unfinished share.

    Rows are in the order of `labels`. A grouping with one group is left out, and one whose added waits are equal.
    """
    tables = []
    for by in data.groupings:
        frame = data.groups[data.groups["by"] == by]
        if frame["group"].nunique() > 1 and not _equal_waits(data, frame):
            tables.append(_groups_table(data, by, frame, labels or data.labels))
    return tables


def _equal_waits(data: ComparedCases, frame: pd.DataFrame) -> bool:
    """Return whether every case adds the same wait to all groups."""
    added = frame[frame["case"] != data.reference].groupby("case")["wait_more_s"]
    return all(values.max() - values.min() <= EQUAL * values.abs().max() for _, values in added if values.notna().any())


def _groups_table(data: ComparedCases, by: str, frame: pd.DataFrame, labels: Sequence[str]) -> PageTable:
    reference = frame[frame["case"] == data.reference]
    largest = float(frame["wait_more_s"].abs().max())
    rows = []
    for label in labels:
        part = frame[frame["case"] == label].to_dict("records")
        rows.append((label, tuple(_group_cell(data, by, row, largest) for row in part)))
    counts = zip(reference["group"].tolist(), reference["jobs"].tolist(), strict=True)
    headings = tuple(Heading(name, jobs(count)) for name, count in counts)
    return PageTable(
        f"by-{by}", TITLES[by], "case", headings, tuple(rows), reference=data.reference, folded=by not in OPEN
    )


def _group_cell(data: ComparedCases, by: str, row: Any, largest_s: float) -> PageCell:
    """Return the cell of a group: the wait of the reference, for other cases the added one."""
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
        text = duration(key, sign=True)
        tip.append(
            f"added, of the {jobs(row['paired_jobs'])} that finish in {quoted(data.reference)}, too: {text}, "
            f"slowdown at full speed {slowdown}"
        )
        shade = math.copysign(math.sqrt(abs(key) / largest_s), key) if largest_s > 0.0 and key == key else 0.0
    lines = (f"{percent(lost)} unfinished",) if lost > 0.0 else ()
    return PageCell(text, lines, "" if key != key else str(key), "\n".join(tip), shade=round(shade, 3))


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
