"""The page of every report: its content as plain data, its terms, and its one template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Literal

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from batwatt._version import __version__
from batwatt.report.cases import WITHIN
from batwatt.report.chart import Chart
from batwatt.report.texts import percent
from batwatt.results.drawing import Look

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
SHAPES = {
    "o": "M-.8 0a.8.8 0 1 0 1.6 0a.8.8 0 1 0-1.6 0z",
    "s": "M-.7-.7H.7V.7H-.7z",
    "^": "M0-.9L.9.7H-.9z",
    "D": "M0-.95L.95 0 0 .95-.95 0z",
    "v": "M0 .9L.9-.7H-.9z",
    "P": "M-.3-.9H.3V-.3H.9V.3H.3V.9H-.3V.3H-.9V-.3H-.3z",
    "X": "M-.9-.5L-.5-.9 0-.4 .5-.9 .9-.5 .4 0 .9 .5 .5 .9 0 .4-.5 .9-.9 .5-.4 0z",
    "*": "M0-1L.25-.33 .95-.31 .4 .13 .59 .81 0 .42-.59 .81-.4 .13-.95-.31-.25-.33z",
}
"""Shape of a point -> its outline within a square from -1 to 1."""
SWATCH = Markup('<svg class="swatch" viewBox="-1 -1 2 2" aria-hidden="true"><path fill="{}" d="{}"/></svg>')
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
    """The heading of a column: a line below it, a tip, and the group of columns that it belongs to.

    Without a click on "more columns" a column of `hide` "narrow" is hidden on a narrow screen, one of "always" on all.
    """

    text: str
    below: str = ""
    tip: str = ""
    group: str = ""
    hide: Literal["", "narrow", "always"] = ""


@dataclass(frozen=True)
class PageTable:
    """A table: rows by label below headings; a table of numbers, which can be sorted, unless `plain`.

    The columns of a table that is `across` are cases, and its rows measures, with a line below some (`below`). A table
    that is `folded` opens on a click.
    """

    name: str
    title: str
    first: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]
    plain: bool = False
    reference: str | None = None
    notes: Sequence[str] = ()
    across: bool = False
    below: Mapping[str, str] = field(default_factory=dict)
    folded: bool = False

    @property
    def groups(self) -> list[tuple[str, int, str]]:
        """Groups of columns from the left, with their numbers of columns and `hide`; empty without groups."""
        names = {head.group: head.hide for head in self.headings}
        return [(name, sum(head.group == name for head in self.headings), hide)
                for name, hide in names.items() if any(names)]  # fmt: skip


def text_table(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    """Return a table of texts."""
    cells = tuple((row[0], tuple(PageCell(text) for text in row[1:])) for row in rows)
    return PageTable(name, title, heads[0], tuple(Heading(head) for head in heads[1:]), cells, plain=True)


@dataclass(frozen=True)
class Section:
    """A part of a page below its headline, which opens on a click if it is `folded`.

    Its charts are side by side; those after the first `unfolded` open on a click.
    """

    id: str
    title: str
    notes: Sequence[str] = ()
    items: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[PageTable] = ()
    charts: Sequence[Chart] = ()
    caption: str = ""
    folded: bool = False
    unfolded: int | None = None
    links: Sequence[str] = ()
    """Files next to the page."""


@dataclass(frozen=True)
class Page:
    """A page: a headline that answers the question, a sentence, a caveat and a table below it, and the sections.

    `looks` maps the labels of cases to the looks that they have in charts.
    """

    title: str
    headline: str
    lead: str
    sections: Sequence[Section]
    looks: Mapping[str, Look]
    caveat: str = ""
    alert: str = ""
    table: PageTable | None = None


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
    environment.filters |= {"terms": glossary.marked, "swatch": _swatch}
    return environment.get_template("page.html.j2").render(
        page=page, version=__version__, style=_source("page.css"), script=_source("page.js")
    )


def _swatch(look: Look) -> Markup:
    """Return the shape of a case in its colour."""
    return SWATCH.format(look.colour, SHAPES[look.marker])


def _source(name: str) -> str:
    return (files("batwatt.report") / name).read_text(encoding="utf-8")
