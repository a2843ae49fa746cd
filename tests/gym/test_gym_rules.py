"""The rules of `batwatt.gym` on cases worked out on paper: episodes, limits, results, observations, rewards."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from builders import job, workload_of
from gym_cases import DIM, FALLS, ONES, THREE, platform, play, rows_of, states_of

pytest.importorskip("gymnasium")

from batwatt.gym import OBSERVATIONS, BatwattEnv
from batwatt.model.timeline import Timeline
from batwatt.results.figures import rounded
from batwatt.results.metrics import measured

EPISODES = {
    # a starts on 3 hosts: b does not fit any more, so the next decision is at 10 s, when c comes; c ends at 30 s, which
    # is of no use for b; a ends at 100 s, b runs until 150 s. Slowdowns: a 1, c 1, b 150 / 50 = 3
    "first fit": (
        THREE, {}, (0, 1, 0), [(10.0, "0101"), (100.0, "1000"), (150.0, "0001")],
        {"a": (0.0, 100.0, "0-2"), "c": (10.0, 30.0, "3"), "b": (100.0, 150.0, "0-1")}, {"mean_slowdown": 5 / 3}),
    # b on 2 hosts; a (3) must wait; c comes at 10 s, is left waiting; at 50 s b ends, and both fit
    "time goes on only when nothing visible fits": (
        THREE, {}, (1, 3, 0, 0), [(10.0, "0101"), (50.0, "1100"), (50.0, "1001"), (150.0, "")],
        {"b": (0.0, 50.0, "0-1"), "a": (50.0, 150.0, "0-2"), "c": (50.0, 70.0, "3")}, {}),
    # only a is visible, then only b, which does not fit before a ends at 100 s; c is behind it
    "jobs beyond the visible ones": (
        THREE, {"queue": 1}, (0, 0, 0), [],
        {"a": (0.0, 100.0, "0-2"), "b": (100.0, 150.0, "0-1"), "c": (100.0, 120.0, "2")}, {}),
    # b and c run; at 60 s c, which started last, is killed and comes behind a; b ends at 100 s; the new run of c, then
    # a. c waits from its first submission: (0 + 200 + 300) / 100 s, over three jobs
    "a cap that falls": (
        ONES, {"envelope": FALLS}, (1, 1, 1, 0), [(time, "") for time in (0.0, 100.0, 200.0, 300.0)],
        {"b": (0.0, 100.0, "0"), "c": (0.0, 60.0, "1"), "c#1": (100.0, 200.0, "0"), "a": (200.0, 300.0, "0")},
        {"killed_power": 1, "resubmissions": 1, "violations": 0, "mean_slowdown": (1 + 2 + 3) / 3}),
    # a and b until 50 s, when both are killed; at 70 s there is room for c, a and b again. Useful: 3 x 100 of
    # 2 x 50 + 4 x 100 core seconds
    "a capacity that falls and rises": (
        ONES, {"capacity": Timeline((0.0, 50.0, 70.0), (2.0, 0.0, 4.0), "machines")}, (0, 0, 1, 1, 0),
        [(time, "") for time in (0.0, 70.0, 70.0, 70.0, 170.0)],
        {"a": (0.0, 50.0, "0"), "b": (0.0, 50.0, "1"), "a#1": (70.0, 170.0, "0"), "b#1": (70.0, 170.0, "1"),
         "c": (70.0, 170.0, "2")}, {"goodput": 300 / 500}),
}  # fmt: skip
"""Jobs, settings, actions, (time, mask if it is looked at) after each, (start, end, hosts) of jobs, figures."""


@pytest.mark.parametrize(("load", "settings", "actions", "moments", "rows", "figures"), EPISODES.values(), ids=EPISODES)
def test_an_episode_by_hand(load, settings, actions, moments, rows, figures):
    env = BatwattEnv(platform(), load, **{"queue": 3, **settings})
    steps = play(env, *actions)
    for (time_s, mask, _), (expected_s, expected) in zip(steps, moments or [], strict=bool(moments)):
        assert time_s == expected_s and expected in ("", "".join(map(str, mask)))
    assert rows_of(env) == rows
    metrics = env.result().values
    assert {name: metrics[name] for name in figures} == pytest.approx(figures)


def test_illegal_actions():
    env = BatwattEnv(platform(), THREE, queue=3)
    env.reset()
    # there is no third job: that is waiting, until c comes at 10 s
    *_, info = env.step(2)
    assert (info["action"], info["time_s"], info["action_mask"].tolist()) == (3, 10.0, [1, 1, 1, 0])
    # nothing runs and nothing is to come, and there is no ninth place: waiting is starting the first job
    *_, info = env.step(8)
    assert (info["action"], info["time_s"], info["action_mask"].tolist()) == (0, 10.0, [0, 1, 0, 1])
    # b does not fit: that is waiting, for the end of a
    *_, info = env.step(0)
    assert (info["action"], info["time_s"], info["action_mask"].tolist()) == (3, 110.0, [1, 1, 0, 0])


# limits ---------------------------------------------------------------------------------------------------------------


def test_a_limit_that_is_too_low_in_the_end_is_lifted():
    # two hosts until 60 s, one until 120 s, then all four: b starts at 70 s, a at 120 s
    load = workload_of(job("wide", 0, 5, 1), job("a", 0, 3, 100), job("b", 70, 1, 10))
    env = BatwattEnv(platform(), load, queue=3, envelope=FALLS, reward="mean_wait_s")
    assert play(env, 1, 0) == [(120.0, [1, 0, 0, 0], -120 / 2), (220.0, [0, 0, 0, 1], 0.0)]
    metrics = env.result().values
    assert (metrics["jobs_finished"], metrics["jobs_rejected"], metrics["violations"]) == (2, 1, 0)
    # the other limit stays
    both = BatwattEnv(platform(), load, envelope=FALLS, capacity=Timeline((0.0, 60.0), (4.0, 3.0)))
    both.reset()
    assert both.simulation.episode.run.capacity.values == (4.0, 3.0)


def test_a_limit_that_repeats_is_not_lifted(tmp_path):
    # 4 hosts, none from 100 s on, 3 from 200 s to 300 s, and again: a job of 4 hosts waits for 300 s
    path = tmp_path / "on.csv"
    path.write_text("time_s,machines\n0,4\n100,0\n200,3\n")
    load = workload_of(job("a", 120, 4, 30), job("b", 400, 4, 30))
    env = BatwattEnv(platform(), load, queue=3, capacity=f"trace:{path},repeat=yes")
    assert [time_s for time_s, *_ in play(env, 0, 0)] == [600.0, 630.0]
    assert {name: row[0] for name, row in rows_of(env).items()} == {"a": 300.0, "b": 600.0}
    # never room for 4 hosts (400 W): rejected, as under a constant limit
    watts = Timeline((0.0, 100.0, 150.0), (390.0, 0.0, 330.0), loop=0, period_s=250.0)
    env = BatwattEnv(platform(), workload_of(job("a", 120, 4, 30), job("b", 0, 1, 30)), queue=3, envelope=watts)
    play(env, 0)
    assert states_of(env) == {"a": "REJECTED", "b": "COMPLETED_SUCCESSFULLY"}


def test_a_limit_that_ends_is_lifted_there():
    ends = Timeline((0.0, 60.0), (2.0, 1.0), loop=None, period_s=90.0)
    env = BatwattEnv(platform(), workload_of(job("a", 0, 2, 80)), queue=3, capacity=ends)
    assert [time_s for time_s, *_ in play(env, 3, 0)] == [90.0, 170.0]


def test_limits_with_different_periods_hold_together():
    # watts in hour 0 of 6, machines in hour 3 of 7: 24 = 4 x 6 = 3 x 7 + 3 is the first hour with both
    watts = Timeline((0.0, 3600.0), (400.0, 190.0), loop=0, period_s=21600.0)
    machines = Timeline((0.0, 10800.0, 14400.0), (1.0, 4.0, 1.0), loop=0, period_s=25200.0)
    load = workload_of(job("a", 0, 4, 100))
    env = BatwattEnv(platform(), load, queue=3, envelope=watts, capacity=machines)
    assert [time_s for time_s, *_ in play(env, 0)] == [24 * 3600.0 + 100.0]
    limits = env.simulation.limits
    assert (limits.most, limits.both.period_s) == (4, 42 * 3600.0)


def test_jobs_that_are_too_wide_for_a_constant_limit_are_rejected():
    load = workload_of(job("wide", 0, 5, 1), job("two", 0, 2, 30), job("a", 0, 1, 100), job("b", 70, 2, 1))
    env = BatwattEnv(platform(), load, queue=3, envelope=Timeline((0.0,), (190.0,)), reward="mean_wait_s")
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 0, 0, 1]
    # b comes at 70 s; nothing but a is left then
    assert play(env, 3, 0) == [(70.0, [1, 0, 0, 0], -70.0), (170.0, [0, 0, 0, 1], 0.0)]
    assert states_of(env) == dict.fromkeys(("wide", "two", "b"), "REJECTED") | {"a": "COMPLETED_SUCCESSFULLY"}
    reasons = {row[0]: row[-1] for row in env.record.jobs if row[-1]}
    narrow = dict.fromkeys(("two", "b"), "too wide for the limits")
    assert reasons == {"wide": "wider than the platform of 4 hosts"} | narrow


def test_the_power_of_unlike_hosts_is_that_of_the_lowest_free_ones():
    # 100, 60, 60 W with a job, 30 W without: a cap of 150 W leaves 60 W, which is host 1 and 2 or none while 0 is free
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 1, 10), job("c", 0, 2, 10))
    env = BatwattEnv(platform(1, DIM, DIM), load, queue=3, envelope=Timeline((0.0, 50.0), (160.0, 190.0)))
    env.reset()
    assert env.simulation.scheduler.room == 1
    # 90 W idle + 70 W for host 0: nothing more until 50 s, then 30 W more, which is host 1
    *_, info = env.step(0)
    assert (info["time_s"], info["action_mask"].tolist()) == (50.0, [1, 0, 0, 1])
    assert env.simulation.scheduler.room == 1


# results --------------------------------------------------------------------------------------------------------------


def test_the_files_of_an_episode(tmp_path):
    env = BatwattEnv(platform(), THREE, queue=3, reward={"makespan_s": 1.0})
    steps = play(env, 0, 1, 0)
    assert env.save(tmp_path / "x") == tmp_path / "x"
    names = {path.name.removeprefix("x_") for path in tmp_path.iterdir()}
    assert {"jobs.csv", "schedule.csv", "machine_states.csv", "metrics.json", "metadata.json", "power.csv"} <= names
    env_metrics = env.result().metrics
    assert json.loads((tmp_path / "x_metrics.json").read_text()) == env_metrics
    read, _ = measured(tmp_path / "x", THREE, None, 10.0, capacity=Timeline((0.0,), (4.0,)), cores=1)
    assert dict.fromkeys(env_metrics) | rounded(read) == env_metrics
    about = json.loads((tmp_path / "x_metadata.json").read_text())
    assert (about["scheduler"], about["options"]["reward"]) == ("batwatt.gym", {"makespan_s": 1.0})
    assert sum(gain for _, _, gain in steps) == pytest.approx(-150.0)


# observations ---------------------------------------------------------------------------------------------------------


def test_values_of_all_columns_by_hand():
    limits = {
        "envelope": Timeline((0.0, 1000.0), (400.0, 330.0), "power_w"),
        "capacity": Timeline((0.0, 310.0), (4.0, 3.0), "machines"),
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
        {"observation": ("cap_w", "job_walltime_s", "next_change_s"), "envelope": Timeline((0.0,), (9e9,))},
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


SHUT = Timeline((0.0, 150.0, 170.0), (1.0, 0.0, 1.0), "machines")
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
