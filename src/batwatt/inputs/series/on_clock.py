"""Series by date on the clock of a run, which use the value of each date at that date."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import replace

from batwatt.errors import InputError, remark
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.series import DateSource, Series
from batwatt.model.signal import Clock, date_text, parse_date_s
from batwatt.units import DAY_S

_log = logging.getLogger(__name__)


def read_on_clock(file: SignalFile) -> Series:
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
        told: DateSource = "" if file.begin is None else "from"
        return _moved(signal, clock, told, file.repeats, file.path)
    whole = read_signal(replace(plain, days=None))
    moved = _moved(whole, clock, "", False, whole.source)
    return read_signal(replace(plain, begin=clock.date)) if parse_date_s(signal.begin) <= clock.date_s else moved


def on_clock(series: Series, clock: Clock | None) -> Series:
    """Return a series from 0 s of the run on, if both have dates. Raises InputError as `read_on_clock` does."""
    if clock is None or not series.begin or series.begin == clock.date:
        return series
    periodic = series.loop == 0 and series.times_s[0] == 0.0
    ends_s = series.end_s if periodic or not series.repeats else math.inf
    offset_s = _offset_s(series.begin, (series.times_s[0], ends_s), clock, series.told, periodic, series.source)
    return replace(series.since(offset_s) if offset_s else series, begin=clock.date, told="")


def _moved(signal: Series, clock: Clock, told: DateSource, repeats: bool, source: object) -> Series:
    """Move a signal with a date to 0 s of a run. Raises InputError."""
    offset_s = _offset_s(signal.begin, (0.0, signal.end_s), clock, told, repeats, source)
    return replace(signal.turned(offset_s) if repeats else signal.since(offset_s), begin=clock.date)


def _offset_s(
    begin: str, rows_s: tuple[float, float], clock: Clock, told: DateSource, periodic: bool, source: object
) -> float:
    """Return the time in s of 0 s of a run in a series of rows from and to some times. Raises InputError.

    A periodic series extends before its first row, too, and begins at 0 s.
    """
    begin_s = parse_date_s(begin)
    offset_s = clock.date_s - begin_s
    if told == "from":
        if offset_s:
            remark(_log, "%s", f"{source}: its {begin} stands for {clock.date}, which is 0 s")
        return 0.0
    if told == "text":
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
    if told == "days":
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


def common_date(series: Iterable[SignalFile | Series]) -> tuple[float, str] | None:
    """Return the date of 0 s of series by date, and its source: the first `from`, else the latest first row."""
    dates: list[tuple[float, str]] = []
    for one in series:
        if isinstance(one, SignalFile):
            from batwatt.inputs.series.signal_csv import read_signal

            begin, is_told, source = read_signal(one.on(None)).begin, one.begin is not None, str(one.path)
        else:
            begin, is_told, source = one.begin, one.told == "from", one.source
        if begin and is_told:
            return parse_date_s(begin), f"from= of {source}"
        if begin:
            dates.append((parse_date_s(begin), f"the first row of {source}"))
    return max(dates, key=lambda date: date[0], default=None)
