"""The profile of a machine compared with adding up what runs at a time."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.schedulers.riskaware.target_plan import Profile

RUNS = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 3))
"""Start and length in s, cores."""


@examples(300)
@given(st.lists(RUNS, max_size=12))
def test_a_profile_adds_up_what_runs(runs):
    profile = Profile()
    for start, length, cores in runs:
        profile.occupy(bisect_right(list(profile.since), start) - 1, start, start + length, cores)
    for at in range(20):
        expected = sum(cores for start, length, cores in runs if start <= at < start + length)
        assert profile.used[bisect_right(list(profile.since), at) - 1] == expected
    assert all(one < two for one, two in pairwise(list(profile.since)))
    # neighbours of equal use are one step
    assert all(one != two for one, two in pairwise(list(profile.used)))
