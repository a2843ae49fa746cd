"""The paper's theorem: no schedule beats a plan if all checkpoints take the same time; and what it is worth else."""

from __future__ import annotations

import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, plan
from papers.checkpoint import alignment
from papers.checkpoint.grid import schedules


@examples(1000)
@given(instances(jobs=6, processors=12, longest=14, fractions=False, constant=True))
def test_no_schedule_is_better_if_all_checkpoints_take_the_same_time(instance):
    # fails if the plan claims more than there is, too
    work = plan(instance).work_processor_s
    assert work == schedules(instance, lower_bound=int(work))


@examples(500)
@given(instances(jobs=4, processors=8, longest=10, fractions=False, constant=False))
def test_with_different_checkpoints_a_plan_is_one_of_the_schedules(instance):
    aligned = plan(instance).work_processor_s
    best = schedules(instance)
    assert aligned <= best
    # what is known to be had changes nothing but the time that it takes
    assert schedules(instance, lower_bound=int(aligned)) == best


def test_what_alignment_costs():
    # neither c nor d fits in beside a and b; c has room when a has gone, d when b has gone too
    rows = (("a", 2, 1.0, 0.0, "running"), ("b", 2, 4.0, 0.0, "running"),
            ("c", 3, 1.0, 0.0, "stopped"), ("d", 3, 1.0, 0.0, "stopped"))  # fmt: skip
    one_after_another = Instance(16.0, 6, tuple(PeriodJob(*row) for row in rows))
    assert schedules(one_after_another) == 3 * 15 + 3 * 12
    # a works 3 s while b is checkpointed, then both leave together
    assert plan(one_after_another).work_processor_s == 2 * 3 + 6 * 12
    assert alignment.loss(one_after_another) == 1.0 - 78.0 / 81.0


def test_a_schedule_loses_no_work():
    # 1 processor too few: one of the two stops
    jobs = tuple(PeriodJob(name, 2, 4.0, 3.0, "checkpointed") for name in "ab")
    assert schedules(Instance(9.0, 3, jobs)) == 18
    # if a is to make room for c (3 of 3) its checkpoint comes first: 3 x (9 - 4 - 1) < 18 < 3 x (18 - 4 - 1)
    jobs = (PeriodJob("a", 2, 4.0, 0.0, "running"), PeriodJob("c", 3, 4.0, 1.0, "stopped"))
    assert schedules(Instance(9.0, 3, jobs)) == 18
    assert schedules(Instance(18.0, 3, jobs)) == 3 * 13
    with pytest.raises(ValueError, match="does 40 processor s"):
        schedules(Instance(18.0, 3, jobs), lower_bound=40)


def test_losses_by_alignment():
    kinds = alignment.KINDS[:3]
    rows = alignment.losses(20, kinds)
    assert len(rows) == len(kinds) and (rows["instances"] == 20).all()
    for row in rows.itertuples():
        assert 0.0 <= row.mean_percent <= row.largest_percent < 100.0
    # nothing is lost where all checkpoints take the same time, something else
    assert rows["lose"][0] == 0 < rows["lose"][2]
    # the same instances each time
    assert alignment.losses(20, kinds[:1]).equals(rows[:1])
