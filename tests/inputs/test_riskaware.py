"""Traces of the riskaware paper: its text format, its synthetic workloads."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from files_of_tests import refusal
from tables_of_jobs import row

from batwatt.inputs.convert import read_trace
from batwatt.inputs.formats import read_riskaware, to_riskaware
from batwatt.inputs.load import windowed


def load(folder: Path, text: str) -> list[dict[str, Any]]:
    path = folder / "jobs.txt"
    path.write_bytes(text.encode())
    return list(read_riskaware(path))


def test_lines_in_their_order(tmp_path):
    jobs = load(tmp_path, "7 300 600 4 release\n\n  b\t0 0.5   2.0\r\n9 1e2 60 1 x y z")
    assert jobs == [row("7", 300.0, 600.0, 4), row("b", 0.0, 0.5, 2), row("9", 100.0, 60.0, 1)]
    assert all(type(job["hosts"]) is int for job in jobs)


def test_written_and_read_back(tmp_path):
    jobs = [("7", 300.0, 600.25, 4), ("b", 0.0, 0.000001, 2)]
    assert to_riskaware(jobs) == "7 300 600.25 4\nb 0 1e-06 2\n"
    assert load(tmp_path, to_riskaware(jobs)) == [row(*job) for job in jobs]
    # microseconds, and gzip
    path = tmp_path / "jobs.txt.gz"
    path.write_bytes(gzip.compress(b"1 0.12345678 10.00000049 1\n"))
    assert list(read_riskaware(path)) == [row("1", 0.123457, 10.0, 1)]


@pytest.mark.parametrize(
    "line,message",
    [
        ("2 0 10", "has 3 fields, a job has at least 4"),
        ("2 0 1_0 1", "length_s: '1_0' is not a number"),
        ("2 0 10 1.5", "hosts must be a whole number below 2^53, got 1.5"),
    ],
)
def test_refusals_name_line_and_value(tmp_path, line, message):
    assert refusal(load, tmp_path, f"1 0 10 1\n\n{line}\n").startswith(f"{tmp_path / 'jobs.txt'} line 3: {message}; ")


def test_the_rules_of_other_traces_hold(tmp_path, caplog):
    """As of CSV: 0 s is the first release, jobs without a length or cores are counted, ids differ."""
    path = tmp_path / "jobs.txt"
    path.write_text("1 -5 10 1\n2 0 1e-9 1\n3 0 10 0\n4 5 10 2\n")
    assert [(job["id"], job["submission_time_s"]) for job in read_trace(path)] == [("1", 0), ("4", 10)]
    assert f"{path}: 2 of 4 jobs are skipped, their length or width is 0 or unknown" in caplog.messages
    path.write_text("1 0 10 1\n1 5 10 1\n")
    assert "job '1': appears twice" in refusal(windowed, path, None, 4)


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
