"""A Batsim 5 that says odd things to our schedulers, and decision components that answer oddly to the engine."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from batwatt.cli.batsim import Features as Asked
from batwatt.engine.protocol5.engine import Engine5
from batwatt.engine.protocol5.text import read_hello, read_reply, write_message
from batwatt.engine.wire import LENGTH, EngineSocket5
from batwatt.errors import PeerError
from batwatt.inputs.platforms.platform_xml import read_platform5
from batwatt.inputs.workloads.batsim5_files import read_events5, read_workload5
from batwatt.protocol.batprotocol import to_batsim5

from .mutate import number, text
from .peers import JOBS, Served, Wire, answered, host_energy, playing, serve

EVENTS = [
    {"type": "generic", "timestamp": 15, "data": '{"type": "machine_unavailable", "resources": "3"}'},
    {"type": "generic", "timestamp": 40, "data": '{"type": "machine_available", "resources": "3"}'},
]
HELLO = {
    "batprotocol_version": "1.0.0",
    "decision_component_name": "fuzz",
    "decision_component_version": "1",
    "decision_component_commit": "",
    "requested_simulation_features": {"acknowledge_dynamic_jobs": True},
}
SPREAD = {"executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper", "executor_placement": {}}


def attempt(rng: Random, folder: Path) -> None:
    (folder / "p.xml").write_text(host_energy())
    (folder / "w.json").write_text(json.dumps(to_batsim5(JOBS, "fuzz")))
    (folder / "e.txt").write_text("\n".join(map(json.dumps, EVENTS)))
    platform, storage = read_platform5(folder / "p.xml", "master_host", {})
    load, wire = read_workload5(folder / "w.json", "w0"), Wire(rng)
    events = [read_events5(folder / "e.txt", "ee0")] if rng.random() < 0.3 else []

    def engine_for(features: Any) -> Engine5:
        return Engine5(platform, [load], events, features, energy=True, storage=storage)

    if rng.random() < 0.5:
        engines: list[Engine5] = []

        def say(answer: bytes) -> bytes:
            if not answer:
                return wire(LENGTH.pack(2) + b"{}")
            if not engines:
                engines.append(engine_for(read_hello(answer)))
            elif engines[0].ended:
                raise PeerError("Batsim has gone")
            else:
                engines[0].reply(read_reply(answer))
            return wire(write_message(engines[0].message()).encode())

        def greet(scheduler: Any, link: Served) -> None:
            if link.begin() is None:
                return
            link.greet(Asked().dialect(scheduler))

        serve(rng, platform, Served(say), greet)
        return
    socket = playing(EngineSocket5, lambda message: wire(_answer(rng, message)))
    answered(engine_for(socket.hello(rng.choice(("", "{}", text(rng))))), socket)


def _stamped(now: float, *events: tuple[str, Any]) -> bytes:
    stamped = [{"timestamp": now, "event_type": f"{kind}Event", "event": data} for kind, data in events]
    return json.dumps({"now": now, "events": stamped}).encode()


def _answer(rng: Random, frame: bytes) -> bytes:
    """First come, first served on hosts of one's own; sometimes with something else."""
    if len(frame) >= 4 and LENGTH.unpack(frame[:4])[0] == len(frame) - 4:
        return b"\2\0\0\0" + _stamped(0, ("EDCHello", HELLO))
    message, decisions = json.loads(frame.rstrip(b"\0")), []
    now = message["now"]
    for event in message["events"]:
        if event["event_type"] == "JobSubmittedEvent":
            job, width = event["event"]["job_id"], event["event"]["job"]["resource_request"]
            where = {"host_allocation": f"0-{max(0, width - 1)}", **SPREAD}
            decisions.append(("ExecuteJob", {"job_id": job, "allocation": where}))
            if rng.random() < 0.3:
                decisions[-1] = "RejectJob", {"job_id": job}
    if [event["event_type"] for event in message["events"]] != ["SimulationEndsEvent"] and rng.random() < 0.4:
        decisions.append(rng.choice(OTHERS)(rng, now))
    return _stamped(now, *decisions)


def _when(rng: Random) -> dict[str, Any]:
    period = rng.choice((1, 5, 7, 10**9, 2**63, number(rng)))
    return {"period": period, "time_unit": rng.choice(("Second", "Millisecond")), "mode_type": "FinitePeriodNumber",
            "mode": {"nb_periods": rng.choice((1, 3, 100))}}  # fmt: skip


OTHERS = [
    lambda rng, now: ("CallMeLater", {"call_me_later_id": text(rng), "when_type": "Periodic", "when": _when(rng)}),
    lambda rng, now: ("CallMeLater", {"call_me_later_id": "c", "when_type": "OneShot", "when": {"time": number(rng)}}),
    lambda rng, now: ("TurnOnOffHosts", {"host_ids": rng.choice(("3", "0", "9", "")), "state": rng.choice((0, 2, 7))}),
    lambda rng, now: ("ChangeHostsPState", {"host_ids": "0-3", "pstate": rng.choice((0, 1, 2, 9))}),
    lambda rng, now: ("KillJobs", {"job_ids": ["w0!0", "w0!1"][: rng.randrange(3)]}),
    lambda rng, now: ("RegisterProfile", {"profile": {
        "id": rng.choice(("w0!x", text(rng))),
        "profile_type": rng.choice(("DelayProfile", "SequentialCompositionProfile")),
        "profile": rng.choice(({"delay": number(rng)}, {"profile_ids": ["w0!nap", text(rng)]}))}}),
    lambda rng, now: ("RegisterJob", {"job_id": rng.choice(("w0!y", text(rng))), "job": {
        "resource_request": number(rng), "profile_id": rng.choice(("nap", "w0!x", text(rng))),
        "walltime": number(rng)}}),
    lambda rng, now: ("ForceSimulationStop", {}),
]  # fmt: skip
