"""Laws of `batwatt.gym` on random workloads, limits and policies, and Gymnasium's own checks."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from examples import examples
from gym_cases import away
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.gym import ENVIRONMENT, OBSERVATIONS, REWARDS, BatwattEnv
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.model.hostset import from_text
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.series import Series
from batwatt.systems.powercap.scheduler import EnvelopeScheduler

ROOT = Path(__file__).resolve().parents[2]
FAST, SLOW = 3, 2
HOSTS = FAST + SLOW
UNLIKE = Platform(
    tuple(
        Host(i, f"h{i}", (PState(10.0, 20.0, 25.0, watts),), has_power=True)
        for i, watts in enumerate((100.0, 100.0, 60.0, 60.0, 80.0))
    )
)
LOWEST_W = HOSTS * 20.0

jobs_of = st.lists(
    st.tuples(
        st.floats(0, 400).map(lambda x: round(x, 3)),  # submission
        st.integers(1, HOSTS + 1),  # hosts, now and then too many
        st.one_of(st.floats(1, 150).map(lambda x: round(x, 3)), st.sampled_from([10.0, 100.0])),  # run time
        st.one_of(st.none(), st.floats(0.5, 4.0)),  # walltime / run time
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)
caps_of = st.lists(st.floats(LOWEST_W, 420).map(lambda x: round(x, 1)), min_size=1, max_size=6)
capacities_of = st.lists(st.integers(0, HOSTS), max_size=6)
loads_and_limits = {"rows": jobs_of, "caps": st.just([]) | caps_of, "capacities": capacities_of}
victims_of = st.sampled_from(
    [
        "resubmit",
        "lose",
        {"name": "checkpoint", "checkpoint_s": 7.0, "recovery_s": 11.0},
        {"name": "checkpoint", "checkpoint_s": 0.0, "recovery_s": 60.0},
        "migrate",
        {"name": "migrate", "cost_s": 9.0},
    ]
)
outages_of = st.dictionaries(
    st.integers(0, HOSTS - 1),
    st.tuples(st.integers(1, 300), st.one_of(st.none(), st.integers(1, 300))),
    max_size=3,
).map(lambda rows: [(at, lasts and at + lasts, str(host)) for host, (at, lasts) in rows.items()])
"""(begin in s, end in s or None for none, host) of each outage."""


def load_of(rows):
    return workload_of(
        *(
            job(i, at, hosts, time, None if factor is None else round(time * factor, 3), flops)
            for i, (at, hosts, time, factor, flops) in enumerate(rows)
        ),
        nb_res=HOSTS,
    )


def first_possible(mask, rng):
    return int(mask.argmax())


def any_possible(mask, rng):
    return int(rng.choice(np.flatnonzero(mask)))


def anything(mask, rng):
    return int(rng.integers(len(mask)))


def play(env, policy, seed=0):
    """The trajectory of an episode: observations, rewards, times and actions that were done."""
    rng = np.random.default_rng(seed)
    seen, info = env.reset(seed=seed)
    steps, over = [(seen.tolist(), 0.0, info["time_s"], -1)], False
    while not over:
        assert np.array_equal(env.action_masks(), info["action_mask"])
        action = policy(info["action_mask"], rng)
        possible = 0 <= action < len(info["action_mask"]) and info["action_mask"][action]
        before = info["time_s"]
        seen, gain, over, _, info = env.step(action)
        assert seen in env.observation_space
        # the end of an episode is that of the last job, which may be before jobs are rejected
        assert info["action"] == action if possible else True
        assert over or (info["time_s"] >= before and info["action_mask"].any())
        steps.append((seen.tolist(), gain, info["time_s"], info["action"]))
    return steps


@examples(200)
@given(rows=jobs_of, places=st.sampled_from([14, 20]))
def test_the_first_possible_job_is_first_fit(rows, places):
    """All jobs visible, always the first that can start: `powercap` with first come first served and First-Fit."""
    check_against(rows, places, "first-fit")


@examples(200)
@given(rows=jobs_of)
def test_one_visible_job_is_no_backfilling(rows):
    check_against(rows, 1, "none")


def check_against(rows, places, backfilling):
    load, platform = load_of(rows), machine(FAST, SLOW)
    env = BatwattEnv(platform, load, queue=places)
    play(env, first_possible)
    scheduler = EnvelopeScheduler({"order": "fcfs", "backfilling": backfilling, "response": "none"})
    record = simulate(Engine(platform, [load]), scheduler)
    assert sorted(env.record.jobs) == sorted(record.jobs)
    ran = {row[0]: (row[8], row[10], row[14]) for row in record.jobs}
    assert ran == {row[0]: (row[8], row[10], row[14]) for row in env.record.jobs}
    assert env.record.consumed_energy == record.consumed_energy
    assert env.record.machine_states == record.machine_states


def limits_of(caps, capacities):
    given = {"envelope": envelope(*caps, step=60.0)} if caps else {}
    if capacities:
        values = [float(value) for value in capacities]
        given["capacity"] = Series(tuple(45.0 * i for i in range(len(values))), tuple(values), "machines")
    return given


@pytest.mark.parametrize("policy", [any_possible, anything])
@examples(60)
@given(
    **loads_and_limits,
    victim=victims_of,
    outages=outages_of,
    places=st.sampled_from([1, 3, 20]),
    every_event=st.booleans(),
)
def test_laws(policy, rows, caps, capacities, victim, outages, places, every_event):
    limits = limits_of(caps, capacities)
    columns = [name for name, column in OBSERVATIONS.items() if not column.limit or column.limit in limits]
    with TemporaryDirectory() as folder:
        settings = {
            "observation": columns, "queue": places, "victim": victim, "every_event": every_event,
            "events": away(Path(folder), *outages),
        }  # fmt: skip
        env, again = (BatwattEnv(UNLIKE, load_of(rows), **settings, **limits) for _ in range(2))
        steps = play(env, policy)
        assert play(again, policy) == steps
    check_jobs(env.record.jobs, rows, victim)
    check_limits(env, limits)
    check_outages(env.record.jobs, outages)
    assert play(env, policy) == steps
    assert again.record == env.record


def check_outages(rows, outages):
    """No job starts on a host that is away."""
    for begin_s, end_s, host in outages:
        for row in rows:
            if row[8] is not None and from_text(row[14]) >> int(host) & 1:
                assert not begin_s <= row[8] < (end_s or math.inf)


def check_jobs(rows, given, victim):
    """Every job has one last row and as many hosts as it asks for, never before its submission, none shared."""
    rows = list(rows)
    assert len({row[0] for row in rows}) == len(rows)
    last = {}
    for row in rows:
        name, _, number = row[0].partition("#")
        last[name] = max(last.get(name, (-1, "")), (int(number or 0), row[7]))
    assert sorted(map(int, last)) == list(range(len(given)))
    assert victim == "lose" or all(state != "COMPLETED_KILLED" for _, state in last.values())
    ran = [row for row in rows if row[8] is not None]
    for row in ran:
        at, hosts, *_ = given[int(row[0].partition("#")[0])]
        assert from_text(row[14]).bit_count() == hosts
        assert row[8] >= at - 1e-6
    for one, other in itertools.combinations(ran, 2):
        if from_text(one[14]) & from_text(other[14]):
            assert one[10] <= other[8] + 1e-4 or other[10] <= one[8] + 1e-4


def check_limits(env, limits):
    """Neither the power nor the number of hosts with jobs is above the limit, but for the moment of a change."""
    if "envelope" in limits:
        assert env.outcome().figures.metrics["violations"] == 0
    if "capacity" in limits:
        states = env.record.machine_states.columns()
        times, computing = states["time"], states["nb_computing"]
        for time, end, count in zip(times, np.append(times[1:], math.inf), computing, strict=False):
            if end - time > 1e-4:
                middle = [t for t in limits["capacity"].times_s if time + 1e-4 < t < end - 1e-4]
                assert all(count <= limits["capacity"].at(t) for t in [time + 1e-5, *middle])


@pytest.mark.parametrize("name", list(REWARDS))
@examples(60)
@given(
    **loads_and_limits,
    victim=victims_of,
    outages=outages_of,
    policy=st.sampled_from([first_possible, any_possible]),
)
def test_the_return_is_the_figure_of_a_run_that_completes(name, rows, caps, capacities, victim, outages, policy):
    with TemporaryDirectory() as folder:
        given = {"victim": victim, "events": away(Path(folder), *outages)} | limits_of(caps, capacities)
        env = BatwattEnv(UNLIKE, load_of(rows), reward=name, queue=4, **given)
        returned = math.fsum(gain for _, gain, _, _ in play(env, policy))
    if set(last_states(env)) == {"COMPLETED_SUCCESSFULLY"}:
        reward = REWARDS[name]
        figure = reward.sign * env.outcome().figures.metrics[reward.figure.name]
        assert returned == pytest.approx(figure, rel=1e-9, abs=1e-6 if name == "energy_j" else 1e-12)


@pytest.mark.parametrize("name", list(REWARDS))
@examples(60)
@given(
    **loads_and_limits,
    victim=st.sampled_from(["resubmit", "lose"]),
    policy=st.sampled_from([first_possible, any_possible]),
)
def test_the_return_is_the_figure_of_the_run(name, rows, caps, capacities, victim, policy):
    """With what rejected and lost jobs cost on top."""
    env = BatwattEnv(UNLIKE, load_of(rows), reward=name, queue=4, victim=victim, **limits_of(caps, capacities))
    reward = REWARDS[name]
    returned = math.fsum(gain for _, gain, _, _ in play(env, policy))
    figure = figure_with_horizon(env, rows, name)
    if set(last_states(env)) == {"COMPLETED_SUCCESSFULLY"}:
        assert env.outcome().figures.metrics[reward.figure.name] == pytest.approx(figure, rel=1e-9)
    # energies are printed to 1e-6 J, and these are hundreds
    assert returned == pytest.approx(reward.sign * figure, rel=1e-9, abs=1e-6 if name == "energy_j" else 1e-12)


def last_states(env):
    """The state of the last attempt of each job."""
    last = {}
    for row in env.record.jobs:
        name, _, number = row[0].partition("#")
        last[name] = max(last.get(name, (-1, "")), (int(number or 0), row[7]))
    return [state for _, state in last.values()]


def figure_with_horizon(env, rows, name):
    """By its definition, from the rows of `_jobs.csv`: who was not served waits until the horizon."""
    limits = env._simulation.limits
    last_s = max([row[0] for row in rows] + limits.changes)
    # all hosts of UNLIKE have one speed
    horizon_s = last_s + math.fsum(row[2] for row in rows)
    figures, ends, unserved, useful = [], [0.0], 0, 0.0
    for state, row in zip(last_states(env), last_rows(env), strict=True):
        at, hosts, run_s, factor, _ = rows[int(row[0].partition("#")[0])]
        shortest_s = min(run_s, math.inf if factor is None else round(run_s * factor, 3))
        served = state in ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")
        unserved += not served
        wait_s, ran_s = (round(row[8], 6) - at, round(row[9], 6)) if served else (horizon_s - at, shortest_s)
        took_s = wait_s + (ran_s if served else run_s)
        figures.append((wait_s, (wait_s + ran_s) / ran_s, max(1.0, took_s / max(10.0, run_s))))
        ends.append(round(row[10], 6) if served else 0.0)
        useful += (row[10] - row[8]) * hosts if state == "COMPLETED_SUCCESSFULLY" else 0.0
    metrics = env.outcome().figures.metrics
    mean = dict(zip(("mean_wait_s", "mean_slowdown", "mean_bounded_slowdown"), np.mean(figures, axis=0), strict=True))
    if name in mean:
        return mean[name]
    if name == "makespan_s":
        return max(ends) + unserved * horizon_s
    if name == "energy_j":
        return (metrics["energy_j"] or 0.0) + unserved * horizon_s * (100 + 100 + 60 + 60 + 80)
    if name == "goodput":
        metric = metrics["goodput"]
        alive = useful / metric if metric else 0.0
        return useful / (alive + unserved * horizon_s * HOSTS) if useful else 0.0
    return metrics[REWARDS[name].figure.name] or 0.0


def last_rows(env):
    """The row of the last attempt of each job, in the order of `last_states`."""
    last = {}
    for row in env.record.jobs:
        name, _, number = row[0].partition("#")
        last[name] = max(last.get(name, (-1, ())), (int(number or 0), row), key=lambda pair: pair[0])
    return [row for _, row in last.values()]


# a policy that waits gains nothing ------------------------------------------------------------------------------------


def returns_of(env, starts=math.inf):
    """What each reward adds up to if the first waiting job starts when it can, `starts` times; then all is waiting."""
    env.reset(seed=0)
    simulation, done = env._simulation, 0
    while not simulation.over:
        action = simulation.act(0 if done < starts else env._places)
        done += action == 0
    served = {
        row[0].partition("#")[0]
        for row in simulation.record.jobs
        if row[7] in ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")
    }
    known = [reward for reward in REWARDS.values() if not reward.watts or env.platform.has_power]
    return {reward.name: reward.potential(simulation) for reward in known}, served


@examples(300)
@given(
    **loads_and_limits,
    victim=victims_of,
    outages=outages_of,
    starts=st.integers(0, 8),
)
def test_no_policy_that_stops_starting_beats_first_come_first_served(rows, caps, capacities, victim, outages, starts):
    with TemporaryDirectory() as folder:
        given = {"victim": victim, "events": away(Path(folder), *outages)} | limits_of(caps, capacities)
        check_lazy(BatwattEnv(UNLIKE, load_of(rows), queue=1, reward="work", **given), starts)


def check_lazy(env, starts):
    usual, all_served = returns_of(env)
    lazy, served = returns_of(env, starts)
    # where nothing is to come, waiting is starting: a job may then be spared from being killed
    if served < all_served:
        worse = {
            name: (lazy[name], usual[name])
            for name in usual
            if lazy[name] > usual[name] * (1 + 1e-9 * np.sign(usual[name])) + 1e-9
        }
        assert worse == {}
    return len(all_served) - len(served)


CASES = [
    # the example of the reference page
    ("platforms/grid5000.xml", "workloads/google-288-00.json", {"envelope": "power_profiles/profile3.csv"}),
    ("platforms/grid5000.xml", "workloads/google-288-01.json", {"envelope": "power_profiles/profile1.csv"}),
    ("platforms/grid5000.xml", "workloads/google-288-02.json", {"capacity": "walk:range=0.6,mean=0.5,seed=1"}),
    ("platforms/small.xml", "workloads/small.json", {"envelope": "power_profiles/small.csv"}),
    ("platforms/small.xml", "workloads/small.json", {}),
]


@pytest.mark.parametrize(("hosts", "jobs", "limits"), CASES, ids=str)
def test_an_idle_agent_loses_on_what_is_shipped(hosts, jobs, limits):
    given = {name: str(ROOT / value) if ROOT.joinpath(value).exists() else value for name, value in limits.items()}
    env = BatwattEnv(ROOT / hosts, ROOT / jobs, queue=1, reward="work", **given)
    fewer = [check_lazy(env, starts) for starts in (0, 1, 10)]
    assert "google" not in jobs or "capacity" in limits or fewer[0] > 100
    usual, _ = returns_of(env)
    if fewer[0]:
        idle, _ = returns_of(env, 0)
        assert all(idle[name] < usual[name] for name in usual)


# Gymnasium ------------------------------------------------------------------------------------------------------------

SOME = load_of([(5.0 * i, 1 + i % 4, 20.0 + 7 * i, 2.0, i % 2 == 0) for i in range(30)])
LIMITED = limits_of([400.0, 250.0, 180.0, 300.0], [5, 3, 2, 5])
SEEN = [name for name, column in OBSERVATIONS.items() if column.limit in ("", *LIMITED)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"queue": 1, "every_event": True},
        {"observation": SEEN, "reward": "energy_j", **LIMITED},
        {"workload": [SOME, load_of([(0.0, 1, 5.0, None, False)] * 3)]},
        {"workload": lambda rng: load_of([(float(rng.integers(9)), 1, 5.0, None, False)] * 3)},
    ],
    ids=["usual", "every event", "all columns, limits", "two workloads", "a generator"],
)
def test_check_env_has_nothing_to_say(given):
    given = {"platform": UNLIKE, "workload": SOME, **given}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ENVIRONMENT, **given)
        check_env(env.unwrapped)
        # with the checks that Gymnasium makes at each step
        _, info = env.reset(seed=1)
        over = False
        while not over:
            _, _, over, _, info = env.step(env.action_space.sample(info["action_mask"]))
        env.close()


def test_environments_side_by_side():
    envs = gymnasium.make_vec(ENVIRONMENT, 2, "sync", platform=UNLIKE, workload=SOME, queue=4)
    _, first = envs.reset(seed=1)
    seen, gains, *_ = envs.step(np.array([0, 4]))
    assert seen.shape == (2, *envs.single_observation_space.shape) and gains.shape == (2,)
    assert first["action_mask"].shape == (2, 5)


def test_what_an_environment_is_made_of_can_go_to_another_process():
    platform, load = pickle.loads(pickle.dumps((read_platform("platforms/small.xml"), SOME)))
    assert platform == read_platform("platforms/small.xml") and load == SOME
    assert copy.deepcopy(platform) == platform and copy.deepcopy(load) == load


def test_files_of_the_project(tmp_path):
    env = gymnasium.make(ENVIRONMENT, platform="platforms/small.xml", workload="workloads/small.json")
    _, info = env.reset()
    over = False
    while not over:
        _, _, over, _, info = env.step(info["action_mask"].argmax())
    assert info["metrics"]["jobs_finished"] == info["metrics"]["jobs_total"] > 0
    env.unwrapped.save(tmp_path / "run")
    assert (tmp_path / "run_jobs.csv").stat().st_size > 0
