"""Let's Wait Awhile by hand, and against its own simulator's totals for the French year."""

from __future__ import annotations

import csv
import logging
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.model.phases import constant
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.simulators import lwa
from batwatt.systems.carbon.simulators.lwa_jobs import ml_jobs

FRENCH = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "carbon" / "FR-2020-30min.csv"
MONDAY = datetime(2020, 6, 1)


def job(arrival: float, steps: float, cpus: int = 1, name: str = "0", watts: float = 1.0) -> ShiftJob:
    return ShiftJob(name, 1800.0 * arrival, constant(1800.0 * steps, watts), cpus)


def steps_of(outcome):
    table = outcome.segments
    return list(zip((table["begin_s"] / 1800).tolist(), (table["end_s"] / 1800).tolist(), strict=True))


def test_non_interrupting_is_a_step_late_unless_strict():
    values = [5.0, 4.0, 3.0, 2.0, 1.0, 9.0, 9.0]
    options = {"policy": "non-interrupting", "constraint": 2}
    strict = lwa.simulate([job(0, 2)], values, strict=True, **options)
    assert steps_of(strict) == [(2.0, 4.0)]
    assert strict.metrics()["late_jobs"] == 0
    theirs = lwa.simulate([job(0, 2)], values, **options)
    assert steps_of(theirs) == [(3.0, 5.0)]
    assert theirs.metrics()["late_jobs"] == 1
    # 1 W for half an hour at 2 and 1 g/kWh
    assert theirs.metrics()["carbon_g"] == pytest.approx(0.0015, rel=1e-12)
    assert theirs.metrics()["energy_j"] == 3600.0


def test_interrupting_takes_the_cheapest_steps_the_earliest_of_equals():
    values = [5.0, 1.0, 3.0, 3.0, 3.0, 2.0, 9.0]
    options = {"policy": "interrupting", "constraint": 2, "strict": True}
    # of [5 1 3 3 3] three: 1, and the first two of the 3s; LWA would run all three
    outcome = lwa.simulate([job(0, 3, cpus=2, watts=10.0)], values, **options)
    assert steps_of(outcome) == [(1.0, 4.0)]
    assert outcome.metrics()["carbon_g"] == pytest.approx(20 * 0.5 * (1 + 3 + 3) / 1000)
    outcome = lwa.simulate([job(0, 3), job(1, 3, name="b")], values, **options | {"strict": False})
    # [5 1 3 3 3 2]: 1, 2 and the first 3
    assert steps_of(outcome) == [(1.0, 3.0), (5.0, 6.0), (1.0, 3.0), (5.0, 6.0)]
    assert outcome.segments["segment"].tolist() == [0, 1, 0, 1]
    assert outcome.segments["job"].tolist() == ["0", "0", "b", "b"]
    assert outcome.metrics()["mean_total_wait_s"] == 1800 * (3 + 2) / 2


def test_first_of_equal_means_and_immediate():
    values = [2.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    assert steps_of(lwa.simulate([job(0, 2)], values, policy="wait-awhile", constraint=3)) == [(0.0, 2.0)]
    assert steps_of(lwa.simulate([job(0, 2)], values[::-1], policy="immediate", constraint=3)) == [(0.0, 2.0)]


def deadline_h(constraint, arrival_h, begin=MONDAY):
    """Until when a job of an hour may run, in h from Monday 00:00."""
    values = np.ones(48 * 20)
    outcome = lwa.simulate([job(2 * arrival_h, 2)], values, begin, policy="immediate", constraint=constraint)
    return outcome.segments["deadline_s"].iloc[0] / 3600


@pytest.mark.parametrize(
    ("finish_h", "target_h"),
    [
        (8.5, 9.0),
        (9.0, 9.0),
        (12.5, 12.5),
        (17.0, 17.0),
        (17.5, 24.0 + 9.0),
        (4 * 24 + 17.5, 5 * 24 + 9.0),  # Friday evening: Saturday morning
        (5 * 24 + 10.0, 7 * 24 + 9.0),  # Saturday: Monday
        (6 * 24 + 10.0, 7 * 24 + 9.0),
    ],
)
def test_next_workday(finish_h, target_h):
    assert deadline_h("next-workday", finish_h - 1) == target_h


@pytest.mark.parametrize(
    ("finish_h", "target_h"),
    [
        (9.0, 9.0),
        (9.5, 3 * 24 + 9.0),
        (3 * 24 + 9.0, 3 * 24 + 9.0),
        (3 * 24 + 9.5, 7 * 24 + 9.0),
        (6 * 24.0, 7 * 24 + 9),
    ],
)
def test_semi_weekly(finish_h, target_h):
    assert deadline_h("semi_weekly", finish_h - 1) == target_h


def test_constraints_are_by_the_clock_of_the_first_value():
    # 16:00 UTC is 18:00 in Paris: after work, until 09:00 there, which is 07:00 UTC
    paris = datetime(2020, 6, 1, tzinfo=UTC).astimezone(ZoneInfo("Europe/Paris"))
    assert deadline_h("next-workday", 15.0, paris) == 24 + 7.0
    assert deadline_h("next-workday", 15.0) == 16.0


def test_forecast_errors_are_drawn_as_lwa_draws_them_and_the_truth_is_charged():
    values = np.random.default_rng(3).uniform(50.0, 60.0, 40)
    jobs = [job(0, 3), job(5, 2, name="b")]
    options = {"policy": "interrupting", "constraint": 10, "error": 0.2, "repetitions": 4, "strict": True}
    outcome = lwa.simulate(jobs, values, seed=7, **options)
    grams = []
    for seed in range(7, 11):
        seen = values + np.random.default_rng(seed).normal(0.0, 0.2 * values.mean(), 40)
        first = sorted(range(13), key=lambda step: seen[step])[:3]
        second = sorted(range(5, 17), key=lambda step: seen[step])[:2]
        grams.append(sum(values[step] for step in first + second) * 0.5 / 1000)
    assert len(set(grams)) > 1
    assert outcome.metrics()["carbon_g"] == pytest.approx(np.mean(grams), rel=1e-12)
    assert outcome.segments["repetition"].nunique() == 4
    assert lwa.simulate(jobs, values, **options | {"error": 0.0}).segments["repetition"].nunique() == 1


def test_jobs_take_whole_steps(caplog):
    with caplog.at_level(logging.INFO):
        outcome = lwa.simulate([job(0.5, 1.5)], [1.0] * 6, policy="immediate", constraint=0)
    assert steps_of(outcome) == [(1.0, 3.0)]
    assert outcome.segments["arrival_s"].tolist() == [1800.0]
    assert "whole steps" in caplog.text


def test_a_window_ends_with_the_signal_but_a_job_must_fit():
    assert steps_of(lwa.simulate([job(1, 2)], [9.0, 9, 2, 1], policy="non-interrupting", constraint=50)) == [(2.0, 4.0)]
    with pytest.raises(InputError, match=r"^job x: it would end at 9000 s, after the signal at 7200 s"):
        lwa.simulate([job(3, 2, name="x")], [1.0] * 4, policy="immediate", constraint=0)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"policy": "interupting"}, "did you mean 'interrupting'"),
        ({"constraint": "next-workday", "begin": None}, "needs a date"),
        ({"constraint": "next-week"}, "no constraint 'next-week'"),
        ({"constraint": -1}, "option constraint"),
        ({"error": float("nan")}, "options: error must be a finite number >= 0, got nan"),
        ({"error": -0.1}, "error must be a finite number >= 0"),
        ({"repetitions": 0}, "repetitions must be a whole number >= 1"),
        ({"seed": -1}, "option seed"),
        ({"values": [1.0, float("inf")]}, "step 1 has none"),
        ({"values": []}, "there are none"),
        ({"jobs": []}, "jobs: there are none"),
    ],
)
def test_wrong_input_is_one_clear_line(options, hint):
    given = {"jobs": [job(0, 1)], "values": [1.0] * 9, "begin": MONDAY, "policy": "interrupting"} | options
    with pytest.raises(InputError, match=hint) as caught:
        lwa.simulate(given.pop("jobs"), given.pop("values"), given.pop("begin"), **given)
    assert "\n" not in str(caught.value)


def test_machine_learning_jobs_are_those_of_lwa():
    jobs = ml_jobs()
    minutes = [(job.arrival_s / 60, job.length_s / 60) for job in jobs]
    # what its generator gives: the first and the last, and sums over all with their place as weight
    assert minutes[:2] == [(570.0, 3180.0), (630.0, 3030.0)]
    assert minutes[-1] == (526530.0, 1200.0)
    assert len(jobs) == 3387
    assert sum(i * arrival for i, (arrival, _) in enumerate(minutes, 1)) == 1_988_649_815_190
    assert sum(i * duration for i, (_, duration) in enumerate(minutes, 1)) == 15_916_072_710
    assert sum(duration for _, duration in minutes) / 30 == 311252
    assert [job.id for job in ml_jobs(5, seed=3)] == ["0", "1", "2", "3", "4"]
    assert [job.arrival_s for job in ml_jobs(50, seed=3)] != [job.arrival_s for job in ml_jobs(50, seed=4)]
    with pytest.raises(InputError, match="option n"):
        ml_jobs(0)


@cache
def french() -> list[float]:
    with FRENCH.open() as file:
        return [float(row["Carbon Intensity"]) for row in csv.DictReader(file) if row["Time"] >= "2020"]


@pytest.mark.skipif(not FRENCH.exists(), reason="no French series in ../shared/data")
@pytest.mark.parametrize(
    ("policy", "constraint", "error", "grams"),
    [
        ("non-interrupting", 0, 0.0, 8843.57094109771),
        ("interrupting", 0, 0.0, 8833.706248389166),
        ("non-interrupting", "next-workday", 0.0, 8420.00044633161),
        ("interrupting", "next-workday", 0.0, 8293.580805536245),
        ("non-interrupting", "semi-weekly", 0.0, 7857.2402746487205),
        ("interrupting", "semi-weekly", 0.0, 7617.716160336359),
        ("non-interrupting", "next-workday", 0.05, 8422.09845336725),
        ("interrupting", "next-workday", 0.1, 8365.924384030735),
    ],
)
def test_the_french_year_gives_what_lwa_gives(policy, constraint, error, grams):
    """LWA's unchanged simulator (leafsim 0.4.2, vessim 0.3.0, pandas 2.2) on its own jobs of 2020; sums in g at 1 W."""
    outcome = lwa.simulate(ml_jobs(), french(), datetime(2020, 1, 1), policy=policy, constraint=constraint, error=error)
    assert outcome.metrics()["carbon_g"] == pytest.approx(grams, rel=1e-11)
