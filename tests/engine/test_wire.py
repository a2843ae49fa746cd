"""Frames of a hostile peer: on either side one line that says what is wrong with them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest
import zmq

from batwatt.batsim import wire
from batwatt.batsim.adapters import serve
from batwatt.batsim.batsim4 import EngineConfig, read_message, read_reply, write_message
from batwatt.batsim.bs import Bs
from batwatt.batsim.events import Message, Reply
from batwatt.batsim.wire import EngineSocket, SchedulerSocket, own_endpoint
from batwatt.engine.core import Engine
from batwatt.errors import BatwattError, InputError, PeerError, ProtocolError
from batwatt.model.platform import Host, Platform, PState
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.easy import Easy

HUGE = "1" + "0" * 400
WORK = {
    "nb_res": 2,
    "jobs": [{"id": 1, "subtime": 1, "res": 1, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}
FRAMES = {
    "deep": "[" * 100_000,
    "no object": "[]",
    "400 digits": f'{{"now":{HUGE},"events":[]}}',
    "5000 digits": f'{{"now":{"9" * 5000},"events":[]}}',
    "1e999": '{"now":1e999,"events":[]}',
    "no JSON number": '{"now":NaN,"events":[]}',
    "a true date": '{"now":true,"events":[]}',
    "cut": '{"now":0,"events":[{"timestamp":0,',
    "no type": '{"now":0,"events":[{"timestamp":0,"data":{}}]}',
    "unknown type": '{"now":0,"events":[{"timestamp":0,"type":"FOO","data":{}}]}',
}


def answer(kind: str, data: str, time: str = "0.0") -> str:
    return f'{{"now":{time},"events":[{{"timestamp":{time},"type":"{kind}","data":{data}}}]}}'


ANSWERS = FRAMES | {
    "1e308": '{"now":1e308,"events":[]}',
    "call at 1e308": answer("CALL_ME_LATER", '{"timestamp":1e308}'),
    "kill nobody": answer("KILL_JOB", '{"job_ids":[]}'),
    "long list for a text": answer("REJECT_JOB", json.dumps({"job_id": ["w0!1"] * 1000})),
    "long text for a list": answer("KILL_JOB", json.dumps({"job_ids": "x" * 100_000})),
}


def submitted(**job: object) -> str:
    fields = {"subtime": 1, "res": 1, "profile": "d"} | job
    return answer("JOB_SUBMITTED", json.dumps({"job_id": "w0!1", "job": fields}))


MESSAGES = FRAMES | {
    "hosts of 400 digits": submitted(res=int(HUGE)),
    "no hosts": submitted(res=0),
    "walltime in words": submitted(walltime="5"),
    "resources as a number": answer("NOTIFY", '{"type":"event_machine_available","resources":1}'),
    "resources of 5000 digits": answer("RESOURCE_STATE_CHANGED", json.dumps({"resources": "9" * 5000, "state": "0"})),
    "a job without a workload": answer("JOB_SUBMITTED", '{"job_id":"1","job":{"subtime":1,"res":1,"profile":"d"}}'),
    "a job that never was": answer("JOB_COMPLETED", '{"job_id":"w0!9","job_state":"COMPLETED_FAILED","return_code":1}'),
    "a host that never was, gone": answer("NOTIFY", '{"type":"event_machine_unavailable","resources":"0-7"}'),
    "after time": answer("REQUESTED_CALL", "{}", "1e25"),
    "an end, and more": '{"now":1,"events":[{"timestamp":1,"type":"SIMULATION_ENDS","data":{}},'
    '{"timestamp":1,"type":"REQUESTED_CALL","data":{}}]}',
}


def engine() -> Engine:
    state = PState(1e9, 50.0, 50.0, 100.0)
    platform = Platform(tuple(Host(i, f"h{i}", (state,), has_power=True) for i in range(2)))
    return Engine(platform, [parse_workload(WORK, "w0", "w.json")], EngineConfig())


def one_line(error: BatwattError) -> str:
    text = str(error)
    assert error.exit_code == 2 and text.isprintable() and len(text) <= 500
    return text


REASONS_OF_THE_ENGINE = {
    "an event in a number": ('{"now":0,"events":[1]}', "event 0"),
    "no data": ('{"now":0,"events":[{"timestamp":0,"type":"KILL_JOB"}]}', "'data'"),
    "a field that is missing": (answer("EXECUTE_JOB", '{"job_id":"w0!1"}'), "'alloc' is missing"),
    "a job that never was": (answer("EXECUTE_JOB", '{"job_id":"w0!9","alloc":"0"}'), "EXECUTE_JOB w0!9"),
    "odd hosts": (answer("SET_RESOURCE_STATE", '{"resources":"a-b","state":"1"}'), "a-b"),
    "an odd state": (answer("SET_RESOURCE_STATE", '{"resources":"0","state":"fast"}'), "fast"),
    "an odd query": (answer("QUERY", '{"requests":{"mood":{}}}'), "QUERY"),
    "no job to register": (answer("REGISTER_JOB", '{"job_id":"w0!x","job":{}}'), "REGISTER_JOB"),
    "an odd notification": (answer("NOTIFY", '{"type":"hello"}'), "NOTIFY"),
}


TO_THE_ENGINE = {name: (frame, "") for name, frame in ANSWERS.items()} | REASONS_OF_THE_ENGINE


@pytest.mark.parametrize(("frame", "words"), TO_THE_ENGINE.values(), ids=TO_THE_ENGINE)
def test_answers_that_the_engine_refuses(frame, words):
    """What is no message is an error of the protocol; a decision that cannot be carried out has its own reason."""
    run = engine()
    run.message()
    with pytest.raises(BatwattError if words else ProtocolError) as error:
        run.reply(read_reply(frame))
        write_message(run.message())
    assert words in str(error.value) and str(error.value).isprintable()
    assert words or one_line(error.value)


REASONS_OF_THE_SCHEDULER = {
    "a second begin": (None, "a second SIMULATION_BEGINS"),
    "no events": ('{"now":1}', "'events'"),
    "no job": (answer("JOB_SUBMITTED", "{}"), "(JOB_SUBMITTED) of Batsim's message: 'job_id' is missing"),
    "no submission": (answer("JOB_SUBMITTED", '{"job_id":"w0!1","job":{}}'), "'subtime' is missing"),
    "an unknown type": (answer("MADE_UP", "{}"), "unknown type 'MADE_UP'"),
    "hosts in words": (
        answer("RESOURCE_STATE_CHANGED", '{"resources":"all","state":"0"}'),
        "'resources' are not hosts: 'all'",
    ),
}


TO_THE_SCHEDULER = {name: (frame, "") for name, frame in MESSAGES.items()} | REASONS_OF_THE_SCHEDULER


@pytest.mark.parametrize(("frame", "words"), TO_THE_SCHEDULER.values(), ids=TO_THE_SCHEDULER)
def test_messages_that_the_scheduler_refuses(frame, words):
    with pytest.raises(ProtocolError) as error:
        Messages([begins(), frame or begins()]).run()
    assert words in one_line(error.value)


def begins(**change: object) -> str:
    message = engine().message()
    message.events[0].data |= change
    return write_message(message)


def test_a_job_is_submitted_and_ends_once():
    """What else it is told would be an error of the scheduler's, which knows no such job."""
    ended = answer("JOB_COMPLETED", '{"job_id":"w0!1","job_state":"COMPLETED_SUCCESSFULLY","return_code":0}', "5")
    for frames in ([submitted(), submitted()], [ended], [submitted(), ended, ended]):
        link = Messages([begins(), *frames])
        link.reply = lambda reply: None
        with pytest.raises(ProtocolError, match="cannot be understood"):
            link.run()


class Messages:
    """A link that tells these."""

    def __init__(self, frames: list[str]) -> None:
        self.frames = frames

    def message(self) -> Message:
        return read_message(self.frames.pop(0))

    def reply(self, reply: Reply) -> None:
        assert reply.decisions == []

    def run(self) -> None:
        Bs(Easy({"response": "none"}), self).start()


@pytest.mark.parametrize(
    "change",
    [
        {"nb_compute_resources": 3},
        {"compute_resources": [{"id": 1, "name": "a"}, {"id": 0, "name": "b"}]},
        {"compute_resources": [3, 4]},
        {"compute_resources": [{"id": 0, "name": "a", "properties": {"x": 1}}, {"id": 1, "name": "b"}]},
        {"storage_resources": [3]},
        {"profiles": {"w0": [1]}},
        {"config": {}},
    ],
)
def test_beginnings_that_the_scheduler_refuses(change):
    with pytest.raises(ProtocolError) as error:
        Messages([begins(**change)]).run()
    one_line(error.value)


# what only a socket can do -------------------------------------------------------------------------------------

MULTIPART = {"two frames": [b"{}", b"{}"], "not UTF-8": [b"\xff\xfe"]}


def speak(kind: int, frames: list[bytes], endpoint: str | None, endpoints: list[str], ready: threading.Event) -> None:
    """The peer: a scheduler (REP) that answers once, or a Batsim (REQ) that says one thing."""
    with zmq.Context() as context, context.socket(kind) as side:
        side.setsockopt(zmq.LINGER, 0)
        if kind == zmq.REP:
            endpoints.append(f"tcp://127.0.0.1:{side.bind_to_random_port('tcp://127.0.0.1')}")
            ready.set()
            assert side.poll(10_000)
            side.recv()
        else:
            side.connect(endpoint)
        side.send_multipart(frames)
        ready.wait(10)
        side.poll(100)


@pytest.mark.parametrize("frames", MULTIPART.values(), ids=MULTIPART)
def test_frames_to_either_side(frames):
    endpoints: list[str] = []
    ready, done = threading.Event(), threading.Event()
    peer = threading.Thread(target=speak, args=(zmq.REP, frames, None, endpoints, ready))
    peer.start()
    assert ready.wait(10)
    with pytest.raises(ProtocolError) as error:
        serve(engine(), endpoints[0], patience_s=10)
    peer.join(10)
    assert ("frames; a message is one" in one_line(error.value)) == (len(frames) > 1)
    with SchedulerSocket("tcp://127.0.0.1:*", patience_s=10) as link:
        peer = threading.Thread(target=speak, args=(zmq.REQ, frames, link.endpoint, [], done))
        peer.start()
        with pytest.raises(ProtocolError) as error:
            Bs(Easy({"response": "none"}), link).start()
        done.set()
        peer.join(10)
    one_line(error.value)


def test_a_frame_that_is_too_long(monkeypatch):
    """Of either side, first or later; one that is just short enough is read."""
    monkeypatch.setattr(wire, "MOST_BYTES", 1000)
    ready = threading.Event()
    with zmq.Context() as context, context.socket(zmq.REP) as side:
        side.setsockopt(zmq.LINGER, 0)
        endpoint = f"tcp://127.0.0.1:{side.bind_to_random_port('tcp://127.0.0.1')}"
        peer = threading.Thread(target=lambda: (side.recv(), side.send(b"x" * 1001), ready.wait(10)))
        peer.start()
        with pytest.raises(PeerError, match=r"closed the connection .*, or sent more than 1000 bytes"):
            serve(engine(), endpoint, patience_s=10)
        ready.set()
        peer.join(10)
    for sizes, problem in (
        ((1001,), r"silent for 1 s, after a closed connection \(or more than 1000 bytes\)"),
        ((1000, 1001), "closed the connection .*, or sent more than 1000 bytes"),
    ):
        with (
            SchedulerSocket("tcp://127.0.0.1:*", patience_s=1 if len(sizes) == 1 else 10) as link,
            zmq.Context() as context,
            context.socket(zmq.REQ) as side,
        ):
            side.setsockopt(zmq.LINGER, 0)
            side.connect(link.endpoint)
            for number, size in enumerate(sizes):
                side.send(b"y" * size)
                if number < len(sizes) - 1:
                    assert link.receive(5, lambda: None, "Batsim") == b"y" * size
                    link._socket.send(b"{}")
                    assert side.recv() == b"{}"
            with pytest.raises(PeerError, match=problem):
                link.receive(1 if len(sizes) == 1 else 10, lambda: None, "Batsim")


def test_bytes_that_are_no_frames_do_not_hold_the_scheduler_up():
    """Such as of a port scan: a socket says that something came, and has nothing when it is read."""
    with SchedulerSocket("tcp://127.0.0.1:*", patience_s=1) as link:
        knock = socket.create_connection(("127.0.0.1", int(link.endpoint.rpartition(":")[2])))
        # a peer of an old protocol: an identity, and a message of one frame, without the delimiter of a request
        knock.sendall(b"\x01\x00\x02\x00x")
        with knock, pytest.raises(PeerError, match="silent for 1 s"):
            link.begin()


@pytest.mark.parametrize(
    ("theirs", "words"),
    [("0123456789abcdef", None), ("another secret!!", "has another token, or none"), (None, "silent|token")],
)
def test_a_scheduler_has_to_have_the_token(theirs, words):
    """The side that listens first commands the engine, which sends nothing to one without the secret."""
    received = []

    def play(socket):
        with contextlib.suppress(PeerError):
            received.append(socket.message())
            socket.reply(Reply(0.0, []))

    begin = engine().message()
    with SchedulerSocket("tcp://127.0.0.1:*", 3.0, token=theirs) as scheduler:
        thread = threading.Thread(target=play, args=(scheduler,))
        thread.start()
        with EngineSocket(scheduler.endpoint, 2.0, "0123456789abcdef") as ours:
            if words is None:
                assert ours.ask(begin).decisions == []
            else:
                with pytest.raises(PeerError, match=words):
                    ours.ask(begin)
        thread.join(10.0)
    assert len(received) == (words is None)


def test_the_folder_of_a_socket_is_closed_to_others(tmp_path):
    with SchedulerSocket(f"ipc://{tmp_path}/s/scheduler"):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("endpoint", "user", "token", "loopback", "why"),
    [
        ("ipc://out/s", 0, None, False, ""),
        ("tcp://127.0.0.1:28000", 0, "secret", False, ""),
        ("tcp://localhost:28000", 1, None, True, ""),
        ("tcp://[::1]:28000", 1, None, False, "any user can listen .* or --token-file .*, or --insecure-tcp"),
        ("tcp://127.0.0.1:28000", 0, None, True, "any user can listen .* `batwatt serve`$"),
        ("tcp://10.0.0.1:28000", 0, "secret", True, "10.0.0.1 is not this machine"),
        # in no file system, so that nobody owns it
        ("ipc://@scheduler", 0, None, False, "any user can listen"),
    ],
)
def test_no_stranger_takes_the_place_of_a_scheduler(monkeypatch, tmp_path, endpoint, user, token, loopback, why):
    monkeypatch.setattr("os.geteuid", lambda: user)
    values = {"loopback": loopback, "commands": True}
    if why:
        with pytest.raises(InputError, match=why):
            own_endpoint(endpoint, tmp_path / "s", token, **values)
    else:
        assert own_endpoint(endpoint, tmp_path / "s", token, **values) == endpoint


def test_the_usual_place_of_a_scheduler_is_a_folder_of_this_user_alone(tmp_path):
    folder, values = tmp_path / "out/s_socket", {"loopback": False, "commands": True}
    assert own_endpoint("", folder, None, **values) == f"ipc://{folder}/scheduler"
    folder.chmod(0o750)
    with pytest.raises(InputError, match="is not a folder of this user alone; remove it"):
        own_endpoint("", folder, None, **values)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(InputError, match="is not a folder of this user alone"):
        own_endpoint("", folder, None, **values)
