"""Tables for a terminal of a width; columns that do not fit go into another table with the first column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from batwatt.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

LABEL, TEXT = 16, 24
"""Least widths in characters of a long label and a long text before they are wrapped."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; the first names the rows.

    `head` may have several lines, the unit last; `keys`, separated by blanks, are the keys of a record for its
    `cells`. A text is aligned to the left, and wrapped.
    """

    head: str
    keys: str
    cells: Sequence[str]
    is_text: bool = False

    @property
    def width(self) -> int:
        """Characters of the longest line."""
        from rich.cells import cell_len

        return max(map(cell_len, (*self.head.split("\n"), *map(printable, self.cells))))


def tables(columns: Sequence[TableColumn], width: int) -> Iterator[Table]:
    """Yield the tables of all columns, each at most `width` characters wide, one below the other.

    Labels and texts are wrapped to fit. No number is cut: a table is wider only if a number does not fit next to a
    label of `LABEL` characters, or of half of the width.
    """
    label, *others = columns
    least = min(label.width, LABEL, max(1, width // 2))
    block: list[TableColumn] = []
    room = width - 2 - least
    for column in others:
        needed = 1 + _least(column)
        if block and needed > room:
            yield _table(label, block, width)
            block, room = [], width - 2 - least
        block.append(column)
        # a text next to the label has a gap
        room -= needed + (column.is_text and len(block) == 1)
    yield _table(label, block, width)


def _least(column: TableColumn) -> int:
    return min(column.width, TEXT) if column.is_text else column.width


def _table(label: TableColumn, others: Sequence[TableColumn], width: int) -> Table:
    """Return a table in which the label, then the texts, take the width that numbers leave."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    gap = int(others[0].is_text)
    spare = width - 2 - gap - len(others) - sum(map(_least, others))
    first = min(label.width, max(spare, min(LABEL, width // 2)))
    spare -= first
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_header=any(column.head for column in (label, *others)))
    table.add_column(Text(label.head), width=first + gap, overflow="fold", style="" if table.show_header else "bold")
    for column in others:
        wide = column.width if not column.is_text else min(column.width, _least(column) + max(0, spare))
        spare -= wide - _least(column)
        side: Literal["left", "right"] = "left" if column.is_text else "right"
        table.add_column(
            Text(column.head, justify=side),
            justify=side,
            width=max(1, min(wide, width - 3 - first - gap)),
            no_wrap=not column.is_text,
            overflow="fold",
        )
    for row in zip(*(column.cells for column in (label, *others)), strict=True):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
