"""The registered parts by kind and name: what options name and `batwatt policies` lists.

A part is a class with the methods of its kind (or, of a carbon policy, a plain function), made known by `@register`.
Parts of other distributions come by the entry point group `batwatt.parts`: modules that register theirs when they are
imported.
"""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, TypeVar

from batwatt.errors import InputError, UnknownNameError

_METHODS = {
    "order": "key",
    "backfilling": "place",
    "node_selection": "weight",
    "response": "respond",
    "termination": "figure",
    "mapping": "queue_of",
    "preemption": "gain",
    "victim": "saved_s",
    "strategy": "advance",
    "policy": "choose",
    "power_check": "bound_w",
    "predictor": "predict",
}
KINDS = tuple(_METHODS)
"""Kinds of parts; the options that choose them have these names, too."""
GROUP = "batwatt.parts"
"""Entry points of distributions that bring parts."""
Part = TypeVar("Part")

_parts: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
_aliases: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}


def register(kind: str, name: str, *aliases: str) -> Callable[[Part], Part]:
    """Decorator: make a part known under `name` (and aliases); its docstring's first line describes it."""

    if kind not in KINDS:
        raise ValueError(f"no kind of part {kind!r}; known: {', '.join(KINDS)}")

    def remember(part: Part) -> Part:
        taken = _parts[kind].get(name)
        # a file may be imported again
        if taken is not None and _place(taken) != _place(part):
            raise ValueError(f"{kind} {name!r} is already {'.'.join(_place(taken))}")
        _parts[kind][name] = part
        _aliases[kind].update(dict.fromkeys(aliases, name))
        part.name = name  # type: ignore[attr-defined]
        return part

    return remember


def _place(part: Any) -> tuple[str, str]:
    return part.__module__, part.__qualname__


def find(kind: str, name: str) -> Any:
    """The part of that name or alias, as it was registered. Raises InputError."""
    known = _parts[kind]
    plain = name.lower()
    if _aliases[kind].get(plain, plain) not in known:
        load_distributed()
    part = known.get(_aliases[kind].get(plain, plain))
    if part is None:
        raise UnknownNameError(f"option {kind!r}", kind, name, known, "See `batwatt policies`.")
    return part


def named(kind: str, choice: object) -> Any:
    """What an option names as something to be called: the part, with the parameters that the option gives."""
    if isinstance(choice, dict):
        parameters = dict(choice)
        return partial(find(kind, str(parameters.pop("name", ""))), **parameters)
    return find(kind, choice) if isinstance(choice, str) else choice


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
    part = find(kind, choice)
    try:
        return part(**parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"option {kind!r}", f"{choice}: {error}") from None


@cache
def load_distributed() -> None:
    """Import the parts that installed distributions bring. Raises InputError if one cannot be loaded."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            problem = f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
            raise InputError(f"parts of {entry.dist.name if entry.dist else entry.name}", problem, "mend it") from error


def names(kind: str) -> list[str]:
    """Registered names of a kind, sorted."""
    return sorted(_parts[kind])


def parts_of(kind: str) -> list[tuple[str, Any]]:
    """(name, part) of every registered part of a kind, sorted by name."""
    return sorted(_parts[kind].items())


def kind_of(thing: type) -> str | None:
    """What kind of part a class can be, registered or not; None if it is none."""
    return next((kind for kind, method in _METHODS.items() if callable(getattr(thing, method, None))), None)


def describe() -> Iterator[tuple[str, str, str, str]]:
    """(kind, name, aliases, first line of the docstring) of every part."""
    load_distributed()
    for kind in KINDS:
        for name in names(kind):
            aliases = ", ".join(sorted(alias for alias, target in _aliases[kind].items() if target == name))
            yield kind, name, aliases, first_line(_parts[kind][name])


def first_line(thing: object) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n", 1)[0]
