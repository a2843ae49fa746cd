"""Result files that are nearly right, and the jobs that rows are of."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from files_of_tests import refusal

from batwatt.model.workload import Job, Workload
from batwatt.results import read
from batwatt.results.columns import JOBS
from batwatt.results.origins import Origins, origins_of

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
    assert f"r_jobs.csv: {line}; run the simulation again" in refusal(read.jobs, tmp_path / "r")


def test_more_columns_in_the_header_are_left_alone(tmp_path):
    (tmp_path / "r_jobs.csv").write_text(f"{HEADER},more\n{ROW},x\n")
    assert read.jobs(tmp_path / "r")["profile"].tolist() == ["p"]


def origins(rows: list[tuple[str, float]], *jobs: tuple[str, float]) -> Origins:
    """Of rows (id, submission) under a workload of jobs (id, submission)."""
    declared = tuple(Job(f"w0!{name}", at, 1, "p") for name, at in jobs)
    frame = pd.DataFrame(rows, columns=["job_id", "submission_time"]).astype({"submission_time": "float64"})
    frame["workload_name"] = "w0"
    return origins_of(frame, Workload("w0", declared, {}, {}, 1), Path("r_jobs.csv"))


def test_rows_in_any_order():
    of_rows = origins([("b", 5), ("a#2", 30), ("a", 2), ("a#1", 9)], ("a", 2), ("b", 5))
    assert of_rows.job.tolist() == [1, 0, 0, 0]
    assert of_rows.submit_s.tolist() == [5.0, 2.0, 2.0, 2.0]
    assert of_rows.itself.tolist() == [True, False, True, False]
    assert of_rows.in_workload.all()


def test_a_job_whose_name_looks_like_a_resubmission():
    of_rows = origins([("x#1", 2), ("x#1#1", 9), ("x#2", 9)], ("x#1", 2))
    assert of_rows.job.tolist() == [0, 0, -1]
    assert of_rows.submit_s.tolist() == [2.0, 2.0, 9.0]
    assert of_rows.itself.tolist() == [True, False, False]


def test_jobs_that_the_scheduler_made_up():
    of_rows = origins([("y#1", 20), ("y", 10), ("a", 0)], ("a", 0))
    assert of_rows.job.tolist() == [-1, -1, 0]
    assert of_rows.submit_s.tolist() == [10.0, 10.0, 0.0]
    assert of_rows.in_workload.tolist() == [False, False, True]


def test_the_first_submission():
    """By the workload where no row has it; a row that is earlier counts: 1/3 s is printed as 0.333333."""
    assert origins([("a#1", 30)], ("a", 2)).submit_s.tolist() == [2.0]
    assert origins([("a", 0.333333)], ("a", 1 / 3)).submit_s.tolist() == [0.333333]


def test_nothing_of_the_workload():
    assert "r_jobs.csv: neither job 'w0!z' nor any other is in the workload <memory>" in refusal(
        origins, [("z", 0)], ("a", 0)
    )
    assert not len(origins([], ("a", 0)).job)
    assert origins([("z", 3)]).submit_s.tolist() == [3.0]
