"""Windows of a trace, and which of its times is 0 s of a run."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from files_of_tests import refusal
from files_of_tests import written as a_file
from hypothesis import given
from hypothesis import strategies as st
from tables_of_jobs import jobs_of, row

import batwatt as bw
from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.convert import convert_file, read_trace, window_workload, workload_json
from batwatt.inputs.google_like import to_text
from batwatt.model.signal import Window, parse_date_s
from batwatt.protocol.workload4 import parse_workload
from batwatt.units import date_text

ROWS = [
    row("late", 200.5, 10.0, 1),
    row("last", 200.0, 300.0, 2),
    row("over", 0.0, 100.0, 1),
    row("before", 50.0, 60.0, 4),
    row("9", 100.0, 10.0, 99),
    row("10", 100.0, 10.0, 1, estimate_s=50.0, status=1),
    row("bit", 99.75, 1.0, 1),
]


TRACE = jobs_of(*ROWS)


def test_a_window_by_hand():
    # [100, 200]: "over" ends as it begins, "late" comes after it; 10 s are left of "before", 0.75 s of "bit"
    assert workload_json(window_workload(TRACE, Window(100, 200), 8)) == {
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


TIMES = st.floats(0, 1000) | st.integers(0, 20).map(lambda x: x * 50.0)


@given(
    st.lists(st.tuples(TIMES, TIMES.filter(lambda x: x > 1e-5), st.integers(1, 9)), min_size=1, max_size=30),
    st.integers(0, 400),
)
def test_law_of_windows(rows, begin_s):
    jobs = [row(str(i), *cells) for i, cells in enumerate(rows)]
    trace = jobs_of(*jobs)
    end_s = begin_s + 200.0
    times = {job["id"]: (job["submission_time_s"], job["length_s"]) for job in jobs}
    kept = {id for id, (at_s, run_s) in times.items() if round(at_s, 6) <= end_s and at_s + run_s > begin_s + 2e-6}
    maybe = kept | {id for id, (at_s, run_s) in times.items() if at_s <= end_s and abs(at_s + run_s - begin_s) <= 2e-6}
    if not kept:
        return
    data = workload_json(window_workload(trace, Window(begin_s, end_s), 4))
    workload = window_workload(trace, Window(begin_s, end_s), 4)
    assert parse_workload(load_json(to_text(data), "here"), "w0", "here") == workload
    assert kept <= {job.name for job in workload.jobs} <= maybe
    for job in workload.jobs:
        old = jobs[int(job.name)]
        ends_s = job.submit_time_s + workload.profiles[job.profile].duration_s
        assert ends_s == pytest.approx(old["submission_time_s"] + old["length_s"], abs=2e-6)
        assert ("release_s" in job.raw) == (round(old["submission_time_s"], 6) < begin_s)
    order = [(job.submit_time_s, job.id) for job in workload.jobs]
    assert order == sorted(order) and [row["id"] for row in data["jobs"]] == [job.name for job in workload.jobs]


@pytest.mark.parametrize(
    "begin_s,end_s,message",
    [
        (100, 100, "a window must satisfy begin_s < end_s <= 1e+15, got 100 and 100"),
        (1000, 2000, "no job in the window [1000, 2000] s, of 7"),
    ],
)
def test_bad_windows(begin_s, end_s, message):
    assert refusal(window_workload, TRACE, Window(begin_s, end_s), 8).startswith(f"here: {message}; ")


@pytest.mark.parametrize(
    "job,message",
    [
        (row("bit", 0.0, 1.0, 1), "job 'bit': appears twice"),
        (row("x", -1.0, 1.0, 1), "job 'x': needs a release >= 0 s"),
        (row("a!b", 100.0, 1.0, 1), "job 'a!b': id 'a!b' is not a name without '!'"),
        (row("x", 100.0, 1.0, 2**31), "cores in 1..2147483647, got 100.0, 1.0, 2147483648"),
    ],
)
def test_bad_jobs(job, message):
    line = refusal(window_workload, jobs_of(*ROWS, job, source="borg"), Window(100.0, 200.0), 8)
    assert line.startswith("borg: ") and message in line


JULY_S = 1719792000
"""2024-07-01T00:00Z."""
HEAD = "; Version: 2.2\n; UnixStartTime: 1719792000\n; TimeZoneString: Europe/Prague\n"


def swf(*submits: float) -> str:
    return "".join(f"{i} {time} 5 100 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n" for i, time in enumerate(submits, 1))


def table(*submits: float, length: float = 100) -> str:
    return "arrival_time,length,cpus\n" + "".join(f"{time},{length},1\n" for time in submits)


def text(*submits: float) -> str:
    return "".join(f"{i} {time} 100 1\n" for i, time in enumerate(submits, 1))


def sacct(*dates: str) -> str:
    return "JobID|Submit|Elapsed|NCPUS\n" + "".join(f"{i}|{date}|00:01:40|1\n" for i, date in enumerate(dates, 1))


DATED = {
    "a.swf": swf(JULY_S, JULY_S + 50),
    "header.swf": HEAD + swf(0, 50),
    "a.csv": table(JULY_S, JULY_S + 50),
    "a.txt": text(JULY_S, JULY_S + 50),
    "a.sacct": sacct("2024-07-01T00:00:00Z", "2024-07-01T02:00:50+02:00"),
}
PLAIN = {"a.swf": swf(700, 750), "a.csv": table(700, 750), "a.txt": text(700, 750)}


@pytest.fixture
def written(tmp_path: Path, caplog):
    caplog.set_level(logging.WARNING)
    return lambda name, content: a_file(tmp_path, content, name)


def zero(path: Path, *, window: bool = False, **log) -> tuple[list[float], str]:
    jobs = read_trace(path, log=LogOptions(**log), window=window)
    return jobs["submission_time_s"].tolist(), "" if jobs.origin_s is None else date_text(jobs.origin_s)


@pytest.mark.parametrize("name", DATED)
def test_dates_are_seconds_after_the_first_submission(written, name, caplog):
    path = written(name, DATED[name])
    assert zero(path) == ([0, 50], "2024-07-01T00:00Z")
    assert caplog.messages == [f"{path}: 0 s is 2024-07-01T00:00Z, the first submission"]
    assert [job["subtime"] for job in convert_file(path).workload["jobs"]] == [0, 50]
    # a window is in seconds after that, too
    assert zero(path, window=True) == ([0, 50], "2024-07-01T00:00Z")
    load = bw.Workload.read(path, window=(20, 90))
    assert [(job.submit_time_s, job.raw.get("release_s")) for job in load.jobs] == [(20, 0), (50, None)]
    assert load.begin == "2024-07-01T00:00Z"


@pytest.mark.parametrize("name", DATED)
def test_a_stated_begin(written, name, caplog):
    path = written(name, DATED[name])
    assert zero(path, begin="2024-07-01T01:59", tz="Europe/Berlin") == ([60, 110], "2024-06-30T23:59Z")
    assert "0 s is 2024-06-30T23:59Z, " in caplog.text and "as begin says" in caplog.text
    assert zero(path, begin="2024-07-01T00:00:20Z") == ([30], "2024-07-01T00:00:20Z")
    assert "1 of 2 jobs are left out, submitted before 2024-07-01T00:00:20Z" in caplog.text
    caplog.clear()
    for begin, times_s in ((str(JULY_S - 9), [9, 59]), ("2024-07-01T00:00:20Z", [30])):
        converted = convert_file(path, log=LogOptions(begin=begin)).workload["jobs"]
        assert [job["subtime"] for job in converted] == times_s
    assert "1 of 2 jobs are left out, submitted before 2024-07-01T00:00:20Z" in caplog.text
    assert "no job is submitted at 2024-07-02 or later" in refusal(read_trace, path, log=LogOptions(begin="2024-07-02"))
    if name != "header.swf":
        assert "begin: '0' is not a date" in refusal(read_trace, path, log=LogOptions(begin="0"))


@pytest.mark.parametrize("name", PLAIN)
def test_without_dates(written, name, caplog):
    path = written(name, PLAIN[name])
    assert zero(path) == ([0, 50], "")
    assert caplog.messages == [f"{path}: 0 s is 700 s of its times, the first submission"]
    assert [job["subtime"] for job in convert_file(path).workload["jobs"]] == [0, 50]
    caplog.clear()
    # the papers' windows are in the trace's own seconds
    assert zero(path, begin="0") == zero(path, window=True) == ([700, 750], "")
    assert not caplog.messages
    assert zero(path, begin="600") == ([100, 150], "")
    assert zero(path, begin="2024-07-01") == ([0, 50], "2024-07-01T00:00Z")
    # its own 0 s, 700 s earlier, is that date
    assert zero(path, begin="2024-07-01", window=True) == ([700, 750], "2024-07-01T00:00Z")


def test_the_header_of_swf(written, caplog):
    path = written("a.swf", HEAD + swf(604800, 604850))
    assert zero(path) == ([0, 50], "2024-07-08T00:00Z")
    assert caplog.messages == [f"{path}: 0 s is 2024-07-08T00:00Z, 604800 s of its times, the first submission"]
    assert zero(path, begin="0") == zero(path, window=True) == ([604800, 604850], "2024-07-01T00:00Z")
    assert zero(path, begin="2024-07-08T02:00", tz="Europe/Prague") == ([0, 50], "2024-07-08T00:00Z")
    # times that are dates need no header, one that knows no date states none
    assert zero(written("b.swf", HEAD + swf(JULY_S + 9))) == ([0], "2024-07-01T00:00:09Z")
    assert zero(written("c.swf", "; UnixStartTime: -1\n" + swf(9))) == ([0], "")


@pytest.mark.parametrize("times", [(0, JULY_S), (JULY_S, 0, JULY_S + 50), (JULY_S, JULY_S + 500_000_000)])
def test_times_of_two_clocks(written, times):
    for path in (written("a.csv", table(*times)), written("a.swf", swf(*times))):
        for read in (read_trace, convert_file):
            with pytest.raises(InputError, match=r"years after 0 s .*: times of two clocks"):
                read(path)


@pytest.mark.parametrize(("first_s", "hint"), [(3, "submitted at 3 s"), (JULY_S - 5, "subtract the first")])
def test_json_has_seconds(written, first_s, hint):
    jobs = [{"id": str(time), "subtime": time, "res": 1, "profile": "p"} for time in (first_s, JULY_S)]
    content = {"nb_res": 1, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 5}}}
    with pytest.raises(InputError, match=rf"years after 0 s.*{hint}"):
        bw.simulate(bw.Platform.machines(1), written("a.json", json.dumps(content)))


@pytest.mark.parametrize("begin", ["x", "", "99999999999999", "2024-13-01", 5, float("nan"), 10**400, True, {}, []])
def test_what_is_no_date(written, begin):
    path = written("a.sacct", DATED["a.sacct"])
    assert "begin" in refusal(lambda: read_trace(path, log=LogOptions(begin=begin)))
    assert "begin" in refusal(parse_date_s, begin)


def test_dates_are_as_short_as_they_are_exact():
    texts = [date_text(JULY_S + more_s) for more_s in (0, 7, 0.5, 0.9999999)]
    assert texts == ["2024-07-01T00:00Z", "2024-07-01T00:00:07Z", "2024-07-01T00:00:00.500000Z", "2024-07-01T00:00:01Z"]
    assert parse_date_s("2024-07-01") == parse_date_s("2024-07-01T02:00+02:00") == JULY_S
    for date_s in (0, -1.5, JULY_S + 0.25, JULY_S + 59.999999, 1e11, -5e9):
        assert parse_date_s(date_text(date_s)) == pytest.approx(date_s, abs=1e-6)
