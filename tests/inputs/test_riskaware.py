"""Traces of the riskaware paper: its text format, its synthetic workloads."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from files_of_tests import refusal

from batwatt.inputs.formats import read_riskaware, to_riskaware
from batwatt.inputs.jobs import TraceJob


def load(folder: Path, text: str) -> list[TraceJob]:
    path = folder / "jobs.txt"
    path.write_bytes(text.encode())
    return list(read_riskaware(path))


def test_lines_in_their_order(tmp_path):
    jobs = load(tmp_path, "7 300 600 4 release\n\n  b\t0 0.5   2.0\r\n9 1e2 60 1 x y z")
    assert jobs == [TraceJob("7", 300.0, 600.0, 4), TraceJob("b", 0.0, 0.5, 2), TraceJob("9", 100.0, 60.0, 1)]
    assert all(type(job.cpus) is int for job in jobs)


def test_written_and_read_back(tmp_path):
    jobs = [TraceJob("7", 300.0, 600.25, 4), TraceJob("b", 0.0, 0.000001, 2)]
    assert to_riskaware(jobs) == "7 300 600.25 4\nb 0 1e-06 2\n"
    assert load(tmp_path, to_riskaware(jobs)) == jobs
    # microseconds, and gzip
    path = tmp_path / "jobs.txt.gz"
    path.write_bytes(gzip.compress(b"1 0.12345678 10.00000049 1\n"))
    assert list(read_riskaware(path)) == [TraceJob("1", 0.123457, 10.0, 1)]


@pytest.mark.parametrize(
    "line,message",
    [
        ("2 0 10", "has 3 fields, a job has at least 4"),
        ("2 0 1_0 1", "length '1_0' is not a finite number"),
        ("2 -1 10 1", "release must be >= 0 s, got -1"),
        ("2 0 1e-9 1", "length must be > 0 s, got 1e-9"),
        ("2 0 10 0", "cores must be a whole number >= 1, got 0"),
        ("1 5 10 1", "a second job '1' (the first is on line 1)"),
    ],
)
def test_refusals_name_line_and_value(tmp_path, line, message):
    assert refusal(load, tmp_path, f"1 0 10 1\n\n{line}\n").startswith(f"{tmp_path / 'jobs.txt'}: line 3: {message}; ")


T_AVG_S = 16174.08
"""26 machines x 24 cores x 504 h / (3.5 cores x 20,000 jobs) = 4.4928 h."""


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda folder: load(folder, "\n \n"), "jobs.txt: holds no job; write 'id release length cores'"),
    ],
)
def test_refusals(tmp_path, act, message):
    assert message in refusal(act, tmp_path)
