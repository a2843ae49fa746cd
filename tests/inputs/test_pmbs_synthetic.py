"""Synthetic traces of the riskaware paper: their load, their law, their refusals."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from batwatt.errors import InputError
from batwatt.inputs.workloads.pmbs_synthetic import KINDS, Synthetic, synthetic

T_AVG_S = 16174.08
"""26 machines x 24 cores x 504 h / (3.5 cores x 20,000 jobs) = 4.4928 h."""


def test_mean_length():
    assert Synthetic().mean_length_s == pytest.approx(T_AVG_S, rel=1e-12)
    assert Synthetic(jobs=10_000).mean_length_s == pytest.approx(2 * T_AVG_S, rel=1e-12)
    assert Synthetic(machines=13).mean_length_s == pytest.approx(T_AVG_S / 2, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_all_kinds_share(kind):
    jobs = synthetic(Synthetic(kind), 3)
    assert [job.id for job in jobs] == [str(i) for i in range(20_000)]
    # i x 90.72 s
    assert [jobs[i].submit_s for i in (0, 1, 2, 7, 10_000, 19_999)] == [0, 91, 181, 635, 907_200, 1_814_309]
    assert all(job.run_s >= 1 and job.run_s.is_integer() for job in jobs)
    widths = Counter(job.cpus for job in jobs)
    assert set(widths) == {1, 2, 4, 8} and all(type(width) is int for width in widths)
    for width, share in ((1, 1 / 6), (2, 1 / 3), (4, 1 / 3), (8, 1 / 6)):
        assert widths[width] / 20_000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 20_000))
    assert synthetic(Synthetic(kind), 3) == jobs != synthetic(Synthetic(kind), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_load_is_26_machines_of_24_cores(kind):
    jobs = synthetic(Synthetic(kind, jobs=50_000), 1)
    assert sum(job.run_s * job.cpus for job in jobs) / (24 * 1_814_400) == pytest.approx(26, rel=0.02)
    assert sum(job.run_s for job in jobs) / len(jobs) == pytest.approx(T_AVG_S / 2.5, rel=0.015)


def test_uniform():
    lengths = [job.run_s for job in synthetic(Synthetic("uniform"), 5)]
    assert max(lengths) <= 32348
    for quarter in range(4):
        low, high = quarter * T_AVG_S / 2, (quarter + 1) * T_AVG_S / 2
        assert sum(low <= length < high for length in lengths) / 20_000 == pytest.approx(0.25, abs=0.013)


def test_three_types():
    lengths = Counter(job.run_s for job in synthetic(Synthetic("3types"), 5))
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
    lengths = [job.run_s for job in synthetic(Synthetic(kind), 5)]
    assert unit_s - 1 <= min(lengths) and max(lengths) <= 625 * unit_s + 1
    for category, share in enumerate(shares):
        low, middle, high = (unit_s * 5.0**category * factor for factor in (1, 3, 5))
        inside = [length for length in lengths if low <= length < high]
        assert len(inside) / 20_000 == pytest.approx(share, abs=0.014)
        # uniform within: as many below the middle as above
        assert sum(length < middle for length in inside) / len(inside) == pytest.approx(0.5, abs=0.04)


def test_lengths_are_at_least_a_second():
    jobs = synthetic(Synthetic("uniform", jobs=1000, end_s=1000, machines=1, cores=4), 0)
    assert min(job.run_s for job in jobs) == 1.0


@pytest.mark.parametrize(
    "given,said",
    [
        ({"kind": "uniforn"}, "no value of kind 'uniforn'; did you mean 'uniform'?"),
        ({"jobs": 0}, "jobs must be a whole number in 1..10000000, got 0"),
        ({"jobs": 1e3}, "jobs must be a whole number in 1..10000000, got 1000.0"),
        ({"cores": -1}, "cores must be a whole number in 1..10000000, got -1"),
        ({"machines": math.nan}, "machines must be a number in ]0, 1e+12], got nan"),
        ({"end_s": 0}, "end_s must be a number in ]0, 1e+12], got 0"),
        ({"end_s": 10}, "the mean length is 0.0891429 s, less than 1 s"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError) as caught:
        Synthetic(**given)
    assert str(caught.value).startswith(f"synthetic trace: {said}")


def test_seed():
    with pytest.raises(InputError, match="synthetic trace: seed must be a whole number >= 0, got -1"):
        synthetic(Synthetic(), -1)
