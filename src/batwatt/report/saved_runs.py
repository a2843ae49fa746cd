"""The files of saved runs: the date of 0 s, and the envelope of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.results import run_files
from batwatt.results.run_files import check_files, file_of, metadata_of


def begin_of(prefix: Path) -> float | None:
    """Return the date of 0 s of a run, in s since 1970; None if its metadata lack it. Raises InputError."""
    begin = metadata_of(prefix).get("begin")
    return None if begin is None else parse_date_s(begin, f"{file_of(prefix, 'metadata', '.json')}: begin")


def envelope_of(prefix: Path) -> Timeline | None:
    """Return the envelope in W of a saved run until its end, of `PREFIX_power.csv`; None for a run without one."""
    check_files(prefix)
    rows = run_files.table(prefix, "power")
    rows = rows[rows["cap_w"].notna()]
    if rows.empty:
        return None
    changes = np.append(True, np.diff(rows["cap_w"].to_numpy()) != 0.0)[: len(rows)]
    return Timeline(tuple(rows["time_s"][changes].tolist()), tuple(rows["cap_w"][changes].tolist()), "power_w")
