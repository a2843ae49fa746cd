"""Processors of the jobs of a plan in a picture: neighbours, and the same ones as long as a job stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from batwatt.systems.checkpoint.instance import JobPhase

ROUNDS, LOOKS = 40, 10**9
"""Most rounds of an arrangement, each with the stays first that did not fit, and most looks of all rounds."""
SAME = 1e-9
"""Times that differ by less than this, relatively, are one: they are sums."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time with `processors` processors, from `begin_s` to `end_s`."""

    begin_s: float
    end_s: float
    processors: int


@dataclass(frozen=True, slots=True)
class Stay:
    """A stay of a job on `processors` processors without a break; its phases follow each other, in absolute times."""

    job: str
    processors: int
    phases: tuple[JobPhase, ...]

    @property
    def begin_s(self) -> float:
        """Begin in s."""
        return self.phases[0].begin_s

    @property
    def end_s(self) -> float:
        """End in s."""
        return self.phases[-1].end_s


@dataclass(frozen=True, slots=True)
class Placed:
    """A stay on groups [low, high[ of neighbouring processors."""

    stay: Stay
    bands: tuple[tuple[int, int], ...]


def stays(job: str, processors: int, phases: Iterable[JobPhase]) -> list[Stay]:
    """Return the stays of a job: its phases, cut where it is on no processors."""
    groups: list[list[JobPhase]] = []
    for phase in sorted(phases, key=lambda phase: phase.begin_s):
        if groups and phase.begin_s - groups[-1][-1].end_s <= SAME * max(1.0, phase.begin_s):
            groups[-1].append(phase)
        else:
            groups.append([phase])
    return [Stay(job, processors, tuple(group)) for group in groups]


def arrange(stretches: Sequence[Stretch], all_stays: Sequence[Stay]) -> list[Placed]:
    """Return processors for each stay: the same ones as long as it lasts, and neighbours, as far as possible.

    First fit, the ones that last longest first; what had to be taken apart is put first and all is tried again. A stay
    that fits nowhere for its whole time is cut at the times at which another one comes or goes. Raises ValueError if
    more processors are wanted than there are.
    """
    grid = _Grid(stretches, all_stays)
    orders: list[Callable[[Stay], tuple[float, ...]]] = [
        lambda stay: (stay.begin_s - stay.end_s, -stay.processors),
        lambda stay: (stay.begin_s, -stay.end_s),
        lambda stay: (-stay.end_s, stay.begin_s),
    ]
    arrangements: list[tuple[int, list[Placed]]] = []
    for order in orders:
        queue = sorted(all_stays, key=order)
        for _ in range(grid.rounds):
            placed, apart = grid.place(queue)
            arrangements.append((len(placed) + sum(len(each.bands) for each in placed), placed))
            if not apart:
                return placed
            queue = [*apart, *(stay for stay in queue if stay not in apart)]
    return min(arrangements, key=lambda each: each[0])[1]


class _Grid:
    """Processors that are there between one time and the next."""

    def __init__(self, stretches: Sequence[Stretch], all_stays: Sequence[Stay]) -> None:
        both: tuple[Stretch | Stay, ...] = (*stretches, *all_stays)
        times = np.unique([time for each in both for time in (each.begin_s, each.end_s)])
        self._same_s = SAME * max(1.0, float(times[-1]))
        self._times = times[np.diff(times, prepend=-np.inf) > self._same_s]
        self._away = np.zeros((len(self._times) - 1, max(each.processors for each in stretches)), dtype=bool)
        for each in stretches:
            self._away[self._cells(each), each.processors :] = True

        looks = len(all_stays) * self._away.size
        self.rounds = max(1, min(ROUNDS, LOOKS // max(1, looks)))

    def _cells(self, each: Stretch | Stay) -> slice:
        begin, end = np.searchsorted(self._times, (each.begin_s - self._same_s, each.end_s - self._same_s))
        return slice(int(begin), int(end))

    def place(self, queue: Sequence[Stay]) -> tuple[list[Placed], list[Stay]]:
        """Place stays one after another; return also those that got no neighbours, or moved."""
        taken = self._away.copy()
        placed: list[Placed] = []
        apart: list[Stay] = []
        for stay in queue:
            pieces = self._pieces(taken, stay)
            if len(pieces) > 1 or len(pieces[0].bands) > 1:
                apart.append(stay)
            placed += pieces
        return placed, apart

    def _pieces(self, taken: Any, stay: Stay) -> list[Placed]:
        cells = self._cells(stay)
        bands = neighbours(~taken[cells].any(axis=0), stay.processors)
        if bands:
            for low, high in bands:
                taken[cells, low:high] = True
            return [Placed(stay, bands)]
        if cells.stop - cells.start == 1:
            raise ValueError(f"job {stay.job} has no {stay.processors} processors at {stay.begin_s:g} s")
        # it moves as late as it can
        latest = next(
            (cell for cell in range(cells.stop - 1, cells.start, -1)
             if neighbours(~taken[cells.start : cell].any(axis=0), stay.processors)),
            cells.start + 1,
        )  # fmt: skip
        return [piece for part in _cut(stay, float(self._times[latest])) for piece in self._pieces(taken, part)]


def _cut(stay: Stay, time_s: float) -> tuple[Stay, Stay]:
    before = tuple(replace(p, end_s=min(p.end_s, time_s)) for p in stay.phases if p.begin_s < time_s)
    after = tuple(replace(p, begin_s=max(p.begin_s, time_s)) for p in stay.phases if p.end_s > time_s)
    return replace(stay, phases=before), replace(stay, phases=after)


def neighbours(free: Any, processors: int) -> tuple[tuple[int, int], ...]:
    """Return the lowest group of free neighbours that is wide enough, else the widest, cut; () if too few are free."""
    if int(free.sum()) < processors:
        return ()
    edges = np.flatnonzero(np.diff(np.concatenate(([0], free.astype(np.int8), [0]))))
    groups = [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]
    for low, high in groups:
        if high - low >= processors:
            return ((low, low + processors),)
    bands = []
    for low, high in sorted(groups, key=lambda group: group[0] - group[1]):
        width = min(high - low, processors)
        bands.append((low, low + width))
        processors -= width
        if not processors:
            break
    return tuple(sorted(bands))
