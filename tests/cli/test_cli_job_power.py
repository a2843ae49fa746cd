"""Jobs that draw different power, from the command line: generate, run, and what came of it."""

from __future__ import annotations

import json

import pytest
from cli_house import ROOT

import batwatt as bw
from batwatt.errors import InputError

PLATFORM = ROOT / "platforms" / "marconi100-48.xml"
CAP = "constant:20000"


@pytest.fixture
def jobs(house):
    path = house.out / "jobs.json"
    done = house.batwatt("generate", "power-jobs", "--seed", 3, "--jobs", 60, "-o", path)
    assert done.code == 0, done.err
    return path


def test_a_run_and_its_figures(house, jobs):
    words = ("-p", PLATFORM, "-w", jobs, "--envelope", CAP)
    ran = house.batwatt("run", *words, "-s", "jobpower", "-o", '{"predictor": "user"}', "-e", house.out / "x", "-v")
    assert ran.code == 0, ran.err
    assert "predictor user: mean absolute error" in ran.err and "of the power of 60 runs" in ran.err
    trace = house.out / "power.csv"
    shown = house.batwatt("job-power", house.out / "x", *words, "--json", "-o", trace)
    assert shown.code == 0, shown.err
    (found,) = json.loads(shown.out)
    assert found["completed"] == 60 and found["killed_power"] == 0
    lines = trace.read_text().splitlines()
    assert lines[0] == "time_s,power_w,cap_w" and lines[1].startswith("0.000000,11520.000000,20000.")
    # the same from Python
    result = bw.simulate(PLATFORM, jobs, "jobpower", options={"predictor": "user"}, envelope=CAP)
    assert result.job_power == {name: value for name, value in found.items() if name != "prefix"}
    # and in lines
    head, row = house.batwatt("job-power", house.out / "x", *words).out.splitlines()
    assert head.split("\t")[:2] == ["prefix", "share_above"]
    assert row.split("\t")[1] == str(found["share_above"])


def test_a_table_of_pm100(house):
    """A host is a node; two jobs draw 240 W above idle on average, and 400 W at most, on machines of 240 to 2100 W."""
    rows = "".join(
        f"{i},2020-05-01 10:00:{i:02},2020-05-01 11:00:00,2020-05-01 11:10:00,600,90,32,1,COMPLETED,u{i},1,q,"
        '"[480, 320, 640]"\n'
        for i in range(2)
    )
    head = (
        "job_id,submit_time,start_time,end_time,run_time,time_limit,num_cores_alloc,num_nodes_alloc,job_state,user_id,"
        "group_id,partition,node_power_consumption\n"
    )
    table = house.write("pm100.csv", head + rows)
    words = ("-p", PLATFORM, "-w", table, "--width", "nodes", "--envelope", "constant:12200")
    for check, turnaround_s in (("mean", 600.0), ("max", 899.5)):
        options = json.dumps({"predictor": "exact", "power_check": check})
        ran = house.batwatt("run", *words, "-s", "jobpower", "-o", options, "-e", house.out / check)
        assert ran.code == 0, ran.err
        (found,) = json.loads(house.batwatt("job-power", house.out / check, *words, "--json").out)
        # 48 x 240 = 11520 W; two means are 480 W more, and two maxima 800 W, which is too much
        assert found["mean_turnaround_s"] == pytest.approx(turnaround_s)
        assert found["max_w"] == (12000.0 if check == "mean" else 11760.0)


def test_jobs_that_do_not_say_what_they_draw(house):
    words = ("-p", PLATFORM, "-w", ROOT / "workloads" / "small.json", "--envelope", CAP)
    assert house.batwatt("run", *words, "-s", "jobpower", "-e", house.out / "x").code == 0
    done = house.batwatt("job-power", house.out / "x", *words)
    assert done.code == 2 and "does not say what it draws; give power_w" in done.line


def test_no_envelope_to_measure_by():
    with pytest.raises(InputError, match="there is no envelope"):
        _ = bw.simulate(PLATFORM, ROOT / "workloads" / "small.json", "jobpower").job_power


@pytest.mark.parametrize(
    "words,text",
    [
        (("--load", "0"), "load must be"),
        (("--jobs", "0"), "jobs must be"),
        (("--run-spread", "0.9"), "than the quartiles of all jobs allow"),
    ],
)
def test_bad_parameters_of_the_generator(house, words, text):
    done = house.batwatt("generate", "power-jobs", *words)
    assert done.code == 2 and text in done.line and done.out == ""
