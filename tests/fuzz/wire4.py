"""A Batsim 4 with odd messages for our schedulers, and recorded schedulers with odd answers for the engine."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from golden import Script, dialogue, engine_of, scenarios

from batwatt.engine.batsim4 import read_reply, write_message
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.wire import EngineSocket
from batwatt.errors import PeerError
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.protocol.workload4 import parse_workload

from .peers import JOBS, PLATFORM, Served, Wire, answered, playing, serve


def attempt(rng: Random, folder: Path) -> None:
    wire = Wire(rng)
    if rng.random() < 0.5:
        place = rng.choice(scenarios("golden", "own", "rules"))
        script = Script(dialogue(place))
        engine = engine_of(place, json.loads((place / "scenario.json").read_text()))
        say = lambda message: wire(script.answer(json.loads(message)["now"]).encode())  # noqa: E731
        answered(engine, playing(EngineSocket, say))
        return
    (folder / "p.xml").write_text(PLATFORM)
    config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True, forward_profiles=rng.random() < 0.5)
    engine = Engine(read_platform(folder / "p.xml"), [parse_workload(JOBS, "w0", "fuzz")], config)

    def batsim(answer: bytes) -> bytes:
        if engine.ended:
            raise PeerError("Batsim has gone")
        if answer:
            engine.reply(read_reply(answer.decode()))
        return wire(write_message(engine.message()).encode())

    serve(rng, engine.platform, Served(batsim), lambda scheduler, link: None)
