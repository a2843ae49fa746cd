"""Capacities as random walks between two bounds (section 5.1 of the riskaware paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from batwatt.checks import Between, Parameters, rng_of
from batwatt.errors import InputError
from batwatt.model.platform import MAX_HOSTS
from batwatt.model.series import MACHINES, MAX_STEPS, Series
from batwatt.units import DAY_S

Seconds = Annotated[float, Between(0.0, ends="][", unit="s")]


@dataclass(frozen=True)
class Walk(Parameters, where="random walk"):
    """Parameters of `random_walk`: machines M_avg, M_ra and step, period phi and end T_end in s.

    The defaults are those of section 5.4. `step` None is floor(range / 4), but at least 1. With `stay` the number may
    also stay constant (the paper); without it it always goes up or down. Raises InputError.
    """

    mean: Annotated[int, Between(1, MAX_HOSTS)] = 24
    range: Annotated[int, Between(0, MAX_HOSTS)] = 8
    period_s: Seconds = 1200.0
    step: Annotated[int | None, Between(1, MAX_HOSTS)] = None
    stay: bool = True
    # a week to warm up and a window of two weeks
    end_s: Seconds = 21 * DAY_S

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mean - self.range >= 0:
            problem = f"range must be <= mean, got range {self.range!r} and mean {self.mean!r}"
            raise InputError(self.WHERE, problem, "a number of machines is not negative")
        if not self.end_s / self.period_s <= MAX_STEPS:
            problem = f"end_s / period_s must be <= {MAX_STEPS}, got {self.end_s!r} / {self.period_s!r}"
            raise InputError(self.WHERE, problem, "take a longer period")

    @property
    def step_machines(self) -> int:
        """Number of machines of one step."""
        return max(1, self.range // 4) if self.step is None else self.step


def random_walk(walk: Walk, seed: int) -> Series:
    """Generate the number of machines alive, from `walk.mean` at 0 s, with one row per period up to `walk.end_s`.

    In each period, the moves stay, up and down have equal probability; at a bound (mean - range, mean + range), stay
    and the one possible direction have. Without `walk.stay`, up and down have probability 1/2 each, and a move beyond a
    bound is none. A step that would pass a bound ends there. Section 5.1 of the riskaware paper.

    Same seed, same walk: the k-th step depends on the k-th draw and the number before it. Raises InputError.
    """
    low, high, step = walk.mean - walk.range, walk.mean + walk.range, walk.step_machines
    draws = rng_of(seed, Walk.WHERE).random(math.floor(walk.end_s / walk.period_s)).tolist()
    value = walk.mean
    values = [value]
    for draw in draws:
        moves = [-step, step] if not walk.stay else _moves(value, low, high, step)
        value = min(max(value + moves[int(draw * len(moves))], low), high)
        values.append(value)
    times = tuple(k * float(walk.period_s) for k in range(len(values)))
    return Series(times, tuple(map(float, values)), name=MACHINES, source=f"{Walk.WHERE}, seed {seed}")


def _moves(value: int, low: int, high: int, step: int) -> list[int]:
    """Return the moves of equal probability: 0, and a step in each direction that is not at its bound."""
    return [move for move in (-step, 0, step) if move == 0 or (value > low if move < 0 else value < high)]
