"""The optimum of phase-aware suspend/resume by looking at every schedule there is, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

Schedule = tuple[tuple[int, int, int], ...]
"""(first slot of the start-up, progress before, progress after) of each segment."""


def schedules(slots: int, startup: int, work: int, marks: frozenset[int] | None, starts: int) -> Iterator[Schedule]:
    """All schedules: suspended only at `marks` of progress unless None, with at most `starts` starts."""

    def go_on(at: int, done: int, so_far: Schedule) -> Iterator[Schedule]:
        if done == work:
            yield so_far
            return
        if len(so_far) == starts:
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
    starts: int | None = None,
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
    for schedule in schedules(len(signal), len(startup_w), len(work_w), marks, starts or len(work_w)):
        parts = [emitted(*segment) for segment in schedule]
        if None in parts:
            continue
        total = sum(part for part in parts if part is not None)
        best = total if best is None else min(best, total)
    return best
