"""Sets of hosts as integers against Python's sets and against procset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from procset import ProcSet

from batwatt.model.hostset import HostSet, from_text, ids, intervals, lowest, span, to_text

sets = st.sets(st.integers(0, 300))


@given(sets)
def test_text_and_members_are_those_of_procset(hosts):
    ours, theirs = HostSet.of(hosts), ProcSet(*hosts)
    assert str(ours) == str(theirs)
    assert list(ours) == sorted(hosts) == list(theirs)
    assert len(ours) == len(hosts)
    assert HostSet.of(theirs) == ours
    if hosts:
        assert from_text(str(theirs)) == ours.mask == from_text(str(theirs).replace(" ", ","))


@given(sets, sets)
def test_algebra(one, other):
    a, b = HostSet.of(one), HostSet.of(other)
    assert set(a & b) == one & other
    assert set(a | b) == one | other
    assert set(a - b) == one - other
    assert all((host in a) == (host in one) for host in range(0, 301, 7))
    assert bool(a) == bool(one)
    assert (a == b) == (one == other)


@given(sets, st.integers(0, 310))
def test_the_lowest_hosts(hosts, count):
    mask = HostSet.of(hosts).mask
    if count > len(hosts):
        with pytest.raises(ValueError, match="lacks"):
            lowest(mask, count)
    else:
        assert ids(lowest(mask, count)) == sorted(hosts)[:count]


def test_runs():
    assert list(intervals(0b1101110)) == [(1, 3), (5, 6)]
    assert list(intervals(0)) == []
    assert span(2, 4) == 0b11100
    assert to_text(span(0, 49_151)) == "0-49151"


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=99))
def test_runs_of_many(low, runs):
    """Runs of (hosts, gap), few or many hosts, from host `low` on."""
    pairs = []
    for hosts, gap in runs:
        pairs.append((low, low + hosts - 1))
        low += hosts + gap
    assert intervals(sum(span(*pair) for pair in pairs)) == pairs


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0-99999999999", "1--2"])
def test_what_is_not_a_set_of_hosts(text):
    with pytest.raises(ValueError, match=r"."):
        from_text(text)
