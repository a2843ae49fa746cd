"""Odd but legal inputs, and files that are none: every run ends, loses no job, and says what it could not run."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cli_house import JOBS, SMALL, scheduler

from batwatt.files import refuse_device


def states(house):
    return {row["job_id"]: row["final_state"] for row in house.rows()}


def respond(house, response, envelope=None, **inputs):
    return house.run("--envelope", envelope or house.envelope, "-o", json.dumps({"response": response}), **inputs)


def test_one_host_and_jobs_wider_than_it(house):
    done = respond(house, "hfld", platform=house.platform("a"))
    assert done.code == 0 and list(states(house).values()).count("REJECTED") == 5
    [line] = [line for line in done.err.splitlines() if "rejected" in line]
    assert "5 jobs can never run, wider than the platform of 1 hosts: rejected (first: " in line


@pytest.mark.parametrize("response", ["none", "hfld"])
def test_a_response_needs_watts(house, response):
    done = respond(house, response, platform=house.platform("a", "b", "c", "d", watts=False))
    if response == "none":
        assert done.code == 0 and house.metrics()["energy_j"] is None and "x_consumed_energy.csv" not in house.left
    else:
        assert (done.code, house.left) == (2, []) and "watt" in done.line


@pytest.mark.parametrize("engine", ["embedded", "wire"])
def test_no_jobs(house, engine):
    done = house.run("--envelope", house.envelope, "--engine", engine, workload=house.workload())
    assert done.code == 0 and "powercap" in done.out and done.err == ""
    metrics = house.metrics()
    assert (metrics["jobs_finished"], metrics["violations"], metrics["mean_slowdown"]) == (0, 0, None)


def test_a_scheduler_that_forgets_jobs_is_told(house):
    done = house.run("-s", house.write("idler.py", scheduler("Idler")))
    assert done.code == 1 and "8 submitted jobs were neither started nor rejected" in done.line


def test_words_that_are_not_utf8(house):
    word = "\udcff=powercap"
    done = house.batwatt("compare", "-p", SMALL, "-w", JOBS, "--envelope", "constant:500", "-c", word)
    assert (done.code, house.left) == (2, []) and f"argument 9: {word!r} is not UTF-8" in done.line


# devices, pipes, folders ---------------------------------------------------------------------------------------------

ENDLESS = "/dev/zero"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"run -p {ENDLESS} -w {JOBS}", ENDLESS),
        ("run --machines 4 -w trace.csv", "trace.csv"),
        (f"run -p {SMALL} -w {JOBS} -o @{ENDLESS}", ENDLESS),
        (f"convert {ENDLESS} --format borg", ENDLESS),
        (f"study {ENDLESS}", ENDLESS),
        (f"metrics x -p {SMALL} -w {JOBS}", "x_jobs.csv"),
    ],
)
def test_a_device_that_never_ends(house, line, name, monkeypatch):
    monkeypatch.chdir(house.folder)
    for link in ("trace.csv", "x_jobs.csv"):
        Path(link).symlink_to(ENDLESS)
    done = house.batwatt(*line.split())
    assert (done.code, done.out) == (2, "") and "is a device" in done.line and name in done.line


def test_pipes_are_refused_and_the_null_device_is_read(house):
    refuse_device(os.devnull)
    refuse_device(house.folder / "missing")
    pipe = house.folder / "trace.swf"
    os.mkfifo(pipe)
    # a pipe without a writer
    assert f"{pipe}: is a pipe, not a file" in house.batwatt("run", "-p", SMALL, "-w", pipe).line


def test_an_output_that_is_a_device_stays_one(house):
    # a terminal of this test alone: if it is replaced, no other program loses it
    master, slave = os.openpty()
    name = Path(os.ttyname(slave))
    link = house.folder / "stdout"
    link.symlink_to(name)
    words = ("walk:range=0.6", "--machines", 4, "--end", 3600)
    assert house.batwatt("generate", "series", *words, "-o", link).code == 0
    assert link.is_file() and not link.is_symlink()
    assert house.batwatt("generate", "series", *words, "-o", name).code == 0
    assert stat.S_ISCHR(name.stat().st_mode)
    assert os.read(master, 100).startswith(b"time_s,machines")
    os.close(slave)
    os.close(master)
