"""A column of a file of series, and the words of texts that describe series: a kind, a file or a number, and keys."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from batwatt.checks import model_error, parameters, time_zone
from batwatt.errors import InputError, UnknownNameError
from batwatt.units import HOUR_S

LONGEST_DAYS = 36_525.0
"""Greatest length in days, a century; more are taken for a typing error."""

Kind = Literal["lifecycle", "direct"]
Quantity = Literal["power", "machines", "fraction", "carbon", "price", "any"]
"""Quantity of a series: W, machines or fractions of them, g/kWh, money per kWh; or any that a file states."""
NOUN: Mapping[str, str] = {"power": "envelope", "machines": "capacity", "fraction": "capacity", "any": "signal"}
"""Quantity -> noun of its series, unless it is the same."""
Dates = Literal["day-first", "month-first"]
Gaps = Literal["hold", "line"]
Stamp = Literal["begin", "end"]

_WHERE = "series"


@parameters(_WHERE)
class SeriesSource:
    """A column of a file (CSV, JSON), and its requested part.

    `column` and `time_column` have usual names if None; `kind` chooses between life-cycle and direct emissions where a
    file has both, `zone` between zones. Dates without an offset are in the time zone `tz`.

    `begin` (a date; or s in a file of `time_s`) is 0 s of the signal, None: the first row, or 0 in a file of `time_s`,
    whose first value holds before its row, too; `end` is its end, or `days` its length. `period_s` is a period of
    averages.

    `quantity` refuses a column with a name or a unit of another kind, and converts values to W, g/kWh or money per kWh,
    by the unit of the file or by `unit` (kW, g/kWh, EUR/MWh, fraction...); it refuses values without a unit, unless
    only `relative` values matter. `any` converts by a stated unit. Without `quantity` and `unit`, values do not change.
    `stamp` says whether times are begins or ends of rows; None: as the name of their column says, else begins. In gaps
    the value before holds, or with `gaps` = `line` (not of power or machines) they are filled by neighbours.
    `sequence` chooses between auctions, `resolution` (PT15M) between series of one time, `dates` is the order of day
    and month in dates such as 1/2/2022. Raises InputError.
    """

    path: Path
    column: str | None = None
    time_column: str | None = None
    kind: Kind = "lifecycle"
    zone: str | None = None
    tz: str = "UTC"
    begin: str | None = None
    end: str | None = None
    days: Annotated[float | None, Field(gt=0.0, le=LONGEST_DAYS)] = None
    period_s: Annotated[float | None, Field(gt=0.0)] = None
    quantity: Quantity | None = None
    unit: str | None = None
    sequence: str | None = None
    dates: Dates | None = None
    resolution: str | None = None
    stamp: Stamp | None = None
    gaps: Gaps = "hold"
    relative: bool = False

    def __post_init__(self) -> None:
        if self.end is not None and self.days is not None:
            raise InputError(_WHERE, "has both 'to' and 'days'", "give one of them")
        _ = self.clock

    @property
    def clock(self) -> tzinfo:
        """The time zone of dates without an offset. Raises InputError."""
        return time_zone(_WHERE, "tz", self.tz)


# texts ----------------------------------------------------------------------------------------------------------------

_DOCS = "docs/reference/signals.md"
_KIND = re.compile(r"([A-Za-z]+):(.*)", re.DOTALL)
_PAIR = re.compile(r"[A-Za-z_]+=")
_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_]+=)")
_FINITE = ConfigDict(allow_inf_nan=False)
_Kind = TypeVar("_Kind")


def names_kind(text: str, kinds: Collection[str]) -> bool:
    """Return whether a text begins with a kind, or with another word and contains `=`, and is no name of a file."""
    match = _KIND.match(text)
    if match is None or exists(text):
        return False
    return match[1].lower() in kinds or "=" in match[2]


def words_of(text: str) -> list[str]:
    """Return the first word of a text, if it has one, and its pairs `key=value`."""
    return [word.strip() for word in _NEXT_KEY.split(text) if word.strip()]


def values_of(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Return the values of pairs `key=value` by their keys. Raises InputError for a key that stands twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key in values:
            raise InputError(where, f"{key} is given twice", "give it once")
        values[key] = value.strip()
    return values


def check_keys(values: Iterable[str], names: Iterable[str], where: str, hint: str) -> None:
    """Raise UnknownNameError for a key that is not among the names."""
    names = [*names]
    for key in values:
        if key not in names:
            raise UnknownNameError(where, "key", key, names, hint)


def exists(name: str) -> bool:
    """Return whether a file of this name exists."""
    return os.path.exists(name)  # noqa: PTH110  (False for a name that no file can have)


class Words:
    """The kind (empty: none), the first word and the keys of a term, each key at most once. Raises InputError."""

    def __init__(self, text: str, quantity: Quantity, kinds: Collection[str], base: Path | None) -> None:
        self.quantity, noun = quantity, NOUN.get(quantity, quantity)
        kind, mark, rest = text.partition(":") if names_kind(text, kinds) else ("", "", text)
        self.kind = kind.lower()
        if self.kind not in kinds:
            hint = "Or give the name of a CSV file."
            raise UnknownNameError(f"{noun} {text!r}", f"kind of {noun}", self.kind, filter(None, kinds), hint)
        self.where = f"{noun} {f'{self.kind}{mark}{rest}'!r}"
        parts = words_of(rest)
        self.first = parts.pop(0) if parts and not _PAIR.match(parts[0]) else None
        self.path = None if self.first is None else Path(base or "", self.first)
        self.values = values_of(parts, self.where)
        first = self.first if self.kind == "constant" or self.path is None else str(self.path)
        words = [*filter(None, [first]), *(f"{key}={value}" for key, value in self.values.items())]
        self.text = f"{self.kind}{mark}{','.join(words)}"

    def expect(self, *accepted: Mapping[str, str]) -> None:
        """Raise InputError unless all keys are among the accepted ones."""
        check_keys(self.values, chain(*accepted), self.where, f"See {_DOCS}.")

    def source(self, quantity: Quantity | None, *, relative: bool = False) -> SeriesSource:
        """Return the file with its column and part; see `SeriesSource`. Raises InputError."""
        if self.path is None:
            kind = self.kind and f"{self.kind}:"
            raise InputError(self.where, "no file is named", f"write {kind}FILE, then keys if needed")
        return self.build(SeriesSource, FILE_KEYS, path=self.path, quantity=quantity, relative=relative)

    def build(self, model: type[_Kind], keys: Mapping[str, str], **more: Any) -> _Kind:
        """Build an instance of a class from the keys of the text. Raises InputError with the text."""
        hints = get_type_hints(model, include_extras=True)
        arguments = {name: self._value(key, hints[name]) for key, name in keys.items() if key in self.values}
        try:
            return model(**more, **arguments)
        except InputError as error:
            raise InputError(self.where, str(error).partition(": ")[2]) from None

    def _value(self, key: str, hint: Any) -> Any:
        """Return the value of a key in the type of its field; of `KEY_h` in s. Raises InputError."""
        text = self.values[key]
        try:
            value = TypeAdapter(hint, config=_FINITE).validate_strings(text)
        except ValidationError as errors:
            error: Any = errors.errors(include_url=False)[0]
            raise model_error(self.where, error, "correct it", key) from None
        return value * HOUR_S if key.endswith("_h") else value


def keys_of(model: type[Any], *without: str) -> dict[str, str]:
    """Return the keys of a text for the fields of a class, but for those in `without`."""
    renamed = {"begin": "from", "end": "to"}
    names = (entry.name for entry in fields(model) if entry.name not in without)
    return {renamed.get(name, name.removesuffix("_s")): name for name in names}


FILE_KEYS = keys_of(SeriesSource, "path", "quantity", "relative")
"""Keys of the column and of the part of a file."""
