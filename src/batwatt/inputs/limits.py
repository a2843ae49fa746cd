"""Capacities and envelopes specified by one text, as in `walk:range=0.6` or `power:sun.csv + battery:...`."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from batwatt.checks import Between, Parameters, shown
from batwatt.errors import InputError, remark
from batwatt.inputs.character import EnergyBudget, Seconds, Stranded, Variation, vary
from batwatt.inputs.series import common_date, read_on_clock
from batwatt.inputs.spec import FILE_KEYS, Keys, ParsedSpec, SignalFile, Wanted, exists, has_kind, keys_of
from batwatt.model.battery import Battery, Dispatch, greedy, smoothing
from batwatt.model.signal import POWER_W, UNSTATED, Clock
from batwatt.model.timeline import FRACTION, LARGEST, MACHINES, Timeline, combined
from batwatt.units import DAY_S

_CAPACITY = "capacity"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Varied(Parameters, where=_CAPACITY):
    """A capacity that varies at random, over [0, `end_s`[ (None: over the requested time)."""

    variation: Variation
    end_s: Seconds = None

    def fractions(self, end_s: float, full: int) -> Timeline:
        """Return the series of `vary`."""
        end_s = self.end_s or end_s
        series = vary(self.variation, end_s)
        return replace(series, loop=None, period_s=max(end_s, series.times_s[-1] + self.variation.period_s))


@dataclass(frozen=True)
class UnderBudget:
    """A capacity that follows from a signal: a constant budget of carbon or money, or stranded power."""

    file: SignalFile
    rule: EnergyBudget | Stranded

    def fractions(self, end_s: float, full: int) -> Timeline:
        """Return the capacity of the rule."""
        signal = self.signal()
        return self.rule.capacity(signal)

    def signal(self) -> Timeline:
        """Return the signal of the file."""
        return read_on_clock(self.file)


@dataclass(frozen=True)
class Traced:
    """A capacity in a file: machines in a column `machines`, or fractions in any other."""

    file: SignalFile

    def fractions(self, end_s: float, full: int) -> Timeline:
        """Return the column as fractions. Raises InputError."""
        signal = read_on_clock(replace(self.file, wanted="any"))
        if signal.unit not in (UNSTATED, FRACTION):
            problem = f"column {signal.name!r} is in {signal.unit}, not machines or fractions of them"
            raise InputError(self.file.path, problem, "name another with column=")
        if not min(signal.values) >= 0.0:
            problem = f"a capacity must be >= 0, got {min(signal.values):g}"
            raise InputError(self.file.path, problem, "correct the value")
        if signal.name != MACHINES:
            return signal
        values = tuple(value / full for value in signal.values)
        return replace(signal, values=values, name=FRACTION, unit=FRACTION)


Source = Varied | UnderBudget | Traced
"""Source of a capacity: fractions of some machines over a time, or over the length of a file."""


@dataclass(frozen=True)
class CapacitySpec(Parameters, where=_CAPACITY):
    """A capacity before its number of machines and its length are known.

    A fraction of 1 corresponds to `full` machines (None: all). After its end the last value holds, or with `repeat` the
    capacity repeats.
    """

    source: Source
    full: Annotated[int | None, Between(1)] = None
    repeat: bool = False
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text

    def fractions(self, end_s: float, machines: int = 1) -> Timeline:
        """Return the capacity as fractions of `full`, or else `machines`. Raises InputError.

        One that varies at random ends at `end_s`, unless its text says when.
        """
        return self.unrepeated(end_s, machines).lasting(self.repeat)

    def unrepeated(self, end_s: float, machines: int = 1) -> Timeline:
        """Return the series over the length of the source. Raises InputError with the text."""
        try:
            return self.source.fractions(end_s, self.full or machines)
        except InputError as error:
            before, mark, problem = str(error).partition(f"{_CAPACITY}: ")
            if before or not mark:
                raise
            raise InputError(self.text or _CAPACITY, problem) from None

    def series(self, machines: int, end_s: float) -> Timeline:
        """Return the machines alive out of `machines`: floor(fraction x full); `end_s` as for `fractions`.

        Raises InputError.
        """
        full = self.full or machines
        fractions = self.fractions(end_s, machines)
        values = np.floor(np.asarray(fractions.values) * full + _ROUNDING)
        if not values.max() <= machines:
            problem = f"requires {values.max():g} machines of {machines}"
            hint = (
                "give more machines and full=N, the machines that fraction 1 stands for; or a smaller range or headroom"
            )
            raise InputError(self.text or _CAPACITY, problem, hint)
        source = self.text or fractions.source
        return fractions.of(tuple(values.tolist()), MACHINES, MACHINES, source)

    def signal(self) -> Timeline | None:
        """Return the price or carbon signal of the power of this capacity, or None."""
        return self.source.signal() if isinstance(self.source, UnderBudget) else None

    def on(self, clock: Clock | None) -> CapacitySpec:
        """Return the capacity on the clock of a run."""
        source = self.source
        if isinstance(source, Varied):
            return self
        return replace(self, source=replace(source, file=source.file.on(clock, repeats=self.repeat)))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the files of signals that the capacity reads."""
        return () if isinstance(self.source, Varied) else (self.source.file,)

    def files(self) -> tuple[Path, ...]:
        """Return the paths of the files that the capacity reads."""
        return tuple(file.path for file in self.signal_files())


def is_spec(text: str) -> bool:
    """Return whether `text` describes a capacity, not the name of a file."""
    return has_kind(text, CAPACITY_KINDS)


def parse_capacity(text: str, base: Path | None = None) -> CapacitySpec | None:
    """Parse the capacity of `text`; return None for the name of a file. See docs/reference/signals.md.

    Paths are relative to the folder `base` (None: the current one). Raises InputError.
    """
    if not is_spec(text):
        return None
    spec = ParsedSpec(text, base, CAPACITY_KINDS, _CAPACITY, "docs/reference/signals.md")
    return CAPACITY_KINDS[spec.kind](spec)


_WHOLE = keys_of(CapacitySpec, "source", "text")
_END = keys_of(Varied, "variation")


def _spec(spec: ParsedSpec, source: Source) -> CapacitySpec:
    return spec.build(CapacitySpec, _WHOLE, source=source, text=spec.text(spec.file))


def _varied(spec: ParsedSpec, keys: Keys) -> CapacitySpec:
    spec.expect(keys, _END, _WHOLE)
    if spec.file is not None:
        raise InputError(spec.where, f"{shown(str(spec.file))} is not key=value", f"keys are {', '.join(keys)}")
    variation = spec.build(Variation, keys, structure=spec.kind)
    return _spec(spec, spec.build(Varied, _END, variation=variation))


def _bought(spec: ParsedSpec, rule: type[EnergyBudget | Stranded], wanted: Wanted | None) -> CapacitySpec:
    keys = keys_of(rule)
    spec.expect(keys, FILE_KEYS, _WHOLE)
    if rule is Stranded and "threshold" not in spec.values:
        raise InputError(spec.where, "no threshold is given", "give one in the signal's unit, as in threshold=0")
    # a budget is shares of the mean, unless it has a reference
    file = spec.signal_file(wanted, ratios=wanted is not None and "reference" not in spec.values)
    return _spec(spec, UnderBudget(file, spec.build(rule, keys)))


def _traced(spec: ParsedSpec) -> CapacitySpec:
    spec.expect(FILE_KEYS, _WHOLE)
    return _spec(spec, Traced(spec.signal_file()))


CAPACITY_KINDS: dict[str, Callable[[ParsedSpec], CapacitySpec]] = {
    "walk": partial(_varied, keys=keys_of(Variation, "structure")),
    "uniform": partial(_varied, keys=keys_of(Variation, "structure", "step")),
    "constant": partial(_varied, keys={"mean": "mean"}),
    "carbon": partial(_bought, rule=EnergyBudget, wanted="carbon"),
    "price": partial(_bought, rule=EnergyBudget, wanted="price"),
    "stranded": partial(_bought, rule=Stranded, wanted=None),
    "trace": _traced,
}
"""Kind, before the colon -> builder of a capacity."""


_ENVELOPE = "envelope"
_DOCS = "docs/reference/signals.md"
_PLUS = re.compile(r"\s\+\s")
_log = logging.getLogger(__name__)

Watts = Annotated[float, Between(0.0, unit="W")]


class Term(ABC):
    """A part of an envelope."""

    @abstractmethod
    def watts(self, end_s: float, full_w: float | None) -> Timeline:
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
class Constant(Parameters, Term, where=_ENVELOPE):
    """A constant power."""

    power_w: Watts

    def watts(self, end_s: float, full_w: float | None) -> Timeline:
        """Return the constant power in W."""
        return Timeline((0.0,), (self.power_w,), name=POWER_W, unit="W")


@dataclass(frozen=True)
class Metered(Parameters, Term, where=_ENVELOPE):
    """A power of `base_w` + `scale` x the power in a file.

    `peak_w` is the power of fraction 1; watts are scaled so that the maximum of the whole column is `peak_w`.
    """

    file: SignalFile
    peak_w: Annotated[float | None, Between(0.0, unit="W")] = None
    scale: Annotated[float, Between(0.0)] = 1.0
    base_w: Annotated[float, Between(-1e12, 1e12)] = 0.0
    repeat: bool = False

    def watts(self, end_s: float, full_w: float | None) -> Timeline:
        """Return the column in W."""
        from batwatt.inputs.signal import largest_in

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

    def watts(self, end_s: float, full_w: float | None) -> Timeline:
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
class Buffer(Parameters, where=_ENVELOPE):
    """A battery and its dispatch: greedy for a demand in W if there is one, else smoothing over a window."""

    battery: Battery
    demand_w: Annotated[float | None, Between(0.0, unit="W")] = None
    window_s: Annotated[float, Between(0.0, ends="][", unit="s")] = DAY_S
    step_s: Annotated[float, Between(0.0, ends="][", unit="s")] = 900.0

    def dispatch(self, supply: Timeline, end_s: float) -> Dispatch:
        """Return the dispatch for a supply over [0, `end_s`[. Raises InputError."""
        supply = supply.upto(end_s)
        if self.demand_w is None:
            return smoothing(supply, self.window_s, self.battery, end_s, self.step_s)
        demand = Timeline((0.0,), (self.demand_w,), name="demand_w")
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

    def series(self, end_s: float, full_w: float | None = None) -> Timeline:
        """Return the power in W; `full_w` is that of the whole machine. Raises InputError.

        What varies at random, and a battery, ends at `end_s`.
        """
        if self.buffer is None:
            return self.supply(end_s, full_w)
        return replace(self.dispatch(end_s, full_w).envelope(POWER_W, self.text), loop=None, period_s=end_s)

    def parts(self, end_s: float, full_w: float | None = None) -> list[Timeline]:
        """Return the terms in W. Raises InputError."""
        with _errors_with_text(self.text):
            return [term.watts(end_s, full_w) for term in self._of_one_clock()]

    def dispatch(self, end_s: float, full_w: float | None = None) -> Dispatch:
        """Return the dispatch of the battery, whose envelope is `series`. Raises InputError, also without a battery."""
        if self.buffer is None:
            raise InputError(self.text or _ENVELOPE, "has no battery", "add for instance + battery:capacity_kwh=40")
        supply = self.supply(end_s, full_w)
        with _errors_with_text(self.text):
            return self.buffer.dispatch(supply, end_s)

    def supply(self, end_s: float, full_w: float | None = None) -> Timeline:
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
        if not text or where not in (_ENVELOPE, Battery.WHERE, CapacitySpec.WHERE):
            raise
        raise InputError(text, problem) from None


def _with_values(source: Timeline, values: np.ndarray) -> Timeline:
    largest = float(np.abs(values).max())
    if not largest <= LARGEST:
        raise InputError(source.source, f"gives {largest:g} W, more than {LARGEST:g} W", "correct its keys")
    return source.of(tuple(values.tolist()), POWER_W, "W", source.source)


def is_envelope(text: str) -> bool:
    """Return whether `text` describes an envelope, not the name of a file."""
    return not exists(text) and any(has_kind(part, ENVELOPE_KINDS) for part in _PLUS.split(text.strip()))


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
        if not has_kind(part, ENVELOPE_KINDS):
            raise InputError(
                f"{_ENVELOPE} {text!r}", f"{part!r} has no kind", f"begin it with {':, '.join(ENVELOPE_KINDS)}:"
            )
        spec = ParsedSpec(part, base, ENVELOPE_KINDS, _ENVELOPE, _DOCS)
        texts.append(spec.text(spec.first if spec.kind == "constant" else spec.file))
        term = ENVELOPE_KINDS[spec.kind](spec)
        if isinstance(term, Buffer):
            buffers.append(term)
        else:
            terms.append(term)
    if len(buffers) > 1 or not terms:
        problem = "has several batteries" if terms else "has a battery without a source of power"
        raise InputError(f"{_ENVELOPE} {text!r}", problem, "give one battery and at least one source of power")
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
    capacity = CAPACITY_KINDS[spec.kind](spec)
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


ENVELOPE_KINDS: dict[str, Callable[[ParsedSpec], Term | Buffer]] = {
    "power": _metered,
    "constant": _constant,
    **dict.fromkeys(("carbon", "price", "stranded", "walk", "uniform"), _share),
    "battery": _buffer,
}
"""Kind, before the colon -> builder of a part of an envelope."""
