"""Capacities from both formats, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.series.capacity import read_capacity, to_csv
from batwatt.model.series import Series


def load(folder: Path, text: str, slots: int | None = 40) -> Series:
    path = folder / "c.txt"
    path.write_bytes(text.encode())
    return read_capacity(path, slots)


@pytest.mark.parametrize(
    "text",
    [
        "24\n1200 22\n2400 40\n",
        "\ufeff\n 24.0\r\n\n1200\t22\r\n2400 40",
        "time_s,machines\n0,24\n1200,22\n2400,40\n",
        "machines, note, time_s\n24,x,0\n22,,1200\n40,,2400",
    ],
)
def test_two_formats_of_one_capacity(tmp_path, text):
    series = load(tmp_path, text)
    assert (series.times_s, series.values) == ((0.0, 1200.0, 2400.0), (24.0, 22.0, 40.0))
    assert (series.name, series.source) == ("machines", str(tmp_path / "c.txt"))
    assert [series.at(t) for t in (0.0, 1199.9, 1200.0, 1e9)] == [24.0, 24.0, 22.0, 40.0]


def test_bounds_are_inclusive_and_optional(tmp_path):
    assert load(tmp_path, "0\n5 3\n", 3).values == (0.0, 3.0)
    assert load(tmp_path, "0\n5 99999\n", None).values == (0.0, 99999.0)
    assert load(tmp_path, "7").values == (7.0,)


@pytest.mark.parametrize("head", ["24\n{} {}\n", "time_s,machines\n0,24\n{},{}\n"])
@pytest.mark.parametrize(
    "row,said",
    [
        ((1200, 41), "at 1200 s: machines must be in [0, 40], got 41"),
        ((1200, 22.5), "at 1200 s: machines must be a whole number, got 22.5"),
        ((0, 22), "line 2|line 3"),
        ((-5, 22), "line 2|line 3"),
        (("x", 22), "line 2|line 3"),
        ((1200, "nan"), "line 2|line 3"),
    ],
)
def test_refusals_of_both(tmp_path, head, row, said):
    with pytest.raises(InputError) as caught:
        load(tmp_path, head.format(*row))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'c.txt'}: ") and any(part in text for part in said.split("|"))


@pytest.mark.parametrize(
    "text,said",
    [
        ("24\n5 -2\n", "at 5 s: machines must be in [0, 40], got -2"),
        ("-1\n", "at 0 s: machines must be in [0, 40], got -1"),
        ("0 24\n1200 22\n", "line 1: has 2 fields, the first line has 1"),
        ("24\n1200\n", "line 2: has 1 fields, 'time count' has 2"),
        ("24\n\n1200 22 1\n", "line 3: has 3 fields"),
        ("24\n5 1\n5 2\n", "line 3: times must increase, got 5 s after 5 s"),
        ("24\n5 1_0\n", "line 2: machines '1_0' is not a finite number"),
        ("", "is empty"),
        ("power_w,time_s\n1,2\n", "no column 'machines'"),
    ],
)
def test_refusals_of_one(tmp_path, text, said):
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value)


def test_csv_is_read_back(tmp_path):
    series = load(tmp_path, "24\n1200.5 22\n2400 40\n")
    text = to_csv(series)
    assert text == "time_s,machines\n0,24\n1200.5,22\n2400,40\n"
    assert load(tmp_path, text) == series
