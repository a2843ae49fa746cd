"""What tests of signals share."""

from __future__ import annotations

import logging

import pytest
from files_of_tests import refusal

from batwatt.inputs.signal import read_signal
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline


@pytest.fixture
def read(tmp_path, caplog):
    """Reads a text as a file of a signal; `read.warnings()` is what it said, `read.refused(...)` the error."""

    def reader(text: str, quantity: str | None = None, **more) -> Timeline:
        caplog.clear()
        path = tmp_path / "s.txt"
        path.write_text(text, encoding="utf-8")
        return read_signal(SeriesSource(path, quantity=quantity, **more))

    def refused(text: str, quantity: str | None = None, **more) -> str:
        return refusal(reader, text, quantity, **more).partition("s.txt: ")[2]

    caplog.set_level(logging.WARNING)
    reader.warnings = lambda: [record.getMessage().partition(": ")[2] for record in caplog.records]
    reader.refused = refused
    return reader
