"""Hosts that an agent switches: by hand, and laws on random cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import job, machine, workload_of
from examples import examples
from gym_cases import STATE, play
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gymnasium")


from batwatt.gym import BatwattEnv
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.model.timeline import Timeline
from papers.gym.agent import NEEDED, TimeoutPolicy

# 30 W idle and 100 W with a job; asleep 2 W, off 40 W for 10 s, on 60 W for 20 s
STATES = (STATE, PState(1e-3, 2.0, 2.0, 2.0), PState(0.1, 40.0, 40.0, 40.0), PState(0.05, 60.0, 60.0, 60.0))
TWO = Platform(tuple(Host(i, f"h{i}", STATES, sleeps=(Sleep(1, 2, 3),), has_power=True) for i in range(2)))
LATE = workload_of(job("a", 0, 1, 100), job("b", 200, 2, 50))
BOTH = {"mean_wait_s": 1.0, "energy_j": 1.0}
START, WAIT, OFF, ON = range(4)


def hosts_env(load, **settings):
    return BatwattEnv(TWO, load, **{"queue": 1, "reward": BOTH, "switch": True, **settings})


def masked(steps):
    """Steps with masks as texts."""
    return [(time_s, "".join(map(str, mask)), reward) for time_s, mask, reward in steps]


def test_a_host_switched_off_and_on_by_hand():
    env = hosts_env(LATE)
    assert masked(play(env, START, OFF, WAIT, WAIT, ON, START)) == [
        # masks: start, wait, off, on; a delay draws what an idle host draws
        (0.0, "0110", 0.0),
        # h1 switches off at 40 W, then sleeps at 2 W
        (10.0, "0101", -10 * (30 + 40)),
        (100.0, "0111", -90 * (30 + 2)),
        # nothing but b is left, so the agent must switch on
        (200.0, "0001", -100 * (30 + 2)),
        (220.0, "1000", -20 * (30 + 60) - 20 / 2),
        (270.0, "0100", -50 * 60),
    ]  # fmt: skip
    assert env.result().values["energy_j"] == 700 + 2880 + 3200 + 1800 + 3000
    env.reset()
    # waiting for nothing is switching on
    assert [env.step(action)[-1]["action"] for action in (START, OFF, WAIT, WAIT, WAIT)][-1] == ON


@pytest.mark.parametrize(("cap_w", "time_s"), [(159.0, 140.0), (161.0, 40.0)])
def test_an_envelope_bounds_what_is_switched_on(cap_w, time_s):
    # h1 sleeps; with a job on h0 (100 W) and h1 booting (60 W) 160 W: below that a has to end first
    load = workload_of(job("a", 30, 1, 100), job("b", 500, 1, 10))
    env = hosts_env(load, envelope=Timeline((0.0,), (cap_w,), "power_w"))
    env.reset()
    masks = ["".join(map(str, env.step(action)[-1]["action_mask"])) for action in (OFF, WAIT)]
    assert masks == ["1110", "1111"] and env.simulation.scheduler.control.power_w(0) == 30.0 + 2.0
    info = env.step(START)[-1]
    assert info["time_s"] == time_s and info["action_mask"][ON]


def test_the_timeout_policy_by_hand():
    env = hosts_env(LATE, observation=NEEDED, every_s=30.0)
    env.reset()
    policy, over, done = TimeoutPolicy(env, 60.0), False, []
    while not over:
        action = policy.action()
        done += [(action, env.simulation.now_s)] * (action in (OFF, ON))
        *_, over, _, info = env.step(action)
    # h1 idles from 0 s, h0 from 100 s; hosts are looked at every 30 s: off at 60 s and 180 s, then b needs both
    assert done == [(OFF, 60.0), (OFF, 180.0), (ON, 200.0), (ON, 200.0)]
    assert info["metrics"]["mean_wait_s"] == 20 / 2


@examples(60)
@given(
    rows=st.lists(st.tuples(st.floats(0, 400), st.integers(1, 6), st.floats(1, 150), st.booleans()), min_size=1),
    caps=st.lists(st.floats(560, 700), max_size=5), seed=st.integers(0, 99), every_s=st.sampled_from([None, 45.0]),
)  # fmt: skip
def test_laws_of_random_agents(rows, caps, seed, every_s):
    """An episode ends, its actions are possible, and its return is the energy of the run."""
    # one that can run under any cap, and others
    rows = [(0.0, 1, 10.0, False), *rows]
    jobs = [job(i, round(at, 3), n, round(run, 3), flops=flops) for i, (at, n, run, flops) in enumerate(rows)]
    limits = {"envelope": Timeline(tuple(60.0 * i for i in range(len(caps))), tuple(caps), "power_w")} if caps else {}
    settings = {"switch": True, "every_s": every_s, "queue": 3, **limits}
    env = BatwattEnv(machine(3, 2), workload_of(*jobs), reward={"energy_j": 1.0, "mean_wait_s": 1e-15}, **settings)
    rng, total, over, info = np.random.default_rng(seed), 0.0, False, env.reset(seed=0)[1]
    while not over:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, gain, over, _, info = env.step(action)
        assert over or info["action"] == action
        total += gain
    if not caps and all(n <= 5 for _, n, _, _ in rows):
        assert total == pytest.approx(-info["metrics"]["energy_j"], rel=1e-9)


@pytest.mark.parametrize(("gap_s", "weight"), [(20.0, 5e-6), (400.0, 1e-3)])
def test_an_agent_that_switches_everything_off_loses(gap_s, weight):
    """Against first come first served with all hosts on and with a timeout; 5e-6 is the documented weight."""
    load = workload_of(*(job(i, gap_s * i, 1 + i % 2, 100.0) for i in range(12)))
    returns = {}
    for name in ("idle", "on", "timeout"):
        env = hosts_env(load, observation=NEEDED, every_s=60.0, reward={"mean_wait_s": 1.0, "energy_j": weight})
        env.reset()
        policy, over, returns[name] = TimeoutPolicy(env, 60.0 if name == "timeout" else math.inf), False, 0.0
        while not over:
            action = policy.action() if name != "idle" else OFF if env.action_masks()[OFF] else WAIT
            _, gain, over, _, _ = env.step(action)
            returns[name] += gain
    assert returns["idle"] < min(returns["on"], returns["timeout"])
