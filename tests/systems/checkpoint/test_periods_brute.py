"""The plans of a period against every plan that there is, in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_periods import all_dates, brute, largest_subset, total, worked

from batwatt.systems.checkpoint.instance import Instance, JobPhase, PeriodJob, PeriodPlan
from batwatt.systems.checkpoint.period_plan import NoPeriodPlanError, plan, subset_sum


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
    assert brute(instance) == brute(instance, times=all_dates(instance, 4))


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
@given(instances(times=[0]))
def test_subset_sum_is_the_best_if_checkpoints_and_recoveries_take_no_time(instance):
    fill = largest_subset(instance.processors, [job.processors for job in instance.jobs])
    most = fill * Fraction(instance.period_s)
    assert is_as_it_says(subset_sum(instance)) == most == is_as_it_says(plan(instance))


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


def test_a_plan_worked_out_by_hand():
    # 10 s on 8 processors: 5 run, 3 are free. All go on: 50. If a is checkpointed (3 s) c has room at 3 and recovers
    # in 1 s: 3 x 10 + 5 x 6 = 60. If b is checkpointed (4 s), a works on, c and d do not fit together: 20 + 5 x 5 = 45
    jobs = (
        PeriodJob("a", 2, 3.0, 0.0, "running"),
        PeriodJob("b", 3, 4.0, 0.0, "running"),
        PeriodJob("c", 5, 9.0, 1.0, "stopped"),
        PeriodJob("d", 4, 9.0, 1.0, "stopped"),
    )
    solution = plan(Instance(10.0, 8, jobs))
    assert (solution.work_processor_s, solution.goodput, solution.checkpoints_end_s) == (60.0, 0.75, 3.0)
    assert [act.phases for act in solution.acts] == [
        (JobPhase("checkpoint", 0.0, 3.0),),
        (JobPhase("work", 0.0, 10.0),),
        (JobPhase("recovery", 3.0, 4.0), JobPhase("work", 4.0, 10.0)),
        (),
    ]
