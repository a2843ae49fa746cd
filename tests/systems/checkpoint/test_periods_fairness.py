"""Yields and the rule `fair` against every plan that there is."""

from __future__ import annotations

from fractions import Fraction

import plain_periods
import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.systems.checkpoint.fairness import NOTHING, Past, alone_in, fair
from batwatt.systems.checkpoint.instance import Instance, PeriodJob
from batwatt.systems.checkpoint.period_plan import plan


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


def yields(solution, past):
    """The yield of each job at the end of the period."""
    after = {}
    for act in solution.acts:
        before = past.get(act.job.id, NOTHING)
        after[act.job.id] = before.then(act.work_s, alone_in(act.job, solution.instance)).job_yield
    return after


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
    assert list(yields(solution, pasts(past)).values()) == [float(one) for one in expected]


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


def test_due_jobs_worked_out_by_hand():
    # 10 s on 4 processors. wide (4) for 10 s is 40 of 40, but narrow gets nothing; small (1) runs beside narrow (1)
    wide = PeriodJob("wide", 4, 2.0, 0.0, "checkpointed")
    narrow, small = stopped("narrow", 1, 1.0), stopped("small", 1, 2.0)
    instance = Instance(10.0, 4, (wide, narrow, small))
    past = {"wide": Past(30.0, 30.0), "narrow": Past(10.0, 30.0), "small": Past(0.0, 30.0)}
    # without work small has 0 of 40 s; with it 8 of 40 s, beside narrow with 19 of 40 s: 17 processor s of 40.
    # At a target of 0.2 only small is due; narrow (0.25 without work) is at 0.3, wide (0.75) is not
    for target in (0.2, 0.3):
        solution = fair(instance, past, target)
        assert solution.work_processor_s == 17.0
        assert yields(solution, past) == {"wide": 0.75, "narrow": 0.475, "small": 0.2}
    assert fair(instance, past, 0.0).work_processor_s == 40.0


def test_a_due_job_that_cannot_recover_in_the_period_does_not_keep_others_from_work():
    # all are due; `slow` recovers for longer than the period: 3 x (10 - 1) s of `wide` remain
    jobs = (stopped("slow", 1, 20.0), stopped("wide", 3, 1.0))
    past = {"slow": Past(0.0, 30.0), "wide": Past(0.0, 30.0)}
    assert fair(Instance(10.0, 4, jobs), past, 1.0).work_processor_s == 27.0
    with pytest.raises(ValueError, match="the target of yields must be from 0 to 1"):
        fair(Instance(10.0, 4, jobs), past, 1.5)


def test_what_rounding_leaves_of_a_period_is_no_work():
    # 0.7 s of a checkpoint and 0.3 s of a recovery fill the period, of which 1 - 0.7 - 0.3 is 5.6e-17 s
    jobs = (PeriodJob("a", 1, 0.7, 0.0, "running"), stopped("due", 1, 0.3))
    assert works_of(fair(Instance(1.0, 1, jobs), {"due": Past(0.0, 10.0)}, 1.0)) == (1, 0)


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
