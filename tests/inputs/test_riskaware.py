"""Traces of the riskaware paper: its text format, its synthetic workloads."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from files_of_tests import refusal

from batwatt.inputs.formats import read_riskaware, to_riskaware
from batwatt.inputs.jobs import TraceJob
from batwatt.inputs.workloads.pmbs_synthetic import KINDS, Synthetic, synthetic


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


@cache
def drawn_jobs(kind):
    """Draw a trace of a kind once for all tests of it."""
    return synthetic(Synthetic(kind), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_all_kinds_share(kind):
    jobs = drawn_jobs(kind)
    assert [job.id for job in jobs] == [str(i) for i in range(20_000)]
    # i x 90.72 s
    assert [jobs[i].submit_s for i in (0, 1, 2, 7, 10_000, 19_999)] == [0, 91, 181, 635, 907_200, 1_814_309]
    assert all(job.run_s >= 1 and job.run_s.is_integer() for job in jobs)
    widths = Counter(job.cpus for job in jobs)
    assert set(widths) == {1, 2, 4, 8} and all(type(width) is int for width in widths)
    for width, share in ((1, 1 / 6), (2, 1 / 3), (4, 1 / 3), (8, 1 / 6)):
        assert widths[width] / 20_000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 20_000))
    few = Synthetic(kind, jobs=100)
    assert synthetic(few, 3) == synthetic(few, 3) != synthetic(few, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_load_is_26_machines_of_24_cores(kind):
    assert Synthetic(jobs=10_000, machines=13).mean_length_s == pytest.approx(T_AVG_S, rel=1e-12)
    jobs = synthetic(Synthetic(kind, jobs=50_000), 1)
    assert sum(job.run_s * job.cpus for job in jobs) / (24 * 1_814_400) == pytest.approx(26, rel=0.02)
    assert sum(job.run_s for job in jobs) / len(jobs) == pytest.approx(T_AVG_S / 2.5, rel=0.015)


def test_uniform():
    lengths = [job.run_s for job in drawn_jobs("uniform")]
    assert max(lengths) <= 32348
    for quarter in range(4):
        low, high = quarter * T_AVG_S / 2, (quarter + 1) * T_AVG_S / 2
        assert sum(low <= length < high for length in lengths) / 20_000 == pytest.approx(0.25, abs=0.013)


def test_three_types():
    lengths = Counter(job.run_s for job in drawn_jobs("3types"))
    # 13/27, 39/27 and 117/27 of 16,174.08 s
    assert set(lengths) == {7788, 23363, 70088}
    for length, share in ((7788, 9 / 13), (23363, 3 / 13), (70088, 1 / 13)):
        assert lengths[length] / 20_000 == pytest.approx(share, abs=0.013)


@pytest.mark.parametrize(
    "kind,unit_s,shares",
    [
        ("log-scale", 237.3555, (4 / 7, 1 / 7, 1 / 7, 1 / 7)),  # 7/477 x 16,174.08
        ("log-scale-u", 138.24, (1 / 4, 1 / 4, 1 / 4, 1 / 4)),  # 16,174.08 / 117
    ],
)
def test_log_scale(kind, unit_s, shares):
    lengths = [job.run_s for job in drawn_jobs(kind)]
    assert unit_s - 1 <= min(lengths) and max(lengths) <= 625 * unit_s + 1
    for category, share in enumerate(shares):
        low, middle, high = (unit_s * 5.0**category * factor for factor in (1, 3, 5))
        inside = [length for length in lengths if low <= length < high]
        assert len(inside) / 20_000 == pytest.approx(share, abs=0.014)
        # uniform within: as many below the middle as above
        assert sum(length < middle for length in inside) / len(inside) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda folder: load(folder, "\n \n"), "jobs.txt: holds no job; write 'id release length cores'"),
        (lambda _: Synthetic("uniforn"), "synthetic trace: no value of kind 'uniforn'; did you mean 'uniform'?"),
        (lambda _: Synthetic(end_s=10), "synthetic trace: the mean length is 0.0891429 s, less than 1 s"),
        (lambda _: synthetic(Synthetic(), -1), "synthetic trace: seed must be a whole number >= 0, got -1"),
    ],
)
def test_refusals(tmp_path, act, message):
    assert message in refusal(act, tmp_path)
