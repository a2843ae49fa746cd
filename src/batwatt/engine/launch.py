"""Playing Batsim in another process, a real Batsim or our engine, and watching over it."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from batsim.batsim import BatsimScheduler

from batwatt.engine.bs import Bs, Link
from batwatt.engine.wire import SchedulerSocket
from batwatt.errors import InputError, PeerError

GRACE_S = 5.0
"""How long an ended process may take to go before it is killed."""
CLOSING_S = 60.0
"""How long Batsim may take to write its files after the end of the simulation."""
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """In the child: end when the parent dies, however it dies (Linux; elsewhere a no-op)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A supervised process; its errors go to a temporary file of which the last line explains a death."""

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile(mode="w+b")  # noqa: SIM115 (it lives as long as the process)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, preexec_fn=_die_with_parent
            )
        except OSError as error:
            self._log.close()
            raise InputError(
                command[0], f"cannot be started ({error.strerror})", "install it or give its path"
            ) from None

    def death(self) -> str | None:
        """Why the process is no more, None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        last = self.last_words()
        return f"{self.name} {how} before the simulation was over" + (f": {last}" if last else "")

    def last_words(self) -> str:
        """The line of its output that most likely says what was wrong."""
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if "CRITICAL" in line or "rror" in line or "usage" in line.lower()]
        return (telling or lines or [""])[-1][:500]

    def finish(self) -> None:
        """Wait for a good end after the simulation; PeerError if it was none."""
        try:
            code = self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            raise PeerError(f"{self.name} did not end within {CLOSING_S:g} s of the end of the simulation") from None
        if code:
            raise PeerError(f"{self.name} failed after the simulation (exit code {code}): {self.last_words()}")

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()


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
) -> None:
    """Run a scheduler against the process that `command(endpoint)` starts.

    `patience_s`: how long that process may be silent, None for ever. `watch` may wrap the link (progress). If either
    side dies or falls silent the other is ended; raises PeerError.
    """
    with (
        SchedulerSocket("tcp://127.0.0.1:*", first_s=patience_s, patience_s=patience_s) as socket,
        _child(command(socket.endpoint), name) as child,
    ):
        socket.alive = child.death
        Bs(scheduler, watch(socket)).start()
        child.finish()


def listen(scheduler: BatsimScheduler, endpoint: str, patience_s: float | None, ready: Callable[[str], None]) -> None:
    """Serve one simulation of a Batsim that somebody else starts; `ready(endpoint)` once it can connect."""
    with SchedulerSocket(endpoint, first_s=None, patience_s=patience_s) as socket:
        ready(socket.endpoint)
        Bs(scheduler, socket).start()


def batsim_command(
    batsim: str, platform: Path, workloads: Sequence[Path], prefix: Path, events: Path | None, args: Sequence[str]
) -> Callable[[str], list[str]]:
    """Command line of a real Batsim as a function of the scheduler's endpoint."""

    def command(endpoint: str) -> list[str]:
        line: list[Any] = [batsim, "-p", platform, "-s", endpoint, "-e", prefix]
        for workload in workloads:
            line += ["-w", workload]
        if events is not None:
            line += ["--events", events]
        return [str(word) for word in (*line, *args)]

    return command
