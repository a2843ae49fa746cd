"""Capacities written as one text, as in `walk:range=0.6,mean=0.7,seed=1` or `carbon:FILE,budget=0.7,days=30`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from batwatt.checks import Parameters, number_in_file, shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.series.capacity import COLUMN
from batwatt.inputs.series.energy_budget import EnergyBudget, Stranded, bought_capacity, stranded_capacity
from batwatt.inputs.series.signal_csv import SignalFile, Wanted, read_signal
from batwatt.inputs.series.variation import FRACTION, Seconds, Structure, Variation, vary
from batwatt.model.series import Series
from batwatt.model.signal import Signal
from batwatt.units import HOUR_S

_WHERE = "capacity"
_ROUNDING = 1e-9
_KNOWN = re.compile(r"([A-Za-z]+):(.*)", re.DOTALL)
_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_]+=)")
_Made = TypeVar("_Made")


class Source(ABC):
    """Where a capacity comes from."""

    @abstractmethod
    def fractions(self, end_s: float, full: int) -> Signal:
        """The capacity as fractions of `full` machines, over [0, `end_s`[ or over what the source has."""

    def signal(self) -> Signal | None:
        """What is paid or emitted; None if nothing is known of that."""
        return None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return ()


@dataclass(frozen=True)
class _OfFile(Source):
    """A source that reads a file."""

    file: SignalFile

    @property
    def files(self) -> tuple[Path, ...]:
        """The file."""
        return (self.file.path,)


@dataclass(frozen=True)
class Varied(Parameters, Source, where=_WHERE):
    """A capacity that varies by chance, over [0, `end_s`[ (None: as long as asked for)."""

    variation: Variation
    end_s: Seconds = None

    def fractions(self, end_s: float, full: int) -> Signal:
        """The series of `vary`."""
        end_s = self.end_s or end_s
        series = vary(self.variation, end_s)
        return Signal(series, max(end_s, series.times_s[-1] + self.variation.period_s))


@dataclass(frozen=True)
class UnderBudget(_OfFile):
    """A capacity that a signal makes: a constant budget of carbon or money, or stranded power."""

    rule: EnergyBudget | Stranded

    def fractions(self, end_s: float, full: int) -> Signal:
        """What the rule buys."""
        signal = read_signal(self.file)
        if isinstance(self.rule, EnergyBudget):
            return replace(signal, series=bought_capacity(signal, self.rule))
        return replace(signal, series=stranded_capacity(signal, self.rule))

    def signal(self) -> Signal | None:
        """The signal of the file."""
        return read_signal(self.file)


@dataclass(frozen=True)
class Traced(_OfFile):
    """A capacity that a file holds: machines in a column `machines`, or fractions in any other."""

    def fractions(self, end_s: float, full: int) -> Signal:
        """The column, as fractions."""
        found = read_signal(self.file)
        if not min(found.series.values) >= 0.0:
            problem = f"a capacity must be >= 0, got {min(found.series.values):g}"
            raise InputError(self.file.path, problem, "correct the value")
        if found.series.name != COLUMN:
            return found
        values = tuple(value / full for value in found.series.values)
        return replace(found, series=replace(found.series, values=values, name=FRACTION))


@dataclass(frozen=True)
class CapacitySpec:
    """A capacity before it is known how many machines there are and for how long.

    A fraction of 1 stands for `full` machines (None: all that there are). After its end the last value holds, or with
    `repeat` the whole begins again.
    """

    source: Source
    full: int | None = None
    repeat: bool = False
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text

    def fractions(self, end_s: float, machines: int = 1) -> Series:
        """The capacity as fractions of `full`, or else `machines`, over [0, `end_s`[. Raises InputError."""
        return self._lasting(self.found(end_s, machines), end_s).series

    def found(self, end_s: float, machines: int = 1) -> Signal:
        """The series over the time that the source has; errors show the text."""
        try:
            return self.source.fractions(end_s, self.full or machines)
        except InputError as error:
            before, mark, problem = str(error).partition(f"{_WHERE}: ")
            if before or not mark:
                raise
            raise InputError(self.text or _WHERE, problem) from None

    def series(self, machines: int, end_s: float) -> Series:
        """The whole machines alive out of `machines`, over [0, `end_s`[: floor(fraction x full). Raises InputError."""
        full = self.full or machines
        fractions = self.fractions(end_s, machines)
        values = np.floor(np.asarray(fractions.values) * full + _ROUNDING)
        if not values.max() <= machines:
            problem = f"asks for {values.max():g} machines of {machines}"
            hint = (
                "give more machines and full=N, the machines that fraction 1 stands for; or a smaller range or headroom"
            )
            raise InputError(self.text or _WHERE, problem, hint)
        return Series(fractions.times_s, tuple(values.tolist()), name=COLUMN, source=self.text or fractions.source)

    def signal(self, end_s: float) -> Signal | None:
        """What the power of this capacity costs or emits, over [0, `end_s`[; None if nothing is known of that."""
        found = self.source.signal()
        return None if found is None else self._lasting(found, end_s)

    def files(self) -> tuple[Path, ...]:
        """The files that this capacity depends on."""
        return self.source.files

    def _lasting(self, signal: Signal, end_s: float) -> Signal:
        return signal.repeated(end_s) if self.repeat else signal


def is_spec(text: str) -> bool:
    """Whether `text` is the description of a capacity rather than the name of a file."""
    match = _KNOWN.match(text)
    return match is not None and (match[1].lower() in KINDS or ("=" in match[2] and not _exists(text)))


def parse_capacity(text: str, base: Path | None = None) -> CapacitySpec | None:
    """The capacity that `text` describes, None if it is the name of a file instead; see docs/capacity.md.

    Files are looked for in the folder `base` (None: the current one). Raises InputError.
    """
    if not is_spec(text):
        return None
    kind, _, rest = text.partition(":")
    kind = kind.lower()
    if kind not in KINDS:
        raise UnknownNameError(f"capacity {text!r}", "kind of capacity", kind, KINDS, "Or give the name of a CSV file.")
    return KINDS[kind](_Words(kind, rest, base))


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:
        return False


class _Words:
    """The file and the keys of a text, each taken once and converted."""

    def __init__(self, kind: str, rest: str, base: Path | None) -> None:
        self.kind = kind
        self.where = f"capacity '{kind}:{rest}'"
        parts = [part.strip() for part in _NEXT_KEY.split(rest) if part.strip()]
        self.file = Path(base or "", parts.pop(0)) if parts and not _is_pair(parts[0]) else None
        self.given: dict[str, str] = {}
        for part in parts:
            key, _, value = part.partition("=")
            if key in self.given:
                raise InputError(self.where, f"{key} is given twice", "give it once")
            self.given[key] = value.strip()
        words = [str(self.file)] if self.file else []
        self.text = f"{kind}:" + ",".join([*words, *(f"{key}={value}" for key, value in self.given.items())])

    def expect(self, known: _Known) -> None:
        """InputError unless all keys are known."""
        for key in self.given:
            if key not in known:
                raise UnknownNameError(self.where, "key", key, known, "See docs/capacity.md.")

    def signal_file(self, wanted: Wanted | None = None) -> SignalFile:
        """The file, with what is wanted of it. Raises InputError."""
        if self.file is None:
            raise InputError(self.where, "no file is named", f"write {self.kind}:FILE, then keys if needed")
        return self.build(partial(SignalFile, self.file, wanted=wanted), _FILE)

    def taken(self, known: _Known) -> dict[str, Any]:
        """The arguments of these keys that are given."""
        return {name: convert(self, key) for key, (name, convert) in known.items() if key in self.given}

    def build(self, make: Callable[..., _Made], known: _Known) -> _Made:
        """What `make` makes of the keys, with errors that show the text."""
        arguments = self.taken(known)
        try:
            return make(**arguments)
        except InputError as error:
            message = str(error).removeprefix(f"{_WHERE}: ")
            raise InputError(self.where, message) from None


def _is_pair(part: str) -> bool:
    return re.match(r"[A-Za-z_]+=", part) is not None


def _number(words: _Words, key: str) -> float:
    return number_in_file(words.where, key, words.given[key], "correct it")


def _hours(words: _Words, key: str) -> float:
    return _number(words, key) * HOUR_S


def _whole(words: _Words, key: str) -> int:
    number = _number(words, key)
    if not number.is_integer() or number < 0:
        raise InputError(words.where, f"{key} must be a whole number >= 0, got {words.given[key]!r}", "correct it")
    return int(number)


def _some(words: _Words, key: str) -> int:
    number = _whole(words, key)
    if number < 1:
        raise InputError(words.where, f"{key} must be >= 1, got {number}", "correct it")
    return number


def _switch(words: _Words, key: str) -> bool:
    if words.given[key] not in ("0", "1"):
        raise InputError(words.where, f"{key} must be 0 or 1, got {words.given[key]!r}", "correct it")
    return words.given[key] == "1"


def _text(words: _Words, key: str) -> str:
    return words.given[key]


_Known = dict[str, tuple[str, Callable[[_Words, str], Any]]]
_WHOLE: _Known = {"full": ("full", _some), "repeat": ("repeat", _switch)}
_CHANCE: _Known = {
    "range": ("range", _number),
    "mean": ("mean", _number),
    "period": ("period_s", _number),
    "seed": ("seed", _whole),
    "level": ("level", _switch),
    "window": ("window_s", _number),
}
_WALK: _Known = {**_CHANCE, "step": ("step", _number), "bounds": ("bounds", _text), "move": ("move", _text)}
_END: _Known = {"end": ("end_s", _number)}
_BUDGET: _Known = {name: (name, _number) for name in ("budget", "headroom", "floor", "reference")}
_STRANDED: _Known = {name: (name, _number) for name in ("threshold", "low", "high")}
_FILE: _Known = {
    "column": ("column", _text),
    "time_column": ("time_column", _text),
    "kind": ("kind", _text),
    "zone": ("zone", _text),
    "tz": ("tz", _text),
    "from": ("begin", _text),
    "to": ("end", _text),
    "days": ("days", _number),
    "period": ("period_s", _number),
    "gaps": ("gaps", _text),
    "max_gap_h": ("max_gap_s", _hours),
}


def _spec(words: _Words, source: Source) -> CapacitySpec:
    return CapacitySpec(source, text=words.text, **words.taken(_WHOLE))


def _varied(words: _Words, keys: _Known) -> CapacitySpec:
    words.expect({**keys, **_END, **_WHOLE})
    if words.file is not None:
        raise InputError(words.where, f"{shown(str(words.file))} is no key=value", f"keys are {', '.join(keys)}")
    variation = words.build(partial(Variation, cast(Structure, words.kind)), keys)
    return _spec(words, words.build(partial(Varied, variation), _END))


def _bought(words: _Words) -> CapacitySpec:
    words.expect({**_BUDGET, **_FILE, **_WHOLE})
    return _spec(words, UnderBudget(words.signal_file(cast(Wanted, words.kind)), words.build(EnergyBudget, _BUDGET)))


def _stranded(words: _Words) -> CapacitySpec:
    words.expect({**_STRANDED, **_FILE, **_WHOLE})
    if "threshold" not in words.given:
        raise InputError(words.where, "no threshold is given", "give one in the signal's unit, as in threshold=0")
    return _spec(words, UnderBudget(words.signal_file(), words.build(Stranded, _STRANDED)))


def _traced(words: _Words) -> CapacitySpec:
    words.expect({**_FILE, **_WHOLE})
    return _spec(words, Traced(words.signal_file()))


KINDS: dict[str, Callable[[_Words], CapacitySpec]] = {
    "walk": partial(_varied, keys=_WALK),
    "uniform": partial(_varied, keys=_CHANCE),
    "constant": partial(_varied, keys={"mean": ("mean", _number)}),
    "carbon": _bought,
    "price": _bought,
    "stranded": _stranded,
    "trace": _traced,
}
"""What makes a capacity of a text, by the word before the colon."""
