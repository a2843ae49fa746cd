"""Generator of Batsim workloads of jobs in phases, in which the energy of each phase is exact in the simulation.

A cpu is a machine of a few hosts of one core that draw 0 W when idle and `core_w` W at full rate, in proportion below
it. A phase of P W for d s is one parallel task: floor(P / core_w) executors have d s of work, one has the missing
fraction, the others none. At least one is at full rate, so that the task lasts d s. This requires a `core_w` of at most
the least power above 0 W. See docs/explanation/carbon-engine.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from batwatt.errors import InputError
from batwatt.model.work import ShiftJob
from batwatt.protocol.job_fields import ARRIVAL, CPUS, PHASES, ROUNDING, PhaseMachines, exact_number, phases_json
from batwatt.protocol.workload4 import parse_job
from batwatt.units import number_text

MAX_UNITS = 64
"""Greatest number of hosts of a machine."""
MAX_CELLS = 20_000_000
"""Greatest number of cells of all matrices of a workload: a task on n hosts whose executors differ has n x n."""
LOOK = "look"
"""Name of the task without work that follows a phase of 0 W."""

_NAME = "w0"
_WHERE = "phases"


def phase_machines(jobs: Iterable[ShiftJob], machines: int) -> PhaseMachines:
    """Return `machines` machines for some jobs, each with the least possible number of hosts. Raises InputError."""
    models = {id(job.model): job.model for job in jobs}.values()
    powers = {phase.power_w for model in models for phase in (*model.startup, *model.work) if phase.power_w > 0.0}
    least, most = min(powers, default=1.0), max(powers, default=1.0)
    if not most / least * (1.0 - ROUNDING) <= MAX_UNITS:
        problem = f"powers from {least:g} to {most:g} W take more than {MAX_UNITS} hosts a machine"
        raise InputError(_WHERE, problem, f"raise those below {most / MAX_UNITS:g} W, or make them 0 W")
    return PhaseMachines(machines, math.ceil(most / least * (1.0 - ROUNDING)), least)


def phase_workload(jobs: Sequence[ShiftJob], machines: int) -> tuple[PhaseMachines, dict[str, Any]]:
    """Return the machines of a run (`machines_xml`, `machines_platform`) and the JSON of its workload.

    Each job runs all of its phases without interruption, under any scheduler, on `hosts(cpus)` hosts. Its fields
    PHASES, ARRIVAL and CPUS are for schedulers that use phases. Raises InputError.
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
            ARRIVAL: exact_number(job.arrival_s),
            CPUS: job.cpus,
            PHASES: phases_json(job.model),
        }
        # raises InputError for an id that Batsim misreads
        parse_job(row, _NAME, f"job {job.id}")
        rows.append(row)
    return owner, {"nb_res": owner.hosts(machines), "jobs": rows, "profiles": profiles.profiles}


class _PhaseProfiles:
    """The profiles of a workload, each once."""

    def __init__(self, machines: PhaseMachines) -> None:
        self.profiles: dict[str, dict[str, Any]] = {}
        self._machines = machines
        self._wholes: dict[tuple[tuple[str, ...], int], str] = {}
        self._cells = 0

    def of(self, job: ShiftJob) -> str:
        """Return the name of a job's profile, which is added to `profiles`. Raises InputError."""
        names: list[str] = []
        for power_w, phases in groupby((*job.model.startup, *job.model.work), key=lambda phase: phase.power_w):
            if names and self.profiles[names[-1]]["type"] == "delay" and self._machines.hosts(job.cpus) > 1:
                self.profiles.setdefault(LOOK, {"type": "parallel_homogeneous", "cpu": 0, "com": 0})
                names.append(LOOK)
            names.append(self._leaf(sum(phase.duration_s for phase in phases), power_w, job))
        if len(names) == 1:
            return names[0]
        whole = self._wholes.setdefault((tuple(names), job.cpus), f"job-{job.id}")
        self.profiles.setdefault(whole, {"type": "composed", "seq": names})
        return whole

    def _leaf(self, duration_s: float, power_w: float, job: ShiftJob) -> str:
        name = f"{number_text(duration_s)}s-{number_text(power_w)}W-x{job.cpus}"
        if name not in self.profiles:
            loads = self._machines.loads(power_w)
            if loads[0] > loads[-1]:
                self._cells += self._machines.hosts(job.cpus) ** 2
            if not self._cells <= MAX_CELLS:
                problem = f"its profiles on {job.cpus} cpus and those before have more than {MAX_CELLS} numbers"
                raise InputError(f"job {job.id}", problem, "take jobs of fewer cpus, or fewer kinds of phases")
            self.profiles[name] = self._machines.profile(duration_s, power_w, job.cpus)
        return name
