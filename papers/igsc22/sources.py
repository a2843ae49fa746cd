"""Make the second set of inputs: jobs of Google's trace, and an envelope of measured sun and wind.

    python -m papers.igsc22.sources
        write inputs/sources/borg-SEED.json, 10 workloads
    python -m papers.igsc22.sources psu17001.dat psu17010.dat
        write data/measured.csv of two days of NOAA's SURFRAD station at Penn State, too

Neither is drawn from a distribution of ours:

- A workload has lengths and widths of 288 different jobs of `workloads/borg/day-691200.txt`, Google's trace of 2019.
  Arrivals and the factors of walltimes are those of `google_like`, as the trace has no walltimes and the document gives
  the rate. All lengths are shortened by one factor, so that the jobs have as much work on average as those of
  `google_like` (the day is of a cluster of thousands of machines). A core of the trace is a host.
- The envelope has 5-minute means of irradiance and wind speed of 2017-01-01 and 2017-01-10, and no model of clouds,
  fronts or gusts. Panels and turbines are in the proportion of profile 3, and so large that the mean power is that of
  profile 3 (the document gives no scale); storage and the limit of the converter are those of profile 3. It begins at
  local midnight: the hours before it on the first day are the last.

Augustine, J. A., DeLuisi, J. J., Long, C. N.: SURFRAD, a national surface radiation budget network for atmospheric
research. Bulletin of the American Meteorological Society 81 (2000). Daily files of one minute (psu17001.dat for day 1
of 2017): https://gml.noaa.gov/aftp/data/radiation/surfrad/. Their SHA-256 begin with bbdd1d1003a54745 and
52d9f2c2c75d3eb6. Data of the government of the United States, public domain.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from batwatt.files import write_text
from batwatt.inputs.google_like import REFERENCE_FLOPS, google_like, to_text

HERE = Path(__file__).parent
BORG = HERE.parents[1] / "workloads" / "borg" / "day-691200.txt"
PROFILE = HERE.parents[1] / "power_profiles" / "profile3.csv"
SEEDS = range(400, 410)
WORK_S = 1500.0 * 3.7
"""Mean of run time x hosts of the jobs of `google_like`, in s."""
IRRADIANCE, WIND = 8, -6
"""Columns of a SURFRAD file: global irradiance on the horizontal in W/m2, wind speed in m/s at 10 m."""
STEP_S = 300
MIDNIGHT_H = 5
"""Local midnight in UTC."""
PANELS_W, TURBINES_W, STORAGE_W, LIMIT_W = 7400.0, 3000.0, 260.0, 4700.0
HUB = math.log(18.0 / 0.1) / math.log(10.0 / 0.1)
"""Wind speed at the hub of 18 m over that at 10 m, roughness 0.1 m."""
CURVE_MS = (2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 24.0, 25.0)
CURVE = (0.0, 0.01, 0.05, 0.11, 0.2, 0.32, 0.46, 0.61, 0.76, 0.88, 0.96, 1.0, 1.0, 0.0)
"""Power curve of the turbines of `power_profiles/make_profiles.py`."""


def workload(seed: int) -> dict[str, Any]:
    """Return a workload of 288 jobs of the trace, drawn without replacement."""
    data = google_like(seed=seed)
    rows = np.loadtxt(BORG)
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    lengths_s, hosts = rows[rng.permutation(len(rows))[: len(data["jobs"])], 2:].T
    shorter = WORK_S / float((rows[:, 2] * rows[:, 3]).mean())
    for job, length_s, width in zip(data["jobs"], lengths_s, hosts, strict=True):
        profile = data["profiles"][job["profile"]]
        factor = job["walltime"] * REFERENCE_FLOPS / profile["cpu"]
        profile["cpu"] = round(shorter * length_s * REFERENCE_FLOPS)
        job["res"], job["walltime"] = int(width), math.ceil(factor * shorter * length_s)
    return data | {"description": f"jobs of a day of Google's trace of 2019, seed {seed}"}


def envelope(days: list[Path]) -> str:
    """Return the envelope of days of SURFRAD as CSV: time in s, power in W rounded to 0.1 W."""
    minutes = np.concatenate([np.loadtxt(day, skiprows=2)[:, [IRRADIANCE, WIND]] for day in days])
    minutes = np.roll(minutes, -60 * MIDNIGHT_H, axis=0)
    irradiance, wind_ms = minutes.reshape(-1, STEP_S // 60, 2).mean(axis=1).T
    sources_w = PANELS_W * irradiance.clip(0.0) / 1000.0 + TURBINES_W * np.interp(HUB * wind_ms, CURVE_MS, CURVE)
    mean_w = float(np.loadtxt(PROFILE, delimiter=",", skiprows=1)[:, 1].mean())
    least, most = 0.0, 100.0
    for _ in range(60):
        scale = (least + most) / 2.0
        power_w = np.minimum(STORAGE_W + scale * sources_w, LIMIT_W)
        least, most = (scale, most) if power_w.mean() < mean_w else (least, scale)
    return "time_s,power_w\n" + "".join(f"{row * STEP_S},{watts:.1f}\n" for row, watts in enumerate(power_w))


if __name__ == "__main__":
    if days := [Path(name) for name in sys.argv[1:]]:
        write_text(HERE / "data" / "measured.csv", envelope(days))
    for seed in SEEDS:
        write_text(HERE / "inputs" / "sources" / f"borg-{seed}.json", to_text(workload(seed)))
