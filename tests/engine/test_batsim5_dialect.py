"""The scheduler's side of Batsim 5: what its messages become, and what decisions become, by hand."""

from __future__ import annotations

import json

import pytest
from files_of_tests import refusal
from procset import ProcSet

from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.batsim5 import Dialect
from batwatt.batsim.wire import init_text
from batwatt.errors import ProtocolError
from batwatt.protocol.conversion import converted, profile_of, split_profile, to_batsim4, to_batsim5
from batwatt.protocol.workload4 import parse_workload
from batwatt.protocol.workload5 import FIELDS


def host(number, **more):
    properties = [{"key": "sleep_pstates", "value": "1:2:3"}]
    return {"id": number, "name": f"h{number}", "pstate": 0, "properties": properties, "zone_properties": [], **more}


BEGINS = {
    "host_number": 4,
    "computation_host_number": 4,
    "computation_hosts": [host(number) for number in range(4)],
    "storage_host_number": 0,
    "storage_hosts": [],
    "workloads": [{"name": "w0", "filename": "/x/w.json"}],
    "profiles": [],
}


def received(dialect, now, *events):
    """The events of a message; each is (name, fields) or (name, fields, its own time)."""
    stamped = [
        {"timestamp": (*more, now)[0], "event_type": f"{name}Event", "event": data} for name, data, *more in events
    ]
    return dialect.message(json.dumps({"now": now, "events": stamped}) + "\0").events


def decided(dialect, now, *decisions):
    """What is sent for decisions: (name, fields)."""
    sent = json.loads(dialect.reply(ev.Reply(now, list(decisions))).rstrip("\0"))
    return [(event["event_type"].removesuffix("Event"), event["event"]) for event in sent["events"]]


@pytest.fixture
def dialect():
    dialect = Dialect(EngineConfig(dynamic_jobs=True, forward_profiles=True))
    [begins] = received(dialect, 0.0, ("SimulationBegins", BEGINS))
    assert begins.data["compute_resources"][2]["properties"] == {"sleep_pstates": "1:2:3"}
    assert begins.data["config"]["dynamic-jobs-enabled"] is True
    return dialect


def test_a_job_has_its_users_fields_and_profile(dialect):
    job = {"resource_request": 2, "walltime": None, "extra_data": '{"memory": 3, "res": 9}', "profile_id": "w0!p"}
    profile = {"id": "w0!p", "profile_type": "DelayProfile", "profile": {"delay": 5.0}}
    submitted = {"job_id": "w0!1", "job": job, "submission_time": 0.1, "profile": profile}
    [event] = received(dialect, 0.1000004, ("JobSubmitted", submitted))
    assert event.job == {"id": "w0!1", "subtime": 0.1, "res": 2, "walltime": -1, "profile": "p", "memory": 3}
    assert event.profile == {"type": "delay", "delay": 5.0}


def test_what_is_decided_at_the_time_of_a_message_goes_back_at_its_very_time(dialect):
    received(dialect, 7.333333333333, ("RequestedCall", {"call_me_later_id": "x", "last_periodic_call": False}))
    text = dialect.reply(ev.Reply(7.333333, [ev.RejectJob(7.333333, "w0!1")])).rstrip("\0")
    sent = json.loads(text)
    assert sent["now"] == sent["events"][0]["timestamp"] == 7.333333333333


def test_calls_are_in_whole_milliseconds_rounded_up(dialect):
    decisions = [ev.CallMeLater(0.0, at) for at in (2.003, 2.0030004, 2.003001, 0.0)]
    calls = [data for _, data in decided(dialect, 0.0, *decisions)]
    assert [call["when"]["time"] for call in calls] == [2003, 2003, 2004, 0]
    assert len({call["call_me_later_id"] for call in calls}) == 4
    with pytest.raises(ProtocolError, match="no time so late"):
        decided(dialect, 0.0, ev.CallMeLater(0.0, 1e300))


def test_p_states_and_switches_go_apart_and_are_acknowledged_together(dialect):
    [(name, data)] = decided(dialect, 0.0, ev.SetResourceState(0.0, "1", "1"))
    assert (name, data) == ("TurnOnOffHosts", {"host_ids": "1", "state": 1})
    # host 1 is on its way: nothing is asked of it; host 0 is changed at once; the request is for both
    assert decided(dialect, 0.0, ev.SetResourceState(0.0, "0-1", "0")) == [
        ("ChangeHostsPState", {"host_ids": "0", "pstate": 0})
    ]
    assert received(dialect, 0.0, ("HostsPStateChanged", {"host_ids": "0", "pstate": 0})) == []
    [off] = received(dialect, 5.0, ("HostsTurnedOnOff", {"host_ids": "1", "state": 1}, 0.0))
    assert (off.time, off.resources, off.state) == (5.0, "1", "1")
    assert decided(dialect, 5.0, ev.SetResourceState(5.0, ProcSet(1), 0)) == [
        ("TurnOnOffHosts", {"host_ids": "1", "state": 0})
    ]
    # as in Batsim 4, what arrives counts for the oldest request
    [both] = received(dialect, 9.0, ("HostsTurnedOnOff", {"host_ids": "1", "state": 0}))
    assert both.resources == "0-1"


def test_a_job_is_killed_once(dialect):
    assert decided(dialect, 1.0, ev.KillJob(1.0, ["w0!1", "w0!2"]), ev.KillJob(1.0, ["w0!1"])) == [
        ("KillJobs", {"job_ids": ["w0!1", "w0!2"]})
    ]


def test_progress_counts_parts_over_all_repetitions(dialect):
    sequence = {"repetition_count": 3, "profile_ids": ["w0!a", "w0!b"]}
    profile = {"id": "w0!s", "profile_type": "SequentialCompositionProfile", "profile": sequence}
    job = {"resource_request": 1, "walltime": 9.0, "extra_data": "", "profile_id": "w0!s"}
    submitted = {"job_id": "w0!1", "job": job, "submission_time": 0.0, "profile": profile}
    [event] = received(dialect, 0.0, ("JobSubmitted", submitted))
    assert event.profile == {"type": "composed", "repeat": 3, "seq": ["a", "b"]}
    inner = {
        "kill_progress_type": "KillProgressAtomicProfile",
        "kill_progress": {"profile_id": "w0!b", "progress": 0.25},
    }
    outer = {"profile_id": "w0!s", "current_repetition": 1, "current_task_index": 1, "current_task_progress": inner}
    wrapper = {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": outer}
    killed, over = (
        {"job_ids": ["w0!1", "w0!2"], "progresses": [{"job_id": "w0!1", "wrapper": wrapper}]},
        {"job_id": "w0!1", "state": "COMPLETED_KILLED", "return_code": 4294967294},
    )
    completed, kill = received(dialect, 4.0, ("JobCompleted", over), ("JobsKilled", killed))
    assert (completed.state, completed.return_code) == ("COMPLETED_KILLED", -2)
    leaf = {"profile_name": "b", "progress": 0.25}
    assert kill.progress == {"w0!1": {"profile_name": "s", "current_task_index": 3, "current_task": leaf}}


def test_executors_are_mapped_by_their_numbers(dialect):
    """Not by the order of their names as texts."""
    [(_, data)] = decided(dialect, 0.0, ev.ExecuteJob(0.0, "w0!2", "0 3", {"1": 0, "0": 1, "10": 1, "2": 0}))
    assert data["allocation"]["executor_placement"] == {"mapping": [1, 0, 0, 1]}


def test_metadata_stay_here_and_what_batsim_5_has_not_is_refused(dialect):
    assert decided(dialect, 0.0, ev.SetJobMetadata(0.0, "w0!1", "x"), ev.Notify(0.0, "continue_registration")) == []
    assert dialect.metadata == {"w0!1": "x"}
    with pytest.raises(ProtocolError, match="nothing for ToJobMessage"):
        decided(dialect, 0.0, ev.ToJobMessage(0.0, "w0!1", "x"))
    with pytest.raises(ProtocolError, match="additional_io_job"):
        decided(dialect, 0.0, ev.ExecuteJob(0.0, "w0!1", "0", None, {"additional_io_job": {}}))


def test_the_first_frame_tells_who_has_connected():
    assert init_text(b"\0\0\0\0") == "" and init_text(b"\2\0\0\0{}") == "{}"
    # 123 is the code of {
    assert init_text(b"{\0\0\0" + b"x" * 123) == "x" * 123
    assert init_text(b'{"now":0}') is None and init_text(b"ab") is None


@pytest.mark.parametrize("kind", FIELDS)
def test_profiles_there_and_back(kind):
    own = {"composed": {"repeat": 2, "seq": ["a", "b"]}}.get(kind) or dict.fromkeys(FIELDS[kind][1], 1.0)
    profile = {"type": kind, **own, "energy_class": "x"}
    assert profile_of(split_profile("w0", "p", profile)) == profile


def test_workloads_there_and_back():
    profiles = {
        "d": {"type": "delay", "delay": 5, "ret": 1},
        "t": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0, "tag": [1]},
        "s": {"type": "composed", "seq": ["d", "t"], "repeat": 2},
        "unused": {"type": "delay", "delay": 7},
    }
    jobs = [{"id": 1, "subtime": 0, "res": 2, "profile": "s", "walltime": -1, "memory": 4}]
    five = to_batsim5({"nb_res": 2, "jobs": jobs, "profiles": profiles}, "x")
    assert five["jobs"] == [{"id": 1, "subtime": 0, "res": 2, "profile": "s", "extra_data": {"memory": 4}}]
    assert list(five["profiles"]) == ["d", "t", "s"]
    assert five["profiles"]["t"]["generation_strategy"] == "DefinedAmountsSpreadUniformly"
    back = to_batsim4(five, "x")
    assert back["profiles"] == {name: profiles[name] for name in five["profiles"]}
    assert back["jobs"] == [{"id": 1, "subtime": 0, "res": 2, "profile": "s", "memory": 4}]


@pytest.mark.parametrize(
    "profile,four",
    [
        ({"cpu": [1e9, 2e9]}, {"cpu": [1e9, 2e9], "com": [0, 0, 0, 0]}),
        ({"com": [0, 0, 0, 0]}, {"cpu": [0, 0], "com": [0, 0, 0, 0]}),
        ({"com": [0, 5, 0, 0], "cpu": [1, 1]}, {"cpu": [1, 1], "com": [0, 5, 0, 0]}),
    ],
)
def test_parallel_profiles_with_one_list(profile, four):
    jobs = [{"id": "a", "subtime": 0, "res": 2, "profile": "p"}]
    five = {"nb_res": 2, "jobs": jobs, "profiles": {"p": {"type": "ParallelTaskProfile", **profile}}}
    assert converted(five, "x", "batsim4") == {**five, "profiles": {"p": {"type": "parallel", **four}}}
    assert converted(five, "x", "batsim5") == five


@pytest.mark.parametrize(
    "profile,message",
    [
        ({}, "inconsistent computation and communication vector sizes (0, 0)"),
        ({"com": [0, 0, 0]}, "inconsistent computation and communication vector sizes (1, 3)"),
        ({"cpu": [1.0] * 3001}, "the profile 'p' of 3001 hosts needs 9006001 values of 'com' in Batsim 4"),
        ({"type": "TraceReplayProfile", "trace_type": "SMPI", "filename": "t"}, "batwatt does not write for Batsim 4"),
    ],
)
def test_parallel_profiles_that_are_not_converted(profile, message):
    jobs = [{"id": "a", "subtime": 0, "res": max(1, len(profile.get("cpu", []))), "profile": "p"}]
    five = {"nb_res": 2, "jobs": jobs, "profiles": {"p": {"type": "ParallelTaskProfile", **profile}}}
    assert message in refusal(converted, five, "x", "batsim4")
    # not an unknown type
    assert "is a workload of Batsim 5 (profile 'p' is a " in refusal(parse_workload, five, "w0", "x")


# hostile Batsims ------------------------------------------------------------------------------------------------------


def begun(**more):
    """A Batsim 5 with one host has begun."""
    dialect = Dialect(EngineConfig())
    one = {"pstate_count": 1, "core_count": 1, **host(0), "properties": [], **more}
    begins = {"host_number": 1, "computation_host_number": 1, "computation_hosts": [one], "workloads": []}
    received(dialect, 0, ("SimulationBegins", begins))
    return dialect


def external(text):
    return "ExternalEventOccurred", {
        "id": "ee0!0", "external_event_type": "GenericExternalEvent", "external_event": {"data": text},
    }  # fmt: skip


JOB = {"resource_request": 1, "profile_id": "w0!p"}
BAD = {
    "now": (("RequestedCall", {"call_me_later_id": 5}), "must be a text"),
    "job": (("JobSubmitted", {"job_id": "w0!1", "job": {**JOB, "resource_request": "x"}}), "must be a number"),
    "name": (("JobSubmitted", {"job_id": "1", "job": JOB}), "not WORKLOAD!NAME"),
    "huge": (("JobSubmitted", {"job_id": "w0!1", "job": {**JOB, "walltime": 10**400}}), "must be finite"),
    "state": (("JobCompleted", {"job_id": "w0!1", "state": "HAPPY"}), "unknown enum value"),
    "host": (("HostsTurnedOnOff", {"host_ids": "0-5", "state": 0}), "names host 5, and the hosts are 0-0"),
    "set": (("HostsPStateChanged", {"host_ids": "all", "pstate": 0}), "names hosts that are none"),
    "probe": (("ProbeDataEmitted", {"probe_id": "x", "data_type": "VectorialProbeData", "data": {"data": [1.0]}}),
              "batwatt did not create"),
    "away": (external('{"type": "machine_unavailable", "resources": "0-5"}'), "names host 5"),
    "nowhere": (external('{"type": "machine_unavailable"}'), "no text 'resources'"),
    "killed": (("JobsKilled", {"job_ids": [], "progresses": [{"job_id": "w0!1", "wrapper": {}}]}), "kill_progress"),
}  # fmt: skip


@pytest.mark.parametrize("event, why", BAD.values(), ids=BAD)
def test_what_no_batsim_sends_is_its_fault(event, why):
    """Not that of the scheduler, which would be told values that it cannot compute with."""
    dialect = begun()
    with pytest.raises(ProtocolError, match=why):
        received(dialect, 1, event)


@pytest.mark.parametrize(
    "more", [{"id": 1}, {"properties": [{"key": "sleep_pstates", "value": "0:1"}]}, {"name": None}]
)
def test_hosts_that_no_batsim_has(more):
    with pytest.raises(ProtocolError):
        begun(**more)


@pytest.mark.parametrize(
    "message",
    [
        "",
        '{"now": 1}',
        '{"now": 1, "events": [{}]}',
        # times go neither back nor too far
        '{"now": 0.5, "events": []}',
        '{"now": 1e24, "events": []}',
        '{"now": NaN, "events": []}',
    ],
)
def test_a_message_that_is_none_is_one_line(message):
    dialect = begun()
    # a field of another version is no error
    [event] = received(dialect, 1, ("RequestedCall", {"call_me_later_id": "c", "of_rc9": 1}))
    assert event.time == 1.0
    with pytest.raises(ProtocolError, match="cannot be understood"):
        dialect.message(message)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # a machine goes by either of its names
        ("machine_unavailable", ("event_machine_unavailable", "0")),
        ("event_machine_unavailable", ("event_machine_unavailable", "0")),
        # an event of a user does not end the workload
        ("no_more_static_job_to_submit", ("generic", "0,0")),
    ],
)
def test_external_events(kind, expected):
    text = json.dumps({"type": kind, "resources": "0,0"})
    [event] = received(begun(), 3, (*external(text), 1.0))
    assert (event.time, event.kind, event.data["resources"]) == (3.0, *expected)
    [event] = received(begun(), 3, external("a text"))
    assert (event.kind, event.data["data"]) == ("generic", "a text")
