"""What columns of signals are of, and their units: found, converted, refused."""

from __future__ import annotations

import pytest

from batwatt.errors import InputError
from batwatt.model.signal_units import declared_unit, kind_in, unit_in, unknown_unit


@pytest.mark.parametrize(
    ("name", "kind", "factor", "converted"),
    [
        ("power_kw", "power", 1e3, "power_w"),
        ("ac_power_kw_1137", "power", 1e3, "power_w"),
        ("inv2_ac_power_w__1047", "power", 1.0, "power_w"),
        ("Solar (MW)", "power", 1e6, "power_w"),
        ("powerkW", "power", 1e3, "power_w"),
        ("load_megawatts", "power", 1e6, "power_w"),
        ("Price (EUR/MWh)", "price", 1e-3, "EUR/kWh"),
        ("Day-ahead Price [EUR/MWh]", "price", 1e-3, "EUR/kWh"),
        ("price (EUR/MWH)", "price", 1e-3, "EUR/kWh"),
        ("price_usd_per_kwh", "price", 1.0, "USD/kWh"),
        ("price_per_mwh", "price", 1e-3, "money/kWh"),
        ("tariff ct/kWh", "price", 0.01, "EUR/kWh"),
        ("€/MWh", "price", 1e-3, "EUR/kWh"),
        ("Carbon intensity gCO₂eq/kWh (Life cycle)", "carbon", 1.0, "g/kWh"),
        ("lbs_co2_per_mwh", "carbon", 0.45359237, "g/kWh"),
        ("tCO2/MWh", "carbon", 1e3, "g/kWh"),
        ("kg/MWh", "carbon", 1.0, "g/kWh"),
        ("Energy kWh", "energy", 1e3, "Wh"),
        ("GHI (W/m²)", "irradiance", 1.0, "W/m2"),
        ("windspeed (km/h)", "speed", 1.0, ""),
        ("temperature (°C)", "temperature", 1.0, ""),
    ],
)
def test_units_in_names(name, kind, factor, converted):
    unit = unit_in(name)
    assert unit is not None and (unit.kind, unit.name) == (kind, converted)
    assert unit.factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("name", ["Berlin", "value", "forecast", "wind_east", "mwpower_", "swh", "1kg", "windows"])
def test_names_without_a_unit(name):
    assert unit_in(name) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ac_power", "power"),
        ("carbon_intensity", "carbon"),
        ("price", "price"),
        ("poa_irradiance__1055", "irradiance"),
        ("wind_speed__1051", "speed"),
        ("inv2_temp__1050", "temperature"),
        ("inv2_dc_current__1049", "electric current"),
        ("inv2_dc_voltage__1048", "voltage"),
        ("Low Carbon Percentage", "a share"),
        ("Berlin", None),
    ],
)
def test_what_columns_are_of(name, kind):
    assert kind_in(name) == kind


def test_units_are_declared_as_they_are_named():
    assert [declared_unit(text).factor for text in ("W", "kW", "MW", "g/kWh", "EUR/MWh", "%", "fraction")] == [
        1.0, 1e3, 1e6, 1.0, 1e-3, 0.01, 1.0,
    ]  # fmt: skip
    assert [declared_unit(text) for text in ("", "watt-hours", "kWh", "km/h", "power in kW")] == [None] * 5


def hours(name: str, *values: float) -> str:
    return f"datetime,{name}\n" + "".join(f"2024-01-01 0{hour}:00,{value}\n" for hour, value in enumerate(values))


def test_values_are_converted_where_it_is_said_what_they_are(read):
    signal = read(hours("Price (EUR/MWh)", 50, -2), "price")
    assert signal.series.values == pytest.approx((0.05, -0.002)) and signal.series.name == "EUR/kWh"
    assert read.warnings() == []
    # as the file has them where nothing is said: a threshold is in the file's unit
    assert read(hours("Price (EUR/MWh)", 50, -2)).series.values == (50.0, -2.0)
    assert read(hours("Preis", 50, -2), unit="ct/kWh").series.values == pytest.approx((0.5, -0.02))
    assert read(hours("power_kw", 1.5, 2), "power").series.values == (1500.0, 2000.0)
    assert read(hours("lbs_co2_per_mwh", 1000, 0), "carbon").series.values == pytest.approx((453.59237, 0.0))
    kept = read(hours("carbon_intensity", 412), "carbon")
    assert (kept.series.values, kept.series.name, read.warnings()) == ((412.0,), "carbon_intensity", [])


def test_a_unit_that_is_not_stated_is_refused(read):
    """160.98 EUR/MWh is not 160.98 money per kWh, and 0.3 may be USD/kWh or EUR/kWh, or a share."""
    for value in (0.3, 160.98):
        said = read.refused(hours("price", value), "price")
        hint = "write unit=EUR/MWh or unit=ct/kWh, or the unit into the name of the column"
        assert said == f"column 'price' (values to {value:g}) states no unit; {hint}"
    signal = read(hours("price", 160.98), "price", unit="EUR/MWh").series
    assert signal.values == (pytest.approx(0.16098),) and signal.unit == "EUR/kWh" and read.warnings() == []
    assert read(hours("price", 0.3), "price", unit="money/kWh").series.unit == "money/kWh"
    said = read.refused(hours("ac_power", 300, 2), "power")
    assert said.startswith("column 'ac_power' (values to 300) states no unit; write unit=W or unit=kW, or")
    assert read(hours("ac_power", 300, 2), "power", unit="kW").series.values == (3e5, 2e3)
    assert "states no unit; write unit=g/kWh or unit=lb/MWh" in read.refused(hours("value", 400), "carbon")
    # a share of its mean is the same in any unit
    ratios = read(hours("price", 300), "price", ratios=True).series
    assert (ratios.values, ratios.unit) == ((300.0,), "?")


def test_series_have_units(read):
    for name, wanted, unit in (
        ("power_w", "any", "W"), ("load (MW)", "any", "W"), ("Price (USD/MWh)", "any", "USD/kWh"),
        ("carbon_intensity", "any", "g/kWh"), ("tariff p/kWh", "price", "GBP/kWh"), ("fraction", "any", "fraction"),
        ("soc (%)", "any", "fraction"), ("energy_kwh", "any", "Wh"), ("value", "any", "?"), ("value", None, ""),
    ):  # fmt: skip
        assert read(hours(name, 1, 2), wanted).series.unit == unit, name
    assert read(hours("load (MW)", 1, 2), "any").series.values == (1e6, 2e6)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("cts/kWh", 0.01), ("ore/kWh", 0.01), ("öre/kWh", 0.01), ("¢/kWh", 0.01), ("US$/MWh", 1e-3), ("NOK/MWh", 1e-3),
        ("k€/MWh", None), ("kEUR/MWh", None), ("ct€/kWh", None), ("ton/MWh", None), ("avg/kWh", None),
    ],
)  # fmt: skip
def test_hundredths_and_thousands_of_currencies(name, factor):
    """A hundredth is not taken for the whole, nor a thousand for one."""
    unit = unit_in(name)
    assert (None if unit is None else unit.factor) == (None if factor is None else pytest.approx(factor))


def test_milliwatts_are_no_megawatts(read):
    assert unit_in("power (mW)") is None and declared_unit("mW") is None and unit_in("load_mw").factor == 1e6
    assert "unit 'mW' of column 'power (mW)' is not known" in read.refused(hours("power (mW)", 3000), "power")


def test_values_beyond_all_bounds(read):
    for name, more in (("power_kw", {}), ("power", {"unit": "MW"})):
        with pytest.raises(InputError) as caught:
            read(hours(name, 5, 1e308), "power", **more)
        assert str(caught.value).endswith(f"row 2: {name} 1e+308 is more than 1e+15 W; correct the value")


def test_fractions_of_a_peak(read):
    said = read.refused(hours("Berlin", 0.25, 1), "power")
    assert said.endswith("states no unit; write unit=W or unit=kW, unit=fraction, or peak_w= for what 1 stands for")
    signal = read(hours("Berlin", 0.25, 1), "power", ratios=True)
    assert (signal.series.values, signal.series.name) == ((0.25, 1.0), "fraction")
    assert read.warnings() == ["column 'Berlin' states no unit and reaches 1 at most: taken as fractions of a peak"]
    assert read(hours("Berlin", 0.25, 1), "power", unit="kW").series.values == (250.0, 1000.0)
    assert read(hours("sun", 25, 100), "power", unit="%").series.values == (0.25, 1.0)
    assert read(hours("fraction", 0.25, 1.2), "power").series.name == "fraction"


def test_nights_below_zero(read):
    assert read(hours("pv_w", -2.5, -1, 400), "power").series.values == (0.0, 0.0, 400.0)
    assert read.warnings() == ["2 values below 0 (to -2.5) taken as 0"]
    assert read(hours("price (EUR/kWh)", -2.5), "price").series.values == (-2.5,)
    said = read.refused(hours("pv_w", -400, 2), "power")
    assert said == "power is in [-400, 2], more below 0 than above; give what is produced, as positive numbers"


@pytest.mark.parametrize(
    ("name", "wanted", "more", "said"),
    [
        ("Price (USD/MWh)", "power", {}, "column 'Price (USD/MWh)' is of price, not of power; name a column of power"),
        ("power_kw", "carbon", {}, "column 'power_kw' is of power, not of carbon; name a column of carbon"),
        ("energy_kwh", "power", {}, "column 'energy_kwh' is of energy, not of power"),
        ("ghi (W/m²)", "power", {}, "column 'ghi (W/m²)' is of irradiance, not of power"),
        ("x", "power", {"unit": "EUR/MWh"}, "column 'x' is of price, not of power"),
        ("x", "power", {"unit": "horses"}, "unit 'horses' is not known; write for instance unit=kW"),
        ("fraction", "carbon", {}, "column 'fraction' is of a fraction, not of carbon"),
    ],
)
def test_kinds_that_are_wrong(read, name, wanted, more, said):
    assert read.refused(hours(name, 1, 2), wanted, **more).startswith(said)


def test_columns_are_chosen_by_what_is_wanted(read):
    text = "time,price (EUR/MWh),load (MW),temperature (°C)\n2024-01-01,50,3,-4\n2024-01-02,60,4,-5\n"
    assert read(text, "power").series.values == (3e6, 4e6)
    assert read(text, "price").series.values == pytest.approx((0.05, 0.06))
    said = read.refused(text, "carbon")
    assert said.startswith("column 'price (EUR/MWh)' is of price, not of carbon")
    said = read.refused("time,a_kw,b_kw,price\n2024-01-01,1,2,3\n", "power")
    assert said == "which column is meant, of: a_kw, b_kw?; name it with column="
    said = read.refused("time,temp (°C),wind_speed\n2024-01-01,1,2\n", "power")
    assert said.startswith("no column of power among: temp (°C) (temperature), wind_speed (speed); take another file")


def test_columns_of_one_name(read):
    text = "time,power_kw,power_kw\n2024-01-01,1,2\n"
    assert read.refused(text, "power") == "2 columns are called 'power_kw'; rename all but one in the first line"
    assert read.refused(text, column="power_kw").startswith("2 columns are called 'power_kw'")


def test_a_column_without_values_is_named_as_the_file_has_it(read):
    for name in ("output", "power (kW)"):
        said = read.refused(f"time,{name}\n2024-01-01,\n2024-01-02,\n", "power", column=name)
        assert said == f"no value in column {name!r}; choose another with column="


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_header_longer_than_a_cell_may_be(read, separator):
    header = separator.join(["time", "carbon_intensity", "x" * 200_000])
    said = read.refused(f"{header}\n" + separator.join(["2024-01-01", "5", "1"]) + "\n")
    assert said.startswith("is not CSV (field larger than field limit (131072))")


def test_a_second_line_of_header(read):
    text = "variable,pressure,wind_speed\nheight,0,10\n2010-01-01 00:00:00+01:00,98405.7,5.3\n"
    with pytest.raises(InputError, match=r"s.txt: line 2: is a second line of header: height, 0, 10; name each column"):
        read(text)


def test_energy_of_a_meter_is_no_power(read):
    said = read.refused(hours("consumption (kWh)", 1, 2), "power")
    assert said.endswith("is of energy, not of power; divide it by the hours of a row, and name it in kW")
    assert "unit 'kWh' is not known" in read.refused(hours("consumption", 1, 2), "power", unit="kWh")


@pytest.mark.parametrize(
    ("name", "wanted", "unit", "stated"),
    [
        ("price (EUR/MWh)", "price", "EUR/kWh", "EUR/MWh"),
        ("price (EUR/MWh)", "price", "ct/kWh", "EUR/MWh"),
        ("price (EUR/MWh)", "price", "USD/MWh", "EUR/MWh"),
        ("price (EUR/MWh)", "price", "money/kWh", "EUR/MWh"),
        ("price (EUR/MWh)", None, "EUR/kWh", "EUR/MWh"),
        ("power_kw", "power", "W", "kw"),
        ("power_kw", "power", "MW", "kw"),
        ("lbs_co2_per_mwh", "carbon", "g/kWh", "lbs_co2_per_mwh"),
        ("load (%)", "power", "fraction", "%"),
    ],
)
def test_a_unit_that_contradicts_that_of_the_file_is_refused(read, name, wanted, unit, stated):
    said = read.refused(hours(name, 50, 60), wanted, unit=unit)
    hint = "leave out unit=, or rename the column if its unit is wrong"
    assert said == f"column {name!r} is in {stated} by the file, but in {unit} by unit=; {hint}"


def test_a_unit_that_contradicts_a_column_of_units_is_refused(read):
    text = "time,value,unit\n2024-01-01,50,EUR/MWh\n2024-01-02,60,EUR/MWh\n"
    said = read.refused(text, "price", unit="EUR/kWh")
    assert said.startswith("column 'value' is in EUR/MWh by the file, but in EUR/kWh by unit=")


@pytest.mark.parametrize(
    ("name", "wanted", "unit", "value"),
    [
        ("price (EUR/MWh)", "price", "€/MWh", 0.05),
        ("price (EUR/MWh)", "price", "money/MWh", 0.05),
        ("price_per_mwh", "price", "EUR/MWh", 0.05),
        ("price (ct/kWh)", "price", "cent/kWh", 0.5),
        ("kg/MWh", "carbon", "g/kWh", 50.0),
        ("power_kw", "power", "kW", 5e4),
        ("load (%)", "power", "%", 0.5),
    ],
)
def test_a_unit_that_says_what_the_file_states_passes(read, name, wanted, unit, value):
    assert read(hours(name, 50, 60), wanted, unit=unit).series.values[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "wanted", "unit", "hint"),
    [
        ("tariff c/kWh", "price", "c/kWh", "EUR/MWh or unit=ct/kWh"),
        ("price (mills/kWh)", "price", "mills/kWh", "EUR/MWh or unit=ct/kWh"),
        ("price [$/therm]", "price", "$/therm", "EUR/MWh or unit=ct/kWh"),
        ("carbon_intensity (g/MJ)", "carbon", "g/MJ", "g/kWh or unit=lb/MWh"),
        ("power (mW)", "power", "mW", "W or unit=kW"),
        ("power (kVA)", "power", "kVA", "W or unit=kW"),
    ],
)
def test_a_unit_that_is_not_known_is_named(read, name, wanted, unit, hint):
    said = read.refused(hours(name, 30, 60), wanted)
    rest = f"write unit={hint}, or the unit into the name of the column"
    assert said == f"unit {unit!r} of column {name!r} is not known; {rest}"


@pytest.mark.parametrize("name", ["price", "Caiso_North", "power W north", "load (PV)", "carbon intensity (Direct)"])
def test_names_without_an_unknown_unit(name):
    assert unknown_unit(name) is None


@pytest.mark.parametrize("name", ["power (%)", "load_percent"])
def test_a_share_of_a_peak(read, name):
    assert read(hours(name, 25, 100), "power", ratios=True).series.values == (0.25, 1.0)
    said = read.refused(hours(name, 25, 100), "power")
    assert said == f"column {name!r} is of a share, not of power; write unit=%, and peak_w= for what 100 % stands for"
    # the charge of a battery and humidity are no power
    assert "'soc (%)' is of a share, not of power" in read.refused(hours("soc (%)", 25, 100), "power", ratios=True)
