"""Instances and capacity sequences as JSON: read strictly, and plans as JSON.

docs/reference/formats.md has the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from batwatt.checks import load_strict, model_error, shown, validated
from batwatt.errors import InputError, argument
from batwatt.files import read_text
from batwatt.schedulers.checkpoint.knapsack import TooLargeError
from batwatt.schedulers.checkpoint.period_plan import (
    MOST_PROCESSORS,
    STATES,
    Assignment,
    Instance,
    NoPeriodPlanError,
    PeriodJob,
    PeriodPlan,
    State,
    plan,
    subset_sum,
)
from batwatt.schedulers.checkpoint.sequence import (
    METHODS,
    CapacitySequence,
    Cover,
    Followed,
    Method,
    Objective,
    Prepared,
    prepare,
)

MOST_S = 1e12
"""Longer times (more than 30,000 years) are refused: a mistake, and sums of them would lose the seconds."""
NEW: Final = "new"
"""State of a job of a capacity sequence that has never run."""
HINT = "see docs/reference/formats.md"
JobName = str | int
"""The id of a job as the file has it."""

_Id = Annotated[Annotated[str, Field(min_length=1)] | int, Field(description="a text or a whole number")]
_Count = Annotated[int, Field(ge=1, le=MOST_PROCESSORS, description=f"a whole number from 1 to {MOST_PROCESSORS}")]
_Change = Annotated[int, Field(ge=0, le=MOST_PROCESSORS, description=f"a whole number from 0 to {MOST_PROCESSORS}")]
_Cost = Annotated[float, Field(ge=0.0, le=MOST_S, description=f"a number of s from 0 to {MOST_S:g}")]
_Time = Annotated[float, Field(gt=0.0, le=MOST_S, description=f"a number of s > 0 and up to {MOST_S:g}")]
_Platform = Annotated[_Count | None, Field(description=f"a whole number from 1 to {MOST_PROCESSORS}")]


class _JobRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _JobOfSequence(_JobRow):
    id: _Id
    processors: _Count
    checkpoint_s: _Cost
    recovery_s: _Cost
    state: State | Literal["new"] = Field(NEW, description=f"one of {NEW}, {', '.join(STATES)}")

    def job(self) -> PeriodJob:
        """Return the job; one that is new is stopped."""
        state = "stopped" if self.state == NEW else self.state
        return PeriodJob(str(self.id), self.processors, self.checkpoint_s, self.recovery_s, state)


class _Job(_JobOfSequence):
    state: State = Field(description=f"one of {', '.join(STATES)}")
    recovering_s: _Cost = 0.0

    def job(self) -> PeriodJob:
        """Return the job, that may be in its recovery."""
        return replace(super().job(), recovering_s=self.recovering_s)


_JOBS = "a list of one or more jobs"


class _InstanceFile(_JobRow):
    period_s: _Time
    platform: _Platform = None
    processors: _Count
    jobs: list[_Job] = Field(min_length=1, description=_JOBS)
    k: _Change | None = Field(None, description="a whole number from 0 to `processors`")


class _SequenceFile(_JobRow):
    period_s: _Time
    platform: _Platform = None
    capacities: list[_Count] = Field(min_length=1, description="a list of one or more whole numbers of processors")
    jobs: list[_JobOfSequence] = Field(min_length=1, description=_JOBS)
    k: _Change | None = Field(None, description="a whole number from 0 to the largest of `capacities`")


SequenceData = tuple[CapacitySequence, Mapping[str, JobName]]
"""A capacity sequence, and the ids of its jobs in the file."""


@dataclass(frozen=True)
class InstanceData:
    """Content of an instance's file: `names` are ids as in the file, `platform` all processors of the platform."""

    instance: Instance
    names: Mapping[str, JobName]
    k: int | None
    platform: int | None

    @property
    def running(self) -> tuple[PeriodJob, ...]:
        """The jobs that run before the period, whether a checkpoint has just ended or not."""
        return tuple(job for job in self.instance.jobs if job.state != "stopped")

    @property
    def others(self) -> tuple[PeriodJob, ...]:
        """The jobs that do not run before the period."""
        return tuple(job for job in self.instance.jobs if job.state == "stopped")


def read_instance(path: Path | str) -> InstanceData:
    """Read the instance of a JSON file. InputError names the file, the job, the key, the value and its constraint."""
    return instance_of(load_strict(read_text(path), path), path)


def instance_of(data: Any, path: Path | str) -> InstanceData:
    """Return the instance that a JSON object describes; `path` is the name of it in errors. Raises InputError."""
    file = _checked(data, path, _InstanceFile)
    processors = file.processors
    if file.k is not None and file.k > processors:
        problem = f"k must be a whole number from 0 to processors ({processors}), got {file.k}"
        raise InputError(path, problem, "a change cannot take away more than there is")
    names = _names(path, file, processors, "processors")
    for job in file.jobs:
        if job.recovering_s > 0.0 and job.state != "checkpointed":
            problem = f"recovering_s is of a checkpointed job, this one is {job.state}"
            raise InputError(_place(path, job.id), problem, "leave it out")
    try:
        instance = Instance(file.period_s, processors, tuple(job.job() for job in file.jobs))
    except ValueError as error:
        raise InputError(path, str(error), "checkpoint more of them before, or kill some") from None
    return InstanceData(instance, names, file.k, file.platform)


def read_periods(path: Path | str) -> InstanceData | SequenceData:
    """Read a JSON file: a sequence if it has `capacities`, else an instance, before a change if it has `k`.

    InputError names the file, the job, the key, the value and its constraint.
    """
    data = load_strict(read_text(path), path)
    is_sequence = isinstance(data, dict) and "capacities" in data
    return _sequence_of(data, path) if is_sequence else instance_of(data, path)


def read_sequence(path: Path | str) -> SequenceData:
    """Read the sequence of a JSON file. InputError names the file, the job, the key, the value and its constraint."""
    return _sequence_of(load_strict(read_text(path), path), path)


def _sequence_of(data: Any, path: Path | str) -> SequenceData:
    file = _checked(data, path, _SequenceFile)
    counts = file.capacities
    names = _names(path, file, max(counts), "the largest of capacities")
    changes = (abs(after - before) for before, after in pairwise(counts))
    k = file.k if file.k is not None else max(changes, default=0)
    held = sum(job.processors for job in file.jobs if job.state not in ("stopped", NEW))
    if held > counts[0] + k:
        problem = f"the jobs that ran before need {held} processors, there were at most {counts[0] + k}"
        raise InputError(path, f"{problem} (the first of capacities, and k)", "correct that, or the states of the jobs")
    try:
        jobs = tuple(job.job() for job in file.jobs)
        new = frozenset(str(job.id) for job in file.jobs if job.state == NEW)
        return CapacitySequence(file.period_s, tuple(counts), k, jobs, file.platform, new), names
    except ValueError as error:
        raise InputError(path, str(error), "correct k, or capacities") from None


def _names(path: Path | str, file: _InstanceFile | _SequenceFile, most: int, what: str) -> dict[str, JobName]:
    """Return the ids as in the file; InputError if one appears twice, or a job is wider than all processors.

    `most` of these are in use, which an error calls `what`.
    """
    if file.platform is not None:
        if file.platform < most:
            raise InputError(path, f"platform must be >= {what} ({most}), got {file.platform}", HINT)
        most = file.platform
    names: dict[str, JobName] = {}
    for job in file.jobs:
        place = _place(path, job.id)
        if str(job.id) in names:
            raise InputError(place, "the id appears twice", "give each job an id of its own")
        names[str(job.id)] = job.id
        if job.processors > most:
            problem = f"processors must be <= {most}, all that there are, got {job.processors}"
            raise InputError(place, problem, "correct it, or give as `platform` how many there can be")
    return names


_File = TypeVar("_File", bound=_JobRow)


def _checked(data: Any, path: Path | str, model: type[_File]) -> _File:
    """Return an object as a model; its first error is one line."""
    if not isinstance(data, dict):
        raise InputError(path, f"must be an object, got {shown(data)}", HINT)
    return validated(model, data, lambda error: _error_of(path, model, data, error))


def _error_of(path: Path | str, model: type[_JobRow], data: dict[str, Any], error: Mapping[str, Any]) -> InputError:
    """Return pydantic's error, with the name of the job and the constraint of the key."""
    key, *rest = error["loc"]
    place: object = path
    fields = model.model_fields
    if key == "jobs" and rest:
        number, *inner = rest
        raw = data["jobs"][number]
        name = raw.get("id") if isinstance(raw, dict) else None
        is_name = isinstance(name, str | int) and not isinstance(name, bool)
        place = _place(path, name) if is_name else f"{path}: job number {number + 1}"
        if not inner:
            return InputError(place, f"must be an object, got {shown(raw)}", HINT)
        key = inner[0]
        fields = (_Job if model is _InstanceFile else _JobOfSequence).model_fields
    elif rest and isinstance(rest[0], int):
        place = f"{path}: {key}: number {rest[0] + 1}"
    hint = "See docs/reference/formats.md." if error["type"] == "extra_forbidden" else HINT
    return model_error(place, error, hint, key, fields)


def _place(path: Path | str, name: object) -> str:
    return f"{path}: job {shown(name)}"


def plan_json(plan: PeriodPlan, names: Mapping[str, JobName]) -> dict[str, Any]:
    """Return a plan and its goodput as JSON: one entry a job, in the instance's order, with the ids of the file."""
    return {
        "goodput": plan.goodput,
        "method": plan.method,
        "period_s": plan.instance.period_s,
        "processors": plan.instance.processors,
        "work_processor_s": plan.work_processor_s,
        "checkpoints_end_s": plan.checkpoints_end_s,
        "plan": [_act_json(act, names, 0.0) for act in plan.acts],
    }


def prepared_json(prepared: Prepared, names: Mapping[str, JobName]) -> dict[str, Any]:
    """Return the jobs to checkpoint before a change as JSON, with the ids of the file."""
    return {
        "objective": prepared.objective,
        "checkpoint": [name for text, name in names.items() if text in prepared.ids],
        "cost_processor_s": prepared.cost_processor_s,
        "value": prepared.value,
        "exact": prepared.exact,
        "outcomes": [{"processors": processors, "goodput": goodput} for processors, goodput in prepared.outcomes],
    }


def followed_json(followed: Followed, names: Mapping[str, JobName]) -> dict[str, Any]:
    """Return a capacity sequence, period by period, as JSON. Times count from the beginning of the sequence."""
    return {
        "goodput": followed.goodput,
        "min_yield": followed.min_yield,
        "yields": followed.yields,
        "periods": [
            {
                "begin_s": period.begin_s,
                "processors": period.plan.instance.processors,
                "goodput": period.plan.goodput,
                "work_processor_s": period.plan.work_processor_s,
                "prepared": [name for text, name in names.items() if text in period.prepared],
                "plan": [_act_json(act, names, period.begin_s) for act in period.plan.acts],
            }
            for period in followed.periods
        ],
    }


def _act_json(act: Assignment, names: Mapping[str, JobName], begin_s: float) -> dict[str, Any]:
    return {
        "id": names[act.job.id],
        "processors": act.job.processors,
        "state": act.job.state,
        "decision": act.decision,
        "work_s": act.work_s,
        "phases": [
            {"kind": phase.kind, "begin_s": begin_s + phase.begin_s, "end_s": begin_s + phase.end_s}
            for phase in act.phases
        ],
    }


def plan_instance(source: InstanceData, where: object, method: Method) -> PeriodPlan:
    """Return the plan of one period. Raises InputError."""
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"use {' or '.join(METHODS)}")
    with naming_input(where):
        return subset_sum(source.instance) if method == "subset-sum" else plan(source.instance)


def prepare_instance(source: InstanceData, where: object, objective: Objective, cover: Cover) -> Prepared:
    """Choose the jobs to checkpoint before a change by up to `k`. Raises InputError unless all jobs that run fit."""
    period = source.instance
    held = sum(job.processors for job in source.running)
    if held > period.processors:
        problem = f"the jobs that run need {held} processors, processors is {period.processors}"
        raise InputError(where, problem, "before a change all jobs that run have theirs")
    with naming_input(where):
        return prepare(
            source.running,
            source.others,
            period.period_s,
            period.processors,
            source.k or 0,
            objective=objective,
            platform=source.platform,
            cover=cover,
        )


@contextmanager
def naming_input(where: object) -> Iterator[None]:
    """Raise InputError, in place of errors of planning within, which names the input `where`."""
    try:
        yield
    except NoPeriodPlanError as error:
        # of subset sum alone: every job that runs may go on
        raise InputError(where, str(error), f"{argument('method', 'dp')} may have one") from None
    except TooLargeError as error:
        raise InputError(where, str(error), "see docs/reference/formats.md") from None
    except ValueError as error:
        raise InputError(where, str(error), "correct the file") from None
