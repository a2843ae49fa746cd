"""Conversion between watts and machines: the number of machines that a power feeds, and the power of some machines.

Section 3.3 of the riskaware paper has n = floor(P / p) for machines of p W. Machines that are switched off may draw
power, too: with N machines of `full_w` W each when they are fully used and `off_w` W each when off,

    n(P) = floor((P - N off_w) / (full_w - off_w)), between 0 and N,    P(n) = n full_w + (N - n) off_w

which is the paper's for `off_w` = 0. Machines that differ count as the one with the greatest power: any n machines then
never draw more than P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from batwatt.errors import InputError
from batwatt.model.platform import Host, Platform, machine_of
from batwatt.model.series import MACHINES, Series, combined

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

    def fed_by(self, envelope: Series) -> Series:
        """Return the number of machines that an envelope in W feeds, as a series."""
        each, least = self.full_w - self.off_w, self.machines * self.off_w
        values = []
        for power_w in envelope.values:
            count = math.floor((power_w - least) / each * (1.0 + _ROUNDING) + _ROUNDING)
            values.append(float(min(self.machines, max(0, count))))
        return envelope.of(tuple(values), MACHINES, MACHINES, f"{envelope.source}, {self}")

    def drawn_by(self, capacity: Series) -> Series:
        """Return the power in W that a capacity in machines may draw, as a series."""
        values = tuple(n * self.full_w + (self.machines - n) * self.off_w for n in capacity.values)
        return capacity.of(values, "power_w", "W", f"{capacity.source}, {self}")

    def __str__(self) -> str:
        return f"{self.machines} machines of {self.full_w:g} W (off: {self.off_w:g} W)"


def least_of(one: Series, other: Series) -> Series:
    """Return the smaller of two series at any time. Raises InputError."""
    return replace(combined((one, other), min), source=f"least of {one.source} and {other.source}")


def _off_w(host: Host) -> float:
    """Return the power in W of a host that is off: asleep, or idle where it cannot sleep."""
    if host.sleeps:
        return min(host.pstates[sleep.sleep].full_w for sleep in host.sleeps)
    return min(host.pstates[state].idle_w for state in host.compute)
