"""Statements of a document's results, and their verdicts: one rule for all papers.

`statements.csv` of a paper's folder has a row for every statement of the results of its document, in its order, written
from the document alone. A row has a `quantity` that is larger than `neutral` if the statement is true (no neutral: the
statement only gives a value), and the sizes `low` to `high` that the document states; a single number v means
0.75 v to 1.25 v, but 100 % is all. The verdict compares them with the 95 % interval of the quantity in our runs:

    no              the interval is below the neutral value, or all samples equal it; without one, apart from the sizes
    open            the interval includes the neutral value; without one, overlaps with the sizes; nothing was measured
    yes             the interval is within the sizes, or above the neutral value if no size is stated
    direction only  the interval is above the neutral value, and not within the sizes

The interval is the estimate -+ t s: s is the jackknife's standard error over samples (workloads, or pairs of a trace
and a walk), t the 97.5 % quantile of Student's t with one degree of freedom less than samples. Of a mean it is the
usual interval; the largest or the least of several means has one in the same way. A positive quotient in `times` has it
by its logarithm, as it cannot be negative. A quantity that is an extreme over samples, a count or a rank has none, and
is open.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batwatt.results.compared import sure
from papers.pages import NOTHING, markdown, number

YES, DIRECTION, NO, OPEN = VERDICTS = ("yes", "direction only", "no", "open")
AROUND = 0.25
"""Share of a single stated number by which ours may differ."""
TIMES = "times"
"""Unit of quotients."""


@dataclass(frozen=True)
class Statement:
    """A statement: its number in the list, its place, the quantity that decides it, and the sizes that it states."""

    place: int
    where: str
    statement: str
    unit: str
    neutral: float | None
    low: float | None
    high: float | None

    @property
    def sizes(self) -> tuple[float, float] | None:
        """The least and the largest size that agree with the document; None if it states none."""
        low, high = self.low, self.high
        if low is not None and low == high:
            if self.unit == "%" and low == 100.0:
                return 100.0, 100.0
            return low - AROUND * abs(low), low + AROUND * abs(low)
        if low is None and high is None:
            return None
        return -math.inf if low is None else low, math.inf if high is None else high


@dataclass(frozen=True)
class Measured:
    """A quantity in our runs and its 95 % interval."""

    value: float
    low: float
    high: float


class Samples:
    """Values of keys, such as (algorithm, figure), in each sample; a sample may be left out."""

    def __init__(self, values: Mapping[Hashable, NDArray[np.float64]], out: int | None = None) -> None:
        self.values = values
        self._out = out

    @classmethod
    def of_columns(cls, frame: pd.DataFrame) -> Samples:
        """Return the columns of a table by their names, a sample for each row."""
        return cls({(name,): frame[name].to_numpy(float) for name in frame})

    def of(self, *key: Hashable) -> NDArray[np.float64]:
        """Return the values of a key, one for each sample. Raises KeyError."""
        values = self.values[key]
        return values if self._out is None else np.delete(values, self._out)

    def __call__(self, *key: Hashable) -> float:
        """Return the mean of a key over the samples. Raises KeyError."""
        return float(self.of(*key).mean())

    def __len__(self) -> int:
        return len(next(iter(self.values.values()))) - (self._out is not None)

    def without(self, sample: int) -> Samples:
        """Return all samples but one."""
        return Samples(self.values, sample)


Statistic = Callable[[Samples], float]


def _by(
    operator: Callable[[float, float], float], swapped: bool = False
) -> Callable[[Quantity, Quantity | float], Quantity]:
    def method(one: Quantity, other: Quantity | float) -> Quantity:
        def value(m: Samples) -> float:
            both = one(m), other(m) if isinstance(other, Quantity) else float(other)
            return operator(*both[::-1]) if swapped else operator(*both)

        return Quantity(value)

    return method


class Quantity:
    """A statistic with arithmetic: the sum, the difference, the product or the quotient of statistics and numbers."""

    def __init__(self, statistic: Statistic) -> None:
        self._statistic = statistic

    def __call__(self, m: Samples) -> float:
        """Return the value in samples."""
        return float(self._statistic(m))

    __add__, __sub__, __rsub__, __truediv__ = _by(add), _by(sub), _by(sub, swapped=True), _by(truediv)
    __mul__ = __rmul__ = _by(mul)
    __rtruediv__ = _by(truediv, swapped=True)


def mean(*key: Hashable) -> Quantity:
    """Return the mean of a key as a quantity."""
    return Quantity(lambda m: m(*key))


def over(pick: Callable[..., float], quantities: Iterable[Quantity]) -> Quantity:
    """Return the mean, the least or the largest of quantities."""
    listed = list(quantities)
    return Quantity(lambda m: pick([one(m) for one in listed]))


def average(quantities: Iterable[Quantity]) -> Quantity:
    """Return the mean of quantities."""
    return over(lambda values: float(np.mean(values)), quantities)


def measured(statistic: Statistic, samples: Samples, unit: str = "") -> Measured:
    """Return a statistic of samples with its interval; it is unbounded for one sample.

    A positive quotient in the unit `times` has the interval of its logarithm. Raises ValueError for a statistic that is
    no finite number, also without one of the samples.
    """
    value, count = float(statistic(samples)), len(samples)
    rest = np.array([statistic(samples.without(sample)) for sample in range(count)] if count > 1 else [value])
    if not np.isfinite([value, *rest]).all():
        raise ValueError(f"the statistic is not a number: {value!r}, {rest.tolist()} without a sample")
    if count < 2:
        return Measured(value, -math.inf, math.inf)
    by_logarithm = unit == TIMES and min(value, *rest) > 0.0
    rest = np.log(rest) if by_logarithm else rest
    half = sure(count) * math.sqrt((count - 1) / count * float(((rest - rest.mean()) ** 2).sum()))
    # equal values differ by rounding
    half = 0.0 if half < 1e-9 * max(1.0, abs(value)) else half
    if by_logarithm:
        return Measured(value, value * math.exp(-half), value * math.exp(half))
    return Measured(value, value - half, value + half)


def verdict(statement: Statement, ours: Measured) -> str:
    """Return the verdict of a measured quantity."""
    sizes, neutral = statement.sizes, statement.neutral
    within = sizes is not None and sizes[0] <= ours.low and ours.high <= sizes[1]
    if neutral is None:
        if sizes is None:
            return OPEN
        return YES if within else NO if ours.high < sizes[0] or ours.low > sizes[1] else OPEN
    if ours.high < neutral or ours.low == ours.high == neutral:
        return NO
    if ours.low <= neutral:
        return OPEN
    return YES if within or sizes is None else DIRECTION


def statements_of(folder: Path) -> list[Statement]:
    """Return the statements of a paper's folder, in the order of the document."""
    with (folder / "statements.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    statements = []
    for place, row in enumerate(rows, 1):
        numbers = (float(row[name]) if row[name] else None for name in ("neutral", "low", "high"))
        statements.append(Statement(place, row["where"], row["statement"], row["unit"], *numbers))
    return statements


@dataclass(frozen=True)
class Verdicts:
    """The statements of a document and what was measured of them, by their places in the list."""

    statements: list[Statement]
    measured: Mapping[int, Measured]

    def verdict(self, statement: Statement) -> str:
        """Return the verdict of a statement, `open` if nothing was measured."""
        ours = self.measured.get(statement.place)
        return OPEN if ours is None else verdict(statement, ours)

    def counts(self) -> Counter[str]:
        """Return the number of statements by verdict."""
        return Counter(self.verdict(statement) for statement in self.statements)

    def cells(self, statement: Statement) -> list[str]:
        """Return the measured quantity with its interval, and the verdict."""
        ours = self.measured.get(statement.place)
        return [NOTHING if ours is None else _with_interval(ours, statement), self.verdict(statement)]


def counts_table(columns: Mapping[str, Verdicts]) -> str:
    """Return a row of counts for each set of runs by its name: statements, those measured, and each verdict."""
    named = [""] if any(columns) else []
    rows = []
    for name, judged in columns.items():
        counts = judged.counts()
        numbers = (len(judged.statements), len(judged.measured), *(counts[word] for word in VERDICTS))
        rows.append([*([name] if named else []), *map(str, numbers)])
    return markdown([*named, "statements", "measured", *VERDICTS], rows, len(named))


def statements_table(
    columns: Mapping[str, Verdicts], source: str = "the document", words: Sequence[str] = VERDICTS
) -> str:
    """Return a row for every statement: by each set of runs its quantity and verdict.

    Only statements with one of these verdicts by any of the sets. `source` is the heading of the statements.
    """
    heading = ["#", "where", source, "its size"]
    for name in columns:
        heading += [f"{name} (95 % interval)", "verdict"]
    rows = (
        [
            str(statement.place),
            statement.where,
            statement.statement.replace("|", "\\|"),
            _size(statement),
            *(cell for judged in columns.values() for cell in judged.cells(statement)),
        ]
        for statement in next(iter(columns.values())).statements
        if any(judged.verdict(statement) in words for judged in columns.values())
    )
    return markdown(heading, rows, texts=len(heading))


def statement_tables(
    columns: Mapping[str, Verdicts], source: str = "the document", contradicted: bool = False
) -> dict[str, str]:
    """Return the tables of a page: `summary` of the verdicts, `statements`, and if wanted those `contradicted`.

    A single set of runs has an empty name.
    """
    named = {name or "here": judged for name, judged in columns.items()}
    tables = {"summary": counts_table(columns), "statements": statements_table(named, source)}
    return tables | ({"contradicted": statements_table(named, source, (NO,))} if contradicted else {})


def verdicts(
    statements: list[Statement], measures: Mapping[int, Statistic], samples: Samples, single: Collection[int] = (),
    lenient: bool = False,
) -> Verdicts:  # fmt: skip
    """Measure what `measures` has, by the places of statements, in the samples; `single` ones have no interval.

    Raises LookupError for missing values unless `lenient`, ValueError for a statistic that is no finite number.
    """
    units, ours = {statement.place: statement.unit for statement in statements}, {}
    for place, statistic in measures.items():
        with suppress(LookupError if lenient else ()):
            one = measured(statistic, samples, units[place])
            ours[place] = Measured(one.value, -math.inf, math.inf) if place in single else one
    return Verdicts(statements, ours)


def verdicts_by_kind(
    statements: list[Statement],
    measures: Mapping[str, Mapping[int, Statistic]],
    samples: Mapping[str, Samples],
    single: Collection[int] = (),
) -> Verdicts:
    """Measure the statements of each kind of samples in these samples; else as `verdicts`."""
    ours: dict[int, Measured] = {}
    for kind, of_kind in measures.items():
        ours |= verdicts(statements, of_kind, samples[kind], single).measured
    return Verdicts(statements, ours)


def _size(statement: Statement) -> str:
    low, high = statement.low, statement.high
    if low is None and high is None:
        return NOTHING
    if low == high or high is None or low is None:
        word = "" if low == high else "at least " if high is None else "at most "
        return f"{word}{high if low is None else low:g} {statement.unit}".strip()
    return f"{low:g} to {high:g} {statement.unit}".strip()


def _with_interval(ours: Measured, statement: Statement) -> str:
    """Return a quantity with its interval, with the decimals that tell its bounds from the numbers that decide."""
    unit, places = statement.unit, 2 if statement.unit in (TIMES, "slowdown", "area") else 1
    if math.isinf(ours.low):
        return f"{number(ours.value, places)} {unit}".strip()
    marks = [mark for mark in (0.0, statement.neutral, *(statement.sizes or ())) if mark is not None]
    while places < 4 and any(
        bound != mark and round(bound, places) == mark for bound in (ours.low, ours.high) for mark in marks
    ):
        places += 1
    if math.isinf(ours.high):
        return f"at least {number(ours.low, places)} {unit}".strip()
    if ours.low == ours.high:
        return f"{number(ours.value, places)} (the same in all) {unit}".strip()
    return f"{number(ours.value, places)} ({number(ours.low, places)} to {number(ours.high, places)}) {unit}".strip()
