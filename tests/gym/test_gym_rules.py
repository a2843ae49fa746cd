"""The rules of `batwatt.gym`, on cases that were worked out on paper: episodes, limits, results."""

from __future__ import annotations

import json

import pytest
from builders import job, workload_of
from gym_cases import DIM, FALLS, ONES, THREE, away, platform, play, rows_of, states_of

pytest.importorskip("gymnasium")

from batwatt.gym import REWARDS, BatwattEnv
from batwatt.model.series import Series
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
    "a victim that is lost": (
        ONES, {"envelope": FALLS, "victim": "lose"}, (1, 1, 0), [],
        {"b": (0.0, 100.0, "0"), "c": (0.0, 60.0, "1"), "a": (100.0, 200.0, "0")}, {"jobs_finished": 2}),
    # a and b until 50 s, when both are killed; at 70 s there is room for c, a and b again. Useful: 3 x 100 of
    # 2 x 50 + 4 x 100 core seconds
    "a capacity that falls and rises": (
        ONES, {"capacity": Series((0.0, 50.0, 70.0), (2.0, 0.0, 4.0), "machines")}, (0, 0, 1, 1, 0),
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
    metrics = env.outcome().figures.metrics
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


def test_jobs_that_can_never_run_are_rejected():
    load = workload_of(job("wide", 0, 5, 1), job("late", 0, 2, 300), job("a", 0, 1, 100), job("b", 70, 2, 1))
    env = BatwattEnv(platform(), load, queue=3, envelope=FALLS)
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 0, 1]
    # a alone; `late` could have started until 60 s, and waits for what never comes from then on; so does b
    assert env.step(0)[2]
    assert states_of(env) == {
        "wide": "REJECTED",
        "late": "REJECTED",
        "b": "REJECTED",
        "a": "COMPLETED_SUCCESSFULLY",
    }
    reasons = {row[0]: row[-1] for row in env.record.jobs if row[-1]}
    assert reasons == {"wide": "wider than the platform of 4 hosts"} | dict.fromkeys(
        ("late", "b"), "too wide for the limits to come"
    )


def test_the_power_of_unlike_hosts_is_that_of_the_lowest_free_ones():
    # 100, 60, 60 W with a job, 30 W without: a cap of 150 W leaves 60 W, which is host 1 and 2 or none while 0 is free
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 1, 10), job("c", 0, 2, 10))
    env = BatwattEnv(platform(1, DIM, DIM), load, queue=3, envelope=Series((0.0, 50.0), (160.0, 190.0)))
    env.reset()
    assert env.simulation.scheduler.room == 1
    # 90 W idle + 70 W for host 0: nothing more until 50 s, then 30 W more, which is host 1
    *_, info = env.step(0)
    assert (info["time_s"], info["action_mask"].tolist()) == (50.0, [1, 0, 0, 1])
    assert env.simulation.scheduler.room == 1


def test_all_jobs_may_be_refused():
    env = BatwattEnv(platform(), workload_of(job("a", 0, 9, 10)), queue=2)
    seen, info = env.reset()
    assert info["action_mask"].tolist() == [0, 0, 1] and seen in env.observation_space
    _, reward, over, _, info = env.step(0)
    # waits until the horizon, its run time of 10 s after its submission: (10 + 10) / 10
    assert (reward, over, info["metrics"]["jobs_rejected"]) == (-2.0, True, 1)


PAIR = workload_of(job("a", 0, 1, 100), job("b", 0, 1, 100, 150), job("c", 0, 1, 100))
DIP = Series((0.0, 60.0, 100.0), (2.0, 1.0, 2.0), "machines")


@pytest.mark.parametrize(
    ("victim", "left_s", "walltime_s", "metadata"),
    [
        # of 60 s the last 10 s write the checkpoint: 50 s are left, and 20 s to recover
        (
            {"name": "checkpoint", "checkpoint_s": 10, "recovery_s": 20},
            70.0,
            120.0,
            {"b": "checkpointed overhead_s=10.000000", "b#1": "overhead_s=20.000000"},
        ),
        # all 60 s are kept: 40 s are left, and 5 s to migrate
        ({"name": "migrate", "cost_s": 5}, 45.0, 95.0, {"b": "migrated", "b#1": "overhead_s=5.000000"}),
    ],
)
def test_a_victim_whose_work_is_saved(victim, left_s, walltime_s, metadata):
    env = BatwattEnv(
        platform(2), PAIR, queue=3, capacity=DIP, victim=victim, observation=["job_walltime_s"], reward=dict(WEIGHTS)
    )
    env.reset()
    total = sum(env.step(0)[1] for _ in range(2))
    # a and b run until b is killed at 60 s; at 100 s a ends, and there is room for c and for what is left of b
    assert env.values()["job_walltime_s"].tolist() == [1e15, walltime_s, 0.0]
    assert env.simulation.now_s == 100.0
    total += sum(env.step(0)[1] for _ in range(2))
    assert rows_of(env) == {
        "a": (0.0, 100.0, "0"),
        "b": (0.0, 60.0, "1"),
        "b#1": (100.0, 100.0 + left_s, "1"),
        "c": (100.0, 200.0, "0"),
    }
    assert {row[0]: row[-1] for row in env.record.jobs if row[-1]} == metadata
    metrics = env.outcome().figures.metrics
    # b waits for nothing, and runs in two parts: 100 s + left_s after its submission it has run for 60 s + left_s
    assert metrics["mean_wait_s"] == pytest.approx(100 / 3)
    assert metrics["mean_slowdown"] == pytest.approx((1 + (100 + left_s) / (60 + left_s) + 2) / 3)
    # 100 s of work of each job, without overhead, of 2 x 60 + 1 x 40 + 2 x 100 core seconds
    assert metrics["goodput"] == pytest.approx(300 / 360)
    figures = {name: REWARDS[name].sign * metrics[REWARDS[name].figure.name] for name in REWARDS}
    assert total == pytest.approx(sum(WEIGHTS[name] * figure for name, figure in figures.items()), rel=1e-9)


WEIGHTS = {name: 1.0 + 0.1 * number for number, name in enumerate(REWARDS)}
"""Of all rewards, no two alike."""


def test_a_victim_that_was_saved_and_can_never_run_again():
    # two hosts until 60 s, then one for ever: what is left of b is too wide, and waits until 60 + 100 + 100 + 2 x 5 s
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 2, 100))
    capacity = Series((0.0, 60.0), (2.0, 1.0), "machines")
    victim = {"name": "migrate", "cost_s": 5}
    env = BatwattEnv(platform(2), load, queue=2, capacity=capacity, victim=victim, reward="mean_wait_s")
    assert sum(gain for _, _, gain in play(env, 1, 0)) == pytest.approx(-(60 + 270) / 2)
    assert states_of(env)["b#1"] == "REJECTED"


# hosts out of service -------------------------------------------------------------------------------------------------


def test_a_host_that_events_take_away_and_bring_back(tmp_path):
    load = workload_of(job("a", 0, 1, 100), job("b", 10, 1, 20), job("c", 10, 2, 10))
    events = away(tmp_path, (5, 50, "1"), (60, 65, "1"))
    columns = ["free_hosts", "room_hosts", "head_shadow_s"]
    env = BatwattEnv(platform(2), load, queue=2, events=events, observation=columns)
    env.reset()
    # a on host 0; host 1 is away from 5 s on, and b comes at 10 s: it can start when the host is back
    *_, info = env.step(0)
    assert (info["time_s"], info["action_mask"].tolist()) == (50.0, [1, 0, 1])
    assert env.values() == {"free_hosts": 1.0, "room_hosts": 1.0, "head_shadow_s": 0.0}
    # b goes on while its host is away again; c has both hosts when a ends
    *_, info = env.step(0)
    assert (info["time_s"], info["action_mask"].tolist()) == (100.0, [1, 0, 0])
    assert env.step(0)[2]
    assert rows_of(env) == {"a": (0.0, 100.0, "0"), "b": (50.0, 70.0, "1"), "c": (100.0, 110.0, "0-1")}


def test_jobs_that_need_a_host_that_stays_away_are_rejected(tmp_path):
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 2, 10))
    env = BatwattEnv(platform(2), load, queue=2, events=away(tmp_path, (50, None, "1")), reward="mean_wait_s")
    # b needs both hosts, and is rejected at 50 s; it waits until 50 + 100 + 10 s
    assert play(env, 0) == [(100.0, [0, 0, 1], pytest.approx(-160 / 2))]
    assert {row[0]: row[-1] for row in env.record.jobs if row[-1]} == {"b": "as host 1 is out of service"}


# results --------------------------------------------------------------------------------------------------------------


def test_the_files_of_an_episode(tmp_path):
    env = BatwattEnv(platform(), THREE, queue=3, reward={"work": 1.0})
    steps = play(env, 0, 1, 0)
    assert env.save(tmp_path / "x") == tmp_path / "x"
    names = {path.name.removeprefix("x_") for path in tmp_path.iterdir()}
    assert {"jobs.csv", "schedule.csv", "machine_states.csv", "metrics.json", "metadata.json", "power.csv"} <= names
    env_metrics = env.result().metrics
    assert json.loads((tmp_path / "x_metrics.json").read_text()) == env_metrics
    read, _ = measured(tmp_path / "x", THREE, None, 10.0, capacity=Series((0.0,), (4.0,)), cores=1)
    assert rounded(read) == env_metrics
    about = json.loads((tmp_path / "x_metadata.json").read_text())
    assert (about["scheduler"], about["options"]["reward"]) == ("batwatt.gym", {"work": 1.0})
    assert sum(gain for _, _, gain in steps) == pytest.approx(1.0)
