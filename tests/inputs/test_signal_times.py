"""Labels of time: exports of ENTSO-E, loggers, local times of any week."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.inputs.signal import read_signal
from batwatt.inputs.source import SeriesSource

MTU = '"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","Currency","BZN|FR"\n'
NEW = (
    '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)",'
    '"Intraday Period (CET/CEST)","Intraday Price (EUR/MWh)"\n'
)


def old(*rows: tuple[str, float]) -> str:
    return MTU + "".join(f'"{label}","{value}","EUR"\n' for label, value in rows)


def new(*rows: tuple[str, str], area: str = "BZN|BE", sequence: str = "Without Sequence") -> str:
    return "".join(f'"{label}","{area}","{sequence}","{value}","",""\n' for label, value in rows)


def test_entsoe_old_form_in_autumn(read):
    hours = [f"30.10.2022 0{h}:00 - 30.10.2022 0{h + 1}:00" for h in (1, 2, 2, 3)]
    signal = read(old(*((hour, number + 1) for number, hour in enumerate(hours))), "price")
    assert (signal.begin, signal.end_s) == ("2022-10-29T23:00Z", 4 * 3600.0)
    assert signal.values == pytest.approx((0.001, 0.002, 0.003, 0.004)) and read.warnings() == []
    # rows that go down
    rows = [f"2024-10-27 0{hour}:00,{value}\n" for hour, value in ((3, 4), (2, 3), (2, 2), (1, 1))]
    signal = read("time,price\n" + "".join(rows), tz="Europe/Berlin")
    assert signal.values == (1.0, 2.0, 3.0, 4.0) and read.warnings() == ["rows sorted by time"]


AUTUMN = (
    ("26/10/2025 01:30:00 - 26/10/2025 02:00:00 (CEST)", "1"),
    ("26/10/2025 02:00:00 (CEST) - 26/10/2025 02:30:00 (CEST)", "2"),
    ("26/10/2025 02:30:00 (CEST) - 26/10/2025 02:00:00 (CET)", "3"),
    ("26/10/2025 02:00:00 (CET) - 26/10/2025 02:30:00 (CET)", "4"),
    ("26/10/2025 02:30:00 (CET) - 26/10/2025 03:00:00", "5"),
    ("26/10/2025 03:00:00 - 26/10/2025 03:30:00", "6"),
)


def test_entsoe_new_form(read):
    signal = read(NEW + new(*AUTUMN), "price")
    assert signal.times_s == tuple(1800.0 * k for k in range(6)) and signal.begin == "2025-10-25T23:30Z"
    assert signal.values == pytest.approx(tuple(k / 1000 for k in range(1, 7))) and read.warnings() == []
    # the names of the hours count, not the order of the rows
    assert read(NEW + new(*AUTUMN[::-1]), "price") == signal
    spring = (
        ("30/03/2025 01:30:00 - 30/03/2025 01:45:00 (CET)", "1"),
        ("30/03/2025 01:45:00 (CET) - 30/03/2025 03:00:00 (CEST)", "2"),
        ("30/03/2025 03:00:00 (CEST) - 30/03/2025 03:15:00", "3"),
    )
    signal = read(NEW + new(*spring), "price")
    assert (signal.times_s, signal.begin) == ((0.0, 900.0, 1800.0), "2025-03-30T00:30Z")
    utc = (NEW + new(*spring)).replace("CET/CEST", "UTC").replace(" (CET)", "").replace(" (CEST)", "")
    assert read(utc, "price", tz="Europe/Berlin").begin == "2025-03-30T01:30Z"


def test_entsoe_areas_and_sequences(read):
    text = NEW + new(*AUTUMN) + new(*((label, f"1{value}") for label, value in AUTUMN), area="BZN|FR")
    assert read.refused(text, "price").startswith("has 2 zones in column 'Area': BZN|BE, BZN|FR; choose one with zone=")
    assert read(text, "price", zone="FR").values[0] == pytest.approx(0.011)
    assert read(text, "price", zone="BZN|BE").values[0] == pytest.approx(0.001)
    one, two = (new(*AUTUMN, sequence=f"Sequence Sequence {number}") for number in (1, 2))
    line = read.refused(NEW + one + two, "price")
    assert line.startswith("has 2 sequences in column 'Sequence': Sequence Sequence 1, Sequence Sequence 2; choose one")
    assert len(read(NEW + one + two, "price", sequence="2")) == 6


GENERATION = ("01.07.2025 00:00 - 01.07.2025 01:00 (CET/CEST)", "01.07.2025 01:00 - 01.07.2025 02:00 (CET/CEST)")


@pytest.mark.parametrize(
    ("head", "labels", "options", "begin"),
    [
        ("time", ("2025-07-01 00:00 (CEST)", "2025-07-01 01:00 (CEST)"), {}, "2025-06-30T22:00Z"),
        ("time", ("2025-01-01 00:00 (CET)", "2025-01-01 01:00 (CET)"), {"tz": "Europe/Paris"}, "2024-12-31T23:00Z"),
        # exports of generation state the zone in each cell
        ("MTU", GENERATION, {}, "2025-06-30T22:00Z"),
        ("Date (GMT+1)", ("2025-07-01 00:00", "2025-07-01 01:00"), {"tz": "Etc/GMT-1"}, "2025-06-30T23:00Z"),
        ("Start time UTC+03:00", ("2025-07-01 00:00", "2025-07-01 01:00"), {"tz": "Etc/GMT-3"}, "2025-06-30T21:00Z"),
        ("Start time UTC+00:00", ("2025-07-01 00:00", "2025-07-01 01:00"), {}, "2025-07-01T00:00Z"),
        ("DATE (MM/DD/YYYY),MST", ("10/14/2018,00:00", "10/14/2018,01:00"), {"tz": "Etc/GMT+7"}, "2018-10-14T07:00Z"),
        ("Date,Clock (CET/CEST)", ("2025-07-01,00:00", "2025-07-01,01:00"), {}, "2025-06-30T22:00Z"),
        ("time", ("2024-01-01 00:00:00+01", "2024-01-01 01:00:00+01"), {}, "2023-12-31T23:00Z"),
        # labels that end a minute early leave no gap
        ("time", ("1.1.2024 00:00 - 1.1.2024 00:59", "1.1.2024 01:00 - 1.1.2024 01:59"), {}, "2024-01-01T00:00Z"),
    ],
)
def test_zones_that_cells_state(read, head, labels, options, begin):
    signal = read(f"{head},price\n" + "".join(f"{label},1\n" for label in labels), **options)
    assert (signal.begin, signal.times_s) == (begin, (0.0, 3600.0)) and read.warnings() == []


@pytest.mark.parametrize(
    ("head", "label", "message"),
    [
        ("time", "2025-07-01 00:00 (PST)", "time '2025-07-01 00:00 (PST)' is in PST, but UTC has UTC then"),
        ("time", "2025-07-01 00:00 (CET)", "is in CET, but Europe/Brussels has CEST then"),
        ("time (CET)", "2025-07-01 00:00", "column 'time (CET)' is in CET; say which as in tz=Europe/Berlin"),
        ("Date (GMT+1)", "2025-07-01 00:00", "column 'Date (GMT+1)' is in GMT+1; say which as in tz="),
        ("Start time UTC+03:00", "2025-07-01 00:00", "column 'Start time UTC+03:00' is in UTC+03:00; say which as in"),
        ("ObservationTime(LST)", "2025-07-01 00:00", "column 'ObservationTime(LST)' is in LST; say which as in tz="),
        ("DATE (MM/DD/YYYY),MST", "10/14/2018,00:00", "column 'MST' is in MST; say which as in tz="),
    ],
)
def test_zones_that_are_not_those_of_the_run(read, head, label, message):
    assert message in read.refused(f"{head},price\n{label},1\n")


def test_the_month_first_and_not_padded(read):
    def logger(*labels: str) -> str:
        return ",ac_power_kw_1137\n" + "".join(f"{label},{number}\n" for number, label in enumerate(labels))

    days = logger("1/2/2022 23:30", "1/2/2022 23:45", "1/3/2022 0:00", "1/3/2022 0:15")
    signal = read(days, "power", dates="month-first")
    assert (signal.begin, signal.times_s) == ("2022-01-02T23:30Z", (0.0, 900.0, 1800.0, 2700.0))
    for order, begin in (("month-first", "2022-01-02T23:30Z"), ("day-first", "2022-02-01T23:30Z")):
        assert read(logger("1/2/2022 23:30", "1/2/2022 23:45"), "power", dates=order).begin == begin
    assert "line 2: '1/2/2022 23:30' is 1 February or 2 January; say dates=day-first or" in read.refused(days, "power")
    # what no other reading allows needs no word
    assert read(logger("1/31/2022 0:00", "2/1/2022 0:00"), "power").begin == "2022-01-31T00:00Z"
    assert read(logger("31/1/2022 0:00", "1/2/2022 0:00"), "power").begin == "2022-01-31T00:00Z"
    assert read.warnings() == []
    line = read.refused(logger("1/31/2022 0:00", "31/2/2022 0:00", "2/28/2022 0:00"), "power")
    assert "line 3: column 1 '31/2/2022 0:00' is not a date" in line


def test_twelve_hours(read):
    labels = ("12/31/2020 11:30:00 PM", "1/1/2021 12:00:00 AM", "1/1/2021 12:30:00 AM", "1/1/2021 1:00:00 AM")
    rows = [f"{label},{k}\n" for k, label in enumerate((*labels, "1/1/2021 12:00:00 PM", "1/1/2021 01:30 pm"))]
    signal = read("datetime_beginning_utc,price\n" + "".join(rows))
    assert signal.begin == "2020-12-31T23:30Z"
    assert signal.times_s == (0.0, 1800.0, 3600.0, 5400.0, 45_000.0, 50_400.0)


ZONES = ("Europe/Berlin", "Europe/Lisbon", "America/New_York", "Australia/Lord_Howe", "UTC")


@examples(40)
@given(
    zone=st.sampled_from(ZONES),
    week=st.integers(0, 52 * 8),
    step_min=st.sampled_from((15, 30, 60)),
    form=st.sampled_from(("%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M")),
)
def test_any_week_of_local_times_is_read_to_the_hour(tmp_path_factory, zone, week, step_min, form):
    """What a clock on the wall shows, in order, are the steps that passed."""
    # its clocks change by half an hour: hours are not enough to tell them apart
    assume(zone != "Australia/Lord_Howe" or step_min < 60)
    begin = datetime(2018, 1, 1, tzinfo=UTC) + timedelta(weeks=week)
    steps = [begin + timedelta(minutes=step_min * k) for k in range(7 * 24 * 60 // step_min)]
    clock = ZoneInfo(zone)
    rows = [f"{step.astimezone(clock).strftime(form)},{k}\n" for k, step in enumerate(steps)]
    path = tmp_path_factory.mktemp("week") / "w.csv"
    path.write_text("time,price\n" + "".join(rows))
    signal = read_signal(SeriesSource(path, tz=zone))
    assert signal.times_s == tuple(60.0 * step_min * k for k in range(len(steps)))
    assert signal.values == tuple(map(float, range(len(steps))))
    assert signal.begin == begin.strftime("%Y-%m-%dT%H:%MZ")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("2024-01-01 00:00", "1023-01-01 01:00"), "line 3: time '1023-01-01 01:00' is not a date"),
        (("2024-01-01 00:00:00-5", "2024-01-01 01:00:00"), "write all dates alike"),
        (("2024-01-01 00:00:00+01", "2024-01-01 01:00:00"), "line 3: has no offset from UTC while others have one"),
    ],
)
def test_dates_that_are_mistyped(read, labels, message):
    assert message in refusal(read, "time,price\n" + "".join(f"{label},1\n" for label in labels))


# ends of intervals, and numbers ---------------------------------------------------------------------------------------

ENDS = "times {!r} taken as ends of rows"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("Interval End,price\n2024-03-01T01:00Z,10\n2024-03-01T02:00Z,20\n", "Interval End"),
        ("period_end,price\n2024-03-01 01:00,10\n2024-03-01 02:00,20\n", "period_end"),
        ("PeriodEnd;price\n01.03.2024 01:00;10\n01.03.2024 02:00;20\n", "PeriodEnd"),
        ("DateTime Ending;price\n01.03.2024 01:00;10\n01.03.2024 02:00;20\n", "DateTime Ending"),
        ("bis;price\n01.03.2024 01:00;10\n01.03.2024 02:00;20\n", "bis"),
        ("end_timestamp,price\n1709254800,10\n1709258400,20\n", "end_timestamp"),
        ("Date,Hour Ending,price\n2024-03-01,01:00,10\n2024-03-01,02:00,20\n", "Date"),
        ("Date,HE,price\n03/01/2024,1,10\n03/01/2024,2,20\n03/29/2024,24,30\n", "Date"),
        ("OPR_DT,OPR_HR,price\n2024-03-01,01,10\n2024-03-01,02,20\n2024-03-01,24,30\n", "OPR_DT"),
        # 24:00 is the end of a day
        ("time,price\n2024-03-01 01:00,10\n2024-03-01 02:00,20\n2024-03-01T24:00,30\n", "time"),
    ],
)
def test_ends_of_intervals_become_begins(read, text, column):
    signal = read(text, dates="month-first" if "/" in text else None)
    assert signal.begin == "2024-03-01T00:00Z" and signal.times_s[:2] == (0.0, 3600.0)
    assert signal.values[:2] == (10, 20) and read.warnings()[0].startswith(ENDS.format(column))


def test_begins_where_a_file_has_both(read):
    """A length that the file states makes the second hour a gap."""
    head = "Interval End,Interval Start,price\n"
    text = head + "2024-03-01 01:00,2024-03-01 00:00,10\n2024-03-01 03:00,2024-03-01 02:00,20\n"
    signal = read(text)
    assert (signal.begin, signal.times_s, signal.end_s) == ("2024-03-01T00:00Z", (0.0, 7200.0), 10_800.0)
    longest = "(longest: 2024-03-01T01:00Z to 2024-03-01T02:00Z)"
    assert read.warnings() == [f"1 values missing in 1 gap {longest}: the value before holds"]
    assert read(head + "2024-03-01 00:15,2024-03-01 00:00,10\n").end_s == 900.0
    assert read(text, time_column="Interval End").begin == "2024-02-29T23:00Z"
    # a resolution states the length of one row
    assert read("period_end,period,price\n2024-03-01T00:30Z,PT30M,1\n").begin == "2024-03-01T00:00Z"
    line = read.refused("period_end,price\n2024-03-01T00:30Z,1\n")
    assert line == "has one row, which is the end of an unknown time; add rows, or say stamp=begin"


def test_begins_and_ends_of_days_and_times_of_day(read):
    """As TransnetBW writes wind power; the last row ends on the next day."""
    head = "Datum von;Uhrzeit von;Datum bis;Uhrzeit bis;Prognose (MW);Ist-Wert (MW);\n"
    rows = (
        "31.10.2015;23:30:00;31.10.2015;23:45:00;66,5;116;\n",
        "31.10.2015;23:45:00;01.11.2015;00:00:00;64,0;114;\n",
    )
    signal = read(head + "".join(rows), "power", column="Prognose (MW)", tz="Europe/Berlin")
    assert (signal.begin, signal.end_s, read.warnings()) == ("2015-10-31T22:30Z", 1800.0, [])
    assert signal.values == (66.5e6, 64e6) and signal.times_s == (0.0, 900.0)
    # an end that is the same for all rows states no duration
    text = "time,campaign_end,price\n2024-01-01 00:00,2024-02-01,1\n2024-01-01 01:00,2024-02-01,2\n"
    assert read(text).end_s == 7200.0


def test_stamp_overrides_the_name(read):
    text = "period_end,price\n2024-03-01 01:00,10\n2024-03-01 02:00,20\n"
    assert (read(text, stamp="begin").begin, read.warnings()) == ("2024-03-01T01:00Z", [])
    for named in (text.replace("period_end", "time"), "Date,Hour,price\n2024-03-01,1,10\n2024-03-01,2,20\n"):
        assert read(named, stamp="end").begin == "2024-03-01T00:00Z"
        assert read(named, stamp="begin").begin == "2024-03-01T01:00Z"
    assert read(text.replace("period_end", "time")).begin == "2024-03-01T01:00Z"
    assert read("Date,Hour,price\n2024-03-01,0,10\n2024-03-01,1,20\n").begin == "2024-03-01T00:00Z"
    line = read.refused("Date,Hour,price\n2024-03-01,1,10\n2024-03-01,2,20\n")
    assert line == "Hour 1 is 1:00, or the hour that ends then; say stamp=begin or stamp=end"
    seconds = read("time_s,price\n3600,10\n7200,20\n", stamp="end")
    assert (seconds.times_s, seconds.values, seconds.end_s) == ((0.0, 3600.0), (10, 20), 7200.0)


@pytest.mark.parametrize("second", ["2", "02", "02X", "02*"])
def test_hours_from_1_to_24_where_clocks_change(read, second):
    """In New York 2024-11-03 has 25 hours from 04:00Z, 2024-03-10 has 23 from 05:00Z: the hour to 3:00 is left out."""
    autumn = ["1", "2", second, *map(str, range(3, 25))]
    spring = ["1", "2", *map(str, range(4, 25))]
    for day, hours, begin in (("2024-11-03", autumn, "04:00Z"), ("2024-03-10", spring, "05:00Z")):
        rows = [f"{day},{hour},{number}\n" for number, hour in enumerate(hours)]
        signal = read("Date,Hour Ending,price\n" + "".join(rows), tz="America/New_York")
        assert signal.begin == f"{day}T{begin}" and signal.values == tuple(range(len(hours)))
        assert signal.times_s == tuple(3600.0 * k for k in range(len(hours)))
        assert read.warnings() == [ENDS.format("Date")]


def test_ends_of_an_hour_that_clocks_skip(read):
    """In Berlin 2024-03-31 has no 02:00 to 03:00: the row to 02:00 is an hour, that to 03:00 is none."""
    rows = "".join(f"2024-03-31 0{hour}:00,{hour}\n" for hour in range(1, 6))
    signal = read("interval_end,price\n" + rows, tz="Europe/Berlin")
    assert (signal.begin, signal.end_s) == ("2024-03-30T23:00Z", 4 * 3600.0)
    assert signal.values == (1.0, 2.0, 4.0, 5.0)


@examples(40)
@given(
    zone=st.sampled_from(ZONES),
    week=st.integers(0, 52 * 8),
    step_min=st.sampled_from((15, 30, 60)),
    shown=st.booleans(),
)
def test_any_week_of_ends_in_local_time_is_read_to_the_hour(tmp_path_factory, zone, week, step_min, shown):
    """Ends are what a clock on the wall shows then, or a step after what it shows at the begin."""
    assume(zone != "Australia/Lord_Howe" or step_min < 60)
    begin, step = datetime(2018, 1, 1, tzinfo=UTC) + timedelta(weeks=week), timedelta(minutes=step_min)
    begins = [begin + k * step for k in range(7 * 24 * 60 // step_min)]
    clock = ZoneInfo(zone)
    # arithmetic of datetime is that of the wall
    ends = [(at + step).astimezone(clock) if shown else at.astimezone(clock) + step for at in begins]
    rows = [f"{end:%Y-%m-%d %H:%M},{k}\n" for k, end in enumerate(ends)]
    path = tmp_path_factory.mktemp("week") / "w.csv"
    path.write_text("interval_end,price\n" + "".join(rows))
    signal = read_signal(SeriesSource(path, tz=zone))
    assert signal.times_s == tuple(60.0 * step_min * k for k in range(len(begins)))
    assert signal.values == tuple(map(float, range(len(begins))))
    assert signal.begin == begin.strftime("%Y-%m-%dT%H:%MZ")


@pytest.mark.parametrize(("unit", "digits"), [("ms", "000"), ("us", "000000"), ("ns", "000000000")])
def test_numbers_since_1970_by_their_size(read, unit, digits):
    """2024-03-01 08:00 UTC is 1709280000 s; aWATTar writes ms, in a list of objects."""
    begins = (1_709_280_000, 1_709_283_600)
    rows = [
        {"start_timestamp": int(f"{at}{digits}"), "end_timestamp": int(f"{at + 3600}{digits}"), "marketprice": price,
         "unit": "Eur/MWh"} for at, price in zip(begins, (42.09, -7.5), strict=True)
    ]  # fmt: skip
    signal = read(json.dumps({"object": "list", "data": rows}), "price")
    assert (signal.begin, signal.end_s, signal.unit) == ("2024-03-01T08:00Z", 7200.0, "EUR/kWh")
    assert signal.values == pytest.approx((0.04209, -0.0075))
    assert read.warnings() == [f"times 'start_timestamp' taken as {unit} since 1970, by their size"]


# how long a row holds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", ["", ":00"])
def test_labels_that_end_with_a_time_of_day(read, seconds):
    labels = [f"01.10.2025 00:{minute:02} - 00:{minute + 15}{seconds}" for minute in (0, 15, 30)]
    signal = read(old(*((label, 7) for label in labels)), "price")
    assert (signal.times_s, signal.end_s) == ((0.0, 900.0, 1800.0), 2700.0)
    assert read(old(("01.10.2025 23:00 - 00:00", 7)), "price").end_s == 3600.0
    # from 01:00 to 01:15 nothing is known: 1, or 1 + 4 x 60 / 75
    text = old(("01.10.2025 00:00 - 01:00", 1), ("01.10.2025 01:15 - 01:30", 5))
    assert read(text, "price").at(4000.0) == 0.001
    gap = read(text, "price", gaps="line")
    assert gap.values == pytest.approx((0.001, 0.0042, 0.005)) and gap.end_s == 5400.0
    rolling = "".join(
        f"2024-01-01 0{k // 4}:{15 * (k % 4):02} - 0{k // 4 + 1}:{15 * (k % 4):02},{k}\n" for k in range(5)
    )
    assert read.refused("time,price\n" + rolling).startswith("rows of 3600 s and 3600 s overlap at 2024-01-01T00:15Z")


def test_times_of_pvgis(read):
    head = "Latitude (decimal degrees):\t45.000\r\nElevation (m):\t250\r\n\r\nNominal power (kWp):\t1.0\r\n\r\n"
    table = "time,P,G(i),H_sun,T2m,WS10m,Int\r\n" + "".join(
        f"20230401:{hour:02}10,{power},9.5,{hour}.0,1.92,0.69,0.0\r\n" for hour, power in enumerate((0.0, 10.5, 400.25))
    )
    foot = (
        "\r\nP: PV system power (W)\r\nG(i): Global irradiance on the plane (W/m2)\r\nH_sun: Sun height (degree)\r\n"
        "T2m: 2-m air temperature (degree Celsius)\r\n\r\nPVGIS (c) European Union, 2001-2023\r\n"
    )
    signal = read(head + table + foot, "power")
    assert signal.values == (0.0, 10.5, 400.25) and signal.times_s == (0.0, 3600.0, 7200.0)
    assert (signal.begin, signal.end_s, signal.unit) == ("2023-04-01T00:10Z", 10_800.0, "W")
    # only one column is of a kind of signal
    assert read(head + table + foot, "any") == signal
    # the last lines state the units
    assert read.refused(table, "power").startswith("which column is meant, of: P, G(i), H_sun, T2m, WS10m, Int?")
    assert read(table, "power", column="P", unit="W").values == signal.values
    line = read.refused(head + table.replace(",10.5,", ",x,") + foot, "power", column="P")
    assert line.startswith("line 8: P 'x' is not a finite number")
    hourly = [{"time": f"20230401:{hour:02}10", "P": hour / 2, "G(i)": 9.5, "T2m": 1.9} for hour in range(3)]
    variables = {"P": {"description": "PV system power", "units": "W"}, "G(i)": {"units": "W/m2"}}
    answer = {"inputs": {"location": {"latitude": 45}}, "outputs": {"hourly": hourly},
              "meta": {"outputs": {"hourly": {"type": "time series", "variables": variables}}}}  # fmt: skip
    signal = read(json.dumps(answer), "power")
    assert (signal.values, signal.begin, signal.unit) == ((0.0, 0.5, 1.0), "2023-04-01T00:10Z", "W")
    weather = head + table.replace(",P,", ",Gb(i),") + foot.replace("P: PV system power (W)", "Gb(i): Beam (W/m2)")
    line = read.refused(weather, "power")
    assert line.startswith("which column is meant, of: WS10m, Int?")


def test_a_time_of_day_in_a_column_of_its_own(read):
    """As of SMARD's older downloads: not the last hour for the whole day."""
    english = read("Date,Time,ac_power_kw\n31/01/2024,23:00:00,2.1\n01/02/2024,9:00:00,2.8\n", "power")
    assert (english.begin, english.times_s) == ("2024-01-31T23:00Z", (0.0, 36_000.0))
    rows = "".join(f"15.01.2024;{hour:02}:00;{hour + 1:02}:00;39,{hour:02}\n" for hour in range(24))
    signal = read("Datum;Anfang;Ende;Deutschland [€/MWh]\n" + rows, "price", tz="Europe/Berlin")
    assert signal.values == pytest.approx([0.039 + hour * 1e-5 for hour in range(24)])
    assert signal.begin == "2024-01-14T23:00Z" and read.warnings() == []
    line = read.refused("Datum;Deutschland [€/MWh]\n" + "15.01.2024;39,05\n" * 24, "price")
    assert line.startswith("24 rows have 1 times; keep the rows of one series; write date and time of day into one col")
    # two series below each other, or a row of each in turn
    rows = [f"2025-01-01 0{hour}:00,{place},{value}\n" for hour in range(4) for place, value in (("DE", 1), ("FR", 2))]
    for order in (rows, sorted(rows, key=lambda row: row[17:19])):
        line = read.refused("time,which,price\n" + "".join(order))
        assert line.startswith("8 rows have 4 times; keep the rows of one")
    newer = "".join(
        f"15.01.2024 {hour:02}:00;15.01.2024 {hour + 1:02}:00;{'-' if hour == 3 else '39,5'}\n" for hour in range(6)
    )
    signal = read("Datum von;Datum bis;Deutschland [€/MWh] Originalauflösungen\n" + newer, "price", tz="Europe/Berlin")
    assert signal.values == pytest.approx([0.0395] * 6) and signal.begin == "2024-01-14T23:00Z"


@examples(20)
@given(
    week=st.integers(0, 52 * 8),
    blocks=st.lists(st.tuples(st.sampled_from((15, 30, 60)), st.integers(4, 40)), min_size=1, max_size=4),
    labelled=st.booleans(),
)
def test_any_steps_of_any_week_hold_to_the_next_row(tmp_path_factory, week, blocks, labelled):
    """As pandas fills forward, with labels as ENTSO-E marks them around a change of clocks, and without."""
    clock, form = ZoneInfo("Europe/Brussels"), "%d/%m/%Y %H:%M:%S"
    # a day before a change of clocks, in some of the weeks
    at, rows = datetime(2018, 1, 6, tzinfo=UTC) + timedelta(weeks=week), []
    for minutes, count in blocks:
        for _ in range(count):
            rows.append((at, at + timedelta(minutes=minutes)))
            at = rows[-1][1]

    def shown(time: datetime) -> str:
        local = time.astimezone(clock)
        near = {(time + timedelta(hours=hours)).astimezone(clock).utcoffset() for hours in (-1, 0, 1)}
        return local.strftime(form) + (f" ({local.tzname()})" if len(near) > 1 else "")

    lines = [
        f'"{shown(begin)} - {shown(end)}","BZN|BE","Without Sequence",{number},,\n' if labelled else
        f"{begin:%Y-%m-%dT%H:%MZ},{number}\n" for number, (begin, end) in enumerate(rows)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("steps") / "s.csv"
    path.write_text((NEW if labelled else "time,price (EUR/MWh)\n") + "".join(lines), encoding="utf-8")
    series = read_signal(SeriesSource(path))
    expected = pd.Series(range(len(rows)), [begin for begin, _ in rows]).resample("15min").ffill()
    assert [series.at(900.0 * k) for k in range(len(expected))] == expected.tolist()
    assert len(series) == len(rows)


def test_entsoe_generation(read):
    """Names have two blanks, each cell of times states the zone, and n/e stands for what is not expected."""
    names = ("Area", "MTU", "Fossil Peat  - Actual Aggregated [MW]", "Wind Onshore  - Actual Aggregated [MW]")
    text = ",".join(f'"{name}"' for name in names) + "\n"
    for hour, wind in enumerate(("3", "n/e", "5")):
        text += f'"BZN|FI","01.01.2021 0{hour}:00 - 01.01.2021 0{hour + 1}:00 (CET/CEST)","n/e","{wind}"\n'
    line = read.refused(text.replace("n/e", "1"), "power")
    assert "Fossil Peat - Actual Aggregated [MW], Wind Onshore - Actual Aggregated [MW]?" in line
    for column in (names[-1], "Wind Onshore - Actual Aggregated [MW]"):
        signal = read(text, "power", column=column)
        assert (signal.begin, signal.values) == ("2020-12-31T23:00Z", (3e6, 3e6, 5e6))
        assert read.warnings()[0].startswith("1 values missing in 1 gap (longest: 2021-01-01T00:00Z to")
    assert "no value in column" in read.refused(text, "power", column=names[2])
    assert "no value of kind 'power'; known: direct, lifecycle." in refusal(read, text, kind="power")


@pytest.mark.parametrize(
    ("ends_min", "begins_min"),
    [
        # quarter hours, then hours
        ((15, 30, 45, 60, 120, 180, 240), (0, 15, 30, 45, 60, 120, 180)),
        # of changes: each value from the end before
        ((60, 70, 420, 450), (50, 60, 70, 420)),
    ],
)
def test_ends_of_rows_of_several_lengths(read, ends_min, begins_min):
    rows = [(f"2024-07-01 {end // 60:02}:{end % 60:02}", str(60 * end)) for end in ends_min]
    for column, name, zero_min in ((0, "interval_end", begins_min[0]), (1, "time_s", 0)):
        text = f"{name},price\n" + "".join(f"{row[column]},{number}\n" for number, row in enumerate(rows))
        signal = read(text, stamp="end")
        times_s = tuple(60.0 * (begin - zero_min) for begin in begins_min)
        assert signal.times_s == (0.0, *times_s[1:])
        assert signal.end_s == 60.0 * (ends_min[-1] - zero_min)
        assert read.warnings() == [ENDS.format(name)]


@pytest.mark.parametrize(
    ("head", "label"),
    [
        ("time,gCO2/kWh", "2024-01-01" + " " * 200_000 + "00:00"),
        ("time,gCO2/kWh", "2024-01-01 00:00" + " " * 200_000 + "(x)"),
        ("time,g" + " " * 50_000 + "a", "2024-01-01 00:00"),
    ],
)
def test_long_cells_take_no_quadratic_time(read, head, label):
    begin_s = time.process_time()
    assert read.refused(f"{head}\n{label},1\n", "carbon")
    assert time.process_time() - begin_s < 5.0


def test_days_with_slashes_and_times_of_day(read):
    rows = "".join(f"2026/4/{1 + hour // 24},{hour % 24}:00,{hour}\n" for hour in range(48))
    signal = read(f"DATE,TIME,load_kw\n{rows}", "power")
    assert (signal.begin, signal.end_s, signal.values[25]) == ("2026-04-01T00:00Z", 172_800.0, 25e3)
