"""Jobs in phases: the power of a job at each moment of its run (chapter 4 of the carbon thesis, Listing 4.4).

A start or a resumption of the job runs its whole start-up; the work phases follow, and completed work is saved while
the job is suspended. Each phase has a duration and a constant power: power is a step function of time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from batwatt.model.workload import MOST_CPUS, Composed, Delay, Parallel, Workload

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of `duration_s` > 0 at `power_w` >= 0, in W on one cpu; a checkpoint phase ends with all work saved.

    Raises ValueError.
    """

    name: str
    duration_s: float
    power_w: float
    is_checkpoint: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.duration_s < math.inf:
            raise ValueError(f"phase {self.name!r}: duration must be > 0 s and finite, got {self.duration_s!r}")
        if not 0.0 <= self.power_w < math.inf:
            raise ValueError(f"phase {self.name!r}: power must be >= 0 W and finite, got {self.power_w!r}")


@dataclass(frozen=True)
class Steps:
    """Power by time: `watts[i]` holds in [`edges_s[i]`, `edges_s[i + 1]`[; edges begin at 0. Shapes [n + 1], [n]."""

    edges_s: Array
    watts: Array

    @classmethod
    def of(cls, phases: Sequence[Phase]) -> Steps:
        """Return the steps of consecutive phases; neighbours of equal power become one step."""
        edges: list[float] = [0.0]
        watts: list[float] = []
        ends = accumulate(phase.duration_s for phase in phases)
        for phase, end in zip(phases, ends, strict=True):
            if watts and watts[-1] == phase.power_w:
                edges[-1] = end
            else:
                edges.append(end)
                watts.append(phase.power_w)
        return cls(np.array(edges), np.array(watts))

    @property
    def length_s(self) -> float:
        """Length of all steps in s."""
        return float(self.edges_s[-1])

    @cached_property
    def energy_j(self) -> float:
        """Energy of all steps in J."""
        return float(np.diff(self.edges_s) @ self.watts)

    def energy_until(self, time_s: Array) -> Array:
        """Return the energy in J consumed until each time; beyond the end that of all steps."""
        reached = np.concatenate([(0.0,), np.cumsum(np.diff(self.edges_s) * self.watts)])
        return np.interp(time_s, self.edges_s, reached)

    def part(self, begin_s: float, end_s: float) -> Steps:
        """Return the steps in [begin, end[, with edges from 0; no steps if the interval is empty."""
        if not begin_s < end_s:
            return Steps(np.zeros(1), np.zeros(0))
        first = int(np.searchsorted(self.edges_s, begin_s, "right")) - 1
        last = int(np.searchsorted(self.edges_s, end_s, "left"))
        edges = np.clip(self.edges_s[first : last + 1], begin_s, end_s) - begin_s
        return Steps(edges, self.watts[first:last])


@dataclass(frozen=True)
class PhaseModel:
    """Start-up phases (may be none) and work phases (at least one). Raises ValueError."""

    startup: tuple[Phase, ...]
    work: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.work:
            raise ValueError("a job needs at least one work phase")

    @cached_property
    def startup_steps(self) -> Steps:
        """Power of the start-up."""
        return Steps.of(self.startup)

    @cached_property
    def work_steps(self) -> Steps:
        """Power of the work, by progress."""
        return Steps.of(self.work)

    @cached_property
    def steps(self) -> Steps:
        """Power of a run without interruption."""
        return Steps.of((*self.startup, *self.work))

    @property
    def startup_s(self) -> float:
        """Length of a start-up in s."""
        return self.startup_steps.length_s

    @property
    def work_s(self) -> float:
        """Length of all work in s."""
        return self.work_steps.length_s

    @property
    def length_s(self) -> float:
        """Length of a run without interruption in s."""
        return self.startup_s + self.work_s

    @property
    def energy_j(self) -> float:
        """Energy of a run without interruption on one cpu in J."""
        return self.startup_steps.energy_j + self.work_steps.energy_j

    @property
    def mean_w(self) -> float:
        """Mean power of a run without interruption on one cpu in W."""
        return self.energy_j / self.length_s

    @cached_property
    def checkpoints_s(self) -> tuple[float, ...]:
        """Progress in s at the end of each checkpoint phase, without the end of all work."""
        ends = accumulate(phase.duration_s for phase in self.work)
        marked = (end for phase, end in zip(self.work, ends, strict=True) if phase.is_checkpoint)
        return tuple(end for end in marked if end < self.work_s)

    def rest(self, done_s: float) -> PhaseModel:
        """Return the model after a progress of `done_s` < `work_s`: the start-up and the remaining work."""
        if not done_s:
            return self
        ends = accumulate(phase.duration_s for phase in self.work)
        left = [(phase, min(end - done_s, phase.duration_s)) for phase, end in zip(self.work, ends, strict=True)]
        return PhaseModel(self.startup, tuple(replace(phase, duration_s=lasts) for phase, lasts in left if lasts > 0.0))

    def averaged(self, name: str = "mean") -> PhaseModel:
        """Return a model of equal length and energy in one phase: the knowledge of schedulers before the thesis."""
        return constant(self.length_s, self.mean_w, name)


@dataclass(frozen=True)
class ShiftJob:
    """A job that arrives at `arrival_s` and draws the power of its model on each of `cpus` cpus. Raises ValueError."""

    id: str
    arrival_s: float
    model: PhaseModel
    cpus: int = 1

    def __post_init__(self) -> None:
        if not self.arrival_s >= 0.0:
            raise ValueError(f"job {self.id}: it must arrive at >= 0 s, got {self.arrival_s!r}")
        if not 1 <= self.cpus <= MOST_CPUS:
            raise ValueError(f"job {self.id}: it must have 1 to {MOST_CPUS} cpus, got {self.cpus!r}")

    @property
    def length_s(self) -> float:
        """Length of a run without interruption in s."""
        return self.model.length_s


def constant(length_s: float, power_w: float, name: str = "work") -> PhaseModel:
    """Return a model of one work phase and no start-up. Raises ValueError."""
    return PhaseModel((), (Phase(name, length_s, power_w),))


Floats = NDArray[np.float64]


def flops_of(workload: Workload, reference_flops: float) -> Floats:
    """Return the flops of each job, a delay at `reference_flops` flop/s; NaN where its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.work_flops(hosts, reference_flops))


def run_times_s(workload: Workload, speed_flops: float) -> Floats:
    """Return the run time in s of each job on hosts of `speed_flops` flop/s; NaN if its profile is not simulated."""
    return _per_job(workload, lambda profile, hosts: profile.run_s(hosts, speed_flops))


def _per_job(workload: Workload, of: Callable[[Delay | Parallel, int], float]) -> Floats:
    """Return a figure of each job on its hosts, summed over the parts of its profile; NaN if one is not simulated."""
    profiles = workload.profiles
    sums: dict[tuple[str, int], float] = {}

    def total(name: str, hosts: int) -> float:
        profile = profiles.get(name)
        if profile is None:
            return math.nan
        if not isinstance(profile, Composed):
            return of(profile, hosts)
        key = (name, hosts)
        if key not in sums:
            sums[key] = profile.repeat * math.fsum(total(part, hosts) for part in profile.sequence)
        return sums[key]

    return np.array([total(job.profile, job.hosts) for job in workload.jobs], dtype=np.float64)


LONGEST_S = 604_800.0
"""Greatest length in s of a job of a reference, a week; longer jobs count as this long."""


@dataclass(frozen=True)
class Reference:
    """Distinct lengths in s, ascending, and the area in core-seconds of all jobs of each length."""

    lengths_s: NDArray[np.float64]
    areas_core_s: NDArray[np.float64]

    @classmethod
    def of(cls, lengths_s: ArrayLike, cores: ArrayLike) -> Reference:
        """Build the reference of some jobs; jobs longer than `LONGEST_S` count as that long."""
        capped = np.minimum(np.asarray(lengths_s, dtype=np.float64), LONGEST_S)
        distinct, place = np.unique(capped, return_inverse=True)
        areas = np.bincount(place, capped * np.asarray(cores, dtype=np.float64), len(distinct))
        return cls(distinct, areas.astype(np.float64))

    def quantiles_s(self, count: int) -> NDArray[np.float64]:
        """Return for k = 1 ... count - 1 the least length whose jobs and shorter ones have > k / count of the area."""
        below = np.cumsum(self.areas_core_s)
        shares = below[-1] * np.arange(1, count) / count
        return self.lengths_s[np.searchsorted(below, shares, side="right")]

    def share_not_shorter(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """Return C_i for each length w_i: the share of the area that is in jobs with w_k >= w_i. Section 4.3."""
        below = np.concatenate([[0.0], np.cumsum(self.areas_core_s)])
        return np.asarray(1.0 - below[np.searchsorted(self.lengths_s, lengths_s, side="left")] / below[-1])


@dataclass(frozen=True)
class Categories:
    """Category of a length by a reference: from 0 (longer than all of its jobs) to 1 (shorter than all of them).

    With `quantiles` > 0 it is 1 - k / quantiles if k of the area-weighted quantiles are no longer than the job, as in
    the authors' experiments (1000); with 0 it is C_i exactly. `longest_as_shortest`: a job as long as the last
    quantile has category 1, as in the authors' program, but not in the paper.
    """

    reference: Reference
    quantiles: int = 1000
    longest_as_shortest: bool = True

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return self.reference.quantiles_s(self.quantiles)

    def of(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """Return the categories of some lengths in s."""
        lengths = np.asarray(lengths_s, dtype=np.float64)
        if not self.quantiles:
            return self.reference.share_not_shorter(lengths)
        limits = self._limits
        passed = np.searchsorted(limits, lengths, side="right")
        if self.longest_as_shortest and len(limits):
            passed[lengths == limits[-1]] = 0
        return np.asarray(1.0 - passed / self.quantiles)
