"""Returns of `batwatt.gym` on random workloads, limits and policies, and Gymnasium's own checks."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from cases import UNLIKE
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
from batwatt.model.series import Series
from batwatt.systems.powercap.scheduler import EnvelopeScheduler

FAST, SLOW = 3, 2
HOSTS = FAST + SLOW
LOWEST_W = HOSTS * 20.0

seconds = st.floats(0, 400).map(lambda x: round(x, 3))
jobs_of = st.lists(
    st.tuples(
        seconds,
        # now and then too many hosts
        st.integers(1, HOSTS + 1),
        st.floats(1, 150).map(lambda x: round(x, 3)) | st.sampled_from([10.0, 100.0]),
        # walltime / run time
        st.none() | st.floats(0.5, 4.0),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)
PLAIN_VICTIMS = ["resubmit", "lose"]
VICTIMS = [
    *PLAIN_VICTIMS,
    {"name": "checkpoint", "checkpoint_s": 7.0, "recovery_s": 11.0},
    {"name": "checkpoint", "checkpoint_s": 0.0, "recovery_s": 60.0},
    "migrate",
    {"name": "migrate", "cost_s": 9.0},
]
outages_of = st.dictionaries(
    st.integers(0, HOSTS - 1), st.tuples(st.integers(1, 300), st.none() | st.integers(1, 300)), max_size=3
).map(lambda rows: [(at, lasts and at + lasts, str(host)) for host, (at, lasts) in rows.items()])
"""(begin in s, end in s or None for none, host) of each outage."""
plain_kills = st.tuples(st.sampled_from(PLAIN_VICTIMS), st.just([]))
cases = st.fixed_dictionaries({
    "rows": jobs_of,
    "caps": st.just([]) | st.lists(st.floats(LOWEST_W, 420).map(lambda x: round(x, 1)), min_size=1, max_size=6),
    "capacities": st.lists(st.integers(0, HOSTS), max_size=6),
    "kills": plain_kills | st.tuples(st.sampled_from(VICTIMS), outages_of),
})  # fmt: skip
"""`kills`: what becomes of killed jobs, and outages."""


def load_of(rows):
    jobs = [
        job(i, at, hosts, time, None if factor is None else round(time * factor, 3), flops)
        for i, (at, hosts, time, factor, flops) in enumerate(rows)
    ]
    return workload_of(*jobs, nb_res=HOSTS)


def limits_of(caps, capacities):
    limits = {"envelope": envelope(*caps, step=60.0)} if caps else {}
    if capacities:
        values = tuple(map(float, capacities))
        limits["capacity"] = Series(tuple(45.0 * i for i in range(len(values))), values, "machines")
    return limits


@contextmanager
def environment(case, **settings):
    """An environment of a case; a file has its outages."""
    victim, outages = case["kills"]
    with TemporaryDirectory() as folder:
        limits = limits_of(case["caps"], case["capacities"])
        arguments = {"victim": victim, "events": away(Path(folder), *outages)} | limits | settings
        yield BatwattEnv(UNLIKE, load_of(case["rows"]), **arguments)


def first_possible(mask, rng):
    return int(mask.argmax())


def any_possible(mask, rng):
    return int(rng.choice(np.flatnonzero(mask)))


def play(env, policy, seed=0):
    """The rewards of an episode."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    gains, over = [], False
    while not over:
        _, gain, over, _, info = env.step(policy(info["action_mask"], rng))
        gains.append(gain)
    return gains


@examples(400)
@given(rows=jobs_of, places=st.sampled_from([1, 14, 20]))
def test_the_first_possible_job_is_first_fit(rows, places):
    """Always the first that can start: `powercap` with first come first served, and First-Fit if all are visible."""
    backfilling = "none" if places == 1 else "first-fit"
    load, platform = load_of(rows), machine(FAST, SLOW)
    env = BatwattEnv(platform, load, queue=places)
    play(env, first_possible)
    scheduler = EnvelopeScheduler({"order": "fcfs", "backfilling": backfilling, "response": "none"})
    record = simulate(Engine(platform, [load]), scheduler)
    assert sorted(env.record.jobs) == sorted(record.jobs)
    assert env.record.consumed_energy == record.consumed_energy
    assert env.record.machine_states == record.machine_states


@pytest.mark.parametrize("name", list(REWARDS))
@examples(90)
@given(case=cases, policy=st.sampled_from([first_possible, any_possible]))
def test_the_return_is_the_figure_of_the_run(name, case, policy):
    """With what rejected and lost jobs cost on top, where no work is saved and no host is away."""
    with environment(case, reward=name, queue=4) as env:
        returned = math.fsum(play(env, policy))
    reward, figures = REWARDS[name], []
    if {row[7] for row in last_rows(env)} == {"COMPLETED_SUCCESSFULLY"}:
        figures.append(env.outcome().figures.metrics[reward.figure.name])
    if case["kills"][0] in PLAIN_VICTIMS and not case["kills"][1]:
        figures.append(figure_with_horizon(env, case["rows"], name))
    for figure in figures:
        # energies are printed to 1e-6 J, and these are hundreds
        close = pytest.approx(reward.sign * figure, rel=1e-9, abs=1e-6 if name == "energy_j" else 1e-12)
        assert returned == close


def figure_with_horizon(env, rows, name):
    """By its definition, from the rows of `_jobs.csv`: who was not served waits until the horizon."""
    limits = env._simulation.limits
    last_s = max([row[0] for row in rows] + limits.changes)
    # all hosts of UNLIKE have one speed
    horizon_s = last_s + math.fsum(row[2] for row in rows)
    figures, ends, unserved, useful = [], [0.0], 0, 0.0
    for state, row in [(row[7], row) for row in last_rows(env)]:
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
    """The row of the last attempt of each job."""
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
@given(case=cases, starts=st.integers(0, 8))
def test_no_policy_that_stops_starting_beats_first_come_first_served(case, starts):
    with environment(case, queue=1, reward="work") as env:
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


# Gymnasium ------------------------------------------------------------------------------------------------------------

SOME = load_of([(5.0 * i, 1 + i % 4, 20.0 + 7 * i, 2.0, i % 2 == 0) for i in range(30)])
LIMITED = limits_of([400.0, 250.0, 180.0, 300.0], [5, 3, 2, 5])
SEEN = [name for name, column in OBSERVATIONS.items() if column.limit in ("", *LIMITED)]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"queue": 1},
        {"observation": SEEN, "reward": "energy_j", **LIMITED},
        {"workload": [SOME, load_of([(0.0, 1, 5.0, None, False)] * 3)]},
        {"workload": lambda rng: load_of([(float(rng.integers(9)), 1, 5.0, None, False)] * 3)},
    ],
    ids=["usual", "one place", "all columns, limits", "two workloads", "a generator"],
)
def test_check_env_has_nothing_to_say(arguments):
    arguments = {"platform": UNLIKE, "workload": SOME} | arguments
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ENVIRONMENT, **arguments)
        check_env(env.unwrapped)
        # with the checks that Gymnasium makes at each step
        _, info = env.reset(seed=1)
        over = False
        while not over:
            _, _, over, _, info = env.step(env.action_space.sample(info["action_mask"]))
        env.close()
