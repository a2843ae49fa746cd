"""Two implementations of carbon policies: papers/carbon/simulator.py, and a run of the scheduler `carbon`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from carbon_talk import run_alone
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.policies import POLICIES
from papers.carbon.simulator import SEGMENT_COLUMNS, Outcome, ShiftOptions, rows_of, simulate

HOUR = 3600.0
EXACT = 1e-12
SIGNAL = Timeline.regular([300.0, 100.0, 200.0, 400.0])
PRICE = Timeline.regular([0.1, 0.2, 0.3, 0.4])
MODEL = PhaseModel((Phase("boot", 1800.0, 200.0),), (Phase("work", 3600.0, 1000.0),))

# figures by hand ------------------------------------------------------------------------------------------------------


def test_a_job_that_is_suspended():
    # start-up and half of the work in hour 0, the same again in hour 2
    execution = carry_out(ShiftJob("a", 0.0, MODEL, cpus=2), ((0.0, HOUR), (2 * HOUR, 3 * HOUR)))
    outcome = Outcome("ours", rows_of([execution], SIGNAL, PRICE, [3 * HOUR]))
    # per segment and cpu 0.1 kWh of start-up and 0.5 kWh of work
    assert outcome.segments["carbon_g"].tolist() == pytest.approx([2 * 0.6 * 300, 2 * 0.6 * 200])
    assert outcome.segments["startup_s"].tolist() == [1800.0, 1800.0]
    assert outcome.segments["work_s"].tolist() == [1800.0, 1800.0]
    assert outcome.segments["cost"].tolist() == pytest.approx([1.2 * 0.1, 1.2 * 0.3])
    assert outcome.metrics()["startup_energy_j"] == pytest.approx(0.4 * 3.6e6)
    assert Outcome("ours", rows_of([execution], SIGNAL, None, [HOUR])).metrics()["cost"] is None


def test_figures_of_several_jobs():
    """b waits from 10 to 20 and from 30 to 35, and ends 0.1 s after its deadline."""
    rows = [
        ("b", 0, 10.0, 20.0, 30.0, 1, 2.0, 8.0, 5.0, 1.0, 0.5, 0.0, 35.9),
        ("a", 0, 0.0, 0.0, 40.0, 4, 0.0, 40.0, 7.0, 2.0, 0.25, 0.0, 40.0),
        ("b", 1, 10.0, 35.0, 36.0, 1, 1.0, 0.0, 6.0, 3.0, 0.5, 0.0, 35.9),
    ]
    figures = Outcome("given", pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))).metrics()
    assert (figures["carbon_g"], figures["energy_j"], figures["cost"]) == (6.0, 18.0, 1.25)
    assert (figures["mean_total_wait_s"], figures["segments"], figures["late_jobs"]) == (7.5, 3, 1)


def test_the_mean_length_is_that_of_the_jobs_that_have_arrived():
    """The first expects its own 2 h, which are clean from 1 h on; the second, and who foresees it, 4 h from 5 h on."""
    signal = Timeline.regular([9.0, 1.0, 1.0, 9.0, 9.0, 2.0, 2.0, 2.0, 2.0] + [9.0] * 9)
    jobs = [ShiftJob(name, 0.0, constant(HOUR * hours, 1.0)) for name, hours in (("a", 2.0), ("b", 6.0))]
    for foreseen, begins_h in ((False, [1.0, 5.0]), (True, [5.0, 5.0])):
        outcome = simulate(jobs, signal, "waiting", ShiftOptions(wait_h=(6.0,), foreseen=foreseen))
        assert (outcome.segments["begin_s"] / HOUR).tolist() == begins_h


# against a run --------------------------------------------------------------------------------------------------------

# whole seconds and watts are printed as they are, and the mean of up to 6 whole minutes is in whole seconds
MINUTES = st.integers(1, 240).map(lambda minutes: 60.0 * minutes)
WATTS = st.sampled_from([0.0, 60.0, 75.0, 105.0, 220.0, 300.0])
DATE = parse_date_s("2024-07-05T03:00Z")


@st.composite
def models(draw: st.DrawFn) -> PhaseModel:
    def part(low: int, high: int, marks: st.SearchStrategy[bool]) -> tuple[Phase, ...]:
        rows = draw(st.lists(st.tuples(MINUTES, WATTS, marks), min_size=low, max_size=high))
        return tuple(Phase("p", *row) for row in rows)

    return PhaseModel(part(0, 2, st.just(False)), part(1, 3, st.booleans()))


@st.composite
def crowds(draw: st.DrawFn) -> list[ShiftJob]:
    arrivals = st.lists(st.integers(0, 90_000), min_size=1, max_size=6)
    return [
        ShiftJob(str(number), float(arrival), draw(models()), draw(st.integers(1, 3)))
        for number, arrival in enumerate(draw(arrivals))
    ]


HOURLY = st.lists(st.integers(0, 500), min_size=4, max_size=12)


def signal_of(values: list[int], step_s: float) -> Timeline:
    """These values again and again, for two weeks from Friday on."""
    many = np.resize(np.array(values, dtype=np.float64), round(14 * 24 * HOUR / step_s))
    return replace(Timeline.regular(many.tolist(), step_s), date_s=DATE)


LIMITS = st.one_of(
    st.builds(lambda *hours: {"wait_h": hours}, st.integers(0, 8), st.integers(0, 24)),
    st.builds(lambda hours: {"wait_h": (hours,)}, st.sampled_from([0.0, 1.5, 12.0])),
    st.builds(lambda hours: {"deadline_h": hours}, st.integers(30, 48)),
    st.builds(
        lambda name, clock: {"constraint": name, "clock": clock},
        st.sampled_from(["next-workday", "semi-weekly"]),
        st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
)
WEIGHTS = st.none() | st.tuples(
    st.lists(st.integers(0, 9), min_size=4, max_size=12), st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.5, 40.0)])
)


@examples(8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("policy", POLICIES)
@given(
    jobs=crowds(), values=HOURLY, signal_step_s=st.sampled_from([1800.0, HOUR]), limits=LIMITS, weights=WEIGHTS,
    step_s=st.sampled_from([None, 300.0, 7000.0]),
)  # fmt: skip
def test_a_run_is_the_outcome_job_by_job(tmp_path, policy, jobs, values, signal_step_s, limits, weights, step_s):
    """Segments, times, energy, carbon, cost and waits, with the same steps of policies."""
    signal = signal_of(values, signal_step_s)
    prices, (carbon_weight, price_weight) = (None, (1.0, 0.0)) if weights is None else weights
    price = None if prices is None else signal_of(prices, HOUR)
    options = {**limits, "step_s": step_s, "carbon_weight": carbon_weight, "price_weight": price_weight}
    outcome = simulate(jobs, signal, policy, ShiftOptions(price=price, **options))
    totals = run_alone(jobs, tmp_path / "x", signal, price, policy=policy, **options)
    assert totals.averaged == 0
    theirs = outcome.segments.sort_values(["job", "begin_s"], ignore_index=True)
    # runs that follow each other at once are one segment of the account
    apart = (theirs["begin_s"] > theirs.groupby("job")["end_s"].shift() + 1e-6).groupby(theirs["job"]).cumsum()
    sums = {name: (name, "sum") for name in ("energy_j", "carbon_g", "cost")}
    times = {"begin_s": ("begin_s", "first"), "end_s": ("end_s", "last")}
    expected = theirs.assign(segment=apart).groupby(["job", "segment"]).agg(**times, **sums).reset_index()
    found = totals.per_segment().sort_values(["job", "begin_s"], ignore_index=True)
    assert found["job"].tolist() == expected["job"].tolist()
    names = ["begin_s", "end_s", "energy_j", "carbon_g"] + ["cost"] * (price is not None)
    for name in names:
        assert found[name].tolist() == pytest.approx(expected[name].tolist(), rel=EXACT, abs=EXACT), name
    arrivals_s = totals.per_job().set_index("job")["arrival_s"]
    assert arrivals_s.to_dict() == {job.id: job.arrival_s for job in jobs}
    assert totals.metrics()["carbon_g"] == pytest.approx(outcome.metrics()["carbon_g"], rel=EXACT, abs=EXACT)
    waits_s = totals.metrics()["mean_total_wait_s"], outcome.metrics()["mean_total_wait_s"]
    assert waits_s[0] == pytest.approx(waits_s[1], rel=EXACT, abs=1e-9)
