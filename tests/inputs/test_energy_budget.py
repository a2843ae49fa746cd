"""What a budget buys and what it costs, worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.series.energy_budget import (
    Bill,
    EnergyBudget,
    Stranded,
    bill,
)
from batwatt.model.series import Series
from batwatt.model.signal import Signal


def signal(*values: float, step_s: float = 3600.0) -> Signal:
    times = tuple(step_s * k for k in range(len(values)))
    return Signal(Series(times, values, name="price"), step_s * len(values))


def test_a_constant_budget_by_hand():
    # mean 250, so an hour's budget is 0.7 x 250 = 175
    found = EnergyBudget(headroom=2.0).capacity(signal(100, 250, 400))
    assert found.values == pytest.approx((1.75, 0.7, 0.4375))
    assert bill(found, signal(100, 250, 400)).amount == pytest.approx(3 * 175)
    limited = EnergyBudget(headroom=1.0, floor=0.5).capacity(signal(100, 250, 400))
    assert limited.values == pytest.approx((1.0, 0.7, 0.5)) and limited.name == "fraction"


def test_the_mean_is_that_over_time():
    # 100 for 3 h, 400 for 1 h: mean 175
    uneven = Signal(Series((0.0, 10800.0), (100.0, 400.0)), 14400.0)
    assert EnergyBudget(headroom=9.0).capacity(uneven).values == pytest.approx((1.225, 0.30625))


def test_prices_next_to_nothing_and_below():
    found = EnergyBudget(headroom=1.2).capacity(signal(-50, 0, 1e-300, 100, 150))
    assert found.values == pytest.approx((1.2, 1.2, 1.2, 0.28, 0.7 * 40 / 150))


def test_a_reference_in_place_of_the_mean():
    assert EnergyBudget(reference=100.0).capacity(signal(100, 200)).values == pytest.approx((0.7, 0.35))
    assert EnergyBudget(reference=50.0).capacity(signal(-5, 100)).values == pytest.approx((1.0, 0.35))
    with pytest.raises(InputError, match="the mean of 'price' must be > 0 to reckon a budget, got -5"):
        EnergyBudget().capacity(signal(-20, 10))


def test_stranded_power():
    assert Stranded(0.0).capacity(signal(5, 0, -3, 0.1)).values == (0.0, 1.0, 1.0, 0.0)
    assert Stranded(0.0, low=0.2, high=0.9).capacity(signal(5, 0)).values == (0.2, 0.9)


def test_a_bill_by_hand():
    # half an hour at 100 with 1, half at 100 with 0.5, an hour at 200 with 0.5
    found = bill(Series((0.0, 1800.0), (1.0, 0.5)), signal(100, 200), fixed=0.7)
    assert found.amount == pytest.approx(50 + 25 + 100) and found.amount_fixed == pytest.approx(210)
    assert found.mean == pytest.approx(0.625) and found.mean_fixed == 0.7
    assert found.saved == pytest.approx(35 / 210) and found.gained == pytest.approx(0.625 / 0.7 - 1)
    # what a capacity does after the signal has ended costs nothing that is known
    assert bill(Series((0.0, 1800.0, 9999.0), (1.0, 0.5, 7.0)), signal(100, 200)).amount == pytest.approx(175)
    assert Bill(1.0, 0.0, 0.0, 0.0).saved is None and Bill(1.0, 0.0, 0.0, 0.0).gained is None


@given(st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=40), st.floats(0.1, 1.0))
def test_without_limits_all_is_spent_and_capacity_never_lost(values, budget):
    paid = signal(*values)
    found = bill(EnergyBudget(budget, headroom=10.0).capacity(paid), paid, budget)
    if max(values) / min(values) < 10.0:
        assert found.amount == pytest.approx(found.amount_fixed)
        # the arithmetic mean is at least the harmonic one
        assert found.gained is not None and found.gained >= -1e-9
    assert found.amount <= found.amount_fixed * (1 + 1e-9)


@pytest.mark.parametrize(
    "make,said",
    [
        (lambda: EnergyBudget(budget=-1.0), "budget must be a number in [0, 10], got -1.0"),
        (lambda: EnergyBudget(headroom=math.nan), "headroom must be a number in [0, 10], got nan"),
        (lambda: EnergyBudget(headroom=0.5, floor=0.6), "floor must be <= headroom, got 0.6 and 0.5"),
        (lambda: EnergyBudget(reference=0.0), "reference must be a finite number > 0, got 0.0"),
        (lambda: Stranded(math.inf), "threshold must be a number in [-1e+12, 1e+12]"),
        (lambda: Stranded(0.0, low=1.0, high=0.5), "low must be <= high"),
    ],
)
def test_refusals(make, said):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(f"capacity: {said}")
