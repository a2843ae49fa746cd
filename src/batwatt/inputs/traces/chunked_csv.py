"""Reader of large tables part by part: CSV or one JSON object per line, or their `.gz`, with checked types."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.files import LONGEST_LINE, open_bytes, open_text, readable
from batwatt.inputs.traces.trace import csv_rows

Type = Literal["int", "float", "text"]
CUT = "ran before the trace or after it, kept with what it tells"
"""Note on jobs of which a trace has only a part."""
ROWS = 200_000
"""Number of rows of a part."""

_DTYPES = {"int": "int64", "float": "float64", "text": "str"}
_UNKNOWN = ["", "NULL", "null"]


def chunks(
    path: Path | str, types: Mapping[str, Type], aliases: Mapping[str, str], names: Sequence[str] | None = None
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield the parts of a table with the columns of `types`, each with the number of its first line.

    `aliases` are other names of columns; `names` are the columns of a CSV file with an optional header. Missing columns
    are left out, empty cells are NaN, but not allowed in columns of type int. JSON (`.json`, `.jsonl`, `.ndjson`) may
    nest: `{"a": {"b": 1}}` is column `a.b`. Raises InputError with the line number.
    """
    suffixes = Path(path).name.lower().removesuffix(".gz")
    if suffixes.endswith((".json", ".jsonl", ".ndjson")):
        yield from _json_chunks(path, types, aliases)
        return
    options: dict[str, Any] = {"names": names, "header": None} if names is not None else {}
    first, line = _first_line(path, names), 1 if names is not None else 2
    if names is not None and first == list(names):
        options["header"], line = 0, 2
    read = {name: types[aliases.get(name, name)] for name in names or first if aliases.get(name, name) in types}
    options |= {
        "usecols": list(read),
        # without it the first cells of rows that are too long become an index
        "index_col": False,
        "keep_default_na": False,
        "na_values": _UNKNOWN,
        "encoding_errors": "replace",
        "chunksize": ROWS,
    }
    with readable(path), open_bytes(path, LONGEST_LINE) as stream:
        try:
            parts = pd.read_csv(stream, dtype={name: _DTYPES[kind] for name, kind in read.items()}, **options)
            while True:
                # numpy warns of a number too large for an integer, before pandas refuses it
                with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                    part = next(parts, None)
                if part is None:
                    return
                yield line, part.rename(columns=aliases)
                line += len(part)
        except (ValueError, OverflowError) as error:
            _blame(path, read, options, line)
            raise InputError(path, f"is not such a table ({error})", f"look at line {line} and below") from None


def write_chunks(parts: Iterable[pd.DataFrame], out: IO[str]) -> int:
    """Write parts of a table as one CSV, each when it arrives; return the number of rows."""
    rows, header = 0, True
    for part in parts:
        part.to_csv(out, index=False, header=header, lineterminator="\n")
        rows, header = rows + len(part), False
    return rows


def _first_line(path: Path | str, names: Sequence[str] | None) -> list[str]:
    with open_text(path) as stream:
        cells = [cell.strip() for cell in next(csv_rows(csv.reader(stream), path, "give a table"), [])]
    if not cells:
        raise InputError(path, "is empty", "give a table with rows")
    if names is not None and len(cells) != len(names):
        problem = f"has {len(cells)} fields, the table {len(names)}"
        raise InputError(f"{path} line 1", problem, f"its columns are {', '.join(names)}")
    return cells


def _blame(path: Path | str, read: Mapping[str, Type], options: Mapping[str, Any], first_line: int) -> None:
    """Raise InputError for the first cell from a line on that contradicts the type of its column."""
    skipped = first_line - 1 if options.get("header", 0) is None else first_line - 2
    try:
        with open_bytes(path, LONGEST_LINE) as stream:
            parts = pd.read_csv(stream, dtype=str, **options)
            part = next(part for index, part in enumerate(parts) if index == skipped // ROWS)
    except (ValueError, OverflowError, StopIteration):
        return
    _check_cells(part, read, path, first_line)


def _check_cells(part: pd.DataFrame, types: Mapping[str, Type], path: Path | str, line: int) -> None:
    """Raise InputError for the first cell that contradicts the type of its column."""
    for place, row in enumerate(part[[name for name in part.columns if name in types]].to_dict("records")):
        for name, cell in row.items():
            _checked(cell, types[str(name)], f"{path} line {line + place}", str(name))


def _checked(cell: object, kind: Type, where: str, name: str) -> None:
    if kind == "text" or (kind == "float" and cell != cell):
        return
    try:
        good = -(2**63) <= int(str(cell)) < 2**63 if kind == "int" else float(str(cell)) is not None
    except ValueError:
        good = False
    if not good:
        what = "a whole number below 2^63" if kind == "int" else "a number"
        raise InputError(where, f"{name} must be {what}, got {shown(str(cell))}", "correct the line")


def _json_chunks(
    path: Path | str, types: Mapping[str, Type], aliases: Mapping[str, str]
) -> Iterator[tuple[int, pd.DataFrame]]:
    line = 1
    with readable(path), open_bytes(path, LONGEST_LINE) as stream:
        try:
            with pd.read_json(stream, lines=True, chunksize=ROWS, dtype=False, precise_float=True) as parts:
                for part in parts:
                    yield line, _typed(_flat(part).rename(columns=aliases), types, path, line)
                    line += len(part)
        except (ValueError, OverflowError) as error:
            problem = f"is not one JSON object a line ({error})"
            raise InputError(path, problem, f"look at line {line} and below") from None


def _flat(part: pd.DataFrame) -> pd.DataFrame:
    """Replace each column of objects by one column per field."""
    for name in list(part.columns):
        objects = part[name].map(lambda cell: isinstance(cell, dict))
        if objects.any():
            cells = [cell if isinstance(cell, dict) else {} for cell in part[name]]
            inner = pd.DataFrame(cells, index=part.index).add_prefix(f"{name}.")
            part = part.drop(columns=name).join(inner)
    return part


def _typed(part: pd.DataFrame, types: Mapping[str, Type], path: Path | str, line: int) -> pd.DataFrame:
    part = part[[name for name in part.columns if name in types]]
    try:
        return part.astype(
            {str(name): _DTYPES[types[str(name)]] for name in part.columns if types[str(name)] != "text"}
        )
    except (ValueError, TypeError, OverflowError):
        _check_cells(part, types, path, line)
        raise
