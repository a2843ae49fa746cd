"""Series that hold their last value, end, or repeat for ever."""

from __future__ import annotations

import math

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline, combined, least_around

DAY = Timeline((0.0, 6.0, 18.0), (1.0, 4.0, 1.0), loop=0, period_s=24.0)
"""Night, day, night; midnight is no change."""


def test_a_day_that_repeats():
    assert [DAY.at(time_s) for time_s in (-1.0, 0.0, 6.0, 17.9, 18.0, 24.0, 30.0, 24e6 + 6.0)] == [
        1,
        1,
        4,
        4,
        1,
        1,
        4,
        4,
    ]
    assert [DAY.step_after(time_s) for time_s in (0.0, 18.0, 24.0, 240.0)] == [6, 24, 30, 246]
    assert [DAY.next_change(time_s) for time_s in (0.0, 6.0, 18.0, 24.0, 42.0)] == [6, 18, 30, 30, 54]
    assert (DAY.repeats, DAY.settled_s, DAY.end_s, DAY.least(7.0), DAY.most(19.0)) == (True, math.inf, 24.0, 1.0, 4.0)
    assert DAY.upto(30.0) == Timeline((0.0, 6.0, 18.0, 24.0), (1.0, 4.0, 1.0, 1.0), period_s=300.0)
    assert DAY.since(31.0) == Timeline((0.0, 11.0, 17.0, 23.0), (4.0, 1.0, 1.0, 4.0), loop=0, period_s=24.0)


def test_the_longest_time_of_a_value():
    assert [DAY.longest_s(value) for value in (1.0, 1.5, 4.0, 4.5)] == [math.inf, 12.0, 12.0, 0.0]
    night = Timeline((0.0, 6.0, 18.0), (4.0, 1.0, 4.0), loop=0, period_s=24.0)
    assert night.longest_s(2.0) == 12.0
    late = Timeline((0.0, 30.0, 36.0, 48.0), (4.0, 1.0, 4.0, 1.0), loop=1, period_s=24.0)
    assert late.longest_s(2.0) == 30.0
    # the first value holds before its time, from 0 s on
    assert Timeline((20.0, 26.0, 38.0), (4.0, 1.0, 4.0), loop=1, period_s=24.0).longest_s(2.0) == 26.0


def test_a_beginning_before_what_repeats():
    series = Timeline((0.0, 10.0, 15.0), (9.0, 2.0, 3.0), loop=1, period_s=8.0)
    assert [series.at(time_s) for time_s in (0.0, 17.0, 18.0, 23.0, 26.0)] == [9, 3, 2, 3, 2]
    assert [series.most(time_s) for time_s in (0.0, 10.0, 1e6)] == [9, 3, 3]
    assert series.since(4.0) == Timeline((0.0, 6.0, 11.0), (9.0, 2.0, 3.0), loop=1, period_s=8.0)


def test_series_that_settle():
    held = Timeline((0.0, 5.0, 10.0), (2.0, 1.0, 1.0))
    assert (held.repeats, held.settled_s, held.next_change(5.0), held.end_s) == (False, 5.0, math.inf, 15.0)
    ends = Timeline((0.0, 5.0), (2.0, 1.0), loop=None, period_s=9.0)
    assert (ends.end_s, ends.at(1e9), ends.next_change(0.0), ends.next_change(6.0)) == (9.0, 1.0, 5.0, math.inf)
    constant = Timeline((0.0, 5.0), (2.0, 2.0), loop=0, period_s=9.0)
    assert (constant.repeats, constant.settled_s, constant.next_change(3.0)) == (False, 0.0, math.inf)
    for loop, period_s in ((2, 5.0), (0, 5.0), (None, 5.0), (0, math.inf)):
        with pytest.raises(ValueError, match="repeats rows after its last time"):
            Timeline((0.0, 5.0), (2.0, 1.0), loop=loop, period_s=period_s)


def test_sums():
    steps = Timeline((0.0, 2.0), (1.0, 2.0), loop=0, period_s=4.0)
    total = combined((DAY, steps, Timeline((0.0, 3.0), (0.0, 10.0))), sum)
    assert (total.loop, total.end_s) == (total.times_s.index(3.0), 27.0)
    for tick in range(400):
        assert total.at(tick / 2) == DAY.at(tick / 2) + steps.at(tick / 2) + (10.0 if tick >= 6 else 0.0)
    with pytest.raises(InputError, match=r"every 24 s and 3.14159265 s, which have no common period"):
        combined((DAY, Timeline((0.0, 2.0), (1.0, 2.0), loop=0, period_s=3.14159265)), sum)


def test_periods_are_common_up_to_rounding():
    def half(period_s: float, *values: float) -> Timeline:
        return Timeline((0.0, period_s / 2.0), values, loop=0, period_s=period_s)

    # 7 x 3/7 of a day are 3 days
    three_days = combined((half(86400.0 * 3.0 / 7.0, 1.0, 2.0), half(86400.0, 4.0, 8.0)), sum)
    assert (three_days.period_s, len(three_days)) == (pytest.approx(259200.0, abs=1e-6), 14 + 6 - 2)
    # no row of rounding errors: at no time are both at 9
    both = combined((half(172800.0, 0.0, 9.0), half(172799.99999999997, 9.0, 0.0)), min)
    assert (both.times_s, both.values, both.period_s) == ((0.0, 86400.0), (0.0, 0.0), 172800.0)
    later = Timeline((0.0, 5.0, 86405.0), (0.0, 0.0, 9.0), loop=1, period_s=172800.0)
    other = Timeline((0.0, 5.0 + 1e-9, 86405.0), (0.0, 9.0, 0.0), loop=1, period_s=172800.0)
    assert max(combined((later, other), min).values) == max(combined((other, later), min).values) == 0.0


def test_a_series_is_moved_to_any_time():
    late = Timeline((20.0, 26.0, 38.0), (4.0, 1.0, 4.0), loop=0, period_s=24.0)
    assert late.since(5.0) == Timeline((0.0, 15.0, 21.0, 33.0), (4.0, 4.0, 1.0, 4.0), loop=1, period_s=24.0)
    assert late.since(-5.0).times_s == (0.0, 25.0, 31.0, 43.0)
    assert late.since(20.0).times_s == (0.0, 6.0, 18.0)
    # 15.7 is 4 turns of 3.2 s after 2.9 s: what comes then are the rows at 0, 1.1, 1.3 and 2.1 s of the next turn
    tenths = Timeline((0.0, 1.1, 1.3, 2.1, 2.9), (0.0, 1.0, 2.0, 3.0, 4.0), loop=0, period_s=3.2)
    for time_s in (15.7, 15.700000000000001):
        moved = tenths.since(time_s)
        assert (moved.times_s, moved.values) == ((0.0, 0.3, 1.4, 1.6, 2.4), (4.0, 0.0, 1.0, 2.0, 3.0))
    turned = tenths.turned(15.7)
    assert (turned.times_s, turned.values) == (moved.times_s, moved.values)
    ends = Timeline((0.0, 5.0), (2.0, 1.0), loop=None, period_s=9.0)
    assert (ends.since(6.0).loop, ends.since(6.0).end_s, ends.since(9.0).at(0.0)) == (None, 3.0, 1.0)


def test_what_is_moved_is_what_comes():
    @examples(300)
    @given(repeating(), st.integers(-100, 7000).map(lambda tenths: tenths / 10), st.floats(0.0, 700.0))
    def check(series: Timeline, begin_s: float, time_s: float) -> None:
        near = {series.at(begin_s + time_s + shift_s) for shift_s in (-1e-4, 1e-4)}
        assert series.since(begin_s).at(time_s) in near

    check()


edges = st.lists(st.floats(0.0, 100.0).map(lambda x: round(x, 3)), min_size=1, max_size=6, unique=True).map(sorted)


@st.composite
def repeating(draw) -> Timeline:
    """Series with any beginning before what repeats."""
    times = tuple(draw(edges))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(times), max_size=len(times)))
    loop = draw(st.integers(0, len(times) - 1))
    more_s = draw(st.floats(0.1, 50.0).map(lambda x: round(x, 3)))
    return Timeline(times, tuple(values), loop=loop, period_s=times[-1] - times[loop] + more_s)


def test_a_repetition_is_as_if_written_out():
    @examples(200)
    @given(repeating(), st.floats(0.0, 700.0), st.sampled_from([0.0, 7.5]), st.sampled_from([0.0, 30.0]))
    def check(series: Timeline, time_s: float, before_s: float, after_s: float) -> None:
        written = series.upto(1500.0)
        rows = [at for at in written.times_s if at < 700.0]
        for at in (*rows, time_s):
            assert series.at(at) == written.at(at)
            if series.repeats:
                assert series.step_after(at) == pytest.approx(written.step_after(at), rel=1e-12)
                assert series.next_change(at) == written.next_change(at)
                assert series.least(at) == min(written.at(later) for later in (at, *written.times_s) if later >= at)
            later = series.since(time_s)
            assert later.at(at) == written.at(time_s + at + 1e-5) or later.at(at) == written.at(time_s + at - 1e-5)
        around, plain = (least_around(one, before_s, after_s) for one in (series, written))
        assert [around.at(at + 1e-6) for at in rows] == [plain.at(at + 1e-6) for at in rows]

    check()


@pytest.mark.parametrize("loop", [-1, 0, 1, None])
def test_a_mean_from_0_s_is_that_of_the_steps(loop):
    """By hand 2 W until 10 s, 5 W until 30 s, and then 5 W, or the rows again; from 0 s, before the first row, too."""
    series = Timeline((4.0, 10.0), (2.0, 5.0), loop=loop, period_s=20.0)
    assert series.mean_until(8.0) == 2.0 and series.mean_until(20.0) == (10 * 2 + 10 * 5) / 20
    for end_s in (3.0, 10.0, 29.0, 77.0, 500.0):
        steps = sum(value * (end - begin) for begin, end, value in series.steps(0.0, end_s)) / end_s
        assert series.mean_until(end_s) == pytest.approx(steps, rel=1e-12)
