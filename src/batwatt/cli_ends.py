"""How a command ends: what goes wrong becomes one line on stderr and an exit code, signals end it in order."""

from __future__ import annotations

import logging
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from batwatt.errors import BatwattError
from batwatt.repeats import Repeats


def exit_code_of(command: Callable[[], Any]) -> int:
    """Carry out a command and return the exit code: 0, 1 the run failed, 2 bad input, 128 + n ended by signal n."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a file name or a line that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    with _signals() as caught:
        code = _guarded(command)
        _tell_warnings()
        if caught:
            # whatever another library made of the interrupt
            code = _complain(f"ended by {signal.Signals(caught[-1]).name}", None, 128 + caught[-1])
    return code


class _Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Warnings(logging.StreamHandler[Any]):
    """One line a message, on what is stderr at that time (a progress bar may stand in front of it).

    Warnings wait for the end of the command: there may be thousands of a kind, which then make one line with a count.
    """

    def __init__(self) -> None:
        super().__init__()
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or keep it."""
        if record.levelno == logging.WARNING:
            self._repeats.add(record)
            return
        self.stream = sys.stderr
        super().emit(record)

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
def _signals() -> Iterator[list[int]]:
    """Within, a signal that ends the process ends it in order: children stopped, temporary files removed."""
    caught: list[int] = []

    def stop(number: int, _: object) -> None:
        caught.append(number)
        raise _Stopped(number)

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    try:
        for number in wanted:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, stop)
    except ValueError:
        pass  # not the main thread, which alone may do this
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _guarded(command: Callable[[], Any]) -> int:
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except BatwattError as error:
        return _complain(str(error), error, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _complain(f"{what}; check the path and the disk", error, 1)
    except Exception as error:
        # typer may carry a click of its own, so a usage error is known by what it can do
        if hasattr(error, "format_message"):
            return _usage(error)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        return _complain(f"internal error, please report it: {what}; `batwatt -v ...` shows the traceback", error, 1)


def _complain(text: str, error: BaseException | None, code: int) -> int:
    _tell_warnings()
    if error is not None and logging.getLogger().isEnabledFor(logging.INFO):
        traceback.print_exception(error)
    print("batwatt: " + " ".join(text.split()), file=sys.stderr)
    return code


def _usage(error: Any) -> int:
    text, context = error.format_message(), getattr(error, "ctx", None)
    if not text or type(error).__name__ == "NoArgsIsHelpError":
        print(text, end="")
        return 2
    path = context.command_path if context is not None else "batwatt"
    return _complain(f"{text.rstrip('.')}; see `{path} --help`", None, int(getattr(error, "exit_code", 2)))
