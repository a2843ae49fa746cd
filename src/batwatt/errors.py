"""Every error that batwatt raises on purpose: one line, naming the thing, the bound, the value and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 30
"""How many known names an error lists at most."""


class BatwattError(Exception):
    """Base of all errors meant for the user; the CLI prints the message and exits with `exit_code`."""

    exit_code = 1


class InputError(BatwattError):
    """A file, an option or a message is malformed."""

    exit_code = 2

    def __init__(self, where: object, problem: str, hint: str = "") -> None:
        text = f"{where}: {problem}"
        if hint:
            text += f"; {hint}"
        super().__init__(" ".join(text.split()))


class UnknownNameError(InputError):
    """A name is not among the known ones; the message proposes the nearest."""

    def __init__(self, where: object, kind: str, name: object, known: Iterable[str], hint: str) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=1)
        some = ", ".join(known[:LISTED]) + (", ..." if len(known) > LISTED else "")
        guess = f" did you mean {near[0]!r}?" if near else f" known: {some}."
        super().__init__(where, f"no {kind} {name!r};{guess} {hint}")


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
