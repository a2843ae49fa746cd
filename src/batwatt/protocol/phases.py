"""Jobs in phases in Batsim's JSON: the fields of a job, and the machines on which its power is true.

A cpu is a machine of a few hosts of one core that draw nothing when they are idle and `core_w` W at full rate, in
proportion below it. docs/explanation/carbon-engine.md has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.model.machines import MachineSpec, State
from batwatt.model.phases import Phase, PhaseModel
from batwatt.model.platform import WATTS, machine_of
from batwatt.protocol.phase_models import model_of
from batwatt.units import number_text, speed_text

PHASES, ARRIVAL, CPUS = "phases", "arrival", "cpus"
"""Fields of a job: its model, when it arrived in s, and on how many cpus its model runs."""
ROUNDING = 1e-12
"""Relative difference of powers that is rounding."""
_NUMBERS = ("duration", "power")


class NotForPhasesError(InputError):
    """Machines that are not for jobs in phases."""


@dataclass(frozen=True)
class PhaseMachines(MachineSpec):
    """Machines for jobs in phases, one a cpu: a host draws `core_w` W at full rate, in proportion below, 0 W idle.

    All hosts are alike, so that any scheduler may give any of them to any job. Off, they are as those of `MachineSpec`.
    """

    core_flops: str | float = "1Gf"

    @property
    def computing(self) -> tuple[State, ...]:
        """See `MachineSpec`."""
        return ((speed_text(self.core_flops), 0.0, self.core_w),)

    def hosts(self, cpus: int) -> int:
        """How many hosts a job on `cpus` cpus takes."""
        return cpus * self.cores

    def loads(self, power_w: float) -> tuple[float, ...]:
        """The loads in [0, 1] of a machine's hosts that draw so much W together, the highest first. Raises ValueError.

        0 W has no load at all; any other power has a host at full load.
        """
        units = power_w / self.core_w if power_w > 0.0 else 0.0
        if not (power_w == 0.0 or 1.0 - ROUNDING <= units <= self.cores * (1.0 + ROUNDING)):
            held = f"0 W, or from {self.core_w:g} to {self.cores * self.core_w:g} W"
            raise ValueError(f"a machine of {self.cores} hosts of {self.core_w:g} W draws {held}, not {power_w!r} W")
        full = math.floor(units * (1.0 + 2.0 * ROUNDING))
        rest = units - full if units - full > ROUNDING * units else 0.0
        return (*(1.0,) * full, *(rest,) * (full < self.cores), *(0.0,) * (self.cores - full - 1))

    def profile(self, duration_s: float, power_w: float, cpus: int = 1) -> dict[str, Any]:
        """The Batsim profile of `duration_s` s at `power_w` W on each of some cpus, on `hosts(cpus)` hosts.

        A delay for 0 W. On several hosts, no task may follow it in a composed profile before a task without work:
        SimGrid would charge that task's power for the delay, too. Raises ValueError.
        """
        loads = self.loads(power_w)
        if not loads[0] > 0.0:
            return {"type": "delay", "delay": duration_s}
        flops = duration_s * self.nominal_flops
        if loads[-1] == 1.0:
            return {"type": "parallel_homogeneous", "cpu": flops, "com": 0}
        hosts = self.hosts(cpus)
        return {"type": "parallel", "cpu": [flops * load for load in loads] * cpus, "com": [0] * (hosts * hosts)}


def exact_number(value: float) -> float | str:
    """A number as it is, if 6 decimals hold it, else as text: all others are rounded on the way to a scheduler."""
    return value if round(value, 6) == value else number_text(value)


def phases_json(model: PhaseModel, number: Callable[[float], float | str] = exact_number) -> dict[str, Any]:
    """A model as a field of a job; by default numbers of more than 6 decimals, which Batsim would round, are texts."""

    def row(phase: Phase) -> dict[str, Any]:
        fields = {"name": phase.name, "duration": number(phase.duration_s), "power": number(phase.power_w)}
        return fields | {"is_checkpoint": True} if phase.is_checkpoint else fields

    return {"startup": [row(phase) for phase in model.startup], "work": [row(phase) for phase in model.work]}


def reported_model(fields: Mapping[str, Any], where: object) -> PhaseModel | None:
    """The model that a job's JSON carries, None if it has none. Raises InputError."""
    raw = fields.get(PHASES)
    if not isinstance(raw, dict):
        return None if raw is None else model_of(raw, f"{where}: {PHASES}")
    parts = {name: [_read(phase) for phase in part] if isinstance(part, list) else part for name, part in raw.items()}
    return model_of(parts, f"{where}: {PHASES}")


def reported_machines(hosts: Sequence[Mapping[str, Any]]) -> PhaseMachines:
    """The machines of a running simulation, from Batsim's description of its hosts. Raises InputError."""
    sizes: dict[str, int] = {}
    watts = set()
    for host in hosts:
        properties = host["properties"]
        machine = machine_of(properties, host["name"])
        sizes[machine] = sizes.get(machine, 0) + 1
        watts.add(next((properties[key].partition(",")[0] for key in WATTS if key in properties), ""))
    powers = watts.pop().split(":")
    if watts or len(set(sizes.values())) > 1 or len(powers) < 2 or any(finite(power) for power in powers[:-1]):
        problem = "its machines are not alike, or their hosts draw power when they are idle"
        raise NotForPhasesError("platform", problem, "use one that `batwatt carbon workload` makes")
    return PhaseMachines(len(sizes), next(iter(sizes.values())), finite(powers[-1]))


def _read(raw: Any) -> Any:
    """A phase with numbers for texts."""
    if not isinstance(raw, dict):
        return raw
    texts = {key: value for key, value in raw.items() if key in _NUMBERS and isinstance(value, str)}
    try:
        return raw | {key: finite(value) for key, value in texts.items()}
    except ValueError:
        return raw
