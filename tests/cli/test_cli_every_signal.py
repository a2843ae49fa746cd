"""Every system follows watts, machines, and budgets of carbon and price, and is measured by carbon and price."""

from __future__ import annotations

import csv
import json
import random
from itertools import pairwise

import pytest

SYSTEMS = {
    "powercap": {"response": "hfld"},
    "riskaware": {},
    "varcap": {"termination": "lww"},
    "checkpoint": {},
    "carbon": {"policy": "oracle", "wait_h": [1]},
}
DAY = [400, 380, 350, 300, 200, 120, 90, 100, 150, 260, 350, 420]


@pytest.fixture
def site(house):
    draw = random.Random(5)
    rows, time_s = [], 0.0
    for _ in range(40):
        rows.append(f"{time_s:.3f},{draw.uniform(100, 4000):.2f},{draw.randint(1, 3)}\n")
        time_s += draw.expovariate(1 / 400)
    house.jobs = house.write("jobs.csv", "arrival_time,length,cpus\n" + "".join(rows))
    dates = [f"2024-07-01T{hour:02d}:00Z" for hour in range(24)]
    carbon = "".join(f"{date},{value}\n" for date, value in zip(dates, DAY * 2, strict=True))
    price = "".join(f"{date},{value / 4}\n" for date, value in zip(dates, DAY * 2, strict=True))
    house.carbon = house.write("carbon.csv", "datetime,carbon_intensity (gCO2eq/kWh)\n" + carbon)
    house.price = house.write("price.csv", "datetime,price (EUR/MWh)\n" + price)
    return house


def figures_of(site, scheduler, *words):
    """The metrics of a run, with carbon and price checked against its power."""
    signals = ("--carbon", f"{site.carbon},repeat=yes", "--price", f"{site.price},repeat=yes")
    inputs = ["-w", site.jobs, "--machines", 6, "--cores", 4, "-s", scheduler, "-o", json.dumps(SYSTEMS[scheduler])]
    done = site.batwatt("run", *inputs, *signals, "-e", site.out / scheduler, *words)
    assert done.code == 0, done.err
    figures = site.metrics(scheduler)
    rows = list(csv.DictReader((site.out / f"{scheduler}_power.csv").open()))
    carbon_g = 0.0
    for row, after in pairwise(rows):
        begin, end, power_w = float(row["time_s"]), float(after["time_s"]), float(row["power_w"])
        for hour in range(int(begin // 3600), int(end // 3600) + 1):
            lasting = min(end, 3600.0 * (hour + 1)) - max(begin, 3600.0 * hour)
            carbon_g += DAY[hour % 12] * power_w * max(0.0, lasting) / 3.6e6
    assert figures["carbon_g"] == pytest.approx(carbon_g, rel=1e-6, abs=1e-6)
    # a quarter of that in EUR/MWh
    assert figures["cost"] == pytest.approx(carbon_g / 4000, abs=1e-6)
    assert figures["jobs_finished"] + figures["jobs_rejected"] + figures["killed_power"] >= 40
    return figures


WALK = ("--capacity", "walk:range=0.6,mean=0.7,step=0.2,period=1800,seed=1")
LIMITS = [
    *((scheduler, *WALK) for scheduler in SYSTEMS),
    *((scheduler, "--envelope", "constant:160") for scheduler in SYSTEMS),
    ("riskaware", "--envelope", "carbon:{0.carbon},budget=0.6,days=1,repeat=yes"),
    ("powercap", "--capacity", "price:{0.price},budget=0.6,days=1,repeat=yes"),
]


@pytest.mark.parametrize(("scheduler", "option", "limit"), LIMITS)
def test_a_limit_is_kept(site, scheduler, option, limit):
    figures = figures_of(site, scheduler, option, limit.format(site))
    assert figures["jobs_finished"] > 0
    if option == "--envelope" or scheduler == "powercap":
        assert figures["violations"] == 0


def test_a_signal_that_ends_before_the_run(site):
    """Nothing is lost: all but the figures that would need it."""
    words = ("-w", site.jobs, "--machines", 1, "--cores", 3, "--carbon", f"{site.carbon},days=0.25")
    done = site.batwatt("run", *words, "-e", site.out / "x")
    assert done.code == 0 and "FILE,repeat=yes" in done.err
    figures = site.metrics()
    assert figures["carbon_g"] is None and figures["jobs_finished"] > 0
