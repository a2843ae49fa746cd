"""The target strategies: local queues, targets and mapping, rule by rule on plans worked out by hand."""

from __future__ import annotations

import pytest
from machine_talk import Talk, planner


@pytest.mark.parametrize(
    "usable,category,target",
    [(4, 0.0, 0), (4, 0.249, 0), (4, 0.25, 1), (4, 0.5, 2), (4, 0.999, 3), (4, 1.0, 3), (1, 0.7, 0), (7, 0.5, 3)],
)
def test_the_target_of_eq_1(usable, category, target):
    talk = planner(8, 1, {10: category}, usable=usable)
    assert talk.at(0, "a 10 1") == f"a@{target}"


@pytest.mark.parametrize(
    "usable,category,target",
    [
        (4, 0.9, 0), (4, 1.0, 0), (9, 1.0, 0), (10, 0.49, 0), (10, 0.5, 5), (10, 1.0, 5), (14, 0.99, 5),
        (15, 0.33, 0), (15, 0.34, 5), (15, 0.67, 10), (15, 1.0, 10),
    ],
)  # fmt: skip
def test_the_target_of_packs_is_the_first_machine_of_one(usable, category, target):
    talk = planner(20, 1, {10: category}, usable=usable, pack=5)
    assert talk.at(0, "a 10 1") == f"a@{target}"


def test_a_job_is_planned_in_the_earliest_interval_with_room():
    talk = planner(1, 4, {})
    assert talk.at(0, "a 10 4", "b 30 2", "c 10 4") == "a@0"
    assert (talk.plan("b"), talk.plan("c")) == ((0, 10.0), (0, 40.0))
    # beside b, in the middle; then just what is left beside it; one second more goes to the end
    talk.at(1, "d 20 2", "e 10 2", "f 11 2", "g 5 1")
    assert [talk.plan(name)[1] for name in "defg"] == [10.0, 30.0, 50.0, 50.0]
    assert talk.at(10) == "b@0 d@0"
    assert talk.at(30) == "e@0"
    # b and e leave nothing before 40, c nothing before 50; f, g and h use all until 54
    assert talk.at(36, "h 4 1", "i 14 1") == ""
    assert [talk.plan(name)[1] for name in "hi"] == [50.0, 54.0]


def test_a_hole_that_has_begun_is_used_from_now_on():
    talk = planner(1, 4, {})
    talk.at(0, "a 20 3", "b 10 4")
    assert talk.at(12, "c 8 1", "d 8.5 1") == "c@0"
    assert (talk.end_s("c"), talk.plan("d")[1]) == (20.0, 30.0)


def test_planned_starts_stay_until_the_machines_change():
    talk = planner(2, 1, {10: 0.0, 4: 1.0, 6: 0.0}, distance=1)
    assert talk.at(0, "a 10 1", "b 4 1") == "a@0 b@1"
    assert talk.at(1, "c 6 1") == "" and talk.plan("c") == (1, 4.0)
    assert talk.at(2, "d 10 1") == "" and talk.plan("d") == (0, 10.0)  # ties with machine 1: the target
    assert talk.at(10) == "c@1 d@0"
    assert [talk.end_s(name) for name in "cd"] == [10.0, 20.0]


def busy(distance, *free_at, category) -> Talk:
    """Machines of one core that are free at these times; a job of 7 s has the category to be looked at."""
    count = len(free_at)
    own = {float(end): (m + 0.5) / count for m, end in enumerate(free_at) if end}
    assert len(own) == sum(end > 0 for end in free_at), "lengths tell the machines"
    talk = planner(count, 1, own | {7.0: category}, distance=distance)
    decisions = talk.at(0, *(f"m{m} {end} 1" for m, end in enumerate(free_at) if end))
    assert decisions == " ".join(f"m{m}@{m}" for m, end in enumerate(free_at) if end)
    return talk


@pytest.mark.parametrize(
    "free_at,machine",
    [
        ((0, 0, 0, 0, 0), 2),
        ((0, 0, 91, 0, 0), 3),
        ((0, 0, 91, 92, 0), 1),
        ((0, 90, 91, 92, 0), 4),
        ((0, 90, 91, 92, 93), 0),
        ((96, 95, 94, 93, 92), 4),  # the least stretch
        ((96, 95, 91, 93, 92), 2),
        ((96, 90, 91, 93, 92), 1),
    ],
)
def test_machines_are_probed_around_the_target(free_at, machine):
    talk = busy(2, *free_at, category=0.5)
    talk.at(1, "x 7 1")
    assert talk.plan("x") == (machine, max(1, free_at[machine]))


def test_no_machine_farther_than_the_distance():
    talk = busy(1, 0, 95, 94, 93, 0, category=0.5)
    talk.at(1, "x 7 1")
    assert talk.plan("x") == (3, 93.0)
    talk = busy(0, 0, 95, 94, 93, 0, category=0.5)
    talk.at(1, "x 7 1")
    assert talk.plan("x") == (2, 94.0)


def test_no_machine_beyond_m_use_and_none_below_0():
    # all are alive, four may be used: target 3
    talk = planner(6, 1, {10.0: 1.0, 7.0: 1.0}, distance=2, usable=4)
    assert talk.at(0, "a 10 1", "b 10 1", "c 10 1", "x 7 1") == "a@3 b@2 c@1"
    assert talk.plan("x") == (3, 10.0)
    talk = planner(6, 1, {10.0: 0.0}, distance=1)
    assert talk.at(0, "a 10 1", "b 10 1") == "a@0 b@1"


def test_ties_go_to_the_target_then_to_the_lowest_index():
    def tied(*lengths, category):
        talk = planner(3, 1, {50.0: 0.0, 90.0: category, 7.0: category}, distance=2)
        talk.at(0, *(f"j{i} {length} 1" for i, length in enumerate(lengths)))
        talk.at(1, "x 7 1")
        return talk.plan("x")

    # three at 50: all machines are free then
    assert tied(50, 50, 50, category=0.5) == (1, 50.0)
    assert tied(50, 50, 50, category=1.0) == (2, 50.0)
    # 90 is on its target, machine 1; the others are free at 50
    assert tied(90, 50, 50, category=0.5) == (0, 50.0)
    assert tied(90, 50, 50, category=1.0) == (0, 50.0)


def test_target_stretch_takes_what_is_within_the_worst_so_far():
    talk = planner(2, 1, {10.0: 0.0, 20.0: 1.0, 40.0: 0.0}, distance=1, limit=0.0)
    assert talk.at(0, "a 10 1", "b 20 1") == "a@0 b@1"
    assert talk.planner.worst_stretch == 1.0
    # 2 on machine 0, 3 on machine 1: both more than 1, so the least, which is the worst from now on
    talk.at(0, "c 10 1")
    assert (talk.plan("c"), talk.planner.worst_stretch) == ((0, 10.0), 2.0)
    # 2 on its target, as bad as the worst
    talk.at(0, "d 20 1")
    assert (talk.plan("d"), talk.planner.worst_stretch) == ((1, 20.0), 2.0)
    # 20 s late: 1.5 is within it
    talk.at(0, "e 40 1")
    assert (talk.plan("e"), talk.planner.worst_stretch) == ((0, 20.0), 2.0)


def test_target_stretch_takes_its_target_though_another_is_earlier():
    talk = planner(2, 1, {10.0: 0.0, 11.0: 1.0, 40.0: 0.0}, distance=1, limit=0.0)
    talk.at(0, "a 10 1", "b 11 1", "c 10 1", "d 10 1")
    # c: (2, 2.1) on (0, 1); d: (3, 2.1)
    assert (talk.plan("c"), talk.plan("d")) == ((0, 10.0), (1, 11.0))
    assert talk.planner.worst_stretch == 2.1
    talk.at(22, "e 40 1", "f 40 1", "g 11 1")
    # e has machine 0 at once; f is 40 s late there, 2 <= 2.1, while machine 1 is free
    assert [talk.plan(name) for name in "efg"] == [(0, 22.0), (0, 62.0), (1, 22.0)]


def test_asap_wants_a_start_at_release():
    talk = planner(2, 1, {10.0: 0.0, 11.0: 1.0, 40.0: 0.0}, distance=1)
    talk.at(0, "a 10 1", "b 11 1", "c 10 1", "d 10 1")
    talk.at(22, "e 40 1", "f 40 1", "g 11 1")
    assert [talk.plan(name) for name in "efg"] == [(0, 22.0), (1, 22.0), (1, 62.0)]


def test_a_limit_of_ones_own():
    # 5 s late of 10: stretch 1.5
    for limit, machine in ((1.5, 0), (1.4, 1)):
        talk = planner(2, 1, {10.0: 0.0}, distance=1, limit=limit)
        talk.at(0, "a 10 1")
        talk.at(5, "b 10 1")
        assert talk.plan("b") == (machine, 10.0 if machine == 0 else 5.0)


@pytest.mark.parametrize("take_empty,machine", [(True, 2), (False, 0)])
def test_an_empty_machine_is_taken_whatever_the_stretch(take_empty, machine):
    talk = planner(3, 1, {50.0: 0.5, 7.0: 0.5}, distance=1, take_empty=take_empty)
    talk.at(0, "a 50 1")
    # released at 3, here at 10: stretch 2 on both 2 and 0, which are empty
    assert talk.at(10, "x 7 1 3") == f"x@{machine}"
    assert talk.planner.worst_stretch == 2.0


def test_a_machine_is_empty_again_when_its_jobs_have_ended():
    talk = planner(2, 2, {5.0: 0.0, 50.0: 1.0, 7.0: 0.0}, distance=1)
    talk.at(0, "a 5 2", "b 50 1")
    assert talk.at(5, "x 7 1 1") == "x@0"
    # no longer: it has room at once, but so has the other, and both are late; ties go to the target
    assert talk.at(6, "y 7 1 1") == "y@0"
