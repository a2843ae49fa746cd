"""Batsim's protocol on the wire: its JSON dialect, the sockets of both sides, and a supervised wait.

Batsim's side is a REQ socket that connects, the scheduler's side a REP socket that binds; one JSON text a frame. Every
floating-point number is printed with six decimals, as Batsim prints it.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import zmq
from zmq.utils.monitor import recv_monitor_message

from batwatt.checks import shown
from batwatt.errors import InputError, PeerError, ProtocolError
from batwatt.inputs.workloads.batsim_json import MAX_INT
from batwatt.inputs.workloads.batsim_numbers import batsim_float
from batwatt.model.hostset import HostSet, from_text

LONGEST_NUMBER = 30
POLL_MS = 100
LINGER_MS = 500
LAST_WORDS_S = 1.0
"""How long a supervisor may take to say why the other side closed the connection."""

_JOINED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_LEFT = zmq.EVENT_DISCONNECTED

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
"""What a scheduler may ask for, with its fields."""
_TOLD: dict[str, dict[str, type | tuple[type, ...]]] = {
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
"""What Batsim tells, with the fields that are read."""
_JOB = {"subtime": (int, float), "res": int, "profile": str}
_HOST = {"id": int, "name": str}
_HOSTS_TOLD = ("RESOURCE_STATE_CHANGED", "ADD_RESOURCES", "REMOVE_RESOURCES")
_AVAILABILITY = ("event_machine_unavailable", "event_machine_available")
_CONFIG = dict.fromkeys(("redis-enabled", "profiles-forwarded-on-submission", "dynamic-jobs-enabled",
                         "dynamic-jobs-acknowledged", "forward-unknown-events"), bool)  # fmt: skip


def encode(value: Any) -> str:
    """JSON as Batsim writes it: no blanks, floats with six decimals; ProtocolError if a number has no such text."""
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
    """The JSON value of a frame; ProtocolError if it is none."""
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=parse_float)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not a JSON message: {error}; it began {text[:80]!r}") from None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_answer(answer: Any) -> dict[str, Any]:
    """The answer if its structure is what Batsim accepts; ProtocolError names the field that is not."""
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
            raise ProtocolError(f"{where}: not something a scheduler can ask for")
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
    """A message of Batsim if it is one; ProtocolError names what is not."""
    if not isinstance(message, dict) or not _number(message.get("now")) or not isinstance(message.get("events"), list):
        raise ProtocolError("a message of Batsim must be an object with a number 'now' and an array 'events'")
    for index, event in enumerate(message["events"]):
        if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not _number(event.get("timestamp")):
            raise ProtocolError(f"event {index} of Batsim's message lacks its type or timestamp")
        kind, data = event["type"], event.setdefault("data", {})
        where = f"event {index} ({kind}) of Batsim's message"
        if not isinstance(data, dict):
            raise ProtocolError(f"{where}: 'data' must be an object")
        _need(data, _TOLD.get(kind, {}), where)
        if kind == "JOB_SUBMITTED":
            _check_job(data["job"], f"{where}: job")
        elif kind == "SIMULATION_BEGINS":
            _check_begins(data, where)
        elif kind == "JOB_KILLED" and not all(isinstance(job_id, str) for job_id in data["job_ids"]):
            raise ProtocolError(f"{where}: 'job_ids' must be strings")
        elif kind == "ANSWER" and not _number(data.get("consumed_energy", 0)):
            raise ProtocolError(f"{where}: 'consumed_energy' is not a finite number")
        if kind in _HOSTS_TOLD or (kind == "NOTIFY" and data["type"] in _AVAILABILITY):
            try:
                from_text(data["resources"])
            except (KeyError, ValueError, AttributeError):
                raise ProtocolError(f"{where}: 'resources' are no hosts: {shown(data.get('resources'))}") from None
    return message


def _check_job(job: dict[str, Any], where: str) -> None:
    _need(job, _JOB, where)
    if not (_number(job["subtime"]) and _number(job.get("walltime", -1)) and 0 < job["res"] <= MAX_INT):
        raise ProtocolError(f"{where}: 'subtime' and 'walltime' must be finite numbers, 'res' within 1..{MAX_INT}")


def _check_begins(data: dict[str, Any], where: str) -> None:
    _need(data["config"], _CONFIG, f"{where}: config")
    for name in ("compute_resources", "storage_resources"):
        for host in data[name]:
            if not isinstance(host, dict):
                raise ProtocolError(f"{where}: {name!r} must hold objects")
            _need(host, _HOST, f"{where}: {name!r}")
    ids = [host["id"] for host in data["compute_resources"]]
    if ids != list(range(len(ids))) or len(ids) != data["nb_compute_resources"]:
        raise ProtocolError(f"{where}: the ids of 'compute_resources' are not 0..nb_compute_resources-1")
    for profiles in data["profiles"].values():
        if not (isinstance(profiles, dict) and all(isinstance(profile, dict) for profile in profiles.values())):
            raise ProtocolError(f"{where}: 'profiles' must hold the profiles of each workload by name")


def _need(data: Mapping[str, Any], fields: Mapping[str, Any], where: str) -> None:
    for name, kinds in fields.items():
        if name not in data or not isinstance(data[name], kinds) or (kinds is not bool and data[name] is True):
            raise ProtocolError(f"{where}: {name!r} is missing or of the wrong type: {shown(data.get(name))}")


class _Socket:
    """A ZeroMQ socket with a supervised receive; a context manager."""

    def __init__(self, kind: int, endpoint: str, bind: bool) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._monitor = self._socket.get_monitor_socket(_JOINED | _LEFT | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._peers: set[int] = set()
        self._talking = False
        self._bind = bind
        try:
            if bind:
                self._socket.bind(endpoint)
            else:
                self._socket.connect(endpoint)
        except (zmq.ZMQError, ValueError) as error:
            self.close()
            verb = "listen on" if bind else "connect to"
            raise InputError(
                endpoint, f"cannot {verb} it ({error})", "give an endpoint such as tcp://127.0.0.1:28000"
            ) from None
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.disable_monitor()
        # a socket left open would keep term() waiting
        self._monitor.close(linger=0)
        self._socket.close()
        self._context.term()

    def send(self, text: str) -> None:
        self._socket.send_string(text)

    def _left(self) -> bool:
        """Whether the other side took part in the conversation and has closed its connection since."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            if event["event"] & _JOINED:
                self._peers.add(event["value"])
            elif event["event"] & _LEFT:
                self._peers.discard(event["value"])
            elif not self._bind:
                self._talking = True
        return self._talking and not self._peers

    def receive(self, patience_s: float | None, alive: Callable[[], str | None], who: str) -> str:
        """The next frame.

        PeerError when `alive()` tells of a death, the other side closed its connection, or nothing came for
        `patience_s` seconds.
        """
        limit = math.inf if patience_s is None else time.monotonic() + patience_s
        left_s: float | None = None
        while not self._socket.poll(POLL_MS):
            death, left = alive(), self._left()
            if (death or left) and self._socket.poll(0):
                break
            if death:
                raise PeerError(death)
            now_s = time.monotonic()
            left_s = (left_s or now_s) if left else None
            if left_s is not None and now_s - left_s >= LAST_WORDS_S:
                raise PeerError(f"{who} closed the connection before the simulation was over")
            if now_s > limit:
                never = "" if self._talking else f" and never connected{f' to {self.endpoint}' if self._bind else ''}"
                raise PeerError(f"{who} has been silent for {patience_s:g} s{never}")
        frame, *others = self._socket.recv_multipart()
        # on the side that listens, whoever just knocks (a readiness check) is not yet the other side
        self._talking = True
        if others:
            raise ProtocolError(f"{who} sent a message of {len(others) + 1} frames; a message is one")
        try:
            return frame.decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolError(f"{who} sent a frame that is not UTF-8 text") from None


def _nobody_watches() -> str | None:
    return None


class SchedulerSocket(_Socket):
    """The scheduler's side: binds, and is the `Link` of a `Bs`."""

    def __init__(
        self,
        endpoint: str,
        patience_s: float | None = None,
        alive: Callable[[], str | None] = _nobody_watches,
    ) -> None:
        super().__init__(zmq.REP, endpoint, bind=True)
        self._patience_s = patience_s
        self._begun = False
        self.alive = alive

    def message(self) -> dict[str, Any]:
        """Wait for Batsim's next message."""
        text = self.receive(self._patience_s, self.alive, "Batsim")
        message = check_message(decode(text))
        if not self._begun and [event["type"] for event in message["events"][:1]] != ["SIMULATION_BEGINS"]:
            raise ProtocolError("the first event of Batsim must be SIMULATION_BEGINS")
        self._begun = True
        return message

    def reply(self, answer: dict[str, Any]) -> None:
        """Answer it."""
        for event in answer["events"]:
            if event["type"] == "EXECUTE_JOB":
                event["data"]["alloc"] = str(event["data"]["alloc"])
        self.send(json.dumps(answer))


class EngineSocket(_Socket):
    """Batsim's side: connects to the scheduler."""

    def __init__(self, endpoint: str, patience_s: float | None = None) -> None:
        super().__init__(zmq.REQ, endpoint, bind=False)
        self._patience_s = patience_s

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and wait for its answer."""
        self.send(encode(message))
        text = self.receive(self._patience_s, _nobody_watches, f"the scheduler at {self.endpoint}")
        return check_answer(decode(text, batsim_float))
