"""Yields, the Pareto front, max-min and the rule `fair` against every plan that there is."""

from __future__ import annotations

from fractions import Fraction

import plain_periods
import pytest
from draw_periods import instances
from hypothesis import given, settings
from hypothesis import strategies as st

from batwatt.periods.fairness import Past, fair, front, most_yield, yields
from batwatt.periods.instance import Instance, PeriodJob
from batwatt.periods.plan import plan
from batwatt.periods.sequence import Course, follow


@st.composite
def histories(draw, **drawn):
    """An instance and what its jobs have done so far: (useful work, time alone)."""
    instance = draw(instances(**{"jobs": 5, "processors": 9, "longest": 16, **drawn}))
    past = {}
    for job in instance.jobs:
        alone = draw(st.sampled_from([0, 0, 4, 10, 16]))
        # often the same yields
        done = draw(st.sampled_from([0, alone // 2, alone]) | st.integers(0, alone))
        past[job.id] = (done, alone)
    return instance, past


def pasts(past):
    return {name: Past(float(done), float(alone)) for name, (done, alone) in past.items()}


def works_of(chosen):
    works = plain_periods.worked(chosen)
    assert works == tuple(Fraction(act.work_s) for act in chosen.acts)
    return works


@settings(max_examples=500, deadline=None)
@given(histories(ends=True))
def test_yields(history):
    instance, past = history
    chosen = plan(instance)
    expected = plain_periods.yields(instance, works_of(chosen), past)
    assert list(yields(chosen, pasts(past)).values()) == [float(one) for one in expected]


@settings(max_examples=1000, deadline=None)
@given(histories(), st.booleans())
def test_the_front_has_all_that_no_plan_beats(history, refill):
    instance, past = history
    expected = plain_periods.front(instance, past, refill)
    found = front(instance, pasts(past), refill=refill)
    possible = instance.processors * Fraction(instance.period_s)
    assert [(point.min_yield, point.goodput) for point in found] == [
        (float(least), float(work / possible)) for least, work in expected
    ]
    for point, (least, work) in zip(found, expected, strict=True):
        works = works_of(point.plan)
        assert plain_periods.total(instance, works) == work
        assert min(plain_periods.yields(instance, works, past)) == least


@settings(max_examples=500, deadline=None)
@given(histories(ends=True))
def test_the_largest_least_yield_is_the_end_of_the_front(history):
    instance, past = history
    works = works_of(most_yield(instance, pasts(past)))
    least = min(plain_periods.yields(instance, works, past))
    assert (least, plain_periods.total(instance, works)) == plain_periods.front(instance, past)[-1]


@settings(max_examples=1000, deadline=None)
@given(histories(ends=True), st.sampled_from([0, 1, 2, 3, 4]))
def test_due_jobs_work(history, quarters):
    instance, past = history
    target = Fraction(quarters, 4)
    must, work = plain_periods.fair(instance, past, target)
    chosen = fair(instance, pasts(past), float(target))
    assert {act.job.id for act in chosen.acts if act.work_s > 0.0} >= must
    assert plain_periods.total(instance, works_of(chosen)) == work


@settings(max_examples=300, deadline=None)
@given(histories())
def test_no_target_is_pure_goodput(history):
    instance, past = history
    assert fair(instance, pasts(past), 0.0) == plan(instance)


def stopped(name: str, processors: int, recovery_s: float = 0.0) -> PeriodJob:
    return PeriodJob(name, processors, 1.0, recovery_s, "stopped")


def test_a_job_that_ends_has_the_yield_that_it_would_have_alone():
    # `short` has 30 s left and is never stopped: alone it would have done no more
    short = PeriodJob("short", 1, 2.0, 1.0, "stopped", left_s=30.0)
    course = Course(
        100.0, (2, 2), 1, (short, PeriodJob("long", 1, 2.0, 1.0, "stopped")), new=frozenset({"short", "long"})
    )
    assert follow(course).yields == {"short": 1.0, "long": (98.0 + 100.0) / 200.0}


def test_a_front_worked_out_by_hand():
    # 10 s on 4 processors. wide (4) for 10 s is 40 of 40, but narrow gets nothing; small (1) runs beside narrow (1)
    wide = PeriodJob("wide", 4, 2.0, 0.0, "checkpointed")
    narrow, small = stopped("narrow", 1, 1.0), stopped("small", 1, 2.0)
    instance = Instance(10.0, 4, (wide, narrow, small))
    past = {"wide": Past(30.0, 30.0), "narrow": Past(10.0, 30.0), "small": Past(0.0, 30.0)}
    points = front(instance, past)
    # without work small has 0 of 40 s; with it 8 of 40 s, beside narrow with 19 of 40 s: 17 processor s of 40
    assert [(point.min_yield, point.goodput) for point in points] == [(0.0, 1.0), (0.2, 0.425)]
    assert yields(points[-1].plan, past) == {"wide": 0.75, "narrow": 0.475, "small": 0.2}
    assert most_yield(instance, past) == points[-1].plan
    # at a target of 0.2 only small is due; narrow (0.25 without work) is at 0.3, wide (0.75) is not
    for target in (0.2, 0.3):
        assert fair(instance, past, target).work_processor_s == 17.0
    assert fair(instance, past, 0.0).work_processor_s == 40.0


def test_a_job_that_did_not_fit_waits_for_the_processors_and_is_not_behind():
    instance = Instance(10.0, 4, (stopped("wide", 5), stopped("narrow", 1)))
    assert yields(plan(instance), {}) == {"wide": 1.0, "narrow": 1.0}
    assert yields(plan(instance), {"wide": Past(5.0, 20.0)}) == {"wide": 0.25, "narrow": 1.0}


@pytest.mark.parametrize("target", [0.1, 0.5, 1.0])
def test_no_job_that_is_due_starves(target):
    # three jobs of which one at a time has room; the widest has the most goodput
    jobs = (stopped("a", 6, 1.0), stopped("b", 5, 1.0), stopped("c", 4, 1.0))
    past = {job.id: (0, 0) for job in jobs}
    in_turn = []
    for _ in range(12):
        instance = Instance(10.0, 6, jobs)
        chosen = fair(instance, pasts(past), target)
        works = works_of(chosen)
        past = {job.id: (past[job.id][0] + work, past[job.id][1] + 10) for job, work in zip(jobs, works, strict=True)}
        in_turn.extend(job.id for job, work in zip(jobs, works, strict=True) if work)
    assert set(in_turn) == {"a", "b", "c"}
    if target > 0.3:
        # all are due all the time: each has a turn in three
        assert [in_turn[i : i + 3] for i in range(0, 12, 3)] == [["a", "b", "c"]] * 4
    # without a target the widest runs for ever
    assert [act.work_s for act in fair(Instance(10.0, 6, jobs), {}, 0.0).acts] == [9.0, 0.0, 0.0]
