"""Small cases of `batwatt.gym`, and what an episode of them was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import job, workload_of

from batwatt.model.platform import Host, Platform, PState
from batwatt.model.timeline import Timeline

if TYPE_CHECKING:
    from batwatt.gym import BatwattEnv

STATE = PState(10.0, 30.0, 30.0, 100.0)
DIM = PState(10.0, 30.0, 30.0, 60.0)


def platform(count: int = 4, *others: PState) -> Platform:
    """Hosts of 10 flop/s that draw 30 W idle and 100 W with a job, then others."""
    states = [STATE] * count + list(others)
    return Platform(tuple(Host(i, f"h{i}", (state,), has_power=True) for i, state in enumerate(states)))


THREE = workload_of(job("a", 0, 3, 100, 200), job("b", 0, 2, 50, 60), job("c", 10, 1, 20, 40))
"""On 4 hosts b waits for a, and c can start next to a."""
ONES = workload_of(*(job(name, 0, 1, 100) for name in "abc"))
FALLS = Timeline((0.0, 60.0), (260.0, 190.0), "power_w")
"""4 idle hosts draw 120 W and a job 70 W more: two of them at first, one from 60 s on."""


def rows_of(env: BatwattEnv) -> dict[str, tuple[float, float, str]]:
    """Job -> (start, end, hosts) of what ran."""
    return {row[0]: (row[8], row[10], row[14]) for row in env.record.jobs if row[8] is not None}


def states_of(env: BatwattEnv) -> dict[str, str]:
    return {row[0]: row[7] for row in env.record.jobs}


def play(env: BatwattEnv, *actions: int) -> list[tuple[float, list[int], float]]:
    """(time, mask, reward) after each action; the last one ends the episode."""
    env.reset(seed=0)
    steps = []
    for index, action in enumerate(actions):
        _, reward, over, truncated, info = env.step(action)
        assert (over, truncated) == (index == len(actions) - 1, False)
        steps.append((info["time_s"], info["action_mask"].tolist(), reward))
    return steps
