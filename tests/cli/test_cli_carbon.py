"""`batwatt plan carbon`, and runs and accounts of jobs in phases: what they write and print, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from carbon_talk import CARBON, JOBS, content, good, hourly

TWO_HOURS = {"work": [{"duration": 7200, "power": 1000}]}


def plan(house, *words, job=TWO_HOURS, signal=None):
    path = house.write("job.json", json.dumps(job))
    return house.batwatt("plan", "carbon", path, "--carbon", signal or hourly(house), *words)


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


# run ------------------------------------------------------------------------------------------------------------------


def workload(house, *words, jobs="arrival_time,length,cpus\n0,3600,2\n", keys=""):
    """Words of a run of jobs in phases; the files of the run have the prefix x."""
    path = jobs if isinstance(jobs, Path) else house.write("jobs.csv", jobs)
    files = house.folder / "w.json", house.folder / "p.xml"
    good(house.batwatt("convert", f"{path}{keys}", "-o", files[0], "-p", files[1], *words), quiet=False)
    return ("-w", files[0], "-p", files[1])


def test_a_run_by_hand(house):
    """An hour on 2 cpus of 500 W: 1 kWh at 400 g, or an hour later at 100 g; at 40 g per EUR the price decides."""
    price = hourly(house, [1, 9] * 12, "price.csv", "price (EUR/kWh)")
    signals = ("--carbon", f"{hourly(house)},from=2024-07-01", "--price", f"{price},repeat=yes")
    inputs = workload(house, "--machines", 2, "--watts", 500)
    shifted = (*inputs, *signals, "-s", "carbon", "-e", house.out / "x")
    good(house.batwatt("run", *shifted, "-o", '{"policy": "oracle", "wait_h": [3]}'), quiet=False)
    assert house.metrics().items() >= {"carbon_g": 100, "cost": 9, "energy_j": 3.6e6, "mean_wait_s": 3600}.items()
    segments = house.out / "segments.csv"
    words = ("-w", inputs[1], *signals, "--segments", segments)
    assert content(house.batwatt("account", house.out / "x", *words)) == {
        "carbon_g": 100, "energy_j": 3.6e6, "cost": 9, "idle_carbon_g": 0, "idle_energy_j": 0, "idle_cost": 0,
        "mean_total_wait_s": 3600, "segments": 1, "jobs": 1, "averaged_rows": 0,
    }  # fmt: skip
    [row] = pd.read_csv(segments).to_dict("records")
    assert (row["job"], row["begin_s"], row["end_s"], row["cost"]) == (1, 3600, 7200, 9)
    inputs = workload(
        house, "--machines", 2, "--watts", 500, jobs="arrival_time|length|cpus\n0|1|2\n", keys=",unit=hours"
    )
    shifted = (*inputs, *signals, "-s", "carbon", "-e", house.out / "y")
    good(house.batwatt("run", *shifted, "-o", '{"policy": "oracle", "deadline_h": 2, "price_weight": 40}'), quiet=False)
    figures = json.loads((house.out / "y_metrics.json").read_text())
    assert (figures["carbon_g"], figures["cost"]) == (400, 1)


def test_several_policies_order_as_the_laws_have_it(house):
    names = ["immediate", "oracle", "suspend-resume", "phase-aware"]
    inputs = workload(house, "--machines", 20, "--watts", 60, jobs=JOBS)
    cases = [f'{name}=carbon {{"policy": "{name}", "deadline_h": 24}}' for name in names]
    words = (*inputs, "--carbon", CARBON, "-e", house.out / "x", *(word for case in cases for word in ("-c", case)))
    done = good(house.batwatt("compare", *words), quiet=False)
    table = pd.read_csv(house.out / "x_comparison.csv").set_index("case")
    assert table.index.tolist() == names == [line.split("\t")[0] for line in done.out.splitlines()[1:]]
    grams = table["carbon_g"]
    assert grams["phase-aware"] < grams["oracle"] < grams["immediate"]
    assert (table["jobs_finished"] == 8).all()
