"""The embedded engine as Batsim 5, for an external decision component that listens on a socket."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from batwatt.engine.server5 import Engine5
from batwatt.errors import DeadlockError
from batwatt.files import whole_set
from batwatt.inputs.batsim_files import read_events5, read_workload5
from batwatt.inputs.platform_files import HostChoice, read_platform5
from batwatt.results.batsim5_files import write_record5

LOGGER = logging.getLogger(__name__)
OUTPUTS = ("jobs.csv", "consumed_energy.csv", "pstate_changes.csv", "schedule.json")


def run_engine5(
    platform_file: Path,
    workloads: Sequence[Path],
    events: Sequence[Path],
    endpoint: str,
    ready: Callable[[], None] = lambda: None,
    *,
    prefix: str = "out/",
    init: str = "",
    energy: bool | None = None,
    trace_pstates: bool = False,
    hosts: HostChoice | None = None,
    roles: Mapping[str, str] = MappingProxyType({}),
    patience_s: float | None = None,
    arguments: Sequence[str] = (),
) -> None:
    """Play Batsim 5 on the wire for the scheduler that listens on `endpoint`, and write Batsim 5's files.

    The other arguments are the options of its command line; `prefix` stands before the names of the files as it is
    (`out/`). `ready` is called when all inputs are read. After a deadlock, which is raised, the files have the finished
    jobs.
    """
    # zmq takes a while to be loaded
    from batwatt.batsim.wire import EngineSocket5

    loads = [read_workload5(path, f"w{index}") for index, path in enumerate(workloads)]
    happenings = [read_events5(path, f"ee{index}") for index, path in enumerate(events)]
    choice = hosts or HostChoice()
    everything, storage = read_platform5(platform_file, choice.master, roles, energy)
    platform = choice.of(everything, max((load.nb_res for load in loads), default=None))
    for ignored in platform.not_simulated:
        LOGGER.warning("%s: the embedded engine ignores %s", platform.source, ignored)
    context = json.dumps({"socket_endpoint": endpoint, "export_prefix": prefix}, separators=(",", ":"))
    folder, name = os.path.split(prefix)
    deadlock: DeadlockError | None = None
    with (
        whole_set(Path(folder), old=[name + output for output in OUTPUTS], place=f"--export {prefix}") as part,
        EngineSocket5(endpoint, patience_s) as socket,
    ):
        ready()
        features = socket.hello(init)
        engine = Engine5(
            platform,
            loads,
            happenings,
            features,
            energy=energy,
            storage=storage,
            arguments=arguments,
            context=context,
        )
        try:
            while not engine.ended:
                engine.reply(socket.ask(engine.message()))
        except DeadlockError as error:
            deadlock = error
        write_record5(engine.close(), f"{part}{os.sep}{name}", ended=deadlock is None, pstates=trace_pstates)
    if deadlock is not None:
        raise deadlock
