"""Figures of an outcome, worked out by hand from its rows."""

from __future__ import annotations

import pandas as pd
import pytest
from carbon_talk import outcome_of

from batwatt.model.phases import Phase, PhaseModel, constant
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import ShiftJob, carry_out
from batwatt.systems.carbon.outcome import SEGMENT_COLUMNS, Outcome, saved

HOUR = 3600.0
COURSE = SignalIntegral.regular([300.0, 100.0, 200.0, 400.0])
PRICE = SignalIntegral.regular([0.1, 0.2, 0.3, 0.4])
MODEL = PhaseModel((Phase("boot", 1800.0, 200.0),), (Phase("work", 3600.0, 1000.0),))


def rows(*given: tuple, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    return pd.DataFrame(given, columns=[*SEGMENT_COLUMNS, *columns])


def test_a_job_that_is_suspended():
    # start-up and half of the work in hour 0, the same again in hour 2
    execution = carry_out(ShiftJob("a", 0.0, MODEL, cpus=2), ((0.0, HOUR), (2 * HOUR, 3 * HOUR)))
    outcome = outcome_of("ours", [execution], COURSE, price=PRICE)
    # per segment and cpu 0.1 kWh of start-up and 0.5 kWh of work
    assert outcome.segments["carbon_g"].tolist() == pytest.approx([2 * 0.6 * 300, 2 * 0.6 * 200])
    assert outcome.segments["startup_s"].tolist() == [1800.0, 1800.0]
    assert outcome.segments["work_s"].tolist() == [1800.0, 1800.0]
    assert outcome.metrics() == pytest.approx(
        {
            "carbon_g": 600.0,
            "energy_j": 2.4 * 3.6e6,
            "cost": 1.2 * 0.1 + 1.2 * 0.3,
            "energy_cost": 0.48,
            "machine_cost": 0.0,
            "mean_total_wait_s": HOUR,
            "max_total_wait_s": HOUR,
            "mean_slowdown": 1.5,
            "segments": 2,
            "jobs": 1,
            "suspended_jobs": 1,
            "late_jobs": 0,
            "startup_energy_j": 0.4 * 3.6e6,
        }
    )


def test_one_row_per_job():
    outcome = Outcome(
        "given",
        rows(
            ("b", 0, 10.0, 20.0, 30.0, 1, 2.0, 8.0, 5.0, 1.0, 0.5, "spot"),
            ("a", 0, 0.0, 0.0, 40.0, 4, 0.0, 40.0, 7.0, 2.0, 0.25, "reserved"),
            ("b", 1, 10.0, 35.0, 36.0, 1, 1.0, 0.0, 6.0, 3.0, 0.5, "on-demand"),
        ),
        cost_fixed=10.0,
    )
    jobs = outcome.per_job()
    assert jobs["job"].tolist() == ["b", "a"]
    # b waits from 10 to 20 and from 30 to 35
    assert jobs["wait_s"].tolist() == [15.0, 0.0]
    assert jobs["length_s"].tolist() == [11.0, 40.0]
    assert jobs["end_s"].tolist() == [36.0, 40.0]
    assert jobs["segments"].tolist() == [2, 1]
    figures = outcome.metrics()
    assert figures["cost"] == 11.25
    assert figures["machine_cost"] == 11.25
    assert figures["mean_total_wait_s"] == 7.5
    assert figures["mean_slowdown"] == pytest.approx((26 / 11 + 1) / 2)


def test_late_jobs_are_those_beyond_their_deadline():
    given = [(name, 0, 0.0, 0.0, 10.0, 1, 0.0, 10.0, 1.0, 1.0, 0.0, "spot", at) for name, at in (("a", 10), ("b", 9.9))]
    assert Outcome("given", rows(*given, columns=("deadline_s",))).metrics()["late_jobs"] == 1


def test_figures_are_means_over_repetitions():
    outcome = Outcome(
        "given",
        rows(
            ("a", 0, 0.0, 0.0, 10.0, 1, 0.0, 10.0, 1.0, 2.0, 0.0, "spot", 0),
            ("a", 0, 0.0, 5.0, 10.0, 1, 0.0, 5.0, 1.0, 4.0, 0.0, "spot", 1),
            ("a", 1, 0.0, 20.0, 25.0, 1, 0.0, 5.0, 1.0, 6.0, 0.0, "spot", 1),
            columns=("repetition",),
        ),
        cost_fixed=3.0,
    )
    figures = outcome.metrics()
    assert figures["carbon_g"] == 6.0
    assert figures["mean_total_wait_s"] == 7.5
    assert figures["segments"] == 1.5
    assert figures["suspended_jobs"] == 0.5
    assert figures["cost"] == 3.0
    assert figures["jobs"] == 1
    assert outcome.per_job()["carbon_g"].tolist() == [6.0]


def test_what_is_saved_against_immediate():
    jobs = [ShiftJob("a", 0.0, constant(HOUR, 1000.0)), ShiftJob("b", HOUR, constant(HOUR, 0.0))]
    base = outcome_of("immediate", [carry_out(job, ((job.arrival_s, job.arrival_s + HOUR),)) for job in jobs], COURSE)
    ours = outcome_of("ours", [carry_out(job, ((2 * HOUR, 3 * HOUR),)) for job in jobs[::-1]], COURSE)
    table = saved(ours, base)
    assert table["job"].tolist() == ["a", "b"]
    assert table["carbon_base_g"].tolist() == [300.0, 0.0]
    assert table["saved_g"].tolist() == [100.0, 0.0]
    assert table["saved_share"].tolist() == pytest.approx([1 / 3, 0.0])


def test_other_jobs_cannot_be_compared():
    one, other = (
        outcome_of("p", [carry_out(ShiftJob(name, 0.0, constant(1.0, 1.0)), ((0.0, 1.0),))], COURSE) for name in "ab"
    )
    with pytest.raises(ValueError, match="did not run the same jobs"):
        saved(one, other)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (rows(), "needs a segment"),
        (rows(("a", 0, 0.0, 0.0, 1.0, 1, 0.0, 1.0, 1.0, 1.0, 0.0, "moon")), "machines must be among"),
        (pd.DataFrame({"job": ["a"]}), "lack the columns segment"),
    ],
)
def test_what_is_no_outcome(table, message):
    with pytest.raises(ValueError, match=message):
        Outcome("p", table)
