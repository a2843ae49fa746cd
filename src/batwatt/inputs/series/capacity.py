"""Reader and writer of capacities: the number of machines alive, as a step function of time."""

from __future__ import annotations

from pathlib import Path

from batwatt.checks import number_in_file
from batwatt.errors import InputError
from batwatt.files import read_text
from batwatt.inputs.series.series_csv import TIME, read_series, without_comments
from batwatt.model.series import MACHINES, Series, checked_capacity
from batwatt.units import number_text

_HINT = f"begin with the number of machines at 0 s, then 'time count' lines; or write CSV with '{TIME},{MACHINES}'"


def read_capacity(path: Path | str, slots: int | None) -> Series:
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


def to_csv(series: Series) -> str:
    """Return the series as CSV with the header `time_s,<name>`, which `read_capacity` reads."""
    rows = (f"{number_text(t)},{number_text(v)}\n" for t, v in zip(series.times_s, series.values, strict=True))
    return f"{TIME},{series.name}\n" + "".join(rows)


def _read_text_format(lines: list[tuple[int, list[str]]], path: Path | str) -> Series:
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
    return Series(tuple(times), tuple(values), name=MACHINES, source=str(path), unit=MACHINES)
