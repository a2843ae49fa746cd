"""Limits of a run by time: an envelope in W, a capacity in hosts, both or none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from batwatt.model.platform import NOISE_W, Platform
from batwatt.model.series import Series, combined


class Limits:
    """The limits of a run, followed in time: `cap_w` and `capacity` hold now, infinite without such a limit.

    `next_s` is the time in s of the next change (infinite: none), `next_cap_w` and `next_capacity` hold from then on.
    `most` is how many hosts can have jobs at a time after the last change; under limits that change for ever, now and
    then. `idle_w` is the power of all hosts without a job, `most_w` with one each.
    """

    def __init__(self, platform: Platform, envelope: Series | None, capacity: Series | None) -> None:
        states = [host.pstates[host.initial_pstate] for host in platform.hosts]
        self.idle_w = sum(state.idle_w for state in states)
        extra_w = [max(0.0, state.full_w - state.idle_w) for state in states]
        self.most_w = self.idle_w + sum(extra_w)
        self.active = envelope is not None or capacity is not None
        self._envelope, self._capacity = envelope, capacity
        series = [one for one in (envelope, capacity) if one is not None]
        numbers: dict[tuple[float, ...], int] = {}
        self.both: Series | None = None
        """The limits as one series of numbers of their values, which repeats if one of them does."""
        last_s: Sequence[float] = (0.0,)
        if series:
            self.both = combined(series, lambda values: numbers.setdefault(tuple(values), len(numbers)))
            last_s = self.both.times_s[-1 if self.both.loop is None else self.both.loop :]
        sums_w = np.cumsum(extra_w)
        self.most = max(self._hosts(sums_w, time_s) for time_s in last_s)
        self.begin()

    def _hosts(self, sums_w: npt.NDArray[np.float64], time_s: float) -> int:
        slack_w = _value(self._envelope, time_s) - self.idle_w + NOISE_W
        fed = int(np.searchsorted(sums_w, slack_w, side="right"))
        return int(min(fed, _value(self._capacity, time_s)))

    def begin(self) -> None:
        """Go back to 0 s."""
        self._take(0.0)

    def _take(self, now_s: float) -> None:
        self.cap_w, self.capacity = _value(self._envelope, now_s), _value(self._capacity, now_s)
        series = (one for one in (self._envelope, self._capacity) if one is not None)
        self.next_s = min((one.next_change(now_s) for one in series), default=math.inf)
        next_s = now_s if self.next_s == math.inf else self.next_s
        self.next_cap_w, self.next_capacity = _value(self._envelope, next_s), _value(self._capacity, next_s)

    def step(self) -> None:
        """Go on to the next change."""
        self._take(self.next_s)


def _value(series: Series | None, time_s: float) -> float:
    """Return the limit of a series at a time, infinite without a series."""
    return math.inf if series is None else series.at(time_s)
