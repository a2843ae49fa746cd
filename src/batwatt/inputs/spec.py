"""Specifications of series: the sum of terms of a kind, a file or a number and keys, as in `power:sun.csv + 2000`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from batwatt.checks import checked_number, finite, number_in_file, parameters, shown
from batwatt.errors import InputError, argument, remark
from batwatt.inputs.character import EnergyBudget, Seconds, Stranded, Variation, vary
from batwatt.inputs.series import common_date, read_on_clock
from batwatt.inputs.signal import largest_in, read_capacity, read_series
from batwatt.inputs.source import (
    FILE_KEYS,
    NOUN,
    Quantity,
    SeriesSource,
    Words,
    exists,
    keys_of,
    names_kind,
    words_of,
)
from batwatt.inputs.table import is_in_seconds
from batwatt.model.battery import Battery, Dispatch, greedy, smoothing
from batwatt.model.signal import POWER_W, UNIT_OF, UNSTATED, Clock
from batwatt.model.timeline import FRACTION, LARGEST, MACHINES, Timeline, combined
from batwatt.units import DAY_S

_ROUNDING = 1e-9
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Constant:
    """A constant, in the unit of the quantity."""

    value: float

    def read(self, quantity: Quantity, clock: Clock | None, end_s: float) -> Timeline:
        """Return the series of one row."""
        unit = {**UNIT_OF, MACHINES: MACHINES, FRACTION: FRACTION}.get(quantity, UNSTATED)
        name = POWER_W if quantity == "power" else quantity
        return Timeline((0.0,), (self.value,), name, unit=unit, bounds=(self.value, self.value))


@parameters("series")
class FileTerm:
    """A column of a file; of power `base_w` + `scale` x its power.

    `peak_w` is the power of fraction 1; watts are scaled so that the maximum of the whole column is `peak_w`. `full` is
    the number of machines of fraction 1, None: all. After its end the last value holds, or with `repeat` it repeats.
    """

    source: SeriesSource
    peak_w: Annotated[float | None, Field(ge=0.0)] = None
    scale: Annotated[float, Field(ge=0.0)] = 1.0
    base_w: Annotated[float, Field(ge=-1e12, le=1e12)] = 0.0
    full: Annotated[int | None, Field(ge=1)] = None
    repeat: bool = False

    def read(self, quantity: Quantity, clock: Clock | None, end_s: float) -> Timeline:
        """Return the column in W, machines or fractions, g/kWh or money per kWh. Raises InputError."""
        rows = read_on_clock(self.source, clock, repeats=self.repeat).lasting(self.repeat)
        if quantity == "power":
            return self._watts(rows)
        return self._share(rows) if quantity in (MACHINES, FRACTION) else rows

    def _watts(self, rows: Timeline) -> Timeline:
        factor = 1.0 if self.peak_w is None else self.peak_w
        if rows.name == FRACTION and self.peak_w is None:
            problem = "holds fractions of an unknown power"
            raise InputError(self.source.path, problem, "give the watts that 1 stands for, as in peak_w=50000")
        if rows.name != FRACTION and self.peak_w is not None:
            most = largest_in(self.source)
            if not most > 0.0:
                raise InputError(self.source.path, "is never above 0 W, peak_w= cannot scale that", "leave peak_w out")
            factor = self.peak_w / most
        return _in_watts(rows, self.base_w + self.scale * factor * rows.array)

    def _share(self, rows: Timeline) -> Timeline:
        if rows.unit not in (UNSTATED, FRACTION):
            problem = f"column {rows.name!r} is in {rows.unit}, not machines or fractions of them"
            raise InputError(self.source.path, problem, "name another with column=")
        if not min(rows.values) >= 0.0:
            problem = f"a capacity must be >= 0, got {min(rows.values):g}"
            raise InputError(self.source.path, problem, "correct the value")
        return replace(rows, unit=MACHINES) if rows.name == MACHINES else rows


@parameters("series")
class ShareTerm:
    """Fractions of the whole machine, at random or by a rule on the signal of a file; `full` and `repeat` as there.

    What varies at random ends at `end_s`; None: when the run says so.
    """

    rule: Variation | EnergyBudget | Stranded
    source: SeriesSource | None = None
    end_s: Seconds = None
    full: Annotated[int | None, Field(ge=1)] = None
    repeat: bool = False

    def read(self, quantity: Quantity, clock: Clock | None, end_s: float) -> Timeline:
        """Return the fractions. Raises InputError."""
        if not isinstance(self.rule, Variation):
            return self.rule.capacity(self.paid(clock)).lasting(self.repeat)
        end_s = self.end_s or end_s
        rows = vary(self.rule, end_s)
        period_s = max(end_s, rows.times_s[-1] + self.rule.period_s)
        return replace(rows, loop=0 if self.repeat else None, period_s=period_s)

    @property
    def is_constant(self) -> bool:
        """True if the rule never changes the value."""
        return isinstance(self.rule, Variation) and self.rule.low == self.rule.high

    def paid(self, clock: Clock | None = None) -> Timeline:
        """Return the signal of the rule. Raises InputError."""
        assert self.source is not None
        return read_on_clock(self.source, clock, repeats=self.repeat)


@parameters("series")
class Buffer:
    """A battery and its dispatch: greedy for a demand in W if there is one, else smoothing over a window."""

    battery: Battery
    demand_w: Annotated[float | None, Field(ge=0.0)] = None
    window_s: Annotated[float, Field(gt=0.0)] = DAY_S
    step_s: Annotated[float, Field(gt=0.0)] = 900.0

    def dispatch(self, supply: Timeline, end_s: float) -> Dispatch:
        """Return the dispatch for a supply over [0, `end_s`[. Raises InputError."""
        supply = supply.upto(end_s)
        if self.demand_w is None:
            return smoothing(supply, self.window_s, self.battery, end_s, self.step_s)
        demand = Timeline((0.0,), (self.demand_w,), name="demand_w")
        return greedy(supply, demand, self.battery, end_s, self.step_s)


Term = Constant | FileTerm | ShareTerm


@dataclass(frozen=True)
class SeriesSpec:
    """A series before it is read: the sum of its terms, of power with a battery behind them.

    `path` is the file of a text that names nothing else.
    """

    quantity: Quantity
    terms: tuple[Term, ...]
    battery: Buffer | None = None
    path: Path | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of_file(cls, quantity: Quantity, path: Path) -> SeriesSpec:
        """Return the series of a file."""
        return cls(quantity, (FileTerm(SeriesSource(path, quantity=_READ_AS[quantity])),), None, path, str(path))

    def timeline(self, clock: Clock | None = None, end_s: float = 0.0, full: float | None = None) -> Timeline:
        """Read or generate the series from 0 s on. Raises InputError.

        What varies at random, and a battery, ends at `end_s`. `full` is the power of the whole machine in W, or the
        number of machines. Machines are floor(fraction x full). Sums of power below 0 become 0.
        """
        if self.path is not None and self.is_in_seconds:
            machines = None if full is None else int(full)
            return read_series(self.path) if self.quantity == "power" else read_capacity(self.path, machines)
        if self.battery is not None:
            envelope = self.dispatch(clock, end_s, full).envelope(POWER_W, self.text)
            return replace(envelope, loop=None, period_s=end_s)
        return self.supply(clock, end_s, full)

    def parts(self, clock: Clock | None = None, end_s: float = 0.0, full: float | None = None) -> list[Timeline]:
        """Return the terms in the unit of the quantity. Raises InputError."""
        if clock is None and len(self.sources) > 1 and (date := common_date(self.sources)) is not None:
            # terms have one clock, by their own dates
            clock = Clock(*date)
        with self._errors_with_text():
            parts = [(term, term.read(self.quantity, clock, end_s)) for term in self.terms]
            return [self._in_quantity(term, rows, full) for term, rows in parts]

    def _in_quantity(self, term: Term, rows: Timeline, full: float | None) -> Timeline:
        """Return a term of fractions or machines in the unit of the quantity. Raises InputError."""
        if self.quantity == "power" and isinstance(term, ShareTerm):
            if full is None:
                problem = "is a share of the unknown power of the whole machine"
                hint = f"give watts to all hosts of the platform, or {argument('full_w')} without a platform"
                raise InputError(self.text, problem, hint)
            return _in_watts(rows, full * rows.array)
        if self.quantity not in (MACHINES, FRACTION) or (rows.unit == MACHINES) == (self.quantity == MACHINES):
            return rows
        machines = (None if isinstance(term, Constant) else term.full) or full or 1
        convert = np.multiply if self.quantity == MACHINES else np.divide
        return rows.mapped(lambda values: convert(values, machines), self.quantity, self.quantity)

    def supply(self, clock: Clock | None = None, end_s: float = 0.0, full: float | None = None) -> Timeline:
        """Return the sum of the terms, without the battery. Raises InputError."""
        parts = self.parts(clock, end_s, full)
        if self.quantity == "power":
            total = combined(parts, sum)
            negative = sum(value < 0.0 for value in total.values)
            if negative:
                remark(_log, "%s: %d values below 0 W taken as 0", self.text, negative)
            return total.of([max(0.0, value) for value in total.values], "W", POWER_W, self.text)
        total = parts[0] if len(parts) == 1 else replace(combined(parts, sum), bounds=_bounds_of_sum(parts))
        return self._whole(total, full) if self.quantity == MACHINES and full is not None else total

    def _whole(self, total: Timeline, machines: float) -> Timeline:
        """Return numbers of machines, rounded down. Raises InputError for more than there are."""
        whole = total.mapped(lambda values: np.floor(values + _ROUNDING), MACHINES, MACHINES, self.text)
        if not whole.array.max() <= machines:
            problem = f"requires {whole.array.max():g} machines of {machines:g}"
            hint = (
                "give more machines and full=N, the machines that fraction 1 stands for; or a smaller range or headroom"
            )
            raise InputError(self.text, problem, hint)
        return whole

    def dispatch(self, clock: Clock | None = None, end_s: float = 0.0, full: float | None = None) -> Dispatch:
        """Return the dispatch of the battery. Raises InputError, also without a battery."""
        if self.battery is None:
            raise InputError(self.text, "has no battery", "add for instance + battery:capacity_kwh=40")
        supply = self.supply(clock, end_s, full)
        with self._errors_with_text():
            return self.battery.dispatch(supply, end_s)

    @property
    def sources(self) -> tuple[SeriesSource, ...]:
        """The files with their columns."""
        return tuple(term.source for term in self.terms if not isinstance(term, Constant) and term.source is not None)

    @property
    def dated_sources(self) -> tuple[SeriesSource, ...]:
        """The files by date, in the unit of the quantity. Raises InputError."""
        if self.is_in_seconds:
            return ()
        return tuple(source for source in self.sources if read_on_clock(source).date_s is not None)

    @property
    def is_constant(self) -> bool:
        """True if the value never changes."""
        shares = (term for term in self.terms if not isinstance(term, Constant))
        return all(isinstance(term, ShareTerm) and term.is_constant for term in shares)

    @property
    def is_open(self) -> bool:
        """True if it ends with the run: a term at random without `end=`, or a battery."""
        shares = (term for term in self.terms if isinstance(term, ShareTerm) and term.source is None)
        return self.battery is not None or any(not term.is_constant and term.end_s is None for term in shares)

    @cached_property
    def is_in_seconds(self) -> bool:
        """True for a file of `time_s` and the quantity, or without a header, as riskaware's. Raises InputError."""
        column = {"power": POWER_W, MACHINES: MACHINES}.get(self.quantity)
        return self.path is not None and column is not None and is_in_seconds(self.path, column)

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the files."""
        return tuple(dict.fromkeys(source.path for source in self.sources))

    def length_s(self, full: float | None = None) -> float | None:
        """Return the length in s of the longest file, None without files. Raises InputError."""
        parts = zip(self.terms, self.parts(None, 1.0, full), strict=True)
        lengths_s = [rows.end_s for term, rows in parts if not isinstance(term, Constant) and term.source is not None]
        return max(lengths_s, default=None)

    def paid(self) -> Timeline | None:
        """Return the price or carbon signal of the power of a capacity by a rule, else None. Raises InputError."""
        term = self.terms[0]
        return term.paid() if isinstance(term, ShareTerm) and term.source is not None else None

    @contextmanager
    def _errors_with_text(self) -> Iterator[None]:
        """Raise errors of parameters again with the text."""
        try:
            yield
        except InputError as error:
            where, _, problem = str(error).partition(": ")
            if not self.text or where not in ("series", "battery", "capacity"):
                raise
            raise InputError(self.text, problem) from None


def _bounds_of_sum(parts: Sequence[Timeline]) -> tuple[float, float] | None:
    """Return the bounds of a sum; None unless every term has some."""
    bounds = [part.bounds for part in parts if part.bounds is not None]
    if len(bounds) < len(parts):
        return None
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)


def _in_watts(rows: Timeline, watts: np.ndarray) -> Timeline:
    largest = float(np.abs(watts).max())
    if not largest <= LARGEST:
        raise InputError(rows.source, f"gives {largest:g} W, more than {LARGEST:g} W", "correct its keys")
    return rows.of(watts, "W", POWER_W)


# texts ----------------------------------------------------------------------------------------------------------------

_READ_AS: Mapping[Quantity, Quantity] = {
    "power": "power",
    "machines": "any",
    "fraction": "any",
    "carbon": "carbon",
    "price": "price",
    "any": "any",
}
_PLUS = re.compile(r"\s\+\s")


def parse_series(quantity: Quantity, text: str | Path, base: Path | None = None) -> SeriesSpec:
    """Parse the series of a quantity that a text describes; see docs/reference/signals.md. Raises InputError.

    Paths are relative to the folder `base` (None: the current one). A text that is the name of a file names it.
    """
    if isinstance(text, Path):
        return SeriesSpec.of_file(quantity, text)
    where = f"{NOUN.get(quantity, quantity)} {text!r}"
    if not text.strip():
        raise InputError(where, "names no file", "write FILE, then keys if needed, as in nl.csv,days=30")
    if exists(str(Path(base or "", text))):
        return SeriesSpec.of_file(quantity, Path(base or "", text))
    words = [Words(part, quantity, _KINDS[quantity], base) for part in _parts(text)]
    terms = [_KINDS[quantity][one.kind](one) for one in words]
    batteries = [term for term in terms if isinstance(term, Buffer)]
    sources = tuple(term for term in terms if not isinstance(term, Buffer))
    if len(batteries) > 1 or not sources:
        problem = "has several batteries" if sources else "has a battery without a source of power"
        raise InputError(where, problem, "give one battery and at least one source of power")
    if len(sources) > 1 and quantity not in ("power", MACHINES, FRACTION):
        raise InputError(where, "is a sum, which only power and machines have", "give one file")
    plain = len(words) == 1 and not words[0].kind and not words[0].values and isinstance(terms[0], FileTerm)
    path = words[0].path if plain else None
    buffer = batteries[0] if batteries else None
    return SeriesSpec(quantity, sources, buffer, path, " + ".join(one.text for one in words))


def _parts(text: str) -> list[str]:
    """Return the texts of the terms of a sum."""
    return _PLUS.split(text.strip())


def has_kinds(text: str) -> bool:
    """Return whether a text is a sum or a term of a kind of power, and no name of a file."""
    parts = _parts(text)
    return not exists(text) and (len(parts) > 1 or any(names_kind(part, _KINDS["power"]) for part in parts))


def quantity_in(text: str) -> Quantity:
    """Return the quantity of a text without an option: fractions if all terms are shares, power of other sums.

    That of a file without a kind is in the file.
    """
    if exists(text):
        return "any"
    quantities: list[Quantity] = [_quantity_of(term) for term in _parts(text)]
    if set(quantities) == {"fraction"}:
        return "fraction"
    return quantities[0] if len(quantities) == 1 else "power"


def _quantity_of(term: str) -> Quantity:
    """Return the quantity of a term by its kind and keys: constants are power, but for `mean=`."""
    kind, _, rest = term.partition(":") if names_kind(term, {**_KINDS["power"], **_CAPACITY}) else ("", "", term)
    keys = {word.partition("=")[0] for word in words_of(rest)}
    if kind.lower() == "constant":
        return "fraction" if "mean" in keys else "power"
    if kind.lower() in ("power", "battery") or keys & {"peak_w", "scale", "base_w"}:
        return "power"
    return "fraction" if kind or "full" in keys else "any"


_WHOLE = keys_of(FileTerm, "source", "peak_w", "scale", "base_w")
_METERED = keys_of(FileTerm, "source", "full")
_BATTERY = keys_of(Battery)
_BUFFER = {"demand_w": "demand_w", "window_h": "window_s", "step": "step_s"}


def _whole_of(words: Words) -> dict[str, str]:
    """Return the keys of a share: machines have a number for fraction 1. Raises InputError for that of power."""
    if words.quantity == "power" and "full" in words.values:
        raise InputError(words.where, "full= is for machines", "leave it out, fractions are of the power of all")
    return _WHOLE


def _varied(words: Words, keys: Mapping[str, str]) -> ShareTerm:
    whole = _whole_of(words) | {"end": "end_s"}
    words.expect(keys, whole)
    if words.path is not None:
        raise InputError(words.where, f"{shown(str(words.path))} is not key=value", f"keys are {', '.join(keys)}")
    variation = words.build(Variation, keys, structure=words.kind)
    return words.build(ShareTerm, whole, rule=variation)


def _ruled(words: Words, rule: type[EnergyBudget | Stranded], signal: Quantity | None) -> ShareTerm:
    keys, whole = keys_of(rule), _whole_of(words)
    words.expect(keys, FILE_KEYS, whole)
    if rule is Stranded and "threshold" not in words.values:
        raise InputError(words.where, "no threshold is given", "give one in the signal's unit, as in threshold=0")
    # a budget is shares of the mean, unless it has a reference
    source = words.source(signal, relative=signal is not None and "reference" not in words.values)
    return words.build(ShareTerm, whole, rule=words.build(rule, keys), source=source)


def _constant(words: Words) -> Constant | ShareTerm:
    """Return a constant in the unit of the quantity; `mean=` is a fraction of the whole machine."""
    if words.quantity != "power":
        if words.first is None:
            return _varied(words, {"mean": "mean"})
        words.expect()
        return _number(words, words.first)
    words.expect({"power_w": "power_w"})
    if words.first is not None and words.values:
        raise InputError(words.where, "has two powers", "give one")
    text = words.first or words.values.get("power_w")
    if text is None:
        raise InputError(words.where, "no power is given", "write for instance constant:20000, in W")
    return _number(words, text)


def _number(words: Words, text: str) -> Constant:
    """Parse a constant in the unit of the quantity. Raises InputError."""
    name = "power_w" if words.quantity == "power" else "value"
    value = number_in_file(words.where, name, text, "correct it")
    least = -LARGEST if words.quantity == "price" else 0.0
    return Constant(checked_number(words.where, name, value, least, LARGEST))


def _file(words: Words) -> FileTerm | Constant:
    """Return a file with its keys, or without a kind a number."""
    if not words.kind and not words.values and words.first is not None and not exists(str(words.path)):
        try:
            finite(words.first)
        except ValueError:
            pass
        else:
            return _number(words, words.first)
    keys = _METERED if words.quantity == "power" else _WHOLE
    if words.quantity not in ("power", MACHINES, FRACTION):
        keys = {"repeat": "repeat"}
    words.expect(keys, FILE_KEYS)
    source = words.source(_READ_AS[words.quantity], relative=words.quantity == "power" and "peak_w" in words.values)
    return words.build(FileTerm, keys, source=source)


def _buffer(words: Words) -> Buffer:
    words.expect(_BATTERY, _BUFFER)
    if words.first is not None:
        raise InputError(words.where, f"{words.first!r} is not key=value", "write for instance battery:capacity_kwh=40")
    if "capacity_kwh" not in words.values:
        raise InputError(words.where, "no capacity is given", "give capacity_kwh=")
    if "demand_w" in words.values and "window_h" in words.values:
        problem = "has both demand_w and window_h"
        raise InputError(words.where, problem, "give a demand to meet, or a window to smooth over")
    return words.build(Buffer, _BUFFER, battery=words.build(Battery, _BATTERY))


_Maker = Callable[[Words], Term | Buffer]
_SHARES: Mapping[str, _Maker] = {
    "walk": partial(_varied, keys=keys_of(Variation, "structure")),
    "uniform": partial(_varied, keys=keys_of(Variation, "structure", "step")),
    "carbon": partial(_ruled, rule=EnergyBudget, signal="carbon"),
    "price": partial(_ruled, rule=EnergyBudget, signal="price"),
    "stranded": partial(_ruled, rule=Stranded, signal=None),
}
_CAPACITY: Mapping[str, _Maker] = {"": _file, "trace": _file, "constant": _constant, **_SHARES}
_KINDS: Mapping[Quantity, Mapping[str, _Maker]] = {
    "power": {"": _file, "power": _file, "constant": _constant, **_SHARES, "battery": _buffer},
    "machines": _CAPACITY,
    "fraction": _CAPACITY,
    "carbon": {"": _file},
    "price": {"": _file},
    "any": {"": _file},
}
"""Quantity -> kind, before the colon (empty: a file or a number) -> maker of a term."""


def kinds_of_series(quantity: Quantity) -> Collection[str]:
    """Return the kinds of the terms of a quantity."""
    return [kind for kind in _KINDS[quantity] if kind]
