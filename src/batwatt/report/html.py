"""The page of every report: its content as plain data, and its one template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from batwatt._version import __version__
from batwatt.report.chart import Chart
from batwatt.report.glossary import Glossary


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
    """A page: a headline that answers the question, a few sentences, the sections, and findings in a fold.

    `colours` maps the labels of rows to the colours that they have in charts.
    """

    title: str
    headline: str
    sentences: Sequence[str]
    findings: Sequence[str]
    sections: Sequence[Section]
    colours: Mapping[str, str]
    alert: str = ""


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
