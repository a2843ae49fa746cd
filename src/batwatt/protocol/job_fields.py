"""Jobs in phases in Batsim's JSON: the model of a job, its fields, and the machines on which its power is exact.

A trace of jobs or a separate file may also contain a model. A cpu is a machine of a few hosts of one core that draw
0 W when idle and `core_w` W at full rate, in proportion below it. See docs/explanation/carbon.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from batwatt.checks import finite, model_error, object_in, shown, validated
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.platform import WATTS, MachineSpec, State, machine_of
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.model.workload import POWER_MAX_W, POWER_PHASES, POWER_STD_W, POWER_W, JobPower
from batwatt.protocol.numbers import json_number
from batwatt.units import number_text, speed_text

MOST_S = 1e9
"""Greatest length in s of phases and jobs, more than 30 years; a longer one is taken for an error."""
MOST_W = 1e9
"""Greatest power in W on one cpu."""
MOST_PHASES = 100_000
"""Greatest number of phases of one job."""
HINT = "see docs/reference/workloads.md"
TYPE, ARGS = "name", "args"
"""Columns of a trace with the type of a job's model, and with its arguments."""
PHASES, ARRIVAL, CPUS = "phases", "arrival", "cpus"
"""Fields of a job: its model, its arrival in s, and the number of cpus of its model."""
ROUNDING = 1e-12
"""Greatest relative difference of powers that is a rounding error."""
_NUMBERS = ("duration", "power")

_Length = Annotated[float, Field(gt=0.0, le=MOST_S, description=f"a number of s > 0 and up to {MOST_S:g}")]
_LengthOrNone = Annotated[float, Field(ge=0.0, le=MOST_S, description=f"a number of s from 0 to {MOST_S:g}")]
_Power = Annotated[float, Field(ge=0.0, le=MOST_W, description=f"a number of W from 0 to {MOST_W:g}")]
_Flag = Annotated[bool, Field(description="true or false")]
_Name = Annotated[str, Field(description="a text")]


class _PhaseRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _WorkPhase(_PhaseRow):
    name: _Name = "work"
    duration: _Length
    power: _Power
    is_checkpoint: _Flag = False

    def phase(self) -> Phase:
        return Phase(self.name, self.duration, self.power, self.is_checkpoint)


class _StartPhase(_PhaseRow):
    name: _Name = "startup"
    duration: _LengthOrNone
    power: _Power

    def phase(self) -> Phase:
        return Phase(self.name, self.duration, self.power)


_StartPhases = Annotated[list[_StartPhase], Field(max_length=MOST_PHASES, description="a list of phases")]
_WorkPhases = Annotated[
    list[_WorkPhase], Field(min_length=1, max_length=MOST_PHASES, description="a list of one or more phases")
]


class _Phases(_PhaseRow):
    startup: _StartPhases = Field(default_factory=list)
    work: _WorkPhases

    def model(self) -> PhaseModel:
        """Return the model of the phases, without start-up phases of 0 s."""
        startup = tuple(phase.phase() for phase in self.startup if phase.duration > 0.0)
        return PhaseModel(startup, tuple(phase.phase() for phase in self.work))


class _Ml(_PhaseRow):
    start_duration: _LengthOrNone
    start_power: _Power
    training_duration: _Length
    training_power: _Power
    evaluate_duration: _Length
    evaluate_power: _Power
    save_duration: _Length
    save_power: _Power
    epochs: Annotated[int, Field(ge=1, le=MOST_PHASES // 3, description=f"a whole number from 1 to {MOST_PHASES // 3}")]

    def model(self) -> PhaseModel:
        """Return a start-up, then `epochs` of training, evaluation, checkpoint (Listing 5.6 of the carbon thesis)."""
        startup = (Phase("start", self.start_duration, self.start_power),) if self.start_duration > 0.0 else ()
        epoch = (
            Phase("training", self.training_duration, self.training_power),
            Phase("evaluate", self.evaluate_duration, self.evaluate_power),
            Phase("save", self.save_duration, self.save_power, is_checkpoint=True),
        )
        return PhaseModel(startup, epoch * self.epochs)


class _Constant(_PhaseRow):
    power: _Power | None = Field(None, description=f"a number of W from 0 to {MOST_W:g}")


class _Long(_PhaseRow):
    length: _Length


_File = TypeVar("_File", bound=_PhaseRow)


def model_of(data: Any, where: object, watts: float = 1.0) -> PhaseModel:
    """Return the model that a JSON object describes; see docs/reference/workloads.md. Raises InputError."""
    if not isinstance(data, dict):
        hint = 'write {"startup": [...], "work": [{"duration": 60, "power": 100}]}'
        raise InputError(where, f"must be an object, got {shown(data)}", hint)
    args = dict(data)
    kind = args.pop("type", "phases")
    if not isinstance(kind, str):
        raise InputError(where, f"type must be a text, got {shown(kind)}", f"use one of {', '.join(TYPES)}")
    length = args.pop("length", None) if kind != "phases" else None
    if length is not None:
        length = _checked(_Long, {"length": length}, where).length
    return model_of_type(kind, args, where, length, watts)


def model_of_type(kind: str, args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return the model of a type with arguments `args`, for a job of `length_s` s if not None. Raises InputError."""
    if kind not in TYPES:
        raise UnknownNameError(where, "type of job", kind, TYPES, HINT)
    return TYPES[kind](args, where, length_s, watts)


def _constant(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return a constant model; `args` are {"power": W} or a number of W."""
    if isinstance(args, int | float) and not isinstance(args, bool):
        args = {"power": args}
    power = _checked(_Constant, args or {}, where).power
    return constant(_needed(length_s, where), watts if power is None else power)


def _mocked(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return a constant model of the mean power of phases, and of their length by default; `args` are the phases."""
    model = _phases({"work": args} if isinstance(args, list) else args, where, None, watts)
    return constant(length_s or model.length_s, model.mean_w)


def _phases(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return the model of phases; `args` are {"startup": [...], "work": [...]}."""
    return _checked(_Phases, args, where).model()


def _ml(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return a model of machine learning; `args` are durations in s and powers in W of its phases, and the epochs."""
    return _checked(_Ml, args, where).model()


def _periodic(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return phases whose work repeats until the length; `args` are the phases, or [phases, length in s]."""
    if isinstance(args, list | tuple) and len(args) == 2:
        args, length = args
        length_s = _checked(_Long, {"length": length}, where).length
    period = _checked(_Phases, args, where).model()
    work_s = _needed(length_s, where) - period.startup_s
    if not work_s > 0.0:
        problem = f"its start-up of {period.startup_s:g} s leaves no time to work in {length_s:g} s"
        raise InputError(where, problem, "give a longer length")
    if not work_s / period.work_s * len(period.work) < MOST_PHASES:
        problem = f"its phases would be repeated to more than {MOST_PHASES}"
        raise InputError(where, problem, "give longer phases")
    return PhaseModel(period.startup, tuple(_repeated(period.work, work_s)))


def _repeated(phases: Sequence[Phase], length_s: float) -> Iterator[Phase]:
    """Yield phases repeatedly for `length_s` s; the last one may be cut short, and is then no checkpoint."""
    left_s = length_s
    while True:
        for phase in phases:
            if not left_s > phase.duration_s:
                whole = left_s == phase.duration_s and phase.is_checkpoint
                yield Phase(phase.name, left_s, phase.power_w, whole)
                return
            yield phase
            left_s -= phase.duration_s


def _mocked_periodic(args: Any, where: object, length_s: float | None, watts: float) -> PhaseModel:
    """Return a model of `_periodic` at its mean power, in the start-up, too."""
    model = _periodic(args, where, length_s, watts)
    startup = (Phase("startup", model.startup_s, model.mean_w),) if model.startup else ()
    return PhaseModel(startup, (Phase("work", model.work_s, model.mean_w),))


Reader = Callable[[Any, object, float | None, float], PhaseModel]
TYPES: Mapping[str, Reader] = {
    "constant": _constant,
    "mocked-constant-from-phases": _mocked,
    "constant-from-phases": _mocked,
    "phases": _phases,
    "periodic-phases": _periodic,
    "constant-from-periodic-phases": _mocked_periodic,
    "ml": _ml,
}
"""Readers of the types of models by the names in the traces of the carbon thesis."""


def _needed(length_s: float | None, where: object) -> float:
    if length_s is None:
        raise InputError(where, "has no length", 'add "length": 3600 (s)')
    return _checked(_Long, {"length": length_s}, where).length


def _checked(model: type[_File], data: Any, where: object) -> _File:
    """Validate data by a pydantic model; raise its first error as an InputError of one line."""
    if not isinstance(data, dict):
        keys = ", ".join(model.model_fields)
        raise InputError(where, f"must be an object with {keys}, got {shown(data)}", HINT)
    return validated(model, data, lambda error: _error_of(where, model, error))


def _error_of(where: object, model: type[_PhaseRow], error: Mapping[str, Any]) -> InputError:
    """Return pydantic's error with the number of the phase and the valid values of the key."""
    key, *rest = error["loc"]
    fields, place = model.model_fields, where
    if rest:
        place = f"{where}: {key} phase {rest[0] + 1}"
        if len(rest) == 1:
            return InputError(place, f"must be an object, got {shown(error['input'])}", HINT)
        fields, key = (_WorkPhase if key == "work" else _StartPhase).model_fields, rest[1]
    if key not in fields and error["type"] != "extra_forbidden":
        return InputError(place, f"keys must be texts, got {key!r}", HINT)
    if isinstance(error["input"], list) and key in fields:
        got = f"{len(error['input'])} phases"
        return InputError(place, f"{key} must be {fields[key].description}, got {got}", HINT)
    return model_error(place, error, HINT, key, fields)


class NotForPhasesError(InputError):
    """Error of machines that do not support jobs in phases."""


@dataclass(frozen=True)
class PhaseMachines(MachineSpec):
    """Machines for jobs in phases, one per cpu: a host draws `core_w` W at full rate, in proportion below, 0 W idle.

    All hosts are alike, so that a scheduler may choose any of them for a job. Switching is that of `MachineSpec`.
    """

    core_flops: str | float = "1Gf"

    @property
    def computing(self) -> tuple[State, ...]:
        """The p-state in which a host computes."""
        return ((speed_text(self.core_flops), 0.0, self.core_w),)

    def hosts(self, cpus: int) -> int:
        """Return the number of hosts of a job on `cpus` cpus."""
        return cpus * self.cores

    def loads(self, power_w: float) -> tuple[float, ...]:
        """Return the loads in [0, 1] of a machine's hosts that draw `power_w` together, the highest first.

        0 W has no load; any other power has at least one host at full load. Raises ValueError.
        """
        units = power_w / self.core_w if power_w > 0.0 else 0.0
        if not (power_w == 0.0 or 1.0 - ROUNDING <= units <= self.cores * (1.0 + ROUNDING)):
            held = f"0 W, or from {self.core_w:g} to {self.cores * self.core_w:g} W"
            raise ValueError(f"a machine of {self.cores} hosts of {self.core_w:g} W draws {held}, not {power_w!r} W")
        full = math.floor(units * (1.0 + 2.0 * ROUNDING))
        rest = units - full if units - full > ROUNDING * units else 0.0
        return (*(1.0,) * full, *(rest,) * (full < self.cores), *(0.0,) * (self.cores - full - 1))

    def profile(self, duration_s: float, power_w: float, cpus: int = 1) -> dict[str, Any]:
        """Return the Batsim profile of `duration_s` s at `power_w` W on each of `cpus` cpus, on `hosts(cpus)` hosts.

        0 W becomes a delay. On several hosts, a task without work must follow a delay in a composed profile before any
        other task: SimGrid would charge the power of the latter for the delay, too. Raises ValueError.
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
    """Return a number of at most 6 decimals unchanged, any other as text: Batsim rounds numbers for schedulers."""
    return value if round(value, 6) == value else number_text(value)


def phases_json(model: PhaseModel, number: Callable[[float], float | str] = exact_number) -> dict[str, Any]:
    """Return a model as a field of a job; by default numbers of more than 6 decimals are texts."""

    def row(phase: Phase) -> dict[str, Any]:
        fields = {"name": phase.name, "duration": number(phase.duration_s), "power": number(phase.power_w)}
        return fields | {"is_checkpoint": True} if phase.is_checkpoint else fields

    return {"startup": [row(phase) for phase in model.startup], "work": [row(phase) for phase in model.work]}


def reported_model(fields: Mapping[str, Any], where: object) -> PhaseModel | None:
    """Return the model in the JSON of a job, None if it has none. Raises InputError."""
    raw = fields.get(PHASES)
    if not isinstance(raw, dict):
        return None if raw is None else model_of(raw, f"{where}: {PHASES}")
    parts = {name: [_read(phase) for phase in part] if isinstance(part, list) else part for name, part in raw.items()}
    return model_of(parts, f"{where}: {PHASES}")


def reported_machines(hosts: Sequence[Mapping[str, Any]]) -> PhaseMachines:
    """Return the machines of a running simulation, from Batsim's description of its hosts. Raises InputError."""
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
        raise NotForPhasesError("platform", problem, "use one that `batwatt convert -p` makes")
    return PhaseMachines(len(sizes), next(iter(sizes.values())), finite(powers[-1]))


def _read(raw: Any) -> Any:
    """Return a phase with its texts converted to numbers."""
    if not isinstance(raw, dict):
        return raw
    texts = {key: value for key, value in raw.items() if key in _NUMBERS and isinstance(value, str)}
    try:
        return raw | {key: finite(value) for key, value in texts.items()}
    except ValueError:
        return raw


POWER_FIELDS = frozenset({POWER_W, POWER_STD_W, POWER_MAX_W, POWER_PHASES})
"""Fields whose values are known only after the run of a job."""


def parse_power(raw: Mapping[str, Any], job_id: str) -> JobPower | None:
    """Return the power of a job by its fields; None if they do not state it. Raises InputError."""
    phases = raw.get(POWER_PHASES)
    try:
        if phases is not None:
            return JobPower.of_phases(_power_phases(phases, job_id))
        mean_w = _watts(raw, POWER_W, job_id)
        if mean_w is None:
            return None
        return JobPower(mean_w, _watts(raw, POWER_STD_W, job_id) or 0.0, _watts(raw, POWER_MAX_W, job_id) or 0.0)
    except ValueError as error:
        raise InputError("workload", f"job {job_id}: {error}", "correct it") from None


def parse_estimate(raw: Mapping[str, Any], field: str, job_id: str) -> float:
    """Return the estimate in W in the field `field` of a job. Raises InputError if it has none."""
    fields = raw if field in raw else object_in(raw.get("extra_data")) or {}
    watts = _watts(fields, field, job_id)
    if watts is None:
        problem = f"job {job_id} has no field {field!r}"
        raise InputError("workload", problem, "name the field of the estimates in the options of the predictor")
    return watts


def _power_phases(value: Any, job_id: str) -> list[tuple[float, float]]:
    rows = value if isinstance(value, list) else []
    phases = [
        (length_s, watts)
        for row in rows
        if isinstance(row, list) and len(row) == 2
        for length_s, watts in [(json_number(row[0]), json_number(row[1]))]
        if length_s and watts is not None
    ]
    if not phases or len(phases) < len(rows):
        problem = f"job {job_id}: {POWER_PHASES} must be a list of [s > 0, W >= 0], got {shown(value)}"
        raise InputError("workload", problem, "correct it")
    return phases


def _watts(fields: Mapping[str, Any], name: str, job_id: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    watts = json_number(value)
    if watts is None:
        problem = f"job {job_id}: {name} must be a number >= 0 in W, got {shown(value)}"
        raise InputError("workload", problem, "correct it")
    return watts
