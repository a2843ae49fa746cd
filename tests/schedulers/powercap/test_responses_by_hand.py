"""Eq. 2, the degradations, Algorithm 1 and the rules F1 to F7 of our own response on numbers worked out by hand.

Fast servers (ids first): 100 W/10, 60 W/6, 40 W/4 flop/s, asleep 5 W, off 20 W, on 50 W: 0.1 flop/J.
Slow servers: 120 W/5, 70 W/3, asleep 8 W, off 30 W, on 60 W: 0.043 flop/J, less than half, so not efficient.

A rule has lines of a cluster, of jobs as `name@servers start walltime [work in flop of a server]`, of servers that are
asked for (`wait 1 2`), and of responses: `name cap (caps to come) -> states; killed jobs`, with A for asleep, ? for any
state, and `over` if the cap is exceeded all the same.
"""

from __future__ import annotations

import math

import pytest
from builders import ASLEEP_FAST, ASLEEP_SLOW, envelope, job, machine, played
from by_hand import blocks_of, options_of
from clusters import Attempt, cluster_of, enqueue
from tables_of_tests import ROOT

import batwatt as bw
from batwatt.errors import InputError
from batwatt.schedulers.easy import Easy
from batwatt.schedulers.powercap.plan import Plan
from batwatt.scheduling.fleet import EnvelopeForecast
from batwatt.scheduling.registry import make

RULES = blocks_of("""
no configuration changes nothing
  fast=2
  none 1 -> 0 0
degradation of idle servers
  # two fast (100 W) and two slow (120 W), all idle at the top: 440 W
  fast=2, slow=2
  # 440 -> slow 2: 70 (390), asleep via off 30 (350), slow 3: 70 (300), 30 (260); then fast 0: 60 (220)
  idfs 230 -> 1 0 A A
  # 440 -> fast 0: 400, 380, asleep 360; fast 1: 320, 300, 280; slow 2: 70 (230)
  iafs 230 -> A A 1 0
  # turns: slow 2, slow 3, fast 0, fast 1 -> 390, 340, 300, 260; slow 2 asleep 220
  idsb 230 -> 1 1 A 1
  # turns: fast 0, fast 1, slow 2, slow 3 -> 400, 360, 310, 260; fast 0: 240, fast 1: 220
  iasb 230 -> 2 2 1 1
  idfs 440 -> 0 0 0 0
  iasb 1 -> A A A A
degradation spares running servers until the idle ones sleep
  fast=2, slow=2
  j@3 0 100
  # job on slow 3 (120 W); cap 200: slow 2: 390, 350; fast 0: 310, 290, 270; fast 1: 230, 210, 190
  idfs 200 -> A A A 0
  # all idle asleep make 190; the job's server slows down to 70 W (140)
  idfs 145 -> A A A 1
  # and sleeps: the job is killed
  idfs 139 -> A A A A; j
degradation wakes sleeping servers when there is power
  fast=2, states=A2
  idfs 1000 -> 0 0
  # server 0 (first by id) at 60: 160 W
  idfs 160 -> 1 0
  # waking to the slowest state costs the 50 W of off->on (150 W): it stays asleep
  idfs 149 -> A 0
line 3: power equal to the cap changes nothing
  fast=2, states=11
  hfld 120 -> 1 1
line 7: more power takes the highest increment of flops that fits
  # all asleep, 5 + 5 + 8 = 18 W. 120 W: fast 0 to 10 flop/s costs 95 W (113 W in all); 7 W are left: nothing fits
  fast=2, slow=1, states=AAA
  hfld 120 -> 0 A A
  # 92 W are left; 10 flop/s cost 95, so 6 flop/s for 55 W (73 W); then 37 W left: waking costs 45 W or more, server 0
  # to 10 flop/s costs 40 W
  hfld 110 -> 1 A A
  # 47 W left; 4 flop/s for max(50, 40) - 5 = 45 W
  hfld 65 -> 2 A A
  # nothing can be woken
  hfld 62 -> A A A
line 9 puts all idle servers to sleep even if fewer would do
  # 100 + 20 + 20
  fast=3
  j@0 0 100
  hfld 250 -> 0 A A
lines 13 to 18: minimal state by equation 7
  # at 40 s of 100: 60 s are left. Work 640, done 400: 240 = 60 x 4, so 4 flop/s suffice
  fast=1, now=40
  j@0 0 100 640
  hfld 90 -> 2
lines 13 to 18: a flop more
  # 241 > 240: 6 flop/s
  fast=1, now=40
  j@0 0 100 641
  hfld 90 -> 1
minimal state raises no speed above the cap
  # 40 + 100 W, both late and of equal deadline: j (850 s left for 7650 flop) needs 9 flop/s and stays at 4 flop/s;
  # k (850 s left for 3400 flop) needs 4 flop/s: 40 + 40 W
  fast=2, states=20, now=50
  j@0 0 900 7850
  k@1 0 900 3900
  hfld 130 -> 2 2
minimal state, where no state is fast enough
  # j needs 20 flop/s and stays at 6 flop/s; k needs 5 flop/s: 60 + 60 W
  fast=2, states=10, now=50
  j@0 0 900 17300
  k@1 0 900 4750
  hfld 130 -> 1 1
below the cap faster states go where most flop/s are gained, not to the job that is late
  # 4 + 6 flop/s, 100 W; 60 W more: 6 flop/s for server 0, whose job needs 1 flop/s; server 1 needs 10 flop/s
  fast=2, states=21, now=50
  easy@0 0 900 1050
  late@1 0 900 8800
  hfld 160 -> 0 1
minimal state starts with the highest deadline and stops when it suffices
  fast=2, now=10
  early@0 0 100 100
  late@1 0 900 100
  hfld 150 -> 0 2
lines 19 to 28 reduce then kill the job with the highest deadline
  # walltime estimates leave no room (work = 10 x walltime), so minimal states change nothing: 200 W
  fast=2
  early@0 0 100 1000
  late@1 0 900 9000
  hfld 170 -> 0 1
  hfld 150 -> 0 2
  hfld 130 -> 0 A; late
  # 20 + 20: the paper's unavoidable violation
  hfld 30 -> A A; late early over
  # in turns no job is killed before all are at their slowest: late 160, early 120, late 100, early 80 W; below, the job
  # with the highest deadline sleeps: 40 + 20 W
  hfld turns=true 170 -> 0 1
  hfld turns=true 150 -> 1 1
  hfld turns=true 110 -> 1 2
  hfld turns=true 90 -> 2 2
  hfld turns=true 70 -> 2 A; late
algorithm 1 compares strictly
  # 100 + 20 = 120 is not below 120: the letter goes on to reduce the job
  fast=2
  j@0 0 100 1000
  hfld 120 -> 1 A
a wide job is reduced on all its servers together
  fast=2
  wide@01 0 100 1000
  hfld 150 -> 1 1
a slow server has one state less
  # it waits at its slowest until the fast one is there, then both sleep
  fast=1, slow=1
  wide@01 0 100 1000
  hfld 115 -> 2 1
  hfld 105 -> A A; wide
F2: before the first job the efficient kind is awake, as a job may come now
  fast=2, slow=1
  frugal 1000 -> 2 2 A
F2: as many as are asked for and the widest job again, of the efficient kind
  # one server asked for and one more; three fast ones are there
  fast=3, slow=1
  wait 1
  frugal 1000 -> 2 2 A A
F3: 3 waiting servers are fewer than 2 x 2
  fast=2, slow=2
  wait 1 1 1
  frugal 1000 -> 2 2 A A
F3: a job that is wider than the efficient ones
  fast=2, slow=2
  wait 3
  frugal 1000 -> 2 2 1 A
F3: less efficient servers help if many wait, and a fall can be followed
  fast=2, slow=2
  wait 1 1 1 1
  frugal 1000 -> 2 2 1 1
  # falling asleep together: 20 + 20 + 30 + 30 = 100 W, with one helper 20 + 20 + 30 + 8 = 78 W
  frugal headroom=0.0 250 -> 2 2 1 1
  frugal headroom=0.0 249 -> 2 2 1 A
F3: the rule is not for the efficient ones
  # 0.4 x 90 = 36 W is less than their 40 W
  fast=2
  wait 1 1 1 1
  frugal headroom=0.0 90 -> 2 2
servers are woken while there is headroom
  # two asleep 10 W; one awake 40 + 5 = 45, two 80 W; waking draws 50 W each
  fast=2, states=AA
  wait 1
  # 80 <= 85, 80 > 79.9; 80 <= 85, but 50 + 50 W are more than the cap
  frugal 100 -> 2 2
  frugal 94 -> 2 A
  frugal headroom=0.0 99 -> 2 A
  # with a forecast only what the caps to come will bear is awake
  frugal 1000 (500 80) -> 2 2
  frugal 1000 (500 79) -> 2 A
  frugal 1000 (500 44) -> A A
idle servers fall asleep if those that fall asleep exceed the cap
  # 40 + 5 W would do in the end; meanwhile it is 40 + 20 W, with both falling asleep 20 + 20 W
  fast=2
  wait 1
  frugal headroom=0.0 50 -> A A
F4: jobs slow down before one is killed
  fast=2, now=100
  a@0 0 1000 1e4
  b@1 0 1000 1e4
  frugal 80 -> 2 2
F5: one kill takes the job of least wasted work that is enough
  # 120 W at the slowest states; a kill frees 40 - 20 = 20 W
  fast=3, now=100
  a@0 0 1000 1e4
  b@1 50 1000 1e4
  c@2 20 1000 1e4
  frugal 100 -> 2 A 2; b
  # more if one is not enough
  frugal 80 -> ? ? ?; b c
  # all falling asleep draw 60 W; one that stays, and two asleep: 40 + 5 + 5 = 50 W
  frugal 50 -> ? ? ?; b c over
  # F7: 65 W next: 55 too many. Then: 3 kills of 20 W each; now: 2 of 35 W. One now (15 W more than then) is enough
  frugal 1000 (65) -> ? ? ?; b
  # 100 W next: one kill, now or then
  frugal 1000 (100) -> ? ? ?
  frugal 1000 (120) -> ? ? ?
  # 50 W next: even three kills would leave 60 W; two now leave 40 + 5 + 5 W then
  frugal 1000 (50) -> ? ? ?; b c
F7: the step after
  # 40 + 40 + 5 = 85 W, and one more kill leaves 40 + 20 + 5 = 65 W
  fast=3, states=0A0, now=100
  a@0 0 1000 1e4
  c@2 20 1000 1e4
  frugal 65 -> ? A A; c
F5: wide jobs first
  # a job on two servers frees 40 W at once, though it wastes more
  fast=3, now=100
  wide@01 0 1000
  thin@2 50 1000
  frugal 80 -> ? ? ?; wide
F6: power left goes to the most work left
  # 80 W at the slowest; 80 W more: 60 for the longer one's 10 flop/s, then 20 for 6 flop/s
  fast=2, now=100
  a@0 0 1000 5e3
  b@1 0 1000 6e3
  frugal 160 -> 1 0
F6: jobs that would be late come first and get no more than they need
  # done at 100 s: 1000 flops; a: 5000 left in 900 s: 5.6 flop/s; b: 8000 left: 8.9 flop/s; c: 900 left: 1 flop/s
  fast=3, now=100
  a@0 0 1000 6e3
  b@1 0 1000 9e3
  c@2 0 1000 1.9e3
  frugal 200 -> 1 0 2
  # a W too few for the speed that b needs: a first (same deadline, earlier), then what there is
  frugal 199 -> 1 1 1
F6: servers of one job keep pace with its slowest
  # on a fast and a slow server: 3, 4 or 5 flop/s; at 5 the fast one needs only its 6 flop/s (60 W)
  fast=1, slow=1, now=1
  j@01 0 1000 1e6
  frugal 1000 -> 1 0
""")


def built(setup: str, lines: list[str]):
    """The cluster of a rule."""
    options = options_of(setup)
    fast = options["fast"]

    def asleep(host):
        return ASLEEP_FAST if host < fast else ASLEEP_SLOW

    states = str(options.pop("states", ""))
    options["states"] = [asleep(host) if state == "A" else int(state) for host, state in enumerate(states)]
    jobs, work = [], {}
    for name, rest in (line.split("@") for line in lines if "@" in line):
        servers, start, walltime, *flops = rest.split()
        jobs.append((name, sum(1 << int(server) for server in servers), float(start), float(walltime)))
        work[name] = float(flops[0]) if flops else 0.0
    cluster = cluster_of(**options, jobs=jobs, work=work)
    widths = [int(width) for line in lines if line.startswith("wait") for width in line.split()[1:]]
    enqueue(cluster.queue, *(Attempt(f"w{number}", hosts, 100.0) for number, hosts in enumerate(widths)))
    return cluster, asleep


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    setup, *lines = RULES[name]
    for line in (line for line in lines if "->" in line):
        cluster, asleep = built(setup, lines)
        act, answer = line.split(" -> ")
        wanted, _, killed = answer.partition("; ")
        words, _, after = act.partition(" (")
        response, *parameters, cap_w = words.split()
        plan = Plan(cluster, tuple(map(float, after.rstrip(")").split())))
        make("response", {"name": response} | options_of(" ".join(parameters)) if parameters else response).respond(
            plan, float(cap_w)
        )
        states = ["?" if want == "?" else state for want, state in zip(wanted.split(), plan.state, strict=True)]
        expected = [asleep(host) if s == "A" else s if s == "?" else int(s) for host, s in enumerate(wanted.split())]
        gone = [run.attempt.id for run in plan.killed]
        # those that a forecast asks for go in any order
        order = sorted if after else list
        assert (states, order(gone)) == (expected, [word for word in killed.split() if word != "over"]), line
        assert "over" not in killed or plan.exceeds(float(cap_w))


def test_the_widest_job_is_remembered():
    response, first = make("response", "frugal"), cluster_of(fast=3)
    enqueue(first.queue, Attempt("w", 2, 100.0))
    response.respond(Plan(first, ()), 1000)
    plan = Plan(cluster_of(fast=3), ())
    response.respond(plan, 1000)
    assert plan.state == [2, 2, ASLEEP_FAST]


# Eq. 2 --------------------------------------------------------------------------------------------------------------


def test_power_of_a_step_is_the_highest_state_passed_through():
    plan = Plan(cluster_of(fast=2, slow=1, states=[0, ASLEEP_FAST, 1]))
    assert plan.power_w == 100 + 5 + 70
    for server, state, watts in (
        (0, 2, 40),  # DVFS is instantaneous
        (0, ASLEEP_FAST, 20),  # on->off counts, not the 5 W asleep
        (1, ASLEEP_FAST, 5),
        (1, 2, 50),  # off->on is more than the 40 W that follow
        (1, 0, 100),
        (2, ASLEEP_SLOW, 30),
    ):
        assert plan.state_power_w(server, state) == watts


def test_servers_in_transition_are_fixed_at_what_their_transition_costs():
    cluster = cluster_of(fast=3, states=[0, ASLEEP_FAST, 0])
    cluster.set_pstate(0b010, 2)  # waking to 40 W: 50 W on the way
    cluster.set_pstate(0b100, ASLEEP_FAST)  # going to sleep: 20 W
    plan = Plan(cluster)
    assert (plan.power_w, plan.free_to_change()) == (100 + 50 + 20, [0])
    with pytest.raises(ValueError, match="transition"):
        plan.put(1, 0)


def test_changes_are_one_request_per_state_and_kind():
    plan = Plan(cluster_of(fast=2, slow=1, jobs=[("j", 0b001, 0, 100)]))
    for server in range(3):
        plan.put(server, 1)
    assert list(plan.changes()) == [(0b011, 1), (0b100, 1)]
    assert list(Plan(cluster_of(fast=2)).changes()) == []


def test_a_server_that_wakes_is_no_part_of_a_change_of_speed():
    """Batsim tells of both when the last has arrived; the one that only slows down may be asleep again by then."""
    plan = Plan(cluster_of(fast=3, states=[0, ASLEEP_FAST, 0]))
    for server in range(3):
        plan.put(server, 2)
    assert sorted(plan.changes()) == [(0b010, 2), (0b101, 2)]


def test_frugal_kills_nothing_within_a_step():
    """Two jobs of at least 40 W each run under 70 W: the begin of a step kills one, a job that comes within it none."""
    response = make("response", "frugal")
    for change, killed in ((response.respond, 1), (response.admit, 0)):
        cluster = cluster_of(fast=2, jobs=[("a", 0b01, 0, 100), ("b", 0b10, 0, 100)])
        enqueue(cluster.queue, Attempt("c", 1, 50))
        plan = Plan(cluster)
        change(plan, 70.0)
        assert len(plan.killed) == killed


def test_frugal_with_a_forecast_decides_nothing_illegal_within_steps():
    """A job comes between two steps; servers wake up in 164 s while others slow down and fall asleep."""
    run = bw.simulate(
        ROOT / "platforms/grid5000.xml", ROOT / "workloads/google-288-15.json",
        options={"backfilling": "easy", "order": "slowdown", "response": "frugal", "forecast_steps": 1},
        envelope=ROOT / "power_profiles/profile2.csv",
    )  # fmt: skip
    assert run.metrics["jobs_finished"] > 250


# runs, parameters, forecast -----------------------------------------------------------------------------------------


def test_within_a_step_speeds_follow_the_jobs():
    # steps of 300 s at 1000 W: b starts at 310 s on a server that is awake and idle, and runs at full speed at once
    options = {"response": "frugal", "envelope": envelope(1000.0), "platform": machine(2, 0), "order": "fcfs"}
    record = played(Easy(options), machine(2, 0), job(0, 1, 1, 600, 700), job(1, 310, 1, 100, 150))
    # both are awake at 0 s, before the first job, and one more than is asked for stays so
    assert {row[0]: (row[8], row[10]) for row in record.jobs} == {"0": (1.0, 601.0), "1": (310.0, 410.0)}


def test_what_jobs_needed_is_learned():
    # the job needs 100 s of its 200 s at full speed: the next is taken to need half of its walltime
    options = {"response": "hfld", "work_estimate": "learned", "envelope": envelope(1000.0), "platform": machine(1, 0)}
    scheduler = Easy(options)
    played(scheduler, machine(1, 0), job(0, 1, 1, 100, 200), job(1, 1, 1, 10, 400))
    assert scheduler.cluster.needed_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("headroom", 1.0), ("headroom", -0.1), ("efficiency", 1.1), ("backlog", -1), ("reserve", math.nan),
     ("reserve", -1)],
)  # fmt: skip
def test_parameters_out_of_range(name, value):
    with pytest.raises(InputError, match=name):
        make("response", {"name": "frugal", name: value})


def test_an_exact_forecast_tells_the_steps_that_follow():
    series = envelope(10.0, 20.0, 30.0)
    for steps, now_s, after in (
        (2, 0.0, (20.0, 30.0)),
        (2, 299.0, (20.0, 30.0)),
        (2, 300.0, (30.0, 30.0)),  # the last value holds
        (0, 0.0, ()),
    ):
        assert EnvelopeForecast(series, steps).after(now_s) == after


def test_a_forecast_errs_as_much_as_it_is_told():
    series = envelope(*[100.0] * 3000)
    forecast = EnvelopeForecast(series, 4, error=0.1, seed=1)
    issued = [forecast.after(300.0 * i) for i in range(2000)]
    for ahead in range(4):
        values = [row[ahead] for row in issued]
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        assert mean == pytest.approx(100.0, abs=1.5)
        assert spread == pytest.approx(10.0 * math.sqrt(ahead + 1), rel=0.08)
    assert forecast.after(600.0) == issued[2]
    assert EnvelopeForecast(series, 4, error=0.1, seed=2).after(600.0) != issued[2]
    assert min(min(EnvelopeForecast(series, 4, error=5.0).after(300.0 * i)) for i in range(50)) == 0.0
