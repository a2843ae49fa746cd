"""Capacities specified by one text, as in `walk:range=0.6,mean=0.7,seed=1` or `carbon:FILE,budget=0.7,days=30`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from batwatt.checks import Between, Parameters, shown
from batwatt.errors import InputError
from batwatt.inputs.series.energy_budget import EnergyBudget, Stranded
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.parsed_spec import FILE_KEYS, Keys, ParsedSpec, has_kind, keys_of
from batwatt.inputs.series.signal_file import SignalFile, Wanted
from batwatt.inputs.series.variation import Seconds, Variation, vary
from batwatt.model.series import FRACTION, MACHINES, Series
from batwatt.model.signal import UNSTATED, Clock

_WHERE = "capacity"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Varied(Parameters, where=_WHERE):
    """A capacity that varies at random, over [0, `end_s`[ (None: over the requested time)."""

    variation: Variation
    end_s: Seconds = None

    def fractions(self, end_s: float, full: int) -> Series:
        """Return the series of `vary`."""
        end_s = self.end_s or end_s
        series = vary(self.variation, end_s)
        return replace(series, loop=None, period_s=max(end_s, series.times_s[-1] + self.variation.period_s))


@dataclass(frozen=True)
class UnderBudget:
    """A capacity that follows from a signal: a constant budget of carbon or money, or stranded power."""

    file: SignalFile
    rule: EnergyBudget | Stranded

    def fractions(self, end_s: float, full: int) -> Series:
        """Return the capacity of the rule."""
        signal = self.signal()
        return self.rule.capacity(signal)

    def signal(self) -> Series:
        """Return the signal of the file."""
        return read_on_clock(self.file)


@dataclass(frozen=True)
class Traced:
    """A capacity in a file: machines in a column `machines`, or fractions in any other."""

    file: SignalFile

    def fractions(self, end_s: float, full: int) -> Series:
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
class CapacitySpec(Parameters, where=_WHERE):
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

    def fractions(self, end_s: float, machines: int = 1) -> Series:
        """Return the capacity as fractions of `full`, or else `machines`. Raises InputError.

        One that varies at random ends at `end_s`, unless its text says when.
        """
        return self.unrepeated(end_s, machines).lasting(self.repeat)

    def unrepeated(self, end_s: float, machines: int = 1) -> Series:
        """Return the series over the length of the source. Raises InputError with the text."""
        try:
            return self.source.fractions(end_s, self.full or machines)
        except InputError as error:
            before, mark, problem = str(error).partition(f"{_WHERE}: ")
            if before or not mark:
                raise
            raise InputError(self.text or _WHERE, problem) from None

    def series(self, machines: int, end_s: float) -> Series:
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
            raise InputError(self.text or _WHERE, problem, hint)
        source = self.text or fractions.source
        return fractions.of(tuple(values.tolist()), MACHINES, MACHINES, source)

    def signal(self) -> Series | None:
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
    return has_kind(text, KINDS)


def parse_capacity(text: str, base: Path | None = None) -> CapacitySpec | None:
    """Parse the capacity of `text`; return None for the name of a file. See docs/reference/signals.md.

    Paths are relative to the folder `base` (None: the current one). Raises InputError.
    """
    if not is_spec(text):
        return None
    spec = ParsedSpec(text, base, KINDS, _WHERE, "docs/reference/signals.md")
    return KINDS[spec.kind](spec)


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


KINDS: dict[str, Callable[[ParsedSpec], CapacitySpec]] = {
    "walk": partial(_varied, keys=keys_of(Variation, "structure")),
    "uniform": partial(_varied, keys=keys_of(Variation, "structure", "step")),
    "constant": partial(_varied, keys={"mean": "mean"}),
    "carbon": partial(_bought, rule=EnergyBudget, wanted="carbon"),
    "price": partial(_bought, rule=EnergyBudget, wanted="price"),
    "stranded": partial(_bought, rule=Stranded, wanted=None),
    "trace": _traced,
}
"""Kind, before the colon -> builder of a capacity."""
