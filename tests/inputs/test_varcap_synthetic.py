"""Traces like those of the varcap dissertation: the moments of Table 5.2, their loads, their scales, their refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.workloads.fitted import fitted_range, fitted_share, fitted_values, strata
from batwatt.inputs.workloads.varcap_like import SYSTEMS, VarcapLike
from batwatt.inputs.workloads.varcap_synthetic import varcap_table


@pytest.mark.parametrize(
    "like,jobs,days,run_h,cores,memory",
    [
        ("mira", 6571, 30, (1.8, 2.9), (1705, 2890), (27_000, 46_000)),
        ("azure", 442_784, 7, (3.6, 8.8), (2.6, 2.4), (6, 11)),
        ("borg", 204_749, 1, (0.6, 3.0), (1.8, 1.2), (0.02, 0.02)),
    ],
)
@pytest.mark.parametrize("seed", [0, 7])
def test_table_5_2(like, jobs, days, run_h, cores, memory, seed):
    table = varcap_table(VarcapLike(like), seed)
    assert len(table) == jobs
    assert 0.99 * days * 86_400 < table.arrival_time.max() < days * 86_400
    assert table.arrival_time.is_monotonic_increasing and table.arrival_time.min() >= 0
    for column, (mean, sd) in ((table.length / 3600, run_h), (table.cpus, cores), (table.memory, memory)):
        assert column.mean() == pytest.approx(mean, rel=0.03)
        assert column.std() == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize(
    "like,load",
    [
        ("mira", 6571 * 1.8 * 1705 / (0.7 * 49_152 * 720)),
        ("azure", 442_784 * 3.6 * 2.6 / (0.7 * 20_000 * 168)),
        ("borg", 204_749 * 0.6 * 1.8 / (0.7 * 630 * 32 * 24)),
        ("tng", 0.9),
    ],
)
def test_loads(like, load):
    table = varcap_table(VarcapLike(like), 3)
    system = SYSTEMS[like]
    params = VarcapLike(like)
    hours = 24 * params.released_days
    core_hours = (table.length * table.cpus).sum() / 3600
    assert core_hours / (0.7 * system.machines * system.cores * hours) == pytest.approx(load, rel=0.03)
    # the same load with fewer jobs on a smaller system
    small = VarcapLike(like, jobs=2000, machines=96)
    table = varcap_table(small, 3)
    core_hours = (table.length * table.cpus).sum() / 3600
    assert len(table) == pytest.approx(2000, abs=1)
    assert core_hours / (0.7 * 96 * system.cores * 24 * small.released_days) == pytest.approx(load, rel=0.08)


def test_a_load_sets_the_days():
    # 442,784 x 3.6 h x 2.6 cores = 4,144,458 core-hours; 0.9 x 0.7 x 20,000 cores x 24 h = 302,400 a day
    assert VarcapLike("azure", load=0.9).released_days == pytest.approx(13.70522, rel=1e-6)
    assert VarcapLike("azure").released_days == pytest.approx(7)
    assert VarcapLike("azure", days=2.5).released_days == 2.5
    # 0.9 x 0.7 x 476 x 32 cores x 24 h / (1.8 cores x 300,000 jobs)
    assert VarcapLike().mean_run_h == pytest.approx(0.4264960, rel=1e-6)
    assert VarcapLike(jobs=1_500_000).released_days == pytest.approx(5)
    assert VarcapLike(jobs=400_000, days=1).mean_run_h == pytest.approx(0.3198720, rel=1e-6)
    assert VarcapLike(jobs=300_000, days=1, load=0.45).mean_run_h == pytest.approx(0.2132480, rel=1e-6)


def test_widths_and_memory():
    mira = varcap_table(VarcapLike("mira"), 0)
    assert set(mira.cpus) <= {512 * 2**k for k in range(7)} | {49_152} and mira.cpus.max() == 49_152
    assert (mira.memory == 16 * mira.cpus).all()
    small = varcap_table(VarcapLike("mira", jobs=500, machines=480), 0)
    assert set(small.cpus) <= {5 * 2**k for k in range(7)} | {480}
    azure = varcap_table(VarcapLike("azure", jobs=20_000), 0)
    assert set(azure.cpus) == {1, 2, 4, 8, 16} and not (azure.length % 300).any() and azure.length.min() >= 300
    assert np.corrcoef(azure.cpus, azure.memory)[0, 1] > 0.3 > 0.05 > abs(np.corrcoef(azure.cpus, azure.length)[0, 1])
    for like in ("azure", "borg", "tng"):
        table = varcap_table(VarcapLike(like), 1)
        assert table.cpus.max() <= SYSTEMS[like].cores and table.memory.max() <= SYSTEMS[like].machine_memory


def test_estimates_of_mira():
    table = varcap_table(VarcapLike("mira"), 0)
    assert (table.estimate >= table.length).all() and table.estimate.max() == 86_400
    assert (table.estimate <= np.maximum(3 * table.length + 1800, 300)).all()
    assert 1.8 < (table.estimate / table.length).mean() < 2.5
    assert not (table.estimate % 300).any() and not (table.estimate[table.estimate > 21_600] % 1800).any()
    assert "estimate" not in varcap_table(VarcapLike("tng", jobs=100), 0)


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_long_fractions_keep_the_core_hours(fraction):
    params = VarcapLike(jobs=30_000, machines=48, long_fraction=fraction)
    table = varcap_table(params, 5)
    work = table.length * table.cpus / 3600
    assert work.sum() == pytest.approx(VarcapLike(jobs=30_000, machines=48).core_hours, rel=0.02)
    assert work[table.length > 3600].sum() / work.sum() == pytest.approx(fraction, abs=0.01)
    # of the 30,000 at 0.8, 2,373 are long: 1/8 and 5/4 of them at 0.1 and 1.0
    numbers = {0.0: 138_134, 0.1: 124_617, 0.5: 70_550, 0.8: 30_000, 1.0: 2966}
    assert len(table) == pytest.approx(numbers[fraction], rel=0.02)


def test_dependencies():
    params = VarcapLike(jobs=5000, machines=48, dependencies=0.12)
    table = varcap_table(params, 2)
    parents = table.depends_on[table.depends_on != ""].astype(int)
    assert len(parents) == 600
    own = parents.index + 1
    assert (parents < own).all() and (parents >= 1).all()
    apart = table.arrival_time.to_numpy()[own - 1] - table.arrival_time.to_numpy()[parents - 1]
    assert (apart >= 0).all() and apart.max() <= 3600 and apart.max() > 3000
    # one job has none before it
    assert (varcap_table(VarcapLike(jobs=1, dependencies=1.0), 0).depends_on == "").all()


def test_daily_cycle():
    def share(cycle: float) -> float:
        hours = varcap_table(VarcapLike("borg", days=4, cycle=cycle), 1).arrival_time % 86_400 / 3600
        return float(((hours >= 8) & (hours < 20)).mean())

    # the half around 14 h holds 1/2 + cycle / pi
    assert share(0.0) == pytest.approx(0.5, abs=0.005)
    assert share(0.2) == pytest.approx(0.5 + 0.2 / math.pi, abs=0.005)
    assert share(1.0) == pytest.approx(0.5 + 1.0 / math.pi, abs=0.005)


@pytest.mark.parametrize("like", SYSTEMS)
def test_seeds(like):
    params = VarcapLike(like, jobs=300, machines=96, dependencies=0.1)
    table = varcap_table(params, 4)
    assert table.equals(varcap_table(params, 4)) and not table.equals(varcap_table(params, 5))
    assert ("estimate" in table) == (like == "mira")


@pytest.mark.parametrize(
    "given_,said",
    [
        ({"like": "miro"}, "no system 'miro'; did you mean 'mira'?"),
        ({"jobs": 0}, "jobs must be a whole number in 1..2147483647, got 0"),
        ({"machines": 2.5}, "machines must be a whole number in 1..2147483647, got 2.5"),
        ({"jobs": 10**9}, "more than 20000000; ask for fewer"),
        ({"like": "mira", "machines": 100}, "a Mira's machines must be a multiple of 96, got 100"),
        ({"like": "azure", "long_fraction": 0.5}, "a trace like azure has its own share of long jobs"),
        ({"like": "azure", "days": 1, "load": 0.9}, "days 1 and load 0.9 are both given"),
        ({"load": math.nan}, "load must be a number in [0.001, 100], got nan"),
        ({"long_fraction": 1.1}, "long_fraction must be a number in [0, 1], got 1.1"),
        ({"dependencies": -0.1}, "dependencies must be a number in [0, 1], got -0.1"),
        ({"jobs": 1000, "days": 1}, "jobs of 127.949 h on average cannot be long"),
    ],
)
def test_refusals(given_, said):
    with pytest.raises(InputError) as caught:
        VarcapLike(**given_)
    assert str(caught.value).startswith("varcap trace: ") and said in str(caught.value)


def test_fitted_by_hand():
    # two values: the mean alone decides, and the deviation of (1, 3) at mean 2 is 1
    law = fitted_values((1.0, 3.0), 2.0, 1.0)
    assert law.weights == pytest.approx([0.5, 0.5])
    assert list(law.at(np.array([0.0, 0.49, 0.51, 0.999]))) == [1, 1, 3, 3]
    # bounds far away: the lognormal itself, sigma^2 = ln(1 + (sd / mean)^2), mu = ln mean - sigma^2 / 2
    law = fitted_range(1e-6, 1e7, 5.0, 5.0)
    assert law.sigma**2 == pytest.approx(math.log(2), rel=1e-4)
    assert law.mu == pytest.approx(math.log(5) - math.log(2) / 2, rel=1e-4)
    law = fitted_share(1e-3, 24.0, 0.5, 1.0, 0.8)
    share = (law.values * law.weights)[law.values > 1.0].sum() / law.mean
    assert law.mean == pytest.approx(0.5, rel=1e-5) and share == pytest.approx(0.8, rel=1e-5)
    assert law.at(np.array([law.chance_below(1.0)]))[0] == pytest.approx(1.0)
    with pytest.raises(InputError, match=r"no lognormal cut to \[1, 3\] has mean 2 and spread 5"):
        fitted_values((1.0, 3.0), 2.0, 5.0)


@examples(25)
@given(st.floats(0.2, 0.6), st.floats(0.3, 1.5), st.floats(0.1, 1000.0))
def test_law_of_fits(place, relative, scale):
    low, high = 0.01 * scale, 100.0 * scale
    mean = low * (high / low) ** place
    law = fitted_range(low, high, mean, relative * mean)
    assert (law.mean, law.sd) == (pytest.approx(mean, rel=1e-5), pytest.approx(relative * mean, rel=1e-5))
    drawn = law.at(strata(20_000, np.random.default_rng(0)))
    assert (np.diff(drawn) >= 0).all() and low <= drawn[0] and drawn[-1] <= high * 1.0001
    assert drawn.mean() == pytest.approx(mean, rel=0.01)
