"""`batwatt carbon plan` and `batwatt carbon run`: what they write and print, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from carbon_talk import CARBON, JOBS, content, good, hourly

TWO_HOURS = {"work": [{"duration": 7200, "power": 1000}]}


def plan(house, *words, job=TWO_HOURS, signal=None):
    path = house.write("job.json", json.dumps(job))
    return house.batwatt("carbon", "plan", path, "--carbon", signal or hourly(house), *words)


def test_a_plan_by_hand(house):
    """1 kW in two of the hours 400, 100, 400, 100 g/kWh: 100 + 100 g instead of 400 + 100 g."""
    file = house.out / "plan.json"
    assert good(plan(house, "--start", 0, "--deadline", 14400, "-o", file)).out == ""
    figures = json.loads(file.read_text())
    first = {"begin_s": 3600, "end_s": 7200, "startup_s": 0, "work_from_s": 0, "work_to_s": 3600}
    second = {"begin_s": 10800, "end_s": 14400, "startup_s": 0, "work_from_s": 3600, "work_to_s": 7200}
    assert figures.pop("segments") == [one | {"energy_j": 3.6e6, "carbon_g": 100} for one in (first, second)]
    assert figures.items() >= {
        "carbon_g": 200, "immediate_carbon_g": 500, "saved_share": 0.6, "starts": 2, "energy_j": 7.2e6,
        "method": "dp", "slot_s": 3600, "slots": 4, "rounded": False, "begin": "2024-07-01T00:00Z",
    }.items()  # fmt: skip


def test_dates_are_those_of_the_signal(house):
    by_s = content(plan(house, "--start", 3600, "--deadline", 18000))
    by_date = content(plan(house, "--start", "2024-07-01T01:00", "--deadline", "2024-07-01T07:00+02:00"))
    assert by_s == by_date and by_s["start_s"] == 3600
    signal = f"{hourly(house)},tz=Europe/Berlin"
    local = content(plan(house, "--start", "2024-07-01T03:00", "--deadline", "2024-07-01T07:00", signal=signal))
    assert local == by_s
    later = content(plan(house, "--deadline", 7200, signal=f"{hourly(house)},from=2024-07-01T01:00"))
    assert (later["begin"], later["carbon_g"]) == ("2024-07-01T01:00Z", 500)


def test_a_price_is_charged_and_counts_by_its_weight(house):
    """Carbon is least in hours 1 and 3, the price (1, 9, 1, 9) in hours 0 and 2."""
    words = ("--deadline", 14400, "--price", hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)"))
    carbon = content(plan(house, *words))
    assert (carbon["carbon_g"], carbon["cost"], carbon["immediate_cost"]) == (200, 18, 10)
    assert carbon["weights"] == {"carbon": 1, "price": 0}
    cheap = content(plan(house, *words, "--carbon-weight", 0, "--price-weight", 1))
    assert (cheap["carbon_g"], cheap["cost"]) == (800, 2)
    assert [segment["cost"] for segment in cheap["segments"]] == [1, 1]
    # 100 + 30 x 9 = 370 < 400 + 30, and 100 + 40 x 9 = 460 > 400 + 40
    for weight, carbon_g in ((30, 200), (40, 800)):
        assert content(plan(house, *words, "--price-weight", weight))["carbon_g"] == carbon_g


def test_keys_of_a_price(house):
    words = ["--deadline", 14400, "--carbon-weight", 0, "--price-weight", 1]
    price = hourly(house, [1000, 9000] * 12, "m.csv", "price")
    assert content(plan(house, *words, "--price", f"{price},unit=EUR/MWh"))["cost"] == 2
    assert content(plan(house, *words, "--price", f"{price},unit=EUR/MWh,repeat=yes"))["cost"] == 2


# run -----------------------------------------------------------------------------------------------------------------


def run(house, *words, jobs="arrival_time,length,cpus\n0,3600,2\n", signal=None, to="x"):
    words = words if to is None else (*words, "-e", house.out / to)
    path = jobs if isinstance(jobs, Path) else house.write("jobs.csv", jobs)
    return house.batwatt("carbon", "run", "-w", path, "--carbon", signal or hourly(house), *words)


def test_a_run_by_hand(house):
    """An hour on 2 cpus of 500 W: 1 kWh at 400 g, or an hour later at 100 g; at 40 g per EUR the price decides."""
    price = hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)")
    done = good(run(house, "--policy", "oracle", "--watts", 500, "--wait", 3, "--price", price))
    metrics = house.metrics()
    assert metrics["inputs"]["wait"] == "3" and metrics["inputs"]["watts"] == 500
    assert metrics.items() >= {
        "policy": "oracle", "immediate_carbon_g": 400, "saved_share": 0.75, "carbon_g": 100, "energy_j": 3.6e6,
        "mean_total_wait_s": 3600, "segments": 1, "jobs": 1, "late_jobs": 0, "cost": 9,
    }.items()  # fmt: skip
    [row] = pd.read_csv(house.out / "x_segments.csv").to_dict("records")
    assert (row["job"], row["begin_s"], row["end_s"], row["cpus"], row["cost"]) == (1, 3600, 7200, 2, 9)
    table = [line.split("\t") for line in done.out.splitlines()]
    assert table[0][:3] == ["policy", "carbon_g", "saved_share"]
    assert table[1][:3] == ["immediate", "400.0", "0.0"] and table[2][:3] == ["oracle", "100.0", "0.75"]
    assert house.left == ["x_metrics.json", "x_segments.csv"]
    hours = ("--length-unit", "hours", "--deadline", 2, "--watts", 500, "--price", price, "--price-weight", 40)
    good(run(house, "--policy", "oracle", *hours, jobs="arrival_time|length|cpus\n0|1|2\n"))
    assert (house.metrics()["carbon_g"], house.metrics()["cost"]) == (400, 1)


def test_several_policies_order_as_the_laws_have_it(house):
    names = "immediate,oracle,suspend-resume,phase-aware"
    file = house.out / "all.csv"
    words = ("--policy", names, "--deadline", 24, "-o", file)
    done = good(run(house, *words, jobs=JOBS, signal=CARBON, to=None))
    table = pd.read_csv(file).set_index("policy")
    assert table.index.tolist() == names.split(",") == [line.split("\t")[0] for line in done.out.splitlines()[1:]]
    grams = table["carbon_g"]
    assert grams["phase-aware"] < grams["oracle"] < grams["immediate"]
    assert table.loc["oracle", "saved_share"] == pytest.approx(1 - grams["oracle"] / grams["immediate"])
    assert (table["jobs"] == 8).all()
