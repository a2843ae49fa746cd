"""Fields of jobs besides time, length and width, from the trace to the workload; read fast and slowly."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from examples import examples
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st
from tables_of_jobs import jobs_of, more_of, row

import batwatt as bw
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.convert import convert_file, read_trace, window_workload, workload_json
from batwatt.inputs.jobs import Jobs, parse_ids, read_jobs_csv, rounded, within
from batwatt.model.signal import Window

HEADER = "arrival_time,length,cpus,memory,estimate,depends_on,use,queue,checkpoint_s,recovery_s,user,power_w,start"
TRACE = f"""\
{HEADER}
0,0.5,4,12.5,1,,0.25,long,60,30.25,ann,812.5,0.5
0.25,1,2,,,1,,short,0,,,,
0.5,2,1,3,-1,1;2 9,1,,,0.0000004,,,
"""
FIRST = {"memory": 12.5, "checkpoint_s": 60.0, "recovery_s": 30.25, "use": 0.25, "power_w": 812.5, "start_s": 1800.0}
LABELS = {"user": "ann", "queue": "long"}
FRAME = pd.DataFrame({"submission_time_s": [0], "length_s": [5], "hosts": [1]})


def test_fields_of_a_csv(tmp_path: Path):
    """Times are in the unit, checkpoints and recoveries in s; job 9 is not there, so no job waits for it."""
    path = written(tmp_path, TRACE)
    third = {"memory": 3.0, "recovery_s": 0.0, "use": 1.0, "depends_on": ["1", "2", "9"]}
    expected = [
        row("1", 0.0, 1800.0, 4, estimate_s=3600.0, **FIRST | LABELS),
        row("2", 900.0, 3600.0, 2, checkpoint_s=0.0, depends_on=["1"], queue="short"),
        row("3", 1800.0, 7200.0, 1, **third),
    ]
    assert list(read_jobs_csv(path, "hours")) == expected
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TRACE.replace("\n", "\r\n").encode()))
    assert list(read_jobs_csv(packed, "h")) == expected
    # other separators, lines of commas only
    bars = written(tmp_path, "arrival_time|length|cpus|args\n0|10|1|x,y\n", "bars.csv")
    assert list(read_jobs_csv(bars, others=True)) == [row("1", 0, 10, 1, args="x,y")]
    assert list(read_jobs_csv(written(tmp_path, TRACE + ",,,,,,,,,,,,\n", "commas.csv"), "h")) == expected
    jobs = read_trace(path, "h")
    assert isinstance(jobs, Jobs) and list(jobs) == expected
    assert list(jobs.rows(np.array([False, True, True]))) == expected[1:]
    for source in (jobs, jobs_of(*expected)):
        first, second, third = window_workload(source, None, 8).jobs
        own = {"id": "w0!1", "subtime": 0, "res": 4, "profile": "d1800", "estimate_s": 3600}
        assert dict(first.raw) == own | FIRST | LABELS and first.walltime_s is None
        assert (second.raw["depends_on"], third.raw["depends_on"]) == (["1"], ["1", "2"])
        assert not {"memory", "power_w", "start_s", "user", "recovery_s"} & set(second.raw)
        assert "estimate_s" not in third.raw
        # in [2000, 3000] s the first has ended
        second, third = window_workload(source, Window(2000.0, 3000.0), 8).jobs
        assert "depends_on" not in second.raw and third.raw["depends_on"] == ["2"]
        assert (second.raw["release_s"], second.raw["length_s"], second.profile) == (900, 3600, "d2500")
    job = convert_file(path, unit="h").workload["jobs"][0]
    assert {name: job[name] for name in FIRST | LABELS} == FIRST | LABELS
    # starts count from the first submission, and further columns are fields of a converted workload
    path = written(tmp_path, "arrival_time,length,cpus,start,colour\n1,0.5,4,1.5,red\n2,1,2,,blue\n")
    assert [job.raw.get("start_s") for job in window_workload(read_trace(path, "h"), None, 8).jobs] == [
        1800,
        None,
    ]
    first, second = convert_file(path, unit="h").workload["jobs"]
    assert (first["subtime"], first["start_s"], first["colour"]) == (0, 1800, "red") and "start_s" not in second


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.assign(length_s="x"), "row 1: length_s: 'x' is not a number"),
        (FRAME.assign(length_s=math.inf), "row 1: length_s: inf is not a finite number"),
        (FRAME.assign(length_s=None), "row 1: length_s is empty"),
        (FRAME.drop(columns="length_s"), "lacks the column 'length_s' or 'length'; the columns are"),
        (FRAME.iloc[:0], "has no rows"),
        (FRAME.set_axis(["hosts", "length_s", "hosts"], axis=1), "names a column twice: hosts and hosts"),
    ],
)
def test_frames_that_are_refused(frame, message):
    assert message in refusal(bw.Workload.from_frame, frame)


def test_swf_needs(tmp_path: Path):
    rest = "1 3 1 -1 2 -1 -1 -1\n"
    lines = f"1 0 5 100 4 -1 1048576 8 300 2097152 {rest}2 9 5 100 -1 -1 524288 8 -1 -1 {rest}"
    path = written(tmp_path, lines, "a.swf")
    # 2 GB a processor requested, on 4; half a GB a processor used, on 8
    assert list(read_trace(path)) == [
        row("1", 0, 100, 4, estimate_s=300, memory=8.0, start_s=5, user="3", group="1", queue="2"),
        row("2", 9, 100, 8, memory=4.0, start_s=14, user="3", group="1", queue="2"),
    ]
    job = workload_json(window_workload(read_trace(path, "seconds"), None, 8))["jobs"][0]
    assert (job["memory"], job["estimate_s"]) == (8, 300) and "user_id" not in job
    job = convert_file(path).workload["jobs"][0]
    assert (job["memory"], job["walltime"], job["user_id"], job["requested_memory"]) == (8.0, 300, 3, 2097152)
    assert {"wait_time", "status", "think_time", "preceding_job_number"} <= set(job)
    assert "its times are in seconds, got the unit 'hours'" in refusal(read_trace, path, "hours")
    # without a wait there is no start; the partition is the queue where none is given
    path = written(tmp_path, "2 6 -1 10 4 -1 -1 4 -1 -1 1 -1 -1 -1 -1 0 -1 -1\n", "b.swf")
    assert [more_of(job) for job in read_trace(path)] == [{"queue": "0"}]


@pytest.mark.parametrize("request_column", ["estimate", "walltime", "estimate_s"])
def test_names_of_columns_in_s_and_in_the_unit_of_the_file(tmp_path: Path, request_column: str):
    """Times in `_s` are in s in a file of hours."""
    request = "7200" if request_column == "estimate_s" else "2"
    for head, cells in (("arrival_time,length,cpus,start", "1,0.5,4,1.5"),
                        ("submission_time_s,length_s,hosts,start_s", "3600,1800,4,5400")):  # fmt: skip
        path = written(tmp_path, f"{head},{request_column}\n{cells},{request}\n")
        assert list(read_jobs_csv(path, "h")) == [row("1", 3600, 1800, 4, estimate_s=7200, start_s=5400)]
        [job] = bw.Workload.from_frame(pd.read_csv(path)).jobs
        assert job.raw["estimate_s"] == int(request)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("estimate,estimate_s", "names a column twice: estimate and estimate_s; leave one of them out"),
        ("estimate_s,walltime", "names a column twice: estimate_s and walltime"),
        ("length_s,start", "names a column twice: length and length_s"),
        ("walltime_s,start", "a job with a length has no walltime_s; call the column estimate_s"),
    ],
)
def test_two_columns_of_one_meaning(tmp_path: Path, columns: str, message: str):
    path = written(tmp_path, f"arrival_time,length,cpus,{columns}\n0,1,1,1,1\n")
    assert message in refusal(read_trace, path)
    refusal(bw.Workload.from_frame, pd.read_csv(path))


@pytest.mark.parametrize("name", ["jobs.csv", "a.swf"])
def test_jobs_without_a_length_are_counted(tmp_path: Path, name: str, caplog):
    rest = "-1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1\n"
    texts = {
        "jobs.csv": "arrival_time,length,cpus,depends_on\n0,5,1,2\n1,0,1,\n2,-1,1,\n3,5,0,\n4,5,1,1\n",
        "a.swf": f"1 0 0 5 1 {rest}2 1 0 0 1 {rest}3 2 0 -1 1 {rest}4 3 0 5 -1 {rest}5 4 0 5 1 {rest}",
    }
    path = written(tmp_path, texts[name], name)
    jobs = read_trace(path)
    assert [job["id"] for job in jobs] == ["1", "5"]
    assert caplog.messages == [f"{path}: 3 of 5 jobs are skipped, their length or width is 0 or unknown"]
    if name == "jobs.csv":
        # the second is skipped: it cannot be waited for
        assert [job.raw.get("depends_on") for job in window_workload(jobs, None, 4).jobs] == [None, ["1"]]


@pytest.mark.parametrize(
    ("name", "cell", "message"),
    [
        ("memory", "-2", " must be >= 0, got -2"),
        ("memory", "4GB", ": '4GB' is not a number"),
        ("use", "1.5", " must be in ]0, 1], got 1.5"),
        ("estimate", "inf", ": 'inf' is not a finite number"),
        ("checkpoint_s", "-1e-9", " must be >= 0, got -1e-9; leave it empty if it is unknown"),
        ("start", "5 min", ": '5 min' is not a number; write s, or dates as 2024-07-01T13:00"),
    ],
)
def test_bad_cells(tmp_path: Path, name, cell, message):
    path = written(tmp_path, f"arrival_time,length,cpus,{name}\n0,1,1,\n0,1,1,{cell}\n")
    assert refusal(read_trace, path).startswith(f"{path} line 3: {name}{message}")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"use": 2}, "use must be in ]0, 1], got 2"),
        ({"recovery_s": "much"}, "recovery_s: 'much' is not a number"),
        ({"depends_on": {1: 2}}, "depends_on must be a list of ids, got dict"),
        ({"user": ["ann"]}, "user must be a text in one line, got list"),
        ({"id": " "}, "id must be a text in one line, got ' '"),
        ({"hosts": True}, "hosts: True is not a number"),
        ({"walltime_s": 5}, "a job with a length has no walltime_s"),
    ],
)
def test_bad_fields_of_rows(more, message):
    frame = pd.DataFrame([row("a", 0, 1, 1), {**row("b", 0, 1, 1), **more}])
    assert refusal(bw.Workload.from_frame, frame, source="here").startswith(f"here row 2: {message}")


def test_jobs_that_wait_for_themselves():
    line = refusal(window_workload, jobs_of(row("a", 0.0, 1.0, 1, depends_on=["a"])), None, 1)
    assert line.startswith("here: job 'a': waits for itself: a after a")


DATES = ("2024-07-01T02:00", "2024-07-01T02:00:30", "2024-07-01T03:00+02:00")
"""In Berlin, 2 h before UTC: midnight in UTC, half a minute and an hour later."""


@pytest.mark.parametrize("head", ["arrival_time,length,cpus,start", "submission_time_s,length_s,hosts,start_s"])
def test_dates_of_submissions(tmp_path: Path, head: str, caplog):
    """Dates are s after the first one, or after `begin`; lengths by an alias are in h, dates have no unit."""
    length = "0.5" if head.startswith("arrival") else "1800"
    lines = [
        f"{date},{length},4,{start}" for date, start in zip(DATES, ("2024-07-01T02:01", "", "Unknown"), strict=True)
    ]
    path = written(tmp_path, "\n".join([head, *lines]))
    log = LogOptions(tz="Europe/Berlin")
    jobs = read_trace(path, "h", log)
    times = [(job["submission_time_s"], job["length_s"], job.get("start_s")) for job in jobs]
    assert times == [(0, 1800, 60), (30, 1800, None), (3600, 1800, None)]
    assert jobs.origin_s == 1719792000 and f"{path}: 0 s is 2024-07-01T00:00Z, the first submission" in caplog.text
    jobs = read_trace(path, "h", LogOptions(tz="Europe/Berlin", begin="2024-07-01T02:00:10"))
    assert jobs["submission_time_s"].tolist() == [20, 3590] and "1 of 3 jobs are left out" in caplog.text
    assert bw.Workload.read(path, unit="h", tz="Europe/Berlin").begin == "2024-07-01T00:00Z"


def test_dates_of_a_frame():
    utc = pd.to_datetime(pd.Series([1719792000, 1719792030, 1719795600]), unit="s", utc=True)
    offsets = utc.dt.tz_convert("America/New_York")
    for dates, tz in ((DATES, "Europe/Berlin"), (utc, "UTC"), (offsets, "UTC"), (utc.dt.tz_localize(None), "UTC")):
        frame = pd.DataFrame({"arrival_time": dates, "length": [1800, 60, 5], "hosts": [1, 2, 3]})
        load = bw.Workload.from_frame(frame, tz=tz)
        assert [job.submit_time_s for job in load.jobs] == [0, 30, 3600] and load.begin == "2024-07-01T00:00Z"
        load = bw.Workload.from_frame(frame, tz=tz, begin="2024-06-30T23:00Z", window=(0, 3610))
        assert [job.submit_time_s for job in load.jobs] == [3600] and load.begin == "2024-06-30T23:00Z"
        again = bw.Workload.from_frame(load.frame())
        assert again.jobs == load.jobs and again.begin == load.begin


@pytest.mark.parametrize(
    "cells,message",
    [
        (("2024-07-01", "60"), "line 3: arrival_time must be a date, as the first submission is, got '60'"),
        (("60", "2024-07-01"), "line 3: arrival_time: '2024-07-01' is not a number"),
        (("2024-07-01", ""), "line 3: arrival_time must be a date, as the first submission is, got ''"),
        (("2024-13-01", "2024-07-01"), "line 2: arrival_time: '2024-13-01' is not a number"),
    ],
)
def test_dates_that_are_refused(tmp_path: Path, cells, message):
    path = written(tmp_path, "arrival_time,length,cpus\n" + "".join(f"{cell},1,1\n" for cell in cells))
    assert message in refusal(read_trace, path)


def test_dates_in_later_parts_of_a_file(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("batwatt.inputs.jobs.ROWS", 2)
    lines = ["0,1,1", "1,1,2", "2,1,3", "2024-07-01,1,4", "3,1,5"]
    head = "arrival_time,length,cpus"
    assert list(read_trace(written(tmp_path, "\n".join([head, *lines[:3]]))))[2] == row("3", 2, 1, 3)
    for rows, line in ((lines[:4], 5), ([*lines[:2], lines[3], lines[3]], 4)):
        path = written(tmp_path, "\n".join([head, *rows]))
        assert refusal(read_trace, path).startswith(f"{path} line {line}: ")


def test_ids_of_a_csv(tmp_path: Path):
    """Ids of the file count, also in dependencies; both names of a column are read."""
    path = written(tmp_path, "id,submission_time_s,length,hosts,depends_on\n17,5,0.5,1,\nx,6,1,2,17\n")
    assert list(read_trace(path, "h", LogOptions(begin="0"))) == [
        row("17", 5, 1800, 1),
        row("x", 6, 3600, 2, depends_on=["17"]),
    ]
    assert bw.Workload.read(path).jobs[1].raw["depends_on"] == ["17"]
    twice = written(tmp_path, "id,arrival_time,length,cpus\n1,5,1,1\n1,6,1,2\n", "twice.csv")
    assert "job '1': appears twice" in refusal(bw.Workload.read, twice)


def test_circles():
    assert parse_ids(" 1;2  3 ; ") == ["1", "2", "3"] and parse_ids("") == []
    chain = {str(n): [str(n - 1)] for n in range(50_000)}
    assert len(within(chain, chain)) == 49_999
    assert within({"c": ["a", "b", "a"], "b": ["a"], "x": ["c"]}, {"a", "b", "c"}) == {"c": ["a", "b"], "b": ["a"]}
    assert "job 'b': waits for itself: b after c after b; " in refusal(
        within, {"a": ["b"], "b": ["c"], "c": ["b"]}, {"a", "b", "c"}
    )
    # the circle is broken by a job that is not there
    assert within({"a": ["b"], "b": ["c"], "c": ["b"]}, {"a", "b"}) == {"a": ["b"]}


NUMBERS = st.sampled_from(["0", "1", "2.5", "3.1415926535", "1e3", " 4", "0.1", "+7", "100000.0000004", "0.0000015"])


@examples(400)
@given(rows=st.lists(st.tuples(*[NUMBERS] * 5), min_size=1, max_size=6), odd=st.booleans(), hours=st.booleans())
def test_numbers_are_rounded_as_python_does(tmp_path_factory, rows, odd, hours):
    """Also in a column with an empty cell, which is read cell by cell."""
    path = tmp_path_factory.getbasetemp() / "either.csv"
    lines = [f"{at},{length},4,{memory},{start},{estimate}" for at, length, memory, start, estimate in rows]
    lines += ["1,1,1,,,"] if odd else []
    path.write_text("\n".join(["arrival_time,length,cpus,memory,start,estimate_s", *lines]))
    unit_s = 3600.0 if hours else 1.0
    for job, cells in zip(read_jobs_csv(path, "h" if hours else "s"), rows, strict=False):
        at, length, memory, start, estimate = map(float, cells)
        assert job["submission_time_s"] == round(at * unit_s, 6) and job["length_s"] == round(length * unit_s, 6)
        assert job["memory"] == round(memory, 6) and job["start_s"] == round(start * unit_s, 6)
        assert job.get("estimate_s", 0.0) == round(estimate, 6)


@examples(400)
@given(st.lists(st.floats(-1e18, 1e18) | st.integers(-(10**9), 10**9).map(lambda number: number / 2e6), min_size=1))
def test_rounding_is_that_of_python(values):
    assert rounded(np.array(values)).tolist() == [round(value, 6) for value in values]
