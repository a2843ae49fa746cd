"""Every error that batwatt raises on purpose: one line with the thing, the bound, the value and a hint."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LISTED = 30
"""Most known names that an error lists."""
LONGEST = 490
"""Characters of the longest message: with a prefix such as "batwatt: " no line has more than 500."""
LONG_WORD = 120
"""Characters that remain of a long word, such as the name of a job, in a message that is too long."""


def printable(text: object) -> str:
    """Return a text for a terminal: control characters, and those that turn the writing, as in `\\x1b`."""
    content = str(text)
    return content if content.isprintable() else "".join(map(_visible, content))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def message(text: object) -> str:
    """Return a text in one printable line of up to `LONGEST` characters; a longer one has a note in its middle."""
    line = " ".join(printable(" ".join(str(text).split())).split())
    if len(line) > LONGEST:
        line = re.sub(rf"\S{{{LONG_WORD + 1},}}", lambda word: _ends(word[0], LONG_WORD), line)
    return _ends(line, LONGEST)


def _ends(text: str, length: int) -> str:
    """Return the beginning and the end of a text, with the number of characters between them."""
    if len(text) <= length:
        return text
    size = length - len(f"[...{len(text)} characters...]")
    return f"{text[: size - size // 2]}[...{len(text) - size} characters...]{text[len(text) - size // 2 :]}"


def _in_python(name: str, value: object) -> str:
    return name if value is None else f"{name}={value}"


spelling: ContextVar[Callable[[str, object], str]] = ContextVar("spelling", default=_in_python)
"""Function of the name of an argument and its value (None: without one) -> as the present user writes it."""


def argument(name: str, value: object = None) -> str:
    """Return an argument as its user writes it: `long_s` or `long_s=60` in Python, `--long 60` in a shell."""
    return spelling.get()(name, value)


class BatwattError(Exception):
    """Base of all errors meant for the user; the CLI prints the message and exits with `exit_code`."""

    exit_code = 1
    outlasts_signals = False
    """True if the exit code holds also for a process that a signal has ended."""

    def __init__(self, text: object) -> None:
        super().__init__(message(text))

    def __reduce__(self) -> tuple[object, ...]:
        """Return the parts of the error for another process, whatever its arguments are."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[BatwattError], args: tuple[object, ...], state: dict[str, object]) -> BatwattError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InputError(BatwattError):
    """A file, an option or a message is malformed."""

    exit_code = 2

    def __init__(self, where: object, problem: str, hint: str = "") -> None:
        text = f"{where}: {problem}"
        if hint:
            text += f"; {hint}"
        super().__init__(text)


class UnknownNameError(InputError):
    """A name is not among the known ones; the message proposes the nearest."""

    def __init__(self, where: object, kind: str, name: object, names: Iterable[str], hint: str) -> None:
        names = sorted(names)
        near = difflib.get_close_matches(str(name), names, n=1)
        some = ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "")
        guess = f" did you mean {near[0]!r}?" if near else f" known: {some}."
        super().__init__(where, f"no {kind} {name!r};{guess} {hint}")


class MissingExtraError(InputError, ImportError):
    """A library is missing that a plain installation does not have."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Let the block import libraries of the extra `name` of `setup.cfg`. Raises MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        problem = f"the library {str(error.name).partition('.')[0]!r} is not installed"
        raise MissingExtraError(f"batwatt[{name}]", problem, to_install(name)) from None


def to_install(name: str) -> str:
    """Return the command that installs an extra. No package index has batwatt."""
    return f"pip install -e '.[{name}]' in the clone of batwatt"


@contextmanager
def errors_of(where: object) -> Iterator[None]:
    """Put the name of a place before the text of an InputError that is raised in the block."""
    try:
        yield
    except InputError as error:
        raise InputError(where, str(error)) from None


class UnsupportedError(InputError):
    """The input is valid for Batsim but is not modelled by the embedded engine."""


class IllegalDecisionError(BatwattError):
    """A decision of the scheduler that aborts Batsim; the message has the decision and the reason."""

    def __init__(self, decision: str, why: str) -> None:
        super().__init__(f"illegal decision {decision}: {why}")
        self.decision = decision
        self.why = why


class ProtocolError(BatwattError):
    """A message that the Batsim protocol does not allow."""

    exit_code = 2


class DeadlockError(BatwattError):
    """No event can happen any more, but jobs are left."""


class PeerError(BatwattError):
    """The other process of a run died or went silent."""


_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collected_remarks() -> Iterator[list[str]]:
    """Yield a list of the remarks on inputs that the block reads, each once."""
    remarks: list[str] = []
    token = _collected.set(remarks)
    try:
        yield remarks
    finally:
        _collected.reset(token)


def remark(log: logging.Logger, text: str, *values: object) -> None:
    """Warn, and collect the warning."""
    log.warning(text, *values)
    collect(text % values)


def tell_before_work() -> None:
    """Write the warnings about inputs, which handlers keep for the end, before the work."""
    for handler in logging.getLogger().handlers:
        tell = getattr(handler, "tell", None)
        if callable(tell):
            tell()


def collect(text: str) -> None:
    """Add a remark to the list if remarks are collected."""
    remarks = _collected.get()
    if remarks is not None and text not in remarks:
        remarks.append(text)
