"""Jobs through a whole simulation: options, what is charged, and what is refused in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batwatt.errors import InputError
from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.schedulers.carbon.simulator import ShiftOptions, simulate

HOUR = 3600.0
CARBON = Timeline.regular([300.0, 100.0, 200.0, 400.0, 300.0])
PRICE = Timeline.regular([0.3, 0.4, 0.1, 0.5, 0.5])
JOB = ShiftJob("a", 0.0, constant(HOUR, 1000.0))
BOOTING = PhaseModel((Phase("boot", 1800.0, 1000.0),), (Phase("work", 5400.0, 1000.0),))


def begin_h(policy: str, job: ShiftJob = JOB, integral: Timeline = CARBON, **options: object) -> float:
    return float(simulate([job], integral, policy, ShiftOptions(**options)).segments["begin_s"].iloc[0]) / HOUR


def test_a_price_is_charged_apart_from_what_is_planned_by():
    options = {"wait_h": (2.0,), "price": PRICE}
    assert begin_h("oracle", **options) == 1.0
    assert begin_h("oracle", **options, carbon_weight=0.0, price_weight=1.0) == 2.0
    # 300 + 300, 100 + 400 and 200 + 100 g
    assert begin_h("oracle", **options, price_weight=1000.0) == 2.0
    figures = simulate([JOB], CARBON, "oracle", ShiftOptions(**options, price_weight=1000.0)).metrics()
    assert (figures["carbon_g"], figures["cost"]) == pytest.approx((200.0, 0.1))


def test_deadlines_and_constraints():
    assert begin_h("latest", deadline_h=3.0) == 2.0
    assert begin_h("latest", wait_h=(0.5, 2.0)) == 0.5
    dated = replace(CARBON, date_s=parse_date_s("2024-07-01T05:00Z"))
    # it would finish at 06:00 and may as well at 09:00
    assert begin_h("latest", integral=dated, constraint="next-workday") == 3.0


LATER = [replace(CARBON, date_s=parse_date_s(f"2024-07-0{day}T00:00Z")) for day in (1, 2)]


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("oracle", {"wait_h": (1.0, 2.0, 3.0)}, "one or two values, got 3"),
        ("oracle", {"wait_h": (-1.0,)}, "wait_h must be >= 0, got -1.0"),
        ("oracle", {"deadline_h": 2.0, "constraint": "semi-weekly"}, "both deadline_h and constraint"),
        ("oracle", {"constraint": "daily"}, "no constraint 'daily'"),
        ("oracle", {"wait_h": (1.0,), "price": LATER[1]}, "let both begin at the same date"),
        ("oracle", {"slot_s": 0.0}, "slot_s must be > 0"),
        ("phase-aware", {"wait_h": (0.5,), "slot_s": 7000.0}, "job a: .* slots of 7000 s"),
    ],
)
def test_what_is_refused(policy, options, message):
    with pytest.raises(InputError, match=message):
        simulate([JOB], LATER[0], policy, ShiftOptions(**options))


@pytest.mark.parametrize(
    ("policy", "jobs", "message"),
    [
        ("oracle", [], "there are none"),
        ("oracle", [JOB, JOB], "2 of them have the id 'a'"),
        ("immediate", [ShiftJob("late", 15400.0, JOB.model)], "ends at 18000 s, before 19000 s, which job late may"),
    ],
)
def test_jobs_that_are_refused(policy, jobs, message):
    with pytest.raises(InputError, match=message):
        simulate(jobs, CARBON, policy, ShiftOptions(deadline_h=5.0))


def test_a_job_that_ends_after_the_signal_by_its_own_fault():
    # it plans hours 1 and 3 and runs until 4.5 h, where the signal has ended
    integral = Timeline.regular([300.0, 100.0, 300.0, 100.0])
    with pytest.raises(InputError, match="before 16200 s, which job a may need"):
        simulate([ShiftJob("a", 0.0, BOOTING)], integral, "suspend-resume", ShiftOptions(deadline_h=4.0))
