"""What a series is like: by hand, and recovered from series that were made with known parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.series.capacity_spec import parse_capacity
from batwatt.inputs.series.characterise import _correlation, characterise
from batwatt.inputs.series.variation import Variation, vary
from batwatt.model.series import Series
from batwatt.model.signal import Signal

GERMAN = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "carbon" / "DE-2024-hourly.csv"
DAYS_S = 86400.0


def of(*values: float, step_s: float = 3600.0) -> Signal:
    times = tuple(step_s * k for k in range(len(values)))
    return Signal(Series(times, values, name="fraction"), step_s * len(values))


def test_by_hand():
    found = characterise(of(0.5, 0.7, 0.7, 0.4, 0.6, step_s=1800.0))
    assert (found.low, found.high, found.samples, found.period_s) == (0.4, 0.7, 5, 1800.0)
    assert found.range == pytest.approx(0.3) and found.mean == pytest.approx(0.58)
    assert found.step_max == pytest.approx(0.3) and found.step_mean == pytest.approx(0.7 / 4)
    assert (found.frequency_per_h, found.changes_per_h) == (2.0, pytest.approx(3 / 2.5))
    # deviations -0.08, 0.12, 0.12, -0.18, 0.02
    assert found.correlation == pytest.approx((-0.0096 + 0.0144 - 0.0216 - 0.0036) / 0.068)
    # five values refute nothing
    assert found.structure == "uniform"


def test_the_period_of_rows_that_come_only_with_changes():
    found = characterise(Signal(Series((0.0, 1200.0, 4800.0, 6000.0), (1.0, 2.0, 4.0, 3.0)), 7200.0))
    assert (found.period_s, found.samples) == (1200.0, 6) and found.step_mean == pytest.approx(4 / 5)
    irregular = characterise(Signal(Series((0.0, 60.001, 200.0, 301.7), (1.0, 2.0, 4.0, 3.0)), 400.0))
    assert irregular.period_s == pytest.approx(60.001)


def test_constant():
    found = characterise(of(0.7, 0.7, 0.7))
    assert (found.structure, found.range, found.step_max, found.correlation) == ("constant", 0.0, 0.0, 0.0)
    assert found.spec == "constant:mean=0.7"


def test_on_and_off():
    found = characterise(of(*[1.0] * 30, *[0.0] * 30, *[1.0] * 38, 0.5, 0.0))
    assert (found.structure, found.range, found.step_max, found.spec) == ("on-off", 1.0, 1.0, None)
    assert characterise(of(*[1.0] * 30, *[0.0] * 30, *[0.5] * 30)).structure == "walk"


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
    found = characterise(Signal(series, 4000 * period_s))
    assert found.structure == structure and found.period_s == period_s
    # levelled, a series keeps away from one end by as much as it is shifted
    assert found.range == pytest.approx(range_, rel=0.2 if level else 0.03) and found.range <= range_ + 1e-9
    assert found.mean == pytest.approx(mean, abs=1e-6 if level else 0.2 * range_)
    if step is not None:
        assert found.step_max == pytest.approx(step, rel=0.01)
        # of U(-step, step), the mean is half; reflections shorten some
        assert 0.35 * step < found.step_mean < 0.5 * step * 1.05


def test_independent_draws_are_rarely_called_a_walk():
    ends = (24, 48, 168)
    for hours in ends:
        kinds = [
            characterise(Signal(vary(Variation("uniform", seed=seed), hours * 3600.0), hours * 3600.0)).structure
            for seed in range(200)
        ]
        assert kinds.count("walk") <= 2
    day = [characterise(Signal(vary(Variation(seed=seed), 7 * DAYS_S), 7 * DAYS_S)).structure for seed in range(200)]
    assert day.count("walk") == 200


def test_a_synthetic_series_of_the_same_character():
    found = characterise(Signal(vary(Variation(range=0.4, seed=3), 90 * DAYS_S), 90 * DAYS_S))
    assert found.spec is not None
    spec = parse_capacity(found.spec)
    assert spec is not None
    again = characterise(spec.source.fractions(90 * DAYS_S, 1))
    assert (again.structure, again.period_s) == ("walk", 3600.0) and again.mean == pytest.approx(found.mean, abs=1e-4)
    assert again.range == pytest.approx(found.range, rel=0.02)
    assert again.step_max == pytest.approx(found.step_max, rel=0.01)
    # a mean so low that the range would reach below 0
    low = characterise(of(*([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1] * 4 + [0.1] * 40)))
    assert low.spec is not None and low.structure == "walk" and parse_capacity(low.spec) is not None


@pytest.mark.skipif(not GERMAN.exists(), reason="no German series in ../shared/data")
def test_the_german_capacity_walks_by_the_hour():
    spec = parse_capacity(f"carbon:{GERMAN},budget=0.7")
    assert spec is not None
    found = characterise(spec.source.fractions(0.0, 1))
    assert (found.structure, found.period_s, found.high) == ("walk", 3600.0, 1.0)
    # 596 g/kWh is the most, in a mean of 327.57
    assert found.low == pytest.approx(0.7 * 327.57 / 596, abs=1e-4)
    assert 0.03 < found.step_mean < 0.05 and found.correlation > 0.9


def test_samples_that_are_all_the_same_are_not_correlated():
    assert _correlation(np.array([2.0, 2.0, 2.0])) == 0.0
    assert _correlation(np.array([1.0, -1.0, 1.0, -1.0])) == -0.75
