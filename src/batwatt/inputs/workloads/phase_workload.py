"""Jobs in phases as a Batsim workload whose energies are true: what each phase draws comes out of the simulation.

A cpu is a machine of a few hosts of one core that draw nothing when they are idle and `core_w` W at full rate, in
proportion below it. A phase of P W for d s is one parallel task: floor(P / core_w) executors have d s of work, one has
the fraction of it that is missing, the others none. One is at full rate, so that the task lasts d s. This takes a
`core_w` of at most the least power above 0 W. See docs/explanation/carbon-engine.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.workloads.phase_jobs import model_of
from batwatt.model.machines import MachineSpec, State
from batwatt.model.phases import Phase, PhaseModel, ShiftJob
from batwatt.model.platform import WATTS, machine_of
from batwatt.protocol.workload4 import parse_job
from batwatt.units import number_text, speed_text

MAX_UNITS = 64
"""Most hosts of a machine."""
MAX_CELLS = 20_000_000
"""Most numbers in all matrices of a workload: a task on n hosts whose executors differ has n x n of them."""
PHASES, ARRIVAL, CPUS = "phases", "arrival", "cpus"
"""Fields of a job: its model, when it arrived in s, and on how many cpus its model runs."""
LOOK = "look"
"""Name of the task without work that follows a phase of 0 W."""

_EXACT = 1e-12
"""Relative difference of powers that is rounding."""
_NAME = "w0"
_NUMBERS = ("duration", "power")
_WHERE = "phases"


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
        if not (power_w == 0.0 or 1.0 - _EXACT <= units <= self.cores * (1.0 + _EXACT)):
            held = f"0 W, or from {self.core_w:g} to {self.cores * self.core_w:g} W"
            raise ValueError(f"a machine of {self.cores} hosts of {self.core_w:g} W draws {held}, not {power_w!r} W")
        full = math.floor(units * (1.0 + 2.0 * _EXACT))
        rest = units - full if units - full > _EXACT * units else 0.0
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


def phase_machines(jobs: Iterable[ShiftJob], machines: int) -> PhaseMachines:
    """So many machines for these jobs, each of as few hosts as can be. Raises InputError."""
    models = {id(job.model): job.model for job in jobs}.values()
    powers = {phase.power_w for model in models for phase in (*model.startup, *model.work) if phase.power_w > 0.0}
    least, most = min(powers, default=1.0), max(powers, default=1.0)
    if not most / least * (1.0 - _EXACT) <= MAX_UNITS:
        problem = f"powers from {least:g} to {most:g} W take more than {MAX_UNITS} hosts a machine"
        raise InputError(_WHERE, problem, f"raise those below {most / MAX_UNITS:g} W, or make them 0 W")
    return PhaseMachines(machines, math.ceil(most / least * (1.0 - _EXACT)), least)


def phase_workload(jobs: Sequence[ShiftJob], machines: int) -> tuple[PhaseMachines, dict[str, Any]]:
    """The machines of a run (`machines_xml`, `machines_platform`) and the JSON of its workload.

    Each job runs through all of its phases without a break, under any scheduler, and takes `hosts(cpus)` hosts. Its
    fields PHASES, ARRIVAL and CPUS are for schedulers that know of phases. Raises InputError.
    """
    if not jobs:
        raise InputError(_WHERE, "there is no job", "give at least one")
    owner = phase_machines(jobs, machines)
    profiles = _PhaseProfiles(owner)
    rows = []
    for job in jobs:
        if not job.cpus <= machines:
            problem = f"it has {job.cpus} cpus, more than there are machines ({machines})"
            raise InputError(f"job {job.id}", problem, "take more machines")
        row = {
            "id": job.id,
            "subtime": job.arrival_s,
            "res": owner.hosts(job.cpus),
            "profile": profiles.of(job),
            ARRIVAL: _exact(job.arrival_s),
            CPUS: job.cpus,
            PHASES: phases_json(job.model),
        }
        # an id that Batsim misreads
        parse_job(row, _NAME, f"job {job.id}")
        rows.append(row)
    return owner, {"nb_res": owner.hosts(machines), "jobs": rows, "profiles": profiles.known}


def _exact(value: float) -> float | str:
    """A number as it is, if 6 decimals hold it, else as text: all others are rounded on the way to a scheduler."""
    return value if round(value, 6) == value else number_text(value)


def phases_json(model: PhaseModel, number: Callable[[float], float | str] = _exact) -> dict[str, Any]:
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


class _PhaseProfiles:
    """The profiles of a workload; what is alike is there once."""

    def __init__(self, machines: PhaseMachines) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self._machines = machines
        self._wholes: dict[tuple[tuple[str, ...], int], str] = {}
        self._cells = 0

    def of(self, job: ShiftJob) -> str:
        """The name of a job's profile, which is among the known ones from now on. Raises InputError."""
        names: list[str] = []
        for power_w, phases in groupby((*job.model.startup, *job.model.work), key=lambda phase: phase.power_w):
            if names and self.known[names[-1]]["type"] == "delay" and self._machines.hosts(job.cpus) > 1:
                self.known.setdefault(LOOK, {"type": "parallel_homogeneous", "cpu": 0, "com": 0})
                names.append(LOOK)
            names.append(self._leaf(sum(phase.duration_s for phase in phases), power_w, job))
        if len(names) == 1:
            return names[0]
        whole = self._wholes.setdefault((tuple(names), job.cpus), f"job-{job.id}")
        self.known.setdefault(whole, {"type": "composed", "seq": names})
        return whole

    def _leaf(self, duration_s: float, power_w: float, job: ShiftJob) -> str:
        name = f"{number_text(duration_s)}s-{number_text(power_w)}W-x{job.cpus}"
        if name not in self.known:
            loads = self._machines.loads(power_w)
            if loads[0] > loads[-1]:
                self._cells += self._machines.hosts(job.cpus) ** 2
            if not self._cells <= MAX_CELLS:
                problem = f"its profiles on {job.cpus} cpus and those before have more than {MAX_CELLS} numbers"
                raise InputError(f"job {job.id}", problem, "take jobs of fewer cpus, or fewer kinds of phases")
            self.known[name] = self._machines.profile(duration_s, power_w, job.cpus)
        return name


def _read(raw: Any) -> Any:
    """A phase with numbers for texts."""
    if not isinstance(raw, dict):
        return raw
    texts = {key: value for key, value in raw.items() if key in _NUMBERS and isinstance(value, str)}
    try:
        return raw | {key: finite(value) for key, value in texts.items()}
    except ValueError:
        return raw
