"""Batsim's protocols on the wire: the sockets of both sides, with supervised waits.

Batsim's side is a REQ socket that connects, the scheduler's side a REP socket that binds; a frame is one JSON text. The
first frame of Batsim 5 is the length of a text for the scheduler (u32), and that text.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

import zmq
from zmq.utils.monitor import recv_monitor_message

from batwatt.engine.batsim4 import read_message, read_reply, write_message, write_reply
from batwatt.engine.batsim5 import Dialect
from batwatt.engine.events import Message, Reply, SimulationBegins
from batwatt.engine.protocol5 import text as protocol5
from batwatt.engine.protocol5.events import JSON_FLAG, Features
from batwatt.errors import IllegalDecisionError, InputError, PeerError, ProtocolError

POLL_MS = 100
LINGER_MS = 500
LAST_WORDS_S = 1.0
"""Greatest time in s in which a supervisor explains why the other side closed the connection."""

MOST_BYTES = 1 << 28
"""Most bytes of a frame; ZeroMQ closes the connection for a longer one before it is in memory."""

LENGTH = struct.Struct("<I")
"""Begin of the first frame under Batsim 5: the length of a text from Batsim; flags from the scheduler."""

_JOINED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_LEFT = zmq.EVENT_DISCONNECTED


class _Socket:
    """A ZeroMQ socket with a supervised receive; a context manager."""

    def __init__(self, kind: int, endpoint: str, bind: bool) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        self._monitor = self._socket.get_monitor_socket(_JOINED | _LEFT | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._peers: set[int] = set()
        self._greeted: set[int] = set()
        self._lost = False
        self._talking = False
        self._bind = bind
        try:
            if bind:
                self._socket.bind(endpoint)
            else:
                self._socket.connect(endpoint)
        except (zmq.ZMQError, ValueError) as error:
            self.close()
            verb = "listen on" if bind else "connect to"
            raise InputError(
                endpoint, f"cannot {verb} it ({error})", "give an endpoint such as tcp://127.0.0.1:28000"
            ) from None
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.disable_monitor()
        # term() waits for open sockets
        self._monitor.close(linger=0)
        self._socket.close()
        self._context.term()

    def _left(self) -> bool:
        """Return whether the other side has sent a message or connected, and its connection was closed since."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            if event["event"] & _JOINED:
                self._peers.add(event["value"])
            elif event["event"] & _LEFT:
                self._peers.discard(event["value"])
                # also if it connects again, as after a frame that is too long: that frame is lost
                self._lost |= event["value"] in self._greeted
            else:
                self._greeted |= self._peers
                self._talking |= not self._bind
        return self._talking and (self._lost or not self._peers)

    def _frames(self, timeout_ms: int) -> list[bytes] | None:
        """Return the frames received within `timeout_ms`; None without a message."""
        if self._socket.poll(timeout_ms):
            with suppress(zmq.Again):
                return self._socket.recv_multipart(zmq.NOBLOCK)
        return None

    def receive(self, patience_s: float | None, alive: Callable[[], str | None], who: str) -> bytes:
        """Wait for the next frame and return it.

        Raises PeerError when `alive()` reports a death, the other side has closed its connection, or no frame came for
        `patience_s` seconds.
        """
        limit = math.inf if patience_s is None else time.monotonic() + patience_s
        left_s: float | None = None
        while (frames := self._frames(POLL_MS)) is None:
            death, left = alive(), self._left()
            if (death or left) and (frames := self._frames(0)) is not None:
                break
            if death:
                raise PeerError(death)
            now_s = time.monotonic()
            left_s = (left_s or now_s) if left else None
            if left_s is not None and now_s - left_s >= LAST_WORDS_S:
                problem = f"closed the connection before the simulation was over, or sent more than {MOST_BYTES} bytes"
                raise PeerError(f"{who} {problem}")
            if now_s > limit:
                never = "" if self._talking else f" and never connected{f' to {self.endpoint}' if self._bind else ''}"
                never = f", after a closed connection (or more than {MOST_BYTES} bytes)" if self._lost else never
                raise PeerError(f"{who} has been silent for {patience_s:g} s{never}")
        frame, *others = frames
        # a connection without a frame (a readiness check) is not yet the other side of a listening socket
        self._talking = True
        if others:
            raise ProtocolError(f"{who} sent a message of {len(others) + 1} frames; a message is one")
        return bytes(frame)


def _decoded(frame: bytes, who: str) -> str:
    try:
        return frame.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError(f"{who} sent a frame that is not UTF-8 text") from None


def init_text(frame: bytes) -> str | None:
    """Return the text for the scheduler in the first frame of a Batsim 5; None for another frame."""
    if len(frame) < LENGTH.size or LENGTH.unpack_from(frame)[0] != len(frame) - LENGTH.size:
        return None
    return _decoded(frame[LENGTH.size :], "Batsim")


def _unsupervised() -> str | None:
    return None


class SchedulerSocket(_Socket):
    """The scheduler's side, which binds: the `Link` of a `Bs` to a Batsim 4, or to a Batsim 5 after `greet`."""

    def __init__(
        self,
        endpoint: str,
        patience_s: float | None = None,
        alive: Callable[[], str | None] = _unsupervised,
        protocol: int | None = None,
    ) -> None:
        """Listen on `endpoint`; `protocol` is the only accepted one, None: 4 or 5."""
        super().__init__(zmq.REP, endpoint, bind=True)
        self._patience_s = patience_s
        self._protocol = protocol
        self._first: bytes | None = None
        self._dialect: Dialect | None = None
        self._begun = False
        self.alive = alive

    def begin(self) -> str | None:
        """Wait for a Batsim; return the text for the scheduler of a Batsim 5, which needs `greet`, None for a 4."""
        frame = self.receive(self._patience_s, self.alive, "Batsim")
        init = init_text(frame)
        version = 4 if init is None else 5
        if self._protocol not in (None, version):
            raise ProtocolError(f"a Batsim {version} has connected, but the protocol is to be that of {self._protocol}")
        if init is None:
            self._first = frame
        return init

    def greet(self, dialect: Dialect) -> None:
        """Answer the first frame of a Batsim 5."""
        self._dialect = dialect
        self._socket.send(LENGTH.pack(JSON_FLAG) + dialect.hello().encode())

    def message(self) -> Message:
        """Wait for Batsim's next message."""
        frame, self._first = self._first, None
        if frame is None:
            frame = self.receive(self._patience_s, self.alive, "Batsim")
        text = _decoded(frame, "Batsim")
        message = self._dialect.message(text) if self._dialect else read_message(text)
        if not self._begun and not (message.events and isinstance(message.events[0], SimulationBegins)):
            raise ProtocolError("the first event of Batsim must be SIMULATION_BEGINS")
        self._begun = True
        return message

    def reply(self, reply: Reply) -> None:
        """Answer the last message of Batsim."""
        self._socket.send((self._dialect.reply(reply) if self._dialect else write_reply(reply)).encode())


class EngineSocket(_Socket):
    """Batsim's side, which connects to the scheduler."""

    def __init__(self, endpoint: str, patience_s: float | None = None) -> None:
        super().__init__(zmq.REQ, endpoint, bind=False)
        self._patience_s = patience_s
        self._who = f"the scheduler at {self.endpoint}"

    def _answer(self, data: bytes) -> bytes:
        self._socket.send(data)
        return self.receive(self._patience_s, _unsupervised, self._who)

    def ask(self, message: Message) -> Reply:
        """Send a message and return its reply. Raises PeerError."""
        return read_reply(_decoded(self._answer(write_message(message).encode()), self._who))


class EngineSocket5(EngineSocket):
    """Batsim 5's side, which begins with a hello. Raises IllegalDecisionError where Batsim 5 aborts."""

    def _answer(self, data: bytes) -> bytes:
        try:
            return super()._answer(data)
        except ProtocolError as error:
            raise IllegalDecisionError("answer", str(error)) from None

    def hello(self, init: str) -> Features:
        """Send the init text; return the features that the scheduler requests."""
        try:
            data = init.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InputError("the text for the scheduler", "has half a character", "write it as UTF-8") from None
        return protocol5.read_hello(self._answer(LENGTH.pack(len(data)) + data))

    def ask(self, message: Message) -> Reply:
        """Send a message and return its reply. Raises PeerError."""
        return protocol5.read_reply(self._answer(protocol5.write_message(message).encode()))
