"""Answers of APIs, in JSON and XML."""

from __future__ import annotations

import json

import pytest

from batwatt.errors import InputError

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
    ahead = json.loads(json.dumps(BRITISH))
    for row in ahead["data"]:
        row["intensity"]["actual"] = None
    assert read(json.dumps(ahead), "carbon").series.values == (60, 61, 62, 63)
    region = {"data": [{"regionid": 3, "data": BRITISH["data"]}]}
    assert read(json.dumps(region), "carbon").series == signal.series
    assert "is of carbon, not of price" in read.refused(json.dumps(BRITISH), "price")


def test_watttime(read):
    rows = [
        {"point_time": f"2022-07-15T00:0{5 * k}:00+00:00", "value": 870 - 10 * k, "imputed": True} for k in range(2)
    ]
    answer = {
        "data": rows,
        "meta": {"warnings": [{"type": "A", "message": "b"}], "units": "lbs_co2_per_mwh", "signal_type": "co2_moer"},
    }
    signal = read(json.dumps(answer), "carbon")
    assert signal.series.values == pytest.approx((870 * 0.45359237, 860 * 0.45359237)) and signal.end_s == 600.0
    assert read.warnings() == []
    assert "column 'value' is of carbon, not of price" in read.refused(json.dumps(answer), "price")
    text = "oootime,Caiso_North\n2023-06-08 00:00:00,425.0\n2023-06-08 00:05:00,432.0\n"
    assert read(text, "carbon").series.values == (425.0, 432.0)
    assert read.warnings() == ["column 'Caiso_North' names no unit, taken as g/kWh"]


def test_electricity_maps_api(read):
    rows = [{"zone": "DE", "carbonIntensity": 300 + k, "datetime": f"2024-01-01T0{k}:00:00.000Z"} for k in range(3)]
    signal = read(json.dumps({"zone": "DE", "history": rows}), "carbon")
    assert (signal.series.values, read.warnings()) == ((300, 301, 302), [])


def test_open_meteo(read):
    answer = {
        "utc_offset_seconds": 3600,
        "hourly_units": {"time": "iso8601", "temperature_2m": "°C", "windspeed_10m": "km/h", "radiation": "W/m²"},
        "hourly": {
            "time": ["2023-03-26T01:00", "2023-03-26T02:00", "2023-03-26T03:00"],
            "temperature_2m": [1.5, None, 2],
            "windspeed_10m": [17.7, 13.7, 13.6],
            "radiation": [0, 0, 1],
        },
    }
    said = read.refused(json.dumps(answer), "power")
    assert said.startswith(
        "no column of power among: temperature_2m (temperature), windspeed_10m (speed), radiation (irr"
    )
    # its times have the offset of winter all year
    signal = read(json.dumps(answer), column="windspeed_10m", tz="Europe/Berlin")
    assert (signal.begin, signal.series.times_s) == ("2023-03-26T00:00Z", (0.0, 3600.0, 7200.0))
    two = {"hourly": {"time": ["2023-01-01"], "a": [1]}, "daily": {"time": ["2023-01-01"], "a": [1]}}
    assert read.refused(json.dumps(two)) == "has 2 tables with times: hourly, daily; leave one of them in the file"


@pytest.mark.parametrize(
    "content", [{}, [], [1, 2], {"data": []}, {"data": [{"a": 1}]}, {"time": 3, "a": [[1]]}, [[{}]]]
)
def test_json_without_a_series(read, content):
    assert read.refused(json.dumps(content)).startswith("has no list of values with their times; give a list of")


def test_json_that_is_none(read):
    assert read.refused('{"data": [}').startswith("is not JSON")
    with pytest.raises(InputError, match="row 2: time 'x' is not a date"):
        read('[{"time": "2024-01-01", "a_kw": 1}, {"time": "x", "a_kw": 2}]', "power")


def document(*series: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Publication_MarketDocument xmlns="urn:x:7:0"><type>A44</type>'
        + "".join(series)
        + "</Publication_MarketDocument>"
    )


def prices(
    points: dict[int, float | str], *, begin: str = "2023-05-06T22:00Z", end: str = "2023-05-07T02:00Z", **more
) -> str:
    one = {"curve": "A01", "resolution": "PT60M", "zone": "10YFR", "sequence": ""} | more
    position = "classificationSequence_AttributeInstanceComponent.position"
    sequence = f"<{position}>{one['sequence']}</{position}>" if one["sequence"] else ""
    return (
        f"<TimeSeries>{sequence}<in_Domain.mRID codingScheme='A01'>{one['zone']}</in_Domain.mRID>"
        "<currency_Unit.name>EUR</currency_Unit.name><price_Measure_Unit.name>MWH</price_Measure_Unit.name>"
        f"<curveType>{one['curve']}</curveType><Period><timeInterval><start>{begin}</start><end>{end}</end></timeInterval>"
        f"<resolution>{one['resolution']}</resolution>"
        + "".join(
            f"<Point><position>{at}</position><price.amount>{value}</price.amount></Point>"
            for at, value in points.items()
        )
        + "</Period></TimeSeries>"
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


def test_entsoe_api_zones_and_sequences(read):
    text = document(prices({1: 1}, zone="A"), prices({1: 2}, zone="B"))
    assert read.refused(text, "price").startswith("has 2 zones in column 'zone': A, B; choose one with zone=")
    assert read(text, "price", zone="B", end="2023-05-06T23:00Z").series.values == (0.002,)
    text = document(prices({1: 1}, sequence="1"), prices({1: 2}, sequence="2"))
    assert read.refused(text, "price").startswith(
        "has 2 sequences in column 'sequence': 1, 2; choose one with sequence="
    )


def test_entsoe_api_generation(read):
    text = (
        document(prices({1: 12, 2: 13, 3: 0, 4: 0}))
        .replace("price.amount", "quantity")
        .replace("<currency_Unit.name>EUR</currency_Unit.name>", "<MktPSRType><psrType>B16</psrType></MktPSRType>")
        .replace("price_Measure_Unit.name>MWH</price", "quantity_Measure_Unit.name>MAW</quantity")
    )
    assert read(text, "power").series.values == (12e6, 13e6, 0.0, 0.0)
    assert read(text, "power", zone="B16").end_s == 14_400.0
    assert "is of power, not of price" in read.refused(text, "price")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a><b></a>", "is not well-formed XML"),
        ("<html></html>", "has no series: a document <html> without <TimeSeries>; ask the API for another document"),
        ("<A><Reason><text>No matching data</text></Reason></A>", "has no series: No matching data"),
        (document("<TimeSeries></TimeSeries>"), "has no points in its periods"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "entities and external references are refused"),
    ],
)
def test_xml_that_is_refused(read, text, said):
    assert read.refused(text).startswith(said)


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (prices({5: 1}), "position '5' is not in 1..4; correct the file there"),
        (
            prices({1: 1}, resolution="P1M"),
            "has the resolution 'P1M'; a period needs two dates and a resolution such as",
        ),
        (prices({1: 1}, end="2023-05-06T22:00Z"), "ends '2023-05-06T22:00Z'"),
        (prices({1: 1}, begin="now"), "begins 'now'"),
        (prices({1: 1}, end="9999-12-31T00:00Z", resolution="PT1S"), "steps, more than 10000000; correct the dates"),
        (prices({1: "x"}), "row 1: price (EUR/MWH) 'x' is not a finite number"),
    ],
)
def test_periods_that_are_refused(read, series, said):
    with pytest.raises(InputError) as caught:
        read(document(series), "price", column="price (EUR/MWH)")
    assert said in str(caught.value) and "\n" not in str(caught.value)
