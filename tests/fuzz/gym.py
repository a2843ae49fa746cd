"""Arguments of `batwatt.gym.BatwattEnv` and of its methods that nobody expects, and odd actions."""

from __future__ import annotations

from pathlib import Path
from random import Random

import batwatt as bw

from .api import Files, frame, odd, other


def attempt(rng: Random, folder: Path) -> None:
    """Make an environment with one or two arguments changed, and play an episode in it."""
    from batwatt.gym import OBSERVATIONS, REWARDS, BatwattEnv

    files = Files(folder)
    given = {
        "platform": bw.Platform.machines(8, watts=10.0),
        "workload": rng.choice((folder / "jobs.json", [folder / "jobs.json", str(folder / "jobs.swf")])),
        "observation": rng.sample([name for name, one in OBSERVATIONS.items() if not one.limit], 3),
        "reward": rng.choice(("energy_j", {rng.choice([*REWARDS]): 0.5})),
        "queue": 3,
        "envelope": rng.choice((None, bw.Series((0, 600), (80, 40)))),
        "capacity": rng.choice((None, "walk:range=0.6,seed=1", folder / "machines.csv")),
        "victim": rng.choice(("resubmit", "lose")),
        "every_event": rng.random() < 0.5,
        "render_mode": None,
    }
    for name in rng.sample(sorted(given), rng.choice((0, 0, 1, 1, 2))):
        usual = given[name]
        if isinstance(usual, list) and rng.random() < 0.7:
            given[name] = [*usual, odd(rng, files)]
        elif isinstance(usual, dict) and rng.random() < 0.7:
            given[name] = {next(iter(usual)): odd(rng, files)}
        else:
            given[name] = frame(rng, files) if name == "workload" and rng.random() < 0.3 else other(rng, files, usual)
    env = BatwattEnv(**given)
    env.reset(seed=1)
    if rng.random() < 0.2:
        env.reset(seed=odd(rng, files), options=odd(rng, files))
    if rng.random() < 0.1:
        env.reset(options={"workload": odd(rng, files)})
    over = False
    for step in range(300):
        action = odd(rng, files) if step == 3 and rng.random() < 0.3 else rng.randrange(-1, 6)
        _, _, over, _, _ = env.step(action)
        env.action_masks(), env.values()
        if over:
            break
    if rng.random() < 0.2:
        env.save(rng.choice((odd(rng, files), files.path(rng), folder / "out" / "x")))
