"""SWF and CSV traces, and the Batsim workloads they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st
from tables_of_jobs import core_of, jobs_of, more_of, row

from batwatt.errors import InputError
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.convert import convert_file, format_of, from_zero, read_trace, to_batsim
from batwatt.inputs.formats import read_swf
from batwatt.inputs.google_like import to_text
from batwatt.inputs.jobs import read_jobs_csv
from batwatt.protocol.workload4 import parse_workload

SWF = """\
; Version: 2.2
; Computer: a test machine
; MaxProcs: 128 (of which 64 are new)
; Note: first
; Note: second
;
  1  100  5  3600  16  -1 -1  32  7200 -1 1 3 1 -1 2 -1 -1 -1

  2  160.5  5  600.25  -1  12.5 -1  8  -1 -1 1 3 1 -1 2 -1 -1 -1
  3  170  -1  -1  4  -1 -1  4  60 -1 5 3 1 -1 2 -1 -1 -1
  4  180  0  10  -1  -1 -1  -1  60 -1 1 3 1 -1 2 -1 -1 -1
  5  190  0  60  1  -1 -1  1  60 -1 1 3 1 -1 2 -1 1 10
"""


def check_batsim(workload: dict[str, Any]) -> None:
    """Check what Batsim 4 demands of a workload file; our own reader takes it too."""
    parse_workload(workload, "w0", "test")
    assert json.loads(to_text(workload)) == workload
    assert isinstance(workload["nb_res"], int) and workload["nb_res"] > 0
    assert len({job["id"] for job in workload["jobs"]}) == len(workload["jobs"])
    for job in workload["jobs"]:
        assert job["subtime"] >= 0 and isinstance(job["res"], int) and job["res"] >= 1
        assert job.get("walltime", 1) > 0
        profile = workload["profiles"][job["profile"]]
        assert profile["delay" if profile["type"] == "delay" else "cpu"] > 0


@pytest.fixture
def swf(tmp_path: Path) -> Path:
    path = tmp_path / "trace.swf"
    path.write_text(SWF)
    return path


def test_swf_fields_and_more(tmp_path: Path, swf: Path, caplog):
    jobs = list(read_swf(swf, others=True))
    numbers = (1, 100, 5, 3600, 16, -1, -1, 32, 7200, -1, 1, 3, 1, -1, 2, -1, -1, -1)
    assert tuple(jobs[0].values())[:18] == numbers and all(type(value) is int for value in numbers)
    assert (len(jobs), jobs[1]["run_time"], jobs[4]["think_time"]) == (5, 600.25, 10)
    # as MetaCentrum's: 21 fields; also tabs, CRLF and a comment at the end of a line
    lines = [line if line.startswith(";") or not line else f"{line} 0 foo -1" for line in SWF.splitlines()]
    lines[6] = lines[6].replace("  ", "\t") + " ; a note of 4 words"
    longer = tmp_path / "longer.swf"
    longer.write_text("\r\n".join(lines) + "\r\n", newline="")
    assert list(read_swf(longer, others=True)) == jobs
    assert caplog.messages == [f"{longer}: 5 jobs have up to 21 fields; those after the 18th of SWF are ignored"]
    assert list(read_trace(longer)) == list(read_trace(swf))


def test_swf_jobs_without_a_submission(tmp_path: Path, caplog):
    lines = ["1 10 5 60 4 -1 -1 8 90 -1 1 3 -1 -1 2 -1 -1 -1", f"2{' -1' * 17}"]
    lines.append("3 20 -1 30.5 -1 -1 4096 2 -1" + " -1" * 9)
    path = written(tmp_path, "\n".join(lines), "thunder.swf")
    first, second = read_trace(path)
    assert core_of(first)[1:] == (0, 60, 4, 90)
    assert more_of(first) == {"start_s": 5, "user": "3", "queue": "2"}
    # 4096 KB for each of two
    assert (second["submission_time_s"], second["length_s"], second["hosts"], more_of(second)) == (
        10,
        30.5,
        2,
        {"memory": 0.007812},
    )
    assert f"{path}: 1 of 3 jobs are left out, without a submission" in caplog.text
    assert [job["id"] for job in convert_file(path).workload["jobs"]] == ["1", "3"]


PARTS = "1 0 10 100 {} 2 1|1 -1 50 120 {} 2 1|1 -1 40 80 {} 3 1"


@pytest.mark.parametrize(
    "lines,jobs,told",
    [
        # the line of the job, and its parts between checkpoints
        (f"1 0 10 300 {{}} 1 1|{PARTS}|2 20 5 60 {{}} 1 2", [("1", 0, 300, 8), ("2", 20, 60, 8)], (3, 1, 0)),
        (f"{PARTS}|1 0 10 300 {{}} 0 1|2 20 5 60 {{}} -1 2", [("1", 0, 300, 8), ("2", 20, 60, 8)], (3, 1, 0)),
        # parts alone: 100 + 120 + 80 s; 5.5 s of a job that failed
        (f"{PARTS}|2 20 5 60 {{}} 5 2", [("1", 0, 300, 8), ("2", 20, 60, 8)], (3, 1, 1)),
        (f"2 20 5 60 {{}} 5 2|9 30 0 5.5 {{}} 4 1|{PARTS}", [("2", 20, 60, 8), ("9", 30, 5.5, 8), ("1", 0, 300, 8)],
         (4, 2, 2)),
    ],
)  # fmt: skip
def test_partial_executions_of_swf(tmp_path: Path, caplog, lines: str, jobs, told):
    text = "".join(f"{line.format('8 -1 -1 8 600 -1')} 1 1 1 1 -1 -1\n" for line in lines.split("|"))
    path = written(tmp_path, text, "bursts.swf")
    assert [(job["id"], job["submission_time_s"], job["length_s"], job["hosts"]) for job in read_trace(path)] == jobs
    message = "{}: {} lines of status 2, 3 or 4 are parts of {} jobs; {} of these have no other line and are their sum"
    assert message.format(path, *told) in caplog.messages
    assert sorted(job["id"] for job in convert_file(path).workload["jobs"]) == sorted(id for id, *_ in jobs)


def test_parts_of_swf_out_of_order_and_of_several_widths(tmp_path: Path, caplog):
    """The first part waits 5 s and requests 900 s; 10 s x 2 + 10 s x 6 are 80 core s, 6 x 13.3 s."""
    lines = ["1 200 50 10 6 -1 -1 6 600 -1 2", "1 100 5 10 2 -1 -1 2 900 -1 3", "2 300 -1 60 -1 -1 -1 4 70 -1 2"]
    path = written(tmp_path, "".join(f"{line} 1 1 1 1 1 -1 -1\n" for line in lines), "bursts.swf")
    first, second = read_trace(path, log=LogOptions(begin="0"))
    assert (first["submission_time_s"], first["start_s"], first.get("estimate_s")) == (100, 105, 900)
    assert (first["hosts"], first["length_s"]) == (6, 13.333333)
    # requested processors, as none are allocated
    assert (second["hosts"], second["length_s"]) == (4, 60)
    assert f"{path}: 1 of these jobs have parts of several widths" in caplog.text


@pytest.mark.parametrize(
    "memories_kb,read",
    [
        # 16 GB and 600 GB for a processor; 100 MB and 2 GB in bytes
        ([2**24, 600 * 2**20, 2**24], True), ([10**8, 10**8, 2 * 2**30], False), ([2**20, 2**20, 2**31], False),
        ([4 * 10**7, 10**8, -1], False),
    ],
)  # fmt: skip
def test_memory_of_swf_in_bytes(tmp_path: Path, caplog, memories_kb: list[int], read: bool):
    lines = [f"{n} {n} 0 60 4 -1 -1 4 -1 {kb} 1" + " -1" * 7 for n, kb in enumerate(memories_kb)]
    jobs = read_trace(written(tmp_path, "\n".join(lines), "a.swf"))
    expected = [kb * 4 / 2**20 if read else None for kb in memories_kb]
    assert [job.get("memory") for job in jobs] == expected
    assert ("KB for each processor" in caplog.text) is not read


def test_swf_becomes_batsim(swf: Path):
    done = convert_file(swf, cores_per_server=10, walltime_factor=1.5)
    check_batsim(done.workload)
    assert (done.kept, done.skipped_run_time, done.skipped_cpus, done.outrun) == (3, 1, 1, 1)
    first, second, last = done.workload["jobs"]
    assert (first["subtime"], first["res"], first["walltime"]) == (0, 2, 7200)
    assert (second["subtime"], second["res"], second["walltime"]) == (60.5, 1, 901)
    assert (last["run_time"], last["requested_processors"], last["user_id"]) == (60, 1, 3)
    assert done.workload["profiles"][first["profile"]] == {"type": "delay", "delay": 3600}
    assert done.workload["nb_res"] == 2
    assert done.skipped == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2 3", "line 2: has 3 fields"),
        ("1 0 0 10 1.5 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1", "line 2: hosts must be a whole number below 2^53, got 1.5"),
        (
            "1 0 0 10 1e308 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1",
            "line 2: allocated_processors 1e+308 is not a number",
        ),
        (f"1 0 0 10 1 -1 -1 1 1 {'1' * 400} 1 1 1 1 1 1 -1 -1", "line 2: requested_memory"),
        ("1 -2 0 10 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1", "line 2: submit_time must be >= 0 s, got -2"),
        ("1 0 0 10 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 ; -1", "line 2: has 17 fields, an SWF job has 18"),
        ("id submit wait run", "line 2: begins with 'id', and a job with its number; begin a line that is no job"),
        ("# made today", "line 2: begins with '#', and a job with its number"),
        ("1;0;0;10;1;-1;-1;1;1;-1;1;1;1;1;1;1;-1;-1", "line 2: has no blanks between its fields"),
    ],
)
def test_swf_errors_name_the_line(tmp_path: Path, line: str, message: str):
    path = written(tmp_path, f"; MaxProcs: 4\n{line}\n", "bad.swf")
    refused = refusal(read_swf, path)
    assert message in refused and str(path) in refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: lacks the column 'submission_time_s', 'submission_time' or 'arrival_time'"),
        ("arrival_time,length\n", "line 1: lacks the column 'hosts' or 'cpus'"),
        ("arrival_time,length,cpus,cpus\n", "line 1: names a column twice"),
        ("arrival_time,length,cpus\n0,1\n", "line 2: has 2 fields"),
        ("arrival_time,length,cpus\n0,1,1\n0,ten,1\n", "line 3: length"),
        ("arrival_time,length,cpus\n", "no job to convert"),
        pytest.param("arrival_time,length,cpus\n0,1," + "1" * 200_000 + "\n", "is not CSV", id="long"),
        ("arrival_time,length,cpus,res\n0,1,1,x\n", "'res' has the name of a Batsim field"),
        ("arrival_time,length,cpus\n0,1,1e300\n", "line 2: cpus must be a whole number below 2^53, got 1e300"),
        ("arrival_time,length,cpus\n0,1,1e12\n", "line 2: requests more than"),
    ],
)
def test_csv_errors_name_the_place(tmp_path: Path, text: str, message: str):
    path = written(tmp_path, text, "bad.csv")
    line = refusal(convert_file, path, unit="h")
    assert message in line and str(path) in line


@pytest.mark.parametrize("rows", [2, 3, 100])
def test_csv_rows_keep_their_lines(tmp_path: Path, monkeypatch, rows: int):
    """The numbers of lines hold after quoted ends of lines, empty lines and empty cells, in parts of any size."""
    monkeypatch.setattr("batwatt.inputs.jobs.ROWS", rows)
    header = "arrival_time,length,cpus,note"
    # the cells of "c" and of the row after it take lines 7 to 9, and 11 to 12
    lines = [header, "", ",,,", "5,1,1,a", " ,  ,,", '7,1,1,"b"', '8,1,1,"c', "", 'd"', ",,,", '"', '",,,']
    text = "\n".join([*lines, "9,1,1,e", ""])
    jobs = read_jobs_csv(written(tmp_path, text, "jobs.csv"))
    assert jobs.lines is not None and jobs.lines.tolist() == [4, 6, 9, 13]
    assert jobs["id"].tolist() == ["1", "2", "3", "4"]
    with pytest.raises(InputError, match="line 14: has 3 fields, the header 4"):
        read_jobs_csv(written(tmp_path, text + "9,1,1\n", "short.csv"))
    with pytest.raises(InputError, match="line 14: length"):
        read_jobs_csv(written(tmp_path, text.replace("\n", "\r\n") + "9,x,1,e\r\n", "negative.csv"))
    assert len(read_jobs_csv(written(tmp_path, f"{header}\n\n,,,\n\n,,,\n", "none.csv"))) == 0
    # the file does not end this quotation
    with pytest.raises(InputError, match="line 4: cpus"):
        read_jobs_csv(written(tmp_path, f'{header}\n1,1,1,a\n1,1,x,"b\nc\n', "open.csv"))


def test_flops_keep_the_run_time_on_the_reference():
    jobs = jobs_of(row("a", 0, 10, 4), row("b", 1, 10, 1, estimate_s=10.0), row("c", 2, 3.5, 1))
    done = to_batsim(jobs, reference_flops=2e9, walltime_factor=1.0)
    check_batsim(done.workload)
    assert len(done.workload["profiles"]) == 2
    assert done.workload["profiles"]["work10"] == {"type": "parallel_homogeneous", "cpu": 20_000_000_000, "com": 0}
    assert [job["walltime"] for job in done.workload["jobs"]] == [10, 10, 4]
    assert done.outrun == 0
    # a request limits nothing
    requests = (("a", 10, 10.0), ("b", 10, 11.0), ("c", 3.5, 2.0))
    done = to_batsim(jobs_of(*(row(id, 0, length_s, 1, estimate_s=request) for id, length_s, request in requests)))
    assert [(job["walltime"], job.get("estimate_s")) for job in done.workload["jobs"]] == [(11, 10), (11, None), (4, 2)]
    assert done.outrun == 2
    done = to_batsim(jobs_of(row("a", 5, 10, 64), row("b", 5, 10, 2)), walltime_factor=None, nb_res=4)
    assert not any("walltime" in job for job in done.workload["jobs"]) and done.too_wide == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"walltime_factor": 1.0}, "walltime_factor must be > 1"),
        ({"reference_flops": 1e22}, "work"),
        ({"reference_flops": 1e9, "walltime_factor": 0.5}, "must be >= 1, got 0.5"),
        ({"cores_per_server": 0}, "cores_per_server"),
        ({"nb_res": 0}, "nb_res"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str):
    job = row("a", 0, 10, 1)
    assert message in refusal(to_batsim, jobs_of(job), **options)
    assert "appears twice" in refusal(to_batsim, jobs_of(job, job))
    assert "without '!'" in refusal(to_batsim, jobs_of(row("w0!a", 0, 10, 1)))


def test_the_format_comes_from_the_name_or_the_option(tmp_path: Path, swf: Path):
    assert [format_of(name) for name in ("a.swf", "a.SWF.gz", "b.csv", "b.csv.gz")] == ["swf", "swf", "csv", "csv"]
    for path, options, message in (
        (tmp_path / "trace.txt", {}, "format"),
        (tmp_path / "absent.swf", {}, "cannot be read"),
        (swf, {"format": "xls"}, "no trace format 'xls'"),
        (swf, {"unit": "h"}, "seconds"),
        (tmp_path / "a.csv", {"unit": "day"}, "no unit of time 'day'"),
    ):
        assert message in refusal(convert_file, path, **options)
    assert convert_file(written(tmp_path, SWF, "trace.txt"), format="swf") == convert_file(swf)


@given(
    st.lists(
        st.builds(
            row,
            id=st.uuids().map(str),
            submission_time_s=st.floats(-1e9, 1e9),
            length_s=st.floats(-10, 1e7),
            hosts=st.integers(-1, 10_000),
            estimate_s=st.none() | st.floats(-1, 1e7),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 64),
    st.floats(1.0, 10.0, exclude_min=True),
)
def test_any_trace_becomes_a_valid_workload_or_one_line(rows, cores, factor):
    jobs = jobs_of(*rows)
    try:
        done = to_batsim(from_zero(jobs, USUAL), cores_per_server=cores, walltime_factor=factor)
    except InputError as error:
        assert "\n" not in str(error)
        return
    check_batsim(done.workload)
    assert done.kept + done.skipped == len(jobs)
    assert min(job["subtime"] for job in done.workload["jobs"]) == 0
    for converted, job in zip(done.workload["jobs"], jobs.rows(jobs.runnable()), strict=True):
        assert (converted["res"] - 1) * cores < job["hosts"] <= converted["res"] * cores
        if "estimate_s" not in job:
            assert converted["walltime"] > done.workload["profiles"][converted["profile"]]["delay"]
