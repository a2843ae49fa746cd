"""The one rule for verdicts, and its intervals, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.statements import (
    DIRECTION,
    NO,
    OPEN,
    YES,
    Measured,
    Samples,
    Statement,
    Verdicts,
    counts_table,
    measured,
    statements_table,
    verdict,
    verdicts,
)


def statement(neutral=None, low=None, high=None, unit="points"):
    return Statement(1, "6.1", "A is above B", unit, neutral, low, high)


@pytest.mark.parametrize(
    ("neutral", "low", "high", "interval", "expected"),
    [
        # no size is stated
        (0.0, None, None, (0.1, 9.0), YES),
        (0.0, None, None, (-0.1, 9.0), OPEN),
        (0.0, None, None, (0.0, 9.0), OPEN),
        (0.0, None, None, (-9.0, -0.1), NO),
        # equal in all samples: there is no difference
        (0.0, None, None, (0.0, 0.0), NO),
        (0.0, None, None, (2.0, 2.0), YES),
        # 10 is 7.5 to 12.5
        (0.0, 10.0, 10.0, (7.5, 12.5), YES),
        (0.0, 10.0, 10.0, (7.4, 12.0), DIRECTION),
        (0.0, 10.0, 10.0, (20.0, 30.0), DIRECTION),
        (0.0, 10.0, 10.0, (-1.0, 12.0), OPEN),
        # from 2 to 3 times
        (1.0, 2.0, 3.0, (2.0, 3.0), YES),
        (1.0, 2.0, 3.0, (1.9, 2.5), DIRECTION),
        (1.0, 2.0, 3.0, (0.5, 0.9), NO),
        # more than twice
        (1.0, 2.0, None, (2.1, 99.0), YES),
        (1.0, 2.0, None, (1.1, 99.0), DIRECTION),
        # a value without a neutral one
        (None, 20.0, 25.0, (21.0, 24.0), YES),
        (None, 20.0, 25.0, (24.0, 27.0), OPEN),
        (None, 20.0, 25.0, (26.0, 27.0), NO),
        (None, 20.0, 25.0, (-math.inf, math.inf), OPEN),
        (None, 0.0, 0.0, (0.0, 0.0), YES),
        (None, 0.0, 0.0, (1.0, 1.0), NO),
        # nothing to compare with
        (None, None, None, (1.0, 2.0), OPEN),
    ],
)
def test_verdicts(neutral, low, high, interval, expected):
    assert verdict(statement(neutral, low, high), Measured(sum(interval) / 2.0, *interval)) == expected


def test_the_interval_of_a_mean_is_that_of_student():
    """2, 4, 6, 8: mean 5, standard error sqrt(20 / 3 / 4) = 1.290994; t with 3 degrees of freedom is 3.18."""
    ours = measured(lambda m: m("A"), Samples({("A",): np.array([2.0, 4.0, 6.0, 8.0])}))
    assert (ours.value, ours.low, ours.high) == pytest.approx((5.0, 5.0 - 4.105362, 5.0 + 4.105362))


def test_a_quotient_of_means_and_the_largest_of_means():
    """A / B is 5 / 2.5; without samples 1 to 4 it is 6 / 3, 16 / 3 / (7 / 3), ... of the sums left."""
    samples = Samples({("A",): np.array([2.0, 4.0, 6.0, 8.0]), ("B",): np.array([1.0, 3.0, 2.0, 4.0])})
    rest = np.array([18 / 9, 16 / 7, 14 / 8, 12 / 6])
    half = 3.18 * math.sqrt(3 / 4 * ((rest - rest.mean()) ** 2).sum())
    ours = measured(lambda m: m("A") / m("B"), samples)
    assert (ours.value, ours.high - ours.value) == pytest.approx((2.0, half))
    largest = measured(lambda m: max(m("A"), m("B")), samples)
    assert largest == measured(lambda m: m("A"), samples)


def test_a_quotient_in_times_has_the_interval_of_its_logarithm():
    """Of the geometric mean of 1, 2 and 4 it is ln 2 -+ 4.30 x ln 2 / sqrt 3: never below 0."""
    samples = Samples({("A",): np.log([1.0, 2.0, 4.0])})
    ours = measured(lambda m: math.exp(m("A")), samples, "times")
    half = 4.30 * math.log(2.0) / math.sqrt(3.0)
    assert (ours.low, ours.value, ours.high) == pytest.approx((2.0 * math.exp(-half), 2.0, 2.0 * math.exp(half)))
    # not of a quotient that is not positive
    assert measured(lambda m: m("A") - 1.0, samples, "times") == measured(lambda m: m("A") - 1.0, samples)


def test_several_sets_of_runs_stand_side_by_side():
    statements = [statement(0.0)]
    columns = {"text": Verdicts(statements, {1: Measured(1.0, 0.5, 1.5)}), "program": Verdicts(statements, {})}
    assert counts_table(columns).splitlines()[2:] == [
        "| text | 1 | 1 | 1 | 0 | 0 | 0 |",
        "| program | 1 | 0 | 0 | 0 | 0 | 1 |",
    ]
    assert statements_table(columns).splitlines()[2:] == [
        "| 1 | 6.1 | A is above B | – | 1.0 (0.5 to 1.5) points | yes | – | open |"
    ]
    assert len(statements_table(columns, words=(OPEN,)).splitlines()) == 3
    assert len(statements_table(columns, words=(NO,)).splitlines()) == 2


def test_one_sample_has_no_interval():
    ours = measured(lambda m: m("A"), Samples({("A",): np.array([2.0])}))
    assert ours == Measured(2.0, -math.inf, math.inf) and verdict(statement(0.0), ours) == OPEN


def test_a_statement_without_a_measure_is_open():
    statements = [statement(0.0), Statement(2, "6.2", "A | B", "times", 1.0, 2.0, 3.0)]
    verdicts = Verdicts(statements, {2: Measured(2.5, 2.25, 2.75)})
    assert (
        counts_table({"": verdicts}).splitlines()[0] == "| statements | measured | yes | direction only | no | open |"
    )
    assert counts_table({"": verdicts}).splitlines()[2] == "| 2 | 1 | 1 | 0 | 0 | 1 |"
    assert [line[:4] for line in statements_table({"here": verdicts}, words=(YES,)).splitlines()[2:]] == ["| 2 "]
    assert statements_table({"here": verdicts}).splitlines()[2:] == [
        "| 1 | 6.1 | A is above B | – | – | open |",
        "| 2 | 6.2 | A \\| B | 2 to 3 times | 2.50 (2.25 to 2.75) times | yes |",
    ]


def test_all_means_all():
    assert verdict(statement(None, 100.0, 100.0, "%"), Measured(99.9, 99.9, 99.9)) == NO
    assert verdict(statement(None, 100.0, 100.0, "%"), Measured(100.0, 100.0, 100.0)) == YES


@pytest.mark.parametrize("values", [[2.0, math.nan], [2.0, math.inf]])
def test_what_is_no_number_has_no_verdict(values):
    with pytest.raises(ValueError, match="not a number"):
        measured(lambda m: m("A"), Samples({("A",): np.array(values)}))


def test_a_count_has_no_interval():
    judged = verdicts([statement(0.0)], {1: lambda m: m("A")}, Samples({("A",): np.array([2.0, 2.0])}), single=(1,))
    assert judged.measured[1] == Measured(2.0, -math.inf, math.inf) and judged.counts() == {OPEN: 1}
