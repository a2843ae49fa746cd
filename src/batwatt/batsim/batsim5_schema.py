"""The tables of Batsim 5's protocol, and a strict parser of their JSON.

As for flatbuffers with this schema, errors are an unknown field, a missing required one, a word that is not in an
enumeration, and a negative or floating-point number for a count; numbers may be quoted. Messages of Batsim may have
fields of other versions, and all their numbers are finite.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from batwatt.batsim import batsim5_events as ev5
from batwatt.batsim import events as ev
from batwatt.checks import shown
from batwatt.errors import IllegalDecisionError, ProtocolError

MAX_U64 = 2**64 - 1
_ENUMS = {
    "Unit": "Second Millisecond",
    "Strategy": "SpreadOverHostsFirst FillOneHostCoresFirst",
    "Amounts": "DefinedAmountsUsedForEachValue DefinedAmountsSpreadUniformly",
    "Trace": "SMPI FractionalComputation",
    "Metrics": "Power NetworkLoad ComputationLoad NormalizedNetworkLoad NormalizedComputationLoad",
    "Cumulative": "Sum Minimum Maximum",
    "Comparison": "GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual",
    "State": "COMPLETED_SUCCESSFULLY COMPLETED_FAILED COMPLETED_WALLTIME_REACHED COMPLETED_KILLED REJECTED",
}
_TABLES = """
Message now:f64 events:[Stamped]
Stamped timestamp:f64 event:Event|
EDCHelloEvent batprotocol_version:str! decision_component_name:str! decision_component_version:str! \
decision_component_commit:str requested_simulation_features:Features
Features dynamic_registration:bool profile_reuse:bool acknowledge_dynamic_jobs:bool \
forward_profiles_on_job_submission:bool forward_profiles_on_jobs_killed:bool forward_profiles_on_simulation_begins:bool
ExecuteJobEvent job_id:str! allocation:AllocationPlacement! profile_allocation_override:[ProfileAllocation] \
storage_placement:[StoragePlacement]
AllocationPlacement host_allocation:str! executor_placement:Placement|!
ProfileAllocation profile_id:str! host_allocation:str! executor_placement:Placement|!
StoragePlacement storage_name:str! host_id:u32
PredefinedExecutorPlacementStrategyWrapper strategy:Strategy
CustomExecutorToHostMapping mapping:[u32]!
RejectJobEvent job_id:str!
KillJobsEvent job_ids:[str]!
RegisterProfileEvent profile:ProfileAndId!
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
RegisterJobEvent job_id:str! job:Job!
Job resource_request:u32 walltime:f64=null extra_data:str rigid:bool=true profile_id:str!
FinishRegistrationEvent
CallMeLaterEvent call_me_later_id:str! when:Trigger|!
OneShot time:u64 time_unit:Unit
Periodic period:u64 offset:u64 time_unit:Unit mode:Mode|
Infinite
FinitePeriodNumber nb_periods:u32
StopCallMeLaterEvent call_me_later_id:str!
ChangeHostsPStateEvent host_ids:str! pstate:u32
TurnOnOffHostsEvent host_ids:str! state:u32
CreateProbeEvent probe_id:str! metrics:Metrics resources:Resources|! data_accumulation_strategy:Accumulation| \
measurement_triggering_policy:Triggering|! resources_aggregation_function:Aggregation| \
temporal_aggregation_function:TemporalAggregation| emission_filtering_policy:Filtering|
HostResources host_ids:str!
LinkResources link_ids:[str]!
NoProbeDataAccumulation
ProbeDataAccumulation reset_mode:Reset| cumulative_function:Cumulative temporal_normalization:bool
NoReset
ProbeAccumulationReset new_value:f64
TemporalTriggerWrapper temporal_trigger:Trigger|!
NoResourcesAggregation
NoTemporalAggregation
ExponentialMovingAverage
SlidingWindowOperation
Sum
ArithmeticMean
QuantileFunction threshold:f64
NoFiltering
ThresholdFilteringFunction threshold:f64 operator:Comparison
StopProbeEvent probe_id:str!
TriggerProbeEvent probe_id:str! force_data_emission:bool
ResetProbeEvent probe_id:str! new_value:f64
ForceSimulationStopEvent
SimulationBeginsEvent host_number:u32 computation_host_number:u32 computation_hosts:[Host]! storage_host_number:u32 \
storage_hosts:[Host] workloads:[Load] profiles:[ProfileAndId]
Host id:u32 name:str! pstate:u32 pstate_count:u32 properties:[Property] zone_properties:[Property] core_count:u32
Property key:str! value:str!
Load name:str! filename:str!
SimulationEndsEvent
JobSubmittedEvent job_id:str! job:Job! submission_time:f64 profile:ProfileAndId
JobCompletedEvent job_id:str! state:State return_code:u32
JobsKilledEvent job_ids:[str]! progresses:[KilledJob]!
KilledJob job_id:str! wrapper:KillProgressWrapper!
KillProgressWrapper kill_progress:KillProgress|!
KillProgressAtomicProfile profile_id:str! progress:f64
KillProgressSequentialProfile profile_id:str! current_repetition:u32 current_task_index:u32 \
current_task_progress:KillProgressWrapper!
RequestedCallEvent call_me_later_id:str! last_periodic_call:bool
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
    "Placement": "PredefinedExecutorPlacementStrategyWrapper CustomExecutorToHostMapping",
    "Trigger": "OneShot Periodic",
    "Mode": "Infinite FinitePeriodNumber",
    "Resources": "HostResources LinkResources",
    "Accumulation": "NoProbeDataAccumulation ProbeDataAccumulation",
    "Reset": "NoReset ProbeAccumulationReset",
    "Triggering": "TemporalTriggerWrapper",
    "Aggregation": "NoResourcesAggregation Sum ArithmeticMean QuantileFunction",
    "TemporalAggregation": "NoTemporalAggregation ExponentialMovingAverage SlidingWindowOperation",
    "Filtering": "NoFiltering ThresholdFilteringFunction",
    "KillProgress": "KillProgressAtomicProfile KillProgressSequentialProfile",
    "ExternalEvent": "GenericExternalEvent",
    "ProbeData": "AggregatedProbeData VectorialProbeData",
}


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


_ZEROS = {"f64": 0.0, "u32": 0, "u64": 0, "bool": False}
TABLES = {name: [_Field.of(text) for text in fields] for name, *fields in map(str.split, _TABLES.strip().splitlines())}
UNIONS = {
    "Event": [name for name in TABLES if name.endswith("Event") and name != "GenericExternalEvent"],
    "Profile": [name for name in TABLES if name.endswith("Profile")],
    **{name: words.split() for name, words in _UNIONS.items()},
}


def wrong(where: str, why: str) -> IllegalDecisionError:
    """Return the error of a message that contradicts the schema."""
    return IllegalDecisionError(f"in {where}", why)


def read(frame: bytes) -> dict[str, Any]:
    """Parse the answer in a frame, with all fields of its tables. Raises IllegalDecisionError if Batsim 5 aborts."""
    try:
        text = frame.partition(b"\0")[0].decode("utf-8")
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
        if "\\ud" in text.lower():
            # half of a surrogate pair is an error
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        began = shown(frame[:60].decode("utf-8", "replace"))
        raise wrong("the answer", f"not a JSON message ({error}); it began {began}") from None
    message = _table("Message", value, "the answer")
    if message["events"] is None:
        raise wrong("the answer", "it has no 'events' (Batsim dereferences them)")
    return message


def read_message(text: str) -> dict[str, Any]:
    """Parse a message of Batsim, with all fields of each table. Raises ProtocolError."""
    try:
        message = _table("Message", json.loads(text.rstrip("\0")), "the message", lenient=True)
        if message["events"] is None:
            raise wrong("the message", "it has no 'events'")
    except (ValueError, RecursionError, IllegalDecisionError) as error:
        why = f"{error.decision}: {error.why}" if isinstance(error, IllegalDecisionError) else error
        raise ProtocolError(f"a message of Batsim 5 cannot be understood ({why}); it began {shown(text)}") from None
    return message


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is set twice in an object")
    return fields


def _constant(word: str) -> float:
    return float(word.replace("Infinity", "inf"))


def _table(name: str, value: Any, where: str, lenient: bool = False) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(where, f"{name} must be an object, got {shown(value)}")
    table: dict[str, Any] = {}
    for field in TABLES[name]:
        content = value.get(field.name)
        if field.union:
            table[f"{field.name}_type"], content = _union(field, value, where, lenient)
        elif content is not None:
            content = _value(field.kind, content, f"{where}: {field.name}", lenient)
        if content is None and field.required:
            raise wrong(where, f"required field is missing: {field.name} in {name}")
        table[field.name] = field.default if content is None else content
    unknown = [key for key in value if key not in table]
    if unknown and not lenient:
        raise wrong(where, f"unknown field: {unknown[0][:60]}")
    return table


def _union(field: _Field, value: dict[str, Any], where: str, lenient: bool) -> tuple[str | None, Any]:
    kind, content = value.get(f"{field.name}_type"), value.get(field.name)
    if kind is None or kind == "NONE" or content is None:
        return None, None
    if kind not in UNIONS[field.kind]:
        raise wrong(where, f"unknown enum value: {shown(kind)} of {field.name}_type")
    if field.kind == "Event":
        where = f"{where}: {kind}"
    return kind, _table(kind, content, where, lenient)


def _value(kind: str, content: Any, where: str, lenient: bool) -> Any:
    if kind.startswith("["):
        if not isinstance(content, list):
            raise wrong(where, f"must be a list, got {shown(content)}")
        return [_value(kind[1:-1], item, f"{where}[{index}]", lenient) for index, item in enumerate(content)]
    if kind in TABLES:
        return _table(kind, content, where, lenient)
    if kind in _ENUMS:
        if content not in _ENUMS[kind].split():
            raise wrong(where, f"unknown enum value: {shown(content)}")
        return content
    if kind == "str":
        if not isinstance(content, str):
            raise wrong(where, f"must be a text, got {shown(content)}")
        return content
    number = _number(kind, content, where)
    if lenient and not math.isfinite(number):
        raise wrong(where, f"must be finite, got {number}")
    return number


def _number(kind: str, content: Any, where: str) -> float | int | bool:
    if isinstance(content, str):
        try:
            content = json.loads(content, parse_constant=_constant)
        except (ValueError, RecursionError):
            content = None
    if not isinstance(content, int | float):
        raise wrong(where, f"must be a number, got {shown(content)}")
    if kind == "f64":
        try:
            return float(content)
        except OverflowError:
            return math.inf if content > 0 else -math.inf
    if isinstance(content, float):
        raise wrong(where, f"a float constant ({content!r}) cannot be assigned to an integer")
    if kind == "bool":
        return bool(content)
    limit = 2**32 - 1 if kind == "u32" else MAX_U64
    if not 0 <= content <= limit:
        raise wrong(where, f"{content} does not fit [0; {limit}]")
    return int(content)


_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|.)")


def number(value: float) -> str:
    """Return the text of a floating-point number. Raises ProtocolError for inf and NaN."""
    if not math.isfinite(value):
        raise ProtocolError(f"{value!r} cannot be written in Batsim's JSON")
    text = f"{value:.12f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def encode(value: Any) -> str:
    """Return JSON as Batsim 5 writes it: a blank after each colon, none after commas, ASCII only."""
    if type(value) is float:
        return number(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quoted(key)}: {encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(encode, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def quoted(text: str) -> str:
    """Return a text as JSON in ASCII, with capital hexadecimal digits."""
    return _ESCAPE.sub(lambda match: match[0] if match[1] is None else f"\\u{match[1].upper()}", json.dumps(text))


# messages of Batsim ---------------------------------------------------------------------------------------------------


def write_message(message: ev.Message) -> str:
    """Return the text of a message, with the NUL that ends it."""
    events = [_stamped(event) for event in message.events]
    return encode({"now": message.now, "events": events}) + "\0"


def _stamped(event: ev.Event) -> dict[str, Any]:
    kind, data = _event_data(event)
    return {"timestamp": event.time, "event_type": f"{kind}Event", "event": data}


def _event_data(event: ev.Event) -> tuple[str, Mapping[str, Any]]:
    match event:
        case ev.JobSubmitted():
            profile = {} if event.profile is None else {"profile": event.profile}
            return "JobSubmitted", {"job_id": event.job_id, **event.job, **profile}
        case ev.JobCompleted():
            code = event.return_code % ev5.CODES
            return "JobCompleted", {"job_id": event.job_id, "state": event.state, "return_code": code}
        case ev5.JobsKilled():
            profiles = {} if event.profiles is None else {"profiles": event.profiles}
            return "JobsKilled", {"job_ids": event.job_ids, "progresses": event.progresses, **profiles}
        case ev.ResourceStateChanged():
            return "HostsTurnedOnOff", {"host_ids": event.resources, "state": int(event.state)}
        case ev5.HostsPStateChanged():
            return "HostsPStateChanged", {"host_ids": event.hosts, "pstate": event.pstate}
        case ev.Notified():
            return ev5.NOTICES[event.kind].removesuffix("Event"), {}
        case ev5.Called():
            return "RequestedCall", {"call_me_later_id": event.call_id, "last_periodic_call": event.last}
        case ev5.ProbeData():
            return "ProbeDataEmitted", _probe_data(event)
        case ev5.ExternalEvent():
            kind, data = "GenericExternalEvent", {"data": event.data}
            return "ExternalEventOccurred", {
                "id": event.event_id, "external_event_type": kind, "external_event": data
            }  # fmt: skip
        case ev.SimulationBegins():
            return "SimulationBegins", event.data
        case ev.SimulationEnds():
            return "SimulationEnds", {}
    raise TypeError(f"{type(event).__name__} is not an event of the embedded engine")


def _probe_data(event: ev5.ProbeData) -> dict[str, Any]:
    return {
        "probe_id": event.probe_id,
        "resources_type": "HostResources",
        "resources": {"host_ids": event.hosts},
        "metrics": "Power",
        "data_type": "VectorialProbeData" if isinstance(event.value, list) else "AggregatedProbeData",
        "data": {"data": event.value},
        "manually_triggered": False,
        "nb_emitted": 0,
        "nb_triggered": 0,
    }


# answers of the scheduler ---------------------------------------------------------------------------------------------


def read_hello(frame: bytes) -> ev5.Features:
    """Parse the features in the answer to the first frame. Raises IllegalDecisionError where Batsim 5 aborts."""
    flags, text = int.from_bytes(frame[:4], "little"), frame[4:]
    if len(frame) < 4 or not flags & ev5.JSON_FLAG:
        raise wrong("the hello", f"its flags must say JSON ({ev5.JSON_FLAG}), got {frame[:4].hex() or 'nothing'}")
    events = read(text)["events"]
    if [event["event_type"] for event in events] != ["EDCHelloEvent"]:
        raise wrong("the hello", "it must hold one event, EDCHelloEvent")
    hello = events[0]["event"]
    for name in ("decision_component_commit", "requested_simulation_features"):
        if hello[name] is None:
            raise wrong("the hello", f"it has no {name} (Batsim dereferences it)")
    return ev5.Features(**hello["requested_simulation_features"])


def read_reply(frame: bytes) -> ev.Reply:
    """Parse the reply in a frame of a scheduler. Raises IllegalDecisionError where Batsim 5 aborts."""
    message = read(frame)
    now, decisions = message["now"], []
    if math.isinf(now):
        raise wrong("the answer", f"its now={now} never comes")
    before = -math.inf
    for index, event in enumerate(message["events"]):
        kind, time = event["event_type"], event["timestamp"]
        where = f"event {index} ({kind})"
        if not time <= now:
            raise wrong(where, f"its timestamp {time} is after the answer's now={now}")
        if not time >= before:
            raise wrong(where, f"its timestamp {time} is before the preceding event's {before}")
        if kind not in _DECISIONS:
            raise wrong(where, "Batsim handles no such event of a scheduler")
        before = time
        decisions.append(_DECISIONS[kind](time, event["event"]))
    return ev.Reply(now, decisions)


def _place(table: Mapping[str, Any]) -> ev5.Place:
    how = table["executor_placement"]
    return ev5.Place(table["host_allocation"], how["strategy"] if "strategy" in how else how["mapping"])


def _execute(time: float, data: Mapping[str, Any]) -> ev5.Execute:
    overrides = {table["profile_id"]: _place(table) for table in data["profile_allocation_override"] or ()}
    return ev5.Execute(time, data["job_id"], _place(data["allocation"]), overrides, data["storage_placement"] or ())


def _milliseconds(unit: str) -> int:
    return 1 if unit == "Millisecond" else 1000


def _period(what: str, table: Mapping[str, Any]) -> ev5.Period:
    mode, period = table["mode"], table["period"] * _milliseconds(table["time_unit"])
    if table["offset"]:
        raise IllegalDecisionError(what, f"it has a non-zero offset ({table['offset']}), which is not supported")
    if table["mode_type"] is None:
        raise IllegalDecisionError(what, "its periodic mode is NONE")
    if not period:
        raise IllegalDecisionError(what, "its period is 0")
    count = mode.get("nb_periods")
    if count == 0:
        raise IllegalDecisionError(what, "it is finite but nb_periods=0 should be greater than 0")
    return ev5.Period(period, count)


def _call(time: float, data: Mapping[str, Any]) -> ev5.Call:
    name, when = data["call_me_later_id"], data["when"]
    if data["when_type"] == "OneShot":
        return ev5.Call(time, name, when["time"] * _milliseconds(when["time_unit"]) / 1000)
    return ev5.Call(time, name, _period(f"CallMeLater {name!r}", when))


def _probe(time: float, data: Mapping[str, Any]) -> ev5.CreateProbe:
    name, policy = data["probe_id"], data["measurement_triggering_policy"]
    how = data["data_accumulation_strategy"] or {}
    function = data["resources_aggregation_function_type"]
    refusals = {
        "only hosts can be measured": data["resources_type"] != "HostResources",
        "only Power can be measured": data["metrics"] != "Power",
        "only accumulation is supported": data["data_accumulation_strategy_type"] != "ProbeDataAccumulation",
        "accumulation with reset is not supported": how.get("reset_mode_type", "NoReset") != "NoReset",
        f"{function} of resources is not supported": function not in _AGGREGATIONS,
    }
    refused = next((why for why, applies in refusals.items() if applies), "")
    periodic = policy["temporal_trigger_type"] == "Periodic"
    period = _period(f"CreateProbe {name!r}", policy["temporal_trigger"]) if periodic else None
    hosts = data["resources"].get("host_ids", "")
    return ev5.CreateProbe(time, name, hosts, str(function), period, refused)


_AGGREGATIONS = ("NoResourcesAggregation", "Sum", "ArithmeticMean")


def _register(time: float, data: Mapping[str, Any]) -> ev5.Register:
    profile = data["profile"]
    return ev5.Register(
        time, profile["id"], profile["profile_type"], profile["profile"], profile["extra_data"] or ""
    )  # fmt: skip


_DECISIONS: dict[str | None, Callable[[float, Mapping[str, Any]], ev.Decision]] = {
    "ExecuteJobEvent": _execute,
    "RejectJobEvent": lambda time, data: ev.RejectJob(time, data["job_id"]),
    "KillJobsEvent": lambda time, data: ev.KillJob(time, data["job_ids"]),
    "RegisterProfileEvent": _register,
    "RegisterJobEvent": lambda time, data: ev.RegisterJob(time, data["job_id"], data["job"]),
    "FinishRegistrationEvent": lambda time, _: ev5.FinishRegistration(time),
    "CallMeLaterEvent": _call,
    "StopCallMeLaterEvent": lambda time, data: ev5.StopCall(time, data["call_me_later_id"]),
    "ChangeHostsPStateEvent": lambda time, data: ev5.ChangePState(time, data["host_ids"], data["pstate"]),
    "TurnOnOffHostsEvent": lambda time, data: ev5.TurnOnOff(time, data["host_ids"], data["state"]),
    "CreateProbeEvent": _probe,
    "StopProbeEvent": lambda time, data: ev5.StopProbe(time, data["probe_id"]),
    "ForceSimulationStopEvent": lambda time, _: ev5.ForceStop(time),
}
