"""How long a job is among those of a reference (riskaware paper, section 4.3), by hand."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.inputs.formats import read_reference
from batwatt.model.work import Categories, Reference
from batwatt.schedulers.riskaware.scheduler import BORG_WEEK

# areas 10, 30, 60 of 100 core seconds: 2 jobs of 5 s, 3 cores of 10 s, 2 of 30 s
HAND = Reference.of([5, 10, 5, 30, 10], [1, 1, 1, 2, 2])


def test_areas_of_equal_lengths_are_added_and_a_week_is_the_longest():
    assert HAND.lengths_s.tolist() == [5.0, 10.0, 30.0]
    assert HAND.areas_core_s.tolist() == [10.0, 30.0, 60.0]
    capped = Reference.of([100, 700_000, 900_000], [1, 1, 2])
    assert capped.lengths_s.tolist() == [100.0, 604_800.0]
    assert capped.areas_core_s.tolist() == [100.0, 3 * 604_800.0]


def test_quantiles_by_area():
    # more than 10, 20, ... 90 of 100: 5 s hold 10, which is not more than 10; up to 10 s there are 40
    assert HAND.quantiles_s(10).tolist() == [10.0] * 3 + [30.0] * 6
    assert HAND.quantiles_s(20).tolist() == [5.0] + [10.0] * 6 + [30.0] * 12
    assert len(HAND.quantiles_s(1000)) == 999


ONE = Reference.of([60], [4])


@pytest.mark.parametrize(
    ("categories", "lengths", "expected"),
    [
        # exactly the share of the area in jobs at least as long
        (Categories(HAND, 0), [1, 5, 5.1, 10, 10.1, 30, 30.1, 1000], [1.0, 1.0, 0.9, 0.9, 0.6, 0.6, 0.0, 0.0]),
        (Categories(HAND, 0, longest_as_shortest=False), [1, 5.1, 30], [1.0, 0.9, 0.6]),
        # one less the share of quantiles that are no longer; 5 s: 99 of 999 quantiles, 10 s: 399, 30 s: 999
        (Categories(HAND, 10, False), [1, 5, 9.9, 10, 29, 30, 31], [1.0, 1.0, 1.0, 0.7, 0.7, 0.1, 0.1]),
        (Categories(HAND, longest_as_shortest=False), [4, 5, 10, 30], [1.0, 0.901, 0.601, 0.001]),
        # as published a job as long as the last quantile counts as the shortest
        (Categories(HAND, 10), [29, 30, 30.5], [0.7, 1.0, 0.1]),
        (Categories(ONE, 0), [59, 60, 61], [1.0, 1.0, 0.0]),
        (Categories(ONE, 4, False), [59, 60, 61], [1.0, 0.25, 0.25]),
    ],
)
def test_categories_by_hand(categories, lengths, expected):
    assert categories.of(lengths).tolist() == pytest.approx(expected)


def test_the_borg_week():
    week = read_reference(BORG_WEEK)
    assert week.lengths_s[0] == 300.0 and np.all(np.diff(week.lengths_s) > 0)
    assert week.lengths_s[-1] <= 604_800.0
    categories = Categories(week).of([1, 300, 3600, 86_100, 604_800])
    assert categories[0] == 1.0 and 0.9 < categories[1] < 1.0 and 0.0 < categories[2] < 1.0
    # 23.9 h is the last of its quantiles
    assert week.quantiles_s(1000)[-1] == categories_last_s(week) and abs(categories_last_s(week) / 3600 - 23.9) < 0.1
    assert Categories(week).of([categories_last_s(week)]).tolist() == [1.0]
    assert Categories(week, longest_as_shortest=False).of([categories_last_s(week)])[0] == pytest.approx(0.001)


def categories_last_s(week: Reference) -> float:
    """The least length such that more than 99.9 % of the area is in no longer jobs, added up one by one."""
    below, total = 0.0, float(week.areas_core_s.sum())
    for length_s, area in zip(week.lengths_s, week.areas_core_s, strict=True):
        below += float(area)
        if below > 0.999 * total:
            return float(length_s)
    raise AssertionError


# reading ----------------------------------------------------------------------------------------------------------


def test_from_a_csv_and_from_jobs(tmp_path):
    table = tmp_path / "lengths.csv"
    table.write_text("length_s,area_core_s\n5,10\n10,30\n30,60\n")
    jobs = tmp_path / "jobs.txt"
    jobs.write_text("1 0 5 1\n2 7 10 1\n3 8 5 1\n4 9 30 2\n5 9 10 2\n")
    packed = tmp_path / "jobs.txt.gz"
    packed.write_bytes(gzip.compress(jobs.read_bytes()))
    for path in (table, jobs, packed):
        reference = read_reference(path)
        assert reference.lengths_s.tolist() == HAND.lengths_s.tolist(), path
        assert reference.areas_core_s.tolist() == HAND.areas_core_s.tolist(), path


@pytest.mark.parametrize(
    "text,expected",
    [
        ("length_s,area_core_s\n", "has no rows"),
        ("length_s,area_core_s\n5,1\n5,1\n", "line 3: '5,1' is not a length and an area"),
        ("length_s,area_core_s\n5,0\n", "line 2"),
        ("length_s,area_core_s\n0,5\n", "line 2"),
        ("length_s,area_core_s\n5\n", "line 2"),
        ("length_s,area_core_s\n5,x\n", "line 2: '5,x'"),
        ("length,area\n5,1\n", "line 1"),
        ("length_s,area_core_s\n" + "1" * 200_000 + ",2\n", "is not CSV"),
        ("1 0 0 4\n", "has no job with a length and cores"),
    ],
)
def test_a_reference_that_is_none(tmp_path, text, expected):
    path = tmp_path / "reference.txt"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_reference(path)
    assert expected in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)
