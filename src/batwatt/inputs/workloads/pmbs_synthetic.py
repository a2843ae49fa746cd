"""Generator of the synthetic job traces of the riskaware paper (PMBS 2023, section 5.3).

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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from batwatt.checks import Between, Parameters, rng_of
from batwatt.errors import InputError
from batwatt.units import DAY_S

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from batwatt.inputs.jobs import TraceJob

Kind = Literal["uniform", "log-scale", "log-scale-u", "3types"]
KINDS: tuple[str, ...] = get_args(Kind)

CORES = (1, 2, 4, 8)
CORE_SHARES = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Probability of each number of cores."""
MEAN_CORES = 3.5

_LOG_SHARES = {"log-scale": (4 / 7, 1 / 7, 1 / 7, 1 / 7), "log-scale-u": (1 / 4, 1 / 4, 1 / 4, 1 / 4)}
_TYPE_SHARES = (9 / 13, 3 / 13, 1 / 13)
_TYPE_LENGTHS = (13 / 27, 39 / 27, 117 / 27)  # of the mean length
_MAX_JOBS = 10_000_000


@dataclass(frozen=True)
class Synthetic(Parameters, where="synthetic trace"):
    """Parameters of `synthetic`: n `jobs` in [0, `end_s`[ (T_end, s), a load of `machines` x `cores` cores.

    `blur`: each length is multiplied by a factor uniform in [1 - blur, 1 + blur]. The paper has none; the authors' own
    traces of the kind 3types have 0.05, without which many jobs have equal lengths. Raises InputError.
    """

    kind: Kind = "uniform"
    jobs: Annotated[int, Between(1, _MAX_JOBS)] = 20_000
    end_s: Annotated[float, Between(0.0, 1e12, "]]")] = 21 * DAY_S
    machines: Annotated[float, Between(0.0, 1e12, "]]")] = 26.0
    cores: Annotated[int, Between(1, _MAX_JOBS)] = 24
    blur: Annotated[float, Between(0.0, 1.0, "[[")] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mean_length_s >= 1.0:
            problem = f"the mean length is {self.mean_length_s:g} s, less than 1 s"
            raise InputError(self.WHERE, problem, "lengths are whole seconds: make fewer jobs or a higher load")

    @property
    def mean_length_s(self) -> float:
        """T_avg in s: the core seconds of the load over the mean cores of all jobs."""
        return self.machines * self.cores * self.end_s / (MEAN_CORES * self.jobs)


def synthetic(params: Synthetic, seed: int) -> list[TraceJob]:
    """Generate the jobs of a synthetic trace in the order of their release; ids "0", "1", ...; whole seconds.

    Release: i / n x T_end. Cores: 1, 2, 4, 8 with probability 1/6, 1/3, 1/3, 1/6. Lengths (>= 1 s), of mean T_avg:

    - `uniform`: in [0, 2 T_avg];
    - `log-scale`: in [5^(c-1) K, 5^c K], c in 1..4 with P(1) = 4 P(2) = 4 P(3) = 4 P(4), so K = 7/477 T_avg;
    - `log-scale-u`: as `log-scale` with c uniform, so K = T_avg / 117;
    - `3types`: 13/27, 39/27 and 117/27 T_avg with probability 9/13, 3/13 and 1/13, so that the types have equal work.

    Section 5.3 of the riskaware paper; see the module for T_avg. Same seed, same jobs. Raises InputError.
    """
    # imported here, as numpy loads slowly
    import numpy as np

    from batwatt.inputs.jobs import TraceJob

    rng = rng_of(seed, params.WHERE)
    releases = np.rint(np.arange(params.jobs) * (params.end_s / params.jobs))
    cores = rng.choice(CORES, size=params.jobs, p=CORE_SHARES)
    exact_s = _lengths_s(params, rng)
    if params.blur:
        exact_s *= rng.uniform(1.0 - params.blur, 1.0 + params.blur, params.jobs)
    lengths = np.maximum(np.rint(exact_s), 1.0)
    rows = zip(releases.tolist(), lengths.tolist(), cores.tolist(), strict=True)
    return [
        TraceJob(str(number), release_s, length_s, width) for number, (release_s, length_s, width) in enumerate(rows)
    ]


def _lengths_s(params: Synthetic, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    import numpy as np

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
