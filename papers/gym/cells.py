"""Cells of the study of agents that switch hosts: platform, jobs of a day, days of training and held-back days.

The cells were declared before any held-back day was run. A day is drawn from its number: Poisson arrivals with a wave
over the day, a level of the day, and a level of 0.4 on two of seven days. All days have one law and different draws.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from batwatt.inputs.platform_files import read_platform
from batwatt.model.platform import Platform
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.units import DAY_S, HOUR_S

HOSTS = 16
SERVERS = Path(__file__).resolve().parents[2] / "platforms" / "grid5000-idle.xml"
"""Platform whose first server is Paravance: 69.9 W idle, 200.5 W with a job, 4.5 W asleep, off in 10 s, on in 189 s."""
SEEDS = (1, 2, 3)
"""Seeds of training: weights, exploration and order of the days."""
TRAINING_DAYS = range(100)
"""Days of training, drawn at random."""
TUNING_DAYS = range(5_000, 5_030)
"""Days for the choice of reward weights and settings and for the learning curve."""
HELD_BACK_DAYS = range(9_000, 9_040)
"""Days run once, after training."""
MEAN_JOBS = 120.0
WIDTHS, SHARES = (1, 2, 4, 8), (0.5, 0.25, 0.17, 0.08)
MEDIAN_S, SPREAD = 600.0, 1.1
"""Median of the run times and standard deviation of their logarithm."""
LONGEST_S = 4 * HOUR_S
TIMEOUTS_S = (0.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0, 14400.0, 1e9)
"""Grid of the timeouts for idle hosts; the last one switches nothing off."""


@cache
def platform() -> Platform:
    """Return 16 servers like Paravance."""
    first = read_platform(SERVERS).hosts[0]
    return Platform(tuple(replace(first, id=host, name=f"paravance-{host:02d}") for host in range(HOSTS)))


def jobs_of(day: int) -> Workload:
    """Return the jobs of a day, by its number."""
    rng = np.random.default_rng([day, 20])
    level = float(rng.lognormal(-0.045, 0.3)) * (0.4 if day % 7 in (5, 6) else 1.2)
    count = max(1, int(rng.poisson(MEAN_JOBS * level)))
    # by rejection: most arrivals at 14 h, a tenth of that at 2 h
    times_s: list[float] = []
    while len(times_s) < count:
        draws = rng.uniform(0.0, DAY_S, count)
        rate = 0.55 - 0.45 * np.cos(2.0 * np.pi * (draws - 2 * HOUR_S) / DAY_S)
        times_s += draws[rng.random(count) < rate].tolist()
    speed_flops = platform().hosts[0].pstates[0].speed_flops
    jobs, profiles = [], {}
    for number, time_s in enumerate(sorted(times_s[:count])):
        run_s = min(LONGEST_S, max(30.0, float(rng.lognormal(np.log(MEDIAN_S), SPREAD))))
        hosts = int(rng.choice(WIDTHS, p=SHARES))
        walltime_s = min(2 * LONGEST_S, run_s * float(rng.uniform(1.2, 4.0)))
        jobs.append(
            {
                "id": number,
                "subtime": round(time_s, 3),
                "res": hosts,
                "walltime": round(walltime_s, 3),
                "profile": f"p{number}",
            }
        )
        profiles[f"p{number}"] = {"type": "parallel_homogeneous", "cpu": round(run_s, 3) * speed_flops, "com": 0}
    return parse_workload({"nb_res": HOSTS, "jobs": jobs, "profiles": profiles}, "w0", f"day {day}")
