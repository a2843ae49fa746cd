"""Forecasts that prove wrong, jobs that are planned anew: by hand, and laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from carbon_talk import POWER_W, jobs, machines
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.model.timeline import Timeline
from batwatt.schedulers.carbon.forecast import SignalForecast
from batwatt.schedulers.carbon.scheduler import Carbon

HOUR = 3600.0


@dataclass
class Issued:
    """Forecasts given by the hour from which they are known: values by the hour."""

    issues: dict[int, list[float]]

    def at(self, now_s):
        return Timeline.regular(self.issues[max(hour for hour in self.issues if hour * HOUR <= now_s)])


def shift(platform, load, **options):
    return bw.simulate(platform, load, "carbon", options={"policy": "oracle"} | options)


TRUTH = [400.0, 300.0, 100.0, 250.0, 400.0, 400.0, 400.0, 400.0]
WRONG = {0: [400.0, 300.0, 100.0, 50.0, *TRUTH[4:]], 1: TRUTH}
"""At 0 h 50 g are forecast for the fourth hour, at 1 h the 250 g that come: the third (100 g) is better."""
HOUR_0_AND_3 = {0: [90.0, 400.0, 100.0, 91.0, *TRUTH[4:]], 1: [90.0, 400.0, 100.0, 300.0, 80.0, 400.0, 400.0, 400.0]}
"""Two of six hours: the first (90 g) and, by the forecast at 0 h, the fourth; at 1 h the fifth is better (80 g)."""
HOURS_0_2_5 = [90.0, 400.0, 91.0, 400.0, 400.0, 92.0, 400.0, 400.0, 400.0, 400.0]
NOW = {
    0: HOURS_0_2_5,
    2: [*HOURS_0_2_5[:4], 60.0, *HOURS_0_2_5[5:]],
    3: [*HOURS_0_2_5[:3], 50.0, 60.0, *HOURS_0_2_5[5:]],
}
"""Hours 0, 2 and 5 of a job of three, by the forecast at 0 h; at 1 h nothing is better, at 2 h hour 4 is (60 g instead
of 92 g); at 3 h the fourth is the best, so it goes on there."""
AT_ONCE = {0: [90.0, 400.0, 400.0, 91.0, *TRUTH[4:]], 1: [90.0, 50.0, 400.0, 91.0, *TRUTH[4:]]}
"""Hours 0 and 3 of a job of two, by the forecast at 0 h; at 1 h the second is the best: it goes on at once."""
BEHIND = {0: [100.0, 100.0, 300.0, 300.0, 300.0, 50.0, 300.0, 300.0], 1: [100.0, 10.0, 200.0, *[300.0] * 5]}
"""Job 0 runs from 0 h to 2 h; job 1 waits for the sixth hour until the second proves to be the best."""
TWO_HOSTS = {0: [400.0] * 3 + [50.0, 60.0] + [400.0] * 4, 1: [400.0] * 5 + [10.0, 20.0] + [400.0] * 2}
"""Jobs of one host and of two: hours 3 and 4, by the forecast at 0 h; at 1 h hours 5 and 6 are better. The first
arrives first, and has the better of these hours."""
ONE, TWO, THREE = ((0.0, hours * HOUR, 1) for hours in (1, 2, 3))
SUSPEND = {"policy": "suspend-resume", "wait_h": [4]}


@pytest.mark.parametrize(
    ("forecasts", "rows", "options", "starts"),
    [
        (WRONG, [ONE], {"wait_h": [3], "replan_h": None}, [3.0]),
        (WRONG, [ONE], {"wait_h": [3], "replan_h": 1.0}, [2.0]),
        (WRONG, [ONE], {"wait_h": [3], "replan_h": 3.0}, [3.0]),
        (HOUR_0_AND_3, [TWO], SUSPEND | {"replan_h": None}, [0.0, 3.0]),
        (HOUR_0_AND_3, [TWO], SUSPEND | {"replan_h": 1.0}, [0.0, 4.0]),
        # machines that switch at once, which takes a microsecond, do as those that never do
        (NOW, [THREE], SUSPEND | {"replan_h": 1.0, "switch": True}, [0.0, 2.0, 3.0]),
        (NOW, [THREE], SUSPEND | {"replan_h": 1.0, "switch": False}, [0.0, 2.0, 3.0]),
        (AT_ONCE, [TWO], SUSPEND | {"replan_h": 1.0}, [0.0, 1.0]),
        (BEHIND, [TWO, ONE], {"wait_h": [6, 0], "replan_h": 1.0}, [0.0, 2.0]),
        (TWO_HOSTS, [ONE, (600.0, HOUR, 2)], {"wait_h": [7], "replan_h": 1.0}, [5.0, 6.0]),
    ],
    ids=[
        "never planned anew", "planned anew each hour", "planned anew too late", "suspended", "suspended, planned anew",
        "the rest of a segment that ends now", "the rest, without switching", "the rest of the first segment",
        "room for who runs", "first come, first planned",
    ],
)  # fmt: skip
def test_forecasts_that_prove_wrong(monkeypatch, forecasts, rows, options, starts):
    monkeypatch.setattr(Carbon, "forecasts", lambda self: Issued(forecasts))
    result = shift(machines(max(hosts for _, _, hosts in rows)), jobs(*rows), **options)
    by_job = result.jobs.sort_values(["job_id", "starting_time_s"])["starting_time_s"] / HOUR
    assert by_job.tolist() == pytest.approx(starts, abs=1e-6)
    assert result.metrics["jobs_finished"] == len(rows) and result.metrics["killed_power"] == 0


def test_hosts_are_on_for_a_start_that_was_moved(monkeypatch):
    """60 s to switch on, 30 s off: moved from 3 h to 2 h, on for one hour and 90 s only."""
    monkeypatch.setattr(Carbon, "forecasts", lambda self: Issued(WRONG))
    result = shift(machines(2, on_s=60.0, off_s=30.0), jobs(ONE), wait_h=[3], replan_h=1.0)
    assert result.jobs["starting_time_s"].tolist() == pytest.approx([2 * HOUR], abs=1e-3)
    assert result.metrics["energy_j"] == pytest.approx((90.0 + HOUR) * POWER_W, rel=1e-9)


# forecasts ------------------------------------------------------------------------------------------------------------


def test_what_is_over_is_known_and_errors_grow_with_the_root_of_the_time():
    """300 seeds: the standard deviation k h ahead is 0.02 sqrt(k), here to 10 %; neighbours go together."""
    signal = Timeline.regular([200.0] * 68)
    issued = np.array([SignalForecast(signal, 0.02, seed).at(1.5 * HOUR).values for seed in range(300)])
    assert (issued[:, :2] == 200.0).all() and (issued[:, 2:] != 200.0).all()
    for ahead in (1, 4, 16, 64):
        assert issued[:, 1 + ahead].std() == pytest.approx(200.0 * 0.02 * np.sqrt(ahead), rel=0.1)
    assert np.corrcoef(issued[:, 40], issued[:, 41])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("at_h", "sure_h", "expected"),
    [
        # the present hour is sure, then the last day that is over repeats
        (30.5, 0.0, {30: 30, 31: 7, 54: 30, 55: 7, 59: 11}),
        # hours 30 to 53 are sure
        (30.5, 24.0, {30: 30, 31: 31, 53: 53, 54: 30, 59: 35}),
        # there is no day before
        (2.0, 0.0, {1: 1, 2: 2, 3: 2, 26: 2, 27: 2, 24: 0, 25: 1}),
    ],
)
def test_beyond_the_hours_that_are_sure_the_last_day_repeats(at_h, sure_h, expected):
    signal = Timeline.regular([float(hour) for hour in range(60)])
    values = SignalForecast(signal, sure_h=sure_h).at(at_h * HOUR).values
    assert {hour: values[hour] for hour in expected} == expected


def test_a_forecast_corrects_the_one_before():
    """What is learnt from one hour to the next does not depend on when was asked, and the last error is one draw."""
    signal = Timeline.regular([200.0] * 40)
    one, other = SignalForecast(signal, 0.02, 7), SignalForecast(signal, 0.02, 7)
    for hour in range(10):
        one.at(hour * HOUR)
    assert one.at(10 * HOUR).values == other.at(10.9 * HOUR).values
    steps = [SignalForecast(signal, 0.02, 7).at(hour * HOUR).values[30] for hour in range(31)]
    assert steps[-1] == 200.0 and np.std(np.diff(steps)) == pytest.approx(4.0, rel=0.4)


# laws -----------------------------------------------------------------------------------------------------------------


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 24), st.integers(1, 3)), min_size=1, max_size=9),
    st.integers(3, 4),
    st.sampled_from(["immediate", "oracle", "lowest", "suspend-resume", "phase-aware"]),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([None, 0.5, 2.0]),
    st.booleans(),
)
def test_no_job_ends_later_than_allowed_or_first_planned(rows, hosts, policy, error, replan_h, switching):
    signal = Timeline.regular([300.0, 80.0, 500.0, 120.0, 60.0, 400.0, 200.0] * 20)
    load = sorted((at * 900.0, lasts * 900.0, cpus) for at, lasts, cpus in rows)
    first: dict[str, float] = {}
    plans: dict[str, object] = {}

    class Watched(Carbon):
        def _plan(self, job):
            planned = super()._plan(job)
            first[job.id] = max(planned[0].end_s, planned[1].deadline_s(job))
            return planned

        def onSimulationEnds(self):
            plans.update(self.executions)
            super().onSimulationEnds()

    options = {"signal": signal, "policy": policy, "wait_h": [6.0], "slot_s": 900.0, "replan_h": replan_h,
               "forecast_error": error, "forecast_seed": 3}  # fmt: skip
    times = {"on_s": 60.0, "off_s": 30.0} if switching else {}
    result = bw.simulate(machines(hosts, **times), jobs(*load), Watched, options=options)
    assert result.metrics["jobs_finished"] == len(load)
    assert all(plan.end_s <= first[name] + 1e-6 for name, plan in plans.items())
