"""The rules of docs/explanation/varcap.md, one by one, on examples worked out by hand: for the scheduler and for its
plain twin.

Here: machines, victims and queues. A job is `name submission length cpus [field=..]`; what became of it is
`start-end@machines`, with x if it was killed and > if it was moved.
"""

from __future__ import annotations

from collections import Counter

import pytest
from varcap_talk import plain, scheduler

from batwatt.errors import InputError


@pytest.fixture(params=[scheduler, plain], ids=["scheduler", "plain"])
def varcap(request):
    return request.param


# the system -------------------------------------------------------------------------------------------------------


def test_jobs_share_the_first_machine_with_room(varcap):
    # b fits beside a, c only on the next, d beside both; e on the third
    jobs = ("a 0 100 2", "b 1 100 1", "c 2 100 2", "d 3 100 1", "e 4 100 3")
    told = varcap(*jobs, machines=3, cores=4)
    assert told == {"a": "0-100@0", "b": "1-101@0", "c": "2-102@1", "d": "3-103@0", "e": "4-104@2"}


def test_a_dedicated_job_has_its_machine_to_itself(varcap):
    told = varcap("a 0 100 1", "b 1 100 1", "c 2 100 1", machines=2, cores=4, nodes="dedicated")
    assert told == {"a": "0-100@0", "b": "1-101@1", "c": "100-200@0"}


def test_a_job_on_several_machines_has_them_to_itself(varcap):
    # 5 cores of machines of 4: two machines, and b does not use what is left of them
    told = varcap("a 0 100 5", "b 1 100 1", "c 2 100 9", "d 3 10 1", machines=4, cores=4)
    assert told == {"a": "0-100@0,1", "b": "1-101@2", "c": "100-200@0,1,3", "d": "3-13@2"}


def test_memory_is_a_limit_like_cores(varcap):
    # 6 + 6 > 10 on machine 0, 6 + 4 = 10 is not; the wide one has 20 / 2 = 10 a machine
    jobs = ("a 0 100 1 memory=6", "b 1 50 1 memory=6", "c 2 100 1 memory=4", "d 3 100 5 memory=20")
    told = varcap(*jobs, machines=3, cores=4, machine_memory=10)
    assert told == {"a": "0-100@0", "b": "1-51@1", "c": "2-102@0", "d": "51-151@1,2"}


def test_what_needs_more_memory_than_its_machines_have_is_rejected(varcap):
    jobs = ("a 0 10 1 memory=10.5", "b 0 10 8 memory=20.5", "c 0 10 8 memory=20")
    told = varcap(*jobs, machines=2, cores=4, machine_memory=10)
    assert told == {"a": "rejected", "b": "rejected", "c": "0-10@0,1"}


def test_what_needs_more_machines_than_ever_come_is_rejected(varcap):
    # a waits for the third machine; b comes when there will be two for ever; c is told so after its first submission
    jobs = ("a 10 20 3", "b 210 10 3", "c 120 10 3", "d 120.5 85 3", "e 220 10 2")
    told = varcap(*jobs, machines=3, capacity="2 100:3 200:2", termination="order")
    # d cannot start before c ends at 130, is killed at 200, and can never run again
    assert told == {
        "a": "100-120@0,1,2", "b": "rejected", "c": "120-130@0,1,2",
        "d": "130-200@0,1,2x rejected", "e": "220-230@0,1",
    }  # fmt: skip


def test_machines_without_jobs_leave_first_and_the_safest_come_back_first(varcap):
    # at 10 s machines 3, then 0 are idle and leave: 1 and 2 stay. At 50 s machine 0 comes back, at 70 s machine 3
    jobs = ("a 0 5 1", "b 0 100 1", "c 0 100 1", "d 20 10 1", "e 55 100 1", "f 56 100 1")
    told = varcap(*jobs, machines=4, capacity="4 10:2 50:3 70:4", termination="order")
    assert told == {
        "a": "0-5@0", "b": "0-100@1", "c": "0-100@2", "d": "50-60@0", "e": "60-160@0", "f": "70-170@3",
    }  # fmt: skip


def test_the_least_safe_of_those_without_jobs_leaves(varcap):
    # two are idle, 0 and 2, and one has to go
    told = varcap("a 0 5 1", "b 0 100 1", "c 20 10 1", "d 21 10 1", machines=3, capacity="3 10:2", termination="order")
    assert told == {"a": "0-5@0", "b": "0-100@1", "c": "20-30@0", "d": "30-40@0"}


# who is killed ----------------------------------------------------------------------------------------------------

FOUR = ("a 0 1000 4", "b 30 200 2", "d 40 300 4", "c 60 400 2")
"""At 100 s: a on machine 0, b and c on 1, d on 2; work 4x100 = 400, 2x70 + 2x40 = 220, 4x60 = 240 core s;
done 100/1000 = 0.1, 70/200 + 40/400 = 0.45, 60/300 = 0.2."""
STAYS = {"a": "0-1000@0", "b": "30-230@1", "c": "60-460@1", "d": "40-340@2"}


@pytest.mark.parametrize(
    "termination,killed",
    [
        # machine 1, whose jobs find room when d ends
        ("lww", {"b": "30-100@1x 340-540@2", "c": "60-100@1x 340-740@2"}),
        # machine 0; the next free one is d's
        ("lfd", {"a": "0-100@0x 340-1340@2"}),
        # machine 2; the next free one is that of b and c
        ("order", {"d": "40-100@2x 460-760@1"}),
    ],
)
def test_the_victim_on_a_fall(varcap, termination, killed):
    assert varcap(*FOUR, machines=3, cores=4, capacity="3 100:2", termination=termination) == STAYS | killed


def test_lfd_goes_by_the_estimate(varcap):
    # a: 100/400 = 0.25 of its estimate, so d with 0.2 is the victim
    jobs = ("a 0 1000 4 estimate_s=400", *FOUR[1:])
    told = varcap(*jobs, machines=3, cores=4, capacity="3 100:2", termination="lfd")
    assert told == STAYS | {"d": "40-100@2x 460-760@1"}


def test_lww_counts_cores(varcap):
    # 1 core x 100 s < 2 cores x 90 s < 2 x 99 s; with equal cores a would be the last
    jobs = ("a 0 1000 1", "b 1 1000 2", "c 10 1000 2")
    told = varcap(*jobs, machines=3, cores=2, capacity="3 100:2", termination="lww", nodes="dedicated")
    assert told == {"a": "0-100@0x 1001-2001@1", "b": "1-1001@1", "c": "10-1010@2"}


@pytest.mark.parametrize("termination", ["lww", "lfd"])
def test_of_equal_victims_it_is_the_least_safe(varcap, termination):
    told = varcap("a 0 100 1", "b 0 100 1", "c 0 100 1", machines=3, capacity="3 50:1", termination=termination)
    assert told == {"a": "0-100@0", "b": "0-50@1x 100-200@0", "c": "0-50@2x 200-300@0"}


def test_a_wide_job_frees_all_its_machines_and_they_leave_first(varcap):
    # lfd: w 0.1, a 90/200, b 80/100. w is killed for machine 1; of its machines 0 stays free
    jobs = ("w 0 1000 4", "a 10 200 2", "b 20 100 2", "c 110 5 2")
    told = varcap(*jobs, machines=4, cores=2, capacity="4 100:3", termination="lfd")
    assert told == {"w": "0-100@0,1x 120-1120@0,3", "a": "10-210@2", "b": "20-120@3", "c": "110-115@0"}
    # two have to go: both are hers
    told = varcap(*jobs, machines=4, cores=2, capacity="4 100:2", termination="lfd")
    assert told == {"w": "0-100@0,1x 210-1210@2,3", "a": "10-210@2", "b": "20-120@3", "c": "120-125@3"}


def test_the_score_of_a_wide_job_counts_on_each_of_its_machines(varcap):
    # w has done 4 x 100 core s, on two machines; a 2 x 90, b 2 x 80
    jobs = ("w 0 1000 4", "a 10 200 2", "b 20 100 2")
    told = varcap(*jobs, machines=4, cores=2, capacity="4 100:3", termination="lww")
    assert told == {"w": "0-1000@0,1", "a": "10-210@2", "b": "20-100@3x 210-310@2"}


def test_victims_are_chosen_until_enough_machines_have_left(varcap):
    # done 50/100, 40/400, 30/100, 20/100: all but a, which has done most
    jobs = ("a 0 100 1", "b 10 400 1", "c 20 100 1", "d 30 100 1")
    told = varcap(*jobs, machines=4, capacity="4 50:1 100:4", termination="lfd")
    assert told == {"a": "0-100@0", "b": "10-50@1x 100-500@0", "c": "20-50@2x 100-200@1", "d": "30-50@3x 100-200@2"}


def test_a_killed_job_starts_again_at_once_where_there_is_room(varcap):
    # b was on machine 1 because x was in its way
    jobs = ("x 0 10 1", "a 0 1000 1", "b 1 1000 1")
    told = varcap(*jobs, machines=2, cores=2, capacity="2 50:1", termination="order")
    assert told == {"x": "0-10@0", "a": "0-1000@0", "b": "1-50@1x 50-1050@0"}


@pytest.mark.parametrize("requeue,second,third", [("submission", "b", "c"), ("end", "c", "b")])
def test_where_a_killed_job_waits(varcap, requeue, second, third):
    jobs = ("a 0 100 1", "b 1 100 1", "c 10 100 1")
    told = varcap(*jobs, machines=2, capacity="2 50:1", termination="order", requeue=requeue)
    before = {"a": "", "b": "1-50@1x ", "c": ""}
    assert told == {
        "a": "0-100@0", second: f"{before[second]}100-200@0", third: f"{before[third]}200-300@0",
    }  # fmt: skip


def victims(jobs, machines, fall_to, seeds, **options) -> Counter[str]:
    """How often each job was killed, over so many seeds."""
    found: Counter[str] = Counter()
    for seed in range(seeds):
        options |= {"capacity": f"{machines} 50:{fall_to}", "termination": "random", "seed": seed}
        found.update(name for name, runs in scheduler(*jobs, machines=machines, **options).items() if "x" in runs)
    return found


def test_random_victims_are_machines_equally_likely():
    # w has 3 of 4 machines: 60 of 80 expected, +-4 standard deviations of 3.9
    found = victims(("w 0 100 3", "a 1 100 1"), 4, 3, 80)
    assert sum(found.values()) == 80 and 45 <= found["w"] <= 75
    # each of three machines: 20 of 60 expected, +-4 x 3.7
    found = victims(("a 0 100 1", "b 0 100 1", "c 0 100 1"), 3, 2, 60)
    assert all(6 <= found[name] <= 34 for name in "abc") and sum(found.values()) == 60


def test_random_takes_machines_with_jobs_or_without():
    # one of three has a job: 20 of 60 expected, +-4 x 3.7
    assert 6 <= victims(("a 0 100 1",), 3, 2, 60)["a"] <= 34
    # but not with foresight: then those without go first
    assert victims(("a 0 100 1",), 3, 2, 30, foresight_h=1) == {}
    # two of three go: a stays in a third
    assert 26 <= victims(("a 0 100 1",), 3, 1, 60)["a"] <= 54


# queues -----------------------------------------------------------------------------------------------------------

LINE = ("a 0 100 1", "w 1 50 3", "b 2 98 1", "c 3 98 1")


@pytest.mark.parametrize(
    "backfilling,told",
    [
        # w is passed over until all three machines are free
        ("greedy", {"b": "2-100@1", "c": "3-101@2", "w": "101-151@0,1,2"}),
        ("none", {"w": "100-150@0,1,2", "b": "150-248@0", "c": "150-248@1"}),
        # w's shadow time is 100 s: b ends just then, c would at 101 s
        ("easy", {"b": "2-100@1", "w": "100-150@0,1,2", "c": "150-248@0"}),
    ],
)
def test_backfilling(varcap, backfilling, told):
    assert varcap(*LINE, machines=3, backfilling=backfilling) == {"a": "0-100@0"} | told


def test_greedy_is_the_default_of_fcfs_and_easy_that_of_wfp(varcap):
    assert varcap(*LINE, machines=3)["w"] == "101-151@0,1,2"
    assert varcap(*LINE, machines=3, order="wfp")["w"] == "100-150@0,1,2"


def test_easy_leaves_machines_that_are_not_reserved(varcap):
    # a and b end at 100 s; then 0, 1 and 2 are free, and w gets 0 and 1
    jobs = ("a 0 100 1", "b 0 100 1", "x 0 300 1", "w 1 50 3", "d 2 1000 1", "e 3 1000 1")
    told = varcap(*jobs, machines=4, cores=1, backfilling="easy")
    # three are needed, 0, 1 and 3: none is left
    assert (told["x"], told["w"], told["d"], told["e"]) == ("0-300@2", "100-150@0,1,3", "150-1150@0", "150-1150@1")
    told = varcap(*(job.replace("w 1 50 3", "w 1 50 2") for job in jobs), machines=4, backfilling="easy")
    # two are needed, 0 and 1, as only 3 is free at once; it is not reserved
    assert (told["w"], told["d"], told["e"]) == ("100-150@0,1", "2-1002@3", "150-1150@0")


def test_the_shadow_time_goes_by_estimates(varcap):
    # a is thought to end at 60 s: b, until 62 s by its own estimate, is not let in; c, until 53 s, is, and is late
    jobs = ("a 0 100 1 estimate_s=60", "w 1 50 2", "b 2 50 1 estimate_s=60", "c 3 70 1 estimate_s=50", "d 80 5 1")
    told = varcap(*jobs, machines=2, backfilling="easy")
    # from 60 s on a may end at any moment: when c has, at 73 s, nothing may start before it, not even d
    assert told == {"a": "0-100@0", "w": "100-150@0,1", "b": "150-200@0", "c": "3-73@1", "d": "150-155@1"}


def test_a_job_for_machines_that_are_out_of_service_holds_nobody(varcap):
    # three machines come at 500 s; until then w gets no reservation, but v, the next, does
    jobs = ("a 0 100 1", "w 1 50 3", "v 2 50 2", "b 3 300 1", "c 4 90 1")
    told = varcap(*jobs, machines=3, capacity="2 500:3", backfilling="easy")
    assert told == {
        "a": "0-100@0", "w": "500-550@0,1,2", "v": "100-150@0,1", "b": "150-450@0", "c": "4-94@1",
    }  # fmt: skip


def test_wfp_by_numbers(varcap):
    # at 100 s (w/e)^3 n: b (90/90)^3 = 1, c (40/20)^3 = 8, d (20/5)^3 = 64, so d, until 105 s;
    # then b (95/90)^3 = 1.18 and c (45/20)^3 = 11.4
    jobs = ("a 0 100 1", "b 10 90 1", "c 60 20 1", "d 80 5 1")
    told = varcap(*jobs, machines=1, order="wfp")
    assert told == {"a": "0-100@0", "b": "125-215@0", "c": "105-125@0", "d": "100-105@0"}


def test_wfp_goes_by_estimates_and_machines(varcap):
    # at 100 s: b (90/90)^3 = 1; c, thought to last 80 s, (40/80)^3 = 0.125
    told = varcap("a 0 100 1", "b 10 90 1", "c 60 20 1 estimate_s=80", machines=1, order="wfp")
    assert told == {"a": "0-100@0", "b": "100-190@0", "c": "190-210@0"}
    # at 100 s: b (90/90)^3 = 1; c, on two machines, (85/100)^3 x 2 = 1.23
    told = varcap("a 0 100 2", "b 10 90 1", "c 15 100 2", machines=2, order="wfp")
    assert told == {"a": "0-100@0,1", "b": "200-290@0", "c": "100-200@0,1"}


def test_wfp_counts_from_the_first_submission(varcap):
    # b is killed at 50 s; at 100 s b (90/90)^3 = 1 though it went to the end, c (75/80)^3 = 0.82
    jobs = ("a 0 100 1", "b 10 90 1", "c 25 80 1")
    told = varcap(*jobs, machines=2, capacity="2 50:1", order="wfp", termination="order", requeue="end")
    assert told == {"a": "0-100@0", "b": "10-50@1x 100-190@0", "c": "190-270@0"}


def test_longest_first(varcap):
    jobs = ("a 0 10 1", "b 1 20 1", "c 2 30 1", "d 3 30 1")
    told = varcap(*jobs, machines=1, mapping="jobsize-order")
    assert told == {"a": "0-10@0", "b": "70-90@0", "c": "10-40@0", "d": "40-70@0"}


@pytest.mark.parametrize("options,order", [({}, "cb"), ({"run_times": {"name": "walltime", "otherwise_s": 40}}, "bc")])
def test_longest_by_what_is_known(varcap, options, order):
    # b is thought to last 50 s
    jobs = ("a 0 10 1", "b 1 20 1 estimate_s=50", "c 2 30 1")
    told = varcap(*jobs, machines=1, mapping="jobsize-order", **options)
    assert sorted("bc", key=lambda name: float(told[name].partition("-")[0])) == list(order)


def test_longest_first_is_greedy(varcap):
    # w, the longest, does not fit beside a, and holds nobody
    told = varcap("a 0 50 1", "w 1 90 2", "b 2 60 1", machines=2, mapping="jobsize-order")
    assert told == {"a": "0-50@0", "w": "62-152@0,1", "b": "2-62@1"}


@pytest.mark.parametrize(
    "name,option,value",
    [
        ("jobsize-order", "knowledge", "class"),
        ("twomode", "knowledge", "none"),
        ("longshort", "knowledge", "none"),
        ("jobsize-order", "backfilling", "easy"),
        ("twomode", "order", "wfp"),
    ],
)
def test_options_that_do_not_go_with_the_scheduler(name, option, value):
    with pytest.raises(InputError, match=f"option '{option}'.*{value}.*{name}"):
        scheduler("a 0 10 1", machines=1, mapping=name, **{option: value})


@pytest.mark.parametrize(
    "options,problem",
    [
        ({"mapping": "twomode", "low": 3, "high": 2}, r"option 'low': must be <= 'high' \(2\), got 3"),
        ({"mapping": "longshort", "longest_s": 10}, r"option 'longest_s': must be >= 'long_s' \(3600\), got 10"),
    ],
)
def test_options_that_contradict_each_other(options, problem):
    with pytest.raises(InputError, match=problem):
        scheduler("a 0 10 1", machines=1, **options)
