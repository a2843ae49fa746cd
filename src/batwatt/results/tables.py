"""Tables for a terminal: as wide as it is; what does not fit goes below, under the first column again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from batwatt.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

LABEL, TEXT = 16, 24
"""Characters that a label and a text have at least, if they need as many; longer ones go on in the next line."""


@dataclass(frozen=True)
class Column:
    """A column of a table; the first names the rows.

    `head` may have several lines, the unit last; `keys` (with blanks between them) are the values of a record that its
    `cells` show. A text is written from the left, and wrapped.
    """

    head: str
    keys: str
    cells: Sequence[str]
    is_text: bool = False

    @property
    def width(self) -> int:
        """Characters of its longest line."""
        from rich.cells import cell_len

        return max(map(cell_len, (*self.head.split("\n"), *map(printable, self.cells))))


def tables(columns: Sequence[Column], width: int) -> Iterator[Table]:
    """The tables, one below the other, that show all columns in at most `width` characters.

    Labels and texts are wrapped where that is enough. No number is cut: it is one character wider than that only if it
    does not fit next to a label of `LABEL` characters, or half of the width.
    """
    label, *others = columns
    least = min(label.width, LABEL, max(1, width // 2))
    block: list[Column] = []
    room = width - 2 - least
    for column in others:
        needed = 1 + _least(column)
        if block and needed > room:
            yield _table(label, block, width)
            block, room = [], width - 2 - least
        block.append(column)
        # next to the label a text has a gap
        room -= needed + (column.is_text and len(block) == 1)
    yield _table(label, block, width)


def _least(column: Column) -> int:
    return min(column.width, TEXT) if column.is_text else column.width


def _table(label: Column, others: Sequence[Column], width: int) -> Table:
    """A table of which the label, then the texts, take what the numbers leave."""
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
