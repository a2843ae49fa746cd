"""What each policy chooses, worked out by hand; times in hours where the names say so."""

from __future__ import annotations

import numpy as np
import pytest

from batwatt.errors import InputError, UnknownNameError
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.optimum import plan
from batwatt.schedulers.carbon.policies import POLICIES, PolicyInputs, StartWindow, phase_aware, policy_named
from batwatt.schedulers.carbon.reservations import ReservationCalendar

HOUR = 3600.0
ONE_HOUR = constant(HOUR, 1000.0)


def chosen(name: str, model: PhaseModel, values: list[float], wait_h: float, **known: object) -> list[tuple]:
    """The intervals in h; `arrival_s` is among the known."""
    arrival_s = float(known.pop("arrival_s", 0.0))
    job = ShiftJob("a", arrival_s, model)
    window = StartWindow(arrival_s, wait_h * HOUR)
    intervals = policy_named(name).choose(job, window, Timeline.regular(values), PolicyInputs(**known))
    return [(begin / HOUR, end / HOUR) for begin, end in intervals]


THREE_QUARTERS = constant(2700.0, 1.0)
LATE = [300.0, 250.0, 10.0, 900.0]
USUAL = {"expected_length_s": 2 * HOUR}


@pytest.mark.parametrize(
    ("name", "model", "values", "wait_h", "known", "expected"),
    [
        ("immediate", ONE_HOUR, [9.0, 1.0, 1.0], 1.5, {}, [(0.0, 1.0)]),
        ("latest", ONE_HOUR, [9.0, 1.0, 1.0], 1.5, {}, [(1.5, 2.5)]),
        # from 0.5 h on it may wait 1 h: the signal is 100 from 1 h on; what comes after the start does not matter
        ("lowest", ONE_HOUR, [300.0, 100.0, 50.0, 9.0], 1.0, {"arrival_s": 1800.0}, [(1.0, 2.0)]),
        # a job without checkpoints is not suspended
        ("phase-aware-checkpoints", ONE_HOUR, [300.0, 100.0, 50.0, 900.0], 2.0, {}, [(2.0, 3.0)]),
        # it may start at the very end of the wait
        ("lowest", ONE_HOUR, [300.0, 100.0, 50.0, 900.0], 2.0, {}, [(2.0, 3.0)]),
        # 2 h from 0, 1 and 2 h: 550, 260, 910
        ("waiting", ONE_HOUR, LATE, 2.0, USUAL, [(1.0, 2.0)]),
        # from 600 s: all 300 at once; 1200 s of 300 and 1500 s of 100 half an hour later; all 100 an hour later
        ("wait-awhile", THREE_QUARTERS, [300.0, 100.0, 100.0], 1.0, {"arrival_s": 600.0}, [(4200 / HOUR, 6900 / HOUR)]),
        ("wait-awhile", THREE_QUARTERS, [300.0, 100.0, 100.0], 3599 / HOUR, {"arrival_s": 600.0},
         [(2400 / HOUR, 5100 / HOUR)]),
        ("wait-awhile", THREE_QUARTERS, [300.0, 100.0, 100.0], 3000 / HOUR, {"arrival_s": 600.0, "slot_s": 1000.0},
         [(3600 / HOUR, 6300 / HOUR)]),
    ],
)  # fmt: skip
def test_choices_by_hand(name, model, values, wait_h, known, expected):
    assert chosen(name, model, values, wait_h, **known) == expected


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("immediate", "latest")])
def test_a_signal_that_ends_too_early(name):
    with pytest.raises(InputError, match="the signal ends at 7200 s, before 9000 s"):
        chosen(name, ONE_HOUR, [1.0, 2.0], 1.5)


def test_a_signal_that_ends_before_a_usual_job():
    with pytest.raises(InputError, match="before 10800 s, which job a may need"):
        chosen("waiting", ONE_HOUR, [1.0, 2.0], 1.0, expected_length_s=2 * HOUR)


def test_names():
    assert policy_named("CST_Oracle") is POLICIES["cst-oracle"]
    with pytest.raises(UnknownNameError, match="did you mean 'oracle'"):
        policy_named("oracel")


def test_phase_aware_without_phases_is_suspend_resume():
    """The optimum of one power without a start-up, by the dynamic programme on slots of a minute and by the greedy."""
    rng = np.random.default_rng(3)
    integral = Timeline.regular(rng.uniform(50.0, 500.0, 12))
    job = ShiftJob("a", 1200.0, constant(7320.0, 90.0))
    window = StartWindow(1200.0, 6 * 3600.0)
    greedy = carry_out(job, phase_aware(job, window, integral, PolicyInputs()), apart=True)
    exact = plan(job.model, integral, 1200.0, window.deadline_s(job), slot_s=60.0)
    assert not exact.rounded
    assert greedy.emitted(integral) == pytest.approx(exact.carbon, rel=1e-12)
    assert len(greedy.segments) == len(exact.segments) > 1


@pytest.mark.parametrize("name", ["wait-awhile", "phase-aware"])
def test_slots_that_nobody_can_look_at_are_refused(name):
    # 9 h in slots of 1e-7 s: 3.24e11 of them took all memory
    two_phases = PhaseModel((), (Phase("low", HOUR, 100.0), Phase("high", HOUR, 1000.0)))
    with pytest.raises(InputError, match=r"option 'slot_s': slots of 1e-07 s are more than 20000000 in"):
        chosen(name, two_phases, [300.0] * 24, 7.0, slot_s=1e-7)


def test_a_calendar_of_more_slots_than_can_be_kept_is_refused():
    with pytest.raises(InputError, match=r"slots of 0\.1 s are more than 20000000 in 1e\+09 s"):
        ReservationCalendar(0.1, Timeline((0.0, 1e9), (4.0, 3.0), "machines"))
    calendar = ReservationCalendar(0.1, Timeline((0.0,), (4.0,), "machines"))
    with pytest.raises(InputError, match=r"slots of 0\.1 s are more than 20000000 in 1e\+09 s"):
        calendar.need(carry_out(job := ShiftJob("a", 0.0, constant(1e9, 5.0)), ((0.0, job.model.length_s),)))


def test_a_calendar_writes_no_repetition_out():
    # 4 machines by day, 2 by night, in rows of 60 s: 20 years of them are more than a series may have
    values = tuple(4.0 if 360 <= minute < 1080 else 2.0 for minute in range(1440))
    day = Timeline(tuple(60.0 * minute for minute in range(1440)), values, "machines", loop=0, period_s=24 * HOUR)
    calendar = ReservationCalendar(HOUR, day)
    begin = 20 * 365 * 24
    free = [not calendar.full(hour, 1, 3, 0.0)[0] for hour in range(begin, begin + 24)]
    assert free == [6 <= hour < 18 for hour in range(24)]
