"""The page of a comparison of systems, as one file."""

from __future__ import annotations

from pathlib import Path

from batwatt.files import whole_file
from batwatt.report.comparison.data import ComparedSystems
from batwatt.report.comparison.figures import front_figure, power_figure
from batwatt.report.comparison.numbers import jobs, percent
from batwatt.report.comparison.sentences import ENOUGH, WITHIN, paragraph, remarks
from batwatt.report.comparison.tables import about_cases, cases_table, groups_tables
from batwatt.report.glossary import Glossary
from batwatt.report.html import page_of

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
    measures = {measure.title: measure.meaning for measure in data.measures}
    front, power = front_figure(data), power_figure(data)
    count = len(data.labels)
    return page_of(
        "comparison.html.j2",
        title=f"Comparison of {count} case{'s' * (count != 1)} on {jobs(data.total)}",
        glossary=Glossary(meanings=TERMS | measures),
        colours={label: look.colour for label, look in data.looks.items()},
        data=data,
        paragraph=paragraph(data),
        remarks=remarks(data),
        cases=cases_table(data),
        suffering=groups_tables(data),
        front=front,
        power=power,
        abouts=about_cases(data),
        terms=[*((measure.title, measure.meaning) for measure in data.measures), *TERMS.items()],
        rated=percent(ENOUGH),
    )
