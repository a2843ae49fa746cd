"""The page of a comparison of systems, as one file."""

from __future__ import annotations

from pathlib import Path

from batwatt.files import whole_file
from batwatt.report.comparison.data import ComparedSystems
from batwatt.report.comparison.figures import front_figure, power_figure
from batwatt.report.comparison.numbers import jobs, percent
from batwatt.report.comparison.sentences import ENOUGH, WITHIN, findings, headline, sentences
from batwatt.report.comparison.tables import about_cases, cases_table, groups_tables
from batwatt.report.glossary import Glossary
from batwatt.report.html import Page, Section, html_of, text_table

TERMS = {
    "envelope": "the power in W that all hosts together may draw, over time",
    "keep to the envelope": f"to draw no more than {percent(WITHIN)} of the energy above the envelope",
    "reference": "the first case, with which the others are compared",
    "Pareto front": "the cases that no other dominates",
    "dominated": "another case finishes no less work with no more bounded slowdown, and is better in one",
    "added wait": "mean difference of the wait to the reference, over the jobs that finish in both cases",
    "standard error": "standard deviation / square root of the count, of instances or of paired differences by seed",
    "seeds": "runs of a case that draws at random, each with other numbers, the same for all cases",
}
"""Term -> its meaning, in addition to the measures."""


def write_comparison_page(path: Path | str, data: ComparedSystems) -> Path:
    """Write the page, whole or not at all; the same comparison gives the same bytes. Raises InputError."""
    path = Path(path)
    text = comparison_page(data)
    with whole_file(path) as out:
        out.write(text)
    return path


def comparison_page(data: ComparedSystems) -> str:
    """The page as HTML."""
    meanings = [*((measure.title, measure.meaning) for measure in data.measures), *TERMS.items()]
    count, several = (
        len(data.labels),
        f" ± its standard error over {data.samples} {data.kind}" if data.samples > 1 else "",
    )
    cases = [f"Small numbers: difference to “{data.reference}”{several}."] if count > 1 else []
    cases.append(
        f"Green: the best of the cases that keep to the envelope and finish at least {percent(ENOUGH)} of the jobs "
        "that the best of them finishes. A click on a heading sorts."
    )
    waits = [
        f"In the row of “{data.reference}”: mean wait and slowdown at full speed of its finished jobs. In the other "
        "rows: what is added to these, on average over the jobs that finish in both; and the share of jobs that do not "
        f"finish.{' The first seed.' * (data.samples > 1 and data.kind == 'seeds')}"
    ]
    front, power = front_figure(data), power_figure(data)
    about = [text_table("abouts", "The cases", ("case", "scheduler", "options", "follows"), about_cases(data))]
    if data.errors:
        about.append(text_table("left-out", "Cases left out", ("case", "reason"), list(data.errors.items())))
    sections = [
        Section("cases", "All cases", cases, tables=[cases_table(data)]),
        Section("front", front.title, figures=[front]),
        Section("suffer", "Who waits longer", waits, tables=groups_tables(data)),
        Section("power", power.title, figures=[power]),
        Section("metrics", "What the words mean", facts=meanings),
        Section("about", "What was run", facts=data.facts, tables=about),
    ]
    if data.reading:
        heading = "Of the inputs: times and dates, what is left out or filled in"
        sections.append(Section("reading", heading, items=data.reading))
    title = f"Comparison of {count} case{'s' * (count != 1)} on {jobs(data.total)}"
    colours = {label: look.colour for label, look in data.looks.items()}
    page = Page(title, headline(data), sentences(data), findings(data), sections, colours)
    return html_of(page, Glossary(meanings=dict(meanings)))
