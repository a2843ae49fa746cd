"""A supervised process with a real Batsim or with our engine as Batsim."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from batsim.batsim import BatsimScheduler

from batwatt.engine.batsim5 import Dialect
from batwatt.engine.bs import Bs, Link
from batwatt.engine.wire import SchedulerSocket
from batwatt.errors import DeadlockError, InputError, PeerError

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
