"""The clock of a run: the date of its 0 s, and the time in which its jobs are submitted and run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from batwatt.checks import shown
from batwatt.errors import InputError


def date_text(date_s: float) -> str:
    """A date in s since 1970 as text in UTC, to the minute or as exactly as it needs, at most to the microsecond."""
    whole_s = math.floor(date_s)
    whole_us = whole_s * 1_000_000 + round((date_s - whole_s) * 1e6)
    unit: Literal["us", "s", "m"] = "us" if whole_us % 1_000_000 else "s" if whole_us % 60_000_000 else "m"
    # years that Python's dates do not have, too
    return f"{np.array(whole_us, dtype='datetime64[us]').astype(f'datetime64[{unit}]')}Z"


def date_s_of(text: str) -> float:
    """A date in s since 1970, in UTC if it has no offset. Raises InputError."""
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        raise InputError("begin", f"{shown(text)} is not a date", "write 2024-07-01T13:00Z") from None


@dataclass(frozen=True)
class Clock:
    """`date_s`, in s since 1970, is 0 s of a run; `source` says whose date that is.

    Jobs are submitted from `first_s` to `last_s`, in s of the run; if all begin at once, the last ends at `end_s`.
    """

    date_s: float
    source: str = ""
    first_s: float = 0.0
    last_s: float = 0.0
    end_s: float = math.inf
    line: str = field(default="", compare=False)
    """What there is to say about it."""

    @property
    def date(self) -> str:
        """The date as text."""
        return date_text(self.date_s)

    def span(self) -> str:
        """The dates of the first and of the last submission, as text."""
        return f"{date_text(self.date_s + self.first_s)} to {date_text(self.date_s + self.last_s)}"
