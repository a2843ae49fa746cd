"""Generator of a workload with power per job, by the published statistics of PM100 and Marconi100.

Published statistics and their sources:

- PM100 (Antici and others, *PM100: A Job Power Consumption Dataset of a Large-scale Production HPC System*, SC-W 2023,
  doi:10.5281/zenodo.8129257), the plots of its repository: the box plot of the power of jobs on one node has, for jobs
  with GPUs, the quartiles 640, 830 and 1005 W, whiskers up to 1540 W and values up to 2200 W (read off the plot,
  within about 10 W); the histogram of nodes per job has 165,000 jobs on 1 node, 20,000 on 2, 3,000 on 3, 10,500 on 4,
  750 on 5, 1,700 on 9, 180 on 13 and few on more (read off a logarithmic axis, within about a tenth).
- Marconi100, the notebook of node powers of *Light-weight prediction for improving energy consumption in HPC
  platforms* (Euro-Par 2024, doi:10.5281/zenodo.11208389): 980 nodes, which draw 240 to 2100 W.
- The readme of easy-powercap: a node draws 240 W when idle, and the whole machine at most 719,880 W above that.
- A table of Marconi100 jobs in the notebooks of the repository exadata-process: deviations over time of 1 to 42 % of a
  job's mean power, 9 % in the middle (ten jobs).

No source states the number of users and the spread between jobs of a user: 40 users, spreads of 15 % between the
applications of a user and of 5 % between runs of one are assumptions, as are run times, walltimes and arrivals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from batwatt.checks import parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.platform import MAX_HOSTS
from batwatt.model.workload import POWER_MAX_W, POWER_PHASES, POWER_STD_W, POWER_W, JobPower

_WHERE = "PM100-like workload"
IDLE_W, LEAST_W, MOST_W = 240.0, 260.0, 2100.0
"""Published: power of a node when idle; least (a step of its meter above that) and greatest power with a job."""
QUARTILES_W = (640.0, 830.0, 1005.0)
"""Published: quartiles of the power of a node with a job."""
WIDTHS = {1: 165_000, 2: 20_000, 3: 3_000, 4: 10_500, 5: 750, 9: 1_700, 13: 180}
"""Published: nodes of a job -> number of jobs."""
TIME_SPREAD, TIME_SPREADS = 0.09, (0.01, 0.42)
"""Published: deviation over time of a job's power as a share of its mean: the middle one, and the range."""
TYPICAL_W = (719_880.0 + 980 * IDLE_W) / 980
"""Published: greatest power of the whole machine per node."""
USERS, APPLICATIONS, APPLICATION_SPREAD, RUN_SPREAD = 40, 3, 0.15, 0.05
"""Assumed: users; most applications of a user; spreads (of logarithms) between them, and between runs of one."""
QUEUES = ("normal", "long", "debug")
"""Assumed: names of queues; jobs of an application are in one of them."""
_QUARTILE = 0.6744897501960817
"""Upper quartile of a normal distribution, in its deviations."""


@parameters(_WHERE)
class Pm100Like:
    """Parameters of `pm100_like`.

    `load` is the used share of node-seconds during the arrivals, `run_spread` the spread of the logarithm of the power
    between runs of an application. Raises InputError.
    """

    jobs: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    nodes: Annotated[int, Field(ge=1, le=MAX_HOSTS)] = 48
    users: Annotated[int, Field(ge=1)] = USERS
    load: Annotated[float, Field(gt=0.0, lt=100.0)] = 0.7
    mean_runtime_s: Annotated[float, Field(ge=60.0, le=1e7)] = 5400.0
    run_spread: Annotated[float, Field(ge=0.0, le=1.0)] = RUN_SPREAD

    def __post_init__(self) -> None:
        if not min(self.user_variances) >= 0.0:
            problem = f"run_spread {self.run_spread!r} is more than the quartiles of all jobs allow"
            raise InputError(_WHERE, problem, "make it smaller")

    @property
    def user_variances(self) -> tuple[float, float]:
        """Variance between users, below and above the median: the published one of all jobs minus all others."""
        low, middle, high = map(math.log, QUARTILES_W)
        within = TIME_SPREAD**2 + APPLICATION_SPREAD**2 + self.run_spread**2
        return ((middle - low) / _QUARTILE) ** 2 - within, ((high - middle) / _QUARTILE) ** 2 - within


@dataclass(frozen=True, slots=True)
class _Application:
    """An application that a user runs repeatedly."""

    user: int
    queue: str
    nodes: int
    node_w: float
    """Mean power of a node in W."""
    runtime_s: float
    time_spread: float


def pm100_like(params: Pm100Like | None = None, seed: int = 0) -> dict[str, Any]:
    """Generate a Batsim workload as JSON data: delays with `user`, `queue`, `power_w`, its deviation, maximum, phases.

    The power of an application is near that of its user, and the power of a run near that of its application;
    logarithms of powers of nodes are normal, with different spreads below and above the median, and cut to the range of
    a node. A run has two to five phases of random length and power, equal on all its nodes. Users are of unequal
    activity (1/sqrt(rank)), arrivals uniform over the time of the load, walltimes 1.2 to 4 times the run time. All
    draws come from PCG64(seed): same seed, same bytes. Raises InputError.
    """
    params = params or Pm100Like()
    rng = rng_of(seed, _WHERE)
    applications, activity = _applications(params, rng)
    indices = rng.choice(len(applications), params.jobs, p=activity)
    runtimes_s = [_runtime_s(params, applications[index], rng) for index in indices]
    busy_s = math.fsum(applications[i].nodes * length_s for i, length_s in zip(indices, runtimes_s, strict=True))
    end_s = busy_s / (params.nodes * params.load)
    submits_s = sorted(math.floor(1000.0 * end_s * share) / 1000.0 for share in rng.random(params.jobs).tolist())
    jobs: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for number, (index, submit_s, runtime_s) in enumerate(zip(indices, submits_s, runtimes_s, strict=True), 1):
        application = applications[index]
        phases = _phases(params, application, runtime_s, rng)
        power = JobPower.of_phases(phases)
        jobs.append({
            "id": str(number), "subtime": submit_s, "res": application.nodes,
            "walltime": math.ceil(runtime_s * rng.uniform(1.2, 4.0)), "profile": str(number),
            "user": f"u{application.user}", "queue": application.queue,
            POWER_W: round(power.mean_w, 3), POWER_STD_W: round(power.std_w, 3), POWER_MAX_W: power.max_w,
            POWER_PHASES: [list(phase) for phase in phases],
        })  # fmt: skip
        profiles[str(number)] = {"type": "delay", "delay": runtime_s}
    return {
        "description": f"PM100-like, seed {seed}: {params.jobs} jobs of {params.users} users on {params.nodes} nodes",
        "nb_res": params.nodes,
        "jobs": jobs,
        "profiles": profiles,
    }


def _applications(params: Pm100Like, rng: np.random.Generator) -> tuple[list[_Application], list[float]]:
    """Return the applications of all users, and their frequencies."""
    widths = {nodes: count for nodes, count in WIDTHS.items() if nodes <= params.nodes}
    shares = np.array(list(widths.values())) / sum(widths.values())
    applications, activity = [], []
    for user in range(1, params.users + 1):
        away = float(rng.normal())
        user_w = math.log(QUARTILES_W[1]) + math.sqrt(params.user_variances[away > 0.0]) * away
        count = int(rng.integers(1, APPLICATIONS + 1))
        for _ in range(count):
            node_w = math.exp(user_w + APPLICATION_SPREAD * rng.normal())
            queue = QUEUES[int(rng.integers(len(QUEUES)))]
            nodes = int(rng.choice(list(widths), p=shares))
            runtime_s = params.mean_runtime_s * math.exp(0.8 * rng.normal())
            time_spread = min(TIME_SPREADS[1], max(TIME_SPREADS[0], TIME_SPREAD * math.exp(rng.normal())))
            applications.append(_Application(user, queue, nodes, node_w, runtime_s, time_spread))
            activity.append(1.0 / math.sqrt(user) / count)
    return applications, (np.array(activity) / math.fsum(activity)).tolist()


def _runtime_s(params: Pm100Like, application: _Application, rng: np.random.Generator) -> float:
    """Draw a run time in s, to the ms: a logarithm of spread 1, 0.8 between applications and 0.6 between runs."""
    drawn_s = application.runtime_s * math.exp(0.6 * rng.normal() - 0.5)
    return round(min(max(drawn_s, 60.0), 20.0 * params.mean_runtime_s), 3)


def _phases(
    params: Pm100Like, application: _Application, runtime_s: float, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Draw phases (duration in s, W of all nodes), whose deviation over time is about that of the application."""
    count = int(rng.integers(2, 6))
    node_w = application.node_w * math.exp(params.run_spread * rng.normal())
    shares = rng.dirichlet([2.0] * count)
    signs = rng.normal(size=count)
    away = signs - float(shares @ signs)
    size = math.sqrt(float(shares @ away**2))
    levels = 1.0 + application.time_spread * (away / size if size > 0.0 else 0.0 * away)
    watts = [round(application.nodes * min(MOST_W, max(LEAST_W, node_w * level)), 1) for level in levels.tolist()]
    lengths_s = [max(0.001, round(runtime_s * share, 3)) for share in shares.tolist()]
    return list(zip(lengths_s, watts, strict=True))
