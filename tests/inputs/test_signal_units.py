"""What columns of signals are of, their numbers and units: found, converted, refused."""

from __future__ import annotations

import pytest
from files_of_tests import refusal, written

from batwatt.inputs.spec import parse_series
from batwatt.model.signal import declared_unit, kind_in, unit_in
from batwatt.studies.yaml_model import MAX_VALUES, Declared, parse_declared


@pytest.mark.parametrize(
    ("name", "kind", "factor", "converted"),
    [
        ("power_kw", "power", 1e3, "power_w"),
        ("inv2_ac_power_w__1047", "power", 1.0, "power_w"),
        ("Solar (MW)", "power", 1e6, "power_w"),
        ("load_megawatts", "power", 1e6, "power_w"),
        ("Price (EUR/MWh)", "price", 1e-3, "EUR/kWh"),
        ("price_usd_per_kwh", "price", 1.0, "USD/kWh"),
        ("price_per_mwh", "price", 1e-3, "money/kWh"),
        ("tariff ct/kWh", "price", 0.01, "EUR/kWh"),
        ("€/MWh", "price", 1e-3, "EUR/kWh"),
        ("US$/MWh", "price", 1e-3, "USD/kWh"),
        ("öre/kWh", "price", 0.01, "money/kWh"),
        ("Carbon intensity gCO₂eq/kWh (Life cycle)", "carbon", 1.0, "g/kWh"),
        ("lbs_co2_per_mwh", "carbon", 0.45359237, "g/kWh"),
        ("tCO2/MWh", "carbon", 1e3, "g/kWh"),
        ("Energy kWh", "energy", 1e3, "Wh"),
        ("GHI (W/m²)", "irradiance", 1.0, "W/m2"),
        ("windspeed (km/h)", "speed", 1.0, ""),
        ("temperature (°C)", "temperature", 1.0, ""),
    ],
)
def test_units_in_names(name, kind, factor, converted):
    unit = unit_in(name)
    assert unit is not None and (unit.kind, unit.name) == (kind, converted) and kind_in(name) == kind
    assert unit.factor == pytest.approx(factor, rel=1e-12)


def test_names_without_a_unit():
    """A hundredth is not taken for the whole, nor a thousand for one."""
    unknown = ("k€/MWh", "kEUR/MWh", "ct€/kWh", "ton/MWh", "avg/kWh", "power (mW)")
    plain = ("Berlin", "value", "forecast", "wind_east", "mwpower_", "swh", "1kg", "windows")
    assert {unit_in(name) for name in (*unknown, *plain)} == {None}
    kinds = {"ac_power": "power", "carbon_intensity": "carbon", "price": "price", "wind_speed__1051": "speed"}
    kinds |= {"inv2_dc_current__1049": "electric current", "Low Carbon Percentage": "a share", "Berlin": None}
    assert {name: kind_in(name) for name in kinds} == kinds


def test_units_are_declared_as_they_are_named():
    factors = {"W": 1.0, "kW": 1e3, "MW": 1e6, "g/kWh": 1.0, "EUR/MWh": 1e-3, "%": 0.01, "fraction": 1.0}
    assert {text: declared_unit(text).factor for text in factors} == factors
    assert [declared_unit(text) for text in ("", "watt-hours", "kWh", "km/h", "power in kW")] == [None] * 5


def hours(name: str, *values: float | str) -> str:
    return f"datetime,{name}\n" + "".join(f"2024-01-01 0{hour}:00,{value}\n" for hour, value in enumerate(values))


def test_values_are_converted_to_the_unit_of_the_kind_that_is_asked_for(read):
    signal = read(hours("Price (EUR/MWh)", 50, -2), "price")
    assert signal.values == pytest.approx((0.05, -0.002)) and signal.name == "EUR/kWh"
    # a file's own values without a kind: a threshold is in the file's unit
    assert read(hours("Price (EUR/MWh)", 50, -2)).values == (50.0, -2.0)
    assert read(hours("Preis", 50, -2), unit="ct/kWh").values == pytest.approx((0.5, -0.02))
    assert read(hours("power_kw", 1.5, 2), "power").values == (1500.0, 2000.0)
    assert read(hours("lbs_co2_per_mwh", 1000, 0), "carbon").values == pytest.approx((453.59237, 0.0))
    carbon = read(hours("carbon_intensity", 412), "carbon")
    assert (carbon.values, carbon.name, read.warnings()) == ((412.0,), "carbon_intensity", [])


def test_a_unit_that_is_not_stated_is_refused(read):
    """160.98 EUR/MWh is not 160.98 money per kWh, and 0.3 may be USD/kWh or EUR/kWh, or a share."""
    for value in (0.3, 160.98):
        line = read.refused(hours("price", value), "price")
        hint = "write unit=EUR/MWh or unit=ct/kWh, or the unit into the name of the column"
        assert line == f"column 'price' (values to {value:g}) states no unit; {hint}"
    series = read(hours("price", 160.98), "price", unit="EUR/MWh")
    assert series.values == (pytest.approx(0.16098),) and series.unit == "EUR/kWh" and read.warnings() == []
    assert read(hours("price", 0.3), "price", unit="money/kWh").unit == "money/kWh"
    assert "(values to 300) states no unit; write unit=W or unit=kW, or" in read.refused(hours("x", 300, 2), "power")
    assert "states no unit; write unit=g/kWh or unit=lb/MWh" in read.refused(hours("value", 400), "carbon")
    # a share of its mean is the same in any unit
    ratios = read(hours("price", 300), "price", relative=True)
    assert (ratios.values, ratios.unit) == ((300.0,), "?")


def test_fractions_and_shares_of_a_peak(read):
    line = read.refused(hours("Berlin", 0.25, 1), "power")
    assert line.endswith("states no unit; write unit=W or unit=kW, unit=fraction, or peak_w= for what 1 stands for")
    series = read(hours("Berlin", 0.25, 1), "power", relative=True)
    assert (series.values, series.name) == ((0.25, 1.0), "fraction")
    assert read.warnings() == ["column 'Berlin' states no unit: 1 stands for the peak"]
    assert read(hours("Berlin", 0.25, 1), "power", unit="kW").values == (250.0, 1000.0)
    assert read(hours("sun", 25, 100), "power", unit="%").values == (0.25, 1.0)
    assert read(hours("fraction", 0.25, 1.2), "power").name == "fraction"
    for name in ("power (%)", "load_percent"):
        assert read(hours(name, 25, 100), "power", relative=True).values == (0.25, 1.0)
        line = read.refused(hours(name, 25, 100), "power")
        assert line.endswith("is of a share, not of power; write unit=%, and peak_w= for what 100 % stands for")
    # the charge of a battery and humidity are no power
    assert "'soc (%)' is of a share, not of power" in read.refused(hours("soc (%)", 25, 100), "power", relative=True)
    # an inverter draws power at night
    assert read(hours("pv_w", -2.5, -1, 400), "power").values == (0.0, 0.0, 400.0)
    assert read.warnings() == ["2 values below 0 (to -2.5) taken as 0"]
    assert read(hours("price (EUR/kWh)", -2.5), "price").values == (-2.5,)
    assert "power is in [-400, 2], more below 0 than above" in read.refused(hours("pv_w", -400, 2), "power")


STATED = "by unit=; leave out unit=, or rename the column if its unit is wrong"
NAMED = "or the unit into the name of the column"


@pytest.mark.parametrize(
    ("name", "quantity", "options", "message"),
    [
        ("Price (USD/MWh)", "power", {}, "column 'Price (USD/MWh)' is of price, not of power; name a column of power"),
        ("used (kWh)", "power", {}, "of energy, not of power; divide it by the hours of a row, and name it in kW"),
        ("x", "power", {"unit": "horses"}, "unit 'horses' is not known; write for instance unit=kW"),
        ("fraction", "carbon", {}, "column 'fraction' is of a fraction, not of carbon"),
        ("price (EUR/MWh)", "price", {"unit": "money/kWh"}, f"is in EUR/MWh by the file, but in money/kWh {STATED}"),
        ("price (mills/kWh)", "price", {}, "unit 'mills/kWh' of column 'price (mills/kWh)' is not known"),
        ("power (mW)", "power", {}, f"unit 'mW' of column 'power (mW)' is not known; write unit=W or unit=kW, {NAMED}"),
    ],
)
def test_refused_kinds_and_units(read, name, quantity, options, message):
    assert message in refusal(read, hours(name, 50, 60), quantity, **options)


def test_refused_values(read):
    line = read.refused(hours("power_kw", 50, 1e308), "power")
    assert "line 3: power_kw 1e+308 is more than 1e+15 W; correct the value" in line
    assert "line 3: x 1e+308 is more than 1e+15 W" in read.refused(hours("x", 50, 1e308), "power", unit="MW")
    line = read.refused(hours("out", "", ""), "power", column="out")
    assert "no value in column 'out'; choose another with column=" in line
    line = read.refused("time,value,unit\n2024-01-01,50,EUR/MWh\n2024-01-02,60,EUR/MWh\n", "price", unit="EUR/kWh")
    assert line.startswith("column 'value' is in EUR/MWh by the file, but in EUR/kWh by unit=")


def test_columns_are_chosen_by_kind(read):
    text = "time,price (EUR/MWh),load (MW),temperature (°C)\n2024-01-01,50,3,-4\n2024-01-02,60,4,-5\n"
    assert read(text, "power").values == (3e6, 4e6)
    assert read(text, "price").values == pytest.approx((0.05, 0.06))
    assert read.refused(text, "carbon").startswith("column 'price (EUR/MWh)' is of price, not of carbon")
    line = read.refused("time,a_kw,b_kw,price\n2024-01-01,1,2,3\n", "power")
    assert line == "which column is meant, of: a_kw, b_kw?; name it with column="
    # a slash alone does not make the only carbon of a station of weather
    text = "time,GHI (W/m2),dose [kWhr/m^2],temperature\n2024-01-01,1,2,3\n2024-01-02,1,2,3\n"
    assert read.refused(text, "any").startswith("which column is meant, of: GHI (W/m2), dose [kWhr/m^2], temperature?")
    line = read.refused(text, "carbon", relative=True)
    assert line.startswith("no column of carbon among: GHI (W/m2) (irradiance), dose [kWhr/m^2] (a ratio), temperature")
    assert read("time,t,lb/MWh\n2024-01-01,1,1000\n2024-01-02,1,1000\n", "any").values == pytest.approx([453.59237] * 2)
    assert read("time,t,MOER/unit\n2024-01-01,1,2\n2024-01-02,1,2\n", "any").values == (2.0, 2.0)
    text = "time,power_kw,power_kw\n2024-01-01,1,2\n"
    assert read.refused(text, "power") == "2 columns are called 'power_kw'; rename all but one in the first line"
    assert read.refused(text, column="power_kw").startswith("2 columns are called 'power_kw'")
    line = read.refused("time,temp (°C),wind_speed\n2024-01-01,1,2\n", "power")
    assert line.startswith("no column of power among: temp (°C) (temperature), wind_speed (speed); take another file")


@pytest.mark.parametrize(
    ("name", "quantity", "unit", "value"),
    [
        ("price (EUR/MWh)", "price", "money/MWh", 0.05),
        ("price_per_mwh", "price", "EUR/MWh", 0.05),
        ("kg/MWh", "carbon", "g/kWh", 50.0),
        ("load (%)", "power", "%", 0.5),
    ],
)
def test_a_unit_that_says_what_the_file_states_passes(read, name, quantity, unit, value):
    assert read(hours(name, 50, 60), quantity, unit=unit).values[0] == pytest.approx(value)


# cells and headers


def table(*cells: str, header: str = "datetime,carbon_intensity", separator: str = ",") -> str:
    rows = [f"2024-01-01 0{hour}:00{separator}{cell}\n" for hour, cell in enumerate(cells)]
    return f"{header}\n" + "".join(rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table("395,7", "400,1"), "line 2: has 3 fields where the header names 2; name all columns, and write 395.7"),
        (table("1;2", header="time;price", separator=";"), "line 2: has 3 fields where the header names 2"),
        ("time_s value\n0 395 7\n1 396 2\n", "line 2: has 3 fields where the header names 2"),
        ("time,zone,zone,price\n2024-01-01,a,b,1\n", "2 columns are called 'zone'; rename all but one in the first"),
        ("variable,pressure,wind\nheight,0,10\n2010-01-01,98405.7,5\n", "line 2: is a second line of header: hei"),
        # longer than a cell may be
        (f"time,x,{'x' * 200_000}\n2024-01-01,5,1\n", "line 1: is not CSV (field larger than field limit (131072))"),
    ],
    ids=range(6),
)
def test_headers_and_rows_that_are_refused(read, text, message):
    assert read.refused(text).startswith(message)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("395,7", "-0,5", "1e3"), (395.7, -0.5, 1000.0)),
        (("1.234,56", "1.234.567,8", "7"), (1234.56, 1_234_567.8, 7.0)),
        (("1\u00a0234,5", "12,25"), (1234.5, 12.25)),
    ],
)
def test_decimal_commas(read, cells, values):
    for separator in (";", "\t"):
        text = table(*cells, header=f"datetime{separator}carbon_intensity", separator=separator)
        assert read(text).values == values
    assert read(table(*(f'"{cell}"' for cell in cells))).values == values
    assert read("sep=;\n" + text.replace("\t", ";")).values == values


def test_separators_of_thousands(read):
    assert read(table('"1,234.5"', '"7"')).values == (1234.5, 7.0)
    assert read(table('"1,234,567"', '"1,234"')).values == (1_234_567.0, 1234.0)
    # semicolons separate columns where the comma is that of decimals
    german = table("12,345", "1,500", header="datetime;power (kW)", separator=";")
    assert read(german, "power").values == (12_345.0, 1500.0)


@pytest.mark.parametrize("cells", [('"12,345"', '"1,500"'), ('"395,7"', "395.7"), ('"1,23,4"',)])
def test_commas_that_may_be_either_are_refused(read, cells):
    assert "is not a finite number; write a decimal point, and nothing betw" in read.refused(table(*cells))


def test_a_budget_needs_no_unit_but_a_column_of_its_kind(tmp_path):
    power = written(tmp_path, table("1", "2", "3", header="datetime,ac_power"), "power.csv")
    plain = written(tmp_path, table("1", "2", "3", header="datetime,value"), "plain.csv")
    line = refusal(parse_series("machines", f"carbon:{power},budget=0.7").timeline, None, 3600.0, 10)
    assert "is of power, not of carbon; name a column of carbon, or take another" in line
    assert parse_series("machines", f"stranded:{power},threshold=2").timeline(None, 3600.0, 10).values[0] == 10
    assert len(parse_series("machines", f"carbon:{plain},budget=0.7").timeline(None, 3600.0, 10)) == 3


# aliases and keys of YAML

BOMB = "options:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, f"line 6: has more than {MAX_VALUES} values, aliases written out; correct the YAML"),
        ("options: {a: &a {x: 1}}\nb: &b {<<: *b}\n", "line 2: contains itself; correct the YAML"),
        ('a: 1\nb: {"\\udfff x": 2}', r"line 2: holds half of a surrogate pair (\ud...); correct the YAML"),
        ("options:\n  ? [a]\n  : 3\n", "line 2: a key must be a text, not a list or a mapping; correct the YAML"),
    ],
)
def test_yaml_that_is_refused(text, message):
    assert refusal(parse_declared, text, "c.yaml", Declared) == f"c.yaml: {message}"


@pytest.mark.parametrize("name", ["solar_btm_mwh", "net_gen_mwh", "wind_act_mwh", "use_kwh"])
def test_three_letters_before_an_energy_are_no_currency(read, name):
    assert f"column '{name}' is of energy, not of price" in read.refused(hours(name, 5, 7), "price")


@pytest.mark.parametrize(
    "name", ["price_eur_mw", "price [EUR/MW]", "capacity_price (EUR/MW)", "cost_eur_per_mw", "price_usd_kw"]
)
def test_prices_of_power_are_neither_power_nor_prices_of_energy(read, name):
    for quantity in ("power", "price"):
        assert f"column '{name}' is of a price of power, not of {quantity}" in read.refused(hours(name, 5, 7), quantity)


def test_units_in_columns_of_other_names(read):
    """A column of units for one column says nothing of others; MWh by any name is energy."""
    rows = "2024-01-01T00:00Z,50,MWh\n2024-01-01T01:00Z,60,MWh\n"
    for name in ("Quantity Measurement Unit Name", "value-units", "Infeed_unit"):
        text = f"time,Infeed,{name}\n{rows}"
        assert "column 'Infeed' is of energy, not of power" in read.refused(text, "power", column="Infeed", unit="MW")
        assert "of energy" in read.refused(text.replace("MWh", "megawatthours"), "power", unit="MW", column="Infeed")
    for unit in ("kW", "kilowatts"):
        assert read(f"time,Infeed,Infeed_unit\n{rows.replace('MWh', unit)}", "power").values == (50e3, 60e3)
    casper = "datetime,zone_carbon_intensity,zone_carbon_intensity_unit\n" + rows.replace("MWh", "gCO2eq/kWh")
    assert (read(casper, "carbon").values, read(casper, "carbon").unit) == ((50.0, 60.0), "g/kWh")
    assert "but in lb/MWh by unit=" in read.refused(casper, "carbon", unit="lb/MWh")


@pytest.mark.parametrize("name", ["Location", "PriceArea", "region", "country", "respondent", "Balancing Authority"])
def test_a_file_of_several_places_is_refused_until_one_is_chosen(read, name):
    text = (
        f"time,{name},carbon_intensity\n2024-01-01T00:00Z,DE,400\n2024-01-01T01:00Z,FR,50\n2024-01-01T02:00Z,DE,410\n"
    )
    assert f"has 2 zones in column '{name}': DE, FR; choose one with zone=" in read.refused(text, "carbon")
    assert read(text, "carbon", zone="DE").values == (400.0, 410.0)
    # a column with one place says nothing of the choice
    both = text.replace("time,", "zone,time,").replace("2024", "all,2024")
    assert "zones in column" in read.refused(both, "carbon") and read(both, "carbon", zone="FR").values == (50.0,)


@pytest.mark.parametrize("name", ["hour", "timestep", "period", "column 1"])
def test_numbers_of_rows_are_no_seconds(read, name):
    line = read.refused(f"{name},load_kw\n1,5\n2,6\n3,7\n4,8\n", "power", time_column=name)
    assert f"column '{name}' counts rows from 1 on, and states no length of a step; write dates, or times in s" in line
    assert read("time_s,load_kw\n1,5\n2,6\n3,7\n", "power").times_s == (0.0, 2.0, 3.0)
    assert read("t_sec,load_kw\n1,5\n2,6\n3,7\n", "power", time_column="t_sec").values == (5e3, 6e3, 7e3)


def test_settlement_dates_of_aemo_are_ends(read):
    rows = "".join(f"2024/07/01 {minute // 60:02d}:{minute % 60:02d}:00,{minute}\n" for minute in (30, 60, 90))
    signal = read(f"SETTLEMENTDATE,load_mw\n{rows}", "power", time_column="SETTLEMENTDATE")
    assert (signal.begin, signal.values, signal.end_s) == ("2024-07-01T00:00Z", (30e6, 60e6, 90e6), 5400.0)
