"""`batwatt carbon plan` and `batwatt carbon run`: what they write and print, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from carbon_talk import CARBON, JOBS, PRICE, SIGNALS, content, good, hourly

TWO_HOURS = {"work": [{"duration": 7200, "power": 1000}]}
LATE_START = {"startup": [{"duration": 600, "power": 1200}], **TWO_HOURS}


def plan(house, *words, job=TWO_HOURS, signal=None):
    path = house.write("job.json", json.dumps(job))
    return house.batwatt("carbon", "plan", path, "--carbon", signal or hourly(house), *words)


def test_a_plan_by_hand(house):
    """1 kW in two of the hours 400, 100, 400, 100 g/kWh: 100 + 100 g instead of 400 + 100 g."""
    file = house.out / "plan.json"
    assert good(plan(house, "--start", 0, "--deadline", 14400, "-o", file)).out == ""
    found = json.loads(file.read_text())
    assert (found["carbon_g"], found["immediate_carbon_g"], found["saved_share"]) == (200, 500, 0.6)
    assert (found["method"], found["slot_s"], found["slots"], found["rounded"]) == ("dp", 3600, 4, False)
    assert (found["starts"], found["energy_j"], found["begin"]) == (2, 7.2e6, "2024-07-01T00:00Z")
    first = {"begin_s": 3600, "end_s": 7200, "startup_s": 0, "work_from_s": 0, "work_to_s": 3600}
    second = {"begin_s": 10800, "end_s": 14400, "startup_s": 0, "work_from_s": 3600, "work_to_s": 7200}
    assert found["segments"] == [one | {"energy_j": 3.6e6, "carbon_g": 100} for one in (first, second)]


@pytest.mark.parametrize(
    ("words", "carbon_g"),
    [
        # both start-ups, 0.2 kWh each, and 50 min of work in each of the hours of 100, 20 min in an hour of 400
        (("--deadline", 14400), 2 * (20 + 5 / 6 * 100) + 1 / 3 * 400),
        # in one piece from 1:00 on: 50 min of work at 100, 60 min at 400, 10 min at 100
        (("--deadline", 14400, "--max-starts", 1), 20 + 5 / 6 * 100 + 400 + 1 / 6 * 100),
        (("--deadline", 14400, "--max-starts", 1, "--cpus", 3), 3 * 520),
        # no time to wait: 50 min at 400, 60 min at 100, 10 min at 400
        (("--deadline", 7800), 80 + 5 / 6 * 400 + 100 + 1 / 6 * 400),
        # no checkpoint: no suspension
        (("--deadline", 14400, "--checkpoints"), 520),
    ],
)
def test_startups_are_paid(house, words, carbon_g):
    found = content(plan(house, *words, "--slot-s", 600, job=LATE_START))
    assert found["carbon_g"] == pytest.approx(carbon_g, rel=1e-9)
    assert found["carbon_g"] == pytest.approx(sum(segment["carbon_g"] for segment in found["segments"]))
    assert all(segment["startup_s"] == 600 for segment in found["segments"])


def test_dates_are_those_of_the_signal(house):
    by_s = content(plan(house, "--start", 3600, "--deadline", 18000))
    by_date = content(plan(house, "--start", "2024-07-01T01:00", "--deadline", "2024-07-01T07:00+02:00"))
    assert by_s == by_date and by_s["start_s"] == 3600
    signal = f"{hourly(house)},tz=Europe/Berlin"
    local = content(plan(house, "--start", "2024-07-01T03:00", "--deadline", "2024-07-01T07:00", signal=signal))
    assert local == by_s


def test_from_is_0_s(house):
    found = content(plan(house, "--deadline", 7200, signal=f"{hourly(house)},from=2024-07-01T01:00"))
    assert (found["begin"], found["carbon_g"]) == ("2024-07-01T01:00Z", 500)


def test_a_price_is_charged_and_counts_by_its_weight(house):
    """Carbon is least in hours 1 and 3, the price (1, 9, 1, 9) in hours 0 and 2."""
    price = hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)")
    carbon = content(plan(house, "--deadline", 14400, "--price", price))
    assert (carbon["carbon_g"], carbon["cost"], carbon["immediate_cost"]) == (200, 18, 10)
    assert carbon["weights"] == {"carbon": 1, "price": 0}
    cheap = content(plan(house, "--deadline", 14400, "--price", price, "--carbon-weight", 0, "--price-weight", 1))
    assert (cheap["carbon_g"], cheap["cost"]) == (800, 2)
    assert [segment["cost"] for segment in cheap["segments"]] == [1, 1]
    both = content(plan(house, "--deadline", 14400, "--price", price, "--price-weight", 30))
    assert both["carbon_g"] == 200  # 100 + 30 x 9 = 370 < 400 + 30
    both = content(plan(house, "--deadline", 14400, "--price", price, "--price-weight", 40))
    assert both["carbon_g"] == 800  # 100 + 40 x 9 = 460 > 400 + 40


def test_a_gap_beyond_the_deadline_does_not_matter(house):
    signal = hourly(house, [400, 100, 400, 100, "", 200, 100])
    assert content(plan(house, "--deadline", 14400, signal=signal))["carbon_g"] == 200
    done = plan(house, "--deadline", 18000, signal=signal)
    assert done.code == 0 and "1 values missing" in done.err and json.loads(done.out)["carbon_g"] == 200


def test_bad_prices_of_a_plan(house):
    weights = ["--deadline", 14400, "--carbon-weight", 0]
    assert "are both 0" in plan(house, *weights, "--price", hourly(house, [1] * 24, "p.csv", "price")).line
    words = [*weights, "--price-weight", 1]
    unknown = plan(house, *words, "--price", house.write("u.csv", "datetime,price\n2024-07-01,160.98\n"))
    assert unknown.code == 2 and "u.csv: column 'price' (values to 160.98) states no unit; write unit=" in unknown.line
    # as it says
    price = hourly(house, [1000, 9000] * 12, "m.csv", "price")
    assert content(plan(house, *words, "--price", f"{price},unit=EUR/MWh"))["cost"] == 2
    assert "repeat= is for runs; take a longer" in plan(house, *words, "--price", f"{price},repeat=yes").line


# run -----------------------------------------------------------------------------------------------------------------


def run(house, *words, jobs="arrival_time,length,cpus\n0,3600,2\n", signal=None, to="x"):
    words = words if to is None else (*words, "-e", house.out / to)
    path = jobs if isinstance(jobs, Path) else house.write("jobs.csv", jobs)
    return house.batwatt("carbon", "run", "-w", path, "--carbon", signal or hourly(house), *words)


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
    # an option of one of several policies will do
    good(run(house, "--policy", "immediate,carbon-spot,phase-aware", "--max-starts", 2, to=None))


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


def test_the_shipped_signals_are_what_their_script_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(SIGNALS))
    from make_signal import texts

    assert {name: (SIGNALS / name).read_text() for name in texts()} == texts()
