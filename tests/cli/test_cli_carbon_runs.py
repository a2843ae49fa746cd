"""`batwatt carbon run` and the commands around it: what they write and print, the examples, bad input in one line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from carbon_talk import CARBON, DAY, JOBS, PRICE, SIGNALS, content, good, hourly


def run(house, *words, jobs="arrival_time,length,cpus\n0,3600,2\n", signal=None, to="x"):
    words = words if to is None else (*words, "-e", house.out / to)
    path = jobs if isinstance(jobs, Path) else house.write("jobs.csv", jobs)
    return house.batwatt("carbon", "run", "-w", path, "--carbon", signal or hourly(house), *words)


# run, policies -------------------------------------------------------------------------------------------------------


def test_a_run_by_hand(house):
    """An hour on 2 cpus of 500 W: 1 kWh at 400 g, or an hour later at 100 g."""
    done = good(run(house, "--policy", "oracle", "--watts", 500, "--wait", 3))
    metrics = house.metrics()
    assert (metrics["policy"], metrics["immediate_carbon_g"], metrics["saved_share"]) == ("oracle", 400, 0.75)
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
    words = ["--policy", "oracle", "--length-unit", "hours", "--deadline", 2]
    signal = f"{hourly(house)},from=2024-07-01T04:00"
    good(run(house, *words, jobs="arrival_time,length,cpus\n0,1,1\n", signal=signal))
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
    done = good(house.batwatt("carbon", "run", "-w", JOBS, "--carbon", CARBON, "--policy", names,
                              "--deadline", 24, "-o", file))  # fmt: skip
    table = pd.read_csv(file).set_index("policy")
    assert table.index.tolist() == names.split(",") == [line.split("\t")[0] for line in done.out.splitlines()[1:]]
    grams = table["carbon_g"]
    assert grams["phase-aware"] < grams["oracle"] < grams["immediate"]
    assert table.loc["oracle", "saved_share"] == pytest.approx(1 - grams["oracle"] / grams["immediate"])
    assert (table["jobs"] == 8).all()


def test_policies(house):
    done = good(house.batwatt("policies"))
    rows = [line.split("\t") for line in done.out.splitlines()]
    kinds = {row[1]: row[0] for row in rows}
    assert kinds["immediate"] == kinds["phase-aware"] == "policy"
    assert kinds["cost"] == kinds["carbon-cost"] == kinds["POLICY-spot"] == "machine_rule"


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
        (["--policy", "carbon", "--carbon-policy", "cheapest"], "no policy 'cheapest'"),
        (["--policy", "oracle", "--carbon-policy", "lowest"], "--carbon-policy: is for carbon, carbon-cost"),
        (["--policy", "oracle", "--slot-s", "60"], "--slot-s: is for wait-awhile,"),
        (["--policy", "wait-awhile", "--max-starts", "2"], "--max-starts: is for phase-aware,"),
        (["--policy", "oracle", "--seed", "0"], "--seed: is for errors of forecasts; give --forecast-error"),
        (["--policy", "oracle", "--repetitions", "3"], "--repetitions: is for errors of forecasts"),
        (["--policy", "oracle", "--carbon-weight", "2"], "--carbon-weight: is for a price"),
    ],
)
def test_bad_runs(house, words, expected):
    done = run(house, *words)
    assert done.code == 2 and expected in done.line and done.out == "" and house.left == []


def test_a_policy_of_the_line_that_uses_an_option_is_enough(house):
    good(
        run(house, "--policy", "immediate,carbon-cost-spot", "--carbon-policy", "wait-awhile", "--slot-s", 600, to=None)
    )
    good(run(house, "--policy", "oracle,phase-aware", "--max-starts", 2, to=None))


def test_a_signal_ends_after_its_days(house):
    signal = hourly(house, DAY * 2)
    good(run(house, "--policy", "oracle", "--wait", 30, signal=signal))
    done = run(house, "--policy", "oracle", "--wait", 30, signal=f"{signal},days=1")
    assert done.code == 2 and "the signal ends at 86400 s" in done.line


def test_a_price_begins_when_the_carbon_does(house):
    price = hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)")
    words = ["--policy", "oracle", "--wait", 1, "--watts", 500, "--price-weight", 40]
    signal = f"{hourly(house)},from=2024-07-01T01:00"
    good(run(house, *words, "--price", price, signal=signal))
    assert (house.metrics()["carbon_g"], house.metrics()["cost"]) == (400, 1)
    done = run(house, *words, "--price", f"{price},from=2024-07-01T02:00", signal=signal)
    assert done.code == 2 and "begins at 2024-07-01T02:00Z, the carbon signal at 2024-07-01T01:00Z" in done.line


# engines -------------------------------------------------------------------------------------------------------------


def test_a_run_on_the_engine_emits_what_immediate_does(house):
    workload, platform, segments = house.out / "w.json", house.out / "p.xml", house.out / "seg.csv"
    words = ["--machines", 20, "--watts", 60, "-o", workload, "-p", platform]
    done = good(house.batwatt("carbon", "workload", JOBS, *words))
    assert done.out == "8 jobs; 20 machines of 5 hosts of 60 W\n"
    good(house.batwatt("run", "-p", platform, "-w", workload, "-o", '{"response": "none"}', "-e", house.out / "e"))
    words = ["-w", workload, "--carbon", CARBON, "--price", PRICE, "--segments", segments]
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
