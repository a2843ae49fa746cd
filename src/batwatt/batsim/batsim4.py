"""The dialect of Batsim 4: messages as JSON, and the options that SIMULATION_BEGINS reports."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batwatt.batsim import events as ev
from batwatt.checks import shown
from batwatt.errors import ProtocolError
from batwatt.model.hostset import HostSet, from_text, to_text
from batwatt.protocol.numbers import MAX_INT, batsim_float
from batwatt.units import TOO_LATE_S

BATSIM_FLAGS: Mapping[str, str] = {
    "--enable-compute-sharing": "compute_sharing",
    "--enable-dynamic-jobs": "dynamic_jobs",
    "--acknowledge-dynamic-jobs": "acknowledge_dynamic_jobs",
    "--enable-profile-reuse": "profile_reuse",
    "--forward-profiles-on-submission": "forward_profiles",
    "--forward-unknown-events": "forward_unknown_events",
}
"""Switch of Batsim's command line -> field of `EngineConfig`."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Batsim's options that change the simulation; `energy=None`: on if every host of the platform has its watts."""

    energy: bool | None = None
    compute_sharing: bool = False
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    sched_config: str = ""

    def payload(self) -> dict[str, Any]:
        """Return the `config` object of SIMULATION_BEGINS."""
        return {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": self.forward_profiles,
            "dynamic-jobs-enabled": self.dynamic_jobs,
            "dynamic-jobs-acknowledged": self.dynamic_jobs and self.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": self.dynamic_jobs and self.profile_reuse,
            "sched-config": self.sched_config,
            "forward-unknown-events": self.forward_unknown_events,
        }

    def begins(
        self, hosts: list[dict[str, Any]], workloads: Mapping[str, Any], profiles: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the data of SIMULATION_BEGINS."""
        return {
            "nb_resources": len(hosts),
            "nb_compute_resources": len(hosts),
            "nb_storage_resources": 0,
            "allow_compute_sharing": self.compute_sharing,
            "allow_storage_sharing": True,
            "config": self.payload(),
            "compute_resources": hosts,
            "storage_resources": [],
            "workloads": workloads,
            "profiles": profiles,
        }

    def batsim_args(self) -> list[str]:
        """Return the options of a real Batsim's command line; `energy` must not be None."""
        flags = {"-E": "energy", **BATSIM_FLAGS}
        config = [f"--sched-cfg={self.sched_config}"] if self.sched_config else []
        return [flag for flag, name in flags.items() if getattr(self, name)] + config

    @classmethod
    def of_args(cls, args: Sequence[str], energy: bool | None) -> tuple[EngineConfig, list[str]]:
        """Return the configuration of words of Batsim's command line, and the words that are not in it."""
        values: dict[str, Any] = {"energy": energy}
        others = []
        for word in args:
            name, sign, text = word.partition("=")
            if word in BATSIM_FLAGS:
                values[BATSIM_FLAGS[word]] = True
            elif name == "--sched-cfg" and sign:
                values["sched_config"] = text
            else:
                others.append(word)
        return cls(**values), others


LONGEST_NUMBER = 30
_STATE = re.compile(r"\d{1,9}", re.ASCII)
_SIZES = {"EXECUTE_JOB": (2, 3), "KILL_JOB": (1, 1), "REJECT_JOB": (1, 1), "CALL_ME_LATER": (1, 1), "QUERY": (1, 1),
          "SET_RESOURCE_STATE": (2, 2), "SET_JOB_METADATA": (2, 2)}  # fmt: skip
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "EXECUTE_JOB": {"job_id": str, "alloc": str},
    "KILL_JOB": {"job_ids": list},
    "REJECT_JOB": {"job_id": str},
    "CALL_ME_LATER": {"timestamp": (int, float)},
    "QUERY": {"requests": dict},
    "SET_RESOURCE_STATE": {"resources": str, "state": str},
    "SET_JOB_METADATA": {"job_id": str, "metadata": str},
    "NOTIFY": {"type": str},
    "REGISTER_PROFILE": {"workload_name": str, "profile_name": str, "profile": dict},
    "REGISTER_JOB": {"job_id": str, "job": dict},
    "TO_JOB_MSG": {"job_id": str, "msg": object},
    "CHANGE_JOB_STATE": {"job_id": str, "job_state": str},
}
"""Decisions of a scheduler, with their fields."""
_RECEIVED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "SIMULATION_BEGINS": {
        "nb_resources": int, "nb_compute_resources": int, "nb_storage_resources": int, "allow_compute_sharing": bool,
        "allow_storage_sharing": bool, "config": dict, "compute_resources": list, "storage_resources": list,
        "workloads": dict, "profiles": dict,
    },
    "JOB_SUBMITTED": {"job_id": str, "job": dict},
    "JOB_COMPLETED": {"job_id": str, "job_state": str, "return_code": int},
    "JOB_KILLED": {"job_ids": list, "job_progress": dict},
    "RESOURCE_STATE_CHANGED": {"resources": str, "state": str},
    "NOTIFY": {"type": str},
    "FROM_JOB_MSG": {"job_id": str, "msg": object},
    "ADD_RESOURCES": {"resources": str},
    "REMOVE_RESOURCES": {"resources": str},
}  # fmt: skip
"""The events that Batsim sends, with the fields that are read."""
_JOB = {"subtime": (int, float), "res": int, "profile": str}
_HOST = {"id": int, "name": str, "properties": dict}
_HOST_EVENTS = ("RESOURCE_STATE_CHANGED", "ADD_RESOURCES", "REMOVE_RESOURCES")
_AVAILABILITY = ("event_machine_unavailable", "event_machine_available")
_CONFIG = dict.fromkeys(("redis-enabled", "profiles-forwarded-on-submission", "dynamic-jobs-enabled",
                         "dynamic-jobs-acknowledged", "forward-unknown-events"), bool)  # fmt: skip


def encode(value: Any) -> str:
    """Return JSON as Batsim writes it: no blanks, floats with six decimals. Raises ProtocolError for inf and NaN."""
    if type(value) is float:
        text = f"{value:.6f}"
        if not math.isfinite(value) or len(text) > LONGEST_NUMBER:
            raise ProtocolError(f"{value!r} cannot be written in Batsim's JSON")
        return text
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(key))}:{encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(encode, value)) + "]"
    if isinstance(value, HostSet):
        return f'"{value}"'
    return json.dumps(value)


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def decode(text: str, parse_float: Callable[[str], float] = float) -> Any:
    """Return the JSON value of a frame. Raises ProtocolError."""
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=parse_float)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not a JSON message: {error}; it began {text[:80]!r}") from None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _time(value: Any) -> bool:
    """Return whether a value is a number of s that Batsim can report."""
    return _number(value) and abs(value) < TOO_LATE_S


def check_answer(answer: Any) -> dict[str, Any]:
    """Return the answer if Batsim accepts its structure; else raise ProtocolError with the invalid field."""
    if not isinstance(answer, dict) or not _number(answer.get("now")) or not isinstance(answer.get("events"), list):
        raise ProtocolError("an answer must be an object with a number 'now' and an array 'events'")
    for index, event in enumerate(answer["events"]):
        where = f"event {index}"
        if not isinstance(event, dict) or not _number(event.get("timestamp")) or not isinstance(event.get("type"), str):
            raise ProtocolError(f"{where} must be an object with a number 'timestamp', a string 'type' and 'data'")
        kind, data = event["type"], event.get("data")
        where += f" ({kind})"
        if not isinstance(data, dict):
            raise ProtocolError(f"{where}: 'data' must be an object")
        if kind not in _FIELDS:
            raise ProtocolError(f"{where}: not a decision of Batsim 4")
        for name, kinds in _FIELDS[kind].items():
            if name not in data or not isinstance(data[name], kinds) or isinstance(data[name], bool):
                raise ProtocolError(f"{where}: {name!r} is missing or of the wrong type: {shown(data.get(name))}")
        low, high = _SIZES.get(kind, (0, 99))
        if not low <= len(data) <= high:
            raise ProtocolError(f"{where}: 'data' has {len(data)} members")
        if kind == "CALL_ME_LATER" and not _number(data["timestamp"]):
            raise ProtocolError(f"{where}: 'timestamp' is not a finite number")
        if kind == "KILL_JOB" and not (data["job_ids"] and all(isinstance(job_id, str) for job_id in data["job_ids"])):
            raise ProtocolError(f"{where}: 'job_ids' must be strings, at least one")
    return answer


def check_message(message: Any) -> dict[str, Any]:
    """Return the message if it is a valid one of Batsim; else raise ProtocolError with the invalid field."""
    if not isinstance(message, dict) or not _time(message.get("now")) or not isinstance(message.get("events"), list):
        raise ProtocolError("a message of Batsim must be an object with a number 'now' and an array 'events'")
    for index, event in enumerate(message["events"]):
        if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not _time(event.get("timestamp")):
            raise ProtocolError(f"event {index} of Batsim's message lacks its type or timestamp")
        kind, data = event["type"], event.setdefault("data", {})
        where = f"event {index} ({kind}) of Batsim's message"
        if not isinstance(data, dict):
            raise ProtocolError(f"{where}: 'data' must be an object")
        _need(data, _RECEIVED.get(kind, {}), where)
        if kind == "JOB_SUBMITTED":
            workload, _, name = data["job_id"].partition("!")
            if not (workload and name):
                raise ProtocolError(f"{where}: the id {shown(data['job_id'])} is not WORKLOAD!NAME")
            _check_job(data["job"], f"{where}: job")
        elif kind == "SIMULATION_BEGINS":
            _check_begins(data, where)
        elif kind == "JOB_KILLED" and not all(isinstance(job_id, str) for job_id in data["job_ids"]):
            raise ProtocolError(f"{where}: 'job_ids' must be strings")
        elif kind == "ANSWER" and not _number(data.get("consumed_energy", 0)):
            raise ProtocolError(f"{where}: 'consumed_energy' is not a finite number")
        if kind in _HOST_EVENTS or (kind == "NOTIFY" and data["type"] in _AVAILABILITY):
            try:
                data["resources"] = to_text(from_text(data["resources"]))
            except (KeyError, ValueError, AttributeError, TypeError):
                raise ProtocolError(f"{where}: 'resources' are not hosts: {shown(data.get('resources'))}") from None
        if kind == "RESOURCE_STATE_CHANGED" and not _STATE.fullmatch(data["state"]):
            raise ProtocolError(f"{where}: 'state' is not a p-state: {shown(data['state'])}")
    return message


def _check_job(job: dict[str, Any], where: str) -> None:
    _need(job, _JOB, where)
    if not (_time(job["subtime"]) and _time(job.get("walltime", -1)) and 0 < job["res"] <= MAX_INT):
        raise ProtocolError(f"{where}: 'subtime' and 'walltime' must be finite numbers, 'res' within 1..{MAX_INT}")


def _check_begins(data: dict[str, Any], where: str) -> None:
    _need(data["config"], _CONFIG, f"{where}: config")
    for name in ("compute_resources", "storage_resources"):
        for host in data[name]:
            if not isinstance(host, dict):
                raise ProtocolError(f"{where}: {name!r} must hold objects")
            host.setdefault("properties", {})
            _need(host, _HOST, f"{where}: {name!r}")
            if not all(isinstance(text, str) for text in host["properties"].values()):
                raise ProtocolError(f"{where}: the properties of host {shown(host['name'])} are not all texts")
    ids = [host["id"] for host in data["compute_resources"]]
    if ids != list(range(len(ids))) or len(ids) != data["nb_compute_resources"] or not ids:
        raise ProtocolError(f"{where}: the ids of 'compute_resources' are not 0..nb_compute_resources-1")
    for profiles in data["profiles"].values():
        if not (isinstance(profiles, dict) and all(isinstance(profile, dict) for profile in profiles.values())):
            raise ProtocolError(f"{where}: 'profiles' must hold the profiles of each workload by name")


def _need(data: Mapping[str, Any], fields: Mapping[str, Any], where: str) -> None:
    for name, kinds in fields.items():
        if name not in data or not isinstance(data[name], kinds) or (kinds is not bool and data[name] is True):
            raise ProtocolError(f"{where}: {name!r} is missing or of the wrong type: {shown(data.get(name))}")


def _stamped(what: ev.Event | ev.Decision, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": what.time, "type": kind, "data": data}


# messages of Batsim ---------------------------------------------------------------------------------------------------


def write_message(message: ev.Message) -> str:
    """Return the text of a message."""
    return encode({"now": message.now, "events": [_stamped(event, *_event_data(event)) for event in message.events]})


def read_message(text: str) -> ev.Message:
    """Parse a message of Batsim. Raises ProtocolError."""
    message = check_message(decode(text))
    return ev.Message(message["now"], [_event_of(event) for event in message["events"]])


def _event_data(event: ev.Event) -> tuple[str, dict[str, Any]]:
    match event:
        case ev.JobSubmitted():
            profile = {} if event.profile is None else {"profile": event.profile}
            return "JOB_SUBMITTED", {"job_id": event.job_id, "job": event.job, **profile}
        case ev.JobCompleted():
            how = {"job_state": event.state, "return_code": event.return_code, "alloc": event.alloc}
            return "JOB_COMPLETED", {"job_id": event.job_id, **how}
        case ev.JobKilled():
            return "JOB_KILLED", {"job_ids": event.job_ids, "job_progress": event.progress}
        case ev.ResourceStateChanged():
            return "RESOURCE_STATE_CHANGED", {"resources": event.resources, "state": event.state}
        case ev.Notified():
            return "NOTIFY", event.data
        case ev.Answer():
            return "ANSWER", {"consumed_energy": event.energy_j}
        case ev.RequestedCall():
            return "REQUESTED_CALL", {}
        case ev.SimulationBegins():
            return "SIMULATION_BEGINS", event.data
        case ev.SimulationEnds():
            return "SIMULATION_ENDS", {}
    raise TypeError(f"{type(event).__name__} is not an event of the embedded engine")


def _event_of(event: dict[str, Any]) -> ev.Event:
    time, kind, data = event["timestamp"], event["type"], event["data"]
    match kind:
        case "JOB_SUBMITTED":
            return ev.JobSubmitted(time, data["job_id"], data["job"], data.get("profile"))
        case "JOB_COMPLETED":
            return ev.JobCompleted(
                time, data["job_id"], data["job_state"], data["return_code"], str(data.get("alloc", ""))
            )
        case "JOB_KILLED":
            return ev.JobKilled(time, data["job_ids"], data["job_progress"])
        case "RESOURCE_STATE_CHANGED":
            return ev.ResourceStateChanged(time, data["resources"], data["state"])
        case "NOTIFY":
            return ev.Notified(time, data["type"], data)
        case "ANSWER":
            return ev.Answer(time, data.get("consumed_energy"))
        case "REQUESTED_CALL":
            return ev.RequestedCall(time)
        case "SIMULATION_BEGINS":
            return ev.SimulationBegins(time, data)
        case "SIMULATION_ENDS":
            return ev.SimulationEnds(time)
        case "FROM_JOB_MSG":
            return ev.FromJobMessage(time, data["job_id"], data["msg"])
        case "ADD_RESOURCES" | "REMOVE_RESOURCES":
            return ev.ResourcesOffered(time, data["resources"], kind == "ADD_RESOURCES")
    raise ProtocolError(f"Batsim sent an event of unknown type {kind!r}")


# replies of the scheduler ---------------------------------------------------------------------------------------------


def write_reply(reply: ev.Reply) -> str:
    """Return the text of a reply; its numbers have all their digits."""
    decisions = [_stamped(decision, *_decision_data(decision)) for decision in reply.decisions]
    return json.dumps({"now": reply.now, "events": decisions})


def read_reply(text: str) -> ev.Reply:
    """Parse a reply of a scheduler. Raises ProtocolError."""
    reply = check_answer(decode(text, batsim_float))
    return ev.Reply(reply["now"], [_decision_of(event) for event in reply["events"]])


def _decision_data(decision: ev.Decision) -> tuple[str, Mapping[str, Any]]:
    match decision:
        case ev.ExecuteJob():
            data = {"job_id": decision.job_id, "alloc": str(decision.alloc), **(decision.storage or {})}
            return "EXECUTE_JOB", data if decision.mapping is None else data | {"mapping": decision.mapping}
        case ev.KillJob():
            return "KILL_JOB", {"job_ids": decision.job_ids}
        case ev.RejectJob():
            return "REJECT_JOB", {"job_id": decision.job_id}
        case ev.SetResourceState():
            return "SET_RESOURCE_STATE", {"resources": str(decision.resources), "state": str(decision.state)}
        case ev.CallMeLater():
            return "CALL_ME_LATER", {"timestamp": decision.at}
        case ev.Query():
            return "QUERY", {"requests": decision.requests}
        case ev.Notify():
            return "NOTIFY", {"type": decision.kind}
        case ev.RegisterProfile():
            names = {"workload_name": decision.workload, "profile_name": decision.name}
            return "REGISTER_PROFILE", {**names, "profile": decision.profile}
        case ev.RegisterJob():
            return "REGISTER_JOB", {"job_id": decision.job_id, "job": decision.job}
        case ev.SetJobMetadata():
            return "SET_JOB_METADATA", {"job_id": decision.job_id, "metadata": decision.metadata}
        case ev.ToJobMessage():
            return "TO_JOB_MSG", {"job_id": decision.job_id, "msg": decision.message}
        case ev.ChangeJobState():
            return "CHANGE_JOB_STATE", {"job_id": decision.job_id, "job_state": decision.state}
    raise TypeError(f"{type(decision).__name__} is not a decision of Batsim 4")


def _decision_of(event: dict[str, Any]) -> ev.Decision:
    time, data = event["timestamp"], event["data"]
    match event["type"]:
        case "EXECUTE_JOB":
            storage = {name: data[name] for name in ("additional_io_job", "storage_mapping") if name in data}
            return ev.ExecuteJob(time, data["job_id"], data["alloc"], data.get("mapping"), storage or None)
        case "KILL_JOB":
            return ev.KillJob(time, data["job_ids"])
        case "REJECT_JOB":
            return ev.RejectJob(time, data["job_id"])
        case "SET_RESOURCE_STATE":
            return ev.SetResourceState(time, data["resources"], data["state"])
        case "CALL_ME_LATER":
            return ev.CallMeLater(time, data["timestamp"])
        case "QUERY":
            return ev.Query(time, data["requests"])
        case "NOTIFY":
            return ev.Notify(time, data["type"])
        case "REGISTER_PROFILE":
            return ev.RegisterProfile(time, data["workload_name"], data["profile_name"], data["profile"])
        case "REGISTER_JOB":
            return ev.RegisterJob(time, data["job_id"], data["job"])
        case "SET_JOB_METADATA":
            return ev.SetJobMetadata(time, data["job_id"], data["metadata"])
        case "TO_JOB_MSG":
            return ev.ToJobMessage(time, data["job_id"], data["msg"])
    # `check_answer` accepts no other type
    return ev.ChangeJobState(time, data["job_id"], data["job_state"])
