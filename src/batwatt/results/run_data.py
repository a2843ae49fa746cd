"""Columns of a run, the input of its figures: read from files, or taken from the record of the run.

Numbers of the record are rounded to the last bit as in the files, so that figures are equal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batwatt.checks import load_json, shown
from batwatt.errors import InputError
from batwatt.files import digest_of, read_text
from batwatt.model.record import Record
from batwatt.results.csv_block import as_read
from batwatt.results.writers import file_of

Floats = NDArray[np.float64]
Columns = Mapping[str, Any]
"""Name -> values of all rows."""
RERUN = "run the simulation again, or name the prefix it was run with"

_AS_THEY_ARE = "run it again, or remove {} to read the files as they are"

_TEXTS = ("job_id", "workload_name", "final_state", "metadata")
_TIMES = ("starting_time", "execution_time", "finish_time")
_NUMBERS = ("submission_time", *_TIMES, "requested_number_of_resources")


class RunData:
    """Columns of the run under a prefix that figures need, of up to millions of rows.

    With a `record` no file is read.
    """

    def __init__(self, prefix: Path | str, record: Record | None = None) -> None:
        self.prefix = Path(prefix)
        self._record = record

    @cached_property
    def jobs(self) -> Columns:
        """Columns of the jobs in the order of their ends, with full ids from a record. Raises InputError."""
        if self._record is None:
            from batwatt.results import read

            frame = read.jobs(self.prefix)
            return {name: frame[name].to_numpy() for name in (*_TEXTS, *_NUMBERS, "consumed_energy")}
        rows = self._record.jobs
        widths = {"requested_number_of_resources": np.array(rows.widths, dtype=np.float64)}
        columns: Columns = {"submission_time": np.array(rows.submitted), **widths, **rows.times()}
        values: dict[str, Any] = {name: as_read(columns[name]) for name in _NUMBERS}
        named = {"final_state": rows.states, "metadata": rows.metadata}
        return values | {"full_id": rows.ids, **{name: np.array(texts, dtype=object) for name, texts in named.items()}}

    @cached_property
    def job_energies(self) -> Floats:
        """Energy in J of the hosts of each row of `jobs` during its run; NaN without a run or without energy."""
        if self._record is not None:
            energy_j = as_read(np.array(self._record.jobs.energies))
        else:
            energy_j = numbers(self.jobs, "consumed_energy")
        return np.where(energy_j >= 0.0, energy_j, np.nan)

    @cached_property
    def energy(self) -> tuple[Floats, Floats] | None:
        """Times in s and the energy of all hosts until then in J, both monotonic; None without energy.

        Raises InputError.
        """
        if self._record is not None:
            rows = self._record.consumed_energy
            columns = as_read(np.array(rows.times)), as_read(np.array(rows.energies))
            return checked_energy(self.prefix, *columns) if self._record.energy else None
        if not file_of(self.prefix, "consumed_energy").exists():
            return None
        from batwatt.results import read

        frame = read.consumed_energy(self.prefix)
        return frame["time"].to_numpy(dtype=np.float64), frame["energy"].to_numpy(dtype=np.float64)


def digests_of(prefix: Path) -> dict[str, str]:
    """Return the SHA-256 of the files under a prefix, by their names after it, without the metadata."""
    begin, metadata = f"{prefix.name}_", file_of(prefix, "metadata", ".json")
    paths = sorted(path for path in prefix.parent.glob(f"{escape(begin)}*") if path.is_file() and path != metadata)
    return {path.name.removeprefix(begin): digest_of(path) or "" for path in paths}


def metadata_of(prefix: Path) -> dict[str, Any]:
    """Return PREFIX_metadata.json, in which `files` has digests by name; without it no files, as of a real Batsim.

    Raises InputError.
    """
    path = file_of(prefix, "metadata", ".json")
    if not os.path.lexists(path):
        return {"files": {}}
    content = load_json(read_text(path), path, parse_constant=float)
    metadata: dict[str, Any] = content if isinstance(content, dict) else {}
    files = metadata.get("files")
    if not (isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())):
        raise InputError(path, "names no files with their digests", _AS_THEY_ARE.format(path.name))
    for name in files:
        if "/" in name:
            raise InputError(path, f"names {shown(name)}, no file of the run", _AS_THEY_ARE.format(path.name))
    return metadata


def check_files(prefix: Path) -> None:
    """Raise InputError if a file differs from its digest in the metadata: the files are then of different runs."""
    metadata = file_of(prefix, "metadata", ".json").name
    for name, digest in metadata_of(prefix)["files"].items():
        path = prefix.with_name(f"{prefix.name}_{name}")
        if (present := digest_of(path)) != digest:
            problem = f"{'is not the file' if present else 'is missing, a file'} that {metadata} names"
            raise InputError(path, problem, _AS_THEY_ARE.format(metadata))


def checked_energy(prefix: Path | str, times_s: Floats, energy_j: Floats) -> tuple[Floats, Floats]:
    """Return the columns of the file of energies. Raises InputError for a value below 0, not finite or decreasing."""
    path = file_of(prefix, "consumed_energy")
    for name, values in (("time", times_s), ("energy", energy_j)):
        odd = np.flatnonzero(~np.isfinite(values))
        if len(odd):
            raise InputError(f"{path}: row {int(odd[0]) + 1}", f"{name} is not a finite number", RERUN)
        if len(values) and not values[0] >= 0.0:
            raise InputError(f"{path}: row 1", f"{name} must be >= 0, got {values[0]:g}", RERUN)
        falls = np.flatnonzero(np.diff(values) < 0.0)
        if len(falls):
            row = int(falls[0]) + 1
            problem = f"{name} decreases from {values[row - 1]:.6f} to {values[row]:.6f}"
            raise InputError(f"{path}: row {row + 1}", problem, RERUN)
    return times_s, energy_j


def texts(jobs: Columns, name: str) -> NDArray[np.object_]:
    """Return a column of texts."""
    return np.asarray(jobs[name], dtype=object)


def numbers(jobs: Columns, name: str) -> Floats:
    """Return a column of numbers; NaN for a missing one."""
    return np.asarray(jobs[name], dtype=np.float64)
