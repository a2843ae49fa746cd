"""The schedulers of docs/explanation/varcap.md by hand: groups, modes, migration (see test_varcap_rules)."""

from __future__ import annotations

import itertools

import pytest
from plain_varcap import PlainJob
from varcap_talk import plain, play, scheduler

from batwatt.scheduling.registry import names


@pytest.fixture(params=[scheduler, plain], ids=["scheduler", "plain"])
def varcap(request):
    return request.param


# groups and modes -------------------------------------------------------------------------------------------------


def test_longshort_keeps_the_groups_apart(varcap):
    # two stable machines: l3 waits though 2 and 3 are free; short ones come from the other end
    jobs = ("l1 0 200 1", "l2 1 200 1", "l3 2 200 1", "s1 3 50 1", "s2 4 50 1", "s3 5 50 1")
    told = varcap(*jobs, machines=4, mapping="longshort", long_s=100, low=2, high=4)
    assert told == {
        "l1": "0-200@0", "l2": "1-201@1", "l3": "200-400@0", "s1": "3-53@3", "s2": "4-54@2", "s3": "53-103@3",
    }  # fmt: skip


def test_short_jobs_come_to_the_stable_machines_last(varcap):
    # of 100 s is still short; l1 has only machine 0
    jobs = ("s1 0 100 1", "s2 0 100 1", "s3 0 100 1", "l1 1 101 1")
    told = varcap(*jobs, machines=3, mapping="longshort", long_s=100, stable=1)
    assert told == {"s1": "0-100@2", "s2": "0-100@1", "s3": "0-100@0", "l1": "100-201@0"}


def test_the_stable_group_stays(varcap):
    # at 10 s only the machines of l1 and of s3 stay, though s3 has done less than the others
    jobs = ("l1 5 200 1", "s1 1 50 1", "s2 2 50 1", "s3 3 50 1")
    told = varcap(*jobs, machines=4, capacity="4 10:2 30:4", mapping="longshort", long_s=100, termination="lww")
    assert told == {"l1": "5-205@0", "s1": "1-10@3x 30-80@3", "s2": "2-10@2x 30-80@2", "s3": "3-53@1"}


def test_longshort_reserves_for_each_group(varcap):
    # easy: w is short, waits for 2 and 3, and keeps s2 from 2; l3 waits for the stable group, and keeps nobody
    jobs = ("l1 0 200 1", "l2 0 200 1", "s1 0 50 1", "w 1 20 2", "s2 2 60 1", "s3 3 40 1", "l3 4 200 1")
    told = varcap(*jobs, machines=4, mapping="longshort", long_s=100, stable=2, backfilling="easy")
    assert told == {
        "s1": "0-50@3", "w": "50-70@2,3", "s2": "70-130@3", "s3": "3-43@2",
        "l1": "0-200@0", "l2": "0-200@1", "l3": "200-400@0",
    }  # fmt: skip


FIVE = ("a 0 10 1", "b 0 20 1", "c 0 30 1", "d 0 40 1", "e 0 50 1")
SHORTEST = {"a": "0-10@3", "b": "0-20@2", "c": "0-30@1", "d": "0-40@0", "e": "10-60@3"}
LONGEST = {"e": "0-50@0", "d": "0-40@1", "c": "0-30@2", "b": "0-20@3", "a": "20-30@3"}


@pytest.mark.parametrize(
    "low,high,told",
    [(1, 4, SHORTEST), (3, 4, SHORTEST), (4, 4, LONGEST), (2, 6, LONGEST), (2, 5, SHORTEST), (3, 6, LONGEST)],
)
def test_the_mode_at_the_threshold(varcap, low, high, told):
    # R = 4 against 2.5, 3.5, 4, 4, 3.5, 4.5
    if high <= 4:
        assert varcap(*FIVE, machines=4, mapping="twomode", low=low, high=high) == told
    else:
        # two machines more, which are not in service until all is over
        capacity = "4 100:6"
        assert varcap(*FIVE, machines=6, capacity=capacity, mapping="twomode", low=low, high=high) == told


def test_twomode_on_a_constant_capacity_is_jobsize_order(varcap):
    assert varcap(*FIVE, machines=4, mapping="twomode") == LONGEST
    assert varcap(*FIVE, machines=4, mapping="jobsize-order") == LONGEST


def test_twomode_changes_its_mode(varcap):
    # 1 to 3 machines: 2 is the threshold. x, on machines 2 and 1, is killed at 50 s; b, since 10 s on 0, ends at 80 s
    jobs = ("x 0 100 2", "b 10 70 1", "c 20 200 1", "d 110 20 1", "e 109 300 1")
    told = varcap(*jobs, machines=3, capacity="3 50:1 150:2 250:3", mapping="twomode", termination="order")
    # 80 s, R = 1: c (200 s) before x, which would not fit; 150 s, R = 2: e (300 s) before d, on 1; 250 s, R = 3: d
    # (20 s) before x, which would not fit either, on 2; 280 s: c has ended, and x gets the least safe, 2 and 0
    assert told == {
        "x": "0-50@1,2x 280-380@0,2", "b": "10-80@0", "c": "80-280@0", "e": "150-450@1", "d": "250-270@2",
    }  # fmt: skip


def test_default_terminations(varcap):
    # by order the one on machine 1 goes, though b has done less work and a smaller part
    jobs = ("x 0 10 1", "a 1 100 1", "b 5 200 1")
    for name in ("jobsize-order", "twomode"):
        told = varcap(*jobs, machines=2, capacity="2 50:1", mapping=name, low=2, high=2)
        assert told == {"x": "0-10@0", "a": "1-50@1x 210-310@0", "b": "10-210@0"}
    # short ones start on the least safe machine: that of a, which has done more
    told = varcap("a 0 100 1", "b 1 100 1", machines=2, capacity="2 50:1", mapping="longshort", stable=0)
    assert told == {"a": "0-50@1x 101-201@0", "b": "1-101@0"}


# migration --------------------------------------------------------------------------------------------------------

MOVE = {"mapping": "migration"}


def test_migration_moves_what_has_done_most_and_kills_what_has_done_least(varcap):
    # at 100 s machine 0 has a and c (4 cores), 1 b and e (3), 2 d (3): 2 leaves, the least safe of those with 3.
    # d needs 3 cores, 0 has none and 1 has one. Work: a 300, b 2 x 90 = 180, c 80, d 3 x 70 = 210, e 60:
    # e, c, b are killed before it fits on 1. Then c finds room on 0, e on 1, b when a ends.
    jobs = ("a 0 1000 3", "b 10 1000 2", "c 20 1000 1", "d 30 1000 3", "e 40 1000 1")
    assert varcap(*jobs, machines=3, cores=4, capacity="3 100:2", **MOVE) == {
        "a": "0-1000@0",
        "b": "10-100@1x 1000-2000@0",
        "c": "20-100@0x 100-1100@0",
        "d": "30-100@2> 100-1030@1",
        "e": "40-100@1x 100-1100@1",
    }


def test_machines_without_jobs_leave_before_any_move(varcap):
    told = varcap("a 0 5 1", "b 0 100 1", machines=3, capacity="3 10:1", **MOVE)
    assert told == {"a": "0-5@0", "b": "0-100@1"}


def test_the_one_to_be_moved_may_be_the_one_that_is_killed(varcap):
    # work 50 and 40
    told = varcap("a 0 100 1", "b 10 100 1", machines=2, capacity="2 50:1", **MOVE)
    assert told == {"a": "0-100@0", "b": "10-50@1x 100-200@0"}
    # at 50 s a, submitted later, has been on machine 0 for 45 s, b on machine 1 for 49 s
    told = varcap("x 0 5 1", "b 1 100 1", "a 2 100 1", machines=2, capacity="2 50:1", **MOVE)
    assert told == {"x": "0-5@0", "b": "1-50@1> 50-101@0", "a": "5-50@0x 101-201@0"}


def test_the_most_work_done_is_moved_first(varcap):
    # at 50 s: machine 0 a (3 of 5 cores), 1 b (4), 2 f and g (1 + 2): 2 leaves, less safe than 0. g has done
    # 2 x 35 = 70, f 45: g gets the room of 2 on machine 0, f that of 1 on machine 1
    jobs = ("a 0 1000 3", "x 0 20 2", "b 1 1000 4", "y 1 20 1", "f 5 1000 1", "g 15 1000 2")
    assert varcap(*jobs, machines=3, cores=5, capacity="3 50:2", **MOVE) == {
        "a": "0-1000@0", "x": "0-20@0", "b": "1-1001@1", "y": "1-21@1",
        "f": "5-50@2> 50-1005@1", "g": "15-50@2> 50-1015@0",
    }  # fmt: skip


def test_a_wide_job_moves_to_free_machines(varcap):
    # x on 0 and y on 3 are over at 10 s, both leave at 20 s, 0 is back at 30 s and has z of 2 cores, 3 x 2 at 40 s:
    # at 40 s two must do for w and z, and the least safe leaves: 2. w has done 4 x 39, z 2 x 8: z is killed for w
    jobs = ("x 0 10 1", "w 1 100 4", "y 2 8 2", "z 32 100 2")
    told = varcap(*jobs, machines=4, cores=2, capacity="4 20:2 30:3 40:2", **MOVE)
    assert told == {
        "x": "0-10@0", "y": "2-10@3", "w": "1-40@1,2> 40-101@0,1", "z": "32-40@0x 101-201@0",
    }  # fmt: skip


def test_a_moved_job_that_is_killed_starts_from_zero(varcap):
    # b moves to 0 at 50 s with 45 s done by then, when c (3 s) is killed; at 80 s all is killed by the fall to 0
    jobs = ("x 0 47 1", "b 5 100 1", "c 6 100 1")
    told = varcap(*jobs, machines=2, capacity="2 50:1 80:0 90:1", **MOVE)
    assert told == {"x": "0-47@0", "b": "5-50@1> 50-80@0x 90-190@0", "c": "47-50@0x 190-290@0"}


@pytest.mark.parametrize("of_a,of_b", [(100.1, 100.2), (100, 100), (232.304, 147.317)])
def test_of_equal_work_the_later_submission_is_killed(varcap, of_a, of_b):
    # both began at 10 s: 40.3 s of work each at 50.3 s, whatever their lengths; b's machine leaves
    jobs = ("w 0 10 2", f"a 1 {of_a} 1", f"b 2 {of_b} 1")
    told = varcap(*jobs, machines=2, capacity="2 50.3:1", **MOVE)
    assert (told["a"].count("x"), told["b"].count("x")) == (0, 1)


def test_the_work_of_a_moved_job_counts_from_its_first_start(varcap):
    # at 50 s machine 1 leaves with b, on one core since 1 s; c, with 2 x 3, is killed for it on 0, and runs on 1 from
    # 60 s on. At 80 s machine 0 has the fewer cores in use: b, with 79 and not 30, must move, and c, with 2 x 20, dies
    jobs = ("x 0 47 2", "b 1 100 1", "c 6 100 2")
    told = varcap(*jobs, machines=2, cores=2, capacity="2 50:1 60:2 80:1", **MOVE)
    assert told == {
        "x": "0-47@0", "b": "1-50@1> 50-80@0> 80-101@1", "c": "47-50@0x 60-80@1x 101-201@1",
    }  # fmt: skip


# dependencies -----------------------------------------------------------------------------------------------------


def test_a_job_waits_for_those_it_depends_on(varcap):
    # in nobody's way meanwhile, even without backfilling
    jobs = ("a 0 100 1", "b 1 200 1", "c 2 10 1 depends_on=a;b", "d 3 10 1 depends_on=a", "e 4 10 1")
    told = varcap(*jobs, machines=3, backfilling="none")
    assert told == {"a": "0-100@0", "b": "1-201@1", "c": "201-211@0", "d": "100-110@0", "e": "4-14@2"}


def test_a_killed_job_has_not_completed(varcap):
    jobs = ("a 0 100 1", "b 1 10 1 depends_on=a")
    told = varcap(*jobs, machines=1, capacity="1 50:0 70:1", termination="order")
    assert told == {"a": "0-50@0x 70-170@0", "b": "170-180@0"}


def test_a_migrated_job_completes_once(varcap):
    jobs = ("x 0 10 1", "a 1 100 1", "b 2 10 1 depends_on=a", "c 12 50 1")
    told = varcap(*jobs, machines=2, capacity="2 50:1", **MOVE)
    assert told == {"x": "0-10@0", "a": "1-50@1> 50-101@0", "b": "101-111@0", "c": "12-50@0x 111-161@0"}


def test_who_depends_on_a_rejected_job_is_rejected(varcap):
    jobs = ("a 0 10 3", "b 1 10 1 depends_on=a", "c 2 10 1 depends_on=b", "d 3 10 1")
    assert varcap(*jobs, machines=2) == {"a": "rejected", "b": "rejected", "c": "rejected", "d": "3-13@0"}


@pytest.mark.parametrize(
    "jobs,told",
    [
        # the other one completes, or is not in the workload, when b is gone already
        (("b 0 10 1 depends_on=a;c", "c 1 100 1", "a 2 10 3"), {"a": "rejected", "b": "rejected", "c": "1-101@0"}),
        (("b 0 10 1 depends_on=a;zz", "a 5 10 3"), {"a": "rejected", "b": "rejected"}),
        # b can never run, whatever becomes of a; c depends on both
        (
            ("b 0 10 3 depends_on=a", "c 1 10 1 depends_on=a;b", "a 5 10 1"),
            {"a": "5-15@0", "b": "rejected", "c": "rejected"},
        ),
    ],
)
def test_a_rejected_job_does_not_come_back(varcap, jobs, told):
    assert varcap(*jobs, machines=2) == told


def test_who_waits_for_others_can_become_too_wide(varcap):
    told = varcap("a 0 100 1", "b 1 10 3 depends_on=a", machines=3, capacity="3 50:2", termination="order")
    assert told == {"a": "0-100@0", "b": "rejected"}


def test_a_job_that_is_not_in_the_workload_counts_as_completed(varcap):
    assert varcap("a 0 10 1 depends_on=zz", machines=1) == {"a": "0-10@0"}


# one instance -----------------------------------------------------------------------------------------------------

CORES = 3
MANY = [
    PlainJob(
        id=str(i),
        submit_s=17.5 * i,
        length_s=60.0 + 31 * (i % 7),
        cpus=1 + i % CORES + 4 * (i % 9 == 0),
        memory=i % 3,
        depends_on=("2",) * (i % 11 == 7),
    )
    for i in range(40)
]
WALK = [(60.0 * i, n) for i, n in enumerate((4, 3, 4, 2, 1, 3, 2, 4, 0, 3, 2, 4))]
TOGETHER = [
    (name, rule) for name in names("mapping") for rule in (names("termination") if name != "migration" else [None])
]


def many(mapping, termination, **options):
    """The rows of these jobs. Half of them are long, no machine is always there, but longshort thinks that one is."""
    chosen = {"mapping": mapping, "long_s": 130.0, "longest_s": 300.0} | options
    chosen |= {} if termination is None else {"termination": termination}
    chosen |= {"stable": 1} if mapping == "longshort" else {}
    return play(MANY, WALK, 4, CORES, energy=True, **chosen)[0].jobs


def test_only_random_victims_depend_on_the_seed():
    for mapping, termination in TOGETHER:
        rows = [many(mapping, termination, seed=seed) for seed in range(2)]
        differ = any(other != rows[0] for other in rows)
        assert differ == (termination == "random"), (mapping, termination)


def test_the_schedulers_differ():
    rules = ("lww", "lfd", "order")
    for rule in rules:
        rows = [many(*pair) for pair in TOGETHER if pair[1] in (rule, None)]
        assert all(one != other for one, other in itertools.combinations(rows, 2))
    for mapping in ("base", "longshort"):
        rows = [many(mapping, rule) for rule in ("random", *rules)]
        assert all(one != other for one, other in itertools.combinations(rows, 2)), mapping
