"""Signals of files with their integrals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.signal_csv import moment, read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.series import Series
from batwatt.units import DAY_S


def read_integral(file: SignalFile, until: float | str | None = None) -> Series:
    """Read the signal of a file from its `begin` until a date or a number of s later; all of it if it ends earlier.

    `days` and `end` of the file precede `until`. Gaps beyond the end do not matter. Raises InputError.
    """
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


def offset_s(option: str, text: str, integral: Series, file: SignalFile) -> float:
    """Parse an option, a number of s or a date, to s from the signal's first row. Raises InputError."""
    try:
        return finite(text)
    except ValueError:
        pass
    if not integral.begin:
        raise InputError(option, f"{text!r} is not a number of s", f"{integral.source} has no dates")
    dates = replace(file, path=Path(option))
    return moment(text, True, dates) - moment(integral.begin, True, dates)
