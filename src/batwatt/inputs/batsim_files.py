"""Files of Batsim 4 and 5, and workloads of jobs in phases for them.

Generator of Batsim workloads of jobs in phases, in which the energy of each phase is exact in the simulation.

A cpu is a machine of a few hosts of one core that draw 0 W when idle and `core_w` W at full rate, in proportion below
it. A phase of P W for d s is one parallel task: floor(P / core_w) executors have d s of work, one has the missing
fraction, the others none. At least one is at full rate, so that the task lasts d s. This requires a `core_w` of at most
the least power above 0 W. See docs/explanation/carbon.md.
"""

from __future__ import annotations

import ast
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from batwatt.checks import load_json, load_strict, shown
from batwatt.errors import InputError
from batwatt.files import SMALL, read_text
from batwatt.inputs.jobs import HOSTS, SUBMISSION, TimeUnit, read_jobs_csv
from batwatt.model.work import PhaseModel, ShiftJob
from batwatt.model.workload import LENGTH, Workload
from batwatt.protocol.conversion import converted
from batwatt.protocol.events import TimedEvent, parse_events
from batwatt.protocol.job_fields import (
    ARGS,
    ARRIVAL,
    CPUS,
    PHASES,
    ROUNDING,
    TYPE,
    PhaseMachines,
    exact_number,
    model_of,
    model_of_type,
    phases_json,
)
from batwatt.protocol.numbers import batsim_float
from batwatt.protocol.workload4 import parse_job, parse_workload, workload_object
from batwatt.units import SINCE_1970_S, YEAR_S, number_text


def read_workload(
    path: Path | str,
    name: str = "w0",
    *,
    simulate: bool = True,
    ignore_communication: bool = False,
    shared: bool = False,
) -> Workload:
    """Read the workload in a Batsim JSON file; see `parse_workload`. Raises InputError.

    With `shared` small files are in a cache by path and content, for the runs of a study.
    """
    text = read_text(path)
    if shared and len(text) <= SMALL:
        return _small(text, name, path, simulate, ignore_communication)
    data = workload_object(text, path)
    # a long one takes as much memory as its jobs
    del text
    return parse_workload(data, name, path, simulate=simulate, ignore_communication=ignore_communication, owned=True)


@lru_cache(maxsize=32)
def _small(text: str, name: str, path: Path | str, simulate: bool, ignore_communication: bool) -> Workload:
    data = workload_object(text, path)
    return parse_workload(data, name, path, simulate=simulate, ignore_communication=ignore_communication, owned=True)


def read_events(path: Path | str, forward_unknown: bool, nb_hosts: int | None = None) -> tuple[TimedEvent, ...]:
    """Read the events of a file in order of time; see `parse_events`. Raises InputError."""
    return parse_events(read_text(path), path, forward_unknown, nb_hosts)


def converted_file(path: Path | str, to: str) -> dict[str, Any]:
    """Convert the workload in a file of Batsim 4 or 5 to `batsim4` or `batsim5`. Raises InputError."""
    return converted(load_json(read_text(path), path, parse_float=batsim_float), path, to)


LENGTH_SHARE = 0.005
"""Relative difference between the phases and the length of a job above which it is reported."""

_log = logging.getLogger(__name__)


def read_phase_jobs(path: Path | str, unit: TimeUnit = "s", watts: float = 1.0) -> list[ShiftJob]:
    """Read the jobs of a CSV trace with their models; `unit` is that of the columns of times, args are in s.

    Columns: arrival_time, length, cpus, and optionally `name` (the type of the model: one of TYPES, empty: constant)
    and `args` (the arguments of the type, as JSON or as a Python literal). Without them each cpu draws `watts`.
    Phases precede `length`: one warning counts jobs where they differ. Jobs whose length or width is 0 or unknown are
    left out with a warning. Raises InputError with the job.
    """
    table = read_jobs_csv(path, unit, others=True)
    jobs, left_out, differing = [], 0, []
    for number, row in enumerate(table):
        where, arrival_s, length_s = table.place(number), row[SUBMISSION], row[LENGTH]
        if not arrival_s < SINCE_1970_S:
            problem = f"arrives at {number_text(arrival_s)} s, {arrival_s / YEAR_S:.0f} years after 0 s"
            raise InputError(where, problem, "is it a date? then give seconds after the signal's 0 s (from=)")
        if row[HOSTS] <= 0 or (length_s <= 0.0 and _kind(row) == "constant"):
            left_out += 1
            continue
        text = str(row.get(ARGS, "")).strip()
        args = _literal(text, where) if text else None
        model = model_of_type(_kind(row), args, where, length_s if length_s > 0.0 else None, watts)
        if length_s > 0.0 and abs(model.length_s - length_s) > LENGTH_SHARE * length_s:
            differing.append((row["id"], model.length_s, length_s))
        try:
            jobs.append(ShiftJob(row["id"], arrival_s, model, row[HOSTS]))
        except ValueError as error:
            raise InputError(where, str(error), "correct the line") from None
    if not jobs:
        raise InputError(path, "has no jobs", "give lines arrival_time,length,cpus with a length and cpus > 0")
    if left_out:
        _log.warning("%s: %d jobs without a length or cpus left out", path, left_out)
    if differing:
        name, ours, theirs = differing[0]
        text = "%s: the phases of %d jobs do not last as long as their length; phases rule (job %s: %g s, not %g s)"
        _log.warning(text, path, len(differing), name, ours, theirs)
    return jobs


def _kind(row: Mapping[str, Any]) -> str:
    """Return the type of the model of a job, from a column `name` if there is also a column `args`."""
    return (str(row.get(TYPE, "")).strip() if ARGS in row else "") or "constant"


def _literal(text: str, where: str) -> Any:
    """Parse a JSON text, or a Python literal, which is never evaluated. Raises InputError."""
    try:
        return load_strict(text, where)
    except InputError as error:
        if "appears twice" in str(error):
            raise
    try:
        return ast.literal_eval(text)
    except SyntaxError as error:
        reason = str(error.msg).split(";")[0]
    except (ValueError, TypeError, MemoryError, RecursionError):
        reason = "it is more than numbers, texts, lists and objects"
    problem = f"args {shown(text)} are neither JSON nor a Python literal ({reason})"
    raise InputError(where, problem, 'write for instance {"power": 100}')


def read_model(path: Path | str, watts: float = 1.0) -> PhaseModel:
    """Read the model in a JSON file: {"startup": [...], "work": [...]}, or a type with its arguments.

    A type is {"type": "ml", ...}; it may have `length` in s. Raises InputError.
    """
    return model_of(load_strict(read_text(path), path), path, watts)


MAX_UNITS = 64
"""Greatest number of hosts of a machine."""
MAX_CELLS = 20_000_000
"""Greatest number of cells of all matrices of a workload: a task on n hosts whose executors differ has n x n."""
LOOK = "look"
"""Name of the task without work that follows a phase of 0 W, a delay.

Without it SimGrid charges the delay at the load of the following task, on all hosts but the first: 7500 J instead of
3000 J for 50 s of delay before 20 s of 150 W, on Batsim 4.2.1 and the embedded engine.
"""

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
