"""The machine-learning jobs of Let's Wait Awhile, drawn as it draws them."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from batwatt.checks import rng_of
from batwatt.errors import InputError
from batwatt.model.phases import constant
from batwatt.systems.carbon.execution import ShiftJob

FIRST_DAY = datetime(2020, 1, 1)
"""0 s of these jobs, by the local clock."""
_DAYS = 366
_DAY_MIN = 1440
_STEP_MIN = 30
_STARTS_MIN = range(9 * 60, 17 * 60, _STEP_MIN)
_DURATIONS_MIN = range(4 * 60, 90 * 60, _STEP_MIN)
_SATURDAY = 5


def ml_jobs(n: int = 3387, seed: int = 0) -> list[ShiftJob]:
    """`n` jobs of 1 W that arrive on workdays of 2020 in 09:00 .. 16:30 and take 4 h .. 89.5 h, in steps of 30 min.

    The number of jobs of each workday is multinomial, times and durations are uniform. Dates are s from
    2020-01-01T00:00. With seed 0 they are LWA's own, job by job. Raises InputError.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not n >= 1:
        raise InputError("option n", f"must be a whole number of jobs >= 1, got {n!r}", "give for instance 3387")
    rng = rng_of(seed, "option seed")
    workdays = [day for day in range(_DAYS) if (FIRST_DAY + timedelta(days=day)).weekday() < _SATURDAY]
    counts = rng.multinomial(n, [1 / len(workdays)] * len(workdays))
    arrivals_min: list[int] = []
    for day, count in zip(workdays, counts.tolist(), strict=True):
        times = np.sort(rng.choice(_STARTS_MIN, size=count))
        arrivals_min += (day * _DAY_MIN + times).tolist()
    durations_min = rng.choice(_DURATIONS_MIN, size=n).tolist()
    return [
        ShiftJob(str(index), 60.0 * arrival, constant(60.0 * duration, 1.0))
        for index, (arrival, duration) in enumerate(zip(arrivals_min, durations_min, strict=True))
    ]
