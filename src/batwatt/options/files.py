"""The files that options of a scheduler name: the scheduler gets their content, and opens none itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.series_csv import read_series
from batwatt.inputs.series.signal_file import SignalFile, Wanted
from batwatt.inputs.traces.reference import read_reference
from batwatt.model.clock import Clock
from batwatt.model.platform import Platform
from batwatt.model.reference import Reference
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.options import EVENTS, SchedulerOptions, parse_options

_READERS: Mapping[str, tuple[type[Any], Callable[[str | Path], Any]]] = {
    "platform": (Platform, read_platform),
    "envelope": (Series, read_series),
    "capacity": (Series, lambda path: read_capacity(path, None)),
    "reference": (Reference, read_reference),
}
"""Option -> type of its value, and the reader of its file."""
_SIGNALS: Mapping[str, Wanted] = {"signal": "carbon", "price": "price"}


def read_options(
    model: type[SchedulerOptions], options: Mapping[str, Any] | None, clock: Clock | None = None
) -> dict[str, Any]:
    """Return the options of a scheduler, with the content of files in place of their names. Raises InputError.

    Signals begin on the clock of the run, else both with the first row of carbon.
    """
    read = dict(options or {})
    paths = {name: read.pop(name) for name, (kind, _) in _READERS.items() if _is_path(model, name, kind, read)}
    signals = {name: read.pop(name) for name in _SIGNALS if _is_path(model, name, SignalIntegral, read)}
    if not (paths or signals):
        return read
    # errors of the other options come before a file is read
    parse_options(model, read)
    read |= {name: _READERS[name][1](path) for name, path in paths.items()}
    for name, path in signals.items():
        begin = None if clock else getattr(read.get("signal"), "begin", None) or None
        file = SignalFile(Path(path), begin=begin, wanted=_SIGNALS[name], run_clock=clock)
        read[name] = SignalIntegral.of(read_on_clock(file))
    return read


def _is_path(model: type[SchedulerOptions], name: str, kind: type[Any], options: Mapping[str, Any]) -> bool:
    """Return whether an option names a file of the type `kind`; a scheduler may have another meaning for its name."""
    value, field = options.get(name), model.model_fields.get(name)
    path = isinstance(value, str | Path) and value not in ("", EVENTS)
    return path and field is not None and kind in get_args(field.annotation)
