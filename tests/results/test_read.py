"""Result files that are nearly right, and the jobs that rows are of."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from cli_house import JOBS as WORKLOAD
from cli_house import SMALL
from files_of_tests import refusal

from batwatt import files
from batwatt.model.workload import JobSpec, Workload
from batwatt.results import run_files
from batwatt.results.run_files import JOBS, write_rows
from batwatt.results.run_table import origins_of

HEADER = ",".join(column.name for column in JOBS)
ROW = '1,w0,p,0.000000,1,-1.000000,1,COMPLETED_SUCCESSFULLY,0.0,5.0,5.0,0.0,5.0,1.0,0,-1.000000,""'


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([f"x,{ROW}", f"x,{ROW}"], "line 2: has 18 fields where the header names 17"),
        ([ROW, ROW.replace("w0", "w0,x")], "line 3: has 18 fields where the header names 17"),
        (["x" * 200_000 + f",{ROW}"], "line 2: is not CSV (field larger than field limit (131072))"),
    ],
)
def test_jobs_with_more_fields_than_columns(tmp_path, rows, line):
    (tmp_path / "r_jobs.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    assert f"r_jobs.csv: {line}; run the simulation again" in refusal(run_files.jobs, tmp_path / "r")


def test_ids_that_are_formulas(tmp_path):
    names = ["=1+1", "'=1", "-1", "@a,b", "'a"]
    rows = [[name, "w0", "+p", 0, 1, -1, 1, "x", 0, 5, 5, 0, 5, 1, 0, -1, "=metadata"] for name in names]
    write_rows(tmp_path / "r_jobs.csv", JOBS, rows)
    jobs = run_files.jobs(tmp_path / "r")
    assert jobs["job_id"].tolist() == names
    assert (jobs["profile"][0], jobs["metadata"][0]) == ("+p", "=metadata")
    assert (tmp_path / "r_jobs.csv").read_text().splitlines()[1].startswith("'=1+1,w0,'+p,")


def test_more_columns_in_the_header_are_left_alone(tmp_path):
    (tmp_path / "r_jobs.csv").write_text(f"{HEADER},more\n{ROW},x\n")
    assert run_files.jobs(tmp_path / "r")["profile"].tolist() == ["p"]


def origins(rows: list[tuple[str, float]], *jobs: tuple[str, float]):
    """Columns `job`, `submit_s` and `itself` of rows (id, submission) under a workload of jobs (id, submission)."""
    declared = tuple(JobSpec(f"w0!{name}", at, 1, "p") for name, at in jobs)
    names, submitted_s = [f"w0!{name}" for name, _ in rows], np.array([at for _, at in rows], dtype=np.float64)
    return origins_of(names, submitted_s, Workload("w0", declared, {}, {}, 1), Path("r_jobs.csv"), {})


@pytest.mark.parametrize(
    ("rows", "jobs", "job", "submit_s", "itself"),
    [
        # in any order
        ([("b", 5), ("a#2", 30), ("a", 2), ("a#1", 9)], [("a", 2), ("b", 5)], [1, 0, 0, 0], [5, 2, 2, 2], "1010"),
        # a job whose name looks like a resubmission
        ([("x#1", 2), ("x#1#1", 9), ("x#2", 9)], [("x#1", 2)], [0, 0, -1], [2, 2, 9], "100"),
        # jobs that the scheduler registered
        ([("y#1", 20), ("y", 10), ("a", 0)], [("a", 0)], [-1, -1, 0], [10, 10, 0], "011"),
        # the first submission: by the workload, or in a row that is earlier, as 1/3 s is printed as 0.333333
        ([("a#1", 30)], [("a", 2)], [0], [2], "0"),
        ([("a", 0.333333)], [("a", 1 / 3)], [0], [0.333333], "1"),
    ],
)
def test_origins(rows, jobs, job, submit_s, itself):
    indices, since_s, first = origins(rows, *jobs)
    assert indices.tolist() == job and since_s.tolist() == submit_s
    assert first.tolist() == [flag == "1" for flag in itself]


def test_nothing_of_the_workload():
    assert "r_jobs.csv: neither job 'w0!z' nor any other is in the workload <memory>" in refusal(
        origins, [("z", 0)], ("a", 0)
    )
    assert not len(origins([], ("a", 0))[0])
    assert origins([("z", 3)])[1].tolist() == [3.0]


def test_files_of_two_runs_are_refused(house):
    """Each reader compares the files with the digests in the metadata, which a kill while files appear leaves old."""
    platform = house.platform("a", "b", "c", "d")
    for to, nap in (("x", 5), ("y", 6)):
        workload = house.workload(
            {"id": "1", "subtime": 0, "res": 4, "profile": "nap"}, nap={"type": "delay", "delay": nap}
        )
        assert house.run("--energy", platform=platform, workload=workload, to=to).code == 0
    words = ("-p", platform, "-w", workload)
    assert house.batwatt("metrics", house.out / "y", *words).code == 0
    assert house.batwatt("metrics", house.out / "y", *words).code == 0
    (house.out / "y_jobs.csv").rename(house.out / "x_jobs.csv")
    before = {name: house.file(name) for name in house.left}
    for command in (
        ("metrics", house.out / "x", *words),
        ("gantt", house.out / "x", "-p", platform, "-o", house.out / "g.svg"),
    ):
        refused = house.batwatt(*command)
        assert (
            refused.code == 2 and "x_jobs.csv: is not the file that x_metadata.json names; run it again" in refused.line
        )
    assert {name: house.file(name) for name in house.left} == before
    (house.out / "x_consumed_energy.csv").unlink()
    (house.out / "x_jobs.csv").write_bytes(before["x_jobs.csv"])
    (house.out / "x_metadata.json").unlink()
    assert house.batwatt("metrics", house.out / "x", *words).code == 0
    assert house.metrics()["energy_j"] is None
    assert house.batwatt("metrics", house.out / "y", *words).code == 2


NO_FILES = "names no files with their digests; run it again, or remove x_metadata.json to read the files as they are"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", NO_FILES),
        ("7", NO_FILES),
        ("{}", NO_FILES),
        ('{"files": 3}', NO_FILES),
        ('{"files": ["jobs.csv"]}', NO_FILES),
        ('{"files": "jobs.csv"}', NO_FILES),
        ('{"files": {"jobs.csv": 1}}', NO_FILES),
        ('{"files": {"jobs.csv": null}}', NO_FILES),
        ('{"files": {"../../x": "1"}}', "names '../../x', no file of the run; run it again, or remove"),
        ('{"files": {"jobs.csv": "1"', "is not JSON (Expecting ',' delimiter, line 1 column 27)"),
        ("", "is not JSON (Expecting value, line 1 column 1)"),
    ],
)
def test_damaged_metadata_are_refused(house, text, problem):
    """Else the figures of a run of ours that need other inputs would become empty, as for a real Batsim."""
    assert house.run("--energy").code == 0
    (house.out / "x_metadata.json").write_text(text)
    before = house.file("x_metrics.json")
    for command in (
        ("metrics", house.out / "x", "-w", WORKLOAD),
        ("gantt", house.out / "x", "-o", house.out / "g.svg"),
    ):
        ended = house.batwatt(*command, "-p", SMALL)
        assert ended.code == 2 and f"x_metadata.json: {problem}" in ended.line
    assert house.file("x_metrics.json") == before


def test_a_begin_that_is_no_date_is_refused(house):
    """Else the hours of a signal would be those of no date in silence."""
    assert house.run("--energy").code == 0
    metadata = json.loads(house.file("x_metadata.json"))
    (house.out / "x_metadata.json").write_text(json.dumps(metadata | {"begin": 5}))
    signal = "power_profiles/carbon/carbon-hourly.csv"
    ended = house.batwatt("account", house.out / "x", "-w", WORKLOAD, "--carbon", signal)
    assert ended.code == 2 and "x_metadata.json: begin: 5 is not a date" in ended.line


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir, None])
def test_metadata_that_cannot_be_read_are_refused(house, plant):
    assert house.run().code == 0
    path = house.out / "x_metadata.json"
    path.unlink()
    if plant is None:
        path.symlink_to(house.out / "none")
    else:
        plant(path)
    ended = house.batwatt("metrics", house.out / "x", "-w", WORKLOAD, "-p", SMALL)
    assert ended.code == 2 and "x_metadata.json: " in ended.line


def test_metrics_that_are_no_numbers_are_refused(house):
    assert house.run().code == 0
    (house.out / "x_metrics.json").write_text('{"carbon_g": "a"}')
    metadata = json.loads(house.file("x_metadata.json"))
    metadata["files"]["metrics.json"] = hashlib.sha256(b'{"carbon_g": "a"}').hexdigest()
    (house.out / "x_metadata.json").write_text(json.dumps(metadata))
    ended = house.batwatt("metrics", house.out / "x", "-w", WORKLOAD, "-p", SMALL)
    assert ended.code == 2 and "x_metrics.json: is no object of numbers; run it again" in ended.line


def test_metrics_hash_each_file_of_the_run_once(house, monkeypatch):
    assert house.run("--energy").code == 0
    hashed = []

    def digest_of(path):
        hashed.append(path)
        return files.digest_of(path)

    monkeypatch.setattr(run_files, "digest_of", digest_of)
    assert house.batwatt("metrics", house.out / "x", "-w", WORKLOAD, "-p", SMALL).code == 0
    names = set(json.loads(house.file("x_metadata.json"))["files"])
    assert sorted(path.name for path in hashed if path.parent == house.out) == sorted(f"x_{name}" for name in names)


def test_no_kill_among_renames_leaves_files_that_are_read_as_one_run(house, monkeypatch):
    """A run of 6 s naps over one of 5 s is killed before each of its renames, or just after the last one."""
    platform = house.platform("a", "b", "c", "d")
    job = {"id": "1", "subtime": 0, "res": 4, "profile": "nap"}
    short, long = (
        house.workload(job, nap={"type": "delay", "delay": delay}).rename(house.folder / f"{delay}.json")
        for delay in (5, 6)
    )
    real, makespans = Path.replace, []
    for number in range(1, 12):
        assert house.run("--energy", platform=platform, workload=short).code == 0
        child = os.fork()
        if child == 0:
            moves = itertools.count(1)

            def replace(self, target, moves=moves, number=number):
                if Path(target).parent == house.out and next(moves) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(self, target)

            monkeypatch.setattr(Path, "replace", replace)
            house.run("--energy", platform=platform, workload=long)
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
        metrics = house.batwatt("metrics", house.out / "x", "-p", platform, "-w", long)
        makespans.append(
            house.metrics()["makespan_s"] if metrics.code == 0 else "x_jobs.csv: cannot be read" in metrics.line
        )
        for path in house.out.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if ended == 0:
            break
    # jobs are the third last file, before metrics and metadata
    assert len(makespans) > 6 and makespans == [True] * (len(makespans) - 3) + [6.0] * 3
