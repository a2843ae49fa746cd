"""Batsim 5 (batprotocol as JSON) for schedulers with Batsim 4's events: their `Link` to a v5.0.0-rc2.

Reports become events of Batsim 4, and decisions become events of Batsim 5. Differences in meaning:

- Times are rounded to 1e-6 s, as Batsim 4 sends them; decisions at the time of a message have its exact time. Three
  events have the time of an earlier message; they get the time of the present one.
- `CALL_ME_LATER`: whole ms, rounded up.
- `SET_RESOURCE_STATE` is `ChangeHostsPState` or `TurnOnOffHosts`, by host. A request is acknowledged once, when all its
  hosts are in the p-state. Hosts that are switching are left out: Batsim 5 would abort.
- `QUERY` of energy is a probe that sends one value, 1 to 2 ms later.
- A job's fields other than Batsim's are the object in its `extra_data`; likewise of profiles.
- A second kill of a job is dropped: Batsim 5 would abort.
- External events of a type `machine_available` and `machine_unavailable` are reported to the scheduler; Batsim 5 itself
  ignores them.
- Metadata of jobs are stored in `metadata`, as Batsim 5 has none.

Sharing of hosts, messages to jobs and I/O jobs: Batsim 5 always allows the first and has none of the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batwatt._version import __version__
from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.batsim5_schema import read_message
from batwatt.batsim.events import NO_MORE_EVENTS, NO_MORE_JOBS, Requests
from batwatt.checks import shown
from batwatt.errors import IllegalDecisionError, ProtocolError
from batwatt.model import hostset
from batwatt.model.platform import SLEEP_STATES, Sleep, parse_sleeps
from batwatt.model.workload import JOB_FIELDS
from batwatt.protocol.conversion import merged_extra, profile_of, split_profile
from batwatt.protocol.workload5 import full_profile_id, job_table
from batwatt.units import TOO_LATE_S

VERSION = "1.0.0"
"""Version of batprotocol."""
MS_US = 1000
LATEST_MS = 1 << 62
LATE = ("HostsTurnedOnOffEvent", "ExternalEventOccurredEvent", "HostsPStateChangedEvent")
"""Events with the time of the previous message."""
END_NOTICES = {
    "AllStaticJobsHaveBeenSubmittedEvent": NO_MORE_JOBS,
    "AllStaticExternalEventsHaveBeenInjectedEvent": NO_MORE_EVENTS,
}
"""Event of Batsim 5 -> NOTIFY of Batsim 4."""
CODES = 2**32
"""Number of return codes, which are unsigned in 32 bits."""
MACHINES = ("machine_available", "machine_unavailable")


class Dialect:
    """Both directions of one simulation, with the p-states of hosts, and the requested calls and kills."""

    def __init__(self, config: EngineConfig) -> None:
        """Begin a dialect by `config`: the features requested from Batsim, and the `config` that the scheduler reads.

        Without `forward_profiles` all profiles come at the begin; v5.0.0-rc2 aborts if one of them is unused.
        """
        self.config = config
        self.metadata: dict[str, str] = {}
        """Job id -> metadata set by the scheduler."""
        self._now = self._sent_now = 0.0
        self._names = 0
        self._states: list[int] = []
        self._switching = 0
        self._sleeps: list[frozenset[int]] = []
        self._requests = Requests()
        self._early: list[ev.Event] = []
        self._kills: set[str] = set()
        self._lengths: dict[str, int] = {}
        """Full name of a sequence -> number of its parts."""

    # Batsim -> scheduler ------------------------------------------------------------------------------------------

    def hello(self) -> str:
        """Return the first answer without its flags."""
        dynamic = self.config.dynamic_jobs
        features = {
            "dynamic_registration": dynamic,
            "profile_reuse": dynamic and self.config.profile_reuse,
            "acknowledge_dynamic_jobs": dynamic and self.config.acknowledge_dynamic_jobs,
            "forward_profiles_on_job_submission": self.config.forward_profiles,
            "forward_profiles_on_jobs_killed": False,
            "forward_profiles_on_simulation_begins": not self.config.forward_profiles,
        }
        event = {
            "batprotocol_version": VERSION,
            "decision_component_name": "batwatt",
            "decision_component_version": __version__,
            "decision_component_commit": "",
            "requested_simulation_features": features,
        }
        return _text(0.0, [_stamped(0.0, "EDCHelloEvent", event)])

    def message(self, text: str) -> ev.Message:
        """Parse a message of Batsim 5. Raises ProtocolError."""
        message = read_message(text)
        if not self._sent_now <= message["now"] < TOO_LATE_S:
            problem = f"now={message['now']:g} is before {self._sent_now:g} or too late"
            raise ProtocolError(f"a message of Batsim 5 cannot be understood ({problem})")
        self._sent_now = message["now"]
        self._now = round(self._sent_now, 6)
        return ev.Message(self._now, [event for one in message["events"] for event in self._events(one)])

    def _events(self, one: Mapping[str, Any]) -> Iterator[ev.Event]:
        kind, data = one["event_type"], one["event"]
        time = self._now if kind in LATE else round(one["timestamp"], 6)
        match kind:
            case "JobSubmittedEvent":
                yield self._submitted(time, data)
            case "JobCompletedEvent":
                self._kills.discard(data["job_id"])
                code = data["return_code"]
                code = code - CODES if code >= CODES // 2 else code
                yield ev.JobCompleted(time, data["job_id"], data["state"], code, "")
            case "RequestedCallEvent":
                yield ev.RequestedCall(time)
            case "JobsKilledEvent":
                progress = {each["job_id"]: self._progress(each["wrapper"]) for each in data["progresses"]}
                yield ev.JobKilled(time, data["job_ids"], progress)
            case "HostsPStateChangedEvent":
                yield from self._arrived(self._hosts(data["host_ids"]), data["pstate"])
            case "HostsTurnedOnOffEvent":
                yield from self._arrived(self._hosts(data["host_ids"]), data["state"])
            case _ if kind in END_NOTICES:
                yield ev.Notified(time, END_NOTICES[kind], {"type": END_NOTICES[kind]})
            case "ExternalEventOccurredEvent":
                yield self._external(time, data["external_event"]["data"])
            case "ProbeDataEmittedEvent":
                if data["data_type"] != "AggregatedProbeData":
                    raise ProtocolError(
                        f"Batsim 5 sent data of the probe {shown(data['probe_id'])}, which batwatt did not create"
                    )
                yield ev.Answer(time, data["data"]["data"])
            case "SimulationBeginsEvent":
                yield ev.SimulationBegins(time, self._begins(data))
            case "SimulationEndsEvent":
                yield ev.SimulationEnds(time)
            case _:
                raise ProtocolError(f"a message of Batsim 5 cannot be understood (an event of the type {shown(kind)})")

    def _hosts(self, text: str) -> int:
        """Return the mask of the hosts in a text of Batsim. Raises ProtocolError."""
        try:
            mask = hostset.from_text(text)
        except ValueError as error:
            raise ProtocolError(f"Batsim 5 names hosts that are none: {error}") from None
        if mask >> len(self._states):
            last = len(self._states) - 1
            raise ProtocolError(f"Batsim 5 names host {mask.bit_length() - 1}, and the hosts are 0-{last}")
        return mask

    def _external(self, time: float, text: str) -> ev.Notified:
        """Return a user's event: an object is an event of Batsim 4, another text the data of a `generic` event."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = text
        if not (isinstance(data, dict) and isinstance(data.get("type"), str)):
            return ev.Notified(time, "generic", {"type": "generic", "data": data})
        kind = data["type"].removeprefix("event_")
        if kind not in MACHINES:
            return ev.Notified(time, "generic" if data["type"] in END_NOTICES.values() else data["type"], data)
        hosts = data.get("resources")
        if not isinstance(hosts, str):
            raise ProtocolError(f"an external event {kind} has no text 'resources', got {shown(hosts)}")
        return ev.Notified(time, f"event_{kind}", {**data, "resources": hostset.to_text(self._hosts(hosts))})

    def _begins(self, data: Mapping[str, Any]) -> dict[str, Any]:
        hosts = data["computation_hosts"]
        if [host["id"] for host in hosts] != list(range(data["computation_host_number"])) or not hosts:
            raise ProtocolError("the ids of computation_hosts in SimulationBegins are not 0..computation_host_number-1")
        self._states = [host["pstate"] for host in hosts]
        described = [_host(host) for host in hosts]
        self._sleeps = [_sleeps_of(host, each["pstate_count"]) for host, each in zip(described, hosts, strict=True)]
        profiles: dict[str, dict[str, Any]] = {}
        for each in data["profiles"] or ():
            workload, _, name = each["id"].partition("!")
            profiles.setdefault(workload, {})[name] = self._profile(each)
        return {
            "nb_resources": data["host_number"],
            "nb_compute_resources": data["computation_host_number"],
            "nb_storage_resources": data["storage_host_number"],
            "allow_compute_sharing": True,
            "allow_storage_sharing": True,
            "config": self.config.payload(),
            "compute_resources": described,
            "storage_resources": [_host(host) for host in data["storage_hosts"] or ()],
            "workloads": {load["name"]: load["filename"] for load in data["workloads"] or ()},
            "profiles": profiles,
        }

    def _submitted(self, time: float, data: Mapping[str, Any]) -> ev.JobSubmitted:
        job_id, job = data["job_id"], data["job"]
        workload, _, name = job_id.partition("!")
        if not (workload and name) or "!" in name or not job["resource_request"]:
            problem = "its id is not WORKLOAD!NAME, or it requests no host"
            raise ProtocolError(f"Batsim 5 submitted the job {shown(job_id)}: {problem}")
        walltime = job["walltime"]
        raw = {
            "id": job_id,
            "subtime": round(data["submission_time"], 6),
            "res": job["resource_request"],
            "walltime": -1 if walltime is None else round(walltime, 6),
            "profile": job["profile_id"].removeprefix(f"{workload}!"),
        }
        profile = self._profile(data["profile"]) if data.get("profile") else None
        return ev.JobSubmitted(time, job_id, merged_extra(raw, job["extra_data"]), profile)

    def _profile(self, data: Mapping[str, Any]) -> dict[str, Any]:
        own = {field: value for field, value in data["profile"].items() if value is not None}
        profile = profile_of({**data, "profile": own})
        if profile["type"] == "composed":
            self._lengths[data["id"]] = len(profile["seq"])
        return profile

    def _progress(self, wrapper: Mapping[str, Any]) -> dict[str, Any]:
        data = wrapper["kill_progress"]
        name = data["profile_id"].partition("!")[2]
        if "progress" in data:
            return {"profile_name": name, "progress": data["progress"]}
        # Batsim 4 counts parts over all repetitions
        index = data["current_task_index"] + data["current_repetition"] * self._lengths.get(data["profile_id"], 0)
        inner = self._progress(data["current_task_progress"])
        return {"profile_name": name, "current_task_index": index, "current_task": inner}

    def _arrived(self, mask: int, state: int) -> Iterator[ev.Event]:
        """Note that hosts are in a p-state; yield acknowledgements of the complete requests."""
        self._switching &= ~mask
        for host in hostset.ids(mask):
            self._states[host] = state
        for hosts in self._requests.arrived(mask, state):
            yield ev.ResourceStateChanged(self._now, hosts, str(state))

    # scheduler -> Batsim ------------------------------------------------------------------------------------------

    def reply(self, reply: ev.Reply) -> str:
        """Return the text of a reply. Raises ProtocolError for decisions that Batsim 5 does not support."""
        decisions = [
            _stamped(self._sent(decision.time), *each)
            for decision in reply.decisions
            for each in self._events_of(decision)
        ]
        return _text(self._sent(reply.now), decisions)

    def _sent(self, time: float) -> float:
        """Return a time as Batsim has it: a time rounded up would delay Batsim."""
        return self._sent_now if time == self._now else time

    def _events_of(self, decision: ev.Decision) -> Iterator[tuple[str, dict[str, Any]]]:
        match decision:
            case ev.ExecuteJob():
                yield "ExecuteJobEvent", _execution(decision)
            case ev.RejectJob():
                yield "RejectJobEvent", {"job_id": decision.job_id}
            case ev.KillJob():
                fresh = [job_id for job_id in dict.fromkeys(decision.job_ids) if job_id not in self._kills]
                self._kills.update(fresh)
                if fresh:
                    yield "KillJobsEvent", {"job_ids": fresh}
            case ev.CallMeLater():
                when = {"time": _ms(decision.at), "time_unit": "Millisecond"}
                yield "CallMeLaterEvent", {"call_me_later_id": self._name("call"), "when_type": "OneShot", "when": when}
            case ev.SetResourceState():
                yield from self._switch(decision)
            case ev.Query():
                yield "CreateProbeEvent", self._probe()
            case ev.RegisterProfile():
                yield (
                    "RegisterProfileEvent",
                    {"profile": split_profile(decision.workload, decision.name, decision.profile)},
                )
            case ev.RegisterJob():
                yield "RegisterJobEvent", {"job_id": decision.job_id, "job": _registered(decision)}
            case ev.Notify(kind="registration_finished"):
                if self.config.dynamic_jobs:
                    yield "FinishRegistrationEvent", {}
            case ev.Notify():
                pass  # jobs can be registered as long as the simulation lives
            case ev.SetJobMetadata():
                text = str(decision.metadata)
                if '"' in text or "\n" in text:
                    problem = "metadata may hold neither double quotes nor new lines"
                    raise IllegalDecisionError(f"SET_JOB_METADATA {decision.job_id}", problem)
                self.metadata[decision.job_id] = text
            case _:
                raise ProtocolError(f"Batsim 5 has nothing for {type(decision).__name__} of the scheduler")

    def _name(self, what: str) -> str:
        self._names += 1
        return f"{what} {self._names}"

    def _switch(self, decision: ev.SetResourceState) -> Iterator[tuple[str, dict[str, Any]]]:
        mask, state = hostset.from_text(str(decision.resources)), int(decision.state)
        if mask >> len(self._states):
            raise ProtocolError(f"there are no hosts {hostset.to_text(mask)}: they are 0-{len(self._states) - 1}")
        self._requests.add(mask, state)
        at_once = turned = 0
        for host in hostset.ids(mask & ~self._switching):
            sleeps = self._sleeps[host]
            if (self._states[host] in sleeps) or state in sleeps:
                turned |= 1 << host
            else:
                at_once |= 1 << host
        if at_once:
            yield "ChangeHostsPStateEvent", {"host_ids": hostset.to_text(at_once), "pstate": state}
        if turned:
            self._switching |= turned
            yield "TurnOnOffHostsEvent", {"host_ids": hostset.to_text(turned), "state": state}

    def _probe(self) -> dict[str, Any]:
        """Return a probe of the energy of all hosts since 0 s: its first period arms it, the next one sends a value."""
        once = {"mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 1}}
        return {
            "probe_id": self._name("energy"),
            "metrics": "Power",
            "resources_type": "HostResources",
            "resources": {"host_ids": hostset.to_text(hostset.span(0, len(self._states) - 1))},
            "data_accumulation_strategy_type": "ProbeDataAccumulation",
            "data_accumulation_strategy": {
                "reset_mode_type": "NoReset",
                "reset_mode": {},
                "cumulative_function": "Sum",
                "temporal_normalization": False,
            },
            "measurement_triggering_policy_type": "TemporalTriggerWrapper",
            "measurement_triggering_policy": {
                "temporal_trigger_type": "Periodic",
                "temporal_trigger": {"period": 1, "time_unit": "Millisecond", **once},
            },
            "resources_aggregation_function_type": "Sum",
            "resources_aggregation_function": {},
            "temporal_aggregation_function_type": "NoTemporalAggregation",
            "temporal_aggregation_function": {},
            "emission_filtering_policy_type": "NoFiltering",
            "emission_filtering_policy": {},
        }


def _stamped(time: float, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": time, "event_type": kind, "event": data}


def _text(now: float, events: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"now": now, "events": events}) + "\0"


def _ms(time_s: float) -> int:
    """Return whole ms, rounded up; times are multiples of 1e-6 s."""
    if not time_s * 1e3 < LATEST_MS:
        raise ProtocolError(f"CALL_ME_LATER {time_s:g}: Batsim 5 has no time so late")
    return -(-round(time_s * 1e6) // MS_US)


def _host(host: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": host["id"],
        "name": host["name"],
        "state": "idle",
        "properties": {pair["key"]: pair["value"] for pair in host["properties"] or ()},
        "zone_properties": {pair["key"]: pair["value"] for pair in host["zone_properties"] or ()},
    }


def _sleeps_of(host: Mapping[str, Any], pstates: int) -> frozenset[int]:
    """Return the sleep p-states of a host. Raises ProtocolError."""
    text = host["properties"].get(SLEEP_STATES, "")
    try:
        sleeps = parse_sleeps(text)
    except ValueError:
        sleeps = (Sleep(-1, -1, -1),)
    if any(
        not 0 <= state < (pstates or math.inf)
        for each in sleeps
        for state in (each.sleep, each.switch_off, each.switch_on)
    ):
        problem = f"{SLEEP_STATES} {shown(text)} are none of its {pstates} p-states, sleep:off:on"
        raise ProtocolError(f"Batsim 5's host {shown(host['name'])}: {problem}")
    return frozenset(each.sleep for each in sleeps)


def _execution(decision: ev.ExecuteJob) -> dict[str, Any]:
    kind, placement = "PredefinedExecutorPlacementStrategyWrapper", {"strategy": "SpreadOverHostsFirst"}
    if decision.mapping is not None:
        executors = sorted((int(executor), int(place)) for executor, place in decision.mapping.items())
        kind, placement = "CustomExecutorToHostMapping", {"mapping": [place for _, place in executors]}  # type: ignore[dict-item]
    where = {"host_allocation": str(decision.alloc), "executor_placement_type": kind, "executor_placement": placement}
    execution: dict[str, Any] = {"job_id": decision.job_id, "allocation": where}
    storage = dict(decision.storage or {})
    places = storage.pop("storage_mapping", None)
    if storage:
        raise ProtocolError(f"EXECUTE_JOB {decision.job_id}: Batsim 5 has no {', '.join(storage)}")
    if places is not None:
        execution["storage_placement"] = [{"storage_name": name, "host_id": host} for name, host in places.items()]
    return execution


def _registered(decision: ev.RegisterJob) -> dict[str, Any]:
    raw = decision.job
    extra = {name: value for name, value in raw.items() if name not in JOB_FIELDS}
    walltime = raw.get("walltime", -1)
    profile_id = full_profile_id(raw["profile"], decision.job_id.partition("!")[0])
    return job_table(raw["res"], None if walltime == -1 else walltime, json.dumps(extra) if extra else "", profile_id)
