"""Checks of the arguments of public functions: a wrong argument is an InputError with its name."""

from __future__ import annotations

import inspect
import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from batwatt.checks import finite, load_json, shown
from batwatt.errors import InputError, argument
from batwatt.files import read_text
from batwatt.model.platform import MAX_HOSTS
from batwatt.model.signal import Window

Check = Callable[[str, Any], Any]
"""Function of name and value of an argument -> the value for the function. Raises InputError with the name."""
_P = ParamSpec("_P")
_R = TypeVar("_R")
MOST_WORKERS = 4096
"""Most processes; a larger number is a mistake."""


def checked(**checks: Check) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Check each argument before a function runs.

    A default is not checked. Arguments that do not fit the signature are an InputError as well.
    """

    def door(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                names = [name for name in signature.parameters if name not in ("self", "cls")]
                hint = f"the arguments are {', '.join(names)}"
                raise InputError(function.__qualname__, str(error), hint) from None
            for name in checks.keys() & bound.arguments.keys():
                bound.arguments[name] = checks[name](argument(name), bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return call

    return door


# one value ------------------------------------------------------------------------------------------------------------


def wrong(name: str, wanted: str, value: Any, hint: str = "correct it") -> InputError:
    """Return the error for a value of a wrong kind."""
    return InputError(name, f"must be {wanted}, got {shown(value)}", hint)


def path_or(name: str, value: Any, *kinds: type) -> Any:
    """Return `value` if it is of one of the kinds, else the path that it names. Raises InputError."""
    if isinstance(value, kinds):
        return value
    if isinstance(value, str | Path):
        if not _is_text(str(value)) or "\0" in str(value):
            raise InputError(name, f"no file can be called {shown(str(value))}", "correct the path")
        return Path(value)
    raise wrong(name, " or ".join(["a path", *(kind.__name__ for kind in kinds)]), value)


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value`, also an integer of numpy, as an int in low..high. Raises InputError."""
    if not isinstance(value, bool):
        try:
            value = operator.index(value)
        except TypeError:
            pass
        else:
            if low <= value and (high is None or value <= high):
                return int(value)
    raise wrong(name, f"a whole number {f'>= {low}' if high is None else f'in {low}..{high}'}", value)


def real(name: str, value: Any, low: float = 0.0, *, above: bool = False) -> float:
    """Return `value` as a finite number >= low, or > low; a text is an error. Raises InputError."""
    try:
        number = finite(None if isinstance(value, str | bytes) or not hasattr(value, "__float__") else value)
    except (ValueError, ArithmeticError):
        raise wrong(name, "a number", value) from None
    if not (number > low if above else number >= low):
        raise InputError(name, f"must be {'>' if above else '>='} {low:g}, got {number:g}", "correct it")
    return number


def flag(name: str, value: Any) -> bool:
    """Return True or False, also of numpy, as a bool. Raises InputError."""
    value = plain(value)
    if isinstance(value, bool):
        return value
    raise wrong(name, "True or False", value)


def text(name: str, value: Any) -> str:
    """Return a text that can be encoded. Raises InputError."""
    if isinstance(value, str) and _is_text(value, "strict"):
        return str(value)
    raise wrong(name, "a text", value)


def _is_text(value: str, errors: str = "surrogateescape") -> bool:
    """Return whether a text can be written: halves of surrogate pairs cannot, but for bytes of a file's name."""
    try:
        value.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def function_or_none(name: str, value: Any) -> Any:
    """Return a function or None. Raises InputError."""
    if value is None or callable(value):
        return value
    raise wrong(name, "a function or None", value)


def plain(value: Any) -> Any:
    """Return an integer or a number of numpy as one of Python, anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def window_of(name: str, window: Any) -> Window | None:
    """Return the window of (begin, end) in s. Raises InputError."""
    if window is None:
        return None
    try:
        begin_s, end_s = (float(bound) for bound in window)
        return Window(begin_s, end_s)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError(name, f"is not (begin, end) in s ({error})", "write for instance (0, 86400)") from None


def path_or_json(name: str, value: Any) -> Any:
    """Return a path, or a dict as JSON has it, with numbers of numpy as Python's. Raises InputError."""
    if not isinstance(value, Mapping):
        return path_or(name, value, dict)
    try:
        content = json.dumps(dict(value), ensure_ascii=False, default=plain)
        content.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise InputError(name, "is not a dict as JSON has it", "give texts, numbers, lists and dicts") from None
    return json.loads(content)


# several values -------------------------------------------------------------------------------------------------------


def options_of(name: str, value: Any) -> dict[str, Any]:
    """Return a copy of a mapping with names as keys; empty for None. Raises InputError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, "a dict with names as keys", value, "give for instance {}")
    return {key: plain(one) for key, one in value.items()}


def options_from(texts: Iterable[str], where: str) -> dict[str, Any]:
    """Return the options of texts: KEY=VALUE, a JSON object, or @FILE with one. Raises InputError.

    VALUE is read as JSON if it is JSON (a number, true, null, a list, an object, a quoted text), else taken as text.
    """
    options: dict[str, Any] = {}
    for text in texts:
        stripped = text.strip()
        if stripped.startswith(("@", "{", "[")):
            read = _object_of(stripped, where)
        else:
            key, sign, value = stripped.partition("=")
            key = key.strip()
            if not (sign and key.isidentifier()):
                raise InputError(where, f"{text[:60]!r} is not KEY=VALUE", _OPTIONS_HINT)
            read = {key: value_of(value.strip())}
        for key, value in read.items():
            if key in options and options[key] != value:
                raise InputError(where, f"gives {key!r} twice", "give one value")
            options[key] = value
    return options


_OPTIONS_HINT = 'write response=hfld, an object such as \'{"response": "hfld"}\', or @FILE'


def value_of(text: str) -> Any:
    """Return the value of an option: of JSON if the text is JSON, else the text."""
    try:
        return load_json(text, "")
    except InputError:
        return text


def _object_of(text: str, where: str) -> dict[str, Any]:
    """Return the JSON object of a text, or of a file if the text begins with @. Raises InputError."""
    if text.startswith("@"):
        where = text[1:]
        text = read_text(where)
    try:
        options = load_json(text, where)
    except InputError as error:
        if not where.startswith("-"):
            raise
        problem = str(error).removeprefix(f"{where}: ").rpartition(";")[0]
        raise InputError(where, f"{text[:60]!r} {problem}", _OPTIONS_HINT) from None
    if not isinstance(options, dict):
        raise InputError(where, f"must be a JSON object, got {text.strip()[:60]!r}", _OPTIONS_HINT)
    return options


def several(name: str, value: Any, one: Check, what: str = "a list of texts", most: int = 100_000) -> list[Any]:
    """Return the checked values of an iterable, but not of a text, as a list. Raises InputError."""
    try:
        items = iter(0 if isinstance(value, str | bytes | Mapping) else value)  # type: ignore[arg-type]
    except TypeError:
        raise wrong(name, what, value) from None
    values: list[Any] = []
    for item in items:
        if len(values) == most:
            raise InputError(name, f"has more than {most} values", "give fewer")
        values.append(one(name, item))
    return values


# checks of these ------------------------------------------------------------------------------------------------------


def optional(check: Check) -> Check:
    """Return a check for None or a value for another check."""
    return lambda name, value: None if value is None else check(name, value)


def one_of(names: Iterable[str]) -> Check:
    """Return a check for one of some texts."""

    def check(name: str, value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise InputError(name, f"{shown(value)} is not known", f"use {', '.join(names)}")

    return check


def options_for(function: str, kind: type) -> Check:
    """Return a check for keyword arguments that are fields of a dataclass."""
    names = [field.name for field in fields(kind)]

    def check(name: str, value: dict[str, Any]) -> dict[str, Any]:
        for key in value:
            if key not in names:
                raise InputError(function, f"no option {shown(key)}", f"known: {', '.join(names)}")
        return {key: plain(one) for key, one in value.items()}

    return check


count_or_0: Check = partial(whole, low=0, high=MAX_HOSTS)
hosts_of: Check = partial(whole, low=1, high=MAX_HOSTS)
workers_of: Check = partial(whole, low=1, high=MOST_WORKERS)
seed_of: Check = partial(whole, low=0, high=2**63 - 1)
real_of: Check = partial(real, low=-math.inf)
positive: Check = partial(real, above=True)
