"""The notation of capacities, envelopes and signals in one line: a kind, a file, `key=value`s between commas."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from batwatt.checks import Parameters, kinds_of, number_in_file
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.series.signal_file import SignalFile, Wanted
from batwatt.units import HOUR_S

Keys = Mapping[str, str]
"""Names of fields by the keys of a text."""

_KNOWN = re.compile(r"([A-Za-z]+):(.*)", re.DOTALL)
_PAIR = re.compile(r"[A-Za-z_]+=")
_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_]+=)")
_TRUTHS = {"0": False, "no": False, "1": True, "yes": True}
_Made = TypeVar("_Made", bound=Parameters)


def keys_of(model: type[Any], *without: str) -> dict[str, str]:
    """The keys of a text for the fields of a class, but for some."""
    renamed = {"begin": "from", "end": "to", "max_gap_s": "max_gap_h"}
    names = (entry.name for entry in fields(model) if entry.name not in without)
    return {renamed.get(name, name.removesuffix("_s")): name for name in names}


FILE_KEYS = keys_of(SignalFile, "path", "wanted", "ratios", "run_clock", "repeats")
"""The keys that say what is read of a file."""


def has_kind(text: str, kinds: Collection[str]) -> bool:
    """Whether a text begins with one of these kinds, or with another word and holds a `=`, and no file is called so."""
    match = _KNOWN.match(text)
    return match is not None and (match[1].lower() in kinds or ("=" in match[2] and not exists(text)))


def exists(name: str) -> bool:
    """Whether there is a file of this name."""
    return os.path.exists(name)  # noqa: PTH110  (False for a name that no file can have)


class ParsedSpec:
    """The file and the keys of a specification `kind:rest` of a `noun`, each used once and converted."""

    def __init__(self, text: str, base: Path | None, kinds: Collection[str], noun: str, docs: str) -> None:
        kind, _, rest = text.partition(":")
        self.kind, self.noun, self._docs = kind.lower(), noun, docs
        if self.kind not in kinds:
            hint = "Or give the name of a CSV file."
            raise UnknownNameError(f"{noun} {text!r}", f"kind of {noun}", self.kind, kinds, hint)
        self.where = f"{noun} '{self.kind}:{rest}'"
        parts = [part.strip() for part in _NEXT_KEY.split(rest) if part.strip()]
        self.first = parts.pop(0) if parts and not _PAIR.match(parts[0]) else None
        self.file = None if self.first is None else Path(base or "", self.first)
        self.given: dict[str, str] = {}
        for part in parts:
            key, _, value = part.partition("=")
            if key in self.given:
                raise InputError(self.where, f"{key} is given twice", "give it once")
            self.given[key] = value.strip()

    def text(self, first: object) -> str:
        """The text again, with the file or number as it is `first` in it (None: without)."""
        words = [] if first is None else [str(first)]
        return f"{self.kind}:" + ",".join([*words, *(f"{key}={value}" for key, value in self.given.items())])

    def expect(self, *known: Keys) -> None:
        """InputError unless all keys are known."""
        names = [key for keys in known for key in keys]
        for key in self.given:
            if key not in names:
                raise UnknownNameError(self.where, "key", key, names, f"See {self._docs}.")

    def signal_file(self, wanted: Wanted | None = None, *, ratios: bool = False) -> SignalFile:
        """The file, with what is wanted of it; see `SignalFile`. Raises InputError."""
        if self.file is None:
            raise InputError(self.where, "no file is named", f"write {self.kind}:FILE, then keys if needed")
        return self.build(SignalFile, FILE_KEYS, path=self.file, wanted=wanted, ratios=ratios)

    def build(self, model: type[_Made], keys: Keys, **more: Any) -> _Made:
        """A class with the fields of these keys, as far as they are given, with errors that show the text."""
        given = {name: self._value(key, model.HINTS[name]) for key, name in keys.items() if key in self.given}
        try:
            return model(**more, **given)
        except InputError as error:
            raise InputError(self.where, str(error).partition(": ")[2]) from None

    def number(self, key: str, text: str) -> float:
        """The finite number that a text is. Raises InputError."""
        return number_in_file(self.where, key, text, "correct it")

    def _value(self, key: str, hint: Any) -> Any:
        """What a key gives, of the type of its field. Raises InputError."""
        text, kinds = self.given[key], kinds_of(hint)
        if bool in kinds:
            if text not in _TRUTHS:
                raise InputError(self.where, f"{key} must be 0 or 1, got {text!r}", "correct it")
            return _TRUTHS[text]
        if not (float in kinds or int in kinds):
            return text
        number = self.number(key, text)
        if float in kinds:
            return number * HOUR_S if key.endswith("_h") else number
        if not number.is_integer() or number < 0:
            raise InputError(self.where, f"{key} must be a whole number >= 0, got {text!r}", "correct it")
        return int(number)
