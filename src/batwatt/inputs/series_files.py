"""Series in seconds: CSV files with a header `time_s,<column>`, and capacities, which may be texts, too."""

from __future__ import annotations

import csv
import io
import re
from functools import lru_cache
from pathlib import Path

from batwatt.checks import number_in_file
from batwatt.errors import InputError
from batwatt.files import SMALL, read_text
from batwatt.model.timeline import LARGEST, MACHINES, Timeline, checked_capacity
from batwatt.units import SINCE_1970_S, YEAR_S, number_text

MORE_FIELDS = "name all columns, and write 395.7 where it is a decimal comma"
"""Hint on a line with more fields than the header."""
TIME = "time_s"
"""Name of the column with times in s."""
SHORTEST_S = 1e-3
"""Least distance in s of two rows: a shorter step is lost in the microseconds of Batsim's times."""


def read_series(path: Path | str, column: str = "power_w") -> Timeline:
    """Read the step function in column `column` of a CSV file with a column `time_s`; ignore other columns.

    Times must increase by a millisecond or more, values be >= 0, and neither be larger than `LARGEST`. A cache by path
    and content has the last small series, for the runs of a campaign. Raises InputError with the line.
    """
    text = without_comments(read_text(path))
    return (_small if len(text) <= SMALL else _series_in)(text, path, column)


def without_comments(text: str) -> str:
    """Return a text with empty lines for its first lines that begin with `#`; the last one may be the header.

    It is if the next line begins with a number and has as many commas.
    """
    below = re.sub(r"\A(?:[ \t]*(?:#.*)?\r?\n)+", "", text)
    lines = text[: len(text) - len(below)].splitlines()
    first = below.partition("\n")[0]
    if lines and first[:1].isdigit() and first.count(",") == lines[-1].count(",") > 0:
        below = f"{lines.pop().lstrip('# ')}\n{below}"
    return "\n" * len(lines) + below


@lru_cache(maxsize=16)
def _small(text: str, path: Path | str, column: str) -> Timeline:
    return _series_in(text, path, column)


def _series_in(text: str, path: Path | str, column: str) -> Timeline:
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
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
            if _filled(row[len(header) :]):
                raise InputError(place, f"has {len(row)} fields where the header names {len(header)}", MORE_FIELDS)
            time_s = _cell(row, at_time, TIME, place)
            value = _cell(row, at_value, column, place)
            if times and not time_s > times[-1]:
                kind = "a second row for" if time_s == times[-1] else "times must increase, got"
                raise InputError(place, f"{kind} {TIME} {time_s:g} after {times[-1]:g}", "sort the rows by time")
            if times and not time_s - times[-1] >= SHORTEST_S * (1.0 - 1e-6):
                problem = f"{TIME} {time_s!r} is less than {SHORTEST_S:g} s after {times[-1]!r}"
                raise InputError(place, problem, "leave one of both rows out")
            if not value >= 0.0:
                raise InputError(place, f"{column} must be >= 0, got {value:g}", "correct the value")
            times.append(time_s)
            values.append(value)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}", f"is not CSV ({error})", wanted) from None
    if not times:
        raise InputError(path, "has a header but no rows", "add at least one row")
    if times[0] >= SINCE_1970_S:
        problem = f"its times begin at {times[0]:.15g} s, {times[0] / YEAR_S:.0f} years after 0 s"
        raise InputError(path, problem, f"are they dates? then write power:{path} or trace:{path}, which read dates")
    return Timeline(
        tuple(times), tuple(values), column, str(path), {"power_w": "W", "machines": "machines"}.get(column, "")
    )


def _filled(row: list[str]) -> bool:
    return any(cell.strip() for cell in row)


def _position(header: list[str], name: str, place: str, hint: str) -> int:
    names = [cell.strip() for cell in header]
    count = names.count(name)
    if count != 1:
        listed = ", ".join(cell[:40] for cell in names[:10])
        problem = f"{'no' if count == 0 else 'more than one'} column {name!r} among: {listed}"
        raise InputError(place, problem, f"{hint}; a file of another form is power:FILE" if name == "power_w" else hint)
    return names.index(name)


def _cell(row: list[str], index: int, name: str, place: str) -> float:
    if index >= len(row):
        raise InputError(place, f"no value in column {name!r}", "complete the row")
    value = number_in_file(place, name, row[index].strip(), "correct the value")
    if not abs(value) <= LARGEST:
        raise InputError(place, f"{name} {value:g} is larger than {LARGEST:g}", "correct the value")
    return value


_HINT = f"begin with the number of machines at 0 s, then 'time count' lines; or write CSV with '{TIME},{MACHINES}'"


def read_capacity(path: Path | str, slots: int | None) -> Timeline:
    """Read the machines alive over time, whole numbers in [0, `slots`] (None: no upper bound), in one of two formats.

    By the first line, the file is CSV with the header `time_s,machines`; or the riskaware paper's text, whose first
    line is the count at 0 s and each other line `time count`. Times in s, strictly increasing. Raises InputError.
    """
    lines = [
        (number, line.split()) for number, line in enumerate(without_comments(read_text(path)).split("\n"), start=1)
    ]
    filled = [(number, words) for number, words in lines if words]
    as_text = bool(filled) and filled[0][1][0][0] in "+-.0123456789"
    series = _read_text_format(filled, path) if as_text else read_series(path, MACHINES)
    return checked_capacity(series, slots, path)


def to_csv(series: Timeline) -> str:
    """Return the series as CSV with the header `time_s,<name>`, which `read_capacity` reads."""
    rows = (f"{number_text(t)},{number_text(v)}\n" for t, v in zip(series.times_s, series.values, strict=True))
    return f"{TIME},{series.name}\n" + "".join(rows)


def _read_text_format(lines: list[tuple[int, list[str]]], path: Path | str) -> Timeline:
    number, words = lines[0]
    if len(words) != 1:
        raise InputError(f"{path}: line {number}", f"has {len(words)} fields, the first line has 1", _HINT)
    times, values = [0.0], [number_in_file(f"{path}: line {number}", MACHINES, words[0], _HINT)]
    for number, words in lines[1:]:
        place = f"{path}: line {number}"
        if len(words) != 2:
            raise InputError(place, f"has {len(words)} fields, 'time count' has 2", _HINT)
        time_s = number_in_file(place, "time", words[0], _HINT)
        value = number_in_file(place, MACHINES, words[1], _HINT)
        if not time_s > times[-1]:
            problem = f"times must increase, got {time_s:g} s after {times[-1]:g} s"
            raise InputError(place, problem, "sort the lines by time; the first line holds at 0 s")
        times.append(time_s)
        values.append(value)
    return Timeline(tuple(times), tuple(values), name=MACHINES, source=str(path), unit=MACHINES)
