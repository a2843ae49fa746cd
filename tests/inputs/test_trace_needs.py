"""Memory, estimates, use and dependencies of jobs, from the trace to the workload; read fast and slowly."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.inputs.traces.dependencies import ids_of, within
from batwatt.inputs.traces.jobs_csv import iter_jobs_csv, read_jobs_table
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.inputs.traces.window import window_json, window_workload

NEEDY = """\
arrival_time,length,cpus,memory,estimate,depends_on,use,queue
0,0.5,4,12.5,1,,0.25,long
0.25,1,2,,,1,,short
0.5,2,1,3,-1,1;2 9,1,
"""


def written(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_csv_with_needs(tmp_path: Path):
    path = written(tmp_path, NEEDY)
    assert list(iter_jobs_csv(path, "hours")) == [
        TraceJob("1", 0.0, 1800.0, 4, 3600.0, {"memory": 12.5, "use": 0.25, "queue": "long"}),
        TraceJob("2", 900.0, 3600.0, 2, None, {"depends_on": ["1"], "queue": "short"}),
        TraceJob("3", 1800.0, 7200.0, 1, None, {"memory": 3.0, "depends_on": ["1", "2", "9"], "use": 1.0}),
    ]
    jobs = read_trace(path, "h")
    assert isinstance(jobs, TraceTable) and len(jobs) == 3
    assert jobs[1] == TraceJob("2", 900.0, 3600.0, 2, None, {"depends_on": ["1"], "queue": "short"})
    assert jobs[-1:] == [TraceJob("3", 1800, 7200, 1, None, {"memory": 3.0, "use": 1.0, "depends_on": ["1", "2", "9"]})]


def test_needs_in_the_workload(tmp_path: Path):
    jobs = read_trace(written(tmp_path, NEEDY), "hours")
    for source in (jobs, list(jobs)):
        first, second, third = window_workload(source, None, None, 8).jobs
        # job 9 is nowhere, so nobody waits for it
        assert dict(first.raw) == {
            "id": "w0!1",
            "subtime": 0,
            "res": 4,
            "profile": "d1800",
            "memory": 12.5,
            "estimate_s": 3600,
            "use": 0.25,
            "queue": "long",
        }
        assert (second.raw["depends_on"], third.raw["depends_on"]) == (["1"], ["1", "2"])
        assert "memory" not in second.raw and "estimate_s" not in third.raw and first.walltime_s is None
        # in [2000, 3000] s the first has ended
        second, third = window_workload(source, 2000.0, 3000.0, 8).jobs
        assert "depends_on" not in second.raw and third.raw["depends_on"] == ["2"]
        assert (second.raw["release_s"], second.raw["length_s"], second.profile) == (900, 3600, "d2500")


def test_swf_needs(tmp_path: Path):
    lines = (
        "1 0 5 100 4 -1 1048576 8 300 2097152 1 3 1 -1 2 -1 -1 -1\n2 9 5 100 -1 -1 524288 8 -1 -1 1 3 1 -1 2 -1 -1 -1\n"
    )
    path = written(tmp_path, lines, "a.swf")
    # 2 GB a processor requested, on 4; half a GB a processor used, on 8
    assert list(read_trace(path)) == [
        TraceJob("1", 0, 100, 4, 300, {"memory": 8.0, "start_s": 5, "user": "3", "group": "1", "queue": "2"}),
        TraceJob("2", 9, 100, 8, None, {"memory": 4.0, "start_s": 14, "user": "3", "group": "1", "queue": "2"}),
    ]
    job = window_json(read_trace(path, "seconds"), None, None, 8)["jobs"][0]
    assert (job["memory"], job["estimate_s"]) == (8, 300) and "user_id" not in job
    job = convert_file(path).workload["jobs"][0]
    assert (job["memory"], job["walltime"], job["user_id"], job["requested_memory"]) == (8.0, 300, 3, 2097152)
    assert {"wait_time", "status", "think_time", "preceding_job_number"} <= set(job)
    with pytest.raises(InputError, match="its times are in seconds, got the unit 'hours'"):
        read_trace(path, "hours")


@pytest.mark.parametrize("name", ["jobs.csv", "a.swf"])
def test_jobs_without_a_length_are_told_of(tmp_path: Path, name: str, caplog):
    rest = "-1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1\n"
    texts = {
        "jobs.csv": "arrival_time,length,cpus,depends_on\n0,5,1,2\n1,0,1,\n2,-1,1,\n3,5,0,\n4,5,1,1\n",
        "a.swf": f"1 0 0 5 1 {rest}2 1 0 0 1 {rest}3 2 0 -1 1 {rest}4 3 0 5 -1 {rest}5 4 0 5 1 {rest}",
    }
    path = written(tmp_path, texts[name], name)
    with caplog.at_level(logging.WARNING):
        jobs = read_trace(path)
    assert [job.id for job in jobs] == ["1", "5"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: 3 of 5 jobs are skipped, their length or width is 0 or unknown"
    ]
    if name == "jobs.csv":
        # the second is skipped: it cannot be waited for
        assert [job.raw.get("depends_on") for job in window_workload(jobs, None, None, 4).jobs] == [None, ["1"]]


@pytest.mark.parametrize(
    "text,said",
    [
        ("arrival_time,length,cpus,memory\n0,1,1,-2\n", "line 2: memory must be >= 0, got -2"),
        ("arrival_time,length,cpus,memory\n0,1,1,4GB\n", "line 2: memory: '4GB' is not a number"),
        ("arrival_time,length,cpus,memory\n0,1,1,nan\n", "line 2: memory: 'nan' is not a finite number"),
        ("arrival_time,length,cpus,memory\n0,1,1\n", "line 2: has 3 fields, the header 4"),
        ("arrival_time,length,cpus,use\n0,1,1,\n0,1,1,1.5\n", "line 3: use must be in ]0, 1], got 1.5"),
        ("arrival_time,length,cpus,use\n0,1,1,0\n", "line 2: use must be in ]0, 1], got 0"),
        ("arrival_time,length,cpus,estimate\n0,1,1,inf\n", "line 2: estimate: 'inf' is not a finite number"),
        ("arrival_time,length,cpus\n0,,1\n", "line 2: length: '' is not a number"),
    ],
)
def test_bad_needs(tmp_path: Path, text: str, said: str):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path} {said}")


@pytest.mark.parametrize("unit", ["minutes", ""])
def test_units(tmp_path: Path, unit):
    with pytest.raises(InputError, match=f"no unit of time '{unit}'"):
        read_trace(written(tmp_path, NEEDY), unit)


@pytest.mark.parametrize(
    "extra,said",
    [
        ({"memory": -1}, "memory must be >= 0, got -1"),
        ({"use": 2}, "use must be in ]0, 1], got 2"),
        ({"memory": "much"}, "memory: 'much' is not a number"),
        ({"depends_on": "17"}, "depends_on must be a list of ids, got '17'"),
        ({"depends_on": ["a"]}, "waits for itself: a after a"),
    ],
)
def test_bad_needs_of_trace_jobs(extra, said):
    with pytest.raises(InputError) as caught:
        window_json([TraceJob("a", 0.0, 1.0, 1, extra=extra)], None, None, 1, "here")
    assert str(caught.value).startswith(f"here: job 'a': {said}")


def test_circles():
    assert ids_of(" 1;2  3 ; ") == ["1", "2", "3"] and ids_of("") == []
    chain = {str(n): [str(n - 1)] for n in range(50_000)}
    assert len(within(chain, chain)) == 49_999
    assert within({"c": ["a", "b", "a"], "b": ["a"], "x": ["c"]}, {"a", "b", "c"}) == {"c": ["a", "b"], "b": ["a"]}
    with pytest.raises(InputError, match=r"job 'b': waits for itself: b after c after b; "):
        within({"a": ["b"], "b": ["c"], "c": ["b"]}, {"a", "b", "c"})
    # the circle is broken by a job that is not there
    assert within({"a": ["b"], "b": ["c"], "c": ["b"]}, {"a", "b"}) == {"a": ["b"]}


NUMBERS = st.sampled_from(["0", "1", "2.5", "3.1415926535", "1e3", " 4", "0.1", "+7", "100000.0000004", '"5"'])
ODD = st.sampled_from(["-1", "", "nan", "1_0", "inf", "x", "1e300", "1,1"])
CELLS = st.one_of(*[NUMBERS] * 12, ODD)
LABELS = st.sampled_from(["ann", " ann ", "", '"a,b"', "7"])


@examples(300)
@given(
    rows=st.lists(st.tuples(*[CELLS] * 5, st.sampled_from(["", "1", "1 2", "2;x"]), LABELS), max_size=6),
    needs=st.permutations(["memory", "start", "depends_on", "user"]),
    end=st.sampled_from(["\n", "\r\n"]),
    unit=st.sampled_from(["s", "h"]),
)
def test_fast_and_slow_reading_are_one(tmp_path_factory, rows, needs, end, unit):
    path = tmp_path_factory.getbasetemp() / "either.csv"
    header = ["arrival_time", "length", "cpus", *needs]
    lines = [",".join(header)]
    for *numbers, depends, user in rows:
        cells = {"memory": numbers[3], "start": numbers[4], "depends_on": depends, "user": user}
        lines.append(",".join([*numbers[:3], *(cells[name] for name in needs)]))
    path.write_bytes((end.join(lines) + end).encode())
    fast = read_jobs_table(path, unit)
    try:
        slow = list(iter_jobs_csv(path, unit))
    except InputError:
        assert fast is None
        return
    if fast is not None:
        assert list(fast) == slow


def test_fast_reading_is_taken(tmp_path: Path):
    """Otherwise the law above would be empty."""
    text = NEEDY.replace("\n", "\r\n")
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    table = read_jobs_table(packed, "h")
    assert table is not None and len(table) == 3 and table.depends == {"2": ["1"], "3": ["1", "2", "9"]}
    assert read_jobs_table(written(tmp_path, "arrival_time|length|cpus|args\n0|10|1|x,y\n")) is not None
    assert read_jobs_table(written(tmp_path, NEEDY + ",,,,,,,\n")) is None
    assert len(read_trace(written(tmp_path, NEEDY + ",,,,,,,\n"))) == 3


TIMES = st.floats(0, 1000).map(lambda x: round(x, 6)) | st.integers(0, 20).map(lambda x: x * 50.0)
ROWS = st.tuples(TIMES, TIMES.filter(lambda x: x > 1e-5), st.integers(1, 9), st.floats(0, 9).map(lambda x: round(x, 6)))


@examples(200)
@given(
    rows=st.lists(ROWS, min_size=1, max_size=30),
    depends=st.dictionaries(st.integers(0, 29), st.lists(st.integers(1, 31).map(str), max_size=3), max_size=5),
    begin_s=st.none() | st.integers(0, 400),
    unknown=st.integers(0, 29),
    users=st.lists(st.sampled_from(["", "ann", "bob"]), min_size=30, max_size=30),
)
def test_windows_of_tables_and_of_jobs_are_one(rows, depends, begin_s, unknown, users):
    submit, run, cpus, memory = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    memory[unknown % len(rows)] = np.nan
    table = TraceTable(
        np.array([str(row + 1) for row in range(len(rows))], dtype=object),
        submit_s=submit,
        run_s=run,
        cpus=cpus,
        needs={"memory": memory, "estimate_s": np.array([round(value * 100 + 1, 6) for value in memory.tolist()])},
        depends={str(row + 1): names for row, names in depends.items() if row < len(rows)},
        labels={"user": np.array(users[: len(rows)], dtype=object)},
    )
    end_s = None if begin_s is None else begin_s + 200.0
    answers = []
    for jobs in (table, list(table)):
        try:
            answers.append(window_workload(jobs, begin_s, end_s, 4, source="here"))
        except InputError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
