"""Options of policies through a run of the scheduler `carbon`: what is charged, and what is refused in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from carbon_talk import run_alone

from batwatt.errors import InputError
from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.carbon.execution import ShiftJob

HOUR = 3600.0
CARBON = Timeline.regular([300.0, 100.0, 200.0, 400.0, 300.0])
PRICE = Timeline.regular([0.3, 0.4, 0.1, 0.5, 0.5])
JOB = ShiftJob("a", 0.0, constant(HOUR, 1000.0))
BOOTING = PhaseModel((Phase("boot", 1800.0, 1000.0),), (Phase("work", 5400.0, 1000.0),))


@pytest.fixture
def begin_h(tmp_path):
    def begun(policy: str, signal: Timeline = CARBON, *, job: ShiftJob = JOB, **options: object) -> float:
        totals = run_alone([job], tmp_path / "x", signal, policy=policy, **options)
        return float(totals.per_job()["begin_s"].iloc[0]) / HOUR

    return begun


def test_a_price_is_charged_apart_from_what_is_planned_by(begin_h, tmp_path):
    options = {"wait_h": [2.0], "price": PRICE}
    assert begin_h("oracle", **options) == 1.0
    assert begin_h("oracle", **options, carbon_weight=0.0, price_weight=1.0) == 2.0
    # 300 + 300, 100 + 400 and 200 + 100 g
    assert begin_h("oracle", **options, price_weight=1000.0) == 2.0
    figures = run_alone([JOB], tmp_path / "y", CARBON, policy="oracle", **options, price_weight=1000.0).metrics()
    assert (figures["carbon_g"], figures["cost"]) == pytest.approx((200.0, 0.1), rel=1e-12)


def test_deadlines_and_constraints(begin_h):
    assert begin_h("latest", deadline_h=3.0) == 2.0
    assert begin_h("latest", wait_h=[0.5, 2.0]) == 0.5
    dated = replace(CARBON, date_s=parse_date_s("2024-07-01T05:00Z"))
    # it would finish at 06:00 and may as well at 09:00, which is 07:00 UTC in Berlin
    assert begin_h("latest", dated, constraint="next-workday") == 3.0
    assert begin_h("latest", dated, constraint="next-workday", clock="Europe/Berlin") == 1.0


def test_steps_are_of_the_policy_alone(begin_h, tmp_path):
    """An hour that begins after whole steps: 30 min lead to hour 1, 50 min to 100 min or 300 / 6 + 5 x 100 / 6 g."""
    options = {"wait_h": [2.0], "slot_s": 900.0}
    assert begin_h("wait-awhile", **options) == 1.0
    assert begin_h("wait-awhile", **options, step_s=3000.0) == 3000.0 / HOUR
    # half an hour at 300 g and at 100 g; a step of 7000 s does not end by 5400 s: the job starts at once
    free, at_once = (
        run_alone([JOB], tmp_path / "y", CARBON, policy="phase-aware", wait_h=[0.5], step_s=step_s)
        for step_s in (None, 7000.0)
    )
    assert (free.carbon_g, at_once.carbon_g) == pytest.approx((200.0, 300.0), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wait_h": [1.0, 2.0, 3.0]}, "option 'wait_h': "),
        ({"deadline_h": 2.0, "constraint": "semi-weekly"}, "both deadline_h and constraint"),
        ({"constraint": "daily"}, "no constraint 'daily'"),
        ({"constraint": "semi-weekly", "clock": "Mars/Olympus"}, "'Mars/Olympus' is not a time zone"),
        ({"step_s": 0.0}, "option 'step_s': 0.0"),
    ],
)
def test_what_is_refused_before_the_first_job(options, message):
    with pytest.raises(InputError, match=message):
        Carbon({"signal": CARBON, "policy": "oracle", **options})


def test_a_signal_that_ends_before_a_job_may(begin_h):
    with pytest.raises(InputError, match="ends at 18000 s, before 33400 s, which job w0!late may"):
        begin_h("oracle", deadline_h=5.0, job=ShiftJob("late", 15400.0, JOB.model))
    # it plans hours 1 and 3 and runs until 4.5 h, where the signal has ended
    signal = Timeline.regular([300.0, 100.0, 300.0, 100.0])
    with pytest.raises(InputError, match="ends at 14400 s, before 16200 s"):
        begin_h("suspend-resume", signal, job=ShiftJob("a", 0.0, BOOTING), deadline_h=4.0)
