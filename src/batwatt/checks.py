"""Checks of inputs: numbers, declared parameters, JSON, CSV, values as errors show them, pydantic errors."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, tzinfo
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    TypeVar,
    dataclass_transform,
)

from batwatt.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    from pydantic import BaseModel

SHOWN = 60
"""Characters of a value that an error repeats."""
MAX_DEPTH = 100
"""Deepest nesting of lists and objects in JSON."""
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

_LONG_WHOLE, _SAMPLED = re.compile("[0-9]{309}"), 20
"""Digits that no double may hold; of a text with them, every 20th character has 15 digits in a row."""
_MAYBE_LONG = re.compile("[0-9]{15}")

_Model = TypeVar("_Model", bound="BaseModel")
_Kind = TypeVar("_Kind")


def shown(value: object) -> str:
    """Return a number or a text in Python's notation, shortened, for an error; of another value the name of its type.

    Control characters are escaped by `InputError`.
    """
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    return _shortened(repr(value) if isinstance(value, str | int | float | None) else type(value).__name__)


def shown_json(value: object) -> str:
    """Return a value as JSON, shortened."""
    try:
        return _shortened(json.dumps(value))
    except (TypeError, ValueError):
        return _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def finite(text: object) -> float:
    """Return `text` as a finite number. Raises ValueError, also for NaN and infinities."""
    if isinstance(text, bool) or text is None:
        raise ValueError(f"{text!r} is not a number")
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{shown(text)} is not a number") from None
    except OverflowError:  # a whole number of hundreds of digits
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{shown(text)} is not a finite number")
    return value


def number(value: object) -> float:
    """Return `value` as a finite number. Raises ValueError, also for a text with a number."""
    if isinstance(value, str):
        raise ValueError(f"{shown(value)} is a text: take the quotes away")
    return finite(value)


def plain_number(value: object) -> float:
    """Return `value` as a finite number; a text such as `1_000` is none. Raises ValueError."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"{shown(value)} is not a number")
    return finite(value)


def number_named(where: object, name: str, value: object, hint: str, read: Callable[[object], float] = finite) -> float:
    """Return the number that `read` makes of `value`. Raises InputError."""
    try:
        return read(value)
    except ValueError as error:
        raise InputError(where, f"{name}: {error}", hint) from None


def number_in_file(where: object, name: str, text: str, hint: str) -> float:
    """Return the `plain_number` of a cell or a word of a file. Raises InputError."""
    try:
        return plain_number(text)
    except ValueError:
        raise InputError(where, f"{name} {shown(text)} is not a finite number", hint) from None


def checked_whole(
    where: object,
    name: str,
    value: object,
    low: int,
    high: int | None = None,
    *,
    what: str = "a whole number",
    hint: str = "correct it",
) -> int:
    """Return `value` if it is an int in low..high (None: >= low), and no bool. Raises InputError with the bounds."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= (value if high is None else high):
        return value
    bounds = f">= {low}" if high is None else f"in {low}..{high}"
    raise InputError(where, f"{name} must be {what} {bounds}, got {shown(value)}", hint)


def checked_number(
    where: object, name: str, value: object, low: float, high: float = math.inf, *, above: bool = False
) -> float:
    """Return `value` if it is a finite number in [low, high], with `above` > low. Raises InputError with the bounds."""
    try:
        real = number(value)
    except ValueError:
        real = math.nan
    if low <= real <= high and not (above and real == low):
        return real
    what = f"a finite number {'>' if above else '>='} {low:g}"
    if high < math.inf:
        what = f"a number in {']' if above else '['}{low:g}, {high:g}]"
    raise InputError(where, f"{name} must be {what}, got {shown(value)}", "correct it")


def rng_of(seed: object, where: object) -> np.random.Generator:
    """Return a generator of random numbers: same seed, same draws. Raises InputError unless a whole number >= 0."""
    import numpy as np

    return np.random.default_rng(checked_whole(where, "seed", seed, 0, hint="give for instance seed 0"))


def time_zone(where: object, name: str, text: str) -> tzinfo:
    """Return the time zone of a name such as `Europe/Berlin`. Raises InputError."""
    # UTC needs no data base of time zones
    if text == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (ValueError, OSError, KeyError):
        hint = "write a name such as Europe/Berlin, or install tzdata"
        raise InputError(where, f"{name} {text!r} is not a time zone", hint) from None


def validated(model: type[_Model], data: object, error_of: Callable[[Mapping[str, Any]], InputError]) -> _Model:
    """Return data as a pydantic model. Raises the error of `error_of` for pydantic's first (`loc`, `type`, `input`)."""
    # most checks of numbers need no models
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as errors:
        # a misspelt key is missing, too: report the spelling
        problems = errors.errors(include_url=False)
        first = next((error for error in problems if error["type"] == "extra_forbidden"), problems[0])
        raise error_of(dict(first)) from None


def model_error(
    place: object, error: Mapping[str, Any], hint: str, key: str = "", fields: Mapping[str, Any] | None = None
) -> InputError:
    """Return one of pydantic's errors as InputError: the key, the constraint on its value, the value, and the hint.

    `fields` are those of the model: descriptions of their values replace pydantic's constraints. Without a key, `place`
    names the value.
    """
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    sentence = hint if hint.endswith(".") else f"{hint[:1].upper()}{hint[1:]}."
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return UnknownNameError(place, "key", key, fields or {}, sentence)
    described = fields[key].description if fields and key in fields else None
    if kind in ("missing", "missing_argument"):
        return InputError(place, f"{key!r} is missing", f"add {described or 'it'}; {hint}")
    if kind == "value_error":
        return InputError(place, f"{key}: {context['error']}" if key else str(context["error"]), hint)
    if kind == "literal_error" and not described:
        got = value if isinstance(value, str) else type(value).__name__
        what = f"value of {key}" if key else "value"
        return UnknownNameError(place, what, got, re.findall("'([^']*)'", context["expected"]), sentence)
    # NaN and infinities as a file has them
    got = json.dumps(value) if isinstance(value, float) else shown(value)
    wanted = described or _CONSTRAINTS.get(kind, "").format(*context.values())
    problem = f"must be {wanted}" if wanted else f"{error['msg'][:1].lower()}{error['msg'][1:]}"
    return InputError(place, f"{key} {problem}, got {got}".lstrip(), hint)


_CONSTRAINTS = {
    "greater_than": "> {:g}",
    "greater_than_equal": ">= {:g}",
    "less_than": "< {:g}",
    "less_than_equal": "<= {:g}",
    "finite_number": "a finite number",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "bool_parsing": "yes or no",
    "int_type": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
}
"""Kind of pydantic's errors -> the constraint on the value, with the bounds of the error."""


@dataclass_transform(frozen_default=True)
def parameters(where: str) -> Callable[[type[_Kind]], type[_Kind]]:
    """Return a decorator for frozen dataclasses whose fields pydantic checks; an error is an InputError about `where`.

    Types are exact, but an int is a number, too, and becomes a float. Numbers are finite.
    """
    # most modules that use checks need no models
    from pydantic import ConfigDict, ValidationError
    from pydantic.dataclasses import dataclass as validated_dataclass

    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

    def decorate(cls: type[_Kind]) -> type[_Kind]:
        kind: Any = validated_dataclass(frozen=True, config=config)(cls)
        unchecked = kind.__init__

        @wraps(unchecked)
        def init(self: _Kind, *args: Any, **kwargs: Any) -> None:
            try:
                unchecked(self, *args, **kwargs)
            except ValidationError as errors:
                error: Any = errors.errors(include_url=False)[0]
                names = [field.name for field in fields(kind)]
                first = error["loc"][0] if error["loc"] else 0
                key = names[first] if isinstance(first, int) and first < len(names) else str(first)
                raise model_error(where, error, "correct it", key, kind.__pydantic_fields__) from None

        kind.__init__ = init
        return kind

    return decorate


def row_too_long(text: str) -> tuple[int, str] | None:
    """Return the number and the problem of the first line of a CSV text with more fields than its header, or None."""
    reader = csv.reader(io.StringIO(text, newline=""))
    width = 0
    try:
        for row in reader:
            width = width or len(row)
            if len(row) > width:
                return reader.line_num, f"has {len(row)} fields where the header names {width}"
    except csv.Error as error:
        return reader.line_num, f"is not CSV ({error})"
    return None


def load_json(text: str, where: object, **hooks: Callable[..., Any]) -> Any:
    """Return the value of a JSON text. Raises InputError, also for NaN, infinities and lone surrogates.

    `hooks` are those of `json.loads`, instead of ours or with them. Whole numbers fit into a double, unless
    `parse_float` takes infinities.
    """
    options: dict[str, Any] = {"parse_constant": _no_constant, "parse_float": _finite_float} | hooks
    if options["parse_float"] is not float and _MAYBE_LONG.search(text[::_SAMPLED]) and _LONG_WHOLE.search(text):
        # slow, and needed by hardly any file
        options["parse_int"] = _finite_int
    try:
        value = json.loads(text, **options)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InputError(where, f"is not JSON ({error.msg}, {place})", "correct the file there") from None
    except UnicodeEncodeError:
        raise InputError(where, "holds half of a surrogate pair (\\ud...)", "write the character itself") from None
    except RecursionError:
        raise InputError(where, TOO_DEEP, "flatten the JSON") from None
    except ValueError as error:
        raise InputError(where, f"is not JSON ({error})", "write finite numbers of a usual length") from None
    return value


def object_in(extra: Any) -> Mapping[str, Any] | None:
    """Return the JSON object that a value is, or is the text of; None if it is neither."""
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except (ValueError, RecursionError):
            return None
    return extra if isinstance(extra, Mapping) else None


def load_strict(text: str, where: object) -> Any:
    """Return the value of a JSON text, with NaN and infinities; raise InputError for a key that is twice in an object.

    The caller refuses NaN and infinities, with their names.
    """

    def hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            key = next(key for key in keys if keys.count(key) > 1)
            raise InputError(where, f"the key {key!r} appears twice in an object", "leave one out")
        return result

    return load_json(text, where, object_pairs_hook=hook, parse_constant=float, parse_float=float)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _finite_int(text: str) -> int:
    _finite_float(text)
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text if len(text) <= SHOWN else f'{text[:20]}...'} is too large")
    return value
