"""Batsim 5's dialect: conversion between JSON texts of messages and answers, and events and decisions.

Numbers are printed with at most 12 decimals and at least one, never with an exponent, as flatbuffers prints them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from batwatt.engine import events as ev
from batwatt.engine.protocol5 import events as ev5
from batwatt.engine.protocol5.schema import read, wrong
from batwatt.errors import IllegalDecisionError, ProtocolError

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
