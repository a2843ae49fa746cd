"""A battery: its state after a step of time, and its dispatch, which turns a supply into an envelope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from batwatt.checks import parameters
from batwatt.errors import InputError
from batwatt.model.timeline import MAX_STEPS, Timeline
from batwatt.units import HOUR_S

STATE_OF_CHARGE = "state_of_charge"
"""Name of the column, and of the series, of the share of the capacity that is stored."""

_WHERE = "battery"
_Floats = npt.NDArray[np.float64]
_Share = Annotated[float, Field(ge=0.0, le=1.0)]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a battery: power at its terminals (charging > 0), energies in J; `energy_j` is stored after it.

    power x duration = energy after - energy before + loss, to rounding.
    """

    power_w: float
    energy_j: float
    loss_j: float


@parameters(_WHERE)
class Battery:
    """A battery of `capacity_kwh`, with limits of power at its terminals and of its state of charge.

    `power_kw` limits charging and discharging (None: no limit). `efficiency` is that of a round trip, its square root
    each way: this share of charged energy is stored, and this share of energy taken from the store arrives. Raises
    InputError.
    """

    capacity_kwh: Annotated[float, Field(gt=0.0)]
    power_kw: Annotated[float | None, Field(ge=0.0)] = None
    efficiency: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    initial_soc: _Share = 0.0
    min_soc: _Share = 0.0
    max_soc: _Share = 1.0

    def __post_init__(self) -> None:
        if not self.min_soc <= self.max_soc:
            problem = f"min_soc must be <= max_soc, got {self.min_soc!r} and {self.max_soc!r}"
            raise InputError(_WHERE, problem, "correct one of them")
        if not self.initial_soc <= self.max_soc:
            problem = f"initial_soc must be <= max_soc, got {self.initial_soc!r} and {self.max_soc!r}"
            raise InputError(_WHERE, problem, "correct one of them")

    @property
    def capacity_j(self) -> float:
        """The capacity in J."""
        return self.capacity_kwh * 1e3 * HOUR_S

    def step(self, energy_j: float, request_w: float, duration_s: float) -> Step:
        """Return a step of constant power, as near to `request_w` (charging > 0) as the limits allow.

        The energy changes linearly, so that a bound that holds at both ends holds between them. Below the least state
        of charge nothing is discharged.
        """
        limit_w, one_way = math.inf if self.power_kw is None else 1e3 * self.power_kw, self.efficiency**0.5
        if request_w >= 0.0:
            bound_j = max(self.max_soc * self.capacity_j, energy_j)
            power_w = min(request_w, limit_w)
            stored_w, most_w = power_w * one_way, (bound_j - energy_j) / duration_s
            bounded = not stored_w < most_w
            if bounded:
                stored_w, power_w = most_w, min(power_w, most_w / one_way)
        else:
            bound_j = min(self.min_soc * self.capacity_j, energy_j)
            power_w = max(request_w, -limit_w)
            stored_w, least_w = power_w / one_way, (bound_j - energy_j) / duration_s
            bounded = not stored_w > least_w
            if bounded:
                stored_w, power_w = least_w, max(power_w, least_w * one_way)
        after_j = bound_j if bounded else energy_j + stored_w * duration_s
        return Step(power_w, after_j, (power_w - stored_w) * duration_s)


@dataclass(frozen=True, eq=False)
class Dispatch:
    """A supply changed by a battery: powers in W and energies in J for each step [`edges_s[i]`, `edges_s[i + 1]`[.

    `battery_w` > 0 is charging, `envelope_w` = `supply_w` - `battery_w` is the power that the data centre may draw; the
    energies are those of `Step`, `energy_j` has one value more: that at the end.
    """

    battery: Battery
    edges_s: _Floats
    supply_w: _Floats
    envelope_w: _Floats
    battery_w: _Floats
    energy_j: _Floats
    loss_j: _Floats

    def envelope(self, name: str = "power_w", source: str = "<memory>") -> Timeline:
        """Return the power in W that the data centre may draw over time; equal steps in one row."""
        rows = np.flatnonzero(np.append(True, np.diff(self.envelope_w) != 0.0))
        times, values = self.edges_s[rows].tolist(), self.envelope_w[rows].tolist()
        return Timeline(tuple(times), tuple(values), name=name, source=source)

    def state_of_charge(self, source: str = "<memory>") -> Timeline:
        """Return the share of the capacity stored at the begin of each step, and at the end of the last one."""
        shares = self.energy_j / self.battery.capacity_j
        return Timeline(tuple(self.edges_s.tolist()), tuple(shares.tolist()), name=STATE_OF_CHARGE, source=source)


def greedy(supply: Timeline, demand: Timeline, battery: Battery, end_s: float, step_s: float | None = None) -> Dispatch:
    """Charge with the supply above the demand, discharge where it is below, over [0, `end_s`[; both in W.

    Power that the battery does not take stays in the envelope, which is then above the demand. Raises InputError.
    """
    edges = _edges((supply, demand), end_s, step_s)
    return _dispatched(battery, edges, supply.values_at(edges[:-1]), demand.values_at(edges[:-1]))


def smoothing(
    supply: Timeline, window_s: float, battery: Battery, end_s: float, step_s: float | None = None
) -> Dispatch:
    """Smooth a supply in W to its mean over the last `window_s`, as far as the battery allows, over [0, `end_s`[.

    The target of each step is the mean up to its end, at first since 0 s: no forecast is needed. Raises
    InputError.
    """
    if not 0.0 < window_s < math.inf:
        raise InputError(_WHERE, f"window_s must be a finite number > 0 s, got {window_s!r}", "correct it")
    edges = _edges((supply,), end_s, step_s)
    supply_w = supply.values_at(edges[:-1])
    reached = np.concatenate([(0.0,), np.cumsum(np.diff(edges) * supply_w)])
    begins = np.maximum(edges[1:] - window_s, 0.0)
    mean_w = (reached[1:] - np.interp(begins, edges, reached)) / (edges[1:] - begins)
    return _dispatched(battery, edges, supply_w, mean_w)


def _dispatched(battery: Battery, edges: _Floats, supply_w: _Floats, target_w: _Floats) -> Dispatch:
    """Return the dispatch that brings the supply to its target as far as the battery allows."""
    requests_w = supply_w - target_w
    energy = [battery.initial_soc * battery.capacity_j]
    steps = []
    for request_w, duration_s in zip(requests_w.tolist(), np.diff(edges).tolist(), strict=True):
        steps.append(battery.step(energy[-1], request_w, duration_s))
        energy.append(steps[-1].energy_j)
    power, loss = (np.array([getattr(step, name) for step in steps]) for name in ("power_w", "loss_j"))
    # the envelope of a step that meets its target is the target, without rounding errors
    envelope_w = np.where(power == requests_w, target_w, np.maximum(supply_w - power, 0.0))
    return Dispatch(battery, edges, supply_w, envelope_w, power, np.array(energy), loss)


def _edges(series: Sequence[Timeline], end_s: float, step_s: float | None) -> _Floats:
    """Return the times at which a series changes, and multiples of `step_s`, from 0 to `end_s`. Raises InputError."""
    count = 0.0 if step_s is None else end_s / step_s
    if not (0.0 < end_s < math.inf and count <= MAX_STEPS):
        problem = f"end_s / step_s must be <= {MAX_STEPS}, got {end_s!r} / {step_s!r} s"
        raise InputError(_WHERE, problem, "take longer steps")
    regular = np.zeros(1) if step_s is None else np.arange(math.ceil(count)) * step_s
    times = np.unique(np.concatenate([regular, *(np.asarray(one.times_s) for one in series)]))
    return np.append(times[(times >= 0.0) & (times < end_s)], end_s)
