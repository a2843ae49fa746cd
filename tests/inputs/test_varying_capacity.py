"""Capacities that vary by chance or with a price, and what a series is like."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs import character as module
from batwatt.inputs.character import (
    Bill,
    EnergyBudget,
    Stranded,
    Variation,
    bill,
    characterise,
    vary,
)
from batwatt.inputs.spec import parse_series
from batwatt.model.timeline import Timeline


def drawn(monkeypatch, module, *draws: float) -> None:
    """Let the generator of a module draw these numbers."""

    class Draws:
        def random(self, size: int) -> np.ndarray:
            assert size == len(draws)
            return np.array(draws)

    monkeypatch.setattr(module, "rng_of", lambda seed, where: Draws())


@pytest.mark.parametrize(
    "kind,options,message",
    [
        (Variation, {"structure": "wlak"}, "capacity: no value of structure 'wlak'; did you mean 'walk'"),
        (Variation, {"range": 1.5}, "the range reaches down to mean - range / 2 = -0.05"),
        (Variation, {"step": 0.7}, "step must be in ]0, range], got step 0.7 and range 0.6"),
        (Variation, {"seed": -1}, "seed must be a whole number >= 0"),
        (EnergyBudget, {"headroom": 0.5, "floor": 0.6}, "floor must be <= headroom, got 0.6 and 0.5"),
        (Stranded, {"threshold": 0.0, "low": 1.0, "high": 0.5}, "low must be <= high"),
    ],
)
def test_refusals(kind, options, message):
    assert message in refusal(kind, **options)


UNIFORM = {"structure": "uniform", "step": None}


@pytest.mark.parametrize(
    ("options", "end_s", "draws", "values"),
    [
        # 0.5; +0.1; +0.2 would be 0.8 and is reflected at 0.7 to 0.6; -0.2; -0.2 would be 0.2, reflected at 0.3 to 0.4
        ({}, 50, (0.0, 0.75, 1.0, 0.0, 0.0), [0.5, 0.6, 0.6, 0.4, 0.4]),
        (UNIFORM, 25, (0.0, 0.25, 1.0), [0.3, 0.4, 0.7]),
        # 0.3, 0.4, 0.7 have the mean 0.4667; shifted by 0.05, with 0.7 as the most, they have 0.5
        (UNIFORM | {"level": True}, 30, (0.0, 0.25, 1.0), [0.35, 0.45, 0.7]),
        # over 15 s, 0.3 for 10 s and 0.4 for 5 s: mean 1/3, shift 1/6; what comes later is shifted as well
        (UNIFORM | {"level": True, "window_s": 15}, 30, (0.0, 0.25, 0.5), [0.3 + 1 / 6, 0.4 + 1 / 6, 0.5 + 1 / 6]),
    ],
)
def test_variations_by_hand(monkeypatch, options, end_s, draws, values):
    drawn(monkeypatch, module, *draws)
    base = {"mean": 0.5, "range": 0.4, "step": 0.2, "period_s": 10, "level": False}
    series = vary(Variation(**base | options), end_s)
    assert series.times_s == tuple(10 * k for k in range(len(draws)))
    assert list(series.values) == pytest.approx(values)


VARIATIONS = st.builds(
    lambda structure, mean, part, step, seed: Variation(
        structure, mean, 2 * mean * part, 2 * mean * part * step, 3600.0, True, None, seed
    ),
    st.sampled_from(["walk", "uniform"]),
    st.floats(0.1, 1.0),
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
    st.integers(0, 2**31),
)


@given(VARIATIONS, st.floats(3600.0, 60 * 86400.0))
def test_laws(variation, end_s):
    series = vary(variation, end_s)
    assert series == vary(variation, end_s)
    # without level, a longer series begins like a shorter one
    plain = replace(variation, level=False)
    assert vary(plain, 2 * end_s).values[: len(series)] == vary(plain, end_s).values
    lasting = np.diff([*series.times_s, end_s])
    assert len(series) == math.ceil(end_s / 3600.0) and lasting.min() > 0
    assert np.average(series.values, weights=lasting) == pytest.approx(variation.mean, abs=1e-9)
    assert min(series.values) >= variation.low - 1e-12 and max(series.values) <= variation.high + 1e-12
    if variation.structure == "walk":
        assert max((abs(a - b) for a, b in pairwise(series.values)), default=0) <= variation.step_fraction + 1e-12


def signal(*values: float, step_s: float = 3600.0) -> Timeline:
    times = tuple(step_s * k for k in range(len(values)))
    return Timeline(times, values, name="price", loop=None, period_s=step_s * len(values))


def test_a_constant_budget_by_hand():
    # mean 250, so an hour's budget is 0.7 x 250 = 175
    capacity = EnergyBudget(headroom=2.0).capacity(signal(100, 250, 400))
    assert capacity.values == pytest.approx((1.75, 0.7, 0.4375))
    assert bill(capacity, signal(100, 250, 400)).amount == pytest.approx(3 * 175)
    limited = EnergyBudget(headroom=1.0, floor=0.5).capacity(signal(100, 250, 400))
    assert limited.values == pytest.approx((1.0, 0.7, 0.5)) and limited.name == "fraction"
    # 100 for 3 h, 400 for 1 h: mean 175
    uneven = Timeline((0.0, 10800.0), (100.0, 400.0), loop=None, period_s=14400.0)
    assert EnergyBudget(headroom=9.0).capacity(uneven).values == pytest.approx((1.225, 0.30625))


def test_prices_next_to_nothing_and_below():
    capacity = EnergyBudget(headroom=1.2).capacity(signal(-50, 0, 1e-300, 100, 150))
    assert capacity.values == pytest.approx((1.2, 1.2, 1.2, 0.28, 0.7 * 40 / 150))
    assert EnergyBudget(reference=50.0).capacity(signal(-5, 100)).values == pytest.approx((1.0, 0.35))
    line = refusal(EnergyBudget().capacity, signal(-20, 10))
    assert "the mean of 'price' must be > 0 to reckon a budget, got -5" in line


def test_stranded_power():
    assert Stranded(0.0).capacity(signal(5, 0, -3, 0.1)).values == (0.0, 1.0, 1.0, 0.0)
    assert Stranded(0.0, low=0.2, high=0.9).capacity(signal(5, 0)).values == (0.2, 0.9)


def test_a_bill_by_hand():
    # half an hour at 100 with 1, half at 100 with 0.5, an hour at 200 with 0.5
    billed = bill(Timeline((0.0, 1800.0), (1.0, 0.5)), signal(100, 200), fixed=0.7)
    assert billed.amount == pytest.approx(50 + 25 + 100) and billed.amount_fixed == pytest.approx(210)
    assert billed.mean == pytest.approx(0.625) and billed.mean_fixed == 0.7
    assert billed.saved == pytest.approx(35 / 210) and billed.gained == pytest.approx(0.625 / 0.7 - 1)
    # what a capacity does after the signal has ended costs nothing that is known
    assert bill(Timeline((0.0, 1800.0, 9999.0), (1.0, 0.5, 7.0)), signal(100, 200)).amount == pytest.approx(175)
    assert Bill(1.0, 0.0, 0.0, 0.0).saved is None and Bill(1.0, 0.0, 0.0, 0.0).gained is None


@given(st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=40), st.floats(0.1, 1.0))
def test_without_limits_all_is_spent_and_capacity_never_lost(values, budget):
    paid = signal(*values)
    billed = bill(EnergyBudget(budget, headroom=10.0).capacity(paid), paid, budget)
    if max(values) / min(values) < 10.0:
        assert billed.amount == pytest.approx(billed.amount_fixed)
        # the arithmetic mean is at least the harmonic one
        assert billed.gained is not None and billed.gained >= -1e-9
    assert billed.amount <= billed.amount_fixed * (1 + 1e-9)


def test_by_hand_of_characterise():
    character = characterise(signal(0.5, 0.7, 0.7, 0.4, 0.6, step_s=1800.0))
    assert (character.low, character.high, character.samples, character.period_s) == (0.4, 0.7, 5, 1800.0)
    assert character.range == pytest.approx(0.3) and character.mean == pytest.approx(0.58)
    assert character.step_max == pytest.approx(0.3) and character.step_mean == pytest.approx(0.7 / 4)
    assert (character.frequency_per_h, character.changes_per_h) == (2.0, pytest.approx(3 / 2.5))
    # deviations -0.08, 0.12, 0.12, -0.18, 0.02
    assert character.correlation == pytest.approx((-0.0096 + 0.0144 - 0.0216 - 0.0036) / 0.068)
    # five values refute nothing
    assert character.structure == "uniform"


def test_the_period_of_rows_that_come_only_with_changes():
    character = characterise(Timeline((0.0, 1200.0, 4800.0, 6000.0), (1.0, 2.0, 4.0, 3.0), loop=None, period_s=7200.0))
    assert (character.period_s, character.samples) == (1200.0, 6) and character.step_mean == pytest.approx(4 / 5)
    irregular = characterise(Timeline((0.0, 60.001, 200.0, 301.7), (1.0, 2.0, 4.0, 3.0), loop=None, period_s=400.0))
    assert irregular.period_s == pytest.approx(60.001)


def test_constant_and_on_off():
    constant = characterise(signal(0.7, 0.7, 0.7))
    assert (constant.structure, constant.range, constant.step_max, constant.correlation) == ("constant", 0.0, 0.0, 0.0)
    assert constant.spec == "constant:mean=0.7"
    on_off = characterise(signal(*[1.0] * 30, *[0.0] * 30, *[1.0] * 38, 0.5, 0.0))
    assert (on_off.structure, on_off.range, on_off.step_max, on_off.spec) == ("on-off", 1.0, 1.0, None)
    assert characterise(signal(*[1.0] * 30, *[0.0] * 30, *[0.5] * 30)).structure == "walk"


@examples(60)
@given(
    structure=st.sampled_from(["walk", "uniform"]),
    range_=st.floats(0.1, 0.9),
    mean=st.floats(0.5, 0.8),
    quarters=st.sampled_from([1 / 4, 1 / 8, 1 / 3]),
    period_s=st.sampled_from([900.0, 3600.0, 14400.0]),
    level=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_parameters_are_recovered(structure, range_, mean, quarters, period_s, level, seed):
    step = range_ * quarters if structure == "walk" else None
    made = Variation(structure, mean, range_, step, period_s, level=level, seed=seed)
    series = vary(made, 4000 * period_s)
    character = characterise(replace(series, loop=None, period_s=4000 * period_s))
    assert character.structure == structure and character.period_s == period_s
    synthetic = characterise(parse_series("fraction", character.spec).timeline(None, 4000 * period_s))
    assert synthetic.structure == structure and synthetic.range == pytest.approx(character.range, rel=0.2)
    # levelled, a series keeps away from one end by as much as it is shifted
    assert character.range == pytest.approx(range_, rel=0.2 if level else 0.03) and character.range <= range_ + 1e-9
    assert character.mean == pytest.approx(mean, abs=1e-6 if level else 0.2 * range_)
    if step is not None:
        assert character.step_max == pytest.approx(step, rel=0.01)
        # of U(-step, step), the mean is half; reflections shorten some
        assert 0.35 * step < character.step_mean < 0.5 * step * 1.05


@pytest.mark.parametrize("structure,range_", [("constant", 0.6), ("walk", 0.0), ("uniform", 0.0)])
def test_what_does_not_vary_is_one_row(structure, range_):
    series = vary(Variation(structure, range=range_), 1e6)
    assert (series.times_s, series.values, series.name) == ((0.0,), (0.7,), "fraction")
