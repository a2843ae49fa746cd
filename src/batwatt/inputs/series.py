"""Series by date on the clock of a run."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from batwatt.checks import finite
from batwatt.errors import InputError, argument, remark
from batwatt.inputs.signal import read_signal
from batwatt.inputs.source import SeriesSource
from batwatt.inputs.stamps import moment
from batwatt.model.signal import Clock
from batwatt.model.timeline import Timeline
from batwatt.units import DAY_S, HOUR_S, REPORTED_S, date_text

_log = logging.getLogger(__name__)


def read_on_clock(file: SeriesSource, clock: Clock | None = None, *, repeats: bool = False) -> Timeline:
    """Read the series of a file from 0 s of the run on, if the file and the run (`clock`) have dates.

    `from` sets the date of 0 s for any clock, with a line in the log. A series that `repeats` extends before its first
    row, too; before the first row of others, that one holds. Raises InputError if no row is of the time of the jobs.
    """
    series = read_signal(file)
    if file.begin is not None:
        series = replace(series, pinned=True)
    if clock is None or series.date_s is None:
        return series
    if file.days is None or series.pinned or repeats:
        return _moved(series, clock, repeats, file.path)
    moved = _moved(read_signal(replace(file, days=None)), clock, False, file.path)
    return read_signal(replace(file, begin=clock.date)) if series.date_s <= clock.date_s else moved


def on_clock(series: Timeline, clock: Clock | None) -> Timeline:
    """Return a series from 0 s of the run on, if both have dates. Raises InputError as `read_on_clock` does."""
    if clock is None or series.date_s in (None, clock.date_s):
        return series
    periodic = series.loop == 0 and series.times_s[0] == 0.0
    return _moved(series, clock, periodic, series.source)


def _moved(series: Timeline, clock: Clock, repeats: bool, source: object) -> Timeline:
    """Move a series with a date to 0 s of a run; one that `repeats` is periodic. Raises InputError."""
    date_s = series.date_s
    assert date_s is not None
    offset_s = clock.date_s - date_s
    if series.pinned:
        if offset_s:
            remark(_log, "%s", f"{source}: its {series.begin} stands for {clock.date}, which is 0 s")
        return replace(series, date_s=clock.date_s)
    if repeats:
        return replace(_turned(series, offset_s, clock, source), date_s=clock.date_s)
    end_s = math.inf if series.repeats else series.end_s
    lines_up(date_s + series.times_s[0], date_s + end_s, clock, source)
    return replace(series.since(offset_s) if offset_s else series, date_s=clock.date_s)


def _turned(series: Timeline, offset_s: float, clock: Clock, source: object) -> Timeline:
    """Rotate a periodic series so that `offset_s` is 0 s, with a line on days that stand for others."""
    end_s = series.end_s
    whole = end_s % DAY_S == 0.0
    if not (whole and -clock.first_s <= offset_s <= end_s):
        length = f"repeats every {end_s / DAY_S:.6g} days"
        length += "" if whole else ", which moves its time of day: give to= or days="
        at = date_text(clock.date_s - offset_s + offset_s % end_s)
        remark(_log, "%s", f"{source}: its {at} stands for {clock.date}, which is 0 s; it {length}")
    return series.turned(offset_s) if series.loop is None else series.since(offset_s % end_s)


def lines_up(begin_s: float, end_s: float, clock: Clock, source: object) -> None:
    """Warn of submissions outside of the rows of a series over [begin, end[; raise InputError if all are outside."""
    first_s, last_s = clock.date_s + clock.first_s, clock.date_s + clock.last_s
    rows = f"its rows go from {date_text(begin_s)}" + (f" to {date_text(end_s)}" if end_s < math.inf else " on")
    if begin_s >= clock.date_s + clock.end_s or end_s <= first_s:
        problem = f"{rows}, jobs are submitted from {clock.span()}"
        hint = f"say which of its dates is 0 s (from=), that it repeats (repeat=yes), or its date ({argument('begin')})"
        raise InputError(source, problem, hint)
    if begin_s > first_s or end_s <= last_s:
        held = "the first" if begin_s > first_s else "the last"
        held = "the first and the last" if begin_s > first_s and end_s <= last_s else held
        problem = f"jobs are submitted from {clock.span()}: {held} holds where there is none"
        remark(_log, "%s", f"{source}: {rows}, {problem}")


def common_date(series: Iterable[SeriesSource | Timeline]) -> tuple[float, str] | None:
    """Return the date of 0 s of series by date, and its source: the first `from`, else the latest first row."""
    dates: list[tuple[float, str]] = []
    for one in series:
        rows = read_on_clock(one) if isinstance(one, SeriesSource) else one
        if rows.date_s is not None and rows.pinned:
            return rows.date_s, f"from= of {rows.source}"
        if rows.date_s is not None:
            dates.append((rows.date_s, f"the first row of {rows.source}"))
    return max(dates, key=lambda date: date[0], default=None)


def seconds_of(option: str, text: str, series: Timeline, file: SeriesSource) -> float:
    """Parse an option, a number of s or a date, to s from the first row of a series. Raises InputError."""
    try:
        return finite(text)
    except ValueError:
        pass
    if series.date_s is None:
        raise InputError(option, f"{text!r} is not a number of s", f"{series.source} has no dates")
    return moment(text, True, replace(file, path=Path(option))) - series.date_s


def check_covers(series: Timeline, clock: Clock, *, counted: bool = False) -> None:
    """Raise InputError if a series has no values for hours from `first_s` to `end_s` of the clock.

    One that is `counted` (days= without from=) begins at 0 s of the clock, unless its first row is later.
    """
    if series.date_s is None:
        raise InputError(series.source, "has no dates, and the jobs have", "give it dates, as in 2024-07-01T13:00Z")
    first_s = 0.0 if series.pinned else series.date_s - clock.date_s
    first_s = max(first_s, 0.0) if counted else first_s
    gaps = [(clock.first_s, min(first_s, clock.end_s)), (max(first_s + series.end_s, clock.first_s), clock.end_s)]
    missing = [
        f"{date_text(clock.date_s + low_s)} to {date_text(clock.date_s + high_s)} ({(high_s - low_s) / HOUR_S:.6g} h)"
        for low_s, high_s in gaps
        if high_s > low_s + REPORTED_S and series.loop is None
    ]
    if missing:
        problem = f"has no values for hours of the account: {', '.join(missing)}"
        raise InputError(
            series.source,
            problem,
            f"give a longer file, from=, repeat=yes, or {argument('since')} and {argument('until')}",
        )
