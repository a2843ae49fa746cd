"""Claims that pairs of runs decide, worked out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from papers.claims import NO, OPEN, PARTLY, YES
from papers.pairs import Pairs, Points, decided, interval, numbers, verdict

DIMENSIONS = ("study", "label", "structure", "range", "trace", "walk")


def points(*rows) -> Points:
    names = [*DIMENSIONS, "goodput_percent", "wait_min"]
    return Points(pd.DataFrame([(*row, row[-1] / 10.0) for row in rows], columns=names), DIMENSIONS)


def walks(label: str, size: float, values, study: str = "s-a") -> list[tuple]:
    return [(study, label, "walk", size, "t0", float(n), value) for n, value in enumerate(values)]


def test_an_interval_by_hand():
    """Of 1, 2, 3 the mean is 2, the deviation 1, the error 1 / sqrt(3), and t of two degrees of freedom 4.30."""
    assert interval(pd.Series([1.0, 2.0, 3.0])) == pytest.approx((2.0, 3.0**-0.5, 4.30 * 3.0**-0.5))
    mean, *unknown = interval(pd.Series([5.0]))
    assert mean == 5.0 and all(map(math.isnan, unknown))
    assert [verdict(2.0, 1.9, 0.0), verdict(-2.0, 1.9, 0.0), verdict(2.0, 2.1, 0.0)] == [YES, NO, OPEN]
    assert verdict(9.0, math.nan, 0.0) == OPEN


def test_pairs_are_of_the_same_jobs_and_walk():
    """Walks 0 and 1 are of both; 2 is of one only, as is the range 0.6; another study is not asked."""
    frame = points(*walks("a", 0.2, [12.0, 14.0, 99.0]), *walks("b", 0.2, [10.0, 10.0]), *walks("a", 0.6, [5.0]),
                   *walks("a", 0.2, [1.0], "other"), *walks("b", 0.2, [2.0], "other"))  # fmt: skip
    table = numbers(frame, [Pairs(("s",), {"label": "a"}, {"label": "b"})])
    assert table[["study", "point", "number", "pairs"]].values.tolist() == [["s-a", "", 3.0, 2]]


def test_several_numbers_and_their_verdicts():
    good, bad, unsure = [3.0, 3.1, 3.2], [-3.0, -3.1, -3.2], [-1.0, 0.0, 1.0]

    def told(*cases) -> tuple[str, str]:
        rows = [row for n, case in enumerate(cases) for label, values in (("a", case), ("b", [0.0] * 3))
                for row in walks(label, float(n), values)]  # fmt: skip
        return decided(Pairs(("s",), {"label": "a"}, {"label": "b"}))(points(*rows))

    assert told(good) == ("3.1 ± 0.1 points", YES) and told(bad)[1] == NO and told(unsure) == ("0.0 ± 0.6 points", OPEN)
    assert told(good, unsure) == ("1 of 2, 0 against; 1.6 (0.0 to 3.1) points", YES)
    assert told(good, unsure, unsure)[1] == PARTLY and told(good, bad)[1] == PARTLY and told(bad, unsure)[1] == NO
    assert decided(Pairs(("x",), {"label": "a"}, {"label": "b"}))(points(*walks("a", 0.2, good))) == ("not run", OPEN)
