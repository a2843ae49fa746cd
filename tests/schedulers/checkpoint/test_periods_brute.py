"""The plans of a period against every plan that there is, in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_periods import all_dates, brute, largest_subset, total, worked

from batwatt.schedulers.checkpoint.period_plan import Instance, NoPeriodPlanError, PeriodPlan, plan, subset_sum


def is_as_it_says(solution: PeriodPlan) -> Fraction:
    """The useful work of a plan, which can be carried out by its phases alone."""
    instance = solution.instance
    works = worked(solution)
    assert works == tuple(Fraction(act.work_s) for act in solution.acts)
    work = total(instance, works)
    assert Fraction(solution.work_processor_s) == work
    assert solution.goodput == float(work / (instance.processors * Fraction(instance.period_s)))
    return work


@examples(1500)
@given(instances() | instances(jobs=5, times=[1, 2, 5], longest=30))
def test_as_good_as_the_best_of_every_plan(instance):
    assert is_as_it_says(plan(instance)) == brute(instance)


@examples(100)
@given(instances(jobs=4, longest=12))
def test_no_other_end_of_checkpoints_is_better(instance):
    """Of all on a grid of quarters of a second."""
    assert is_as_it_says(plan(instance)) == brute(instance, times=all_dates(instance, 4))


@examples(500)
@given(instances(), st.sets(st.integers(0, 5)))
def test_jobs_that_must_work(instance, must):
    must = [i for i in must if i < len(instance.jobs)]
    best, names = brute(instance, must), {str(i) for i in must}
    if best is None:
        with pytest.raises(NoPeriodPlanError):
            plan(instance, must=names)
        return
    solution = plan(instance, must=names)
    assert is_as_it_says(solution) == best
    assert all(solution.acts[i].work_s > 0 for i in must)


@examples(500)
@given(instances())
def test_subset_sum_is_never_better(instance):
    try:
        solution = subset_sum(instance)
    except NoPeriodPlanError:
        assert max(job.checkpoint_s for job in instance.jobs if job.state == "running") > instance.period_s
        return
    assert is_as_it_says(solution) <= is_as_it_says(plan(instance))


@examples(500)
@given(instances(times=[0, 1, 2], longest=3, fractions=False))
def test_subset_sum_fills_the_processors_first_with_those_that_run_already(drawn):
    # long enough for everything that is chosen to work
    instance = Instance(drawn.period_s + 4.0, drawn.processors, drawn.jobs)
    at_the_end = [
        act.job
        for act in subset_sum(instance).acts
        if act.phases and act.phases[-1].kind == "work" and act.phases[-1].end_s == instance.period_s
    ]
    fill = largest_subset(instance.processors, [job.processors for job in instance.jobs])
    assert sum(job.processors for job in at_the_end) == fill
    # one more than all stopped ones together for each processor of a job that runs
    scale = 1 + sum(job.processors for job in instance.jobs)
    widths = [job.processors * (scale + (job.state != "stopped")) for job in instance.jobs]
    in_memory = sum(job.processors for job in at_the_end if job.state != "stopped")
    assert fill * scale + in_memory == largest_subset(fill * scale + scale - 1, widths)
