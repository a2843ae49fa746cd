"""Windows in which a job may start: by its length, by a deadline, or until people come to work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from batwatt.checks import time_zone
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.clock import date_s_of
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.units import HOUR_S, PRECISION_S

SHORT_S = 2 * HOUR_S
"""Jobs shorter than this are short, all others long (the two classes of GAIA)."""
_MORNING_H, _EVENING_H = 9.0, 17.0
_MONDAY, _THURSDAY, _SATURDAY, _SUNDAY = 0, 3, 5, 6


@dataclass(frozen=True)
class StartWindow:
    """Window [`arrival_s`, `arrival_s` + `wait_s`] for the start of an uninterrupted job. Raises ValueError."""

    arrival_s: float
    wait_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.wait_s < math.inf:
            raise ValueError(f"a job must be allowed to wait >= 0 s, got {self.wait_s!r}")

    @property
    def latest_s(self) -> float:
        """The latest start of a job that runs in one piece."""
        return self.arrival_s + self.wait_s

    def after(self, time_s: float) -> StartWindow:
        """Return the rest of the window from a time on, which is one start at least."""
        if time_s <= self.arrival_s:
            return self
        return StartWindow(time_s, max(self.latest_s - time_s, 0.0))

    def deadline_s(self, job: ShiftJob) -> float:
        """Return the time in s by which the job must have finished."""
        return self.latest_s + job.length_s


def is_short(job: ShiftJob) -> bool:
    """Return whether the job is of the short class."""
    return job.length_s < SHORT_S


def expected_lengths(jobs: Sequence[ShiftJob]) -> dict[bool, float]:
    """Return the mean length in s of the short jobs (True) and of the long ones (False), if there are any."""
    classes: dict[bool, list[float]] = {}
    for job in jobs:
        classes.setdefault(is_short(job), []).append(job.length_s)
    return {short: math.fsum(lengths) / len(lengths) for short, lengths in classes.items()}


def check_limits(deadline_h: float | None, constraint: str | None) -> None:
    """Raise InputError if a constraint is unknown, or there is a deadline too."""
    if constraint is not None and _kind(constraint) not in CONSTRAINTS:
        raise UnknownNameError("option constraint", "constraint", constraint, CONSTRAINTS, "Take one of these.")
    if deadline_h is not None and constraint is not None:
        raise InputError("options", "have both deadline_h and constraint", "give one of them")


def _kind(constraint: str) -> str:
    return constraint.lower().replace("_", "-")


def start_window(
    job: ShiftJob,
    integral: SignalIntegral,
    wait_h: Sequence[float],
    deadline_h: float | None,
    constraint: str | None,
    clock: str = "UTC",
) -> StartWindow:
    """Return the window by the deadline or the constraint, if there is one, else by class. Raises InputError."""
    if deadline_h is not None:
        return by_deadline(job, deadline_h)
    return by_class(job, wait_h) if constraint is None else by_constraint(job, constraint, integral, clock)


def by_class(job: ShiftJob, wait_h: Sequence[float]) -> StartWindow:
    """Return the window of a job: `wait_h[0]` h if it is short, `wait_h[1]` h if long; a single value is for all."""
    return StartWindow(job.arrival_s, HOUR_S * wait_h[0 if len(wait_h) == 1 or is_short(job) else 1])


def by_deadline(job: ShiftJob, deadline_h: float) -> StartWindow:
    """Return the window of a job to finish within `deadline_h` h of its arrival. Raises InputError if it cannot."""
    wait_s = deadline_h * HOUR_S - job.length_s
    if not wait_s >= -PRECISION_S:
        problem = f"it takes {job.length_s:g} s and must finish within {deadline_h:g} h of its arrival"
        raise InputError(f"job {job.id}", problem, f"allow at least {job.length_s / HOUR_S:g} h")
    return StartWindow(job.arrival_s, max(wait_s, 0.0))


def by_constraint(job: ShiftJob, constraint: str, integral: SignalIntegral, clock: str = "UTC") -> StartWindow:
    """Return the window until people can tell the difference (Let's Wait Awhile), by the local clock `clock`.

    W = target - (arrival + length), where the target follows from when the job would finish if it started at once.
    The signal must tell its date. Raises InputError.
    """
    kind = _kind(constraint)
    if not integral.begin:
        problem = f"{kind} needs a date, and the signal has none"
        raise InputError(integral.source, problem, "take a signal with dates, or say how many hours jobs may wait")
    begin = datetime.fromtimestamp(date_s_of(integral.begin), UTC)
    # whole microseconds, so that 09:00 is 09:00
    finish = begin + timedelta(microseconds=round((job.arrival_s + job.length_s) * 1e6))
    target = CONSTRAINTS[kind](finish.astimezone(time_zone("options", "clock", clock)))
    return StartWindow(job.arrival_s, (target.astimezone(UTC) - finish.astimezone(UTC)).total_seconds())


def next_workday(finish: datetime) -> datetime:
    """Return the next morning at 9 for a finish in the evening or at night, the finish itself in working hours.

    On Saturday: Monday 09:00. On Sunday or after 17:00: 09:00 of the next day (so Friday evening: Saturday). Before
    09:00: 09:00 of that day. Else the finish itself.
    """
    midnight = finish.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    hour = (finish.replace(tzinfo=None) - midnight).total_seconds() / HOUR_S
    if finish.weekday() == _SATURDAY:
        return _morning(finish, 2)
    if finish.weekday() == _SUNDAY or hour > _EVENING_H:
        return _morning(finish, 1)
    return _morning(finish, 0) if hour < _MORNING_H else finish


def semi_weekly(finish: datetime) -> datetime:
    """Return the next Monday or Thursday 09:00, whichever is first, at or after the finish."""
    days = range(8)
    mornings = (_morning(finish, day) for day in days if (finish.weekday() + day) % 7 in (_MONDAY, _THURSDAY))
    return next(morning for morning in mornings if morning >= finish)


CONSTRAINTS: dict[str, Callable[[datetime], datetime]] = {"next-workday": next_workday, "semi-weekly": semi_weekly}
"""Constraints by name: from the finish to the latest finish, both by the local clock."""


def _morning(moment: datetime, days: int) -> datetime:
    return (moment + timedelta(days=days)).replace(hour=int(_MORNING_H), minute=0, second=0, microsecond=0, fold=0)
