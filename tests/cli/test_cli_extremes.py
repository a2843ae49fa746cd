"""Numbers that nobody can mean: too close, too large, too many. One line, exit code 2, nothing written."""

from __future__ import annotations

import json

import pytest

NONE = ("-o", '{"response": "none"}')


@pytest.mark.parametrize(
    "rows,said",
    [
        ("0,600\n1e-6,500\n", "line 3: time_s 1e-06 is less than 0.001 s after 0.0"),
        ("0,600\n1e-300,500\n", "line 3: time_s 1e-300 is less than 0.001 s after 0.0"),
        ("0,600\n1e307,500\n", "line 3: time_s 1e+307 is larger than 1e+15"),
        ("-1e16,600\n0,500\n", "line 2: time_s -1e+16 is larger than 1e+15"),
        ("0,1e308\n", "line 2: power_w 1e+308 is larger than 1e+15"),
    ],
)
def test_envelopes(house, rows, said):
    path = house.write("far.csv", f"time_s,power_w\n{rows}")
    done = house.batwatt("events", path, "-o", house.out / "x")
    assert (done.code, done.out, house.left) == (2, "", []) and said in done.line


@pytest.mark.parametrize("command", ["run", "optimum"])
def test_envelopes_of_a_run(house, command):
    path = house.write("near.csv", "time_s,power_w\n0,600\n1e-6,500\n")
    words = ("-p", house.platform("a"), "-w", house.workload(nb_res=1), "--envelope", path, "-e", house.out / "x")
    done = house.batwatt(command, *words)
    assert (done.code, done.out, house.left) == (2, "", []) and "less than 0.001 s after" in done.line


def test_rows_a_millisecond_apart_will_do(house):
    path = house.write("near.csv", "time_s,power_w\n0,600\n0.1,500\n0.101,400\n")
    assert house.batwatt("events", path, "-o", house.out / "x").code == 0


@pytest.mark.parametrize(
    "command,rows",
    [
        ("characterise", "0,3e307\n10,1\n20,1.7e308\n"),
        ("characterise", "0,1\n3600,2\n1e300,3\n"),
        ("characterise", "0,1\n10,-1e20\n"),
        ("carbon", "0,3e307\n10,1\n20,1.7e308\n"),
    ],
)
def test_signals(house, command, rows):
    signal = house.write("signal.csv", f"time_s,carbon_intensity\n{rows}")
    jobs = house.write("jobs.csv", "arrival_time,length,cpus\n0,5,1\n")
    policy = ("--policy", "oracle", "--wait", 0, "-e", house.out / "x")
    words = ["carbon", "run", "-w", jobs, "--carbon", signal, *policy]
    done = house.batwatt(*(["characterise", signal] if command == "characterise" else words))
    assert (done.code, done.out, house.left) == (2, "", []) and str(signal) in done.line


LOOP = {"type": "composed", "repeat": 2**31 - 1, "seq": ["b"]}
NESTED = {f"a{depth}": {"type": "composed", "repeat": 100, "seq": [f"a{depth + 1}"] * 10} for depth in range(20)}


@pytest.mark.parametrize(
    "profiles,blamed",
    [
        ({"a0": LOOP, "b": {"type": "delay", "delay": 1e-9}}, "'a0'"),
        (NESTED | {"a20": {"type": "delay", "delay": 1}}, "'a17'"),
    ],
)
def test_composed_profiles(house, profiles, blamed):
    workload = house.workload({"id": 1, "subtime": 0, "res": 1, "profile": "a0"}, **profiles)
    done = house.run(*NONE, workload=workload)
    assert (done.code, house.left) == (2, [])
    assert f"profile {blamed}: a job of it runs more than 10000000 tasks" in done.line


def test_steps_of_the_optimum(house):
    jobs = [{"id": 1, "subtime": 0, "res": 1, "walltime": 1e6, "profile": "p"}]
    workload = house.workload(*jobs, nb_res=1, p={"type": "parallel_homogeneous", "cpu": 2e16, "com": 0})
    path = house.write("short.csv", "time_s,power_w\n0,600\n0.001,500\n")
    words = ("-p", house.platform("a"), "-w", workload, "--envelope", path, "--effort", 1, "-e", house.out / "x")
    done = house.batwatt("optimum", *words)
    assert (done.code, house.left) == (2, []) and "in steps of 0.001 s are more than 100000" in done.line


def test_json_tables_with_lists_for_texts(house):
    row = {"time": 600000000, "type": ["SUBMIT"], "collection_id": 2, "instance_index": 0}
    path = house.write("borg.jsonl", json.dumps(row | {"type": "SUBMIT"}) + "\n" + json.dumps(row) + "\n")
    done = house.batwatt("convert", "--format", "borg", path, "-o", house.out / "x")
    assert (done.code, house.left) == (2, []) and f"{path} line 2: type must be a text" in done.line


def test_a_name_that_is_too_long(house):
    assert "cannot be read (File name too long)" in house.batwatt("campaign", "status", "x" * 300).line


def test_more_servers_than_there_can_be(house):
    jobs = house.write("jobs.csv", "arrival_time,length,cpus\n0,5,1\n")
    done = house.batwatt("convert", jobs, "--nb-res", 10**18, "-o", house.out / "x")
    assert (done.code, house.left) == (2, []) and "nb_res must be a whole number in 1.." in done.line


def test_a_field_of_a_job_that_no_double_holds(house):
    job = {"id": 1, "subtime": 0, "res": 1, "profile": "nap", "estimate_s": int("9" * 400)}
    words = ("--machines", 2, "--capacity", "constant:mean=1", "-s", "varcap", "-e", house.out / "x")
    done = house.batwatt("run", "-w", house.workload(job, nb_res=2), *words)
    assert (done.code, house.left) == (2, []) and "999... is too large" in done.line
