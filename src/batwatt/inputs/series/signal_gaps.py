"""Replacement of missing values of a signal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.model.clock import date_text
from batwatt.model.series import MAX_ROWS
from batwatt.units import DAY_S, HOUR_S

MAX_GAP_S = 6 * HOUR_S
"""Longest gap in s that is interpolated."""
STEADY = 3
"""Number of successive equal distances of rows that are a step of the file, not gaps."""
SAME_STEP = 0.125
"""Greatest relative difference of equal distances of rows: months, days of 23 hours, clocks that jitter."""

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Values by time in s, strictly increasing, NaN where one is missing; `dated`: times are s since 1970.

    `stated_s` is the duration of each row in s, if the file states it.
    """

    times_s: _Floats
    values: _Floats
    dated: bool
    stated_s: _Floats | None = None

    @cached_property
    def step_s(self) -> float:
        """The most common distance of two rows in s; an hour for one row."""
        if len(self.times_s) < 2:
            return HOUR_S
        lengths, counts = np.unique(np.round(np.diff(self.times_s), 3), return_counts=True)
        return float(lengths[np.argmax(counts)])

    @cached_property
    def lengths_s(self) -> _Floats:
        """Duration of each row in s: as stated, else the step of its neighbourhood.

        A distance of two rows is a step if it is the most common one, or equal `STEADY` times in succession, or equal
        to that of such neighbours. Any other distance is a step as long as the one before, and a gap.
        """
        if self.stated_s is not None:
            return self.stated_s
        if len(self.times_s) < 2:
            return np.full(len(self.times_s), HOUR_S)
        distances = np.round(np.diff(self.times_s), 3)
        alike = np.abs(np.diff(distances)) <= SAME_STEP * np.minimum(distances[1:], distances[:-1])
        run = np.concatenate([(0,), np.cumsum(~alike)])
        steady = np.bincount(run)[run] >= STEADY
        steady |= np.abs(distances - self.step_s) <= SAME_STEP * self.step_s
        for at_next in (True, False):
            places = np.flatnonzero(steady)
            at = np.searchsorted(places, np.arange(len(distances)), side="left" if at_next else "right") - (not at_next)
            near = distances[places[np.clip(at, 0, len(places) - 1)]]
            steady |= np.abs(distances - near) <= SAME_STEP * near
        return np.append(np.where(steady, distances, near), near[-1])

    @property
    def end_s(self) -> float:
        """End of the last row in s."""
        return float(self.times_s[-1] + self.lengths_s[-1])

    def text_of(self, time_s: float) -> str:
        """Return a time as text, a date if rows are dated."""
        if not self.dated:
            return f"{time_s:g} s"
        return date_text(time_s)


def filled(rows: Rows, begin: float, end: float, path: Path) -> tuple[Rows, list[str]]:
    """Fill missing values; return the rows, and remarks on values missing in [begin, end[. Raises InputError.

    A gap is the time from the value before to the value after it. A gap up to `MAX_GAP_S` is interpolated linearly; in
    a longer one, each value is that of the same time of day on the day before (itself filled in gaps of more than a
    day), without dates or such a day the value before the gap. Before the first value, that one holds. With dates, time
    without a row (`Rows.lengths_s`) is missing; a row of a file of seconds holds until the next one.
    """
    remarks = [_steps_remark(rows, begin, end)] if rows.dated and rows.stated_s is None else []
    whole = _with_missing_rows(rows, path) if rows.dated else rows
    missing = np.isnan(whole.values)
    wanted = missing & (np.append(whole.times_s[1:], math.inf) > begin) & (whole.times_s < end)
    if wanted.any():
        remarks.append(_remark(whole, missing, wanted))
    remarks = [remark for remark in remarks if remark]
    if not missing.any():
        return whole, remarks
    present = np.flatnonzero(~missing)
    at = np.arange(len(whole.values))
    before = present[np.maximum(np.searchsorted(present, at, side="right") - 1, 0)]
    values = whole.values[before]
    after = present[np.minimum(np.searchsorted(present, at), len(present) - 1)]
    short = missing & (whole.times_s[after] - whole.times_s[before] <= MAX_GAP_S)
    values[short] = np.interp(whole.times_s[short], whole.times_s[present], whole.values[present])
    if rows.dated:
        _from_the_day_before(values, whole.times_s, np.flatnonzero(missing & ~short))
    return Rows(whole.times_s, values, rows.dated), remarks


def _steps_remark(rows: Rows, begin: float, end: float) -> str:
    """Return a remark on a change of step in a part of the rows, empty without one."""
    steps = rows.lengths_s[:-1]
    changed = np.abs(np.diff(steps)) > SAME_STEP * np.minimum(steps[1:], steps[:-1])
    places = np.flatnonzero(changed & (rows.times_s[1:-1] > begin) & (rows.times_s[1:-1] < end)) + 1
    if not len(places):
        return ""
    first = int(places[0])
    more = f", and {len(places) - 1} times more" if len(places) > 1 else ""
    change = f"{steps[first - 1]:g} s to {steps[first]:g} s at {rows.text_of(float(rows.times_s[first]))}{more}"
    return f"the step changes from {change}: each row holds until the next"


def _with_missing_rows(rows: Rows, path: Path) -> Rows:
    """Return the rows with an empty row for each missing one. Raises InputError."""
    distances, steps = np.diff(rows.times_s), rows.lengths_s[:-1]
    # a label such as 00:00 - 00:59 is complete
    ratios = distances / steps
    due = np.maximum((np.round(ratios) if rows.stated_s is None else np.ceil(ratios - SAME_STEP)) - 1, 0)
    if not due.any():
        return rows
    if not due.sum() <= MAX_ROWS:
        at = int(np.argmax(due))
        gap = " to ".join(rows.text_of(time_s) for time_s in rows.times_s[at : at + 2])
        problem = f"{due.sum():g} rows are missing at a step of {steps[at]:g} s, at most {MAX_ROWS} can be filled"
        raise InputError(path, f"{problem} (largest gap: {gap})", "correct the dates")
    lacking = due.astype(int)
    starts = np.repeat(rows.times_s[:-1], lacking)
    ordinal = np.arange(lacking.sum()) - np.repeat(np.cumsum(lacking) - lacking, lacking) + 1
    added = starts + ordinal * np.repeat(steps, lacking)
    places = np.repeat(np.arange(1, len(rows.times_s)), lacking)
    times = np.insert(rows.times_s, places, added)
    return Rows(times, np.insert(rows.values, places, np.nan), rows.dated)


def _from_the_day_before(values: _Floats, times_s: _Floats, at: npt.NDArray[np.intp]) -> None:
    """Set these places, in order, to the value of a day before."""
    sources = np.searchsorted(times_s, times_s[at] - DAY_S, side="right") - 1
    for place, source in zip(at.tolist(), sources.tolist(), strict=True):
        if source >= 0:
            values[place] = values[source]


def _remark(rows: Rows, missing: npt.NDArray[np.bool_], wanted: npt.NDArray[np.bool_]) -> str:
    """Return a remark on the number of missing values and of gaps, and on the longest one."""
    edges = np.flatnonzero(np.diff(np.concatenate([(False,), missing, (False,)]).astype(int)))
    runs = [(a, b) for a, b in edges.reshape(-1, 2).tolist() if wanted[a:b].any()]
    first, until = max(runs, key=lambda run: run[1] - run[0])
    longest = f"{rows.text_of(rows.times_s[first])} to {rows.text_of(rows.times_s[until - 1])}"
    count = f"{len(runs)} gap{'s' if len(runs) > 1 else ''}"
    text = f"{int(wanted.sum())} values missing in {count} (longest: {longest})"
    return f"{text}, up to {MAX_GAP_S / HOUR_S:g} h interpolated, longer ones as the day before"
