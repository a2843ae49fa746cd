"""Batsim 5's dialect, the files that its engine reads, and the command's dialogue, worked out by hand."""

from __future__ import annotations

import json
import threading

import pytest
import zmq
from protocol5_talk import CALL, PROFILES, execute, frame, workload

from batwatt.batsim.batsim5_schema import encode, number, read_hello, read_reply
from batwatt.errors import DeadlockError, IllegalDecisionError, InputError
from batwatt.inputs.batsim_files import read_events5, read_workload5
from batwatt.run.engine5 import run_engine5

# numbers and texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (5.0, "5.0"),
        (22 / 3, "7.333333333333"),
        (1e9 + 1 / 3, "1000000000.33333337307"),
        (1e22, "10000000000000000000000.0"),
        (1 / 60, "0.016666666667"),
        (4.9e-13, "0.0"),
        (5.1e-13, "0.000000000001"),
        (-3.25, "-3.25"),
    ],
)
def test_numbers_have_up_to_twelve_decimals(value, text):
    assert number(value) == text


def test_json_has_blanks_after_colons_and_capital_escapes():
    hello = encode({"a": [1, 2.5, None, True], "é": {"t": 'q"\\u00e9\n'}})
    assert hello == r'{"a": [1,2.5,null,true],"\u00E9": {"t": "q\"\\u00e9\n"}}'


# strict reading; the recorded dialogues of errors have more: test_batsim5_recordings.py ------------------------------


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
        (b"\xff{}", "not a JSON message"),
        (b"[]", "must be an object"),
        (b'{"now":0,"events":[],"\\uD800":0}', "not a JSON message"),
        (b'{"now":0,"now":1,"events":[]}', "set twice"),
        (b'{"now":0,"events":null}', "no 'events'"),
        (b'{"now":[],"events":[]}', "must be a number"),
        (b'{"now":1e999,"events":[]}', "never comes"),
        (b'{"now":"' + b"[" * 9000 + b'","events":[]}', "must be a number"),
        (frame(0, ("CallMeLater", {**CALL, "when": {"time": 2, "time_unit": "Hour"}})), "unknown enum value"),
        (frame(0, ("TurnOnOffHosts", {"host_ids": "0", "state": 2**32})), "does not fit"),
        (frame(0, ("KillJobs", {"job_ids": "w0!1"})), "must be a list"),
        (frame(0, ("SimulationEnds", {})), "handles no such event"),
    ],
)  # fmt: skip
def test_what_flatbuffers_refuses_is_refused(text, why):
    with pytest.raises(IllegalDecisionError, match=why) as caught:
        read_reply(text)
    assert caught.value.exit_code == 1


def test_the_first_frame_must_be_json_that_says_hello():
    hello = dict.fromkeys(["batprotocol_version", "decision_component_name", "decision_component_version"], "9")
    hello |= {"decision_component_commit": "", "requested_simulation_features": {"profile_reuse": True}}
    assert read_hello(b"\3\0\0\0" + frame(7, ("EDCHello", hello))).profile_reuse
    for bad in (
        b"",
        b"\1\0\0\0" + frame(0, ("EDCHello", hello)),
        b"\2\0\0\0" + frame(0),
        frame(0, ("EDCHello", hello)),
    ):
        with pytest.raises(IllegalDecisionError):
            read_hello(bad)


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"profiles": PROFILES | {"a": {"type": "SequentialCompositionProfile", "seq": ["a"]}}}, "contains itself"),
        ({"profiles": {"nap": {"type": "DelayProfil", "delay": 10}}}, "did you mean 'DelayProfile'"),
        ({"jobs": [{"id": "w1!0", "subtime": 0, "res": 1, "profile": "nap"}]}, "not a name without '!'"),
    ],
)
def test_files_are_refused_with_the_place(tmp_path, change, why):
    jobs = [{"id": 0, "subtime": 0, "res": 1, "profile": "nap"}]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": PROFILES} | change))
    with pytest.raises(InputError, match=why):
        read_workload5(path, "w0")


def test_events_are_numbered_by_their_lines(tmp_path):
    path = tmp_path / "events.txt"
    lines = ['{"type": "generic", "timestamp": 7, "data": "x"}', "", '{"type": "generic", "timestamp": 2, "data": "y"}']
    path.write_text("\n".join(lines))
    assert [(event.id, event.data) for event in read_events5(path, "ee0")] == [("ee0!1", "y"), ("ee0!0", "x")]


# the command's dialogue -----------------------------------------------------------------------------------------------

XML = """<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="boss" speed="1Gf"/><host id="n2" speed="2Gf"/></zone></platform>"""
HELLO = dict.fromkeys(
    ["batprotocol_version", "decision_component_name", "decision_component_version", "decision_component_commit"], ""
)


def play(tmp_path, prefix, *answers):
    """Run the engine against a scheduler that gives these answers after its hello."""
    (tmp_path / "p.xml").write_text(XML)
    workload(tmp_path, {"subtime": 0, "profile": "nap"})
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    socket.setsockopt(zmq.RCVTIMEO, 20_000)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    def scheduler():
        for answer in (b"\2\0\0\0" + frame(0, ("EDCHello", {**HELLO, "requested_simulation_features": {}})), *answers):
            socket.recv()
            socket.send(answer)

    thread = threading.Thread(target=scheduler)
    thread.start()
    files = tmp_path / "p.xml", [tmp_path / "w0.json"]
    try:
        endpoint = f"tcp://127.0.0.1:{port}"
        run_engine5(*files, [], endpoint, prefix=prefix, roles={"boss": "master"}, patience_s=20.0)
    finally:
        thread.join()
        socket.close()
        context.term()


def test_a_deadlock_leaves_what_has_finished(tmp_path):
    with pytest.raises(DeadlockError):
        play(tmp_path, f"{tmp_path}/out/x-", frame(0), frame(0))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x-jobs.csv"]


def test_a_refusal_leaves_no_file(tmp_path):
    with pytest.raises(IllegalDecisionError):
        play(tmp_path, f"{tmp_path}/out/", frame(0), frame(0, execute("w0!zz", "0")))
    assert not (tmp_path / "out").exists()
