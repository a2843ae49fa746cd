"""The optimum of phase-aware suspend/resume: every schedule, and cases worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.optimum import NoPlanError, plan
from batwatt.units import J_PER_KWH

SLOT_S = 60.0


def phases(watts: Sequence[float], marks: frozenset[int] = frozenset()) -> tuple[Phase, ...]:
    """A phase for each slot; those that end at a mark are checkpoints."""
    return tuple(Phase(f"p{i}", SLOT_S, w, is_checkpoint=i + 1 in marks) for i, w in enumerate(watts))


def model_of(startup: Sequence[float], work: Sequence[float], marks: frozenset[int] = frozenset()) -> PhaseModel:
    return PhaseModel(phases(startup), phases(work, marks))


def course_of(signal: Sequence[float]) -> Timeline:
    return Timeline.regular(signal, SLOT_S)


def in_slots(carbon: float) -> float:
    """g of one cpu -> sum of power x signal over slots."""
    return carbon * J_PER_KWH / SLOT_S


@st.composite
def cases(draw: st.DrawFn, low: int = 0, longest: int = 10):
    slots = draw(st.integers(2, longest))
    startup = draw(st.lists(st.integers(0, 9), max_size=3))
    work = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))
    assume(len(startup) + len(work) <= slots)
    signal = draw(st.lists(st.integers(low, 20), min_size=slots, max_size=slots))
    return signal, startup, work


# every schedule, in whole numbers ---------------------------------------------------------------------------------

Schedule = tuple[tuple[int, int, int], ...]
"""(first slot of the start-up, progress before, progress after) of each segment."""


def schedules(slots: int, startup: int, work: int, marks: frozenset[int] | None) -> Iterator[Schedule]:
    """All schedules: suspended only at `marks` of progress unless None."""

    def go_on(at: int, done: int, so_far: Schedule) -> Iterator[Schedule]:
        if done == work:
            yield so_far
            return
        for begin in range(at, slots):
            for until in range(done + 1, work + 1):
                end = begin + startup + until - done
                if end > slots:
                    break
                if until == work or marks is None or until in marks:
                    yield from go_on(end, until, (*so_far, (begin, done, until)))

    yield from go_on(0, 0, ())


def least(
    signal: Sequence[int],
    startup_w: Sequence[int],
    work_w: Sequence[int],
    *,
    marks: frozenset[int] | None = None,
    barred: frozenset[int] = frozenset(),
) -> int | None:
    """The least sum of power x signal over all schedules, None if there is none."""

    @cache
    def emitted(begin: int, done: int, until: int) -> int | None:
        powers = (*startup_w, *work_w[done:until])
        if any(begin + i in barred for i in range(len(powers))):
            return None
        return sum(watts * signal[begin + i] for i, watts in enumerate(powers))

    best: int | None = None
    for schedule in schedules(len(signal), len(startup_w), len(work_w), marks):
        parts = [emitted(*segment) for segment in schedule]
        if None in parts:
            continue
        total = sum(part for part in parts if part is not None)
        best = total if best is None else min(best, total)
    return best


@examples(900, derandomize=True)
@given(
    cases() | cases(low=-20),
    st.none() | st.frozensets(st.integers(1, 5)),
    st.just(frozenset()) | st.frozensets(st.integers(0, 9), max_size=4),
)
def test_no_schedule_is_better(case, marks, barred):
    """Prices may be below zero: a start-up is never paid for its own sake, but may be for the date it gives."""
    signal, startup, work = case
    model, integral = model_of(startup, work, marks or frozenset()), course_of(signal)
    args = (model, integral, 0.0, len(signal) * SLOT_S)
    options = {"checkpoints": marks is not None}
    if barred:
        options |= {"slot_s": SLOT_S, "blocked": np.isin(np.arange(len(signal)), list(barred))}
    best = least(signal, startup, work, marks=marks, barred=barred)
    if best is None:
        with pytest.raises(NoPlanError):
            plan(*args, **options)
        return
    schedule = plan(*args, **options)
    assert in_slots(schedule.carbon) == pytest.approx(best, rel=1e-12, abs=1e-9)
    assert marks is None or {round(segment.to_s / SLOT_S) for segment in schedule.segments} <= {*marks, len(work)}
    assert not schedule.rounded
    for segment in schedule.segments:
        assert not barred & {*range(round(segment.begin_s / SLOT_S), round(segment.end_s / SLOT_S))}
    # carried out it emits what was claimed
    done = carry_out(ShiftJob("j", 0.0, model), schedule.intervals, checkpoints=marks is not None, apart=True)
    assert len(done.segments) == len(schedule.segments)
    assert done.emitted(integral) == pytest.approx(schedule.carbon, rel=1e-12, abs=1e-15)
    assert done.end_s <= len(signal) * SLOT_S + 1e-6


@examples(100, derandomize=True)
@given(cases(longest=7))
def test_finer_slots_are_not_better(case):
    """Where all changes at ends of slots, an optimum has its dates there, too (docs/explanation/carbon.md)."""
    signal, startup, work = case
    args = (model_of(startup, work), course_of(signal), 0.0, len(signal) * SLOT_S)
    assert plan(*args, slot_s=SLOT_S / 3).carbon == pytest.approx(plan(*args, slot_s=SLOT_S).carbon, rel=1e-11)


class TestByHand:
    def test_slots_that_do_not_fit_are_told_and_charged_truly(self):
        """90 s of start-up and 100 s of work in slots of 60 s: two and two, and the true run is shorter."""
        model = PhaseModel((Phase("s", 90.0, 10.0),), (Phase("w", 100.0, 36.0),))
        schedule = plan(model, course_of([3, 3, 1, 1, 1, 1]), 0.0, 360.0, slot_s=SLOT_S)
        assert schedule.rounded
        (segment,) = schedule.segments
        assert (segment.begin_s, segment.end_s) == (120.0, 310.0)
        assert schedule.carbon * J_PER_KWH == pytest.approx(90 * 10 + 100 * 36)

    def test_slots_fit_or_become_longer_if_they_are_too_many(self):
        day = Timeline.regular([100.0 + i % 7 for i in range(24)])
        for startup_s, work_s, slot_s, rounded in ((90.0, 600.0, 30.0, False), (23.45, 3600.01, 2.0, True)):
            model = PhaseModel((Phase("s", startup_s, 60.0),), (Phase("w", work_s, 200.0),))
            schedule = plan(model, day, 0.0, 86400.0)
            assert (schedule.slot_s, schedule.rounded) == (slot_s, rounded)

    def test_checkpoints_within_slots(self):
        """Two epochs of 40 s; free in the first two slots, cheap in the last three, of which the restart takes all.

        It takes 15 s + 40 s, planned as a slot of start-up, one from the checkpoint to the end of its slot, and one.
        """
        model = PhaseModel((Phase("s", 15.0, 1.0),), (Phase("w", 40.0, 36.0, True), Phase("w", 40.0, 36.0, True)))
        schedule = plan(model, course_of([0, 0, 90, 90, 90, 1, 1, 1]), 0.0, 480.0, slot_s=SLOT_S, checkpoints=True)
        assert [(s.begin_s, s.from_s, s.to_s) for s in schedule.segments] == [(0.0, 0.0, 40.0), (300.0, 40.0, 80.0)]

    def test_a_job_that_cannot_wait_needs_no_slots(self):
        """In slots of a microsecond there are too many states, and longer ones do not fit into the window."""
        model = PhaseModel((Phase("s", 10.5, 60.0),), (Phase("w", 3600.123456, 200.0), Phase("v", 99.0, 3.0)))
        schedule = plan(model, Timeline.regular([100.0, 200.0, 300.0]), 1.234567, 1.234567 + model.length_s)
        assert schedule.rounded
        (segment,) = schedule.segments
        assert (segment.begin_s, segment.to_s) == (1.234567, model.work_s)

    def test_rounding_never_costs_more_than_one_piece_at_any_moment(self):
        """In slots of 5 s it would begin 1.55 s away from where its 200 W fit the valley best."""
        model = PhaseModel((Phase("s", 23.45, 60.0),), (Phase("w", 3600.0, 200.0),))
        signal = Timeline.regular([300.0, 300.0, 100.0, 300.0, 300.0, 300.0])
        schedule = plan(model, signal, 0.0, 6 * 3600.0, most_cells=10_000_000)
        assert (schedule.rounded, schedule.slot_s) == (True, 5.0)
        assert [segment.begin_s for segment in schedule.segments] == [7200.0 - 23.45]


class TestInTheJobsOwnTimes:
    @examples(200, derandomize=True)
    @given(st.data())
    def test_whatever_the_slots_the_plan_can_be_carried_out(self, data):
        length = st.floats(0.1, 4.0)
        startup = tuple(Phase("s", data.draw(length), 50.0) for _ in range(data.draw(st.integers(0, 2))))
        marked = data.draw(
            st.lists(st.tuples(length, st.sampled_from((0.0, 90.0)), st.booleans()), min_size=1, max_size=8)
        )
        model = PhaseModel(startup, tuple(Phase("w", *phase) for phase in marked))
        signal = Timeline.regular(data.draw(st.lists(st.integers(0, 9), min_size=60, max_size=60)), 0.7)
        checkpoints, deadline_s = data.draw(st.booleans()), min(42.0, model.length_s + data.draw(st.floats(0.0, 12.0)))
        assume(deadline_s >= model.length_s)
        try:
            schedule = plan(
                model,
                signal,
                0.0,
                deadline_s,
                slot_s=data.draw(st.sampled_from((0.3, 1.0, 1.7))),
                checkpoints=checkpoints,
            )
        except NoPlanError:
            return
        done = carry_out(ShiftJob("1", 0.0, model), schedule.intervals, checkpoints=checkpoints, apart=True)
        assert [s.to_s for s in done.segments] == pytest.approx([s.to_s for s in schedule.segments])
        assert done.emitted(signal) == pytest.approx(schedule.carbon)
        assert done.end_s <= deadline_s + 1e-9


@pytest.mark.parametrize(
    ("deadline_s", "options", "error", "message"),
    [
        (60.0, {}, NoPlanError, "there are 60 s until the deadline and the job takes 120 s"),
        (240.0, {}, InputError, "the signal ends at 180 s, before 240 s"),
        (180.0, {"slot_s": 0.0}, ValueError, "slot_s must be > 0 s"),
    ],
)
def test_what_is_refused(deadline_s, options, error, message):
    with pytest.raises(error, match=message):
        plan(model_of([1], [1]), course_of([1, 1, 1]), 0.0, deadline_s, **options)
