"""Generator of job traces like those of the varcap dissertation (chapter 5), by the moments of its Table 5.2.

Statements of the dissertation, and the distributions:

- Mira' (6,571 jobs, 30 days): run times of 1.8 & 2.9 h (mean & deviation) up to 24 h, widths of 1,705 & 2,890 nodes,
  drawn from the partitions 512 x 2^k and all 49,152; memory of 27 & 46 TB, which is 16 GB for each node of a job.
- Azure' (442,784 jobs, 7 days): 3.6 & 8.8 h, from 5 min to the length of the trace, in steps of 5 min as in the trace;
  1, 2, 4, 8 or 16 cores of 2.6 & 2.4; memory of 6 & 11 GB, from the sizes in the trace.
- Borg' (204,749 jobs, 1 day): 0.6 & 3 h, from 5 s to a week (a mean and deviation that no unimodal distribution up to
  24 h has, and it speaks of "much longer than 24 hours"); 0.03 & 0.02 GCU up to 0.5, in cores of 1/60 GCU, which
  gives the 630 nodes with 336 GCU 32 cores each; memory of 0.02 & 0.02 of the largest machine's.
- TNG (5.1.5, 5.3.3): widths and memory of Borg'; run times from 5 s to 24 h, the longest foresight, such that 80 % of
  the core-hours are those of long jobs and that 300,000 jobs a day (1.5 million in five cells) load 476 machines to
  90 % of 0.7 of their cores. Another `long_fraction` has other numbers of long and short jobs of the same lengths and
  the same core-hours (Fig. 5.11: "a decrease in the absolute number of total jobs").

All are lognormals cut to their bounds or values, with mu and sigma by bisection (`fitted`). Draws are stratified, so
that a trace has these moments for any seed, and widths are spread evenly over the run times (a golden-ratio lattice),
so that its core-hours are those of independent widths. Memory increases with cores, with noise; the dissertation
states no other correlation, and there is none. The product of the means is a load of 1.76 of 0.7 of its cluster for
Azure', of 0.81 for Mira', of 0.65 for Borg'.

Releases are a Poisson process with a daily cycle and a fixed number of jobs. Users' estimates (Mira' only) are uniform
in [run time, 3 x run time], the f-model of Mu'alem and Feitelson (IEEE TPDS 12(6), 2001), rounded up as by users: to
5 min up to an hour, 15 min up to 6 h, else 30 min, and at most 24 h.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.checks import rng_of
from batwatt.inputs.workloads.fitted import FittedDistribution, Floats, fitted_range, fitted_values, strata
from batwatt.inputs.workloads.varcap_like import BOUNDS_H, MIRA_UNIT, SYSTEMS, TABLE, WHERE, VarcapLike
from batwatt.units import DAY_S, HOUR_S

BOUND_BY = 3600.0
"""Greatest time in s between the releases of a job and of its dependency."""
_PEAK_S = 14 * HOUR_S
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MEMORY_NOISE = 1.0
_ESTIMATE_FACTOR = 3.0
_STEP_S = {"azure": 300.0}
_WIDTHS: dict[str, tuple[float, ...]] = {
    "mira": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0),
    "azure": (1.0, 2.0, 4.0, 8.0, 16.0),
    "borg": tuple(float(n) for n in range(1, 31)),
}
_AZURE_GB = (0.75, 1.75, 3.5, 7.0, 14.0, 28.0, 56.0, 112.0)
_BORG_MEMORY = (0.001, 0.45)


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
    source = "borg" if params.like == "tng" else params.like
    cores = _widths(source, params.nodes).at(lattice)
    memory = cores * SYSTEMS["mira"].machine_memory if source == "mira" else _memory(source, cores, lattice, rng)
    order = rng.permutation(count)
    columns: dict[str, npt.NDArray[np.generic]] = {
        "arrival_time": releases_s.astype(np.int64),
        "length": runs_s[order].astype(np.int64),
        "cpus": cores[order].astype(np.int64),
        "memory": np.round(memory[order], 6),
    }
    if params.like == "mira":
        columns["estimate"] = _estimates_s(runs_s[order], rng)
    table = pd.DataFrame(columns)
    if params.dependencies:
        table["depends_on"] = _dependencies(releases_s, params.dependencies, rng)
    return table


def _run_times_s(params: VarcapLike, rng: np.random.Generator) -> Floats:
    """Draw ascending run times in s, in whole steps."""
    law, step_s = params.run_times(), _STEP_S.get(params.like, 1.0)
    if params.like != "tng":
        exact_s = law.at(strata(round(params.expected_jobs), rng)) * HOUR_S
        return np.maximum(np.rint(exact_s / step_s), 1.0) * step_s
    short, long = params.classes()
    below = law.chance_below(params.long_s / HOUR_S)
    short_s = law.at(below * strata(short, rng)) * HOUR_S
    long_s = law.at(below + (1.0 - below) * strata(long, rng)) * HOUR_S
    whole_bound = math.floor(params.long_s)
    return np.concatenate(
        (np.clip(np.rint(short_s), 1.0, whole_bound), np.maximum(np.rint(long_s), whole_bound + 1.0)),
    )


def _releases_s(params: VarcapLike, count: int, rng: np.random.Generator) -> Floats:
    """Draw ascending releases in whole s: `count` points of a Poisson process with rate 1 + cycle cos(...)."""
    end_s = params.released_days * DAY_S
    times_s = np.linspace(0.0, end_s, max(2, math.ceil(end_s / 300.0) + 1))
    turn = 2.0 * math.pi / DAY_S
    area = times_s + params.cycle / turn * (np.sin(turn * (times_s - _PEAK_S)) + math.sin(turn * _PEAK_S))
    drawn = np.sort(rng.random(count)) * area[-1]
    return np.floor(np.interp(drawn, area, times_s))


def _widths(like: str, machines: int) -> FittedDistribution:
    values, (mean, sd) = _WIDTHS[like], TABLE[like].cores
    if like != "mira":
        return fitted_values(values, mean, sd)
    unit = SYSTEMS["mira"].machines / MIRA_UNIT
    law = fitted_values(values, mean / unit, sd / unit)
    return FittedDistribution(law.values * (machines / MIRA_UNIT), law.weights, law.mu, law.sigma)


def _memory(like: str, cores: Floats, lattice: Floats, rng: np.random.Generator) -> Floats:
    """Draw the memory of each job, which increases with cores, with noise."""
    law = (
        fitted_values(_AZURE_GB, *TABLE[like].memory)
        if like == "azure"
        else fitted_range(*_BORG_MEMORY, *TABLE[like].memory)
    )
    memory = np.empty(len(cores))
    memory[np.argsort(lattice + _MEMORY_NOISE * rng.random(len(cores)))] = law.at(strata(len(cores), rng))
    return memory


def _estimates_s(runs_s: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw users' estimates of run times in s, which are not smaller."""
    exact_s = runs_s * rng.uniform(1.0, _ESTIMATE_FACTOR, len(runs_s))
    step_s = np.select([exact_s <= HOUR_S, exact_s <= 6 * HOUR_S], [300.0, 900.0], 1800.0)
    longest_s = BOUNDS_H["mira"][1] * HOUR_S
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
