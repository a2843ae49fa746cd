"""Who submitted a job, its power and its recorded start: from the trace to the workload."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.inputs.traces.window import window_workload

CSV = """\
arrival_time,length,cpus,start,user,group,queue,power_w,colour
1,0.5,4,1.5,ann,physics,long,812.5,red
2,1,2,,bob,,short,,blue
"""


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_columns_of_a_csv(tmp_path: Path):
    path = written(tmp_path, CSV, "jobs.csv")
    ann, bob = window_workload(read_trace(path, "h"), None, None, 8).jobs
    labels = {"user": "ann", "group": "physics", "queue": "long"}
    # the first submission, at 1 h, is 0 s
    own = {"id": "w0!1", "subtime": 0, "res": 4, "profile": "d1800"}
    assert ann.raw == {**own, "power_w": 812.5, "start_s": 1800, **labels}
    assert bob.raw == {"id": "w0!2", "subtime": 3600, "res": 2, "profile": "d3600", "user": "bob", "queue": "short"}


def test_converted_with_its_clock_from_the_first_submission(tmp_path: Path):
    ann, bob = convert_file(written(tmp_path, CSV, "jobs.csv"), unit="h").workload["jobs"]
    assert (ann["subtime"], ann["start_s"], ann["power_w"], ann["colour"]) == (0, 1800, 812.5, "red")
    assert (ann["user"], ann["group"], ann["queue"]) == ("ann", "physics", "long")
    assert bob["subtime"] == 3600 and not {"start_s", "power_w", "group"} & set(bob)


def test_swf(tmp_path: Path):
    rest = "10 4 -1 -1 4 -1 -1 1"
    lines = f"1 5 7 {rest} 3 1 -1 2 9 -1 -1\n2 6 -1 {rest} -1 -1 -1 -1 0 -1 -1\n3 9 0 {rest} 3 -1 -1 -1 -1 -1 -1\n"
    path = written(tmp_path, lines, "a.swf")
    expected = [
        {"start_s": 7.0, "user": "3", "group": "1", "queue": "2"},
        # no wait, so no start; no queue, so the partition
        {"queue": "0"},
        {"start_s": 4.0, "user": "3"},
    ]
    assert [dict(job.extra) for job in read_trace(path)] == expected
    shifted = [job.get("start_s") for job in convert_file(path).workload["jobs"]]
    assert shifted == [7, None, 4]


def test_of_trace_jobs_and_back():
    extra = {"user": " ann ", "queue": 7, "power_w": 3, "start_s": 0}
    jobs = [TraceJob("a", 0.0, 1.0, 1, extra=extra), TraceJob("b", 0.0, 1.0, 1)]
    table = TraceTable.of(jobs, "here")
    assert [dict(job.extra) for job in table] == [{"user": "ann", "queue": "7", "power_w": 3.0, "start_s": 0.0}, {}]
    assert set(table.labels) == {"user", "queue"}


def test_of_a_frame_and_back():
    columns = {"submission_time_s": [0, 5], "length_s": [10, 20], "hosts": [1, 2]}
    known = {"user": ["ann", None], "group": [7, None], "power_w": [90.5, None], "start_s": [None, 6]}
    workload = bw.Workload.from_frame(pd.DataFrame({**columns, **known}))
    assert [
        {name: value for name, value in job.raw.items() if name not in ("id", "subtime", "res", "profile")}
        for job in workload.jobs
    ] == [{"user": "ann", "group": "7", "power_w": 90.5}, {"start_s": 6}]
    shown = workload.frame()
    assert list(shown.columns)[5:] == ["length_s", "power_w", "user", "group", "start_s"]
    assert shown["user"].tolist() == ["ann", ""] and shown["start_s"].tolist()[1] == 6
    assert list(bw.Workload.from_frame(pd.DataFrame(columns)).frame().columns)[5:] == ["length_s"]


@pytest.mark.parametrize("name,value", [("power_w", -1), ("start_s", -0.5)])
def test_bad_numbers(name: str, value: float):
    with pytest.raises(InputError, match=f"here: job 'a': {name} must be >= 0, got {value}"):
        TraceTable.of([TraceJob("a", 0.0, 1.0, 1, extra={name: value})], "here")
