"""Readers of the files that options of a scheduler name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from batwatt.inputs.formats import read_reference
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.spec import Quantity, parse_series
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import Reference

READERS: Mapping[str, tuple[type[Any], Callable[[str | Path], Any]]] = {
    "platform": (Platform, read_platform),
    "envelope": (Timeline, lambda text: parse_series("power", text).timeline()),
    "capacity": (Timeline, lambda text: parse_series("machines", text).timeline()),
    "reference": (Reference, read_reference),
}
"""Option -> type of its value, and the reader of its file."""
SIGNALS: Mapping[str, Quantity] = {"signal": "carbon", "price": "price"}
"""Option -> quantity of the signal in its file."""
