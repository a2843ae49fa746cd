"""Environment of an agent that decides the number of idle hosts that stay on, every ten minutes of a day.

Jobs start by first fit, and hosts are switched by `TimeoutPolicy`, whose reserve the agent sets; hosts beyond the
reserve go off after five minutes. A timeout alone is `TimeoutPolicy` without a reserve.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from batwatt.gym import BatwattEnv
from papers.gym.cells import jobs_of, platform
from papers.gym.timeout import TimeoutPolicy

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
