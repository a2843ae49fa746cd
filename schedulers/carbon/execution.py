"""A job that runs in some intervals: start-ups, progress, energy, and the emissions of all that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batwatt.model.timeline import Timeline
from batwatt.model.work import PhaseModel, ShiftJob, Steps
from batwatt.units import PRECISION_S

Interval = tuple[float, float]
"""Begin and end in s, begin < end."""


@dataclass(frozen=True)
class Segment:
    """One run of a job: from `begin_s` a start-up of `startup_s` (cut short if it ends before), then work.

    The work begins at progress `from_s` and lasts until `to_s`; both are equal if the start-up took all. `machines`
    are those that were reserved for it; empty: any.
    """

    begin_s: float
    startup_s: float
    from_s: float
    to_s: float
    machines: tuple[int, ...] = ()

    @property
    def end_s(self) -> float:
        """End in s: its suspension, or the completion of the job."""
        return self.begin_s + self.startup_s + (self.to_s - self.from_s)

    def steps(self, model: PhaseModel) -> Steps:
        """Return its power, from `begin_s`."""
        first = model.startup_steps.part(0.0, self.startup_s)
        then = model.work_steps.part(self.from_s, self.to_s)
        edges = np.concatenate([first.edges_s, first.edges_s[-1] + then.edges_s[1:]])
        return Steps(edges, np.concatenate([first.watts, then.watts]))


@dataclass(frozen=True)
class Execution:
    """All segments of a job, in order; they end with all of its work done."""

    job: ShiftJob
    segments: tuple[Segment, ...]

    @property
    def begin_s(self) -> float:
        """Its first start."""
        return self.segments[0].begin_s

    @property
    def end_s(self) -> float:
        """Its completion."""
        return self.segments[-1].end_s

    @cached_property
    def energy_j(self) -> float:
        """Energy on all of its cpus, J."""
        return sum(self.energies())

    def energies(self) -> Iterator[float]:
        """Yield the energy of each segment on all of the job's cpus, J."""
        for segment in self.segments:
            yield self.job.cpus * segment.steps(self.job.model).energy_j

    def emitted(self, integral: Timeline) -> float:
        """Return the carbon in g (or cost) under a signal, on all of its cpus."""
        return sum(self.emissions(integral))

    def emissions(self, integral: Timeline) -> Iterator[float]:
        """Yield the carbon in g (or cost) of each segment under a signal, on all of the job's cpus."""
        for segment in self.segments:
            yield self.job.cpus * float(integral.of_steps(segment.begin_s, segment.steps(self.job.model)))


def carry_out(
    job: ShiftJob, intervals: Sequence[Interval], *, checkpoints: bool = False, apart: bool = False
) -> Execution:
    """Return the execution of a job in these intervals, which are in order and apart: the truth of any plan.

    Each interval begins with the whole start-up, then work goes on where it was (with `checkpoints`: at the last
    checkpoint that had been reached). Intervals that touch are one, unless `apart`. It ends when all work is done;
    if that is not so at the end of the last interval, it runs on until it is: a plan without start-ups finishes
    later.
    """
    model = job.model
    done_s, segments = 0.0, []
    joined = _joined(intervals, apart)
    for index, (begin, end) in enumerate(joined):
        startup = min(model.startup_s, end - begin)
        room = max(0.0, end - begin - model.startup_s)
        # an end that rounding put a little too early is not one
        last = index == len(joined) - 1 or done_s + room >= model.work_s - PRECISION_S
        if last:
            startup, to = model.startup_s, model.work_s
        else:
            to = done_s + room
        segments.append(Segment(begin, startup, done_s, to))
        if last:
            break
        done_s = _saved(model, to) if checkpoints else to
    return Execution(job, tuple(segments))


def _joined(intervals: Sequence[Interval], apart: bool) -> list[Interval]:
    joined: list[Interval] = []
    for begin, end in intervals:
        if not begin < end:
            raise ValueError(f"an interval must begin before it ends, got {begin!r} and {end!r}")
        if joined and begin - joined[-1][1] < -PRECISION_S:
            raise ValueError(f"intervals must follow each other, got {joined[-1]!r} and {(begin, end)!r}")
        if joined and not apart and begin - joined[-1][1] <= PRECISION_S:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    if not joined:
        raise ValueError("a job needs an interval")
    return joined


def _saved(model: PhaseModel, progress_s: float) -> float:
    """Return the progress in s at the last checkpoint up to some progress."""
    return max((at for at in model.checkpoints_s if at <= progress_s + PRECISION_S), default=0.0)
