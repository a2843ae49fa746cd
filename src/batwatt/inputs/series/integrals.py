"""Signals of files with their integrals, as far as they matter."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.signal_csv import moment, read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.signal_integral import SignalIntegral
from batwatt.units import DAY_S


def read_integral(file: SignalFile, until: float | str | None = None) -> SignalIntegral:
    """The signal of a file from its `begin` until a date, or that many s later; all of it if it ends before.

    With `days` or `end` it ends there. Gaps beyond `until` do not matter. Raises InputError.
    """
    if until is None:
        return SignalIntegral.of(read_on_clock(file))
    if file.days is not None or file.end is not None:
        return SignalIntegral.of(read_signal(file))
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
