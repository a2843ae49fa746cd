"""Reader of the files of Batsim 4: workloads and external events."""

from __future__ import annotations

from pathlib import Path

from batwatt.files import read_text
from batwatt.model.workload import Workload
from batwatt.protocol.events import TimedEvent, parse_events
from batwatt.protocol.workload4 import parsed_workload


def read_workload(
    path: Path | str, name: str = "w0", *, simulate: bool = True, ignore_communication: bool = False
) -> Workload:
    """Read the workload in a Batsim JSON file; see `parsed_workload`. Raises InputError."""
    return parsed_workload(read_text(path), name, path, simulate, ignore_communication)


def read_events(path: Path | str, forward_unknown: bool, nb_hosts: int | None = None) -> tuple[TimedEvent, ...]:
    """Read the events of a file in order of time; see `parse_events`. Raises InputError."""
    return parse_events(read_text(path), path, forward_unknown, nb_hosts)
