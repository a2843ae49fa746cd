"""Train the agents: `pip install torch stable-baselines3==2.9.2` first, then about three minutes of a processor a seed.

    python -m papers.gym.train 1 2 3

Writes data/agent-SEED.npz and the learning curves, data/curve-SEED.csv: the mean return of the first days of tuning.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from papers.gym.agent import TRAINING_DAYS, TUNING_DAYS, HostsEnv, Network, run_day, score

DATA = Path(__file__).resolve().parent / "data"
DECISIONS, ENVIRONMENTS = 34_560, 4
SETTINGS: dict[str, Any] = {
    "n_steps": 144, "batch_size": 144, "n_epochs": 8, "gamma": 0.97, "gae_lambda": 0.9, "ent_coef": 0.003,
    "learning_rate": lambda left: 1e-3 * left, "policy_kwargs": {"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
}  # fmt: skip
CURVE_DAYS = TUNING_DAYS[:10]
CURVE_EVERY = 10
"""Rollouts between two points of a learning curve."""


BASE = (2, 300.0)
"""Base policy: its rewards on the same day are subtracted, so that rewards that no policy changes add no noise."""
SCALE = 0.2
"""Factor of rewards for learning."""


@cache
def base_of(day: int) -> dict[float, float]:
    """Return the sum of the base's rewards on a day by the time in s of each decision; the last time is the end."""
    env = HostsEnv(lambda _: day)
    env.reset(seed=0)
    sums, total, over = {0.0: 0.0}, 0.0, False
    while not over:
        _, gained, over, _, info = env.hold(*BASE)
        total += gained
        sums[info["time_s"]] = total
    return sums


class RelativeEnv(HostsEnv):
    """A day of training, with rewards relative to those of the base policy."""

    def __init__(self) -> None:
        super().__init__(self._draw)

    def _draw(self, rng: np.random.Generator) -> int:
        day = int(rng.choice(TRAINING_DAYS))
        self._base, self._last = base_of(day), 0.0
        return day

    def step(self, action: Any) -> Any:
        """Return the reward less that of the base, which ends with the episode."""
        seen, gained, over, cut, info = super().step(action)
        last = list(self._base.values())[-1]
        times_s = list(self._base)
        # decisions are late without a possible action: those of the base may be at other times
        base = last if over else self._base[times_s[bisect_right(times_s, info["time_s"]) - 1]]
        gained, self._last = SCALE * (gained - base + self._last), base
        return seen, gained, over, cut, info


def network_of(model: PPO) -> Network:
    """Return the policy network of a model."""
    policy = model.policy
    layers = [policy.mlp_extractor.policy_net[0], policy.mlp_extractor.policy_net[2], policy.action_net]
    return Network([part.detach().numpy().copy() for layer in layers for part in (layer.weight, layer.bias)])


class Curve(BaseCallback):
    """Measure the mean return of the days of the curve."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps % (CURVE_EVERY * ENVIRONMENTS * SETTINGS["n_steps"]) == 0:
            self.measure()

    def measure(self) -> None:
        """Add a point."""
        rows = [run_day(day, network_of(self.model)) for day in CURVE_DAYS]
        mean = {name: float(np.mean([row[name] for row in rows])) for name in ("mean_wait_s", "energy_j")}
        self.rows.append(
            {"decisions": self.num_timesteps, "return": float(np.mean([score(row) for row in rows])), **mean}
        )
        print(self.rows[-1], file=sys.stderr, flush=True)


def train(seed: int, decisions: int = DECISIONS) -> None:
    """Train an agent; write its weights and its learning curve."""
    torch.set_num_threads(1)
    envs = DummyVecEnv([RelativeEnv] * ENVIRONMENTS)
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", **SETTINGS)
    curve = Curve()
    model.learn(decisions, callback=curve)
    curve.measure()
    network_of(model).write(DATA / f"agent-{seed}.npz")
    pd.DataFrame(curve.rows).to_csv(DATA / f"curve-{seed}.csv", index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    for word in sys.argv[1:]:
        train(int(word))
