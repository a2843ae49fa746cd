"""What a run emits, worked out by hand: by segment and job, with start-ups and checkpoints."""

from __future__ import annotations

import pytest
from carbon_talk import run_alone

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out

HOUR = 3600.0
SIGNAL = Timeline.regular([100.0, 400.0, 200.0, 300.0, 900.0])
PRICE = Timeline.regular([0.1, 0.2, 0.3, 0.4, 0.5])
MODEL = PhaseModel((Phase("boot", 1800.0, 200.0),), (Phase("work", 5400.0, 1000.0),))


def test_a_job_that_is_suspended(tmp_path):
    """It plans hours 0 and 2 and does half an hour of work in each; the last half hour is late."""
    totals = run_alone([ShiftJob("a", 0.0, MODEL, cpus=2)], tmp_path / "x", SIGNAL, PRICE,
                       policy="suspend-resume", deadline_h=3.0)  # fmt: skip
    rows = totals.per_segment()
    assert rows[["begin_s", "end_s"]].to_numpy().tolist() == [[0.0, HOUR], [2 * HOUR, 3.5 * HOUR]]
    # per cpu 0.1 kWh of start-up and 0.5 kWh of work, then another 0.5 kWh at 300 g
    assert rows["carbon_g"].tolist() == pytest.approx([2 * 0.6 * 100, 2 * (0.6 * 200 + 0.5 * 300)], rel=1e-12)
    assert rows["cost"].tolist() == pytest.approx([1.2 * 0.1, 1.2 * 0.3 + 0.4], rel=1e-12)
    figures = totals.metrics()
    assert (figures["segments"], figures["jobs"], figures["averaged_rows"]) == (2, 1, 0)
    assert (figures["energy_j"], figures["mean_total_wait_s"]) == (2 * 1.7 * 3.6e6, HOUR)
    free = run_alone([ShiftJob("a", 0.0, MODEL)], tmp_path / "y", SIGNAL, policy="immediate")
    assert free.metrics()["cost"] is None


def test_work_after_the_last_checkpoint_is_done_again():
    model = PhaseModel(
        (), (Phase("work", 60.0, 1.0), Phase("save", 5.0, 1.0, is_checkpoint=True), Phase("work", 60.0, 1.0))
    )
    execution = carry_out(ShiftJob("a", 0.0, model), ((0.0, 75.0), (100.0, 160.0)), checkpoints=True)
    assert [(each.from_s, each.to_s) for each in execution.segments] == [(0.0, 75.0), (65.0, 125.0)]
