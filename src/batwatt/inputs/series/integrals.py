"""Signals of files with their integrals, as far as they matter."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.signal_csv import moment, read_rows, read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.signal_integral import SignalIntegral
from batwatt.units import DAY_S, HOUR_S

_log = logging.getLogger(__name__)


def read_integral(file: SignalFile, until: float | str | None = None) -> SignalIntegral:
    """The signal of a file from its `begin` until a date, or that many s later; all of it if it ends before.

    Gaps beyond `until` do not matter; whoever needs more than there is says so. Raises InputError.
    """
    if until is None:
        return SignalIntegral.of(read_on_clock(file))
    try:
        part = replace(file, end=until) if isinstance(until, str) else replace(file, days=_days(until))
        return SignalIntegral.of(read_signal(part))
    except InputError:
        return SignalIntegral.of(read_signal(file))


def _days(until_s: float) -> float:
    """Days that are no less than some s when they are turned into s, up to a whole second."""
    whole_s = math.ceil(until_s) if math.isfinite(until_s) else until_s
    days = whole_s / DAY_S
    return days if days * DAY_S >= whole_s else math.nextafter(days, math.inf)


def by_steps(integral: SignalIntegral, step_s: float) -> list[float]:
    """A signal's value in each step from 0 s on: its mean, where it changes within steps."""
    edges = np.minimum(np.arange(math.ceil(integral.end_s / step_s) + 1) * step_s, integral.end_s)
    if not (integral.edges_s[:-1] % step_s).any():
        # equal values stay equal to the last bit
        return integral.at(edges[:-1]).tolist()
    means: list[float] = (np.diff(integral.integral(edges)) / np.diff(edges)).tolist()
    return means


def rows_as_hours(file: SignalFile, hours: int) -> SignalIntegral:
    """So many hours of a signal as GAIA reads it: a row an hour, in the order of the file, whatever their dates say.

    Empty values are interpolated between the rows. If rows are not mostly an hour apart, the mean of each hour by the
    dates. Raises InputError.
    """
    rows = read_rows(file, hours)
    if rows.step_s != HOUR_S:
        return SignalIntegral.regular(by_steps(read_integral(file, hours * HOUR_S), HOUR_S)[:hours])
    known, places = np.isfinite(rows.values), np.arange(len(rows.values))
    if not known.any():
        raise InputError(file.path, f"has no value in {len(places)} rows", "take another part, or another column")
    jumps = int(np.count_nonzero(np.diff(rows.times_s) != HOUR_S))
    notes = [f"{jumps} of {len(places)} rows are not an hour after the row before: rows count, not dates"] * bool(jumps)
    if not known.all():
        notes.append(f"{np.count_nonzero(~known)} values missing, interpolated between rows")
    if notes:
        _log.warning("%s: %s", file.path, "; ".join(notes))
    values = np.interp(places, places[known], rows.values[known]).tolist()
    begin = rows.shown(float(rows.times_s[0])) if rows.dated and math.isfinite(rows.times_s[0]) else ""
    return replace(SignalIntegral.regular(values), begin=begin, source=str(file.path))


def offset_s(option: str, text: str, integral: SignalIntegral, file: SignalFile) -> float:
    """What an option says, in s from the signal's first row: a number of them, or a date. Raises InputError."""
    try:
        return finite(text)
    except ValueError:
        pass
    if not integral.begin:
        raise InputError(option, f"{text!r} is not a number of s", f"{integral.source} has no dates")
    dates = replace(file, path=Path(option))
    return moment(text, True, dates) - moment(integral.begin, True, dates)
