"""The shared files of sites: all forms read, and what is no power refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile

SITES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sites"

sites = pytest.mark.skipif(not SITES.is_dir(), reason="no series in ../shared/data/sites")


@sites
@pytest.mark.parametrize(
    ("name", "wanted", "more", "rows", "begin", "first"),
    [
        ("price/DE-LU_electricity_prices_2023.csv", "price", {}, 8760, "2023-01-01T00:00Z", -3.3622368e-3),
        (
            "price/processed-DE-LU_2023_local_EUR.csv",
            "price",
            {"tz": "Europe/Berlin"},
            8760,
            "2022-12-31T23:00Z",
            -5.17e-3,
        ),
        ("carbon/DE-LU_2023_hourly.csv", "carbon", {}, 8760, "2023-01-01T00:00Z", 185.8),
        ("carbon/DE-LU_2023_hourly.csv", "carbon", {"kind": "direct"}, 8760, "2023-01-01T00:00Z", 140.51),
        ("carbon/watttime-caiso-north-5min.csv", "carbon", {"unit": "g/kWh"}, 8928, "2023-06-08T00:00Z", 425.01605069),
        (
            "carbon/watttime-v3-historical_emissions_response.json",
            "carbon",
            {},
            2,
            "2022-07-15T00:00Z",
            870 * 0.45359237,
        ),
        ("carbon/gb-carbon-intensity-api.json", "carbon", {}, 48, "2023-03-13T03:00Z", 64.0),
        ("entsoe/old-FR-2022-spring.csv", "price", {}, 335, "2022-03-19T23:00Z", 0.21549),
        ("entsoe/old-FR-2022-autumn.csv", "price", {}, 337, "2022-10-22T22:00Z", 0.11066),
        ("entsoe/new-BE-2025-spring.csv", "price", {}, 284, "2025-03-28T23:00Z", 0.09967),
        ("entsoe/new-BE-2025-october.csv", "price", {}, 288, "2025-09-29T22:00Z", 0.08608),
        ("entsoe/new-BE-2025-autumn.csv", "price", {}, 292, "2025-10-24T22:00Z", 0.00398),
        ("entsoe/api-FR-prices.xml", "price", {}, 48, "2023-05-06T22:00Z", 0.10678),
        ("solar-wind/serf_east_15min_ac_power.csv", "power", {"unit": "W"}, 10_000, "2016-07-01T07:00Z", 0.0),
        ("solar-wind/nrel_RSF_II.csv", "power", {"column": "ac_power_kw_1137"}, 480, "2022-01-02T00:00Z", 0.0),
        ("solar-wind/vessim-solar-3days.csv", "power", {"column": "Hong Kong", "unit": "fraction"}, 864, "", 0.130865),
    ],
)
def test_files_of_sites(name, wanted, more, rows, begin, first):
    signal = read_signal(SignalFile(SITES / name, wanted=wanted, **more))
    assert (len(signal.series), signal.begin) == (rows, begin)
    assert signal.series.values[0] == pytest.approx(first, rel=1e-12)
    # no row is missing, none is twice
    assert signal.end_s == rows * signal.series.times_s[1]


@sites
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("solar-wind/open-meteo-frankfurt-2023.json", "no column of power among: temperature_2m (temperature)"),
        ("solar-wind/windpowerlib-weather-60days.csv", "line 2: is a second line of header: height, 0, 2, 10"),
        (
            "solar-wind/nrel_RSF_II.csv",
            "which column is meant, of: ac_power_kw_1137, inv2_ac_power_w__1047, inv2_dc_power",
        ),
        ("solar-wind/vessim-solar-3days.csv", "which column is meant, of: Berlin, Cape Town"),
        ("price/FR_electricity_prices_2023.csv", "column 'Price (USD/MWh)' is of price, not of power"),
        ("carbon/DE-LU_2023_hourly.csv", "is of carbon, not of power"),
    ],
)
def test_files_of_sites_that_hold_no_power(name, said):
    with pytest.raises(InputError) as caught:
        read_signal(SignalFile(SITES / name, wanted="power"))
    assert said in str(caught.value) and "\n" not in str(caught.value)
