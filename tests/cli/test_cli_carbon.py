"""`batwatt carbon plan`: what it prints, worked out by hand, and bad input in one line."""

from __future__ import annotations

import json

import pytest
from carbon_talk import CARBON, JOB, content, good, hourly

TWO_HOURS = {"work": [{"duration": 7200, "power": 1000}]}
LATE_START = {"startup": [{"duration": 600, "power": 1200}], **TWO_HOURS}


def plan(house, *words, job=TWO_HOURS, signal=None):
    path = house.write("job.json", json.dumps(job))
    return house.batwatt("carbon", "plan", path, "--carbon", signal or hourly(house), *words)


# plan ----------------------------------------------------------------------------------------------------------------


def test_a_plan_by_hand(house):
    """1 kW in two of the hours 400, 100, 400, 100 g/kWh: 100 + 100 g instead of 400 + 100 g."""
    found = content(plan(house, "--start", 0, "--deadline", 14400))
    assert (found["carbon_g"], found["immediate_carbon_g"], found["saved_share"]) == (200, 500, 0.6)
    assert (found["method"], found["slot_s"], found["slots"], found["rounded"]) == ("dp", 3600, 4, False)
    assert (found["starts"], found["energy_j"], found["begin"]) == (2, 7.2e6, "2024-07-01T00:00Z")
    assert found["segments"] == [
        {
            "begin_s": 3600, "end_s": 7200, "startup_s": 0, "work_from_s": 0, "work_to_s": 3600,
            "energy_j": 3.6e6, "carbon_g": 100,
        },
        {
            "begin_s": 10800, "end_s": 14400, "startup_s": 0, "work_from_s": 3600, "work_to_s": 7200,
            "energy_j": 3.6e6, "carbon_g": 100,
        },
    ]  # fmt: skip


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


def test_a_plan_to_a_file(house):
    file = house.out / "plan.json"
    done = good(plan(house, "--deadline", 14400, "-o", file))
    assert done.out == "" and json.loads(file.read_text())["carbon_g"] == 200


def test_a_gap_beyond_the_deadline_does_not_matter(house):
    signal = hourly(house, [400, 100, 400, 100, "", 200, 100])
    assert content(plan(house, "--deadline", 14400, signal=signal))["carbon_g"] == 200
    done = plan(house, "--deadline", 18000, signal=signal)
    assert done.code == 0 and "1 values missing" in done.err and json.loads(done.out)["carbon_g"] == 200


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--deadline", "7199"], "there are 7199 s until the deadline and the job takes 7200 s"),
        (["--start", "7200", "--deadline", "3600"], "the job takes 7200 s"),
        (["--deadline", "86402"], "the signal ends at 86400 s, before 86402 s"),
        (["--deadline", "2024-07-03"], "the signal ends at 86400 s, before 172800 s"),
        (["--start", "-1", "--deadline", "36000"], "is before the signal begins"),
        (["--deadline", "soon"], "'soon' is not a date"),
        (["--deadline", "36000", "--slot-s", "0"], "--slot-s: must be > 0, got 0"),
        (["--deadline", "36000", "--slot-s", "1e-5"], "more than 20000000 in 36000 s"),
        (["--deadline", "36000", "--max-starts", "0"], "--max-starts"),
        (["--deadline", "36000", "--cpus", "0"], "--cpus"),
        (["--deadline", "36000", "--price-weight", "1"], "--price-weight: is for a price"),
    ],
)
def test_bad_plans(house, words, expected):
    done = plan(house, *words)
    assert done.code == 2 and expected in done.line and done.out == "" and house.left == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("from=2025-01-01", "is asked for, the rows go from"),
        ("days=0.1", "the signal ends at 8640 s, before 36000 s"),
        ("zones=DE", "no key 'zones'; did you mean 'zone'?"),
    ],
)
def test_bad_keys_of_a_signal(house, keys, expected):
    done = plan(house, "--deadline", 36000, signal=f"{hourly(house)},{keys}")
    assert done.code == 2 and expected in done.line and done.out == ""


def test_bad_prices_of_a_plan(house):
    price = hourly(house, [1] * 3, "price.csv", "price (EUR/kWh)")
    done = plan(house, "--deadline", 14400, "--price", price)
    assert done.code == 2 and "price.csv: the signal ends at 10800 s" in done.line
    weights = ["--price", hourly(house, [1] * 24, "p.csv", "price"), "--carbon-weight", 0]
    assert "are both 0" in plan(house, "--deadline", 14400, *weights).line
    unknown = plan(house, "--deadline", 14400, "--price", house.write("u.csv", "datetime,price\n2024-07-01,160.98\n"))
    assert unknown.code == 2 and "u.csv: column 'price' (values to 160.98) states no unit; write unit=" in unknown.line
    # as it says
    price = hourly(house, [1000, 9000] * 12, "m.csv", "price")
    words = ["--deadline", 14400, "--carbon-weight", 0, "--price-weight", 1]
    assert content(plan(house, *words, "--price", f"{price},unit=EUR/MWh"))["cost"] == 2
    assert "repeat= is for runs; take a longer" in plan(house, *words, "--price", f"{price},repeat=yes").line


def test_dates_need_a_signal_with_dates(house):
    signal = house.write("s.csv", "time_s,carbon_intensity\n0,400\n3600,100\n7200,400\n10800,100\n")
    assert content(plan(house, "--deadline", 14400, signal=signal))["carbon_g"] == 200
    assert "has no dates" in plan(house, "--deadline", "2024-07-01T06:00", signal=signal).line


def test_a_bad_job(house):
    done = plan(house, "--deadline", 14400, job={"work": [{"duration": 10, "power": -1}]})
    assert done.code == 2 and "job.json: work phase 1: power must be a number of W" in done.line


def test_the_example_plan(house):
    words = ["--start", "2024-07-01T06:00", "--deadline", "2024-07-02T06:00"]
    found = content(house.batwatt("carbon", "plan", JOB, "--carbon", CARBON, *words))
    assert 0.3 < found["saved_share"] < 0.5 and found["segments"][0]["begin_s"] >= 21600
    assert found["segments"][-1]["end_s"] <= 108000 and not found["rounded"]
