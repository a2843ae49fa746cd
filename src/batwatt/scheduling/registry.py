"""The registered parts by kind and name, which options name and `batwatt policies` lists.

A part is a class with the methods of its kind (or, of a carbon policy, a plain function), made known by `@register`.
Parts of other distributions come by the entry point group `batwatt.parts`: modules that register theirs when they are
imported.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import itemgetter
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
    "run_times": "estimate",
}
KINDS = tuple(_METHODS)
"""Kinds of parts; the options that choose them have these names, too."""
GROUP = "batwatt.parts"
"""Entry points of distributions that bring parts."""
Part = TypeVar("Part")

LOGGER = logging.getLogger(__name__)

_parts: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
"""Kind -> the name in small letters -> the part."""


def register(kind: str, name: str) -> Callable[[Part], Part]:
    """Register a part under `name`, as a decorator; the first line of its docstring describes it."""

    if kind not in KINDS:
        raise ValueError(f"no kind of part {kind!r}; known: {', '.join(KINDS)}")
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise ValueError(f"{kind}: a name must be a printable text, got {name!r}")

    def remember(part: Part) -> Part:
        taken = _parts[kind].get(name.lower())
        # a file may be imported again
        if taken is not None and _place(taken) != _place(part):
            raise ValueError(f"{kind} {name!r} is already {'.'.join(_place(taken))}")
        if any(each is part and other != name.lower() for other, each in _parts[kind].items()):
            raise ValueError(f"{kind} {name!r}: {_place(part)[1]} has another name already; a part has one name")
        part.name = name  # type: ignore[attr-defined]
        _parts[kind][name.lower()] = part
        return part

    return remember


def _place(part: Any) -> tuple[str, str]:
    return part.__module__, part.__qualname__


def find(kind: str, name: str) -> Any:
    """Return the part of a name, as it was registered. Raises InputError."""
    if name.lower() not in _parts[kind]:
        load_distributed()
    part = _parts[kind].get(name.lower())
    if part is None:
        raise UnknownNameError(f"option {kind!r}", kind, name, names(kind), "See `batwatt policies`.")
    return part


def named(kind: str, choice: object) -> Any:
    """Return the part that an option names as a callable, with the parameters that the option gives."""
    if isinstance(choice, dict):
        parameters = dict(choice)
        return partial(find(kind, str(parameters.pop("name", ""))), **parameters)
    return find(kind, choice) if isinstance(choice, str) else choice


def make(kind: str, choice: object) -> Any:
    """Make the part that an option names: `"easy"`, or `{"name": "easy", ...parameters}`, or a part itself."""
    parameters: dict[str, Any] = {}
    if isinstance(choice, dict):
        parameters = dict(choice)
        choice = parameters.pop("name", None)
    if not isinstance(choice, str):
        if callable(getattr(choice, _METHODS[kind], None)):
            if isinstance(choice, type):
                problem = f"{choice.__name__} is a class, not an object of it"
                raise InputError(f"option {kind!r}", problem, f"write {choice.__name__}(), or its name if it has one")
            return choice  # a part itself, registered or not
        raise InputError(f"option {kind!r}", f"{choice!r} is not a name", "see `batwatt policies`")
    part = find(kind, choice)
    try:
        instance = part(**parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"option {kind!r}", f"{choice}: {error}") from None
    if not callable(getattr(instance, _METHODS[kind], None)):
        raise InputError(f"option {kind!r}", f"{choice} has no method {_METHODS[kind]}()", "see docs/howto/parts.md")
    return instance


@cache
def load_distributed() -> None:
    """Import the parts that installed distributions bring; warn of each that cannot be loaded."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            owner = entry.dist.name if entry.dist else entry.name
            what = f"{type(error).__name__}: {error}"
            LOGGER.warning("parts of %s: %s cannot be loaded: %s; correct or remove it", owner, entry.value, what)


def names(kind: str) -> list[str]:
    """Return the registered names of a kind, sorted."""
    return [name for name, _ in parts_of(kind)]


def registered() -> list[Any]:
    """Return all registered parts."""
    return [part for parts in _parts.values() for part in parts.values()]


def parts_of(kind: str) -> list[tuple[str, Any]]:
    """Return (name, part) of every registered part of a kind, sorted by name."""
    return sorted(((part.name, part) for part in _parts[kind].values()), key=itemgetter(0))


def kind_of(thing: type) -> str | None:
    """Return the kind of part that a class can be, registered or not; None if it is none."""
    return next((kind for kind, method in _METHODS.items() if callable(getattr(thing, method, None))), None)


def describe() -> Iterator[tuple[str, str, str]]:
    """Yield (kind, name, first line of the docstring) of every part."""
    load_distributed()
    for kind in KINDS:
        for name, part in parts_of(kind):
            yield kind, name, first_line(part)


def first_line(thing: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n", 1)[0]
