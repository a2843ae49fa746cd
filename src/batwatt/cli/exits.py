"""How a command ends: what goes wrong becomes one line on stderr and an exit code, signals end it in order."""

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
"""Signals that come within such a time of each other interrupt once."""
AGAIN_S = 0.05
"""How long until a signal that was lost is sent again."""


def exit_code_of(command: Callable[[], Any]) -> int:
    """Carry out a command and return the exit code: 0, 1 the run failed, 2 bad input, 128 + n ended by signal n."""
    _open_streams()
    if sys.stdout is None:
        return _complain("stdout is closed; redirect it, to /dev/null if nobody reads it", None, 2)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a file name or a line that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    with _signals() as signals, _warnings():
        code = 130
        try:
            code = _guarded(command)
            _tell_warnings()
            signals.closed = True
        except KeyboardInterrupt:
            # it came while an error was printed
            signals.closed = True
        if signals.caught:
            # whatever another library made of the interrupt
            number = signals.caught[-1]
            code = _complain(f"ended by {signal.Signals(number).name}", None, 128 + number)
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, Warnings)]:
        # what is logged after the command is not its own
        root.removeHandler(handler)
    return code


def _open_streams() -> None:
    """Keep the numbers of closed standard streams from files that are opened later; nobody reads a closed stderr."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextmanager
def _warnings() -> Iterator[None]:
    """Within, what Python and libraries warn of is one line, too."""

    def line_of(text: object, category: type[Warning], *_: object) -> str:
        return f"WARNING: {message(f'{category.__name__}: {text}')}\n"

    before, warnings.formatwarning = warnings.formatwarning, line_of  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = before


class _Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""


class _Signals:
    """The signals that asked this process to end; each interrupts it until it is `closed`."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self.closed = False
        self._last_s = -math.inf
        self._unraisable = sys.unraisablehook

    def stop(self, number: int, _: object) -> None:
        """Interrupt what goes on, but not its cleaning up: several signals often come together."""
        self.caught.append(number)
        now_s, before_s = time.monotonic(), self._last_s
        self._last_s = now_s
        if not self.closed and now_s - before_s >= TOGETHER_S:
            raise _Stopped

    def unraisable(self, lost: Any) -> None:
        """Where an interrupt came in a destructor or a callback, which let no exception through: send it again."""
        if not isinstance(lost.exc_value, _Stopped):
            self._unraisable(lost)
            return
        self._last_s = -math.inf
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), self.caught[-1])).start()


class Warnings(logging.StreamHandler[Any]):
    """One line a message, on what is stderr at that time (a progress bar may stand in front of it).

    Warnings wait until inputs are read, then for the end of the command: there may be thousands of a kind, which make
    one line with a count. The same message is written once.
    """

    def __init__(self) -> None:
        from batwatt.run.repeats import Repeats

        super().__init__()
        self._repeats = Repeats()
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or keep it."""
        if record.levelno == logging.WARNING:
            text = record.getMessage()
            if text not in self._seen:
                self._seen.add(text)
                self._repeats.add(record)
            return
        self.stream = sys.stderr
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The line of a message."""
        return message(super().format(record))

    def tell(self) -> None:
        """Write what was kept."""
        self.stream = sys.stderr
        for record, line in self._repeats.take():
            record.msg, record.args = line, ()
            super().emit(record)


def _tell_warnings() -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, Warnings):
            handler.tell()


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Within, a signal that ends the process ends it in order: children stopped, temporary files removed."""
    signals = _Signals()
    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    hook, sys.unraisablehook = sys.unraisablehook, signals.unraisable
    try:
        for number in wanted:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, signals.stop)
    except ValueError:
        pass  # not the main thread, which alone may do this
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def _guarded(command: Callable[[], Any]) -> int:
    try:
        code = command()
        # what is wrong with stdout is said now, not when Python ends
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        # so typer ends where nobody reads stdout any more
        if isinstance(end.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except BatwattError as error:
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
        # typer may carry a click of its own, so a usage error is known by what it can do
        if hasattr(error, "format_message"):
            return _usage(error)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        return _complain(f"internal error, please report it: {what}; `batwatt -v ...` shows the traceback", error, 1)


def _closed_pipe() -> int:
    """Return the code of a reader that has seen enough, as `head` has."""
    _drop_stdout()
    return 128 + signal.SIGPIPE


def _drop_stdout() -> None:
    """Write nothing more to stdout, not even what Python holds back until it ends."""
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
