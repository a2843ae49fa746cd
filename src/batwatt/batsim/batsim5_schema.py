"""The tables of batprotocol that Batsim 5 sends, and a parser of its messages.

Errors are a required field that is missing, a word that is not in an enumeration, a number that is not finite, and a
negative or floating-point number for a count. Fields of other versions are ignored.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from batwatt.checks import shown
from batwatt.errors import ProtocolError

_ENUMS = {
    "Amounts": "DefinedAmountsUsedForEachValue DefinedAmountsSpreadUniformly",
    "Trace": "SMPI FractionalComputation",
    "State": "COMPLETED_SUCCESSFULLY COMPLETED_FAILED COMPLETED_WALLTIME_REACHED COMPLETED_KILLED REJECTED",
}
_TABLES = """
Message now:f64 events:[Stamped]!
Stamped timestamp:f64 event:Event|
SimulationBeginsEvent host_number:u32 computation_host_number:u32 computation_hosts:[Host]! storage_host_number:u32 \
storage_hosts:[Host] workloads:[Load] profiles:[ProfileAndId]
Host id:u32 name:str! pstate:u32 pstate_count:u32 properties:[Property] zone_properties:[Property] core_count:u32
Property key:str! value:str!
Load name:str! filename:str!
ProfileAndId id:str! profile:Profile|! extra_data:str
DelayProfile delay:f64
ParallelTaskProfile computation_vector:[f64] communication_matrix:[f64]
ParallelTaskHomogeneousProfile computation_amount:f64 communication_amount:f64 generation_strategy:Amounts
SequentialCompositionProfile repetition_count:u32=1 profile_ids:[str]!
ForkJoinCompositionProfile profile_ids:[str]!
ParallelTaskMergeCompositionProfile profile_ids:[str]!
ParallelTaskOnStorageHomogeneousProfile storage_name:str! bytes_to_read:f64 bytes_to_write:f64 \
generation_strategy:Amounts
ParallelTaskDataStagingBetweenStoragesProfile bytes_to_transfer:f64 emitter_storage_name:str! receiver_storage_name:str!
TraceReplayProfile trace_type:Trace filename:str!
SimulationEndsEvent
JobSubmittedEvent job_id:str! job:Job! submission_time:f64 profile:ProfileAndId
Job resource_request:u32 walltime:f64=null extra_data:str profile_id:str!
JobCompletedEvent job_id:str! state:State return_code:u32
JobsKilledEvent job_ids:[str]! progresses:[KilledJob]!
KilledJob job_id:str! wrapper:KillProgressWrapper!
KillProgressWrapper kill_progress:KillProgress|!
KillProgressAtomicProfile profile_id:str! progress:f64
KillProgressSequentialProfile profile_id:str! current_repetition:u32 current_task_index:u32 \
current_task_progress:KillProgressWrapper!
RequestedCallEvent call_me_later_id:str!
AllStaticJobsHaveBeenSubmittedEvent
AllStaticExternalEventsHaveBeenInjectedEvent
ExternalEventOccurredEvent id:str! external_event:ExternalEvent|!
GenericExternalEvent data:str!
HostsPStateChangedEvent host_ids:str! pstate:u32
HostsTurnedOnOffEvent host_ids:str! state:u32
ProbeDataEmittedEvent probe_id:str! data:ProbeData|!
AggregatedProbeData data:f64
VectorialProbeData data:[f64]!
"""
_UNIONS = {
    "KillProgress": ["KillProgressAtomicProfile", "KillProgressSequentialProfile"],
    "ExternalEvent": ["GenericExternalEvent"],
    "ProbeData": ["AggregatedProbeData", "VectorialProbeData"],
}
_ZEROS = {"f64": 0.0, "u32": 0}
_MOST = 2**32 - 1


class _Field(NamedTuple):
    """A field `X:TYPE`; `TYPE!`: required, `TYPE|`: one of the tables, by `X_type`, `TYPE=VALUE`: with a default."""

    name: str
    kind: str
    required: bool
    union: bool
    default: Any

    @classmethod
    def of(cls, text: str) -> _Field:
        name, _, rest = text.partition(":")
        rest, _, default = rest.partition("=")
        kind = rest.rstrip("!|")
        zero = _ENUMS[kind].split()[0] if kind in _ENUMS else _ZEROS.get(kind)
        return cls(name, kind, "!" in rest, "|" in rest, json.loads(default) if default else zero)


TABLES = {name: [_Field.of(text) for text in fields] for name, *fields in map(str.split, _TABLES.strip().splitlines())}
UNIONS = {
    "Event": [name for name in TABLES if name.endswith("Event") and name != "GenericExternalEvent"],
    "Profile": [name for name in TABLES if name.endswith("Profile") and not name.startswith("Kill")],
    **_UNIONS,
}


def read_message(text: str) -> dict[str, Any]:
    """Parse a message of Batsim, with all fields of each table. Raises ProtocolError."""
    try:
        return _table("Message", json.loads(text.rstrip("\0")), "the message")
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message of Batsim 5 cannot be understood ({error}); it began {shown(text)}") from None


def _table(name: str, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"in {where}: {name} must be an object, got {shown(value)}")
    table: dict[str, Any] = {}
    for field in TABLES[name]:
        content = value.get(field.name)
        if field.union:
            table[f"{field.name}_type"], content = _union(field, value, where)
        elif content is not None:
            content = _value(field.kind, content, f"{where}: {field.name}")
        if content is None and field.required:
            raise ValueError(f"in {where}: required field is missing: {field.name} in {name}")
        table[field.name] = field.default if content is None else content
    return table


def _union(field: _Field, value: dict[str, Any], where: str) -> tuple[str | None, Any]:
    kind, content = value.get(f"{field.name}_type"), value.get(field.name)
    if kind is None or kind == "NONE" or content is None:
        return None, None
    if kind not in UNIONS[field.kind]:
        raise ValueError(f"in {where}: unknown enum value: {shown(kind)} of {field.name}_type")
    return kind, _table(kind, content, f"{where}: {kind}" if field.kind == "Event" else where)


def _value(kind: str, content: Any, where: str) -> Any:
    if kind.startswith("["):
        if not isinstance(content, list):
            raise ValueError(f"in {where}: must be a list, got {shown(content)}")
        return [_value(kind[1:-1], item, f"{where}[{index}]") for index, item in enumerate(content)]
    if kind in TABLES:
        return _table(kind, content, where)
    if kind in _ENUMS:
        if content not in _ENUMS[kind].split():
            raise ValueError(f"in {where}: unknown enum value: {shown(content)}")
        return content
    if kind == "str":
        if not isinstance(content, str):
            raise ValueError(f"in {where}: must be a text, got {shown(content)}")
        return content
    return _number(kind, content, where)


def _number(kind: str, content: Any, where: str) -> float | int:
    if isinstance(content, bool) or not isinstance(content, int | float):
        raise ValueError(f"in {where}: must be a number, got {shown(content)}")
    if kind == "f64":
        try:
            number = float(content)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"in {where}: must be finite, got {number}")
        return number
    if isinstance(content, float) or not 0 <= content <= _MOST:
        raise ValueError(f"in {where}: must be an integer of 0 to {_MOST}, got {shown(content)}")
    return content
