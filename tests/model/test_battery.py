"""Batteries: steps by hand, laws of energy, dispatch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import given
from hypothesis import strategies as st

from batwatt.model.battery import Battery, Dispatch, greedy, smoothing
from batwatt.model.timeline import Timeline
from batwatt.units import HOUR_S


def test_charging_by_hand():
    battery = Battery(0.1, efficiency=0.64)
    charged = battery.step(0.0, 50.0, HOUR_S)
    assert (charged.power_w, charged.energy_j) == (50.0, 40 * HOUR_S)
    assert charged.loss_j == pytest.approx(10 * HOUR_S)
    # 40 Wh are stored, 32 Wh arrive
    empty = battery.step(40 * HOUR_S, -50.0, HOUR_S)
    assert (empty.power_w, empty.energy_j) == (-32.0, 0.0) and empty.loss_j == pytest.approx(8 * HOUR_S)
    # 60 Wh are free: 75 W for an hour fill it
    full = battery.step(40 * HOUR_S, 500.0, HOUR_S)
    assert (full.power_w, full.energy_j) == (pytest.approx(75.0), 100 * HOUR_S)
    assert battery.step(0.0, -5.0, 60.0).power_w == 0.0 and battery.step(100 * HOUR_S, 5.0, 60.0).power_w == 0.0
    limited = Battery(0.1, power_kw=0.03, min_soc=0.4)
    assert [limited.step(50 * HOUR_S, power_w, 60.0).power_w for power_w in (99.0, -99.0)] == [30.0, -30.0]
    # 10 Wh above the least state of charge, and none below it
    for stored_wh, power_w, left_wh in ((50, -10.0, 40), (30, 0.0, 30)):
        step = limited.step(stored_wh * HOUR_S, -99.0, HOUR_S)
        assert (step.power_w, step.energy_j) == (power_w, left_wh * HOUR_S)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"capacity_kwh": 0.0}, "capacity_kwh must be > 0, got 0.0"),
        ({"efficiency": 0.0}, "efficiency must be > 0, got 0.0"),
        ({"power_kw": -1.0}, "power_kw must be >= 0, got -1.0"),
        ({"initial_soc": 0.9, "max_soc": 0.8}, "initial_soc must be <= max_soc, got 0.9 and 0.8"),
        ({"min_soc": 0.9, "max_soc": 0.2}, "min_soc must be <= max_soc, got 0.9 and 0.2"),
    ],
)
def test_refused_batteries(fields, message):
    assert f"battery: {message}" in refusal(Battery, **{"capacity_kwh": 0.01} | fields)


# laws -----------------------------------------------------------------------------------------------------------------

POWERS = st.floats(-1e6, 1e6)
SHARES = st.floats(0.0, 1.0)
BATTERIES = st.builds(
    lambda low, high, initial, **more: Battery(
        min_soc=min(low, high), max_soc=max(low, high), initial_soc=min(initial, max(low, high)), **more
    ),
    SHARES,
    SHARES,
    SHARES,
    capacity_kwh=st.floats(1e-3, 1e3),
    power_kw=st.none() | st.floats(0.0, 1e3),
    efficiency=st.floats(0.1, 1.0),
)
STEPS = st.lists(st.tuples(POWERS, st.floats(1e-3, 1e6)), min_size=1, max_size=30)


@examples(400)
@given(battery=BATTERIES, steps=STEPS)
def test_energy_is_conserved_and_limits_hold(battery, steps):
    stored, most = battery.initial_soc * battery.capacity_j, battery.max_soc * battery.capacity_j
    least = battery.min_soc * battery.capacity_j
    for request_w, duration_s in steps:
        step = battery.step(stored, request_w, duration_s)
        flows = (step.power_w * duration_s, step.energy_j - stored, step.loss_j)
        size = max(battery.capacity_j, *map(abs, flows))
        assert abs(flows[0] - sum(flows[1:])) <= 1e-9 * size
        assert step.loss_j >= -1e-9 * size
        # towards what is asked for, and not beyond
        assert 0.0 <= step.power_w <= request_w or request_w <= step.power_w <= 0.0
        assert battery.power_kw is None or abs(step.power_w) <= 1e3 * battery.power_kw
        assert step.energy_j <= most * (1 + 1e-12)
        assert step.energy_j >= min(least, stored) * (1 - 1e-12)
        stored = step.energy_j


# dispatch -------------------------------------------------------------------------------------------------------------


def balanced(done: Dispatch) -> None:
    """Whole energies of a dispatch: what came in went out, was lost or is stored."""
    lasted = np.diff(done.edges_s)
    supplied, used = float(lasted @ done.supply_w), float(lasted @ done.envelope_w)
    stored = float(done.energy_j[-1] - done.energy_j[0])
    total = used + stored + float(done.loss_j.sum())
    assert abs(supplied - total) <= 1e-9 * max(supplied, used, done.battery.capacity_j)


def test_greedy_by_hand():
    supply = Timeline((0.0, HOUR_S, 2 * HOUR_S), (100.0, 0.0, 60.0), name="power_w")
    done = greedy(supply, Timeline((0.0,), (60.0,)), Battery(0.05), 4 * HOUR_S, step_s=1800.0)
    # 40 Wh are charged, of which 60 W take half an hour and 20 Wh are left for the next
    assert done.envelope().values == (60.0, 20.0, 60.0) and done.envelope().times_s == (0.0, 5400.0, 7200.0)
    charge = done.state_of_charge()
    assert charge.values[:5] == pytest.approx((0.0, 0.4, 0.8, 0.2, 0.0)) and charge.times_s[-1] == 4 * HOUR_S
    balanced(done)
    # what does not fit stays in the envelope
    full = greedy(supply, Timeline((0.0,), (60.0,)), Battery(0.05, initial_soc=1.0), HOUR_S)
    assert full.envelope().values == (100.0,)


def test_smoothing_by_hand():
    supply = Timeline((0.0, HOUR_S, 2 * HOUR_S, 3 * HOUR_S), (100.0, 0.0, 100.0, 0.0), name="power_w")
    done = smoothing(supply, 2 * HOUR_S, Battery(1.0, initial_soc=0.5), 4 * HOUR_S)
    assert done.envelope_w.tolist() == [100.0, 50.0, 50.0, 50.0]
    assert (done.energy_j / HOUR_S).tolist() == [500.0, 500.0, 450.0, 500.0, 450.0]
    # as far as the battery allows
    small = smoothing(supply, 2 * HOUR_S, Battery(0.03), 4 * HOUR_S)
    assert small.envelope_w.tolist() == [100.0, 0.0, 70.0, 30.0]
    for window_s in (0.0, math.nan):
        line = refusal(smoothing, supply, window_s, Battery(0.03), HOUR_S)
        assert "window_s must be a finite number > 0 s" in line
    assert "end_s / step_s must be <= 2000000" in refusal(smoothing, supply, 60.0, Battery(0.03), HOUR_S, step_s=1e-9)


SUPPLIES = st.lists(st.tuples(st.floats(1.0, 5e4), st.floats(0.0, 1e6)), min_size=1, max_size=20).map(
    lambda rows: Timeline(
        tuple(np.cumsum([0.0, *(length for length, _ in rows[1:])]).tolist()), tuple(value for _, value in rows)
    )
)


@examples(200)
@given(supply=SUPPLIES, demand=SUPPLIES, battery=BATTERIES, window_s=st.floats(10.0, 1e6), end_s=st.floats(1.0, 3e5))
def test_dispatch_conserves_energy(supply, demand, battery, window_s, end_s):
    for done in (
        greedy(supply, demand, battery, end_s, step_s=end_s / 7),
        smoothing(supply, window_s, battery, end_s, step_s=end_s / 7),
    ):
        balanced(done)
        assert (done.envelope_w >= 0.0).all() and (done.envelope_w <= 2e6 * (1 + 1e-9)).all()
        shares = done.state_of_charge().values
        assert min(shares) >= 0.0 and max(shares) <= battery.max_soc * (1 + 1e-12)
        assert done.supply_w.tolist() == [supply.at(time_s) for time_s in done.edges_s[:-1]]
    # a battery that is large enough meets any demand
    done = greedy(supply, demand, Battery(1e6, initial_soc=0.5), end_s)
    assert done.envelope_w.tolist() == [demand.at(time_s) for time_s in done.edges_s[:-1]]
