"""Repeated messages, gathered: one line for each kind, with the number of further ones."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

_PLACEHOLDER = re.compile(r"%[-+ #0]*[\d.]*[a-zA-Z%]")


class Repeats(logging.Handler):
    """Handler that gathers records by kind: those of one logger and one text before its values are filled in.

    The first message of a kind is logged; an equal message is not counted again.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._first: dict[object, tuple[logging.LogRecord, set[int]]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message."""
        text = str(record.msg)
        message = record.getMessage()
        # if a text has nothing but values, each message is a kind of its own
        worded = any(character.isalpha() for character in _PLACEHOLDER.sub("", text))
        kind = (record.name, record.levelno, text if worded else message)
        self._first.setdefault(kind, (record, set()))[1].add(hash(message))

    def drain(self) -> list[tuple[logging.LogRecord, str]]:
        """Return the first record of each kind, in order, with its line; remove all."""
        taken = [(record, _line(record, len(messages) - 1)) for record, messages in self._first.values()]
        self._first.clear()
        return taken


def _line(record: logging.LogRecord, more: int) -> str:
    text = " ".join(record.getMessage().split())
    return f"{text} (and {more:,} more like this)" if more else text


@contextmanager
def noted() -> Iterator[Repeats]:
    """Gather the warnings that the block logs, in place of writing them."""
    logger, repeats = logging.getLogger(), Repeats()
    before, logger.handlers = logger.handlers, [repeats]
    try:
        yield repeats
    finally:
        logger.handlers = before
