"""Envelopes written as one text: terms in watts, their sum, the battery behind them; refusals in one line."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.source import SeriesSource
from batwatt.inputs.spec import Buffer, Constant, FileTerm, SeriesSpec, kinds_of_series, parse_series
from batwatt.model.battery import Battery
from batwatt.model.timeline import Timeline
from batwatt.units import HOUR_S

ROOT = Path(__file__).resolve().parents[2]
SUN = "datetime,power_kw\n2024-06-01 00:00,-0.01\n2024-06-01 01:00,2\n2024-06-01 02:00,8\n2024-06-01 03:00,4\n"
WIND = "time_s,wind_mw\n0,0.001\n5400,0.003\n"


def watts(text: str, end_s: float = 1e6) -> Timeline:
    """Return the envelope that a text describes."""
    return parse_series("power", text).timeline(None, end_s)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sun.csv").write_text(SUN)
    Path("wind.csv").write_text(WIND)
    Path("city.csv").write_text("time,Berlin\n0,0\n3600,0.5\n")
    Path("p.csv").write_text("Time,price\n2024-01-01 00:00,0.1\n2024-01-01 01:00,0.25\n2024-01-01 02:00,0.4\n")
    Path("f.csv").write_text("time_s,fraction\n0,0.5\n60,1.2\n")
    return tmp_path


def test_power_in_watts(folder, caplog):
    series = watts("power:sun.csv")
    assert (series.times_s, series.values) == ((0.0, 3600.0, 7200.0, 10800.0), (0, 2000, 8000, 4000))
    assert (series.name, series.source, series.at(1e9)) == ("power_w", "power:sun.csv", 4000.0)
    assert watts("power:sun.csv,scale=2,base_w=100").values == (100, 4100, 16100, 8100)
    assert watts("power:sun.csv,base_w=-3000").values == (0, 0, 5000, 1000)
    assert "power:sun.csv,base_w=-3000: 2 values below 0 W taken as 0" in caplog.text
    assert watts("power:wind.csv").values == (1000.0, 3000.0)
    part = parse_series("power", "power:sun.csv,from=2024-06-01T01:00,to=2024-06-01T03:00")
    assert (part.timeline(None, 1e6).values, part.length_s()) == ((2000.0, 8000.0), 7200.0)
    # terms have one clock
    both = watts("power:sun.csv + power:sun.csv,from=2024-06-01T01:00")
    assert both.values == (4000.0, 16_000.0, 8000.0)


def test_a_peak(folder):
    # of watts the greatest of the whole column, whatever part of it is used
    assert watts("power:sun.csv,peak_w=1000,to=2024-06-01T02:00").values == (0, 250)
    assert watts("power:city.csv,peak_w=2400").values == (0.0, 1200.0)
    assert watts("power:city.csv,unit=kW").values == (0.0, 500.0)
    line = refusal(parse_series("power", "power:city.csv").timeline, None, 1e6)
    assert (
        "city.csv: column 'Berlin' " in line and "states no unit; " in line and "or peak_w= for what 1 stands" in line
    )
    line = refusal(parse_series("power", "power:city.csv,unit=fraction").timeline, None, 1e6)
    assert "city.csv: holds fractions of an unknown power; give the watts that 1 stands for" in line
    # the greatest of the column is the peak, whatever its unit
    Path("loud.csv").write_text("time,out\n0,3\n3600,12\n")
    assert watts("power:loud.csv,peak_w=2400").values == (600.0, 2400.0)


def test_how_long_it_is(folder):
    assert watts("power:sun.csv,repeat=yes", 9.0).upto(18_000.0).values == (0, 2000, 8000, 4000, 0)
    assert watts("power:sun.csv,repeat=no", 9.0).upto(7200.0).values == (0, 2000)
    lengths_s = [parse_series("power", text).length_s() for text in ("power:sun.csv + power:wind.csv", "constant:5")]
    assert lengths_s == [14_400.0, None]


@pytest.mark.parametrize(
    "text", ["price:p.csv,budget=0.7,headroom=2", "walk:range=0.6,seed=3", "stranded:p.csv,threshold=0.2"]
)
def test_shares_of_the_whole_machine(folder, text):
    fractions = parse_series("fraction", text).timeline(None, 1e4)
    series = parse_series("power", text).timeline(None, 1e4, full=5000.0)
    assert series.times_s == tuple(time for time in fractions.times_s if time < 1e4)
    assert series.values == pytest.approx([5000.0 * value for value in fractions.values[: len(series)]])
    assert "is a share of the unknown power of the whole machine" in refusal(
        parse_series("power", text).timeline, None, 1e4
    )


def test_all_keys(folder):
    file = SeriesSource(Path("a.csv"), begin="2024", days=7.0, quantity="power", unit="kW", relative=True)
    keys = "from=2024,days=7,unit=kW,peak_w=9,scale=2,base_w=3,repeat=1"
    assert parse_series("power", f"power:a.csv,{keys}").terms == (FileTerm(file, 9.0, 2.0, 3.0, None, True),)
    text = (
        "battery:capacity_kwh=40,power_kw=10,efficiency=.81,initial_soc=.5,min_soc=.1,max_soc=.95,window_h=12,step=60"
    )
    spec = parse_series("power", f"constant:5 + {text}")
    battery = Battery(40.0, 10.0, 0.81, 0.5, 0.1, 0.95)
    assert spec == SeriesSpec("power", (Constant(5.0),), Buffer(battery, None, 43_200.0, 60.0))
    assert parse_series("power", "constant:5 + battery:capacity_kwh=9,demand_w=2").battery == Buffer(Battery(9.0), 2.0)
    assert str(spec) == f"constant:5 + {text}" and parse_series("power", str(spec)) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec and hash(spec) == hash(parse_series("power", str(spec)))


@pytest.mark.parametrize("name", ["profile3.csv", "a, b.csv", "C:\\x.csv", "there:x=1", "a + power:b=1"])
def test_names_of_files(name, folder):
    for made in ("there:x=1", "a + power:b=1"):
        Path(made).write_text("time_s,power_w\n0,1\n")
    spec = parse_series("power", name)
    assert (spec.path, spec.files, str(spec)) == (Path(name), (Path(name),), name)
    assert spec == parse_series("power", Path(name))


def test_terms_without_a_kind(folder):
    # a file of dates, and one in s whose column is in another unit, are as with power:
    for name in ("sun.csv", "wind.csv"):
        rows, same = (watts(text) for text in (name, f"power:{name}"))
        assert (rows.times_s, rows.values, rows.date_s) == (same.times_s, same.values, same.date_s)
    assert watts("sun.csv,scale=2").values == (0.0, 4000.0, 16_000.0, 8000.0)
    total = watts("sun.csv + wind.csv + 500")
    assert total.values == watts("power:sun.csv + power:wind.csv + constant:500").values
    for quantity, unit in (("power", "W"), ("machines", "machines"), ("carbon", "g/kWh"), ("price", "money/kWh")):
        constant = parse_series(quantity, "40").timeline(None, 9.0, 50)
        assert (constant.values, constant.unit, constant.at(1e9)) == ((40.0,), unit, 40.0)
    assert parse_series("price", "-0.5").timeline().values == (-0.5,)
    Path("40").write_text("time_s,power_w\n0,7\n")
    assert watts("40").values == (7.0,)
    assert parse_series("machines", "walk:range=0,mean=0.5 + 3").timeline(None, 9.0, 50).values == (28.0,)
    assert "is a sum, which only power and machines have" in refusal(parse_series, "carbon", "sun.csv + 5")


BATTERY = "constant:5 + battery:capacity_kwh=4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pwoer:x.csv,peak_w=3", "no kind of envelope 'pwoer'; did you mean 'power'?"),
        ("power:x.csv,peek_w=3", "no key 'peek_w'; did you mean 'peak_w'? See docs/"),
        ("constant:", "no power is given; write for instance constant:20000, in W"),
        ("constant:5,power_w=6", "has two powers; give one"),
        ("constant:5 + battery:x.csv,capacity_kwh=4", "'x.csv' is not key=value"),
        ("constant:-5", "power_w must be a number in [0, 1e+15], got -5.0"),
        ("constant:1e300", "power_w must be a number in [0, 1e+15], got 1e+300"),
        ("walk:range=0.6,full=9", "full= is for machines"),
        ("battery:capacity_kwh=4", "has a battery without a source of power"),
        ("constant:5 + battery:power_kw=4", "no capacity is given; give capacity_kwh="),
        ("constant:5 + battery:capacity_kwh=4 + battery:capacity_kwh=4", "has several batteries"),
        (f"{BATTERY},efficiency=1.1", "efficiency must be <= 1, got '1.1'"),
        (f"{BATTERY},demand_w=1,window_h=3", "has both demand_w and window_h"),
    ],
)
def test_refusals(text, message):
    part = text if "several" in message or " + battery" not in text else text.removeprefix("constant:5 + ")
    assert refusal(parse_series, "power", text).startswith(f"envelope {part!r}: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("power:p.csv", "p.csv: column 'price' is of price, not of power; name a column of power"),
        ("walk:period=1e-9", "walk:period=1e-9: end_s / period_s must be <= 2000000"),
        (f"{BATTERY},step=1e-9", f"{BATTERY},step=1e-9: end_s / step_s must be <= 2000000"),
        ("power:sun.csv,scale=1e300", "W, more than 1e+15 W; correct its keys"),
        ("power:zero.csv,peak_w=5", "zero.csv: is never above 0 W, peak_w= cannot scale that"),
    ],
)
def test_refusals_of_what_is_read_later(folder, text, message):
    Path("zero.csv").write_text("time_s,power_w\n0,0\n60,0\n")
    assert message in refusal(parse_series("power", text).timeline, None, 3600.0, 1.0)
    line = refusal(parse_series("power", "constant:5").dispatch, None, 60.0)
    assert "constant:5: has no battery; add for instance + battery" in line


def test_a_battery_behind_the_sun(folder):
    spec = parse_series("power", "power:sun.csv + battery:capacity_kwh=100,demand_w=3000,initial_soc=0.5,step=3600")
    assert spec.timeline(None, 4 * HOUR_S).values == (3000.0,)
    assert (spec.dispatch(None, 4 * HOUR_S).energy_j / HOUR_S).tolist() == [50_000, 47_000, 46_000, 51_000, 52_000]
    smooth = watts("power:sun.csv + battery:capacity_kwh=100,initial_soc=0.5,window_h=2,step=3600", 4 * HOUR_S)
    assert smooth.values == (0.0, 1000.0, 5000.0, 6000.0)


TERMS = st.lists(
    st.one_of(
        st.sampled_from(
            ("power:sun.csv", "power:wind.csv,scale=0.3", "power:sun.csv,repeat=1", "power:f.csv,peak_w=9")
        ),
        st.floats(0.0, 1e6).map(lambda watts: f"constant:{watts!r}"),
    ),
    min_size=1,
    max_size=4,
)


@examples(60)
@given(terms=TERMS, end_s=st.floats(1.0, 1e5))
def test_a_sum_is_at_any_time_that_of_its_terms(tmp_path_factory, terms, end_s):
    folder = tmp_path_factory.mktemp("terms")
    for name, text in (("sun.csv", SUN), ("wind.csv", WIND), ("f.csv", "time_s,fraction\n0,0.5\n60,1.2\n")):
        (folder / name).write_text(text)
    together = parse_series("power", " + ".join(terms), folder).timeline(None, end_s, 1000.0)
    apart = [parse_series("power", term, folder).timeline(None, end_s, 1000.0) for term in terms]
    for time_s in np.linspace(0.0, end_s, 37)[:-1]:
        assert together.at(time_s) == pytest.approx(sum(series.at(time_s) for series in apart), rel=1e-12)


def test_every_kind_and_key_is_in_the_docs():
    docs = (ROOT / "docs" / "reference" / "signals.md").read_text()
    for kind in {*kinds_of_series("power"), *kinds_of_series("machines")}:
        assert f"`{kind}:" in docs
    keys = "peak_w scale base_w repeat unit sequence dates demand_w window_h step efficiency"
    for key in keys.split():
        assert f"`{key}" in docs


def test_files_are_found_from_a_folder(folder, monkeypatch):
    monkeypatch.chdir("/")
    spec = parse_series("power", "power:sun.csv + power:wind.csv + constant:5", folder)
    assert spec.files == (folder / "sun.csv", folder / "wind.csv")
    assert str(spec) == f"power:{folder / 'sun.csv'} + power:{folder / 'wind.csv'} + constant:5"
    assert parse_series("power", str(spec)).timeline(None, 60.0) == spec.timeline(None, 60.0)
