"""Output of commands, their streams and amounts: for terminals, programs, and without a reader."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pty
import re
import shlex
import subprocess
import sys

import pytest
from cli_house import JOBS, SMALL, unstyled

import batwatt
from batwatt.cli.printing import manners
from batwatt.results.figures import METRICS

QUICK = {
    "policies": "policies",
    "options": "policies varcap",
    "capacity": "characterise walk:range=0.6,seed=1",
}


# tables --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", QUICK.values(), ids=QUICK.keys())
def test_tables_of_other_commands(house, terminal, words):
    """Programs get lines with tabs, or JSON; a terminal gets lines that fit it."""
    done = house.batwatt(*words.split())
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert done.code == 0 and len(rows) >= 2 and {len(row) for row in rows} == {len(rows[0])}
    assert "─" not in done.out and "\x1b" not in done.out
    records = json.loads(house.batwatt(*words.split(), "--json").out)
    if isinstance(records, list):
        for row, record in zip(rows[1:], records, strict=True):
            assert row == ["" if record[key] is None else str(record[key]) for key in rows[0]]
    terminal(40)
    shown = house.batwatt(*words.split())
    lines = unstyled(shown.out.partition("choose with")[0]).splitlines()
    assert shown.code == 0 and lines and max(map(len, lines)) <= 40
    text = unstyled("".join(shown.out.split()))
    column = 1 if done.out.startswith("kind\t") else 0
    assert all(row[column][:8] in text or row[0][0].isdigit() for row in rows[1:])


# more, less ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("policies", logging.WARNING),
        ("policies -v varcap", logging.INFO),
        ("-v policies -v", logging.DEBUG),
        ("plan -v checkpoint workloads/periods/period.json", logging.INFO),
        ("policies -q", logging.ERROR),
        ("--quiet policies -v", logging.ERROR),
    ],
)
def test_verbose_and_quiet_stand_anywhere(house, words, level):
    done = house.batwatt(*words.split())
    assert done.code == 0 and done.out.startswith(("kind\t", "name\t", "{"))
    assert logging.getLogger().level == manners.level == level


def test_a_value_is_no_option(house):
    words = ("--engine", "batsim", "--batsim", house.folder / "none", "--batsim-arg", "-v", "--batsim-arg", "-q")
    assert house.run(*words).code != 0 and (manners.verbose, manners.quiet) == (0, False)


def test_quiet_prints_results_and_errors_only(house, terminal):
    assert "3 of 8 jobs are delays" in house.run("--envelope", house.envelope).err
    done = house.run("--envelope", house.envelope, "-q")
    assert (done.code, done.err) == (0, "") and "powercap\t" in done.out
    terminal(120)
    assert "files:" in house.run("--envelope", house.envelope).out
    assert "files:" not in house.run("--envelope", house.envelope, "-q").out
    done = house.batwatt("gantt", house.out / "x", "-p", SMALL, "-o", house.out / "x.svg", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert house.batwatt("-q", "run", "-p", "none.xml", "-w", JOBS).line
    done = house.batwatt("convert", house.write("j.csv", "arrival_time,length,cpus\n0,5,1\n"), "-q")
    assert done.err == "" and json.loads(done.out)["nb_res"] == 1


def on_terminals(words: list[object], **environment: str) -> tuple[str, str]:
    """What a process prints on a terminal as its stdout, and on another as its stderr."""
    (out, out_end), (err, err_end) = pty.openpty(), pty.openpty()
    usual = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "batwatt", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=out_end, stderr=err_end, env=usual | {"TERM": "xterm-256color"} | environment,
    )  # fmt: skip
    os.close(out_end)
    os.close(err_end)
    texts = []
    for handle in (out, err):
        parts = []
        # the end of a terminal that its process closed is an error
        with contextlib.suppress(OSError):
            while part := os.read(handle, 65536):
                parts.append(part)
        os.close(handle)
        texts.append(b"".join(parts).decode())
    assert process.wait(60) == 0, texts
    return texts[0], texts[1]


def test_progress_and_colours(house):
    words = ["run", "-p", SMALL, "-w", JOBS, "-o", '{"response": "none"}', "-e", house.out / "x"]
    out, err = on_terminals(words)
    assert "━" in err and "8/8" in err and "━" not in out and "finished" in out and "files:" in out
    colours = re.compile(r"\x1b\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7])(;[0-9;]*)?m")
    assert colours.search(err) and not colours.search(on_terminals(words, NO_COLOR="1")[1])
    out, err = on_terminals([*words, "--quiet"])
    assert err == "" and "finished" in out and "files:" not in out
    assert "\x1b" not in on_terminals(["run", "--help"])[0]


# completion ----------------------------------------------------------------------------------------------------------


def completions(house, monkeypatch, line: str) -> set[str]:
    """The words that bash is offered."""
    words = line.split(" ")
    monkeypatch.setenv("_BATWATT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    done = house.batwatt()
    assert (done.code, done.err) == (0, "")
    return set(done.out.split())


def test_completion(house, monkeypatch):
    for name in ("mine.py", "mine.csv", "mined/own.py"):
        (house.folder / name).parent.mkdir(exist_ok=True)
        house.write(name, "")
    monkeypatch.chdir(house.folder)
    for line, words in {
        "c": {"compare", "convert", "characterise"},
        "plan ch": {"checkpoint"},
        "run --env": {"--envelope"},
        # not in the short help
        "run --batsim": {"--batsim", "--batsim-arg"},
        "compare --see": {"--seeds"},
        "run --help": {"--help", "--help-all"},
        "bench": {"benchmark"},
        "run -s ri": {"riskaware"},
        "run -s mine": {"mine.py", "mined/"},
        "run -s mined/": {"mined/own.py"},
    }.items():
        assert completions(house, monkeypatch, f"batwatt {line}") == words, line


FULL = "batwatt: [Errno 28] No space left on device; check the path and the disk\n"


@pytest.mark.parametrize(
    ("words", "redirected", "code", "out", "err"),
    [
        ("--version", ">&-", 2, "", "batwatt: stdout is closed; redirect it, for instance to /dev/null\n"),
        ("--version", "2>&-", 0, "batwatt {}\n", ""),
        ("policies nowhere.py", "2>&-", 2, "", ""),
        ("policies", "| true", 141, "", ""),
        ("--version", ">/dev/full", 1, "", FULL),
    ],
)
def test_streams_that_are_closed_or_full(words, redirected, code, out, err):
    line = f"{sys.executable} -m batwatt {words} {redirected}; exit ${{PIPESTATUS[0]}}"
    # as in a shell, where Python holds back what it writes
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (code, out.format(batwatt.__version__), err)


def test_a_closed_stderr_never_gets_into_a_file(house):
    words = ["run", "-p", SMALL, "-w", JOBS, "-o", '{"response": "none"}', "-e"]
    assert house.batwatt(*words, house.out / "x").code == 0
    line = shlex.join([sys.executable, "-m", "batwatt", "-v", *map(str, words), str(house.out / "y")])
    done = subprocess.run(["bash", "-c", f"{line} 2>&-"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("run\tprefix")
    house.assert_same("x", "y")


def test_every_figure_is_listed(house):
    listed = json.loads(house.batwatt("metrics", "--list", "--json").out)
    assert [one["name"] for one in listed] == [one.name for one in METRICS]
    assert all(one["description"].startswith(figure.meaning) for one, figure in zip(listed, METRICS, strict=True))
