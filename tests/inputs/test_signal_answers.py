"""Answers of APIs in JSON; units and resolutions next to the values."""

from __future__ import annotations

import json

import pytest

BRITISH = {
    "data": [
        {"from": f"2023-03-13T0{3 + k // 2}:{30 * (k % 2):02}Z", "to": "x",
         "intensity": {"forecast": 60 + k, "actual": 64 - k, "index": "low"}}
        for k in range(4)
    ]
}  # fmt: skip


def test_the_british_api(read):
    signal = read(json.dumps(BRITISH), "carbon")
    assert (signal.values, signal.begin, signal.end_s) == ((64, 63, 62, 61), "2023-03-13T03:00Z", 7200.0)
    assert read(json.dumps(BRITISH), "carbon", column="forecast").values == (60, 61, 62, 63)
    region = {"data": [{"regionid": 3, "data": BRITISH["data"]}]}
    assert read(json.dumps(region), "carbon") == signal
    assert "is of carbon, not of price" in read.refused(json.dumps(BRITISH), "price")
    ahead = json.loads(json.dumps(BRITISH))
    for row in ahead["data"]:
        row["intensity"]["actual"] = None
    assert read(json.dumps(ahead), "carbon").values == (60, 61, 62, 63)
    # half past, half to come, and one row without either
    ahead["data"][0]["intensity"]["actual"] = 64
    ahead["data"][2]["intensity"]["forecast"] = None
    assert read(json.dumps(ahead), "carbon").values == (64, 61, 61, 63)
    said = "2 rows without a value in 'intensity.actual' have that of 'intensity.forecast'; 1 values missing in 1 gap"
    assert read.warnings()[0].startswith(said)
    line = read.refused(json.dumps(ahead).replace(": 64", ": null"), "carbon", column="actual")
    assert "no value in column 'intensity.actual'" in line
    flat = "from,to,intensity_forecast,intensity_actual,index\n2018-01-20T17:00Z,2018-01-20T17:30Z,270,268,low\n"
    assert (read(flat, "carbon").values, read(flat, "carbon").end_s) == ((268,), 1800.0)
    columns = "time,CO2 actual (g/kWh),CO2 Forecast (g/kWh)\n2024-01-01,,7\n2024-01-02,5,6\n"
    assert read(columns, "carbon").values == (7, 5)


def test_electricity_maps_api(read):
    rows = [{"zone": "DE", "carbonIntensity": 300 + k, "datetime": f"2024-01-01T0{k}:00:00.000Z"} for k in range(3)]
    signal = read(json.dumps({"zone": "DE", "history": rows}), "carbon")
    assert (signal.values, read.warnings()) == ((300, 301, 302), [])


def watttime(units: str, column: str = "value") -> dict:
    rows = [{"point_time": f"2022-07-15T00:0{5 * k}:00+00:00", column: 870 - 10 * k} for k in range(2)]
    return {"data": rows, "meta": {"warnings": [{"type": "A"}], "units": units, "signal_type": "co2_moer"}}


@pytest.mark.parametrize("units", ["lbs_co2_per_mwh", "lb/MWh", "lbs CO2/MWh"])
def test_units_of_watttime_hold_for_history_and_forecasts(read, units):
    """870 lb x 453.59237 g/lb / 1000 kWh/MWh = 394.6253619 g/kWh."""
    history = watttime(units)
    ahead = [{"generated_at": "2022-07-14T23:55:00+00:00", "forecast": history["data"]}]
    forecasts = {"data": ahead, "meta": history["meta"]}
    inner = {"meta": history["meta"], "answer": {"signals": {"data": history["data"]}}}
    for answer in (history, forecasts, inner, watttime(units, "moer"), watttime(units, "carbon_intensity")):
        signal = read(json.dumps(answer), "carbon")
        assert signal.values == pytest.approx((394.6253619, 390.0894382), rel=1e-12)
        assert (signal.unit, signal.end_s, read.warnings()) == ("g/kWh", 600.0, [])
        # and where nothing is said of what it is of
        assert read(json.dumps(answer), "any") == signal
    assert "column 'value' is of carbon, not of price" in read.refused(json.dumps(history), "price")


@pytest.mark.parametrize(
    "text",
    [
        "MTU (CET/CEST),Price,Currency\n01.10.2025 00:00 - 01.10.2025 01:00,160.98,PLN\n",
        "Zeit;Day-ahead Price;Currency\n01.10.2025 00:00;160,98;PLN\n",
        "DateTime(UTC)\tResolutionCode\tPrice[Currency/MWh]\tCurrency\n2025-10-01 00:00\tPT60M\t160.98\tPLN\n",
    ],
)
def test_the_currency_of_entsoe(read, text):
    series = read(text, "price")
    assert series.values == pytest.approx((0.16098,)) and series.unit == "PLN/kWh"
    assert "states no unit" in read.refused("time,price,currency\n2024-01-01,160.98,PLN\n", "price")


@pytest.mark.parametrize(
    "content",
    [{}, [], [1, 2], {"data": []}, {"data": [{"a": 1}]}, {"time": [3, 4], "a": [1]}, [[3, 1], [4]], [[{}]], [[]]],
)
def test_json_without_a_series_or_with_two(read, content):
    assert read.refused(json.dumps(content)).startswith("has no table; write a list of objects, an object of lists of")
    assert read.refused('{"data": [}').startswith("is not JSON")
    two = {name: [{"time": "2023-01-01", "a": 1}] for name in ("hourly", "daily")}
    assert read.refused(json.dumps(two)) == "has 2 tables: hourly, daily; leave one of them in the file"
    assert read.refused("<a></a>").startswith("is XML; take the CSV export")
    assert read.refused("<!DOCTYPE html><html>").startswith("is a page of HTML; take the CSV export")


BEGINS = (1_709_280_000, 1_709_283_600, 1_709_287_200)
DATES = [f"2024-03-01T{hour}:00Z" for hour in ("08", "09", "10")]
PRICES = (42.0, None, -7.5)
MS_PAIRS = [(1000 * begin_s, price) for begin_s, price in zip(BEGINS, PRICES, strict=True)]


@pytest.mark.parametrize(
    ("content", "unit"),
    [
        # objects of lists: a unit around them, or of each column, as of Open-Meteo
        ({"unit": "EUR/MWh", "time": DATES, "price": PRICES}, None),
        ({"unixtime": BEGINS, "price": PRICES}, "EUR/MWh"),
        ({"hourly_units": {"time": "iso8601", "spot": "EUR/MWh"}, "hourly": {"time": DATES, "spot": PRICES}}, None),
        # pairs: of ms as of SMARD, with a header
        (
            {"meta_data": {"version": 1}, "series": [(1000 * at, x) for at, x in zip(BEGINS, PRICES, strict=True)]},
            "EUR/MWh",
        ),
        ([("when", "price (EUR/MWh)"), *zip(DATES, PRICES, strict=True)], None),
    ],
    ids=range(5),
)
def test_lists_and_pairs_in_json(read, content, unit):
    signal = read(json.dumps(content), "price", unit=unit)
    assert (signal.begin, signal.end_s, signal.times_s) == (DATES[0], 10_800.0, (0, 3600, 7200))
    assert signal.values == pytest.approx((0.042, 0.042, -0.0075)) and signal.unit == "EUR/kWh"
    assert read.warnings()[-1].endswith("09:00Z to 2024-03-01T10:00Z): the value before holds")


def test_seconds_and_pairs_without_a_unit(read):
    assert read("[[0, 3], [60, 4.5]]").values == (3.0, 4.5) and read('{"time": [3, 4], "a": [1, 2]}').times_s == (
        0.0,
        4.0,
    )
    assert "column 'value' (values to 4.5) states no unit" in read.refused("[[0, 3], [60, 4.5]]", "power")
    # one pair is no series, but of what a workload has many
    assert read.refused('{"jobs": [[1, 2]]}').startswith("has no table")


def test_solcast(read):
    """Ends of half hours; three columns of kW without a unit, and a list of objects with times of an unusual name."""
    rows = [{"pv_estimate": 0.6 + k / 5, "pv_estimate10": 0.5, "period_end": f"2024-08-08T0{7 + k}:00:00.0000000Z",
             "period": "PT60M"} for k in range(2)]  # fmt: skip
    answer = json.dumps({"forecasts": rows})
    line = read.refused(answer, "power")
    assert line == "which column is meant, of: pv_estimate, pv_estimate10?; name it with column="
    signal = read(answer, "power", column="pv_estimate", unit="kW")
    assert (signal.begin, signal.values, signal.end_s) == ("2024-08-08T06:00Z", (600.0, 800.0), 7200.0)
    unusual = answer.replace("period_end", "when")
    assert read(unusual, "power", column="pv_estimate", unit="kW").begin == "2024-08-08T07:00Z"
    assert read.refused(answer.replace("2024-08-08T", "x")).startswith("no column of times among: pv_estimate, ")


def resolutions(*rows: tuple[str, str, float]) -> str:
    lines = "".join(f"2023-05-07T{time}Z,{code},{price}\n" for time, code, price in rows)
    return f"time,ResolutionCode,price (EUR/MWh)\n{lines}"


def test_a_column_of_resolutions(read):
    """As any series across 1 October 2025: each value holds for the length of its own period."""
    hours = (("00:00", "PT60M", 10), ("01:00", "PT60M", 30))
    quarters = tuple((f"02:{15 * k:02}", "PT15M", 4 + k) for k in range(4))
    signal = read(resolutions(*hours, *quarters), "price")
    assert signal.times_s == (0.0, 3600.0, 7200.0, 8100.0, 9000.0, 9900.0) and signal.end_s == 10_800.0
    assert signal.values == pytest.approx((0.01, 0.03, 0.004, 0.005, 0.006, 0.007)) and read.warnings() == []
    # a missing hour is a gap after the hour before
    assert read(resolutions(hours[0], *quarters), "price").at(5400.0) == 0.01
    assert "1 values missing in 1 gap" in read.warnings()[0]
    gap = read(resolutions(hours[0], *quarters), "price", gaps="line")
    assert gap.times_s[:3] == (0.0, 3600.0, 7200.0) and gap.values[1] == pytest.approx(0.01 - 0.006 / 2)
    assert "1 values missing in 1 gap" in read.warnings()[0]
    both = resolutions(*hours, ("01:45", "PT15M", 5), *quarters)
    assert read.refused(both, "price").startswith("rows of 3600 s and 900 s overlap at 2023-05-07T01:45Z; choose one")
    assert read(both, "price", resolution="PT60M").values == pytest.approx((0.01, 0.03))
    assert "no resolution 'PT30M'" in read.refused(both, "price", resolution="PT30M")
    assert read(resolutions(("00:00", "P1D", 10)), "price").end_s == 86_400.0


def test_units_stated_once_are_of_columns_of_their_kind(read):
    text = "time,price,temperature,unit\n2024-01-01 00:00,50,3,EUR/MWh\n2024-01-01 01:00,60,4,EUR/MWh\n"
    assert read(text, "price").values == pytest.approx((0.05, 0.06))
    two = text.replace("60,4,EUR", "60,4,USD")
    assert "states no unit; write unit=EUR/MWh" in read.refused(two, "price")
    # what is stated of something else says nothing of a price
    assert "states no unit" in read.refused(text.replace("EUR/MWh", "kW"), "price")
    assert "states no unit" in read.refused(json.dumps(watttime("furlongs", "moer")), "carbon")
    odd = watttime("mg/kWh", "carbon_intensity")
    assert "unit 'mg/kWh' of column 'carbon_intensity' is not known" in read.refused(json.dumps(odd), "carbon")
