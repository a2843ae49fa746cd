"""The scheduler oversubscribed at the command line: delays run as flops, on cores of several speeds."""

from __future__ import annotations

import json

import pytest
from cli_house import Done, House

from batwatt.inputs.servers import machines_xml
from batwatt.model.platform import SpeedMachineSpec

JOBS = "arrival_time,length,cpus,use\n0,1000,5,0.8\n0,1000,5,0.8\n600,2000,4,0.8\n"
CAPACITY = "time_s,machines\n0,2\n300,1\n900,2\n"
TWO = ("--machines", 2, "--cores", 10)
ENDS = [1049.6, 1049.6, 2600.0]
"""Worked out in test_oversubscription."""


def oversubscribed(house: House, *args: object, workload=None, platform=TWO) -> Done:
    """A run of jobs on two machines of ten promised cores, which are eight."""
    jobs = workload or house.write("jobs.csv", JOBS)
    words = ["-w", jobs, *platform, "--capacity", house.write("capacity.csv", CAPACITY)]
    done = house.batwatt("run", *words, "-s", "oversubscribed", "-e", house.out / "x", *args)
    assert done.code == 0, done.err
    return done


def ends(house: House) -> list[float]:
    return [float(row["finish_time"]) for row in house.rows()]


def test_figures(house):
    oversubscribed(house)
    assert ends(house) == pytest.approx(ENDS)
    before = house.metrics()
    # what they were slowed down by is no work: (2 x 1000 x 5 + 2000 x 4) core s of 10 (2 x 300 + 600 + 2 x 1700)
    assert before["useful_core_s"] == pytest.approx(18_000.0, abs=1e-3)
    assert before["capacity_core_s"] == pytest.approx(46_000.0, abs=1e-3)
    assert before["goodput"] == pytest.approx(18 / 46, abs=1e-6)
    assert before["slowdown_rate"] == pytest.approx(2 / 3, abs=1e-6)
    assert before["terminations"] == 0 and before["job_failure_rate"] == 0.0 and before["jobs_finished"] == 3
    assert json.loads(house.file("x_metadata.json"))["machines"]["speeds"]
    # measured again
    words = ["-w", house.folder / "jobs.csv", *TWO, "--capacity", house.folder / "capacity.csv"]
    assert house.batwatt("metrics", house.out / "x", *words, "--slowed").code == 0 and house.metrics() == before
    assert house.batwatt("metrics", house.out / "x", *words).code == 0
    assert house.metrics()["useful_core_s"] == pytest.approx(18_000.0, abs=1e-3)


def test_the_same_under_a_batsim(house, batsim):
    oversubscribed(house, "--engine", "batsim", "--batsim", batsim)
    assert ends(house) == pytest.approx(ENDS, abs=1e-3)


def test_a_platform_of_fewer_speeds(house):
    """8.5 of 8 cores from 300 s on: 0.94, 0.5 here; 400 s are left at 900 s, at 1.25 and, at most 1.11, at 1."""
    rows = [{"id": n, "subtime": 0, "res": 5, "profile": "d"} | more for n, more in (("1", {"use": 0.8}), ("2", {}))]
    jobs = house.workload(*rows, nb_res=20, d={"type": "delay", "delay": 1000})
    platform = house.write("p.xml", machines_xml(SpeedMachineSpec(2, 10, core_flops="3Gf", speeds=(0.5, 1.25))))
    oversubscribed(house, "-o", '{"use": 0.9}', workload=jobs, platform=("-p", platform))
    assert ends(house) == pytest.approx([900 + 400 / 1.25, 900 + 400])


def test_generated_machines_and_converted_jobs(house):
    platform, workload, trace = house.folder / "m.xml", house.folder / "w.json", house.write("jobs.csv", JOBS)
    assert house.batwatt("generate", "platform", *TWO, "--speeds", "-o", platform).code == 0
    words = ["--reference-flops", "18.4e9", "--walltime-factor", 0, "--nb-res", 20]
    assert house.batwatt("convert", trace, *words, "-o", workload).code == 0
    oversubscribed(house, workload=workload, platform=("-p", platform))
    assert ends(house) == pytest.approx(ENDS)
