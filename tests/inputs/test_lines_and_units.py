"""Inputs that are nearly right: told by line, value and unit, not read as something else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.series.capacity_spec import parse_capacity
from batwatt.inputs.series.capacity_walk import Walk
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.series.variation import Variation
from batwatt.inputs.traces.azure import COLUMNS, azure_jobs
from batwatt.inputs.traces.convert import convert_file, read_trace
from batwatt.inputs.workloads.google_like import GoogleLike
from batwatt.inputs.workloads.pmbs_synthetic import Synthetic
from batwatt.inputs.workloads.varcap_like import VarcapLike
from batwatt.study.yaml_model import MAX_VALUES, Declared, parse_declared

ROOT = Path(__file__).resolve().parents[2]
SITES = ROOT.parent / "shared" / "data" / "sites"


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "s.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def hours(*cells: str, header: str = "datetime,carbon_intensity", separator: str = ",") -> str:
    rows = [f"2024-01-01 0{hour}:00{separator}{cell}\n" for hour, cell in enumerate(cells)]
    return f"{header}\n" + "".join(rows)


# more fields than columns


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (hours("395,7", "400,1", "401,2"), "line 2: has 3 fields where the header names 2"),
        (hours("395,7", "400", "401"), "line 2: has 3 fields where the header names 2"),
        (hours("395", "400", "401,2"), "line 4: has 3 fields where the header names 2"),
        (hours("1;2", "4;5", header="datetime;price", separator=";"), "line 2: has 3 fields where the header names 2"),
        ("time_s value\n0 395 7\n1 396 2\n", "line 2: has 3 fields where the header names 2"),
    ],
)  # fmt: skip
def test_a_signal_with_more_fields_than_columns_is_refused(file, text, line):
    with pytest.raises(InputError, match=f"s.csv: {line}; name all columns, and write 395.7"):
        read_signal(SignalFile(file(text)))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("395,7", "-0,5", "1e3"), (395.7, -0.5, 1000.0)),
        (("1.234,56", "1.234.567,8", "7"), (1234.56, 1_234_567.8, 7.0)),
        (("0,125", "12,345"), (0.125, 12.345)),
        (("1\u00a0234,5", "12,25"), (1234.5, 12.25)),
    ],
)
def test_decimal_commas(file, cells, values):
    for separator in (";", "\t"):
        text = hours(*cells, header=f"datetime{separator}carbon_intensity", separator=separator)
        assert read_signal(SignalFile(file(text))).series.values == values
    quoted = hours(*(f'"{cell}"' for cell in cells))
    assert read_signal(SignalFile(file(quoted))).series.values == values
    assert read_signal(SignalFile(file("sep=;\n" + text.replace("\t", ";")))).series.values == values


def test_separators_of_thousands(file):
    for cells, values in ((("1,234.5", "7"), (1234.5, 7.0)), (("1,234,567", "1,234"), (1_234_567.0, 1234.0))):
        assert read_signal(SignalFile(file(hours(*(f'"{cell}"' for cell in cells))))).series.values == values
    # semicolons separate columns where the comma is that of decimals
    german = hours("12,345", "1,500", header="datetime;power (kW)", separator=";")
    assert read_signal(SignalFile(file(german), wanted="power")).series.values == (12_345.0, 1500.0)


@pytest.mark.parametrize("cells", [('"12,345"', '"1,500"'), ('"395,7"', "395.7"), ('"1,2345"', "1.5"), ('"1,23,4"',)])
def test_commas_that_may_be_either_are_refused(file, cells):
    with pytest.raises(InputError, match=r"row 1: .* is not a finite number; write a decimal point, and nothing betw"):
        read_signal(SignalFile(file(hours(*cells))))


def test_separators_at_the_end_of_lines_say_nothing(file):
    assert read_signal(SignalFile(file(hours("395,", "400,", "401,")))).series.values == (395.0, 400.0, 401.0)
    # fewer fields than columns, as ENTSO-E has them
    text = hours("395", "400", header="datetime,price,zone")
    assert read_signal(SignalFile(file(text))).series.values == (395.0, 400.0)


def test_an_envelope_with_more_fields_than_columns_is_refused(file):
    with pytest.raises(InputError, match=r"line 3: has 3 fields where the header names 2; name all columns"):
        read_series(file("time_s,power_w\n0,400,\n300,395,7\n"))
    assert read_series(file("time_s,power_w\n0,400,\n300,395,\n")).values == (400.0, 395.0)


@pytest.mark.skipif(not SITES.is_dir(), reason="the data of sites are not there")
@pytest.mark.parametrize("wanted", ["carbon", "price"])
def test_files_of_sites_are_read_as_what_they_are(wanted):
    found = sorted(SITES.glob(f"{wanted}/*_20*.csv"))
    assert len(found) >= 2
    for path in found:
        assert len(read_signal(SignalFile(path, wanted=wanted)).series) == 8760
        other = "carbon" if wanted == "price" else "price"
        with pytest.raises(InputError, match=f"is of {wanted}, not of {other}"):
            read_signal(SignalFile(path, wanted=other))


# units


@pytest.mark.parametrize("column", ["power_w", "Solar (MW)", "generation_mw", "ac_power", "pv_kw", "Energy kWh"])
def test_power_is_no_carbon(file, column):
    path = file(hours("1", "2", "3", header=f"datetime,{column}"))
    what = "energy" if column == "Energy kWh" else "power"
    for kind in ("carbon", "price"):
        with pytest.raises(InputError, match=f"is of {what}, not of {kind}; name a column of {kind}, or take another"):
            parse_capacity(f"{kind}:{path},budget=0.7").series(10, 3600.0)
        # by its name, too
        with pytest.raises(InputError, match=f"is of {what}"):
            parse_capacity(f"{kind}:{path},column={column},budget=0.7").series(10, 3600.0)
    assert parse_capacity(f"stranded:{path},threshold=2").series(10, 3600.0).values[0] == 10


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("carbon_intensity", "carbon"), ("gCO2/kWh", "carbon"), ("g/kWh", "carbon"), ("lbs_co2_per_mwh", "carbon"),
        ("Caiso_North", "carbon"), ("value", "carbon"), ("DE-LU_MOER", "carbon"),
        ("Price (EUR/MWh)", "price"), ("Day-ahead [USD/MWh]", "price"), ("value", "price"), ("price", "price"),
    ],
)  # fmt: skip
def test_names_of_carbon_and_of_prices(file, column, kind):
    path = file(hours("1", "2", "3", header=f"datetime,{column}"))
    assert len(parse_capacity(f"{kind}:{path},budget=0.7").series(10, 3600.0)) == 3


# numbers


@pytest.mark.parametrize("kind", [Walk, Synthetic, GoogleLike, VarcapLike, Variation])
@pytest.mark.parametrize("value", ["5", [1], 10**400, -(10**400), float("nan"), {}])
def test_parameters_that_are_no_numbers_are_told_in_one_short_line(kind, value):
    for name in kind.__dataclass_fields__:
        if name in ("kind", "like", "width_weights", "structure", "move", "bounds", "level", "stay") or (
            kind,
            name,
        ) == (
            Variation,
            "seed",
        ):
            continue
        if kind is Variation and value == "5":
            continue  # of a text such as walk:range=0.6
        with pytest.raises(InputError) as told:
            kind(**{name: value})
        assert len(str(told.value)) < 500 and "\n" not in str(told.value), name


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
    with pytest.raises(InputError) as told:
        parse_declared(text, "c.yaml", Anything)
    assert len(str(told.value)) < 500
    return str(told.value)


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


def test_usual_aliases_stay():
    text = "options:\n  a: &a {x: [1, 2]}\n  b: {<<: *a, y: *a}\n"
    assert parse_declared(text, "c.yaml", Anything).options["b"] == {"x": [1, 2], "y": {"x": [1, 2]}}


@pytest.mark.parametrize("key", ["[a, b]", "{a: 1}", "? [a]\n  "])
def test_keys_are_texts(key):
    assert yaml_error(f"options:\n  {key}: 3\n") == (
        "c.yaml: line 2: a key must be a text, not a list or a mapping; correct the YAML"
    )
