"""Power checks: the power that running jobs are taken to draw together, which must stay under the cap.

Watts are dynamic here: above what the hosts draw when idle, which they draw whether they have a job or not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from batwatt.model.platform import NOISE_W
from batwatt.scheduling.registry import register

MOST_SETS: Final = 5000
"""Sets of jobs that a knapsack tries."""


@dataclass(frozen=True, slots=True)
class Load:
    """Dynamic power of a job or of several together: full watts of the hosts, mean and maximum in W, variance in W²."""

    node_w: float = 0.0
    mean_w: float = 0.0
    variance_w2: float = 0.0
    max_w: float = 0.0

    def plus(self, other: Load) -> Load:
        """Return both together: jobs are independent of each other."""
        return Load(
            self.node_w + other.node_w,
            self.mean_w + other.mean_w,
            self.variance_w2 + other.variance_w2,
            self.max_w + other.max_w,
        )

    @classmethod
    def of(cls, loads: Iterable[Load]) -> Load:
        """Return all loads together."""
        rows = [(load.node_w, load.mean_w, load.variance_w2, load.max_w) for load in loads]
        return cls(*map(math.fsum, zip(*rows, strict=True))) if rows else cls()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may be backfilled: hosts, load, and whether it runs past the reservation."""

    hosts: int
    load: Load
    late: bool


@dataclass(frozen=True, slots=True)
class Headroom:
    """Room for backfilled jobs: free hosts and the present load; past the reservation fewer, with another load.

    `cap_w` is the dynamic power that the cap leaves.
    """

    hosts: int
    load: Load
    late_hosts: int
    late_load: Load
    cap_w: float


class PowerCheck(ABC):
    """Base of power checks."""

    name: ClassVar[str] = ""

    @abstractmethod
    def bound_w(self, load: Load) -> float:
        """Return the power that jobs are taken to draw together, in W; more for more jobs."""

    def fits(self, load: Load, cap_w: float) -> bool:
        """Return whether the power of a load is within the cap."""
        return self.bound_w(load) <= cap_w + NOISE_W

    def pick(self, candidates: Sequence[Candidate], room: Headroom) -> Sequence[int]:
        """Return the candidates to try, as positions: all of them, in order."""
        return range(len(candidates))

    def after(self, job: Candidate, room: Headroom) -> Headroom | None:
        """Return the room that is left when a candidate starts, None if it may not."""
        hosts, load = room.hosts - job.hosts, room.load.plus(job.load)
        if hosts < 0 or not self.fits(load, room.cap_w):
            return None
        if not job.late:
            return Headroom(hosts, load, room.late_hosts, room.late_load, room.cap_w)
        late_hosts, late_load = room.late_hosts - job.hosts, room.late_load.plus(job.load)
        if late_hosts < 0 or not self.fits(late_load, room.cap_w):
            return None
        return Headroom(hosts, load, late_hosts, late_load, room.cap_w)


@register("power_check", "node")
class FullWatts(PowerCheck):
    """Every host with a job draws its full watts: no prediction, and never too little."""

    def bound_w(self, load: Load) -> float:
        """Return full watts."""
        return load.node_w


@register("power_check", "mean")
class SumOfMeans(PowerCheck):
    """The sum of the predicted means: about as often too little as too much."""

    def bound_w(self, load: Load) -> float:
        """Return the sum of means, in W."""
        return load.mean_w


@register("power_check", "max")
class SumOfMaxima(PowerCheck):
    """The sum of the predicted maxima, as if all jobs drew them at once."""

    def bound_w(self, load: Load) -> float:
        """Return the sum of maxima, in W."""
        return load.max_w


@register("power_check", "gaussian")
class Gaussian(PowerCheck):
    """The sum of the means and `sigma` times the root of the summed variances: a quantile of a normal distribution."""

    def __init__(self, sigma: float = 1.0) -> None:
        if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0.0 <= sigma <= 100.0:
            raise ValueError(f"sigma must be from 0 to 100, got {sigma!r}")
        self.sigma = float(sigma)

    def bound_w(self, load: Load) -> float:
        """Return the sum of means and a multiple of its deviation, in W."""
        return load.mean_w + self.sigma * math.sqrt(load.variance_w2)


@register("power_check", "knapsack")
class Knapsack(SumOfMeans):
    """Backfills the set of jobs that uses most hosts within hosts and predicted means.

    Branch and bound over the first `depth` candidates of the queue, the earlier ones first among equals; it stops
    after `MOST_SETS` sets that were tried, with the best one so far.
    """

    def __init__(self, depth: int = 32) -> None:
        if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= 1_000_000:
            raise ValueError(f"depth must be a whole number from 1 to 1000000, got {depth!r}")
        self.depth = depth

    def pick(self, candidates: Sequence[Candidate], room: Headroom) -> list[int]:
        """Return the best set, as positions."""
        jobs = candidates[: self.depth]
        # what all jobs from here on could add
        rest = [sum(job.hosts for job in jobs[index:]) for index in range(len(jobs) + 1)]
        best: list[int] = []
        most = tried = 0
        todo: list[tuple[int, int, Headroom, list[int]]] = [(0, 0, room, [])]
        while todo and tried < MOST_SETS:
            index, hosts, left, subset = todo.pop()
            tried += 1
            if hosts > most:
                most, best = hosts, subset
            if index == len(jobs) or hosts + min(rest[index], left.hosts) <= most:
                continue
            # that without the job is looked at later
            todo.append((index + 1, hosts, left, subset))
            after = self.after(jobs[index], left)
            if after is not None:
                todo.append((index + 1, hosts + jobs[index].hosts, after, [*subset, index]))
        return best
