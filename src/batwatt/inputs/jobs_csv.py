"""Reading job traces as CSV: `arrival_time,length,cpus`, as GAIA and others keep them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.trace import TraceJob, open_text
from batwatt.units import finite

TimeUnit = Literal["s", "h"]
SECONDS: dict[str, float] = {"s": 1.0, "h": 3600.0}
"""Seconds in each unit that a job CSV may be in."""

COLUMNS = ("arrival_time", "length", "cpus")


def read_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> list[TraceJob]:
    """All jobs of a CSV file, in its order; `unit` is that of `arrival_time` and `length`. Raises InputError."""
    return list(iter_jobs_csv(path, unit))


def iter_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> Iterator[TraceJob]:
    """The jobs of a CSV file (`.gz` too), one at a time; ids are "1", "2", ... in the order of the lines.

    Fields are separated by `,`, or by `|` if the header has one. Times in s are rounded to the microsecond, which is
    all that Batsim tells a scheduler. Further columns become extra fields. Raises InputError with the line number.
    """
    if unit not in SECONDS:
        raise UnknownNameError(path, "unit of time", unit, SECONDS, "Give the unit of arrival_time and length.")
    factor = SECONDS[unit]
    with open_text(path) as stream:
        first = next(stream, "")
        separator = "|" if "|" in first else ","
        header = [name.strip() for name in next(_rows(csv.reader([first], delimiter=separator), path), [])]
        missing = [name for name in COLUMNS if name not in header]
        if missing or len(set(header)) != len(header):
            problem = f"lacks the column {missing[0]!r}" if missing else "names a column twice"
            raise InputError(f"{path} line 1", problem, "the header must be arrival_time,length,cpus")
        places = [header.index(name) for name in COLUMNS]
        others = [(i, name) for i, name in enumerate(header) if name not in COLUMNS]
        rows = csv.reader(stream, delimiter=separator)
        for count, row in enumerate(_rows(rows, path), start=1):
            where = f"{path} line {rows.line_num + 1}"
            if len(row) != len(header):
                raise InputError(where, f"has {len(row)} fields, the header {len(header)}", "correct the line")
            arrival, length, cpus = (_number(row[i], where, name) for i, name in zip(places, COLUMNS, strict=True))
            if not cpus.is_integer():
                raise InputError(where, f"cpus must be a whole number, got {row[places[2]]}", "correct the line")
            yield TraceJob(
                id=str(count),
                submit_s=round(arrival * factor, 6),
                run_s=round(length * factor, 6),
                cpus=int(cpus),
                extra={name: row[i] for i, name in others},
            )


def _rows(rows: Iterator[list[str]], path: Path | str) -> Iterator[list[str]]:
    """The rows that hold something; the csv module's own complaints become InputError."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(path, f"is not CSV ({error})", "write arrival_time,length,cpus lines") from None
        if any(cell.strip() for cell in row):
            yield row


def _number(text: str, where: str, name: str) -> float:
    try:
        return finite(text)
    except ValueError as error:
        raise InputError(where, f"{name}: {error}", "write a finite number") from None
