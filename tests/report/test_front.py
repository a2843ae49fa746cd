"""The law of a Pareto front, against its definition."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from batwatt.report.front import dominates, front_of

COSTS = st.lists(st.tuples(*[st.integers(0, 6).map(float)] * 2), max_size=12)


@given(COSTS)
def test_the_front_is_what_nothing_dominates(costs):
    front = front_of(costs)
    # nothing on it dominates another of it, and whatever is not on it is dominated by something on it
    assert not any(dominates(a, b) for a in front for b in front)
    assert all(one in front or any(dominates(a, one) for a in front) for one in costs)
    assert set(front) <= set(costs) and len(set(front)) == len(front)
    # from left to right it falls
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(front))


def test_equal_costs_do_not_dominate_one_another():
    assert not dominates((1.0, 2.0), (1.0, 2.0)) and dominates((1.0, 1.0), (1.0, 2.0))
    assert front_of([(1.0, 2.0), (1.0, 2.0), (2.0, 2.0), (0.0, 5.0)]) == [(0.0, 5.0), (1.0, 2.0)]
    assert front_of([]) == []
