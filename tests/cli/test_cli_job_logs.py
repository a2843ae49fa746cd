"""Job logs at the command line: run, replayed, converted, with names of fields, widths, time zones and dates."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from cli_house import ROOT

DUMP = ROOT / "tests" / "data" / "oddities.sacct"
STARTS = {
    "101": 1810, "102": 1810, "103_1": 10, "103_2": 10, "104+0": 10, "104+1": 10, "105": 10, "105-2": 190,
}  # fmt: skip
LEFT_OUT = (
    "8 jobs; 7 of 15 lines of jobs are left out: 1 malformed, 1 pending, 1 running, 1 without a run time, "
    "1 never ran, 1 without a width, 1 listed twice"
)


def starts(house, to: str) -> dict[str, float]:
    rows = csv.DictReader(io.StringIO(house.file(f"{to}_jobs.csv").decode()))
    return {row["job_id"]: float(row["starting_time"]) for row in rows}


def replayed(house, to: str, workload: Path, *args: object):
    done = house.batwatt(
        "run", "-w", workload, "--machines", 4, "--cores", 4, "-s", "replay", "-e", house.out / to, *args
    )
    assert done.code == 0, done.err
    return done


def test_replayed_in_process_and_over_the_wire(house):
    done = replayed(house, "a", DUMP)
    assert f"{DUMP}: {LEFT_OUT}" in done.err
    assert starts(house, "a") == STARTS
    replayed(house, "b", DUMP, "--engine", "wire")
    assert starts(house, "b") == STARTS
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")


def test_converted_and_replayed(house):
    done = house.batwatt("convert", DUMP, "-o", house.folder / "w.json")
    assert done.code == 0 and LEFT_OUT in done.err and "8 jobs" in done.err
    jobs = {job["id"]: job for job in json.loads((house.folder / "w.json").read_text())["jobs"]}
    assert jobs["101"] == {
        "id": "101", "subtime": 10, "res": 4, "walltime": 93784, "profile": "delay3600",
        "memory": 8, "start_s": 1810, "power_w": 10, "user": "ann", "group": "physics", "queue": "long",
    }  # fmt: skip
    replayed(house, "a", house.folder / "w.json")
    assert starts(house, "a") == STARTS


def test_without_a_header_in_nodes_from_a_date(house):
    header, *lines = DUMP.read_text().splitlines(keepends=True)
    bare, names = house.write("bare.sacct", "".join(lines)), house.write("header.txt", header)
    chosen = ("--width", "nodes", "--tz", "Europe/Berlin", "--begin", "2024-03-01T09:59:00")
    replayed(house, "a", bare, "--fields", f"@{names}", *chosen)
    # 109 has a node; 0 s is 50 s before the first submission
    assert starts(house, "a") == {**{id: start_s + 50 for id, start_s in STARTS.items()}, "109": 60}
    replayed(house, "b", bare, "--fields", header.strip().replace("|", ","), *chosen)
    assert house.file("a_jobs.csv") == house.file("b_jobs.csv")
    metadata = json.loads(house.file("a_metadata.json"))
    assert (metadata["job_log"]["width"], metadata["job_log"]["tz"]) == ("nodes", "Europe/Berlin")
    for suffix in ("txt", "csv"):
        assert (
            house.batwatt("convert", bare, "--format", "sacct", "--fields", f"@{names}", "-o", house.out / suffix).code
            == 0
        )


def test_strict(house):
    args = ("-s", "replay", "-o", '{"strict": true}', "-e", house.out / "a")
    done = house.batwatt("run", "-w", DUMP, "--machines", 11, *args)
    assert done.code == 2 and "no room at its recorded start 1810 s; give a larger platform" in done.err
    assert not list(house.out.glob("a_*"))


@pytest.mark.parametrize(
    "args,said",
    [
        (("--width", "gpus"), "job log: no value of width 'gpus'"),
        (("--tz", "Mars/Olympus"), "job log: tz 'Mars/Olympus' is no known time zone"),
        (("--begin", "soon"), "job log: begin 'soon' is not a date"),
        (("--fields", ""), "--fields: '' names no fields"),
        (("--fields", "@none.txt"), "none.txt: cannot be read"),
        (("--fields", "User,State"), "has no field JobID"),
    ],
)
def test_bad_options(house, args, said):
    for words in (("run", "--machines", 4, "-e", house.out / "a", "-w"), ("convert",)):
        done = house.batwatt(*words, DUMP, *args)
        assert done.code == 2 and said in done.line


def test_options_for_other_workloads(house):
    done = house.batwatt("run", "--machines", 4, "-e", house.out / "a", "-w", house.workload(), "--width", "nodes")
    assert done.code == 2 and "--fields, --width: are for job logs" in done.line
    done = house.batwatt("convert", house.workload(), "--to", "batsim5", "--width", "nodes")
    assert done.code == 2 and "leave the other options out" in done.line
    done = house.batwatt("convert", house.write("x.swf", ""), "--width", "nodes")
    assert done.code == 2 and "width and fields are for sacct, tables, PBS and events" in done.line


@pytest.mark.parametrize("id", ['a"b', "1,2", '"', "a\\b'c;d"])
def test_ids_that_csv_puts_between_marks(house, id):
    line = f"{id}|ann|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|600|1\n"
    log = house.write("x.sacct", f"JobID|User|State|Submit|Start|ElapsedRaw|AllocCPUS\n{line}2{line[len(id) :]}")
    assert house.batwatt("run", "-w", log, "--machines", 2, "-s", "replay", "-e", house.out / "x").code == 0
    done = house.batwatt("metrics", house.out / "x", "-w", log, "--machines", 2)
    assert done.code == 0 and next(csv.DictReader(io.StringIO(done.out), delimiter="\t"))["jobs_finished"] == "2"
    frame = pd.read_csv(house.out / "x_jobs.csv", dtype=str)
    assert sorted(frame["job_id"]) == sorted([id, "2"])
    words = ("--machines", 10, "--cores", 2, "--capacity", "constant:mean=0.7", "-c", "a=varcap", "-e", house.out / "c")
    assert house.batwatt("compare", "-w", log, *words).code == 0
    assert sorted(pd.read_csv(house.out / "c_jobs.csv", dtype=str)["job_id"]) == sorted([id, "2"])
