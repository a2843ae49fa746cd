"""Windows of a trace: which jobs are kept, as what, and that the workload is that of its JSON."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.window import window_json, window_workload
from batwatt.inputs.workloads.batsim_files import read_workload
from batwatt.inputs.workloads.google_like import to_text
from batwatt.model.workload import Delay
from batwatt.protocol.workload4 import parse_workload

TRACE = [
    TraceJob("late", 200.5, 10.0, 1),
    TraceJob("last", 200.0, 300.0, 2),
    TraceJob("over", 0.0, 100.0, 1),
    TraceJob("before", 50.0, 60.0, 4),
    TraceJob("9", 100.0, 10.0, 99),
    TraceJob("10", 100.0, 10.0, 1, requested_s=50.0, extra={"status": 1}),
    TraceJob("bit", 99.75, 1.0, 1),
]


def test_a_window_by_hand():
    # [100, 200]: "over" ends as it begins, "late" comes after it; 10 s are left of "before", 0.75 s of "bit"
    assert window_json(TRACE, 100, 200, 8) == {
        "nb_res": 8,
        "jobs": [
            {"id": "10", "subtime": 100, "res": 1, "profile": "d10", "estimate_s": 50},
            {"id": "9", "subtime": 100, "res": 99, "profile": "d10"},
            {"id": "before", "subtime": 100, "res": 4, "profile": "d10", "release_s": 50, "length_s": 60},
            {"id": "bit", "subtime": 100, "res": 1, "profile": "d0.75", "release_s": 99.75, "length_s": 1},
            {"id": "last", "subtime": 200, "res": 2, "profile": "d300"},
        ],
        "profiles": {
            "d0.75": {"type": "delay", "delay": 0.75},
            "d10": {"type": "delay", "delay": 10},
            "d300": {"type": "delay", "delay": 300},
        },
    }


def test_its_workload():
    workload = window_workload(TRACE, 100.0, 200.0, 8, "w1", "borg")
    assert [job.name for job in workload.jobs] == ["10", "9", "before", "bit", "last"]
    before = workload.jobs[2]
    assert (before.id, before.submit_time_s, before.hosts, before.walltime_s) == ("w1!before", 100.0, 4, None)
    assert workload.profiles[before.profile] == Delay(10.0)
    assert (before.raw["release_s"], before.raw["length_s"]) == (50, 60)
    assert "release_s" not in workload.jobs[0].raw and "status" not in workload.jobs[0].raw
    assert (workload.nb_res, workload.source, workload.name) == (8, "borg", "w1")


def test_the_whole_trace():
    workload = window_workload(TRACE, None, None, 8)
    assert [job.name for job in workload.jobs] == ["over", "before", "bit", "10", "9", "last", "late"]
    assert [job.submit_time_s for job in workload.jobs] == [0, 50, 99.75, 100, 100, 200, 200.5]
    fields = {"id", "subtime", "res", "profile"}
    assert all(set(job.raw) - {"estimate_s"} == fields for job in workload.jobs)


@pytest.mark.parametrize("begin_s,end_s", [(100.0, 200.0), (None, None)])
def test_written_and_read_back(tmp_path: Path, begin_s, end_s):
    path = tmp_path / "w.json"
    path.write_text(to_text(window_json(TRACE, begin_s, end_s, 8)))
    assert read_workload(path) == window_workload(TRACE, begin_s, end_s, 8, source=path)


TIMES = st.floats(0, 1000) | st.integers(0, 20).map(lambda x: x * 50.0)


@given(
    st.lists(st.tuples(TIMES, TIMES.filter(lambda x: x > 1e-5), st.integers(1, 9)), min_size=1, max_size=30),
    st.integers(0, 400),
)
def test_law_of_windows(rows, begin_s):
    jobs = [TraceJob(str(i), *row) for i, row in enumerate(rows)]
    end_s = begin_s + 200.0
    kept = {job.id for job in jobs if round(job.submit_s, 6) <= end_s and job.submit_s + job.run_s > begin_s + 2e-6}
    maybe = kept | {job.id for job in jobs if job.submit_s <= end_s and abs(job.submit_s + job.run_s - begin_s) <= 2e-6}
    if not kept:
        return
    data = window_json(jobs, begin_s, end_s, 4)
    workload = window_workload(jobs, begin_s, end_s, 4, source="here")
    assert parse_workload(load_json(to_text(data), "here"), "w0", "here") == workload
    assert kept <= {job.name for job in workload.jobs} <= maybe
    for job in workload.jobs:
        old = jobs[int(job.name)]
        ends_s = job.submit_time_s + workload.profiles[job.profile].duration_s
        assert ends_s == pytest.approx(old.submit_s + old.run_s, abs=2e-6)
        assert ("release_s" in job.raw) == (round(old.submit_s, 6) < begin_s)
    order = [(job.submit_time_s, job.id) for job in workload.jobs]
    assert order == sorted(order) and [row["id"] for row in data["jobs"]] == [job.name for job in workload.jobs]


@pytest.mark.parametrize(
    "begin_s,end_s,said",
    [
        (100, None, "a window needs two finite times, got 100 and None"),
        (None, 100, "a window needs two finite times, got None and 100"),
        (0, math.inf, "a window needs two finite times, got 0 and inf"),
        (100, 100, "a window must satisfy 0 <= begin_s < end_s, got 100 and 100"),
        (-1, 100, "a window must satisfy 0 <= begin_s < end_s, got -1 and 100"),
        (1000, 2000, "no job in the window [1000, 2000] s, of 7"),
    ],
)
def test_bad_windows(begin_s, end_s, said):
    with pytest.raises(InputError) as caught:
        window_json(TRACE, begin_s, end_s, 8, "borg")
    assert str(caught.value).startswith(f"borg: {said}; ")


@pytest.mark.parametrize(
    "job,said",
    [
        (TraceJob("bit", 0.0, 1.0, 1), "job 'bit': appears twice"),
        (TraceJob("x", -1.0, 1.0, 1), "job 'x': needs a release >= 0 s"),
        (TraceJob("x", math.nan, 1.0, 1), "job 'x': needs a release >= 0 s"),
        (TraceJob("x", 0.0, -1.0, 1), "job 'x': needs a release >= 0 s"),
        (TraceJob("x", 0.0, 1.0, 0), "job 'x': needs a release >= 0 s"),
        (TraceJob("a!b", 100.0, 1.0, 1), "job 'a!b': id 'a!b' is not a name without '!'"),
        (TraceJob("x", 100.0, 1.0, 2**31), "cores in 1..2147483647, got 100.0, 1.0, 2147483648"),
    ],
)
def test_bad_jobs(job, said):
    with pytest.raises(InputError) as caught:
        window_workload([*TRACE, job], 100.0, 200.0, 8, source="borg")
    assert str(caught.value).startswith("borg: ") and said in str(caught.value)


@pytest.mark.parametrize("begin_s", [None, 0.0])
def test_an_empty_trace(begin_s):
    with pytest.raises(InputError, match=r"borg: no job.*, of 0"):
        window_json([], begin_s, None if begin_s is None else 10.0, 8, "borg")
