"""The files of saved runs: their power, and the envelope they were under."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from batwatt.errors import InputError
from batwatt.inputs.platforms import host_choice
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.series.series_csv import read_series
from batwatt.model.clock import date_s_of
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.results import read
from batwatt.results.writers import file_of


def _metadata(prefix: Path) -> Any:
    """What `PREFIX_metadata.json` has; {} if it cannot be read."""
    try:
        return json.loads(file_of(prefix, "metadata", ".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def begin_of(prefix: Path) -> float | None:
    """The date of 0 s of a run, in s since 1970; None if it is not known."""
    try:
        return date_s_of(_metadata(prefix)["begin"])
    except (KeyError, TypeError, InputError):
        return None


def _input(metadata: Any, name: str) -> Path | None:
    """The file that a run had as its input `name` ("envelope", "platform"), if it is there and still the same."""
    try:
        path = Path(metadata["inputs"][name]["path"])
        same = hashlib.sha256(path.read_bytes()).hexdigest() == metadata["inputs"][name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return path if same else None


def platform_of(prefix: Path) -> Platform | None:
    """The hosts of the platform file on which a saved run ran, if it is there and still the same."""
    metadata = _metadata(prefix)
    path = _input(metadata, "platform")
    return None if path is None else host_choice.platform_of(path, HostChoice(**metadata.get("hosts", {})))


def envelope_of(prefix: Path) -> Series | None:
    """The envelope of a saved run in W: its file, or what `PREFIX_power.csv` has noted of it; None if it had none."""
    path = _input(_metadata(prefix), "envelope")
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
