"""End of a command: an error becomes one line on stderr and an exit code, a signal ends the command in order."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from batwatt.errors import BatwattError, message, printable

TOGETHER_S = 0.5
"""Time in s within which several signals interrupt once."""
AGAIN_S = 0.05
"""Delay in s until a lost signal is sent again."""


def exit_code_of(command: Callable[[], Any]) -> int:
    """Carry out a command and return the exit code: 0, 1 the run failed, 2 bad input, 128 + n ended by signal n."""
    _open_streams()
    if sys.stdout is None:
        return _complain("stdout is closed; redirect it, for instance to /dev/null", None, 2)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a file name or a line that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    with _signals() as signals, _warnings():
        code = 130
        try:
            code = _guarded(command, signals)
            _tell_warnings()
            signals.closed = True
        except KeyboardInterrupt:
            # the interrupt came while an error was printed
            signals.closed = True
        if signals.caught:
            # also if a library has turned the interrupt into another error
            number = signals.caught[-1]
            code = _complain(f"ended by {signal.Signals(number).name}", None, 128 + number)
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, Warnings)]:
        # later messages are not those of the command
        root.removeHandler(handler)
    return code


def _open_streams() -> None:
    """Keep the numbers of closed standard streams from files that are opened later; discard output to such a stderr."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextmanager
def _warnings() -> Iterator[None]:
    """Print a warning of Python or of a library as one line while the block lasts."""

    def line_of(text: object, category: type[Warning], *_: object) -> str:
        return f"WARNING: {message(f'{category.__name__}: {text}')}\n"

    before, warnings.formatwarning = warnings.formatwarning, line_of  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = before


class _Stopped(KeyboardInterrupt):
    """Interrupt by a signal that ends this process."""


class _Signals:
    """Signals that end this process; each interrupts it until `closed`."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self.closed = False
        self._last_s = -math.inf
        self._unraisable = sys.unraisablehook

    def stop(self, number: int, _: object) -> None:
        """Interrupt the command, but not its cleaning up: several signals often come together."""
        self.caught.append(number)
        now_s, before_s = time.monotonic(), self._last_s
        self._last_s = now_s
        if not self.closed and now_s - before_s >= TOGETHER_S:
            raise _Stopped

    def unraisable(self, lost: Any) -> None:
        """Send an interrupt again that a destructor or a callback has lost, which let no exception through."""
        if not isinstance(lost.exc_value, _Stopped):
            self._unraisable(lost)
            return
        self._last_s = -math.inf
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), self.caught[-1])).start()


class Warnings(logging.StreamHandler[Any]):
    """Handler that writes one line a message, to stderr as it is then (a progress bar may replace it).

    Warnings wait until inputs are read, then for the end of the command: thousands of a kind become one line with a
    count. A repeated message is written once.
    """

    def __init__(self) -> None:
        from batwatt.run.repeats import Repeats

        super().__init__()
        self._repeats = Repeats()
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or keep a warning for `tell`."""
        if record.levelno == logging.WARNING:
            text = record.getMessage()
            if text not in self._seen:
                self._seen.add(text)
                self._repeats.emit(record)
            return
        self.stream = sys.stderr
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a message."""
        return message(super().format(record))

    def tell(self) -> None:
        """Write the warnings that `emit` has kept."""
        self.stream = sys.stderr
        for record, line in self._repeats.drain():
            record.msg, record.args = line, ()
            super().emit(record)


def _tell_warnings() -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, Warnings):
            handler.tell()


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Let a signal end the process in order while the block lasts: children stopped, temporary files removed."""
    signals = _Signals()
    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    hook, sys.unraisablehook = sys.unraisablehook, signals.unraisable
    try:
        for number in wanted:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, signals.stop)
    except ValueError:
        pass  # only the main thread may set handlers
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def _guarded(command: Callable[[], Any], signals: _Signals) -> int:
    try:
        code = command()
        # report an error of stdout now, not when Python ends
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        # typer ends so if stdout has lost its reader
        if isinstance(end.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except BatwattError as error:
        if error.outlasts_signals:
            signals.caught.clear()
        return _complain(str(error), error, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            return _closed_pipe()
        if error.filename is None:
            _drop_stdout()
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _complain(f"{what}; check the path and the disk", error, 1)
    except Exception as error:
        # typer may carry a click of its own, so the method identifies a usage error
        if hasattr(error, "format_message"):
            return _usage(error)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        return _complain(f"internal error, please report it: {what}; `batwatt -v ...` shows the traceback", error, 1)


def _closed_pipe() -> int:
    """Return the exit code for a pipe whose reader has ended, as `head` does."""
    _drop_stdout()
    return 128 + signal.SIGPIPE


def _drop_stdout() -> None:
    """Discard all further output to stdout, also that in Python's buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, error: BaseException | None, code: int) -> int:
    _tell_warnings()
    if error is not None and logging.getLogger().isEnabledFor(logging.INFO):
        for line in "".join(traceback.format_exception(error)).splitlines():
            print(printable(line), file=sys.stderr)
    print(f"batwatt: {message(text)}", file=sys.stderr)
    return code


def _usage(error: Any) -> int:
    text, context = error.format_message(), getattr(error, "ctx", None)
    if not text or type(error).__name__ == "NoArgsIsHelpError":
        print(text, end="")
        return 2
    path = context.command_path if context is not None else "batwatt"
    return _complain(f"{text.rstrip('.')}; see `{path} --help`", None, int(getattr(error, "exit_code", 2)))
