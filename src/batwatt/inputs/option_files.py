"""Readers of the files that options of a scheduler name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from batwatt.inputs.formats import read_reference
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.series import read_on_clock
from batwatt.inputs.series_files import read_capacity, read_series
from batwatt.inputs.spec import SignalFile, Wanted
from batwatt.model.platform import Platform
from batwatt.model.signal import Clock
from batwatt.model.timeline import Timeline
from batwatt.model.work import Reference

READERS: Mapping[str, tuple[type[Any], Callable[[str | Path], Any]]] = {
    "platform": (Platform, read_platform),
    "envelope": (Timeline, read_series),
    "capacity": (Timeline, lambda path: read_capacity(path, None)),
    "reference": (Reference, read_reference),
}
"""Option -> type of its value, and the reader of its file."""
SIGNALS: Mapping[str, Wanted] = {"signal": "carbon", "price": "price"}
"""Option -> quantity of the signal in its file."""


def read_signal_option(name: str, path: str | Path, begin: str | None, clock: Clock | None) -> Timeline:
    """Return the signal of an option on the clock of the run, else from `begin` (a date) on. Raises InputError."""
    file = SignalFile(Path(path), begin=None if clock else begin, wanted=SIGNALS[name], run_clock=clock)
    return read_on_clock(file)
