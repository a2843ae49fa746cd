"""Environment of an agent that decides the number of idle hosts that stay on, every ten minutes of a day.

Jobs start by first fit, and hosts are switched by `TimeoutPolicy`, whose reserve the agent sets; hosts beyond the
reserve go off after five minutes. A timeout alone is `TimeoutPolicy` without a reserve.

Days were declared before any held-back day was run. A day is drawn from its number: Poisson arrivals with a wave over
the day, a level of the day, and a level of 0.4 on two of seven days. All days have one law and different draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from batwatt.gym import BatwattEnv
from batwatt.inputs.platform_files import read_platform
from batwatt.model.platform import Platform
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.units import DAY_S, HOUR_S

HOSTS = 16
SERVERS = Path(__file__).resolve().parents[2] / "platforms" / "grid5000-idle.xml"
"""Platform whose first server is Paravance: 69.9 W idle, 200.5 W with a job, 4.5 W asleep, off in 10 s, on in 189 s."""
SEEDS = (1, 2, 3)
"""Seeds of training: weights, exploration and order of the days."""
TRAINING_DAYS = range(100)
"""Days of training, drawn at random."""
TUNING_DAYS = range(5_000, 5_030)
"""Days for the choice of reward weights and settings and for the learning curve."""
HELD_BACK_DAYS = range(9_000, 9_040)
"""Days run once, after training."""
MEAN_JOBS = 120.0
WIDTHS, SHARES = (1, 2, 4, 8), (0.5, 0.25, 0.17, 0.08)
MEDIAN_S, SPREAD = 600.0, 1.1
"""Median of the run times and standard deviation of their logarithm."""
LONGEST_S = 4 * HOUR_S
TIMEOUTS_S = (0.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0, 14400.0, 1e9)
"""Grid of the timeouts for idle hosts; the last one switches nothing off."""


@cache
def platform() -> Platform:
    """Return 16 servers like Paravance."""
    first = read_platform(SERVERS).hosts[0]
    return Platform(tuple(replace(first, id=host, name=f"paravance-{host:02d}") for host in range(HOSTS)))


def jobs_of(day: int) -> Workload:
    """Return the jobs of a day, by its number."""
    rng = np.random.default_rng([day, 20])
    level = float(rng.lognormal(-0.045, 0.3)) * (0.4 if day % 7 in (5, 6) else 1.2)
    count = max(1, int(rng.poisson(MEAN_JOBS * level)))
    # by rejection: most arrivals at 14 h, a tenth of that at 2 h
    times_s: list[float] = []
    while len(times_s) < count:
        draws = rng.uniform(0.0, DAY_S, count)
        rate = 0.55 - 0.45 * np.cos(2.0 * np.pi * (draws - 2 * HOUR_S) / DAY_S)
        times_s += draws[rng.random(count) < rate].tolist()
    speed_flops = platform().hosts[0].pstates[0].speed_flops
    jobs, profiles = [], {}
    for number, time_s in enumerate(sorted(times_s[:count])):
        run_s = min(LONGEST_S, max(30.0, float(rng.lognormal(np.log(MEDIAN_S), SPREAD))))
        hosts = int(rng.choice(WIDTHS, p=SHARES))
        walltime_s = min(2 * LONGEST_S, run_s * float(rng.uniform(1.2, 4.0)))
        job = {"id": number, "subtime": round(time_s, 3), "res": hosts, "walltime": round(walltime_s, 3)}
        jobs.append(job | {"profile": f"p{number}"})
        profiles[f"p{number}"] = {"type": "parallel_homogeneous", "cpu": round(run_s, 3) * speed_flops, "com": 0}
    return parse_workload({"nb_res": HOSTS, "jobs": jobs, "profiles": profiles}, "w0", f"day {day}")


NEEDED = ("idle_hosts", "booting_hosts", "idle_s", "queue_hosts")
"""Columns of the observation that the policy needs."""


class TimeoutPolicy:
    """Start the first job that can start, switch hosts on for waiting jobs, and off after `timeout_s` s without a job.

    Hosts are switched on while idle and booting hosts are fewer than the requests of waiting jobs and `reserve` more;
    hosts are switched off while they are more. Both attributes may change between actions. The environment has
    `switch=True` and observes `NEEDED`.
    """

    def __init__(self, env: BatwattEnv, timeout_s: float, reserve: int = 0) -> None:
        self.env, self.timeout_s, self.reserve = env, timeout_s, reserve

    def action(self) -> int:
        """Return the action at the present moment."""
        mask = self.env.action_masks()
        # places of jobs, then the action that waits, then those on hosts
        places = len(mask) - len(self.env.host_actions) - 1
        if mask[:places].any():
            return int(mask[:places].argmax())
        values = self.env.values()
        spare = values["idle_hosts"].sum() + values["booting_hosts"].sum() - values["queue_hosts"]
        actions = list(enumerate(self.env.host_actions, places + 1))
        if spare < self.reserve:
            for number, (verb, _) in actions:
                if verb == "on" and mask[number]:
                    return number
        elif spare > self.reserve:
            for number, (verb, kind) in reversed(actions):
                if verb == "off" and mask[number] and values["idle_s"][kind] >= self.timeout_s:
                    return number
        return places if mask[places] else int(np.argmax(mask))


RESERVES = (0, 1, 2, 3, 4, 6, 8)
EXCESS_S = 300.0
CHOICES = tuple((reserve, EXCESS_S) for reserve in RESERVES)
"""Actions of an agent: (idle hosts that stay on, timeout in s of the others)."""
DECISION_S, LOOK_S = 600.0, 300.0
"""Periods in s of decisions, and of checks of hosts between events."""
TIMEOUT_EVERY_S = 60.0
"""Period in s of checks of hosts under a timeout alone, short enough that late checks cost little."""
OBSERVED = (
    "time_of_day_s", "free_hosts", "running_jobs", "queue_length", "queue_hosts", "oldest_wait_s", "next_end_s",
    "head_shadow_s", "idle_hosts", "asleep_hosts", "booting_hosts", "idle_s",
)  # fmt: skip
MEMORY = (0.8, 0.95)
"""Factors by decision of the exponential means of hosts with jobs and of running jobs."""
WAIT_WEIGHT, ENERGY_WEIGHT = 1.0, 5e-6
"""Weights of mean_wait_s, per s, and of energy_j, per J: a second of mean wait is worth 200 kJ a day."""


class HostsEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A day of decisions of `CHOICES`; `draw` returns the number of a day, `every_s` the period of checks of hosts."""

    def __init__(self, draw: Callable[[np.random.Generator], int], every_s: float = LOOK_S) -> None:
        reward = {"mean_wait_s": WAIT_WEIGHT, "energy_j": ENERGY_WEIGHT}
        self.inner = BatwattEnv(
            platform(), lambda rng: jobs_of(draw(rng)), observation=OBSERVED, reward=reward, queue=8, switch=True,
            every_s=every_s,
        )  # fmt: skip
        self.policy = TimeoutPolicy(self.inner, 0.0)
        self.action_space = gymnasium.spaces.Discrete(len(CHOICES))
        size = self.inner.observation_space.shape[0] + 2 + 2 * len(MEMORY)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (size,), np.float32)
        self._means = np.zeros((len(MEMORY), 2))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin a day."""
        super().reset(seed=seed)
        self._seen, info = self.inner.reset(seed=seed)
        self._time_s, self._next_s = 0.0, DECISION_S
        self._means[:] = 0.0
        return self._observed(), info

    def step(self, action: Any) -> Any:
        """Set reserve and timeout until the next decision."""
        return self.hold(*CHOICES[int(action)])

    def hold(self, reserve: int, timeout_s: float) -> Any:
        """Hold a reserve and a timeout in s until the next decision."""
        self.policy.reserve, self.policy.timeout_s = reserve, timeout_s
        gained, over, info = 0.0, False, {}
        while not over and self._time_s < self._next_s:
            self._seen, gain, over, _, info = self.inner.step(self.policy.action())
            gained += gain
            self._time_s = info["time_s"]
        self._next_s = (np.floor(self._time_s / DECISION_S) + 1.0) * DECISION_S
        return self._observed(), gained, over, False, info

    def _observed(self) -> NDArray[np.float32]:
        layout, seen = self.inner.layout, self._seen
        share = 1.0 - (
            seen[layout["free_hosts"]][0] + seen[layout["asleep_hosts"]][0] + seen[layout["booting_hosts"]][0]
        )
        present = np.array((share, seen[layout["running_jobs"]][0]))
        factors = np.array(MEMORY)[:, None]
        self._means = factors * self._means + (1.0 - factors) * present
        turn = 2.0 * np.pi * float(seen[layout["time_of_day_s"]][0])
        return np.concatenate([seen, (np.sin(turn), np.cos(turn)), self._means.ravel()]).astype(np.float32)


Decide = Callable[[NDArray[np.float32]], tuple[int, float]]
"""Observation -> reserve and timeout in s until the next decision."""


def run_day(day: int, decide: Decide, every_s: float = LOOK_S) -> dict[str, float]:
    """Return mean wait in s and energy in J of a day, with checks of hosts every `every_s` s."""
    env = HostsEnv(lambda _: day, every_s)
    seen, _ = env.reset(seed=0)
    over, info = False, {}
    while not over:
        seen, _, over, _, info = env.hold(*decide(seen))
    metrics = info["metrics"]
    if metrics["jobs_finished"] != metrics["jobs_total"]:
        raise ValueError(f"day {day}: {metrics['jobs_finished']} of {metrics['jobs_total']} jobs finished")
    return {"jobs": metrics["jobs_total"], "mean_wait_s": metrics["mean_wait_s"], "energy_j": metrics["energy_j"]}


def always(reserve: int, timeout_s: float) -> Decide:
    """Return a policy with a constant decision."""
    return lambda _: (reserve, timeout_s)


def score(row: dict[str, float]) -> float:
    """Return the return of a day: minus its weighted wait and energy."""
    return -(WAIT_WEIGHT * row["mean_wait_s"] + ENERGY_WEIGHT * row["energy_j"])


class Network:
    """The policy network of a trained agent, without its training library: two layers of tanh, then argmax."""

    def __init__(self, layers: list[NDArray[np.float32]]) -> None:
        self.layers = layers

    @classmethod
    def read(cls, path: Path) -> Network:
        """Read the weights that `write` wrote."""
        with np.load(path) as file:
            return cls([file[f"layer{number}"] for number in range(len(file.files))])

    def write(self, path: Path) -> None:
        """Write the weights and biases of each layer in turn."""
        np.savez(path, **{f"layer{number}": layer for number, layer in enumerate(self.layers)})

    def __call__(self, seen: NDArray[np.float32]) -> tuple[int, float]:
        """Decide for the most probable choice."""
        values = seen
        for number in range(0, len(self.layers), 2):
            values = self.layers[number] @ values + self.layers[number + 1]
            if number + 2 < len(self.layers):
                values = np.tanh(values)
        return CHOICES[int(np.argmax(values))]
