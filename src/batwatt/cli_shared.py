"""What the commands of several applications share: choices, tables, JSON, pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from batwatt.errors import UnknownNameError
from batwatt.results.style import kind_of

Chosen = TypeVar("Chosen", bound=str)


def one_of(option: str, kind: str, text: str, known: Sequence[Chosen]) -> Chosen:
    """The known name that an option gives. Raises InputError."""
    for name in known:
        if name == text:
            return name
    raise UnknownNameError(option, kind, text, known, "Give one of these.")


def drawable(picture: Path | None) -> None:
    """Refuse a picture that cannot be drawn before anything is worked out."""
    if picture is not None:
        kind_of(picture)


def json_text(content: Mapping[str, Any]) -> str:
    """An object as JSON for people."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def show_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """The table for people; lines with tabs where the output is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        sys.stdout.write("".join("\t".join(row) + "\n" for row in (head, *rows)))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in head:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
