"""Eq. 2, the degradations and Algorithm 1 on numbers worked out by hand.

Fast servers (ids first): 100 W/10, 60 W/6, 40 W/4 flop/s, asleep 5 W, off 20 W, on 50 W.
Slow servers: 120 W/5, 70 W/3, asleep 8 W, off 30 W, on 60 W.
"""

from __future__ import annotations

import pytest
from builders import ASLEEP_FAST, ASLEEP_SLOW
from clusters import cluster_of

from batwatt.scheduling.registry import make
from batwatt.systems.powercap.server_plan import Kill, Plan, SetPState


def respond(name, cluster, cap):
    plan = Plan(cluster)
    make("response", name).respond(plan, cap)
    return plan


# Eq. 2 ----------------------------------------------------------------------------------------------------------------


def test_power_of_a_step_is_the_highest_state_passed_through():
    plan = Plan(cluster_of(fast=2, slow=1, states=[0, ASLEEP_FAST, 1]))
    assert plan.power_w == 100 + 5 + 70
    assert plan.state_power_w(0, 2) == 40  # DVFS is instantaneous
    assert plan.state_power_w(0, ASLEEP_FAST) == 20  # on->off counts, not the 5 W asleep
    assert plan.state_power_w(1, ASLEEP_FAST) == 5
    assert plan.state_power_w(1, 2) == 50  # off->on is more than the 40 W that follow
    assert plan.state_power_w(1, 0) == 100
    assert plan.state_power_w(2, ASLEEP_SLOW) == 30


def test_servers_in_transition_are_fixed_at_what_their_transition_costs():
    cluster = cluster_of(fast=3, states=[0, ASLEEP_FAST, 0])
    cluster.set_pstate(0b010, 2)  # waking to 40 W: 50 W on the way
    cluster.set_pstate(0b100, ASLEEP_FAST)  # going to sleep: 20 W
    plan = Plan(cluster)
    assert plan.power_w == 100 + 50 + 20
    assert plan.free_to_change() == [0]
    with pytest.raises(ValueError, match="transition"):
        plan.put(1, 0)


def test_decisions_are_kills_then_one_request_per_state_and_kind():
    plan = Plan(cluster_of(fast=2, slow=1, jobs=[("j", 0b001, 0, 100)]))
    plan.put(0, 1)
    plan.put(1, 1)
    plan.put(2, 1)
    plan.kill(plan.running[0])
    assert list(plan.decisions()) == [Kill("j"), SetPState(0b011, 1), SetPState(0b100, 1)]


# none -----------------------------------------------------------------------------------------------------------------


def test_no_configuration_changes_nothing():
    assert list(respond("none", cluster_of(fast=2), 1.0).decisions()) == []


# IFS and ISB ----------------------------------------------------------------------------------------------------------

# two fast (100 W) and two slow (120 W), all idle at the top: 440 W
DEGRADED = {
    # 440 -> slow 2: 70 (390), asleep via off 30 (350), slow 3: 70 (300), 30 (260); then fast 0: 60 (220)
    ("idfs", 230): [1, 0, ASLEEP_SLOW, ASLEEP_SLOW],
    # 440 -> fast 0: 400, 380, asleep 360; fast 1: 320, 300, 280; slow 2: 70 (230)
    ("iafs", 230): [ASLEEP_FAST, ASLEEP_FAST, 1, 0],
    # turns: slow 2, slow 3, fast 0, fast 1 -> 390, 340, 300, 260; slow 2 asleep 220
    ("idsb", 230): [1, 1, ASLEEP_SLOW, 1],
    # turns: fast 0, fast 1, slow 2, slow 3 -> 400, 360, 310, 260; fast 0: 240, fast 1: 220
    ("iasb", 230): [2, 2, 1, 1],
    ("idfs", 440): [0, 0, 0, 0],
    ("iasb", 1): [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW, ASLEEP_SLOW],
}


@pytest.mark.parametrize(("name", "cap"), DEGRADED)
def test_degradation_of_idle_servers(name, cap):
    assert respond(name, cluster_of(fast=2, slow=2), cap).state == DEGRADED[name, cap]


def test_degradation_spares_running_servers_until_the_idle_ones_sleep():
    # job on slow 3 (120 W); cap 200: slow 2: 390, 350; fast 0: 310, 290, 270; fast 1: 230, 210, 190
    plan = respond("idfs", cluster_of(fast=2, slow=2, jobs=[("j", 0b1000, 0, 100)]), 200)
    assert plan.state == [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW, 0]
    assert not plan.killed
    # cap 145: all idle asleep make 190; the job's server slows down to 70 W (140)
    plan = respond("idfs", cluster_of(fast=2, slow=2, jobs=[("j", 0b1000, 0, 100)]), 145)
    assert plan.state == [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW, 1]
    assert not plan.killed
    # cap 139: and sleeps: the job is killed
    plan = respond("idfs", cluster_of(fast=2, slow=2, jobs=[("j", 0b1000, 0, 100)]), 139)
    assert plan.state == [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW, ASLEEP_SLOW]
    assert [run.job.id for run in plan.killed] == ["j"]


def test_degradation_wakes_sleeping_servers_when_there_is_power():
    plan = respond("idfs", cluster_of(fast=2, states=[ASLEEP_FAST, 2]), 1000)
    assert plan.state == [0, 0]
    # 160: server 0 (first by id) at 60: 160 W
    assert respond("idfs", cluster_of(fast=2, states=[ASLEEP_FAST, 2]), 160).state == [1, 0]
    # 149: waking to the slowest state costs the 50 W of off->on (150 W): it stays asleep
    assert respond("idfs", cluster_of(fast=2, states=[ASLEEP_FAST, 2]), 149).state == [ASLEEP_FAST, 0]


# HFLD: Algorithm 1, line by line --------------------------------------------------------------------------------------


def test_line_3_power_equal_to_the_cap_changes_nothing():
    assert list(respond("hfld", cluster_of(fast=2, states=[1, 1]), 120).decisions()) == []


def test_line_7_more_power_takes_the_highest_increment_of_flops_that_fits():
    # all asleep, 5 + 5 + 8 = 18 W. 120 W: fast 0 to 10 flop/s costs 95 W (113 W in all); 7 W are left: nothing fits
    cluster = cluster_of(fast=2, slow=1, states=[ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW])
    assert respond("hfld", cluster, 120).state == [0, ASLEEP_FAST, ASLEEP_SLOW]
    # 110 W: 92 W are left; 10 flop/s cost 95, so 6 flop/s for 55 W (73 W); then 37 W left: waking costs 45 W or more,
    # server 0 to 10 flop/s costs 40 W
    assert respond("hfld", cluster, 110).state == [1, ASLEEP_FAST, ASLEEP_SLOW]
    # 65 W: 47 W left; 4 flop/s for max(50, 40) - 5 = 45 W
    assert respond("hfld", cluster, 65).state == [2, ASLEEP_FAST, ASLEEP_SLOW]
    # 62 W: nothing can be woken
    assert respond("hfld", cluster, 62).state == [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW]


def test_line_9_puts_all_idle_servers_to_sleep_even_if_fewer_would_do():
    plan = respond("hfld", cluster_of(fast=3, jobs=[("j", 0b001, 0, 100)]), 250)
    assert plan.state == [0, ASLEEP_FAST, ASLEEP_FAST]  # 100 + 20 + 20


def test_lines_13_to_18_minimal_state_by_equation_7():
    # at 40 s of 100: 60 s are left. Work 640, done 400: 240 = 60 x 4, so 4 flop/s suffice
    cluster = cluster_of(fast=1, jobs=[("j", 0b1, 0, 100)], now=40.0, work={"j": 640.0})
    assert respond("hfld", cluster, 90).state == [2]
    # work 641: 241 > 240: 6 flop/s
    cluster = cluster_of(fast=1, jobs=[("j", 0b1, 0, 100)], now=40.0, work={"j": 641.0})
    assert respond("hfld", cluster, 90).state == [1]


def test_minimal_state_starts_with_the_highest_deadline_and_stops_when_it_suffices():
    jobs = [("early", 0b01, 0, 100), ("late", 0b10, 0, 900)]
    cluster = cluster_of(fast=2, jobs=jobs, now=10.0, work={"early": 100.0, "late": 100.0})
    assert respond("hfld", cluster, 150).state == [0, 2]


def test_minimal_state_may_be_faster_than_the_present_one():
    # j crawls at 4 flop/s and needs 9 now; k can be slow: 40 + 100 -> 100 + 40, still above 130
    jobs = [("j", 0b01, 0, 900), ("k", 0b10, 0, 100)]
    cluster = cluster_of(fast=2, states=[2, 0], jobs=jobs, now=50.0, work={"j": 200.0 + 850 * 9, "k": 0.0})
    plan = Plan(cluster)
    response = make("response", "hfld")
    response._minimal_state(plan, plan.running[0])
    assert plan.state == [0, 0]


def test_lines_19_to_28_reduce_then_kill_the_job_with_the_highest_deadline():
    # walltime estimates leave no room (work = 10 x walltime), so minimal states change nothing: 200 W
    jobs = [("early", 0b01, 0, 100), ("late", 0b10, 0, 900)]
    work = {"early": 1000.0, "late": 9000.0}
    assert respond("hfld", cluster_of(fast=2, jobs=jobs, work=work), 170).state == [0, 1]
    assert respond("hfld", cluster_of(fast=2, jobs=jobs, work=work), 150).state == [0, 2]
    plan = respond("hfld", cluster_of(fast=2, jobs=jobs, work=work), 130)
    assert plan.state == [0, ASLEEP_FAST]
    assert [run.job.id for run in plan.killed] == ["late"]
    plan = respond("hfld", cluster_of(fast=2, jobs=jobs, work=work), 30)
    assert plan.state == [ASLEEP_FAST, ASLEEP_FAST]
    assert [run.job.id for run in plan.killed] == ["late", "early"]
    assert plan.exceeds(30)  # 20 + 20: the paper's unavoidable violation


def test_in_turns_no_job_is_killed_before_all_are_at_their_slowest():
    jobs = [("early", 0b01, 0, 100), ("late", 0b10, 0, 900)]
    work = {"early": 1000.0, "late": 9000.0}
    turns = {"name": "hfld", "turns": True}
    # 200 W: late 160, early 120, late 100, early 80 W; below, the job with the highest deadline sleeps: 40 + 20 W
    for cap, state in ((170, [0, 1]), (150, [1, 1]), (110, [1, 2]), (90, [2, 2]), (70, [2, ASLEEP_FAST])):
        plan = respond(turns, cluster_of(fast=2, jobs=jobs, work=work), cap)
        assert plan.state == state
        assert [run.job.id for run in plan.killed] == (["late"] if cap == 70 else [])


def test_algorithm_1_compares_strictly():
    # 100 + 20 = 120 is not below 120: the letter goes on to reduce the job
    cluster = cluster_of(fast=2, jobs=[("j", 0b01, 0, 100)], work={"j": 1000.0})
    assert respond("hfld", cluster, 120).state == [1, ASLEEP_FAST]


def test_a_wide_job_is_reduced_on_all_its_servers_together():
    jobs = [("wide", 0b011, 0, 100)]
    plan = respond("hfld", cluster_of(fast=2, slow=0, jobs=jobs, work={"wide": 1000.0}), 150)
    assert plan.state == [1, 1]
    # a slow server has one state less: it waits at its slowest until the fast one is there, then both sleep
    plan = respond("hfld", cluster_of(fast=1, slow=1, jobs=jobs, work={"wide": 1000.0}), 115)
    assert plan.state == [2, 1]
    assert not plan.killed
    plan = respond("hfld", cluster_of(fast=1, slow=1, jobs=jobs, work={"wide": 1000.0}), 105)
    assert plan.state == [ASLEEP_FAST, ASLEEP_SLOW]
    assert [run.job.id for run in plan.killed] == ["wide"]


@pytest.mark.parametrize("name", ["idfs", "iafs", "idsb", "iasb", "hfld"])
def test_servers_in_transition_are_left_alone(name):
    cluster = cluster_of(fast=3, states=[0, ASLEEP_FAST, 0])
    cluster.set_pstate(0b010, 0)
    cluster.set_pstate(0b100, ASLEEP_FAST)
    for cap in (10.0, 150.0, 1000.0):
        plan = respond(name, cluster, cap)
        assert plan.state[1:] == [0, ASLEEP_FAST]
