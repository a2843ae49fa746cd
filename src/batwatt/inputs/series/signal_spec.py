"""Carbon and price signals specified by one text: a file, then keys, as in `nl.csv,from=2024-07-01,repeat=yes`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from batwatt.checks import Parameters
from batwatt.errors import InputError
from batwatt.inputs.series.on_clock import on_clock, read_on_clock
from batwatt.inputs.series.parsed_spec import FILE_KEYS, ParsedSpec, keys_of
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.series import DateSource, Series
from batwatt.model.signal import Clock, date_text, parse_date_s
from batwatt.units import HOUR_S, REPORTED_S

SignalKind = Literal["carbon", "price"]
"""Kind of a signal, in g/kWh or in money per kWh."""
_DOCS = "docs/reference/signals.md"


@dataclass(frozen=True)
class SignalSpec(Parameters, where="signal"):
    """A signal before it is read, from 0 s on; `repeat`: it repeats after its end."""

    file: SignalFile
    repeat: bool = False
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text or str(self.file.path)

    def on(self, clock: Clock | None) -> SignalSpec:
        """Return the signal on the clock of a run."""
        return replace(self, file=self.file.on(clock, repeats=self.repeat))

    def signal_files(self) -> tuple[SignalFile, ...]:
        """Return the file of the signal."""
        return (self.file,)

    def read(self) -> Series:
        """Read the signal. Raises InputError."""
        told: DateSource = "from" if self.file.begin is not None else "days" if self.file.days is not None else ""
        return replace(read_on_clock(self.file).lasting(self.repeat), told=told)


_KEYS = keys_of(SignalSpec, "file", "text")


def parse_signal(kind: SignalKind | None, text: str | Path, base: Path | None = None) -> SignalSpec:
    """Parse the signal of a text, whose path is relative to `base` (None: the current folder). Raises InputError.

    Without a kind, any kind and unit that its file states are accepted.
    """
    noun = kind or "signal"
    where = f"{noun} {str(text)!r}"
    if not str(text).strip():
        raise InputError(where, "names no file", "write FILE, then keys if needed, as in nl.csv,days=30")
    spec = ParsedSpec(f"{noun}:{text}", base, (noun,), noun, _DOCS)
    spec.where = where
    spec.expect(_KEYS, FILE_KEYS)
    return spec.build(SignalSpec, _KEYS, file=spec.signal_file(kind or "any"), text=str(text))


def covering(kind: SignalKind, signal: str | Series, clock: Clock) -> Series:
    """Return a signal on a clock. Raises InputError if hours from `first_s` to `end_s` of the clock are missing."""
    plain = signal if isinstance(signal, Series) else parse_signal(kind, signal).read()
    if not plain.begin:
        raise InputError(plain.source, "has no dates, and the jobs have", "give it dates, as in 2024-07-01T13:00Z")
    first_s = 0.0 if plain.told == "from" else parse_date_s(plain.begin) - clock.date_s
    first_s = max(first_s, 0.0) if plain.told == "days" else first_s
    gaps = [(clock.first_s, min(first_s, clock.end_s)), (max(first_s + plain.end_s, clock.first_s), clock.end_s)]
    lacking = [
        f"{date_text(clock.date_s + low_s)} to {date_text(clock.date_s + high_s)} ({(high_s - low_s) / HOUR_S:.6g} h)"
        for low_s, high_s in gaps
        if high_s > low_s + REPORTED_S and plain.loop is None
    ]
    if lacking:
        problem = f"has no values for hours of the account: {', '.join(lacking)}"
        raise InputError(plain.source, problem, "give a longer file, from=, repeat=yes, or --since and --until")
    if isinstance(signal, Series):
        return on_clock(signal, clock)
    return parse_signal(kind, signal).on(clock).read()
