"""Envelopes specified in one line, as in `power:solar.csv,peak_w=5e4 + constant:20000 + battery:capacity_kwh=40`."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError
from batwatt.inputs.series.capacity_spec import KINDS as CAPACITIES
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.on_clock import common_date, read_on_clock
from batwatt.inputs.series.parsed_spec import FILE_KEYS, ParsedSpec, exists, has_kind, keys_of
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.battery import Battery, Dispatch, greedy, smoothing
from batwatt.model.clock import Clock
from batwatt.model.series import FRACTION, LARGEST, MAX_ROWS, Series
from batwatt.model.signal import Signal, held
from batwatt.model.signal_units import POWER_W
from batwatt.remarks import remark
from batwatt.units import DAY_S

_WHERE = "envelope"
_DOCS = "docs/reference/signals.md"
_PLUS = re.compile(r"\s\+\s")
_PER_K = ("capacity", "charge", "discharge", "power", "demand")
"""Keys of a battery that may be in thousands: `capacity_kwh` for `capacity_wh`, `power_kw` for `power_w`."""
_log = logging.getLogger(__name__)

Watts = Annotated[float, Between(0.0, unit="W")]


class Term(ABC):
    """A part of an envelope."""

    @abstractmethod
    def watts(self, end_s: float, full_w: float | None) -> Signal:
        """Its power in W, over [0, `end_s`[ or over what the source has. Raises InputError."""

    def on(self, clock: Clock | None) -> Term:
        """The same on the clock of a run."""
        return self

    def signal_files(self) -> tuple[SignalFile, ...]:
        """What it reads."""
        return ()

    def length_s(self, full_w: float | None) -> float | None:
        """The length of its source in s, None if that has no end. Raises InputError."""
        return self.watts(1.0, full_w).end_s if self.signal_files() else None


@dataclass(frozen=True)
class Constant(Parameters, Term, where=_WHERE):
    """The same power all the time."""

    power_w: Watts

    def watts(self, end_s: float, full_w: float | None) -> Signal:
        """The power."""
        return Signal(Series((0.0,), (self.power_w,), name=POWER_W, unit="W"), end_s)


@dataclass(frozen=True)
class Metered(Parameters, Term, where=_WHERE):
    """`base_w` + `scale` x the power in a file.

    With `peak_w` fractions are of that, and watts are scaled so that the greatest of the whole column is that.
    """

    file: SignalFile
    peak_w: Annotated[float | None, Between(0.0, unit="W")] = None
    scale: Annotated[float, Between(0.0)] = 1.0
    base_w: Annotated[float, Between(-1e12, 1e12)] = 0.0
    repeat: bool = False

    def watts(self, end_s: float, full_w: float | None) -> Signal:
        """The column in W."""
        from batwatt.inputs.series.signal_csv import read_rows

        found = read_on_clock(self.file)
        factor = 1.0 if self.peak_w is None else self.peak_w
        if found.series.name == FRACTION and self.peak_w is None:
            problem = "holds fractions, and nothing says of what"
            raise InputError(self.file.path, problem, "give the watts that 1 stands for, as in peak_w=50000")
        if found.series.name != FRACTION and self.peak_w is not None:
            most = float(np.nanmax(read_rows(replace(self.file, begin=None), MAX_ROWS).values))
            if not most > 0.0:
                raise InputError(self.file.path, "is never above 0 W, peak_w= cannot scale that", "leave peak_w out")
            factor = self.peak_w / most
        return _with_values(
            found, self.base_w + self.scale * factor * np.asarray(found.series.values), end_s, self.repeat
        )

    def on(self, clock: Clock | None) -> Term:
        """The same on the clock of a run."""
        return replace(self, file=self.file.on(clock, repeats=self.repeat))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """The file."""
        return (self.file,)


@dataclass(frozen=True)
class Traced(Parameters, Term, where=_WHERE):
    """The power in a file of watts, or fractions of the power of the whole machine where its column is of no power."""

    file: SignalFile
    repeat: bool = False

    def watts(self, end_s: float, full_w: float | None) -> Signal:
        """The column in W."""
        found = read_on_clock(self.file)
        values = np.asarray(found.series.values)
        if found.series.name == FRACTION:
            values = values * _needed(full_w, self.file.path)
        return _with_values(found, values, end_s, self.repeat)

    def on(self, clock: Clock | None) -> Term:
        """The same on the clock of a run."""
        return replace(self, file=self.file.on(clock, repeats=self.repeat))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """The file."""
        return (self.file,)


@dataclass(frozen=True)
class Share(Term):
    """A capacity, as a share of the power of the whole machine."""

    capacity: CapacitySpec

    def watts(self, end_s: float, full_w: float | None) -> Signal:
        """The fractions x the power of the whole machine."""
        found = self.capacity.found(end_s)
        values = _needed(full_w, self.capacity) * np.asarray(found.series.values)
        return _with_values(found, values, end_s, self.capacity.repeat)

    def on(self, clock: Clock | None) -> Term:
        """The same on the clock of a run."""
        return replace(self, capacity=self.capacity.on(clock))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """The files of the capacity."""
        return self.capacity.signal_files()


@dataclass(frozen=True)
class Buffer(Parameters, where=_WHERE):
    """A battery and its dispatch: greedy for a demand in W if there is one, else smoothing over a window."""

    battery: Battery
    demand_w: Annotated[float | None, Between(0.0, unit="W")] = None
    window_s: Annotated[float, Between(0.0, ends="][", unit="s")] = DAY_S
    step_s: Annotated[float, Between(0.0, ends="][", unit="s")] = 900.0

    def dispatch(self, supply: Series, end_s: float) -> Dispatch:
        """Its dispatch for a supply over [0, `end_s`[. Raises InputError."""
        if self.demand_w is None:
            return smoothing(supply, self.window_s, self.battery, end_s, self.step_s)
        demand = Series((0.0,), (self.demand_w,), name="demand_w")
        return greedy(supply, demand, self.battery, end_s, self.step_s)


@dataclass(frozen=True)
class EnvelopeSpec:
    """An envelope before its length and the power of the whole machine are known: the sum of terms, buffered.

    After the end of a term its last value holds, or it begins again if it says `repeat=yes`.
    """

    terms: tuple[Term, ...]
    buffer: Buffer | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text

    def series(self, end_s: float, full_w: float | None = None) -> Series:
        """The power over [0, `end_s`[, W; `full_w` is that of the whole machine. Raises InputError."""
        if self.buffer is None:
            return self.supply(end_s, full_w)
        return self.dispatch(end_s, full_w).envelope(POWER_W, self.text)

    def dispatch(self, end_s: float, full_w: float | None = None) -> Dispatch:
        """What the battery does; its envelope is `series`. Raises InputError, also if there is no battery."""
        if self.buffer is None:
            raise InputError(self.text or _WHERE, "has no battery", "add for instance + battery:capacity_kwh=40")
        supply = self.supply(end_s, full_w)
        with _shown(self.text):
            return self.buffer.dispatch(supply, end_s)

    def supply(self, end_s: float, full_w: float | None = None) -> Series:
        """The sum of the terms, without the battery; what is below 0 is 0. Raises InputError."""
        with _shown(self.text):
            found = [term.watts(end_s, full_w) for term in self._of_one_clock()]
        times = np.unique(np.concatenate([signal.series.times_s for signal in found]))
        times = times[times < end_s]
        values = np.sum([held(signal.series, times) for signal in found], axis=0)
        if (values < 0.0).any():
            remark(_log, "%s: %d values below 0 W taken as 0", self.text, np.count_nonzero(values < 0.0))
            values = np.maximum(values, 0.0)
        return Series(tuple(times.tolist()), tuple(values.tolist()), name=POWER_W, source=self.text, unit="W")

    def length_s(self, full_w: float | None = None) -> float | None:
        """The length of the longest of its files in s, None if it has none. Raises InputError."""
        with _shown(self.text):
            lengths = [term.length_s(full_w) for term in self._of_one_clock()]
        return max((length for length in lengths if length is not None), default=None)

    def on(self, clock: Clock | None) -> EnvelopeSpec:
        """The same on the clock of a run."""
        return replace(self, terms=tuple(term.on(clock) for term in self.terms))

    def _of_one_clock(self) -> tuple[Term, ...]:
        """The terms on one clock: that of the run or, if there is none, one by their own dates."""
        files = self.signal_files()
        date = common_date(files) if len(files) > 1 and not any(file.run_clock for file in files) else None
        return self.terms if date is None else self.on(Clock(*date)).terms

    def signal_files(self) -> tuple[SignalFile, ...]:
        """What it reads."""
        return tuple(file for term in self.terms for file in term.signal_files())

    def files(self) -> tuple[Path, ...]:
        """The files that this envelope depends on."""
        return tuple(dict.fromkeys(file.path for file in self.signal_files()))


@contextmanager
def _shown(text: str) -> Iterator[None]:
    """Within, errors about parameters show the text of the envelope."""
    try:
        yield
    except InputError as error:
        where, _, problem = str(error).partition(": ")
        if not text or where not in (_WHERE, Battery.WHERE, CapacitySpec.WHERE):
            raise
        raise InputError(text, problem) from None


def _needed(full_w: float | None, whose: object) -> float:
    if full_w is None:
        problem = "is a share of the power of the whole machine, which is not known"
        raise InputError(whose, problem, "give watts to all hosts of the platform, or --full-w without a platform")
    return full_w


def _with_values(found: Signal, values: np.ndarray, end_s: float, repeat: bool) -> Signal:
    largest = float(np.abs(values).max())
    if not largest <= LARGEST:
        raise InputError(found.series.source, f"gives {largest:g} W, more than {LARGEST:g} W", "correct its keys")
    series = replace(found.series, values=tuple(values.tolist()), name=POWER_W, unit="W")
    signal = replace(found, series=series)
    return signal.repeated(end_s) if repeat else signal


def is_envelope(text: str) -> bool:
    """Whether `text` is the description of an envelope rather than the name of a file."""
    return not exists(text) and any(has_kind(part, KINDS) for part in _PLUS.split(text.strip()))


def parse_envelope(text: str, base: Path | None = None) -> EnvelopeSpec | None:
    """The envelope that `text` describes, None if it is the name of a file instead; see docs/reference/signals.md.

    Files are looked for in the folder `base` (None: the current one). Raises InputError.
    """
    if not is_envelope(text):
        return None
    terms: list[Term] = []
    texts: list[str] = []
    buffers: list[Buffer] = []
    for part in _PLUS.split(text.strip()):
        if not has_kind(part, KINDS):
            raise InputError(f"{_WHERE} {text!r}", f"{part!r} has no kind", f"begin it with {':, '.join(KINDS)}:")
        spec = ParsedSpec(part, base, KINDS, _WHERE, _DOCS)
        texts.append(spec.text(spec.first if spec.kind == "constant" else spec.file))
        found = KINDS[spec.kind](spec)
        if isinstance(found, Buffer):
            buffers.append(found)
        else:
            terms.append(found)
    if len(buffers) > 1 or not terms:
        problem = "has several batteries" if terms else "has a battery and nothing that charges it"
        raise InputError(f"{_WHERE} {text!r}", problem, "give one battery and at least one source of power")
    return EnvelopeSpec(tuple(terms), buffers[0] if buffers else None, text=" + ".join(texts))


_CONSTANT = keys_of(Constant)
_METERED = keys_of(Metered, "file")
_TRACED = keys_of(Traced, "file")
_BATTERY = keys_of(Battery)
_BUFFER = {"demand_w": "demand_w", "window_h": "window_s", "step": "step_s"}


def _constant(spec: ParsedSpec) -> Constant:
    spec.expect(_CONSTANT)
    if spec.first is not None:
        if spec.given:
            raise InputError(spec.where, "has two powers", "give one")
        spec.given["power_w"] = spec.first
    if "power_w" not in spec.given:
        raise InputError(spec.where, "no power is given", "write for instance constant:20000, in W")
    return spec.build(Constant, _CONSTANT)


def _metered(spec: ParsedSpec) -> Metered:
    spec.expect(_METERED, FILE_KEYS)
    return spec.build(Metered, _METERED, file=spec.signal_file("power", ratios="peak_w" in spec.given))


def _traced(spec: ParsedSpec) -> Traced:
    spec.expect(_TRACED, FILE_KEYS)
    return spec.build(Traced, _TRACED, file=spec.signal_file("power"))


def _share(spec: ParsedSpec) -> Share:
    found = CAPACITIES[spec.kind](spec)
    if found.full is not None:
        raise InputError(spec.where, "full= is for machines", "leave it out, fractions are of the power of all")
    return Share(found)


def _buffer(spec: ParsedSpec) -> Buffer:
    """A battery; `power_w` limits both ways, `efficiency` is that of a round trip, lost by halves each way."""
    _in_units(spec)
    both = {"power_w": ("charge_w", "discharge_w"), "efficiency": ("charge_efficiency", "discharge_efficiency")}
    spec.expect(_BATTERY, _BUFFER, dict.fromkeys(both, ""))
    if spec.first is not None:
        raise InputError(spec.where, f"{spec.first!r} is no key=value", "write for instance battery:capacity_kwh=40")
    if "capacity_wh" not in spec.given:
        raise InputError(spec.where, "no capacity is given", "give capacity_kwh=")
    if "demand_w" in spec.given and "window_h" in spec.given:
        raise InputError(
            spec.where, "has both demand_w and window_h", "give a demand to meet, or a window to smooth over"
        )
    given: dict[str, float] = {}
    for key, names in both.items():
        if key not in spec.given:
            continue
        if any(name in spec.given for name in names):
            raise InputError(spec.where, f"has both {key} and {' or '.join(names)}", "give one of them")
        number = spec.number(key, spec.given[key])
        if key == "efficiency":
            if not 0.0 < number <= 1.0:
                raise InputError(spec.where, f"efficiency must be a number in ]0, 1], got {number:g}", "correct it")
            number = number**0.5
        given |= dict.fromkeys(names, number)
    battery = spec.build(Battery, {key: name for key, name in _BATTERY.items() if name not in given}, **given)
    return spec.build(Buffer, _BUFFER, battery=battery)


def _in_units(spec: ParsedSpec) -> None:
    """Turn what is given in kW and kWh into W and Wh. Raises InputError."""
    for name in _PER_K:
        unit = "wh" if name == "capacity" else "w"
        thousands, plain = f"{name}_k{unit}", f"{name}_{unit}"
        if thousands in spec.given:
            if plain in spec.given:
                raise InputError(spec.where, f"has both {plain} and {thousands}", "give one of them")
            spec.given[plain] = repr(1e3 * spec.number(thousands, spec.given.pop(thousands)))


KINDS: dict[str, Callable[[ParsedSpec], Term | Buffer]] = {
    "power": _metered,
    "trace": _traced,
    "constant": _constant,
    **dict.fromkeys(("carbon", "price", "stranded", "walk", "uniform"), _share),
    "battery": _buffer,
}
"""Kind, before the colon -> what builds a part of an envelope."""
