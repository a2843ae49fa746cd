"""GAIA's rules by hand: hours of 720 ticks of 5 s, 1 W per cpu."""

from __future__ import annotations

import logging
from itertools import groupby

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.model.phases import constant
from batwatt.systems.carbon.costs import MachinePrices
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.simulators import gaia
from batwatt.systems.carbon.simulators.gaia_rules import (
    GaiaJob,
    Queues,
    Trace,
    _quantile,
    cheapest_pieces,
    threshold_pieces,
)

HOUR = 720


def job(arrival_s: float, length_s: float, cpus: int = 1, name: str = "0", watts: float = 1.0) -> ShiftJob:
    return ShiftJob(name, arrival_s, constant(length_s, watts), cpus)


def begins(policy, jobs, hourly, **options):
    outcome = gaia.simulate(jobs, hourly, policy=policy, **options)
    return (outcome.segments["begin_s"] / 3600).tolist()


FLAT_LATER = [300.0, 200.0, 100.0, 400.0, 50.0, *[500.0] * 40]


def test_lowest_may_start_within_an_hour_of_the_clock_but_oracle_counts_from_its_arrival():
    late = [job(1800, 3600)]
    # ticks 0.5 h .. 2.5 h from 0 h: the first at 100 g/kWh is 2 h
    assert begins("lowest", late, FLAT_LATER, wait_h=(2.0,)) == [2.0]
    # C at 0.5, 1.5, 2.5 h: 250, 150, 250 (mean over an hour)
    outcome = gaia.simulate(late, FLAT_LATER, policy="oracle", wait_h=(2.0,))
    assert outcome.segments["begin_s"].tolist() == [1.5 * 3600]
    assert outcome.metrics()["carbon_g"] == pytest.approx(0.150, rel=1e-12)
    assert outcome.metrics()["mean_total_wait_s"] == 3600.0


def test_first_minimum_wins():
    signal = [300.0, 200.0, 250.0, 200.0, *[900.0] * 30]
    for policy in ("lowest", "oracle", "cst_oracle", "waiting"):
        assert begins(policy, [job(0, 3600)], signal, wait_h=(3.0,)) == [1.0]


def test_saving_per_time_prefers_the_sooner():
    # C_0 - C_k: 0, 100, 180 over (k + l) = 1, 2, 3 h: 0, 50, 60; with a job of 4 h the later gains more, too
    signal = [300.0, 200.0, 120.0, *[900.0] * 30]
    assert begins("cst_oracle", [job(0, 3600)], signal, wait_h=(2.0,)) == [2.0]
    signal[2] = 170.0  # 130 over 3 h: 43.3 < 50
    assert begins("cst_oracle", [job(0, 3600)], signal, wait_h=(2.0,)) == [1.0]
    assert begins("oracle", [job(0, 3600)], signal, wait_h=(2.0,)) == [2.0]


def test_expected_length_with_two_waits_and_with_one():
    signal = [300.0, 290.0, 280.0, 100.0, 100.0, 900.0, 800.0, 100.0, *[900.0] * 30]
    jobs = [job(0, 7200, name="a"), job(0, 14400, name="b")]
    # the mean of the long class is 3 h: over [k, k + 3 h) least at k = 2 h, which the 2 h job alone would not choose
    assert begins("waiting", jobs, signal, wait_h=(0.0, 5.0))[0] == 2.0
    assert begins("oracle", jobs, signal, wait_h=(0.0, 5.0))[0] == 3.0
    # one wait: 2 ticks are expected, so the first cheap hour
    assert begins("waiting", [job(0, 14400)], signal, wait_h=(5.0,)) == [3.0]


def test_two_hours_exactly_are_in_both_means_wait_as_long_jobs_and_run_on_spot_machines():
    lengths = np.array([3600.0, 7200.0, 10800.0]) / 5
    assert Queues.of((6.0, 24.0), lengths).expected == (1080, 1800)
    signal = [300.0, 200.0, *[900.0] * 30]
    jobs = [job(0, length, name=str(length)) for length in (7199, 7200, 7202, 7206)]
    outcome = gaia.simulate(jobs, signal, policy="lowest-spot", wait_h=(0.0, 1.0))
    # 7202 s are 1440 ticks, and a class that is told by the 1440.4 before rounding
    assert outcome.segments["begin_s"].tolist() == [0.0, 3600.0, 3600.0, 3600.0]
    assert outcome.segments["machine"].tolist() == ["spot", "spot", "on-demand", "on-demand"]
    dollars = [1439 * 0.01248, 1440 * 0.01248, 1440 * 0.0624, 1441 * 0.0624]
    assert outcome.segments["cost"].tolist() == pytest.approx([cost / HOUR for cost in dollars])


def test_times_are_cut_to_ticks():
    outcome = gaia.simulate([job(68, 1004)], [720.0] * 30, policy="immediate")
    assert outcome.segments[["arrival_s", "begin_s", "end_s"]].to_numpy().tolist() == [[65.0, 65.0, 1065.0]]
    assert outcome.metrics()["carbon_g"] == pytest.approx(200 * 0.001, rel=1e-12)
    assert outcome.metrics()["energy_j"] == 1000.0


def test_mean_power_is_charged():
    outcome = gaia.simulate([job(0, 3600, cpus=3, watts=50.0)], [100.0] * 30, policy="oracle")
    assert outcome.metrics()["carbon_g"] == pytest.approx(15.0)
    assert outcome.metrics()["energy_j"] == pytest.approx(3 * 50.0 * 3600.0)


def ticks_chosen(pieces):
    return [tick for begin, length in pieces for tick in range(begin, begin + length)]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_are_those_of_tick_by_tick(seed):
    rng = np.random.default_rng(seed)
    trace = Trace.of(rng.choice([100.0, 200.0, 300.0, 333.3], size=40))
    start, length = int(rng.integers(0, 4000)), int(rng.integers(1, 4000))
    queues = Queues((int(rng.integers(0, 9000)),), (0, 0))
    task, end = GaiaJob(0, start, start, length, 1, False), start + length + queues.waits[0]
    order = sorted(range(start, end), key=lambda tick: (trace.ticks[tick], tick))
    found = cheapest_pieces(task, trace, queues)
    assert ticks_chosen(found) == sorted(order[:length])
    assert len(found) == sum(1 for _ in groupby(enumerate(ticks_chosen(found)), lambda pair: pair[1] - pair[0]))
    q, left, patience, ran = np.percentile(trace.ticks[start : start + 24 * HOUR], 30.0), length, queues.waits[0], []
    for tick in range(start, end):
        if left and (trace.ticks[tick] < q or patience <= 0):
            ran.append(tick)
            left -= 1
        elif left:
            patience -= 1
    assert ticks_chosen(threshold_pieces(task, trace, queues)) == ran


@pytest.mark.parametrize("begin", [0, 1, 719, 12345, 40 * HOUR - 1, 40 * HOUR - 11, 40 * HOUR - 721])
def test_quantile_is_numpys_to_the_bit(begin):
    trace = Trace.of(np.random.default_rng(7).choice([100.0, 212.3, 333.3, 401.7, 95.1], size=40))
    assert _quantile(trace, begin) == np.percentile(trace.ticks[begin : begin + 24 * HOUR], 30.0)


@pytest.mark.parametrize(("begin", "share"), [(1202, 0.1), (1200, 0.7)])
def test_quantile_between_two_values(begin, share):
    # the last hour has the cheapest 720 ticks: of N the rank 0.3 (N - 1) is 719.1 or 719.7
    trace = Trace.of(np.array([300.0, 300.0, 251.0, 400.0, 100.0]))
    assert _quantile(trace, begin) == np.percentile(trace.ticks[begin:], 30.0)
    assert _quantile(trace, begin) * 720_000 == pytest.approx(100.0 + share * 151.0, rel=1e-9)


def test_pieces_of_the_suspended_are_short_for_spot_but_not_by_the_threshold():
    # 3 h of work in hours 1, 2 and 4; with 7 of 24 hours at 100 their 0.3-quantile is 300
    signal = [300.0, 100.0, 100.0, 300.0, 100.0, *[300.0] * 5, *[100.0] * 4, *[300.0] * 30]
    outcome = gaia.simulate([job(0, 10800)], signal, policy="suspend-resume-spot", wait_h=(0.0, 3.0))
    assert outcome.segments["machine"].tolist() == ["spot", "spot"]
    assert (outcome.segments["begin_s"] / 3600).tolist() == [1.0, 4.0]
    assert outcome.segments["segment"].tolist() == [0, 1]
    # hours 0 and 3 are waited: together 2 h of the 3
    outcome = gaia.simulate([job(0, 10800)], signal, policy="suspend-resume-spot-threshold", wait_h=(0.0, 3.0))
    assert (outcome.segments["begin_s"] / 3600).tolist() == [1.0, 4.0]
    assert outcome.segments["machine"].tolist() == ["on-demand", "on-demand"]


def test_reserved_cpus_are_all_or_nothing_and_free_a_tick_after_their_job_ends():
    jobs = [job(0, 3600, 2, "a"), job(5, 3600, 2, "b"), job(5, 300, 1, "c")]
    outcome = gaia.simulate(jobs, [100.0] * 40, policy="cost", wait_h=(2.0,), reserved=3)
    table = outcome.segments
    # c takes the third cpu; b waits for two: a's are freed at 3600 s and usable from 3605 s
    assert table["begin_s"].tolist() == [0.0, 3605.0, 5.0]
    assert table["machine"].tolist() == ["reserved"] * 3
    assert table["cost"].tolist() == [0.0] * 3
    assert outcome.metrics()["cost"] == pytest.approx(3 * 0.4 * 721 * 0.0624 / HOUR, rel=1e-12)
    late = gaia.simulate(jobs, [100.0] * 40, policy="cost", wait_h=(0.5,), reserved=3)
    assert late.segments["begin_s"].tolist() == [0.0, 1805.0, 5.0]
    assert late.segments["machine"].tolist() == ["reserved", "on-demand", "reserved"]
    assert late.segments["cost"].tolist() == pytest.approx([0.0, 2 * 0.0624, 0.0])
    free = gaia.simulate(
        jobs, [100.0] * 40, policy="cost", wait_h=(0.5,), reserved=3, prices=MachinePrices(1.0, 0.0, 0.0)
    )
    assert free.metrics()["cost"] == pytest.approx(2.0)


def test_carbon_cost_starts_early_on_reserved_cpus_but_its_spot_jobs_do_not():
    signal = [300.0, 300.0, 100.0, *[300.0] * 40]
    jobs = [job(0, 3600, name="short"), job(0, 10800, name="long")]
    assert begins("carbon-cost", jobs, signal, reserved=2) == [0.0, 0.0]
    assert begins("carbon-cost", jobs, signal, reserved=0) == [2.0, 0.0]
    assert begins("carbon-cost-spot", jobs, signal, reserved=2) == [2.0, 0.0]


def test_names_with_hyphens_and_underscores():
    signal = [300.0, 100.0, *[300.0] * 30]
    same = [begins(name, [job(0, 3600)], signal) for name in ("cst_average", "CST-average", "cst-average-spot")]
    assert same == [[1.0]] * 3
    assert begins("carbon", [job(0, 3600)], signal, carbon_policy="cst_average") == [1.0]
    assert set(gaia.POLICIES) >= {"carbon", "cost", "suspend-resume-spot-threshold", "immediate"}


def test_jobs_that_gaia_never_starts_are_left_out(caplog):
    jobs = [job(0, 3600, name="in"), job(0, 4.9, name="blink"), job(3 * 3600, 3600, name="after")]
    with caplog.at_level(logging.WARNING):
        outcome = gaia.simulate(jobs, [100.0] * 3, policy="oracle", wait_h=(0.0,))
    assert outcome.segments["job"].tolist() == ["in"]
    assert "GAIA never starts 2 of 3 jobs, which are left out: blink, after" in caplog.text
    # whoever would wait beyond the end is lost, too
    jobs = [job(0, 3600, name="in"), job(7200, 3600, name="lost")]
    outcome = gaia.simulate(jobs, [100.0] * 6, policy="cost", wait_h=(4.0,), reserved=0)
    assert outcome.segments["job"].tolist() == ["in"]


@pytest.mark.parametrize(
    ("policy", "length_s"), [("oracle", 7200), ("immediate", 7200), ("suspend-resume", 3600), ("lowest", 11000)]
)
def test_jobs_that_stop_gaia_are_one_clear_line(policy, length_s):
    with pytest.raises(InputError, match=r"^job x: it arrives at 3600 s, .* the signal's end at 10800 s") as caught:
        gaia.simulate([job(3600, length_s, name="x")], [100.0, 200.0, 300.0], policy=policy, wait_h=(2.0,))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"policy": "oracel"}, "did you mean 'oracle'"),
        ({"policy": "carbon", "carbon_policy": "lowset"}, "did you mean 'lowest'"),
        ({"policy": "oracle-spot-spot"}, "no policy"),
        ({"policy": "oracle", "wait_h": (1.0, 2.0, 3.0)}, "option wait"),
        ({"policy": "oracle", "wait_h": (float("nan"),)}, "wait must be a finite number >= 0 h"),
        ({"policy": "oracle", "wait_h": (-1.0,)}, "wait must be a finite number >= 0 h"),
        ({"policy": "oracle", "reserved": -1}, "reserved must be a whole number of cpus >= 0"),
        ({"policy": "oracle", "reserved": 2.5}, "reserved must be a whole number of cpus >= 0"),
    ],
)
def test_wrong_options(options, hint):
    with pytest.raises(InputError, match=hint):
        gaia.simulate([job(0, 3600)], [100.0] * 40, **options)


def test_wrong_signals_and_no_jobs():
    with pytest.raises(InputError, match="hour 1 has none"):
        gaia.simulate([job(0, 3600)], [100.0, float("nan")], policy="oracle")
    with pytest.raises(InputError, match="there are none"):
        gaia.simulate([job(0, 3600)], [], policy="oracle")
    with pytest.raises(InputError, match="none starts before"):
        gaia.simulate([], [100.0] * 40, policy="oracle")
    # what lies beyond 720 h does not matter
    assert begins("oracle", [job(0, 3600)], [100.0] * 720 + [float("nan")]) == [0.0]
