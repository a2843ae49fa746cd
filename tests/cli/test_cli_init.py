"""`batwatt init`: all or nothing, and every command of its README and of all helps works in the folder."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_commands import COMMANDS, TABULAR, scripts
from cli_house import ROOT, Done
from test_readme import commands

from batwatt.cli import start
from batwatt.errors import MissingExtraError
from batwatt.testing import check_part

STAND_IN = ROOT / "tests" / "helpers" / "stand_in.py"
DEFAULT = "tcp://127.0.0.1:28000"


@pytest.fixture
def folder(house, monkeypatch):
    """A start, in which commands run."""
    done = house.batwatt("init", house.folder / "start")
    assert done.code == 0 and "README.md" in done.out and done.err == ""
    monkeypatch.chdir(house.folder / "start")
    return house.folder / "start"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# what it writes ------------------------------------------------------------------------------------------------------


def test_it_writes_all_files_and_nothing_else(folder):
    assert files(folder) == set(start.SOURCES)
    for name, source in start.SOURCES.items():
        assert (folder / name).read_bytes() == (ROOT / source).read_bytes()
    assert sum((folder / name).stat().st_size for name in start.SOURCES) < 1_000_000
    text = (folder / "README.md").read_text()
    for name in start.SOURCES.keys() - {"README.md"}:
        assert Path(name).name in text or f"{Path(name).parent}/" in text or Path(name).suffix == ".toml", name
    check_part("order", "my-order", plugin="my_policy.py", cases=2)


@pytest.mark.parametrize("left", [(), (".start.1.part",)], ids=["empty", "of a killed process"])
def test_a_folder_without_files_will_do(house, monkeypatch, left):
    for name in ("there", *(f"there/{name}" for name in left)):
        (house.folder / name).mkdir()
    monkeypatch.chdir(house.folder / "there")
    assert house.batwatt("init", ".").code == 0
    assert files(house.folder / "there") == set(start.SOURCES)


@pytest.mark.parametrize("there", [True, False])
def test_all_or_nothing(house, monkeypatch, there):
    copied = []

    def fail(source: Path, target: Path) -> None:
        if len(copied) == 5:
            raise OSError(28, "No space left on device", str(target))
        copied.append(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("")

    monkeypatch.setattr(start, "_copy", fail)
    if there:
        (house.folder / "start").mkdir()
    done = house.batwatt("init", house.folder / "start")
    assert done.code != 0 and "No space left" in done.line and len(copied) == 5
    assert (house.folder / "start").exists() == there and files(house.folder / "start") == set()


def test_files_of_a_wheel_are_taken_from_the_package(house, monkeypatch):
    package = house.folder / "site" / "batwatt"
    start.copy_start(ROOT, package / start.PACKED)
    monkeypatch.setattr(start, "__file__", str(package / "cli" / "start.py"))
    start.write_start(house.folder / "copy")
    assert files(house.folder / "copy") == set(start.SOURCES)


# what works in it ----------------------------------------------------------------------------------------------------


def run(house, line: str) -> Done:
    """Carry out a command in this process; an extra that is not installed is a visible skip."""
    try:
        done = house.batwatt(*shlex.split(line)[1:])
    except MissingExtraError as error:
        pytest.skip(str(error))
    if done.code == 2 and "pip install -e '.[" in done.err:
        pytest.skip(done.err.strip())
    assert done.code == 0, (line, done.err)
    return done


def test_every_command_of_its_readme_works(house, folder):
    lines = commands(folder / "README.md")
    assert len(lines) >= 10
    for line in lines:
        run(house, line)
    for name in ("out/small.svg", "out/day.html", "results/first/report/index.html"):
        assert (folder / name).stat().st_size > 1000, name


def tools(place: Path, endpoint: str) -> Path:
    """A folder with `batwatt`, and a `batsim`: the engine plays it, 5 if it is told where the scheduler is, else 4."""
    place.mkdir()
    python = shlex.quote(sys.executable)
    four = f'exec {python} -m batwatt engine -s {endpoint} $(printf "%s " "$@" | sed "s/-E //")'
    five = f'exec {python} {shlex.quote(str(STAND_IN))} "$@"'
    for name, text in (
        ("batwatt", f'exec {python} -m batwatt "$@"'),
        ("batsim", f'case " $* " in *" -s "*) {five};; *) {four};; esac'),
    ):
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    return place


SLOW = ("report",)
"""Commands whose examples run campaigns, which other tests do, too."""


# those of a real Slurm run on one, in tests/slurm
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(words, marks=pytest.mark.deep) if words in SLOW else words
        for words in COMMANDS
        if not words.startswith("slurm")
    ],
)
def test_every_example_of_every_help_works(house, folder, command, endpoint):
    found = scripts(command)
    assert found
    if command == "init":
        # a folder within that one
        run(house, found[0][0])
        return
    for lines in found:
        if not any(line.endswith("&") for line in lines):
            done = [run(house, line) for line in lines][-1]
            if command in TABULAR:
                rows = [line.split("\t") for line in done.out.splitlines()]
                assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}
                # the optimum is searched for once, its JSON is in test_run_optimum
                assert command == "optimum" or json.loads(run(house, f"{lines[-1]} --json").out)
            continue
        shutil.rmtree(house.folder / "bin", ignore_errors=True)
        place = tools(house.folder / "bin", endpoint)
        text = "\n".join(lines).replace(DEFAULT, endpoint)
        text = text.replace("batwatt serve", f"batwatt serve --socket {endpoint}")
        text = text.replace("batwatt engine", f"batwatt engine -s {endpoint}")
        script = f"set -e\nPATH={shlex.quote(str(place))}:$PATH\n{text}\nfor job in $(jobs -p); do wait $job; done\n"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (script, done.stderr)
        assert list(folder.glob("out/*_jobs.csv")), script


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_can_be_pasted(house, command, monkeypatch):
    """The help of 80 columns has each line whole, with a backslash where it goes on."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = house.batwatt(*command.split(), "--help").out.partition("Example:")[2]
    pasted = "\n".join(line.strip() for line in shown.splitlines()).replace("\\\n", " ")
    for lines in scripts(command):
        for line in lines:
            assert " ".join(line.split()) in " ".join(pasted.split()), line
            assert any(shlex.split(one) == shlex.split(line) for one in pasted.splitlines() if one[:3] == "bat"), line
