"""Pictures of plans: who has which processors in them, by hand and as laws; and that they are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.systems.checkpoint.figures import charts as period_chart
from batwatt.systems.checkpoint.figures.bands import Stay, Stretch, arrange, stays
from batwatt.systems.checkpoint.figures.charts import plot_followed, plot_plan
from batwatt.systems.checkpoint.instance import Instance, JobPhase, PeriodJob
from batwatt.systems.checkpoint.period_plan import plan
from batwatt.systems.checkpoint.sequence import CapacitySequence, follow


def work(job, processors, begin_s, end_s):
    return Stay(job, processors, (JobPhase("work", begin_s, end_s),))


def bands(placed):
    return [(each.stay.job, each.stay.begin_s, each.stay.end_s, each.bands) for each in placed]


def test_a_stay_ends_where_a_job_is_on_no_processors():
    phases = (JobPhase("work", 5.0, 9.0), JobPhase("recovery", 0.0, 2.0), JobPhase("work", 2.0, 4.0))
    assert [(stay.begin_s, stay.end_s, len(stay.phases)) for stay in stays("a", 1, phases)] == [(0, 4, 2), (5, 9, 1)]
    # 0.1 + 0.2 is a little more than 0.3
    assert len(stays("a", 1, (JobPhase("work", 0.0, 0.3), JobPhase("checkpoint", 0.1 + 0.2, 1.0)))) == 1
    assert stays("a", 1, ()) == []


def test_who_stays_is_below_those_that_go():
    """The capacity falls from 6 to 4: b, which stays, is below a, which came with it and is as wide."""
    stretches = [Stretch(0.0, 10.0, 6), Stretch(10.0, 20.0, 4)]
    placed = arrange(stretches, [work("a", 3, 0.0, 10.0), work("b", 3, 0.0, 20.0)])
    assert bands(placed) == [("b", 0, 20, ((0, 3),)), ("a", 0, 10, ((3, 6),))]


def test_figure_1():
    """Jobs of 3, 3, 5, 8, 8 processors; 19, 16, 22: j4 stays, j5 has the processors of j3 and 3 that were kept."""
    stretches = [Stretch(0.0, 10.0, 19), Stretch(10.0, 20.0, 16), Stretch(20.0, 30.0, 22)]
    all_stays = [
        work("j1", 3, 0.0, 10.0), work("j2", 3, 0.0, 10.0), work("j3", 5, 0.0, 12.0), work("j4", 8, 0.0, 30.0),
        work("j5", 8, 12.0, 30.0), work("j1", 3, 20.0, 30.0), work("j2", 3, 20.0, 30.0),
    ]  # fmt: skip
    placed = arrange(stretches, all_stays)
    assert sorted(bands(placed)) == [
        ("j1", 0, 10, ((13, 16),)), ("j1", 20, 30, ((16, 19),)),
        ("j2", 0, 10, ((16, 19),)), ("j2", 20, 30, ((19, 22),)),
        ("j3", 0, 12, ((8, 13),)), ("j4", 0, 30, ((0, 8),)), ("j5", 12, 30, ((8, 16),)),
    ]  # fmt: skip


def test_more_than_there_are_is_refused():
    with pytest.raises(ValueError, match="job b has no 2 processors at 0 s"):
        arrange([Stretch(0.0, 1.0, 3)], [work("a", 2, 0.0, 1.0), work("b", 2, 0.0, 1.0)])


def check(stretches, all_stays):
    """Each job has its processors at each instant of its stays, no two have the same, and they are there."""
    placed = arrange(stretches, all_stays)
    dates = sorted({time for each in (*stretches, *all_stays) for time in (each.begin_s, each.end_s)})
    for begin, end in pairwise(dates):
        if end - begin < 1e-6:
            continue
        at = (begin + end) / 2.0
        there = next(each.processors for each in stretches if each.begin_s < at < each.end_s)
        now = [each for each in placed if each.stay.begin_s < at < each.stay.end_s]
        held = [p for each in now for low, high in each.bands for p in range(low, high)]
        assert len(set(held)) == len(held) and all(0 <= p < there for p in held)
        wide = Counter()
        for each in now:
            wide[each.stay.job] += sum(high - low for low, high in each.bands)
        assert wide == {each.job: each.processors for each in all_stays if each.begin_s < at < each.end_s}
    for kind in ("work", "checkpoint", "recovery"):
        assert spent(kind, (each.stay for each in placed)) == pytest.approx(spent(kind, all_stays))


def spent(kind, all_stays):
    return sum(
        stay.processors * (phase.end_s - phase.begin_s)
        for stay in all_stays
        for phase in stay.phases
        if phase.kind == kind
    )


@st.composite
def courses(draw):
    first, k = draw(st.integers(4, 16)), draw(st.integers(0, 4))
    capacities = [first]
    for _ in range(draw(st.integers(0, 5))):
        capacities.append(min(16, max(1, capacities[-1] + draw(st.integers(-k, k)))))
    times, lefts = st.sampled_from((0.0, 0.1, 0.3, 0.7, 1.1)), st.sampled_from((2.3, np.inf))
    jobs = [
        PeriodJob(f"j{n}", draw(st.integers(1, 9)), draw(times), draw(times), "stopped", draw(lefts))
        for n in range(draw(st.integers(1, 7)))
    ]
    return CapacitySequence(draw(st.sampled_from((3.0, 3.3, 10.0))), tuple(capacities), k, tuple(jobs))


@examples(300, derandomize=True)
@given(courses(), st.sampled_from((0.0, 0.6)))
def test_laws(sequence, target):
    """Of whatever is planned: a picture shows every job on its processors, on none twice, and all of its work."""
    try:
        followed = follow(sequence, min_yield=target)
    except ValueError:
        # a period too short for a checkpoint
        assume(False)
    stretches, all_stays = period_chart.shown(followed)
    check(stretches, all_stays)
    assert spent("work", all_stays) == pytest.approx(sum(period.plan.work_processor_s for period in followed.periods))


JOBS = (
    PeriodJob("<b> $x_1$ &", 3, 10.0, 5.0, "running"),
    PeriodJob("2", 4, 10.0, 5.0, "checkpointed"),
    PeriodJob("3", 5, 10.0, 5.0, "stopped"),
)


def test_a_plan_is_drawn(tmp_path):
    """The same plan is the same bytes; red is in the picture if and only if there is a checkpoint."""
    quiet, busy = plan(Instance(100.0, 8, JOBS[:2])), plan(Instance(100.0, 5, (JOBS[0], JOBS[2])))
    first, second, other = (
        plot_plan(drawn, tmp_path / f"{n}.svg").read_text() for n, drawn in enumerate((busy, busy, quiet))
    )
    red = period_chart.COLOURS["checkpoint"]
    assert first == second and red in first and red not in other


def test_a_course_is_drawn(tmp_path):
    sequence = CapacitySequence(20_000.0, (8, 7, 9), 2, JOBS)
    assert plot_followed(follow(sequence), tmp_path / "a.svg").read_text().startswith("<?xml")
