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


def run(site, scheduler, *words, options=None):
    done = site.batwatt(
        "run", "-w", site.jobs, "--machines", 6, "--cores", 4, "-s", scheduler,
        "-o", json.dumps(SYSTEMS[scheduler] | (options or {})), "-e", site.out / scheduler, *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return json.loads((site.out / f"{scheduler}_metrics.json").read_text())


def solved(site, scheduler, *words):
    """The metrics of a run, with carbon and price checked against its power."""
    found = run(site, scheduler, "--carbon", f"{site.carbon},repeat=yes", "--price", f"{site.price},repeat=yes", *words)
    rows = list(csv.DictReader((site.out / f"{scheduler}_power.csv").open()))
    carbon_g = 0.0
    for row, after in pairwise(rows):
        begin, end, power_w = float(row["time_s"]), float(after["time_s"]), float(row["power_w"])
        for hour in range(int(begin // 3600), int(end // 3600) + 1):
            lasting = min(end, 3600.0 * (hour + 1)) - max(begin, 3600.0 * hour)
            carbon_g += DAY[hour % 12] * power_w * max(0.0, lasting) / 3.6e6
    assert found["carbon_g"] == pytest.approx(carbon_g, rel=1e-6, abs=1e-6)
    # a quarter of that in EUR/MWh
    assert found["cost"] == pytest.approx(carbon_g / 4000, abs=1e-6)
    assert found["jobs_finished"] + found["jobs_rejected"] + found["killed_power"] >= 40
    return found


@pytest.mark.parametrize("scheduler", SYSTEMS)
def test_measured_by_carbon_and_price(site, scheduler):
    words = () if scheduler == "carbon" else ("--capacity", "constant:mean=1")
    assert solved(site, scheduler, *words)["jobs_finished"] == 40


@pytest.mark.parametrize("scheduler", SYSTEMS)
@pytest.mark.parametrize(
    "limit",
    [
        ("--envelope", "constant:160"),
        ("--capacity", "walk:range=0.6,mean=0.7,step=0.2,period=1800,seed=1"),
        ("--envelope", "carbon:{0.carbon},budget=0.6,days=1,repeat=yes"),
        ("--capacity", "price:{0.price},budget=0.6,days=1,repeat=yes"),
    ],
    ids=["watts", "machines", "carbon budget", "price budget"],
)
def test_follows(site, scheduler, limit):
    """Nobody draws more than there is."""
    found = solved(site, scheduler, limit[0], limit[1].format(site))
    assert found["jobs_finished"] > 0
    if limit[0] == "--envelope" or scheduler == "powercap":
        assert found["violations"] == 0


def test_the_greener_the_later(site):
    """Who may wait longer emits less, and pays less if that is what counts."""
    means = {}
    for hours in (0, 2, 8):
        found = solved(site, "carbon", "-o", json.dumps({"policy": "oracle", "wait_h": [hours]}))
        means[hours] = found["carbon_g"]
    assert means[0] > means[2] > means[8]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--carbon", "{0.price}"), "price (EUR/MWh)"),
        (("--price", "{0.carbon}"), "carbon_intensity"),
        (("--carbon", "{0.carbon},dayz=3"), "dayz"),
        (("--carbon", "{0.folder}/no.csv"), "cannot be read"),
        (("--carbon", "{0.carbon},days=0.01"), "the signal ends at 864 s, the last job is submitted at"),
    ],
)
def test_refused(site, words, line):
    done = site.batwatt("run", "-w", site.jobs, "--machines", 6, "--cores", 4, *(word.format(site) for word in words))
    assert done.code == 2 and line in done.line, done.err


def test_a_signal_that_ends_before_the_run(site):
    """Nothing is lost: all but the figures that would need it."""
    done = site.batwatt(
        "run",
        "-w",
        site.jobs,
        "--machines",
        1,
        "--cores",
        3,
        "--carbon",
        f"{site.carbon},days=0.25",
        "-e",
        site.out / "x",
    )
    assert done.code == 0 and "FILE,repeat=yes" in done.err
    found = json.loads((site.out / "x_metrics.json").read_text())
    assert found["carbon_g"] is None and found["jobs_finished"] > 0
