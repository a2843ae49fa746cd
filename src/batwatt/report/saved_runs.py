"""The files of kept runs: their power, and the envelope they were under."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.inputs.series.series_csv import read_series
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.results import read
from batwatt.results.writers import file_of


def input_of(prefix: Path, name: str) -> Path | None:
    """The file that a run had as its input `name` ("envelope", "platform"), if it is there and still the same."""
    return _same_file(_metadata(prefix), name)


def _metadata(prefix: Path) -> Any:
    """What `PREFIX_metadata.json` has; {} if it cannot be read."""
    try:
        return json.loads(file_of(prefix, "metadata", ".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _same_file(metadata: Any, name: str) -> Path | None:
    try:
        noted = metadata["inputs"][name]
        path = Path(noted["path"])
        same = hashlib.sha256(path.read_bytes()).hexdigest() == noted["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return path if same else None


def platform_of(prefix: Path) -> Platform | None:
    """The hosts of the platform file on which a kept run ran, if it is there and still the same."""
    metadata = _metadata(prefix)
    path = _same_file(metadata, "platform")
    if path is None:
        return None
    hosts = HostChoice(**metadata.get("hosts", {}))
    return hosts.of(read_platform(path, hosts.master))


def envelope_of(prefix: Path) -> Series | None:
    """The envelope of a kept run in W: its file, or what `PREFIX_power.csv` has noted of it; None if it had none."""
    path = input_of(prefix, "envelope")
    if path is not None:
        try:
            return read_series(path)
        except InputError:
            pass  # an input of another kind; the power file knows the cap as well
    rows = read.table(prefix, "power")
    rows = rows[rows["cap_w"].notna()]
    if rows.empty:
        return None
    changes = np.append(True, np.diff(rows["cap_w"].to_numpy()) != 0.0)[: len(rows)]
    return Series(tuple(rows["time_s"][changes].tolist()), tuple(rows["cap_w"][changes].tolist()), "power_w")
