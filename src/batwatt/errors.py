"""Every error that batwatt raises on purpose: one line, naming the thing, the bound, the value and the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LISTED = 30
"""How many known names an error lists at most."""
LONGEST = 490
"""Characters of the longest message: no line has more than 500 with what stands before it, such as "batwatt: "."""
LONG_WORD = 120
"""Characters that remain of a word, such as the name of a job, in a message that would be longer."""


def printable(text: object) -> str:
    """A text as a terminal may show it: control characters, and those that turn the writing, as in `\\x1b`."""
    shown = str(text)
    return shown if shown.isprintable() else "".join(map(_visible, shown))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def message(text: object) -> str:
    """A text in one printable line of `LONGEST` characters; what is too long lacks its middle, and says so."""
    line = " ".join(printable(" ".join(str(text).split())).split())
    if len(line) > LONGEST:
        line = re.sub(rf"\S{{{LONG_WORD + 1},}}", lambda word: _ends(word[0], LONG_WORD), line)
    return _ends(line, LONGEST)


def _ends(text: str, length: int) -> str:
    """The beginning and the end of a text, with the number of characters between them."""
    if len(text) <= length:
        return text
    kept = length - len(f"[...{len(text)} characters...]")
    return f"{text[: kept - kept // 2]}[...{len(text) - kept} characters...]{text[len(text) - kept // 2 :]}"


class BatwattError(Exception):
    """Base of all errors meant for the user; the CLI prints the message and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, text: object) -> None:
        super().__init__(message(text))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors go from one process to another, whatever they are built of."""
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

    def __init__(self, where: object, kind: str, name: object, known: Iterable[str], hint: str) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=1)
        some = ", ".join(known[:LISTED]) + (", ..." if len(known) > LISTED else "")
        guess = f" did you mean {near[0]!r}?" if near else f" known: {some}."
        super().__init__(where, f"no {kind} {name!r};{guess} {hint}")


class MissingExtraError(InputError, ImportError):
    """What was asked for needs a library that a plain installation does without."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import in it what the extra `name` of `setup.cfg` installs. Raises MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        problem = f"the library {str(error.name).partition('.')[0]!r} is not installed"
        raise MissingExtraError(f"batwatt[{name}]", problem, to_install(name)) from None


def to_install(name: str) -> str:
    """The command that installs an extra. No package index has batwatt."""
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
    """The scheduler asked for something that aborts Batsim; says which decision and why."""

    def __init__(self, decision: str, why: str) -> None:
        super().__init__(f"illegal decision {decision}: {why}")
        self.decision = decision
        self.why = why


class ProtocolError(BatwattError):
    """A message is not what the Batsim protocol allows."""

    exit_code = 2


class DeadlockError(BatwattError):
    """Nothing can happen any more but jobs are left."""


class PeerError(BatwattError):
    """The other process of a run died or went silent."""
