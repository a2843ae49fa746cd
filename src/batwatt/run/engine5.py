"""The embedded engine as Batsim 5, for an external decision component that listens on a socket."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batwatt.engine.protocol5.engine import Engine5
from batwatt.errors import DeadlockError
from batwatt.files import whole_set
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.platforms.platform_xml import read_platform5
from batwatt.inputs.workloads.batsim5_files import read_events5, read_workload5
from batwatt.results.batsim5_files import write_record5

LOGGER = logging.getLogger(__name__)
OUTPUTS = ("jobs.csv", "consumed_energy.csv", "pstate_changes.csv", "schedule.json")


@dataclass(frozen=True)
class Batsim5Spec:
    """Options of Batsim 5's command line; `prefix` stands before the names of the files as it is (`out/`)."""

    platform: Path
    workloads: Sequence[Path] = ()
    events: Sequence[Path] = ()
    prefix: str = "out/"
    init: str = ""
    energy: bool | None = None
    trace_pstates: bool = False
    hosts: HostChoice = field(default_factory=HostChoice)
    roles: Mapping[str, str] = field(default_factory=dict)
    patience_s: float | None = None
    arguments: Sequence[str] = ()


def run_engine5(spec: Batsim5Spec, endpoint: str, ready: Callable[[], None] = lambda: None) -> None:
    """Play Batsim 5 on the wire for the scheduler that listens on `endpoint`, and write Batsim 5's files.

    `ready` is called when all inputs are read. After a deadlock, which is raised, the files have the finished jobs.
    """
    # zmq takes a while to be loaded
    from batwatt.engine.wire import EngineSocket5

    loads = [read_workload5(path, f"w{index}") for index, path in enumerate(spec.workloads)]
    events = [read_events5(path, f"ee{index}") for index, path in enumerate(spec.events)]
    everything, storage = read_platform5(spec.platform, spec.hosts.master, spec.roles, spec.energy)
    platform = spec.hosts.of(everything, max((load.nb_res for load in loads), default=None))
    for ignored in platform.not_simulated:
        LOGGER.warning("%s: the embedded engine ignores %s", platform.source, ignored)
    context = json.dumps({"socket_endpoint": endpoint, "export_prefix": spec.prefix}, separators=(",", ":"))
    folder, name = os.path.split(spec.prefix)
    deadlock: DeadlockError | None = None
    with (
        whole_set(Path(folder), name or "batsim5", old=[name + output for output in OUTPUTS]) as part,
        EngineSocket5(endpoint, spec.patience_s) as socket,
    ):
        ready()
        features = socket.hello(spec.init)
        engine = Engine5(
            platform,
            loads,
            events,
            features,
            energy=spec.energy,
            storage=storage,
            arguments=spec.arguments,
            context=context,
        )
        try:
            while not engine.ended:
                engine.reply(socket.ask(engine.message()))
        except DeadlockError as error:
            deadlock = error
        write_record5(engine.close(), f"{part}{os.sep}{name}", ended=deadlock is None, pstates=spec.trace_pstates)
    if deadlock is not None:
        raise deadlock
