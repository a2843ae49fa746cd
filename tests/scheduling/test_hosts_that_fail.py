"""Hosts that never boot, that boot late, or that events take away under a job: every scheduler, by hand."""

from __future__ import annotations

import logging
import math

import pytest
from builders import envelope, job, machine, played
from links import Unreliable

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_files import phase_workload
from batwatt.model.platform import Host, MachineSpec, Platform, PState, Sleep, SpeedMachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import ShiftJob, constant
from batwatt.protocol.events import parse_events
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.adaptive import Adaptive
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.checkpoint import Checkpoint
from batwatt.schedulers.jobpower import Jobpower
from batwatt.schedulers.multifactor import Multifactor
from batwatt.schedulers.oversubscribed import Oversubscribed
from batwatt.schedulers.planned import Planned
from batwatt.schedulers.planned.scheduler import PlannedJob, PlannedState, SchedulePlan
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.replay import Replay
from batwatt.schedulers.riskaware import Riskaware
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.cluster import Transitions

SERVERS = machine(3)
"""Off in 10 s, on in 20 s."""
MACHINES = machines_platform(MachineSpec(3, 1, off_s=10.0, on_s=20.0))
SPEEDS = machines_platform(SpeedMachineSpec(3, 1))
CAPACITY = {"capacity": Timeline((0.0, 100.0, 200.0), (3.0, 1.0, 3.0)), "platform": MACHINES}
"""Machines 1 and 2 are switched off at 100 s, and on at 200 s."""
CAPPED = {"platform": SERVERS, "envelope": envelope(110.0, 600.0, step=150.0)}
"""One server is on up to 150 s, all three from then on."""
SIGNAL = Timeline.regular([1.0] * 48)
PLAN = SchedulePlan(
    states=(PlannedState(time_s=0.0, pstate=3, hosts="0"), PlannedState(time_s=150.0, pstate=0, hosts="0")),
    jobs=(
        PlannedJob(id="w0!A", start_s=160.0, run_s=1000.0, hosts="2", pstates={"0-2": 0}),
        PlannedJob(id="w0!B", start_s=200.0, run_s=100.0, hosts="1", pstates={"0-2": 0}),
        PlannedJob(id="w0!C", start_s=300.0, run_s=100.0, hosts="1", pstates={"0-2": 0}),
        PlannedJob(id="w0!D", start_s=1200.0, run_s=10.0, hosts="0-2", pstates={"0-2": 0}),
    ),
)
NEVER, LATE_S = math.inf, 700.0
JOBS = [job("A", 150, 1, 1000), job("B", 190, 1, 100), job("C", 191, 1, 100), job("D", 192, 3, 10)]
"""D needs all hosts."""


def play(make, jobs, platform, late=(), events="", energy=True):
    """Job -> when and where it ran, or why it was rejected: `150-1150@0`."""
    scheduler = make()
    record = played(
        scheduler, platform, *jobs, events=parse_events(events, "events"), link=lambda link: Unreliable(link, late),
        energy=energy,
    )  # fmt: skip
    assert not scheduler.lifecycle.pending
    return {
        row[0]: f"rejected {row[16]}" if row[7] == "REJECTED" else f"{row[8]:.6g}-{row[10]:.6g}@{row[14]}"
        for row in record.jobs
    }


def away(host, from_s, until_s=None):
    """The events that take a host away, and bring it back."""
    rows = [(from_s, "unavailable"), *([] if until_s is None else [(until_s, "available")])]
    return "".join(f'{{"timestamp": {at}, "type": "machine_{how}", "resources": "{host}"}}\n' for at, how in rows)


# a host that does not boot, or late -------------------------------------------------------------------------------

SWITCHING = {
    # A goes on when 1 and 2 leave, B has 1 from 220 s on; C cannot have 2, and has 1 after B
    "varcap": (lambda: Varcap(CAPACITY | {"termination": "order"}), MACHINES, 2, 500,
               {"A": "150-1150@0", "B": "220-320@1", "C": "320-420@1", "D": "1150-1160@0-2"}),
    "adaptive": (lambda: Adaptive(CAPACITY), MACHINES, 2, 500,
                 {"A": "150-1150@0", "B": "220-320@1", "C": "320-420@1", "D": "1150-1160@0-2"}),
    # C was planned on 2 and is over by the plan when that fails; D is wider than a machine
    "riskaware": (lambda: Riskaware(CAPACITY | {"strategy": "first-fit-aware"}), MACHINES, 2, 500,
                  {"A": "150-1150@0", "B": "220-320@1", "C": "500-600@1",
                   "D": "rejected wider than a machine of 1 cores"}),
    # plans start 20 s after an arrival; B and C each have a slot of a minute more, as their starts are no whole slots
    "carbon": (lambda: Carbon(CAPACITY | {"signal": SIGNAL, "policy": "immediate"}), MACHINES, 2, 541,
               {"A": "170-1170@0", "B": "270-370@1", "C": "561-661@1", "D": "1232-1242@0-2"}),
    # 0 is woken at 150 s; A and B run on the others, and C after B
    "powercap": (lambda: Powercap(CAPPED | {"response": "idfs"}), SERVERS, 0, 450,
                 {"A": "150-1150@2", "B": "190-290@1", "C": "290-390@1", "D": "1150-1160@0-2"}),
    "planned": (lambda: Planned({"platform": SERVERS, "plan": PLAN}), SERVERS, 0, 450,
                {"A": "160-1160@2", "B": "200-300@1", "C": "300-400@1", "D": "1200-1210@0-2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SWITCHING)
@pytest.mark.parametrize("until_s", [NEVER, LATE_S], ids=["never", "late"])
def test_a_host_that_does_not_boot_in_time(name, until_s, caplog):
    """Others get its jobs; the one that needs it runs if it is reported at 700 s, and is rejected otherwise."""
    make, platform, host, limit_s, expected = SWITCHING[name]
    if until_s is NEVER and not expected["D"].startswith("rejected"):
        expected = expected | {"D": f"rejected as host {host} is out of service"}
    with caplog.at_level(logging.WARNING):
        assert play(make, JOBS, platform, {host: (120.0, until_s)}) == expected
    line = f"host {host} is out of service: not switched within the limit, at "
    messages = [record.getMessage() for record in caplog.records if "out of service: " in record.getMessage()]
    assert [text for text in messages if text.startswith(line)] == [messages[0]]
    assert messages[0] == f"{line}{limit_s} s"


@pytest.mark.parametrize("until_s", [NEVER, LATE_S], ids=["never", "late"])
def test_a_host_that_does_not_boot_for_a_checkpointed_job(until_s):
    """A is saved for D, which is to have all three at 220 s; 2 fails at 500 s, and B and C, then A, have the others.

    Reported at 700 s, it lets D run after A is saved again.
    """
    done = play(lambda: Checkpoint(CAPACITY | {"checkpoint_s": 5.0}), JOBS, MACHINES, {2: (120.0, until_s)})
    assert (done["B"], done["C"]) == ("500-600@0", "500-600@1")
    assert done["D"] == ("rejected as host 2 is out of service" if until_s is NEVER else "705-715@0-2")
    assert done["A#2"] == "600-660@0"


@pytest.mark.parametrize(
    ("options", "rows", "late", "expected", "said"),
    [
        # one machine's watts at 100 s: 0 does not go off, so that no other may be on until that is reported, at 600 s
        ({"capacity": Timeline((0.0, 100.0, 200.0), (1.0, 0.0, 1.0))}, [("a", 150, 1), ("b", 650, 1)],
         {0: (90.0, 600.0)}, {"a": "620-640@0", "b": "650-670@0"}, "host 0 is out of service: not"),
        # hosts that fail at one time are one line
        ({}, [("a", 150, 1), ("b", 150, 2)], dict.fromkeys((1, 2), (120.0, NEVER)),
         {"a": "150-170@0", "b": "rejected as hosts 1-2 are out of service"}, "hosts 1-2 are out of service: not"),
        # 20 s are longer than a limit of one's own: they are out from 215 s on, and back when they are reported
        ({"transition_limit_s": 15.0}, [("a", 205, 1), ("b", 206, 1), ("c", 206, 1)], {},
         {"a": "205-225@0", "b": "220-240@1", "c": "220-240@2"},
         "hosts 1-2 are out of service: not switched within the limit, at 215 s"),
    ],
    ids=["their watts count", "one line", "a limit of one's own"],
)  # fmt: skip
def test_hosts_that_fail_under_varcap(options, rows, late, expected, said, caplog):
    jobs = [job(name, at, hosts, 20) for name, at, hosts in rows]
    assert play(lambda: Varcap(CAPACITY | {"termination": "order"} | options), jobs, MACHINES, late) == expected
    assert len([record for record in caplog.records if said in record.message]) == 1


def test_default_limits():
    """Three times 10 and 20 s are less than 5 minutes, three times 200 s are not; a boot at a speed of 0 never ends."""
    slow = machines_platform(MachineSpec(1, 1, off_s=10.0, on_s=200.0))
    states = (PState(1.0), PState(0.0), PState(0.01), PState(0.0))
    never = Platform((Host(0, "h", states, sleeps=(Sleep(1, 2, 3),)),))
    limits = ((MACHINES, 300.0, 300.0), (slow, 600.0, 300.0), (never, 300.0, 300.0), (None, math.inf, math.inf))
    assert Transitions(never).switching_s == 100.0
    for platform, on_s, off_s in limits:
        for pstate, limit_s in ((0, on_s), (1, off_s)):
            transitions = Transitions(platform)
            transitions.began(1, pstate, 1000.0)
            assert transitions.next_s == 1000.0 + limit_s and transitions.pending


# a host that is taken away under a job ----------------------------------------------------------------------------

BASIC = [job("A", 220, 1, 1000), job("B", 221, 1, 100), job("C", 330, 1, 100), job("D", 331, 3, 10)]
IN_FLOPS = [
    row | {"_profile": {"type": "parallel_homogeneous", "com": 0, "cpu": row["_profile"]["delay"] * 18.4e9}}
    for row in BASIC
]
ALL = {"capacity": Timeline((0.0,), (3.0,)), "platform": MACHINES}
ONE_BY_ONE = {"A": "220-1220@0", "B": "221-321@1", "C": "330-430@1"}
"""C has the first host that is free, which is not 0."""
FOLLOWING = {
    "varcap": (lambda: Varcap(ALL), BASIC, MACHINES, ONE_BY_ONE),
    "varcap, easy": (lambda: Varcap(ALL | {"backfilling": "easy"}), BASIC, MACHINES, ONE_BY_ONE),
    "migration": (lambda: Varcap(ALL | {"mapping": "migration"}), BASIC, MACHINES, ONE_BY_ONE),
    "adaptive": (lambda: Adaptive(ALL), BASIC, MACHINES, ONE_BY_ONE),
    "checkpoint": (lambda: Checkpoint(ALL | {"checkpoint_s": 5.0}), BASIC, MACHINES, ONE_BY_ONE),
    "oversubscribed": (
        lambda: Oversubscribed({"capacity": Timeline((0.0,), (3.0,)), "platform": SPEEDS, "oversubscription": 1.0}),
        IN_FLOPS, SPEEDS, ONE_BY_ONE),
    "powercap": (lambda: Powercap({"response": "none"}), BASIC, SERVERS, ONE_BY_ONE),
    "powercap, idfs": (lambda: Powercap({"platform": SERVERS, "envelope": envelope(900.0), "response": "idfs"}), BASIC,
                       SERVERS, ONE_BY_ONE),
    "jobpower": (lambda: Jobpower({}), BASIC, SERVERS, ONE_BY_ONE),
    "replay": (lambda: Replay({}), BASIC, SERVERS, ONE_BY_ONE),
    "slurm": (lambda: Multifactor({}), BASIC, MACHINES, ONE_BY_ONE),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("until_s", [None, 2000], ids=["gone", "back"])
def test_a_host_that_is_taken_away_under_a_job(name, until_s):
    """Host 0 is away from 300 s on: A goes on there to its end; D waits until it is back, or is rejected."""
    make, jobs, platform, expected = FOLLOWING[name]
    done = play(make, jobs, platform, events=away(0, 300, until_s), energy=platform is not SERVERS or "idfs" in name)
    last = "rejected as host 0 is out of service" if until_s is None else "2000-2010@0-2"
    assert done == expected | {"D": last}


def test_jobs_that_hold_more_machines_than_are_alive_are_announced_a_change():
    """Host 0 is away under A from 70 to 100 s, so one machine is alive for A and B; at 100 s none is, at 150 s two."""
    options = {"capacity": Timeline((0.0, 100.0, 150.0), (2.0, 0.0, 2.0)), "platform": MACHINES, "checkpoint_s": 0.0}
    jobs = [job("A", 0, 1, 120), job("B", 0, 1, 120)]
    options |= {"recovery_s": 0.0, "switch": False}
    done = play(lambda: Checkpoint(options), jobs, MACHINES, events=away(0, 70, 100))
    # 20 s are left of both
    assert done == {"A": "0-100@0", "B": "0-100@1", "A#1": "150-170@0", "B#1": "150-170@1"}


def test_the_planner_of_riskaware_puts_another_machine_in_its_place():
    """2 cores a machine. a runs on machine 0 when that goes at 300 s, b on 1; the plan has 0 go on, on machine 2.

    c has the core beside a in the plan, d the machine of b after it.
    """
    platform = machines_platform(MachineSpec(3, 2))
    options = {"capacity": Timeline((0.0,), (3.0,)), "platform": platform, "strategy": "first-fit-aware"} | {
        "as_published": False
    }
    jobs = [job("a", 0, 1, 1000), job("b", 1, 2, 400), job("c", 310, 1, 100), job("d", 311, 2, 100)]
    done = play(lambda: Riskaware(options), jobs, platform, events=away("0-1", 300))
    assert done == {"a": "0-1000@0", "b": "1-401@2-3", "c": "310-410@4", "d": "401-501@2-3"}


def test_a_job_goes_on_that_the_planner_of_riskaware_kills():
    """The only machine's watts are drawn by one that is away: the plan kills a, which goes on all the same."""
    options = {"capacity": Timeline((0.0,), (1.0,)), "platform": MACHINES, "strategy": "first-fit-aware"}
    jobs = [job("a", 0, 1, 100), job("b", 40, 1, 10)]
    back = play(lambda: Riskaware(options), jobs, MACHINES, events=away(0, 50, 60))
    assert back == {"a": "0-100@0", "b": "100-110@0"}
    gone = play(lambda: Riskaware(options), jobs, MACHINES, events=away(0, 50))
    assert gone == {"a": "0-100@0", "b": "rejected as host 0 is out of service"}


def test_plans_of_carbon_go_round_a_machine_that_is_away():
    """Host 0 is away under a: b, of two hosts, has the two others; c needs all."""
    options = {"signal": SIGNAL, "policy": "immediate", "platform": MACHINES, "switch": False}
    jobs = [job("a", 0, 1, 600), job("b", 60, 2, 100), job("c", 61, 3, 100)]
    gone = play(lambda: Carbon(options), jobs, MACHINES, events=away(0, 30))
    assert gone == {"a": "0-600@0", "b": "60-160@1-2", "c": "rejected as host 0 is out of service"}
    back = play(lambda: Carbon(options), jobs, MACHINES, events=away(0, 30, 3600))
    assert back == gone | {"c": "3600-3700@0-2"}


def test_a_start_of_carbon_that_waits_for_hosts_delays_no_other():
    """Of two machines for phases 0 is away until 5,000 s: b, planned on both at 3,600 s, has them once a is over.

    The hours cost 5, 1, 9 and 2: c, which arrives in the third, starts in the fourth, while b waits.
    """
    signal = Timeline.regular([5.0, 1.0, 9.0, 2.0, *[9.0] * 44])
    rows = [("b", 0.0, 600.0, 2), ("a", 4200.0, 9000.0, 1), ("c", 7300.0, 600.0, 1)]
    owner, data = phase_workload([ShiftJob(*row[:2], constant(row[2], 60.0), row[3]) for row in rows], 2)
    workload, events = parse_workload(data, "w0", "test"), parse_events(away(0, 10, 5000), "events")
    engine = Engine(machines_platform(owner), [workload], EngineConfig(dynamic_jobs=True, profile_reuse=True), events)
    record = simulate(engine, Carbon({"signal": signal, "policy": "oracle", "wait_h": [1.0]}))
    starts = {row.job_id: (row.starting_time, row.allocated_resources) for row in record.jobs}
    assert starts == {"a": (4200.0, "1"), "b": (13_200.0, "0-1"), "c": (10_800.0, "0")}


def test_no_segment_of_a_checkpointed_job_begins_on_a_machine_that_is_away():
    """Saved from 95 to 100 s for the fall to 0 machines; it recovers from 200 to 260 s, when its machine is away.

    So it leaves, and recovers again on the other one.
    """
    capacity = Timeline((0.0, 100.0, 200.0), (1.0, 0.0, 2.0))
    options = {"capacity": capacity, "platform": MACHINES, "checkpoint_s": 5.0, "recovery_s": 60.0, "switch": False}
    done = play(lambda: Checkpoint(options), [job("a", 0, 1, 500)], MACHINES, events=away(0, 230))
    assert done == {"a": "0-95@0", "a#1": "95-100@0", "a#2": "200-260@0", "a#3": "260-320@1", "a#4": "320-725@1"}


def test_headroom_blocks_no_job_after_an_outage():
    """0 and 1 go while they boot; A needs three of the others, with which 4 x 40 + 50 W are drawn, of 212.

    frugal keeps 15 % of the cap free, 180.2 W: four are woken at 150 s (4 x 40 + 5 W), and a fifth at 170 s, when these
    are on (4 x 40 + 50 W), as nothing runs that a falling cap could kill.
    """
    options = {"platform": machine(5), "envelope": Timeline((0.0, 150.0), (60.0, 212.0)), "response": "frugal"}
    jobs = [job("A", 10, 3, 100)]
    gone = play(lambda: Powercap(options), jobs, machine(5), events=away("0-1", 160))
    assert gone == {"A": "190-290@2-4"}
    there = play(lambda: Powercap(options), jobs, machine(5))
    assert there == {"A": "170-270@0-2"}
    # before the first job four stay awake (4 x 40 + 5 W); the fifth sleeps when A comes at 10 s, and is on at 30 s
    wide = options | {"envelope": Timeline((0.0,), (212.0,))}
    assert play(lambda: Powercap(wide), [job("A", 10, 5, 100)], machine(5)) == {"A": "30-130@0-4"}


@pytest.mark.parametrize(("first_w", "times"), [(255.0, "185-285"), (400.0, "470-570")])
def test_a_job_waits_for_headroom_only_if_a_cap_had_it(first_w, times):
    """30 % of 255 W leave 178.5 W, of 400 W 280: five hosts draw 200 W. The cap falls to 60 W in between.

    Four hosts are awake under 255 W when A comes at 165 s; the fifth takes 20 s.
    """
    caps = envelope(first_w, 255.0, 60.0, first_w, 60.0, step=150.0)
    options = {"platform": machine(5), "envelope": caps, "response": {"name": "frugal", "headroom": 0.3}}
    assert play(lambda: Powercap(options), [job("A", 165, 5, 100)], machine(5)) == {"A": f"{times}@0-4"}


@pytest.mark.parametrize("backfilling", ["none", "easy"])
@pytest.mark.parametrize("order", ["fcfs", "desc_walltime"])
def test_only_jobs_that_are_too_wide_are_rejected(order, backfilling):
    """One host is on under 140 W: A and C can never start, B behind them does."""
    options = {"platform": SERVERS, "envelope": envelope(140.0), "response": "idfs", "order": order}
    jobs = [job("A", 10, 3, 100, 900), job("B", 11, 1, 100, 400), job("C", 12, 2, 50, 300)]
    done = play(lambda: Powercap(options | {"backfilling": backfilling}), jobs, SERVERS)
    assert done["A"] == done["C"] == "rejected too wide for the last cap of 140.0 W"
    assert done["B"].endswith("@2")
