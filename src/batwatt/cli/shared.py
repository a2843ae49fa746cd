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
from rich.text import Text

from batwatt.errors import UnknownNameError, printable
from batwatt.results.style import kind_of

Chosen = TypeVar("Chosen", bound=str)


def one_of(option: str, kind: str, text: str, known: Sequence[Chosen]) -> Chosen:
    """The known name that an option gives. Raises InputError."""
    for name in known:
        if name == text:
            return name
    raise UnknownNameError(option, kind, text, known, "Give one of these.")


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def drawable(picture: Path | None) -> None:
    """Refuse a picture that cannot be drawn before anything is worked out."""
    if picture is not None:
        kind_of(picture)


def json_text(content: Mapping[str, Any]) -> str:
    """An object as JSON for people."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # JSON's own way to write what is not printable, beyond what it must not contain anyway
    escaped = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return (text if text.isascii() and "\x7f" not in text else "".join(escaped)) + "\n"


def show_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """The table for people; lines with tabs where the output is no terminal."""
    rows = [tuple(map(printable, row)) for row in rows]
    console = Console(highlight=False)
    if not console.is_terminal:
        sys.stdout.write("".join("\t".join(row) + "\n" for row in (head, *rows)))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in head:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
