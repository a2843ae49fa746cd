"""What the commands of several applications share: choices, tables, JSON, pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from batwatt.checks import finite
from batwatt.errors import UnknownNameError, printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

Chosen = TypeVar("Chosen", bound=str)


def one_of(option: str, kind: str, text: str, known: Sequence[Chosen]) -> Chosen:
    """The known name that an option gives. Raises InputError."""
    for name in known:
        if name == text:
            return name
    raise UnknownNameError(option, kind, text, known, "Give one of these.")


def numbers_of(text: str, between: str) -> tuple[float, ...]:
    """The finite numbers of a list; none if it has something else, too."""
    try:
        return tuple(finite(part) for part in text.split(between))
    except ValueError:
        return ()


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def counting_bar(unit: str, *more: ProgressColumn, alone: bool = True) -> Iterator[Progress]:
    """A bar on stderr that counts, for instance runs, with more columns; silent where stderr is not a terminal.

    One that is not to be drawn `alone`, by a thread, is drawn by `refresh`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        *more,
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, auto_refresh=alone, disable=not console.is_terminal) as bar:
        yield bar


def drawing(option: str, what: str) -> Any:
    """The option of a picture; one that cannot be drawn is refused before anything is worked out."""

    def drawable(picture: Path | None) -> Path | None:
        if picture is not None:
            from batwatt.results.style import kind_of

            kind_of(picture)
        return picture

    return typer.Option(option, callback=drawable, help=f"{what}: .png, .svg or .pdf.")


Picture = Annotated[Path | None, drawing("--picture", "Draw it, too")]


def json_text(content: Mapping[str, Any]) -> str:
    """An object as JSON for people."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # JSON's own way to write what is not printable, beyond what it must not contain anyway
    escaped = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return (text if text.isascii() and "\x7f" not in text else "".join(escaped)) + "\n"


def show_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """The table for people, without a head of names and what they are; lines with tabs where no terminal is."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    rows = [tuple(map(printable, row)) for row in rows]
    console = Console(highlight=False)
    if not console.is_terminal:
        sys.stdout.write("".join("\t".join(row) + "\n" for row in ((head, *rows) if head else rows)))
        return
    if head:
        table = Table(*(Column(name, justify="right") for name in head), box=box.SIMPLE_HEAD)
    else:
        table = Table(Column(style="bold"), Column(overflow="fold"), box=box.SIMPLE_HEAD, show_header=False, padding=0)
        rows = [(f"{name}  ", value) for name, value in rows]
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
