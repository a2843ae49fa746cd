"""The engine's rules on small cases worked out by hand; many more are in the recorded dialogues (test_golden)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import ASLEEP_FAST, job, machine
from scripted import Scripted, execute, kill, pstate, query, rows, run

from batwatt.batsim.events import Requests
from batwatt.engine.runs import fair_rates
from batwatt.errors import DeadlockError, IllegalDecisionError, InputError
from batwatt.inputs.batsim_files import read_events
from batwatt.model.hostset import HostSet
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.protocol.workload4 import parse_workload

# work, walltime -------------------------------------------------------------------------------------------------------


COMPOSED = {
    "nb_res": 2,
    "jobs": [{"id": "c", "subtime": 0, "res": 1, "profile": "outer"}],
    "profiles": {
        "outer": {"type": "composed", "seq": ["inner", "d"], "repeat": 2},
        "inner": {"type": "composed", "seq": ["w", "d"]},
        "w": {"type": "parallel_homogeneous", "cpu": 100, "com": 0},
        "d": {"type": "delay", "delay": 5},
    },
}


def cores(count):
    host = Host(0, "h0", (PState(10.0, 30.0, 30.0, 110.0),), cores=count, has_power=True)
    return Platform((host,))


def flops(name, at, hosts, cpu):
    """A workload of one job of `cpu` flops on each of its hosts."""
    job = {"id": name, "subtime": at, "res": hosts, "profile": "p"}
    profiles = {"p": {"type": "parallel_homogeneous", "cpu": cpu, "com": 0}}
    return parse_workload({"nb_res": 2, "jobs": [job], "profiles": profiles}, "w0", "test")


def sharing(executors):
    """A scheduler that starts a job of so many executors on host 0."""
    return Scripted({"m": "0"}, mapping={"m": {str(i): "0" for i in range(executors)}})


SIX = parse_workload(
    {
        "nb_res": 1,
        "jobs": [{"id": name, "subtime": at, "res": 3, "profile": "p"} for name, at in (("a", 0), ("b", 5))],
        "profiles": {"p": {"type": "parallel_homogeneous", "cpu": 100, "com": 0}},
    },
    "w0",
    "test",
)
FAILING = COMPOSED["profiles"]["w"] | {"ret": 3}
FAILS = COMPOSED | {"profiles": COMPOSED["profiles"] | {"w": FAILING}}
RUNS = {
    # 100 s at 10 flop/s; at 20 s one of two hosts falls to 4 flop/s: 800 flops left; at 70 s back: 600 left -> 130 s
    "the slowest host rules and dvfs acts at once": (
        Scripted({"a": "0-1"}, {20: [pstate("1", 2)], 70: [pstate("1", 0)]}), [job("a", 0, 2, 100, flops=True)], {},
        {"a": {"finish": 130.0}}),
    "a delay of the length of its walltime times out but work does not": (
        Scripted({"d": "0", "w": "1"}), [job("d", 0, 1, 50, 50), job("w", 0, 1, 50, 50, flops=True)], {},
        {"d": {"state": "COMPLETED_WALLTIME_REACHED", "finish": 50},
         "w": {"state": "COMPLETED_SUCCESSFULLY", "finish": 50}}),
    "a walltime that no state can meet just times out": (
        Scripted({"w": "0"}), [job("w", 5, 1, 50, 20, flops=True)], {},
        {"w": {"state": "COMPLETED_WALLTIME_REACHED", "start": 5, "runtime": 20, "finish": 25, "energy": 2000}}),
    "no work takes no time but is written as ten microseconds": (
        Scripted({"z": "0-1"}), flops("z", 3, 2, 0), {}, {"z": {"start": 3, "runtime": 1e-5}}),
    # (10 + 5 + 5) x 2
    "composed profiles nest and repeat": (
        Scripted({"c": "0"}), parse_workload(COMPOSED, "w0", "test"), {}, {"c": {"finish": 40}}),
    "a return code stops a sequence": (
        Scripted({"c": "0"}), parse_workload(FAILS, "w0", "test"), {},
        {"c": {"state": "COMPLETED_FAILED", "finish": 10}}),
    **{f"{executors} executors on 4 cores": (
        sharing(executors), flops("m", 0, executors, 100), {"platform": cores(4)},
        {"m": {"runtime": seconds, "energy": seconds * watts}})
       for executors, seconds, watts in ((1, 10, 50), (4, 10, 110), (5, 12.5, 110))},
    # one core of 10 flop/s: a alone 0-5 (50 of 100), a and b share until a ends at 15 (b has 50 of 100 left) -> 20
    "sharing gives each task an equal share": (
        Scripted({"a": "0", "b": "0"}), [job("a", 0, 1, 10, flops=True), job("b", 5, 1, 10, flops=True)],
        {"compute_sharing": True}, {"a": {"finish": 15}, "b": {"finish": 20}}),
    # four cores of 10 flop/s, executors of 100 flops: a alone until 5 (50 left), six executors at 40/6 flop/s until
    # a ends at 12.5 (b has 50 left), b alone; 90 W with three cores busy, 110 W with four
    "two jobs share the cores of a host": (
        Scripted({"a": "0", "b": "0"}, mapping={key: {str(i): "0" for i in range(3)} for key in "ab"}), SIX,
        {"platform": cores(4), "compute_sharing": True},
        {"a": {"finish": 12.5, "energy": 1275}, "b": {"finish": 17.5, "energy": 1275}}),
}  # fmt: skip


@pytest.mark.parametrize(("scheduler", "jobs", "config", "expected"), RUNS.values(), ids=RUNS)
def test_runs(scheduler, jobs, config, expected):
    record = rows(run(scheduler, jobs, **config))
    for name, fields in expected.items():
        row = {field: record[name][field] for field in fields}
        assert row == {
            field: value if isinstance(value, str) else pytest.approx(value) for field, value in fields.items()
        }


def test_a_killed_sequence_tells_its_progress():
    scheduler = Scripted({"c": "0"}, {24: [kill("c")]})
    run(scheduler, parse_workload(COMPOSED, "w0", "test"))
    (progress,) = [entry[3] for entry in scheduler.seen if entry[1] == "killed"]
    inner = {"profile_name": "w", "progress": pytest.approx(0.4)}
    middle = {"profile_name": "inner", "current_task_index": 0, "current_task": inner}
    assert progress == {"profile_name": "outer", "current_task_index": 2, "current_task": middle}


def test_sharing_lets_a_wide_task_be_ruled_by_its_busiest_host():
    # wide on 0 and 1, narrow on 1: both get 5 flop/s there; wide does 5 flop/s on host 0, too
    wide, narrow = [(0, 100.0), (1, 100.0)], [(1, 100.0)]
    assert fair_rates([wide, narrow], [0.1, 0.1], {0: 10.0, 1: 10.0}) == pytest.approx([0.05, 0.05])
    # a third task on host 0 takes what the wide one leaves: 5 flop/s
    rates = fair_rates([wide, narrow, [(0, 100.0)]], [0.1] * 3, {0: 10.0, 1: 10.0})
    assert rates == pytest.approx([0.05, 0.05, 0.05])


# p-states and energy --------------------------------------------------------------------------------------------------


def test_sleeping_and_waking_take_their_time_and_power():
    # two hosts of 100 W; host 0: off at 10 (20 W, 10 s), asleep (5 W), on at 50 (50 W, 20 s) into state 2 (40 W)
    plan = {10: [pstate("0", ASLEEP_FAST)], 50: [pstate("0", 2)], 100: [query]}
    scheduler = Scripted({}, plan)
    run(scheduler, [])
    assert [entry for entry in scheduler.seen if entry[1] == "pstate"] == [
        (20.0, "pstate", (0, 0), "3"),
        (70.0, "pstate", (0, 0), "2"),
    ]
    host_0 = 10 * 100 + 10 * 20 + 30 * 5 + 20 * 50 + 30 * 40
    assert scheduler.energy == [(100.0, pytest.approx(host_0 + 100 * 100))]


def halting(*, off: float = 0.5, on: float = 0.05) -> Platform:
    """Two hosts of four cores, 30 W idle, that sleep at a speed of 0 by transitions of these speeds."""
    asleep, moves = PState(0.0, 5.0, 6.0, 9.0), (PState(off, 120.0, 125.0, 130.0), PState(on, 150.0, 160.0, 170.0))
    states = (PState(10.0, 30.0, 40.0, 100.0), asleep, *moves)
    return Platform(tuple(Host(i, f"h{i}", states, 4, sleeps=(Sleep(1, 2, 3),), has_power=True) for i in (0, 1)))


@pytest.mark.parametrize("sharing", [False, True])
def test_hosts_that_sleep_at_a_speed_of_zero_draw_their_full_power(sharing):
    """As of Batsim 4.2.1, to which 0 of 0 flop/s are a full load."""
    scheduler = Scripted({}, {1: [pstate("0", 1)], 20: [pstate("0", 0)], 60: [query]})
    run(scheduler, [], halting(), compute_sharing=sharing)
    # off for 2 s at a load of 1/4, asleep for 17 s, on for 20 s
    host_0 = 1 * 30 + 2 * (125 + 5 / 4) + 17 * 9 + 20 * (160 + 10 / 4) + 20 * 30
    assert scheduler.energy == [(60.0, pytest.approx(host_0 + 60 * 30))]


@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize(("speeds", "asleep_s", "moving_w"), [({"off": 0.0}, 0, 130), ({"on": 0.0}, 17, 170)])
def test_a_transition_of_speed_zero_never_ends(speeds, asleep_s, moving_w, sharing):
    scheduler = Scripted({}, {1: [pstate("0", 1)], 20: [pstate("0", 0)] if asleep_s else [], 60: [query]})
    with pytest.raises(DeadlockError, match="at 60 s, but hosts 0 switch through a p-state of speed 0, which never"):
        run(scheduler, [], halting(**speeds), compute_sharing=sharing)
    before = 2 * (125 + 5 / 4) + 17 * 9 if asleep_s else 0
    host_0 = 30 + before + (60 - 20 if asleep_s else 60 - 1) * moving_w
    assert scheduler.energy == [(60.0, pytest.approx(host_0 + 60 * 30))]


def test_a_host_that_begins_asleep_at_a_speed_of_zero_needs_energy():
    hosts = tuple(replace(host, initial_pstate=1) for host in halting().hosts)
    run(Scripted({}), [], Platform(hosts))
    with pytest.raises(InputError, match="host 'h0': begins asleep at a speed of 0, which needs energy accounting"):
        run(Scripted({}), [], Platform(hosts), energy=False)


def test_a_group_is_acknowledged_when_its_last_host_arrives():
    plan = {10: [pstate("0-2", 2)]}
    scheduler = Scripted({}, plan)
    # the slow host's state 2 is its sleep state (10 s); the fast ones change at once
    run(scheduler, [], machine(2, 1))
    assert [entry for entry in scheduler.seen if entry[1] == "pstate"] == [(20.0, "pstate", (0, 2), "2")]


def test_requests_that_are_complete_at_once_are_acknowledged_in_the_order_of_their_last_hosts():
    requests = Requests()
    for mask in (0b1010, 0b0100, 0b0001):
        requests.add(mask, 2)
    assert requests.arrived(0b0010, 2) == requests.arrived(0b1111, 0) == []
    assert requests.arrived(0b1101, 2) == ["0", "2", "1 3"]
    assert requests.arrived(0b1111, 2) == []


# events, dynamic jobs, the end ----------------------------------------------------------------------------------------


def test_machines_that_go_away_keep_their_jobs_but_take_no_more(tmp_path):
    lines = ['{"type": "machine_unavailable", "resources": "0", "timestamp": 5}',
             '{"type": "hello", "timestamp": 6}',
             '{"type": "machine_available", "resources": "0", "timestamp": 30}']  # fmt: skip
    (tmp_path / "events").write_text("\n".join(lines))
    events = read_events(tmp_path / "events", forward_unknown=True)
    scheduler = Scripted({"a": "0"}, {31: [execute("b", "0")]})
    jobs = [job("a", 0, 1, 20), job("b", 1, 1, 5)]
    record = run(scheduler, jobs, events=events, forward_unknown_events=True)
    assert rows(record)["a"]["finish"] == 20
    assert rows(record)["b"]["finish"] == 36
    assert (6.0, "event", "hello") in scheduler.seen
    assert record.schedule["time_unavailable"] == 25
    with pytest.raises(IllegalDecisionError, match="unavailable"):
        run(Scripted({}, {10: [execute("b", "0")]}), jobs[1:], events=events, forward_unknown_events=True)


@pytest.mark.parametrize(
    ("alloc", "dynamic", "why"),
    [({}, False, "1 submitted jobs were neither started nor rejected"), ({"a": "0"}, True, "registration")],
)
def test_what_never_ends_is_a_deadlock(alloc, dynamic, why):
    with pytest.raises(DeadlockError, match=why):
        run(Scripted(alloc), [job("a", 3, 1, 5)], dynamic_jobs=dynamic)


def register_a_profile(bs):
    bs.register_profiles("d", {"p": {"type": "delay", "delay": 1}})


def map_badly(bs):
    bs.jobs["w0!w"].mapping = {"0": "0", "2": "0"}
    execute("w", "0")(bs)


ILLEGAL = {
    "busy without sharing": ({"a": "0"}, {1: [execute("w", "0-1")]}, "host 0 .* computes w0!a and time-sharing is off"),
    "unknown host": ({}, {1: [execute("a", "7")]}, "there is no host 7"),
    "too few hosts": ({}, {1: [execute("w", "0")]}, "needs 2 hosts but was given 1"),
    "twice": ({"a": "0"}, {1: [execute("a", "1")]}, "not waiting to be started"),
    "asleep": ({}, {1: [pstate("0", ASLEEP_FAST)], 20: [execute("a", "0")]}, "host 0 .* is sleeping"),
    "sleep with a job": ({"a": "0"}, {1: [pstate("0", ASLEEP_FAST)]}, "runs w0!a"),
    "unknown p-state": ({}, {1: [pstate("0", 9)]}, r"has p-states 0\.\.5"),
    "kill a waiting job": ({}, {1: [kill("a")]}, "never started"),
    "reject a running job": ({"a": "0"}, {1: [lambda bs: bs.reject_jobs([bs.jobs["w0!a"]])]}, "not waiting"),
    "a call in the past": ({}, {5: [lambda bs: bs.wake_me_up_at(5.0)]}, "it is already 5"),
    "dynamic jobs off": ({}, {1: [register_a_profile]}, "dynamic jobs"),
    "quotes": ({}, {1: [lambda bs: bs.set_job_metadata("w0!a", 'say "hi"')]}, "double quote"),
    "bad mapping": ({}, {1: [map_badly]}, "without gaps"),
}  # fmt: skip


@pytest.mark.parametrize("case", ILLEGAL)
def test_what_aborts_batsim_is_an_error_that_says_why(case):
    alloc, plan, why = ILLEGAL[case]
    with pytest.raises(IllegalDecisionError, match=why):
        run(Scripted(alloc, plan), [job("a", 0, 1, 10), job("w", 0, 2, 10)])


def test_pybatsim_s_resubmission_runs_the_job_again():
    class Again(Scripted):
        def onJobCompletion(self, job):
            super().onJobCompletion(job)
            if "#" not in job.id:
                self.bs.resubmit_job(job)
                new = self.bs.jobs["w0!a#1"]
                new.allocation = HostSet.of("1")
                self.bs.execute_jobs([new])
                self.bs.notify_registration_finished()

    record = run(Again({"a": "0"}), [job("a", 0, 1, 5)], dynamic_jobs=True, profile_reuse=True)
    assert rows(record)["a#1"]["finish"] == 10
    assert "parent_job" in record.jobs[1][16]
