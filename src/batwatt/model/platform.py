"""Platforms: p-states with their speed and power, hosts, and the platform of all hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

MACHINE = "machine"
"""Name of the host property with the machine of a core."""
SLEEP_STATES = "sleep_pstates"
"""Name of the host property with the sleep p-states, as `sleeps_of` parses them."""
WATTS = ("wattage_per_state", "watt_per_state")
"""Names of the host property with the power of each p-state, the newer first."""
MAX_HOSTS = 1_000_000
"""Greatest number of hosts of a file: more are taken for a typing error in a radical."""
NOISE_W = 1e-6
"""Powers in W with a smaller difference are equal: sums of watts have rounding errors."""


def machine_of(properties: Mapping[str, str], name: str) -> str:
    """Return the machine in the properties of the host `name`, or its own name if they have none."""
    return properties.get(MACHINE, name)


@dataclass(frozen=True, slots=True)
class PState:
    """One p-state of a host.

    `speed_flops` in flop/s per core. Power in W: `idle_w` with no load, `epsilon_w` at a load just above 0,
    `full_w` with all cores busy; a transition (virtual) p-state draws `full_w` for `1 / speed_flops` seconds. A speed
    of 0 is that of a sleep p-state, which draws `full_w`, or of a transition that never ends.
    """

    speed_flops: float
    idle_w: float = 0.0
    epsilon_w: float = 0.0
    full_w: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.speed_flops < math.inf:
            raise ValueError(f"speed_flops must be >= 0 and finite, got {self.speed_flops!r}")
        for name in ("idle_w", "epsilon_w", "full_w"):
            value = getattr(self, name)
            if not (value >= 0.0 and math.isfinite(value)):
                raise ValueError(f"{name} must be >= 0 W and finite, got {value!r}")

    def power_w(self, load: float) -> float:
        """Return the power in W at a load in [0, 1] (used fraction of the flop/s of all cores)."""
        if not self.speed_flops:
            return self.full_w  # SimGrid takes 0 of 0 flop/s for fully loaded
        return self.epsilon_w + load * (self.full_w - self.epsilon_w) if load > 0.0 else self.idle_w

    @property
    def duration_s(self) -> float:
        """Duration in s of a transition through this p-state: one flop at its speed; infinite at a speed of 0."""
        return 1.0 / self.speed_flops if self.speed_flops else math.inf


@dataclass(frozen=True, slots=True)
class Sleep:
    """A sleep p-state with the virtual p-states of its transitions (indices into Host.pstates)."""

    sleep: int
    switch_off: int
    switch_on: int


def sleeps_of(text: str) -> tuple[Sleep, ...]:
    """Parse sleep p-states: of `2:3:4,5:6:7` they are 2 and 5; an empty text has none. Raises ValueError."""
    triples = [[int(state) for state in part.split(":")] for part in text.split(",") if part.strip()]
    return tuple(Sleep(sleep, off, on) for sleep, off, on in triples)


@dataclass(frozen=True)
class Host:
    """A compute host as Batsim numbers it. `pstates` are in the order of the platform file.

    `no_power` is the reason why the watts of the file are not usable.
    """

    id: int
    name: str
    pstates: tuple[PState, ...]
    cores: int = 1
    initial_pstate: int = 0
    sleeps: tuple[Sleep, ...] = ()
    has_power: bool = False
    no_power: str = ""
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    zone_properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if not self.pstates:
            raise ValueError(f"host {self.name!r} has no p-state")
        if not self.cores >= 1:
            raise ValueError(f"host {self.name!r}: cores must be >= 1, got {self.cores!r}")
        count = len(self.pstates)
        if not 0 <= self.initial_pstate < count:
            raise ValueError(f"host {self.name!r}: initial p-state {self.initial_pstate} is not in 0..{count - 1}")
        used = [index for sleep in self.sleeps for index in (sleep.sleep, sleep.switch_off, sleep.switch_on)]
        if used and not 0 <= min(used) <= max(used) < count:
            raise ValueError(f"host {self.name!r}: sleep_pstates names a p-state outside 0..{count - 1}")
        if len({sleep.sleep for sleep in self.sleeps}) != len(self.sleeps):
            raise ValueError(f"host {self.name!r}: a p-state is a sleep p-state twice")
        if not (self.pstates[self.initial_pstate].speed_flops or self.initial_pstate in used):
            raise ValueError(f"host {self.name!r}: begins in p-state {self.initial_pstate}, at a speed of 0")

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle, which does not support read-only dictionaries."""
        properties = {name: dict(getattr(self, name)) for name in ("properties", "zone_properties")}
        return self.__dict__ | properties

    @cached_property
    def sleep_of(self) -> Mapping[int, Sleep]:
        """Sleep p-state index -> its transitions."""
        return {sleep.sleep: sleep for sleep in self.sleeps}

    @cached_property
    def virtual(self) -> frozenset[int]:
        """Indices of the transition p-states, which cannot be requested."""
        return frozenset(i for sleep in self.sleeps for i in (sleep.switch_off, sleep.switch_on))

    @cached_property
    def compute(self) -> tuple[int, ...]:
        """Indices of the computation p-states, fastest first (ties: lower power, then lower index); none of speed 0."""
        moving = (i for i, state in enumerate(self.pstates) if state.speed_flops)
        real = [i for i in moving if i not in self.virtual and i not in self.sleep_of]
        return tuple(sorted(real, key=lambda i: (-self.pstates[i].speed_flops, self.pstates[i].full_w, i)))

    @property
    def full_w(self) -> float:
        """Power in W with all cores busy, in the computation p-state that draws most."""
        return max(self.pstates[state].full_w for state in self.compute)

    def falling_w(self, sleep: Sleep) -> float:
        """Return the power in W of Eq. 2 (powercap paper) of a host that goes to sleep: on->off or asleep."""
        return max(self.pstates[sleep.sleep].full_w, self.pstates[sleep.switch_off].full_w)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Facts that decide the behaviour: hosts of equal `kind` behave alike."""
        return (self.pstates, self.cores, self.sleeps)


@dataclass(frozen=True)
class Platform:
    """The compute hosts in Batsim's order; `hosts[i].id == i`.

    `not_simulated` lists parts of the file that only a real Batsim simulates.
    """

    hosts: tuple[Host, ...]
    source: str = "<memory>"
    not_simulated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.hosts:
            raise ValueError("the platform has no compute host")
        if any(host.id != i for i, host in enumerate(self.hosts)):
            raise ValueError("host ids must be 0..n-1 in order")

    def __len__(self) -> int:
        return len(self.hosts)

    @cached_property
    def has_power(self) -> bool:
        """True if the power of every host is stated, as energy accounting requires."""
        return all(host.has_power for host in self.hosts)

    @property
    def power_problem(self) -> str:
        """Name of a host without stated power, and the reason; empty if all hosts state it."""
        poor = next((host for host in self.hosts if not host.has_power), None)
        return "" if poor is None else f"host {poor.name!r}: {poor.no_power or 'has no wattage_per_state'}"

    @property
    def full_w(self) -> float:
        """Power in W of all hosts, each with all cores busy in the computation p-state that draws most."""
        return sum(host.full_w for host in self.hosts)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Number of the kind of each host; hosts of one number behave alike."""
        numbers: dict[object, int] = {}
        return tuple(numbers.setdefault(host.kind, len(numbers)) for host in self.hosts)

    @cached_property
    def fastest_flops(self) -> float:
        """Speed per core of the fastest computation p-state of all hosts, flop/s."""
        return max(host.pstates[host.compute[0]].speed_flops for host in self.hosts if host.compute)

    @cached_property
    def one_speed(self) -> bool:
        """True if all computation p-states of all hosts have the same speed."""
        speeds = {host.kind: {host.pstates[state].speed_flops for state in host.compute} for host in self.hosts}
        return len(set().union(*speeds.values())) <= 1
