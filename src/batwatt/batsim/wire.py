"""Batsim's protocols on the wire, the sockets of both sides, and a supervised process with Batsim.

Batsim's side is a REQ socket that connects, the scheduler's side a REP socket that binds; a frame is one JSON text. The
first frame of Batsim 5 is the length of a text for the scheduler (u32), and that text.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import signal
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import zmq
from batsim.batsim import BatsimScheduler
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from batwatt.batsim.batsim4 import read_message, read_reply, write_message, write_reply
from batwatt.batsim.batsim5 import Dialect
from batwatt.batsim.bs import Bs, Link
from batwatt.batsim.events import Message, Reply, SimulationBegins
from batwatt.errors import DeadlockError, InputError, PeerError, ProtocolError

POLL_MS = 100
LINGER_MS = 500
LAST_WORDS_S = 1.0
"""Greatest time in s in which a supervisor explains why the other side closed the connection."""

MOST_BYTES = 1 << 28
"""Most bytes of a frame; ZeroMQ closes the connection for a longer one before it is in memory."""

LENGTH = struct.Struct("<I")
"""Begin of the first frame under Batsim 5: the length of a text from Batsim; flags from the scheduler."""
JSON_FLAG = 2
"""Flag of the answer to that frame: messages are JSON."""

_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
_JOINED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_LEFT = zmq.EVENT_DISCONNECTED


class _Socket:
    """A ZeroMQ socket with a supervised receive; a context manager."""

    def __init__(self, kind: int, endpoint: str, bind: bool, token: str | None = None) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        if token is not None:
            self._encrypt(token, bind)
        self._monitor = self._socket.get_monitor_socket(_JOINED | _LEFT | _REFUSED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._peers: set[int] = set()
        self._greeted: set[int] = set()
        self._lost = False
        self._refused = False
        self._talking = False
        self._bind = bind
        try:
            if bind:
                if endpoint.startswith("ipc://") and not endpoint.startswith("ipc://@"):
                    # a user that may enter the folder may play the scheduler
                    Path(endpoint.removeprefix("ipc://")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._socket.bind(endpoint)
            else:
                self._socket.connect(endpoint)
        except (zmq.ZMQError, ValueError, OSError) as error:
            self.close()
            verb = "listen on" if bind else "connect to"
            raise InputError(
                endpoint, f"cannot {verb} it ({error})", "give an endpoint such as tcp://127.0.0.1:28000"
            ) from None
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _encrypt(self, token: str, bind: bool) -> None:
        """Set the keys of CURVE: that of the side that binds is made from the token, which so proves that it has it."""
        secret = z85.encode(hashlib.sha256(b"batwatt scheduler " + token.encode()).digest())
        if bind:
            self._socket.curve_server = True
            self._socket.curve_secretkey, self._socket.curve_publickey = secret, zmq.curve_public(secret)
        else:
            self._socket.curve_serverkey = zmq.curve_public(secret)
            self._socket.curve_publickey, self._socket.curve_secretkey = zmq.curve_keypair()

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
            elif event["event"] & _REFUSED:
                self._refused = True
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
            if self._refused and not self._bind:
                raise PeerError(f"{who} has another token, or none")
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
        token: str | None = None,
    ) -> None:
        """Listen on `endpoint`; `protocol` is the only accepted one, None: 4 or 5; `token`: secret of both sides."""
        super().__init__(zmq.REP, endpoint, bind=True, token=token)
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
    """Batsim's side, which connects to the scheduler; `token`: secret that the scheduler has to have."""

    def __init__(self, endpoint: str, patience_s: float | None = None, token: str | None = None) -> None:
        super().__init__(zmq.REQ, endpoint, bind=False, token=token)
        self._patience_s = patience_s
        self._who = f"the scheduler at {self.endpoint}"

    def ask(self, message: Message) -> Reply:
        """Send a message and return its reply. Raises PeerError."""
        self._socket.send(write_message(message).encode())
        return read_reply(_decoded(self.receive(self._patience_s, _unsupervised, self._who), self._who))

    def tell(self, message: Message) -> None:
        """Send a last message and wait for no reply; nothing where a reply is due."""
        with suppress(zmq.ZMQError):
            self._socket.send(write_message(message).encode(), zmq.NOBLOCK)


def own_endpoint(endpoint: str, folder: Path, token: str | None, *, loopback: bool, commands: bool) -> str:
    """Return the endpoint of a scheduler, by default in `folder`, at which no stranger can take its place.

    `loopback`: allow one of this machine without a token, unless this is root and the scheduler `commands` Slurm.
    Raises InputError.
    """
    if not endpoint:
        folder = folder.absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
            raise InputError(folder, "is not a folder of this user alone", "remove it")
        return f"ipc://{folder}/scheduler"
    host = endpoint.removeprefix("tcp://").rpartition(":")[0]
    if endpoint.startswith("tcp://") and host not in ("127.0.0.1", "localhost", "[::1]"):
        raise InputError("--socket", f"{host} is not this machine", "give ipc://FILE or tcp://127.0.0.1:PORT")
    # names that begin with @ are in no file system
    if endpoint.startswith(("tcp://", "ipc://@")) and token is None:
        as_root = commands and os.geteuid() == 0
        if as_root or not loopback:
            problem = f"any user can listen on {endpoint}, and would command this process"
            hint = f"give ipc://FILE, or --token-file as to `batwatt serve`{'' if as_root else ', or --insecure-tcp'}"
            raise InputError("--socket", problem, hint)
    return endpoint


GRACE_S = 5.0
"""Greatest time in s between the end signal to a process and its kill."""
VERSION_S = 5.0
"""Greatest time in s in which Batsim prints its version; a slower one is taken for a Batsim 4."""
_VERSION = re.compile(r"v?(\d+)\.\d[\w.+-]*")
CLOSING_S = 60.0
"""Greatest time in s in which Batsim writes its files after the end of the simulation."""
_DEADLOCK = re.compile(rb"[Dd]eadlock|nothing can happen any more")
"""Words of SimGrid, or of our engine, where jobs are left and nothing can happen any more."""
KEPT_BYTES = 1 << 16
"""Number of last bytes of a process's output that are stored."""
GUARD = f"""
read -r group || exit
cat > /dev/null
kill -TERM -$group
kill -CONT -$group
sleep {GRACE_S:g}
kill -KILL -$group
"""
"""Shell script that reads a group of processes, and ends it at the end of its input, when the writing process ends."""


class Child:
    """A supervised process and its children; the end of its output explains its death."""

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.name = name
        self._tail = b""
        # started first, so that the other process is always guarded
        self._guard = subprocess.Popen(
            ("/bin/sh", "-c", GUARD),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            # a group of its own: a wrapper script is ended together with its children
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._dismiss()
            problem = f"cannot be started ({error.strerror})"
            raise InputError(command[0], problem, "install it or give the path of an executable") from None
        assert self._guard.stdin is not None
        self._guard.stdin.write(b"%d\n" % self._process.pid)
        self._guard.stdin.flush()
        self._reader = threading.Thread(target=self._read, name=f"output of {name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None
        with contextlib.suppress(OSError, ValueError):
            while block := output.read1(1 << 16):  # type: ignore[attr-defined]
                self._tail = (self._tail + block)[-KEPT_BYTES:]

    def death(self) -> str | None:
        """Return the cause of the end of the process, None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        last = self.last_lines()
        return f"{self.name} {how} before the simulation was over" + (f": {last}" if last else "")

    @property
    def deadlocked(self) -> bool:
        """True if the process has ended as jobs were left and nothing could happen any more."""
        if self._process.poll() is None:
            return False
        self._reader.join(1.0)
        return _DEADLOCK.search(self._tail) is not None

    def last_lines(self) -> str:
        """Return the line of its output that most likely states the error."""
        if self._process.poll() is not None:
            self._reader.join(1.0)
        text = "".join(c if c.isprintable() or c == "\n" else " " for c in self._tail.decode("utf-8", "replace"))
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        ours = [line.removeprefix("batwatt: ") for line in lines if line.startswith("batwatt: ")]
        telling = [line for line in lines if "CRITICAL" in line or "rror" in line or "usage" in line.lower()]
        return (ours or telling or lines or [""])[-1][:500]

    def output(self, limit_s: float) -> str:
        """Wait for its end, at most `limit_s` s, and return the end of its output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)
            self._reader.join(1.0)
        return self._tail.decode("utf-8", "replace")

    def finish(self) -> None:
        """Wait for the end of the process after the simulation. Raises PeerError if it fails."""
        try:
            code = self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            raise PeerError(f"{self.name} did not end within {CLOSING_S:g} s of the end of the simulation") from None
        if code:
            how = f"was ended by {_signal_name(-code)}" if code < 0 else f"failed with exit code {code}"
            last = self.last_lines()
            raise PeerError(f"{self.name} {how} after the simulation" + (f": {last}" if last else ""))

    def stop(self) -> None:
        """End the process and its children, if they still run."""
        self._signal(signal.SIGTERM)
        # a stopped process handles signals only after it continues
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._dismiss()
        self._reader.join(1.0)

    def _dismiss(self) -> None:
        self._guard.kill()
        self._guard.communicate()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _child(command: Sequence[str], name: str) -> Iterator[Child]:
    child = Child(command, name)
    try:
        yield child
    finally:
        child.stop()


def drive(
    scheduler: BatsimScheduler,
    command: Callable[[str], Sequence[str]],
    name: str,
    patience_s: float | None,
    watch: Callable[[Link], Link] = lambda link: link,
    dialect: Dialect | None = None,
) -> None:
    """Run a scheduler against the process that `command(endpoint)` starts, a Batsim 5 if `dialect` is not None.

    `patience_s` is the greatest silence of that process in s, None for no bound. `watch` may wrap the link (progress).
    If either side dies or is silent the other is ended. Raises PeerError, or DeadlockError if jobs are left.
    """
    with (
        SchedulerSocket("tcp://127.0.0.1:*", patience_s, protocol=5 if dialect else 4) as socket,
        _child(command(socket.endpoint), name) as child,
    ):
        socket.alive = child.death
        socket.begin()
        if dialect is not None:
            socket.greet(dialect)
        try:
            Bs(scheduler, watch(socket)).start()
        except PeerError as error:
            if child.deadlocked:
                raise DeadlockError(str(error)) from None
            raise
        child.finish()


def batsim_version(batsim: str) -> tuple[str, int]:
    """Return the version of `batsim --version`, its last such line, and the major number; 4 without a version."""
    with _child((batsim, "--version"), "Batsim") as child:
        lines = [line.strip() for line in child.output(VERSION_S).splitlines()]
    version = next((match for line in reversed(lines) if (match := _VERSION.fullmatch(line))), None)
    return (version[0], int(version[1])) if version else ("", 4)


def batsim_command(
    program: Sequence[str],
    platform: Path,
    workloads: Sequence[Path],
    prefix: str,
    events: Path | None,
    args: Sequence[str],
    protocol: int = 4,
) -> Callable[[str], list[str]]:
    """Return the command line of a real Batsim, 4 or 5, as a function of the scheduler's endpoint."""

    def command(endpoint: str) -> list[str]:
        # the text for the scheduler is empty: batwatt sets its options
        line: list[Any] = [*program, "-p", platform, "-s", endpoint, *([""] if protocol == 5 else []), "-e", prefix]
        for workload in workloads:
            line += ["-w", workload]
        if events is not None:
            line += ["--external-events" if protocol == 5 else "--events", events]
        return [str(word) for word in (*line, *args)]

    return command
