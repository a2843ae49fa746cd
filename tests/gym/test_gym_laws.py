"""Returns of `batwatt.gym` on random workloads, limits and policies, and Gymnasium's own checks."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from cases import UNLIKE
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

from batwatt.batsim.adapters import simulate
from batwatt.engine.core import Engine
from batwatt.gym import ENVIRONMENT, OBSERVATIONS, REWARDS, BatwattEnv
from batwatt.model.timeline import Timeline
from batwatt.schedulers.easy import Easy

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
).filter(lambda rows: any(hosts <= HOSTS for _, hosts, *_ in rows))
cases = st.fixed_dictionaries({
    "rows": jobs_of,
    "caps": st.just([]) | st.lists(st.floats(LOWEST_W, 420).map(lambda x: round(x, 1)), min_size=1, max_size=6),
    "capacities": st.lists(st.integers(0, HOSTS), max_size=6),
})  # fmt: skip


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
        limits["capacity"] = Timeline(tuple(45.0 * i for i in range(len(values))), values, "machines")
    return limits


def environment(case, **settings):
    """An environment of a case, whose limits at their end are those of all hosts."""
    limits = limits_of([*case["caps"], 420.0], [*case["capacities"], HOSTS])
    return BatwattEnv(UNLIKE, load_of(case["rows"]), **limits, **settings)


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
    scheduler = Easy({"order": "fcfs", "backfilling": backfilling, "response": "none"})
    record = simulate(Engine(platform, [load]), scheduler)
    assert sorted(env.record.jobs) == sorted(record.jobs)
    assert env.record.consumed_energy == record.consumed_energy
    assert env.record.machine_states == record.machine_states


@pytest.mark.parametrize("name", list(REWARDS))
@examples(90)
@given(case=cases, policy=st.sampled_from([first_possible, any_possible]))
def test_the_return_is_the_figure_of_the_run(name, case, policy):
    env = environment(case, reward=name, queue=4)
    returned, sign = math.fsum(play(env, policy)), REWARDS[name].sign
    metrics, means = env.result().values, means_of(env, case["rows"])
    # energies are printed to 1e-6 J, and these are hundreds
    close = {"rel": 1e-9, "abs": 1e-6 if name == "energy_j" else 1e-12}
    assert returned == pytest.approx(sign * means.get(name, metrics[name]), **close)
    if metrics["killed_walltime"] == 0:
        assert returned == pytest.approx(sign * metrics[name], **close)


def means_of(env, rows):
    """Means over the last runs of all jobs that were not rejected, from the rows of `_jobs.csv`."""
    last = {row[0].partition("#")[0]: row for row in sorted(env.record.jobs, key=lambda row: len(row[0]))}
    figures = []
    for name, row in last.items():
        at, _, length_s, *_ = rows[int(name)]
        if row[7] != "REJECTED":
            wait_s, ran_s = round(row[8], 6) - at, round(row[9], 6)
            figures.append((wait_s, (wait_s + ran_s) / ran_s, max(1.0, (wait_s + ran_s) / max(10.0, length_s))))
    return dict(zip(("mean_wait_s", "mean_slowdown", "mean_bounded_slowdown"), np.mean(figures, axis=0), strict=True))


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
        {"workload": lambda rng: load_of([(float(rng.integers(9)), 1, 5.0, None, False)] * 3)},
    ],
    ids=["usual", "one place", "all columns, limits", "a generator"],
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
