"""Signals from CSV: columns, dates, gaps and parts; averages and repetitions; the files of sites."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from examples import examples
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.signal import read_signal
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline

HOURS = "Time,Carbon Intensity\n" + "".join(f"2024-01-01 0{h}:00,{100 + h}\n" for h in range(6))


def test_averaged_by_hand():
    signal = Timeline((0.0, 30.0, 40.0), (1.0, 5.0, 2.0), loop=None, period_s=70.0)
    assert signal.mean == pytest.approx((30 + 50 + 60) / 70)
    coarse = signal.averaged(40.0)
    assert (coarse.times_s, coarse.end_s) == ((0.0, 40.0), 70.0)
    assert coarse.values == pytest.approx((2.0, 2.0)) and coarse.mean == pytest.approx(signal.mean)
    assert signal.averaged(15.0).values == pytest.approx((1, 1, (50 + 10) / 15, 2, 2))


def test_lasting_by_hand():
    signal = Timeline((0.0, 30.0), (1.0, 5.0), loop=None, period_s=40.0)
    long = signal.lasting(True).upto(75.0)
    assert (long.times_s, long.values) == ((0.0, 30.0, 40.0, 70.0), (1.0, 5.0, 1.0, 5.0))
    assert "more than 10000000 rows" in refusal(signal.lasting(True).upto, 1e9)
    ends = signal.lasting(False)
    assert (ends.end_s, ends.upto(75.0), ends.at(1e9)) == (40.0, ends, 5.0)


OLD = (
    "zone,carbon_intensity_avg,datetime,updatedAt\nDE,{},2024-07-01T00:00:00.000Z,x\nDE,{},2024-07-01T01:00:00.000Z,x\n"
)
NEW = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),"
    "Carbon intensity gCO₂eq/kWh (Life cycle),Low-carbon percentage\n"
    "2024-07-01 00:00:00,Germany,Germany,DE,300,{},50\n2024-07-01 01:00:00,Germany,Germany,DE,310,{},51\n"
)
LCA = (
    "Datetime (UTC),Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA)\n"
    "2024-07-01 00:00:00,DE,300,{}\n2024-07-01 01:00:00,DE,310,{}\n"
)
STAMPED = (
    "datetime,created_at,updated_at,timestamp,zone_name,carbon_intensity_avg,emission_factor\n"
    "2024-07-01T00:00:00+00:00,a,b,1719792000,DE,{},7\n2024-07-01T01:00:00+00:00,a,b,1719795600,DE,{},8\n"
)


@pytest.mark.parametrize(
    "text",
    [
        OLD,
        NEW,
        LCA,
        STAMPED,
        "Time,Carbon Intensity\n2024-07-01 00:00:00,{}\n2024-07-01 01:00:00,{}\n",
        "date;price\n2024-07-01;{}\n2024-07-01T01:00;{}\n",
        "time\tmy signal\n2024-07-01T02:00+02:00\t{}\n2024-07-01T03:00+02:00\t{}\n",
        "\ufeff\nTime , Carbon Intensity \r\n2024-07-01 00:00, {}\r\n\r\n2024-07-01 01:00 , {}\r\n",
    ],
)
def test_formats(read, text):
    signal = read(text.format("412.5", "3e2"))
    assert (signal.times_s, signal.values) == ((0.0, 3600.0), (412.5, 300.0))
    assert (signal.end_s, signal.begin, read.warnings()) == (7200.0, "2024-07-01T00:00Z", [])
    if text in (NEW, LCA):
        assert read(text.format(1, 2), kind="direct").values == (300.0, 310.0)


def test_the_carbon_plugins_columns(read):
    text = "host_id timestamp carbon_intensity\na 0 1\nb 0 2\na 60 3\nb 60 4\n"
    signal = read(text, zone="b")
    assert (signal.times_s, signal.values, signal.begin) == ((0.0, 60.0), (2.0, 4.0), None)
    assert "has 2 zones in column 'host_id': a, b; choose one with zone=" in refusal(read, text)


def test_seconds(read):
    text = "time_s,x\n100,1\n160,\n1000,3\n"
    signal = read(text, begin="130", end="900")
    # rows hold until the next, however long
    assert (signal.times_s, signal.values, signal.end_s) == ((0.0, 30.0), (1.0, 1.0), 770.0)
    assert read.warnings() == ["1 values missing in 1 gap (longest: 160 s to 1000 s): the value before holds"]
    # seconds since 1970 are dates
    text = "timestamp,x\n1719792000,1\n1719795600,3\n"
    assert (read(text).times_s, read(text).begin) == ((0.0, 3600.0), "2024-07-01T00:00Z")
    for begin in ("1719795600", "2024-07-01T03:00+02:00"):
        assert read(text, begin=begin).values == (3.0,)


def test_times_in_seconds_are_those_of_the_simulation(read):
    # as a capacity that is given without a kind: the first value holds before its row
    text = "time_s,x\n3600,1\n7200,3\n"
    signal = read(text)
    assert (signal.times_s, signal.values, signal.end_s) == ((0.0, 7200.0), (1.0, 3.0), 10_800.0)
    assert read(text, begin="1800", days=0.1).times_s == (0.0, 5400.0)
    early = read("time_s,x\n-60,1\n-30,2\n30,3\n")
    assert (early.times_s, early.values) == ((0.0, 30.0), (2.0, 3.0))


# gaps ---------------------------------------------------------------------------------------------------------------

GAP = "Time,Carbon Intensity\n" + "".join(f"2024-01-01 0{h}:00,{v}\n" for h, v in ((0, 10), (1, 20), (2, ""), (5, 50)))


def test_the_value_before_a_gap_holds(read):
    signal = read(GAP)
    assert signal.values == (10, 20, 20, 50) and signal.times_s == (0, 3600, 7200, 18_000)
    longest = "(longest: 2024-01-01T02:00Z to 2024-01-01T05:00Z)"
    assert signal.end_s == 21_600 and read.warnings() == [
        f"3 values missing in 1 gap {longest}: the value before holds"
    ]
    # a list of changes has no step, and lacks no rows
    text = "time,x\n2024-01-01 00:00,1\n2024-01-01 00:10,2\n2024-01-01 07:00,3\n2024-01-02 09:30,4\n"
    assert read(text).values == (1, 2, 3, 4) and read.warnings() == []


@pytest.mark.parametrize(
    ("name", "quantity", "gaps"),
    [
        ("power_w", "power", "hold"),
        ("machines", None, "hold"),
        ("carbon_intensity", "carbon", "hold"),
        ("price", None, "hold"),
        ("carbon_intensity", "carbon", "line"),
        ("price", None, "line"),
    ],
)
def test_dates_and_seconds_give_the_same_numbers(read, name, quantity, gaps):
    """500 at 19:00 and 4,200 at 19:30 are 500 at 19:25; two days later the gap is longer than 6 h."""
    minutes = (1130, 1135, 1140, 1170, 1175, 1180, 4000, 4005, 4010, 4015)
    values = (400, 450, 500, 4200, 4100, 4000, 1, 2, 3, 4)
    rows = list(zip(minutes, values, strict=True))
    dates = [f"2024-01-{1 + m // 1440:02} {m // 60 % 24:02}:{m % 60:02}" for m in minutes]
    lines = "".join(f"{date},{v}\n" for date, (_, v) in zip(dates, rows, strict=True))
    dated = read(f"time,{name}\n{lines}", quantity, gaps=gaps)
    seconds = read(f"time_s,{name}\n" + "".join(f"{60 * (m - 1130)},{v}\n" for m, v in rows), quantity, gaps=gaps)
    assert (dated.times_s, dated.values, dated.end_s) == (
        seconds.times_s, seconds.values, seconds.end_s,
    )  # fmt: skip
    at_1925 = {"hold": 500, "line": pytest.approx(500 + 3700 * 25 / 30)}[gaps]
    assert dated.at(35 * 60.0) == at_1925 == seconds.at(35 * 60.0)
    # a day after 19:25
    assert dated.at((35 + 1440) * 60.0) == {"hold": 4000, "line": at_1925}[gaps]


@examples(40)
@given(
    steps=st.lists(st.sampled_from((5, 5, 5, 15, 60, 500, 2000)), min_size=2, max_size=40),
    values=st.lists(st.none() | st.integers(0, 99), min_size=41, max_size=41),
    gaps=st.sampled_from(("hold", "line")),
)
def test_any_dates_and_seconds_give_the_same_numbers(tmp_path_factory, steps, values, gaps):
    minutes = [sum(steps[:k]) for k in range(len(steps) + 1)]
    cells = ["7", *("" if value is None else str(value) for value in values)]
    folder = tmp_path_factory.mktemp("gaps")
    series = []
    for head, text in (("time", "{:%Y-%m-%d %H:%M}"), ("time_s", "{:.0f}")):
        begin = datetime(2024, 1, 1) if head == "time" else 0
        unit = timedelta(minutes=1) if head == "time" else 60
        rows = [f"{text.format(begin + m * unit)},{cell}\n" for m, cell in zip(minutes, cells, strict=False)]
        path = written(folder, f"{head},price\n" + "".join(rows), f"{head}.csv")
        signal = read_signal(SeriesSource(path, gaps=gaps))
        series.append((signal.times_s, signal.values, signal.end_s))
    assert series[0] == series[1]
    if gaps == "hold":
        held = pd.Series([float(cell) if cell else np.nan for cell in cells[: len(minutes)]]).ffill()
        assert series[0][1] == tuple(held)


@pytest.mark.parametrize(
    ("head", "quantity", "options", "what"),
    [
        ("power_w", "power", {}, "power"),
        ("power_w", "any", {}, "power"),
        ("machines", None, {}, "machines"),
        ("load", "power", {"unit": "fraction"}, "a fraction"),
        ("x", "any", {}, "an unknown unit"),
    ],
)
def test_no_line_of_power_or_machines(read, head, quantity, options, what):
    text = f"time,{head}\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n"
    line = read.refused(text, quantity, gaps="line", **options)
    assert line == f"gaps=line is for carbon and price, not for {what}; leave it out: each value holds until the next"


def test_a_line_across_gaps(read):
    signal = read(GAP, gaps="line")
    assert signal.values == pytest.approx((10, 20, 27.5, 35, 42.5, 50))
    assert signal.times_s == tuple(3600.0 * k for k in range(6)) and signal.end_s == 21600.0
    [said] = read.warnings()
    where = "2024-01-01T02:00Z to 2024-01-01T05:00Z"
    assert (
        said
        == f"3 values missing in 1 gap (longest: {where}): a straight line up to 6 h, longer ones as the day before"
    )
    # nothing is said of a gap outside of the part
    assert read(GAP, end="2024-01-01 02:00").values == (10, 20) and not read.warnings()


def test_long_gaps_of_a_line_are_as_the_day_before(read):
    rows = [(day, h, 100 * day + h) for day in (1, 2, 3, 4) for h in range(24) if day in (1, 4) or h == 0]
    text = "Time,x\n" + "".join(f"2024-01-{day:02} {h:02}:00,{v}\n" for day, h, v in rows)
    signal = read(text, gaps="line")
    assert signal.values[:24] == tuple(range(100, 124))
    # of the 2nd and the 3rd only midnight is there
    assert signal.values[24:48] == (200, *range(101, 124))
    assert signal.values[48:72] == (300, *range(101, 124))
    assert read.warnings()[0].startswith("46 values missing in 2 gaps")


def test_a_mistyped_year_is_no_gap(read):
    text = "Time,x\n2024-01-01 00:00:00,1\n2024-01-01 00:00:01,2\n2024-01-01 00:00:02,3\n2124-01-01 00:00:02,3\n"
    read(text)
    assert read.warnings()[0].startswith("3155673599 values missing in 1 gap (longest: 2024-01-01T00:00:03Z to 2124-")
    line = read.refused(text, gaps="line")
    gap = "(largest gap: 2024-01-01T00:00:02Z to 2124-01-01T00:00:02Z)"
    assert "3.15567e+09 rows are missing at a step of 1 s" in line and f"{gap}; correct the dates" in line


def test_rows_are_sorted_and_the_later_of_two_counts(read):
    text = "Time,x\n2024-01-01 02:00,3\n2024-01-01 00:00,1\n2024-01-01 01:00,9\n2024-01-01 01:00,2\n2024-01-01 00:00,\n"
    assert read(text).values == (1, 2, 3)
    assert read.warnings() == ["rows sorted by time; 2 rows of a time that comes again left out"]


# parts --------------------------------------------------------------------------------------------------------------


def test_parts(read):
    signal = read(HOURS, begin="2024-01-01T02:00Z", days=0.125)
    assert (signal.times_s, signal.values) == ((0.0, 3600.0, 7200.0), (102, 103, 104))
    assert (signal.end_s, signal.begin) == (10800.0, "2024-01-01T02:00Z")
    between = read(HOURS, begin="2024-01-01 02:15", end="2024-01-01 03:30")
    assert (between.times_s, between.values, between.end_s) == ((0.0, 2700.0), (102, 103), 4500.0)
    berlin = read(HOURS.replace(",1", "+00:00,1"), begin="2024-01-01 02:00", tz="Europe/Berlin")
    assert berlin.begin == "2024-01-01T01:00Z"
    assert read(HOURS, period_s=7200).values == (100.5, 102.5, 104.5)
    assert read(HOURS, period_s=2**64).values == (102.5,)
    # before the first value it holds
    assert read("Time,x\n2024-01-01,\n2024-01-01T01:00,7\n2024-01-01T02:00,nan\n").values == (7, 7, 7)
    text = "time,price\n2024-03-31 01:00,0\n2024-03-31 02:00,1\n2024-03-31 03:00,2\n"
    assert read(text, tz="Europe/Berlin").values == (0.0, 2.0)
    assert read.warnings() == ["1 rows of hours that Europe/Berlin leaves out in spring ignored"]


@pytest.mark.parametrize(
    "part",
    [
        {"begin": "2023-12-31"},
        {"days": 1},
        {"begin": "2024-01-01T06:00"},
        {"end": "2024-01-01"},
        # it ends after the last date that pandas can show to the ns
        {"begin": "2250-01-01", "days": 36_524.00001},
    ],
)
def test_parts_that_are_not_there(read, part):
    assert "is requested, the rows go from 2024-01-01T00:00Z to 2024-01-01T06:00Z" in refusal(read, HOURS, **part)


@pytest.mark.parametrize(
    "text,options,message",
    [
        ("Time,x\n", {}, "has no rows below a header"),
        ("Time" + ",x" * 1000 + "\n2024-01-01" + ",1" * 1000, {}, "has 1001 columns, more than 1000"),
        ("Time,x\n2024-01-01,\n", {}, "which column is meant|no value in column 'x'"),
        ("Time,x\n2024-01-01,1\n01.02.2024,2\n", {}, r"line 3: Time '01.02.2024' is not a date; write 2024-07-01"),
        ("Time,price\n2024-01-01,1\n2024-01-02,abc\n", {}, "line 3: price 'abc' is not a finite number"),
        (
            "1387666800000;1387670400000;0.05;Eur/MWh\n" * 2,
            {},
            "has no line of header, but '1387666800000;1387670400000",
        ),
        (
            f"Date,{','.join(f'HE{k}' for k in range(1, 25))}\n2024-01-01{',7' * 24}\n2024-01-02{',8' * 24}\n",
            {},
            r"has its hours in columns, from 'HE1' to 'HE24'; write a row for each hour \(pandas.melt\)",
        ),
        ("2024-01-01 00:00,1\n2024-01-01 01:00,2\n", {}, "has no line of header, but '2024-01-01 00:00,1'; the first"),
        ("time_s,price\n0,1\n1e307,2\n", {}, r"line 3: time_s 1e\+307 s is 3.16887e\+299 years on; divide"),
        ("time_s,price\n0,1\n1700000000000,2\n", {}, "line 3: time_s 1700000000000 s is 53870.9 years on; divide all"),
        ("timestamp,x\n2024070113,1\n", {}, "timestamp go from 2024070113 to 2024070113, which are neither s of a run"),
        ("time,x\n202407011300,1\n", {}, "time go from 202407011300 to 202407011300, which are neither s of a run"),
        ("time,x\n20240701,1\n20240702,1\n", {}, "time go from 20240701 to 20240702, which are neither s of a run nor"),
        # days since 1900 of a spreadsheet; two units
        ("Datetime,x\n45352,1\n45352.04,2\n", {}, "Datetime go from 45352 to 45352.04, which are neither s of a run"),
        ("time,x\n1719792000,1\n1719792000000,2\n", {}, "time go from 1719792000 to 1719792000000, which are neither"),
        (HOURS, {"begin": "now"}, "'now' is not a date"),
        (HOURS, {"zone": "DE"}, "no column of zones; leave out zone="),
        (OLD.format(1, 2), {"zone": "DK"}, "no zone 'DK'; known: DE. Correct zone="),
        (HOURS, {"tz": "Berlin"}, "tz 'Berlin' is not a time zone"),
    ],
)
def test_refusals(read, text, options, message):
    with pytest.raises(InputError, match=message):
        read(text, **options)


def test_named_columns(read):
    text = "when,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n"
    # the only column with dates is that of the times
    for columns in ({"column": "b"}, {"column": "b", "time_column": "when"}):
        assert read(text, **columns).values == (2.0, 4.0)
    line = read.refused("when,then,a\n2024-01-01,2024-01-02,1\n")
    assert "no column of times among: when, then, a; name it with time_column=" in line
    assert "which column is meant, of: a, b" in read.refused(text, time_column="when")
    assert "no column 'c'" in read.refused(text, column="c")
