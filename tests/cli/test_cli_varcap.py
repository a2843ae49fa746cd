"""Capacities that a run makes, traces in hours, and short and long jobs, at the command line."""

from __future__ import annotations

import csv
import json
from itertools import product

import pytest
from cli_house import ROOT, SMALL, Done, House

from batwatt.inputs.platforms.platform_text import machines_xml
from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.traces.convert import read_trace
from batwatt.inputs.traces.window import window_json
from batwatt.model.hostset import from_text, ids
from batwatt.model.machines import MachineSpec

FIRST_FIT = '{"strategy": "first-fit-aware"}'
CONTRACT = ("goodput", "job_failure_rate", "mean_wait_s", "jobs_finished", "terminations")
WALK = "walk:range=0.6,mean=0.7,step=0.3,period=3600,seed=1"
HOURS = "arrival_time,length,cpus\n" + "".join(f"{0.25 * i:g},{0.2 + 1.3 * (i % 5):g},{1 + i % 4}\n" for i in range(60))
SECONDS = "arrival_time,length,cpus\n" + "".join(f"{900 * i},{720 + 4680 * (i % 5)},{1 + i % 4}\n" for i in range(60))


def varying(house: House, *args: object, jobs=HOURS, unit="hours", capacity: object = WALK, to="x") -> Done:
    """A run of riskaware on eight machines of four cores."""
    words = [] if "-w" in args else ["-w", house.write("jobs.csv", jobs)]
    words += ["--machines", 8, "--cores", 4, "-s", "riskaware"]
    words += ["-o", FIRST_FIT, "-e", house.out / to]
    if unit is not None:
        words += ["--length-unit", unit]
    if capacity is not None:
        words += ["--capacity", capacity]
    return house.batwatt("run", *words, *args)


def read(house: House, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((house.out / name).open()))


def test_the_contract(house):
    done = varying(house)
    assert done.code == 0, done.err
    metrics = house.metrics()
    assert all(metrics[key] is not None for key in CONTRACT)
    rows = read(house, "x_jobs.csv")
    states = [row["final_state"] for row in rows]
    assert metrics["terminations"] == states.count("COMPLETED_KILLED") > 0
    assert metrics["jobs_finished"] == states.count("COMPLETED_SUCCESSFULLY") == 60
    assert metrics["job_failure_rate"] == pytest.approx(metrics["terminations"] / len(rows), abs=1e-6)
    waits = [
        float(row["starting_time"]) - 900 * (int(row["job_id"].partition("#")[0]) - 1)
        for row in rows
        if row["success"] == "1"
    ]
    assert metrics["mean_wait_s"] == pytest.approx(sum(waits) / 60, abs=1e-5)
    assert metrics["goodput_short"] + metrics["goodput_long"] == pytest.approx(metrics["goodput"], abs=2e-6)
    classes = read(house, "x_classes.csv")
    assert [int(row["jobs"]) for row in classes] == [12, 0, 24, 24, 0, 0, 0]  # 0.2 h; 1.5 and 2.8; 4.1 and 5.4
    assert sum(int(row["terminations"]) for row in classes) == metrics["terminations"]
    [shown] = csv.DictReader(done.out.splitlines(), delimiter="\t")
    for name in ("goodput", "job_failure_rate", "terminations", "jobs_finished", "mean_wait_s"):
        assert float(shown[name]) == metrics[name]


def test_hours_and_seconds(house):
    assert varying(house, to="a").code == 0
    assert varying(house, to="b", jobs=SECONDS, unit="seconds").code == 0
    assert varying(house, to="c", jobs=SECONDS, unit=None).code == 0
    house.assert_same("a", "b", "c")
    assert json.loads(house.file("a_metadata.json"))["length_unit"] == "h"


def test_what_was_made_is_written_and_may_be_given(house):
    assert varying(house, to="a").code == 0
    path = house.out / "a_capacity.csv"
    series = read_capacity(path, 8)
    # for twice the last submission, 14.75 h, and 30 days
    assert series.times_s[:2] == (0.0, 3600.0) and series.times_s[-1] == 3600 * (2 * 14 + 30 * 24 + 1)
    # from 0.4 to 1 of 8 machines, rounded down
    assert {3.0, 8.0} <= set(series.values) <= set(range(3, 9))
    assert varying(house, to="b", capacity=path).code == 0
    house.assert_same("a", "b")
    assert "b_capacity.csv" not in house.left  # a file is not written again
    made, read_back = (json.loads(house.file(f"{to}_metadata.json")) for to in "ab")
    assert made["capacity"] == WALK and "capacity" not in made["inputs"]
    assert read_back["inputs"]["capacity"]["sha256"]
    # and none is left of an earlier run
    assert varying(house, to="a", capacity=house.write("five.csv", "5\n")).code == 0
    assert "a_capacity.csv" not in house.left


def test_the_capacity_as_an_option(house):
    options = ("-o", json.dumps({"strategy": "first-fit-aware", "capacity": WALK}))
    assert varying(house, to="a").code == 0
    assert varying(house, *options, to="b", capacity=None).code == 0
    assert varying(house, *options, to="c").code == 0
    house.assert_same("a", "b", "c")


def test_a_file_that_a_capacity_depends_on_is_told(house):
    prices = house.write(
        "prices.csv", "time_s,price\n" + "".join(f"{3600 * i},{40 + 5 * (i % 7)}\n" for i in range(99))
    )
    done = varying(house, capacity=f"price:{prices},budget=0.7,column=price")
    assert done.code == 0, done.err
    (told,) = [each for name, each in json.loads(house.file("x_metadata.json"))["inputs"].items() if "price" in name]
    assert told["path"] == str(prices) and len(told["sha256"]) == 64


def test_long_jobs(house):
    """Only what is told of short and long jobs depends on the threshold."""
    assert varying(house, to="a").code == 0
    assert varying(house, "--long", 12_000, to="b").code == 0
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    one, other = house.metrics("a"), house.metrics("b")
    changed = {name for name in one if one[name] != other[name]}
    assert changed and all("_short" in name or "_long" in name for name in changed)
    assert one["goodput_short"] < other["goodput_short"] < one["goodput"]
    assert varying(house, "--long", 1e6, to="c").code == 0
    all_short = house.metrics("c")
    assert (all_short["goodput_short"], all_short["goodput_long"]) == (one["goodput"], 0.0)
    assert (all_short["terminations_long"], all_short["job_failure_rate_long"]) == (0, None)


def test_measured_again(house):
    assert varying(house, "--long", 12_000).code == 0
    before, classes = house.metrics(), house.file("x_classes.csv")
    words = ("-w", house.folder / "jobs.csv", "--length-unit", "h", "--machines", 8, "--cores", 4, "--capacity", WALK)
    done = house.batwatt("metrics", house.out / "x", *words, "--long", 12_000)
    assert done.code == 0, done.err
    assert house.metrics() == before and house.file("x_classes.csv") == classes
    assert house.batwatt("metrics", house.out / "x", *words).code == 0
    assert house.metrics()["goodput_short"] < before["goodput_short"]


def test_a_run_without_a_capacity_has_no_classes(house):
    assert varying(house).code == 0
    assert house.run("-o", '{"response": "none"}').code == 0
    assert "x_classes.csv" not in house.left
    assert house.metrics()["terminations"] is None


# the scheduler of the dissertation ---------------------------------------------------------------------------------

SCHEMES = ("base", "longshort", "jobsize-order", "twomode", "migration")


def varcap(house: House, *args: object, to="x", **options: object) -> Done:
    return varying(house, "-s", "varcap", "-o", json.dumps(options), *args, to=to)


@pytest.mark.parametrize(
    ("scheme", "termination"),
    list(product(SCHEMES, ("random", "lww", "lfd"))),
)
def test_varcap_and_what_is_told_of_it(house, scheme, termination):
    done = varcap(house, mapping=scheme, termination=termination, foresight_h=0)
    assert done.code == 0, done.err
    metrics = house.metrics()
    assert all(metrics[key] is not None for key in CONTRACT)
    assert f"varcap {scheme} {termination}" in done.out
    # all complete, so that all the work asked for was useful, however it was moved about
    assert metrics["jobs_finished"] == 60
    asked = sum(float(row["length"]) * int(row["cpus"]) * 3600 for row in csv.DictReader(HOURS.splitlines()))
    assert metrics["useful_core_s"] == pytest.approx(asked, abs=1e-2)
    assert metrics["slowdown_rate"] == 0.0
    states = [(row["final_state"], row["metadata"]) for row in read(house, "x_jobs.csv")]
    assert metrics["migrations"] == states.count(("COMPLETED_KILLED", "migrated"))
    assert metrics["terminations"] == states.count(("COMPLETED_KILLED", ""))
    assert metrics["killed_power"] == metrics["terminations"]
    assert (metrics["migrations"] > 0) <= (scheme == "migration")


def test_what_is_long_is_told_once(house):
    """By `--long` to both, by the option to both, and by each to one of them."""
    assert varcap(house, "--long", 12_000, mapping="longshort", to="a").code == 0
    assert varcap(house, mapping="longshort", long_s=12_000, to="b").code == 0
    house.assert_same("a", "b")
    assert varcap(house, mapping="longshort", to="c").code == 0
    assert house.file("a_jobs.csv") != house.file("c_jobs.csv")
    assert varcap(house, "--long", 5000, mapping="longshort", long_s=12_000, to="d").code == 0
    assert house.file("a_jobs.csv") == house.file("d_jobs.csv")
    assert house.metrics("a")["goodput_short"] > house.metrics("d")["goodput_short"]


BAD = {
    "unit": (["--length-unit", "hour"], "--length-unit: no unit of time 'hour'; did you mean 'hours'?"),
    "long": (["--long", "0"], "--long: 0 is not a number of seconds > 0"),
    "long is none": (["--long", "nan"], "--long: nan is not"),
    "kind": (["--capacity", "wlak:range=0.6"], "did you mean 'walk'?"),
    "empty": (["--capacity", ""], "capacity: '' is no capacity; give a file, or a text such as walk:range=0.6"),
    "foresight": (
        ["-s", "varcap", "-o", '{"foresight_h": -1}'],
        "option 'foresight_h': -1 is not a number >= 0 and <= 8760 (how far ahead the capacity is known, in h)",
    ),
    "no file": (["--capacity", "price:no.csv,budget=0.7"], "no.csv"),
    "two": (["-o", json.dumps({"capacity": "walk:range=0.5"})], "option 'capacity': 'walk:range=0.5' is another one"),
    "option": (["--capacity", "5.csv", "-o", '{"capacity": "walk:rnage=1"}'], "did you mean 'range'?"),
    "no follower": (["-s", "replay", "-o", "{}"], "'replay' follows no capacity"),
    "json": (["-w", ROOT / "workloads" / "small.json"], "--length-unit: is for traces of jobs"),
    "text": (["-w", ROOT / "workloads" / "risk-small.txt"], "times are in seconds"),
}


@pytest.mark.parametrize(("words", "expected"), BAD.values(), ids=BAD)
def test_bad_words(house, words, expected):
    done = varying(house, *words)
    assert (done.code, house.left) == (2, [])
    assert expected in done.line


def test_serving_a_capacity_that_is_made(house):
    done = house.batwatt("serve", "-s", "riskaware", "--capacity", WALK)
    assert done.code == 2
    assert "is made for a number of machines; give --platform" in done.line
    done = house.batwatt("serve", "-s", "riskaware", "--capacity", WALK.replace("range", "rnage"), "-p", SMALL)
    assert "did you mean 'range'?" in done.line


def test_served_is_what_was_run(house, endpoint):
    """The scheduler and the engine as commands of their own; without a workload the capacity lasts 30 days."""
    jobs = "".join(HOURS.splitlines(keepends=True)[:20])
    walk = f"{WALK},level=0"  # levelled, it depends on how long it is
    assert varying(house, "--no-energy", jobs=jobs, capacity=walk, to="a").code == 0
    data = window_json(read_trace(house.folder / "jobs.csv", "h"), None, None, 32)
    workload = house.write("w.json", json.dumps(data))
    platform = house.write("p.xml", machines_xml(MachineSpec(8, 4)))
    options = json.dumps({"strategy": "first-fit-aware", "switch": False})
    words = ("-s", "riskaware", "-o", options, "--capacity", walk, "-p", platform)
    scheduler = house.start("serve", *words, "--socket", endpoint, "--timeout", 20)
    engine = house.batwatt(
        "engine", "-p", platform, "-w", workload, "-s", endpoint, "-e", house.out / "b", "--timeout", 20,
        "--enable-dynamic-jobs", "--enable-profile-reuse", "--no-energy",
    )  # fmt: skip
    assert engine.code == 0, engine.err
    assert house.end(scheduler).code == 0
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")


def test_acknowledged_and_rejected_at_once(house):
    """A job of three machines is killed when two are left for ever: submitted again, it can never run."""
    jobs = "arrival_time,length,cpus\n0,1000,6\n0,100,2\n"
    capacity = house.write("two.csv", "time_s,machines\n0,4\n100.5,2\n")
    words = [
        "-w",
        house.write("acked.csv", jobs),
        "--machines",
        4,
        "--cores",
        2,
        "-s",
        "varcap",
        "--capacity",
        capacity,
    ]
    words += ["--capacity", capacity, "-e", house.out / "acked", "--acknowledge-dynamic-jobs"]
    done = house.batwatt("run", *words)
    assert done.code == 0 and "1 job can never run, not enough machines or memory" in done.err
    states = {row["job_id"]: row["final_state"] for row in read(house, "acked_jobs.csv")}
    assert states == {"1": "COMPLETED_KILLED", "1#1": "REJECTED", "2": "COMPLETED_SUCCESSFULLY"}


def test_jobs_that_need_no_memory(house):
    jobs = house.write("light.csv", "arrival_time,length,cpus,memory\n0,10,1,0\n0,10,1,0.4\n")
    words = ["-w", jobs, "--machines", 1, "--cores", 2, "-s", "varcap", "--capacity", "constant:mean=1"]
    done = house.batwatt("run", *words, "-o", '{"machine_memory": 0.5}', "-e", house.out / "light")
    assert done.code == 0
    assert json.loads((house.out / "light_metrics.json").read_text())["jobs_finished"] == 2


@pytest.mark.parametrize("name", ["varcap", "riskaware"])
def test_machines_become_unavailable_by_events_too(house, name):
    events = house.write("events.txt", '{"timestamp": 10, "type": "machine_unavailable", "resources": "0"}\n')
    words = ["-w", house.write("jobs.csv", SECONDS), "--machines", 8, "--cores", 4, "-s", name, "--capacity", WALK]
    done = house.batwatt("run", *words, "--events", events, "-e", house.out / "events")
    assert done.code == 0
    rows = read(house, "events_jobs.csv")
    assert all(float(row["starting_time"]) < 10 for row in rows if 0 in ids(from_text(row["allocated_resources"])))
