"""M_use, changes of the number of machines, and early ends of the target strategies, worked out by hand."""

from __future__ import annotations

import pytest
from machine_talk import adapting, planner

# M_use ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alive,always,usable,expected",
    [(10, 2, None, 6), (9, 2, None, 5), (1, 0, None, 1), (0, 0, None, 0), (10, 2, 3, 3), (4, 0, 7, 4), (3, 5, None, 3)],
)
def test_m_use_at_first(alive, always, usable, expected):
    talk = planner(10, 1, {}, alive=alive, always=always, usable=usable)
    assert talk.planner.usable == expected
    assert list(talk.planner.machines_alive()) == list(range(alive))


def test_m_use_shrinks_at_once_to_what_is_always_alive():
    talk = adapting(10, 1, always=2, usable=6)
    assert talk.planner.usable == 6  # nothing has happened yet
    talk.at(0, "a 100 1")
    assert talk.planner.usable == 2


def test_m_use_grows_with_the_utilisation_and_shrinks_with_it():
    talk = adapting(5, 1, usable=1)
    # C = 1: always the last machine that may be used
    talk.at(0, "a 200 1")
    assert talk.planner.usable == 2  # 1/1, then 1/2
    talk.at(1, "b 201 1")
    assert (talk.plan("b"), talk.planner.usable) == ((1, 1.0), 3)
    talk.at(2, "c 48 1")
    assert (talk.plan("c"), talk.planner.usable) == ((2, 2.0), 4)  # 3/3, then 3/4
    talk.at(3, "d 202 1")
    assert (talk.plan("d"), talk.planner.usable) == ((3, 3.0), 5)
    # c ends: 3/5, 3/4 and 2/3 are too little, 2/2 is not; d runs on
    assert talk.at(50) == ""
    assert talk.planner.usable == 2
    assert talk.end_s("d") == 205.0


def test_m_use_does_not_turn_around_within_an_update():
    talk = adapting(10, 1, usable=2)
    talk.at(0, "a 100 1")
    assert talk.planner.usable == 1  # 1/2 < 0.80; 1/1 > 0.95, but it has shrunk
    # nor is there an update when a job is planned
    talk.at(1, "b 5 1")
    assert talk.planner.usable == 1
    # b starts: 1/1, then 1/2; that a ends is the next update: 1/2, then 1/1
    talk.at(100)
    assert talk.planner.usable == 1
    # b ends: 0/1
    talk.at(105)
    assert talk.planner.usable == 1


def test_m_use_never_exceeds_what_is_alive():
    talk = adapting(8, 1, alive=3, usable=1)
    talk.at(0, "a 100 1", "b 200 1", "c 300 1")
    assert talk.planner.usable == 3


@pytest.mark.parametrize("cores,usable", [(3, 2), (2, 1)])
def test_0_80_itself_does_not_shrink(cores, usable):
    talk = adapting(4, 5, usable=1)
    # 5/5 grows to 2; then 8 of 10 stays, 7 of 10 does not
    talk.at(0, "a 300 5", f"b 200 {cores}")
    assert (talk.plan("b"), talk.planner.usable) == ((1, 0.0), usable)


@pytest.mark.parametrize("cores,usable", [(19, 1), (20, 2)])
def test_0_95_itself_does_not_grow(cores, usable):
    talk = adapting(4, 20, usable=1)
    talk.at(0, f"a 300 {cores}")
    assert talk.planner.usable == usable


def test_thresholds_of_ones_own():
    talk = adapting(4, 4, usable=1, low=0.25, high=0.5)
    talk.at(0, "a 300 2")
    assert talk.planner.usable == 1
    talk.at(0, "b 300 1")
    assert talk.planner.usable == 2  # 3/4, then 3/8
    talk.at(300)
    assert talk.planner.usable == 1


def test_a_machine_with_a_job_that_waits_counts_as_full():
    talk = adapting(4, 4, usable=1)
    talk.at(0, "a 300 1", "b 10 4")
    assert (talk.plan("b"), talk.planner.usable) == ((0, 300.0), 1)
    # the start of c is an update: 2 of 4 cores are in use, but b waits, so 1 and then 1/2
    talk.at(0, "c 50 1")
    assert talk.planner.usable == 2


# changes ----------------------------------------------------------------------------------------------------------


def test_all_that_has_not_started_is_mapped_anew_by_release():
    talk = planner(2, 1, {100.0: 0.0, 20.0: 0.0})
    talk.at(0, "a 100 1", "b 90 1")
    talk.at(1, "c 30 1")
    talk.at(2, "d 20 1")
    assert [talk.plan(name) for name in "abcd"] == [(0, 0.0), (1, 0.0), (1, 90.0), (0, 100.0)]
    # b begins again; a runs on; d was planned at 100 and is now behind b and c, released before it
    assert talk.at(10, alive=1) == "-b"
    assert [talk.plan(name) for name in "bcd"] == [(0, 100.0), (0, 190.0), (0, 220.0)]
    assert (talk.end_s("a"), talk.end_s("b")) == (100.0, 190.0)
    assert talk.planner.worst_stretch == (240 - 2) / 20
    assert talk.planner.usable == 1


def test_what_is_killed_starts_again_at_once_where_there_is_room():
    talk = planner(2, 2, {10.0: 0.0})
    assert talk.at(0, "a 10 1", "b 90 1") == "a@0 b@1"
    assert talk.at(20, alive=1) == "-b b@0"
    assert talk.end_s("b") == 110.0
    assert talk.planner.worst_stretch == 110 / 90


def test_s_plus_counts_what_is_planned_even_if_it_does_not_come_true():
    talk = planner(2, 1, {10.0: 0.0, 20.0: 0.0}, limit=0.0)
    talk.at(0, "a 20 1", "b 10 1")
    assert talk.planner.worst_stretch == 3.0
    talk.ends("a", 5)
    assert talk.plan("b") == (0, 5.0)
    assert talk.planner.worst_stretch == 3.0


def test_more_machines_m_use_is_updated_before_the_mapping():
    talk = adapting(2, 1, alive=1, usable=1)
    assert talk.at(0, "a 100 1", "b 200 1") == "a@0"
    assert (talk.plan("b"), talk.planner.usable) == ((0, 100.0), 1)
    # 1/1 > 0.95: two may be used, and the target of b is the second
    assert talk.at(10, alive=2) == "b@1"


def test_fewer_machines_m_use_is_not_updated_before_the_mapping():
    talk = adapting(6, 4, usable=4, low=0.3, high=1.0)
    talk.at(0, "a 100 1", "x 103 4", "b 103 1")
    assert talk.planner.usable == 1  # 1 of 16 cores
    talk = adapting(6, 4, usable=4, low=0.0, high=1.0)
    assert talk.at(0, "a 100 1", "x 103 4", "b 103 4") == "a@0 x@3"
    assert talk.plan("b") == (3, 103.0)
    # at most 3: floor(3.5 / 4 x 3) = 2
    assert talk.at(10, alive=3) == "-x x@2"
    assert (talk.plan("b"), talk.planner.usable) == ((2, 113.0), 3)


def test_after_a_change_m_use_is_updated_as_if_a_job_waited_wherever_there_is_one():
    talk = adapting(3, 4, alive=2, usable=1, low=0.0)
    talk.at(0, "a 100 1")
    assert talk.planner.usable == 1
    # machine 0 counts as full, 1 > 0.95, then 1/2; nothing shrinks here
    talk.at(10, alive=3)
    assert talk.planner.usable == 2


def test_a_job_from_before_the_window_is_probed_for_from_machine_0():
    talk = planner(4, 1, {}, usable=3)
    # C = 1 and D+ = 0, but they go where there is room, among those that may be used; the fourth to the least stretch
    decisions = talk.at(0, "p 100 1 -10 90", "q 100 1 -20 80", "r 100 1 -30 70", "s 100 1 -40 60")
    assert decisions == "p@0 q@1 r@2"
    assert talk.plan("s") == (2, 70.0)
    assert talk.planner.worst_stretch == (130 + 40) / 100
    assert [talk.end_s(name) for name in "pqrs"] == [90.0, 80.0, 70.0, 130.0]
    # killed, they are whole, and are mapped as others are
    assert talk.at(5, alive=1) == "-q -r"
    assert talk.plan("q")[1] == 90.0
    assert talk.end_s("q") == 190.0
    # s has not run here: what is left of it is as it was
    assert talk.end_s("s") - talk.plan("s")[1] == 60.0


def test_capacity_0_and_back():
    talk = planner(3, 1, {100.0: 0.5}, usable=2)
    assert talk.at(0, "a 100 1") == "a@1"
    assert talk.at(5, "b 30 1", alive=0) == "-a"
    assert talk.planner.usable == 0 and list(talk.planner.machines_alive()) == []
    assert talk.at(6, "c 10 1") == ""
    assert [talk.plan(name)[0] for name in "abc"] == [-1, -1, -1]
    assert talk.at(50) == ""
    # M_use is 1, and none is lost: by release a at 60, b at 160, c at 190
    assert talk.at(60, alive=3) == "a@0"
    assert [talk.plan(name) for name in "bc"] == [(0, 160.0), (0, 190.0)]
    assert talk.planner.usable == 1
    assert talk.at(300) == "b@0 c@0"


def test_nothing_alive_from_the_beginning():
    talk = planner(2, 1, {}, alive=0, usable=2)
    assert talk.at(0, "a 10 1") == ""
    assert talk.at(5, alive=2) == "a@0"


def test_the_same_number_is_no_change():
    talk = planner(2, 1, {10.0: 0.0})
    talk.at(0, "a 10 1", "b 10 1")
    assert talk.at(3, alive=2) == ""
    assert talk.planner.planned_s(0)[0] == 0.0


def test_at_one_date_ends_come_before_a_change_and_a_change_before_arrivals():
    talk = planner(2, 1, {})
    assert talk.at(0, "a 10 1") == "a@1"
    # a is over, nobody is killed; M_use is 1 for b
    assert talk.at(10, "b 5 1", alive=1) == "b@0"


def test_at_one_date_starts_come_before_a_change():
    talk = planner(2, 1, {})
    talk.at(0, "a 10 1", "b 10 1")
    # b starts on machine 1, which goes: a start, a kill, a start
    assert list(talk.planner.advance(10.0, 1)) == [1, -2, 1]
    assert (talk.plan("b"), talk.end_s("b")) == ((0, 10.0), 20.0)


def test_all_dates_up_to_the_one_asked_for():
    talk = planner(1, 1, {})
    assert talk.at(0, "a 10 1", "b 10 1", "c 10 1") == "a@0"
    assert talk.at(500) == "b@0 c@0"
    assert talk.at(501, "d 10 1") == "d@0"


# early ends, and the rest -----------------------------------------------------------------------------------------


def test_after_an_early_end_its_machine_is_planned_anew_by_planned_start():
    talk = planner(2, 2, {7.0: 0.0})
    talk.at(0, "other 7 2", "a 100 2", "b 50 1", "c 60 2", "d 40 1", "behind 7 2")
    assert [talk.plan(name) for name in "bcd"] == [(1, 100.0), (1, 150.0), (1, 100.0)]
    # b, d, then c
    assert talk.ends("a", 3) == "b@1 d@1"
    assert [talk.plan(name)[1] for name in "bdc"] == [3.0, 3.0, 53.0]
    assert talk.plan("behind") == (0, 7.0)
    assert talk.at(100) == "behind@0 c@1"


def test_what_runs_beside_an_early_end_is_reckoned_with():
    talk = planner(1, 2, {})
    talk.at(0, "a 100 1", "e 80 1", "c 10 2")
    assert talk.plan("c")[1] == 100.0
    assert talk.ends("a", 20) == ""
    assert talk.plan("c")[1] == 80.0
    assert talk.at(20, "d 30 1", "f 61 1") == "d@0"
    assert talk.plan("f")[1] == 90.0


def test_an_early_end_is_an_update_of_m_use():
    talk = adapting(4, 1, usable=1)
    talk.at(0, "a 300 1", "b 300 1")
    assert talk.planner.usable == 3
    talk.ends("a", 10)
    assert talk.planner.usable == 1


def test_jobs_of_one_date_go_by_the_numbers_in_their_ids():
    tie = planner(1, 1, {}).planner.tie
    assert sorted(["10", "9", "w2-3", "w10-1", "2"], key=tie) == ["2", "w2-3", "9", "10", "w10-1"]


def test_many_jobs():
    talk = planner(1, 3, {})
    # pairs of 1 and 2 cores, all at once: one after the other, whatever the tables had room for at first
    talk.at(0, *(f"j{i} 2 {1 + i % 2}" for i in range(1500)))
    assert [talk.plan(f"j{i}")[1] for i in range(1500)] == [2.0 * (i // 2) for i in range(1500)]
    decisions = talk.at(1e6).split()
    assert sorted(decisions) == sorted(f"j{i}@0" for i in range(2, 1500))
