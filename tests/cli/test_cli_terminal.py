"""Nothing in an input is obeyed by the terminal, and no line is endless."""

from __future__ import annotations

import json
import logging
import sys
import textwrap
import warnings

import pytest
from cli_house import JOBS, SMALL

from batwatt.cli.exits import Warnings, exit_code_of
from batwatt.cli.inputs import write_output
from batwatt.cli.shared import json_text

NASTY = "x\x1b[31m\u202e\x9b\x00y"
SHOWN = "x\\x1b[31m\\u202e\\x9b"
NONE = ("-o", '{"response": "none"}')


def clean(text: str) -> None:
    """Nothing but printable lines (and tabs) of a length that people read."""
    for line in text.split("\n"):
        assert line.replace("\t", "").isprintable(), line
        assert len(line) <= 500


@pytest.mark.parametrize("name", [NASTY, "long" * 5000, "two\nlines", "\x1b]0;title\x07" * 100])
def test_errors_about_jobs_hosts_and_profiles(house, name):
    job, nap = {"id": name, "subtime": 0, "res": 1, "profile": "nap"}, {"type": "delay", "delay": 5}
    for changes, profile in (({"subtime": -1}, nap), ({"profile": name}, nap), ({}, {"type": name})):
        done = house.run(*NONE, workload=house.workload(job | changes, nap=profile))
        assert done.code == 2
        assert done.line and clean(done.err) is None
    text = SMALL.read_text().replace('id="s1"', f'id="{name}"') + "<"
    done = house.run(*NONE, platform=house.write("bad.xml", text.replace("\x00", "")))
    assert done.code == 2 and clean(done.err) is None
    done = house.run("-o", json.dumps({"response": name}))
    assert done.code == 2 and clean(done.err) is None
    done = house.run("-s", name.replace("\x00", ""), *NONE)
    assert done.code == 2 and clean(done.err) is None


def test_usage_errors(house):
    done = house.batwatt("run", "--no\x1b[31m-such", "y" * 3000)
    assert done.code == 2 and done.line and clean(done.err) is None


def test_labels(house):
    case = NASTY.replace("\x00", "") + '={"response": "none"}'
    words = ("-p", SMALL, "-w", JOBS, "--envelope", house.envelope, "-e", house.out / "c", "-c", case)
    done = house.batwatt("compare", *words)
    assert done.code == 2 and "a label must be a text in one line, got 'x\\x1b[31m" in done.line
    clean(done.err)


def test_warnings(house):
    """A job that is too wide is told of by its name."""
    load = house.workload({"id": NASTY, "subtime": 0, "res": 99, "walltime": 9, "profile": "nap"}, nb_res=99)
    done = house.run(*NONE, workload=load)
    assert SHOWN in done.err
    clean(done.err)


@pytest.mark.parametrize("args", [(), ("-v",)])
def test_errors_of_others(house, args):
    """What a scheduler raises, with and without its traceback."""
    text = """
        class Bad:
            def __init__(self, options): raise ValueError("a\\x1b[31mb" + "c" * 3000)
            def onNoMoreEvents(self): pass
    """
    path = house.write("bad.py", textwrap.dedent(text))
    done = house.batwatt(*args, "run", "-p", SMALL, "-w", JOBS, "-s", path, "-e", house.out / "x")
    assert done.code == 1 and "\x1b" not in done.err and "a\\x1b[31mb" in done.err
    assert len(done.err.strip().split("\n")[-1]) <= 500


def test_warnings_of_libraries(capsys):
    """Python writes two lines about them, as they are."""

    def command() -> None:
        # pytest keeps warnings for itself
        text = warnings.formatwarning("Glyph 27 (\x1b)\n" + "c" * 900, UserWarning, "file.py", 1)
        print(text, end="", file=sys.stderr)

    before = warnings.formatwarning
    assert exit_code_of(command) == 0
    err = capsys.readouterr().err
    assert err.startswith("WARNING: UserWarning: Glyph 27 (\\x1b) ccc") and err.count("\n") == 1
    clean(err)
    assert warnings.formatwarning is before


def test_log_lines_of_libraries(capsys):
    def command():
        handler = Warnings()
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
        logging.getLogger("somebody").warning("a\x1b[2Jb\n%s", "c" * 9000)

    assert exit_code_of(command) == 0
    err = capsys.readouterr().err
    assert err.startswith("WARNING: a\\x1b[2Jb ccc")
    clean(err)


def test_json_for_people(house):
    """Carbon plans are printed as JSON, which stays JSON."""
    text = json_text({NASTY: ["\u00fc", "\x7f\U000e0001"]})
    clean(text)
    assert json.loads(text) == {NASTY: ["\u00fc", "\x7f\U000e0001"]} and "\u00fc" in text


def test_data_goes_to_a_file_as_it_is_but_not_to_a_terminal(capsys, monkeypatch):
    write_output("a\x1b\tb\n", None)
    assert capsys.readouterr().out == "a\x1b\tb\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_output("a\x1b\tb\n", None)
    assert capsys.readouterr().out == "a\\x1b\tb\n"
