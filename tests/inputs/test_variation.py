"""Capacities that vary by chance: worked by hand from given draws, then their laws."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.series import variation as module
from batwatt.inputs.series.variation import Variation, vary


def varied(monkeypatch, variation: Variation, end_s: float, *draws: float) -> list[float]:
    class Draws:
        def random(self, size: int) -> np.ndarray:
            assert size == len(draws)
            return np.array(draws)

    monkeypatch.setattr(module, "rng_of", lambda seed, where: Draws())
    series = vary(variation, end_s)
    assert series.times_s == tuple(variation.period_s * k for k in range(len(draws)))
    return list(series.values)


def walk(**given) -> Variation:
    return Variation(**({"mean": 0.5, "range": 0.4, "step": 0.2, "period_s": 10, "level": False} | given))


def test_a_walk_by_hand(monkeypatch):
    # 0.5; +0.1; +0.2 would be 0.8 and is reflected at 0.7 to 0.6; -0.2; -0.2 would be 0.2, reflected at 0.3 to 0.4
    draws = 0.0, 0.75, 1.0, 0.0, 0.0
    assert varied(monkeypatch, walk(), 50, *draws) == pytest.approx([0.5, 0.6, 0.6, 0.4, 0.4])


def test_a_walk_that_stops_at_its_bounds(monkeypatch):
    draws = 0.0, 0.75, 1.0, 0.0, 0.0
    assert varied(monkeypatch, walk(bounds="clamp"), 50, *draws) == pytest.approx([0.5, 0.6, 0.7, 0.5, 0.3])


def test_a_walk_of_fixed_steps(monkeypatch):
    draws = 0.9, 0.5, 0.49, 0.0, 0.9
    values = varied(monkeypatch, walk(move="fixed", step=0.15), 50, *draws)
    assert values == pytest.approx([0.5, 0.65, 0.5, 0.35, 0.5])


def test_uniform_by_hand(monkeypatch):
    variation = walk(structure="uniform", step=None)
    assert varied(monkeypatch, variation, 25, 0.0, 0.25, 1.0) == pytest.approx([0.3, 0.4, 0.7])


def test_levelled_by_hand(monkeypatch):
    # 0.3, 0.4, 0.7 have the mean 0.4667; shifted by 0.05, with 0.7 as the most, they have 0.5
    variation = walk(structure="uniform", step=None, level=True)
    assert varied(monkeypatch, variation, 30, 0.0, 0.25, 1.0) == pytest.approx([0.35, 0.45, 0.7])


def test_levelled_over_a_window_whose_last_period_is_cut(monkeypatch):
    # over 15 s, 0.3 for 10 s and 0.4 for 5 s: mean 1/3, shift 1/6; what comes later is shifted as well
    variation = walk(structure="uniform", step=None, level=True, window_s=15)
    values = varied(monkeypatch, variation, 30, 0.0, 0.25, 0.5)
    assert values == pytest.approx([0.3 + 1 / 6, 0.4 + 1 / 6, 0.5 + 1 / 6])


@pytest.mark.parametrize(
    "range_,bounds", [(0.0, (0.7, 0.7)), (0.2, (0.6, 0.8)), (0.4, (0.5, 0.9)), (0.6, (0.4, 1.0)), (0.8, (0.3, 1.1))]
)
def test_ranges_of_section_5_1_1(range_, bounds):
    variation = Variation(range=range_)
    assert (variation.low, variation.high) == pytest.approx(bounds)
    assert variation.step_fraction == pytest.approx(range_ / 4)


@pytest.mark.parametrize("structure,range_", [("constant", 0.6), ("walk", 0.0), ("uniform", 0.0)])
def test_what_does_not_vary_is_one_row(structure, range_):
    series = vary(Variation(structure, range=range_), 1e6)
    assert (series.times_s, series.values, series.name) == ((0.0,), (0.7,), "fraction")


VARIATIONS = st.builds(
    lambda structure, mean, part, step, bounds, move, seed: Variation(
        structure, mean, 2 * mean * part, 2 * mean * part * step, 3600.0, bounds, move, True, None, seed
    ),
    st.sampled_from(["walk", "uniform"]),
    st.floats(0.1, 1.0),
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
    st.sampled_from(["reflect", "clamp"]),
    st.sampled_from(["uniform", "fixed"]),
    st.integers(0, 2**31),
)


@given(VARIATIONS, st.floats(3600.0, 60 * 86400.0))
def test_laws(variation, end_s):
    series = vary(variation, end_s)
    assert series == vary(variation, end_s)
    lasting = np.diff([*series.times_s, end_s])
    assert len(series) == math.ceil(end_s / 3600.0) and lasting.min() > 0
    assert np.average(series.values, weights=lasting) == pytest.approx(variation.mean, abs=1e-9)
    assert min(series.values) >= variation.low - 1e-12 and max(series.values) <= variation.high + 1e-12
    if variation.structure == "walk":
        assert max((abs(a - b) for a, b in pairwise(series.values)), default=0) <= variation.step_fraction + 1e-12


def test_a_longer_series_begins_like_a_shorter_one():
    for variation in (Variation(seed=5, level=False), Variation(seed=5, window_s=86400.0)):
        short, long = vary(variation, 2 * 86400.0), vary(variation, 20 * 86400.0)
        assert long.values[:48] == short.values and len(long) == 480
    assert vary(Variation(seed=6), 86400.0).values != vary(Variation(seed=5), 86400.0).values


def test_uniform_is_uniform_and_a_walk_moves_uniformly():
    values = np.array(vary(Variation("uniform", range=0.6, level=False, seed=1), 36e6).values)
    assert np.quantile(values, [0.25, 0.5, 0.75]) == pytest.approx([0.55, 0.7, 0.85], abs=0.02)
    moves = np.diff(vary(Variation("walk", range=0.6, step=0.01, level=False, seed=1), 36e6).values)
    assert np.quantile(moves, [0.25, 0.5, 0.75]) == pytest.approx([-0.005, 0.0, 0.005], abs=0.0003)
    # both structures stay in the whole range as long: a reflected walk has the uniform distribution
    walked = np.array(vary(Variation("walk", range=0.6, level=False, seed=1), 3.6e8).values)
    assert np.quantile(walked, [0.25, 0.5, 0.75]) == pytest.approx([0.55, 0.7, 0.85], abs=0.02)


@pytest.mark.parametrize(
    "given,said",
    [
        ({"structure": "wlak"}, "no value of structure 'wlak'; did you mean 'walk'"),
        ({"bounds": "wrap"}, "no value of bounds 'wrap'"),
        ({"move": "big"}, "no value of move 'big'"),
        ({"mean": -0.1}, "mean must be a number in [0, 10], got -0.1"),
        ({"mean": math.nan}, "mean must be a number in [0, 10], got nan"),
        ({"range": 1.5}, "the range reaches down to mean - range / 2 = -0.05"),
        ({"step": 0.0}, "step must be in ]0, range], got step 0.0"),
        ({"step": 0.7}, "step must be in ]0, range], got step 0.7 and range 0.6"),
        ({"period_s": 0.0}, "period_s must be a finite number > 0 s, got 0.0"),
        ({"period_s": math.inf}, "period_s must be a finite number > 0 s, got inf"),
        ({"window_s": -1}, "window_s must be a finite number > 0 s"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError) as caught:
        Variation(**given)
    assert str(caught.value).startswith(f"capacity: {said}")


def test_too_many_rows():
    with pytest.raises(InputError, match="end_s / period_s must be <= 2000000"):
        vary(Variation(period_s=1e-3), 1e6)
