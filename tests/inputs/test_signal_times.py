"""Labels of time: exports of ENTSO-E, loggers, local times of any week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile

MTU = '"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","Currency","BZN|FR"\n'
NEW = (
    '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)",'
    '"Intraday Period (CET/CEST)","Intraday Price (EUR/MWh)"\n'
)


def old(*rows: tuple[str, str]) -> str:
    return MTU + "".join(f'"{label}","{value}","EUR"\n' for label, value in rows)


def new(*rows: tuple[str, str], area: str = "BZN|BE", sequence: str = "Without Sequence") -> str:
    return "".join(f'"{label}","{area}","{sequence}","{value}","",""\n' for label, value in rows)


def test_entsoe_old_form_in_autumn(read):
    signal = read(
        old(
            ("30.10.2022 01:00 - 30.10.2022 02:00", "1"),
            ("30.10.2022 02:00 - 30.10.2022 03:00", "2"),
            ("30.10.2022 02:00 - 30.10.2022 03:00", "3"),
            ("30.10.2022 03:00 - 30.10.2022 04:00", "4"),
        ),
        "price",
    )
    assert (signal.begin, signal.end_s) == ("2022-10-29T23:00Z", 4 * 3600.0)
    assert signal.series.values == pytest.approx((0.001, 0.002, 0.003, 0.004)) and read.warnings() == []


def test_entsoe_old_form_in_spring(read):
    signal = read(
        old(
            ("27.03.2022 01:00 - 27.03.2022 02:00", "1"),
            ("27.03.2022 02:00 - 27.03.2022 03:00", ""),
            ("27.03.2022 03:00 - 27.03.2022 04:00", "4"),
        ),
        "price",
    )
    assert (signal.begin, signal.series.times_s) == ("2022-03-27T00:00Z", (0.0, 3600.0))
    assert signal.series.values == pytest.approx((0.001, 0.004))
    assert read.warnings() == ["1 rows of hours that Europe/Brussels leaves out in spring ignored"]


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
    assert signal.series.times_s == tuple(1800.0 * k for k in range(6)) and signal.begin == "2025-10-25T23:30Z"
    assert signal.series.values == pytest.approx(tuple(k / 1000 for k in range(1, 7))) and read.warnings() == []
    # the names of the hours count, not the order of the rows
    assert read(NEW + new(*AUTUMN[::-1]), "price").series == signal.series
    spring = (
        ("30/03/2025 01:30:00 - 30/03/2025 01:45:00 (CET)", "1"),
        ("30/03/2025 01:45:00 (CET) - 30/03/2025 03:00:00 (CEST)", "2"),
        ("30/03/2025 03:00:00 (CEST) - 30/03/2025 03:15:00", "3"),
    )
    signal = read(NEW + new(*spring), "price")
    assert (signal.series.times_s, signal.begin) == ((0.0, 900.0, 1800.0), "2025-03-30T00:30Z")
    utc = (NEW + new(*spring)).replace("CET/CEST", "UTC").replace(" (CET)", "").replace(" (CEST)", "")
    assert read(utc, "price", tz="Europe/Berlin").begin == "2025-03-30T01:30Z"


def test_entsoe_areas_and_sequences(read):
    text = NEW + new(*AUTUMN) + new(*((label, f"1{value}") for label, value in AUTUMN), area="BZN|FR")
    assert read.refused(text, "price").startswith("has 2 zones in column 'Area': BZN|BE, BZN|FR; choose one with zone=")
    assert read(text, "price", zone="FR").series.values[0] == pytest.approx(0.011)
    assert read(text, "price", zone="BZN|BE").series.values[0] == pytest.approx(0.001)
    one, two = (new(*AUTUMN, sequence=f"Sequence Sequence {number}") for number in (1, 2))
    said = read.refused(NEW + one + two, "price")
    assert said.startswith("has 2 sequences in column 'Sequence': Sequence Sequence 1, Sequence Sequence 2; choose one")
    assert len(read(NEW + one + two, "price", sequence="2").series) == 6


def test_rows_of_autumn_that_go_down(read):
    rows = [f"2024-10-27 {hour},{value}\n" for hour, value in (("03:00", 4), ("02:00", 3), ("02:00", 2), ("01:00", 1))]
    signal = read("time,price\n" + "".join(rows), tz="Europe/Berlin")
    assert signal.series.values == (1.0, 2.0, 3.0, 4.0) and read.warnings() == ["rows sorted by time"]


def test_the_month_first_and_not_padded(read):
    def logger(*labels: str) -> str:
        return ",ac_power_kw_1137\n" + "".join(f"{label},{number}\n" for number, label in enumerate(labels))

    days = logger("1/2/2022 23:30", "1/2/2022 23:45", "1/3/2022 0:00", "1/3/2022 0:15")
    signal = read(days, "power")
    assert (signal.begin, signal.series.times_s) == ("2022-01-02T23:30Z", (0.0, 900.0, 1800.0, 2700.0))
    assert read.warnings() == ["dates such as 1/2/2022 23:30 read month first"]
    for order, begin in (("month-first", "2022-01-02T23:30Z"), ("day-first", "2022-02-01T23:30Z")):
        assert read(logger("1/2/2022 23:30", "1/2/2022 23:45"), "power", dates=order).begin == begin
    with pytest.raises(InputError, match=r"row 1: '1/2/2022 0:00' is 1 February or 2 January; say dates=day-first or"):
        read(logger("1/2/2022 0:00", "1/2/2022 0:15"), "power")
    # what no other reading allows needs no word
    assert read(logger("1/31/2022 0:00", "2/1/2022 0:00"), "power").begin == "2022-01-31T00:00Z"
    assert read.warnings() == []
    assert read(logger("31/1/2022 0:00", "1/2/2022 0:00"), "power").begin == "2022-01-31T00:00Z"
    with pytest.raises(InputError, match="row 2: column 1 '31/2/2022 0:00' is not a date"):
        read(logger("1/31/2022 0:00", "31/2/2022 0:00", "2/28/2022 0:00"), "power")


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
    signal = read_signal(SignalFile(path, tz=zone))
    assert signal.series.times_s == tuple(60.0 * step_min * k for k in range(len(steps)))
    assert signal.series.values == tuple(map(float, range(len(steps))))
    assert signal.begin == begin.strftime("%Y-%m-%dT%H:%MZ")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("2024-01-01 00:00", "1023-01-01 01:00"), "row 2: time '1023-01-01 01:00' is not a date"),
        (
            ("2024-01-01 00:00:00.5+00:00", "0023-01-01 01:00:00+00:00"),
            "row 2: time '0023-01-01 01:00:00+00:00' is not",
        ),
        (("1/2/2024 0:00", "1/2/9024 0:15"), "row 2: time '1/2/9024 0:15' is not a date"),
        (("2024-01-01 00:00:00-5", "2024-01-01 01:00:00"), "write all dates alike"),
        (("2024-01-01 00:00:00+01", "2024-01-01 01:00:00"), "row 2: has no offset from UTC while others have one"),
    ],
)
def test_dates_that_are_mistyped(read, labels, said):
    with pytest.raises(InputError) as caught:
        read("time,price\n" + "".join(f"{label},1\n" for label in labels))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_offsets_of_hours(read):
    signal = read("time,price\n2024-01-01 00:00:00+01,1\n2024-01-01 01:00:00+01,2\n")
    assert (signal.begin, signal.series.times_s) == ("2023-12-31T23:00Z", (0.0, 3600.0))


def test_two_columns_of_zones(read):
    text = "time,zone,zone,price\n2024-01-01,a,b,1\n"
    assert read.refused(text) == "2 columns are called 'zone'; rename all but one in the first line"
