"""Who is checkpointed before a change, against every set that covers and the best of every plan after it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_periods import Preparing

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, plan
from batwatt.schedulers.checkpoint.sequence import prepare


@st.composite
def changes(draw, jobs=4):
    """Jobs that run on up to 9 processors, others that wait, and a change of up to k."""
    before, period = draw(st.integers(1, 9)), draw(st.integers(2, 12))
    # often the same ones, so that sets cost the same
    times = st.integers(0, draw(st.sampled_from([1, 1 + period // 2])))
    running, others, free = [], [], before
    for i in range(draw(st.integers(1, jobs))):
        width = draw(st.integers(1, max(1, before // 2)) | st.integers(1, before))
        runs = width <= free and draw(st.sampled_from([True, True, False]))
        free -= width * runs
        job = PeriodJob(str(i), width, float(draw(times)), float(draw(times)), "running" if runs else "stopped")
        (running if runs else others).append(job)
    k = draw(st.integers(0, min(before, 3)))
    platform = draw(st.none() | st.integers(before, before + 3))
    return Preparing(running, others, float(period), before, k), platform


covers = st.sampled_from(["k", "needed"])


def prepared(plain: Preparing, **how):
    return prepare(plain.running, plain.others, plain.period_s, plain.before, plain.k, **how)


@examples(500)
@given(changes(jobs=6), covers)
def test_the_cheapest_and_all(change, cover):
    plain, platform = change
    choice = prepared(plain, cover=cover, platform=platform)

    def price(ids):
        return plain.cost(ids), sum(job.processors for job in plain.running if job.id in ids)

    assert choice.ids in plain.sets(cover)
    assert price(choice.ids) == min(map(price, plain.sets(cover)))
    assert (choice.exact, choice.cost_processor_s) == (True, plain.cost(choice.ids))
    whole = prepared(plain, objective="all")
    ids = frozenset(job.id for job in plain.running)
    assert (whole.ids, whole.cost_processor_s) == (ids, plain.cost(ids))


@examples(300)
@given(changes(), covers, st.booleans())
def test_the_best_worst_case_and_the_best_mean(change, cover, worst):
    plain, platform = change
    counts = plain.possible(platform)

    def value(ids):
        goodputs = [plain.goodput(ids, processors) for processors in counts]
        return min(goodputs) if worst else sum(goodputs, Fraction(0)) / len(goodputs)

    choice = prepared(plain, objective="worst" if worst else "expected", cover=cover, platform=platform)
    assert choice.ids in plain.sets(cover)
    assert choice.value == pytest.approx(float(value(choice.ids)), rel=1e-12, abs=1e-12)
    # of sets that are alike but for rounding either will do
    assert float(max(map(value, plain.sets(cover))) - value(choice.ids)) <= 1e-12
    assert choice.outcomes == tuple((processors, float(plain.goodput(choice.ids, processors))) for processors in counts)
    assert (choice.exact, choice.cost_processor_s) == (True, plain.cost(choice.ids))


def running(name: str, processors: int, checkpoint_s: float, recovery_s: float = 0.0) -> PeriodJob:
    return PeriodJob(name, processors, checkpoint_s, recovery_s, "running")


def test_of_sets_that_cost_the_same_the_narrowest_is_taken_then_the_first():
    assert prepare([running("wide", 4, 3.0), running("narrow", 3, 4.0)], [], 10.0, 9, 3).ids == {"narrow"}
    assert prepare([running(name, 3, 4.0) for name in "xyz"], [], 10.0, 9, 3).ids == {"x"}


@pytest.mark.parametrize("objective", ["worst", "expected"])
def test_many_jobs_are_improved_one_by_one(objective):
    """Of nine jobs no set is better that has one job more or less, nor are the cheapest and all."""
    jobs = [running(str(i), 1 + i % 4, 1.0 + i % 3, 1.0 + i % 2) for i in range(9)]
    others = [PeriodJob("wide", 9, 1.0, 1.0, "stopped"), PeriodJob("narrow", 3, 1.0, 1.0, "stopped")]
    before, k = sum(job.processors for job in jobs), 6
    plain = Preparing(jobs, others, 20.0, before, k)
    # as good as every plan by the other tests, and faster
    plain.work = lambda ids, processors: Fraction(
        plan(Instance(20.0, processors, (*plain.after(ids), *others))).work_processor_s
    )

    def value(ids):
        goodputs = [plain.goodput(ids, processors) for processors in plain.possible(before)]
        return float(min(goodputs) if objective == "worst" else sum(goodputs) / len(goodputs))

    choice = prepared(plain, objective=objective, platform=before, most_tried=8)
    assert not choice.exact and choice.value == pytest.approx(value(choice.ids), rel=1e-12)
    near = [choice.ids, *(choice.ids ^ {job.id} for job in jobs)]
    covering = [ids for ids in near if sum(job.processors for job in jobs if job.id in ids) >= k]
    assert choice.ids in covering
    covering += [prepared(plain, objective=name).ids for name in ("cheapest", "all")]
    assert choice.value >= max(map(value, covering)) - 1e-12
