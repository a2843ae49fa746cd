"""Messages that repeat: one line for each kind, the first with a count."""

from __future__ import annotations

import logging

from batwatt.cli.exits import Warnings
from batwatt.run.repeats import Repeats


def record(text: str, *args: object, name: str = "a") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, __file__, 1, text, args, None)


def test_one_line_for_each_kind():
    repeats = Repeats()
    for number in range(2428):
        repeats.emit(record("job %s: too wide", number))
    # not another one
    repeats.emit(record("job %s: too wide", 7))
    repeats.emit(record("%s: %d of %d skipped", "x.swf", 1, 2))
    repeats.emit(record("job %s: too wide", 1, name="b"))
    # texts that are nothing but values are kinds of their own
    repeats.emit(record("%s: %s", "a.csv", "has gaps"))
    repeats.emit(record("%s: %s", "b.csv", "is old"))
    assert [line for _, line in repeats.drain()] == [
        "job 0: too wide (and 2,427 more like this)",
        "x.swf: 1 of 2 skipped",
        "job 1: too wide",
        "a.csv: has gaps",
        "b.csv: is old",
    ]
    assert repeats.drain() == []


def test_warnings_wait_and_the_rest_does_not(capsys):
    handler = Warnings()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    handler.emit(record("job %s\nasks for 100%%", 1))
    handler.emit(record("job %s\nasks for 100%%", 2))
    handler.emit(logging.LogRecord("a", logging.INFO, __file__, 1, "reading %s", ("x",), None))
    assert capsys.readouterr().err == "INFO: reading x\n"
    handler.tell()
    handler.tell()
    assert capsys.readouterr().err == "WARNING: job 1 asks for 100% (and 1 more like this)\n"
