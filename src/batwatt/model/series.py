"""A step function of time: an envelope in watts, a capacity in machines, a carbon or price signal."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from batwatt.errors import InputError

DEFAULT_STEP_S = 300.0
"""Step of a series of one row: the paper's 5 minutes."""
FRACTION = "fraction"
"""Name of a series of fractions of the largest capacity."""
MACHINES = "machines"
"""Name of a series of the machines alive, and unit of its values."""
MAX_ROWS = 10_000_000
"""Greatest number of rows: more are taken for a typing error."""
MAX_STEPS = 2_000_000
"""Greatest number of generated steps: more take long, and most likely the step is a typing error."""
LARGEST = 1e15
"""Bound of times in s and of values."""


Told = Literal["", "from", "days", "text"]
"""Source of the choice of the part of a file: `from`, only `days`, or the text of an envelope; empty: its rows."""


@dataclass(frozen=True)
class Series:
    """A step function: values that hold from their time until the next; times in s, strictly increasing.

    Before the first time the first value holds; after the last time the last value holds for ever, in steps as long
    as the last step of the file (a series of one row: `DEFAULT_STEP_S`). `unit` is that of the values (`W`, `g/kWh`,
    `EUR/kWh`, `fraction`, `machines`; `?`: its file states none); empty: the unit of the argument that has the series.
    """

    times_s: tuple[float, ...]
    values: tuple[float, ...]
    name: str = "value"
    source: str = "<memory>"
    unit: str = ""
    begin: str = field(default="", compare=False)
    """The date of 0 s in UTC, or empty."""
    told: Told = field(default="", compare=False)
    repeat_s: float = field(default=0.0, compare=False)
    """Period in s after which a run repeats the series; 0: no repetition."""

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.values):
            raise ValueError("a series needs at least one row and as many values as times")
        if not all(math.isfinite(x) for x in (*self.times_s, *self.values)):
            raise ValueError("times and values must be finite")
        if not all(a < b for a, b in zip(self.times_s, self.times_s[1:], strict=False)):
            raise ValueError("times must increase strictly")

    def __len__(self) -> int:
        return len(self.times_s)

    def at(self, time_s: float) -> float:
        """Return the value at `time_s`."""
        return self.values[max(0, bisect_right(self.times_s, time_s) - 1)]

    @cached_property
    def last_step_s(self) -> float:
        """Length in s of the steps after the last row."""
        return self.times_s[-1] - self.times_s[-2] if len(self.times_s) > 1 else DEFAULT_STEP_S

    def step_after(self, time_s: float) -> float:
        """Return the start in s of the first step that begins strictly after `time_s`."""
        index = bisect_right(self.times_s, time_s)
        if index < len(self.times_s):
            return self.times_s[index]
        last, step = self.times_s[-1], self.last_step_s
        count = math.floor((time_s - last) / step) + 1
        # a quotient that is rounded down must not return the step that begins at `time_s`
        return last + count * step if last + count * step > time_s else last + (count + 1) * step

    def steps(self, begin_s: float, end_s: float) -> Iterator[tuple[float, float, float]]:
        """Yield the steps (start, end, value) that cover [begin_s, end_s[, cut at both ends."""
        start = begin_s
        while start < end_s:
            end = min(self.step_after(start), end_s)
            yield start, end, self.at(start)
            start = end


def least_around(series: Series, before_s: float, after_s: float) -> Series:
    """Return the series of the least value from `before_s` s before each time to `after_s` s after it."""
    if not (before_s or after_s):
        return series
    rows = deque[tuple[float, float]]()
    least: dict[float, float] = {}
    # a row holds from `after_s` before its time until `before_s` after its end: both are in the order of the rows
    begins = [-math.inf, *(time_s - after_s for time_s in series.times_s[1:])]
    ends = [time_s + before_s for time_s in (*series.times_s[1:], math.inf)]
    rows_at = sorted({0.0, *(edge for edge in (*begins, *ends) if 0.0 < edge < math.inf)})
    first = next_row = 0
    for time_s in rows_at:
        while next_row < len(begins) and begins[next_row] <= time_s:
            while rows and rows[-1][1] >= series.values[next_row]:
                rows.pop()
            rows.append((next_row, series.values[next_row]))
            next_row += 1
        while ends[first] <= time_s:
            if rows[0][0] == first:
                rows.popleft()
            first += 1
        least[time_s] = rows[0][1]
    return Series(tuple(least), tuple(least.values()), series.name, series.source, series.unit)


def checked_capacity(series: Series, slots: int | None, where: object) -> Series:
    """Return the series if its values are whole numbers in [0, `slots`]; else raise InputError with time and value."""
    most = math.inf if slots is None else slots
    for time_s, value in zip(series.times_s, series.values, strict=True):
        if time_s >= 0.0 and float(value).is_integer() and 0.0 <= value <= most:
            continue
        place = f"{where}: at {time_s:g} s"
        if not time_s >= 0.0:
            raise InputError(place, "is before 0 s, when a simulation begins", "shift all times")
        if not float(value).is_integer():
            raise InputError(place, f"{MACHINES} must be a whole number, got {value!r}", "round it down")
        bound = ">= 0" if slots is None else f"in [0, {slots}]"
        raise InputError(place, f"{MACHINES} must be {bound}, got {value:g}", "correct it or use more machines")
    return series
