"""What an environment is given: what is wrong is one line; workloads that are drawn; the extra `gym`."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from builders import job, machine, workload_of
from gym_cases import ONES, STATE, THREE, platform

pytest.importorskip("gymnasium")

import gymnasium

from batwatt.errors import InputError, to_install
from batwatt.gym import ENVIRONMENT, BatwattEnv
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.timeline import Timeline

WEAK = Platform(tuple(Host(i, f"h{i}", (PState(1.0),)) for i in range(2)), "weak.xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": ["queue_lenght"]}, "no observation 'queue_lenght'; did you mean 'queue_length'?"),
        ({"observation": ["cap_w"]}, "observation 'cap_w': needs the argument 'envelope'"),
        ({"reward": "slowdown"}, "no reward 'slowdown'; did you mean 'mean_slowdown'?"),
        ({"reward": {"goodput": math.nan}}, "its weight is nan"),
        ({"queue": 0}, "queue: must be a whole number in 1..100000, got 0"),
        ({"platform": WEAK, "reward": "energy_j"}, "weak.xml: reward 'energy_j' needs the watts of every host"),
        ({"platform": WEAK, "observation": ["power_w"]}, "observation 'power_w' needs the watts"),
        ({"platform": 4}, "platform: must be a path or Platform or MachineSpec, got 4"),
        ({"observation": ["job_fits", "job_fits"]}, "observation: names a column twice"),
        ({"reward": {"goodput": 10**400}}, "its weight is an integer of more than 60 digits"),
        ({"switch": "no"}, "switch: must be True or False, got 'no'"),
        # when an episode begins
        ({"workload": workload_of()}, "has no job for 4 hosts or fewer"),
        ({"envelope": Timeline((0.0,), (150.0,))}, "leave room for 0 of 4 hosts"),
        ({"workload": workload_of(job("a#1", 0, 1, 1))}, "let no id end in #"),
        ({"capacity": Timeline((0.0,), (9.0,))}, "must be in [0, 4], got 9"),
        # hosts
        ({"switch": True}, "no host has p-states for off and on"),
        ({"platform": machine(2), "switch": True, "reward": "energy_j"}, "energy is least while all hosts sleep"),
        ({"observation": ["idle_s"]}, "observation 'idle_s': needs the argument 'switch'"),
        ({"every_s": 0}, "every_s: must be > 0, got 0"),
    ],
    ids=str,
)
def test_arguments_that_are_wrong(arguments, message):
    with pytest.raises(InputError) as error:
        BatwattEnv(**{"platform": platform(), "workload": THREE, **arguments}).reset()
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: env.reset(seed=-1), "seed: must be a whole number in 0.."),
        (lambda env: env.reset(options=3), "options: must be a dict"),
        (lambda env: env.reset(options={"workload": 1}), "options: no option 'workload'; leave them out"),
        (lambda env: (env.reset(), env.step("x")), "action: must be a whole number from 0 to 16, got 'x'"),
        (lambda env: env.step(0), "call reset first"),
        (lambda env: env.action_masks(), "call reset first"),
        (lambda env: env.values(), "call reset first"),
        (lambda env: (env.reset(), env.save("x")), "not over"),
        (lambda env: (env.reset(), [env.step(0) for _ in range(9)]), "call reset first"),
    ],
)
def test_calls_that_are_wrong(call, message):
    with pytest.raises(InputError, match=message):
        call(BatwattEnv(platform(), THREE))


def test_gymnasium_warns_of_a_render_mode():
    """Stable-Baselines3's `make_vec_env` gives one to every environment that it makes by name."""
    with pytest.warns(UserWarning, match="not in the possible render_modes"):
        gymnasium.make(ENVIRONMENT, platform=platform(), workload=THREE, render_mode="rgb_array").reset()


def test_a_table_is_a_workload():
    frame = pd.DataFrame({"submission_time_s": [0, 5], "length_s": [10, 20], "hosts": [1, 2]})
    for load in (frame, lambda rng: frame):
        env = BatwattEnv(platform(), load)
        env.reset()
        assert env.simulation.tally.total == 2


def test_a_machine_of_several_hosts_has_no_capacity():
    hosts = tuple(Host(i, f"h{i}", (STATE,), has_power=True, properties={"machine": "m"}) for i in range(2))
    with pytest.raises(InputError, match="whose hosts are machines"):
        BatwattEnv(Platform(hosts), ONES, capacity=Timeline((0.0,), (1.0,))).reset()


def test_the_seed_determines_what_is_drawn():
    loads = [workload_of(*(job(f"{k}{i}", 0, 1, 1) for i in range(k))) for k in range(1, 5)]
    env = BatwattEnv(platform(), lambda rng: loads[rng.integers(4)])
    env.reset(seed=7)
    assert env.simulation.tally.total == 1 + int(np.random.Generator(np.random.PCG64(7)).integers(4))


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
    assert python(code) == f"batwatt[gym]: the library 'gymnasium' is not installed; {to_install('gym')}"
