"""Claims that pairs of runs decide: two algorithms, or two capacities, on equal jobs and an equal random walk.

A point is a row of a frame: a run, or the mean of runs that differ in the seed of the algorithm only. Two points are a
pair if they agree in all `Points.dimensions` but the compared ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from batwatt.results.compared import mean_of, sure
from papers.claims import NO, OPEN, PARTLY, YES
from papers.pages import markdown, number
from papers.runs import FIXED

Side = Mapping[str, str | float]
How = Literal["difference", "more", "less", "times"]
REPEATED = ("trace", "walk")
"""Dimensions of repetitions: points that differ only in these belong to one number."""
MISSING = -1.0
"""Value of a missing number, so that missing numbers are equal."""


@dataclass(frozen=True)
class Points:
    """The points of a study and the columns of their parameters; `study` is one of them."""

    frame: pd.DataFrame
    dimensions: Sequence[str]


@dataclass(frozen=True)
class Pairs:
    """A comparison in the studies whose names are, or begin with, one of `stems`.

    `first` and `second` are values of columns, and both have those of `also`; the two may also differ in `free`. `how`:
    `difference`, first - second; `more`, the excess of the first over the second in %; `less`, the shortfall of the
    second below the first in %; `times`, first / second. The claim is that the number is above `threshold`, by default
    0, or 1 for `times`.
    """

    stems: tuple[str, ...]
    first: Side
    second: Side
    _: KW_ONLY
    measure: str = "goodput_percent"
    how: How = "difference"
    threshold: float | None = None
    also: Side = field(default_factory=dict)
    free: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        """Bound below the number of a claim that holds."""
        return (1.0 if self.how == "times" else 0.0) if self.threshold is None else self.threshold

    @property
    def unit(self) -> str:
        """Unit of the number, with a blank before it."""
        units = {"percent": " points", "min": " min", "h": " h"}
        of_difference = units.get(self.measure.removesuffix("_short").removesuffix("_long").rpartition("_")[2], "")
        return {"times": " times", "difference": of_difference}.get(self.how, f" % {self.how}")

    def compared(self, first: pd.Series, second: pd.Series) -> pd.Series:
        """Return the numbers of pairs; NaN for a quotient with the divisor 0."""
        if self.how == "difference":
            return first - second
        if self.how == "less":
            return 100.0 * (1.0 - second / first.where(first != 0.0))
        quotient = first / second.where(second != 0.0)
        return 100.0 * (quotient - 1.0) if self.how == "more" else quotient


def interval(values: pd.Series) -> tuple[float, float, float]:
    """Return mean, standard error and half the 95 % interval (Student's t) of numbers; both are NaN for one number."""
    mean, error, count = mean_of(values)
    return mean, error, error * sure(count)


def verdict(mean: float, half: float, least: float) -> str:
    """Return the verdict of an interval: above a bound, below it, or open; the interval of one number is open."""
    if mean - half > least:
        return YES
    return NO if mean + half < least else OPEN


def numbers(points: Points, compared: Sequence[Pairs]) -> pd.DataFrame:
    """Return a row per comparison and point with pairs: its description, mean, error, pairs and verdict."""
    rows = []
    for pairs in compared:
        studies = dict.fromkeys(points.frame["study"])
        for study in (
            name for name in studies if any(name == stem or name.startswith(f"{stem}-") for stem in pairs.stems)
        ):
            for point, values in _values(points, study, pairs):
                mean, error, half = interval(values)
                sides = (", ".join(map(str, side.values())) for side in (pairs.first, pairs.second))
                rows.append((study, point, pairs.measure, *sides, mean, error, len(values), pairs.unit.strip(),
                             verdict(mean, half, pairs.least)))  # fmt: skip
    heading = ["study", "point", "measure", "first", "second", "number", "standard_error", "pairs", "unit", "verdict"]
    return pd.DataFrame(rows, columns=heading)


def _values(points: Points, study: str, pairs: Pairs) -> Iterator[tuple[str, pd.Series]]:
    """Yield the description of each number and the numbers of its pairs."""
    rows = points.frame[points.frame["study"] == study]
    if "structure" in rows and not any("structure" in side for side in (pairs.first, pairs.second, pairs.also)):
        # no run is terminated under a fixed capacity
        rows = rows[rows["structure"] != FIXED]
    first, second = (_picked(rows, {**pairs.also, **side}, points.dimensions) for side in (pairs.first, pairs.second))
    free = {*pairs.first, *pairs.second, *pairs.free}
    # points are those of the larger side
    swapped = len(second) > len(first)
    here, there = (second, first) if swapped else (first, second)
    same = [name for name in points.dimensions if name not in free]
    # a point of one capacity is compared with every walk of the other side
    others = there.drop_duplicates(list(points.dimensions))[[*same, pairs.measure]]
    matched = here[[*points.dimensions, pairs.measure]].merge(others, on=same, suffixes=("", "_there"))
    one, other = matched[pairs.measure], matched[f"{pairs.measure}_there"]
    values = pairs.compared(*((other, one) if swapped else (one, other)))
    by = _apart(matched, points.dimensions)
    for where, part in matched.groupby(by, sort=False) if by else (((), matched),):
        left = values[part.index].dropna()
        if len(left):
            yield ", ".join(f"{name} {value:g}" if isinstance(value, float) else str(value)
                            for name, value in zip(by, where, strict=True)), left  # fmt: skip


def _picked(rows: pd.DataFrame, side: Side, dimensions: Sequence[str]) -> pd.DataFrame:
    """Return the rows with the values of a side; numbers are compared within rounding."""
    for name, value in side.items():
        rows = rows[np.isclose(rows[name], value) if isinstance(value, float) else rows[name] == value]
    wholes = [name for name in dimensions if pd.api.types.is_numeric_dtype(rows[name])]
    return rows.assign(**{name: rows[name].fillna(MISSING) for name in wholes})


def _apart(matched: pd.DataFrame, dimensions: Sequence[str]) -> list[str]:
    """Return the dimensions that distinguish points, without those that follow from others."""
    names: list[str] = []
    count = 1
    for name in dimensions:
        if name not in REPEATED and (more := len(matched[[*names, name]].drop_duplicates())) > count:
            names, count = [*names, name], more
    return names


@dataclass(frozen=True)
class Decided:
    """The test of a claim by pairs: the count of numbers that agree with it, and their least, mean and largest.

    The claim holds if at least half of the numbers are decided and all of these agree, in part on a tie.
    """

    compared: tuple[Pairs, ...]
    decimals: int | None = None

    def __call__(self, points: Points) -> tuple[str, str]:
        """Return the outcome of points as a text, and the verdict."""
        return self.outcome(numbers(points, self.compared))

    def outcome(self, rows: pd.DataFrame) -> tuple[str, str]:
        """Return the text and the verdict of numbers; rows as of `numbers`."""
        if rows.empty:
            return "not run", OPEN
        yes, no = (int((rows["verdict"] == word).sum()) for word in (YES, NO))
        first = self.compared[0]
        places = self.decimals if self.decimals is not None else 2 if first.how == "times" else 1
        low, mean, high = (number(value, places) for value in rows["number"].agg(["min", "mean", "max"]))
        if len(rows) == 1:
            error = rows["standard_error"].iloc[0]
            text = mean + ("" if math.isnan(error) else f" ± {number(error, places)}") + first.unit
        else:
            text = f"{yes} of {len(rows)}, {no} against; {mean} ({low} to {high}){first.unit}"
        if yes and not no and 2 * yes >= len(rows):
            return text, YES
        return text, NO if no > yes else PARTLY if yes else OPEN


def decided(*compared: Pairs, decimals: int | None = None) -> Decided:
    """Return the test of a claim by these pairs."""
    return Decided(compared, decimals)


def all_numbers(points: Points, claims: Sequence[Any]) -> pd.DataFrame:
    """Return every number of the claims that pairs decide, with the number of its claim in the table."""
    tables = [
        numbers(points, claim.test.compared).assign(claim=place)
        for place, claim in enumerate(claims, 1)
        if isinstance(claim.test, Decided)
    ]
    frame = pd.concat(tables, ignore_index=True)
    return frame[["claim", *(name for name in frame if name != "claim")]]


def means_table(rows: pd.DataFrame, by: Sequence[str], over: str, measure: str, decimals: int = 1) -> str:
    """Return mean ± standard error of a measure: a row per value of `by`, a column per value of `over`, ascending."""
    cells = {}
    for where, values in rows.groupby([*by, over], sort=False)[measure]:
        mean, error, _ = interval(values)
        cells[where] = number(mean, decimals) + ("" if math.isnan(error) else f" ± {number(error, decimals)}")
    across = sorted({where[-1] for where in cells})
    lines = [[*map(_text, where), *(cells.get((*where, x), "") for x in across)]
             for where in dict.fromkeys(where[:-1] for where in cells)]  # fmt: skip
    return markdown([*by, *map(_text, across)], lines, texts=len(by))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
