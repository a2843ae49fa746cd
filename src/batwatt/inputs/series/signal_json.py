"""Reader of answers of APIs in JSON (Electricity Maps, WattTime, the British carbon API, PVGIS) as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.inputs.series.signal_times import time_column_of

_DEEPEST = 6


def json_table(text: str, path: Path) -> pd.DataFrame:
    """Return the only table with times in a JSON text, or without usual names of times the only one: a list of objects.

    Names within objects are joined by dots (`intensity.actual`). In the objects around the table, `unit` and `units`
    (also of `meta`) are its units. Raises InputError.
    """
    content = load_json(text, path)
    tables = [(place, frame) for place, frame in _tables(content, "", {}) if len(frame.columns) > 1]
    tables = [(place, frame) for place, frame in tables if time_column_of(frame) is not None] or tables
    if len(tables) == 1:
        return tables[0][1]
    if tables:
        places = ", ".join(place for place, _ in tables[:12])
        raise InputError(path, f"has {len(tables)} tables: {places}", "leave one of them in the file")
    hint = "write a list of objects with time and value, or CSV (pandas.DataFrame(...).to_csv)"
    raise InputError(path, "has no list of objects", hint)


def _tables(value: Any, place: str, siblings: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (place, table) of each table in a value at `place`; `siblings` are the values of objects around it."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        yield place or "the list", _frame([dict(_flat(row)) for row in value], place, siblings)
        for row in value:
            inner = {key: cells for key, cells in row.items() if isinstance(cells, list)}
            yield from _tables(inner, place, {**siblings, **row}, depth)
    elif isinstance(value, dict):
        siblings = {**siblings, **value}
        for key, inner in value.items():
            yield from _tables(inner, f"{place}.{key}" if place else key, siblings, depth + 1)


def _flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{before}{key}.", depth + 1)
        elif not isinstance(value, list | dict):
            yield before + key, value


def _frame(rows: list[dict[str, Any]], place: str, siblings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of rows, with its units."""
    frame = pd.DataFrame(rows, dtype=object)
    for name in frame.columns:
        frame[name] = [_text(cell) for cell in frame[name]]
    meta = siblings.get("meta")
    stated = [owner.get(key) for owner in (siblings, meta) if isinstance(owner, dict) for key in ("unit", "units")]
    frame.attrs["unit"] = next((unit for unit in stated if isinstance(unit, str)), "")
    # PVGIS has meta.outputs.hourly.variables for its table outputs.hourly
    for key in (*place.split("."), "variables"):
        meta = meta.get(key) if isinstance(meta, dict) else None
    frame.attrs["units"] = _units_in(meta)
    return frame


def _units_in(described: Any) -> dict[str, str]:
    """Return the units by column, of an object such as `{"P": {"units": "W"}}`."""
    if not isinstance(described, dict):
        return {}
    units = {name: one.get("units") for name, one in described.items() if isinstance(one, dict)}
    return {name: unit for name, unit in units.items() if isinstance(unit, str)}


def _text(cell: Any) -> str:
    # pandas fills missing keys of objects with NaN
    if cell is None or cell != cell:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
