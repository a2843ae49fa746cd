"""What readers leave out or fill in: a warning, and collected for those who show what was read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collected_remarks() -> Iterator[list[str]]:
    """A list of the remarks on what is read within, each once."""
    found: list[str] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def remark(log: logging.Logger, text: str, *values: object) -> None:
    """Warn, and collect the warning."""
    log.warning(text, *values)
    collect(text % values)


def tell_before_work() -> None:
    """Write the warnings that handlers keep for the end: those about inputs are due before the work."""
    for handler in logging.getLogger().handlers:
        tell = getattr(handler, "tell", None)
        if callable(tell):
            tell()


def collect(text: str) -> None:
    """Add a remark to the list if remarks are collected."""
    found = _collected.get()
    if found is not None and text not in found:
        found.append(text)
