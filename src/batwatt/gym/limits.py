"""Limits of a run by time: an envelope in W, a capacity in hosts, both or none."""

from __future__ import annotations

import math

import numpy as np

from batwatt.model.platform import NOISE_W, Platform
from batwatt.model.series import Series


class Limits:
    """The limits of a run, followed in time: `cap_w` and `capacity` hold now, infinite without such a limit.

    `changes` are the times in s > 0 of changes, `next_s` is the next one (infinite: none), `most` how many hosts can
    have jobs at a time after the last change. `idle_w` is the power of all hosts without a job, `most_w` with one each.
    """

    def __init__(self, platform: Platform, envelope: Series | None, capacity: Series | None) -> None:
        states = [host.pstates[host.initial_pstate] for host in platform.hosts]
        self.idle_w = sum(state.idle_w for state in states)
        extra_w = [max(0.0, state.full_w - state.idle_w) for state in states]
        self.most_w = self.idle_w + sum(extra_w)
        self.active = envelope is not None or capacity is not None
        times = {time for series in (envelope, capacity) if series for time in series.times_s if time > 0.0}
        rows = [(time, _value(envelope, time), _value(capacity, time)) for time in (0.0, *sorted(times))]
        # where nothing changes there is no step
        rows = [row for index, row in enumerate(rows) if not index or row[1:] != rows[index - 1][1:]]
        self.changes = [time for time, _, _ in rows[1:]]
        self._caps_w, self._capacities = [cap for _, cap, _ in rows], [hosts for _, _, hosts in rows]
        slack_w = self._caps_w[-1] - self.idle_w + NOISE_W
        fed = int(np.searchsorted(np.cumsum(extra_w), slack_w, side="right"))
        self.most = int(min(fed, self._capacities[-1]))
        self.begin()

    def begin(self) -> None:
        """Go back to 0 s."""
        self._take(0)

    def _take(self, index: int) -> None:
        self._index = index
        self.cap_w, self.capacity = self._caps_w[index], self._capacities[index]
        last = index == len(self.changes)
        self.next_s = math.inf if last else self.changes[index]
        self.next_cap_w = self.cap_w if last else self._caps_w[index + 1]
        self.next_capacity = self.capacity if last else self._capacities[index + 1]

    def step(self) -> None:
        """Go on to the next change."""
        self._take(self._index + 1)


def _value(series: Series | None, time_s: float) -> float:
    """Return the limit of a series at a time, infinite without a series."""
    return math.inf if series is None else series.at(time_s)
