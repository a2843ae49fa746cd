"""Where the text of the riskaware paper and its authors' program differ: both, on plans worked out by hand."""

from __future__ import annotations

import pytest
from machine_talk import ByHand, Talk, planner

from batwatt.systems.riskaware.first_fit import FirstFitStrategy
from batwatt.systems.riskaware.targets import Targets, TargetSettings

both = pytest.mark.parametrize("paper", [True, False])


# the target (sections 4.3, 4.5) ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usable,category,target",
    [
        # Eq. 1 counted from 0 is floor(C M_use), or M_use - 1 for C = 1; of that the nearest multiple of 5
        (20, 0.0, 0), (20, 0.10, 0), (20, 0.14, 0), (20, 0.15, 5), (20, 0.37, 5), (20, 0.40, 10), (20, 0.60, 10),
        # 18 and 19 of 20: 20 is no machine
        (20, 0.90, 15), (20, 1.0, 15),
        # 2 of 3: 0; 3 of 4: 5 is no machine
        (3, 1.0, 0), (4, 1.0, 0), (6, 1.0, 5), (7, 0.5, 5),
    ],
)  # fmt: skip
def test_packs_are_at_the_nearest_multiple_of_five(usable, category, target):
    talk = planner(20, 1, {10: category}, usable=usable, pack=5, paper=True)
    assert talk.at(0, "a 10 1") == f"a@{target}"


def test_the_example_of_section_4_5():
    """'if three jobs were assigned to machines 0, 1, and 2 by TargetASAP, all three will be assigned to machine 0.'"""
    categories, jobs = {10: 0.05, 11: 0.15, 12: 0.25}, ("a 10 1", "b 11 1", "c 12 1")
    assert planner(10, 3, categories, paper=True).at(0, *jobs) == "a@0 b@1 c@2"
    assert planner(10, 3, categories, paper=True, pack=5).at(0, *jobs) == "a@0 b@0 c@0"


# the choice of a machine (sections 4.3, 4.4) -----------------------------------------------------------------------


@both
def test_asap_falls_back_to_its_target_within_the_worst_stretch(paper):
    talk = planner(2, 1, {20.0: 0.0, 18.0: 1.0, 10.0: 0.0}, distance=1, paper=paper)
    # c: 3 on its target, 2.8 on machine 1; nothing was worse than 1 so far, so the earlier one
    assert talk.at(0, "a 20 1", "b 18 1", "c 10 1") == "a@0 b@1"
    assert talk.plan("c") == (1, 18.0)
    # of the paper S+ is of jobs that completed
    assert talk.planner.worst_stretch == (1.0 if paper else 2.8)
    talk.at(28, "d 20 1", "e 18 1")
    assert talk.planner.worst_stretch == 2.8
    # d leaves machine 0 at 48, e machine 1 at 46: on the target f has (48 + 10 - 29) / 10 = 2.9 > 2.8
    talk.at(29, "f 10 1")
    assert talk.plan("f") == (1, 46.0)
    # g has (48 + 10 - 30) / 10 = 2.8 there, no more than the worst so far
    talk.at(30, "g 10 1")
    assert talk.plan("g") == (0, 48.0)
    talk = planner(2, 1, {20.0: 0.0, 18.0: 1.0, 10.0: 0.0}, distance=1, paper=paper)
    talk.at(0, "a 20 1", "b 18 1", "c 10 1")
    talk.at(28, "d 20 1", "e 18 1")
    talk.at(30, "g 10 1")
    assert talk.plan("g") == ((0, 48.0) if paper else (1, 46.0))


@both
def test_asap_takes_the_nearest_machine_where_it_starts_at_once(paper):
    categories = {100.0: 0.1, 101.0: 0.3, 102.0: 0.5, 103.0: 0.7, 5.0: 0.7, 10.0: 0.5}
    talk = planner(5, 2, categories, distance=2, paper=paper)
    jobs = ("a 100 1", "b 101 2", "c 102 2", "d 103 1", "e 5 1", "x 10 1")
    # x has machine 2 as its target; 2, 3 and 1 are full
    assert talk.at(0, *jobs) == "a@0 b@1 c@2 d@3 e@3 x@4"
    # killed 6 s after its release it has a stretch > 1 wherever it starts: now there is room beside d and beside a;
    # machine 3 is nearer, and 0 the lowest index of equal starts
    assert talk.at(6, alive=4) == ("-x x@3" if paper else "-x x@0")


@both
def test_target_stretch_takes_the_earliest_start_if_its_target_is_beyond_the_worst(paper):
    categories = {10.0: 0.1, 11.0: 0.5, 12.0: 0.9, 5.0: 0.5, 5.5: 0.1, 15.0: 0.5, 7.5: 0.9}
    talk = planner(3, 1, categories, distance=1, limit=0.0, paper=paper)
    # q: 3.2, 3.4 and 3 on machines 1, 2 and 0
    talk.at(0, "a 10 1", "b 11 1", "c 12 1", "q 5 1")
    assert talk.plan("q") == (0, 10.0) and talk.at(14) == "q@0"
    assert talk.at(15, "d 5.5 1", "e 15 1", "f 7.5 1", "x 5 1") == "d@0 e@1 f@2"
    assert talk.planner.worst_stretch == 3.0
    # x: 4 on its target, 2.5 on machine 2, which is looked at before machine 0 with 2.1
    assert talk.plan("x") == ((0, 20.5) if paper else (2, 22.5))
    # on machine 1 from 30 on y has (30 + 15 - 20) / 15 = 1.7: within the worst
    talk.at(20, "y 15 1")
    assert talk.plan("y") == (1, 30.0)


# machines that come, M_use (section 4.3) ---------------------------------------------------------------------------


@both
def test_more_machines_change_nothing_unless_all_are_in_use(paper):
    talk = planner(3, 1, {25.0: 0.0, 30.0: 1.0, 10.0: 0.0}, alive=2, usable=2, distance=2, high=0.95, paper=paper)
    assert talk.at(0, "a 25 1", "d 30 1", "b 10 1") == "a@0 d@1"
    assert talk.plan("b") == (0, 25.0)
    talk.ends("d", 10)
    # b waits on machine 0, nothing is on machine 1: U = 1/2
    assert talk.at(12, alive=3) == ("" if paper else "b@1")
    assert talk.plan("b") == ((0, 25.0) if paper else (1, 12.0))
    # U = 1 with b on machine 1
    assert (talk.planner.usable, len(talk.planner.machines_alive())) == (2 if paper else 3, 3)
    # the machine that came is one like the others: all the same when it goes
    assert talk.at(13, alive=2) == ("b@1" if paper else "")


@both
def test_more_machines_take_what_waits_if_all_are_in_use(paper):
    talk = planner(3, 1, {25.0: 0.0, 30.0: 1.0, 10.0: 0.0}, alive=2, usable=2, distance=2, high=0.95, paper=paper)
    assert talk.at(0, "a 25 1", "d 30 1", "b 10 1") == "a@0 d@1"
    # U = 1 and M_use is 2, all that were alive
    assert talk.at(12, alive=3) == "b@2"
    assert talk.planner.usable == 3


def test_a_utilisation_of_just_the_threshold_is_not_above_it():
    talk = planner(2, 20, {100.0: 0.0, 7.0: 0.0}, alive=1, usable=1, high=0.95, distance=1, paper=True)
    # 19 of 20 cores
    assert talk.at(0, "a 100 19") == "a@0"
    assert talk.at(1, alive=2) == "" and talk.planner.usable == 1
    talk.at(2, alive=1)
    # b waits for a: that is all of the machine
    talk.at(3, "b 7 2")
    assert talk.plan("b") == (0, 100.0)
    assert talk.at(4, alive=2) == "b@1" and talk.planner.usable == 2


@pytest.mark.parametrize(
    "paper,always,alive,usable", [(True, 3, 8, 3), (False, 3, 8, 5), (True, 3, 2, 2), (True, 0, 8, 1)]
)
def test_m_use_is_at_first_the_machines_always_alive(paper, always, alive, usable):
    settings = TargetSettings(always=always, distance=1, low=0.0, high=1.0, paper=paper)
    talk = Talk(Targets(8, 1, settings, ByHand()))
    talk.at(0, alive=alive)
    assert talk.planner.usable == usable


# jobs from before the window (section 5.2) -------------------------------------------------------------------------


def test_what_has_no_room_at_the_begin_of_the_window_waits_or_never_starts():
    jobs = ("a 100 2 -50 50", "b 100 2 -40 60", "c 100 1 -30 70")
    for drop in (True, False):
        talk = planner(2, 2, {100.0: 0.5}, distance=1, drop=drop)
        assert talk.at(0, *jobs) == "a@0 b@1"
        assert list(talk.planner.dropped()) == ([2] if drop else [])
        # what arrives when the window has begun waits in any case
        assert talk.at(10, "d 100 1") == "" and list(talk.planner.dropped()) == []
        assert talk.at(50) == ("d@0" if drop else "c@0 d@0")


def test_first_fit_drops_what_has_no_room_as_published():
    jobs = ("a 100 2 -50 50", "b 100 2 -40 60", "c 100 1 -30 70")
    for published in (True, False):
        talk = Talk(FirstFitStrategy(2, 2, as_published=published))
        talk.at(0, alive=2)
        # b needs all there is on the emptiest machine: that is only an obstacle to what is released in the window
        assert talk.at(0, *jobs) == "a@0 b@1"
        assert list(talk.planner.dropped()) == ([2] if published else [])
        assert talk.at(10, "d 100 1") == "" and list(talk.planner.dropped()) == []
        assert talk.at(50) == ("d@0" if published else "c@0 d@0")


def test_as_published_the_first_machine_counts_as_waited_for_once_a_job_is_dropped():
    def talk(drop: bool) -> Talk:
        made = planner(2, 4, {100.0: 0.0}, always=1, usable=1, low=0.80, high=0.95, drop=drop)
        assert made.at(0, "a 100 2 -50 50", *(["c 100 3 -30 70"] if drop else [])) == "a@0"
        # 3 of 4 cores in use, which is less than 0.80
        assert made.at(1, "d 100 1") == "d@0"
        return made

    assert talk(drop=False).planner.usable == 1
    assert talk(drop=True).planner.usable == 2
