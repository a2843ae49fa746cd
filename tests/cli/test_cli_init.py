"""`batwatt init`: all or nothing, and every command of its README and of all helps works in the folder."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_commands import COMMANDS, TABULAR, scripts
from cli_house import ROOT, Done
from false_batsim import false_batsim
from test_readme import commands

from batwatt.cli import start
from batwatt.errors import MissingExtraError
from batwatt.testing import check_part

DEFAULT = "tcp://127.0.0.1:28000"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# what it writes ------------------------------------------------------------------------------------------------------


def test_it_writes_all_files_and_nothing_else(house, monkeypatch):
    folder = house.folder / "start"
    done = house.batwatt("init", folder)
    assert done.code == 0 and "README.md" in done.out and done.err == ""
    assert files(folder) == set(start.SOURCES)
    for name, source in start.SOURCES.items():
        assert (folder / name).read_bytes() == (ROOT / source).read_bytes()
    assert sum((folder / name).stat().st_size for name in start.SOURCES) < 1_000_000
    text = (folder / "README.md").read_text()
    for name in start.SOURCES.keys() - {"README.md"}:
        assert Path(name).name in text or f"{Path(name).parent}/" in text or Path(name).suffix == ".toml", name
    monkeypatch.chdir(folder)
    check_part("order", "my-order", plugin="my_policy.py", cases=2)


@pytest.mark.parametrize("left", [(), (".batwatt-x",)], ids=["empty", "of a killed process"])
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


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    """A start; as it is one for all examples, studies that several of them run are run once."""
    folder = tmp_path_factory.mktemp("examples") / "start"
    start.write_start(folder)
    return folder


@pytest.fixture
def folder(shared_folder, monkeypatch):
    """The start, in which commands run."""
    monkeypatch.chdir(shared_folder)
    return shared_folder


def run(house, line: str, *more: str) -> Done:
    """Carry out a command in this process; an extra that is not installed is a visible skip."""
    try:
        done = house.batwatt(*shlex.split(line)[1:], *more)
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
        # docs/howto/compare runs all systems, docs/tutorials/your-site these very ones
        run(house, line.replace("--by group", "--by group -c mine=varcap -j 1"))
    for name in ("out/small.svg", "out/day.html", "results/first/report/index.html"):
        assert (folder / name).stat().st_size > 1000, name


def in_a_shell(house, lines: list[str], endpoint: str) -> None:
    """Carry out a script; a false one is its `batsim`."""
    tools = house.folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "batwatt").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m batwatt "$@"\n')
    (tools / "batwatt").chmod(0o755)
    false_batsim(tools / "batsim", "either", endpoint)
    text = "\n".join(lines).replace(DEFAULT, endpoint)
    text = text.replace("batwatt serve", f"batwatt serve --socket {endpoint}")
    text = text.replace("batwatt batsim", f"batwatt batsim -s {endpoint}")
    script = f"set -e\nPATH={shlex.quote(str(tools))}:$PATH\n{text}\nfor job in $(jobs -p); do wait $job; done\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (script, done.stderr)


NIGHTLY = [pytest.param(words, marks=pytest.mark.deep) for words in ("optimum",)]
"""Commands whose examples take long; other tests run them on small inputs."""
QUICK = [words for words in COMMANDS if words != "optimum" and not words.startswith("slurm")]


# those of a real Slurm run on one, in tests/slurm
@pytest.mark.parametrize("command", [*QUICK, *NIGHTLY])
def test_every_example_of_every_help_works(house, folder, command, endpoint):
    assert scripts(command)
    for *lines, last in scripts(command):
        if any(line.endswith("&") for line in lines):
            in_a_shell(house, [*lines, last], endpoint)
            assert list(folder.glob("out/*_jobs.csv")), lines
            continue
        for line in lines:
            run(house, line)
        if command in TABULAR:
            assert json.loads(run(house, last, "--json").out)
        else:
            run(house, last)
