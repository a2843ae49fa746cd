"""Choice of the time of a trace of jobs that is 0 s of a run, and its date (docs/reference/workloads.md)."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np

from batwatt.errors import InputError, remark
from batwatt.inputs.traces.job_log import LogOptions
from batwatt.inputs.traces.trace_table import Column, TraceTable
from batwatt.model.signal import date_text, parse_date
from batwatt.model.workload import START_S
from batwatt.units import LATEST_S, SINCE_1970_S, YEAR_S, number_text

_log = logging.getLogger(__name__)
_HINT = "correct or leave out such jobs, or say another begin"


def zero_of(
    submits_s: Column, origin_s: float | None, options: LogOptions, source: object, *, window: bool = False
) -> tuple[float, float | None]:
    """Return the time of a trace that becomes 0 s of a run, and its date in s since 1970, None if it is not known.

    `origin_s` is the date of the trace's own 0 s, or None: 0 s where its times are dates. Plain times of a trace with a
    `window` do not change. One line in the log states 0 s. Raises InputError.
    """
    first_s, last_s = float(submits_s.min()), float(submits_s.max())
    if last_s > LATEST_S:
        problem = f"a job is submitted at {last_s:.15g} s, {last_s / YEAR_S:.0f} years on"
        raise InputError(source, problem, "divide all its times by 1000 if they are milliseconds since 1970")
    begin = options.begin
    plain = origin_s != 0.0
    if plain and first_s >= SINCE_1970_S:
        origin_s, plain = 0.0, False
    own_zero = window and plain
    why = "as begin says"
    if begin is None:
        zero_s, why = (0.0, "as in the file") if own_zero else (first_s, "the first submission")
    elif plain and math.isnan(parse_date(begin, options.zone)):
        zero_s = float(begin)
    else:
        date = options.date(source) or 0.0
        zero_s = 0.0 if own_zero else first_s
        if origin_s is None:
            origin_s = date - zero_s
        else:
            zero_s = date - origin_s
    last = _time_text(last_s, origin_s)
    if last_s < zero_s:
        raise InputError(source, f"no job is submitted at {begin} or later", f"the last one is submitted at {last}")
    if not last_s - zero_s < SINCE_1970_S:
        years = (last_s - zero_s) / YEAR_S
        problem = f"a job is submitted at {last}, {years:.0f} years after 0 s ({_time_text(zero_s, origin_s)})"
        raise InputError(source, f"{problem}: times of two clocks", _HINT)
    if zero_s != 0.0 or origin_s is not None:
        names = [] if origin_s is None else [date_text(origin_s + zero_s)]
        names += [f"{number_text(zero_s)} s of its times"] if plain and (zero_s != 0.0 or not names) else []
        remark(_log, "%s", f"{source}: 0 s is {', '.join([*names, why])}")
    return zero_s, None if origin_s is None else origin_s + zero_s


def from_zero(table: TraceTable, options: LogOptions, source: object, *, window: bool = False) -> TraceTable:
    """Return the jobs with times from 0 s of `zero_of`, without jobs submitted earlier. Raises InputError."""
    zero_s, date = zero_of(table.submit_s, table.origin_s, options, source, window=window)
    later = table.submit_s >= zero_s
    if options.begin is not None:
        remark_earlier(int((~later).sum()), len(table), options, source)
        table = table.rows(later)
    if zero_s != 0.0:
        needs = dict(table.needs)
        if START_S in needs:
            start_s: Column = np.maximum(needs[START_S] - zero_s, 0.0)
            needs[START_S] = np.round(start_s, 6)
        table = replace(table, submit_s=np.round(table.submit_s - zero_s, 6), needs=needs)
    return replace(table, origin_s=date)


def remark_earlier(count: int, total: int, options: LogOptions, source: object) -> None:
    """Warn of jobs that are left out because they are submitted before `begin`, if any."""
    if count:
        remark(_log, "%s: %d of %d jobs are left out, submitted before %s", source, count, total, options.begin)


def _time_text(time_s: float, origin_s: float | None) -> str:
    return f"{number_text(time_s)} s" if origin_s is None else date_text(origin_s + time_s)
