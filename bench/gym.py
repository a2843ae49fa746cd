"""Measure the decisions per second of the Gymnasium environment: `make bench`.

The platform and the jobs of `bench/engine.py`: 128 hosts, 5,000 jobs at a load of 0.75 or 1.15. A trivial policy starts
the first visible job that can start; an episode is 5,000 decisions. Times are those of `reset` and all `step`s, with
the observation, the mask, the reward and, at the end, the figures of the run; the best of 7 episodes. The environment
has no wrappers of `gymnasium.make`, but for one line to compare. An episode uses one thread: the target is for seconds
of a processor, which depend less on other programs.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from typing import Any

import gymnasium
from apart import form
from engine import machine, workload

from batwatt.gym import ENVIRONMENT, OBSERVATIONS, BatwattEnv

JOBS = 5_000
TARGET = 10_000
ALL = [name for name, column in OBSERVATIONS.items() if not column.limit]


def episode(env: gymnasium.Env[Any, Any]) -> int:
    """Run an episode; return its number of decisions."""
    _, info = env.reset(seed=0)
    decisions, over = 0, False
    while not over:
        _, _, over, _, info = env.step(info["action_mask"].argmax())
        decisions += 1
    return decisions


def measure(env: gymnasium.Env[Any, Any], episodes: int) -> tuple[float, float]:
    """Measure decisions per second of a processor, and of the clock, each the best of several episodes."""
    best = [0.0, 0.0]
    for _ in range(episodes):
        began = time.process_time(), time.perf_counter()
        decisions = episode(env)
        took_s = time.process_time() - began[0], time.perf_counter() - began[1]
        best = [max(rate, decisions / seconds) for rate, seconds in zip(best, took_s, strict=True)]
    return best[0], best[1]


def main() -> int:
    """Print a table; exit 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="print the time of each function")
    arguments = parser.parse_args()
    platform = machine()
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(episode, BatwattEnv(platform, workload(JOBS, 0.75)))
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return 0
    met = True
    print(f"the engine is {form()}")
    print(f"{'load':>5} {'visible':>7}  {'':<28} {'per cpu s':>11} {'per s':>8}")
    for load in (0.75, 1.15):
        jobs = workload(JOBS, load)
        usual = measure(BatwattEnv(platform, jobs), 7)
        met = met and usual[0] >= TARGET
        checked = gymnasium.make(ENVIRONMENT, platform=platform, workload=jobs)
        lines = {
            (16, ""): usual,
            (128, ""): measure(BatwattEnv(platform, jobs, queue=128), 3),
            (16, "all columns"): measure(BatwattEnv(platform, jobs, observation=ALL), 3),
            (16, "with gymnasium.make's checks"): measure(checked, 2),
        }
        for (visible, what), (cpu, clock) in lines.items():
            print(f"{load:>5} {visible:>7}  {what:<28} {cpu:>11.0f} {clock:>8.0f}", flush=True)
    print(f"{'met   ' if met else 'MISSED'} {TARGET} decisions per cpu s on {len(platform)} hosts, 16 jobs visible")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
