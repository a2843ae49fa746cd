"""Let's Wait Awhile's simulation of jobs in steps of 30 minutes.

The rules: docs/explanation/carbon-simulators.md.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.checks import Between, checked_whole, rng_of, shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.phases import Array
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.outcome import ON_DEMAND, Outcome
from batwatt.systems.carbon.windows import CONSTRAINTS
from batwatt.units import J_PER_KWH

logger = logging.getLogger(__name__)
STEP_S = 1800.0
"""A step."""
_ROUNDING = 1e-9
_MOST_STEPS = 10**9
Ints = npt.NDArray[np.int64]
POLICIES = {
    "immediate": "Start at once.",
    "non-interrupting": "Start where the mean of the forecast over the job's steps is least (also wait-awhile).",
    "interrupting": "Run in the steps of the least forecast (also wait-awhile-interrupting).",
}
"""What there is, by LWA's words; underscores and hyphens are alike."""
_ALIASES = {"wait-awhile": "non-interrupting", "wait-awhile-interrupting": "interrupting"}


@dataclass(frozen=True)
class _Stepped:
    """A job in steps: it arrives at step `arrival`, takes `steps`, and may finish at `deadline`."""

    job: ShiftJob
    arrival: int
    steps: int
    deadline: int


def simulate(
    jobs: Sequence[ShiftJob],
    values: Sequence[float],
    begin: datetime | None = None,
    *,
    policy: str,
    constraint: str | int = "next-workday",
    error: float = 0.0,
    repetitions: int = 10,
    seed: int = 0,
    strict: bool = False,
) -> Outcome:
    """What LWA does with these jobs under a signal (g/kWh) of one value each 30 minutes, from `begin` on.

    `begin` is the date of the first value by the local clock, by which constraints are understood. `constraint`:
    next-workday, semi-weekly, or by how many steps any job may be shifted. Policies see the signal with an error of
    N(0, `error` x mean), a realisation for each repetition (seeds `seed`, `seed` + 1, ...); the true values are
    charged. With `strict` jobs finish in time, otherwise up to a step later, as LWA lets them. Jobs take whole steps,
    at their mean power (LWA: 1 W). Raises InputError.
    """
    choose = _choice(policy)
    signal = _signal(values)
    stepped = [_stepped(job, begin, constraint, len(signal)) for job in jobs]
    if not stepped:
        raise InputError("jobs", "there are none", "give at least one")
    if any(item.steps * STEP_S != item.job.length_s or item.arrival * STEP_S != item.job.arrival_s for item in stepped):
        logger.info("LWA knows whole steps of %g s: jobs start at the next and hold the last one to its end", STEP_S)
    late = 0 if strict else 1
    rounds = []
    for repetition, forecast in enumerate(_forecasts(signal, error, repetitions, seed)):
        slots = [choose(forecast[item.arrival : item.deadline + late], item.steps) + item.arrival for item in stepped]
        rounds.append(_rows(stepped, slots, signal).assign(repetition=repetition))
    return Outcome(policy, pd.concat(rounds, ignore_index=True))


def immediate(window: Array, steps: int) -> Ints:
    """Steps 0 .. D - 1."""
    return np.arange(steps)


def non_interrupting(window: Array, steps: int) -> Ints:
    """Steps k .. k + D - 1, k the first argmin over all that fit of the mean of the window over them."""
    sums = np.lib.stride_tricks.sliding_window_view(window, steps).sum(axis=1)
    return int(np.argmin(sums)) + np.arange(steps)


def interrupting(window: Array, steps: int) -> Ints:
    """The D cheapest steps of the window, the earliest of equals; ascending."""
    return np.sort(np.argsort(window, kind="stable")[:steps])


_CHOICES = {"immediate": immediate, "non-interrupting": non_interrupting, "interrupting": interrupting}


def _choice(policy: str) -> Callable[[Array, int], Ints]:
    name = policy.lower().replace("_", "-")
    name = _ALIASES.get(name, name)
    if name not in _CHOICES:
        known = (*POLICIES, *_ALIASES)
        raise UnknownNameError("option policy", "policy of Let's Wait Awhile", policy, known, "It has no other.")
    return _CHOICES[name]


def _signal(values: Sequence[float]) -> Array:
    signal = np.asarray(values, dtype=np.float64)
    if not len(signal) or not np.isfinite(signal).all():
        what = f"step {np.flatnonzero(~np.isfinite(signal))[0]} has none" if len(signal) else "there are none"
        raise InputError("signal", f"LWA needs a value for each step, and {what}", "take another first step")
    return signal


def _forecasts(signal: Array, error: float, repetitions: int, seed: int) -> list[Array]:
    """What policies see: the signal itself, or one realisation of the error for each repetition."""
    Between(0.0).check("options", "error", error)
    checked_whole("options", "repetitions", repetitions, 1, hint="give 10")
    rng_of(seed, "option seed")
    if not error:
        return [signal]
    deviation = error * float(signal.mean())
    rngs = (rng_of(seed + i, "option seed") for i in range(repetitions))
    return [signal + rng.normal(0.0, deviation, len(signal)) for rng in rngs]


def _stepped(job: ShiftJob, begin: datetime | None, constraint: str | int, end: int) -> _Stepped:
    arrival = math.ceil(job.arrival_s / STEP_S - _ROUNDING)
    steps = max(1, math.ceil(job.length_s / STEP_S - _ROUNDING))
    finish = arrival + steps
    deadline = finish + _flexibility(finish, begin, constraint)
    if finish > end:
        problem = f"it would end at {finish * STEP_S:g} s, after the signal at {end * STEP_S:g} s"
        raise InputError(f"job {job.id}", problem, "give a longer signal, or leave it out")
    return _Stepped(job, arrival, steps, deadline)


def _flexibility(finish: int, begin: datetime | None, constraint: str | int) -> int:
    """By how many steps a job may be shifted that would finish at the end of step `finish` - 1."""
    if isinstance(constraint, int) and not isinstance(constraint, bool):
        if not 0 <= constraint <= _MOST_STEPS:
            problem = f"must be from 0 to {_MOST_STEPS} steps, got {shown(constraint)}"
            raise InputError("option constraint", problem, "give for instance 48")
        return constraint
    name = str(constraint).lower().replace("_", "-")
    if name not in CONSTRAINTS:
        raise UnknownNameError("option constraint", "constraint", constraint, CONSTRAINTS, "Or give a number of steps.")
    if begin is None:
        problem = f"{name} needs a date, and the signal has none"
        raise InputError("signal", problem, "take a signal with dates, or give a number of steps")
    clock = begin.tzinfo or UTC
    moment = begin.replace(tzinfo=clock).astimezone(UTC) + timedelta(seconds=finish * STEP_S)
    target = CONSTRAINTS[name](moment.astimezone(clock)).astimezone(UTC)
    return int((target - moment).total_seconds() // STEP_S)


def _rows(stepped: Sequence[_Stepped], slots: Sequence[Ints], signal: Array) -> pd.DataFrame:
    """A row for each run of steps in which a job runs without a break."""
    counts = np.array([len(own) for own in slots])
    of = np.repeat(np.arange(len(slots)), counts)
    every = np.concatenate(slots)
    opens = np.append(True, (np.diff(every) != 1) | (np.diff(of) != 0))
    first = np.flatnonzero(opens)
    steps = np.diff(np.append(first, len(every)))
    of = of[first]
    charged = np.add.reduceat(signal[every], first)
    watts = np.array([item.job.cpus * item.job.model.mean_w for item in stepped])[of]
    segment = np.arange(len(of)) - np.searchsorted(of, of)
    return pd.DataFrame(
        {
            "job": np.array([item.job.id for item in stepped], dtype=object)[of],
            "segment": segment,
            "arrival_s": np.array([item.arrival for item in stepped])[of] * STEP_S,
            "begin_s": every[first] * STEP_S,
            "end_s": (every[first] + steps) * STEP_S,
            "cpus": np.array([item.job.cpus for item in stepped])[of],
            "startup_s": 0.0,
            "work_s": steps * STEP_S,
            "energy_j": watts * steps * STEP_S,
            "carbon_g": watts * charged * (STEP_S / J_PER_KWH),
            "cost": 0.0,
            "machine": ON_DEMAND,
            "deadline_s": np.array([item.deadline for item in stepped])[of] * STEP_S,
        }
    )
