"""Reader of the files of Batsim 5: workloads, also converted between Batsim 4 and 5, and external events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batwatt.checks import load_json
from batwatt.files import read_text
from batwatt.model.workload import Workload
from batwatt.protocol.conversion import converted
from batwatt.protocol.numbers import batsim_float
from batwatt.protocol.workload5 import GenericEvent, parse_events5, parse_workload5


def read_workload5(path: Path | str, name: str) -> Workload:
    """Read the workload in a JSON file of Batsim 5. Raises InputError."""
    return parse_workload5(_loaded(path), name, path)


def converted_file(path: Path | str, to: str) -> dict[str, Any]:
    """Convert the workload in a file of Batsim 4 or 5 to `batsim4` or `batsim5`. Raises InputError."""
    return converted(_loaded(path), path, to)


def read_events5(path: Path | str, name: str) -> tuple[GenericEvent, ...]:
    """Read the external events of a file of Batsim 5; see `parse_events5`. Raises InputError."""
    return parse_events5(read_text(path), name, path)


def _loaded(path: Path | str) -> Any:
    """Return the JSON of a file, with numbers as Batsim reads them. Raises InputError."""
    return load_json(read_text(path), path, parse_float=batsim_float)
