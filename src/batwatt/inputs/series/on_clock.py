"""Series by date on the clock of a run: what they say of a date is used at that date."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from batwatt.errors import InputError
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.clock import Clock, date_s_of, date_text
from batwatt.model.series import Series
from batwatt.model.signal import Signal
from batwatt.model.signal_integral import SignalIntegral
from batwatt.remarks import remark
from batwatt.units import DAY_S

_log = logging.getLogger(__name__)


def read_on_clock(file: SignalFile) -> Signal:
    """The signal of a file from 0 s of the run on, by `file.run_clock`, if both have dates.

    `from` says which date is 0 s whatever the clock; one line tells so. What repeats goes on before its first row, too.
    Before the first row that one holds. Raises InputError if no row is of the time of the jobs.
    """
    # pandas is loaded only where a file by date is read
    from batwatt.inputs.series.signal_csv import read_signal

    clock, plain = file.run_clock, file.on(None)
    found = read_signal(plain)
    if clock is None or not found.begin:
        return found
    begin_s = date_s_of(found.begin)
    if file.begin is not None:
        if begin_s != clock.date_s:
            remark(_log, "%s", f"{file.path}: its {found.begin} stands for {clock.date}, which is 0 s")
        return replace(found, begin=clock.date)
    if file.repeats:
        whole = found.end_s % DAY_S == 0.0
        if not (whole and begin_s <= clock.date_s + clock.first_s and clock.date_s <= begin_s + found.end_s):
            at_s = begin_s + (clock.date_s - begin_s) % found.end_s
            length = f"repeats every {found.end_s / DAY_S:.6g} days"
            length += "" if whole else ", which moves its time of day: give to= or days="
            remark(_log, "%s", f"{file.path}: its {date_text(at_s)} stands for {clock.date}, which is 0 s; it {length}")
        return found.turned(_offset_s(found, clock))
    if file.days is not None:
        found = read_signal(replace(plain, days=None))
    moved = _since(found, clock)
    return read_signal(replace(plain, begin=clock.date)) if file.days is not None and begin_s <= clock.date_s else moved


def on_clock(integral: SignalIntegral, clock: Clock | None) -> SignalIntegral:
    """The same signal from 0 s of the run on, if both have dates. Raises InputError as `read_on_clock` does."""
    if clock is None or not integral.begin or integral.begin == clock.date:
        return integral
    signal = Signal(integral.series, integral.end_s, integral.begin)
    moved = signal.turned(_offset_s(signal, clock)) if integral.repeat else _since(signal, clock)
    return replace(SignalIntegral.of(moved, repeat=integral.repeat), source=integral.source)


def series_on_clock(series: Series, clock: Clock | None) -> Series:
    """The same for a series, whose last value holds as long as the one before."""
    if clock is None or not series.begin or series.begin == clock.date:
        return series
    signal = Signal(series, series.times_s[-1] + series.last_step_s, series.begin)
    return replace(_since(signal, clock).series, begin=clock.date)


def _offset_s(signal: Signal, clock: Clock) -> float:
    return clock.date_s - date_s_of(signal.begin)


def _since(signal: Signal, clock: Clock) -> Signal:
    begin_s = date_s_of(signal.begin)
    lines_up(begin_s, begin_s + signal.end_s, clock, signal.series.source)
    return signal.since(_offset_s(signal, clock))


def lines_up(begin_s: float, end_s: float, clock: Clock, source: object) -> None:
    """Warn if jobs are submitted when a series over [begin, end[, by date, has no rows; InputError if it has none."""
    first_s, last_s = clock.date_s + clock.first_s, clock.date_s + clock.last_s
    rows = f"its rows go from {date_text(begin_s)} to {date_text(end_s)}"
    if begin_s >= clock.date_s + clock.end_s or end_s <= first_s:
        problem = f"{rows}, jobs are submitted from {clock.span()}"
        hint = "say which of its dates is 0 s (from=), that it repeats (repeat=yes), or the date of 0 s (--begin)"
        raise InputError(source, problem, hint)
    if begin_s > first_s or end_s <= last_s:
        held = "the first" if begin_s > first_s else "the last"
        held = "the first and the last" if begin_s > first_s and end_s <= last_s else held
        problem = f"jobs are submitted from {clock.span()}: {held} holds where there is none"
        remark(_log, "%s", f"{source}: {rows}, {problem}")


def common_date(files: Iterable[SignalFile]) -> tuple[float, str] | None:
    """The date that is 0 s of files by date, and whose it is: the first `from`, else the latest first row."""
    dates: list[tuple[float, str]] = []
    for file in files:
        from batwatt.inputs.series.signal_csv import read_signal

        begin = read_signal(file.on(None)).begin
        if begin and file.begin is not None:
            return date_s_of(begin), f"from= of {file.path}"
        if begin:
            dates.append((date_s_of(begin), f"the first row of {file.path}"))
    return max(dates, key=lambda date: date[0], default=None)
