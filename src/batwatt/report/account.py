"""The page of an account of a job log."""

from __future__ import annotations

from collections.abc import Sequence

from batwatt.report.glossary import TERMS, Glossary
from batwatt.report.html import Heading, Page, PageCell, PageTable, Section, html_of
from batwatt.results.tables import TableColumn
from batwatt.results.usage import DECIMALS, TOTAL

NOTE = (
    f"{DECIMALS} decimals; rows add up to the total. A job is counted in its first month. Click on a heading to sort."
)


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
        Section("by", f"By {by}", [NOTE], tables=[table]),
        Section("reading", "What is left out, cut or assumed", items=remarks or ["Nothing."]),
        Section("about", "What was accounted", facts=facts),
    ]
    headline = ", ".join(f"{text} {head}" for text, head in zip(cells[-1], heads, strict=True))
    return html_of(Page("Account of a job log", headline, (), (), sections, {}), Glossary(TERMS))
