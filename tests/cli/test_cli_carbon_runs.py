"""`batwatt carbon run` and the commands around it: what they write and print, the examples, bad input in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from carbon_talk import CARBON, DAY, JOBS, PRICE, SIGNALS, content, good, hourly


def run(house, *words, jobs="arrival_time,length,cpus\n0,3600,2\n", signal=None, to="x", by="run"):
    words = words if to is None else (*words, "-e", house.out / to)
    path = jobs if isinstance(jobs, Path) else house.write("jobs.csv", jobs)
    return house.batwatt("carbon", by, "--jobs", path, "--signal", signal or hourly(house), *words)


# run, policies -------------------------------------------------------------------------------------------------------


def test_a_run_by_hand(house):
    """An hour on 2 cpus of 500 W: 1 kWh at 400 g, or an hour later at 100 g."""
    done = good(run(house, "--policy", "oracle", "--watts", 500, "--wait", 3))
    metrics = house.metrics()
    assert {name: metrics[name] for name in ("policy", "compat", "immediate_carbon_g", "saved_share")} == {
        "policy": "oracle", "compat": None, "immediate_carbon_g": 400, "saved_share": 0.75,
    }  # fmt: skip
    assert (metrics["carbon_g"], metrics["energy_j"], metrics["mean_total_wait_s"]) == (100, 3.6e6, 3600)
    assert (metrics["segments"], metrics["jobs"], metrics["late_jobs"]) == (1, 1, 0)
    assert metrics["cost"] == pytest.approx(2 * 0.0624)
    assert metrics["inputs"]["wait"] == "3" and metrics["inputs"]["watts"] == 500
    [row] = pd.read_csv(house.out / "x_segments.csv").to_dict("records")
    assert (row["job"], row["begin_s"], row["end_s"], row["cpus"], row["machine"]) == (1, 3600, 7200, 2, "on-demand")
    table = [line.split("\t") for line in done.out.splitlines()]
    assert table[0][:3] == ["policy", "carbon_g", "saved_share"]
    assert table[1][:3] == ["immediate", "400.0", "0.0"] and table[2][:3] == ["oracle", "100.0", "0.75"]
    assert house.left == ["x_metrics.json", "x_segments.csv"]


def test_segments_of_a_suspended_job(house):
    good(run(house, "--policy", "suspend-resume", "--wait", 2, jobs="arrival_time|length|cpus\n0|7200|1\n"))
    rows = pd.read_csv(house.out / "x_segments.csv")
    assert rows[["begin_s", "end_s"]].to_numpy().tolist() == [[3600, 7200], [10800, 14400]]
    assert rows["segment"].tolist() == [0, 1] and house.metrics()["segments"] == 2


def test_length_in_hours_a_deadline_and_a_begin(house):
    words = ["--policy", "oracle", "--length-unit", "hours", "--deadline", 2, "--begin", "2024-07-01T04:00"]
    good(run(house, *words, jobs="arrival_time,length,cpus\n0,1,1\n"))
    assert house.metrics()["carbon_g"] == 0.2  # hours of 400 and 200 g/kWh


def test_a_price_is_charged(house):
    """At 1 g + 40 money an hour of 400 + 40 x 1 is less than one of 100 + 40 x 9."""
    price = hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)")
    good(run(house, "--policy", "oracle", "--wait", 1, "--watts", 500, "--price", price))
    assert (house.metrics()["carbon_g"], house.metrics()["cost"]) == (100, 9)
    good(run(house, "--policy", "oracle", "--wait", 1, "--watts", 500, "--price", price, "--price-weight", 40))
    assert (house.metrics()["carbon_g"], house.metrics()["cost"]) == (400, 1)


def test_machine_prices_and_reserved_cpus(house):
    """2 cpus on demand for an hour at 0.1; 2 reserved ones from 0 s to the start at 3600 s at half of that."""
    good(run(house, "--policy", "oracle", "--wait", 1, "--machine-prices", "0.1,0.05,0.5"))
    assert house.metrics()["cost"] == pytest.approx(0.2)
    good(run(house, "--policy", "oracle", "--wait", 1, "--machine-prices", "0.1,0.05,0.5", "--reserved", 2))
    assert house.metrics()["cost"] == pytest.approx(0.1)


def test_gaps_that_no_job_reaches_do_not_matter(house):
    signal = hourly(house, [*DAY * 12, "", *DAY])
    good(run(house, "--policy", "oracle", signal=signal))
    assert "values missing" in run(house, "--policy", "oracle", signal=hourly(house, [400, "", *DAY])).err


def test_same_seed_same_bytes(house):
    words = ["--policy", "wait-awhile", "--forecast-error", 0.1, "--repetitions", 3, "--seed", 5]
    for name in ("a", "b"):
        good(run(house, *words, jobs=JOBS, signal=CARBON, to=name))
    assert house.file("a_segments.csv") == house.file("b_segments.csv")
    good(run(house, *words[:-1], 6, jobs=JOBS, signal=CARBON, to="c"))
    assert house.file("a_segments.csv") != house.file("c_segments.csv")
    assert pd.read_csv(house.out / "a_segments.csv")["repetition"].max() == 2


def test_several_policies_order_as_the_laws_have_it(house):
    names = "immediate,oracle,suspend-resume,phase-aware"
    file = house.out / "all.csv"
    done = good(house.batwatt("carbon", "run", "--jobs", JOBS, "--signal", CARBON, "--policy", names,
                              "--deadline", 24, "-o", file))  # fmt: skip
    table = pd.read_csv(file).set_index("policy")
    assert table.index.tolist() == names.split(",") == [line.split("\t")[0] for line in done.out.splitlines()[1:]]
    grams = table["carbon_g"]
    assert grams["phase-aware"] < grams["oracle"] < grams["immediate"]
    assert table.loc["oracle", "saved_share"] == pytest.approx(1 - grams["oracle"] / grams["immediate"])
    assert (table["jobs"] == 8).all()


@pytest.mark.parametrize(
    ("words", "some"), [("policies", "phase-aware"), ("gaia --list", "carbon-cost"), ("lwa --list", "interrupting")]
)
def test_policies(house, words, some):
    done = good(house.batwatt("carbon", *words.split()))
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert {"immediate", some} < {row[0] for row in rows} and all(
        len(row) == 2 and row[1].endswith(".") for row in rows[1:]
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--policy", " , "], "--policy: names none"),
        (["--policy", "oracle,lowest"], "--export: is for one policy"),
        (["--policy", "oracel"], "no policy 'oracel'; did you mean 'oracle'?"),
        (["--policy", "oracle", "--wait", "6x"], "--wait: '6x' is not SHORTxLONG in hours"),
        (["--policy", "oracle", "--wait", "1x2x3"], "--wait"),
        (["--policy", "oracle", "--wait", "-1"], "--wait"),
        (["--policy", "oracle", "--wait", "6", "--deadline", "3"], "two ways to say how long jobs may wait"),
        (["--policy", "oracle", "--deadline", "0"], "--deadline: must be > 0, got 0"),
        (["--policy", "oracle", "--deadline", "0.5"], "job 1: it takes 3600 s and must finish within 0.5 h"),
        (["--policy", "oracle", "--wait", "30"], "the signal ends at 86400 s"),
        (["--policy", "oracle", "--constraint", "weekly"], "no constraint 'weekly'"),
        (["--policy", "oracle", "--forecast-error", "-1"], "--forecast-error: must be >= 0"),
        (["--policy", "oracle", "--length-unit", "days"], "no unit of time 'days'"),
        (["--policy", "oracle", "--watts", "-3"], "--watts: must be >= 0, got -3"),
        (["--policy", "oracle", "--machine-prices", "1,2"], "is not three numbers"),
    ],
)
def test_bad_runs(house, words, expected):
    done = run(house, *words)
    assert done.code == 2 and expected in done.line and done.out == "" and house.left == []


@pytest.mark.parametrize(
    ("by", "words", "expected"),
    [
        ("gaia", ["oracle", "--deadline", "4"], "No such option: --deadline"),
        ("gaia", ["oracle", "--averaged"], "No such option: --averaged"),
        ("gaia", ["phase-aware"], "no policy of GAIA 'phase-aware'"),
        ("gaia", ["oracle", "--carbon-policy", "cheapest"], "no carbon policy 'cheapest'"),
        ("gaia", ["oracle", "--wait", "6x"], "--wait: '6x' is not SHORTxLONG in hours"),
        ("gaia", ["oracle", "--machine-prices", "1,2"], "is not three numbers"),
        ("gaia", [" , "], "--policy: names none"),
        ("gaia", ["oracle,lowest"], "--export: is for one policy"),
        ("lwa", ["interrupting", "--wait", "6"], "No such option: --wait"),
        ("lwa", ["interrupting", "--reserved", "1"], "No such option: --reserved"),
        ("lwa", ["oracle"], "no policy of Let's Wait Awhile 'oracle'"),
        ("lwa", ["interrupting", "--constraint", "weekly"], "no constraint 'weekly'"),
        ("lwa", ["interrupting", "--forecast-error", "-1"], "--forecast-error: must be >= 0"),
    ],
)
def test_bad_runs_by_others(house, by, words, expected):
    done = run(house, "--policy", *words, by=by)
    assert done.code == 2 and expected in done.line and done.out == "" and house.left == []


# peers ---------------------------------------------------------------------------------------------------------------


def test_gaia_by_hand(house):
    """An hour on 2 cpus of 1 W, 0.002 kWh: 400 g/kWh at once, 100 an hour later; the gap is beyond its 720 hours."""
    signal = hourly(house, [*DAY * 30, "", *DAY])
    for name, carbon_g in (("immediate", 0.8), ("oracle", 0.2), ("suspend-resume", 0.2), ("cst_average", 0.2)):
        good(run(house, "--policy", name, "--wait", "6x24", signal=signal, by="gaia"))
        assert house.metrics()["carbon_g"] == pytest.approx(carbon_g, rel=1e-12)
        assert house.metrics()["compat"] == "gaia"


def test_gaia_counts_rows_whatever_their_dates(house):
    """Rows of 400, 400, 100, 400, nothing, 400, ... on odd dates: the third row is the third hour."""
    dates = ["2024-07-01T05:00Z", "2024-07-01T00:00Z", "2024-07-03T00:00Z", *["2024-07-01T01:00Z"] * 2]
    head, tail = (
        [400, 400, 100, 400, ""],
        pd.date_range("2024-08-01", periods=715, freq="h").strftime("%Y-%m-%dT%H:%MZ"),
    )
    rows = [*zip(dates, head, strict=True), *((date, 400) for date in tail)]
    signal = house.write("odd.csv", "datetime,carbon_intensity\n" + "".join(f"{a},{b}\n" for a, b in rows))
    done = run(house, "--policy", "oracle", signal=signal, by="gaia")
    assert done.code == 0 and house.metrics()["carbon_g"] == pytest.approx(0.2, rel=1e-12)
    assert pd.read_csv(house.out / "x_segments.csv")["begin_s"].tolist() == [7200]
    [line] = done.err.splitlines()
    assert "5 of 720 rows are not an hour after the row before" in line and "1 values missing" in line
    done = run(house, "--policy", "oracle", "--begin", "2024-07-03", signal=signal, by="gaia")
    assert house.metrics()["immediate_carbon_g"] == pytest.approx(0.2, rel=1e-12)
    assert (
        "has no row of 2025-01-01"
        in run(house, "--policy", "oracle", "--begin", "2025-01-01", signal=signal, by="gaia").line
    )


def test_half_hours_become_gaias_hours(house):
    """300 and 500 in the first hour are 400, 50 and 150 in the second 100."""
    dates = pd.date_range("2024-07-01", periods=1440, freq="30min").strftime("%Y-%m-%dT%H:%M")
    values = np.tile([300, 500, 50, 150], 360)
    rows = "".join(f"{date},{value}\n" for date, value in zip(dates, values, strict=True))
    signal = house.write("half.csv", f"datetime,carbon_intensity\n{rows}")
    good(run(house, "--policy", "oracle", signal=signal, by="gaia"))
    assert house.metrics()["carbon_g"] == pytest.approx(0.2, rel=1e-12)


def test_gaia_writes_segments(house):
    words = ["--policy", "suspend-resume", "--wait", 2]
    good(run(house, *words, jobs="arrival_time,length,cpus\n0,7200,1\n", signal=hourly(house, DAY * 30), by="gaia"))
    rows = pd.read_csv(house.out / "x_segments.csv")
    assert rows[["begin_s", "end_s"]].to_numpy().tolist() == [[3600, 7200], [10800, 14400]]


@pytest.mark.parametrize(("by", "names"), [("gaia", "oracle,immediate,lowest"), ("lwa", "interrupting, wait-awhile")])
def test_others_compare_several(house, by, names):
    """The rows of several policies are those of each on its own; files of one, the table of all."""
    signal, table = hourly(house, DAY * 30), house.out / "all.csv"
    words = ["--constraint", 4] if by == "lwa" else []
    done = good(run(house, "--policy", names, *words, "-o", table, signal=signal, by=by, to=None))
    rows = [line.split("\t") for line in done.out.splitlines()[1:]]
    others = [name.strip() for name in names.split(",") if name != "immediate"]
    assert [row[0] for row in rows] == ["immediate", *others] and house.left == ["all.csv"]
    assert pd.read_csv(table)["policy"].tolist() == ["immediate", *others]
    for row in rows:
        alone = good(run(house, "--policy", row[0], *words, signal=signal, by=by))
        assert alone.out.splitlines()[-1].split("\t") == row and house.metrics()["compat"] == by


def test_lwa_by_hand(house):
    """Of the half hours 400 400 100 100 400 400 100 100 ... two hours of 1 W run in the hours of 100 g/kWh."""
    jobs = "arrival_time,length,cpus\n0,7200,1\n"
    signal = hourly(house, DAY * 7)
    good(run(house, "--policy", "interrupting", "--constraint", 4, jobs=jobs, signal=signal, by="lwa"))
    assert house.metrics()["carbon_g"] == pytest.approx(0.2)
    good(run(house, "--policy", "wait-awhile", "--constraint", 4, jobs=jobs, signal=signal, by="lwa"))
    assert house.metrics()["carbon_g"] == pytest.approx(0.5)
    assert house.metrics()["immediate_carbon_g"] == pytest.approx(0.5)


@pytest.mark.parametrize("minutes", [5, 15])
def test_lwa_takes_the_rows_at_full_and_half_hours(house, minutes):
    """Rows at :00 and :30 say 300 200 100 200 300, those between 900; its own German and British files have such."""
    values = {0: 300, 30: 200, 60: 100, 90: 200, 120: 300}
    rows = "".join(
        f"2020-06-01T{minute // 60:02}:{minute % 60:02}Z,{values.get(minute, 900)}\n"
        for minute in range(0, 150, minutes)
    )
    signal = house.write("s.csv", "datetime,carbon_intensity\n" + rows)
    jobs = "arrival_time,length,cpus\n0,3600,1\n"
    good(run(house, "--policy", "wait-awhile", "--constraint", 3, jobs=jobs, signal=signal, by="lwa"))
    # 1 W for two half hours, at 200 and 100 g/kWh instead of 300 and 200
    assert house.metrics()["carbon_g"] == pytest.approx(0.15, rel=1e-12)
    assert house.metrics()["immediate_carbon_g"] == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize("digits", [10, 400, 5000])
def test_lwa_refuses_to_shift_by_that_many_steps(house, digits):
    done = run(house, "--policy", "interrupting", "--constraint", "9" * digits, by="lwa")
    assert done.code == 2 and "constraint: must be from 0 to 1000000000 steps" in done.line


def test_lwa_needs_a_date_for_its_constraints(house):
    signal = house.write("s.csv", "time_s,carbon_intensity\n" + "".join(f"{1800 * i},{i}\n" for i in range(200)))
    done = run(house, "--policy", "interrupting", signal=signal, by="lwa")
    assert done.code == 2 and "needs a date" in done.line


def test_lwas_jobs(house):
    done = good(house.batwatt("carbon", "jobs", "-n", 50, "--seed", 3))
    rows = [line.split(",") for line in done.out.splitlines()]
    assert rows[0] == ["arrival_time", "length", "cpus"] and len(rows) == 51
    assert all(int(arrival) % 1800 == 0 and 14400 <= int(length) <= 322200 for arrival, length, _ in rows[1:])
    assert good(house.batwatt("carbon", "jobs", "-n", 50, "--seed", 3)).out == done.out


# engines -------------------------------------------------------------------------------------------------------------


def test_a_run_on_the_engine_emits_what_immediate_does(house):
    workload, platform, segments = house.out / "w.json", house.out / "p.xml", house.out / "seg.csv"
    words = ["--machines", 20, "--watts", 60, "-o", workload, "-p", platform]
    done = good(house.batwatt("carbon", "workload", JOBS, *words))
    assert done.out == "8 jobs; 20 machines of 5 hosts of 60 W\n"
    good(house.batwatt("run", "-p", platform, "-w", workload, "-o", '{"response": "none"}', "-e", house.out / "e"))
    words = ["-w", workload, "--signal", CARBON, "--price", PRICE, "--segments", segments]
    found = content(house.batwatt("carbon", "account", house.out / "e", *words))
    good(run(house, "--policy", "immediate", "--watts", 60, "--price", PRICE, jobs=JOBS, signal=CARBON))
    metrics = house.metrics()
    for name in ("carbon_g", "energy_j", "cost"):
        assert found[name] == pytest.approx(metrics[name], rel=1e-9)
    assert (found["segments"], found["averaged_rows"]) == (8, 0)
    ours, theirs = (pd.read_csv(path) for path in (segments, house.out / "x_segments.csv"))
    assert ours["carbon_g"].to_numpy() == pytest.approx(theirs["carbon_g"].to_numpy(), rel=1e-9)


def test_a_platform_that_would_be_too_wide(house):
    words = ["--machines", 20, "-o", house.out / "w.json", "-p", house.out / "p.xml"]
    done = house.batwatt("carbon", "workload", JOBS, *words)
    assert done.code == 2 and "powers from 1 to 300 W" in done.line and house.left == []


# examples ------------------------------------------------------------------------------------------------------------


def test_the_shipped_signals_are_what_their_script_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(SIGNALS))
    from make_signal import texts

    assert {name: (SIGNALS / name).read_text() for name in texts()} == texts()
