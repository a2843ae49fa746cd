"""What the commands of several applications share: choices, JSON, pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from batwatt.checks import finite
from batwatt.errors import UnknownNameError

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


def _drawable(picture: Path | None) -> Path | None:
    """Refuse a picture of no known kind before anything is worked out."""
    if picture is not None:
        from batwatt.results.style import kind_of

        kind_of(picture)
    return picture


Picture = Annotated[
    Path | None, typer.Option("--picture", callback=_drawable, help="Draw it, too: .png, .svg or .pdf.")
]


def json_text(content: Mapping[str, Any] | Sequence[Any]) -> str:
    """An object or a list as JSON for people."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # JSON's own way to write what is not printable, beyond what it must not contain anyway
    escaped = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return (text if text.isascii() and "\x7f" not in text else "".join(escaped)) + "\n"
