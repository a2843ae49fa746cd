"""Series from CSV: the values read, and the line named in every complaint."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.series.series_csv import read_series


@pytest.fixture
def csv(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "s.csv"
        path.write_bytes(text.encode("utf-8"))
        return path

    return write


def test_a_series(csv):
    path = csv("time_s,power_w\n0,4200\n300,2100.5\n600,1e3\n")
    series = read_series(path)
    assert series.times_s == (0.0, 300.0, 600.0)
    assert series.values == (4200.0, 2100.5, 1000.0)
    assert (series.name, series.source) == ("power_w", str(path))


@pytest.mark.parametrize(
    "text",
    [
        "\ufefftime_s,power_w\r\n0,1\r\n5,2\r\n",
        "note,power_w,time_s\nx,1,0\n,2,5\n",
        ' time_s , power_w \n\n "0", 1\n  \n5,2,\n\n',
        "time_s,power_w\n0,1\n5,2",
    ],
)
def test_spellings(csv, text):
    series = read_series(csv(text))
    assert (series.times_s, series.values) == ((0.0, 5.0), (1.0, 2.0))


def test_columns(csv):
    path = csv("time_s,power_w,temperature_c\n0,1,-5\n1,0,3\n")
    assert read_series(path).values == (1.0, 0.0)
    with pytest.raises(InputError, match="line 2: temperature_c must be >= 0, got -5"):
        read_series(path, "temperature_c")


def test_times_may_be_negative(csv):
    assert read_series(csv("time_s,power_w\n-300,1\n0,2\n")).at(-1.0) == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("time_s,power_w\n", "has a header but no rows"),
        ("0,4200\n300,2100\n", "line 1: no column 'time_s' among: 0, 4200"),
        ("time_s,watts\n0,1\n", "line 1: no column 'power_w' among: time_s, watts"),
        ("time_s,power_w,power_w\n0,1,2\n", "line 1: more than one column 'power_w'"),
        ("time_s;power_w\n0;1\n", "no column 'time_s'"),
        ("time_s,power_w\n0,1\n300\n", "line 3: no value in column 'power_w'"),
        ("time_s,power_w\n0,\n", "line 2: power_w '' is not a finite number"),
        ("time_s,power_w\n0,high\n", "line 2: power_w 'high' is not a finite number"),
        ("time_s,power_w\n0,nan\n", "line 2: power_w 'nan'"),
        ("time_s,power_w\n0,inf\n", "line 2: power_w 'inf'"),
        ("time_s,power_w\n0,1e999\n", "line 2: power_w '1e999'"),
        ("time_s,power_w\n0,1_000\n", "line 2: power_w '1_000'"),
        ("time_s,power_w\nnan,1\n", "line 2: time_s 'nan'"),
        ("time_s,power_w\n0,-1\n", "line 2: power_w must be >= 0, got -1"),
        ("time_s,power_w\n0,1\n\n300,1\n200,1\n", "line 5: times must increase, got time_s 200 after 300"),
        ("time_s,power_w\n0,1\n0.0,1\n", "line 3: a second row for time_s 0"),
        ("time_s,power_w\n0," + "1" * 200_000 + "\n", "line 2: is not CSV"),
    ],
)
def test_malformed(csv, text, message):
    path = csv(text)
    with pytest.raises(InputError) as caught:
        read_series(path)
    shown = str(caught.value)
    assert message in shown and shown.startswith(str(path)) and "\n" not in shown and len(shown) < 400


def test_unreadable(tmp_path):
    for path in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_series(path)
    path = tmp_path / "latin.csv"
    path.write_bytes(b"time_s,power_w,\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_series(path)


@given(st.binary(max_size=100), st.booleans())
def test_random_bytes_never_raise_anything_else(tmp_path_factory, noise, header):
    path = tmp_path_factory.getbasetemp() / "noise.csv"
    path.write_bytes(b"time_s,power_w\n" + noise if header else noise)
    try:
        assert len(read_series(path)) >= 1
    except InputError as error:
        assert "\n" not in str(error)


# later times would be dates
NUMBERS = st.floats(0, 3e8, allow_subnormal=False)


@given(st.dictionaries(NUMBERS, NUMBERS, min_size=1))
def test_written_rows_are_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    times = sorted(rows)
    assume(all(after - before >= 1e-3 for before, after in pairwise(times)))
    path.write_text("time_s,power_w\n" + "".join(f"{time!r},{rows[time]!r}\n" for time in times), encoding="utf-8")
    series = read_series(path)
    assert (series.times_s, series.values) == (tuple(times), tuple(rows[time] for time in times))
