"""The numbers of varcap_claims.py and varcap_prices.py by hand: quotients, verdicts, pairs, terminations, budgets."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from batwatt.errors import InputError
from batwatt.report.claims import NO, OPEN

ROOT = Path(__file__).resolve().parents[1]

sys.path.append(str(ROOT / "experiments"))
import varcap_claims as claims  # noqa: E402 (scripts are found by their folder)
import varcap_prices as prices  # noqa: E402

TIMES = claims.Sentence(
    "1", "twice as long", claims.WAIT, "times", ("TwoMode", 0.6, 0.0), ("Base", 0.6, 0.0), 2.0, neutral=1.0
)


@pytest.mark.parametrize(
    ("how", "number", "error"), [("times", 1.5, 0.25), ("percent", 150, 25), ("more", 50, 25), ("less", -50, 25)]
)
def test_a_quotient_is_that_of_the_means(how, number, error):
    """(2 + 4) / (1 + 3), and residuals of 0.5 and -0.5: their standard error 0.5 over the mean 2."""
    found = replace(TIMES, how=how).number(pd.Series([2.0, 4.0]), pd.Series([1.0, 3.0]))
    assert found == pytest.approx((number, error, 2))


def test_a_value_is_a_mean_and_nothing_is_divided_by_nothing():
    value = replace(TIMES, how="value", second=None)
    assert value.number(pd.Series([1.0, 3.0]), None) == pytest.approx((2.0, 1.0, 2))
    number, error, count = TIMES.number(pd.Series([1.0, 3.0]), pd.Series([0.0, 0.0]))
    assert math.isnan(number) and math.isnan(error) and count == 2
    assert TIMES.verdict(number, error, count) == OPEN


@pytest.mark.parametrize(
    ("given", "number", "error", "count", "verdict"),
    [
        # 4.30 standard errors of three
        ({}, 2.5, 0.1, 3, claims.HOLDS),
        ({}, 1.6, 0.1, 3, claims.HOLDS),
        ({}, 1.5, 0.1, 3, claims.PART),
        ({}, 1.4, 0.1, 3, NO),
        ({}, 1.6, 0.2, 3, OPEN),
        ({}, 9.0, math.nan, 1, OPEN),
        ({"most": True}, 1.5, 0.1, 3, claims.HOLDS),
        ({"most": True}, 1.6, 0.1, 3, OPEN),
        ({"most": True}, 2.5, 0.1, 3, NO),
        ({"most": True}, 0.0, 0.0, 3, claims.HOLDS),
        ({"neutral": None}, 2.5, 0.1, 3, claims.HOLDS),
        ({"neutral": None}, 2.2, 0.1, 3, OPEN),
        ({"neutral": None}, 1.5, 0.1, 3, NO),
        ({"neutral": 2.0}, 2.2, 0.1, 3, OPEN),
        ({"neutral": 0.0, "printed": 0.0}, 0.0, 0.0, 3, NO),
        ({"neutral": None, "printed": 0.0}, 0.0, 0.0, 3, claims.HOLDS),
    ],
)
def test_verdicts(given, number, error, count, verdict):
    assert replace(TIMES, **given).verdict(number, error, count) == verdict


def _row(policy, size, walk, wait_s, **more):
    return {
        "study": "longer-7-4",
        "policy": policy,
        "range": size,
        "walk": walk,
        "trace": "tng-0",
        "period_s": 450.0,
        "structure": "walk" if size else "constant",
        "foresight_h": 0.0,
        claims.WAIT: wait_s,
        **more,
    }


def test_pairs_are_of_the_same_jobs_and_walk():
    held = [_row("Base", 0.0, -1.0, 5.0), _row("Base", 0.0, -1.0, 10.0, trace="tng-1")]
    walks = [_row("Base", 0.6, 1.0, 10.0), _row("Base", 0.6, 2.0, 20.0)]
    others = [_row("TwoMode", 0.6, 2.0, 40.0), _row("TwoMode", 0.6, 3.0, 7.0)]
    # another study, other foresight, another time between changes
    aside = [_row("TwoMode", 0.6, 1.0, 1.0, study="errors"), _row("TwoMode", 0.6, 1.0, 1.0, foresight_h=3.0),
             _row("TwoMode", 0.6, 1.0, 1.0, period_s=3600.0)]  # fmt: skip
    frame = pd.DataFrame([*held, *walks, *others, *aside])
    short, longer = claims.GROUPS
    number, error, count = claims.numbers_of(frame, longer, TIMES)
    assert (number, count) == (2.0, 1) and math.isnan(error)
    assert claims.numbers_of(frame, short, TIMES) is None
    # the one fixed capacity of a trace stands next to each of its walks
    fixed = replace(TIMES, first=("Base", 0.6, 0.0), second=claims.HELD)
    assert claims.numbers_of(frame, longer, fixed)[::2] == (3.0, 2)
    # a second stands for eight, also of the 24 h that 3 h stand for
    value = replace(TIMES, how="value", second=None, first=("TwoMode", 0.6, 1.0))
    assert claims.numbers_of(frame, longer, value)[0] == 8.0


def test_the_table_leaves_out_what_was_not_run():
    frame = pd.DataFrame([_row("Base", size, walk, 5.0) for size, walk in ((0.0, -1.0), (0.05, 1.0), (0.05, 2.0))])
    frame = frame.assign(**dict.fromkeys((claims.GOODPUT, claims.FAILED, claims.MIGRATED), 1.0))
    lines = claims.sentences_table(frame).splitlines()
    assert len(lines) == 2 + len(claims.SENTENCES)
    wait = next(line for line in lines if "wait 3 times" in line and line.startswith("| 5.3.1"))
    assert wait.endswith("|  |  | 1.00 ± 0.00 times (2) | no |")
    assert lines[-1].endswith("|  |  |  |  |")


def test_how_terminations_are_spread():
    """Jobs: 3 short, 1 long; terminations: 1 short, 3 long. Half of them would have to hit the other class."""
    assert claims.distance([3, 1], [1, 3]) == 50.0 and claims.distance([2, 4], [1, 2]) == 0.0
    classes = pd.DataFrame({"from_h": [0.0, 0.25, 1.0], "jobs": [2, 1, 1], "terminations": [1, 0, 3]})
    ended = [("1", 2, "COMPLETED_SUCCESSFULLY", 9.0), ("2", 2, "COMPLETED_KILLED", 5.0), ("3", 4, "REJECTED", -1.0),
             ("4", 8, "COMPLETED_KILLED", 10.0), ("4#1", 8, "COMPLETED_KILLED", 11.0)]  # fmt: skip
    jobs = pd.DataFrame(ended, columns=["job_id", "requested_number_of_resources", "final_state", "finish_time"])
    found = claims.unfairness(classes, jobs, 10.0)
    # jobs: shares of cores 2, 4, 8 are 1/2, 1/4, 1/4; of terminations until 10 s: 1/2, 0, 1/2
    assert found == pytest.approx({"longer": 50.0, "larger": 5.0 / 4.0, "length": 50.0, "cores": 25.0})


def test_fairness_by_system():
    rows = [("mira", label, walk, *4 * (value,)) for walk in (1.0, 2.0, 3.0)
            for label, value in (("Random", 1.5 + walk / 100), ("LWW", 1.0), ("LFD", 3.0 + walk / 10))]  # fmt: skip
    rows += [(system, *row[1:]) for system in ("azure", "borg") for row in rows]
    found = pd.DataFrame(rows, columns=["system", "label", "walk", *claims.UNFAIR])
    table = claims.fairness_table(found).splitlines()
    assert table[2].startswith("| Mira | Random | 1.5 ± 0.0 | ") and len(table) == 2 + 9
    fairer = {line.split(" | ")[0]: line for line in claims.fairer_table(found).splitlines()}
    assert "| 2.2 ± 0.1 | yes |" in fairer["| LWW is fairer than LFD by run time"]
    assert "| -0.5 ± 0.0 | no |" in fairer["| Random is fairer than LWW by run time (said of Borg)"]


def test_the_capacity_that_carbon_buys(tmp_path):
    """A signal of 1 and 2 by the hour, in the mean 1.5: 0.7 x 1.5 is more than there is, and half of it."""
    path = tmp_path / "two.csv"
    hours = [f"2020-01-0{1 + hour // 24} {hour % 24:02d}:00:00,{1 + hour % 2}" for hour in range(48)]
    path.write_text("\n".join(["Time,Carbon Intensity", *hours]) + "\n")
    capacity, signal = prices.capacity_of(f"carbon:{path}")
    assert capacity.series.values[:2] == pytest.approx((1.0, 0.525)) and signal.mean == 1.5
    with pytest.raises(InputError, match="write carbon:FILE"):
        prices.capacity_of("walk:range=0.6")


def test_days_under_a_budget_of_carbon_and_what_they_cost(tmp_path):
    """By hand, two days of 1 and 2 g by the hour, and of 10 and 40 money: 1 at 1 g, 0.525 at 2 g.

    A fixed 0.7 emits 12 x 0.7 x 3 = 25.2 a day and costs 12 x 0.7 x 50 = 420; the capacity 12 x 2.05 = 24.6 and
    12 x (10 + 21) = 372. Without headroom 0.7 and 0.525: 12 x 1.75 = 21 and 12 x 28 = 336.
    """
    dates = pd.date_range("2023-01-01", "2023-12-31 23:00", freq="h").strftime("%Y-%m-%d %H:%M:%S")
    for name, head, values in (("c", "Carbon Intensity", (1, 2)), ("p", "Price (EUR/kWh)", (10, 40))):
        rows = [f"{date},{values[at % 2]}" for at, date in enumerate(dates)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"Time,{head}", *rows]) + "\n")
    grid = prices.Grid("G", "p.csv", "c.csv")
    days = prices.days_of(grid, 1.0, data=tmp_path)
    assert len(days) == 12 and days.loc[0, ["carbon_fixed", "carbon"]].tolist() == pytest.approx([25.2, 24.6])
    assert days.loc[11, ["price_fixed", "price"]].tolist() == pytest.approx([420.0, 372.0])
    year = prices.days_of(grid, 0.7, prices.YEAR, data=tmp_path)
    # without the last hour, of 2 g and 40, the mean is a little less than 1.5, and so is what is bought at 2 g
    bought = 0.7 * (4380 * 1 + 4379 * 2) / 8759 / 2
    assert len(year) == 364 and year.loc[5, ["carbon", "price"]].tolist() == pytest.approx(
        [12 * (0.7 + 2 * bought), 12 * (7 + 40 * bought)]
    )
    assert year.loc[5, "gained"] == pytest.approx((0.7 + bought) / 1.4 - 1.0)
