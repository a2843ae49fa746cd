"""Job logs at the command line: run, replayed, converted, with names of fields, widths, dates, power."""

from __future__ import annotations

import json
from pathlib import Path

from cli_house import ROOT

import batwatt as bw

DUMP = ROOT / "tests" / "data" / "oddities.sacct"
STARTS = {
    "101": 1810, "102": 1810, "103_1": 10, "103_2": 10, "104+0": 10, "104+1": 10, "105": 10, "105-2": 190,
}  # fmt: skip
LEFT_OUT = (
    "8 jobs; 7 of 15 lines of jobs are left out: 1 malformed, 1 pending, 1 running, 1 without a run time, "
    "1 never ran, 1 without a width, 1 listed twice"
)


def starts(house, to: str) -> dict[str, float]:
    return {row["job_id"]: float(row["starting_time"]) for row in house.rows(f"{to}_jobs.csv")}


def replayed(house, to: str, workload: Path | str, *args: object):
    words = ("-w", workload, "--machines", 4, "--cores", 4, "-s", "replay", "-e", house.out / to)
    done = house.batwatt("run", *words, *args)
    assert done.code == 0, done.err
    return done


def test_replayed_in_process_over_the_wire_and_converted(house):
    done = replayed(house, "a", DUMP)
    assert f"{DUMP}: {LEFT_OUT}" in done.err and starts(house, "a") == STARTS
    replayed(house, "b", DUMP, "--engine", "wire")
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    done = house.batwatt("convert", DUMP, "-o", house.folder / "w.json")
    assert done.code == 0 and LEFT_OUT in done.err and "8 jobs" in done.err
    jobs = {job["id"]: job for job in json.loads((house.folder / "w.json").read_text())["jobs"]}
    assert jobs["101"] == {
        "id": "101", "subtime": 10, "res": 4, "walltime": 93784, "profile": "delay3600",
        "memory": 8, "start_s": 1810, "power_w": 10, "user": "ann", "group": "physics", "queue": "long",
    }  # fmt: skip
    replayed(house, "c", house.folder / "w.json")
    assert starts(house, "c") == STARTS


def test_without_a_header_in_nodes_from_a_date(house):
    header, *lines = DUMP.read_text().splitlines(keepends=True)
    bare, names = house.write("bare.sacct", "".join(lines)), house.write("header.txt", header)
    keys, begin = "width=nodes,tz=Europe/Berlin", ("--begin", "2024-03-01T09:59:00")
    replayed(house, "a", f"{bare},fields=@{names},{keys}", *begin)
    # 109 has a node; 0 s is 50 s before the first submission
    assert starts(house, "a") == {**{id: start_s + 50 for id, start_s in STARTS.items()}, "109": 60}
    replayed(house, "b", f"{bare},fields={header.strip().replace('|', ',')},{keys}", *begin)
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    metadata = json.loads(house.file("a_metadata.json"))
    assert (metadata["job_log"]["width"], metadata["job_log"]["tz"]) == ("nodes", "Europe/Berlin")
    words = ("--format", "sacct", "-o", house.out / "w.csv")
    assert house.batwatt("convert", f"{bare},fields=@{names}", *words).code == 0


def test_the_power_of_jobs(house):
    """Jobs that draw different power: run, and what came of it."""
    jobs, platform, cap = (
        ROOT / "workloads" / "pm100-like.json",
        ROOT / "platforms" / "marconi100-48.xml",
        "constant:20000",
    )
    words = ("-p", platform, "-w", jobs, "--envelope", cap)
    ran = house.batwatt("run", *words, "-s", "jobpower", "-o", '{"predictor": "user"}', "-e", house.out / "x", "-v")
    assert ran.code == 0, ran.err
    assert "predictor user: mean absolute error" in ran.err and "of the power of 120 runs" in ran.err
    shown = house.batwatt("metrics", house.out / "x", *words, "--json", "--job-power")
    assert shown.code == 0, shown.err
    (figures,) = json.loads(shown.out)
    assert figures["completed"] == 120 and figures["killed_power"] == 0
    lines = house.file("x_job_power.csv").decode().splitlines()
    assert lines[0] == "time_s,power_w,cap_w" and lines[1].startswith("0.000000,11520.000000,20000.")
    # the same from Python
    result = bw.simulate(platform, jobs, "jobpower", options={"predictor": "user"}, envelope=cap)
    assert result.job_power == {name: value for name, value in figures.items() if name != "prefix"}
