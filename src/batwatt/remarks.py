"""Remarks on parts of inputs that readers leave out or fill in: warnings, also collected for pages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
