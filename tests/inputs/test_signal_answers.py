"""Answers of APIs, in JSON and XML."""

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
    assert (signal.series.values, signal.begin, signal.end_s) == ((64, 63, 62, 61), "2023-03-13T03:00Z", 7200.0)
    assert read(json.dumps(BRITISH), "carbon", column="forecast").series.values == (60, 61, 62, 63)
    region = {"data": [{"regionid": 3, "data": BRITISH["data"]}]}
    assert read(json.dumps(region), "carbon").series == signal.series
    assert "is of carbon, not of price" in read.refused(json.dumps(BRITISH), "price")
    ahead = json.loads(json.dumps(BRITISH))
    for row in ahead["data"]:
        row["intensity"]["actual"] = None
    assert read(json.dumps(ahead), "carbon").series.values == (60, 61, 62, 63)


def test_electricity_maps_api(read):
    rows = [{"zone": "DE", "carbonIntensity": 300 + k, "datetime": f"2024-01-01T0{k}:00:00.000Z"} for k in range(3)]
    signal = read(json.dumps({"zone": "DE", "history": rows}), "carbon")
    assert (signal.series.values, read.warnings()) == ((300, 301, 302), [])


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
        assert signal.series.values == pytest.approx((394.6253619, 390.0894382), rel=1e-12)
        assert (signal.series.unit, signal.end_s, read.warnings()) == ("g/kWh", 600.0, [])
        # and where nothing is said of what it is of
        assert read(json.dumps(answer), "any").series == signal.series
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
    series = read(text, "price").series
    assert series.values == pytest.approx((0.16098,)) and series.unit == "PLN/kWh"
    assert "states no unit" in read.refused("time,price,currency\n2024-01-01,160.98,PLN\n", "price")


def test_open_meteo(read):
    hours = {"time": ["2023-03-26T01:00", "2023-03-26T02:00", "2023-03-26T03:00"], "temperature_2m": [1.5, None, 2]}
    hours |= {"windspeed_10m": [17.7, 13.7, 13.6], "radiation": [0, 0, 1]}
    units = {"time": "iso8601", "temperature_2m": "°C", "windspeed_10m": "km/h", "radiation": "W/m²"}
    text = json.dumps({"utc_offset_seconds": 3600, "hourly_units": units, "hourly": hours})
    columns = "temperature_2m (temperature), windspeed_10m (speed), radiation (irr"
    assert read.refused(text, "power").startswith(f"no column of power among: {columns}")
    # its times have the offset of winter all year
    signal = read(text, column="windspeed_10m", tz="Europe/Berlin")
    assert (signal.begin, signal.series.times_s) == ("2023-03-26T00:00Z", (0.0, 3600.0, 7200.0))
    two = {"hourly": {"time": ["2023-01-01"], "a": [1]}, "daily": {"time": ["2023-01-01"], "a": [1]}}
    assert read.refused(json.dumps(two)) == "has 2 tables with times: hourly, daily; leave one of them in the file"


@pytest.mark.parametrize(
    "content", [{}, [], [1, 2], {"data": []}, {"data": [{"a": 1}]}, {"time": 3, "a": [[1]]}, [[{}]]]
)
def test_json_without_a_series(read, content):
    assert read.refused(json.dumps(content)).startswith("has no list of values with their times; give a list of")
    assert read.refused('{"data": [}').startswith("is not JSON")


def document(*series: str) -> str:
    root = "Publication_MarketDocument"
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="urn:x:7:0"><type>A44</type>'
    return f"{head}{''.join(series)}</{root}>"


def prices(points: dict[int, float], begin: str = "2023-05-06T22:00Z", end: str = "2023-05-07T02:00Z", **more) -> str:
    facts = {"curve": "A01", "resolution": "PT60M", "zone": "10YFR", "sequence": ""} | more
    position = "classificationSequence_AttributeInstanceComponent.position"
    sequence = f"<{position}>{facts['sequence']}</{position}>" if facts["sequence"] else ""
    rows = "".join(
        f"<Point><position>{at}</position><price.amount>{value}</price.amount></Point>" for at, value in points.items()
    )
    return (
        f"<TimeSeries>{sequence}<in_Domain.mRID codingScheme='A01'>{facts['zone']}</in_Domain.mRID>"
        "<currency_Unit.name>EUR</currency_Unit.name><price_Measure_Unit.name>MWH</price_Measure_Unit.name>"
        f"<curveType>{facts['curve']}</curveType><Period><timeInterval><start>{begin}</start><end>{end}</end>"
        f"</timeInterval><resolution>{facts['resolution']}</resolution>{rows}</Period></TimeSeries>"
    )


def test_entsoe_api(read):
    signal = read(document(prices({1: 106.78, 2: 95, 3: -1, 4: 0})), "price")
    assert signal.series.values == pytest.approx((0.10678, 0.095, -0.001, 0.0))
    assert (signal.begin, signal.end_s, signal.series.name) == ("2023-05-06T22:00Z", 14_400.0, "EUR/kWh")
    # a curve of blocks leaves out what does not change
    blocks = read(document(prices({1: 10, 3: 30}, curve="A03")), "price")
    assert blocks.series.values == pytest.approx((0.01, 0.01, 0.03, 0.03)) and read.warnings() == []
    later = prices({1: 5}, begin="2023-05-07T02:00Z", end="2023-05-07T03:00Z")
    assert read(document(prices({1: 1, 2: 2, 3: 3, 4: 4}), later), "price").end_s == 5 * 3600.0
    gap = read(document(prices({1: 10, 3: 30, 4: 40})), "price")
    assert gap.series.values == pytest.approx((0.01, 0.02, 0.03, 0.04))
    assert read.warnings()[0].startswith("1 values missing in 1 gap")


def test_periods_of_two_resolutions(read):
    """As any series across 1 October 2025: each value holds for the length of its own period."""
    hours = prices({1: 10, 2: 30}, end="2023-05-07T00:00Z")
    quarters = prices({1: 4, 2: 5, 3: 6, 4: 7}, begin="2023-05-07T00:00Z", end="2023-05-07T01:00Z", resolution="PT15M")
    signal = read(document(hours, quarters), "price")
    assert signal.series.times_s == (0.0, 3600.0, 7200.0, 8100.0, 9000.0, 9900.0) and signal.end_s == 10_800.0
    assert signal.series.values == pytest.approx((0.01, 0.03, 0.004, 0.005, 0.006, 0.007)) and read.warnings() == []
    # a missing hour is a gap after the hour before, bridged at its own step
    gap = read(document(prices({1: 10}, end="2023-05-06T23:00Z"), quarters), "price", gaps="hold")
    assert gap.series.times_s[:3] == (0.0, 3600.0, 7200.0) and gap.series.values[1] == 0.01
    assert "1 values missing in 1 gap" in read.warnings()[0]
    # blocks of quarter hours repeat what does not change
    blocks = prices({1: 4, 4: 7}, begin="2023-05-07T00:00Z", end="2023-05-07T01:00Z", resolution="PT15M", curve="A03")
    assert read(document(hours, blocks), "price").series.values[2:] == pytest.approx((0.004, 0.004, 0.004, 0.007))
    both = document(hours, quarters.replace("2023-05-07T00:00Z", "2023-05-06T23:45Z"))
    assert read.refused(both, "price").startswith("rows of 3600 s and 900 s overlap at 2023-05-06T23:45Z; choose one")
    assert read(both, "price", resolution="PT60M").series.values == pytest.approx((0.01, 0.03))
    assert "no resolution 'PT30M'" in read.refused(both, "price", resolution="PT30M")


def test_units_stated_once_are_of_columns_of_their_kind(read):
    text = "time,price,temperature,unit\n2024-01-01 00:00,50,3,EUR/MWh\n2024-01-01 01:00,60,4,EUR/MWh\n"
    assert read(text, "price").series.values == pytest.approx((0.05, 0.06))
    two = text.replace("60,4,EUR", "60,4,USD")
    assert "states no unit; write unit=EUR/MWh" in read.refused(two, "price")
    # what is stated of something else says nothing of a price
    assert "states no unit" in read.refused(text.replace("EUR/MWh", "kW"), "price")
    assert "states no unit" in read.refused(json.dumps(watttime("furlongs", "moer")), "carbon")
    odd = watttime("mg/kWh", "carbon_intensity")
    assert "unit 'mg/kWh' of column 'carbon_intensity' is not known" in read.refused(json.dumps(odd), "carbon")


def test_entsoe_api_zones_and_sequences(read):
    text = document(prices({1: 1}, zone="A"), prices({1: 2}, zone="B"))
    assert read.refused(text, "price").startswith("has 2 zones in column 'zone': A, B; choose one with zone=")
    assert read(text, "price", zone="B", end="2023-05-06T23:00Z").series.values == (0.002,)
    line = read.refused(document(prices({1: 1}, sequence="1"), prices({1: 2}, sequence="2")), "price")
    assert line.startswith("has 2 sequences in column 'sequence': 1, 2; choose one with sequence=")
    generation = (
        document(prices({1: 12, 2: 13, 3: 0, 4: 0}))
        .replace("price.amount", "quantity")
        .replace("<currency_Unit.name>EUR</currency_Unit.name>", "<MktPSRType><psrType>B16</psrType></MktPSRType>")
        .replace("price_Measure_Unit.name>MWH</price", "quantity_Measure_Unit.name>MAW</quantity")
    )
    assert read(generation, "power", zone="B16").series.values == (12e6, 13e6, 0.0, 0.0)
    assert "is of power, not of price" in read.refused(generation, "price")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a><b></a>", "is not well-formed XML"),
        ("<html></html>", "has no series: a document <html> without <TimeSeries>; ask the API for another document"),
        ("<A><Reason><text>No matching data</text></Reason></A>", "has no series: No matching data"),
        (document("<TimeSeries></TimeSeries>"), "has no points in its periods"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "entities and external references are refused"),
        (document(prices({5: 1})), "position '5' is not in 1..4; correct the file there"),
        (
            document(prices({5: 1})).replace("<position>5", "<position>" + "1" * 5001),
            "is not in 1..4; correct the file",
        ),
        (document(prices({1: 1}, resolution="P1M")), "has the resolution 'P1M'; a period needs two dates and a resolu"),
        (document(prices({1: 1}, begin="now")), "begins 'now'"),
        (document(prices({1: 1}, end="2023-05-06T22:00Z")), "ends '2023-05-06T22:00Z'"),
        (document(prices({1: 1}, end="9999-12-31T00:00Z", resolution="PT1S")), "steps, more than 10000000; correct"),
    ],
    ids=range(11),
)
def test_xml_that_is_refused(read, text, message):
    assert message in read.refused(text, "price")
