"""The pages of a comparison, of a study and of an account; each needs only a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pandas as pd

from batwatt.errors import InputError
from batwatt.files import is_link, whole_file, whole_set, write_text
from batwatt.report.cases import ENOUGH, WAIT, ComparedCases, plural
from batwatt.report.figures import front_figure, means_figure, power_figure
from batwatt.report.html import (
    STUDY_TERMS,
    TERMS,
    Glossary,
    Heading,
    Page,
    PageCell,
    PageTable,
    Section,
    html_of,
    text_table,
)
from batwatt.report.study import INSTANCE, OPTIMUM, SavedStudy, read_study, summary, varied
from batwatt.report.tables import about_cases, cases_table, groups_tables, parts_of, verdict_table
from batwatt.report.texts import jobs, percent, stems_of
from batwatt.report.verdict import OF_POWER, Verdict, sentences, verdict_of
from batwatt.results import drawing
from batwatt.results.figures import Figure
from batwatt.results.run_files import without_formulas_in
from batwatt.results.tables import TableColumn
from batwatt.results.usage import DECIMALS, TOTAL

REPORT, PAGE, SUMMARY = "report", "index.html", "summary.csv"
"""Folder of the report, within the study's, and two of its files."""
ACCOUNT_NOTE = (
    f"{DECIMALS} decimals; rows add up to the total. A job is counted in its first month. Click on a heading to sort."
)


def comparison_page(
    data: ComparedCases, verdict: Verdict, facts: Sequence[tuple[str, str]] = (), reading: Sequence[str] = ()
) -> str:
    """Return the page of a comparison as HTML; the same comparison gives the same bytes.

    Args:
        data: The cases.
        verdict: The verdict on them, whose sentences are the headline and the lead.
        facts: Pairs of a name and a text about the runs.
        reading: Remarks of readers on parts of the inputs that were left out or filled in.
    """
    count = len(data.labels)
    table = cases_table("all-cases", "All cases", data, goal=verdict.first, begin=verdict.rated)
    groups = groups_tables(data, [label for label, _ in table.rows])
    front, power = comparison_figures(data, verdict)
    sections = [
        Section("cases", "All cases", _reading_notes(data, [table]), tables=[table]),
        front,
        *([Section("suffer", "Jobs that wait longer", _wait_notes(data), tables=groups)] if groups else []),
        power,
        _words(data),
        Section("about", "What was run", facts=facts, tables=about_cases(data), folded=True),
    ]
    if reading:
        heading = "Of the inputs: times and dates, what is left out or filled in"
        sections.append(Section("reading", heading, items=reading, folded=True))
    several = data.unit == "window" and data.samples > 1
    load = f"{jobs(data.total * data.samples)} in {data.samples} windows" if several else jobs(data.total)
    return _html(f"Comparison of {count} case{'s' * (count != 1)} on {load}", data, verdict, sections)


def comparison_figures(data: ComparedCases, verdict: Verdict) -> tuple[Section, Section]:
    """Return the front and the power over time."""
    power = next(figure for figure in (verdict.first, verdict.other) if figure.name in OF_POWER)
    return front_figure(replace(data, power=power)), power_figure(data, verdict.winner, verdict.reference)


def account_page(columns: Sequence[TableColumn], facts: Sequence[tuple[str, str]], remarks: Sequence[str]) -> str:
    """Return the page of a `JobAccount`, the last of whose rows is the total, as HTML."""
    texts = [column for column in columns if column.is_text or column is columns[0]]
    numbers = [column for column in columns if column not in texts]
    heads = [column.head.replace("\n", " ") for column in numbers]
    labels = [" · ".join(filter(None, cells)) for cells in zip(*(column.cells for column in texts), strict=True)]
    cells = list(zip(*(column.cells for column in numbers), strict=True))
    rows = [(label, tuple(PageCell(text, key=text) for text in row)) for label, row in zip(labels, cells, strict=True)]
    by = " · ".join(column.head for column in texts)
    table = PageTable("rows", f"By {by}", by, tuple(map(Heading, heads)), tuple(rows), reference=TOTAL)
    sections = [
        Section("by", f"By {by}", [ACCOUNT_NOTE], tables=[table]),
        Section("reading", "What is left out, cut or assumed", items=remarks or ["Nothing."]),
        Section("about", "What was accounted", facts=facts),
    ]
    headline = ", ".join(f"{text} {head}" for text, head in zip(cells[-1], heads, strict=True))
    return html_of(Page("Account of a job log", headline, "", sections, {}), Glossary(TERMS))


def write_report(results: Path | str, figures: Sequence[str] = ()) -> list[Path]:
    """Write the report of the study whose results are in a folder, into its subfolder `report`.

    The same results give the same bytes.

    Args:
        results: The folder of the study's results.
        figures: Formats in which each chart is also written as a file: png, svg, pdf.

    Returns:
        The paths of the files, the page first.

    Raises:
        InputError: The folder has no results, or a format is not one of these.
    """
    for kind in figures:
        drawing.kind_of(Path(f"figure.{kind}"))
    study = read_study(results)
    folder = study.folder / REPORT
    if is_link(folder):
        raise InputError(folder, "is a link", "remove it: a report is written into its study's folder only")
    stems = stems_of(study.comparisons)
    verdict, page_figures = None, []
    if study.main is not None:
        verdict = verdict_of(study.main)
        page_figures = [front_figure(study.main)]
        page_figures += [power_figure(study.main, verdict.winner, verdict.reference)] if study.main.traces else []
    page_figures += [means_figure(stems[name], data, *varied(data)) for name, data in study.comparisons.items()]
    old = [path.name for path in folder.glob("plot-*.*")]
    with whole_set(folder, last=(PAGE,), old=old, place=folder) as part:
        tables = {f"means-{stems[name]}.csv": _means(data) for name, data in study.comparisons.items()}
        written = [_write_csv(table, part / name) for name, table in tables.items()]
        written.append(_write_csv(summary(study), part / SUMMARY))
        charts = [chart for figure in page_figures for chart in figure.charts]
        written += [chart.write(part / f"{chart.id}.{kind}") for chart in charts for kind in figures]
        write_text(part / PAGE, _study_page(study, verdict, stems, page_figures))
    return [folder / PAGE, *(folder / path.name for path in written)]


def _study_page(
    study: SavedStudy, verdict: Verdict | None, stems: Mapping[str, str], figures: Sequence[Section]
) -> str:
    data, failed = study.main, len(study.failed)
    tables = []
    for name, part in study.comparisons.items():
        by, title = varied(part)
        tables.append(
            cases_table(
                f"means-{stems[name]}", f"Comparison “{name}”", part, by if title else None, title, goal=_goal_of(part)
            )
        )
    facts = [*_facts(study), *_comparison_facts(study)]
    sections = [
        Section("cases", "Means by comparison", _reading_notes(data, tables) if data else (), tables=tables,
                links=[f"means-{stem}.csv" for stem in stems.values()]),
        *figures,
        *([_words(data, [SUMMARY])] if data else []),
        Section("about", "What was run", facts=facts, tables=about_cases(data) if data else (), folded=True),
    ]  # fmt: skip
    if failed:
        heads = ("comparison", "case", "instance", "error")
        table = text_table("failures", "Runs that failed", heads, _failed(study))
        sections.append(Section("failed", "Runs that failed", tables=[table]))
    alert = f"{failed} run{'s' * (failed != 1)} failed, in no figure." if failed else ""
    return _html(f"Study {study.folder.resolve().name}", data, verdict, sections, alert)


def _html(
    title: str, data: ComparedCases | None, verdict: Verdict | None, sections: Sequence[Section], alert: str = ""
) -> str:
    if data is None or verdict is None:
        return html_of(Page(title, "No run has results", "", sections, {}, alert=alert), Glossary(TERMS))
    headline, lead = sentences(verdict)
    table = verdict_table(data, verdict)
    page = Page(title, headline, lead, sections, data.looks, verdict.caveat, alert, table)
    return html_of(page, Glossary(dict(_meanings(data))))


def _meanings(data: ComparedCases) -> list[tuple[str, str]]:
    """Return the measures and terms of a page with their meanings."""
    measures = {measure.title: measure.meaning for measure in (*data.measures, *chain(*data.fronts))}
    return [*measures.items(), *TERMS.items(), *(STUDY_TERMS.items() if data.about else ())]


def _goal_of(data: ComparedCases) -> Figure:
    """Return the figure that the rows of a comparison of a study are ordered by: the wait, if it is measured."""
    return next((one for one in data.measures if one == WAIT), data.first)


def _words(data: ComparedCases, links: Sequence[str] = ()) -> Section:
    notes = ["summary.csv has the mean and the standard deviation of every metric."] if links else []
    return Section("words", "What the words mean", notes, facts=_meanings(data), links=links, folded=True)


def _reading_notes(data: ComparedCases, tables: Sequence[PageTable]) -> list[str]:
    """Return notes on tables of cases."""
    notes = []
    if len(data.labels) > 1:
        over = "" if data.about else f" over {data.samples} {data.units}"
        several = f" ± its standard error{over}" if data.samples > 1 else ""
        notes.append(f"Small numbers: difference to “{data.reference}”{several}. Rows are in the order of the goal.")
    if data.samples > 1:
        notes.append("~: no more than chance (95 %, Student's t).")
    if any(cell.best for table in tables for _, cells in table.rows for cell in cells):
        which = f"{'keep to the envelope' if data.capped else 'ran everywhere'} and finish at least {percent(ENOUGH)} "
        notes.append(f"Green: best of the cases that {which}of the jobs, and of the work, of the best of them.")
    return [" ".join([*notes, "A click on a heading sorts."])]


def _wait_notes(data: ComparedCases) -> list[str]:
    """Return notes on the tables of groups."""
    return [
        f"The row of “{data.reference}” has the mean wait of its finished jobs, the others what they add to it, over "
        "the jobs that finish in both, and the share of jobs that do not finish."
        f"{' The first seed.' if data.samples > 1 and data.unit == 'seed' else ''}"
    ]


def _means(data: ComparedCases) -> pd.DataFrame:
    """Return the means of a comparison: a row per case, a column per measure and value of the part that varies."""
    by, title = varied(data)
    columns = {
        " ".join(filter(None, (measure.name, value))): part.means[measure.name]
        for measure in data.measures
        for value, part in parts_of(data, by if title else None).items()
    }
    return pd.DataFrame(columns).reindex(data.labels).rename_axis("case").reset_index()


def _write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame as CSV, floats with 6 decimals as in all our files; return the path."""
    with whole_file(path) as out:
        without_formulas_in(frame).to_csv(out, index=False, float_format="%.6f", lineterminator="\n")
    return path


def _facts(study: SavedStudy) -> list[tuple[str, str]]:
    """Return facts about the study: pairs of a name and a text."""
    facts = [
        ("runs", f"{len(study.frame)} ({len(study.failed)} failed)"),
        ("cases", str(study.frame["case"].nunique())),
    ]
    optimum = study.done[study.done["scheduler"] == OPTIMUM]
    if len(optimum):
        proven = int(optimum["proven_optimal"].eq(True).sum())
        facts.append(("optimum", f"proven in {proven} of {len(optimum)} runs, else the best known schedule"))
    without = len(study.done) - len(study.with_goodput)
    if 0 < without < len(study.done):
        facts.append(("without goodput", f"{without} runs: in no figure"))
    return facts


def _comparison_facts(study: SavedStudy) -> list[tuple[str, str]]:
    """Return facts about each comparison: pairs of a name and a text."""
    facts = []
    for comparison, rows in study.frame.groupby("comparison", sort=False):
        instances = rows[list(INSTANCE)].drop_duplicates()
        parts = [f"{rows['case'].nunique()} cases", f"{len(instances)} instances"]
        parts += [
            f"{name}: {', '.join(sorted(values))}" if len(values) <= 4 else f"{len(values)} {plural(name)}"
            for name in INSTANCE
            for values in (set(filter(None, instances[name].tolist())),)
            if values
        ]
        facts.append((f"comparison “{comparison}”", "; ".join(parts)))
    return facts


def _failed(study: SavedStudy) -> list[tuple[str, ...]]:
    """Return comparison, case, instance and error of the runs that failed."""
    rows = study.failed[["comparison", "case", "error", "status", *INSTANCE[1:]]].itertuples(index=False)
    return [(comparison, label, " ".join(filter(None, instance)), error or status)
            for comparison, label, error, status, *instance in rows]  # fmt: skip
