"""Observations and rewards of `batwatt.gym`, on cases that were worked out on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import job, workload_of
from gym_cases import THREE, platform, play

pytest.importorskip("gymnasium")

from batwatt.gym import OBSERVATIONS, BatwattEnv
from batwatt.model.series import Series

# observations ---------------------------------------------------------------------------------------------------------


def test_values_of_all_columns_by_hand():
    limits = {
        "envelope": Series((0.0, 1000.0), (400.0, 330.0), "power_w"),
        "capacity": Series((0.0, 310.0), (4.0, 3.0), "machines"),
    }
    columns = [name for name, column in OBSERVATIONS.items() if column.limit in ("", *limits)]
    env = BatwattEnv(platform(), THREE, queue=2, observation=columns, **limits)
    env.reset()
    env.step(0)
    # 10 s: a runs on 3 hosts until 200 s at the latest, b has waited for 10 s, c has come
    values = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in env.values().items()}
    assert values == {
        "time_of_day_s": 10.0, "free_hosts": 1.0, "room_hosts": 1.0, "running_jobs": 1.0,
        "queue_length": 2.0, "queue_hosts": 3.0, "oldest_wait_s": 10.0,
        "next_end_s": 190.0, "head_shadow_s": 190.0, "power_w": 330.0,
        "cap_w": 400.0, "next_cap_w": 400.0,
        "capacity": 4.0, "next_capacity": 3.0, "next_change_s": 300.0,
        "job_hosts": [2.0, 1.0], "job_walltime_s": [60.0, 40.0], "job_wait_s": [10.0, 0.0],
        "job_slowdown": [70 / 60, 1.0], "job_fits": [0.0, 1.0],
    }  # fmt: skip


MANY = ("time_of_day_s", "queue_length", "job_hosts", "power_w")
SCALED = {
    # bounded: v / s; open: v / (v + s), two jobs for three places
    "four columns": (
        THREE, {"queue": 3, "observation": MANY}, [10 / 86400, 2 / (2 + 3), 2 / 4, 1 / 4, 0.0, 330 / 400]),
    "the time of day is that of the clock": (
        replace(THREE, begin="2024-07-01T21:36Z"), {"queue": 2, "observation": ["time_of_day_s"]},
        [(21 * 3600 + 36 * 60 + 10) / 86400]),
    # (30 + 10) / 10, and 4 / (4 + 10)
    "the slowdown of a job with a short walltime is bounded": (
        workload_of(job("a", 0, 4, 30), job("b", 0, 1, 2, 4)), {"observation": ["job_slowdown"]}, [4 / 14]),
    "a cap above all power is 1, and no walltime is long": (
        workload_of(job("a", 0, 4, 10), job("b", 0, 1, 10)),
        {"observation": ("cap_w", "job_walltime_s", "next_change_s"), "envelope": Series((0.0,), (9e9,))},
        [1.0, 1.0, 1.0]),
}  # fmt: skip
"""Jobs, settings, and the observation after the first job has started."""


@pytest.mark.parametrize(("load", "settings", "expected"), SCALED.values(), ids=SCALED)
def test_how_values_are_scaled(load, settings, expected):
    env = BatwattEnv(platform(), load, **{"queue": 1, **settings})
    env.reset()
    seen = env.step(0)[0]
    assert seen.dtype == np.float32 and seen.tolist() == pytest.approx(expected)
    entries = [entry for one in env.layout.values() for entry in range(one.start, one.stop)]
    assert entries == list(range(len(expected))) and list(env.layout) == list(settings["observation"])


def test_a_step_returns_new_data():
    env = BatwattEnv(platform(), THREE, queue=3)
    first, info = env.reset()
    copies = first.copy(), info["action_mask"].copy()
    env.step(0)
    assert np.array_equal(first, copies[0]) and np.array_equal(info["action_mask"], copies[1])


# rewards --------------------------------------------------------------------------------------------------------------


SHUT = Series((0.0, 150.0, 170.0), (1.0, 0.0, 1.0), "machines")
TINY = workload_of(job("a", 0, 4, 10), job("z", 0, 4, 0, flops=True))
GAINS = {
    "slowdown": (THREE, {"reward": "mean_slowdown"}, (0, 1, 0), [0.0, -2 / 3, -3 / 3]),
    # delays draw nothing more than idle hosts: 4 x 30 W
    "energy": (THREE, {"reward": "energy_j"}, (0, 1, 0), [-1200.0, -10800.0, -6000.0]),
    "goodput": (THREE, {"reward": "goodput"}, (0, 1, 0), [0.0, 320 / 400, 420 / 600 - 320 / 400]),
    "two": (THREE, {"reward": {"makespan_s": 0.5, "goodput": 600.0}}, (0, 1, 0), [-5.0, -45.0 + 480, -25.0 - 60]),
    # b of 2 s waits for 8 s: (8 + 2) / 10 s, not 5; c of 2 s for 10 s more than that: 2, not 10
    "bounded slowdown of a short job": (
        workload_of(job("a", 0, 4, 8), job("b", 0, 4, 2), job("c", 0, 4, 10)),
        {"reward": "mean_bounded_slowdown"}, (0, 0, 0), [-1 / 3, -1 / 3, -2 / 3]),
    # b reaches its walltime of 5 s: 5 / 5; then a: (5 + 10) / 10
    "a walltime that is reached": (
        workload_of(job("a", 0, 4, 10), job("b", 0, 4, 50, 5)), {}, (1, 0), [-1 / 2, -1.5 / 2]),
    # Batsim's files say that it ran for 1e-5 s: after a wait of 10 s its slowdown is 1,000,001
    "a job that ends when it starts": (TINY, {}, (0, 0), -(1 + 1_000_001) / 2),
    # b waits until a ends at 100 s, is killed at 150 s and starts again at 170 s, after 170 s of waiting altogether
    "a victim waits since its first submission": (
        workload_of(job("a", 0, 1, 100), job("b", 0, 1, 100)), {"capacity": SHUT, "reward": "mean_wait_s"}, (0, 0, 0),
        [-100 / 2, -70 / 2, 0.0]),
}  # fmt: skip
"""Jobs, settings, actions, and the reward of each step or of all."""


@pytest.mark.parametrize(("load", "settings", "actions", "gains"), GAINS.values(), ids=GAINS)
def test_rewards_by_hand(load, settings, actions, gains):
    rewards = [gain for _, _, gain in play(BatwattEnv(platform(), load, **{"queue": 3, **settings}), *actions)]
    assert (rewards if isinstance(gains, list) else sum(rewards)) == pytest.approx(gains, rel=1e-9)
