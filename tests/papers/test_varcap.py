"""Single numbers of the varcap dissertation by hand: quotients, verdicts, pairs, terminations, budgets."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from papers.claims import NO, OPEN, PARTLY, YES
from papers.varcap import prices, sentences, tables
from papers.varcap.frames import read_points
from papers.varcap.sentences import WAIT, Single, quotient

TIMES = Single(WAIT, "times", ("TwoMode", 0.6, 0.0), ("Base", 0.6, 0.0), 2.0, neutral=1.0)


@pytest.mark.parametrize(
    ("how", "number", "error"), [("times", 1.5, 0.25), ("percent", 150, 25), ("more", 50, 25), ("less", -50, 25)]
)
def test_a_quotient_is_that_of_the_means(how, number, error):
    """(2 + 4) / (1 + 3), and residuals of 0.5 and -0.5: their standard error 0.5 over the mean 2; t of one is 12.71."""
    values = quotient(pd.Series([2.0, 4.0]), pd.Series([1.0, 3.0]), how)
    assert values == pytest.approx((number, error, 12.71 * error))


@pytest.mark.parametrize(
    ("bounds", "number", "half", "verdict"),
    [
        ({}, 2.5, 0.4, YES),
        ({}, 1.6, 0.4, YES),
        ({}, 1.5, 0.4, PARTLY),
        ({}, 1.4, 0.4, NO),
        ({}, 1.6, 0.8, OPEN),
        ({}, 9.0, math.nan, OPEN),
        ({"most": True}, 1.5, 0.4, YES),
        ({"most": True}, 1.7, 0.4, OPEN),
        ({"most": True}, 2.5, 0.4, NO),
        ({"neutral": None}, 2.5, 0.4, YES),
        ({"neutral": None}, 2.2, 0.4, OPEN),
        ({"neutral": None}, 1.5, 0.4, NO),
        ({"neutral": 0.0, "printed": 0.0}, 0.0, 0.0, NO),
        ({"neutral": None, "printed": 0.0}, 0.0, 0.0, YES),
    ],
)
def test_verdicts(bounds, number, half, verdict):
    assert replace(TIMES, **bounds).verdict(number, half) == verdict


def test_the_committed_sentences_are_those_of_the_runs():
    listed = pd.read_csv(tables.SENTENCES)
    pd.testing.assert_frame_equal(sentences.outcomes(read_points(tables.SINGLE)), listed)
    # goodput, waits, failures and migrations: yes, partly, no and open on a TNG cell, then as if jobs ran longer
    counts = [[int(cell) for cell in line.split("|")[2:-1]] for line in sentences.counts_table(listed).splitlines()[2:]]
    assert [sum(line[:4]) for line in counts] == [sum(line[4:]) for line in counts] == [10, 12, 11]


def test_how_terminations_are_spread(tmp_path):
    """Jobs: 3 short, 1 long; terminations: 1 short, 3 long. Half of them would have to hit the other class."""
    assert sentences.distance(np.array([3, 1]), np.array([1, 3])) == 50.0
    (tmp_path / "run_metadata.json").write_text(json.dumps({"window_s": [0.0, 10.0]}))
    classes = pd.DataFrame({"from_h": [0.0, 0.25, 1.0], "jobs": [2, 1, 1], "terminations": [1, 0, 3]})
    classes.to_csv(tmp_path / "run_classes.csv", index=False)
    ended = [("1", 2, "COMPLETED_SUCCESSFULLY", 9.0), ("2", 2, "COMPLETED_KILLED", 5.0), ("3", 4, "REJECTED", -1.0),
             ("4", 8, "COMPLETED_KILLED", 10.0), ("4#1", 8, "COMPLETED_KILLED", 11.0)]  # fmt: skip
    jobs = pd.DataFrame(ended, columns=["job_id", "requested_number_of_resources", "final_state", "finish_time"])
    jobs.to_csv(tmp_path / "run_jobs.csv", index=False)
    # jobs: shares of cores 2, 4, 8 are 1/2, 1/4, 1/4; of terminations until 10 s: 1/2, 0, 1/2
    expected = {"longer": 50.0, "larger": 5.0 / 4.0, "length": 50.0, "cores": 25.0}
    assert sentences.unfairness(tmp_path / "run") == pytest.approx(expected)


def test_the_range_at_which_a_loss_is_tolerable():
    """Of losses of 0, 4 and 12 % at ranges 0, 0.2 and 0.4: 8 % lie in the middle of the last two."""
    lost = pd.Series([0.0, 4.0, 12.0], index=[0.0, 0.2, 0.4])
    assert tables.crossing(lost, 8.0) == pytest.approx(0.3) and tables.crossing(lost, 20.0) == math.inf
    assert tables.crossing(lost, 0.0) == 0.0


def test_days_under_a_budget_of_carbon_and_what_they_cost(tmp_path, monkeypatch):
    """By hand, two days of 1 and 2 g by the hour, and of 10 and 40 money: 1 at 1 g, 0.525 at 2 g.

    A fixed 0.7 emits 12 x 0.7 x 3 = 25.2 a day and costs 12 x 0.7 x 50 = 420; the capacity 12 x 2.05 = 24.6 and
    12 x (10 + 21) = 372. Without headroom 0.7 and 0.525: 12 x 1.75 = 21 and 12 x 28 = 336.
    """
    dates = pd.date_range("2023-01-01", "2023-12-31 23:00", freq="h").strftime("%Y-%m-%d %H:%M:%S")
    for name, head, values in (("c", "Carbon Intensity", (1, 2)), ("p", "Price (EUR/kWh)", (10, 40))):
        rows = [f"{date},{values[at % 2]}" for at, date in enumerate(dates)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"Time,{head}", *rows]) + "\n")
    monkeypatch.setattr(prices, "SIGNALS", tmp_path)
    grid = prices.Grid("G", "p.csv", "c.csv")
    days = prices.days_of(grid, 1.0, "day", "carbon")
    assert len(days) == 12 and days.loc[0, ["carbon_fixed", "carbon"]].tolist() == pytest.approx([25.2, 24.6])
    assert days.loc[11, ["price_fixed", "price"]].tolist() == pytest.approx([420.0, 372.0])
    year = prices.days_of(grid, 0.7, "year", "carbon")
    # without the last hour, of 2 g and 40, the mean is a little less than 1.5, and so is what is bought at 2 g
    bought = 0.7 * (4380 * 1 + 4379 * 2) / 8759 / 2
    assert len(year) == 364 and year.loc[5, ["carbon", "price"]].tolist() == pytest.approx(
        [12 * (0.7 + 2 * bought), 12 * (7 + 40 * bought)]
    )
    assert year.loc[5, "gained"] == pytest.approx((0.7 + bought) / 1.4 - 1.0)
