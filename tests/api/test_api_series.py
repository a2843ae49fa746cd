"""Series as arguments: what they are of, their units, series of pandas; signals read as the command line reads them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import batwatt as bw
from batwatt.api.series import series_or
from batwatt.errors import InputError
from batwatt.inputs.series import on_clock
from batwatt.model.signal import Clock

DATES = pd.date_range("2024-07-01", periods=48, freq="h", tz="UTC")
PRICES = [40.0 + 10.0 * (hour % 7) for hour in range(48)]


@pytest.fixture
def load():
    frame = pd.DataFrame({"submission_time_s": [0, 0, 4000], "length_s": [7200, 5000, 9000], "hosts": [1, 2, 2]})
    return bw.Workload.from_frame(frame)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{date:%Y-%m-%dT%H:%MZ},{price}\n" for date, price in zip(DATES, PRICES, strict=True))
    (tmp_path / "p.csv").write_text("time,price (EUR/MWh)\n" + rows)
    (tmp_path / "c.csv").write_text("time,carbon_intensity\n" + rows)
    (tmp_path / "none.csv").write_text("time,value\n" + rows)
    (tmp_path / "sun.csv").write_text("time,power_kw\n" + rows)
    return tmp_path


def metrics(load, **given):
    return bw.simulate(bw.Platform.machines(4, watts=100.0), load, **given).metrics


def test_a_price_costs_the_same_read_or_named(load, files):
    """Energy at 100 W a machine x EUR/MWh / 1000: not a thousand times that."""
    named = metrics(load, price="p.csv")["cost"]
    signal = bw.read_signal("p.csv")
    assert (signal.unit, signal.currency) == ("EUR/kWh", "EUR") and signal.values[0] == pytest.approx(0.04)
    by_date = pd.Series(PRICES, DATES, name="price (EUR/MWh)")
    in_mwh = bw.Series([3600.0 * hour for hour in range(48)], PRICES, unit="EUR/MWh")
    in_kwh = bw.Series([3600.0 * hour for hour in range(48)], [price / 1000 for price in PRICES])
    table = TABLE.drop(columns="n")
    tables = (
        table,
        table.set_index("time"),
        table.assign(time=table["time"].dt.strftime("%Y-%m-%d %H:%M+00:00")),
        table.assign(time=table["time"].astype("datetime64[ns, UTC]") - DATES[0]),
        table.assign(time_s=[3600 * hour for hour in range(48)]).drop(columns="time"),
    )
    pairs = [(3600 * hour, price / 1000) for hour, price in enumerate(PRICES)]
    dated = [(str(date), price / 1000) for date, price in zip(DATES, PRICES, strict=True)]
    others = (pairs, np.array(pairs), dict(pairs), dated, dict(zip(DATES, in_kwh.values, strict=True)))
    signals = (signal, by_date, in_mwh, in_kwh, bw.read_signal("p.csv", quantity="price"), "p.csv,days=2")
    for price in (*signals, *tables, *others, bw.Series.regular(in_kwh.values)):
        assert metrics(load, price=price)["cost"] == pytest.approx(named, rel=1e-12)
    assert named == pytest.approx(metrics(load)["energy_j"] / 3.6e6 * 0.05, rel=0.3)


TABLE = pd.DataFrame({"time": DATES, "price (EUR/MWh)": PRICES, "n": range(48)})
REFUSED = [
    ("price", lambda: bw.read_signal("c.csv"), "is a series in g/kWh, not in a unit of price; give one of"),
    ("carbon", lambda: bw.read_signal("none.csv"), "is a series whose file states no unit; say unit=g/kWh or"),
    ("envelope", lambda: bw.Series((0,), (-5,)), "must be >= 0 W, got -5; correct the value"),
    ("envelope", lambda: 1.7e308, "1.7e+308 is larger than 1e+15, the bound of values; correct the value"),
    ("carbon", lambda: [(0, 1), (17e11, 2)], "has a time of 1700000000000 s, 53870.9 years on; divide its times"),
    ("carbon", lambda: [(0, 1e300), (60, 1)], "1e+300 is larger than 1e+15, the bound of values"),
    ("capacity", lambda: bw.read_signal("sun.csv"), "is a series in W, not in machines; give numbers"),
    ("price", lambda: bw.Series((0, 60), (160.98, 3)), "is a price of up to 160.98 per kWh without a unit"),
    ("price", lambda: pd.Series([1.0, 2.0]), "is a table whose index has no times; give it dates"),
    ("carbon", lambda: pd.Series([1, None], [0, 60], dtype="Int64"), "row 2 of the series is not a finite"),
    ("carbon", lambda: pd.Series([1 + 2j, 3], [0, 60]), "row 1 of the series is not a finite number"),
    ("carbon", lambda: pd.Series([], DATES[:0], dtype=float), "has no rows; give at least"),
    ("carbon", lambda: pd.Series([1.0, 2.0], [60.0, 0.0]), "has times that do not increase; sort the"),
    ("carbon", lambda: pd.Series([1.0, 2.0], [1.7e9, 1.8e9]), "begins at 1700000000 s, and a run at 0 s"),
    ("carbon", lambda: [1, 2], "is a list of values without times; write (time, value) pairs, or batwatt.Series.reg"),
    ("carbon", lambda: {1, 2}, "must be a file or a series, got set; see help(batwatt.read_signal)"),
    ("carbon", dict, "has no rows; give at least one"),
    ("carbon", lambda: [(0, 1), (0, 2)], "has times that do not increase; sort the"),
    ("carbon", lambda: {"0": 1.0, "x": 2.0}, "time: '0' is not a date; write 2024-07-01"),
    ("price", lambda: TABLE, "must have one column besides its times, has 'price (EUR/MWh)', 'n'; choose one"),
    ("price", lambda: TABLE[["n"]], "is a table whose index has no times; give it dates"),
    ("price", lambda: TABLE[["n", "time"]].rename(columns={"time": "period_end"}), "column 'period_end' has ends of"),
]


@pytest.mark.parametrize(("argument", "give", "said"), REFUSED, ids=[f"{row[0]} {row[2][:50]}" for row in REFUSED])
def test_series_of_another_kind_are_refused(load, files, argument, give, said):
    with pytest.raises(InputError) as caught:
        metrics(load, **{argument: give()})
    assert str(caught.value).startswith(f"{argument}: {said}") and "\n" not in str(caught.value)


def test_envelopes_of_pandas_and_of_signals(load, files):
    watts = [100.0 + 100.0 * (hour % 4) for hour in range(48)]
    kilowatts = pd.Series([watt / 1000 for watt in watts], DATES, name="power_kw")
    steps = [3600.0 * hour for hour in range(48)]
    (files / "kw.csv").write_text("time,power_kw\n" + "".join(f"{date},{value}\n" for date, value in kilowatts.items()))
    same = (
        kilowatts,
        bw.read_signal("power:kw.csv"),
        "power:kw.csv",
        bw.Series(steps, [watt / 1000 for watt in watts], unit="kW"),
        pd.Series(watts, pd.to_timedelta(steps, unit="s")),
    )
    expected = metrics(load, envelope=bw.Series(steps, watts))
    for envelope in same:
        figures = metrics(load, envelope=envelope)
        assert all(figures[name] == pytest.approx(expected[name]) for name in ("energy_j", "makespan_s"))


def test_a_number_is_a_constant(load, files):
    series = {"envelope": 300, "carbon": np.float64(120.5), "price": 0.25}
    rows = {name: bw.Series((0.0, 1e6), [float(value)] * 2) for name, value in series.items()}
    whole = metrics(load, **rows | {"envelope": bw.Series((0.0,), (300.0,))})
    assert metrics(load, **series) == whole
    assert whole["carbon_g"] == pytest.approx(120.5 * whole["energy_j"] / 3.6e6)


def test_signals_are_read_as_the_command_line_reads_them(load, files):
    price = bw.read_signal("p.csv,from=2024-07-01T06:00,days=1,period=7200,unit=EUR/MWh,repeat=yes")
    assert price.values[:2] == pytest.approx([0.07, 0.055]) and price.loop == 0 and price.edges_s[-1] == 86_400.0
    day = bw.read_signal("p.csv,days=0.125,repeat=yes")
    assert metrics(load, price=day)["cost"] == metrics(load, price="p.csv,days=0.125,repeat=yes")["cost"] is not None
    sun = bw.read_signal("power:sun.csv,scale=2 + constant:500")
    assert (sun.unit, sun.values[0], sun.end_s) == ("W", 2 * 40_000.0 + 500.0, 48 * 3600.0)
    assert bw.read_signal("constant:5").at(1e9) == 5.0
    assert bw.read_signal("power:sun.csv,repeat=yes").at(48 * 3600.0 + 1.0) == 40_000.0
    with pytest.raises(InputError, match="has no end; say end=, in s, or add a file"):
        bw.read_signal("walk:range=0.6")
    with pytest.raises(InputError, match="quantity: is for files, not for"):
        bw.read_signal("power:sun.csv", quantity="price")


def test_plans_of_one_job_have_prices_by_their_units(files):
    job = {"startup": [], "work": [{"name": "work", "duration": 3600, "power": 1000}]}
    plan = {"deadline_s": 86_400.0, "carbon_weight": 0.0, "price_weight": 1.0}
    named = bw.plan_carbon(job, "c.csv", price="p.csv", **plan)
    assert named["cost"] == pytest.approx(0.04)
    assert bw.plan_carbon(job, bw.read_signal("c.csv"), price=bw.read_signal("p.csv"), **plan) == named
    with pytest.raises(InputError, match="signal: is a series in EUR/kWh, not in a unit of carbon"):
        bw.plan_carbon(job, bw.read_signal("p.csv"), deadline_s=86_400.0)


def test_signals_in_options_of_the_scheduler_are_of_their_kind(load, files):
    options = {"policy": "oracle", "wait_h": [1.0], "signal": bw.read_signal("c.csv")}
    inputs = (bw.Platform.machines(4, watts=100.0), load, "carbon")
    for more, problem in (
        ({"signal": bw.read_signal("p.csv")}, "option 'signal': is a series in EUR/kWh, not in a unit of carbon"),
        ({"price": bw.read_signal("none.csv")}, "option 'price': is a series whose file states no unit; say unit=EUR"),
    ):
        with pytest.raises(InputError, match=problem):
            bw.simulate(*inputs, options=options | more)
    done = bw.simulate(*inputs, options=options | {"price": bw.read_signal("p.csv")})
    assert done.metrics["jobs_finished"] == 3


def carbon_g(series):
    """Carbon of a job of 5 hours on the only machine, of 1 kW: 1 g for each g/kWh and h."""
    load = bw.Workload.from_frame(pd.DataFrame({"submission_time_s": [0], "length_s": [18000], "hosts": [1]}))
    return bw.simulate(bw.Platform.machines(1, watts=1000.0), load, carbon=series).metrics["carbon_g"]


def test_a_signal_repeats_from_its_row_loop_on():
    # 100 until 2 h, then 200 and 100 an hour each in turns: 100 + 100 + 200 + 100 + 200
    late = bw.Series((3600, 7200), (100, 200), loop=0, period_s=7200)
    assert carbon_g(late) == pytest.approx(700.0)
    # 900 for an hour, then 100 and 200 in turns: 900 + 100 + 200 + 100 + 200
    prefix = bw.Series((0, 3600, 7200), (900, 100, 200), loop=1, period_s=7200)
    assert carbon_g(prefix) == pytest.approx(1500.0)
    # the last row comes again for ever
    assert carbon_g(bw.Series((0, 3600), (900, 100), loop=1, period_s=3600)) == pytest.approx(1300.0)
    # by default a signal ends after its last row, as long as the one before: 2 of 5 hours are known
    assert carbon_g(bw.Series((0, 3600), (900, 100))) is None
    assert carbon_g(bw.Series((0, 10800), (900, 100))) == pytest.approx(2900.0)
    sums = prefix, bw.Series((0, 10800), (1, 3), loop=0, period_s=21600)
    one, other = (series_or("carbon", series) for series in sums)
    both = one.plus(other, 1.0, 1.0)
    hours = np.arange(40.0) * 3600.0
    assert both.values_at(hours).tolist() == [sums[0].at(at_s) + sums[1].at(at_s) for at_s in hours]


DATED = {"date_s": "2024-07-01T00:00Z"}


@pytest.mark.parametrize("moved_h", [1.0, 2.5, -1.5])
@pytest.mark.parametrize(
    "series",
    [
        bw.Series((0, 3600, 7200), (900, 100, 200), loop=1, period_s=7200, **DATED),
        bw.Series((3600, 7200), (100, 200), loop=0, period_s=7200, **DATED),
        bw.Series((3600, 7200), (100, 200), **DATED),
    ],
)
def test_series_by_date_move_to_the_clock_of_a_run(series, moved_h):
    begin_s = series.date_s + 3600.0 * moved_h
    clock = Clock(begin_s, last_s=36000.0, end_s=72000.0)
    moved, signal = on_clock(series, clock), on_clock(series_or("carbon", series), clock)
    for half_hour in range(40 if series.repeats else 2):
        at_s = 1800.0 * half_hour + 1.0
        assert moved.at(at_s) == series.at(at_s + 3600.0 * moved_h) == signal.at(at_s)


def test_a_signal_that_repeats_is_another_input(load, tmp_path):
    digests = set()
    for loop in (None, 0, 1):
        series = bw.Series((0, 3600), (100, 200), loop=loop, period_s=1e6 - 3600.0 * (loop or 0))
        bw.simulate(bw.Platform.machines(4, watts=100.0), load, carbon=series).save(tmp_path / f"{loop}")
        digests.add(json.loads((tmp_path / f"{loop}_metadata.json").read_text())["inputs"]["carbon"]["sha256"])
    assert len(digests) == 3
