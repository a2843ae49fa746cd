"""Starts of a job that runs in one piece between which nothing better lies: exact, for step functions."""

from __future__ import annotations

import numpy as np

from batwatt.errors import InputError
from batwatt.model.phases import Array, Steps
from batwatt.model.signal_integral import SignalIntegral
from batwatt.units import J_PER_KWH

NOISE = 1e-12
"""Values that differ by this share of the largest are equal: their sums differ in their order alone."""
MOST_SLOTS = 20_000_000
"""More slots are not looked at: some numbers are kept of each."""
_MOST_VALUES = 4_000_000
"""Numbers that are computed at once."""


def ahead(integral: SignalIntegral, begin_s: float, end_s: float, job: str = "?") -> SignalIntegral:
    """Return a signal from `begin_s` to `end_s`, with `begin_s` as its 0 s; where it holds the same value, one step.

    A sum over a short part of a long signal is then as exact as the part. Raises InputError if the signal ends before.
    """
    integral.covers(end_s, f"job {job}")
    edges = np.concatenate([(begin_s,), integral.edges_in(begin_s, end_s), (end_s,)])
    values = integral.at(edges[:-1])
    changes = np.concatenate([(True,), np.diff(values) != 0.0])
    return SignalIntegral(
        np.append(edges[:-1][changes], end_s) - begin_s, values[changes], source=integral.source, unit=integral.unit
    )


def check_slots(length_s: float, slot_s: float) -> None:
    """Raise InputError unless a time of `length_s` has at most MOST_SLOTS slots of `slot_s`."""
    if not length_s / slot_s <= MOST_SLOTS:
        problem = f"slots of {slot_s:g} s are more than {MOST_SLOTS} in {length_s:g} s"
        raise InputError("option 'slot_s'", problem, "take longer slots, or correct the times of jobs and series")


def candidates(steps: Steps, integral: SignalIntegral, wait_s: float) -> Array:
    """Return starts in [0, `wait_s`] in s, ascending: both ends, and those where edges of power and signal meet.

    Between neighbours, the emission of the job is linear in its start.
    """
    edges = integral.edges_s[1:-1]
    meetings = (edges[:, None] - steps.edges_s[None, :]).ravel()
    inside = meetings[(meetings > 0.0) & (meetings < wait_s)]
    return np.unique(np.concatenate([(0.0,), inside, (wait_s,)]))


def emitted(starts_s: Array, steps: Steps, integral: SignalIntegral) -> Array:
    """Return the emission (g) or cost of a step function of power on one cpu, for each start; the signal must last."""
    width = min(len(steps.watts), len(integral.values)) + 1
    parts = np.array_split(starts_s, 1 + len(starts_s) * width // _MOST_VALUES)
    return np.concatenate([_emitted(part, steps, integral) for part in parts])


def _emitted(starts_s: Array, steps: Steps, integral: SignalIntegral) -> Array:
    if len(steps.watts) <= len(integral.values):
        return integral.of_steps(starts_s, steps)
    # the same sum over the steps of the signal: the energy that falls into each
    reached = steps.energy_until(integral.edges_s - starts_s[:, None])
    sums: Array = np.diff(reached, axis=-1) @ integral.values / J_PER_KWH
    return sums


def first_least(values: Array) -> int:
    """Return the position of the least of some values, the first of those equal to it but for rounding."""
    slack = NOISE * float(np.abs(values).max())
    return int(np.argmax(values <= values.min() + slack))


def quantile_in_time(integral: SignalIntegral, begin_s: float, end_s: float, share: float) -> float:
    """Return the least v such that the signal is <= v for at least `share` of the time from `begin_s` to `end_s`."""
    part = ahead(integral, begin_s, end_s)
    order = np.argsort(part.values, kind="stable")
    lasting = np.cumsum(np.diff(part.edges_s)[order])
    enough = int(np.argmax(lasting >= share * lasting[-1] * (1.0 - NOISE)))
    return float(part.values[order][enough])
