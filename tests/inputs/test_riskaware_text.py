"""Job traces as text: what is read, and the line named in every complaint."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.traces.riskaware_text import read_riskaware, to_riskaware
from batwatt.inputs.traces.trace import TraceJob


def load(folder: Path, text: str) -> list[TraceJob]:
    path = folder / "jobs.txt"
    path.write_bytes(text.encode())
    return read_riskaware(path)


def test_lines_in_their_order(tmp_path):
    jobs = load(tmp_path, "7 300 600 4 release\n\n  b\t0 0.5   2.0\r\n9 1e2 60 1 x y z")
    assert jobs == [TraceJob("7", 300.0, 600.0, 4), TraceJob("b", 0.0, 0.5, 2), TraceJob("9", 100.0, 60.0, 1)]
    assert all(type(job.cpus) is int for job in jobs)


def test_microseconds_and_gzip(tmp_path):
    path = tmp_path / "jobs.txt.gz"
    path.write_bytes(gzip.compress(b"1 0.12345678 10.00000049 1\n"))
    assert read_riskaware(path) == [TraceJob("1", 0.123457, 10.0, 1)]


def test_written_and_read_back(tmp_path):
    jobs = [TraceJob("7", 300.0, 600.25, 4), TraceJob("b", 0.0, 0.000001, 2)]
    assert to_riskaware(jobs) == "7 300 600.25 4\nb 0 1e-06 2\n"
    assert load(tmp_path, to_riskaware(jobs)) == jobs


@pytest.mark.parametrize(
    "line,said",
    [
        ("2 0 10", "has 3 fields, a job has at least 4"),
        ("2", "has 1 fields, a job has at least 4"),
        ("2 x 10 1", "release 'x' is not a finite number"),
        ("2 0 nan 1", "length 'nan' is not a finite number"),
        ("2 0 1_0 1", "length '1_0' is not a finite number"),
        ("2 0 10 inf", "cores 'inf' is not a finite number"),
        ("2 -1 10 1", "release must be >= 0 s, got -1"),
        ("2 0 0 1", "length must be > 0 s, got 0"),
        ("2 0 1e-9 1", "length must be > 0 s, got 1e-9"),
        ("2 0 -3 1", "length must be > 0 s, got -3"),
        ("2 0 10 0", "cores must be a whole number >= 1, got 0"),
        ("2 0 10 1.5", "cores must be a whole number >= 1, got 1.5"),
        ("2 0 10 0.9999999", "cores must be a whole number >= 1, got 0.9999999"),
        ("1 5 10 1", "a second job '1' (the first is on line 1)"),
    ],
)
def test_refusals_name_line_and_value(tmp_path, line, said):
    with pytest.raises(InputError) as caught:
        load(tmp_path, f"1 0 10 1\n\n{line}\n")
    assert str(caught.value).startswith(f"{tmp_path / 'jobs.txt'}: line 3: {said}; ")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_no_job(tmp_path, text):
    with pytest.raises(InputError, match=r"jobs\.txt: holds no job; write 'id release length cores'"):
        load(tmp_path, text)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_riskaware(tmp_path / "no.txt")
