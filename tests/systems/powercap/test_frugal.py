"""Rules F1 to F7 of our own response on numbers worked out by hand, and the forecast that it may be given.

Fast servers (ids first): 100 W/10, 60 W/6, 40 W/4 flop/s, asleep 5 W, off 20 W, on 50 W: 0.1 flop/J.
Slow servers: 120 W/5, 70 W/3, asleep 8 W, off 30 W, on 60 W: 0.043 flop/J, less than half, so not efficient.
"""

from __future__ import annotations

import math

import pytest
from builders import ASLEEP_FAST, ASLEEP_SLOW, envelope, job, machine, simulated
from clusters import Job, cluster_of, enqueue

from batwatt.errors import InputError
from batwatt.scheduling.foresight import EnvelopeForecast
from batwatt.systems.powercap.frugal import Frugal
from batwatt.systems.powercap.scheduler import EnvelopeScheduler
from batwatt.systems.powercap.server_plan import Plan

SLOWEST_FAST, SLOWEST_SLOW = 2, 1


def waiting(cluster, *widths):
    enqueue(cluster.queue, *(Job(f"w{number}", hosts, 100.0) for number, hosts in enumerate(widths)))
    return cluster


def respond(cluster, cap, forecast=(), **parameters):
    plan = Plan(cluster, tuple(forecast))
    Frugal(**parameters).respond(plan, cap)
    return plan


def on_fast(*starts, works=None, **more):
    """One job on each fast server, running since `starts`, now 100 s."""
    jobs = [(name, 1 << i, start, 1000.0) for i, (name, start) in enumerate(zip("abc", starts, strict=False))]
    return cluster_of(fast=len(starts), jobs=jobs, now=100.0, work=works or dict.fromkeys("abc", 1e4), **more)


# F1 to F3: who is awake ------------------------------------------------------------


def test_nobody_is_awake_for_nothing():
    plan = respond(cluster_of(fast=2, slow=1), 1000)
    assert plan.state == [ASLEEP_FAST, ASLEEP_FAST, ASLEEP_SLOW]


def test_as_many_as_are_asked_for_and_the_widest_job_again_of_the_efficient_kind():
    # one server asked for and one more; three fast ones are there
    plan = respond(waiting(cluster_of(fast=3, slow=1), 1), 1000)
    assert plan.state == [SLOWEST_FAST, SLOWEST_FAST, ASLEEP_FAST, ASLEEP_SLOW]


def test_the_widest_job_is_remembered():
    response = Frugal()
    first = waiting(cluster_of(fast=3), 2)
    response.respond(Plan(first, ()), 1000)
    plan = Plan(cluster_of(fast=3), ())
    response.respond(plan, 1000)
    assert plan.state == [SLOWEST_FAST, SLOWEST_FAST, ASLEEP_FAST]


@pytest.mark.parametrize(
    ("widths", "helpers"),
    [((1, 1, 1), 0), ((1, 1, 1, 1), 2), ((3,), 1)],
    ids=["3 waiting servers are fewer than 2 x 2", "4 are enough", "a job that is wider than the efficient ones"],
)
def test_less_efficient_servers_help_if_many_wait_or_a_wide_job_does(widths, helpers):
    plan = respond(waiting(cluster_of(fast=2, slow=2), *widths), 1000)
    assert plan.state[:2] == [SLOWEST_FAST] * 2
    assert plan.state[2:] == [SLOWEST_SLOW] * helpers + [ASLEEP_SLOW] * (2 - helpers)


def test_less_efficient_servers_help_only_while_a_fall_can_be_followed():
    # falling asleep together: 20 + 20 + 30 + 30 = 100 W, with one helper 20 + 20 + 30 + 8 = 78 W
    four = (1, 1, 1, 1)
    assert respond(waiting(cluster_of(fast=2, slow=2), *four), 250, headroom=0.0).state[3] == SLOWEST_SLOW
    plan = respond(waiting(cluster_of(fast=2, slow=2), *four), 249, headroom=0.0)
    assert plan.state == [SLOWEST_FAST, SLOWEST_FAST, SLOWEST_SLOW, ASLEEP_SLOW]
    # the rule is not for the efficient ones: 0.4 x 90 = 36 W is less than their 40 W
    plan = respond(waiting(cluster_of(fast=2), *four), 90, headroom=0.0)
    assert plan.state == [SLOWEST_FAST] * 2


def test_servers_are_woken_while_there_is_headroom():
    # two asleep 10 W; one awake 40 + 5 = 45, two 80 W; waking draws 50 W each
    asleep = {"fast": 2, "states": [ASLEEP_FAST] * 2}
    assert respond(waiting(cluster_of(**asleep), 1), 100).state == [SLOWEST_FAST] * 2  # 80 <= 85
    assert respond(waiting(cluster_of(**asleep), 1), 94).state == [SLOWEST_FAST, ASLEEP_FAST]  # 80 > 79.9
    # 80 <= 85, but 50 + 50 W are more than the cap
    assert respond(waiting(cluster_of(**asleep), 1), 99, headroom=0.0).state == [SLOWEST_FAST, ASLEEP_FAST]


def test_with_a_forecast_only_what_the_caps_to_come_will_bear_is_awake():
    two = {"fast": 2, "states": [ASLEEP_FAST] * 2}
    assert respond(waiting(cluster_of(**two), 1), 1000, (500, 80)).state == [SLOWEST_FAST] * 2
    assert respond(waiting(cluster_of(**two), 1), 1000, (500, 79)).state == [SLOWEST_FAST, ASLEEP_FAST]
    assert respond(waiting(cluster_of(**two), 1), 1000, (500, 44)).state == [ASLEEP_FAST] * 2


def test_idle_servers_fall_asleep_if_those_that_fall_asleep_exceed_the_cap():
    # 40 + 5 W would do in the end; meanwhile it is 40 + 20 W, with both falling asleep 20 + 20 W
    plan = respond(waiting(cluster_of(fast=2), 1), 50, headroom=0.0)
    assert plan.state == [ASLEEP_FAST] * 2


# F4 and F5: slow down, then kill ------------------------------------------------------------


def test_jobs_slow_down_before_one_is_killed():
    plan = respond(on_fast(0.0, 0.0), 80)
    assert plan.state == [SLOWEST_FAST] * 2
    assert not plan.killed


def killed(plan):
    return [run.job.id for run in plan.killed]


def test_one_kill_takes_the_job_of_least_wasted_work_that_is_enough():
    # 120 W at the slowest states; a kill frees 40 - 20 = 20 W
    plan = respond(on_fast(0.0, 50.0, 20.0), 100)
    assert killed(plan) == ["b"]
    assert plan.state == [SLOWEST_FAST, ASLEEP_FAST, SLOWEST_FAST]


def test_more_kills_if_one_is_not_enough_and_wide_jobs_first():
    assert killed(respond(on_fast(0.0, 50.0, 20.0), 80)) == ["b", "c"]
    # a job on two servers frees 40 W at once, though it wastes more
    wide = cluster_of(fast=3, jobs=[("wide", 0b011, 0, 1000), ("thin", 0b100, 50, 1000)], now=100.0)
    assert killed(respond(wide, 80)) == ["wide"]


def test_a_violation_that_no_kill_averts_costs_as_few_as_will_do_later():
    # all falling asleep draw 60 W; one that stays, and two asleep: 40 + 5 + 5 = 50 W
    plan = respond(on_fast(0.0, 50.0, 20.0), 50)
    assert killed(plan) == ["b", "c"]
    assert plan.exceeds(50)


# F6: speed ------------------------------------------------------------


def test_power_left_goes_to_the_most_work_left():
    # 80 W at the slowest; 80 W more: 60 for the longer one's 10 flop/s, then 20 for 6 flop/s
    plan = respond(on_fast(0.0, 0.0, works={"a": 5e3, "b": 6e3}), 160)
    assert plan.state == [1, 0]


def test_jobs_that_would_be_late_come_first_and_get_no_more_than_they_need():
    # done at 100 s: 1000 flops; a: 5000 left in 900 s: 5.6 flop/s; b: 8000 left: 8.9 flop/s; c: 900 left: 1 flop/s
    plan = respond(on_fast(0.0, 0.0, 0.0, works={"a": 6e3, "b": 9e3, "c": 1.9e3}), 200)
    assert plan.state == [1, 0, 2]
    # 180 W are a W too few for the speed that b needs: a first (same deadline, earlier), then what there is
    assert respond(on_fast(0.0, 0.0, 0.0, works={"a": 6e3, "b": 9e3, "c": 1.9e3}), 199).state == [1, 1, 1]


def test_servers_of_one_job_keep_pace_with_its_slowest():
    # on a fast and a slow server: 3, 4 or 5 flop/s; at 5 the fast one needs only its 6 flop/s (60 W)
    mixed = cluster_of(fast=1, slow=1, jobs=[("j", 0b11, 0, 1000)], work={"j": 1e6}, now=1.0)
    assert respond(mixed, 1000).state == [1, 0]


def test_within_a_step_speeds_follow_the_jobs():
    # steps of 300 s at 1000 W: b starts at 310 s on a server that is awake and idle, and runs at full speed at once
    scheduler = EnvelopeScheduler(
        {"response": "frugal", "envelope": envelope(1000.0), "platform": machine(2, 0), "order": "fcfs"}
    )
    record = simulated(scheduler, machine(2, 0), job(0, 1, 1, 600, 700), job(1, 310, 1, 100, 150))
    ends = {row[0]: (row[8], row[10]) for row in record.jobs}
    # asleep at 0 for want of jobs, woken at 300, on at 320
    assert ends == {"0": (320.0, 920.0), "1": (320.0, 420.0)}


# F7: foresight ------------------------------------------------------------


def test_kills_ahead_if_that_spares_a_kill():
    # 65 W next: 55 too many. Then: 3 kills of 20 W each; now: 2 of 35 W. One now (15 W more than then) is enough
    cluster = on_fast(0.0, 50.0, 20.0)
    assert killed(respond(cluster, 1000, (65,))) == ["b"]
    # the step after: 40 + 40 + 5 = 85 W, and one more kill leaves 40 + 20 + 5 = 65 W
    later = on_fast(0.0, 20.0, 20.0)
    later.running.pop("b")
    later.busy, later.asleep, later.pstate[1] = 0b101, 0b010, ASLEEP_FAST
    plan = respond(later, 65)
    assert killed(plan) == ["c"]
    assert not plan.exceeds(65)


def test_no_kill_ahead_if_it_spares_none():
    # 100 W next: one kill, now or then
    assert killed(respond(on_fast(0.0, 50.0, 20.0), 1000, (100,))) == []
    assert killed(respond(on_fast(0.0, 50.0, 20.0), 1000, (120,))) == []


def test_a_violation_is_averted_by_killing_ahead():
    # 50 W next: even three kills would leave 60 W; two now leave 40 + 5 + 5 W then
    assert sorted(killed(respond(on_fast(0.0, 50.0, 20.0), 1000, (50,)))) == ["b", "c"]


# parameters, forecast ------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"headroom": 1.0},
        {"headroom": -0.1},
        {"efficiency": 1.1},
        {"backlog": -1},
        {"reserve": math.nan},
        {"reserve": -1},
        {"reserve": "x"},
        {"backlog": True},
    ],
    ids=str,
)
def test_parameters_out_of_range(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=name):
        EnvelopeScheduler(
            {"response": {"name": "frugal", **parameters}, "envelope": envelope(1.0), "platform": machine(1, 0)}
        )


def test_an_exact_forecast_tells_the_steps_that_follow():
    series = envelope(10.0, 20.0, 30.0)
    assert EnvelopeForecast(series, 2).after(0.0) == (20.0, 30.0)
    assert EnvelopeForecast(series, 2).after(299.0) == (20.0, 30.0)
    assert EnvelopeForecast(series, 2).after(300.0) == (30.0, 30.0)  # the last value holds
    assert EnvelopeForecast(series, 0).after(0.0) == ()


def test_a_forecast_errs_as_much_as_it_is_told():
    series = envelope(*[100.0] * 3000)
    forecast = EnvelopeForecast(series, 4, error=0.1, seed=1)
    told = [forecast.after(300.0 * i) for i in range(2000)]
    for ahead in range(4):
        values = [row[ahead] for row in told]
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        assert mean == pytest.approx(100.0, abs=1.5)
        assert spread == pytest.approx(10.0 * math.sqrt(ahead + 1), rel=0.08)
    assert forecast.after(600.0) == told[2]
    assert EnvelopeForecast(series, 4, error=0.1, seed=2).after(600.0) != told[2]
    assert min(min(EnvelopeForecast(series, 4, error=5.0).after(300.0 * i)) for i in range(50)) == 0.0


def test_a_forecast_needs_the_file_of_an_envelope():
    options = {"response": "frugal", "platform": machine(1, 0), "forecast_steps": 1}
    with pytest.raises(InputError, match="forecast_steps"):
        EnvelopeScheduler({**options, "envelope": "events"})
    with pytest.raises(InputError, match="forecast_steps"):
        EnvelopeScheduler({"response": "none", "forecast_steps": 1})


def test_what_jobs_needed_is_learned():
    # the job needs 100 s of its 200 s at full speed: the next is taken to need half of its walltime
    scheduler = EnvelopeScheduler(
        {"response": "hfld", "work_estimate": "learned", "envelope": envelope(1000.0), "platform": machine(1, 0)}
    )
    simulated(scheduler, machine(1, 0), job(0, 1, 1, 100, 200), job(1, 1, 1, 10, 400))
    assert scheduler.cluster.needed_share == pytest.approx(0.5)
