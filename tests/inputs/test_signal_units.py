"""What columns of signals are of, their numbers and units: found, converted, refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from files_of_tests import refusal, written

from batwatt.errors import InputError
from batwatt.inputs.series.capacity_spec import parse_capacity
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.traces.azure import COLUMNS, azure_jobs
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.model.signal_units import declared_unit, kind_in, unit_in
from batwatt.study.yaml_model import MAX_VALUES, Declared, parse_declared


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
    assert unit is not None and (unit.kind, unit.name) == (kind, converted)
    assert unit.factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ac_power", "power"),
        ("carbon_intensity", "carbon"),
        ("price", "price"),
        ("wind_speed__1051", "speed"),
        ("inv2_dc_current__1049", "electric current"),
        ("Low Carbon Percentage", "a share"),
        ("Berlin", None),
    ],
)
def test_what_columns_are_of(name, kind):
    assert kind_in(name) == kind


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


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("cts/kWh", 0.01), ("ore/kWh", 0.01), ("öre/kWh", 0.01), ("¢/kWh", 0.01), ("US$/MWh", 1e-3), ("NOK/MWh", 1e-3),
        ("k€/MWh", None), ("kEUR/MWh", None), ("ct€/kWh", None), ("ton/MWh", None), ("avg/kWh", None),
        ("power (mW)", None),
    ],
)  # fmt: skip
def test_hundredths_and_thousands_of_currencies(name, factor):
    """A hundredth is not taken for the whole, nor a thousand for one."""
    unit = unit_in(name)
    assert (None if unit is None else unit.factor) == (None if factor is None else pytest.approx(factor))


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


STATED = "by unit=; leave out unit=, or rename the column if its unit is wrong"
NAMED = "or the unit into the name of the column"


@pytest.mark.parametrize(
    ("name", "wanted", "more", "said"),
    [
        ("Price (USD/MWh)", "power", {}, "column 'Price (USD/MWh)' is of price, not of power; name a column of power"),
        ("power_kw", "carbon", {}, "column 'power_kw' is of power, not of carbon; name a column of carbon"),
        ("x", "power", {"unit": "EUR/MWh"}, "column 'x' is of price, not of power"),
        (
            "consumption (kWh)",
            "power",
            {},
            "of energy, not of power; divide it by the hours of a row, and name it in kW",
        ),
        ("x", "power", {"unit": "horses"}, "unit 'horses' is not known; write for instance unit=kW"),
        ("fraction", "carbon", {}, "column 'fraction' is of a fraction, not of carbon"),
        ("price (EUR/MWh)", "price", {"unit": "ct/kWh"}, f"is in EUR/MWh by the file, but in ct/kWh {STATED}"),
        ("price (EUR/MWh)", "price", {"unit": "money/kWh"}, f"is in EUR/MWh by the file, but in money/kWh {STATED}"),
        ("power_kw", "power", {"unit": "W"}, f"column 'power_kw' is in kw by the file, but in W {STATED}"),
        ("lbs_co2_per_mwh", "carbon", {"unit": "g/kWh"}, f"in lbs_co2_per_mwh by the file, but in g/kWh {STATED}"),
        ("load (%)", "power", {"unit": "fraction"}, f"column 'load (%)' is in % by the file, but in fraction {STATED}"),
        ("price (mills/kWh)", "price", {}, "unit 'mills/kWh' of column 'price (mills/kWh)' is not known"),
        ("carbon (g/MJ)", "carbon", {}, f"is not known; write unit=g/kWh or unit=lb/MWh, {NAMED}"),
        ("power (mW)", "power", {}, f"unit 'mW' of column 'power (mW)' is not known; write unit=W or unit=kW, {NAMED}"),
        ("power_kw", "power", {"value": 1e308}, "row 2: power_kw 1e+308 is more than 1e+15 W; correct the value"),
        ("x", "power", {"unit": "MW", "value": 1e308}, "row 2: x 1e+308 is more than 1e+15 W; correct the value"),
        ("out", "power", {"column": "out", "value": ""}, "no value in column 'out'; choose another with column="),
    ],
)
def test_refused_kinds_and_units(read, name, wanted, more, said):
    value = more.get("value", 60)
    text = hours(name, "" if value == "" else 50, value)
    options = {key: option for key, option in more.items() if key != "value"}
    assert said in refusal(read, text, wanted, **options)


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


@pytest.mark.parametrize(
    ("name", "wanted", "unit", "value"),
    [
        ("price (EUR/MWh)", "price", "money/MWh", 0.05),
        ("price_per_mwh", "price", "EUR/MWh", 0.05),
        ("kg/MWh", "carbon", "g/kWh", 50.0),
        ("load (%)", "power", "%", 0.5),
    ],
)
def test_a_unit_that_says_what_the_file_states_passes(read, name, wanted, unit, value):
    assert read(hours(name, 50, 60), wanted, unit=unit).series.values[0] == pytest.approx(value)


@pytest.mark.parametrize("name", ["power (%)", "load_percent"])
def test_a_share_of_a_peak(read, name):
    assert read(hours(name, 25, 100), "power", ratios=True).series.values == (0.25, 1.0)
    said = read.refused(hours(name, 25, 100), "power")
    assert said == f"column {name!r} is of a share, not of power; write unit=%, and peak_w= for what 100 % stands for"
    # the charge of a battery and humidity are no power
    assert "'soc (%)' is of a share, not of power" in read.refused(hours("soc (%)", 25, 100), "power", ratios=True)


ROOT = Path(__file__).resolve().parents[2]
SITES = ROOT.parent / "shared" / "data" / "sites"


@pytest.fixture
def file(tmp_path):
    return lambda text, name="s.csv": written(tmp_path, text, name)


def table(*cells: str, header: str = "datetime,carbon_intensity", separator: str = ",") -> str:
    rows = [f"2024-01-01 0{hour}:00{separator}{cell}\n" for hour, cell in enumerate(cells)]
    return f"{header}\n" + "".join(rows)


# more fields than columns


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (table("395,7", "400,1", "401,2"), "line 2: has 3 fields where the header names 2"),
        (table("1;2", "4;5", header="datetime;price", separator=";"), "line 2: has 3 fields where the header names 2"),
        ("time_s value\n0 395 7\n1 396 2\n", "line 2: has 3 fields where the header names 2"),
    ],
)  # fmt: skip
def test_a_signal_with_more_fields_than_columns_is_refused(file, text, line):
    assert f"s.csv: {line}; name all columns, and write 395.7" in refusal(read_signal, SignalFile(file(text)))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("395,7", "-0,5", "1e3"), (395.7, -0.5, 1000.0)),
        (("1.234,56", "1.234.567,8", "7"), (1234.56, 1_234_567.8, 7.0)),
        (("1\u00a0234,5", "12,25"), (1234.5, 12.25)),
    ],
)
def test_decimal_commas(file, cells, values):
    for separator in (";", "\t"):
        text = table(*cells, header=f"datetime{separator}carbon_intensity", separator=separator)
        assert read_signal(SignalFile(file(text))).series.values == values
    quoted = table(*(f'"{cell}"' for cell in cells))
    assert read_signal(SignalFile(file(quoted))).series.values == values
    assert read_signal(SignalFile(file("sep=;\n" + text.replace("\t", ";")))).series.values == values


def test_separators_of_thousands(file):
    for cells, values in ((("1,234.5", "7"), (1234.5, 7.0)), (("1,234,567", "1,234"), (1_234_567.0, 1234.0))):
        assert read_signal(SignalFile(file(table(*(f'"{cell}"' for cell in cells))))).series.values == values
    # semicolons separate columns where the comma is that of decimals
    german = table("12,345", "1,500", header="datetime;power (kW)", separator=";")
    assert read_signal(SignalFile(file(german), wanted="power")).series.values == (12_345.0, 1500.0)


@pytest.mark.parametrize("cells", [('"12,345"', '"1,500"'), ('"395,7"', "395.7"), ('"1,23,4"',)])
def test_commas_that_may_be_either_are_refused(file, cells):
    with pytest.raises(InputError, match=r"row 1: .* is not a finite number; write a decimal point, and nothing betw"):
        read_signal(SignalFile(file(table(*cells))))


# units


@pytest.mark.parametrize("column", ["power_w", "Solar (MW)", "generation_mw", "ac_power", "pv_kw", "Energy kWh"])
def test_power_is_no_carbon(file, column):
    path = file(table("1", "2", "3", header=f"datetime,{column}"))
    what = "energy" if column == "Energy kWh" else "power"
    for kind in ("carbon", "price"):
        assert f"is of {what}, not of {kind}; name a column of {kind}, or take another" in refusal(
            parse_capacity(f"{kind}:{path},budget=0.7").series, 10, 3600.0
        )
        # by its name, too
        assert f"is of {what}" in refusal(
            parse_capacity(f"{kind}:{path},column={column},budget=0.7").series, 10, 3600.0
        )
    assert parse_capacity(f"stranded:{path},threshold=2").series(10, 3600.0).values[0] == 10


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("carbon_intensity", "carbon"), ("gCO2/kWh", "carbon"), ("g/kWh", "carbon"),
        ("value", "carbon"),
        ("Price (EUR/MWh)", "price"), ("value", "price"), ("price", "price"),
    ],
)  # fmt: skip
def test_names_of_carbon_and_of_prices(file, column, kind):
    path = file(table("1", "2", "3", header=f"datetime,{column}"))
    assert len(parse_capacity(f"{kind}:{path},budget=0.7").series(10, 3600.0)) == 3


# numbers


@pytest.mark.parametrize("value", ["9" * 19, "9" * 30, "9" * 400, "9" * 5000, "1e30", "-" + "9" * 30])
@pytest.mark.parametrize("column", ["vmcreated", "vmdeleted", "vmcorecountbucket", "vmmemorybucket"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_huge_integers_of_azure(file, column, value):
    cells = dict.fromkeys(COLUMNS, "1") | {"vmdeleted": "600", column: value}
    path = file(",".join(cells.values()) + "\n", "vmtable.csv")
    with pytest.raises(InputError, match=f"vmtable.csv line 1: {column} must be a") as told:
        list(azure_jobs(path, notes=Counter()))
    assert len(str(told.value)) < 500


# milliseconds


@pytest.mark.parametrize("name", ["j.csv", "j.swf", "j.txt"])
def test_milliseconds_since_1970(file, name):
    rows = {
        "j.csv": "arrival_time,length,cpus\n1700000000000,60000,1\n",
        "j.swf": "1 1700000000000 0 60000 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n",
        "j.txt": "1 1700000000000 60000 1\n",
    }
    path = file(rows[name], name)
    problem = "a job is submitted at 1700000000000 s, 53871 years on; divide all its times by 1000 if they are millisec"
    for read in (read_trace, convert_file):
        with pytest.raises(InputError, match=problem):
            read(path)
    # seconds since 1970 are no such thing
    file(rows[name].replace("000 ", " ").replace("000,", ","), name)
    assert len(read_trace(path)) == convert_file(path).kept == 1


# aliases and keys of YAML


class Anything(Declared):
    options: dict = {}  # noqa: RUF012


def yaml_error(text: str) -> str:
    return refusal(parse_declared, text, "c.yaml", Anything)


def test_aliases_of_aliases():
    lines = ["options:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    found = yaml_error("\n".join(lines))
    assert found == f"c.yaml: line 6: has more than {MAX_VALUES} values, aliases written out; correct the YAML"
    merged = "options: {a: &a {x: 1}}\n" + "b: &b {<<: *b}\n"
    assert "contains itself" in yaml_error(merged)
    assert yaml_error('a: 1\nb: {"\\udfff x": 2}') == (
        r"c.yaml: line 2: holds half of a surrogate pair (\ud...); correct the YAML"
    )
    assert yaml_error("options: &o [*o]") == "c.yaml: line 1: contains itself; correct the YAML"


@pytest.mark.parametrize("key", ["[a, b]", "{a: 1}", "? [a]\n  "])
def test_keys_are_texts(key):
    assert yaml_error(f"options:\n  {key}: 3\n") == (
        "c.yaml: line 2: a key must be a text, not a list or a mapping; correct the YAML"
    )


@pytest.mark.parametrize("name", ["Berlin", "value", "forecast", "wind_east", "mwpower_", "swh", "1kg", "windows"])
def test_names_without_a_unit(name):
    assert unit_in(name) is None


def test_units_are_declared_as_they_are_named():
    assert [declared_unit(text).factor for text in ("W", "kW", "MW", "g/kWh", "EUR/MWh", "%", "fraction")] == [
        1.0, 1e3, 1e6, 1.0, 1e-3, 0.01, 1.0,
    ]  # fmt: skip
    assert [declared_unit(text) for text in ("", "watt-hours", "kWh", "km/h", "power in kW")] == [None] * 5


def test_columns_of_one_name(read):
    text = "time,power_kw,power_kw\n2024-01-01,1,2\n"
    assert read.refused(text, "power") == "2 columns are called 'power_kw'; rename all but one in the first line"
    assert read.refused(text, column="power_kw").startswith("2 columns are called 'power_kw'")


def test_a_second_line_of_header(read):
    text = "variable,pressure,wind_speed\nheight,0,10\n2010-01-01 00:00:00+01:00,98405.7,5.3\n"
    with pytest.raises(InputError, match=r"s.txt: line 2: is a second line of header: height, 0, 10; name each column"):
        read(text)


def test_a_unit_that_contradicts_a_column_of_units_is_refused(read):
    text = "time,value,unit\n2024-01-01,50,EUR/MWh\n2024-01-02,60,EUR/MWh\n"
    said = read.refused(text, "price", unit="EUR/kWh")
    assert said.startswith("column 'value' is in EUR/MWh by the file, but in EUR/kWh by unit=")


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_header_longer_than_a_cell_may_be(read, separator):
    header = separator.join(["time", "carbon_intensity", "x" * 200_000])
    said = read.refused(f"{header}\n" + separator.join(["2024-01-01", "5", "1"]) + "\n")
    assert said.startswith("is not CSV (field larger than field limit (131072))")
