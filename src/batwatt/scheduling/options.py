"""The options of a scheduler: JSON that names parts and inputs, checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from batwatt.checks import shown_json, validated
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.option_files import READERS, SIGNALS, read_signal_option
from batwatt.model.clock import Clock
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.registry import KINDS
from batwatt.units import number_text

EVENTS: Final = "events"
"""The option `envelope` where the engine forwards it."""
PartChoice = str | dict[str, Any]
NODES = "choice among the free nodes for a job (docs/explanation/node-selection.md)"
WAIT_H = [6.0, 24.0]
"""Hours that short and long jobs may wait (GAIA)."""
WaitHours = Annotated[list[Annotated[float, Field(ge=0.0)]], Field(min_length=1, max_length=2)]
"""Hours >= 0 that short and long jobs may wait, or one for all."""
VICTIM = (
    "fate of a killed job: lose, resubmit, checkpoint, migrate, or a part of your own (docs/explanation/victims.md)"
)
AGE = (
    "time in s since its release after which a waiting job goes before all others, with a reservation, and a running "
    "one is stopped for no other; null: no limit"
)
LIMIT = (
    "time in s within which a host must switch on or off, or it is out of service until it is reported; by default "
    "three times the duration in the platform file, at least 300 s"
)


class SchedulerOptions(BaseModel):
    """Options of every scheduler of ours; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True, allow_inf_nan=False)

    platform: Platform | None = Field(None, description="platform file, for the servers' speeds and watts")
    run_times: PartChoice | None = Field(
        None,
        description="estimate of run times by which jobs are ordered, get reservations and are weighed: exact, "
        "walltime, recent, regression, or a part of your own (docs/explanation/run-times.md); by default as the "
        "scheduler's paper has it",
    )
    shift: PartChoice | None = Field(
        None,
        description="policy of `batwatt policies` by which a job is held after its submission, for --carbon or "
        '--price: a name, or {"name": "waiting", "wait_h": [6, 24]}',
    )


class PowerOptions(SchedulerOptions):
    """Options of every scheduler of jobs on hosts under an envelope."""

    node_selection: PartChoice = Field("first", description=NODES)
    envelope: Series | Literal["events"] | None = Field(
        None, description="CSV file of the power envelope, or 'events' if the engine forwards it as external events"
    )
    victim: PartChoice = Field("lose", description=VICTIM)
    age_limit_s: float | None = Field(None, gt=0.0, description=AGE)


class EnvelopeOptions(PowerOptions):
    """Options of every scheduler that responds to an envelope."""

    order: PartChoice | None = Field(None, description="queue order")
    backfilling: PartChoice | None = Field(None, description="backfilling of jobs on servers")
    response: PartChoice | None = Field(None, description="response to a new power cap")
    work_estimate: Literal["walltime", "learned", "exact"] | None = Field(
        None,
        description="estimate of a job's work: its walltime at the fastest state, the largest share of that which a "
        "job has needed so far, or that of its profile; by default that of the response",
    )
    forecast_steps: int = Field(
        0, ge=0, le=10_000, description="number of caps ahead that the scheduler knows, 0 to 10000"
    )
    forecast_error: float = Field(
        0.0, ge=0.0, le=10.0, description="standard deviation of the relative error a step ahead, 0 to 10"
    )
    forecast_seed: int = Field(0, ge=0, description="seed of the forecast's errors, a whole number >= 0")
    transition_limit_s: float | None = Field(None, gt=0.0, description=LIMIT)


def read_options(
    model: type[SchedulerOptions], options: Mapping[str, Any] | None, clock: Clock | None = None
) -> dict[str, Any]:
    """Return the options of a scheduler, with the content of files in place of their names. Raises InputError.

    Signals begin on the clock of the run, else both with the first row of carbon.
    """
    read = dict(options or {})
    paths = {name: read.pop(name) for name, (kind, _) in READERS.items() if _is_path(model, name, kind, read)}
    signals = {name: read.pop(name) for name in SIGNALS if _is_path(model, name, SignalIntegral, read)}
    if not (paths or signals):
        return read
    # errors of the other options come before a file is read
    parse_options(model, read)
    read |= {name: READERS[name][1](path) for name, path in paths.items()}
    for name, path in signals.items():
        read[name] = read_signal_option(name, path, getattr(read.get("signal"), "begin", None) or None, clock)
    return read


def _is_path(model: type[SchedulerOptions], name: str, kind: type[Any], options: Mapping[str, Any]) -> bool:
    """Return whether an option names a file of the type `kind`; a scheduler may have another meaning for its name."""
    value, field = options.get(name), model.model_fields.get(name)
    path = isinstance(value, str | Path) and value not in ("", EVENTS)
    return path and field is not None and kind in get_args(field.annotation)


def parse_options(model: type[SchedulerOptions], options: Mapping[str, Any]) -> SchedulerOptions:
    """Return the options as a model; InputError names the option, its value and the allowed values."""
    names = set(model.model_fields)
    for name in options:
        if name not in names:
            raise UnknownNameError("options", "option", name, names, "See `batwatt policies SCHEDULER`.")
    for kind in KINDS:
        choice = options.get(kind)
        if (isinstance(choice, str) and not choice) or (isinstance(choice, dict) and "name" not in choice):
            raise InputError(f"option {kind!r}", f"{shown_json(choice)} is not {_wanted(model, kind)}")
    for name in ("envelope", "platform", "capacity", "reference"):
        if isinstance(options.get(name), str) and not options[name]:
            raise InputError(f"option {name!r}", '"" is not a file', "leave it out or name one")

    def error_of(error: Mapping[str, Any]) -> InputError:
        name, value = str(error["loc"][0]) if error["loc"] else "options", error.get("input")
        return InputError(f"option {name!r}", f"{shown_json(value)} is not {_wanted(model, name, value)}")

    return validated(model, dict(options), error_of)


def _wanted(model: type[SchedulerOptions], name: str, value: object = None) -> str:
    """Return the allowed values of an option, in words, for a `value` that is none of them."""
    field = model.model_fields[name]
    if name in KINDS:
        article = "an" if name[0] in "aeiou" else "a"
        return f'the name of {article} {name}, or an object with its "name" and parameters; see `batwatt policies`'
    kinds = (field.annotation, *get_args(field.annotation))
    for kind in kinds:
        plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(plain) is list:
            return f"a list as {json.dumps((field.examples or [field.default])[0])} ({field.description})"
        if get_origin(kind) is Literal and EVENTS not in get_args(kind):
            return f"one of {', '.join(json.dumps(value) for value in get_args(kind))}"
    if dict[str, Any] in kinds:
        return f"{'an object' if field.annotation == dict[str, Any] else 'a name or an object'} ({field.description})"
    for number, words in ((bool, "true or false"), (int, "a whole number"), (float, "a number")):
        if number in kinds:
            return f"{words}{bounds_of(field)} ({field.description})"
    if isinstance(value, str):
        return "read: give what the file holds, or derive the class from one in batwatt.schedulers, which read files"
    return f"the name of a file ({field.description})"


def bounds_of(field: FieldInfo) -> str:
    """Return the bounds of a number, as in ` >= 0 and <= 8760`."""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [
        f"{sign} {number_text(getattr(bound, name))}"
        for name, sign in signs.items()
        for bound in field.metadata
        if hasattr(bound, name)
    ]
    return f" {' and '.join(bounds)}" if bounds else ""
