"""How long jobs may wait, by dates of which the day of the week is known: 1 July 2024 is a Monday."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batwatt.errors import InputError
from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.work import constant
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.schedulers.carbon.policies import MeanLengths, StartWindow, by_class, by_constraint, by_deadline

HOUR = 3600.0
DAY = 24.0
SIGNAL = Timeline.regular([1.0] * 400)
DATED = replace(SIGNAL, date_s=parse_date_s("2024-07-01T00:00Z"))


def job(length_h: float, arrival_h: float = 0.0) -> ShiftJob:
    return ShiftJob("a", arrival_h * HOUR, constant(length_h * HOUR, 1.0))


def wait_h(finish_h: float, constraint: str, clock: str = "UTC", integral: Timeline = DATED) -> float:
    """The wait of a job of 1 h that would finish at some hour from Monday 00:00 UTC."""
    return by_constraint(job(1.0, finish_h - 1.0), constraint, integral, clock).wait_s / HOUR


# from Saturday 26 October 18:00 UTC (20:00 in Berlin) to Monday 09:00, by then UTC + 1: 38 h
AUTUMN = replace(SIGNAL, date_s=parse_date_s("2024-10-26T00:00Z"))
CASES = [
    ("next-workday", "UTC", DATED, {
        8.5: 0.5,  # Monday, before 09:00
        9.0: 0.0,
        17.0: 0.0,  # not after 17:00
        17.25: 15.75,
        4 * DAY + 18.0: 15.0,  # Friday evening: Saturday 09:00
        5 * DAY + 8.0: 2 * 24 + 1.0,  # Saturday, even before 09:00: Monday
        5 * DAY + 20.0: 37.0,
        6 * DAY + 8.0: 25.0,  # Sunday, before 09:00: the next day
    }),
    ("semi_weekly", "UTC", DATED, {
        9.0: 0.0,  # Monday 09:00 itself
        9.5: 3 * DAY - 0.5,
        2 * DAY: DAY + 9.0,
        3 * DAY + 8.0: 1.0,  # Thursday, before 09:00
        3 * DAY + 10.0: 4 * DAY - 1.0,  # Thursday, after it: Monday
    }),
    # 07:30 UTC are 09:30 in Berlin in summer
    ("next-workday", "Europe/Berlin", DATED, {7.5: 0.0, 15.5: 15.5}),
    ("next-workday", "Europe/Berlin", AUTUMN, {18.0: 38.0}),
    ("next-workday", "UTC", AUTUMN, {18.0: 39.0}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "clock", "integral", "waits_h"), CASES,
    ids=["workdays", "twice a week", "a local clock", "clocks change", "in UTC"],
)  # fmt: skip
def test_waits(constraint, clock, integral, waits_h):
    assert {finish_h: wait_h(finish_h, constraint, clock, integral) for finish_h in waits_h} == waits_h


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("semi-weekly", SIGNAL, "UTC"), "needs a date, and the signal has none"),
        (("semi-weekly", DATED, "Mars/Olympus"), "'Mars/Olympus' is not a time zone"),
    ],
)
def test_constraints_that_are_none(arguments, message):
    with pytest.raises(InputError, match=message):
        by_constraint(job(1.0), *arguments)


def test_two_hours_are_long():
    assert by_class(job(1.99), (6.0, 24.0)).wait_s == 6 * HOUR
    assert by_class(job(2.0), (6.0, 24.0)).wait_s == 24 * HOUR
    assert by_class(job(2.0), (3.0,)).wait_s == 3 * HOUR


def test_mean_lengths_are_of_the_jobs_so_far():
    means, found = MeanLengths(), []
    for length_h in (1.0, 2.0, 1.5, 8.0):
        means.add(job(length_h))
        found.append(means.of(job(length_h)) / HOUR)
    assert found == [1.0, 2.0, 1.25, 5.0]


def test_a_deadline_counts_from_the_arrival():
    window = by_deadline(job(1.5, arrival_h=3.0), 4.0)
    assert (window.wait_s, window.deadline_s(job(1.5))) == (2.5 * HOUR, 7 * HOUR)
    assert by_deadline(job(4.0), 4.0).wait_s == 0.0
    with pytest.raises(InputError, match=r"job a: it takes 14400 s and must finish within 3.9 h of its arrival; allow"):
        by_deadline(job(4.0), 3.9)


@pytest.mark.parametrize("wait_s", [-1.0, float("nan"), float("inf")])
def test_a_wait_is_a_number(wait_s):
    with pytest.raises(ValueError, match="allowed to wait"):
        StartWindow(0.0, wait_s)
