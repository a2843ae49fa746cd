"""The page of every report: its content as plain data, its terms, and its one template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from batwatt._version import __version__
from batwatt.report.cases import WITHIN
from batwatt.report.chart import Chart
from batwatt.report.texts import percent

STUDY_TERMS = {
    "comparison": "a part of a study: cases crossed with instances",
    "instance": "platform, workload, and envelope or capacity; runs with several seeds of the scheduler are one",
    "optimum": "the schedule with the least mean slowdown that finishes every job within the envelope, found offline",
    "best known schedule": "the best schedule that was found offline; not proven to be optimal on every instance",
    "foresight": "how long in advance the scheduler knows the capacity",
    "fixed capacity": "the same mean number of machines all the time",
    "walk": "a capacity that goes up and down by random steps",
}
"""Term of studies -> its meaning."""
TERMS = {
    "case": "a scheduler with its options",
    "reference": "the case that the others are compared with",
    "envelope": "the power in W that all hosts together may draw, over time",
    "keep to the envelope": f"to draw no more than {percent(WITHIN)} of the energy above the envelope",
    "walltime": "the time after which a job is killed, as its user states it at submission",
    "Pareto front": "the cases that no other dominates",
    "dominated": "another case has no less finished work (or goodput) with no more slowdown, and is better in one",
    "added wait": "mean difference of the wait to the reference, over the jobs that finish in both cases",
    "standard error": "standard deviation / square root of the count, of samples or of paired differences",
    "chance": "a difference is more than chance if 0 is outside its 95 % interval: mean ± Student's t x standard error",
    "seeds": "runs of a case that draws at random, each with other numbers, the same for all cases",
}
"""Term -> its meaning."""
TERM = Markup('<abbr class="term" tabindex="0" data-tip="{}">{}</abbr>')


@dataclass(frozen=True)
class PageCell:
    """A cell: its text, smaller lines below it, its key for sorting, a tip, and its marks.

    `shade` is from -1 (less than in the reference) to 1 (more).
    """

    text: str
    more: tuple[str, ...] = ()
    key: str = ""
    tip: str = ""
    best: bool = False
    alert: bool = False
    shade: float = 0.0


@dataclass(frozen=True)
class Heading:
    """The heading of a column: a line below it, a tip, and the group of columns that it belongs to."""

    text: str
    below: str = ""
    tip: str = ""
    group: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table: rows by label below headings; a table of numbers, which can be sorted, unless `plain`."""

    name: str
    title: str
    first: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]
    plain: bool = False
    reference: str | None = None
    notes: Sequence[str] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Groups of columns from the left, with their numbers of columns; empty without groups."""
        names = dict.fromkeys(head.group for head in self.headings)
        return [(name, sum(head.group == name for head in self.headings)) for name in names if any(names)]


def text_table(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    """Return a table of texts."""
    cells = tuple((row[0], tuple(PageCell(text) for text in row[1:])) for row in rows)
    return PageTable(name, title, heads[0], tuple(Heading(head) for head in heads[1:]), cells, plain=True)


@dataclass(frozen=True)
class Section:
    """A part of a page below its headline; its charts are side by side, or one at a time if `folded`."""

    id: str
    title: str
    notes: Sequence[str] = ()
    items: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[PageTable] = ()
    charts: Sequence[Chart] = ()
    caption: str = ""
    folded: bool = False
    links: Sequence[str] = ()
    """Files next to the page."""


@dataclass(frozen=True)
class Page:
    """A page: a headline that answers the question, a sentence and a caveat below it, and the sections.

    `colours` maps the labels of rows to the colours that they have in charts.
    """

    title: str
    headline: str
    lead: str
    sections: Sequence[Section]
    colours: Mapping[str, str]
    caveat: str = ""
    alert: str = ""


class Glossary:
    """Marker of terms within texts, with their meanings by term."""

    def __init__(self, meanings: Mapping[str, str]) -> None:
        words = sorted(meanings, key=len, reverse=True)
        terms = "|".join(map(re.escape, words))
        self._pattern = re.compile(rf"“[^”]*”|(?<![\w-])({terms})(s?)(?![\w-])", re.IGNORECASE)
        self._by_lower = {word.lower(): meaning for word, meaning in meanings.items()}

    def marked(self, text: str) -> Markup:
        """Return a text as HTML in which the first occurrence of each term, but in a name, has its meaning as a tip."""
        parts, end, seen = [], 0, set()
        for match in self._pattern.finditer(text):
            term = (match[1] or "").lower()
            if term and term not in seen:
                seen.add(term)
                tip = self._by_lower[term]
                parts += [escape(text[end : match.start()]), TERM.format(tip, match[0])]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])


def html_of(page: Page, glossary: Glossary) -> str:
    """Return a page as HTML, the terms of the glossary with their meanings."""
    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"terms": glossary.marked}
    return environment.get_template("page.html.j2").render(
        page=page, version=__version__, style=_source("page.css"), script=_source("page.js")
    )


def _source(name: str) -> str:
    return (files("batwatt.report") / name).read_text(encoding="utf-8")
