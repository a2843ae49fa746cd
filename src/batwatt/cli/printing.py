"""Output of a command: its result on stdout as a table, lines with tabs or JSON; notes and progress on stderr."""

from __future__ import annotations

import inspect
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batwatt.cli.models import options_of
from batwatt.errors import printable
from batwatt.files import write_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from batwatt.results.tables import TableColumn

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Output file.", show_default="standard output")]


@dataclass
class Manners:
    """Amount and format of the output of a command; `words` are its command line."""

    verbose: int = 0
    quiet: bool = False
    as_json: bool = False
    words: Sequence[str] = ()

    def begin(self, words: Sequence[str]) -> None:
        """Reset to the defaults for a command with these words."""
        self.verbose, self.quiet, self.as_json, self.words = 0, False, False, words

    @property
    def level(self) -> int:
        """Lowest level of messages that are logged."""
        return logging.ERROR if self.quiet else LEVELS[min(self.verbose, 2)]


manners = Manners()
"""Manners of this process, which runs one command."""


def write_output(text: str, output: Path | None) -> None:
    """Write a text to a file, whole or not at all, or to standard output."""
    if output is None:
        if sys.stdout.isatty():
            # a terminal would obey control characters
            text = re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text)
        sys.stdout.write(text)
        return
    write_text(output, text)


def tabular(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return `options_of` of a command that prints a table, with the option --json."""
    ready = options_of(command)
    signature = inspect.signature(ready)
    option = inspect.Parameter(
        "as_json",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--json", help="Print JSON.")],
    )

    @wraps(ready)
    def called(*, as_json: bool = False, **values: Any) -> Any:
        manners.as_json = as_json
        return ready(**values)

    # typer reads both
    called.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    called.__annotations__ = ready.__annotations__ | {option.name: option.annotation}
    return called


def json_text(content: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return an object or a list as indented JSON."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # escape characters that are not printable, beyond those that JSON must escape
    escaped = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return (text if text.isascii() and "\x7f" not in text else "".join(escaped)) + "\n"


def show_table(
    columns: Sequence[TableColumn],
    records: Sequence[Mapping[str, Any]],
    content: Any = None,
    headings: Mapping[str, str] | None = None,
) -> None:
    """Print a table: on a terminal in its width, else lines with tabs; with --json the records, or the `content`.

    Lines with tabs have the keys of the columns as their head, and values in SI units, not rounded, empty where there
    is no value. With `headings` records have a `kind`: on a terminal each kind has a heading.
    """
    if manners.as_json:
        sys.stdout.write(json_text(list(records) if content is None else content))
    elif sys.stdout.isatty():
        _on_terminal(columns, None if headings is None else [headings[record["kind"]] for record in records])
    else:
        keys = [key for column in columns for key in column.keys.split()]
        if headings is not None:
            keys.insert(0, "kind")
        rows: list[list[Any]] = [keys, *([record.get(key) for key in keys] for record in records)]
        sys.stdout.write("".join("\t".join(map(_plain, row)) + "\n" for row in rows))


def _plain(value: object) -> str:
    """Return a value as text between tabs."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return printable(value)


def show_described(records: Sequence[Mapping[str, str]], headings: Mapping[str, str] | None = None) -> None:
    """Print names and descriptions: records of `name` and `description`."""
    from batwatt.results.tables import TableColumn

    names, lines = ([record[key] for record in records] for key in ("name", "description"))
    columns = [TableColumn("", "name", names), TableColumn("", "description", lines, is_text=True)]
    show_table(columns, records, headings=headings)


def _on_terminal(columns: Sequence[TableColumn], headings: Sequence[str] | None) -> None:
    from rich.text import Text

    from batwatt.results.tables import tables

    console = _console(sys.stdout)
    if headings is None:
        console.print(*tables(columns, console.width), sep="")
        return
    begin = 0
    for heading, part in groupby(headings):
        end = begin + len(list(part))
        console.print(Text(printable(heading), style="bold"))
        some = [replace(column, cells=column.cells[begin:end]) for column in columns]
        console.print(*tables(some, console.width), sep="")
        begin = end


def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False)


def below(text: str) -> None:
    """Print a line below a table on a terminal, such as the names of files; the records have the same facts."""
    if sys.stdout.isatty() and not (manners.quiet or manners.as_json):
        print(text)


def note(text: str) -> None:
    """Print a line on stderr about the progress of a command."""
    if not manners.quiet:
        print(text, file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """Print the result of a command that has no table."""
    if not manners.quiet:
        print(text)


def shows_progress() -> bool:
    """Return whether bars are drawn on stderr."""
    return sys.stderr.isatty() and not manners.quiet


@contextmanager
def progress_bar(*columns: ProgressColumn, alone: bool = True) -> Iterator[Progress]:
    """Show progress on stderr; silent where that is not a terminal.

    A thread draws it if `alone`, else calls of `refresh` do.
    """
    from rich.progress import Progress

    with Progress(*columns, console=_console(sys.stderr), auto_refresh=alone, disable=not shows_progress()) as bar:
        yield bar


@contextmanager
def counting_bar(unit: str, *more: ProgressColumn, alone: bool = True) -> Iterator[Progress]:
    """Show a bar on stderr that counts a unit, for instance runs, with more columns."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with progress_bar(*columns, *more, alone=alone) as bar:
        yield bar
