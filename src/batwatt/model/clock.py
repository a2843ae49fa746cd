"""The clock of a run: the date of its 0 s, and the time in which its jobs are submitted and run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal

import numpy as np

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.units import LATEST_S


def date_text(date_s: float) -> str:
    """Return a date in s since 1970 as text in UTC, to the minute or as exactly as needed, at most to 1e-6 s."""
    whole_s = math.floor(date_s)
    whole_us = whole_s * 1_000_000 + round((date_s - whole_s) * 1e6)
    unit: Literal["us", "s", "m"] = "us" if whole_us % 1_000_000 else "s" if whole_us % 60_000_000 else "m"
    # numpy's dates, as Python's have fewer years
    return f"{np.array(whole_us, dtype='datetime64[us]').astype(f'datetime64[{unit}]')}Z"


def parse_date(text: str, zone: tzinfo = UTC, unit_s: float = 1.0) -> float:
    """Parse a date (ISO 8601, or a number since 1970 in `unit_s`) to s since 1970; NaN for others, such as `Unknown`.

    A date without an offset is in the time zone `zone`: in autumn in the first of two equal hours, in spring an hour
    later if clocks skip it.
    """
    if text.isascii() and text.isdigit() and len(text) > 8:
        return float(text) * unit_s
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
        # in UTC the date may be before the year 1
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def date_s_of(text: str, where: object = "begin", zone: tzinfo = UTC) -> float:
    """Parse a date as `parse_date` does. Raises InputError, which names `where`, for other texts."""
    value = parse_date(text, zone) if isinstance(text, str) else math.nan
    if not abs(value) <= LATEST_S:
        raise InputError(where, f"{shown(text)} is not a date", "write 2024-07-01 or 2024-07-01T13:00Z")
    return value


@dataclass(frozen=True)
class Clock:
    """The date of 0 s of a run, `date_s`, in s since 1970; `source` names the input that has this date.

    Jobs are submitted from `first_s` to `last_s`, in s of the run; if all begin at once, the last ends at `end_s`.
    """

    date_s: float
    source: str = ""
    first_s: float = 0.0
    last_s: float = 0.0
    end_s: float = math.inf
    line: str = field(default="", compare=False)
    """Line of the log on the clock; empty: none."""

    @property
    def date(self) -> str:
        """The date as text."""
        return date_text(self.date_s)

    def span(self) -> str:
        """Return the dates of the first and of the last submission, as text."""
        return f"{date_text(self.date_s + self.first_s)} to {date_text(self.date_s + self.last_s)}"
