"""What varcap knows of run times and of the future (docs/explanation/varcap.md), by hand (see test_varcap_rules)."""

from __future__ import annotations

import pytest
from varcap_talk import plain, scheduler


@pytest.fixture(params=[scheduler, plain], ids=["scheduler", "plain"])
def varcap(request):
    return request.param


# foresight --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length,start", [(150, "150-300@0"), (100.5, "150-250.5@0"), (100, "0-100@1")])
def test_a_start_that_would_fail_is_refused(varcap, length, start):
    # one of two machines stays at 100 s, and a needs one: b may start if it is over just then
    told = varcap("a 0 150 1", f"b 0 {length} 1", machines=2, capacity="2 100:1", knowledge="exact", foresight_h=1)
    assert told == {"a": "0-150@0", "b": start}


def test_a_job_that_ends_at_the_change_is_not_in_the_way(varcap):
    # a ends at 100 s, when b needs the machine that stays: its own, for a's is idle then and leaves
    told = varcap("a 0 100 1", "b 0 150 1", machines=2, capacity="2 100:1", knowledge="exact", foresight_h=1)
    assert told == {"a": "0-100@0", "b": "0-150@1"}


def test_all_changes_of_the_window_count(varcap):
    # 2 machines from 100 s, 1 from 200 s. b: at 200 s a and b, 1 + 1 > 1; c: at 100 s 1 + 1 = 2; d: at 100 s 2 + 1 > 2;
    # e: over at 100 s
    jobs = ("a 0 250 1", "b 0 250 1", "c 0 150 1", "d 0 150 1", "e 0 100 1")
    told = varcap(*jobs, machines=3, capacity="3 100:2 200:1", knowledge="exact", foresight_h=1)
    assert told == {
        "a": "0-250@0", "b": "250-500@0", "c": "0-150@1", "d": "500-650@0", "e": "0-100@2",
    }  # fmt: skip


@pytest.mark.parametrize("change,told", [(1800, "2000-4000@0"), (1800.5, "0-1800.5@1x 2000-4000@0")])
def test_nobody_is_held_by_what_lies_beyond_the_window(varcap, change, told):
    capacity = f"2 {change}:1"
    options = {"knowledge": "exact", "foresight_h": 0.5, "termination": "order"}
    found = varcap("a 0 2000 1", "b 0 2000 1", machines=2, capacity=capacity, **options)
    assert found == {"a": "0-2000@0", "b": told}


@pytest.mark.parametrize(
    "capacity,told",
    [
        # all short ones are thought to last 100 s, though they last 50 s
        ("2 100:1", {"a": "0-50@0", "b": "0-50@1"}),
        ("2 99:1", {"a": "0-50@0", "b": "50-100@0"}),
    ],
)
def test_the_length_of_a_short_job_is_at_most_that_of_a_class(varcap, capacity, told):
    options = {"knowledge": "class", "long_s": 100, "foresight_h": 1}
    assert varcap("a 0 50 1", "b 0 50 1", machines=2, capacity=capacity, **options) == told


@pytest.mark.parametrize(
    "capacity,told",
    [
        # long ones may last 500 s
        ("2 499:1", {"a": "0-150@0", "b": "150-300@0"}),
        ("2 500:1", {"a": "0-150@0", "b": "0-150@1"}),
    ],
)
def test_a_long_job_may_last_as_long_as_the_longest(varcap, capacity, told):
    options = {"knowledge": "class", "long_s": 100, "longest_s": 500, "foresight_h": 1}
    assert varcap("a 0 150 1", "b 0 150 1", machines=2, capacity=capacity, **options) == told


def test_who_has_outlived_his_estimate_is_in_nobodys_way(varcap):
    # at 50 s a should have ended at 40 s: it is thought to end at any moment, and b starts; it was not so until 40 s
    jobs = ("a 0 300 1 estimate_s=40", "b 30 200 1 estimate_s=100", "c 50 200 1 estimate_s=200")
    options = {"knowledge": "exact", "run_times": {"name": "walltime"}, "foresight_h": 1, "termination": "order"}
    told = varcap(*jobs, machines=3, capacity="3 100:1", **options)
    # b, until 130 s by its estimate: at 100 s nobody else is there, 0 + 1 <= 1. c: b is, 1 + 1 > 1
    assert told == {"a": "0-300@0", "b": "30-100@1x 300-500@0", "c": "500-700@0"}


def test_without_run_times_starts_are_held_down_to_the_least_capacity(varcap):
    # one machine until 200 s, of two cores: b starts beside a; c, d and e wait for it; from 200 s on there are three
    jobs = ("a 0 10 1", "b 0 150 1", "c 0 200 1", "d 0 300 1", "e 0 10 2")
    told = varcap(*jobs, machines=3, cores=2, capacity="3 100:1 200:3", knowledge="none", foresight_h=1)
    assert told == {
        "a": "0-10@0", "b": "0-150@0", "c": "10-210@0", "d": "150-450@0", "e": "200-210@1",
    }  # fmt: skip


def test_a_wide_job_counts_all_its_machines(varcap):
    for length, told in ((100, "0-100@0,1,2,3"), (101, "200-301@0,1,2,3")):
        found = varcap(f"w 0 {length} 4", machines=4, capacity="4 100:3 200:4", knowledge="exact", foresight_h=1)
        assert found == {"w": told}


def test_a_machine_to_itself_may_be_a_stable_one(varcap):
    # machine 1 leaves at 50 s, before a short job that may last 100 s must have ended; machine 0 never does
    options = {"mapping": "longshort", "long_s": 100, "nodes": "dedicated", "foresight_h": 1}
    assert varcap("a 0 20 1", machines=2, capacity="2 50:1", **options) == {"a": "0-20@0"}


def test_another_machine_is_looked_at_if_foresight_refuses_one(varcap):
    # y will be on machine 1 at 100 s; z may go beside it but not to the free machine 0, which is safer
    jobs = ("x 0 20 2", "y 1 300 1", "z 30 300 1")
    told = varcap(*jobs, machines=2, cores=2, capacity="2 100:1", knowledge="exact", foresight_h=1)
    assert told == {"x": "0-20@0", "y": "1-301@1", "z": "30-330@1"}


def test_beside_a_job_that_ends_before_the_change_it_is_like_on_a_free_machine(varcap):
    # a, and so machine 0, is thought to be free at 50 s; b, c stay on beyond 100 s
    jobs = ("a 0 50 1", "b 1 300 1", "c 2 300 1", "d 3 300 1")
    told = varcap(*jobs, machines=3, cores=2, capacity="3 100:1", knowledge="exact", foresight_h=1)
    # b beside a: 0 + 1 <= 1; c on 1: 1 + 1 > 1; at 50 s c beside b, which is on machine 0 beyond 100 s; d when b ends
    assert told == {"a": "0-50@0", "b": "1-301@0", "c": "50-350@0", "d": "301-601@0"}


# errors of foresight ----------------------------------------------------------------------------------------------

SURE = {"knowledge": "exact", "foresight_h": 1, "termination": "order"}


def test_a_bias_of_what_is_foreseen():
    # b and its like last until 150 s. 2 machines from 100 s on are told as 2 x 0.5 = 1
    told = scheduler("a 0 150 1", "b 0 150 1", machines=4, capacity="4 100:2", foresight_bias=-0.5, **SURE)
    assert told == {"a": "0-150@0", "b": "100-250@1"}
    # 1 machine is told as 1 x 2 = 2
    told = scheduler("a 0 150 1", "b 0 150 1", machines=2, capacity="2 100:1", foresight_bias=1, **SURE)
    assert told == {"a": "0-150@0", "b": "0-100@1x 150-300@0"}
    # nothing is told that is less than 0: what ends before may start
    told = scheduler("a 0 100 1", "b 0 150 1", machines=2, capacity="2 100:1", foresight_bias=-1, **SURE)
    assert told == {"a": "0-100@0", "b": "100-250@0"}


def test_missed_falls():
    # told as no change: b starts, and fails
    told = scheduler("a 0 150 1", "b 0 150 1", machines=2, capacity="2 100:1", foresight_missed=1, **SURE)
    assert told == {"a": "0-150@0", "b": "0-100@1x 150-300@0"}
    # a rise is told as it is: at 0 s there is one machine until 100 s, then two
    told = scheduler("w 0 150 2", "a 0 150 1", machines=2, capacity="1 100:2", foresight_missed=1, **SURE)
    assert told == {"w": "150-300@0,1", "a": "0-150@0"}


def test_false_alarms():
    # 3 machines from 100 s on are told as 1, the least there ever is; from then on nothing is in b's way
    capacity = "4 100:3 400:1 500:4"
    told = scheduler("a 0 150 1", "b 0 150 1", machines=4, capacity=capacity, foresight_false_alarms=1, **SURE)
    assert told == {"a": "0-150@0", "b": "100-250@1"}
    assert scheduler("a 0 150 1", "b 0 150 1", machines=4, capacity=capacity, **SURE)["b"] == "0-150@1"


def started(change_s: float, seed: int, noise: float, name: str = "base") -> tuple[int, int]:
    """How many jobs of two hours start at 0 s and at 1 s, when five of ten machines stay at the change."""
    jobs = [f"j{i} {at} 7200 1" for i, at in enumerate([0] * 10 + [1])]
    capacity = f"10 {change_s}:5"
    options = SURE | {"mapping": name, "seed": seed, "foresight_noise": noise}
    told = scheduler(*jobs, machines=10, capacity=capacity, **options)
    return sum(runs.startswith("0-") for runs in told.values()), sum(runs.startswith("1-") for runs in told.values())


@pytest.mark.parametrize("change_s,deviation", [(3600, 2.0), (900, 1.0)])
def test_the_noise_of_what_is_foreseen(change_s, deviation):
    # an hour ahead 0.2 x 10 machines, a quarter of an hour half of that; whole machines are half a machine less in the
    # mean, and add 1/12 to the variance
    counts = [started(change_s, seed, 0.2) for seed in range(150)]
    at_once = [first for first, _ in counts]
    mean = sum(at_once) / 150
    spread = (sum((n - mean) ** 2 for n in at_once) / 149) ** 0.5
    # four standard errors of a mean and of a standard deviation, with some for the bounds 0 and 10
    assert abs(mean - 4.5) <= 4 * deviation / 150**0.5
    assert abs(spread - (deviation**2 + 1 / 12) ** 0.5) <= 4 * deviation / 300**0.5
    # what was told is told again as long as the capacity stays
    assert sum(later for _, later in counts) == 0


def test_what_is_foreseen_depends_on_the_seed_and_not_on_the_scheduler():
    told = [started(3600, seed, 0.2) for seed in range(12)]
    assert len(set(told)) > 2
    assert told == [started(3600, seed, 0.2, "jobsize-order") for seed in range(12)]
    assert {started(3600, seed, 0.0) for seed in range(3)} == {(5, 0)}
