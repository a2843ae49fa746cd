"""Generator of job traces like those of the varcap dissertation (chapter 5), by the moments of its Table 5.2.

Statements of the dissertation, and the distributions:

- Mira' (6,571 jobs, 30 days): run times of 1.8 & 2.9 h (mean & deviation) up to 24 h, widths of 1,705 & 2,890 nodes,
  drawn from the partitions 512 x 2^k and all 49,152; memory of 27 & 46 TB, which is 16 GB for each node of a job.
- Azure' (442,784 jobs, 7 days): 3.6 & 8.8 h, from 5 min to the length of the trace, in steps of 5 min as in the trace;
  1, 2, 4, 8 or 16 cores of 2.6 & 2.4; memory of 6 & 11 GB, from the sizes in the trace.
- Borg' (204,749 jobs, 1 day): 0.6 & 3 h, from 5 s to a week (a mean and deviation that no unimodal distribution up to
  24 h has, and it speaks of "much longer than 24 hours"); 0.03 & 0.02 GCU up to 0.5, in cores of 1/60 GCU, which
  gives the 630 nodes with 336 GCU 32 cores each; memory of 0.02 & 0.02 of the largest machine's.
- TNG (5.1.3, 5.1.5, 5.3.3): widths and memory of Borg'; run times from 5 s to a week as there ("a few seconds to much
  longer than 24 hours"), such that 80 % of the core-hours are those of long jobs and that 300,000 jobs a day (1.5
  million in five cells) load 476 machines to 90 % of 0.7 of their cores. Another `long_fraction` has other numbers of
  long and short jobs of the same lengths and the same core-hours (Fig. 5.11: "a decrease in the absolute number of
  total jobs").

All are lognormals cut to their bounds or values, with mu and sigma by bisection. Draws are stratified, so
that a trace has these moments for any seed, and widths are spread evenly over the run times (a golden-ratio lattice),
so that its core-hours are those of independent widths. Memory increases with cores, with noise; the dissertation
states no other correlation, and there is none. The product of the means is a load of 1.76 of 0.7 of its cluster for
Azure', of 0.81 for Mira', of 0.65 for Borg'.

Releases are a Poisson process with a daily cycle and a fixed number of jobs. Users' estimates (Mira' only) are uniform
in [run time, 3 x run time], the f-model of Mu'alem and Feitelson (IEEE TPDS 12(6), 2001), rounded up as by users: to
5 min up to an hour, 15 min up to 6 h, else 30 min, and at most 24 h.

Tables of traces give a mean and a standard deviation. On the values v_k of a grid the probabilities are
p_k ~ d_k exp(-(ln v_k - mu)^2 / (2 sigma^2)), a lognormal cut to the grid (d_k is the width of the cell of v_k in
ln v, 1 for values of a list); mu and sigma are such that mean and deviation *of the cut distribution* are the
prescribed ones. For a fixed sigma the mean rises with mu (an exponential family in mu), and along the mu of one mean
the deviation rises with sigma: two nested bisections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from batwatt.checks import parameters, rng_of
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.workload import LONG_S
from batwatt.protocol.numbers import MAX_INT
from batwatt.units import DAY_S, HOUR_S

Floats = npt.NDArray[np.float64]
_CELLS = 2048
"""Number of cells of the grid of a continuous distribution."""
_SIGMAS = (0.05, 12.0)
_HALVINGS = 60


@dataclass(frozen=True)
class FittedDistribution:
    """Probabilities `weights` of ascending `values`, in a continuous distribution the middles of cells between `edges`.

    `mu` and `sigma` are those of the lognormal before it was cut.
    """

    values: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    mu: float
    sigma: float
    edges: Floats | None = field(default=None, repr=False)

    @property
    def mean(self) -> float:
        """Mean in the unit of the values."""
        return float(self.values @ self.weights)

    @property
    def sd(self) -> float:
        """Standard deviation in the unit of the values."""
        return _sd(self.values, self.weights)

    def chance_below(self, bound: float) -> float:
        """Return the probability of a value of at most `bound`."""
        return float(self.weights[self.values <= bound].sum())

    def at(self, quantiles: Floats) -> Floats:
        """Return the values at quantiles in [0, 1[."""
        steps = self._steps()
        if self.edges is None:
            places = np.searchsorted(steps[1:], quantiles, side="right")
            return self.values[np.minimum(places, len(self.values) - 1)]
        return np.exp(np.interp(quantiles, steps, np.log(self.edges)))

    def _steps(self) -> Floats:
        steps = np.concatenate(([0.0], np.cumsum(self.weights)))
        return steps / steps[-1]


@lru_cache(maxsize=64)
def fitted_values(values: tuple[float, ...], mean: float, sd: float) -> FittedDistribution:
    """Return the distribution on a list of ascending values > 0 with a mean and a deviation. Raises InputError."""
    return _fitted(np.array(values, dtype=float), None, mean, sd, _sd)


@lru_cache(maxsize=64)
def fitted_range(low: float, high: float, mean: float, sd: float) -> FittedDistribution:
    """Return the continuous distribution on [low, high] with a mean and a deviation. Raises InputError."""
    edges = np.geomspace(low, high, _CELLS + 1)
    return _fitted(np.sqrt(edges[1:] * edges[:-1]), edges, mean, sd, _sd)


@lru_cache(maxsize=64)
def fitted_share(low: float, high: float, mean: float, bound: float, share: float) -> FittedDistribution:
    """Return the continuous distribution on [low, high] with a mean, and `share` of the sum above `bound`.

    The bound is an edge of its grid. Raises InputError.
    """
    below = max(1, min(_CELLS - 1, round(_CELLS * math.log(bound / low) / math.log(high / low))))
    lower = np.geomspace(low, bound, below + 1)
    edges = np.concatenate((lower, np.geomspace(bound, high, _CELLS - below + 1)[1:]))
    values = np.sqrt(edges[1:] * edges[:-1])
    return _fitted(values, edges, mean, share, lambda v, w: _share_above(v, w, bound))


def strata(count: int, rng: np.random.Generator) -> Floats:
    """Return ascending quantiles, one drawn from each of `count` equal parts of [0, 1[.

    With them, the moments of a trace are those of its distribution, also with a heavy tail.
    """
    return (np.arange(count) + rng.random(count)) / count


def _fitted(
    values: Floats, edges: Floats | None, mean: float, target: float, spread: Callable[[Floats, Floats], float]
) -> FittedDistribution:
    logs = np.log(values)
    cells = np.ones_like(values) if edges is None else np.diff(np.log(edges))

    def weights_of(sigma: float) -> tuple[float, Floats]:
        reach = 40.0 * sigma * sigma + 10.0
        low, high = logs[0] - reach, logs[-1] + reach
        for _ in range(_HALVINGS):
            mu = (low + high) / 2.0
            exponents = -((logs - mu) ** 2) / (2.0 * sigma * sigma)
            weights = np.exp(exponents - exponents.max()) * cells
            weights /= weights.sum()
            if values @ weights < mean:
                low = mu
            else:
                high = mu
        return mu, weights

    low, high = _SIGMAS
    for _ in range(_HALVINGS):
        sigma = (low + high) / 2.0
        mu, weights = weights_of(sigma)
        if spread(values, weights) < target:
            low = sigma
        else:
            high = sigma
    reached = spread(values, weights)
    if not (abs(values @ weights - mean) <= 1e-6 * mean and abs(reached - target) <= 1e-6 * target):
        problem = f"no lognormal cut to [{values[0]:g}, {values[-1]:g}] has mean {mean:g} and spread {target:g}"
        raise InputError("fitted distribution", problem, "move the mean from the bounds or ask for another spread")
    return FittedDistribution(values, weights, mu, sigma, edges)


def _sd(values: Floats, weights: Floats) -> float:
    mean = values @ weights
    return float(np.sqrt((values - mean) ** 2 @ weights))


def _share_above(values: Floats, weights: Floats, bound: float) -> float:
    return float((values * weights)[values > bound].sum() / (values @ weights))


WHERE = "varcap trace"
MEAN_CAPACITY = 0.7
"""Mean capacity as a fraction of the machines (5.1.1), the reference of loads."""
MIRA_UNIT = 96
"""Number of units of the machine of a Mira, of which its partitions consist."""
_MAX_JOBS = 20_000_000


@dataclass(frozen=True)
class System:
    """A modelled system (5.1.5) and its trace (a column of Table 5.2): mean and deviation of run times, cores, memory.

    Jobs have cores of the `widths` and memory of the `memories`, a list or two bounds, in the unit of
    `machine_memory`; run times are between `bounds_h`, in steps of `step_s`.
    """

    machines: int
    cores: int
    machine_memory: float
    jobs: int
    days: float
    run_h: tuple[float, float]
    job_cores: tuple[float, float]
    job_memory: tuple[float, float]
    bounds_h: tuple[float, float]
    widths: tuple[float, ...]
    memories: tuple[float, ...] = ()
    step_s: float = 1.0

    @property
    def load(self) -> float:
        """Product of the means of Table 5.2, as a share of 0.7 of the system."""
        hours = self.days * 24.0
        return self.jobs * self.run_h[0] * self.job_cores[0] / (MEAN_CAPACITY * self.machines * self.cores * hours)


TNG, TNG_LOAD, TNG_LONG = "tng", 0.9, 0.8
SYSTEMS: dict[str, System] = {
    "mira": System(49_152, 1, 16.0, 6571, 30.0, (1.8, 2.9), (1705.0, 2890.0), (27_000.0, 46_000.0),
                   (1 / 60, 24.0), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0)),
    "azure": System(1250, 16, 128.0, 442_784, 7.0, (3.6, 8.8), (2.6, 2.4), (6.0, 11.0), (1 / 12, 168.0),
                    (1.0, 2.0, 4.0, 8.0, 16.0), (0.75, 1.75, 3.5, 7.0, 14.0, 28.0, 56.0, 112.0), 300.0),
    "borg": System(630, 32, 300 / 630, 204_749, 1.0, (0.6, 3.0), (0.03 * 60, 0.02 * 60), (0.02, 0.02),
                   (5 / 3600, 168.0), tuple(float(n) for n in range(1, 31)), (0.001, 0.45)),
}  # fmt: skip
"""Mira (16 GB a node, "760 TB"), the Azure cluster (160 TB), the Borg cells (336 and 250 GCU, 300 normalised bytes).

Cores of Borg' are of 1/60 GCU. TNG has its widths and memory, other run times and numbers of jobs.
"""
SYSTEMS[TNG] = replace(SYSTEMS["borg"], machines=476, machine_memory=300 / 476, jobs=300_000, days=1.0)


@parameters(WHERE)
class VarcapLike:
    """Parameters of a trace `like` mira, azure, borg or tng; None is the value of the dissertation, with its load.

    `jobs` and `machines` scale the trace: `days` None is the time that gives the load; on a smaller Mira (a multiple of
    96 nodes) jobs are narrower in proportion. `longest_h`: greatest run time in h. `load`: core-hours / (0.7 x machines
    x cores x hours of the release); with `days`, for tng only, the mean run time follows. `long_fraction` (tng): share
    of the core-hours in jobs of more than `long_s`; `jobs` is the number at 0.8, other fractions have more or fewer.
    `dependencies`: share of jobs that depend on one released in the hour before. `cycle`: relative increase of releases
    at 14 h, and decrease at 2 h.

    Raises InputError.
    """

    like: str = "tng"
    jobs: Annotated[int | None, Field(ge=1, le=MAX_INT)] = None
    machines: Annotated[int | None, Field(ge=1, le=MAX_INT)] = None
    days: Annotated[float | None, Field(ge=1e-3, le=3650.0)] = None
    longest_h: Annotated[float | None, Field(ge=1.0, le=8760.0)] = None
    load: Annotated[float | None, Field(ge=1e-3, le=100.0)] = None
    long_fraction: Annotated[float | None, Field(ge=0.0, le=1.0)] = None
    long_s: Annotated[float, Field(ge=60.0, le=43_200.0)] = LONG_S
    dependencies: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    cycle: Annotated[float, Field(ge=0.0, le=1.0)] = 0.2

    def __post_init__(self) -> None:
        if self.like not in SYSTEMS:
            raise UnknownNameError(WHERE, "system", self.like, SYSTEMS, "Choose one of these.")
        if self.like == "mira" and self.nodes % MIRA_UNIT:
            problem = f"a Mira's machines must be a multiple of {MIRA_UNIT}, got {self.machines!r}"
            raise InputError(WHERE, problem, f"its jobs take 1/{MIRA_UNIT} of it at least: give for instance 480")
        if self.like != TNG:
            if self.long_fraction is not None:
                raise InputError(WHERE, f"a trace like {self.like} has its own share of long jobs", "take tng for it")
            if self.days is not None and self.load is not None:
                problem = f"days {self.days:g} and load {self.load:g} are both given"
                raise InputError(WHERE, problem, "give one of them, the other follows from the jobs")
        if not self.expected_jobs <= _MAX_JOBS:
            raise InputError(WHERE, f"{self.expected_jobs:g} jobs are more than {_MAX_JOBS}", "ask for fewer")

    @property
    def system(self) -> System:
        """System of the dissertation."""
        return SYSTEMS[self.like]

    @property
    def nodes(self) -> int:
        """Number of machines of the trace."""
        return self.machines if self.machines is not None else self.system.machines

    @property
    def count(self) -> int:
        """Requested number of jobs, else that of the dissertation."""
        return self.jobs or self.system.jobs

    @property
    def core_hours(self) -> float:
        """Expected core-hours of the trace."""
        return self.count * self.mean_run_h * self.mean_cores

    @property
    def mean_cores(self) -> float:
        """Mean number of cores of a job."""
        scale = self.nodes / self.system.machines if self.like == "mira" else 1.0
        return self.system.job_cores[0] * scale

    @property
    def mean_run_h(self) -> float:
        """Mean run time in h; for tng, at a long fraction of 0.8."""
        tng = self.system
        if self.like != TNG:
            return tng.run_h[0]
        full_load = MEAN_CAPACITY * tng.cores * 24.0 / self.mean_cores
        if self.days is None:
            return TNG_LOAD * full_load * tng.machines * tng.days / tng.jobs
        return (TNG_LOAD if self.load is None else self.load) * full_load * self.nodes * self.days / self.count

    @property
    def released_days(self) -> float:
        """Days of the releases."""
        if self.days is not None:
            return self.days
        daily = MEAN_CAPACITY * self.nodes * self.system.cores * 24.0
        usual = TNG_LOAD if self.like == TNG else self.system.load
        return self.core_hours / (daily * (usual if self.load is None else self.load))

    @property
    def expected_jobs(self) -> float:
        """Number of jobs of the trace."""
        return float(sum(self.classes()) if self.like == TNG else self.count)

    def classes(self) -> tuple[int, int]:
        """Return the numbers of short and of long jobs of a trace like tng."""
        share = TNG_LONG if self.long_fraction is None else self.long_fraction
        below = self.run_times().chance_below(self.long_s / HOUR_S)
        short = round(self.count * below * (1.0 - share) / (1.0 - TNG_LONG))
        return short, max(round(self.count * (1.0 - below) * share / TNG_LONG), 0 if short else 1)

    def run_times(self) -> FittedDistribution:
        """Return the distribution of run times in h; for tng, at a long fraction of 0.8."""
        low, high = self.system.bounds_h
        high = self.longest_h or high
        if self.like == TNG:
            try:
                return fitted_share(low, high, self.mean_run_h, self.long_s / HOUR_S, TNG_LONG)
            except InputError:
                problem = f"jobs of {self.mean_run_h:g} h on average cannot be long by {TNG_LONG:g} of their core-hours"
                raise InputError(WHERE, problem, "give other jobs, days or load, or another long_s") from None
        return fitted_range(low, high, *self.system.run_h)


BOUND_BY = 3600.0
"""Greatest time in s between the releases of a job and of its dependency."""
_PEAK_S = 14 * HOUR_S
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MEMORY_NOISE = 1.0
_ESTIMATE_FACTOR = 3.0


def varcap_table(params: VarcapLike, seed: int) -> pd.DataFrame:
    """Generate the jobs of a trace by release: columns of the CSV form, times in whole s; same seed, same jobs.

    Columns are `arrival_time,length,cpus,memory`, for mira `estimate`, and with dependencies `depends_on`, the number
    (from 1 on) of the job that must complete first, or empty. Memory is that of the whole job in the unit of the
    system. Raises InputError.
    """
    rng = rng_of(seed, WHERE)
    runs_s = _run_times_s(params, rng)
    count = len(runs_s)
    releases_s = _releases_s(params, count, rng)
    lattice: Floats = np.asarray((np.arange(count) * _GOLDEN + rng.random()) % 1.0, dtype=np.float64)
    mira = params.like == "mira"
    # partitions of a Mira are of its units, in proportion on a smaller one
    unit, own_unit = (params.system.machines / MIRA_UNIT, params.nodes / MIRA_UNIT) if mira else (1.0, 1.0)
    mean, sd = params.system.job_cores
    cores = own_unit * fitted_values(params.system.widths, mean / unit, sd / unit).at(lattice)
    memory = cores * params.system.machine_memory if mira else _memory(params.system, lattice, rng)
    order = rng.permutation(count)
    columns: dict[str, npt.NDArray[np.generic]] = {
        "arrival_time": releases_s.astype(np.int64),
        "length": runs_s[order].astype(np.int64),
        "cpus": cores[order].astype(np.int64),
        "memory": np.round(memory[order], 6),
    }
    if mira:
        columns["estimate"] = _estimates_s(runs_s[order], params.system.bounds_h[1] * HOUR_S, rng)
    table = pd.DataFrame(columns)
    if params.dependencies:
        table["depends_on"] = _dependencies(releases_s, params.dependencies, rng)
    return table


def _run_times_s(params: VarcapLike, rng: np.random.Generator) -> Floats:
    """Draw ascending run times in s, in whole steps."""
    law, step_s = params.run_times(), params.system.step_s
    if params.like != TNG:
        exact_s = law.at(strata(round(params.expected_jobs), rng)) * HOUR_S
        return np.maximum(np.rint(exact_s / step_s), 1.0) * step_s
    short, long = params.classes()
    below = law.chance_below(params.long_s / HOUR_S)
    short_s = law.at(below * strata(short, rng)) * HOUR_S
    long_s = law.at(below + (1.0 - below) * strata(long, rng)) * HOUR_S
    whole_bound = math.floor(params.long_s)
    return np.concatenate((np.clip(np.rint(short_s), 1.0, whole_bound), np.maximum(np.rint(long_s), whole_bound + 1.0)))


def _releases_s(params: VarcapLike, count: int, rng: np.random.Generator) -> Floats:
    """Draw ascending releases in whole s: `count` points of a Poisson process with rate 1 + cycle cos(...)."""
    end_s = params.released_days * DAY_S
    times_s = np.linspace(0.0, end_s, max(2, math.ceil(end_s / 300.0) + 1))
    turn = 2.0 * math.pi / DAY_S
    area = times_s + params.cycle / turn * (np.sin(turn * (times_s - _PEAK_S)) + math.sin(turn * _PEAK_S))
    drawn = np.sort(rng.random(count)) * area[-1]
    return np.floor(np.interp(drawn, area, times_s))


def _memory(system: System, lattice: Floats, rng: np.random.Generator) -> Floats:
    """Draw the memory of each job, which increases with cores, with noise."""
    if len(system.memories) == 2:
        law = fitted_range(*system.memories, *system.job_memory)
    else:
        law = fitted_values(system.memories, *system.job_memory)
    memory = np.empty(len(lattice))
    memory[np.argsort(lattice + _MEMORY_NOISE * rng.random(len(lattice)))] = law.at(strata(len(lattice), rng))
    return memory


def _estimates_s(runs_s: Floats, longest_s: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw users' estimates of run times in s, which are not smaller."""
    exact_s = runs_s * rng.uniform(1.0, _ESTIMATE_FACTOR, len(runs_s))
    step_s = np.select([exact_s <= HOUR_S, exact_s <= 6 * HOUR_S], [300.0, 900.0], 1800.0)
    return np.minimum(np.ceil(exact_s / step_s) * step_s, longest_s).astype(np.int64)


def _dependencies(releases_s: Floats, fraction: float, rng: np.random.Generator) -> list[str]:
    """Draw for each job the number of an earlier one, or an empty text."""
    numbers = np.arange(len(releases_s))
    first = np.searchsorted(releases_s, releases_s - BOUND_BY, side="left")
    able = numbers[first < numbers]
    dependent = rng.choice(able, size=min(round(fraction * len(numbers)), len(able)), replace=False)
    parents = first[dependent] + np.floor(rng.random(len(dependent)) * (dependent - first[dependent])).astype(np.int64)
    texts = [""] * len(numbers)
    for job, parent in zip(dependent.tolist(), parents.tolist(), strict=True):
        texts[job] = str(parent + 1)
    return texts
