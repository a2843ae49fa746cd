"""Inputs and outputs that are no files, and sizes that nobody can wait for: one line, exit code 2, nothing left."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from cli_house import JOBS, SMALL

import batwatt.files
from batwatt.errors import InputError
from batwatt.files import refuse_device

ENDLESS = "/dev/zero"
pytestmark = pytest.mark.skipif(not Path(ENDLESS).exists(), reason="no /dev/zero here")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-p", ENDLESS, "-w", JOBS],
        ["run", "-p", SMALL, "-w", ENDLESS],
        ["run", "--machines", 4, "-w", Path("trace.csv"), "-o", '{"response": "none"}'],
        ["run", "-p", SMALL, "-w", JOBS, "--envelope", ENDLESS],
        ["run", "-p", SMALL, "-w", JOBS, "-o", f"@{ENDLESS}"],
        ["convert", ENDLESS, "--format", "swf"],
        ["convert", ENDLESS, "--format", "borg"],
        ["events", ENDLESS],
        ["characterise", f"carbon:{ENDLESS}"],
        ["generate", "platform", ENDLESS],
        ["checkpoint", "plan", ENDLESS],
        ["carbon", "plan", ENDLESS, "--carbon", ENDLESS, "--deadline", "10"],
        ["campaign", "status", ENDLESS],
    ],
    ids=lambda words: " ".join(str(word) for word in words[:4]),
)
def test_a_device_that_never_ends(house, words, monkeypatch):
    monkeypatch.chdir(house.folder)
    Path("trace.csv").symlink_to(ENDLESS)
    done = house.batwatt(*words)
    named = "trace.csv" if Path("trace.csv") in words else ENDLESS
    assert (done.code, done.out) == (2, "") and named in done.line and "is a device" in done.line


@pytest.mark.parametrize("stem", ["jobs", "consumed_energy"])
def test_a_device_among_the_results(house, stem):
    assert house.run("-o", '{"response": "none"}').code == 0
    path = house.out / f"x_{stem}.csv"
    path.unlink()
    path.symlink_to(ENDLESS)
    done = house.batwatt("metrics", house.out / "x", "-p", SMALL, "-w", JOBS)
    assert done.code == 2 and str(path) in done.line and "is a device" in done.line


def test_a_campaign_with_a_device(house):
    text = f"name: c\nstudies: {{s: {{platforms: [{SMALL}], workloads: [{ENDLESS}], options: {{response: none}}}}}}\n"
    done = house.batwatt("campaign", "run", house.write("c.yaml", text), "--results", house.out)
    assert done.code == 2 and ENDLESS in done.line and house.left == []


def test_pipes_are_refused_and_the_null_device_is_read(house):
    refuse_device(os.devnull)
    refuse_device(house.folder / "missing")
    with pytest.raises(InputError, match="is a device, not a file"):
        refuse_device(ENDLESS)
    pipe = house.folder / "trace.swf"
    os.mkfifo(pipe)
    # nobody ever writes to it
    for words in (
        ["run", "-p", SMALL, "-w", pipe],
        ["convert", pipe],
        ["characterise", f"carbon:{pipe}"],
    ):
        done = house.batwatt(*words)
        assert done.code == 2 and f"{pipe}: is a pipe, not a file" in done.line


@pytest.mark.parametrize("words", [["metrics", "/"], ["gantt", "/", "-o", "x.svg"], ["metrics", "."]])
def test_a_prefix_without_a_name(house, words):
    done = house.batwatt(*words, "-p", SMALL, *([] if words[0] == "gantt" else ["-w", JOBS]))
    assert (done.code, done.out) == (2, "") and f"{words[1]}: is a folder, no prefix of files" in done.line


def test_names_longer_than_a_file_system_takes(house):
    name = "x" * 300
    for words in (
        ["init", name],
        ["run", "-p", name, "-w", JOBS],
        ["convert", f"{name}.csv"],
        ["convert", f"{name}.txt"],
    ):
        done = house.batwatt(*words)
        assert (done.code, done.out) == (2, "") and "File name too long" in done.line


@pytest.mark.parametrize("word", ["\udcff=powercap", "-e\udcff"])
def test_words_that_are_not_utf8(house, word):
    done = house.batwatt("compare", "-p", SMALL, "-w", JOBS, "--envelope", "constant:500", "-c", word)
    assert (done.code, house.left) == (2, []) and f"argument 9: {word!r} is not UTF-8" in done.line


@pytest.mark.parametrize(
    "words,said",
    [
        (["--hours", 10**20], "jobs_per_hour x hours must be <= 1000000"),
        (["--jobs-per-hour", 10**9], "jobs_per_hour x hours must be <= 1000000"),
        (["--servers", 10**18, "--max-servers", 10**18], "nb_res must be a whole number in 1..1000000"),
    ],
)
def test_a_workload_that_is_too_large(house, words, said):
    done = house.batwatt("generate", "workload", *words, "-o", house.out / "w.json")
    assert (done.code, house.left) == (2, []) and said in done.line


def test_an_output_that_is_a_pipe_is_written_to(house):
    pipe = house.folder / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    done = house.batwatt("events", house.envelope, "-o", pipe)
    reader.join(10.0)
    assert done.code == 0 and stat.S_ISFIFO(pipe.stat().st_mode)
    assert read[0].count("power_envelope") == 4


def test_an_output_that_is_a_pipe_without_a_reader_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(batwatt.files, "PEER_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"pipe: cannot be written \(a pipe that nothing reads for 0.1 s\)"):
        batwatt.files.write_text(tmp_path / "pipe", "x")


def test_an_output_that_is_a_device_stays_one(house):
    # a terminal of our own: were it replaced, nobody else would miss it
    master, slave = os.openpty()
    name = Path(os.ttyname(slave))
    link = house.folder / "stdout"
    link.symlink_to(name)
    assert house.batwatt("generate", "walk", "--end", "3600", "-o", link).code == 0
    assert link.is_symlink() and stat.S_ISCHR(name.stat().st_mode)
    assert os.read(master, 100).startswith(b"time_s,machines")
    os.close(slave)
    os.close(master)


def test_an_output_that_is_a_full_device(house):
    done = house.batwatt("generate", "walk", "--end", "3600", "-o", "/dev/full")
    assert (done.code, done.out) == (2, "") and "/dev/full: cannot be written (No space left on device)" in done.line


@pytest.mark.parametrize("where", ["", ".", "..", "folder"])
def test_an_output_that_is_a_folder(house, where, monkeypatch):
    (house.folder / "folder").mkdir()
    monkeypatch.chdir(house.folder)
    done = house.batwatt("generate", "walk", "--end", "3600", "-o", where)
    assert (done.code, done.out) == (2, "") and "cannot be written (Is a directory)" in done.line


@pytest.mark.parametrize("before", [False, True])
def test_a_table_that_is_refused_leaves_no_folder(house, before):
    house.write("vm.csv", "a,s,d,0,600,90,10,50.5,Interactive,many,32\n")
    if before:
        house.out.mkdir()
    done = house.batwatt("convert", "--format", "azure", house.folder / "vm.csv", "-o", house.out / "new" / "jobs.csv")
    assert done.code == 2 and "vmcorecountbucket" in done.line
    assert house.out.exists() is before and house.left == []
