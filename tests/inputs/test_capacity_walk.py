"""Random walks: worked by hand from given draws, then their law."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.inputs.series import capacity_walk
from batwatt.inputs.series.capacity_walk import Walk, random_walk


def walked(monkeypatch, walk: Walk, *draws: float) -> tuple[float, ...]:
    class Draws:
        def random(self, size: int) -> np.ndarray:
            assert size == len(draws)
            return np.array(draws)

    monkeypatch.setattr(capacity_walk, "rng_of", lambda seed, where: Draws())
    series = random_walk(walk, 0)
    assert series.times_s == tuple(walk.period_s * k for k in range(len(draws) + 1))
    return series.values


def test_by_hand(monkeypatch):
    walk = Walk(mean=4, range=3, period_s=10, step=2, end_s=75)
    # inside: thirds for down, stay, up; a step from 6 to 8 ends at 7; at 7: halves for down, stay; at 1: for stay, up
    draws = 0.99, 0.67, 0.6, 0.49, 0.0, 0.33, 0.5
    assert walked(monkeypatch, walk, *draws) == (4, 6, 7, 7, 5, 3, 1, 3)


def test_by_hand_without_staying(monkeypatch):
    walk = Walk(mean=4, range=3, period_s=10, step=2, stay=False, end_s=60)
    assert walked(monkeypatch, walk, 0.5, 0.9, 0.9, 0.49, 0.1, 0.1) == (4, 6, 7, 7, 5, 3, 1)


def test_without_a_range_nothing_moves():
    assert set(random_walk(Walk(mean=5, range=0, end_s=12000), 0).values) == {5.0}
    assert set(random_walk(Walk(mean=5, range=0, stay=False, end_s=12000), 0).values) == {5.0}


@pytest.mark.parametrize("range_,step", [(0, 1), (3, 1), (4, 1), (7, 1), (8, 2), (12, 3), (16, 4)])
def test_step_of_the_paper(range_, step):
    assert Walk(range=range_).step_machines == step


def test_defaults_of_section_5_4():
    series = random_walk(Walk(), 7)
    assert len(series) == 1 + 1512 and series.times_s[-1] == 1_814_400.0 and series.name == "machines"
    assert series.values[0] == 24 and set(series.values) == {16, 18, 20, 22, 24, 26, 28, 30, 32}
    assert random_walk(Walk(), 7) == series and random_walk(Walk(), 8).values != series.values
    # a longer walk begins like a shorter one
    assert random_walk(Walk(end_s=5e6), 7).values[: len(series)] == series.values


def moves(walk: Walk) -> dict[str, Counter[float]]:
    """How often each change happens, from the lower bound, the upper bound and in between."""
    values = random_walk(walk, 1).values
    found = {"low": Counter[float](), "high": Counter[float](), "inside": Counter[float]()}
    for before, after in pairwise(values):
        place = {walk.mean - walk.range: "low", walk.mean + walk.range: "high"}.get(int(before), "inside")
        found[place][after - before] += 1
    return found


@pytest.mark.parametrize(
    "stay,low,inside,high",
    [
        (True, {0: 1 / 2, 2: 1 / 2}, {-2: 1 / 3, 0: 1 / 3, 2: 1 / 3}, {-2: 1 / 2, 0: 1 / 2}),
        (False, {0: 1 / 2, 2: 1 / 2}, {-2: 1 / 2, 2: 1 / 2}, {-2: 1 / 2, 0: 1 / 2}),
    ],
)
def test_law(stay, low, inside, high):
    found = moves(Walk(stay=stay, period_s=1, end_s=60_000))
    for place, law in (("low", low), ("inside", inside), ("high", high)):
        total = found[place].total()
        assert set(found[place]) == set(law) and total > 1000
        for move, share in law.items():
            assert found[place][move] / total == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / total))


@pytest.mark.parametrize(
    "given,said",
    [
        ({"mean": 0}, "mean must be a whole number in 1..1000000, got 0"),
        ({"mean": 24.0}, "mean must be a whole number in 1..1000000, got 24.0"),
        ({"range": -1}, "range must be a whole number in 0..1000000, got -1"),
        ({"range": 25}, "range must be <= mean, got range 25 and mean 24"),
        ({"step": 0}, "step must be a whole number in 1..1000000, got 0"),
        ({"step": True}, "step must be a whole number in 1..1000000, got True"),
        ({"stay": "no"}, "stay must be true or false, got 'no'"),
        ({"period_s": 0}, "period_s must be a finite number > 0 s, got 0"),
        ({"period_s": math.nan}, "period_s must be a finite number > 0 s, got nan"),
        ({"end_s": math.inf}, "end_s must be a finite number > 0 s, got inf"),
        ({"period_s": 1e-9}, "end_s / period_s must be <= 2000000"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError) as caught:
        Walk(**given)
    assert str(caught.value).startswith(f"random walk: {said}")


@pytest.mark.parametrize("seed", [-1, 1.0, True, None, "1"])
def test_seeds(seed):
    with pytest.raises(InputError, match="random walk: seed must be a whole number >= 0"):
        random_walk(Walk(), seed)
