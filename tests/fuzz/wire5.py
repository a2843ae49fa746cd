"""A Batsim 5 with odd messages for our schedulers, and recorded components with odd answers for the engine."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from golden5 import Recording, names

from batwatt.cli.batsim import Features as Asked
from batwatt.engine.protocol5.engine import Engine5
from batwatt.engine.protocol5.text import read_hello, read_reply, write_message
from batwatt.engine.wire import LENGTH, EngineSocket5
from batwatt.errors import PeerError
from batwatt.inputs.platforms.platform_xml import read_platform5
from batwatt.inputs.workloads.batsim5_files import read_events5, read_workload5
from batwatt.protocol.batprotocol import to_batsim5

from .mutate import TEXTS
from .peers import JOBS, PLATFORM, Served, Wire, answered, playing, serve

EVENTS = [
    {"type": "generic", "timestamp": 15, "data": '{"type": "machine_unavailable", "resources": "3"}'},
    {"type": "generic", "timestamp": 40, "data": '{"type": "machine_available", "resources": "3"}'},
]


def attempt(rng: Random, folder: Path) -> None:
    wire = Wire(rng)
    if rng.random() < 0.5:
        recording = Recording(rng.choice(names()))
        answers = iter([b"\2\0\0\0" + recording.hello, *recording.answers])

        def component(message: bytes) -> bytes:
            answer = next(answers, None)
            if answer is None:
                raise PeerError("the recording is over")
            return wire(answer)

        socket = playing(EngineSocket5, component)
        socket.hello(rng.choice(("", "{}", *TEXTS)))
        answered(recording.engine(), socket)
        return
    (folder / "p.xml").write_text(PLATFORM)
    (folder / "w.json").write_text(json.dumps(to_batsim5(JOBS, "fuzz")))
    (folder / "e.txt").write_text("\n".join(map(json.dumps, EVENTS)))
    platform, storage = read_platform5(folder / "p.xml", "master_host", {})
    load = read_workload5(folder / "w.json", "w0")
    events = [read_events5(folder / "e.txt", "ee0")] if rng.random() < 0.3 else []
    engines: list[Engine5] = []

    def batsim(answer: bytes) -> bytes:
        if not answer:
            return wire(LENGTH.pack(2) + b"{}")
        if not engines:
            engines.append(Engine5(platform, [load], events, read_hello(answer), energy=True, storage=storage))
        elif engines[0].ended:
            raise PeerError("Batsim has gone")
        else:
            engines[0].reply(read_reply(answer))
        return wire(write_message(engines[0].message()).encode())

    def greet(scheduler: Any, link: Served) -> None:
        if link.begin() is not None:
            link.greet(Asked().dialect(scheduler))

    serve(rng, platform, Served(batsim), greet)
