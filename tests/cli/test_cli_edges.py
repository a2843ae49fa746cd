"""Unusual but legal inputs: every run ends, loses no job, and says what it could not run."""

from __future__ import annotations

import csv
import json

import pytest

import batwatt.schedulers.powercap  # noqa: F401  # registers its responses
from batwatt.scheduling.registry import names

RESPONSES = names("response")
NAP = {"profile": "nap", "res": 1, "subtime": 0}


def states(house, run="x"):
    with (house.out / f"{run}_jobs.csv").open() as rows:
        return {row["job_id"]: row["final_state"] for row in csv.DictReader(rows)}


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("power_w", [0, 1])
def test_an_envelope_too_low_for_anything_rejects_all_jobs(house, response, power_w):
    envelope = house.write("low.csv", f"time_s,power_w\n0,{power_w}\n300,{power_w}\n")
    done = house.run("--envelope", envelope, "-o", json.dumps({"response": response}))
    assert done.code == 0
    if response == "none":
        assert set(states(house).values()) == {"COMPLETED_SUCCESSFULLY"}
        assert house.metrics()["violations"] > 0
    else:
        assert set(states(house).values()) == {"REJECTED"} and len(states(house)) == 8
        assert "8 jobs can never run" in done.err
        assert house.metrics()["jobs_finished"] == 0


@pytest.mark.parametrize("response", RESPONSES)
def test_servers_that_cannot_sleep(house, response):
    envelope = house.write("low.csv", "time_s,power_w\n0,0\n300,0\n")
    platform = house.platform("a", "b", "c", "d")
    done = house.run("--envelope", envelope, "-o", json.dumps({"response": response}), platform=platform)
    assert done.code == 0 and set(states(house).values()) == {"COMPLETED_SUCCESSFULLY"}


@pytest.mark.parametrize("response", RESPONSES)
def test_one_host(house, response):
    done = house.run(
        "--envelope", house.envelope, "-o", json.dumps({"response": response}), platform=house.platform("a")
    )
    assert done.code == 0
    assert sum(state == "REJECTED" for state in states(house).values()) == 5
    [told] = [line for line in done.err.splitlines() if "rejected" in line]
    assert "5 jobs can never run, wider than the platform of 1 hosts: rejected (first: " in told


@pytest.mark.parametrize("response", [name for name in RESPONSES if name != "none"])
def test_a_response_needs_watts(house, response):
    platform = house.platform("a", "b", "c", "d", watts=False)
    done = house.run("--envelope", house.envelope, "-o", json.dumps({"response": response}), platform=platform)
    assert (done.code, house.left) == (2, []) and "watt" in done.line


def test_no_watts_and_no_response(house):
    platform = house.platform("a", "b", "c", "d", watts=False)
    done = house.run("--envelope", house.envelope, "-o", '{"response": "none"}', platform=platform)
    assert done.code == 0 and house.metrics()["energy_j"] is None and "x_consumed_energy.csv" not in house.left


@pytest.mark.parametrize("engine", ["embedded", "wire"])
def test_no_jobs(house, engine):
    done = house.run("--envelope", house.envelope, "--engine", engine, workload=house.workload())
    assert done.code == 0 and "powercap" in done.out and done.err == ""
    metrics = house.metrics()
    assert (metrics["jobs_finished"], metrics["violations"], metrics["mean_slowdown"]) == (0, 0, None)


@pytest.mark.parametrize("response", RESPONSES)
def test_all_jobs_wider_than_the_platform(house, response):
    workload = house.workload(*({**NAP, "id": i, "res": 5 + i} for i in range(3)), nb_res=9)
    done = house.run("--envelope", house.envelope, "-o", json.dumps({"response": response}), workload=workload)
    assert done.code == 0 and set(states(house).values()) == {"REJECTED"}
    told = "WARNING: 3 jobs can never run, wider than the platform of 4 hosts: rejected (first: w0!0)"
    assert told in done.err.splitlines()


def test_a_walltime_that_no_state_can_meet(house):
    work = {"type": "parallel_homogeneous", "cpu": 1e15, "com": 0}
    workload = house.workload({**NAP, "id": 1, "profile": "work", "walltime": 0.001}, work=work)
    for response in RESPONSES:
        done = house.run("--envelope", house.envelope, "-o", json.dumps({"response": response}), workload=workload)
        assert done.code == 0 and states(house) == {"1": "COMPLETED_WALLTIME_REACHED"}
        assert house.metrics()["killed_walltime"] == 1


def test_a_scheduler_that_forgets_jobs_is_told(house):
    callbacks = ("onJobSubmission", "onJobCompletion", "onNoMoreEvents")
    text = "from batsim.batsim import BatsimScheduler\n\n\nclass Idler(BatsimScheduler):\n"
    text += "".join(f"    def {name}(self, *args):\n        pass\n\n" for name in callbacks)
    done = house.run("-s", house.write("idler.py", text))
    assert done.code == 1 and "8 submitted jobs were neither started nor rejected" in done.line


@pytest.mark.parametrize("name", ["easyBackfill", "fillerSched"])
def test_pybatsims_own_schedulers(house, name):
    done = house.run("-s", name)
    assert done.code == 0 and house.metrics()["jobs_finished"] == 8 and name in done.out
