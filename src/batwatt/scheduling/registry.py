"""The registered parts by kind and name: what options name and `batwatt policies` lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from batwatt.errors import InputError, UnknownNameError

_METHODS = {"order": "key", "placement": "place", "response": "respond"}
KINDS = tuple(_METHODS)
Part = TypeVar("Part", bound=type)

_parts: dict[str, dict[str, type]] = {kind: {} for kind in KINDS}
_aliases: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}


def register(kind: str, name: str, *aliases: str) -> Callable[[Part], Part]:
    """Class decorator: make a part known under `name` (and aliases); its docstring's first line describes it."""

    def remember(part: Part) -> Part:
        taken = _parts[kind].get(name)
        if taken is not None and taken.__qualname__ != part.__qualname__:
            raise ValueError(f"{kind} {name!r} is already {taken.__qualname__}")
        _parts[kind][name] = part
        _aliases[kind].update(dict.fromkeys(aliases, name))
        part.name = name  # type: ignore[attr-defined]
        return part

    return remember


def make(kind: str, choice: object) -> Any:
    """The part that an option names: `"easy"`, or `{"name": "easy", ...parameters}`, or a part itself."""
    parameters: dict[str, Any] = {}
    if isinstance(choice, dict):
        parameters = dict(choice)
        choice = parameters.pop("name", None)
    if not isinstance(choice, str):
        if callable(getattr(choice, _METHODS[kind], None)):
            return choice  # a part itself, registered or not
        raise InputError(f"option {kind!r}", f"{choice!r} is not a name", "see `batwatt policies`")
    known = _parts[kind]
    part = known.get(_aliases[kind].get(choice.lower(), choice.lower()))
    if part is None:
        raise UnknownNameError(f"option {kind!r}", kind, choice, known, "See `batwatt policies`.")
    try:
        return part(**parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"option {kind!r}", f"{choice}: {error}") from None


def names(kind: str) -> list[str]:
    """Registered names of a kind, sorted."""
    return sorted(_parts[kind])


def parts_of(kind: str) -> list[tuple[str, type]]:
    """(name, class) of every registered part of a kind, sorted by name."""
    return sorted(_parts[kind].items())


def kind_of(thing: type) -> str | None:
    """What kind of part a class can be, registered or not; None if it is none."""
    return next((kind for kind, method in _METHODS.items() if callable(getattr(thing, method, None))), None)


def describe() -> Iterator[tuple[str, str, str, str]]:
    """(kind, name, aliases, first line of the docstring) of every part."""
    for kind in KINDS:
        for name in names(kind):
            aliases = ", ".join(sorted(alias for alias, target in _aliases[kind].items() if target == name))
            yield kind, name, aliases, first_line(_parts[kind][name])


def first_line(thing: object) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n", 1)[0]
