"""How long checkpoints and recoveries of jobs take, from the trace to the workload; read fast and slowly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.inputs.traces.jobs_csv import iter_jobs_csv, read_jobs_table
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.inputs.traces.window import window_json, window_workload

TRACE = """\
arrival_time,length,cpus,checkpoint_s,memory,recovery_s
0,0.5,4,60,12.5,30.25
0.25,1,2,0,,
0.5,2,1,,1,0.0000004
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_they_are_seconds_whatever_the_unit(tmp_path: Path):
    path = written(tmp_path, TRACE)
    slow = list(iter_jobs_csv(path, "hours"))
    assert slow == [
        TraceJob("1", 0.0, 1800.0, 4, None, {"memory": 12.5, "checkpoint_s": 60.0, "recovery_s": 30.25}),
        TraceJob("2", 900.0, 3600.0, 2, None, {"checkpoint_s": 0.0}),
        TraceJob("3", 1800.0, 7200.0, 1, None, {"memory": 1.0, "recovery_s": 0.0}),
    ]
    fast = read_jobs_table(path, "hours")
    assert isinstance(fast, TraceTable) and list(fast) == slow
    kept = fast.rows(np.array([False, True, True]))
    assert kept[0].extra == {"checkpoint_s": 0.0} and kept[1].extra == {"memory": 1.0, "recovery_s": 0.0}


def test_they_come_to_the_workload(tmp_path: Path):
    jobs = read_trace(written(tmp_path, TRACE), "h")
    assert isinstance(jobs, TraceTable)
    for source in (jobs, list(jobs)):
        told = [dict(job.raw) for job in window_workload(source, None, None, 8).jobs]
        assert [(raw.get("checkpoint_s"), raw.get("recovery_s")) for raw in told] == [(60, 30.25), (0, None), (None, 0)]
        assert list(told[0]) == ["id", "subtime", "res", "profile", "memory", "checkpoint_s", "recovery_s"]
        assert not any(key in told[1] for key in ("recovery_s", "memory"))
    row = convert_file(written(tmp_path, TRACE), unit="h").workload["jobs"][0]
    assert (row["checkpoint_s"], row["recovery_s"]) == (60, 30.25)


@pytest.mark.parametrize("name", ["checkpoint_s", "recovery_s"])
@pytest.mark.parametrize(
    "cell,said",
    [
        ("-1", "must be >= 0, got -1; leave it empty if it is unknown"),
        ("-1e-9", "must be >= 0, got -1e-9; leave it empty if it is unknown"),
        ("nan", "'nan' is not a finite number; write a finite number"),
        ("inf", "'inf' is not a finite number; write a finite number"),
        ("5 min", "'5 min' is not a number; write a finite number"),
    ],
)
def test_cells_that_are_none(tmp_path: Path, name, cell, said):
    path = written(tmp_path, f"arrival_time,length,cpus,{name}\n0,1,1,2\n0,1,1,{cell}\n")
    with pytest.raises(InputError) as caught:
        read_trace(path)
    between = ": " if "not" in said else " "
    assert str(caught.value) == f"{path} line 3: {name}{between}{said}"


@pytest.mark.parametrize("name", ["checkpoint_s", "recovery_s"])
@pytest.mark.parametrize(
    "value,said",
    [(-1, " must be >= 0, got -1"), ("long", ": 'long' is not a number"), (True, ": True is not a number")],
)
def test_values_of_trace_jobs_that_are_none(name, value, said):
    with pytest.raises(InputError) as caught:
        window_json([TraceJob("a", 0.0, 1.0, 1, extra={name: value})], None, None, 1, "here")
    assert str(caught.value).startswith(f"here: job 'a': {name}{said}")


NUMBERS = st.sampled_from(["0", "1", "2.5", "3.1415926535", "1e3", " 4", "100000.0000004", "", "", '"5"'])
CELLS = st.one_of(*[NUMBERS] * 8, st.sampled_from(["-1", "nan", "inf", "x", "1_0", "-0"]))


@examples(300)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=5),
    order=st.permutations(["checkpoint_s", "recovery_s", "cpus"]),
    unit=st.sampled_from(["s", "h"]),
)
def test_fast_and_slow_reading_are_one(tmp_path_factory, rows, order, unit):
    path = tmp_path_factory.getbasetemp() / "either-checkpoints.csv"
    lines = [",".join(["arrival_time", "length", *order])]
    for checkpoint, recovery in rows:
        cells = {"checkpoint_s": checkpoint, "recovery_s": recovery, "cpus": "1"}
        lines.append(",".join(["0", "1", *(cells[name] for name in order)]))
    path.write_text("\n".join(lines) + "\n")
    fast = read_jobs_table(path, unit)
    try:
        slow = list(iter_jobs_csv(path, unit))
    except InputError:
        assert fast is None
        return
    if fast is not None:
        assert list(fast) == slow
        if slow:
            one, other = (window_workload(jobs, None, None, 4, source="here") for jobs in (fast, slow))
            assert [job.raw for job in one.jobs] == [job.raw for job in other.jobs]
