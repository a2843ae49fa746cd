"""Batsim 5's dialect and what no recording shows of its engine, worked out by hand."""

from __future__ import annotations

import json
import struct
import threading

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from batwatt.engine import events as ev
from batwatt.engine.core import Engine
from batwatt.engine.protocol5.engine import Engine5
from batwatt.engine.protocol5.events import Execute, Features, Place
from batwatt.engine.protocol5.text import encode, number, read_hello, read_reply, write_message
from batwatt.errors import DeadlockError, IllegalDecisionError, InputError, PeerError, ProtocolError
from batwatt.inputs.workloads.batsim5_json import read_events5, read_workload5
from batwatt.inputs.workloads.batsim_json import parse_workload
from batwatt.model.platform import Host, Platform, PState
from batwatt.run.engine5 import Batsim5Spec, run_engine5

SPREAD = {
    "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
    "executor_placement": {"strategy": "SpreadOverHostsFirst"},
}
PLATFORM = Platform(tuple(Host(i, f"h{i}", (PState(1e9, 50.0, 50.0, 100.0),), 2, has_power=True) for i in range(3)))
PROFILES = {
    "nap": {"type": "DelayProfile", "delay": 10},
    "half": {"type": "ParallelTaskHomogeneousProfile", "cpu": 5e9, "com": 0},
    "both": {"type": "SequentialCompositionProfile", "seq": ["half", "nap", "half"], "repeat": 2},
    "deep": {"type": "SequentialCompositionProfile", "seq": ["nap", "both"]},
}


def frame(now, *events):
    """An answer, at `now`; events are (name, fields)."""
    stamped = [{"timestamp": now, "event_type": f"{name}Event", "event": fields} for name, fields in events]
    return json.dumps({"now": now, "events": stamped}).encode()


def execute(job, hosts, **more):
    return "ExecuteJob", {"job_id": job, "allocation": {"host_allocation": hosts, **SPREAD}, **more}


def workload(tmp_path, *jobs, name="w0"):
    path = tmp_path / f"{name}.json"
    used = [{"id": str(i), "res": 1, **job} for i, job in enumerate(jobs)]
    path.write_text(json.dumps({"nb_res": 3, "jobs": used, "profiles": PROFILES}))
    return read_workload5(path, name)


def told(engine):
    """The next message: its time, and (event, fields) of it."""
    message = json.loads(write_message(engine.message()).removesuffix("\0"))
    return message["now"], [(event["event_type"].removesuffix("Event"), event["event"]) for event in message["events"]]


# numbers and texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (5.0, "5.0"),
        (22 / 3, "7.333333333333"),
        (1e9 + 1 / 3, "1000000000.333333373070"[:-1]),
        (1e22, "10000000000000000000000.0"),
        (1 / 60, "0.016666666667"),
        (4.9e-13, "0.0"),
        (5.1e-13, "0.000000000001"),
        (-3.25, "-3.25"),
    ],
)
def test_numbers_have_up_to_twelve_decimals(value, text):
    assert number(value) == text


def test_what_is_no_number_cannot_be_sent():
    with pytest.raises(ProtocolError):
        number(float("nan"))


def test_json_has_blanks_after_colons_and_capital_escapes():
    said = encode({"a": [1, 2.5, None, True], "é": {"t": 'q"\\u00e9\n'}})
    assert said == r'{"a": [1,2.5,null,true],"\u00E9": {"t": "q\"\\u00e9\n"}}'


# strict reading -------------------------------------------------------------------------------------------------------

CALL = {"call_me_later_id": "c", "when_type": "OneShot", "when": {"time": 3, "time_unit": "Second"}}


def test_order_of_fields_quoted_numbers_and_left_out_times_are_fine():
    text = b'{"events":[{"event":{"job_id":"w0!1"},"event_type":"RejectJobEvent"}]}\0'
    reply = read_reply(text)
    assert (reply.now, reply.decisions[0].time, reply.decisions[0].job_id) == (0.0, 0.0, "w0!1")
    assert read_reply(b'{"now":"5.5","events":[]}').now == 5.5
    (call,) = read_reply(
        frame(1, ("CallMeLater", {**CALL, "when": {"time": "1500", "time_unit": "Millisecond"}}))
    ).decisions
    assert call.when == 1.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not a JSON message"),
        (b"\xff{}", "not a JSON message"),
        (b"[]", "must be an object"),
        (b'{"now":0,"events":[],"\\uD800":0}', "not a JSON message"),
        (b'{"now":0,"events":[]} x', "not a JSON message"),
        (b'{"now":0,"now":1,"events":[]}', "set twice"),
        (b'{"now":0}', "no 'events'"),
        (b'{"now":0,"events":null}', "no 'events'"),
        (b'{"now":0,"events":[],"x":1}', "unknown field: x"),
        (b'{"now":[],"events":[]}', "must be a number"),
        (b'{"now":1e999,"events":[]}', "never comes"),
        (b'{"now":0,"events":[{"event_type":"QueryEvent","event":{}}]}', "unknown enum value"),
        (frame(0, ("CallMeLater", {**CALL, "when": {"time": 2.0}})), "cannot be assigned to an integer"),
        (frame(0, ("CallMeLater", {**CALL, "when": {"time": -2}})), "does not fit"),
        (frame(0, ("CallMeLater", {**CALL, "when": {"time": 2, "time_unit": "Hour"}})), "unknown enum value"),
        (frame(0, ("CallMeLater", {"call_me_later_id": "c", "when": {"time": 2}})), "required field is missing: when"),
        (frame(0, ("TurnOnOffHosts", {"host_ids": "0", "state": 2**32})), "does not fit"),
        (frame(0, ("KillJobs", {"job_ids": "w0!1"})), "must be a list"),
        (frame(0, ("SimulationEnds", {})), "handles no such event"),
        (frame(0, ("EDCHello", dict.fromkeys(["batprotocol_version", "decision_component_name",
                                              "decision_component_version"], ""))), "handles no such event"),
    ],
)  # fmt: skip
def test_what_flatbuffers_refuses_is_refused(text, why):
    with pytest.raises(IllegalDecisionError, match=why) as caught:
        read_reply(text)
    assert caught.value.exit_code == 1


def test_the_first_frame_must_be_json_that_says_hello():
    said = dict.fromkeys(["batprotocol_version", "decision_component_name", "decision_component_version"], "9")
    said |= {"decision_component_commit": "", "requested_simulation_features": {"profile_reuse": True}}
    assert read_hello(b"\3\0\0\0" + frame(7, ("EDCHello", said))).profile_reuse
    for bad in (b"", b"\1\0\0\0" + frame(0, ("EDCHello", said)), b"\2\0\0\0" + frame(0), frame(0, ("EDCHello", said))):
        with pytest.raises(IllegalDecisionError):
            read_hello(bad)


# the engine -----------------------------------------------------------------------------------------------------------


def test_a_part_of_a_sequence_runs_where_its_override_says(tmp_path):
    # half: 5e9 flop on each of two executors, which host 2 with its two cores does in 5 s; nap: 10 s. Hosts 0-1 draw
    # 50 W. SimGrid's meter charges host 2, 100 W, for the naps, too: it looks again when the half after a nap has ended
    load = workload(tmp_path, {"subtime": 0, "res": 2, "profile": "both"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=True)
    told(engine)
    engine.reply(read_reply(frame(0)))
    told(engine)
    override = [{"profile_id": "w0!half", "host_allocation": "2", **SPREAD}]
    engine.reply(read_reply(frame(0, execute("w0!0", "0-1", profile_allocation_override=override))))
    now, events = told(engine)
    assert (now, events[0][0], events[0][1]["state"]) == (40.0, "JobCompleted", "COMPLETED_SUCCESSFULLY")
    engine.reply(read_reply(frame(40)))
    told(engine)
    row = next(iter(engine.close().jobs))
    assert (row.allocated_resources, row.consumed_energy) == ("0-1", pytest.approx(2 * 50.0 * 40.0))
    assert list(engine.close().consumed_energy)[-1][1] == pytest.approx((2 * 50.0 + 100.0) * 40.0)


def test_progress_of_a_sequence_says_part_and_repetition(tmp_path):
    # deep: nap (10 s), both = 2 x (half 5 s, nap 10 s, half 5 s). At 37.5 s: 10 + 20 + 5 + 2.5: second round, its nap
    load = workload(tmp_path, {"subtime": 0, "profile": "deep"})
    engine = Engine5(PLATFORM, [load], [], Features(forward_profiles_on_jobs_killed=True), energy=False)
    told(engine)
    engine.reply(read_reply(frame(0, ("CallMeLater", {**CALL, "when": {"time": 37500, "time_unit": "Millisecond"}}))))
    told(engine)
    engine.reply(read_reply(frame(0, execute("w0!0", "1"))))
    assert told(engine)[0] == 37.5
    engine.reply(read_reply(frame(37.5, ("KillJobs", {"job_ids": ["w0!0"]}))))
    _, ((_, ended), (_, killed)) = told(engine)
    assert (ended["state"], ended["return_code"]) == ("COMPLETED_KILLED", 2**32 - 1)
    outer = killed["progresses"][0]["wrapper"]["kill_progress"]
    assert (outer["profile_id"], outer["current_repetition"], outer["current_task_index"]) == ("w0!deep", 0, 1)
    inner = outer["current_task_progress"]["kill_progress"]
    assert (inner["profile_id"], inner["current_repetition"], inner["current_task_index"]) == ("w0!both", 1, 1)
    leaf = inner["current_task_progress"]["kill_progress"]
    assert leaf == {"profile_id": "w0!nap", "progress": pytest.approx(0.25)}
    assert [(one["id"], one["profile"]) for one in killed["profiles"]] == [
        ("w0!deep", {"repetition_count": 1, "profile_ids": ["w0!nap", "w0!both"]})
    ]


def test_a_profile_comes_with_its_job_if_the_hello_asks_for_it(tmp_path):
    load = workload(tmp_path, {"subtime": 1, "profile": "nap", "extra_data": {"a": [1]}})
    engine = Engine5(PLATFORM, [load], [], Features(forward_profiles_on_job_submission=True), energy=False)
    told(engine)
    engine.reply(read_reply(frame(0)))
    now, events = told(engine)
    assert now == 1.0
    assert events[0] == (
        "JobSubmitted",
        {
            "job_id": "w0!0",
            "job": {"resource_request": 1, "walltime": None, "extra_data": '{"a":[1]}', "rigid": True,
                    "profile_id": "w0!nap"},
            "submission_time": 1.0,
            "profile": {"id": "w0!nap", "profile_type": "DelayProfile", "profile": {"delay": 10.0}},
        },
    )  # fmt: skip


def test_a_sequence_over_another_workload_needs_profile_reuse(tmp_path):
    load = workload(tmp_path, {"subtime": 0, "profile": "nap"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=False)
    told(engine)
    sequence = {"id": "x!s", "profile_type": "SequentialCompositionProfile", "profile": {"profile_ids": ["w0!d"]}}
    delay = {"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 1}}
    job = {"resource_request": 1, "profile_id": "s"}
    profiles = [("RegisterProfile", {"profile": table}) for table in (delay, sequence)]
    engine.reply(read_reply(frame(0, *profiles, ("RegisterJob", {"job_id": "x!1", "job": job}), execute("x!1", "0"))))
    told(engine)
    engine.reply(read_reply(frame(0)))
    with pytest.raises(IllegalDecisionError, match="ask for profile_reuse"):
        told(engine)


def test_a_sequence_whose_part_is_gone_gets_no_more_jobs(tmp_path):
    # registered while its part has a job; when that has ended, the part is gone
    load = workload(tmp_path, {"subtime": 0, "profile": "nap"})
    engine = Engine5(PLATFORM, [load], [], Features(dynamic_registration=True), energy=False)
    told(engine)
    sequence = {"id": "w0!s", "profile_type": "SequentialCompositionProfile", "profile": {"profile_ids": ["w0!nap"]}}
    engine.reply(read_reply(frame(0, ("RegisterProfile", {"profile": sequence}))))
    told(engine)
    engine.reply(read_reply(frame(0, execute("w0!0", "0"))))
    assert told(engine)[0] == 10.0
    job = {"resource_request": 1, "profile_id": "s"}
    with pytest.raises(IllegalDecisionError, match="'w0!nap' existed some time ago"):
        engine.reply(read_reply(frame(10, ("RegisterJob", {"job_id": "w0!1", "job": job}))))


def test_a_task_without_executors_is_refused(tmp_path):
    load = workload(tmp_path, {"subtime": 0, "profile": "half"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=False)
    told(engine)
    engine.reply(read_reply(frame(0)))
    told(engine)
    none = {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": []}}
    with pytest.raises(IllegalDecisionError, match="no executor"):
        job = {"job_id": "w0!0", "allocation": {"host_allocation": "0", **none}}
        engine.reply(read_reply(frame(0, ("ExecuteJob", job))))


def test_jobs_of_several_workloads_come_with_the_begin(tmp_path):
    loads = [workload(tmp_path, {"subtime": 0, "profile": "nap"}, name=name) for name in ("w0", "w1")]
    engine = Engine5(PLATFORM, loads, [], Features(), energy=False)
    assert [name for name, _ in told(engine)[1]] == ["SimulationBegins", "JobSubmitted", "JobSubmitted"]


def test_jobs_that_nobody_starts_are_a_deadlock(tmp_path):
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    told(engine)
    engine.reply(read_reply(frame(0)))
    told(engine)
    engine.reply(read_reply(frame(0)))
    with pytest.raises(DeadlockError):
        told(engine)


# both Batsims ---------------------------------------------------------------------------------------------------------

BATSIM_4 = {
    "nap": {"type": "delay", "delay": 10},
    "half": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0},
    "both": {"type": "composed", "seq": ["half", "nap", "half"], "repeat": 2},
    "deep": {"type": "composed", "seq": ["nap", "both"]},
}
JOBS = st.lists(
    st.fixed_dictionaries(
        {"subtime": st.integers(0, 60), "res": st.integers(1, 3), "profile": st.sampled_from(list(PROFILES))},
        optional={"walltime": st.integers(1, 40)},
    ),
    max_size=8,
)


def first_come(engine, execute):
    """The rows of jobs of a simulation in which jobs start as they come, on the hosts with the lowest ids."""
    waiting, free, held = [], {0, 1, 2}, {}
    while not engine.ended:
        message = engine.message()
        for event in message.events:
            if isinstance(event, ev.JobSubmitted):
                waiting.append(engine.jobs[event.job_id])
            elif isinstance(event, ev.JobCompleted):
                free |= held.pop(event.job_id)
        decisions = []
        while waiting and waiting[0].hosts <= len(free):
            job = waiting.pop(0)
            held[job.id] = set(sorted(free)[: job.hosts])
            free -= held[job.id]
            decisions.append(execute(message.now, job.id, " ".join(map(str, sorted(held[job.id])))))
        engine.reply(ev.Reply(message.now, decisions))
    return sorted(engine.close().jobs)


@given(JOBS)
def test_jobs_run_as_on_batsim_4(tmp_path_factory, jobs):
    folder = tmp_path_factory.mktemp("both")
    four = {"nb_res": 3, "jobs": [{"id": str(i), **job} for i, job in enumerate(jobs)], "profiles": BATSIM_4}
    old = first_come(Engine(PLATFORM, [parse_workload(four, "w0", "w.json")]), ev.ExecuteJob)
    new = first_come(
        Engine5(PLATFORM, [workload(folder, *jobs)], [], Features()),
        lambda now, job, hosts: Execute(now, job, Place(hosts, "SpreadOverHostsFirst")),
    )
    for before, after in zip(old, new, strict=True):
        assert after.profile == f"w0!{before.profile}"
        for name in set(before._fields) - {"profile"}:
            expected = getattr(before, name)
            number = isinstance(expected, float)
            assert getattr(after, name) == (pytest.approx(expected, rel=1e-9, abs=1e-5) if number else expected), name


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"profiles": PROFILES | {"a": {"type": "SequentialCompositionProfile", "seq": ["a"]}}}, "contains itself"),
        ({"profiles": {"nap": {"type": "delay", "delay": 10}}}, "'delay' is a type of Batsim 4; write DelayProfile"),
        ({"profiles": {"nap": {"type": "DelayProfil", "delay": 10}}}, "did you mean 'DelayProfile'"),
        ({"jobs": [{"id": "w1!0", "subtime": 0, "res": 1, "profile": "nap"}]}, "not a name without '!'"),
        ({"jobs": [{"id": 0, "subtime": 0, "res": 1, "profile": "nap", "walltime": None}]}, "'walltime' must be"),
        ({"jobs": [{"id": 0, "subtime": 0, "res": 1, "profile": "nap", "extra_data": 3}]}, "'extra_data' must be"),
    ],
)
def test_files_are_refused_with_the_place(tmp_path, change, why):
    jobs = [{"id": 0, "subtime": 0, "res": 1, "profile": "nap"}]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": PROFILES} | change))
    with pytest.raises(InputError, match=why):
        read_workload5(path, "w0")


def test_what_no_job_uses_may_communicate(tmp_path):
    far = {"type": "ParallelTaskHomogeneousProfile", "cpu": 1, "com": 1}
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": [], "profiles": {"far": far}}))
    assert read_workload5(path, "w0").jobs == ()


def test_events_are_numbered_by_their_lines(tmp_path):
    path = tmp_path / "events.txt"
    lines = ['{"type": "generic", "timestamp": 7, "data": "x"}', "", '{"type": "generic", "timestamp": 2, "data": "y"}']
    path.write_text("\n".join(lines))
    assert [(event.id, event.data) for event in read_events5(path, "ee0")] == [("ee0!1", "y"), ("ee0!0", "x")]


# the command's dialogue -----------------------------------------------------------------------------------------------

XML = """<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="boss" speed="1Gf"/><host id="n10" speed="1Gf"/><host id="n2" speed="2Gf"/></zone></platform>"""
HELLO = dict.fromkeys(
    ["batprotocol_version", "decision_component_name", "decision_component_version", "decision_component_commit"], ""
)


def play(tmp_path, prefix, *answers):
    """Run the engine against a scheduler that gives these answers after its hello; what it received."""
    (tmp_path / "p.xml").write_text(XML)
    workload(tmp_path, {"subtime": 0, "profile": "nap"})
    context, received = zmq.Context(), []
    socket = context.socket(zmq.REP)
    socket.setsockopt(zmq.RCVTIMEO, 20_000)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    def scheduler():
        for answer in (b"\2\0\0\0" + frame(0, ("EDCHello", {**HELLO, "requested_simulation_features": {}})), *answers):
            received.append(socket.recv())
            socket.send(answer)

    thread = threading.Thread(target=scheduler)
    thread.start()
    spec = Batsim5Spec(
        tmp_path / "p.xml", [tmp_path / "w0.json"], prefix=prefix, init="hé", roles={"boss": "master"}, patience_s=20.0
    )
    try:
        run_engine5(spec, f"tcp://127.0.0.1:{port}")
    finally:
        thread.join()
        socket.close()
        context.term()
    return received


def test_the_command_writes_the_files_of_batsim_5(tmp_path):
    ends = [frame(10), frame(10)]
    received = play(tmp_path, f"{tmp_path}/out/", frame(0), frame(0, execute("w0!0", "0")), *ends)
    assert received[0] == struct.pack("<I", 3) + "hé".encode()
    assert all(text.endswith(b"}\0") for text in received[1:])
    begins = json.loads(received[1][:-1])["events"][0]["event"]
    assert [host["name"] for host in begins["computation_hosts"]] == ["n2", "n10"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["jobs.csv", "schedule.json"]
    assert "0,w0,w0!nap,0.000000,1,-1.000000,1,COMPLETED_SUCCESSFULLY" in (tmp_path / "out" / "jobs.csv").read_text()
    assert json.loads((tmp_path / "out" / "schedule.json").read_text())["makespan"] == 10.0


def test_a_deadlock_leaves_what_has_finished(tmp_path):
    with pytest.raises(DeadlockError):
        play(tmp_path, f"{tmp_path}/out/x-", frame(0), frame(0))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x-jobs.csv"]


@pytest.mark.parametrize("answer", [b"\xff", frame(0, execute("w0!zz", "0")), frame(0, execute("w0!0", "2"))])
def test_a_refusal_leaves_no_file(tmp_path, answer):
    with pytest.raises(IllegalDecisionError):
        play(tmp_path, f"{tmp_path}/out/", frame(0), answer)
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_is_not_there_is_told_of(tmp_path):
    (tmp_path / "p.xml").write_text(XML)
    spec = Batsim5Spec(tmp_path / "p.xml", prefix=f"{tmp_path}/out/", roles={"boss": "master"}, patience_s=0.2)
    with pytest.raises(PeerError, match="never connected"):
        run_engine5(spec, "tcp://127.0.0.1:9")
