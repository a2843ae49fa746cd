"""Both ends of Batsim's wires without sockets: a frame is changed a little on its way to the other end."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from batwatt.engine.wire import EngineSocket, SchedulerSocket
from batwatt.errors import PeerError
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.run.find_scheduler import blaming, make_scheduler

from .mutate import changed, octets

MOST = 200
"""Messages of a conversation."""
JOBS = {
    "nb_res": 4,
    "jobs": [
        {"id": str(n), "subtime": 10 * n, "res": 1 + n % 3, "walltime": 90, "profile": "even" if n % 2 else "nap"}
        for n in range(6)
    ],
    "profiles": {
        "nap": {"type": "delay", "delay": 30},
        "even": {"type": "parallel_homogeneous", "cpu": 4e10, "com": 0},
    },
}
CAPS = Series((0.0, 20.0, 60.0, 100.0), (400.0, 150.0, 300.0, 900.0))
CAPACITY = Series((0.0, 25.0, 70.0), (4.0, 2.0, 4.0))
SCHEDULERS: list[tuple[str, dict[str, Any]]] = [
    ("powercap", {"response": "none"}),
    ("powercap", {"response": "hfld", "envelope": CAPS, "victim": "resubmit"}),
    ("varcap", {"capacity": CAPACITY}),
    ("riskaware", {"capacity": CAPACITY}),
    ("checkpoint", {"capacity": CAPACITY, "checkpoint_s": 5.0}),
    ("carbon", {"signal": SignalIntegral.regular([1.0, 2.0] * 48), "policy": "oracle"}),
    ("replay", {}),
]
HOSTS = "".join(
    f'<host id="{name}" speed="1e9f, 5e8f, 1e-3f, 0.5f, 0.2f" core="1"><prop id="sleep_pstates" value="2:3:4"/>'
    '<prop id="wattage_per_state" value="10:20:100, 8:15:50, 1:1:1, 10:10:10, 20:20:20"/></host>'
    for name in ("a0", "a1", "b0", "b1")
)
ZONE = f'<zone id="z" routing="None"><host id="master_host" speed="1Gf"/>{HOSTS}</zone>'
PLATFORM = f"<?xml version='1.0'?><platform version=\"4.1\">{ZONE}</platform>"


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

    class Played(kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self._socket = _Sent()
            self._patience_s, self._who = None, "the scheduler"

        def receive(self, *_: object) -> bytes:
            return say(self._socket.last)

    return Played()


class Wire:
    """A wire that changes one of its frames, and ends an endless conversation."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._left = MOST
        self._number = MOST - rng.choice((1, 2, 2, 3, 3, 4, 5, 1 + rng.randrange(20)))
        self._before = b""

    def __call__(self, frame: bytes) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise PeerError("the conversation has no end")
        if self._left == self._number:
            frame = self._changed(frame)
        self._before = frame
        return frame

    def _changed(self, frame: bytes) -> bytes:
        how = self._rng.random()
        if how < 0.05:
            return self._before
        if how < 0.3:
            return octets(self._rng, frame)
        head = frame[:4] if frame[4:5] == b"{" and frame[:1] != b"{" else b""
        try:
            value = json.loads(frame[len(head) :].rstrip(b"\0"))
        except ValueError:
            return octets(self._rng, frame)
        for _ in range(self._rng.choice((1, 1, 1, 3))):
            value = changed(self._rng, value) if isinstance(value, dict | list) else value
        return head + json.dumps(value).encode()


def answered(engine: Any, socket: Any) -> None:
    """Let the scheduler at the other end of a socket answer an engine until its end."""
    while not engine.ended:
        engine.reply(socket.ask(engine.message()))
    engine.close()


def serve(rng: Random, platform: Any, link: Served, greet: Callable[[Any, Served], None]) -> None:
    """Serve the other end of a link with one of our schedulers."""
    from batwatt.engine.bs import Bs

    name, options = rng.choice(SCHEDULERS)
    scheduler = make_scheduler(name, options | ({"platform": platform} if "envelope" in options else {}))
    greet(scheduler, link)
    with blaming(name, scheduler):
        Bs(scheduler, link).start()
