"""A Batsim 4 that says odd things to our schedulers, and schedulers that answer oddly to the engine."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from batwatt.engine.batsim4 import read_reply, write_message
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.wire import EngineSocket
from batwatt.errors import PeerError
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.protocol.workload4 import parse_workload

from .mutate import number, text, value
from .peers import JOBS, Served, Wire, answered, host_energy, playing, serve


def attempt(rng: Random, folder: Path) -> None:
    (folder / "p.xml").write_text(host_energy())
    platform = read_platform(folder / "p.xml")
    config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True, forward_profiles=rng.random() < 0.5)
    engine, wire = Engine(platform, [parse_workload(JOBS, "w0", "fuzz")], config), Wire(rng)
    if rng.random() < 0.5:

        def say(answer: bytes) -> bytes:
            if engine.ended:
                raise PeerError("Batsim has gone")
            if answer:
                engine.reply(read_reply(answer.decode()))
            return wire(write_message(engine.message()).encode())

        serve(rng, platform, Served(say), lambda scheduler, link: None)
        return
    answered(engine, playing(EngineSocket, lambda message: wire(_answer(rng, json.loads(message)))))


def _answer(rng: Random, message: dict[str, Any]) -> bytes:
    """First come, first served on hosts of one's own; sometimes with something else."""
    now, decisions = message["now"], []
    ends = [event["type"] for event in message["events"]] == ["SIMULATION_ENDS"]
    for event in message["events"]:
        if event["type"] == "JOB_SUBMITTED":
            job = event["data"]["job"]
            decisions.append(("EXECUTE_JOB", {"job_id": job["id"], "alloc": f"0-{job['res'] - 1}"}))
            if rng.random() < 0.4:
                decisions[-1] = "REJECT_JOB", {"job_id": job["id"]}
    if rng.random() < 0.3 and not ends:
        decisions.append(rng.choice(OTHERS)(rng, now))
    if any(event["type"] == "NOTIFY" for event in message["events"]):
        decisions.append(("NOTIFY", {"type": "registration_finished"}))
    stamped = [{"timestamp": now, "type": kind, "data": data} for kind, data in decisions]
    return json.dumps({"now": now, "events": stamped}).encode()


OTHERS = [
    lambda rng, now: ("CALL_ME_LATER", {"timestamp": now + rng.choice((1, 1e-9, 1e6))}),
    lambda rng, now: ("SET_RESOURCE_STATE", {"resources": rng.choice(("0-1", "3", "9", "")), "state": "2"}),
    lambda rng, now: ("KILL_JOB", {"job_ids": ["w0!0", "w0!1"][: rng.randrange(3)]}),
    lambda rng, now: ("QUERY", {"requests": {"consumed_energy": {}}}),
    lambda rng, now: ("REGISTER_PROFILE", {"workload_name": "w0", "profile_name": text(rng), "profile": _profile(rng)}),
    lambda rng, now: ("REGISTER_JOB", {"job_id": "w0!x", "job": _job(rng)}),
    lambda rng, now: ("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": text(rng)}),
]


def _profile(rng: Random) -> dict[str, Any]:
    one = {"type": rng.choice(("delay", "parallel", "composed", "parallel_homogeneous")), "delay": number(rng)}
    return one | {"cpu": value(rng), "com": value(rng), "seq": value(rng), "repeat": number(rng)}


def _job(rng: Random) -> dict[str, Any]:
    return {"id": "w0!x", "subtime": number(rng), "res": number(rng), "profile": "nap", "walltime": number(rng)}
