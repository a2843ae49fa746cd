"""Which jobs a power check lets start, worked out by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.schedulers.jobpower.power import Candidate, Headroom, Load
from batwatt.scheduling.registry import make, names

A = Load(200.0, 100.0, 400.0, 150.0)
B = Load(200.0, 60.0, 900.0, 120.0)
BOTH = {
    "node": 400.0,
    "mean": 160.0,
    "max": 270.0,
    # the root of 400 + 900 is 36.06, less than 20 + 30
    "gaussian": 160.0 + math.sqrt(1300.0),
    "knapsack": 160.0,
}


def candidate(hosts, watts, late=False):
    return Candidate(hosts, Load(300.0 * hosts, watts, 0.0, 1.5 * watts), late)


NONE = Load()


def room(hosts, cap, used=NONE, late_hosts=0, late_load=NONE):
    return Headroom(hosts, used, late_hosts, late_load, cap)


def started(check, jobs, left):
    """The positions of the jobs that start, each of those that are tried if it fits with those before it."""
    starts = []
    for index in check.pick(jobs, left):
        after = check.after(jobs[index], left)
        if after is not None:
            left = after
            starts.append(index)
    return starts


def test_every_check_has_an_example():
    assert sorted(BOTH) == names("power_check")


@pytest.mark.parametrize("name", BOTH)
def test_what_two_jobs_are_taken_to_draw(name):
    check = make("power_check", name)
    assert check.bound_w(A.plus(B)) == pytest.approx(BOTH[name])
    assert check.bound_w(Load.of([A, B])) == pytest.approx(BOTH[name])
    assert check.bound_w(Load.of([])) == 0.0
    assert check.fits(A.plus(B), BOTH[name]) and not check.fits(A.plus(B), BOTH[name] - 0.001)
    margin = make("power_check", {"name": "gaussian", "sigma": 2.0})
    assert margin.bound_w(A.plus(B)) == pytest.approx(160.0 + 2.0 * math.sqrt(1300.0))


def test_late_ones_fit_now_and_with_the_reserved_job():
    reserved = Load(300.0, 200.0, 0.0, 200.0)
    jobs = [
        candidate(1, 40.0),
        candidate(1, 40.0, late=True),
        candidate(1, 20.0, late=True),
        candidate(1, 5.0, late=True),
    ]
    space = room(4, 250.0, Load(300.0, 100.0, 0.0, 100.0), 2, reserved)
    # late ones have 2 hosts and 50 W: 40 W, then 5 W
    assert started(make("power_check", "mean"), jobs, space) == [0, 1, 3]
    assert started(make("power_check", "mean"), jobs, room(4, 250.0, late_hosts=0, late_load=reserved)) == [0]


def test_a_knapsack_uses_more_hosts():
    jobs = [candidate(1, 100.0), candidate(2, 80.0), candidate(2, 70.0)]
    assert started(make("power_check", "mean"), jobs, room(5, 150.0)) == [0]
    assert started(make("power_check", "knapsack"), jobs, room(5, 150.0)) == [1, 2]
    # only the first two are looked at
    assert started(make("power_check", {"name": "knapsack", "depth": 2}), jobs, room(5, 150.0)) == [1]
    # among equals the earlier ones
    assert started(make("power_check", "knapsack"), [candidate(2, 80.0)] * 3, room(4, 200.0)) == [0, 1]


@examples(60)
@given(
    rows=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 100), st.booleans()), min_size=1, max_size=8),
    hosts=st.integers(1, 10),
    late_hosts=st.integers(0, 6),
    cap=st.integers(0, 250),
)
def test_a_knapsack_is_the_best_of_all_sets(rows, hosts, late_hosts, cap):
    jobs = [candidate(width, float(watts), late) for width, watts, late in rows]

    def worth(members):
        return sum(rows[i][0] for i in members)

    def good(members):
        late = [i for i in members if rows[i][2]]
        now = sum(rows[i][0] for i in members) <= hosts and sum(rows[i][1] for i in members) <= cap
        # the reserved job draws 20 W
        later = sum(rows[i][0] for i in late) <= late_hosts and sum(rows[i][1] for i in late) + 20 <= cap
        return now and (later or not late)

    late_load = Load(300.0, 20.0, 0.0, 20.0)
    picked = make("power_check", "knapsack").pick(
        jobs, room(hosts, float(cap), late_hosts=late_hosts, late_load=late_load)
    )
    sets = (s for count in range(len(rows) + 1) for s in itertools.combinations(range(len(rows)), count))
    assert good(picked)
    assert worth(picked) == max(worth(s) for s in sets if good(s))


@pytest.mark.parametrize(
    "choice,words",
    [
        ({"name": "gaussian", "sigma": -1}, "sigma must be from 0 to 100"),
        ({"name": "knapsack", "depth": 0}, "depth must be a whole number"),
    ],
)
def test_wrong_parameters(choice, words):
    with pytest.raises(InputError, match=words):
        make("power_check", choice)
