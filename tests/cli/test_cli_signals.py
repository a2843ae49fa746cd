"""A signal at any moment ends a command in one line, with 128 + its number as exit code."""

from __future__ import annotations

import os
import signal
import time

import pytest
from cli_house import JOBS, SMALL, wait_for

from batwatt.cli import exits as cli_ends

# a library that takes for ever to load, and says that it is being loaded
STUCK = """
import time
from pathlib import Path

Path(__file__).with_name("loading").touch()
try:
    time.sleep(60)
except BaseException as error:
    raise SystemError("swallowed") from error
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_libraries_are_loaded(house, monkeypatch, number):
    (house.folder / "lib").mkdir()
    house.write("lib/typer.py", STUCK)
    monkeypatch.setenv("PYTHONPATH", str(house.folder / "lib"))
    process = house.start("run", "-p", SMALL, "-w", JOBS)
    wait_for((house.folder / "lib" / "loading").exists)
    process.send_signal(number)
    ended = house.end(process)
    assert (ended.code, ended.err) == (128 + number, f"batwatt: ended by {number.name}\n")


def test_the_installed_command_does_that():
    from importlib.metadata import entry_points

    (ours,) = entry_points(group="console_scripts", name="batwatt")
    assert ours.value == "batwatt.__main__:main"


def test_at_some_moment(house):
    """The engine waits for a scheduler that never comes."""
    process = house.start("engine", "-p", SMALL, "-w", JOBS, "-s", "tcp://127.0.0.1:9", "-e", house.out / "x")
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    ended = house.end(process)
    # where the machine is very slow, Python itself has not begun
    assert ended.code in (143, -signal.SIGTERM) and "Traceback" not in ended.err
    assert ended.code < 0 or ended.err.endswith("batwatt: ended by SIGTERM\n")
    assert house.left == []


def test_in_a_destructor_where_nothing_can_be_raised(capsys):
    class Late:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def command() -> None:
        Late()
        time.sleep(30)

    began = time.monotonic()
    assert cli_ends.exit_code_of(command) == 143
    assert time.monotonic() - began < 20.0
    assert capsys.readouterr().err == "batwatt: ended by SIGTERM\n"


def test_two_at_once_interrupt_once(capsys):
    """What cleans up after the first is not interrupted by the second."""
    cleaned = []

    def command() -> None:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(30)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            cleaned.append(True)

    assert cli_ends.exit_code_of(command) == 143 and cleaned
    assert capsys.readouterr().err == "batwatt: ended by SIGTERM\n"


def test_while_an_error_is_told(capsys, monkeypatch):
    told = []
    real = cli_ends._complain

    def complain(text, error, code):
        if not told:
            told.append(text)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        return real(text, error, code)

    monkeypatch.setattr(cli_ends, "_complain", complain)

    def command() -> None:
        raise ValueError

    assert cli_ends.exit_code_of(command) == 130 and told
    assert capsys.readouterr().err == "batwatt: ended by SIGINT\n"
