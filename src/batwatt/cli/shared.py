"""Functions that the commands of several applications share: choices, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from batwatt.errors import UnknownNameError

Name = TypeVar("Name", bound=str)


def one_of(option: str, kind: str, text: str, names: Sequence[Name]) -> Name:
    """Return the one of the names that an option has as its value. Raises InputError."""
    for name in names:
        if name == text:
            return name
    raise UnknownNameError(option, kind, text, names, "Give one of these.")


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def json_text(content: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return an object or a list as indented JSON."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # escape characters that are not printable, beyond those that JSON must escape
    escaped = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return (text if text.isascii() and "\x7f" not in text else "".join(escaped)) + "\n"
