"""Carbon and price signals, and all series by date, on the clock of a run."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from batwatt.checks import Parameters, finite
from batwatt.errors import InputError, remark
from batwatt.inputs.spec import FILE_KEYS, ParsedSpec, SignalFile, keys_of
from batwatt.model.signal import Clock, date_text, parse_date_s
from batwatt.model.timeline import DateSource, Timeline
from batwatt.units import DAY_S, HOUR_S, REPORTED_S

_log = logging.getLogger(__name__)


def read_on_clock(file: SignalFile) -> Timeline:
    """Read the signal of a file from 0 s of the run on, by `file.run_clock`, if both have dates.

    `from` sets the date of 0 s for any clock, with a line in the log. A repeated signal extends before its first row,
    too; before the first row of others, that one holds. Raises InputError if no row is of the time of the jobs.
    """
    # imported here, so that pandas loads only for files by date
    from batwatt.inputs.signal import read_signal

    clock, plain = file.run_clock, file.on(None)
    signal = read_signal(plain)
    if clock is None or not signal.begin:
        return signal
    if file.begin is not None or file.repeats or file.days is None:
        date_source: DateSource = "" if file.begin is None else "from"
        return _moved(signal, clock, date_source, file.repeats, file.path)
    whole = read_signal(replace(plain, days=None))
    moved = _moved(whole, clock, "", False, whole.source)
    return read_signal(replace(plain, begin=clock.date)) if parse_date_s(signal.begin) <= clock.date_s else moved


def on_clock(series: Timeline, clock: Clock | None) -> Timeline:
    """Return a series from 0 s of the run on, if both have dates. Raises InputError as `read_on_clock` does."""
    if clock is None or not series.begin or series.begin == clock.date:
        return series
    periodic = series.loop == 0 and series.times_s[0] == 0.0
    ends_s = series.end_s if periodic or not series.repeats else math.inf
    offset_s = _offset_s(series.begin, (series.times_s[0], ends_s), clock, series.date_source, periodic, series.source)
    return replace(series.since(offset_s) if offset_s else series, begin=clock.date, date_source="")


def _moved(signal: Timeline, clock: Clock, date_source: DateSource, repeats: bool, source: object) -> Timeline:
    """Move a signal with a date to 0 s of a run. Raises InputError."""
    offset_s = _offset_s(signal.begin, (0.0, signal.end_s), clock, date_source, repeats, source)
    return replace(signal.turned(offset_s) if repeats else signal.since(offset_s), begin=clock.date)


def _offset_s(
    begin: str, rows_s: tuple[float, float], clock: Clock, date_source: DateSource, periodic: bool, source: object
) -> float:
    """Return the time in s of 0 s of a run in a series of rows from and to some times. Raises InputError.

    A periodic series extends before its first row, too, and begins at 0 s.
    """
    begin_s = parse_date_s(begin)
    offset_s = clock.date_s - begin_s
    if date_source == "from":
        if offset_s:
            remark(_log, "%s", f"{source}: its {begin} stands for {clock.date}, which is 0 s")
        return 0.0
    if date_source == "text":
        problem = f"was read from {begin} on, and 0 s of the run is {clock.date}"
        raise InputError(source, problem, "give the text itself to the run, as envelope=")
    first_s, end_s = rows_s
    if periodic:
        whole = end_s % DAY_S == 0.0
        if not (whole and begin_s <= clock.date_s + clock.first_s and offset_s <= end_s):
            length = f"repeats every {end_s / DAY_S:.6g} days"
            length += "" if whole else ", which moves its time of day: give to= or days="
            at = date_text(begin_s + offset_s % end_s)
            remark(_log, "%s", f"{source}: its {at} stands for {clock.date}, which is 0 s; it {length}")
        return offset_s % end_s
    if date_source == "days":
        problem = f"was read with days= from {begin} on, and 0 s of the run is {clock.date}"
        raise InputError(source, problem, "give the text itself to the run, say its begin, too, or leave out days=")
    lines_up(begin_s + first_s, begin_s + end_s, clock, source)
    return offset_s


def lines_up(begin_s: float, end_s: float, clock: Clock, source: object) -> None:
    """Warn of submissions outside of the rows of a series over [begin, end[; raise InputError if all are outside."""
    first_s, last_s = clock.date_s + clock.first_s, clock.date_s + clock.last_s
    rows = f"its rows go from {date_text(begin_s)}" + (f" to {date_text(end_s)}" if end_s < math.inf else " on")
    if begin_s >= clock.date_s + clock.end_s or end_s <= first_s:
        problem = f"{rows}, jobs are submitted from {clock.span()}"
        hint = "say which of its dates is 0 s (from=), that it repeats (repeat=yes), or the date of 0 s (--begin)"
        raise InputError(source, problem, hint)
    if begin_s > first_s or end_s <= last_s:
        held = "the first" if begin_s > first_s else "the last"
        held = "the first and the last" if begin_s > first_s and end_s <= last_s else held
        problem = f"jobs are submitted from {clock.span()}: {held} holds where there is none"
        remark(_log, "%s", f"{source}: {rows}, {problem}")


def common_date(series: Iterable[SignalFile | Timeline]) -> tuple[float, str] | None:
    """Return the date of 0 s of series by date, and its source: the first `from`, else the latest first row."""
    dates: list[tuple[float, str]] = []
    for one in series:
        if isinstance(one, SignalFile):
            from batwatt.inputs.signal import read_signal

            begin, is_from, source = read_signal(one.on(None)).begin, one.begin is not None, str(one.path)
        else:
            begin, is_from, source = one.begin, one.date_source == "from", one.source
        if begin and is_from:
            return parse_date_s(begin), f"from= of {source}"
        if begin:
            dates.append((parse_date_s(begin), f"the first row of {source}"))
    return max(dates, key=lambda date: date[0], default=None)


def read_integral(file: SignalFile, until: float | str | None = None) -> Timeline:
    """Read the signal of a file from its `begin` until a date or a number of s later; all of it if it ends earlier.

    `days` and `end` of the file precede `until`. Gaps beyond the end do not matter. Raises InputError.
    """
    from batwatt.inputs.signal import read_signal

    if until is None:
        return read_on_clock(file)
    if file.days is not None or file.end is not None:
        return read_signal(file)
    try:
        part = replace(file, end=until) if isinstance(until, str) else replace(file, days=_days(until))
        return read_signal(part)
    except InputError:
        return read_signal(file)


def _days(until_s: float) -> float:
    """Return the days of some s, rounded up so that the conversion to s is not less than the next whole second."""
    whole_s = math.ceil(until_s) if math.isfinite(until_s) else until_s
    days = whole_s / DAY_S
    return days if days * DAY_S >= whole_s else math.nextafter(days, math.inf)


def offset_s(option: str, text: str, integral: Timeline, file: SignalFile) -> float:
    """Parse an option, a number of s or a date, to s from the signal's first row. Raises InputError."""
    from batwatt.inputs.signal import moment

    try:
        return finite(text)
    except ValueError:
        pass
    if not integral.begin:
        raise InputError(option, f"{text!r} is not a number of s", f"{integral.source} has no dates")
    dates = replace(file, path=Path(option))
    return moment(text, True, dates) - moment(integral.begin, True, dates)


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

    def read(self) -> Timeline:
        """Read the signal. Raises InputError."""
        date_source: DateSource = (
            "from" if self.file.begin is not None else "days" if self.file.days is not None else ""
        )
        return replace(read_on_clock(self.file).lasting(self.repeat), date_source=date_source)


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


def covering(kind: SignalKind, signal: str | Timeline, clock: Clock) -> Timeline:
    """Return a signal on a clock. Raises InputError if hours from `first_s` to `end_s` of the clock are missing."""
    plain = signal if isinstance(signal, Timeline) else parse_signal(kind, signal).read()
    if not plain.begin:
        raise InputError(plain.source, "has no dates, and the jobs have", "give it dates, as in 2024-07-01T13:00Z")
    first_s = 0.0 if plain.date_source == "from" else parse_date_s(plain.begin) - clock.date_s
    first_s = max(first_s, 0.0) if plain.date_source == "days" else first_s
    gaps = [(clock.first_s, min(first_s, clock.end_s)), (max(first_s + plain.end_s, clock.first_s), clock.end_s)]
    lacking = [
        f"{date_text(clock.date_s + low_s)} to {date_text(clock.date_s + high_s)} ({(high_s - low_s) / HOUR_S:.6g} h)"
        for low_s, high_s in gaps
        if high_s > low_s + REPORTED_S and plain.loop is None
    ]
    if lacking:
        problem = f"has no values for hours of the account: {', '.join(lacking)}"
        raise InputError(plain.source, problem, "give a longer file, from=, repeat=yes, or --since and --until")
    if isinstance(signal, Timeline):
        return on_clock(signal, clock)
    return parse_signal(kind, signal).on(clock).read()
