"""Frames of a hostile peer: on either side one line that says what is wrong with them."""

from __future__ import annotations

import json
import threading

import pytest
import zmq

from batwatt.engine.batsim4 import read_message, read_reply, write_message
from batwatt.engine.bs import Bs
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import serve
from batwatt.engine.events import Message, Reply
from batwatt.engine.wire import SchedulerSocket
from batwatt.errors import BatwattError, ProtocolError
from batwatt.inputs.workloads.batsim_json import parse_workload
from batwatt.model.platform import Host, Platform, PState
from batwatt.systems.powercap.scheduler import EnvelopeScheduler

HUGE = "1" + "0" * 400
WORK = {
    "nb_res": 2,
    "jobs": [{"id": 1, "subtime": 1, "res": 1, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}
FRAMES = {
    "empty": "",
    "deep": "[" * 100_000,
    "a number": "3",
    "no object": "[]",
    "400 digits": f'{{"now":{HUGE},"events":[]}}',
    "5000 digits": f'{{"now":{"9" * 5000},"events":[]}}',
    "1e999": '{"now":1e999,"events":[]}',
    "no JSON number": '{"now":NaN,"events":[]}',
    "a true date": '{"now":true,"events":[]}',
    "cut": '{"now":0,"events":[{"timestamp":0,',
    "no type": '{"now":0,"events":[{"timestamp":0,"data":{}}]}',
    "timestamp of 400 digits": f'{{"now":0,"events":[{{"timestamp":{HUGE},"type":"QUERY","data":{{}}}}]}}',
    "data in a list": '{"now":0,"events":[{"timestamp":0,"type":"NOTIFY","data":[]}]}',
    "unknown type": '{"now":0,"events":[{"timestamp":0,"type":"FOO","data":{}}]}',
}


def answer(kind: str, data: str, time: str = "0.0") -> str:
    return f'{{"now":{time},"events":[{{"timestamp":{time},"type":"{kind}","data":{data}}}]}}'


ANSWERS = FRAMES | {
    "1e308": '{"now":1e308,"events":[]}',
    "an event at 1e308": answer("QUERY", '{"requests":{"consumed_energy":{}}}', "1e308"),
    "call at 400 digits": answer("CALL_ME_LATER", f'{{"timestamp":{HUGE}}}'),
    "call at 1e308": answer("CALL_ME_LATER", '{"timestamp":1e308}'),
    "true call": answer("CALL_ME_LATER", '{"timestamp":true}'),
    "kill nobody": answer("KILL_JOB", '{"job_ids":[]}'),
    "kill numbers": answer("KILL_JOB", '{"job_ids":[1]}'),
    "long list for a text": answer("REJECT_JOB", json.dumps({"job_id": ["w0!1"] * 1000})),
    "long text for a list": answer("KILL_JOB", json.dumps({"job_ids": "x" * 100_000})),
}


def submitted(**job: object) -> str:
    fields = {"subtime": 1, "res": 1, "profile": "d"} | job
    return answer("JOB_SUBMITTED", json.dumps({"job_id": "w0!1", "job": fields}))


MESSAGES = FRAMES | {
    "hosts of 400 digits": submitted(res=int(HUGE)),
    "no hosts": submitted(res=0),
    "submitted at 400 digits": submitted(subtime=int(HUGE)),
    "walltime in words": submitted(walltime="5"),
    "resources as a number": answer("NOTIFY", '{"type":"event_machine_available","resources":1}'),
    "resources without end": answer("NOTIFY", '{"type":"event_machine_available","resources":"0-"}'),
    "resources of 5000 digits": answer("RESOURCE_STATE_CHANGED", json.dumps({"resources": "9" * 5000, "state": "0"})),
    "killed numbers": answer("JOB_KILLED", '{"job_ids":[1],"job_progress":{}}'),
    "energy in words": answer("ANSWER", '{"consumed_energy":"much"}'),
}


def engine() -> Engine:
    state = PState(1e9, 50.0, 50.0, 100.0)
    platform = Platform(tuple(Host(i, f"h{i}", (state,), has_power=True) for i in range(2)))
    return Engine(platform, [parse_workload(WORK, "w0", "w.json")], EngineConfig())


def one_line(error: BatwattError) -> str:
    text = str(error)
    assert error.exit_code == 2 and text.isprintable() and len(text) <= 500
    return text


@pytest.mark.parametrize("frame", ANSWERS.values(), ids=ANSWERS)
def test_answers_that_the_engine_refuses(frame):
    run = engine()
    run.message()
    with pytest.raises(ProtocolError) as error:
        run.reply(read_reply(frame))
        write_message(run.message())
    one_line(error.value)


@pytest.mark.parametrize("frame", MESSAGES.values(), ids=MESSAGES)
def test_messages_that_the_scheduler_refuses(frame):
    with pytest.raises(ProtocolError) as error:
        Messages([begins(), frame]).run()
    one_line(error.value)


def begins(**change: object) -> str:
    message = engine().message()
    message.events[0].data |= change
    return write_message(message)


class Messages:
    """A link that tells these."""

    def __init__(self, frames: list[str]) -> None:
        self.frames = frames

    def message(self) -> Message:
        return read_message(self.frames.pop(0))

    def reply(self, reply: Reply) -> None:
        assert reply.decisions == []

    def run(self) -> None:
        Bs(EnvelopeScheduler({"response": "none"}), self).start()


@pytest.mark.parametrize(
    "change",
    [
        {"nb_compute_resources": 3},
        {"nb_compute_resources": int(HUGE)},
        {"compute_resources": [{"id": 1, "name": "a"}, {"id": 0, "name": "b"}]},
        {"compute_resources": [3, 4]},
        {"storage_resources": [3]},
        {"profiles": {"w0": [1]}},
        {"profiles": {"w0": {"d": 1}}},
        {"config": {}},
    ],
)
def test_beginnings_that_the_scheduler_refuses(change):
    with pytest.raises(ProtocolError) as error:
        Messages([begins(**change)]).run()
    one_line(error.value)


# what only a socket can do -------------------------------------------------------------------------------------

MULTIPART = {"two frames": [b"{}", b"{}"], "not UTF-8": [b"\xff\xfe"], "empty": [b""], "many": [b""] * 500}


def speak(kind: int, frames: list[bytes], endpoint: str | None, found: list[str], ready: threading.Event) -> None:
    """The peer: a scheduler (REP) that answers once, or a Batsim (REQ) that says one thing."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        if kind == zmq.REP:
            found.append(f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}")
            ready.set()
            assert socket.poll(10_000)
            socket.recv()
        else:
            socket.connect(endpoint)
        socket.send_multipart(frames)
        ready.wait(10)
        socket.poll(100)


@pytest.mark.parametrize("frames", MULTIPART.values(), ids=MULTIPART)
def test_frames_to_the_engine(frames):
    found: list[str] = []
    ready = threading.Event()
    peer = threading.Thread(target=speak, args=(zmq.REP, frames, None, found, ready))
    peer.start()
    assert ready.wait(10)
    with pytest.raises(ProtocolError) as error:
        serve(engine(), found[0], patience_s=10)
    peer.join(10)
    text = one_line(error.value)
    assert ("frames; a message is one" in text) == (len(frames) > 1)


@pytest.mark.parametrize("frames", [*MULTIPART.values(), [b'{"now":0,"events":[]}']], ids=[*MULTIPART, "no begin"])
def test_frames_to_the_scheduler(frames):
    done = threading.Event()
    with SchedulerSocket("tcp://127.0.0.1:*", patience_s=10) as socket:
        peer = threading.Thread(target=speak, args=(zmq.REQ, frames, socket.endpoint, [], done))
        peer.start()
        with pytest.raises(ProtocolError) as error:
            Bs(EnvelopeScheduler({"response": "none"}), socket).start()
        done.set()
        peer.join(10)
    one_line(error.value)
