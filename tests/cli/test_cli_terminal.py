"""Nothing in an input is obeyed by the terminal, and no line is endless."""

from __future__ import annotations

import json
import logging
import sys
import warnings

import pytest
from cli_house import JOBS, SMALL

from batwatt.cli.exits import Warnings, exit_code_of
from batwatt.cli.inputs import write_output
from batwatt.cli.printing import json_text

NASTY = "x\x1b[31m\u202e\x9b\x00y"
NONE = ("-o", '{"response": "none"}')


def clean(text: str) -> bool:
    """Whether a text is printable lines (and tabs) of a length that people read."""
    return all(line.replace("\t", "").isprintable() and len(line) <= 500 for line in text.split("\n"))


@pytest.mark.parametrize("name", [NASTY, "long" * 5000], ids=["escapes", "long"])
def test_errors_about_jobs_hosts_and_profiles(house, name):
    job, nap = {"id": name, "subtime": 0, "res": 1, "profile": "nap"}, {"type": "delay", "delay": 5}
    jobs = (({"subtime": -1}, nap), ({"profile": name}, nap), ({}, {"type": name}))
    xml = SMALL.read_text().replace('id="s1"', f'id="{name}"') + "<"
    ended = [house.run(*NONE, workload=house.workload(job | more, nap=profile)) for more, profile in jobs]
    ended.append(house.run(*NONE, platform=house.write("bad.xml", xml.replace("\x00", ""))))
    ended.append(house.run("-o", json.dumps({"response": name})))
    ended.append(house.run("-s", name.replace("\x00", ""), *NONE))
    ended.append(house.batwatt("run", "--no\x1b[31m-such", name))
    assert [done.code for done in ended] == [2] * 7 and all(done.err and clean(done.err) for done in ended)


@pytest.mark.parametrize("verbose", [(), ("-v",)])
def test_errors_of_others(house, verbose):
    """What a scheduler raises, with and without its traceback."""
    text = "class Bad:\n    def __init__(self, options):\n        raise ValueError('a\\x1b[31mb' + 'c' * 3000)\n"
    path = house.write("bad.py", f"{text}\n    def onNoMoreEvents(self):\n        pass\n")
    done = house.batwatt(*verbose, "run", "-p", SMALL, "-w", JOBS, "-s", path, "-e", house.out / "x")
    assert done.code == 1 and "\x1b" not in done.err and "a\\x1b[31mb" in done.err
    assert len(done.err.strip().split("\n")[-1]) <= 500


def test_warnings_and_log_lines_of_libraries(capsys):
    """Python writes two lines about warnings, as they are."""

    def command() -> None:
        # pytest keeps warnings for itself
        text = warnings.formatwarning("Glyph 27 (\x1b)\n" + "c" * 900, UserWarning, "file.py", 1)
        print(text, end="", file=sys.stderr)
        handler = Warnings()
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
        logging.getLogger("somebody").warning("a\x1b[2Jb\n%s", "c" * 9000)

    before = warnings.formatwarning
    assert exit_code_of(command) == 0 and warnings.formatwarning is before
    err = capsys.readouterr().err
    assert err.startswith("WARNING: UserWarning: Glyph 27 (\\x1b) ccc") and err.count("\n") == 2
    assert err.splitlines()[1].startswith("WARNING: a\\x1b[2Jb ccc") and clean(err)


def test_output_for_people_and_for_programs(capsys, monkeypatch):
    """JSON stays JSON; data goes to a file as it is, but not to a terminal."""
    text = json_text({NASTY: ["\u00fc", "\x7f\U000e0001"]})
    assert clean(text) and "\u00fc" in text and json.loads(text) == {NASTY: ["\u00fc", "\x7f\U000e0001"]}
    write_output("a\x1b\tb\n", None)
    assert capsys.readouterr().out == "a\x1b\tb\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_output("a\x1b\tb\n", None)
    assert capsys.readouterr().out == "a\\x1b\tb\n"
