"""Reading series (envelopes, capacities, signals) from CSV files with a header `time_s,<column>`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from batwatt.errors import InputError
from batwatt.inputs.batsim_json import read_text
from batwatt.model.series import Series
from batwatt.units import finite

TIME = "time_s"
"""Name of the column of times in s."""


def read_series(path: Path | str, column: str = "power_w", *, minimum: float | None = 0.0) -> Series:
    """The step function in column `column` of a CSV file with a column `time_s`; other columns are ignored.

    Times must increase strictly and values be at least `minimum` (None: any). Raises InputError with the line.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), skipinitialspace=True)
    wanted = f"the first line must name the columns, as in '{TIME},{column}'"
    times: list[float] = []
    values: list[float] = []
    try:
        header = next((row for row in reader if _filled(row)), None)
        if header is None:
            raise InputError(path, "is empty", wanted)
        place = f"{path}: line {reader.line_num}"
        at_time, at_value = (_position(header, name, place, wanted) for name in (TIME, column))
        for row in reader:
            if not _filled(row):
                continue
            place = f"{path}: line {reader.line_num}"
            time_s = _cell(row, at_time, TIME, place)
            value = _cell(row, at_value, column, place)
            if times and not time_s > times[-1]:
                kind = "a second row for" if time_s == times[-1] else "times must increase, got"
                raise InputError(place, f"{kind} {TIME} {time_s:g} after {times[-1]:g}", "sort the rows by time")
            if minimum is not None and not value >= minimum:
                raise InputError(place, f"{column} must be >= {minimum:g}, got {value:g}", "correct the value")
            times.append(time_s)
            values.append(value)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}", f"is not CSV ({error})", wanted) from None
    if not times:
        raise InputError(path, "has a header but no rows", "add at least one row")
    return Series(tuple(times), tuple(values), name=column, source=str(path))


def _filled(row: list[str]) -> bool:
    return any(cell.strip() for cell in row)


def _position(header: list[str], name: str, place: str, hint: str) -> int:
    names = [cell.strip() for cell in header]
    count = names.count(name)
    if count != 1:
        found = ", ".join(cell[:40] for cell in names[:10])
        problem = f"{'no' if count == 0 else 'more than one'} column {name!r} among: {found}"
        raise InputError(place, problem, hint)
    return names.index(name)


def _cell(row: list[str], index: int, name: str, place: str) -> float:
    if index >= len(row):
        raise InputError(place, f"no value in column {name!r}", "complete the row")
    text = row[index].strip()
    try:
        if "_" in text:
            raise ValueError(f"{text!r} is not a number")
        return finite(text)
    except ValueError:
        raise InputError(place, f"{name} {text[:60]!r} is not a finite number", "correct the value") from None
