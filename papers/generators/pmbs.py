"""Generators of the riskaware paper (PMBS 2023): synthetic job traces (section 5.3) and random walks (section 5.1).

The paper gives the mean length as T_avg = 209,664 / n hours, "so that the total number of machines required to process
all jobs if there were no resource variations and if all machines were always used at maximum capacity is around 26".
209,664 core hours are 26 machines x 24 cores x 336 h, the two-week window. But n jobs are released over all of the
three weeks [0, T_end], one each T_end / n, and a job has 3.5 cores on average
(1/6 x 1 + 1/3 x 2 + 1/3 x 4 + 1/6 x 8). Literally, n jobs of 209,664 / n hours are 733,824 core hours in 504 h, a load
of 60.7 machines of 24 cores, which the paper's figures exclude: with 28 machines on average nearly all jobs complete.
If these 209,664 core hours were those of the three weeks, the load would be 17.3 machines.

The paper's statement of the load decides: 26 machines of 24 cores, fully used for the three weeks, are
26 x 24 x 504 = 314,496 core hours, so the mean length is T_avg = 314,496 / (3.5 n) hours: 4.4928 h = 16,174.08 s for
n = 20,000. The two weeks of the window then hold 2/3 of the jobs and 209,664 core hours, as the paper says.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from batwatt.checks import parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.platform import MAX_HOSTS
from batwatt.model.timeline import MACHINES, MAX_STEPS, Timeline
from batwatt.units import DAY_S

Kind = Literal["uniform", "log-scale", "log-scale-u", "3types"]

CORES = (1, 2, 4, 8)
CORE_SHARES = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Probability of each number of cores."""
MEAN_CORES = 3.5

_LOG_SHARES = {"log-scale": (4 / 7, 1 / 7, 1 / 7, 1 / 7), "log-scale-u": (1 / 4, 1 / 4, 1 / 4, 1 / 4)}
_TYPE_SHARES = (9 / 13, 3 / 13, 1 / 13)
_TYPE_LENGTHS = (13 / 27, 39 / 27, 117 / 27)  # of the mean length
_MAX_JOBS = 10_000_000
_TRACE, _WALK = "synthetic trace", "random walk"


@parameters(_TRACE)
class Synthetic:
    """Parameters of `synthetic`: n `jobs` in [0, `end_s`[ (T_end, s), a load of `machines` x `cores` cores.

    `blur`: each length is multiplied by a factor uniform in [1 - blur, 1 + blur]. The paper has none; the authors' own
    traces of the kind 3types have 0.05, without which many jobs have equal lengths. Raises InputError.
    """

    kind: Kind = "uniform"
    jobs: Annotated[int, Field(ge=1, le=_MAX_JOBS)] = 20_000
    end_s: Annotated[float, Field(gt=0.0, le=1e12)] = 21 * DAY_S
    machines: Annotated[float, Field(gt=0.0, le=1e12)] = 26.0
    cores: Annotated[int, Field(ge=1, le=_MAX_JOBS)] = 24
    blur: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0

    def __post_init__(self) -> None:
        if not self.mean_length_s >= 1.0:
            problem = f"the mean length is {self.mean_length_s:g} s, less than 1 s"
            raise InputError(_TRACE, problem, "lengths are whole seconds: make fewer jobs or a higher load")

    @property
    def mean_length_s(self) -> float:
        """T_avg in s: the core seconds of the load over the mean cores of all jobs."""
        return self.machines * self.cores * self.end_s / (MEAN_CORES * self.jobs)


class SyntheticJob(NamedTuple):
    """A job with times in s."""

    id: str
    submit_s: float
    run_s: float
    cpus: int


def synthetic(params: Synthetic, seed: int) -> list[SyntheticJob]:
    """Generate the jobs of a synthetic trace in the order of their release; ids "0", "1", ...; whole seconds.

    Release: i / n x T_end. Cores: 1, 2, 4, 8 with probability 1/6, 1/3, 1/3, 1/6. Lengths (>= 1 s), of mean T_avg:

    - `uniform`: in [0, 2 T_avg];
    - `log-scale`: in [5^(c-1) K, 5^c K], c in 1..4 with P(1) = 4 P(2) = 4 P(3) = 4 P(4), so K = 7/477 T_avg;
    - `log-scale-u`: as `log-scale` with c uniform, so K = T_avg / 117;
    - `3types`: 13/27, 39/27 and 117/27 T_avg with probability 9/13, 3/13 and 1/13, so that the types have equal work.

    Section 5.3 of the riskaware paper; see the module for T_avg. Same seed, same jobs. Raises InputError.
    """
    rng = rng_of(seed, _TRACE)
    releases = np.rint(np.arange(params.jobs) * (params.end_s / params.jobs))
    cores = rng.choice(CORES, size=params.jobs, p=CORE_SHARES)
    exact_s = _lengths_s(params, rng)
    if params.blur:
        exact_s *= rng.uniform(1.0 - params.blur, 1.0 + params.blur, params.jobs)
    lengths = np.maximum(np.rint(exact_s), 1.0)
    rows = zip(releases.tolist(), lengths.tolist(), cores.tolist(), strict=True)
    return [
        SyntheticJob(str(number), release_s, length_s, width)
        for number, (release_s, length_s, width) in enumerate(rows)
    ]


def _lengths_s(params: Synthetic, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    mean_s = params.mean_length_s
    if params.kind == "uniform":
        return rng.uniform(0.0, 2.0 * mean_s, params.jobs)
    if params.kind == "3types":
        return rng.choice(np.array(_TYPE_LENGTHS) * mean_s, size=params.jobs, p=_TYPE_SHARES)
    shares = _LOG_SHARES[params.kind]
    # the mean of [5^(c-1) K, 5^c K] is 3 x 5^(c-1) K
    unit_s = mean_s / sum(share * 3.0 * 5.0**c for c, share in enumerate(shares))
    category = rng.choice(len(shares), size=params.jobs, p=shares)
    return unit_s * rng.uniform(5.0**category, 5.0 ** (category + 1))


_Seconds = Annotated[float, Field(gt=0.0)]


@parameters(_WALK)
class Walk:
    """Parameters of `random_walk`: machines M_avg, M_ra and step, period phi and end T_end in s.

    The defaults are those of section 5.4. `step` None is floor(range / 4), but at least 1. With `stay` the number may
    also stay constant (the paper); without it it always goes up or down. Raises InputError.
    """

    mean: Annotated[int, Field(ge=1, le=MAX_HOSTS)] = 24
    range: Annotated[int, Field(ge=0, le=MAX_HOSTS)] = 8
    period_s: _Seconds = 1200.0
    step: Annotated[int | None, Field(ge=1, le=MAX_HOSTS)] = None
    stay: bool = True
    # a week to warm up and a window of two weeks
    end_s: _Seconds = 21 * DAY_S

    def __post_init__(self) -> None:
        if not self.mean - self.range >= 0:
            problem = f"range must be <= mean, got range {self.range!r} and mean {self.mean!r}"
            raise InputError(_WALK, problem, "a number of machines is not negative")
        if not self.end_s / self.period_s <= MAX_STEPS:
            problem = f"end_s / period_s must be <= {MAX_STEPS}, got {self.end_s!r} / {self.period_s!r}"
            raise InputError(_WALK, problem, "take a longer period")

    @property
    def step_machines(self) -> int:
        """Number of machines of one step."""
        return max(1, self.range // 4) if self.step is None else self.step


def random_walk(walk: Walk, seed: int) -> Timeline:
    """Generate the number of machines alive, from `walk.mean` at 0 s, with one row per period up to `walk.end_s`.

    In each period, the moves stay, up and down have equal probability; at a bound (mean - range, mean + range), stay
    and the one possible direction have. Without `walk.stay`, up and down have probability 1/2 each, and a move beyond a
    bound is none. A step that would pass a bound ends there. Section 5.1 of the riskaware paper.

    Same seed, same walk: the k-th step depends on the k-th draw and the number before it. Raises InputError.
    """
    low, high, step = walk.mean - walk.range, walk.mean + walk.range, walk.step_machines
    draws = rng_of(seed, _WALK).random(math.floor(walk.end_s / walk.period_s)).tolist()
    value = walk.mean
    values = [value]
    for draw in draws:
        moves = [-step, step] if not walk.stay else _moves(value, low, high, step)
        value = min(max(value + moves[int(draw * len(moves))], low), high)
        values.append(value)
    times = tuple(k * float(walk.period_s) for k in range(len(values)))
    return Timeline(times, tuple(map(float, values)), name=MACHINES, source=f"{_WALK}, seed {seed}")


def _moves(value: int, low: int, high: int, step: int) -> list[int]:
    """Return the moves of equal probability: 0, and a step in each direction that is not at its bound."""
    return [move for move in (-step, 0, step) if move == 0 or (value > low if move < 0 else value < high)]
