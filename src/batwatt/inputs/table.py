"""Tables of signals as texts: CSV of any dialect, and JSON of APIs (Electricity Maps, WattTime, PVGIS and others)."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from batwatt.checks import load_json, row_too_long
from batwatt.errors import InputError
from batwatt.files import read_text
from batwatt.inputs.jobs import csv_rows
from batwatt.inputs.series_files import MORE_FIELDS, without_comments
from batwatt.inputs.stamps import looks_like_date, time_column_of

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


MOST_COLUMNS = 1000
"""Greatest number of columns: a table with more has its times in columns, or is not a table."""
_HINT = "the first line must name the columns"
_PVGIS = re.compile(r"^(?:time|time\(UTC\)),.*\n(?:\d{8}:\d{4},.*\n?)+", re.MULTILINE)
"""The table of an hourly export of PVGIS, between a block on the site and one on the columns."""
_PVGIS_UNIT = re.compile(r"^(\S+): .*\(([^()\n]+)\)[ \t\r]*$", re.MULTILINE)
_PVGIS_UNITS = {"P": "W", "H_sun": "degree", "T2m": "degree Celsius", "WS10m": "m/s", "Int": "a mark"}
"""Units of the columns of PVGIS, whose description may be cut off."""
_BLANK_GROUPS = re.compile("(?<=\\d)[\u00a0\u202f' ](?=\\d{3}(?!\\d))")
_THOUSANDS = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
_DECIMAL = r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?"


def read_table(path: Path) -> pd.DataFrame:
    """Read all cells as texts, with the header unchanged.

    `attrs` has the units that the file states: `units` by column, `unit` of the whole table. CSV columns may be
    separated by commas, semicolons, tabs or blanks, and numbers may have decimal commas or separators of thousands. A
    column without a name is called `column N`. Raises InputError.
    """
    text = without_comments(read_text(path))
    first = text.lstrip()[:1]
    if first == "<":
        kind = "XML" if re.match(r"\s*<(?:!doctype )?html", text, re.IGNORECASE) is None else "a page of HTML"
        raise InputError(path, f"is {kind}", "take the CSV export of the same series, or JSON")
    if first in ("{", "["):
        return json_table(text, path)
    pvgis = _PVGIS.search(text.replace("\r\n", "\n"))
    if pvgis is None:
        return _csv_table(text, path)
    frame = _csv_table(pvgis[0], path)
    frame.attrs["units"] = _PVGIS_UNITS | dict(_PVGIS_UNIT.findall(pvgis.string[pvgis.end() :]))
    return frame


def _csv_table(text: str, path: Path) -> pd.DataFrame:
    # a line of Excel
    text = re.sub(r"\A\s*sep=(.)\r?\n", "", text)
    header, below = ([line for line in text.splitlines() if line.strip()] + ["", ""])[:2]
    separator = next((sign for sign in ";\t" if sign in header and sign in below), None)
    separator = separator or next((sign for sign in ",;\t" if sign in header), r"\s+")
    columns = (header.count(separator) if len(separator) == 1 else len(header.split())) + 1
    if columns > MOST_COLUMNS:
        raise InputError(path, f"has {columns} columns, more than {MOST_COLUMNS}", "write the values below each other")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, index_col=False)
        if warned:
            # pandas drops fields beyond the header
            _no_more_fields(text, separator, path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        _no_more_fields(text, separator, path)
        raise InputError(path, f"is not CSV ({str(error).strip()})", _HINT) from None
    if frame.empty:
        raise InputError(path, "has no rows below a header", _HINT)
    # pandas renames columns of equal names
    plain = csv.reader([header], delimiter=separator) if len(separator) == 1 else iter([header.split()])
    names = next(csv_rows(plain, path, _HINT), [])
    if len(names) != len(frame.columns):
        names = list(frame.columns)
    if names and (looks_like_date(names[0]) or re.fullmatch(r"\s*[\d.,]+\s*", names[0])):
        raise InputError(path, f"has no line of header, but {header[:40]!r}", _HINT)
    frame.columns = pd.Index([name.strip() or f"column {number}" for number, name in enumerate(names, start=1)])
    firsts = [str(cell) for cell in frame.iloc[:2, 0]]
    if len(firsts) == 2 and looks_like_date(firsts[1]) and firsts[0].strip() and not firsts[0].strip()[0].isdigit():
        cells = ", ".join(str(cell)[:20] for cell in frame.iloc[0, :6])
        raise InputError(f"{path}: line 2", f"is a second line of header: {cells}", "name each column in one line")
    for place in range(frame.shape[1]):
        if frame.iloc[:, place].str.contains(",", regex=False).any():
            frame.isetitem(place, _with_points(frame.iloc[:, place], separator).to_numpy())
    return frame


def _with_points(cells: pd.Series[str], separator: str) -> pd.Series[str]:
    """Return cells with decimal points, without separators of thousands; unchanged if not numeric or ambiguous.

    `12,345` is 12.345 if another cell of the column requires it, or if semicolons separate columns.
    """
    plain = cells.str.strip().str.replace(_BLANK_GROUPS, "", regex=True)
    commas = plain.str.contains(",", regex=False)
    thousands, decimals = (plain[commas].str.fullmatch(pattern) for pattern in (_THOUSANDS, _DECIMAL))
    # 0,125 has no separator of thousands
    small = plain[commas].str.match(r"[+-]?0,").any()
    pointed = plain[~commas].str.contains(".", regex=False).any()
    if thousands.all() and not small and (pointed or not decimals.all()):
        return plain.str.replace(",", "", regex=False)
    if decimals.all() and not pointed and (small or not thousands.all() or separator == ";"):
        return plain.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return cells


def _no_more_fields(text: str, separator: str, path: Path) -> None:
    """Raise InputError if a line has more fields than the header."""
    excess = row_too_long(text, separator)
    if excess is not None:
        raise InputError(f"{path}: line {excess[0]}", excess[1], MORE_FIELDS)
