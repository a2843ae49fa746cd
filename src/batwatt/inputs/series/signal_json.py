"""Reader of answers of APIs in JSON (Electricity Maps, WattTime, the British carbon API, Open-Meteo) as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.inputs.series.signal_times import time_column_of

_DEEPEST = 6
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?$")


def json_table(text: str, path: Path) -> pd.DataFrame:
    """Return the only table with times in a JSON text: a list of objects, or an object of lists of equal length.

    Names within objects are joined by dots (`intensity.actual`). In the objects around the table, `unit`, `units` (also
    of `meta`) and `NAME_units` are its units, `utc_offset_seconds` the offset of local times. Raises InputError.
    """
    content = load_json(text, path)
    tables = [(place, frame) for place, frame in _tables(content, "", {}) if time_column_of(frame.columns) is not None]
    if len(tables) == 1:
        return tables[0][1]
    if tables:
        places = ", ".join(place for place, _ in tables[:12])
        raise InputError(path, f"has {len(tables)} tables with times: {places}", "leave one of them in the file")
    raise InputError(path, "has no list of values with their times", "give a list of objects, or CSV")


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
        columns = {key: cells for key, cells in value.items() if _is_column(cells)}
        if len(columns) > 1 and len({len(cells) for cells in columns.values()}) == 1:
            yield place or "the object", _frame(columns, place, siblings)
        for key, inner in value.items():
            yield from _tables(inner, f"{place}.{key}" if place else key, siblings, depth + 1)


def _is_column(cells: Any) -> bool:
    return isinstance(cells, list) and bool(cells) and not any(isinstance(cell, list | dict) for cell in cells)


def _flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{before}{key}.", depth + 1)
        elif not isinstance(value, list | dict):
            yield before + key, value


def _frame(rows: Any, place: str, siblings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of rows or of columns, with its units, and the offset of its times."""
    frame = pd.DataFrame(rows, dtype=object)
    for name in frame.columns:
        frame[name] = [_text(cell) for cell in frame[name]]
    own = siblings.get(f"{place.rpartition('.')[2]}_units")
    meta = siblings.get("meta")
    stated = [owner.get(key) for owner in (siblings, meta) if isinstance(owner, dict) for key in ("unit", "units")]
    frame.attrs["unit"] = next((unit for unit in stated if isinstance(unit, str)), "")
    frame.attrs["units"] = _units_in(own)
    if not frame.attrs["units"]:
        # PVGIS has meta.outputs.hourly.variables for its table outputs.hourly
        for key in (*place.split("."), "variables"):
            meta = meta.get(key) if isinstance(meta, dict) else None
        frame.attrs["units"] = _units_in(meta)
    offset, times = siblings.get("utc_offset_seconds"), time_column_of(frame.columns)
    if isinstance(offset, int) and not isinstance(offset, bool) and abs(offset) < 86_400 and times is not None:
        sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
        suffix = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
        frame[times] = [text + suffix if _LOCAL.match(text) else text for text in frame[times]]
    return frame


def _units_in(described: Any) -> dict[str, str]:
    """Return the units by column, of objects such as `{"P": "W"}` or `{"P": {"units": "W"}}`."""
    if not isinstance(described, dict):
        return {}
    units = {name: one.get("units") if isinstance(one, dict) else one for name, one in described.items()}
    return {name: unit for name, unit in units.items() if isinstance(unit, str)}


def _text(cell: Any) -> str:
    # pandas fills missing keys of objects with NaN
    if cell is None or cell != cell:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
