"""The rules of `batwatt.gym`, on cases that were worked out on paper."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from builders import job, workload_of

pytest.importorskip("gymnasium")

from batwatt.errors import InputError
from batwatt.gym import OBSERVATIONS, REWARDS, BatwattEnv
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.series import Series
from batwatt.results.metrics import MEANINGS, measured

STATE = PState(10.0, 30.0, 30.0, 100.0)
DIM = PState(10.0, 30.0, 30.0, 60.0)


def platform(count: int = 4, *others: PState) -> Platform:
    """Hosts of 10 flop/s that draw 30 W idle and 100 W with a job, then others."""
    states = [STATE] * count + list(others)
    return Platform(tuple(Host(i, f"h{i}", (state,), has_power=True) for i, state in enumerate(states)))


THREE = workload_of(job("a", 0, 3, 100, 200), job("b", 0, 2, 50, 60), job("c", 10, 1, 20, 40))
"""On 4 hosts b waits for a, and c can start next to a."""


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


def test_an_episode_by_hand():
    env = BatwattEnv(platform(), THREE, queue=3)
    _, info = env.reset(seed=0)
    assert (info["time_s"], info["action_mask"].tolist()) == (0.0, [1, 1, 0, 1])
    # a starts on 3 hosts: b does not fit any more, so the next decision is at 10 s, when c comes; c ends at 30 s, which
    # is of no use for b; a ends at 100 s, b runs until 150 s. Slowdowns: a 1, c 1, b 150 / 50 = 3
    assert play(env, 0, 1, 0) == [
        (10.0, [0, 1, 0, 1], 0.0),
        (100.0, [1, 0, 0, 0], pytest.approx(-2 / 3)),
        (150.0, [0, 0, 0, 1], pytest.approx(-3 / 3)),
    ]
    assert rows_of(env) == {"a": (0.0, 100.0, "0-2"), "c": (10.0, 30.0, "3"), "b": (100.0, 150.0, "0-1")}
    assert env.outcome().figures.metrics.mean_slowdown == pytest.approx(5 / 3)


def test_time_goes_on_only_when_nothing_visible_fits():
    env = BatwattEnv(platform(), THREE, queue=3)
    # b on 2 hosts; a (3) must wait; c comes at 10 s, is left waiting; at 50 s b ends, and both fit
    steps = play(env, 1, 3, 0, 0)
    assert [(time, mask) for time, mask, _ in steps[:3]] == [
        (10.0, [0, 1, 0, 1]),
        (50.0, [1, 1, 0, 0]),
        (50.0, [1, 0, 0, 1]),
    ]
    assert rows_of(env) == {"b": (0.0, 50.0, "0-1"), "a": (50.0, 150.0, "0-2"), "c": (50.0, 70.0, "3")}


def test_jobs_beyond_the_visible_ones_cannot_start():
    env = BatwattEnv(platform(), THREE, queue=1)
    # only a is visible, then only b, which does not fit before a ends at 100 s; c is behind it
    play(env, 0, 0, 0)
    assert rows_of(env) == {"a": (0.0, 100.0, "0-2"), "b": (100.0, 150.0, "0-1"), "c": (100.0, 120.0, "2")}


def test_every_event_shows_moments_at_which_there_is_only_waiting():
    env = BatwattEnv(platform(), THREE, queue=3, every_event=True)
    steps = play(env, 0, 3, 1, 3, 3, 0, 3)
    # a starts; wait until c comes at 10; c starts; wait for its end at 30; for that of a at 100; b starts; its end
    assert [time for time, _, _ in steps] == [0.0, 10.0, 10.0, 30.0, 100.0, 100.0, 150.0]
    assert steps[0][1] == [0, 0, 0, 1]


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


def test_no_step_without_an_episode():
    env = BatwattEnv(platform(), THREE)
    for call in (lambda: env.step(0), env.action_masks, env.values):
        with pytest.raises(InputError, match="call reset first"):
            call()
    with pytest.raises(InputError, match="not over"):
        env.result()
    play(BatwattEnv(platform(), THREE, queue=3), 0, 1, 0)
    env.reset()
    while not env.step(0)[2]:
        pass
    with pytest.raises(InputError, match="call reset first"):
        env.step(0)


# observations ---------------------------------------------------------------------------------------------------------


def test_values_of_all_columns_by_hand():
    limits = {
        "envelope": Series((0.0, 1000.0), (400.0, 250.0), "power_w"),
        "capacity": Series((0.0, 310.0), (4.0, 3.0), "machines"),
    }
    env = BatwattEnv(platform(), THREE, queue=2, observation=OBSERVATIONS, **limits)
    env.reset()
    env.step(0)
    # 10 s: a runs on 3 hosts until 200 s at the latest, b has waited for 10 s, c has come
    values = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in env.values().items()}
    assert values == {
        "time_of_day_s": 10.0,
        "free_hosts": 1.0,
        "room_hosts": 1.0,
        "running_jobs": 1.0,
        "queue_length": 2.0,
        "queue_hosts": 3.0,
        "oldest_wait_s": 10.0,
        "next_end_s": 190.0,
        "head_shadow_s": 190.0,
        "power_w": 330.0,
        "cap_w": 400.0,
        "next_cap_w": 400.0,
        "capacity": 4.0,
        "next_capacity": 3.0,
        "next_change_s": 300.0,
        "job_hosts": [2.0, 1.0],
        "job_walltime_s": [60.0, 40.0],
        "job_wait_s": [10.0, 0.0],
        "job_slowdown": [70 / 60, 1.0],
        "job_fits": [0.0, 1.0],
    }
    assert set(values) == set(OBSERVATIONS)


def test_how_values_are_scaled():
    names = ("time_of_day_s", "queue_length", "job_hosts", "power_w")
    env = BatwattEnv(platform(), THREE, queue=3, observation=names)
    env.reset()
    seen = env.step(0)[0]
    assert env.layout == {
        "time_of_day_s": slice(0, 1),
        "queue_length": slice(1, 2),
        "job_hosts": slice(2, 5),
        "power_w": slice(5, 6),
    }
    # bounded: v / s; open: v / (v + s), two jobs for three places
    assert seen.tolist() == pytest.approx([10 / 86400, 2 / (2 + 3), 2 / 4, 1 / 4, 0.0, 330 / 400])
    assert seen.dtype == np.float32


def test_a_cap_above_all_power_is_1_and_no_walltime_is_long():
    env = BatwattEnv(
        platform(),
        workload_of(job("a", 0, 1, 10)),
        queue=1,
        observation=("cap_w", "job_walltime_s", "next_end_s", "next_change_s"),
        envelope=Series((0.0,), (9e9,)),
    )
    assert env.reset()[0].tolist() == [1.0, 1.0, 1.0, 1.0]


def test_the_slowdown_of_a_job_with_a_short_walltime_is_bounded():
    load = workload_of(job("a", 0, 4, 30), job("b", 0, 1, 2, 4))
    env = BatwattEnv(platform(), load, queue=1, observation=["job_slowdown"])
    env.reset()
    env.step(0)
    # (30 + 10) / 10, and 4 / (4 + 10)
    assert env.values()["job_slowdown"].tolist() == [4.0]
    assert env._observed().tolist() == pytest.approx([4 / 14])


def test_a_step_returns_new_data():
    env = BatwattEnv(platform(), THREE, queue=3)
    first, info = env.reset()
    kept = first.copy(), info["action_mask"].copy()
    env.step(0)
    assert np.array_equal(first, kept[0]) and np.array_equal(info["action_mask"], kept[1])


# rewards --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "gains"),
    [
        # b waits for 10 s, then for 90 s more; three jobs
        ("mean_wait_s", [-10 / 3, -90 / 3, 0.0]),
        ("makespan_s", [-10.0, -90.0, -50.0]),
        # delays draw nothing more than idle hosts: 4 x 30 W
        ("energy_j", [-1200.0, -10800.0, -6000.0]),
        # 3 x 100, 2 x 50 and 1 x 20 host seconds at one speed
        ("work", [0.0, 320 / 420, 100 / 420]),
        ("goodput", [0.0, 320 / 400, 420 / 600 - 320 / 400]),
        ("mean_bounded_slowdown", [0.0, -2 / 3, -1.0]),
        ({"makespan_s": 0.5, "work": 420.0}, [-5.0, -45.0 + 320, -25.0 + 100]),
    ],
    ids=str,
)
def test_rewards_by_hand(reward, gains):
    steps = play(BatwattEnv(platform(), THREE, queue=3, reward=reward), 0, 1, 0)
    assert [gain for _, _, gain in steps] == pytest.approx(gains)


def test_bounded_slowdown_of_a_short_job():
    # b of 2 s waits for 8 s: (8 + 2) / 10 s, not 5; c of 2 s for 10 s more than that: 2, not 10
    load = workload_of(job("a", 0, 4, 8), job("b", 0, 4, 2), job("c", 0, 4, 10))
    env = BatwattEnv(platform(), load, reward="mean_bounded_slowdown", queue=3)
    assert [gain for _, _, gain in play(env, 0, 0, 0)] == pytest.approx([-1 / 3, -1 / 3, -2 / 3])


def test_jobs_that_reach_their_walltime_count_in_no_mean():
    # b reaches its walltime of 5 s: only a's slowdown counts at the end
    load = workload_of(job("a", 0, 4, 10), job("b", 0, 4, 50, 5))
    env = BatwattEnv(platform(), load, queue=2)
    gains = [gain for _, _, gain in play(env, 1, 0)]
    assert gains == pytest.approx([0.0, -15 / 10])
    assert states_of(env) == {"b": "COMPLETED_WALLTIME_REACHED", "a": "COMPLETED_SUCCESSFULLY"}


def test_a_job_that_ends_when_it_starts():
    # Batsim's files say that it ran for 1e-5 s: after a wait of 10 s its slowdown is 1,000,001
    env = BatwattEnv(platform(), workload_of(job("a", 0, 4, 10), job("z", 0, 4, 0, flops=True)), queue=2)
    assert sum(gain for _, _, gain in play(env, 0, 0)) == pytest.approx(-(1 + 1_000_001) / 2, rel=1e-9)
    assert env.outcome().figures.metrics.mean_slowdown == pytest.approx((1 + 1_000_001) / 2, rel=1e-9)


def test_a_victim_waits_again_since_its_first_submission():
    # b waits until a ends at 100 s, is killed at 150 s and starts again at 170 s, after 170 s of waiting altogether
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 1, 100))
    capacity = Series((0.0, 150.0, 170.0), (1.0, 0.0, 1.0), "machines")
    env = BatwattEnv(platform(), load, queue=2, capacity=capacity, reward="mean_wait_s")
    steps = play(env, 0, 0, 0)
    assert [time for time, _, _ in steps] == [100.0, 170.0, 270.0]
    assert [gain for _, _, gain in steps] == pytest.approx([-100 / 2, -70 / 2, 0.0])


def test_jobs_that_are_rejected_wait_no_more():
    # `late` is rejected at 60 s; d comes at 80 s and starts when a ends at 100 s; at the end only a and d count
    load = workload_of(job("a", 0, 1, 100), job("late", 0, 2, 300), job("d", 80, 1, 10))
    env = BatwattEnv(platform(), load, queue=2, envelope=FALLS, reward="mean_wait_s")
    assert [gain for _, _, gain in play(env, 0, 0)] == pytest.approx([-20 / 3, 20 / 3 - 20 / 2])


# limits ---------------------------------------------------------------------------------------------------------------

ONES = workload_of(*(job(name, 0, 1, 100) for name in "abc"))
FALLS = Series((0.0, 60.0), (260.0, 190.0), "power_w")
"""4 idle hosts draw 120 W and a job 70 W more: two of them at first, one from 60 s on."""


def test_a_cap_that_falls_kills_what_started_last():
    env = BatwattEnv(platform(), ONES, queue=3, envelope=FALLS)
    steps = play(env, 1, 1, 1, 0)
    # b and c run; at 60 s c is killed and comes behind a; b ends at 100 s; the new run of c, then a
    assert [time for time, _, _ in steps] == [0.0, 100.0, 200.0, 300.0]
    assert rows_of(env) == {
        "b": (0.0, 100.0, "0"),
        "c": (0.0, 60.0, "1"),
        "c#1": (100.0, 200.0, "0"),
        "a": (200.0, 300.0, "0"),
    }
    assert states_of(env)["c"] == "COMPLETED_KILLED"
    metrics = env.outcome().figures.metrics
    assert (metrics.killed_power, metrics.resubmissions, metrics.violations) == (1, 1, 0)
    # c waits from its first submission: (0 + 200 + 300) / 100 s, over three jobs
    assert metrics.mean_slowdown == pytest.approx((1 + 2 + 3) / 3)


def test_a_victim_may_be_lost():
    env = BatwattEnv(platform(), ONES, queue=3, envelope=FALLS, victim="lose")
    play(env, 1, 1, 0)
    assert rows_of(env) == {"b": (0.0, 100.0, "0"), "c": (0.0, 60.0, "1"), "a": (100.0, 200.0, "0")}
    assert env.outcome().figures.metrics.jobs_finished == 2


def test_a_capacity_that_falls_and_rises():
    capacity = Series((0.0, 50.0, 70.0), (2.0, 0.0, 4.0), "machines")
    env = BatwattEnv(platform(), ONES, queue=3, capacity=capacity)
    steps = play(env, 0, 0, 1, 1, 0)
    # a and b until 50 s, when both are killed; at 70 s there is room for c, a and b again
    assert [time for time, _, _ in steps] == [0.0, 70.0, 70.0, 70.0, 170.0]
    assert rows_of(env) == {
        "a": (0.0, 50.0, "0"),
        "b": (0.0, 50.0, "1"),
        "a#1": (70.0, 170.0, "0"),
        "b#1": (70.0, 170.0, "1"),
        "c": (70.0, 170.0, "2"),
    }
    # useful 3 x 100 of 2 x 50 + 4 x 100 core seconds
    assert env.outcome().figures.metrics.goodput == pytest.approx(300 / 500)


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


def test_the_power_of_unlike_hosts_is_that_of_the_lowest_free_ones():
    # 100, 60, 60 W with a job, 30 W without: a cap of 150 W leaves 60 W, which is host 1 and 2 or none while 0 is free
    load = workload_of(job("a", 0, 1, 100), job("b", 0, 1, 10), job("c", 0, 2, 10))
    env = BatwattEnv(platform(1, DIM, DIM), load, queue=3, envelope=Series((0.0, 50.0), (160.0, 190.0)))
    env.reset()
    assert env._simulation.room == 1
    # 90 W idle + 70 W for host 0: nothing more until 50 s, then 30 W more, which is host 1
    *_, info = env.step(0)
    assert (info["time_s"], info["action_mask"].tolist()) == (50.0, [1, 0, 0, 1])
    assert env._simulation.room == 1


def test_all_jobs_may_be_refused():
    env = BatwattEnv(platform(), workload_of(job("a", 0, 9, 10)), queue=2)
    seen, info = env.reset()
    assert info["action_mask"].tolist() == [0, 0, 1] and seen in env.observation_space
    _, reward, over, _, info = env.step(0)
    assert (reward, over, info["metrics"]["jobs_rejected"]) == (0.0, True, 1)


# what is given --------------------------------------------------------------------------------------------------------

WEAK = Platform(tuple(Host(i, f"h{i}", (PState(1.0),)) for i in range(2)), "weak.xml")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"observation": ["queue_lenght"]}, "no observation 'queue_lenght'; did you mean 'queue_length'?"),
        ({"observation": []}, "names no column"),
        ({"observation": ["cap_w"]}, "observation 'cap_w': needs the argument 'envelope'"),
        ({"reward": "slowdown"}, "no reward 'slowdown'; did you mean 'mean_slowdown'?"),
        ({"reward": {"work": math.nan}}, "its weight is nan"),
        ({"reward": {}}, "names no figure"),
        ({"queue": 0}, "queue: must be from 1 to"),
        ({"queue": 2.5}, "got 2.5"),
        ({"victim": "checkpoint"}, "choose resubmit or lose"),
        ({"victim": "loose"}, "did you mean 'lose'?"),
        ({"platform": WEAK, "reward": "energy_j"}, "weak.xml: reward 'energy_j' needs the watts of every host"),
        ({"platform": WEAK, "envelope": FALLS}, "an envelope needs the watts of every host"),
        ({"platform": WEAK, "observation": ["power_w"]}, "observation 'power_w' needs the watts"),
        ({"platform": "nowhere.xml"}, "nowhere.xml"),
        ({"platform": 4}, "platform: must be a path or Platform or MachineSpec, got 4"),
        ({"render_mode": "human"}, "render_mode: 'human' is not None"),
    ],
    ids=str,
)
def test_arguments_that_are_wrong(given, message):
    with pytest.raises(InputError) as error:
        BatwattEnv(**{"platform": platform(), "workload": THREE, **given})
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workload": workload_of()}, "has no job"),
        ({"workload": []}, "is an empty list"),
        ({"workload": "nowhere.json"}, "nowhere.json"),
        ({"workload": 4}, "workload: must be a path or Workload, got 4"),
        ({"workload": workload_of(job("a#1", 0, 1, 1))}, "let no id end in #"),
        ({"capacity": Series((0.0,), (9.0,))}, "must be in [0, 4], got 9"),
        ({"capacity": "walk:range=2"}, "range"),
    ],
    ids=str,
)
def test_workloads_and_capacities_that_are_wrong(given, message):
    env = BatwattEnv(**{"platform": platform(), "workload": THREE, **given})
    with pytest.raises(InputError) as error:
        env.reset()
    assert message in str(error.value)


def test_a_machine_of_several_hosts_has_no_capacity():
    hosts = tuple(Host(i, f"h{i}", (STATE,), has_power=True, properties={"machine": "m"}) for i in range(2))
    with pytest.raises(InputError, match="whose hosts are machines"):
        BatwattEnv(Platform(hosts), ONES, capacity=Series((0.0,), (1.0,))).reset()


def test_seeds_choose_among_workloads():
    loads = [workload_of(*(job(f"{k}{i}", 0, 1, 1) for i in range(k))) for k in range(1, 5)]
    env = BatwattEnv(platform(), loads)

    def drawn(seed):
        env.reset(seed=seed)
        found = [env._simulation.total]
        for _ in range(5):
            env.reset()
            found.append(env._simulation.total)
        return found

    assert drawn(3) == drawn(3)
    assert len({tuple(drawn(seed)) for seed in range(5)}) > 1
    assert {number for seed in range(5) for number in drawn(seed)} == {1, 2, 3, 4}
    env.reset(options={"workload": 2})
    assert env._simulation.total == 3
    with pytest.raises(InputError, match="must be from 0 to 3, got 4"):
        env.reset(options={"workload": 4})
    drawing = BatwattEnv(platform(), lambda rng: loads[rng.integers(4)])
    drawing.reset(seed=7)
    assert drawing._simulation.total == 1 + int(np.random.Generator(np.random.PCG64(7)).integers(4))


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
    assert read.as_dict() == env_metrics
    about = json.loads((tmp_path / "x_metadata.json").read_text())
    assert (about["scheduler"], about["options"]["reward"]) == ("batwatt.gym", {"work": 1.0})
    assert sum(gain for _, _, gain in steps) == pytest.approx(1.0)


def test_rewards_name_figures_that_exist():
    assert {reward.metric for reward in REWARDS.values() if reward.metric} <= set(MEANINGS)


# the extra ------------------------------------------------------------------------------------------------------------


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_batwatt_alone_does_not_import_gymnasium():
    assert python("import batwatt, batwatt.run.run, sys; print('gymnasium' in sys.modules)") == "False"


def test_without_gymnasium_one_line_says_what_to_install():
    code = (
        "import sys; sys.modules['gymnasium'] = None\ntry:\n    import batwatt.gym\nexcept ImportError as e: print(e)"
    )
    assert python(code) == "batwatt[gym]: the library 'gymnasium' is not installed; pip install 'batwatt[gym]'"
