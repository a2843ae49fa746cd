"""Series and capacities from files: the values, and the line named in every complaint."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from files_of_tests import refusal, written
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.inputs.signal import read_capacity, read_series, read_signal
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline


@pytest.fixture
def csv(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "s.csv"
        path.write_bytes(text.encode("utf-8"))
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "\ufefftime_s,power_w\r\n0,1\r\n5,2\r\n",
        "note,power_w,time_s\nx,1,0\n,2,5\n",
        ' time_s , power_w \n\n "0", 1\n  \n5,2,\n\n',
        "time_s,power_w\n0,1e0\n5,2",
    ],
)
def test_spellings(csv, text):
    series = read_series(csv(text))
    assert (series.times_s, series.values, series.name) == ((0.0, 5.0), (1.0, 2.0), "power_w")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("time_s,power_w\n", "has no rows below a header; the first line must name the columns"),
        ("0,4200\n300,2100\n", "has no line of header, but '0,4200'"),
        ("time_s,power_w,power_w\n0,1,2\n", "2 columns are called 'power_w'"),
        ("time_s,power_kw\n0,1\n", "no column 'power_w'; did you mean 'power_kw'?"),
        ("time_s,power_w\n0,1\n300\n", "line 3: no value in column 'power_w'"),
        ("time_s,power_w\n0,1_000\n", "line 2: power_w '1_000'"),
        ("time_s,power_w\n0,400,\n300,395,7\n", "line 3: has 3 fields where the header names 2; name all columns"),
        ("time_s,power_w\n0,-1\n", "power is in [-1, -1], more below 0 than above"),
        ("time_s,power_w\n0,1\n0.0005,2\n", "has rows at 0 s and 0.0005 s, less than 0.001 s apart; leave one of both"),
        ("time_s,power_w\n0,1\n0.0,2\n", "2 rows have 1 times; keep the rows of one series"),
        ('time_s,power_w,note\n0,1,"x\n300,2,y\n', "line 3: is not CSV (unexpected end of data)"),
        ("time,power_w\n2024-07-01,1\n", "its times are dates from 2024-07-01T00:00Z on, not s of the run; write pow"),
        ("time_s,power_w\n0," + "1" * 200_000 + "\n", "line 2: is not CSV"),
    ],
)
def test_malformed(csv, text, message):
    path = csv(text)
    line = refusal(read_series, path)
    assert message in line and line.startswith(str(path))


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


def load(folder: Path, text: str, slots: int | None = 40) -> Timeline:
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


def test_one_set_of_rules_for_seconds(csv, caplog):
    """Rows out of order, a second one for a time, an empty cell and power below 0 are those of files by date."""
    series = read_series(csv("time_s;power_w\n60;1,5\n0;100\n60;7\n120;\n180;-2\n"))
    assert (series.times_s, series.values) == ((0.0, 60.0, 120.0, 180.0), (100.0, 7.0, 7.0, 0.0))
    [said] = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert said == (
        "1 values below 0 (to -2) taken as 0; rows sorted by time; 1 rows of a time that comes again left out; "
        "1 values missing in 1 gap (longest: 120 s to 180 s): the value before holds"
    )
    assert read_series(csv('[{"time_s": 0, "power_w": 5}, {"time_s": 9, "power_w": 6}]')).values == (5.0, 6.0)


def test_bounds_are_inclusive_and_optional(tmp_path):
    assert load(tmp_path, "0\n5 3\n", 3).values == (0.0, 3.0)
    assert load(tmp_path, "7\n5 99999", None).values == (7.0, 99999.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("24\n1200 41\n", "at 1200 s: machines must be in [0, 40], got 41"),
        ("24\n1200 22.5\n", "at 1200 s: machines must be a whole number, got 22.5"),
        ("0 24\n1200 22\n", "has no line of header, but '0 24'"),
        ("24\n1200\n", "line 2: has 1 fields, 'time count' has 2"),
        ("", "is empty"),
        ("power_w,time_s\n1,2\n", "no column 'machines'"),
    ],
)
def test_refused_capacities(tmp_path, text, said):
    line = refusal(load, tmp_path, text)
    assert line.startswith(f"{tmp_path / 'c.txt'}: ") and said in line


COMMENTED = '# Renewables.ninja PV\n# {{"units": {{"time": "UTC", \'a\': "kW}}\n\n{}0,500\n300,200\n'


@pytest.mark.parametrize("head", ["time_s,power_w\n", "# time_s,power_w\n", "#time_s,power_w\n"])
def test_lines_that_begin_with_a_hash_are_no_rows(tmp_path, head):
    path = written(tmp_path, COMMENTED.format(head))
    for series in (read_series(path), read_signal(SeriesSource(path, quantity="power"))):
        assert (series.times_s, series.values) == ((0.0, 300.0), (500.0, 200.0))
    capacity = read_capacity(written(tmp_path, "# of a site\n8\n60 4\n"), 8)
    assert (capacity.times_s, capacity.values) == ((0.0, 60.0), (8.0, 4.0))
    path = written(tmp_path, COMMENTED.format(head) + "600,x\n")
    assert f"{path}: line 7: power_w" in refusal(read_series, path)
