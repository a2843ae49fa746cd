"""Measure the overhead of `batwatt.simulate` over the engine, in one process with the inputs read: `make bench`.

Google-like jobs of 240 h under the shipped envelope, EASY and HFLD; processor time, median of alternating pairs.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import batwatt as bw
from batwatt.batsim.adapters import seldom_collected, simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.schedulers.powercap import Powercap

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = {"order": "slowdown", "backfilling": "easy", "response": "hfld"}
MOST = 1.05
"""Target: largest ratio of the time of `simulate` to that of the engine."""
PAIRS = 11


def main() -> int:
    """Print the ratio; return 1 if it misses the target."""
    platform = bw.Platform.read(ROOT / "platforms" / "grid5000.xml")
    workload = bw.Workload.synthetic(seed=1, hours=240)
    envelope = bw.read_series(ROOT / "power_profiles" / "profile3.csv")

    @seldom_collected()
    def engine() -> None:
        scheduler = Powercap({"platform": platform, "envelope": envelope, **OPTIONS})
        simulate(Engine(platform, [workload], EngineConfig(energy=True)), scheduler)

    def api() -> None:
        bw.simulate(platform, workload, envelope=envelope, options=OPTIONS)

    pairs = [(_cpu_s(engine), _cpu_s(api)) for _ in range(PAIRS)]
    ratio = statistics.median(ours / bare for bare, ours in pairs)
    missed = "" if ratio <= MOST else f"  MISSED {MOST:g}"
    mean_s = statistics.median(bare for bare, _ in pairs)
    print(f"simulate / engine: {ratio:.3f} of {mean_s:.2f} s, {len(workload.jobs)} jobs, {PAIRS} pairs{missed}")
    return 1 if missed else 0


def _cpu_s(run: Callable[[], None]) -> float:
    # do not count the garbage of the run before
    gc.collect()
    began = time.process_time()
    run()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
