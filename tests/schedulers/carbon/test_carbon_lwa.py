"""Policies and constraints of Let's Wait Awhile against its own simulator's totals for the French year 2020."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.work import constant
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.policies import PolicyInputs, StartWindow, by_constraint, policy_named

FRENCH = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "carbon" / "FR-2020-30min.csv"
FIRST_DAY, DAY_MIN, STEP_S = datetime(2020, 1, 1), 1440, 1800.0


@cache
def machine_learning_jobs() -> list[ShiftJob]:
    """Its 3,387 jobs, drawn as it draws them: arrivals on workdays from 09:00 to 16:30, 4 h to 89.5 h of 1 W."""
    rng = np.random.default_rng(0)
    workdays = [day for day in range(366) if (FIRST_DAY + timedelta(days=day)).weekday() < 5]
    counts = rng.multinomial(3387, [1 / len(workdays)] * len(workdays))
    arrivals_min = [
        day * DAY_MIN + time
        for day, count in zip(workdays, counts.tolist(), strict=True)
        for time in np.sort(rng.choice(range(9 * 60, 17 * 60, 30), size=count)).tolist()
    ]
    lengths_min = rng.choice(range(4 * 60, 90 * 60, 30), size=3387).tolist()
    return [
        ShiftJob(str(index), 60.0 * arrival, constant(60.0 * length, 1.0))
        for index, (arrival, length) in enumerate(zip(arrivals_min, lengths_min, strict=True))
    ]


@cache
def french() -> Timeline:
    rows = pd.read_csv(FRENCH)
    values = rows.loc[rows["Time"] >= "2020", "Carbon Intensity"]
    return replace(Timeline.regular(values.tolist(), STEP_S), date_s=parse_date_s("2020-01-01T00:00Z"))


def one_step_later(window: StartWindow, job: ShiftJob, end_s: float) -> StartWindow:
    """Its forecast has both ends of a window, a value too many: a job may end a step after its target."""
    return StartWindow(window.arrival_s, min(window.wait_s + STEP_S, end_s - job.length_s - window.arrival_s))


@pytest.mark.skipif(not FRENCH.exists(), reason="no French series in ../shared/data")
@pytest.mark.parametrize(
    ("policy", "constraint", "grams"),
    [
        pytest.param("wait-awhile", None, 8843.57094109771, marks=pytest.mark.deep),
        pytest.param("wait-awhile-interrupting", None, 8833.706248389166, marks=pytest.mark.deep),
        pytest.param("wait-awhile", "next-workday", 8420.00044633161, marks=pytest.mark.deep),
        pytest.param("wait-awhile-interrupting", "next-workday", 8293.580805536245, marks=pytest.mark.deep),
        pytest.param("wait-awhile", "semi-weekly", 7857.2402746487205, marks=pytest.mark.deep),
        ("wait-awhile-interrupting", "semi-weekly", 7617.716160336359),
    ],
)
def test_the_french_year_gives_what_lwa_gives(policy, constraint, grams):
    """Its unchanged simulator (leafsim 0.4.2, vessim 0.3.0, pandas 2.2) on its own jobs; sums in g at 1 W."""
    integral, total = french(), 0.0
    for job in machine_learning_jobs():
        window = StartWindow(job.arrival_s, 0.0) if constraint is None else by_constraint(job, constraint, integral)
        late = one_step_later(window, job, integral.end_s)
        intervals = policy_named(policy).choose(job, late, integral, PolicyInputs())
        total += sum(carry_out(job, intervals).emissions(integral))
    assert total == pytest.approx(grams, rel=1e-11)
