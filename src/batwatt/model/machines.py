"""Platforms of like machines of many cores, each core a host (section 3.1 of the riskaware paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError
from batwatt.model.platform import MACHINE, MAX_HOSTS, SLEEP_STATES, WATTS, Host, Platform, PState, Sleep
from batwatt.units import REFERENCE_SPEED, number_text, speed_flops, speed_text

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
class MachineSpec(Parameters, where=_WHERE):
    """`machines` machines of `cores` cores. Each core is a host that draws `core_w` W when it is on, idle or busy.

    `core_flops` is the speed of a core, as SimGrid writes it or in flop/s. A core that is off draws 0 W; switching
    takes `off_s` and `on_s` s, in which it draws 0 W and `core_w` W. P-states are 0 = on, 1 = off, 2 and 3 = the
    virtual ones of switching off and on.

    The paper has P = p x n_c for a machine that is on (section 3.1), with p = `core_w`, and machines that switch at
    once, to which the default of 1 microsecond corresponds. Raises InputError.
    """

    machines: Annotated[int, Between(1)]
    cores: Annotated[int, Between(1)]
    core_w: Annotated[float, Between(0.0, 1e9)] = 10.0
    core_flops: str | float = REFERENCE_SPEED
    off_s: Annotated[float, Between(MIN_SWITCH_S, 1e9)] = MIN_SWITCH_S
    on_s: Annotated[float, Between(MIN_SWITCH_S, 1e9)] = MIN_SWITCH_S

    def __post_init__(self) -> None:
        super().__post_init__()
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
