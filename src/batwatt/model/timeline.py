"""A step function of time: an envelope in watts, a capacity in machines, a carbon or price signal."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError
from batwatt.model.work import Array, Steps
from batwatt.units import HOUR_S, J_PER_KWH, LATEST_S, REPORTED_S, YEAR_S, date_text

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


@dataclass(frozen=True)
class Timeline:
    """A step function: values that hold from their time until the next; times in s, strictly increasing.

    Before the first time the first value holds. After `end_s` the rows from `loop` on come again for ever, every
    `period_s`: by default (-1, the last row) the last value, in steps as long as the last one (a series of one row:
    `DEFAULT_STEP_S`). A `loop` of None is a source that ends then, `period_s` after its first time: its last value
    holds, which the run reports. `unit` is that of the values (`W`, `g/kWh`, `EUR/kWh`, `fraction`, `machines`; `?`:
    its file states none); empty: the unit of the argument that has the series.
    """

    times_s: tuple[float, ...]
    values: tuple[float, ...]
    name: str = "value"
    source: str = "<memory>"
    unit: str = ""
    date_s: float | None = field(default=None, compare=False)
    """The date of 0 s, in s since 1970, or None."""
    pinned: bool = field(default=False, compare=False)
    """True if 0 s is that of any run, whatever its date (`from=`)."""
    loop: int | None = -1
    """Index of the row from which on the rows come again."""
    period_s: float = 0.0
    """Length in s of the rows from `loop` on; 0: of one row, as the last step."""
    bounds: tuple[float, float] | None = field(default=None, compare=False)
    """The range that the source states, such as that of a random walk; None: it states none."""

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.values):
            raise ValueError("a series needs at least one row and as many values as times")
        if not all(math.isfinite(x) for x in (*self.times_s, *self.values)):
            raise ValueError("times and values must be finite")
        if not all(a < b for a, b in zip(self.times_s, self.times_s[1:], strict=False)):
            raise ValueError("times must increase strictly")
        if not -1 <= (self.loop or 0) < len(self.times_s) or not self.times_s[-1] < self.end_s < math.inf:
            raise ValueError(f"a series repeats rows after its last time, got {self.loop} and {self.period_s!r} s")

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def begin(self) -> str | None:
        """The date of 0 s as text in UTC, or None."""
        return None if self.date_s is None else date_text(self.date_s)

    # rows ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _loop(self) -> tuple[int, float]:
        """Index of the row from which on rows come again, and their length in s; of a source that ends, the last."""
        last = len(self.times_s) - 1
        if self.loop is None:
            return last, self.times_s[0] + self.period_s - self.times_s[-1]
        usual_s = self.times_s[-1] - self.times_s[-2] if last else DEFAULT_STEP_S
        return self.loop % (last + 1), self.period_s or usual_s

    @cached_property
    def end_s(self) -> float:
        """End of the last row in s, from which on rows come again."""
        row, period_s = self._loop
        return self.times_s[row] + period_s

    @property
    def last_step_s(self) -> float:
        """Length in s of the last row."""
        return self.end_s - self.times_s[-1]

    @property
    def repeats(self) -> bool:
        """True if the value changes for ever."""
        return self.settled_s == math.inf

    @cached_property
    def settled_s(self) -> float:
        """Time in s of the last change of the value, infinite if it changes for ever; the first time without any."""
        row, _ = self._loop
        if any(value != self.values[row] for value in self.values[row:]):
            return math.inf
        return self.times_s[self._turns[-1]] if self._turns else self.times_s[0]

    @cached_property
    def _turns(self) -> list[int]:
        """Indices of the rows whose value is another one than that of the row before."""
        pairs = zip(self.values, self.values[1:], strict=False)
        return [index for index, (before, value) in enumerate(pairs, 1) if value != before]

    def _row_s(self, turn: int, index: int) -> float:
        return turn * self._loop[1] + self.times_s[index]

    def _place(self, time_s: float) -> tuple[int, int]:
        """Return how often the rows have come again at a time, and the index of the row that holds (-1: none yet)."""
        first, period_s = self._loop
        if time_s < self.end_s:
            return 0, bisect_right(self.times_s, time_s) - 1
        # quotients and differences are rounded: a row holds at the very time that `step_after` returns
        turn = math.floor((time_s - self.times_s[first]) / period_s)
        if self._row_s(turn + 1, first) <= time_s:
            turn += 1
        elif self._row_s(turn, first) > time_s:
            turn -= 1
        index = max(first, bisect_right(self.times_s, time_s - turn * period_s) - 1)
        if index + 1 < len(self.times_s) and self._row_s(turn, index + 1) <= time_s:
            index += 1
        elif index > first and self._row_s(turn, index) > time_s:
            index -= 1
        return turn, index

    def at(self, time_s: float) -> float:
        """Return the value at `time_s`."""
        return self.values[max(0, self._place(time_s)[1])]

    def step_after(self, time_s: float) -> float:
        """Return the start in s of the first step that begins strictly after `time_s`."""
        turn, index = self._place(time_s)
        return self._row_s(turn, index + 1) if index + 1 < len(self.times_s) else self._row_s(turn + 1, self._loop[0])

    def next_change(self, time_s: float) -> float:
        """Return the first time in s after `time_s` at which the value is another one, or infinity."""
        turn, index = self._place(time_s)
        at = bisect_right(self._turns, max(0, index))
        if at < len(self._turns):
            return self._row_s(turn, self._turns[at])
        first, _ = self._loop
        if self.values[first] != self.values[-1]:
            return self._row_s(turn + 1, first)
        at = bisect_right(self._turns, first)
        return self._row_s(turn + 1, self._turns[at]) if at < len(self._turns) else math.inf

    def steps(self, begin_s: float, end_s: float) -> Iterator[tuple[float, float, float]]:
        """Yield the steps (start, end, value) that cover [begin_s, end_s[, cut at both ends."""
        start = begin_s
        while start < end_s:
            end = min(self.step_after(start), end_s)
            yield start, end, self.at(start)
            start = end

    def mapped(self, function: Callable[[Array], Array], unit: str, name: str = "", source: str = "") -> Timeline:
        """Return a series of the values, and of the stated range, under a rising function; else as `of`."""
        bounds = None
        if self.bounds is not None:
            low, high = function(np.array(self.bounds)).tolist()
            bounds = low, high
        return self.of(function(self.array), unit, name, source, bounds)

    def of(
        self,
        values: Array | Sequence[float],
        unit: str,
        name: str = "",
        source: str = "",
        bounds: tuple[float, float] | None = None,
    ) -> Timeline:
        """Return a series of other values at the same times; with the name and the source of this one if empty."""
        array = np.asarray(values, dtype=np.float64)
        own = tuple(array.tolist()), name or self.name, source or self.source, unit
        other = Timeline(self.times_s, *own, self.date_s, self.pinned, self.loop, self.period_s, bounds)
        other.__dict__.update(edges_s=self.edges_s, array=array)
        return other

    def upto(self, end_s: float) -> Timeline:
        """Return the series with its rows before `end_s`, at least one, each a row of its own. Raises InputError."""
        times, values = self.times_s, self.values
        if self.repeats and end_s > self.end_s:
            edges_s, array = self._repeated(1 + math.ceil((end_s - self.end_s) / self._loop[1]))
            times, values = tuple(edges_s[:-1].tolist()), tuple(array.tolist())
        elif self.times_s[-1] < end_s:
            return self
        count = max(1, bisect_left(times, end_s))
        lasts_s = max(end_s - times[count - 1], DEFAULT_STEP_S)
        return replace(self, times_s=times[:count], values=values[:count], loop=-1, period_s=lasts_s)

    def _repeated(self, turns: int) -> tuple[Array, Array]:
        """Return edges in s and values with the rows from `loop` on `turns` times. Raises InputError."""
        first, period_s = self._loop
        rows_s = self.edges_s[first:-1]
        if not first + turns * len(rows_s) <= MAX_ROWS:
            problem = f"{turns} repetitions of {len(rows_s)} rows are more than {MAX_ROWS} rows"
            raise InputError(self.source, problem, "take a longer part of the file, or correct the times of jobs")
        begins_s = np.arange(turns)[:, None] * period_s
        ends_s = (self.times_s[first] + turns * period_s,)
        edges_s = np.concatenate((self.edges_s[:first], (begins_s + rows_s).ravel(), ends_s))
        return edges_s, np.concatenate([self.array[:first], np.tile(self.array[first:], turns)])

    def since(self, time_s: float) -> Timeline:
        """Return the series from `time_s` s on, which becomes 0 s; a source that is over then holds its last value.

        The date of 0 s moves, too.
        """
        turn, index = self._place(time_s)
        again, period_s = self._loop
        row = max(0, index)
        # a first row after 0 s holds before, too: it is a row of its own if it comes again
        next_row = index + 1 if self.repeats and again == 0 else row + 1
        places = [(turn, later) for later in range(next_row, len(self))]
        loop: int | None = -1
        length_s, ends_s = self.last_step_s, math.inf
        again_s = max(0.0, round(self.times_s[again] - time_s, 6))
        if self.repeats:
            # rows that are over come at the end, once the rest of their turn has
            places += [(turn + 1, earlier) for earlier in range(again, row + 1)]
            length_s, ends_s = period_s, round(again_s + period_s, 6)
        # of rows at the same rounded time the last holds
        rows = {0.0: self.values[row]}
        for place in places:
            at_s = round(self._row_s(*place) - time_s, 6)
            if at_s < ends_s:
                rows[at_s] = self.values[place[1]]
        if self.repeats:
            loop = list(rows).index(again_s)
        elif self.loop is None and (left_s := round(self.end_s - time_s, 6)) > max(rows):
            loop, length_s = None, left_s
        date_s = None if self.date_s is None else self.date_s + time_s
        times, values = tuple(rows), tuple(rows.values())
        own = self.name, self.source, self.unit
        return Timeline(times, values, *own, date_s, self.pinned, loop, length_s, self.bounds)

    def turned(self, time_s: float) -> Timeline:
        """Return a series from 0 s to its end, as one period of a periodic one, rotated so that `time_s` is 0 s."""
        at_s = time_s % self.end_s
        return self.lasting(True).since(at_s).lasting(False) if at_s else self

    def lasting(self, repeat: bool) -> Timeline:
        """Return the series beginning again at its end, for ever, or ending there."""
        return replace(self, loop=0 if repeat else None, period_s=self.end_s - self.times_s[0])

    # integrals ----------------------------------------------------------------------------------------------------

    @classmethod
    def regular(cls, values: Sequence[float], step_s: float = HOUR_S) -> Timeline:
        """Return the series of values that hold `step_s` s each from 0 s on, and ends then."""
        edges_s: Array = np.arange(len(values) + 1, dtype=np.float64) * step_s
        return cls.of_edges(edges_s, np.array(values, dtype=np.float64))

    @staticmethod
    def of_edges(
        edges_s: Array,
        values: Array,
        source: str = "<memory>",
        unit: str = "",
        date_s: float | None = None,
        pinned: bool = False,
    ) -> Timeline:
        """Return the series of `values[i]` in [`edges_s[i]`, `edges_s[i + 1]`[, which ends at the last edge."""
        times_s, period_s = tuple(edges_s[:-1].tolist()), float(edges_s[-1] - edges_s[0])
        series = Timeline(times_s, tuple(values.tolist()), "value", source, unit, date_s, pinned, None, period_s)
        series.__dict__.update(edges_s=edges_s, array=values)
        return series

    @cached_property
    def edges_s(self) -> Array:
        """Begins of the rows and the end of the last one, in s; shape [rows + 1]."""
        return np.array((*self.times_s, self.end_s))

    @cached_property
    def array(self) -> Array:
        """The values; shape [rows]."""
        return np.array(self.values, dtype=np.float64)

    @property
    def until_s(self) -> float:
        """Time in s from which on the source has no values: infinite if its last value holds, or its rows repeat."""
        return self.end_s if self.loop is None else math.inf

    @property
    def currency(self) -> str:
        """The currency of a price, as in `EUR`; empty if it is not stated, or the series is not a price."""
        money, _, energy = self.unit.partition("/")
        return money if energy == "kWh" and money not in ("g", "money") else ""

    def unrolled(self, end_s: float) -> Timeline:
        """Return a series without repetition, but as long as `end_s` or longer if it repeats. Raises InputError."""
        if self.loop is None:
            return self
        longer: Timeline | None = self.__dict__.get("_longer")
        if longer is None or longer.end_s < end_s:
            first, period_s = self._loop
            first_s = self.times_s[first]
            if first == len(self) - 1:
                edges_s, values = np.append(self.edges_s[:-1], max(self.end_s, 2.0 * end_s)), self.array
            else:
                edges_s, values = self._repeated(max(1, math.ceil((2.0 * end_s - first_s) / period_s)))
            longer = Timeline.of_edges(edges_s, values, self.source, self.unit, self.date_s, self.pinned)
            self.__dict__["_longer"] = longer
        return longer

    @cached_property
    def _reached(self) -> Array:
        return np.concatenate([(0.0,), np.cumsum(self.lasting_s * self.array)])

    def integral(self, time_s: Array | float) -> Array:
        """Return the integral from the first time to each time in s, in the unit of the series x s; 0 beyond an end."""
        times = np.asarray(time_s)
        plain = self.unrolled(float(times.max(initial=0.0)))
        integrals: Array = np.interp(times, plain.edges_s, plain._reached)
        return integrals

    def values_at(self, time_s: Array | float) -> Array:
        """Return the value at each time in s, in the shape of `time_s`."""
        times = np.asarray(time_s)
        plain = self.unrolled(float(times.max(initial=0.0)))
        index = np.searchsorted(plain.edges_s, times, "right") - 1
        values: Array = plain.array[np.clip(index, 0, len(plain.values) - 1)]
        return values

    def edges_in(self, begin_s: float, end_s: float) -> Array:
        """Return the edges strictly between two times, in s."""
        plain = self.unrolled(end_s)
        first, last = np.searchsorted(plain.edges_s, [begin_s, end_s], "right")
        edges = plain.edges_s[first:last]
        return edges[edges < end_s]

    def per_watt(self, begin_s: Array | float, end_s: Array | float) -> Array:
        """Return the emissions in g, or the cost, of 1 W between two times."""
        return (self.integral(end_s) - self.integral(begin_s)) / J_PER_KWH

    def of_steps(self, begin_s: Array | float, steps: Steps) -> Array:
        """Return the emissions or costs of power steps on one cpu for each begin in s, in the shape of `begin_s`."""
        times = np.asarray(begin_s, dtype=np.float64)[..., None] + steps.edges_s
        return np.diff(self.integral(times), axis=-1) @ steps.watts / J_PER_KWH

    def covers(self, end_s: float, whose: object) -> None:
        """Raise InputError unless the series reaches `end_s`."""
        # sums of times have rounding errors
        if not end_s <= self.until_s + REPORTED_S:
            problem = f"the signal ends at {self.end_s:g} s, before {end_s:g} s, which {whose} may need"
            raise InputError(self.source, problem, "take a longer signal, or let jobs wait less")

    def plus(self, other: Timeline, own: float, others: float) -> Timeline:
        """Return `own` x this + `others` x another series, such as carbon and price, over the time that both cover.

        Raises InputError.
        """
        end_s, first_s = min(self.until_s, other.until_s), 0.0
        both = end_s == math.inf
        if both:
            common = combined((self, other), sum)
            end_s, first_s = common.end_s, common.times_s[common.loop or 0]
        edges = np.unique(np.concatenate([self.unrolled(end_s).edges_s, other.unrolled(end_s).edges_s]))
        edges = np.append(edges[edges < end_s], end_s)
        values = own * self.values_at(edges[:-1]) + others * other.values_at(edges[:-1])
        sums = Timeline.of_edges(edges, values, self.source, date_s=self.date_s)
        first = int(np.searchsorted(edges, first_s))
        return replace(sums, loop=first, period_s=float(edges[-1] - edges[first])) if both else sums

    # values -------------------------------------------------------------------------------------------------------

    @property
    def lasting_s(self) -> npt.NDArray[np.float64]:
        """Duration of each row in s."""
        return np.diff(self.edges_s)

    @cached_property
    def mean(self) -> float:
        """The mean over time, of each row once."""
        return float(np.average(self.values, weights=self.lasting_s))

    def mean_until(self, end_s: float) -> float:
        """Return the mean from 0 s to `end_s` > 0 s; values hold before the first row and after the last one."""
        plain = self.upto(end_s) if self.repeats else self
        edges_s = np.append(np.clip(plain.times_s, 0.0, end_s), end_s)
        edges_s[0] = 0.0
        return float(plain.array @ np.diff(edges_s)) / end_s

    def averaged(self, period_s: float) -> Timeline:
        """Return a series that begins at 0 s with one row per period, its mean over the period. Raises InputError."""
        if not self.end_s / period_s <= MAX_STEPS:
            problem = f"the signal's length / period must be <= {MAX_STEPS}, got {self.end_s:g} / {period_s!r} s"
            raise InputError(self.source, problem, "take a longer period")
        times = np.arange(max(1, math.ceil(self.end_s / period_s))) * period_s
        edges = np.append(times, self.end_s)
        # the integral is linear between the rows
        values = np.diff(np.interp(edges, self.edges_s, self._reached)) / np.diff(edges)
        return replace(self, times_s=tuple(times.tolist()), values=tuple(values.tolist()))

    @cached_property
    def _after(self) -> tuple[list[float], list[float]]:
        """The least and the greatest value from each row on."""
        backwards = self.values[::-1]
        least, most = list(accumulate(backwards, min))[::-1], list(accumulate(backwards, max))[::-1]
        return least, most

    @property
    def known_range(self) -> tuple[float, float]:
        """The least and the greatest value that the source states; those of all values if it states none."""
        return (self.least(), self.most()) if self.bounds is None else self.bounds

    def least(self, from_s: float = -math.inf) -> float:
        """Return the least value from a time on."""
        return self._after[0][self._first_from(from_s)]

    def most(self, from_s: float = -math.inf) -> float:
        """Return the greatest value from a time on."""
        return self._after[1][self._first_from(from_s)]

    def longest_s(self, least: float) -> float:
        """Return the longest time in s in a row in which the value is `least` or more; infinite if it always is."""
        if least not in self._longest_s:
            self._longest_s[least] = self._longest_of(least)
        return self._longest_s[least]

    @cached_property
    def _longest_s(self) -> dict[float, float]:
        return {}

    def _longest_of(self, least: float) -> float:
        first, period_s = self._loop
        if min(self.values[first:]) >= least:
            return math.inf
        # all rows, and those that come again once more
        ends_s = (*self.times_s[1:], *(time_s + period_s for time_s in self.times_s[first:]))
        longest_s, low_s = 0.0, min(0.0, self.times_s[0])
        for end_s, value in zip((*ends_s, self.end_s + period_s), self.values + self.values[first:], strict=True):
            if value < least:
                low_s = end_s
            elif end_s - low_s > longest_s:
                longest_s = end_s - low_s
        return longest_s

    def _first_from(self, time_s: float) -> int:
        return min(max(0, self._place(time_s)[1]), self._loop[0]) if time_s > -math.inf else 0


def combined(parts: Sequence[Timeline], join: Callable[[Iterable[float]], float]) -> Timeline:
    """Return the series of a function of the values of others, with the name, the unit and the date of the first.

    It repeats if one of them does, after the least common multiple of their periods. Raises InputError.
    """
    repeating = [part for part in parts if part.repeats]
    settled_s = max(part.times_s[part.loop or 0] if part.repeats else part.settled_s for part in parts)
    period_s = _common_period_s(repeating) if repeating else math.inf
    end_s = settled_s + period_s
    plain = [part.upto(end_s) for part in parts]
    edges = sorted({settled_s, *(time_s for part in plain for time_s in part.times_s if time_s < end_s)})
    # changes of parts that differ by rounding are one, at the later time
    settled_s = max(time_s for time_s in edges if time_s <= settled_s + REPORTED_S)
    times = [now_s for now_s, next_s in pairwise((*edges, end_s)) if next_s - now_s > REPORTED_S]
    values = tuple(join(part.at(time_s) for part in plain) for time_s in times)
    ends_s = max((part.end_s for part in parts if part.loop is None), default=-math.inf)
    if repeating:
        loop: int | None = times.index(settled_s)
    else:
        loop, period_s = (None, ends_s - times[0]) if ends_s > times[-1] else (-1, 0.0)
    first, dated = parts[0], next((part for part in parts if part.date_s is not None), parts[0])
    return Timeline(
        tuple(times), values, first.name, first.source, first.unit, dated.date_s, dated.pinned, loop, period_s
    )


def _common_period_s(repeating: Sequence[Timeline]) -> float:
    """Return the period in s after which all of some series repeat. Raises InputError."""
    periods_s = list(dict.fromkeys(part.period_s for part in repeating))
    common_s = periods_s[0]
    for period_s in periods_s[1:]:
        # Euclid's algorithm; what is less than the clock of a run is a rounding error
        divisor_s, rest_s = period_s, abs(math.remainder(common_s, period_s))
        while rest_s > REPORTED_S:
            divisor_s, rest_s = rest_s, abs(math.remainder(divisor_s, rest_s))
        common_s *= round(period_s / divisor_s)
    rows = sum(len(part) * common_s / part.period_s for part in repeating)
    if not rows <= MAX_ROWS:
        lengths = " and ".join(f"{period_s:.15g} s" for period_s in periods_s)
        problem = f"repeats with another series, every {lengths}, which have no common period of {MAX_ROWS} rows"
        raise InputError(repeating[0].source, problem, "let one period be a multiple of the other: to= or days=")
    return common_s


def least_of(one: Timeline, other: Timeline) -> Timeline:
    """Return the smaller of two series at any time. Raises InputError."""
    return replace(combined((one, other), min), source=f"least of {one.source} and {other.source}")


def least_around(series: Timeline, before_s: float, after_s: float) -> Timeline:
    """Return the series of the least value from `before_s` s before each time to `after_s` s after it."""
    if not (before_s or after_s):
        return series
    if series.repeats:
        # what is before `settled_s` may look back to rows that do not come again
        period_s = series.end_s - series.times_s[series.loop or 0]
        settled_s = max(0.0, series.times_s[series.loop or 0] + before_s)
        plain = least_around(series.upto(settled_s + 2.0 * period_s + after_s), before_s, after_s)
        times = sorted({settled_s, *(time_s for time_s in plain.times_s if time_s < settled_s + period_s)})
        values = tuple(plain.at(time_s) for time_s in times)
        again = times.index(settled_s)
        return Timeline(tuple(times), values, series.name, series.source, series.unit, loop=again, period_s=period_s)
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
    return Timeline(tuple(least), tuple(least.values()), series.name, series.source, series.unit)


def bounded(series: Timeline, where: object) -> Timeline:
    """Return a series from a file or from Python. Raises InputError for a time or a value that is too large."""
    for time_s, bound_s in ((series.times_s[-1], LATEST_S), (series.end_s, LARGEST)):
        if not time_s <= bound_s:
            problem = f"has a time of {time_s:.15g} s, {time_s / YEAR_S:.6g} years on"
            raise InputError(where, problem, "divide its times by 1000 if they are milliseconds")
    largest = max(-min(series.values), max(series.values))
    if not largest <= LARGEST:
        raise InputError(where, f"{largest:g} is larger than {LARGEST:g}, the bound of values", "correct the value")
    return series


def checked_capacity(series: Timeline, slots: int | None, where: object) -> Timeline:
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
