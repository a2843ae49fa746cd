"""Platforms: p-states with their speed and power, hosts, and the platform of all hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from batwatt.checks import checked_number, checked_whole
from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.units import REFERENCE_SPEED, number_text, speed_flops, speed_text

if TYPE_CHECKING:
    from batwatt.model.timeline import Timeline

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


def parse_sleeps(text: str) -> tuple[Sleep, ...]:
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
    def members(self) -> tuple[tuple[Host, int], ...]:
        """Lowest host of each kind and the mask of its hosts, by the number of the kind."""
        ids: list[list[int]] = [[] for _ in range(max(self.kinds) + 1)]
        for host, kind in enumerate(self.kinds):
            ids[kind].append(host)
        return tuple((self.hosts[hosts[0]], hostset.of_ids(hosts)) for hosts in ids)

    def parts(self, mask: int) -> list[tuple[int, int]]:
        """Return the kinds of the hosts in a mask, each with its hosts there, the kind of the lowest host first."""
        if len(self.members) == 1:
            return [(0, mask)] if mask else []
        parts = [(kind, hosts & mask) for kind, (_, hosts) in enumerate(self.members) if hosts & mask]
        return sorted(parts, key=lambda part: part[1] & -part[1]) if len(parts) > 1 else parts

    @cached_property
    def units_per_w(self) -> int:
        """The least power of 2 of which all full powers in W are whole multiples of its inverse: their exact sums."""
        watts = (state.full_w for host, _ in self.members for state in host.pstates)
        return max(power_w.as_integer_ratio()[1] for power_w in watts)

    def units(self, power_w: float) -> int:
        """Return the full power in W of a p-state as a whole number of units."""
        numerator, denominator = power_w.as_integer_ratio()
        return numerator * (self.units_per_w // denominator)

    @cached_property
    def fastest_flops(self) -> float:
        """Speed per core of the fastest computation p-state of all hosts, flop/s."""
        return max(host.pstates[host.compute[0]].speed_flops for host in self.hosts if host.compute)

    @cached_property
    def one_speed(self) -> bool:
        """True if all computation p-states of all hosts have the same speed."""
        speeds = {host.kind: {host.pstates[state].speed_flops for state in host.compute} for host in self.hosts}
        return len(set().union(*speeds.values())) <= 1


MIN_SWITCH_S = 1e-6
"""Shortest transition in s."""
SLEEP_SPEED = "1e-9Mf"
"""Speed of a sleep p-state, in which nothing computes."""
State = tuple[str, float, float]
"""A p-state: speed, W without work, W with all cores busy."""
_WHERE = "machines"
STANDSTILL = 1e-6
"""A speed, relative to the nominal one, at which jobs stand still: Batsim has no speed of 0."""
SPEEDS = (
    STANDSTILL,
    *(k / 100 for k in range(1, 100)),
    *(k / 100 for k in range(101, 121)),
    *(k / 100 for k in range(125, 201, 5)),
    *(2.5, 3.0, 4.0, 5.0, 7.5, 10.0),
)
"""Speeds of cores relative to the nominal one, which is not among them: slowed down, and to catch up."""


@dataclass(frozen=True)
class MachineSpec:
    """`machines` machines of `cores` cores. Each core is a host that draws `core_w` W when it is on, idle or busy.

    `core_flops` is the speed of a core, as SimGrid writes it or in flop/s. A core that is off draws 0 W; switching
    takes `off_s` and `on_s` s, in which it draws 0 W and `core_w` W. P-states are 0 = on, 1 = off, 2 and 3 = the
    virtual ones of switching off and on.

    The paper has P = p x n_c for a machine that is on (section 3.1), with p = `core_w`, and machines that switch at
    once, to which the default of 1 microsecond corresponds. Raises InputError.
    """

    machines: int
    cores: int
    core_w: float = 10.0
    core_flops: str | float = REFERENCE_SPEED
    off_s: float = MIN_SWITCH_S
    on_s: float = MIN_SWITCH_S

    def __post_init__(self) -> None:
        # by hand: every command imports this module, and most of them no pydantic
        for name in ("machines", "cores"):
            checked_whole(_WHERE, name, getattr(self, name), 1)
        for name, low in (("core_w", 0.0), ("off_s", MIN_SWITCH_S), ("on_s", MIN_SWITCH_S)):
            checked_number(_WHERE, name, getattr(self, name), low, 1e9)
        if not self.machines * self.cores <= MAX_HOSTS:
            problem = f"machines x cores must be <= {MAX_HOSTS}, got {self.machines!r} x {self.cores!r}"
            raise InputError(_WHERE, problem, "each core is a host: give fewer")
        try:
            speed_text(self.core_flops)
        except ValueError as error:
            raise InputError(_WHERE, f"core_flops: {error}", "write a speed such as '1Gf'") from None

    @cached_property
    def host_names(self) -> tuple[tuple[str, str], ...]:
        """Machine and name of each host, such as m007 and m007-c03, padded to keep the order of hosts as texts."""
        wide, narrow = len(str(self.machines - 1)), len(str(self.cores - 1))
        machines = [f"m{number:0{wide}d}" for number in range(self.machines)]
        return tuple((machine, f"{machine}-c{core:0{narrow}d}") for machine in machines for core in range(self.cores))

    @property
    def nominal_flops(self) -> float:
        """Speed of a core in p-state 0, flop/s."""
        return speed_flops(speed_text(self.core_flops))

    @property
    def computing(self) -> tuple[State, ...]:
        """The p-states in which a host computes."""
        return ((speed_text(self.core_flops), self.core_w, self.core_w),)

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The p-states of each host: those in which it computes, off, switching off, switching on."""
        return (
            *self.computing,
            (SLEEP_SPEED, 0.0, 0.0),
            (switch_speed(self.off_s), 0.0, 0.0),
            (switch_speed(self.on_s), self.core_w, self.core_w),
        )


@dataclass(frozen=True)
class SpeedMachineSpec(MachineSpec):
    """Machines whose cores have further speeds, relative to the nominal one of p-state 0.

    See docs/explanation/oversubscription.md.

    P-states 1, 2, ... have `speeds` in order; off and the virtual ones follow. A core draws `core_w` at any speed.
    """

    speeds: tuple[float, ...] = SPEEDS

    def __post_init__(self) -> None:
        super().__post_init__()
        good = (isinstance(speed, int | float) and 0.0 < speed <= 1e6 and speed != 1.0 for speed in self.speeds)
        bad = next((speed for speed, fine in zip(self.speeds, good, strict=True) if not fine), None)
        if bad is not None:
            problem = f"speeds must be numbers in ]0, 1e6] other than 1, got {bad!r}"
            raise InputError(_WHERE, problem, "give them relative to the nominal one")

    @property
    def computing(self) -> tuple[State, ...]:
        """The p-states in which a host computes, the nominal one first."""
        # exact fractions, so that the ratios to the nominal speed are `speeds`
        nominal = Fraction(self.nominal_flops)
        speeds = (speed_text(float(Fraction(str(speed)) * nominal)) for speed in self.speeds)
        return (*super().computing, *((speed, self.core_w, self.core_w) for speed in speeds))


def machines_platform(machines: MachineSpec, source: str = "<memory>") -> Platform:
    """Build the platform that `read_platform` reads from `machines_xml`, without the XML."""
    computing = len(machines.computing)
    properties = described(machines.states, computing, 1)[1]
    pstates = tuple(PState(speed_flops(speed), idle, idle, full) for speed, idle, full in machines.states)
    sleeps = (Sleep(computing, computing + 1, computing + 2),)
    outside = MappingProxyType[str, str]({})
    own = {
        machine: MappingProxyType({"role": "", **properties, MACHINE: machine})
        for machine in dict.fromkeys(machine for machine, _ in machines.host_names)
    }
    hosts = (
        Host(index, name, pstates, sleeps=sleeps, has_power=True, properties=own[machine], zone_properties=outside)
        for index, (machine, name) in enumerate(machines.host_names)
    )
    return Platform(tuple(hosts), source=source)


def described(states: Sequence[State], computing: int, cores: int) -> tuple[str, dict[str, str]]:
    """Return the XML attributes and the properties of hosts with p-states of which the first `computing` compute.

    The number of others is 0 or 3: sleep, switching off and switching on.
    """
    properties: dict[str, str] = {}
    if len(states) > computing:
        properties[SLEEP_STATES] = f"{computing}:{computing + 1}:{computing + 2}"
    watts = (f"{number_text(idle_w)}:{number_text(full_w)}" for _, idle_w, full_w in states)
    properties[WATTS[0]] = ", ".join(watts)
    speeds = ", ".join(speed for speed, _, _ in states)
    return f'speed="{speeds}" core="{cores}" pstate="0"', properties


def switch_speed(duration_s: float) -> str:
    """Return the speed of a virtual p-state of `duration_s` s: a transition is one flop at this speed."""
    return f"{number_text(1.0 / duration_s)}f"


_ROUNDING = 1e-9
"""Relative rounding error of a quotient: 0.3 / 0.1 machines are 3."""


@dataclass(frozen=True)
class MachinePower:
    """`machines` machines that draw up to `full_w` W each when on and up to `off_w` W each when off."""

    machines: int
    full_w: float
    off_w: float = 0.0

    @classmethod
    def of(cls, platform: Platform) -> Self:
        """Return the machines of a platform, by the property `machine` of hosts. Raises InputError without watts."""
        if not platform.has_power:
            problem = f"watts and machines cannot be converted: {platform.power_problem}"
            raise InputError(platform.source, problem, "give wattage_per_state to all hosts")
        full: dict[str, float] = {}
        off: dict[str, float] = {}
        for host in platform.hosts:
            name = machine_of(host.properties, host.name)
            full[name] = full.get(name, 0.0) + host.full_w
            off[name] = off.get(name, 0.0) + _off_w(host)
        site = cls(len(full), max(full.values()), max(off.values()))
        if not site.full_w > site.off_w:
            problem = f"a machine draws {site.full_w:g} W when on and {site.off_w:g} W when off"
            raise InputError(platform.source, problem, "machines that save nothing when off cannot follow a power")
        return site

    def fed_by(self, envelope: Timeline) -> Timeline:
        """Return the number of machines that an envelope in W feeds, as a series."""
        # imported here, as numpy loads slowly
        from batwatt.model.timeline import MACHINES

        each, least = self.full_w - self.off_w, self.machines * self.off_w
        values = []
        for power_w in envelope.values:
            count = math.floor((power_w - least) / each * (1.0 + _ROUNDING) + _ROUNDING)
            values.append(float(min(self.machines, max(0, count))))
        return envelope.of(values, MACHINES, MACHINES, f"{envelope.source}, {self}")

    def drawn_by(self, capacity: Timeline) -> Timeline:
        """Return the power in W that a capacity in machines may draw, as a series."""
        values = [n * self.full_w + (self.machines - n) * self.off_w for n in capacity.values]
        return capacity.of(values, "W", "power_w", f"{capacity.source}, {self}")

    def __str__(self) -> str:
        return f"{self.machines} machines of {self.full_w:g} W (off: {self.off_w:g} W)"


def _off_w(host: Host) -> float:
    """Return the power in W of a host that is off: asleep, or idle where it cannot sleep."""
    if host.sleeps:
        return min(host.pstates[sleep.sleep].full_w for sleep in host.sleeps)
    return min(host.pstates[state].idle_w for state in host.compute)
