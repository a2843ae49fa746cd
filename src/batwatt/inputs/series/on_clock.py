"""Series by date on the clock of a run, which use the value of each date at that date."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from batwatt.errors import InputError
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.clock import Clock, date_s_of, date_text
from batwatt.model.series import Series, Told
from batwatt.model.signal import Signal
from batwatt.model.signal_integral import SignalIntegral
from batwatt.remarks import remark
from batwatt.units import DAY_S

_log = logging.getLogger(__name__)


def read_on_clock(file: SignalFile) -> Signal:
    """Read the signal of a file from 0 s of the run on, by `file.run_clock`, if both have dates.

    `from` sets the date of 0 s for any clock, with a line in the log. A repeated signal extends before its first row,
    too; before the first row of others, that one holds. Raises InputError if no row is of the time of the jobs.
    """
    # imported here, so that pandas loads only for files by date
    from batwatt.inputs.series.signal_csv import read_signal

    clock, plain = file.run_clock, file.on(None)
    signal = read_signal(plain)
    if clock is None or not signal.begin:
        return signal
    if file.begin is not None or file.repeats or file.days is None:
        told: Told = "" if file.begin is None else "from"
        return _moved(signal, clock, told, file.repeats, file.path)
    begin_s = date_s_of(signal.begin)
    moved = _since(read_signal(replace(plain, days=None)), clock)
    return read_signal(replace(plain, begin=clock.date)) if begin_s <= clock.date_s else moved


def on_clock(integral: SignalIntegral, clock: Clock | None) -> SignalIntegral:
    """Return a signal from 0 s of the run on, if both have dates. Raises InputError as `read_on_clock` does."""
    if clock is None or not integral.begin or integral.begin == clock.date:
        return integral
    moved = _moved(integral.signal, clock, integral.told, integral.repeat, integral.source)
    return replace(SignalIntegral.of(moved, repeat=integral.repeat), source=integral.source)


def series_on_clock(series: Series, clock: Clock | None) -> Series:
    """Return a series on the clock of a run."""
    if clock is None or not series.begin or series.begin == clock.date:
        return series
    signal = _moved(Signal(series, series.end_s, series.begin), clock, series.told, series.loop == 0, series.source)
    lasts_s = series.last_step_s if series.loop == -1 else signal.end_s
    return replace(signal.series, begin=signal.begin, told="", period_s=lasts_s)


def _moved(signal: Signal, clock: Clock, told: Told, repeats: bool, source: object) -> Signal:
    """Move a signal with a date to 0 s of a run. Raises InputError."""
    begin_s = date_s_of(signal.begin)
    if told == "from":
        if begin_s != clock.date_s:
            remark(_log, "%s", f"{source}: its {signal.begin} stands for {clock.date}, which is 0 s")
        return replace(signal, begin=clock.date)
    if told == "text":
        problem = f"was read from {signal.begin} on, and 0 s of the run is {clock.date}"
        raise InputError(source, problem, "give the text itself to the run, as envelope=")
    if repeats:
        whole = signal.end_s % DAY_S == 0.0
        if not (whole and begin_s <= clock.date_s + clock.first_s and clock.date_s <= begin_s + signal.end_s):
            at_s = begin_s + (clock.date_s - begin_s) % signal.end_s
            length = f"repeats every {signal.end_s / DAY_S:.6g} days"
            length += "" if whole else ", which moves its time of day: give to= or days="
            remark(_log, "%s", f"{source}: its {date_text(at_s)} stands for {clock.date}, which is 0 s; it {length}")
        return signal.turned(_offset_s(signal, clock))
    if told == "days":
        problem = f"was read with days= from {signal.begin} on, and 0 s of the run is {clock.date}"
        raise InputError(source, problem, "give the text itself to the run, say its begin, too, or leave out days=")
    return _since(signal, clock)


def _offset_s(signal: Signal, clock: Clock) -> float:
    return clock.date_s - date_s_of(signal.begin)


def _since(signal: Signal, clock: Clock) -> Signal:
    begin_s = date_s_of(signal.begin)
    lines_up(begin_s, begin_s + signal.end_s, clock, signal.series.source)
    return signal.since(_offset_s(signal, clock))


def lines_up(begin_s: float, end_s: float, clock: Clock, source: object) -> None:
    """Warn of submissions outside of the rows of a series over [begin, end[; raise InputError if all are outside."""
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


def common_date(series: Iterable[SignalFile | SignalIntegral | Series]) -> tuple[float, str] | None:
    """Return the date of 0 s of series by date, and its source: the first `from`, else the latest first row."""
    dates: list[tuple[float, str]] = []
    for one in series:
        if isinstance(one, SignalFile):
            from batwatt.inputs.series.signal_csv import read_signal

            begin, is_told, source = read_signal(one.on(None)).begin, one.begin is not None, str(one.path)
        else:
            begin, is_told, source = one.begin, one.told == "from", one.source
        if begin and is_told:
            return date_s_of(begin), f"from= of {source}"
        if begin:
            dates.append((date_s_of(begin), f"the first row of {source}"))
    return max(dates, key=lambda date: date[0], default=None)
