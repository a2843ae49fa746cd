"""Replacement of missing values of a signal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.inputs.series.signal_file import Gaps
from batwatt.model.series import MAX_ROWS
from batwatt.model.signal import date_text
from batwatt.units import DAY_S, HOUR_S

MAX_GAP_S = 6 * HOUR_S
"""Longest gap in s that is interpolated."""
STEADY = 3
"""Number of successive equal distances of rows that are a step of the file, not gaps."""
SAME_STEP = 0.125
"""Greatest relative difference of equal distances of rows: months, days of 23 hours, clocks that jitter."""

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SignalRows:
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


def lengths_before(times_s: _Floats, path: Path) -> _Floats:
    """Return the duration in s of the row that ends at each time, NaN at NaN. Raises InputError for one time only.

    Rows without a usual distance have no gaps: each begins at the end before.
    """
    ends = np.unique(times_s[np.isfinite(times_s)])
    if len(ends) < 2:
        raise InputError(path, "has one row, which is the end of an unknown time", "add rows, or say stamp=begin")
    # the row before an end is the row after it, seen from the other side
    rows = SignalRows(-ends[::-1], ends, dated=True)
    lengths = rows.lengths_s[::-1]
    if not _is_regular(rows):
        lengths = np.append(lengths[0], np.diff(ends))
    return np.append(lengths, np.nan)[np.searchsorted(ends, times_s)]


def filled(rows: SignalRows, begin: float, end: float, gaps: Gaps, path: Path) -> tuple[SignalRows, list[str]]:
    """Fill missing values; return the rows, and remarks on values missing in [begin, end[. Raises InputError.

    With `hold` the value before a gap holds, and before the first value that one. With `line` a gap, the time from the
    value before to the value after it, is a straight line up to `MAX_GAP_S`; in a longer one, and in time without a row
    (`Rows.lengths_s`), each value is that of the same time of day on the day before (itself filled in gaps of more than
    a day), without such a day the value before the gap.
    """
    due = _due(rows)
    if gaps == "hold" and not _is_regular(rows):
        due = np.zeros_like(due)
    remarks = _remarks(rows, due, begin, end, gaps)
    whole = _with_missing_rows(rows, due, path) if gaps == "line" else rows
    missing = np.isnan(whole.values)
    present = np.flatnonzero(~missing)
    at = np.arange(len(whole.values))
    before = present[np.maximum(np.searchsorted(present, at, side="right") - 1, 0)]
    values = whole.values[before]
    if gaps == "line":
        after = present[np.minimum(np.searchsorted(present, at), len(present) - 1)]
        short = missing & (whole.times_s[after] - whole.times_s[before] <= MAX_GAP_S)
        values[short] = np.interp(whole.times_s[short], whole.times_s[present], whole.values[present])
        _from_the_day_before(values, whole.times_s, np.flatnonzero(missing & ~short))
    return SignalRows(whole.times_s, values, rows.dated), remarks


def _due(rows: SignalRows) -> npt.NDArray[np.int_]:
    """Return the number of rows that are missing after each row but the last."""
    # a label such as 00:00 - 00:59 is complete
    ratios = np.diff(rows.times_s) / rows.lengths_s[:-1]
    whole = np.round(ratios) if rows.stated_s is None else np.ceil(ratios - SAME_STEP)
    return np.maximum(whole - 1, 0).astype(int)


def _is_regular(rows: SignalRows) -> bool:
    """Return whether a file by date has, or states, a step: one that lists changes has no missing rows."""
    same = np.abs(np.diff(rows.times_s) - rows.step_s) <= SAME_STEP * rows.step_s
    return rows.stated_s is not None or (rows.dated and 2 * int(np.count_nonzero(same)) > len(same))


def _with_missing_rows(rows: SignalRows, due: npt.NDArray[np.int_], path: Path) -> SignalRows:
    """Return the rows with an empty row for each of those that are `due`. Raises InputError."""
    steps = rows.lengths_s[:-1]
    if not due.sum() <= MAX_ROWS:
        at = int(np.argmax(due))
        gap = " to ".join(rows.text_of(time_s) for time_s in rows.times_s[at : at + 2])
        problem = f"{due.sum():g} rows are missing at a step of {steps[at]:g} s, at most {MAX_ROWS} can be filled"
        raise InputError(path, f"{problem} (largest gap: {gap})", "correct the dates")
    ordinal = np.arange(due.sum()) - np.repeat(np.cumsum(due) - due, due) + 1
    added = np.repeat(rows.times_s[:-1], due) + ordinal * np.repeat(steps, due)
    places = np.repeat(np.arange(1, len(rows.times_s)), due)
    times = np.insert(rows.times_s, places, added)
    return SignalRows(times, np.insert(rows.values, places, np.nan), rows.dated)


def _from_the_day_before(values: _Floats, times_s: _Floats, at: npt.NDArray[np.intp]) -> None:
    """Set these places, in order, to the value of a day before."""
    sources = np.searchsorted(times_s, times_s[at] - DAY_S, side="right") - 1
    for place, source in zip(at.tolist(), sources.tolist(), strict=True):
        if source >= 0:
            values[place] = values[source]


def _remarks(rows: SignalRows, due: npt.NDArray[np.int_], begin: float, end: float, gaps: Gaps) -> list[str]:
    """Return a remark on the number of missing values and of gaps in [begin, end[, and on the longest one, if any."""
    present = np.flatnonzero(np.isfinite(rows.values))
    # a gap is before the first value, between two, and after the last
    before, after = np.append(-1, present), np.append(present, len(rows.values))
    passed = np.concatenate([(0,), np.cumsum(due)])
    counts = after - before - 1 + passed[np.minimum(after, len(due))] - passed[np.maximum(before, 0)]
    ends_s = rows.times_s + rows.lengths_s
    starts = np.where(before < 0, rows.times_s[0], ends_s[before])
    stops = np.append(rows.times_s, rows.end_s)[after]
    inside = np.flatnonzero((counts > 0) & (stops > begin) & (starts < end))
    if not len(inside):
        return []
    first = inside[np.argmax((stops - starts)[inside])]
    longest = f"{rows.text_of(float(starts[first]))} to {rows.text_of(float(stops[first]))}"
    count = f"{len(inside)} gap{'s' if len(inside) > 1 else ''}"
    how = "the value before holds"
    if gaps == "line":
        how = f"a straight line up to {MAX_GAP_S / HOUR_S:g} h, longer ones as the day before"
    return [f"{counts[inside].sum()} values missing in {count} (longest: {longest}): {how}"]
