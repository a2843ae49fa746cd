"""Yields and the rule `fair` against every plan that there is."""

from __future__ import annotations

from fractions import Fraction

import plain_periods
import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, plan
from batwatt.schedulers.checkpoint.sequence import WorkHistory, alone_in, fair


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
    return {name: WorkHistory(float(done), float(alone)) for name, (done, alone) in past.items()}


def works_of(solution):
    works = plain_periods.worked(solution)
    assert works == tuple(Fraction(act.work_s) for act in solution.acts)
    return works


@examples(500)
@given(histories())
def test_yields(history):
    instance, past = history
    solution = plan(instance)
    expected = plain_periods.yields(instance, works_of(solution), past)
    for act, job_yield in zip(solution.acts, expected, strict=True):
        after = pasts(past)[act.job.id].then(act.work_s, alone_in(act.job, instance))
        assert after.job_yield == float(job_yield)


@examples(500)
@given(histories(), st.sampled_from([0, 1, 2, 3, 4]))
def test_due_jobs_work(history, quarters):
    instance, past = history
    target = Fraction(quarters, 4)
    must, work = plain_periods.fair(instance, past, target)
    solution = fair(instance, pasts(past), float(target))
    assert {act.job.id for act in solution.acts if act.work_s > 0.0} >= must
    assert plain_periods.total(instance, works_of(solution)) == work


def stopped(name: str, processors: int, recovery_s: float = 0.0) -> PeriodJob:
    return PeriodJob(name, processors, 1.0, recovery_s, "stopped")


def test_a_due_job_that_cannot_recover_in_the_period_does_not_keep_others_from_work():
    # all are due; `slow` recovers for longer than the period: 3 x (10 - 1) s of `wide` remain
    jobs = (stopped("slow", 1, 20.0), stopped("wide", 3, 1.0))
    past = {"slow": WorkHistory(0.0, 30.0), "wide": WorkHistory(0.0, 30.0)}
    assert fair(Instance(10.0, 4, jobs), past, 1.0).work_processor_s == 27.0
    with pytest.raises(ValueError, match="the target of yields must be from 0 to 1"):
        fair(Instance(10.0, 4, jobs), past, 1.5)


def test_what_rounding_leaves_of_a_period_is_no_work():
    # 0.7 s of a checkpoint and 0.3 s of a recovery fill the period, of which 1 - 0.7 - 0.3 is 5.6e-17 s
    jobs = (PeriodJob("a", 1, 0.7, 0.0, "running"), stopped("due", 1, 0.3))
    assert works_of(fair(Instance(1.0, 1, jobs), {"due": WorkHistory(0.0, 10.0)}, 1.0)) == (1, 0)


def test_no_job_that_is_due_starves():
    # three jobs of which one at a time has room, and all are due all the time: each has a turn in three
    jobs = (stopped("a", 6, 1.0), stopped("b", 5, 1.0), stopped("c", 4, 1.0))
    instance, past, in_turn = Instance(10.0, 6, jobs), {job.id: (0, 0) for job in jobs}, ""
    for _ in range(12):
        works = works_of(fair(instance, pasts(past), 0.5))
        past = {job.id: (past[job.id][0] + work, past[job.id][1] + 10) for job, work in zip(jobs, works, strict=True)}
        in_turn += "".join(job.id for job, work in zip(jobs, works, strict=True) if work)
    assert in_turn == 4 * "abc"
    # without a target the widest runs for ever
    assert works_of(fair(instance, {}, 0.0)) == (9, 0, 0)
