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

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.convert import convert_file, read_trace, window_workload, workload_json
from batwatt.inputs.jobs import TraceJob, TraceTable, iter_jobs_csv, parse_ids, read_jobs_table, within

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
    slow = [
        TraceJob("1", 0.0, 1800.0, 4, 3600.0, FIRST | LABELS),
        TraceJob("2", 900.0, 3600.0, 2, None, {"checkpoint_s": 0.0, "depends_on": ["1"], "queue": "short"}),
        TraceJob("3", 1800.0, 7200.0, 1, None, third),
    ]
    assert list(iter_jobs_csv(path, "hours")) == slow
    # the fast reader takes it, also packed; a line of commas needs the slow one
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TRACE.replace("\n", "\r\n").encode()))
    fast = read_jobs_table(packed, "h")
    assert fast is not None and fast.depends == {"2": ["1"], "3": ["1", "2", "9"]}
    assert read_jobs_table(written(tmp_path, "arrival_time|length|cpus|args\n0|10|1|x,y\n", "bars.csv")) is not None
    assert read_jobs_table(written(tmp_path, TRACE + ",,,,,,,,,,,,\n", "commas.csv")) is None
    jobs = read_trace(path, "h")
    assert isinstance(jobs, TraceTable) and list(jobs) == slow and jobs[-1:] == slow[-1:]
    assert [job.extra for job in jobs.rows(np.array([False, True, True]))] == [job.extra for job in slow[1:]]
    for source in (jobs, slow):
        first, second, third = window_workload(source, None, None, 8).jobs
        own = {"id": "w0!1", "subtime": 0, "res": 4, "profile": "d1800", "estimate_s": 3600}
        assert dict(first.raw) == own | FIRST | LABELS and first.walltime_s is None
        assert (second.raw["depends_on"], third.raw["depends_on"]) == (["1"], ["1", "2"])
        assert not {"memory", "power_w", "start_s", "user", "recovery_s"} & set(second.raw)
        assert "estimate_s" not in third.raw
        # in [2000, 3000] s the first has ended
        second, third = window_workload(source, 2000.0, 3000.0, 8).jobs
        assert "depends_on" not in second.raw and third.raw["depends_on"] == ["2"]
        assert (second.raw["release_s"], second.raw["length_s"], second.profile) == (900, 3600, "d2500")
    row = convert_file(path, unit="h").workload["jobs"][0]
    assert {name: row[name] for name in FIRST | LABELS} == FIRST | LABELS
    # starts count from the first submission, and further columns are fields of a converted workload
    path = written(tmp_path, "arrival_time,length,cpus,start,colour\n1,0.5,4,1.5,red\n2,1,2,,blue\n")
    assert [job.raw.get("start_s") for job in window_workload(read_trace(path, "h"), None, None, 8).jobs] == [
        1800,
        None,
    ]
    first, second = convert_file(path, unit="h").workload["jobs"]
    assert (first["subtime"], first["start_s"], first["colour"]) == (0, 1800, "red") and "start_s" not in second


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.assign(length_s="x"), "length_s must be a number, got 'x'"),
        (FRAME.assign(length_s=math.inf), "length_s must be a finite number, got inf"),
        (FRAME.assign(length_s=None), "length_s must be a finite number, got nan"),
        (FRAME.drop(columns="length_s"), "no column 'length_s'; the columns are"),
        (FRAME.iloc[:0], "has no rows"),
        (FRAME.set_axis(["hosts", "length_s", "hosts"], axis=1), "has two columns of one name"),
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
        TraceJob("1", 0, 100, 4, 300, {"memory": 8.0, "start_s": 5, "user": "3", "group": "1", "queue": "2"}),
        TraceJob("2", 9, 100, 8, None, {"memory": 4.0, "start_s": 14, "user": "3", "group": "1", "queue": "2"}),
    ]
    job = workload_json(window_workload(read_trace(path, "seconds"), None, None, 8))["jobs"][0]
    assert (job["memory"], job["estimate_s"]) == (8, 300) and "user_id" not in job
    job = convert_file(path).workload["jobs"][0]
    assert (job["memory"], job["walltime"], job["user_id"], job["requested_memory"]) == (8.0, 300, 3, 2097152)
    assert {"wait_time", "status", "think_time", "preceding_job_number"} <= set(job)
    assert "its times are in seconds, got the unit 'hours'" in refusal(read_trace, path, "hours")
    # without a wait there is no start; the partition is the queue where none is given
    path = written(tmp_path, "2 6 -1 10 4 -1 -1 4 -1 -1 1 -1 -1 -1 -1 0 -1 -1\n", "b.swf")
    assert [dict(job.extra) for job in read_trace(path)] == [{"queue": "0"}]


@pytest.mark.parametrize("request_column", ["estimate", "walltime", "estimate_s"])
def test_names_of_columns_in_s_and_in_the_unit_of_the_file(tmp_path: Path, request_column: str):
    """Times in `_s` are in s in a file of hours."""
    request = "7200" if request_column == "estimate_s" else "2"
    for head, cells in (("arrival_time,length,cpus,start", "1,0.5,4,1.5"),
                        ("submission_time_s,length_s,hosts,start_s", "3600,1800,4,5400")):  # fmt: skip
        path = written(tmp_path, f"{head},{request_column}\n{cells},{request}\n")
        expected = TraceJob("1", 3600, 1800, 4, 7200, {"start_s": 5400})
        fast = read_jobs_table(path, "h")
        assert fast is not None and list(iter_jobs_csv(path, "h")) == list(fast) == [expected]
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
    assert f"line 1: {message}" in refusal(read_trace, path)
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
    assert [job.id for job in jobs] == ["1", "5"]
    assert caplog.messages == [f"{path}: 3 of 5 jobs are skipped, their length or width is 0 or unknown"]
    if name == "jobs.csv":
        # the second is skipped: it cannot be waited for
        assert [job.raw.get("depends_on") for job in window_workload(jobs, None, None, 4).jobs] == [None, ["1"]]


@pytest.mark.parametrize(
    ("name", "cell", "message"),
    [
        ("memory", "-2", " must be >= 0, got -2"),
        ("memory", "4GB", ": '4GB' is not a number"),
        ("use", "1.5", " must be in ]0, 1], got 1.5"),
        ("estimate", "inf", ": 'inf' is not a finite number"),
        ("checkpoint_s", "-1e-9", " must be >= 0, got -1e-9; leave it empty if it is unknown"),
        ("start", "5 min", ": '5 min' is not a number; write a finite number"),
    ],
)
def test_bad_cells(tmp_path: Path, name, cell, message):
    path = written(tmp_path, f"arrival_time,length,cpus,{name}\n0,1,1,\n0,1,1,{cell}\n")
    assert refusal(read_trace, path).startswith(f"{path} line 3: {name}{message}")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"use": 2}, "use must be in ]0, 1], got 2"),
        ({"recovery_s": "much"}, "recovery_s: 'much' is not a number"),
        ({"depends_on": "17"}, "depends_on must be a list of ids, got '17'"),
        ({"depends_on": ["a"]}, "waits for itself: a after a"),
    ],
)
def test_bad_fields_of_trace_jobs(extra, message):
    line = refusal(window_workload, [TraceJob("a", 0.0, 1.0, 1, extra=extra)], None, None, 1, "w0", "here")
    assert line.startswith(f"here: job 'a': {message}")


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


NUMBERS = st.sampled_from(["0", "1", "2.5", "3.1415926535", "1e3", " 4", "0.1", "+7", "100000.0000004", '"5"', ""])
ODD = st.sampled_from(["-1", "nan", "1_0", "inf", "x", "1e300", "1,1"])
CELLS = st.one_of(*[NUMBERS] * 12, ODD)
NAMES = ("arrival_time", "length", "cpus", "memory", "start", "checkpoint_s", "recovery_s", "depends_on", "user")
ROWS_OF_CELLS = st.tuples(
    *[CELLS] * 7, st.sampled_from(["", "1", "1 2", "2;x"]), st.sampled_from(["ann", " ann ", "", '"a,b"', "7"])
)


@examples(400)
@given(
    rows=st.lists(ROWS_OF_CELLS, max_size=6),
    order=st.permutations(range(3, len(NAMES))),
    end=st.sampled_from(["\n", "\r\n"]),
    unit=st.sampled_from(["s", "h"]),
)
def test_fast_and_slow_reading_are_one(tmp_path_factory, rows, order, end, unit):
    path = tmp_path_factory.getbasetemp() / "either.csv"
    lines = [",".join(row[column] for column in (0, 1, 2, *order)) for row in (NAMES, *rows)]
    path.write_bytes((end.join(lines) + end).encode())
    fast = read_jobs_table(path, unit)
    try:
        slow = list(iter_jobs_csv(path, unit))
    except InputError:
        assert fast is None
        return
    assert list(TraceTable.of(slow, path)) == slow
    if fast is not None:
        assert list(fast) == slow
