"""The scheduler's side of recorded dialogues of Batsim 5: what it reads, what a scheduler learns, what it sends."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest
from dialogues5 import OURS, REAL, Recording, names, unversioned

from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig, read_reply, write_message
from batwatt.batsim.batsim5 import Dialect
from batwatt.errors import ProtocolError
from batwatt.protocol.conversion import profile_of

FEATURES = {
    "dynamic_registration": "dynamic_jobs",
    "profile_reuse": "profile_reuse",
    "acknowledge_dynamic_jobs": "acknowledge_dynamic_jobs",
    "forward_profiles_on_job_submission": "forward_profiles",
}
"""Feature of a hello -> field of the configuration."""


def read(recording: Recording) -> Dialect:
    """A dialect with the features that the recorded component requested."""
    hello = json.loads(recording.hello or "{}")
    features = {}
    for event in hello.get("events", ()):
        features = event["event"].get("requested_simulation_features") or {}
    return Dialect(EngineConfig(**{field: bool(features.get(feature)) for feature, field in FEATURES.items()}))


# our schedulers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names(OURS))
def test_both_directions_of_a_scheduler(name):
    """Messages become those of Batsim 4, and decisions those of Batsim 5, byte for byte."""
    recording = Recording(OURS, name)
    dialect = Dialect(EngineConfig(**recording.result["config"]))
    assert unversioned(dialect.hello()) == unversioned(recording.hello)
    assert len(recording.messages) == len(recording.decisions) >= 3
    turns = zip(recording.messages, recording.events, recording.decisions, recording.answers, strict=True)
    for frame, events, decisions, answer in turns:
        assert write_message(dialect.message(frame)) == events
        assert dialect.reply(read_reply(decisions)).rstrip("\0") == answer


# the real Batsim 5 ----------------------------------------------------------------------------------------------------


VECTORS = ("probes", "probes_off")
"""Recordings with data of each host, which no scheduler on batwatt requests."""


@pytest.mark.parametrize("name", names(REAL))
def test_every_message_is_read(name):
    """Also those before Batsim aborts."""
    recording = Recording(REAL, name)
    dialect = read(recording)
    if name in VECTORS:
        with pytest.raises(ProtocolError, match="which batwatt did not create"):
            [dialect.message(frame) for frame in recording.messages]
        return
    for frame in recording.messages:
        message, sent = dialect.message(frame), json.loads(frame)
        assert message.now == round(sent["now"], 6)
        assert all(event.time <= message.now for event in message.events)


ENDED = [
    name
    for name in names(REAL)
    if name not in VECTORS and "SimulationEndsEvent" in "".join(Recording(REAL, name).messages[-1:])
]


@pytest.mark.parametrize("name", [name for name in ENDED if not name.startswith("error_") and name != "force_stop"])
def test_a_scheduler_learns_what_batsim_writes(name):
    recording = Recording(REAL, name)
    dialect = read(recording)
    events = [event for frame in recording.messages for event in dialect.message(frame).events]
    with (recording.folder / "out" / "jobs.csv").open(newline="") as file:
        rows = {f"{row['workload_name']}!{row['job_id']}": row for row in csv.DictReader(file)}
    ended = {event.job_id: event for event in events if isinstance(event, ev.JobCompleted)}
    assert {name: event.state for name, event in ended.items()} == {
        name: row["final_state"] for name, row in rows.items() if row["final_state"] != "REJECTED"
    }
    for name, event in ended.items():
        assert event.time == pytest.approx(float(rows[name]["finish_time"]), abs=2e-3), name
    for event in events:
        if isinstance(event, ev.JobSubmitted):
            row = rows[event.job_id]
            assert event.job["res"] == int(row["requested_number_of_resources"])
            assert event.job["walltime"] == float(row["requested_time"])
            assert event.job["subtime"] == pytest.approx(float(row["submission_time"]), abs=1e-6)


SPREAD = "SpreadOverHostsFirst"
Sent = tuple[str, Any]


def of(event: dict[str, Any], time: float) -> ev.Decision | None:
    """A recorded decision in the terms of Batsim 4, None for one that it does not have."""
    kind, data = event["event_type"].removesuffix("Event"), event["event"]
    if kind == "ExecuteJob" and data.keys() <= {"job_id", "allocation"}:
        where = data["allocation"]
        how = where["executor_placement"]
        mapping = {str(index): place for index, place in enumerate(how["mapping"])} if "mapping" in how else None
        if mapping is not None or how["strategy"] == SPREAD:
            return ev.ExecuteJob(time, data["job_id"], where["host_allocation"], mapping)
    if kind == "RejectJob":
        return ev.RejectJob(time, data["job_id"])
    if kind == "KillJobs":
        return ev.KillJob(time, data["job_ids"])
    if kind in ("ChangeHostsPState", "TurnOnOffHosts"):
        return ev.SetResourceState(time, data["host_ids"], str(data.get("state", data.get("pstate"))))
    if kind == "CallMeLater" and data["when_type"] == "OneShot":
        ms = 1 if data["when"].get("time_unit") == "Millisecond" else 1000
        return ev.CallMeLater(time, data["when"]["time"] * ms / 1000)
    if kind == "RegisterProfile":
        workload, _, name = data["profile"]["id"].partition("!")
        return ev.RegisterProfile(time, workload, name, profile_of(data["profile"]))
    if kind == "FinishRegistration":
        return ev.Notify(time, "registration_finished")
    return None


def terms(event: dict[str, Any]) -> Sent:
    """A sent decision without what its sender chooses: names of calls, the unit of a time, fields with a default."""
    kind, data = event["event_type"], json.loads(json.dumps(event["event"]))
    if kind == "CallMeLaterEvent":
        ms = 1 if data["when"].get("time_unit") == "Millisecond" else 1000
        return kind, data["when"]["time"] * ms
    if kind == "RegisterProfileEvent":
        data["profile"].setdefault("extra_data", "")
        own = data["profile"]["profile"]
        return kind, data | {"profile": data["profile"] | {"profile": {name: own[name] for name in sorted(own)}}}
    return kind, data


def answered(recording: Recording) -> Iterator[tuple[list[Sent], list[Sent]]]:
    """What the recorded component sent, and what the dialect sends for the same decisions."""
    dialect = read(recording)
    for frame, answer in zip(recording.messages, recording.answers, strict=False):
        message, events = dialect.message(frame), json.loads(answer)["events"]
        pairs = [(event, of(event, message.now)) for event in events]
        changes = [(event, decision) for event, decision in pairs if decision is not None]
        sent = json.loads(dialect.reply(ev.Reply(message.now, [decision for _, decision in changes])).rstrip("\0"))
        assert sent["now"] == json.loads(frame)["now"]
        yield [terms(event) for event, _ in changes], [terms(event) for event in sent["events"]]


OTHERWISE = {
    "odd_change_to_sleep_pstate": "a sleep p-state without a transition",
    "odd_change_to_sleep_then_on": "likewise",
    "odd_dyn_profile_id_without_workload": "a profile without a workload",
}
"""Recordings with decisions that batwatt never sends, and why."""
KEPT = [name for name in ENDED if name not in OTHERWISE]


@pytest.mark.parametrize("name", KEPT)
def test_decisions_are_those_that_batsim_accepted(name):
    for theirs, ours in answered(Recording(REAL, name)):
        assert ours == theirs


def test_recorded_decisions_are_many():
    counts: dict[str, int] = {}
    for name in KEPT:
        for theirs, _ in answered(Recording(REAL, name)):
            for kind, _ in theirs:
                counts[kind] = counts.get(kind, 0) + 1
    assert counts.keys() >= {f"{name}Event" for name in (
        "ExecuteJob", "RejectJob", "KillJobs", "CallMeLater", "ChangeHostsPState", "TurnOnOffHosts",
        "RegisterProfile", "FinishRegistration",
    )}  # fmt: skip
    assert counts["ExecuteJobEvent"] > 300
