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
from batwatt.errors import InputError, remark
from batwatt.inputs.series.capacity_spec import KINDS as CAPACITIES
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.on_clock import common_date, read_on_clock
from batwatt.inputs.series.parsed_spec import FILE_KEYS, ParsedSpec, exists, has_kind, keys_of
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.battery import Battery, Dispatch, greedy, smoothing
from batwatt.model.series import FRACTION, LARGEST, Series, combined
from batwatt.model.signal import POWER_W, Clock
from batwatt.units import DAY_S

_WHERE = "envelope"
_DOCS = "docs/reference/signals.md"
_PLUS = re.compile(r"\s\+\s")
_log = logging.getLogger(__name__)

Watts = Annotated[float, Between(0.0, unit="W")]


class Term(ABC):
    """A part of an envelope."""

    @abstractmethod
    def watts(self, end_s: float, full_w: float | None) -> Series:
        """Return the power in W; one that varies at random ends at `end_s`. Raises InputError."""

    def on(self, clock: Clock | None) -> Term:
        """Return the term on the clock of a run."""
        return self

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the files of signals that the term reads."""
        return ()

    def length_s(self, full_w: float | None) -> float | None:
        """Return the length in s of the source, None if it has no end. Raises InputError."""
        return self.watts(1.0, full_w).end_s if self.signal_files() else None


@dataclass(frozen=True)
class Constant(Parameters, Term, where=_WHERE):
    """A constant power."""

    power_w: Watts

    def watts(self, end_s: float, full_w: float | None) -> Series:
        """Return the constant power in W."""
        return Series((0.0,), (self.power_w,), name=POWER_W, unit="W")


@dataclass(frozen=True)
class Metered(Parameters, Term, where=_WHERE):
    """A power of `base_w` + `scale` x the power in a file.

    `peak_w` is the power of fraction 1; watts are scaled so that the maximum of the whole column is `peak_w`.
    """

    file: SignalFile
    peak_w: Annotated[float | None, Between(0.0, unit="W")] = None
    scale: Annotated[float, Between(0.0)] = 1.0
    base_w: Annotated[float, Between(-1e12, 1e12)] = 0.0
    repeat: bool = False

    def watts(self, end_s: float, full_w: float | None) -> Series:
        """Return the column in W."""
        from batwatt.inputs.series.signal_csv import largest_in

        signal = read_on_clock(self.file)
        factor = 1.0 if self.peak_w is None else self.peak_w
        if signal.name == FRACTION and self.peak_w is None:
            problem = "holds fractions of an unknown power"
            raise InputError(self.file.path, problem, "give the watts that 1 stands for, as in peak_w=50000")
        if signal.name != FRACTION and self.peak_w is not None:
            most = largest_in(self.file)
            if not most > 0.0:
                raise InputError(self.file.path, "is never above 0 W, peak_w= cannot scale that", "leave peak_w out")
            factor = self.peak_w / most
        return _with_values(signal.lasting(self.repeat), self.base_w + self.scale * factor * np.asarray(signal.values))

    def on(self, clock: Clock | None) -> Term:
        """Return the term on the clock of a run."""
        return replace(self, file=self.file.on(clock, repeats=self.repeat))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the file."""
        return (self.file,)


@dataclass(frozen=True)
class Share(Term):
    """A capacity as a share of the power of the whole machine."""

    capacity: CapacitySpec

    def watts(self, end_s: float, full_w: float | None) -> Series:
        """Return the fractions x the power of the whole machine, in W."""
        fractions = self.capacity.fractions(end_s)
        if full_w is None:
            problem = "is a share of the unknown power of the whole machine"
            hint = "give watts to all hosts of the platform, or --full-w without a platform"
            raise InputError(self.capacity, problem, hint)
        return _with_values(fractions, full_w * np.asarray(fractions.values))

    def on(self, clock: Clock | None) -> Term:
        """Return the term on the clock of a run."""
        return replace(self, capacity=self.capacity.on(clock))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the files of the capacity."""
        return self.capacity.signal_files()


@dataclass(frozen=True)
class Buffer(Parameters, where=_WHERE):
    """A battery and its dispatch: greedy for a demand in W if there is one, else smoothing over a window."""

    battery: Battery
    demand_w: Annotated[float | None, Between(0.0, unit="W")] = None
    window_s: Annotated[float, Between(0.0, ends="][", unit="s")] = DAY_S
    step_s: Annotated[float, Between(0.0, ends="][", unit="s")] = 900.0

    def dispatch(self, supply: Series, end_s: float) -> Dispatch:
        """Return the dispatch for a supply over [0, `end_s`[. Raises InputError."""
        supply = supply.upto(end_s)
        if self.demand_w is None:
            return smoothing(supply, self.window_s, self.battery, end_s, self.step_s)
        demand = Series((0.0,), (self.demand_w,), name="demand_w")
        return greedy(supply, demand, self.battery, end_s, self.step_s)


@dataclass(frozen=True)
class EnvelopeSpec:
    """An envelope before its length and the power of the whole machine are known: the sum of terms, with a buffer.

    After the end of a term its last value holds, or the term repeats with `repeat=yes`.
    """

    terms: tuple[Term, ...]
    buffer: Buffer | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text

    def series(self, end_s: float, full_w: float | None = None) -> Series:
        """Return the power in W; `full_w` is that of the whole machine. Raises InputError.

        What varies at random, and a battery, ends at `end_s`.
        """
        if self.buffer is None:
            return self.supply(end_s, full_w)
        return replace(self.dispatch(end_s, full_w).envelope(POWER_W, self.text), loop=None, period_s=end_s)

    def parts(self, end_s: float, full_w: float | None = None) -> list[Series]:
        """Return the terms in W. Raises InputError."""
        with _errors_with_text(self.text):
            return [term.watts(end_s, full_w) for term in self._of_one_clock()]

    def dispatch(self, end_s: float, full_w: float | None = None) -> Dispatch:
        """Return the dispatch of the battery, whose envelope is `series`. Raises InputError, also without a battery."""
        if self.buffer is None:
            raise InputError(self.text or _WHERE, "has no battery", "add for instance + battery:capacity_kwh=40")
        supply = self.supply(end_s, full_w)
        with _errors_with_text(self.text):
            return self.buffer.dispatch(supply, end_s)

    def supply(self, end_s: float, full_w: float | None = None) -> Series:
        """Return the sum of the terms in W, without the battery; sums below 0 become 0. Raises InputError."""
        total = combined(self.parts(end_s, full_w), sum)
        negative = sum(value < 0.0 for value in total.values)
        if negative:
            remark(_log, "%s: %d values below 0 W taken as 0", self.text, negative)
        return total.of(tuple(max(0.0, value) for value in total.values), POWER_W, "W", self.text)

    def length_s(self, full_w: float | None = None) -> float | None:
        """Return the length in s of its longest file, None without files. Raises InputError."""
        with _errors_with_text(self.text):
            lengths = [term.length_s(full_w) for term in self._of_one_clock()]
        return max((length for length in lengths if length is not None), default=None)

    def on(self, clock: Clock | None) -> EnvelopeSpec:
        """Return the envelope on the clock of a run."""
        return replace(self, terms=tuple(term.on(clock) for term in self.terms))

    def _of_one_clock(self) -> tuple[Term, ...]:
        """Return the terms on one clock: that of the run, else one by their own dates."""
        files = self.signal_files()
        date = common_date(files) if len(files) > 1 and not any(file.run_clock for file in files) else None
        return self.terms if date is None else self.on(Clock(*date)).terms

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the files of signals that the envelope reads."""
        return tuple(file for term in self.terms for file in term.signal_files())

    def files(self) -> tuple[Path, ...]:
        """Return the paths of the files that the envelope reads."""
        return tuple(dict.fromkeys(file.path for file in self.signal_files()))


@contextmanager
def _errors_with_text(text: str) -> Iterator[None]:
    """Raise errors of parameters again with the text of the envelope."""
    try:
        yield
    except InputError as error:
        where, _, problem = str(error).partition(": ")
        if not text or where not in (_WHERE, Battery.WHERE, CapacitySpec.WHERE):
            raise
        raise InputError(text, problem) from None


def _with_values(source: Series, values: np.ndarray) -> Series:
    largest = float(np.abs(values).max())
    if not largest <= LARGEST:
        raise InputError(source.source, f"gives {largest:g} W, more than {LARGEST:g} W", "correct its keys")
    return source.of(tuple(values.tolist()), POWER_W, "W", source.source)


def is_envelope(text: str) -> bool:
    """Return whether `text` describes an envelope, not the name of a file."""
    return not exists(text) and any(has_kind(part, KINDS) for part in _PLUS.split(text.strip()))


def parse_envelope(text: str, base: Path | None = None) -> EnvelopeSpec | None:
    """Parse the envelope of `text`; return None for the name of a file. See docs/reference/signals.md.

    Paths are relative to the folder `base` (None: the current one). Raises InputError.
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
        term = KINDS[spec.kind](spec)
        if isinstance(term, Buffer):
            buffers.append(term)
        else:
            terms.append(term)
    if len(buffers) > 1 or not terms:
        problem = "has several batteries" if terms else "has a battery without a source of power"
        raise InputError(f"{_WHERE} {text!r}", problem, "give one battery and at least one source of power")
    return EnvelopeSpec(tuple(terms), buffers[0] if buffers else None, text=" + ".join(texts))


_CONSTANT = keys_of(Constant)
_METERED = keys_of(Metered, "file")
_BATTERY = keys_of(Battery)
_BUFFER = {"demand_w": "demand_w", "window_h": "window_s", "step": "step_s"}


def _constant(spec: ParsedSpec) -> Constant:
    spec.expect(_CONSTANT)
    if spec.first is not None:
        if spec.values:
            raise InputError(spec.where, "has two powers", "give one")
        spec.values["power_w"] = spec.first
    if "power_w" not in spec.values:
        raise InputError(spec.where, "no power is given", "write for instance constant:20000, in W")
    return spec.build(Constant, _CONSTANT)


def _metered(spec: ParsedSpec) -> Metered:
    spec.expect(_METERED, FILE_KEYS)
    return spec.build(Metered, _METERED, file=spec.signal_file("power", ratios="peak_w" in spec.values))


def _share(spec: ParsedSpec) -> Share:
    capacity = CAPACITIES[spec.kind](spec)
    if capacity.full is not None:
        raise InputError(spec.where, "full= is for machines", "leave it out, fractions are of the power of all")
    return Share(capacity)


def _buffer(spec: ParsedSpec) -> Buffer:
    spec.expect(_BATTERY, _BUFFER)
    if spec.first is not None:
        raise InputError(spec.where, f"{spec.first!r} is not key=value", "write for instance battery:capacity_kwh=40")
    if "capacity_kwh" not in spec.values:
        raise InputError(spec.where, "no capacity is given", "give capacity_kwh=")
    if "demand_w" in spec.values and "window_h" in spec.values:
        raise InputError(
            spec.where, "has both demand_w and window_h", "give a demand to meet, or a window to smooth over"
        )
    return spec.build(Buffer, _BUFFER, battery=spec.build(Battery, _BATTERY))


KINDS: dict[str, Callable[[ParsedSpec], Term | Buffer]] = {
    "power": _metered,
    "constant": _constant,
    **dict.fromkeys(("carbon", "price", "stranded", "walk", "uniform"), _share),
    "battery": _buffer,
}
"""Kind, before the colon -> builder of a part of an envelope."""
