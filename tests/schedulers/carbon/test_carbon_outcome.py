"""Figures of an outcome, worked out by hand from its rows."""

from __future__ import annotations

import pandas as pd
import pytest

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.simulator import SEGMENT_COLUMNS, Outcome, rows_of

HOUR = 3600.0
SIGNAL = Timeline.regular([300.0, 100.0, 200.0, 400.0])
PRICE = Timeline.regular([0.1, 0.2, 0.3, 0.4])
MODEL = PhaseModel((Phase("boot", 1800.0, 200.0),), (Phase("work", 3600.0, 1000.0),))


def test_a_job_that_is_suspended():
    # start-up and half of the work in hour 0, the same again in hour 2
    execution = carry_out(ShiftJob("a", 0.0, MODEL, cpus=2), ((0.0, HOUR), (2 * HOUR, 3 * HOUR)))
    outcome = Outcome("ours", rows_of([execution], SIGNAL, PRICE, [3 * HOUR]))
    # per segment and cpu 0.1 kWh of start-up and 0.5 kWh of work
    assert outcome.segments["carbon_g"].tolist() == pytest.approx([2 * 0.6 * 300, 2 * 0.6 * 200])
    assert outcome.segments["startup_s"].tolist() == [1800.0, 1800.0]
    assert outcome.segments["work_s"].tolist() == [1800.0, 1800.0]
    assert outcome.segments["cost"].tolist() == pytest.approx([1.2 * 0.1, 1.2 * 0.3])
    assert outcome.metrics()["startup_energy_j"] == pytest.approx(0.4 * 3.6e6)
    assert Outcome("ours", rows_of([execution], SIGNAL, None, [HOUR])).metrics()["cost"] is None


def test_work_after_the_last_checkpoint_is_done_again():
    model = PhaseModel(
        (), (Phase("work", 60.0, 1.0), Phase("save", 5.0, 1.0, is_checkpoint=True), Phase("work", 60.0, 1.0))
    )
    execution = carry_out(ShiftJob("a", 0.0, model), ((0.0, 75.0), (100.0, 160.0)), checkpoints=True)
    assert [(each.from_s, each.to_s) for each in execution.segments] == [(0.0, 75.0), (65.0, 125.0)]


def test_figures_of_several_jobs():
    """b waits from 10 to 20 and from 30 to 35, and ends 0.1 s after its deadline."""
    rows = [
        ("b", 0, 10.0, 20.0, 30.0, 1, 2.0, 8.0, 5.0, 1.0, 0.5, 0.0, 35.9),
        ("a", 0, 0.0, 0.0, 40.0, 4, 0.0, 40.0, 7.0, 2.0, 0.25, 0.0, 40.0),
        ("b", 1, 10.0, 35.0, 36.0, 1, 1.0, 0.0, 6.0, 3.0, 0.5, 0.0, 35.9),
    ]
    figures = Outcome("given", pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))).metrics()
    assert (figures["carbon_g"], figures["energy_j"], figures["cost"]) == (6.0, 18.0, 1.25)
    assert (figures["mean_total_wait_s"], figures["max_total_wait_s"]) == (7.5, 15.0)
    assert (figures["segments"], figures["suspended_jobs"], figures["late_jobs"]) == (3, 1, 1)
    assert figures["mean_slowdown"] == pytest.approx((26 / 11 + 1) / 2)
