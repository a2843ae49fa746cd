"""The embedded engine as Batsim 4.2.1, for a scheduler that listens on a socket."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from batwatt.batsim.adapters import serve
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.errors import DeadlockError, argument, tell_before_work
from batwatt.files import whole_set
from batwatt.inputs.batsim_files import read_events, read_workload
from batwatt.inputs.platform_files import HostChoice, read_platform
from batwatt.results.run_files import write_record
from batwatt.run.files import OUTPUTS

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatsimConfig(EngineConfig):
    """Batsim's options with those that only SIMULATION_BEGINS shows."""

    storage_sharing: bool = True
    redis_hostname: str = "127.0.0.1"
    redis_port: int = 6379
    redis_prefix: str = "default"

    def payload(self) -> dict[str, Any]:
        """Return the `config` object of SIMULATION_BEGINS."""
        redis = {f"redis-{name}": getattr(self, f"redis_{name}") for name in ("hostname", "port", "prefix")}
        return super().payload() | redis | {"dynamic-jobs-acknowledged": self.acknowledge_dynamic_jobs}

    def begins(
        self, hosts: list[dict[str, Any]], workloads: Mapping[str, Any], profiles: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the data of SIMULATION_BEGINS."""
        return super().begins(hosts, workloads, profiles) | {"allow_storage_sharing": self.storage_sharing}


def play_batsim(
    platform_file: Path,
    workloads: Sequence[Path],
    events: Sequence[Path],
    endpoint: str,
    ready: Callable[[], None] = lambda: None,
    *,
    config: BatsimConfig,
    prefix: str = "out",
    hosts: HostChoice | None = None,
    roles: Mapping[str, str] = MappingProxyType({}),
    machine_states: bool = True,
    ignore_communication: bool = False,
) -> None:
    """Play Batsim 4.2.1 on the wire for the scheduler that listens on `endpoint`, and write Batsim's files.

    The other arguments are the options of its command line; `prefix` stands before the names of the files as it is.
    `ready` is called when all inputs are read, before the wait for the scheduler. A deadlock leaves the files, too,
    and is raised. Raises InputError.
    """
    choice = hosts or HostChoice()
    everything = read_platform(platform_file, choice.master, roles)
    loads = [
        read_workload(path, f"w{index}", ignore_communication=ignore_communication)
        for index, path in enumerate(workloads)
    ]
    platform = choice.of(everything, max((load.nb_res for load in loads), default=None))
    for ignored in platform.not_simulated:
        LOGGER.warning("%s: the embedded engine ignores %s", platform.source, ignored)
    lists = [read_events(path, config.forward_unknown_events, len(platform)) for path in events]
    engine = Engine(platform, loads, config, sorted(sum(lists, ()), key=lambda event: event.time_s))
    folder, name = os.path.split(prefix)
    attempts = f"{name}_attempts.csv"
    old = [output for stem, suffix in OUTPUTS if (output := f"{name}_{stem}{suffix}") != attempts]
    deadlock: DeadlockError | None = None
    with whole_set(Path(folder), last=[f"{name}_jobs.csv"], old=old, place=argument("prefix", prefix)) as part:
        tell_before_work()
        ready()
        # of an earlier run; the scheduler of this one may write its own before these files appear
        Path(folder, attempts).unlink(missing_ok=True)
        try:
            record = serve(engine, endpoint)
        except DeadlockError as error:
            record, deadlock = engine.close(), error
        for path in write_record(record, part / "x"):
            stem = path.name.removeprefix("x_")
            if machine_states or stem != "machine_states.csv":
                path.rename(part / f"{name}_{stem}")
            else:
                path.unlink()
    if deadlock is not None:
        raise deadlock
