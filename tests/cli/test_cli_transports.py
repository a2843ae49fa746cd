"""The same decisions give the same files: in process, over the wire, by events, by pybatsim, on a Batsim."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_house import CSV, ROOT, SMALL
from false_batsim import false_batsim

OPTIONS = {"order": "slowdown", "backfilling": "easy", "response": "hfld"}
PAPER = json.dumps(OPTIONS)
PLAIN = ("-E", "--disable-schedule-tracing")
EXEC = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
"""Become another program."""


@pytest.fixture
def load(house) -> Path:
    """Jobs long enough to meet several steps of the envelope, and to be killed."""
    work = {"type": "parallel_homogeneous", "cpu": 3e12, "com": 0}
    jobs = [
        {"id": i, "subtime": 20 * i, "res": 1 + i % 3, "walltime": 900 + i, "profile": "work" if i % 4 else "nap"}
        for i in range(12)
    ]
    return house.workload(*jobs, work=work, nap={"type": "delay", "delay": 200})


@pytest.fixture
def dark(house) -> Path:
    return house.write("dark.csv", "time_s,power_w\n0,600\n100,250\n200,60\n300,16\n400,600\n")


@pytest.mark.parametrize("engine", ["embedded", "wire"])
def test_an_envelope_as_events_is_the_same(house, load, engine, dark):
    events = house.folder / "events.txt"
    assert house.batwatt("convert", dark, "--to", "events", "-o", events).code == 0
    one = house.run("--envelope", dark, "-o", PAPER, workload=load, to="a")
    options = json.dumps({**OPTIONS, "envelope": "events"})
    two = house.run("--events", events, "-o", options, "--engine", engine, workload=load, to="b")
    assert (one.code, two.code) == (0, 0), one.err + two.err
    for stem in ("jobs", "pstate_changes"):
        assert house.file(f"a_{stem}.csv") == house.file(f"b_{stem}.csv")
    assert house.metrics("a") == house.metrics("b")


def test_an_envelope_as_events_of_a_batsim(house, load, dark, batsim):
    events, five = house.folder / "events.txt", house.folder / "five.txt"
    assert house.batwatt("convert", dark, "--to", "events", "-o", events).code == 0
    options = ("-o", json.dumps({**OPTIONS, "envelope": "events"}), "--events", events)
    for to, engine in (("a", "embedded"), ("b", "batsim")):
        done = house.run(*options, "--engine", engine, "--batsim", batsim, workload=load, to=to)
        assert done.code == 0, done.err
    for name in ("jobs_finished", "killed_power", "mean_slowdown"):
        assert house.metrics("a")[name] == pytest.approx(house.metrics("b")[name], rel=1e-6), name
    assert house.metrics("a")["killed_power"] > 0
    # by hand the same lines
    assert house.batwatt("convert", events, "--to", "batsim5", "-o", five).code == 0
    data = json.dumps({"timestamp": 100, "type": "power_envelope", "power_w": 250.0})
    assert json.loads(five.read_text().splitlines()[1]) == {"timestamp": 100, "type": "generic", "data": data}
    # and back, which Batsim 4 needs: it would pass them on unread
    assert house.batwatt("convert", five).out == events.read_text()
    refused = house.run("--events", five, "--batsim-arg=--forward-unknown-events", workload=load, to="c")
    assert refused.code == 2 and "the event at 0 s is for Batsim 5" in refused.err


def test_serve_and_batsim(house, load, endpoint, dark):
    assert house.run("--envelope", dark, "-o", PAPER, workload=load, to="a").code == 0
    words = ("-p", SMALL, "--envelope", dark, "-o", PAPER, "--socket", endpoint)
    server = house.start("serve", *words)
    played = house.batwatt("batsim", "-p", SMALL, "-w", load, "-s", endpoint, "-e", house.out / "b", *PLAIN)
    served = house.end(server)
    listening, *lines = served.err.splitlines()
    assert served.code == 0
    assert listening == f"listening on {endpoint}; waiting for Batsim to connect, for ever (--timeout)"
    assert [line.partition(" (")[0] for line in lines] == ["WARNING: the response 'hfld' met 3 delays"]
    waiting = f"asking the scheduler at {endpoint}; waiting for its answer for ever\n"
    assert (played.code, played.err) == (0, waiting)
    for stem in CSV[:-1]:
        assert house.file(f"a_{stem}.csv") == house.file(f"b_{stem}.csv"), stem


def test_serve_makes_machines_of_watts(house, endpoint):
    """An envelope under a scheduler of machines: the run of `run`, in which the embedded engine makes them."""
    site, jobs, cap = house.out / "p.xml", house.folder / "jobs.csv", house.folder / "cap.csv"
    assert house.batwatt("generate", "platform", "--machines", 4, "--cores", 2, "-o", site).code == 0
    jobs.write_text("submission_time_s,length_s,hosts\n" + "".join(f"{10 * n},{300 + 7 * n},1\n" for n in range(20)))
    cap.write_text("time_s,power_w\n0,80\n500,40\n1000,60\n")
    words = ("-p", site, "--envelope", cap, "-s", "riskaware", "-o", "strategy=first-fit-aware")
    assert house.batwatt("run", *words, "-w", jobs, "-e", house.out / "a").code == 0
    load = house.out / "w.json"
    assert house.batwatt("convert", jobs, "-o", load).code == 0
    server = house.start("serve", *words, "--socket", endpoint)
    dynamic = ("--enable-dynamic-jobs", "--enable-profile-reuse", *PLAIN)
    played = house.batwatt("batsim", "-p", site, "-w", load, "-s", endpoint, "-e", house.out / "b", *dynamic)
    served = house.end(server)
    assert (served.code, played.code) == (0, 0), served.err + played.err
    one, two = house.rows("a_jobs.csv"), house.rows("b_jobs.csv")
    for column in ("job_id", "final_state", "starting_time", "finish_time", "allocated_resources"):
        assert [row[column] for row in one] == [row[column] for row in two], column
    assert "COMPLETED_KILLED" in {row["final_state"] for row in two}


def test_serve_writes_attempts(house, load, endpoint, dark):
    """The table of `run`, by which `metrics` counts kills and runs submitted again as `run` does."""
    options = json.dumps({**OPTIONS, "victim": "resubmit"})
    assert house.run("--envelope", dark, "-o", options, workload=load, to="a").code == 0
    table = house.out / "b_attempts.csv"
    words = ("-p", SMALL, "--envelope", dark, "-o", options, "--socket", endpoint, "--attempts", table)
    server = house.start("serve", *words)
    dynamic = ("--enable-dynamic-jobs", "--enable-profile-reuse", *PLAIN)
    played = house.batwatt("batsim", "-p", SMALL, "-w", load, "-s", endpoint, "-e", house.out / "b", *dynamic)
    served = house.end(server)
    assert (served.code, played.code) == (0, 0), served.err + played.err
    assert table.read_bytes() == house.file("a_attempts.csv") and table.read_text().count("#1,") == 2
    inputs = ("-p", SMALL, "-w", load, "--envelope", dark)
    assert house.batwatt("metrics", house.out / "b", *inputs).code == 0
    same = ("resubmissions", "killed_power", "jobs_finished", "mean_wait_s")
    assert [house.metrics("b")[name] for name in same] == [house.metrics("a")[name] for name in same]
    refused = house.batwatt("serve", "--socket", endpoint, "--attempts", house.out)
    assert refused.code == 2 and refused.line.startswith("batwatt: --attempts")


@pytest.mark.parametrize(("protocol", "problem"), [(None, None), ("4", "a Batsim 5"), ("5", "a Batsim 4")])
def test_serve_takes_a_batsim_5_but_no_other_protocol_than_it_is_told_to(
    house, load, endpoint, dark, protocol, problem
):
    five, out = house.folder / "five.json", f"{house.out}/five-"
    assert house.run("--envelope", dark, "-o", PAPER, workload=load, to="a").code == 0
    assert house.batwatt("convert", load, "--to", "batsim5", "-o", five).code == 0
    words = ("-p", SMALL, "--envelope", dark, "--socket", endpoint, *(("--protocol", protocol) if protocol else ()))
    server = house.start("serve", *words)
    if protocol == "5":
        assert house.batwatt("batsim", "-w", load, "-p", SMALL, "-s", endpoint, "-e", out).code == 1
    else:
        batsim = false_batsim(house.folder / "batsim", "recorded")
        played = house.start("-p", SMALL, "-w", five, "-s", endpoint, PAPER, "-e", out, program=("-c", EXEC, batsim))
    served = house.end(server)
    if protocol:
        assert served.code != 0
        assert served.err.splitlines()[-1].startswith(f"batwatt: {problem} has connected")
        return
    ended = house.end(played)
    assert (served.code, ended.code) == (0, 0), served.err + ended.err
    four, rows5 = house.rows("a_jobs.csv"), house.rows("five-jobs.csv")
    for column in ("job_id", "final_state", "starting_time", "finish_time", "allocated_resources"):
        assert [row[column] for row in four] == [row[column] for row in rows5], column


def test_pybatsim_command_and_batsim(house, load, endpoint, dark):
    assert house.run("--envelope", dark, "-o", PAPER, workload=load, to="a").code == 0
    inputs = {"platform": str(SMALL), "envelope": str(dark)}
    file = house.write("options.json", json.dumps({**OPTIONS, **inputs}))
    launcher = ("-c", "from batsim.cmds.launcher import main; main()")
    words = (ROOT / "schedulers" / "powercap", "-O", file, "-s", endpoint)
    server = house.start(*words, program=launcher)
    played = house.batwatt("batsim", "-p", SMALL, "-w", load, "-s", endpoint, "-e", house.out / "b", *PLAIN)
    served = house.end(server)
    assert (served.code, played.code) == (0, 0), served.err + played.err
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")


LAZY = """\
from batsim.batsim import BatsimScheduler
from procset import ProcSet


class Lazy(BatsimScheduler):
    def onJobSubmission(self, job):
        if job.id == "w0!1":
            job.allocation = ProcSet(0)
            self.bs.execute_jobs([job])

    def onDeadlock(self):
        pass

    onJobCompletion = onJobsKilled = onNoMoreEvents = lambda *_: None
"""
BATSIM_4 = """\
#!/bin/sh
if [ "$1" = --version ]; then echo v4.2.1; exit; fi
{python} -m batwatt batsim "$@" 2> /dev/null && echo 'Oops! Deadlock detected'
"""
"""A Batsim 4, which ends with exit code 0 where jobs are left."""


@pytest.mark.parametrize("engine", ["wire", "batsim 4", "batsim 5", "batsim"])
def test_jobs_that_are_left_leave_the_files(house, engine, endpoint):
    """Of two jobs one is never started: the files have the other by every engine; only Batsim ends well."""
    lazy, load = (
        house.write("lazy.py", LAZY),
        house.workload(*({"id": n, "subtime": 0, "res": 1, "profile": "nap"} for n in (1, 2))),
    )
    platform = house.platform("a", "b", watts=False)
    one = house.run("-s", lazy, platform=platform, workload=load, to="a")
    assert one.code == 1 and "1 submitted jobs were neither started nor rejected" in one.line
    if engine == "batsim":
        server = house.start("serve", "-s", lazy, "--socket", endpoint)
        two = house.batwatt("batsim", "-p", platform, "-w", load, "-s", endpoint, "-e", house.out / "b")
        assert "WARNING" not in house.end(server).err
    else:
        words = ["--engine", engine.partition(" ")[0]]
        if engine == "batsim 4":
            program = house.write("batsim", BATSIM_4.format(python=sys.executable))
            program.chmod(0o755)
            words += ["--batsim", program]
        elif engine == "batsim 5":
            words += ["--batsim", false_batsim(house.folder / "batsim", "recorded")]
        two = house.run("-s", lazy, *words, platform=platform, workload=load, to="b")
    assert two.code == (engine != "batsim")
    assert "nothing can happen any more" in two.err or "Deadlock detected" in two.err
    assert [row["job_id"] for row in house.rows("b_jobs.csv")] == ["1"]
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    if engine != "batsim":
        assert house.metrics("a") == house.metrics("b") and house.metrics("b")["jobs_finished"] == 1
