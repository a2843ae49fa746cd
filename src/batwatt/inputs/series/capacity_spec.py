"""Capacities written as one text, as in `walk:range=0.6,mean=0.7,seed=1` or `carbon:FILE,budget=0.7,days=30`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

from batwatt.checks import Between, Parameters, kinds_of, number_in_file, shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.series.capacity import COLUMN
from batwatt.inputs.series.energy_budget import EnergyBudget, Stranded
from batwatt.inputs.series.signal_file import SignalFile, Wanted
from batwatt.inputs.series.variation import FRACTION, Seconds, Variation, vary
from batwatt.model.series import Series
from batwatt.model.signal import Signal
from batwatt.units import HOUR_S

_WHERE = "capacity"
_ROUNDING = 1e-9
_KNOWN = re.compile(r"([A-Za-z]+):(.*)", re.DOTALL)
_PAIR = re.compile(r"[A-Za-z_]+=")
_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_]+=)")
_Made = TypeVar("_Made", bound=Parameters)


class Source(ABC):
    """Where a capacity comes from."""

    @abstractmethod
    def fractions(self, end_s: float, full: int) -> Signal:
        """The capacity as fractions of `full` machines, over [0, `end_s`[ or over what the source has."""

    def signal(self) -> Signal | None:
        """What is paid or emitted; None if nothing is known of that."""
        return None


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


def _signal_of(file: SignalFile) -> Signal:
    # pandas is loaded only where a file by date is read
    from batwatt.inputs.series.signal_csv import read_signal

    return read_signal(file)


@dataclass(frozen=True)
class UnderBudget(Source):
    """A capacity that a signal makes: a constant budget of carbon or money, or stranded power."""

    file: SignalFile
    rule: EnergyBudget | Stranded

    def fractions(self, end_s: float, full: int) -> Signal:
        """What the rule buys."""
        signal = _signal_of(self.file)
        return replace(signal, series=self.rule.capacity(signal))

    def signal(self) -> Signal | None:
        """The signal of the file."""
        return _signal_of(self.file)


@dataclass(frozen=True)
class Traced(Source):
    """A capacity that a file holds: machines in a column `machines`, or fractions in any other."""

    file: SignalFile

    def fractions(self, end_s: float, full: int) -> Signal:
        """The column, as fractions."""
        found = _signal_of(self.file)
        if not min(found.series.values) >= 0.0:
            problem = f"a capacity must be >= 0, got {min(found.series.values):g}"
            raise InputError(self.file.path, problem, "correct the value")
        if found.series.name != COLUMN:
            return found
        values = tuple(value / full for value in found.series.values)
        return replace(found, series=replace(found.series, values=values, name=FRACTION))


@dataclass(frozen=True)
class CapacitySpec(Parameters, where=_WHERE):
    """A capacity before it is known how many machines there are and for how long.

    A fraction of 1 stands for `full` machines (None: all that there are). After its end the last value holds, or with
    `repeat` the whole begins again.
    """

    source: Source
    full: Annotated[int | None, Between(1)] = None
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
        return (self.source.file.path,) if isinstance(self.source, UnderBudget | Traced) else ()

    def _lasting(self, signal: Signal, end_s: float) -> Signal:
        return signal.repeated(end_s) if self.repeat else signal


def is_spec(text: str) -> bool:
    """Whether `text` is the description of a capacity rather than the name of a file."""
    match = _KNOWN.match(text)
    return match is not None and (match[1].lower() in KINDS or ("=" in match[2] and not _exists(text)))


def parse_capacity(text: str, base: Path | None = None) -> CapacitySpec | None:
    """The capacity that `text` describes, None if it is the name of a file instead; see docs/reference/capacity.md.

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
        self.file = Path(base or "", parts.pop(0)) if parts and not _PAIR.match(parts[0]) else None
        self.given: dict[str, str] = {}
        for part in parts:
            key, _, value = part.partition("=")
            if key in self.given:
                raise InputError(self.where, f"{key} is given twice", "give it once")
            self.given[key] = value.strip()
        words = [str(self.file)] if self.file else []
        self.text = f"{kind}:" + ",".join([*words, *(f"{key}={value}" for key, value in self.given.items())])

    def expect(self, *known: _Keys) -> None:
        """InputError unless all keys are known."""
        names = [key for keys in (*known, _WHOLE) for key in keys]
        for key in self.given:
            if key not in names:
                raise UnknownNameError(self.where, "key", key, names, "See docs/reference/capacity.md.")

    def signal_file(self, wanted: Wanted | None = None) -> SignalFile:
        """The file, with what is wanted of it. Raises InputError."""
        if self.file is None:
            raise InputError(self.where, "no file is named", f"write {self.kind}:FILE, then keys if needed")
        return self.build(SignalFile, _FILE, path=self.file, wanted=wanted)

    def build(self, model: type[_Made], keys: _Keys, **more: Any) -> _Made:
        """A class with the fields of these keys, as far as they are given, with errors that show the text."""
        given = {name: self._value(key, model.HINTS[name]) for key, name in keys.items() if key in self.given}
        try:
            return model(**more, **given)
        except InputError as error:
            raise InputError(self.where, str(error).removeprefix(f"{_WHERE}: ")) from None

    def spec(self, source: Source) -> CapacitySpec:
        """The capacity from a source."""
        return self.build(CapacitySpec, _WHOLE, source=source, text=self.text)

    def _value(self, key: str, hint: Any) -> Any:
        """What a key gives, of the type of its field. Raises InputError."""
        text, kinds = self.given[key], kinds_of(hint)
        if bool in kinds:
            if text not in ("0", "1"):
                raise InputError(self.where, f"{key} must be 0 or 1, got {text!r}", "correct it")
            return text == "1"
        if not (float in kinds or int in kinds):
            return text
        number = number_in_file(self.where, key, text, "correct it")
        if float in kinds:
            return number * HOUR_S if key.endswith("_h") else number
        if not number.is_integer() or number < 0:
            raise InputError(self.where, f"{key} must be a whole number >= 0, got {text!r}", "correct it")
        return int(number)


def _keys(model: type[Any], *without: str) -> _Keys:
    """The keys of a text for the fields of a class, but for some."""
    renamed = {"begin": "from", "end": "to", "max_gap_s": "max_gap_h"}
    names = (entry.name for entry in fields(model) if entry.name not in without)
    return {renamed.get(name, name.removesuffix("_s")): name for name in names}


_Keys = dict[str, str]
_WHOLE = _keys(CapacitySpec, "source", "text")
_FILE = _keys(SignalFile, "path", "wanted")
_END = _keys(Varied, "variation")


def _varied(words: _Words, keys: _Keys) -> CapacitySpec:
    words.expect(keys, _END)
    if words.file is not None:
        raise InputError(words.where, f"{shown(str(words.file))} is no key=value", f"keys are {', '.join(keys)}")
    variation = words.build(Variation, keys, structure=words.kind)
    return words.spec(words.build(Varied, _END, variation=variation))


def _bought(words: _Words, rule: type[EnergyBudget | Stranded], wanted: Wanted | None) -> CapacitySpec:
    keys = _keys(rule)
    words.expect(keys, _FILE)
    if rule is Stranded and "threshold" not in words.given:
        raise InputError(words.where, "no threshold is given", "give one in the signal's unit, as in threshold=0")
    return words.spec(UnderBudget(words.signal_file(wanted), words.build(rule, keys)))


def _traced(words: _Words) -> CapacitySpec:
    words.expect(_FILE)
    return words.spec(Traced(words.signal_file()))


KINDS: dict[str, Callable[[_Words], CapacitySpec]] = {
    "walk": partial(_varied, keys=_keys(Variation, "structure")),
    "uniform": partial(_varied, keys=_keys(Variation, "structure", "step", "bounds", "move")),
    "constant": partial(_varied, keys={"mean": "mean"}),
    "carbon": partial(_bought, rule=EnergyBudget, wanted="carbon"),
    "price": partial(_bought, rule=EnergyBudget, wanted="price"),
    "stranded": partial(_bought, rule=Stranded, wanted=None),
    "trace": _traced,
}
"""What makes a capacity of a text, by the word before the colon."""
