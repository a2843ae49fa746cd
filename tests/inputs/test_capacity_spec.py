"""Capacities written as one text."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from files_of_tests import refusal

from batwatt.inputs.character import EnergyBudget, Stranded, Variation, bill, vary
from batwatt.inputs.signal import read_capacity
from batwatt.inputs.source import SeriesSource
from batwatt.inputs.spec import FileTerm, SeriesSpec, ShareTerm, parse_series
from batwatt.model.timeline import Timeline, checked_capacity

PRICES = "Time,price\n2024-01-01 00:00,100\n2024-01-01 01:00,250\n2024-01-01 02:00,400\n"


def machines(text: str, count: int, end_s: float = 1e6) -> Timeline:
    """Return the machines alive that a text describes."""
    return parse_series("machines", text).timeline(None, end_s, count)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(PRICES)
    return tmp_path


def test_the_text_of_the_contract():
    text = "walk:range=0.6,mean=0.7,step=0.15,period=3600,seed=1"
    spec = parse_series("machines", text)
    variation = Variation("walk", 0.7, 0.6, 0.15, 3600.0, seed=1)
    assert spec == SeriesSpec("machines", (ShareTerm(variation),)) and str(spec) == text
    series = spec.timeline(None, 90_000.0, 1000)
    assert series.values == tuple(float(int(v * 1000 + 1e-9)) for v in vary(variation, 90_000.0).values)
    assert len(series) == 25 and (series.name, series.source) == ("machines", text)
    assert checked_capacity(series, 1000, text) is series
    assert (spec.files, spec.paid()) == ((), None)
    # runs are known by their parameters
    assert hash(parse_series("machines", " ".join(text.split(",")).replace(" ", ", "))) == hash(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_all_keys():
    text = "walk:range=.2,mean=.5,step=.1,period=60,level=0,window=120,seed=3"
    variation = Variation("walk", 0.5, 0.2, 0.1, 60.0, False, 120.0, 3)
    assert parse_series("machines", text) == parse_series("machines", text.replace("level=0", "level=no"))
    [term] = parse_series("machines", f"{text},end=600,repeat=1,full=9").terms
    assert term == ShareTerm(variation, None, 600.0, 9, True)
    file = SeriesSource(Path("x, y.csv"), "a (b)", "t", "direct", "DE", "Europe/Berlin", "2024", None, 2.0, 900.0)
    keys = "column=a (b),time_column=t,kind=direct,zone=DE,tz=Europe/Berlin,from=2024,days=2"
    keys += ",period=900"
    traced = parse_series("machines", "trace:x, y.csv,unit=kW,sequence=1,dates=day-first").terms
    assert traced == (
        FileTerm(SeriesSource(Path("x, y.csv"), quantity="any", unit="kW", sequence="1", dates="day-first")),
    )
    for kind in ("carbon", "price"):
        spec = parse_series("machines", f"{kind}:x, y.csv,budget=.5,headroom=.9,floor=.1,reference=300,{keys}")
        assert spec.terms == (ShareTerm(EnergyBudget(0.5, 0.9, 0.1, 300.0), replace(file, quantity=kind)),)
        assert spec.files == (Path("x, y.csv"),)
    stranded = parse_series("machines", f"stranded:x, y.csv,threshold=-1,low=.1,high=.8,{keys}")
    assert stranded.terms == (ShareTerm(Stranded(-1, 0.1, 0.8), file),)
    for kind in ("", "trace:"):
        [term] = parse_series("machines", f"{kind}x, y.csv,{keys}").terms
        assert term == FileTerm(replace(file, quantity="any"))
    [term] = parse_series("machines", "uniform:range=0.4,seed=2").terms
    assert term == ShareTerm(Variation("uniform", range=0.4, seed=2))


def test_how_long_it_is():
    text = "walk:period=60,seed=1,level=0,end=300"
    assert len(machines("walk:period=60,seed=1", 10, 900.0)) == 15
    short, again = (
        parse_series("machines", text).timeline(None, 9.0, 10),
        machines(f"{text},repeat=1", 10, 9.0).upto(900.0),
    )
    assert len(short) == 5 and again.values == short.values * 3 and again.times_s == tuple(60.0 * k for k in range(15))
    assert short.at(1e9) == short.values[-1]


def test_what_a_budget_buys(folder):
    spec = parse_series("machines", "price:p.csv,headroom=2,full=100")
    assert spec.timeline(None, 1e6, 200).values == (175.0, 70.0, 43.0)
    line = refusal(parse_series("machines", "price:p.csv,headroom=2").timeline, None, 1e6, 100)
    assert "price:p.csv,headroom=2: requires 175 machines of 100; give more machines" in line
    paid = spec.paid()
    assert paid is not None and paid.values == (100, 250, 400)
    assert bill(parse_series("fraction", "price:p.csv,headroom=2").timeline(), paid).saved == pytest.approx(0.0)
    assert machines("price:p.csv,from=2024-01-01T01:00,days=0.04", 100).values == (70.0,)
    assert machines("stranded:p.csv,threshold=250,repeat=1", 10, 9.0).upto(18000.0).values == (
        10,
        10,
        0,
        10,
        10,
    )


def test_traces(folder):
    Path("m.csv").write_text("time_s,machines\n0,5\n100,10\n")
    Path("f.csv").write_text("time_s,fraction\n0,0.5\n100,0.77\n")
    assert machines("trace:m.csv", 10).values == (5, 10)
    assert machines("trace:m.csv,repeat=1", 10, 9.0).upto(300.0).values == (5, 10, 5)
    assert machines("trace:f.csv", 10).values == (5, 7)
    assert machines("trace:f.csv,full=100", 200).values == (50, 77)
    # beside a column of power the machines count, a share in % is one of 100, and power is no capacity
    Path("both.csv").write_text("time_s,power_w,machines\n0,900,5\n100,800,10\n")
    assert machines("trace:both.csv", 10).values == (5, 10)
    Path("percent.csv").write_text("time_s,share (%)\n0,50\n100,77\n")
    assert machines("trace:percent.csv", 10).values == (5, 7)
    Path("w.csv").write_text("time_s,power_kw\n0,0.5\n")
    assert "w.csv: column 'power_w' is in W, not machines or fractions of them; name" in refusal(
        parse_series("machines", "trace:w.csv").timeline, None, 1.0, 10
    )
    # from the file's 0 s, as if it were given without a kind
    Path("late.csv").write_text("time_s,machines\n3600,5\n7200,10\n")
    assert machines("trace:late.csv", 10).at(7199.0) == read_capacity("late.csv", 10).at(7199.0) == 5
    Path("n.csv").write_text("time_s,fraction\n0,-0.5\n")
    assert "a capacity must be >= 0, got -0.5" in refusal(
        parse_series("machines", "trace:n.csv").timeline, None, 1.0, 10
    )


@pytest.mark.parametrize(
    "text,message",
    [
        ("wlak:range=0.6", "no kind of capacity 'wlak'; did you mean 'walk'? Or give the name of a CSV file."),
        ("walk:rnage=0.6", "no key 'rnage'; did you mean 'range'? See docs/reference/signals.md."),
        ("walk:seed=1.5", "seed must be a whole number, got '1.5'"),
        ("walk:level=maybe", "level must be yes or no, got 'maybe'"),
        ("walk:seed=1,seed=2", "seed is given twice"),
        ("walk:x.csv,seed=2", "'x.csv' is not key=value; keys are mean, range"),
        ("carbon:", "no file is named; write carbon:FILE"),
        ("carbon:x.csv,days=1,to=2024-01-01", "has both 'to' and 'days'"),
        ("stranded:x.csv", "no threshold is given; give one in the signal's unit"),
    ],
)
def test_refusals(text, message):
    assert refusal(parse_series, "machines", text).startswith(f"capacity {text!r}: {message}")


def test_what_is_refused_later_shows_the_text(folder):
    spec = parse_series("machines", "walk:period=1e-9")
    message = "end_s / period_s must be <= 2000000, got 3600.0 / 1e-09; take a longer period"
    assert refusal(spec.timeline, None, 3600.0, 10) == f"walk:period=1e-9: {message}"
    assert "nix.csv: cannot be read" in refusal(parse_series("machines", "carbon:nix.csv").timeline, None, 1.0, 10)


def test_whole_machines_are_rounded_down():
    assert machines("constant:mean=0.7", 1000).values == (700.0,)
    # 0.29 x 100 is 28.999999999999996
    assert machines("constant:mean=0.29", 100).values == (29.0,)
    assert machines("constant:mean=0.7", 24).values == (16.0,)
