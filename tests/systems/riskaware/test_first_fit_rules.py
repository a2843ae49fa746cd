"""First fit on machines that come and go, rule by rule, worked out by hand (docs/explanation/riskaware.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from machine_talk import Talk

from batwatt.scheduling.node_selection import Nodes, NodeSelection
from batwatt.scheduling.registry import make
from batwatt.systems.riskaware.first_fit import FirstFitStrategy


def as_the_text(machines: int, cores: int, alive: int | None = None, rng=None) -> Talk:
    talk = Talk(FirstFitStrategy(machines, cores, rng, as_published=False))
    assert talk.at(0, alive=machines if alive is None else alive) == ""
    return talk


def test_an_arrival_goes_to_the_first_machine_with_room():
    talk = as_the_text(3, 4)
    # 3 on m0; 2 do not fit there; 1 does; 4 need m2
    assert talk.at(0, "a 10 3", "b 10 2", "c 10 1", "d 10 4") == "a@0 b@1 c@0 d@2"
    assert [talk.end_s(name) for name in "abcd"] == [10.0] * 4


def test_only_machines_alive_are_used():
    talk = as_the_text(3, 2, alive=1)
    assert talk.at(0, "a 10 2", "b 10 2") == "a@0"
    assert list(talk.planner.machines_alive()) == [0]
    assert talk.at(1, alive=3) == "b@1"
    assert list(talk.planner.machines_alive()) == [0, 1, 2]


def test_an_arrival_overtakes_what_waits():
    talk = as_the_text(1, 4)
    assert talk.at(0, "a 10 3") == "a@0"
    assert talk.at(1, "wide 10 4") == ""
    assert talk.at(2, "thin 10 1") == "thin@0"


def test_after_an_end_those_that_wait_start_by_release_date_if_they_fit():
    talk = as_the_text(1, 4)
    talk.at(0, "a 10 2", "b 20 2")
    talk.at(1, "late 5 1 1", "early 5 3 0.5", "later 5 1 2")
    # 2 cores at 10 s: early does not fit, late and later do; early starts when b is done at 20
    assert talk.at(10) == "late@0 later@0"
    assert [talk.end_s(name) for name in ("late", "later")] == [15.0, 15.0]
    assert talk.at(20) == "early@0"


def test_equal_releases_go_by_arrival():
    talk = as_the_text(1, 1)
    talk.at(0, "a 10 1")
    talk.at(1, "x 5 1 1", "y 5 1 1")
    talk.at(2, "z 5 1 1")
    assert talk.at(40) == "x@0 y@0 z@0"
    assert [talk.end_s(name) for name in "xyz"] == [15.0, 20.0, 25.0]


def test_what_waits_starts_at_its_date_whenever_the_planner_is_asked():
    talk = as_the_text(1, 2)
    talk.at(0, "a 10 2", "b 10 1", "c 5 2")
    # b 10..20, c 20..25: all in one go
    assert talk.at(100) == "b@0 c@0"
    assert (talk.end_s("b"), talk.end_s("c")) == (20.0, 25.0)


def test_ends_at_one_date_are_looked_at_machine_by_machine():
    talk = as_the_text(2, 2)
    talk.at(0, "a 10 2", "b 10 2")
    talk.at(1, "one 5 1", "two 5 2")
    # machine 0 is free first: one goes there, two has to wait for machine 1, of the same time
    assert talk.at(10) == "one@0 two@1"


def test_an_end_comes_before_an_arrival_and_before_a_change():
    talk = as_the_text(2, 1)
    talk.at(0, "a 10 1", "b 10 1")
    assert talk.at(10, "c 5 1", alive=1) == "c@0"  # nobody is killed


def test_fewer_machines_the_highest_go_and_their_jobs_begin_again():
    talk = as_the_text(3, 2)
    talk.at(0, "a 100 1", "b 100 2", "c 100 2", "d 100 1")
    # a and d on m0, b on m1, c on m2
    assert talk.at(30, alive=1) == "-b -c"
    assert list(talk.planner.machines_alive()) == [0]
    # m0 is free at 100: b first, from zero
    assert talk.at(100) == "b@0"
    assert talk.end_s("b") == 200.0


def test_what_is_killed_starts_at_once_where_there_is_room():
    talk = as_the_text(2, 2)
    assert talk.at(0, "a 20 2", "b 100 2") == "a@0 b@1"
    # machine 0 has been free since 20 s
    assert talk.at(25, alive=1) == "-b b@0"
    assert talk.end_s("b") == 125.0


def test_killed_ones_wait_by_their_release_not_by_the_kill():
    talk = as_the_text(2, 1)
    talk.at(0, "a 50 1 0", "b 100 1 0")
    talk.at(1, "c 10 1 1")
    assert talk.at(10, alive=1) == "-b"
    # at 50 b (released at 0) comes before c
    assert talk.at(50) == "b@0"


def test_several_kills_are_told_by_job():
    talk = as_the_text(3, 1)
    talk.at(0, "a 100 1", "b 100 1", "c 100 1")
    assert talk.at(10, alive=0) == "-a -b -c"
    assert talk.at(20, alive=2) == "a@0 b@1"
    assert talk.end_s("a") == 120.0


def test_capacity_0_and_back():
    talk = as_the_text(2, 2)
    talk.at(0, "a 10 2")
    assert talk.at(5, "b 10 1", alive=0) == "-a"
    assert list(talk.planner.machines_alive()) == []
    assert talk.at(6, "c 10 2") == ""
    assert talk.at(100) == ""
    assert talk.at(101, alive=2) == "a@0 b@1"
    assert talk.at(111) == "c@0"


def test_nothing_alive_from_the_beginning():
    talk = as_the_text(2, 2, alive=0)
    assert talk.at(0, "a 10 2") == ""
    assert talk.at(5, alive=1) == "a@0"


def test_the_same_number_is_no_change():
    talk = as_the_text(2, 1)
    talk.at(0, "a 100 1", "b 100 1", "c 10 1")
    assert talk.at(10, alive=2) == ""


def test_a_job_from_before_the_window_runs_its_rest_but_starts_again_whole():
    talk = as_the_text(2, 1)
    talk.at(100, "x 30 1", "old 200 1 10 110")
    assert talk.end_s("old") == 210.0
    assert talk.at(120, alive=1) == "-old"
    assert talk.at(130) == "old@0"
    assert talk.end_s("old") == 330.0
    assert talk.jobs["old"].left_s == 200.0


def test_one_that_ends_early_gives_its_cores_back():
    talk = as_the_text(1, 2)
    talk.at(0, "a 100 2", "b 10 1", "c 10 1")
    assert talk.ends("a", 40) == "b@0 c@0"
    assert talk.at(100) == ""  # what was planned for a does not happen
    assert talk.at(101, "d 10 2") == "d@0"


def test_an_end_planned_before_a_kill_does_not_happen():
    talk = as_the_text(2, 1)
    talk.at(0, "a 50 1", "b 100 1")
    assert talk.at(10, alive=1) == "-b"
    assert talk.at(50) == "b@0"
    # b was to end at 100; it does at 150, and c starts then
    talk.at(60, "c 5 1")
    assert talk.at(149) == ""
    assert talk.at(150) == "c@0"


# as published ------------------------------------------------------------------------------------------------------


def test_as_published_the_last_room_waits_for_the_next_end():
    talk = Talk(FirstFitStrategy(2, 4))
    talk.at(0, alive=2)
    # b starts; a asks for all that is free on the emptiest and waits; c is thinner
    assert talk.at(0, "b 10 3", "a 10 4", "c 20 1") == "b@0 c@0"
    # 3 of the 4 cores of machine 1 go, and then the last one is all there is
    assert talk.at(1, "d 5 3", "e 5 1") == "d@1"
    # after an end whatever fits does, by release: at 6 s a on machine 1, at 10 s e on machine 0
    assert talk.at(6) == "a@1"
    assert talk.at(10) == "e@0"


def test_as_published_the_last_room_is_taken_after_a_change():
    talk = Talk(FirstFitStrategy(2, 4))
    talk.at(0, alive=2)
    assert talk.at(0, "z 100 1", "a 10 4") == "z@0"
    assert talk.at(5, alive=1) == ""
    assert talk.at(6, alive=2) == "a@1"


def test_as_published_looks_at_machines_in_an_order_shuffled_once():
    machines = 8
    talk = Talk(FirstFitStrategy(machines, 2, np.random.default_rng(3)))
    talk.at(0, alive=machines)
    rank = np.random.default_rng(3).permutation(machines)
    decisions = talk.at(0, *(f"j{i} {1000 - i} 1" for i in range(machines)))
    assert decisions == " ".join(f"j{i}@{m}" for i, m in enumerate(np.repeat(np.argsort(rank), 2)[:machines]))
    # the highest go, whatever the order: what runs on them is killed
    highest = [f"j{i}" for i, m in enumerate(np.repeat(np.argsort(rank), 2)[:machines]) if m >= 5]
    killed = [word[1:] for word in talk.at(1, alive=5).split() if word.startswith("-")]
    assert highest and killed == highest
    assert list(talk.planner.machines_alive()) == [0, 1, 2, 3, 4]
    # the lowest that are off come back
    talk.at(2, alive=6)
    assert list(talk.planner.machines_alive()) == [0, 1, 2, 3, 4, 5]


def test_the_order_is_that_of_the_seed():
    def first(seed: int) -> str:
        talk = Talk(FirstFitStrategy(50, 2, np.random.default_rng(seed)))
        talk.at(0, alive=50)
        return talk.at(0, "a 10 1")

    assert first(1) == first(1)
    assert len({first(seed) for seed in range(10)}) > 3


def test_as_the_text_random_machines_go():
    def gone(seed: int) -> tuple[int, ...]:
        talk = as_the_text(10, 2, rng=np.random.default_rng(seed))
        talk.at(0, *(f"j{i} 100 2" for i in range(10)))
        decisions = talk.at(10, alive=7)
        alive = list(talk.planner.machines_alive())
        assert alive == sorted(alive) and len(alive) == 7
        # machine i had job i: those of the machines that went are killed and no other
        assert decisions == " ".join(f"-j{i}" for i in range(10) if i not in alive)
        return tuple(i for i in range(10) if i not in alive)

    sets = [gone(seed) for seed in range(20)]
    assert sets == [gone(seed) for seed in range(20)]
    assert len(set(sets)) > 10
    assert set().union(*sets) == set(range(10))  # no machine is safe


def test_as_the_text_machines_are_looked_at_in_order_and_the_lowest_come_back():
    talk = as_the_text(6, 1, rng=np.random.default_rng(0))
    assert talk.at(0, "a 100 1", "b 100 1") == "a@0 b@1"
    talk.at(1, alive=2)
    alive = set(talk.planner.machines_alive())
    talk.at(2, alive=4)
    back = set(talk.planner.machines_alive()) - alive
    assert back == set(sorted(set(range(6)) - alive)[:2])


@pytest.mark.parametrize("as_published", [True, False])
def test_jobs_are_only_changed_by_a_kill(as_published):
    talk = Talk(FirstFitStrategy(2, 2, as_published=as_published))
    talk.at(0, alive=2)
    talk.at(0, "a 30 1 -10 20", "b 30 1")
    job = talk.jobs["a"]
    before = job.left_s, replace(job.plan)
    talk.at(19)
    assert (job.left_s, job.plan) == before


# parts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order,starts",
    [
        (None, "x@0 y@0"),
        ("fcfs", "x@0 y@0"),
        ("lcfs", "z@0 y@0"),
        # z and y have two of the four cores, and then none is left
        ("asc_walltime", "z@0 y@0"),
        ("desc_walltime", "x@0 y@0"),
        # waited over length, and one: x 1.3, y 1.4, z 2.4
        ("slowdown", "z@0 y@0"),
    ],
)
def test_waiting_jobs_start_in_an_order(order, starts):
    talk = as_the_text(1, 4)
    talk.planner.order = order and make("order", order)
    assert talk.at(0, "a 10 4") == "a@0"
    assert talk.at(1, "x 30 2") + talk.at(2, "y 20 2") + talk.at(3, "z 5 2") == ""
    assert talk.at(10) == starts


def test_jobs_that_arrive_at_one_time_start_in_an_order():
    talk = as_the_text(1, 4)
    talk.planner.order = make("order", "asc_walltime")
    assert talk.at(0, "x 30 2", "y 20 2", "z 5 2") == "z@0 y@0"
    assert talk.at(5) == "x@0"


def test_an_order_sees_cores():
    talk = as_the_text(1, 4)
    talk.planner.order = make("order", "desc_size")
    talk.at(0, "a 10 4")
    talk.at(1, "thin 10 1", "wide 10 3", "middle 10 2")
    # 3 of the 4 cores, and the last one
    assert talk.at(10) == "wide@0 thin@0"


def test_the_order_of_two_jobs_may_change_while_they_wait():
    talk = as_the_text(1, 4)
    talk.planner.order = make("order", "slowdown")
    talk.at(0, "a 60 4")
    talk.at(1, "long 100 3")
    talk.at(50, "short 10 3")
    # at 50 s long has 1.49 and short 1, at 60 s they have 1.59 and 2
    assert talk.at(60) == "short@0"
    assert talk.at(70) == "long@0"


def test_a_killed_job_waits_in_the_order():
    talk = as_the_text(2, 1)
    talk.planner.order = make("order", "asc_walltime")
    talk.at(0, "a 50 1", "b 100 1")
    talk.at(1, "c 10 1")
    assert talk.at(10, alive=1) == "-b"
    # b was released before c, and is longer
    assert talk.at(50) == "c@0"


class KeepsOneFree(NodeSelection):
    """Machines without jobs, or with a core more than is asked for."""

    def suits(self, nodes, cores):
        return (nodes.free == nodes.cores) | (nodes.free > cores)

    def weight(self, nodes, cores):
        return np.zeros(len(nodes.ids))


def test_a_job_that_no_machine_suits_waits_and_others_pass_it():
    talk = as_the_text(1, 4)
    unknown, cores = np.full(1, np.nan), np.array([4])
    talk.planner.selection = KeepsOneFree()
    talk.planner.nodes = Nodes(np.array([0]), cores, cores, unknown, unknown)
    assert talk.at(0, "a 10 2") == "a@0"
    assert talk.at(1, "b 5 2", "c 20 1") == "c@0"
    # with a gone 3 cores are free
    assert talk.at(10) == "b@0"
