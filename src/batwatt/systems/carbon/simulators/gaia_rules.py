"""When GAIA starts a job, or the pieces of one: its rules in ticks of 5 s (docs/explanation/carbon-simulators.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batwatt.model.phases import Array
from batwatt.units import HOUR_S

TICK_S = 5.0
HOUR = 720
"""Ticks in an hour."""
HOURS = 720
"""GAIA never looks beyond so many hours of a signal."""
SHORT = 2 * HOUR
"""Shorter jobs are short, all others long."""
_DAY = 24 * HOUR
_SHARE = 0.3
_SAME_EXPECTED = 2


class NoRoomError(ValueError):
    """A job may run beyond the end of the signal: GAIA stops there."""


@dataclass(frozen=True)
class Trace:
    """A signal by the hour, g/kWh, as GAIA keeps it: `hours` [n] has the g of 1 W in a tick of each hour."""

    hours: Array

    @classmethod
    def of(cls, hourly: Array) -> Trace:
        """That of hourly values; what is beyond 720 hours is left out."""
        return cls(hourly[:HOURS] / 1000 / HOUR)

    @cached_property
    def ticks(self) -> Array:
        """The same of each tick."""
        return np.repeat(self.hours, HOUR)

    def __len__(self) -> int:
        return HOUR * len(self.hours)

    def grams(self, begin: int, length: int, cpus: int) -> float:
        """What a job emits at 1 W per cpu: the sum over its ticks, then times cpus, as GAIA rounds it."""
        return float(np.add.reduce(self.ticks[begin : begin + length])) * cpus


@dataclass(frozen=True)
class Queues:
    """How long jobs wait, in ticks, and how long they are expected to run: `waits` of short and of long ones, or one.

    `expected`: the mean lengths of both classes, unused with one wait (GAIA then expects 2 ticks).
    """

    waits: tuple[int, ...]
    expected: tuple[int, int]

    @classmethod
    def of(cls, wait_h: tuple[float, ...], lengths: Array) -> Queues:
        """Those of waits in h and of all jobs' lengths in ticks, not rounded; 2 h count in both means."""
        means = [lengths[lengths <= SHORT], lengths[lengths >= SHORT]]
        short, long = (int(found.mean()) if len(found) else 0 for found in means)
        return cls(tuple(int(wait * HOUR_S / TICK_S) for wait in wait_h), (short, long))

    def wait(self, length: int) -> int:
        """How long a job of `length` ticks may wait."""
        return self.waits[0 if len(self.waits) == 1 or length < SHORT else 1]

    def expects(self, length: int) -> int:
        """How long such a job is expected to run."""
        if len(self.waits) == 1:
            return _SAME_EXPECTED
        return self.expected[0 if length < SHORT else 1]


@dataclass(frozen=True)
class GaiaJob:
    """A job in ticks; `spot_class` if its unrounded length is at most 2 h; `submit`: when GAIA takes it in."""

    index: int
    arrival: int
    submit: int
    length: int
    cpus: int
    spot_class: bool


Piece = tuple[int, int]
"""Begin and length in ticks."""
StartRule = Callable[[GaiaJob, Trace, Queues], int]


def immediate(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """k = 0."""
    return 0


def lowest(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """The first argmin over ticks k in 0..W of c(n + k)."""
    last = task.submit + queues.wait(task.length)
    return int(np.argmin(trace.ticks[task.submit : last + 1]))


def oracle(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """The first argmin over k in {0, H, 2H, ...} up to W of C_k, the sum of c over [n + k, n + k + l)."""
    return _least(task, trace, queues, task.length)


def waiting(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """As oracle, with the expected length e for l."""
    return _least(task, trace, queues, queues.expects(task.length))


def cst_oracle(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """The first argmax over the same k of (C_0 - C_k) / (k + l)."""
    return _most_per_time(task, trace, queues, task.length)


def cst_average(task: GaiaJob, trace: Trace, queues: Queues) -> int:
    """As cst_oracle, with the expected length e for l."""
    return _most_per_time(task, trace, queues, queues.expects(task.length))


START_RULES: dict[str, StartRule] = {
    "immediate": immediate,
    "lowest": lowest,
    "oracle": oracle,
    "waiting": waiting,
    "cst-oracle": cst_oracle,
    "cst-average": cst_average,
}
"""By name: by how many ticks k a job that arrives at n waits. Its length is l, it may wait W, c is the signal."""


def cheapest_pieces(task: GaiaJob, trace: Trace, queues: Queues) -> list[Piece]:
    """The l cheapest ticks of [n, n + l + W), the earliest of equals."""
    parts = list(_hours(task, trace, queues))
    values = trace.hours[[begin // HOUR for begin, _ in parts]]
    left, taken = task.length, [0] * len(parts)
    for index in np.argsort(values, kind="stable"):
        taken[index] = min(left, parts[index][1])
        left -= taken[index]
    return _joined((begin, some) for (begin, _), some in zip(parts, taken, strict=True) if some)


def threshold_pieces(task: GaiaJob, trace: Trace, queues: Queues) -> list[Piece]:
    """A tick runs if c < q, or if W ticks have been waited; q: the 0.3-quantile of c over the 24 h from n."""
    q, left, patience = _quantile(trace, task.submit), task.length, queues.wait(task.length)
    pieces: list[Piece] = []
    for begin, ticks in _hours(task, trace, queues):
        waits = 0 if trace.hours[begin // HOUR] < q else min(patience, ticks)
        runs = min(ticks - waits, left)
        patience -= waits
        if runs:
            pieces.append((begin + waits, runs))
        left -= runs
        if not left:
            break
    return _joined(iter(pieces))


def _least(task: GaiaJob, trace: Trace, queues: Queues, length: int) -> int:
    return HOUR * int(np.argmin(_sums(task, trace, queues, length)))


def _most_per_time(task: GaiaJob, trace: Trace, queues: Queues, length: int) -> int:
    sums = _sums(task, trace, queues, length)
    offsets = HOUR * np.arange(len(sums))
    return HOUR * int(np.argmax((sums[0] - sums) / (offsets + length)))


def _sums(task: GaiaJob, trace: Trace, queues: Queues, length: int) -> Array:
    """C_k of all candidates k = 0, H, ... that end before the signal does; raises NoRoomError if there is none."""
    room = len(trace) - task.submit - length
    if room < 0:
        raise NoRoomError
    begins = range(task.submit, task.submit + min(queues.wait(length), room) + 1, HOUR)
    return np.array([trace.grams(begin, length, task.cpus) for begin in begins])


def _hours(task: GaiaJob, trace: Trace, queues: Queues) -> Iterator[Piece]:
    """The hours of [n, n + l + W), those at its ends as far as they are in it; raises NoRoomError."""
    at, end = task.submit, task.submit + task.length + queues.wait(task.length)
    if end > len(trace):
        raise NoRoomError
    while at < end:
        until = min((at // HOUR + 1) * HOUR, end)
        yield at, until - at
        at = until


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for begin, length in pieces:
        if found and sum(found[-1]) == begin:
            found[-1] = found[-1][0], found[-1][1] + length
        else:
            found.append((begin, length))
    return found


def _quantile(trace: Trace, begin: int) -> float:
    """The 0.3-quantile of the ticks of 24 h, or until the signal ends, by linear interpolation (numpy's roundings)."""
    end = min(begin + _DAY, len(trace))
    hours = np.arange(begin // HOUR, (end - 1) // HOUR + 1)
    counts = np.minimum((hours + 1) * HOUR, end) - np.maximum(hours * HOUR, begin)
    order = np.argsort(trace.hours[hours], kind="stable")
    reached = np.cumsum(counts[order])
    at = (end - begin - 1) * _SHARE
    below = int(at)
    low, high = trace.hours[hours[order[np.searchsorted(reached, [below, below + 1], "right").clip(0, len(hours) - 1)]]]
    share = at - below
    return float(high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share)
