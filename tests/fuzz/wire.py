"""Both ends of Batsim's wires without sockets: a frame is changed a little on its way to the other end.

A Batsim with odd messages talks to our schedulers, and recorded schedulers with odd answers talk to the engine. What
Batsim 5 says was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from dialogues5 import OURS, REAL, Recording, names
from golden import Script, dialogue, engine_of, scenarios

from batwatt.batsim import batsim4
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.wire import LENGTH, EngineSocket, SchedulerSocket
from batwatt.cli.batsim import RequestedFeatures
from batwatt.engine.core import Engine
from batwatt.errors import PeerError
from batwatt.inputs.platform_files import read_platform
from batwatt.model.timeline import Timeline
from batwatt.protocol.workload4 import parse_workload
from batwatt.run.find_scheduler import attribute_errors, make_scheduler

from .files import ROOT, SMALL
from .hostile import TEXTS, changed, octets

JOBS = SMALL | {"jobs": [job | {"walltime": 90, "profile": "nap"} for job in SMALL["jobs"]]}
MOST = 200
"""Messages of a conversation."""
PLATFORM = ROOT / "platforms" / "small.xml"
CAPS = Timeline((0.0, 20.0, 60.0, 100.0), (400.0, 150.0, 300.0, 900.0))
CAPACITY = Timeline((0.0, 25.0, 70.0), (4.0, 2.0, 4.0))
SCHEDULERS: list[tuple[str, dict[str, Any]]] = [
    ("powercap", {"response": "none"}),
    ("powercap", {"response": "hfld", "envelope": CAPS, "victim": "resubmit"}),
    ("varcap", {"capacity": CAPACITY}),
    ("riskaware", {"capacity": CAPACITY}),
    ("checkpoint", {"capacity": CAPACITY, "checkpoint_s": 5.0}),
    ("carbon", {"signal": Timeline.regular([1.0, 2.0] * 48), "policy": "oracle"}),
    ("replay", {}),
]


class _Sent:
    """A socket that keeps the last frame."""

    last = b""

    def send(self, data: bytes) -> None:
        self.last = data


class Served(SchedulerSocket):
    """The scheduler's end; `say(answer)` is the next frame of Batsim."""

    def __init__(self, say: Callable[[bytes], bytes]) -> None:
        self._socket: Any = _Sent()
        self._say = say
        self._patience_s = self._protocol = self._first = self._dialect = None
        self._begun = False
        self.alive = lambda: None

    def receive(self, *_: object) -> bytes:
        return self._say(self._socket.last)


def playing(kind: type[EngineSocket], say: Callable[[bytes], bytes]) -> Any:
    """Return Batsim's end; `say(message)` is the answer of the scheduler."""
    socket: Any = kind.__new__(kind)
    socket._socket, socket._patience_s, socket._who = _Sent(), None, "the scheduler"
    socket.receive = lambda *_: say(socket._socket.last)
    return socket


def wire_of(rng: Random) -> Callable[[bytes], bytes]:
    """Return a wire that changes one of its first frames, and ends an endless conversation."""
    numbers, number = count(1), rng.choice((1, 2, 2, 3, 3, 4, 5, 1 + rng.randrange(20)))

    def send(frame: bytes) -> bytes:
        at = next(numbers)
        if at > MOST:
            raise PeerError("the conversation has no end")
        return odd_frame(rng, frame) if at == number else frame

    return send


def odd_frame(rng: Random, frame: bytes) -> bytes:
    """Change values of the JSON in a frame, which Batsim 5 begins with its flags, or a few bytes."""
    head, brace, text = frame.partition(b"{")
    if rng.random() < 0.3 or len(head) not in (0, 4) or not brace:
        return octets(rng, frame)
    try:
        value = json.loads((brace + text).rstrip(b"\0"))
    except ValueError:
        # some recorded answers are broken on purpose
        return octets(rng, frame)
    for _ in range(rng.choice((1, 1, 1, 3))):
        value = changed(rng, value)
    return head + json.dumps(value).encode()


def answered(engine: Any, socket: Any) -> None:
    """Let the scheduler at the other end of a socket answer an engine until its end."""
    while not engine.ended:
        engine.reply(socket.ask(engine.message()))
    engine.close()


def serve(rng: Random, platform: Any, link: Served, greet: Callable[[Any, Served], None]) -> None:
    """Serve the other end of a link with one of our schedulers."""
    from batwatt.batsim.bs import Bs

    name, options = rng.choice(SCHEDULERS)
    scheduler = make_scheduler(name, options | ({"platform": platform} if "envelope" in options else {}))
    greet(scheduler, link)
    with attribute_errors(name, scheduler):
        Bs(scheduler, link).start()


def attempt4(rng: Random, folder: Path) -> None:
    """Change a frame between a Batsim 4 and a scheduler."""
    wire = wire_of(rng)
    if rng.random() < 0.5:
        place = rng.choice(scenarios("golden", "own", "rules"))
        script = Script(dialogue(place))
        engine = engine_of(place, json.loads((place / "scenario.json").read_text()))

        def scheduler(message: bytes) -> bytes:
            return wire(script.answer(json.loads(message)["now"]).encode())

        answered(engine, playing(EngineSocket, scheduler))
        return
    config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True, forward_profiles=rng.random() < 0.5)
    engine = Engine(read_platform(PLATFORM), [parse_workload(JOBS, "w0", "fuzz")], config)

    def batsim(answer: bytes) -> bytes:
        if engine.ended:
            raise PeerError("Batsim has gone")
        if answer:
            engine.reply(batsim4.read_reply(answer.decode()))
        return wire(batsim4.write_message(engine.message()).encode())

    serve(rng, engine.platform, Served(batsim), lambda scheduler, link: None)


def attempt5(rng: Random, folder: Path) -> None:
    """Change a message of a recorded Batsim 5, which does not heed what it is answered."""
    archive = rng.choice((REAL, OURS))
    recording = Recording(archive, rng.choice(names(archive)))
    init = rng.choice(("", "{}", *TEXTS)).encode("utf-8", "surrogatepass")
    wire = wire_of(rng)
    frames = iter([LENGTH.pack(len(init)) + init, *(f"{message}\0".encode() for message in recording.messages)])

    def batsim(answer: bytes) -> bytes:
        frame = next(frames, None)
        if frame is None:
            raise PeerError("the recording is over")
        return wire(frame)

    def greet(scheduler: Any, link: Served) -> None:
        if link.begin() is not None:
            link.greet(RequestedFeatures().dialect(scheduler))

    serve(rng, read_platform(PLATFORM), Served(batsim), greet)
