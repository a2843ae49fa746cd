"""Capacities that a run makes, traces in hours, and short and long jobs, at the command line."""

from __future__ import annotations

import csv
import json

import pytest
from cli_house import Done, House

from batwatt.inputs.signal import read_capacity

CONTRACT = ("goodput", "job_failure_rate", "mean_wait_s", "jobs_finished", "terminations")
WALK = "walk:range=0.6,mean=0.7,step=0.3,period=3600,seed=1"
HOURS = "arrival_time,length,cpus\n" + "".join(f"{0.25 * i:g},{0.2 + 1.3 * (i % 5):g},{1 + i % 4}\n" for i in range(60))
SECONDS = "arrival_time,length,cpus\n" + "".join(f"{900 * i},{720 + 4680 * (i % 5)},{1 + i % 4}\n" for i in range(60))
EIGHT = ("--machines", 8, "--cores", 4)


def varying(house: House, *words: object, jobs=HOURS, unit="hours", capacity: object = WALK, to="x", **options) -> Done:
    """A run of riskaware on eight machines of four cores, with exit code 0."""
    inputs = ["-w", house.write("jobs.csv", jobs), *EIGHT, "-s", "riskaware", "-e", house.out / to]
    inputs += ["-o", json.dumps(options or {"strategy": "first-fit-aware"})]
    inputs[1] = inputs[1] if unit is None else f"{inputs[1]},unit={unit}"
    inputs += [] if capacity is None else ["--capacity", capacity]
    done = house.batwatt("run", *inputs, *words)
    assert done.code == 0, done.err
    return done


def varcap(house: House, *words: object, **more) -> Done:
    return varying(house, "-s", "varcap", *words, **more)


def test_the_contract(house):
    done = varying(house)
    metrics = house.metrics()
    states = [row["final_state"] for row in house.rows()]
    assert metrics["terminations"] == states.count("COMPLETED_KILLED") > 0
    assert metrics["jobs_finished"] == states.count("COMPLETED_SUCCESSFULLY") == 60
    assert metrics["goodput_short"] + metrics["goodput_long"] == pytest.approx(metrics["goodput"], abs=2e-6)
    classes = house.rows("x_classes.csv")
    assert [int(row["jobs"]) for row in classes] == [12, 0, 24, 24, 0, 0, 0]  # 0.2 h; 1.5 and 2.8; 4.1 and 5.4
    [row] = csv.DictReader(done.out.splitlines(), delimiter="\t")
    assert all(float(row[name]) == metrics[name] for name in CONTRACT)
    # a run without a capacity leaves no classes of an earlier one
    assert house.run("-o", '{"response": "none"}').code == 0
    assert "x_classes.csv" not in house.left and house.metrics()["terminations"] is None


def test_hours_seconds_and_a_capacity_as_an_option(house):
    varying(house, to="a")
    varying(house, to="b", jobs=SECONDS, unit="seconds")
    varying(house, to="c", jobs=SECONDS, unit=None)
    options = json.dumps({"strategy": "first-fit-aware", "capacity": WALK})
    varying(house, "-o", options, to="d", capacity=None)
    house.assert_same("a", "b", "c", "d")
    assert json.loads(house.file("a_metadata.json"))["length_unit"] == "h"


def test_a_capacity_that_is_made_is_written_and_may_be_given(house):
    varying(house, to="a")
    path = house.out / "a_capacity.csv"
    series = read_capacity(path, 8)
    # for twice the last submission, 14.75 h, and 30 days
    assert series.times_s[:2] == (0.0, 3600.0) and series.times_s[-1] == 3600 * (2 * 14 + 30 * 24 + 1)
    # from 0.4 to 1 of 8 machines, rounded down
    assert {3.0, 8.0} <= set(series.values) <= set(range(3, 9))
    varying(house, to="b", capacity=path)
    house.assert_same("a", "b")
    assert "b_capacity.csv" not in house.left  # a file is not written again
    written, read_back = (json.loads(house.file(f"{to}_metadata.json")) for to in "ab")
    assert written["capacity"] == WALK and "capacity" not in written["inputs"]
    assert read_back["inputs"]["capacity"]["sha256"]


def test_long_jobs(house):
    """The threshold changes the figures of short and long jobs only, also where `batwatt metrics` measures again."""
    varying(house, to="a")
    varying(house, "--long", 12_000, to="b")
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    one, other, classes = house.metrics("a"), house.metrics("b"), house.file("b_classes.csv")
    changed = {name for name in one if one[name] != other[name]}
    assert changed and all("_short" in name or "_long" in name for name in changed)
    words = ("-w", f"{house.folder}/jobs.csv,unit=h", *EIGHT, "--capacity", WALK)
    assert house.batwatt("metrics", house.out / "b", *words, "--long", 12_000).code == 0
    assert house.metrics("b") == other and house.file("b_classes.csv") == classes


def test_the_length_of_long_jobs_is_given_once(house):
    """By `--long` to both, by the option to both, and by each to one of them."""
    varcap(house, "--long", 12_000, mapping="longshort", to="a")
    varcap(house, mapping="longshort", long_s=12_000, to="b")
    house.assert_same("a", "b")
    varcap(house, mapping="longshort", to="c")
    assert house.file("a_jobs.csv") != house.file("c_jobs.csv")
    varcap(house, "--long", 5000, mapping="longshort", long_s=12_000, to="d")
    assert house.file("a_jobs.csv") == house.file("d_jobs.csv")
    assert house.metrics("a")["goodput_short"] > house.metrics("d")["goodput_short"]


def test_acknowledged_and_rejected_at_once(house):
    """A job of three machines is killed when two are left for ever: submitted again, it can never run."""
    capacity = house.write("two.csv", "time_s,machines\n0,4\n100.5,2\n")
    words = ("--machines", 4, "--cores", 2, "--batsim-arg=--acknowledge-dynamic-jobs")
    jobs = "arrival_time,length,cpus\n0,1000,6\n0,100,2\n"
    done = varcap(house, *words, jobs=jobs, unit="s", capacity=capacity, mapping="base")
    assert "1 job can never run, not enough machines or memory" in done.err
    states = {row["job_id"]: row["final_state"] for row in house.rows()}
    assert states == {"1": "COMPLETED_KILLED", "1#1": "REJECTED", "2": "COMPLETED_SUCCESSFULLY"}


def test_a_job_that_is_acknowledged_goes_on(house):
    """A checkpoint of 60 s and a recovery start before their acknowledgements: 1000 s of work end at 1060 s."""
    words = ["-w", house.write("j.csv", "arrival_time,length,cpus\n0,1000,1\n"), "--machines", 2, "--cores", 1]
    words += ["--capacity", house.write("one.csv", "time_s,machines\n0,2\n500,1\n"), "-s", "checkpoint"]
    for acknowledge in ([], ["--batsim-arg=--acknowledge-dynamic-jobs"]):
        assert house.batwatt("run", *words, *acknowledge, "-e", house.out / "x").code == 0
        rows = [(row["job_id"], float(row["finish_time"])) for row in house.rows()]
        assert rows == [("1", 440.0), ("1#1", 500.0), ("1#2", 1060.0)]
